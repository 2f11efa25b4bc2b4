"""The mathematics of the objective."""

from manyclass.model.links import LINKS, Link
from manyclass.model.objective import Evaluation, Objective

__all__ = ["LINKS", "Evaluation", "Link", "Objective"]
