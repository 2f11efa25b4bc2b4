"""The normal equations of a block of features, solved by a factor of its second moments, or by conjugate gradients."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyclass.data import Moments, Rows
from manyclass.data.factor import Factor, varying
from manyclass.data.penalty import ALIKE, LEAST, RidgeSpectrum, best, path_of_rows, random_sums
from manyclass.data.pieces import pieces
from manyclass.data.rows import GRAM_BLOCK_BYTES, Array, to_numpy
from manyclass.model import Problem
from manyclass.model.sums import rotated, squares_of

SAMPLED_ROWS = 1024
"""Rows that choose the penalty where no second moments are formed."""
MANY = 4
"""With so many times `SAMPLED_ROWS` rows or more, the sample may judge fits to all other rows."""
ACCURACY, LONGEST = 1e-2, 100
"""Relative residual at which conjugate gradients end, as the next stage fits what is left; and their most steps."""
LEAST_SHARE = 1e-12
"""The least curvature of a row."""


@dataclass(frozen=True)
class Residuals:
    """The responses r of a stage: its residuals, divided by the mean curvature of a row."""

    stage: Any  # the problem whose rows are the features
    cross: Array  # Σ s x rᵀ / S, of shape (n_features, n_outputs)
    mean: Array  # Σ s r / S, of shape (n_outputs,)
    total_weight: float  # S
    state: Any  # the predictions of the stages before; for rows in parts, as `Problem.map` gives them
    on: Callable[[Problem], Any]  # `Update.on`
    share: float  # the mean curvature of a row
    whole_rows: bool = False  # leave out all of a row, or only one of the copies that its weight stands for
    signs: Array | None = None  # (n_outputs, n_sums), from `random_sums`, if sums of outputs replace the outputs

    def sketched(self) -> Residuals:
        """The same responses; if the outputs are many, random sums of them."""
        signs = random_sums(self.stage.n_outputs)
        if signs is None:
            return self
        wide = self.stage.rows.asarray(signs, self.cross.dtype)
        return replace(self, cross=self.cross @ wide, mean=self.mean @ wide, signs=wide)

    def residual(self, stage: Problem, state: Array, part: slice) -> Array:
        """r of some rows."""
        block = state[part, :]
        own = self.on(stage).residual(block, stage.targets.dense(part, block, stage.xp)) / self.share
        return own if self.signs is None else own @ stage.xp.astype(self.signs, own.dtype)

    def centred(self, stage: Problem, state: Array, part: slice) -> Array:
        """r − r̄ of some rows, float64; r where there is no intercept."""
        wide = stage.xp.astype(self.residual(stage, state, part), stage.xp.float64)
        return wide - self.mean if stage.fit_intercept else wide

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The sum of a function over the parts of the rows. It also receives these responses."""
        return self.stage.sum(function, self.state, replace(self, stage=None, state=None), *arguments)


def squares_of_responses(stage: Problem, state: Array, responses: Residuals) -> Array:
    """Σ s (r − r̄)²."""
    return squares_of(stage, lambda part: responses.centred(stage, state, part), 0.0 * responses.mean)


def errors_left_out(
    stage: Problem, state: Array, responses: Residuals, spectrum: RidgeSpectrum, alphas: np.ndarray, center: Array
) -> np.ndarray:
    """Errors of shape (n_alphas, n_outputs), as `RidgeSpectrum.leave_one_out`."""
    blocks = rotated(stage, spectrum.vectors, center)
    judged = ((Z, responses.centred(stage, state, part), weight) for part, Z, weight in blocks)
    return spectrum.leave_one_out(alphas, judged, stage.rows.precision, responses.whole_rows)


