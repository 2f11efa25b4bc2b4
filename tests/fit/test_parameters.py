"""Names of parameters, which scikit-learn reads in signatures."""

import inspect

from sklearn.base import clone

from manyclass import GLMClassifier


class Wider(GLMClassifier):
    def __init__(self, width=1):
        super().__init__()
        self.width = width


def test_each_class_has_names_of_its_own_which_copies_do_not_read_again(monkeypatch):
    assert "alpha" in GLMClassifier().get_params() and set(Wider().get_params()) == {"width"}
    monkeypatch.setattr(inspect, "signature", None)
    assert clone(GLMClassifier(alpha=0.5)).alpha == 0.5 and clone(Wider(2)).width == 2
