"""Models as PyTorch modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyclass.data.rows import to_numpy
from manyclass.export.program import Program, check_exportable, is_single, probabilities_of, scores_of


def to_torch(model: Any, dtype: str = "float32") -> Any:
    """A fitted model as a module of PyTorch.

    Parameters
    ----------
    model : estimator
        A linear one of this package, calibrated least squares or a stagewise model.
    dtype : {"float32", "float64"}
        Of the coefficients; see `to_onnx`.

    Returns
    -------
    module : torch.nn.Module
        ``module(X)`` are the scores, of shape (n_rows, n_outputs); ``module.predict_proba(X)`` the probabilities, where
        the model has them, and ``module.predict(X)`` places in ``module.classes``, indicators of several labels, or
        responses. Its buffers are what the model knows: they move with ``to(device)``, and through them runs autograd.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import GLMClassifier
    >>> from manyclass.export import to_torch
    >>> X, y = load_iris(return_X_y=True)
    >>> module = to_torch(GLMClassifier().fit(X, y))  # doctest: +SKIP
    >>> module.predict_proba(torch.tensor(X, dtype=torch.float32)).shape  # doctest: +SKIP
    torch.Size([150, 3])
    """
    check_exportable(model)  # what cannot be exported is refused with and without PyTorch
    import torch

    def carried_out(program: Program, buffers: Any, X: Any, wanted: str) -> Any:
        values = {"X": X.to(getattr(torch, dtype)), **dict(buffers)}
        for node in program.nodes:
            inputs = [values[name] for name in node.inputs]
            values[node.output] = OPERATORS[node.operator](torch, *inputs, **node.attributes)
        return values[wanted]

    class Exported(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.program = Program(dtype)
            self.scores = scores_of(self.program, model)
            self.is_classifier = hasattr(model, "classes_")
            self.multilabel = self.is_classifier and model.multilabel_
            self.is_single = self.is_classifier and is_single(model)
            self.classes = np.array(to_numpy(model.classes_)) if self.is_classifier else None
            self.part = len(self.program.nodes)
            self.probabilities = probabilities_of(self.program, model, self.scores) if self.is_classifier else None
            for name, array in self.program.constants.items():
                self.register_buffer(name, torch.tensor(array))

        def forward(self, X: Any) -> Any:
            part = Program(dtype, self.program.nodes[: self.part])
            return carried_out(part, self.named_buffers(), X, self.scores)

        def predict_proba(self, X: Any) -> Any:
            if self.probabilities is None:
                raise AttributeError("This model gives scores but no probabilities.")
            return carried_out(self.program, self.named_buffers(), X, self.probabilities)

        def predict(self, X: Any) -> Any:
            Z = self(X)
            if not self.is_classifier:
                return Z
            if self.multilabel:
                return (Z > 0).long()
            return (Z[:, 0] > 0).long() if self.is_single else Z.argmax(dim=1)

    return Exported().eval()


def _items(values: Any) -> Any:
    return tuple(values.reshape(-1).tolist())


OPERATORS: dict[str, Any] = {
    "Add": lambda torch, a, b: a + b,
    "Sub": lambda torch, a, b: a - b,
    "Mul": lambda torch, a, b: a * b,
    "Div": lambda torch, a, b: a / b,
    "Pow": lambda torch, a, b: a**b,
    "Max": lambda torch, a, b: torch.maximum(a, b),
    "Min": lambda torch, a, b: torch.minimum(a, b),
    "MatMul": lambda torch, a, b: a @ b,
    "Cos": lambda torch, a: a.cos(),
    "Exp": lambda torch, a: a.exp(),
    "Relu": lambda torch, a: a.relu(),
    "Sigmoid": lambda torch, a: a.sigmoid(),
    "Softmax": lambda torch, a, axis: a.softmax(dim=axis),
    "Clip": lambda torch, a, low, high: torch.clamp(a, low, high),
    "Concat": lambda torch, *parts, axis: torch.cat(parts, dim=axis),
    "Gather": lambda torch, a, index, axis: a.index_select(axis, index),
    "CumSum": lambda torch, a, axis: a.cumsum(dim=int(axis)),
    "TopK": lambda torch, a, k, axis: a.topk(int(k[0]), dim=axis).values,
    "ReduceSum": lambda torch, a, axes, keepdims: a.sum(dim=_items(axes), keepdim=bool(keepdims)),
    "ReduceMax": lambda torch, a, axes, keepdims: a.amax(dim=_items(axes), keepdim=bool(keepdims)),
}
"""What PyTorch does for each operator."""
