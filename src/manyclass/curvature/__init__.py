"""What stands in for the Hessian."""

from manyclass.curvature.base import Curvature
from manyclass.curvature.diagonal import Diagonal, Identity, Jacobi
from manyclass.curvature.hessian import Hessian, SampledHessian
from manyclass.curvature.kronecker import Kronecker
from manyclass.curvature.partition_bound import PartitionBound
from manyclass.curvature.second_moment import SecondMoment

CURVATURES: dict[str, type[Curvature]] = {
    c.name: c for c in (SecondMoment, Kronecker, Diagonal, PartitionBound, Hessian, SampledHessian, Jacobi, Identity)
}

__all__ = ["CURVATURES", "Curvature"]
