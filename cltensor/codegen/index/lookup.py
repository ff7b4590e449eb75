"""Indexing: gather, advanced indexing, take and put.

Lays each operation out for the kernels of moves.py and words its errors as torch does. Indices are
checked in the kernel (see checks.py): out of range is never read or written. Knows operands and
backends, nothing of tensors. What is written along one dim is in scatter.py, selection by mask in mask.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ... import dtypes
from ...layouts import contiguous_strides, numel
from ..checks import Describe
from ..move.copies import copy_strided, dense
from ..operand import Operand
from ..region import empty
from ..scalars import Scalar, scalar_operand, scalar_words
from .moves import Through, combine, move

if TYPE_CHECKING:
    from ...runtime import Backend


# -- errors, in torch's words ---------------------------------------------------------------------


def bounds_error(
    kind: type[Exception], dims: Sequence[int], sizes: Sequence[int], prefix: str = ""
) -> Describe:
    """Make the function that words an index error, naming the index and the dim."""

    def describe(value: int, ordinal: int) -> Exception:
        return kind(
            f"{prefix}index {value} is out of bounds for dimension {dims[ordinal]} "
            f"with size {sizes[ordinal]}"
        )

    return describe


def _select_error(shape: tuple[int, ...], dim: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        if len(shape) > 1:
            return RuntimeError(
                f"INDICES element is out of DATA bounds, id={value} axis_dim={shape[dim]}"
            )
        return IndexError("index out of range in self")

    return describe


# -- reading --------------------------------------------------------------------------------------


def over(index: Operand, ndim: int, dim: int) -> tuple[int, ...]:
    """Return the strides of a 1-D (or 0-D) index laid along `dim` of a space of `ndim` dims."""
    step = index.strides[0] if index.strides else 0
    return tuple(step if d == dim else 0 for d in range(ndim))


def gather(backend: Backend, src: Operand, dim: int, index: Operand) -> Operand:
    """Return `out[i][j] = src[index[i][j]][j]` (for dim 0) in the shape of `index`.

    RuntimeError for an index that is negative or too large.
    """
    result = empty(backend, src.dtype, index.shape)
    if not index.shape:  # 0-d operands count as one element
        through = [
            Through(
                index,
                (),
                max(1, src.shape[0] if src.shape else 1),
                src.strides[0] if src.strides else 1,
            )
        ]
        strides: tuple[int, ...] = ()
    elif not src.shape:
        through, strides = [Through(index, index.strides, 1, 1)], (0,)
    else:
        strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
        through = [Through(index, index.strides, src.shape[dim], src.strides[dim])]
    error = bounds_error(RuntimeError, [dim], [through[0].size])
    move(backend, "get", result, src, index.shape, result.strides, strides, through, False, error)
    return result


def index_select(
    backend: Backend,
    src: Operand,
    dim: int,
    index: Operand,
    describe: Describe | None = None,
) -> Operand:
    """Return the positions `index` (1-D) of `dim`; `describe` replaces torch's index_select
    error (an embedding's, say).
    """
    if not src.shape:
        result = empty(backend, src.dtype, ())
        through = [Through(index, (), 1, 1)]
        move(
            backend,
            "get",
            result,
            src,
            (),
            (),
            (),
            through,
            False,
            describe or _select_error(src.shape, dim),
        )
        return result
    length = numel(index.shape)
    if length and len(src.shape) > 1 and not src.shape[dim]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    shape = (*src.shape[:dim], length, *src.shape[dim + 1 :])
    result = empty(backend, src.dtype, shape)
    strides = tuple(0 if d == dim else s for d, s in enumerate(src.strides))
    through = [Through(index, over(index, len(shape), dim), src.shape[dim], src.strides[dim])]
    error = describe or _select_error(src.shape, dim)
    if length and not numel(shape):  # nothing to move, yet an index may be out of range
        probe = Operand(backend.alloc(1), dtypes.uint8, (src.shape[dim],), (0,), 0)
        index_select(backend, probe, 0, index, describe=_select_error(src.shape, dim))
    move(backend, "get", result, src, shape, result.strides, strides, through, False, error)
    return result


def _flat_error(n: int) -> Describe:
    def describe(value: int, ordinal: int) -> Exception:
        return IndexError(
            f"out of range: tried to access index {value} on a tensor of {n} elements."
        )

    return describe


def take(backend: Backend, src: Operand, index: Operand) -> Operand:
    """Return `src` flattened, at `index` (negative counts from the end), in the shape of
    `index`.
    """
    result = empty(backend, src.dtype, index.shape)
    flat = dense(backend, src)
    n = numel(src.shape)
    if n == 0 and numel(index.shape):
        raise IndexError("take(): tried to take from an empty tensor")
    through = [Through(index, index.strides, n, 1)]
    zeros = (0,) * len(index.shape)
    move(
        backend,
        "get",
        result,
        flat,
        index.shape,
        result.strides,
        zeros,
        through,
        True,
        _flat_error(n),
    )
    return result


def put(
    backend: Backend, dst: Operand, index: Operand, src: Operand, accumulate: bool = False
) -> None:
    """Write `src` (shape of `index`) at flat positions of `dst`, in place; IndexError out of
    range.
    """
    flat = dense(backend, dst)
    n = numel(dst.shape)
    if n == 0 and numel(index.shape):  # torch reaches this only with indices
        raise IndexError("put_(): attempting to put into an empty tensor")
    through = [Through(index, index.strides, n, 1)]
    space, zeros = index.shape, (0,) * len(index.shape)
    action = "add" if accumulate else "move"
    every = range(len(space))
    combine(
        backend, action, flat, src, space, every, zeros, src.strides, through, True, _flat_error(n)
    )
    if flat is not dst:
        copy_strided(backend, flat, dst)


class _Advanced(NamedTuple):
    """The layout of `x[..., i, j, ...]`."""

    space: tuple[int, ...]  # the result's shape, which is the iteration space
    sliced_strides: tuple[int, ...]  # of x over the space; 0 along the block of index dims
    block: range  # the dims of the space that index operands run along
    through: list[Through]
    describe: Describe  # makes the error for a bad index


def _advanced(x: Operand, indices: Sequence[tuple[int, Operand]]) -> _Advanced:
    """Lay out `x[..., i, j, ...]`: the sliced dims of `x`, and the block of index dims.

    The block stands in place of the indexed dims if these are adjacent, else first.
    """
    dims = [d for d, _ in indices]
    block_shape = indices[0][1].shape
    sliced = [d for d in range(len(x.shape)) if d not in dims]
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    position = sum(d < dims[0] for d in sliced) if adjacent else 0
    before, after = sliced[:position], sliced[position:]
    space = (*(x.shape[d] for d in before), *block_shape, *(x.shape[d] for d in after))
    strides = (
        *(x.strides[d] for d in before),
        *(0 for _ in block_shape),
        *(x.strides[d] for d in after),
    )
    left, right = (0,) * len(before), (0,) * len(after)
    through = [
        Through(i, (*left, *i.strides, *right), x.shape[d], x.strides[d]) for d, i in indices
    ]
    error = bounds_error(IndexError, range(len(dims)), [x.shape[d] for d in dims])
    return _Advanced(space, strides, range(position, position + len(block_shape)), through, error)


def advanced_shape(shape: Sequence[int], indices: Sequence[tuple[int, Operand]]) -> tuple[int, ...]:
    """Return the shape of `advanced_get`'s result."""
    probe = Operand(None, dtypes.uint8, tuple(shape), contiguous_strides(shape))  # type: ignore[arg-type]
    return _advanced(probe, indices).space


def advanced_get(
    backend: Backend,
    src: Operand,
    indices: Sequence[tuple[int, Operand]],
) -> Operand:
    """Return `src` indexed in the given dims by index operands of one common (broadcast) shape, as
    numpy and torch do.

    The block of index dims stands in place of the indexed dims if these are adjacent, else first. Negative indices count
    from the end; IndexError if one is out of range.
    """
    plan = _advanced(src, indices)
    result = empty(backend, src.dtype, plan.space)
    move(
        backend,
        "get",
        result,
        src,
        plan.space,
        result.strides,
        plan.sliced_strides,
        plan.through,
        True,
        plan.describe,
    )
    return result


def advanced_set(
    backend: Backend,
    dst: Operand,
    indices: Sequence[tuple[int, Operand]],
    values: Operand | Scalar,
    accumulate: bool = False,
) -> None:
    """Write `values` (already expanded to `advanced_shape`) into `dst` at the indices; see Note
    [Order of writes].
    """
    plan = _advanced(dst, indices)
    if not isinstance(values, Operand):
        if not accumulate:
            move(
                backend,
                "set",
                dst,
                scalar_words(dst.dtype, values),
                plan.space,
                plan.sliced_strides,
                (),
                plan.through,
                True,
                plan.describe,
            )
            return
        values = scalar_operand(backend, dst.dtype, values, plan.space)
    action = "add" if accumulate else "move"
    combine(
        backend,
        action,
        dst,
        values,
        plan.space,
        plan.block,
        plan.sliced_strides,
        values.strides,
        plan.through,
        True,
        plan.describe,
    )
