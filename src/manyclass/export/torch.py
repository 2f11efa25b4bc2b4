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
        the model has them, and ``module.predict(X)`` places in ``module.classes``, indicators of several labels, or
        responses. Its buffers are what the model knows: they move with ``to(device)`` and ``half()``, and through them
        runs autograd; X is taken in their dtype. It can be pickled, where this package is installed.

    Raises
    ------
    ValueError
        If `dtype` is neither.

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
    check_exportable(model, dtype)  # what cannot be exported is refused with and without PyTorch
    from manyclass.export.torch_module import Exported

    return Exported(model, dtype).eval()
