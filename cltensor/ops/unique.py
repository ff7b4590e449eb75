"""Distinct values, distinct slices, and membership: sorting, comparing neighbours, counting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts
from ..autograd import record as graph
from ..codegen.order import sort as family
from ..codegen.order.mask import run_lengths
from . import core, writes
from .arguments import invalid_combination
from .changes import backend_of
from .core import NUMBERS, Tensor, is_tensor
from .dims import check_flag
from .mask import first_of, results
from .operands import check_tensor
from .replay import Replayed
from .row import FUNCTIONS, public

_COLUMNS = 4  # columns compared first: often enough to tell all rows of a matrix apart


@Replayed.of_memory
def _distinct(
    given: Sequence[Tensor], fn: Callable, inverse: bool, starts: bool
) -> list[Tensor | None]:
    (x,) = given
    found = fn(backend_of(x), core.kernel_operand(x), inverse, starts)
    return results(found, x.device)


@Replayed.of_memory
def _lengths(given: Sequence[Tensor], total: int) -> list[Tensor]:
    (starts,) = given
    lengths = run_lengths(backend_of(starts), core.kernel_operand(starts), total)
    return [core.result(lengths, starts.device)]


def _run(
    fn: Callable, x: Tensor, want_inverse: bool = True, want_counts: bool = True
) -> tuple[Tensor, Any, Any]:
    """Return the kernel's values, inverse and counts as tensors; None for inverse or counts that are not wanted."""
    values, inverse, starts, count = _distinct((x,), fn, want_inverse, want_counts)
    n = None if count is None else count.item()
    counts = first_of(starts, n) if want_counts else None
    if want_counts and x.numel():
        (counts,) = _lengths((counts,), x.numel())
    return first_of(values, n), inverse, counts


def _sortable(x: Tensor) -> Tensor:
    return x.detach().to(dtypes.uint8) if x.dtype is dtypes.bool else x.detach()


