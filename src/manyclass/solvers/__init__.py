"""Solvers of smooth problems: a problem and a curvature in, iterates out."""

from manyclass.solvers.accelerated import Accelerated
from manyclass.solvers.base import Solver, iterates_in
from manyclass.solvers.biased_gradient import BiasedGradient, Gradient
from manyclass.solvers.majorize import Majorize
from manyclass.solvers.newton import Newton
from manyclass.solvers.newton_cg import NewtonCG
from manyclass.solvers.quasi_newton import QuasiNewton

SOLVERS: dict[str, Solver] = {
    s.name: s for s in (QuasiNewton(), NewtonCG(), Newton(), Accelerated(), Majorize(), Gradient(), BiasedGradient())
}

__all__ = ["SOLVERS", "Solver", "iterates_in"]
