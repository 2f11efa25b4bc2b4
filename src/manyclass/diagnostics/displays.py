"""Plots of what `diagnostics` computes, as Display objects in the manner of scikit-learn."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyclass.diagnostics.correlation import ResponseCorrelation, response_correlation
from manyclass.diagnostics.spectra import Spectrum, spectrum
from manyclass.fit import Record

D = TypeVar("D")


def new_axes(n: int = 1) -> Any:
    """The axes of a new figure, side by side; matplotlib is imported here and nowhere else."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'manyclass[plot]'.") from error
    return plt.subplots(1, n, layout="constrained", figsize=(4.8 * n, 4.0) if n > 1 else None)[1]


class SpectrumDisplay:
    """The spectrum of a data set (*Least Squares Revisited*, Figure 4).

    Parameters
    ----------
    spectrum : Spectrum
    name : str, optional
        Of the data, for the legend.

    Attributes
    ----------
    ax_, line_, figure_ : matplotlib objects, after `plot`

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass.diagnostics import SpectrumDisplay
    >>> X, _ = load_digits(return_X_y=True)
    >>> display = SpectrumDisplay.from_data(X, name="digits")
    """

    def __init__(self, spectrum: Spectrum, *, name: str | None = None):
        self.spectrum, self.name = spectrum, name

    @classmethod
    def from_data(
        cls, X: Any, *, name: str | None = None, ax: Any = None, kind: str = "captured", **options: Any
    ) -> Self:
        """Compute `diagnostics.spectrum` of X with `options` and plot it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        name, ax, kind
            As in the constructor and in `plot`.
        **options
            Of `diagnostics.spectrum`.

        Returns
        -------
        SpectrumDisplay
        """
        return cls(spectrum(X, **options), name=name).plot(ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "captured", **line: Any) -> Self:
        """Draw the spectrum.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {"captured", "eigenvalues"}
            The share that the x leading singular values have in the sum of those known, as in the paper; or λ_j
            against j on log scales.
        **line
            For ``ax.plot``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is neither.
        """
        if kind not in ("captured", "eigenvalues"):
            raise ValueError(f"kind={kind!r} is not known; use 'captured' or 'eigenvalues'.")
        ax = new_axes() if ax is None else ax
        values = self.spectrum.eigenvalues
        line = {"label": self.name, **line}
        if kind == "captured":
            singular = np.sqrt(values)
            share = np.concatenate([[0.0], np.cumsum(singular)]) / max(float(singular.sum()), np.finfo(float).tiny)
            (self.line_,) = ax.plot(np.arange(len(share)), share, **line)
            ax.set(xlabel="singular values", ylabel=f"share of the sum of {len(singular)}", ylim=(0, 1.02))
        else:
            (self.line_,) = ax.plot(np.arange(1, len(values) + 1), values, **{**_marked(len(values)), **line})
            ax.set(xlabel="j", ylabel="λ_j", xscale="log", yscale="log")
        return _finish(self, ax, self.name)


class ResponseCorrelationDisplay:
    """Boundedness of the response correlation (*Homotopic Initialization*, Figure 2).

    A point for each eigenfeature: log10 c_j²/λ_j² over log10 λ_j²; the highest is at log10 τ.

    Parameters
    ----------
    correlation : ResponseCorrelation
    name : str, optional

    Attributes
    ----------
    ax_, points_, figure_ : matplotlib objects, after `plot`

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from manyclass.diagnostics import ResponseCorrelationDisplay
    >>> display = ResponseCorrelationDisplay.from_data(*load_diabetes(return_X_y=True), name="diabetes")
    """

    def __init__(self, correlation: ResponseCorrelation, *, name: str | None = None):
        self.correlation, self.name = correlation, name

    @classmethod
    def from_data(cls, X: Any, y: Any, *, name: str | None = None, ax: Any = None, **options: Any) -> Self:
        """Compute `diagnostics.response_correlation` of X and y with `options` and plot it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like
        name, ax
            As in the constructor and in `plot`.
        **options
            Of `diagnostics.response_correlation`.

        Returns
        -------
        ResponseCorrelationDisplay
        """
        return cls(response_correlation(X, y, **options), name=name).plot(ax)

    def plot(self, ax: Any = None, *, show_tau: bool = True, **points: Any) -> Self:
        """Draw the points and a line at τ.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        show_tau : bool
        **points
            For ``ax.scatter``.

        Returns
        -------
        self
        """
        ax = new_axes() if ax is None else ax
        bound, tau = self.correlation.boundedness, self.correlation.tau
        squares = np.broadcast_to(self.correlation.eigenvalues[:, None] ** 2, bound.shape)
        positive = bound > 0
        options = {"s": 12, "label": self.name, **points}
        self.points_ = ax.scatter(np.log10(squares[positive]), np.log10(bound[positive]), **options)
        if show_tau and tau > 0:
            ax.axhline(np.log10(tau), color="gray", linewidth=0.8, zorder=0)
            ax.annotate(
                f"τ = {tau:.3g}", (0.98, np.log10(tau)), xycoords=("axes fraction", "data"),
                xytext=(0, 3), textcoords="offset points", ha="right",
            )  # fmt: skip
        ax.margins(y=0.1)
        ax.set(xlabel="log10 λ_j²", ylabel="log10 c_j²/λ_j²")
        return _finish(self, ax, self.name)


