"""Triangles and diagonals: tril, triu, diag and similar, trace, block_diag.

The triangle of a pending tensor is an expression of row and column numbers, which fuses with its surroundings; that of
a tensor in memory is copied by a kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from .. import dtypes, layouts, lazy
from ..autograd import record as graph
from ..autograd.mode import unrecorded
from ..codegen.move import triangle as kernels
from ..codegen.pointwise import IDENTITY, PointOp
from ..lazy import Expr, Scalar
from ..size import Size
from . import core, parts, writes
from .changes import change, zeros
from .compare import logical_and
from .composite import in_one
from .core import Tensor, is_tensor
from .dims import whole
from .kinds import Sizes
from .operands import check_tensor, refuse_bool
from .reducing import positions
from .replay import Replayed
from .row import FUNCTIONS, METHODS, public, titled
from .selection import where_row
from .values import into

# ------------------------------------------------------------------------------------------- triangles

# Whether an element in row x and column y lies in the triangle that the diagonal z bounds.
_LOWER = PointOp("lower", "y - x <= z")
_UPPER = PointOp("upper", "y - x >= z")
# The row and the column of the element with linear index x in matrices of z rows and y columns.
_ROW, _COLUMN = PointOp("row", "(x / y) % z"), PointOp("column", "x % y")


def _triangle(dims: Sequence[int], diagonal: int, op: PointOp, dev: Any) -> Tensor:
    """Return a lazy mask of the lower or upper triangles of matrices, which broadcasts to the shape `dims`.

    From `lazy.TURN` elements on, two launches write a vector of row numbers and one of column numbers: reading these
    costs less than two divisions per element.
    """
    rows, columns = dims[-2:]
    if layouts.numel(tuple(dims)) >= lazy.TURN:
        places = (positions(rows, 0, 2, dev), positions(columns, 1, 2, dev), diagonal)
        return core.compute(op, dtypes.int64, dtypes.bool, places, Size((rows, columns)), dev)
    shape, long = Size(dims), dtypes.int64
    at = core.index_expression(shape)
    sizes = Scalar(max(columns, 1)), Scalar(max(rows, 1))
    row = Expr(_ROW, long, long, shape, (at, *sizes))
    column = Expr(_COLUMN, long, long, shape, (at, sizes[0]))
    return core.pending(Expr(op, long, dtypes.bool, shape, (row, column, Scalar(diagonal))), dev)


@Replayed.of_memory
def _in_memory(xs: Sequence[Tensor], diagonal: int, lower: bool) -> list[Tensor]:
    (x,) = xs
    found = kernels.triangle(x._storage.backend, core.kernel_operand(x), diagonal, lower=lower)
    return [core.result(found, x.device)]


def _cut(name: str, op: PointOp) -> tuple[Callable, Callable]:
    """Make and register `tril` or `triu`, and return the function and its in-place method."""
    node = f"{name.title()}Backward0"

    def cut(t: Tensor, diagonal: int) -> Tensor:
        if t._storage.value.__class__ is not Expr:
            return _in_memory((t.detach(),), diagonal, op is _LOWER)[0]
        return _kept(_triangle(t.shape, diagonal, op, t.device), t)

    def back(ctx: Any, g: Tensor) -> Tensor:
        return function(g, ctx.diagonal)

    def check(t: Tensor) -> None:
        check_tensor(name, "input", 1, t)
        if t.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")

    def function(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        check(input)
        diagonal = whole(name, "diagonal", diagonal, 2)
        with unrecorded():
            value = cut(input, diagonal)
        if graph.needs_grad(input):
            graph.record(node, (input,), value, back, {"diagonal": diagonal})
        return value if out is None else writes.deliver(value, out, name, (input,))

    def method_(self: Tensor, diagonal: int = 0) -> Tensor:
        check(self)
        diagonal = whole(f"{name}_", "diagonal", diagonal, 1)
        return change(
            node,
            self,
            (),
            lambda t: rewrite(t, diagonal),
            back,
            {"diagonal": diagonal},
            inplace=True,
            overlap=True,
        )

    def rewrite(t: Tensor, diagonal: int) -> None:
        if layouts.internal_overlap(t.shape, t._strides) == layouts.FULL_OVERLAP:
            _cut_cells(t, _triangle(t.shape, diagonal, op, t.device))
        else:
            _rewrite(t, cut(t, diagonal))

    side = "above" if name == "tril" else "below"
    titled(function, name, f"Zero what lies {side} a diagonal of (batches of) matrices. Lazy.")
    titled(method_, name + "_", f"In-place form of `{name}`.")
    public(name)(function)
    METHODS[name + "_"] = method_
    return function, method_


def _kept(mask: Tensor, t: Tensor) -> Tensor:
    """Return `t` where the mask holds, 0 elsewhere."""
    if t.dtype.category == 0:
        return logical_and.forward((mask, t))
    return where_row.forward((mask, t, 0))


def _cut_cells(t: Tensor, kept: Tensor) -> None:
    """Zero the memory of an expanded tensor where any of the elements in one place is not `kept`."""
    dims = [
        d for d, (n, step) in enumerate(zip(t.shape, t._strides, strict=True)) if n > 1 and not step
    ]
    cells = t.detach()
    for d in dims:
        cells = cells.narrow(d, 0, 1)
        kept = kept.all(d, keepdim=True)
    _rewrite(cells, _kept(kept, cells))


def _rewrite(t: Tensor, value: Tensor) -> None:
    """Overwrite a tensor with a newly computed, still pending value; the caller increments the version."""
    expr = core.operand(value, t.shape)
    whole = isinstance(expr, Expr)
    writes.write(t, expr if whole else Expr(IDENTITY, t.dtype, t.dtype, t.shape, (expr,)))


tril, _ = _cut("tril", _LOWER)
triu, _ = _cut("triu", _UPPER)


def _below(rows: int, cols: int, offset: int) -> int:
    """Return the number of elements of a matrix that lie on or below a diagonal."""
    return sum(min(max(r + offset + 1, 0), cols) for r in range(rows))


def _triangle_indices(name: str, op: PointOp) -> None:
    def function(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        if row < 0:
            raise RuntimeError(f"row must be non-negative, got{row}")
        if col < 0:
            raise RuntimeError(f"col must be non-negative, got{col}")
        dt = dtypes.asked(dtype, name) or dtypes.int64
        if dt.category != 1:
            raise NotImplementedError(f"\"{name}\" not implemented for '{dt.scalar_name}'")
        dev = FUNCTIONS["empty"]((), device=device).device
        if dev.type == "meta":
            count = (
                _below(row, col, offset)
                if op is _LOWER
                else row * col - _below(row, col, offset - 1)
            )
            return FUNCTIONS["empty"]((2, count), dtype=dt, device=dev)
        places = _triangle((row, col), offset, op, dev).nonzero().t()
        return places.contiguous() if dt is dtypes.int64 else places.to(dt).contiguous()

    titled(
        function,
        name,
        "Return the coordinates of a triangle of a (row, col) matrix in row-major order: (2, count).",
    )
    FUNCTIONS[name] = function


_triangle_indices("tril_indices", _LOWER)
_triangle_indices("triu_indices", _UPPER)

# ------------------------------------------------------------------------------------------- diagonals


@public()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Put the last dimension on a diagonal of two new ones, zeros elsewhere."""
    offset = whole("diag_embed", "offset", offset, 2)
    n = input.shape[-1] + abs(offset) if input.ndim else 1 + abs(offset)
    a, b = (layouts.wrap_dim(d, input.ndim + 1) for d in (dim1, dim2))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    dims = list(input.shape[:-1])
    for d in sorted((a, b)):
        dims.insert(d, n)
    (value,) = _embedded((input.detach(),), offset, a, b, Sizes(dims))
    if graph.needs_grad(input):
        graph.record(
            "DiagEmbedBackward0",
            (input,),
            value,
            lambda ctx, g: g.diagonal(ctx.offset, ctx.dim1, ctx.dim2),
            {"offset": offset, "dim1": a, "dim2": b},
        )
    return value