class Equations(ABC):
    """(Σ h_i (x_i − c)(x_i − c)ᵀ / S + alpha·I) W = R for any alpha and R, where c = Σ h_i x_i / Σ h_i."""

    center: Array  # c
    share: float  # Σ h_i / S, the curvature in the intercept
    fit_intercept: bool

    @property
    @abstractmethod
    def n_bytes(self) -> float:
        """Memory that the equations take."""

    @property
    def varies(self) -> bool:
        """Whether some feature varies. If not, every penalty is as good."""
        return True

    @abstractmethod
    def best_alpha(self, responses: Residuals) -> float:
        """The penalty with the least leave-one-out error of the squared loss, all outputs together."""

    @abstractmethod
    def decompose(self) -> None:
        """Decompose as `best_alpha` does, so that `solve` has the same digits as after it."""

    def anew(self) -> Equations:
        """A copy without the memory of earlier solutions, which decides how the next penalty is solved for."""
        return self

    def weighed(self, curvature: Array) -> Equations | None:
        """The equations with other weights h = s·curvature; None if that takes new sums over the rows."""
        return None

    @abstractmethod
    def _solve(self, cross: Array, alpha: float | Array) -> Array:
        """Coefficients for a centred right-hand side."""

    def solve(self, cross: Array, mean: Array, alpha: float | Array) -> tuple[Array, Array]:
        """Coefficients and intercept, from Σ s x rᵀ / S and Σ s r / S of the residuals r.

        `alpha` is one number, or one for each output.
        """
        return self._with_intercept(self._solve(self._centred(cross, mean), alpha), mean)

    def solve_residuals(
        self, residuals: Callable[[], Array], cross: Array, mean: Array, alpha: float | Array
    ) -> tuple[Array, Array]:
        """As `solve`, where `cross` and `mean` are exactly the sums over `residuals`, the s r of all rows."""
        return self.solve(cross, mean, alpha)

    def _with_intercept(self, coef: Array, mean: Array) -> tuple[Array, Array]:
        return coef, mean / self.share - self.center @ coef if self.fit_intercept else mean * 0

    def _centred(self, cross: Array, mean: Array) -> Array:
        return cross - self.center[:, None] * mean[None, :] if self.fit_intercept else cross


@dataclass(frozen=True)
class NormalEquations(Equations):
    """Solved by a factor of the second moments."""

    factor: Factor
    center: Array
    share: float
    fit_intercept: bool

    @classmethod
    def of(cls, moments: Moments, problem: Problem, rows: Rows | None = None) -> NormalEquations:
        """From the moments of a block under the weights h."""
        share = max(moments.weight / problem.total_weight, LEAST_SHARE)
        second = moments.covariance if problem.fit_intercept else moments.second_moment
        precision = (problem.rows if rows is None else rows).moments_precision
        # If all variances are rounding, they count as 0: no penalty would be large beside them.
        second *= (
            share
            if not problem.fit_intercept or float(problem.xp.max(varying(second, moments, precision))) > 0
            else 0.0
        )
        return cls(Factor(second, precision), moments.mean, share, problem.fit_intercept)

    @property
    def n_bytes(self) -> float:
        return 16.0 * int(self.center.shape[0]) ** 2

    @property
    def varies(self) -> bool:
        return float(self.factor.xp.max(self.factor.S)) > 0.0

    def decompose(self) -> None:
        _ = self.factor.spectrum

    def anew(self) -> NormalEquations:
        return replace(self, factor=self.factor.anew())

    def _solve(self, cross: Array, alpha: float | Array) -> Array:
        return self.factor.solve(cross, alpha)

    def best_alpha(self, responses: Residuals) -> float:
        share, responses = self.share, responses.sketched()
        cross = self._centred(responses.cross, responses.mean)
        spectrum = RidgeSpectrum.of(self.factor, cross, responses.total_weight, self.fit_intercept, share)
        n = responses.stage.effective_rows(responses.stage.weight, responses.whole_rows)
        center = self.center * float(self.fit_intercept)
        return share * spectrum.best_penalty(
            responses.stage.rows.precision,
            n,
            lambda: responses.sum(squares_of_responses) / responses.total_weight,
            lambda alphas: responses.sum(errors_left_out, spectrum, alphas, center),
        )


