"""Random permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...codegen.order import sort as sorting
from ...dtypes import dtype as DType
from ...layouts import check_shape
from ...runtime import get_backend
from ...size import Size
from .. import convert, core
from ..core import Tensor
from ..replay import Replayed
from ..row import public
from .draws import drawn, hand_over, keys, wanted, whole_number
from .generator import Generator, choose

# The largest n for which a floating dtype represents all of 0 … n - 1 exactly.
_EXACT = {
    d: 2**bits + 1
    for d, bits in (
        (dtypes.bfloat16, 8),
        (dtypes.float16, 11),
        (dtypes.float32, 24),
        (dtypes.float64, 53),
    )
}


@public(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Make a random permutation of 0 … n-1, int64 unless said otherwise: the order of n random
    keys."""
    n = whole_number("randperm", "n", n, 1)
    shape = Size(check_shape((n,)))
    dt, dev = wanted("randperm", out, dtype, layout, device, dtypes.int64)
    if dt is dtypes.bool:
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'")
    if dt.category == 1 and n - 1 > dtypes.iinfo(dt).max:
        raise RuntimeError(f"value cannot be converted to type {dt.name}_t without overflow")
    if dt in _EXACT and n > _EXACT[dt]:
        raise RuntimeError(f"n cannot be greater than {_EXACT[dt]} for {dt.scalar_name} type.")
    drawn_keys = drawn(keys, shape, dtypes.int64, dev, choose(generator, dev))
    (t,) = _order((drawn_keys,))
    t = t if dt is dtypes.int64 else convert.cast(t, dt)
    return hand_over(t, out, requires_grad)


@Replayed.of_memory
def _order(xs: Sequence[Tensor]) -> list[Tensor]:
    """Return the indices that sort the keys in ascending order."""
    (x,) = xs
    found = sorting.sort_flat(get_backend(x.device), core.kernel_operand(x))[1]
    return [core.result(found, x.device)]