class ConvergenceDisplay:
    """Curves of one or more fits against passes or seconds (*Homotopic Initialization*, Figures 1, 3 and 5).

    Parameters
    ----------
    histories : mapping of str to sequence of Record
        ``history_`` of fitted estimators, by the name of each.
    optimum : float, optional
        Minimum of the objective; what is drawn is then the objective above it.

    Attributes
    ----------
    ax_, lines_, figure_ : matplotlib objects, after `plot`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import GLMClassifier
    >>> from manyclass.diagnostics import ConvergenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = {name: GLMClassifier(solver=name).fit(X, y) for name in ("newton", "accelerated")}
    >>> display = ConvergenceDisplay.from_estimators(fits)
    """

    def __init__(self, histories: Mapping[str, Sequence[Record]], *, optimum: float | None = None):
        self.histories, self.optimum = histories, optimum

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        *,
        optimum: float | None = None,
        ax: Any = None,
        x: str = "n_passes",
        y: str = "duality_gap",
    ) -> Self:
        """Plot the ``history_`` of fitted estimators.

        Parameters
        ----------
        estimators : mapping of str to estimator
        optimum, ax, x, y
            As in the constructor and in `plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        return cls({name: model.history_ for name, model in estimators.items()}, optimum=optimum).plot(ax, x=x, y=y)

    def plot(self, ax: Any = None, *, x: str = "n_passes", y: str = "duality_gap", **line: Any) -> Self:
        """Draw one line for each history.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        x : {"n_passes", "seconds"}
        y : str
            A field of the records or one of their details: "duality_gap", "objective", or for dual ascent "primal",
            "dual" and so on. Where an optimum is known "objective" and "primal" are drawn less the optimum, and the
            optimum less "dual". A history without it, as of estimators without a duality gap, has no curve.
        **line
            For ``ax.plot``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a history does not record `x` or `y`.
        """
        ax = new_axes() if ax is None else ax
        self.lines_ = []
        for name, history in self.histories.items():
            along, values = (_recorded(name, history, axis, field) for axis, field in (("x", x), ("y", y)))
            label = y
            if self.optimum is not None and y in ("objective", "primal", "dual"):
                values = self.optimum - values if y == "dual" else values - self.optimum
                label = f"{y} − optimum" if y != "dual" else "optimum − dual"
            # Values that rounding left at or below 0 have no place on a log scale.
            positive = values > 0
            options = {"label": name if positive.any() else None, **_marked(positive.sum()), **line}
            self.lines_ += ax.plot(along, np.where(positive, values, np.nan), **options)
        ax.set(xlabel={"n_passes": "passes"}.get(x, x), ylabel=label if self.histories else y, yscale="log")
        return _finish(
            self, ax, *(None if line.get_label().startswith("_") else line.get_label() for line in self.lines_)
        )


class PathDisplay:
    """The path of a search for a penalty: scores, or coefficients, over alpha.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    scores : array of shape (n_folds, n_alphas)
        Larger is better.
    coefs : array of shape (n_folds, n_alphas, n_outputs, n_coefficients), optional
    alpha : float, optional
        The penalty that was chosen.
    name : str, optional

    Attributes
    ----------
    ax_, lines_, figure_ : matplotlib objects, after `plot`

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import GLMClassifierCV
    >>> from manyclass.diagnostics import PathDisplay
    >>> display = PathDisplay.from_estimator(GLMClassifierCV().fit(*load_iris(return_X_y=True)))
    """

    def __init__(self, alphas: Any, scores: Any, *, coefs: Any = None, alpha: Any = None, name: str | None = None):
        self.alphas, self.scores, self.coefs = np.asarray(alphas), np.asarray(scores), coefs
        self.alpha, self.name = alpha, name

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None, ax: Any = None, kind: str = "scores") -> Self:
        """Plot the path of a fitted `GLMClassifierCV`.

        Parameters
        ----------
        estimator : GLMClassifierCV
        name, ax, kind
            As in the constructor and in `plot`.

        Returns
        -------
        PathDisplay

        Raises
        ------
        ValueError
            If the estimator has no scores of a path.
        """
        check_is_fitted(estimator)
        alphas: Any = getattr(estimator, "alphas_", None)
        scores: Any = getattr(estimator, "scores_", None)
        if alphas is None or np.ndim(scores) < 2 or np.shape(scores)[1] != len(alphas):
            owner = type(estimator).__name__
            raise ValueError(f"{owner} holds no scores of a path of penalties; give a fitted GLMClassifierCV.")
        coefs = getattr(estimator, "coefs_paths_", None)
        return cls(alphas, scores, coefs=coefs, alpha=estimator.alpha_, name=name).plot(ax, kind=kind)

    def plot(self, ax: Any = None, *, kind: str = "scores", output: int = 0, **line: Any) -> Self:
        """Draw the scores or the coefficients.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {"scores", "coefficients"}
            Mean scores with a standard error of the folds around them; or the coefficients of one output, as the mean
            of the folds.
        output : int
            The output whose coefficients are drawn.
        **line
            For ``ax.plot``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If `kind` is neither, or there are no coefficients.
        """
        if kind not in ("scores", "coefficients"):
            raise ValueError(f"kind={kind!r} is not known; use 'scores' or 'coefficients'.")
        if kind == "coefficients" and self.coefs is None:
            raise ValueError(
                "There are no coefficients: they are kept up to 256 MB, and not of streams; use kind='scores'."
            )
        ax = new_axes() if ax is None else ax
        if kind == "scores":
            mean, n_folds = self.scores.mean(axis=0), len(self.scores)
            self.lines_ = ax.plot(self.alphas, mean, **{"marker": "o", "markersize": 3, "label": self.name, **line})
            if n_folds > 1 and self.scores.ndim == 2:
                error = self.scores.std(axis=0, ddof=1) / n_folds**0.5
                color = self.lines_[0].get_color()
                ax.fill_between(self.alphas, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
        else:
            values = np.asarray(self.coefs)[:, :, output].mean(axis=0)
            self.lines_ = ax.plot(self.alphas, values, **{"linewidth": 0.8, **line})
        for chosen in np.unique(self.alpha) if self.alpha is not None else ():
            ax.axvline(chosen, color="gray", linewidth=0.8, zorder=0)
        label = "score" if kind == "scores" else f"coefficients of output {output}"
        ax.set(xlabel="alpha", ylabel=label, xscale="log")
        return _finish(self, ax, self.name if kind == "scores" else None)


def _recorded(name: str, history: Sequence[Record], axis: str, field: str) -> np.ndarray:
    """The values of a field, or of a detail, of all records."""
    fields = [name for name in Record.__dataclass_fields__ if name != "details"]
    for record in history:
        if field not in fields and field not in record.details:
            choices = ", ".join(map(repr, [*fields, *record.details]))
            raise ValueError(f"{axis}={field!r} is not recorded in the history of {name}; use one of {choices}.")
    return np.array([record[field] for record in history], dtype=float)


def _marked(n_points: int) -> dict[str, Any]:
    """Options that mark the points of a line that is too short to be seen."""
    return {"marker": "o"} if n_points <= 2 else {}


def _finish(display: D, ax: Any, *names: str | None) -> D:
    if any(names):
        ax.legend()
    vars(display).update(ax_=ax, figure_=ax.figure)
    return display