def _refuse(name: str) -> Callable:
    def back(ctx: Any, *g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return back


def _chosen(
    node: str,
    name: str,
    x: Tensor,
    values: Tensor,
    inverse: Any,
    counts: Any,
    want_inverse: bool,
    want_counts: bool,
) -> Any:
    if values.dtype is not x.dtype:
        values = values.to(x.dtype)
    if graph.needs_grad(x):
        graph.record(node, (x,), values, _refuse(name))
    out = (values, *([inverse] if want_inverse else []), *([counts] if want_counts else []))
    return out if len(out) > 1 else values


def _check(name: str, input: Any, **flags: Any) -> None:
    """Refuse flags that are no bools: in `unique(x, 0)` the 0 is no dim, but `sorted`."""
    check_tensor(name, "input", 1, input)
    for flag, value in flags.items():
        check_flag(name, flag, value)


@public()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in order, or the distinct slices along `dim` in lexicographic order.

    With the flags also where each element is among them (int64, the input's shape), and how often each occurs.
    """
    name = "_unique2" if dim is None else "unique_dim"
    _check(name, input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    if dim is None:
        values, inverse, counts = _run(
            family.unique, _sortable(input), return_inverse, return_counts
        )
        return _chosen(
            "Unique2Backward0",
            "_unique2",
            input,
            values,
            inverse,
            counts,
            return_inverse,
            return_counts,
        )
    dim = _slice_dim(input, dim)
    keys = _slice_ranks(_slices(input, dim))
    _, inverse, counts = _run(family.unique, keys)
    # The first slice of each kind, by the smallest position that has its rank.
    n = keys.numel()
    first = keys.new_full(counts.shape, n).scatter_reduce(
        0, inverse, FUNCTIONS["arange"](n, device=keys.device), "amin"
    )
    values = _taken(input, dim, first)
    return _chosen(
        "UniqueDimBackward0",
        "unique_dim",
        input,
        values,
        inverse,
        counts,
        return_inverse,
        return_counts,
    )


def _slice_dim(x: Tensor, dim: int) -> int:
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = layouts.wrap_dim(dim, x.ndim)
    if x.numel() == 0 and x.shape[dim]:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return dim


def _slices(x: Tensor, dim: int) -> Tensor:
    """The slices along `dim`, a row each."""
    n = x.shape[dim]
    return _sortable(x).movedim(dim, 0).reshape(n, x.numel() // max(n, 1))


def _taken(x: Tensor, dim: int, which: Tensor) -> Tensor:
    """Return some slices along `dim`, with that dimension outermost in memory, as in torch."""
    return x.detach().movedim(dim, 0).index_select(0, which).movedim(0, dim)


def _slice_ranks(rows: Tensor) -> Tensor:
    """Return a number per row, ordered as the rows are lexicographically.

    Stops at the columns that tell all rows apart.
    """
    n, m = rows.shape
    if n == 0 or m == 0:
        return rows.new_zeros(n, dtype=dtypes.int64)
    start, width = 0, _COLUMNS
    ranks, distinct = _column_ranks(rows[:, :width])
    while distinct < n and start + width < m:
        start, width = start + width, 2 * width
        more, _ = _column_ranks(rows[:, start : start + width])
        values, ranks, _ = _run(family.unique, ranks * n + more)
        distinct = values.shape[0]
    return ranks


def _column_ranks(rows: Tensor) -> tuple[Tensor, int]:
    """Return the rows' ranks and the number of distinct ones; merges neighbouring columns into ranks, pair by pair."""
    n, m = rows.shape
    values, ranks, _ = _run(family.unique, rows)
    while m > 1:
        if m % 2:
            ranks = FUNCTIONS["cat"]((ranks, ranks.new_zeros((n, 1))), 1)
            m += 1
        ranks = ranks[:, ::2] * (n * m) + ranks[:, 1::2]
        values, ranks, _ = _run(family.unique, ranks)
        m //= 2
    return ranks.reshape(n), values.shape[0]


@public()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first of each run of equal elements (or of equal slices along `dim`), where each element went, and the run lengths."""
    name = "unique_consecutive"
    _check(name, input, return_inverse=return_inverse, return_counts=return_counts)
    if dim is None:
        values, inverse, counts = _run(
            family.unique_consecutive, _sortable(input).reshape(-1), return_inverse, return_counts
        )
        inverse = inverse.reshape(input.shape) if return_inverse else None
    else:
        dim = _slice_dim(input, dim)
        rows = _slices(input, dim)
        starts = FUNCTIONS["cat"](
            (
                rows.new_ones(min(1, rows.shape[0]), dtype=dtypes.bool),
                (rows[1:] != rows[:-1]).any(1),
            )
        )
        first, inverse, counts = _run(family.unique_consecutive, starts.cumsum(0) - 1)
        first = starts.nonzero().reshape(-1)
        values = _taken(input, dim, first)
    return _chosen(
        "UniqueConsecutiveBackward0",
        "unique_consecutive",
        input,
        values,
        inverse,
        counts,
        return_inverse,
        return_counts,
    )


# Below this many candidates one comparison of all with all is cheaper than sorting.
_FEW = 32


_UNORDERED = {bool: dtypes.bool, complex: dtypes.complex128}


@public(method=False)
def isin(
    elements: Any,
    test_elements: Any,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return whether each element is among the test elements; either may be a number."""
    if not is_tensor(elements) and not is_tensor(test_elements):
        raise invalid_combination("isin", (elements, test_elements))
    for given in (elements, test_elements):
        kind = given.dtype if is_tensor(given) else _UNORDERED.get(given.__class__, dtypes.int64)
        if kind is dtypes.bool or kind.is_complex:
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind.scalar_name}")
    if elements.__class__ in NUMBERS:
        elements = test_elements.new_full(
            (), elements, dtype=core.result_type((test_elements, elements))
        )
    elif test_elements.__class__ in NUMBERS:
        test_elements = elements.new_full(
            (), test_elements, dtype=core.result_type((elements, test_elements))
        )
    core.common_device((elements, test_elements))
    dt = core.result_type((elements, test_elements))
    x, among = elements.detach().to(dt), test_elements.detach().to(dt).reshape(-1)
    if not among.numel():
        found = x != x
    elif among.numel() <= _FEW:
        found = (x.unsqueeze(-1) == among).any(-1)
    else:
        ordered = among.sort().values
        at = FUNCTIONS["searchsorted"](ordered, x.contiguous()).clamp(max=ordered.numel() - 1)
        found = ordered[at] == x
    if invert:
        found = ~found
    return writes.deliver(found, out, "isin", (elements, test_elements), differentiable=False)