@in_one
def _embedded(
    xs: Sequence[Tensor], offset: int, dim1: int, dim2: int, dims: Sequence[int]
) -> list[Tensor]:
    value = zeros(xs[0], list(dims))
    parts.diagonal(value, offset, dim1, dim2).copy_(xs[0])
    return [value]


@public()
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Make a matrix with the vector on its diagonal, or return the diagonal of a matrix."""
    check_tensor("diag", "input", 1, input)
    diagonal = whole("diag", "diagonal", diagonal, 2)
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    step = "diag_embed" if input.ndim == 1 else "diagonal_copy"
    value = FUNCTIONS[step](input, diagonal)
    return value if out is None else into(value, out, step, (input,))


@public()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Make a matrix with the flattened elements on its diagonal."""
    offset = whole("diagflat", "offset", offset, 2)
    return diag_embed(input.contiguous().view(-1), offset)


@public()
def trace(input: Tensor) -> Tensor:
    """Add up the main diagonal of a matrix."""
    check_tensor("trace", "input", 1, input)
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    refuse_bool(input.dtype, "trace")
    (value,) = _diagonal_sum((input.detach(),))
    if graph.needs_grad(input):
        graph.record("TraceBackward0", (input,), value, _trace_back)
    return value


@in_one
def _diagonal_sum(xs: Sequence[Tensor]) -> list[Tensor]:
    return [parts.diagonal(xs[0]).sum()]


