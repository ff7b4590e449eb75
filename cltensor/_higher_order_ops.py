"""`torch._higher_order_ops`: branches, loops, maps and scans with a program's own functions.

torch has these for its compiler, which keeps both branches of `cond`. Here they run at once, and the host reads the
predicates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .layouts import wrap_dim
from .ops.row import FUNCTIONS
from .reexport import expose
from .tensor import Tensor
from .utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """Return `true_fn(*operands)` if pred, a number or a tensor of one element, is true, else `false_fn(*operands)`.

    RuntimeError for other predicates; with a tensor also for branches that are not callable, and operands other than
    trees of tensors.
    """
    if not isinstance(pred, (bool, int, float)):
        if not isinstance(pred, Tensor):
            raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
        if pred.numel() != 1:
            raise RuntimeError(
                f"Expected pred to be bool or single-element tensor, but got {pred}."
            )
        if not callable(true_fn) or not callable(false_fn):
            raise RuntimeError("Expect both branches to be callable.")
        if not isinstance(operands, (tuple, list)) or not _all_tensors(tree_leaves(operands)):
            raise RuntimeError(
                "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
                f"but got {operands}."
            )
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """Repeat `carried = body_fn(*carried)` while `cond_fn(*carried)` is true; return `carried`.

    carried_inputs: the first `carried`, a tuple of trees of tensors and ints. RuntimeError for arguments that are not
    callable, for a condition other than a bool or a 0-dim bool tensor, and for a body that does not return a tuple of
    the same length; AssertionError for other leaves.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves = tree_leaves(carried_inputs)
    if not all(isinstance(t, (Tensor, int)) for t in leaves):
        kinds = tuple(type(t) for t in leaves)
        raise AssertionError(f"{leaves} can only be of {(Tensor, int)} but got {kinds}")

    def holds(carried: Any) -> bool:
        pred = cond_fn(*carried)
        if isinstance(pred, bool) or (
            isinstance(pred, Tensor) and not pred.ndim and _is_bool(pred)
        ):
            return bool(pred)
        raise RuntimeError(
            f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}"
        )

    carried = carried_inputs
    if not holds(carried):
        return tree_map(lambda t: t.clone() if isinstance(t, Tensor) else t, tuple(carried))
    while True:
        made = body_fn(*carried)
        if not isinstance(made, tuple) or len(made) != len(carried):
            raise RuntimeError(
                f"body_fn must return a tuple of {len(carried)} elements, but got {made}"
            )
        carried = made
        if not holds(carried):
            return carried


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return `f(slice, *args)` for all slices along dim 0 of a tensor or a tree of tensors, stacked along dim 0.

    RuntimeError for leaves that are no tensors, and for leading dimensions that differ or are 0.
    """
    leaves, form = tree_flatten(xs)
    if not _all_tensors(leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [t.shape for t in leaves]
    if not shapes[0][0]:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len({shape[0] for shape in shapes}) > 1:
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}."
        )
    slices = zip(*(t.unbind(0) for t in leaves), strict=True)
    return _stacked([f(tree_unflatten(list(parts), form), *args) for parts in slices], 0)


def scan(
    combine_fn: Callable[[Any, Any], Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False,
) -> Any:  # fmt: skip
    """Return the last carry and the stacked results of `carry, result = combine_fn(carry, slice)` over the slices of xs along a dim.

    init, xs: tensors or trees of them; results are stacked along `dim`, or along dim 0 if they have fewer dims.
    reverse: go from the last slice to the first; results stay in the order of the slices. RuntimeError for arguments
    of other types, and for no slices.
    """
    leaves, form = tree_flatten(xs)
    if not leaves:
        return init, []
    dim = wrap_dim(dim, leaves[0].ndim)
    _check_scan(combine_fn, leaves, tree_leaves(init), dim, reverse)
    slices = list(zip(*(t.unbind(dim) for t in leaves), strict=True))
    carry, results = init, []
    for parts in reversed(slices) if reverse else slices:
        carry, result = combine_fn(carry, tree_unflatten(list(parts), form))
        results.append(result)
    return carry, _stacked(results[::-1] if reverse else results, dim)


def _check_scan(
    combine_fn: Any, leaves: list[Any], init: list[Any], dim: int, reverse: Any
) -> None:
    """Check the arguments of a scan; raise torch's errors."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if not init:
        raise RuntimeError("scan() operator requires init leaves.")
    for name, found in ("init", init), ("xs", leaves):
        if not _all_tensors(found):
            wrong = next(t for t in found if not isinstance(t, Tensor))
            raise RuntimeError(f"All {name} leaves must be a Tensor but got {wrong}")
    if any(t.ndim <= dim or not t.shape[dim] for t in leaves):
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")  # fmt: skip


def _all_tensors(leaves: list[Any]) -> bool:
    return all(isinstance(t, Tensor) for t in leaves)


def _is_bool(t: Tensor) -> bool:
    return t.dtype.category == 0


def _stacked(trees: list[Any], dim: int) -> Any:
    """Stack the corresponding leaves of trees of one structure, along `dim`, or dim 0 if leaves have fewer dims."""

    def stack(*parts: Any) -> Any:
        return FUNCTIONS["stack"](list(parts), dim if dim <= parts[0].ndim else 0)

    return tree_map(stack, *trees)


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise",
) -> Any:  # fmt: skip
    """Return the inclusive scan by an associative operation along a dim, of a tensor or a tree of them.

    reverse: scan from the last slice to the first. ValueError for arguments of other types, and for sizes that differ
    or are 0. The operation works on many slices at once: about 2 log2(n) calls for n slices.
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
    """Scan along dim 0: a scan of pairs of neighbours gives the results at odd indices, one more call the others."""
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
    """Return the rows of two tensors interleaved, beginning with `even`'s."""
    k = odd.shape[0]
    pairs = FUNCTIONS["stack"]([even[:k], odd], 1).flatten(0, 1)
    return pairs if even.shape[0] == k else FUNCTIONS["cat"]([pairs, even[k:]])


expose(globals(), {name: name for name in __all__})
