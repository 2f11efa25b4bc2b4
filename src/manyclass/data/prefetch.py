"""Asking for a row before it is needed.

Rows are visited in random order, which no hardware foresees, so each would begin with waiting for main memory.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manyclass.data.compiled import inner

AHEAD = 3
"""Visits between asking for a row and using it."""
LINE = 64
"""Bytes of a cache line."""


def _touch(typingctx, array, position):
    """Start loading the cache line of array[position]; changes nothing, and may name any address."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        held = context.make_array(kind)(context, builder, arguments[0])
        address = cgutils.get_item_pointer(context, builder, kind, held, [arguments[1]], wraparound=False)
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        name = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, number, number, number]), "llvm.prefetch.p0i8"
        )
        builder.call(name, [builder.bitcast(address, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


touch: Any = intrinsic(_touch)


@inner
def ask_ahead(data, indices, indptr, order, t, n_active):
    """Start loading the row that will be visited `AHEAD` visits after the t-th: its values and, if held, indices."""
    if t + AHEAD >= n_active:
        return
    i = order[t + AHEAD]
    start, stop = indptr[i], indptr[i + 1]
    for p in range(start, stop, LINE // data.itemsize):
        touch(data, p)
    if indices.size:
        for p in range(start, stop, LINE // indices.itemsize):
            touch(indices, p)
