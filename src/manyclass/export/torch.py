"""Models as PyTorch modules."""

from typing import Any

from manyclass.export.program import check_exportable


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
        the model has them, and ``module.predict(X)`` indices into ``module.classes``, indicators of several labels, or
        responses. Coefficients are buffers, which ``to(device)`` and ``half()`` convert; X is converted to their dtype.
        Autograd runs through scores and probabilities. The module can be pickled, where this package is installed.

    Raises
    ------
    ValueError
        If `dtype` is neither, or features or the basis of a calibration are functions that have no operators.
    TypeError
        If `model` is not an estimator of this package: a pipeline, say.

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
    check_exportable(model, dtype)  # before the import, so that the refusal does not depend on PyTorch
    from manyclass.export.torch_module import Exported

    return Exported(model, dtype).eval()
