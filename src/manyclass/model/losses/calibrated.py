from manyclass.model.losses.squared import Squared


class Calibrated(Squared):
    """½‖z − y‖² with y = 0 or 1, half the Brier score, where z is a prediction whose link is learned with it."""

    name = "calibrated"
    label_values = (0.0, 1.0)
    column_loss = label_loss = "calibrated"
