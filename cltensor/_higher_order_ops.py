"""`torch._higher_order_ops`: a scan with a program's own operation, which some models are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ops.row import FUNCTIONS
from .reexport import expose
from .tensor import Tensor
from .utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise",
) -> Any:  # fmt: skip
    """Return what an associative operation makes of the first 1, 2, 3, ... slices along a dim, of a tensor or a tree of them.

    reverse: from the last slice on. ValueError for what is no function or no tensor, and for dims that do not fit. The operation is
    called on halves of what is left: about 2 log2(n) times.
    """
    leaves, form = tree_flatten(xs)
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not leaves or not all(isinstance(t, Tensor) for t in leaves):
        raise ValueError("Expected at least 1 xs leaf, and all of them tensors")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")  # fmt: skip
    leaves = [t.movedim(dim, 0) for t in leaves]
    if len({t.shape[0] for t in leaves}) > 1 or not leaves[0].shape[0]:
        raise ValueError("All xs leaves must at least have 'dim' number of elements > 0")
    leaves = [t.flip(0) for t in leaves] if reverse else leaves

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        made = combine_fn(tree_unflatten(a, form), tree_unflatten(b, form))
        return tree_flatten(made)[0]

    found = _scanned(combine, leaves)
    found = [t.flip(0) for t in found] if reverse else found
    return tree_unflatten([t.movedim(0, dim) for t in found], form)


def _scanned(combine: Callable[..., list[Tensor]], parts: list[Tensor]) -> list[Tensor]:
    """Scan pairs of neighbours; what ends at an odd place is there then, and one more step each gives the others."""
    n = parts[0].shape[0]
    if n < 2:
        return parts
    odd = _scanned(combine, combine([t[: n - 1 : 2] for t in parts], [t[1::2] for t in parts]))
    even = [t[:1] for t in parts]
    if n > 2:
        before = [t[: (n - 1) // 2] for t in odd]
        later = combine(before, [t[2::2] for t in parts])
        even = [FUNCTIONS["cat"]([a, b]) for a, b in zip(even, later, strict=True)]
    return [_woven(a, b) for a, b in zip(even, odd, strict=True)]


def _woven(even: Tensor, odd: Tensor) -> Tensor:
    """Return the rows of two tensors in turns, the first one's first."""
    k = odd.shape[0]
    pairs = FUNCTIONS["stack"]([even[:k], odd], 1).flatten(0, 1)
    return pairs if even.shape[0] == k else FUNCTIONS["cat"]([pairs, even[k:]])


expose(globals(), {"associative_scan": "associative_scan"})
