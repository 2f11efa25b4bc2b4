"""Which losses the dual solver knows: their names, their codes in compiled loops, and what they need."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DualLoss:
    """A convex loss φ(z, y), known by its conjugate.

    Attributes
    ----------
    name : str
    code : int
        Where `scalar` (one output at a time) or `simplex` (all classes of a row together) dispatch to its formulas.
    formula : str
    labels : bool
        Whether y is −1 or 1 (a class code in `simplex`) rather than a real number.
    quadratic : bool
        Whether the intercept can be left out of the dual by centring X and y.
    form_of : str, optional
        The loss of one score whose multi-class form this is, where a row has one dual point in the simplex instead of
        one dual number per output.
    link : str, optional
        The link that turns scores into probabilities, if one does.
    """

    name: str
    code: int
    formula: str
    labels: bool
    quadratic: bool = False
    form_of: str | None = None
    link: str | None = None

    @property
    def joint(self) -> bool:
        """Whether all classes of a row are seen together."""
        return self.form_of is not None


SQUARED, HINGE, SQUARED_HINGE, LOG_LOSS, EPSILON_INSENSITIVE, SQUARED_EPSILON_INSENSITIVE, HUBER = range(7)
CRAMMER_SINGER, MULTINOMIAL = range(2)

COLUMN_LOSSES: dict[str, DualLoss] = {
    loss.name: loss
    for loss in (
        DualLoss("squared", SQUARED, "½(y − z)²", labels=False, quadratic=True),
        DualLoss("hinge", HINGE, "max(0, 1 − yz)", labels=True),
        DualLoss("squared_hinge", SQUARED_HINGE, "max(0, 1 − yz)²", labels=True),
        DualLoss("log_loss", LOG_LOSS, "log(1 + exp(−yz))", labels=True, link="logistic"),
        DualLoss("epsilon_insensitive", EPSILON_INSENSITIVE, "max(0, |y − z| − ε)", labels=False),
        DualLoss("squared_epsilon_insensitive", SQUARED_EPSILON_INSENSITIVE, "max(0, |y − z| − ε)²", labels=False),
        DualLoss("huber", HUBER, "½r² for r = |y − z| ≤ ε, else ε(r − ε/2)", labels=False),
    )
}

JOINT_LOSSES: dict[str, DualLoss] = {
    loss.name: loss
    for loss in (
        DualLoss("crammer_singer", CRAMMER_SINGER, "max_j (z_j + [j ≠ y]) − z_y", labels=True, form_of="hinge"),
        DualLoss("multinomial", MULTINOMIAL, "log Σ_j exp z_j − z_y", True, form_of="log_loss", link="softmax"),
    )
}