class ProductEquations(Equations):
    """Solved by conjugate gradients, which need only products with the rows: for rows too wide for a matrix.

    The rows of the problem are the features, and its weights are h; `given` is the problem with weights s, if these
    differ. The rows in `sample` choose the penalty.
    """

    n_bytes = 0.0

    def __init__(self, problem: Problem, sample: np.ndarray, given: Problem | None = None):
        self.problem, self.sample, self.fit_intercept = problem, sample, problem.fit_intercept
        self.given = given or problem
        self.share = max(problem.total_weight / self.given.total_weight, LEAST_SHARE)

    def weighed(self, curvature: Array) -> Equations:
        given = self.given
        curvature = given.xp.clip(curvature, LEAST_SHARE)
        weight = curvature if given.weight is None else curvature * given.weight
        return ProductEquations(given.variant(weight=weight), self.sample, given)

    @property
    def center(self) -> Array:
        rows = self.problem.rows
        return self.problem.feature_mean if self.fit_intercept else rows.zeros((rows.n_features,), rows.xp.float64)

    def decompose(self) -> None:
        """Nothing: there is no matrix."""

    def solve_residuals(
        self, residuals: Callable[[], Array], cross: Array, mean: Array, alpha: float | Array
    ) -> tuple[Array, Array]:
        rows = self.problem.rows
        if rows.n_rows >= rows.n_features:
            return self.solve(cross, mean, alpha)
        coef = self._of_rows(self._solve_by_rows(residuals() / self.given.total_weight, alpha))
        return self._with_intercept(coef, mean)

    def _solve_by_rows(self, R: Array, alpha: float | Array) -> Array:
        """Z, where the solution is W = X̃ᵀZ with the rows √h (x − c) of X̃, and the right-hand side X̃ᵀ(R/√h).

        The steps are those of `_solve`. There, W, its residual and its direction are matrices of n_features rows. Each
        of them is X̃ᵀ times a smaller matrix of n_rows rows, which is kept here instead. Inner products there are
        ⟨A, X̃X̃ᵀB⟩ here.
        """
        xp, root = self.problem.xp, self._root
        ones, S = xp.ones_like(root[:, 0]), self.given.total_weight
        Z, residual = 0.0 * R, R * _ratio(ones[:, None], root, xp)
        direction, image = residual + 0.0, self._gram(residual)
        along, square = image + 0.0, ones @ (residual * image)
        enough = ACCURACY**2 * square
        for _ in range(LONGEST):
            if bool(xp.all(square <= enough)):
                break
            applied = along / S + alpha * direction
            length, before = _ratio(square, ones @ (along * applied), xp), square
            Z += length * direction
            residual -= length * applied
            image = self._gram(residual)
            square = ones @ (residual * image)
            share = _ratio(square, before, xp)
            direction, along = residual + share * direction, image + share * along
        return Z

    @property
    def _root(self) -> Array:
        """√h of each row, as a column."""
        problem, xp = self.problem, self.problem.xp
        return xp.sqrt(xp.astype(problem.rows.weights(problem.weight), xp.float64))[:, None]

    def _of_rows(self, Z: Array) -> Array:
        """X̃ᵀZ."""
        problem, xp, root = self.problem, self.problem.xp, self._root
        Z = root * Z
        if self.fit_intercept:  # c is a sum of rows, too
            Z -= root**2 * (xp.sum(Z, axis=0) / problem.total_weight)
        total = problem.rows.zeros((problem.rows.n_features, int(Z.shape[1])), dtype=xp.float64)
        narrow = xp.astype(Z, problem.rows.dtype, copy=False)
        for part, block, _ in problem.blocks(GRAM_BLOCK_BYTES):
            block.rmatmat(narrow[part, :], total)
        self.given.n_passes += 1
        return total

    def _gram(self, Z: Array) -> Array:
        """X̃X̃ᵀZ."""
        problem, xp, root = self.problem, self.problem.xp, self._root
        W, image = self._of_rows(Z), 0.0 * Z
        narrow, origin = xp.astype(W, problem.rows.dtype, copy=False), xp.astype(self.center @ W, problem.rows.dtype)
        for part, block, _ in problem.blocks(GRAM_BLOCK_BYTES):
            image[part, :] = (block.matmat(narrow) - origin) * root[part, :]
        self.given.n_passes += 1
        return image

    def _solve(self, cross: Array, alpha: float | Array) -> Array:
        xp, parts = self.problem.xp, list(pieces(self.problem.rows, cross))
        W, residual, direction = 0.0 * cross, cross + 0.0, cross + 0.0
        # Products with ones, as reductions over the first axis of few columns are slow.
        ones = xp.ones_like(cross[:, 0])
        square = ones @ (residual * residual)
        enough = ACCURACY**2 * square
        for _ in range(LONGEST):
            if bool(xp.all(square <= enough)):
                break
            image, curvature, before, square = self._times(direction), 0.0 * square, square, 0.0 * square
            for part in parts:
                image[part, :] += alpha * direction[part, :]
                curvature += ones[part] @ (direction[part, :] * image[part, :])
            length = _ratio(before, curvature, xp)
            for part in parts:
                W[part, :] += length * direction[part, :]
                residual[part, :] -= length * image[part, :]
                square += ones[part] @ (residual[part, :] * residual[part, :])
            direction *= _ratio(square, before, xp)
            direction += residual
        return W

    def _times(self, V: Array) -> Array:
        """Σ h (x − c)(x − c)ᵀ V / S."""
        problem, xp = self.problem, self.problem.xp
        narrow, origin = xp.astype(V, problem.rows.dtype), xp.astype(self.center @ V, problem.rows.dtype)
        total = problem.rows.zeros((problem.rows.n_features, int(V.shape[1])), dtype=xp.float64)
        for _, block, weight in problem.blocks(GRAM_BLOCK_BYTES):
            scores = block.matmat(narrow) - origin
            block.rmatmat(scores if weight is None else scores * weight[:, None], total)
        self.given.n_passes += 2
        total /= self.given.total_weight
        return total

    def best_alpha(self, responses: Residuals) -> float:
        """The best penalty of the sampled rows by leave-one-out, times the root of their share of all rows.

        The best penalty of n rows falls like 1/n if few coefficients matter, and more slowly if many do; 1/√n is the
        rate that needs no assumption (Caponnetto and De Vito, 2007). If no penalty is clearly better than the largest,
        as with few rows of rare words, the sample judges fits to all other rows instead.
        """
        problem, xp, responses = self.problem, self.problem.xp, responses.sketched()
        own = (responses.residual(responses.stage, responses.state, slice(i, i + 1)) for i in self.sample.tolist())
        R = xp.concat([xp.astype(each, xp.float64) for each in own])
        part = problem.taken(self.sample)
        weight = xp.astype(part.rows.weights(part.weight), xp.float64)
        alphas, errors, _ = path_of_rows(part.rows, R, weight, fit_intercept=self.fit_intercept)
        if problem.n_present >= MANY * len(self.sample) and not _tells(list(errors)):
            return self.share * self._best_of_others(responses, part.rows, R, weight)
        return self.share * best(alphas, errors) * math.sqrt(float(xp.sum(weight)) / problem.total_weight)

    def _best_of_others(self, responses: Residuals, judges: Rows, R: Array, weight: Array) -> float:
        """The best penalty for all rows but the sample, whose residuals R and weights judge.

        Penalties fall by factors of 10 until the errors of the sample, after a fall, no longer do. The first is the
        mean squared norm of the rows, which leaves next to nothing of any coefficient.
        """
        problem, xp = self.problem, self.problem.xp
        total = problem.total_weight
        weighted = weight[:, None] * R
        cross = judges.zeros((judges.n_features, int(R.shape[1])), dtype=xp.float64)
        judges.rmatmat(xp.astype(weighted, judges.dtype), cross)
        _, others = problem.weights_of(np.isin(np.arange(problem.rows.n_rows), self.sample))
        rest = ProductEquations(problem.variant(weight=others), self.sample)
        share = total / rest.problem.total_weight
        cross = share * (responses.cross - cross / total)
        mean = share * (responses.mean - xp.sum(weighted, axis=0) / total)
        alphas, errors = [float(xp.sum(rest.problem.feature_variance))], list[np.ndarray]()
        while True:
            coef, intercept = rest.solve(cross, mean, alphas[-1])
            left = R - judges.matmat(xp.astype(coef, judges.dtype)) - intercept
            errors.append(to_numpy(weight @ left**2))
            before = min((float(one.sum()) for one in errors[:-1]), default=math.inf)
            enough = (1.0 - ALIKE if _tells(errors) else 1.0 + ALIKE) * before
            if float(errors[-1].sum()) > enough or alphas[-1] < LEAST * alphas[0]:
                return best(np.asarray(alphas), np.stack(errors))
            alphas.append(0.1 * alphas[-1])


def _tells(errors: list[np.ndarray]) -> bool:
    """Whether some penalty has a clearly smaller error than the first, which is the largest."""
    sums = [float(one.sum()) for one in errors]
    return min(sums) < (1.0 - ALIKE) * sums[0]


def _ratio(a: Array, b: Array, xp: Any) -> Array:
    """a/b, and 0 where b is not positive, as nothing is left to be done there."""
    positive = b > 0
    return xp.where(positive, a, 0.0 * a) / xp.where(positive, b, 1.0 + 0.0 * b)
