"""Rows in half precision on a device that multiplies such numbers many times as fast as wider ones."""

from functools import cache
from typing import Any

from array_api_compat import is_torch_array

from manyclass.data.dense import DenseRows
from manyclass.data.rows import Array, slices

PARTS = {"bfloat16": 3, "float16": 2}
"""Numbers of half precision whose sum has the 22 to 24 bits of one in float32."""
SUMMED = 1 << 14
"""Rows whose products are added in float32 before they are in float64: such devices add with few bits to spare."""


class HalfRows(DenseRows):
    """Products of X as it is, with operands in float32 as sums of a few numbers of half precision each.

    An H100 computes these in a third of the time of products in float32, and as exactly: every product of two numbers
    is exact, and sums are in float32.
    """

    @classmethod
    def serves(cls, X: Any) -> bool:
        """Whether X is in half precision on a device that adds such products in float32, and not kept track of."""
        if not is_torch_array(X) or X.requires_grad:
            return False
        return _name(X.dtype) in PARTS and _adds_in_float32(X.dtype, X.device)

    def _read(self, block: Array) -> DenseRows:
        return self if block is self.X else self._like(block)

    def dense(self) -> Array:
        return self.xp.astype(self.X, self.dtype)

    def matmat(self, W: Array) -> Array:
        if W.dtype != self.dtype:
            return super().matmat(W)
        parts, unit = in_parts(W, self.X.dtype, self.xp)
        found = _product(self.X, parts[0])
        for part in parts[1:]:
            found = _product(self.X, part, found)
        return found if unit is None else found * unit

    def _add_rmatmat(self, R: Array, out: Array) -> None:
        if R.dtype != self.dtype:
            super()._add_rmatmat(R, out)
            return
        for rows in slices(self.n_rows, SUMMED):
            X, (parts, unit) = self.X[rows, :].T, in_parts(R[rows, :], self.X.dtype, self.xp)
            found = _product(X, parts[0])
            for part in parts[1:]:
                found = _product(X, part, found)
            out += found if unit is None else found * unit

    def gram(self, weight: Array | None) -> Array:
        if weight is not None:
            return super().gram(weight)
        total = self.zeros((self.n_features, self.n_features), dtype=self.xp.float64)
        for rows in slices(self.n_rows, SUMMED):
            X = self.X[rows, :]
            total += _product(X.T, X)
        return total


def in_parts(values: Array, dtype: Any, xp: Any) -> tuple[list[Array], Array | None]:
    """Arrays of half precision whose sum, times a power of two if there is one, is `values` to the digits of float32.

    The power makes the largest number one that float16 can hold, and keeps what is left of it above its least.
    """
    unit = None
    if xp.finfo(dtype).max < xp.finfo(values.dtype).max / 2:
        largest = xp.clip(xp.max(abs(values)), min=xp.finfo(values.dtype).smallest_normal)
        unit = 2.0 ** xp.ceil(xp.log2(largest))
        values = values / unit
    parts = [xp.astype(values, dtype)]
    for _ in range(1, PARTS[_name(dtype)]):
        values = values - parts[-1]
        parts.append(xp.astype(values, dtype))
    return parts, unit


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _product(A: Array, B: Array, total: Array | None = None) -> Array:
    """A B, added to `total` if given, in float32."""
    import torch

    if total is None:
        return torch.mm(A, B, out_dtype=torch.float32)
    return torch.addmm(total, A, B, out_dtype=torch.float32, out=total)


@cache
def _adds_in_float32(dtype: Any, device: Any) -> bool:
    """Not all devices, nor all versions of torch, do."""
    import torch

    if device.type != "cuda":
        return False
    one = torch.zeros((16, 16), dtype=dtype, device=device)
    try:
        _product(one, one, _product(one, one))
    except (TypeError, RuntimeError):
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