def _trace_back(ctx: Any, g: Tensor) -> Tensor:
    rows, columns = ctx.shapes[0]
    return where_row(positions(rows, 0, 2, g.device) == positions(columns, 1, 2, g.device), g, 0.0)


@public(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Put matrices (vectors are rows) on the diagonal of one, zeros elsewhere."""
    xs = (
        list(tensors[0])
        if len(tensors) == 1 and isinstance(tensors[0], tuple | list)
        else list(tensors)
    )
    for place, x in enumerate(xs):
        if not is_tensor(x):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(x).__name__}"
            )
    if not xs:
        return FUNCTIONS["empty"]((1, 0))
    for place, x in enumerate(xs):
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {place} has {x.ndim} dimensions"
            )
    (value,) = _blocks_in_place([x.detach() for x in xs])
    if graph.needs_grad(*xs):
        corners, blocks = _corners(xs)
        graph.record(
            "BlockDiagBackward0",
            xs,
            value,
            _block_diag_back,
            {"corners": corners, "blocks": blocks},
        )
    return value


def _corners(xs: Sequence[Tensor]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the upper left corner of each block, and that of one more; and the shape of each block."""
    blocks = [(1, x.numel()) if x.ndim < 2 else tuple(x.shape) for x in xs]
    corners = itertools.accumulate(blocks, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0))
    return list(corners), blocks


@in_one
def _blocks_in_place(xs: Sequence[Tensor]) -> list[Tensor]:
    corners, blocks = _corners(xs)
    dev, dt = core.common_device(xs), core.result_type(xs)
    value = xs[0].new_zeros(corners[-1], dtype=dt, device=dev)
    for x, block, corner in zip(xs, blocks, corners, strict=False):
        _block(value, corner, block).copy_(x.reshape(block))
    return [value]


def _block(t: Tensor, corner: tuple[int, int], block: tuple[int, int]) -> Tensor:
    return t.narrow(0, corner[0], block[0]).narrow(1, corner[1], block[1])


def _block_diag_back(ctx: Any, g: Tensor) -> tuple:
    return tuple(
        _block(g, corner, block).reshape(tuple(dims)) if wanted else None
        for corner, block, dims, wanted in zip(
            ctx.corners, ctx.blocks, ctx.shapes, ctx.needs, strict=False
        )
    )
