"""Computing on many tensors by one chain of formulas: what optimisers, gradient scaling and `_foreach_*` are made of.

Tensors whose operands lie alike in memory go to the multi-tensor kernels, a few launches for all of them. What does not fit
(operands with different layouts, gradients through the update) is computed from the same text with Tensor operators.
Knows nothing of optimisers.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import repeat
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple

from .. import dtypes, layouts
from ..autograd.record import differentiating, needs_grad
from ..autograd.version import InferenceVersion
from ..autograd.views import check_inference
from ..codegen import multi
from ..codegen.index.lookup import bounds_error
from ..codegen.language import Formula
from ..codegen.multi import FLAG, Chain, Part, Shared, chain
from ..codegen.pointwise import PointOp
from ..runtime import Buffer
from ..size import Size
from ..storage import Storage, new_storage
from . import complex_numbers, core, selection
from .core import NUMBERS, Tensor
from .row import FUNCTIONS, OPERANDS

__all__ = ["Chain", "apply", "apply_op", "apply_rows", "chain", "slices"]

_MANY = 4  # from this many tensors on, their attributes are compared column by column
# Elements; operations on larger tensors stay pending, because fusing them saves more time.
_LARGE = 1 << 17


def apply(
    chain: Chain,
    lists: Sequence[Sequence[Tensor]],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor] = (),
    flag: Tensor | None = None,
    *,
    differentiable: bool = False,
) -> None:
    """Apply a chain in place; `lists` has a list of tensors for each of the chain's operands, in their order.

    numbers: the chain's numbers (tensors of one element too, where `differentiable`). shared: its one-element operands.
    flag: a float32 tensor of one element that becomes 1 where the chain's condition holds for any element.
    """
    writes, most = len(chain.writes), 0
    for column in lists[:writes]:
        for t in column:
            if t._vc.__class__ is InferenceVersion:
                check_inference(t)
    if not differentiable and _apply_alike(chain, lists, numbers, shared, flag):
        for column in lists[:writes]:
            for t in column:
                t._vc.value += 1
        return
    groups: dict[tuple, list[Part]] = {}
    changed: list[Tensor] = []
    seen: set[int] = set()
    for row in zip(*lists, strict=True):
        if id(row[0]) in seen:  # a tensor that is listed twice must be updated twice, in order
            _launch(chain, groups, numbers, shared, flag)
            seen = set()
        found = None if differentiable else _part(row, writes)
        if found is None:
            _compute(chain, row, numbers, shared, flag)
            continue
        seen.add(id(row[0]))
        changed += row[:writes]
        key, part = found
        if part[0]:
            parts = groups.setdefault(key, [])
            if not parts:
                most = multi.slot_limit(key[0], chain)
            parts.append(part)
            # Launch: the device runs these while the host prepares the next ones.
            if len(parts) >= most:
                _launch(chain, groups, numbers, shared, flag)
    _launch(chain, groups, numbers, shared, flag)
    for t in changed:
        t._vc.value += 1


def apply_rows(
    chain: Chain,
    writes: Sequence[Tensor],
    reads: Sequence[Tensor],
    keys: Tensor,
    numbers: Mapping[str, Any],
) -> None:
    """Apply a chain to the rows `keys` (no duplicates) of the dense tensors `writes`; `reads` have one row per key.

    All are of one real floating dtype and one device. RuntimeError for a key that is no row.
    """
    for t in writes:
        check_inference(t)
    laid = [*writes, *[t.contiguous() for t in reads]]
    index = core.kernel_operand(keys.contiguous())
    first, backend = laid[0], laid[0]._storage.backend
    size = first.shape[0]
    with backend.lock:
        buffers = [t._storage.for_write() for t in laid[: len(writes)]]
        buffers += [t._storage.buffer() for t in laid[len(writes) :]]
        multi.apply_rows(
            backend, chain, first.dtype, buffers, [t._offset for t in laid], index,
            (size, prod(first.shape[1:])), numbers, bounds_error(RuntimeError, [0], [size]),
        )  # fmt: skip
    for t in writes:
        t._vc.value += 1


def apply_op(op: PointOp | None, operands: Sequence[Any], *, inplace: bool) -> list[Tensor | None]:
    """Apply a row's formula to each tensor of a list, in few launches; None in place of results better computed one by
    one.

    operands: the list of tensors, then for each further operand a list of as many tensors or numbers, or one number or
    0-dim tensor for all. inplace: results are written into the tensors. Serves real floating dtypes, without gradients,
    only.
    """
    n = len(operands[0])
    nothing: list[Tensor | None] = [None] * n
    if op is None or n < _MANY:
        return nothing
    columns, own, numbers, ones = [], [], {}, []
    reads = each = shared = ""
    for letter, o in zip(OPERANDS, operands):
        kind = o.__class__
        if kind is int or kind is float:
            numbers[letter] = o
        elif kind is not list and kind is not tuple:
            if not _has_memory(kind):
                return nothing
            shared += letter
            ones.append(o)
        elif o[0].__class__ in (int, float):
            if any(v.__class__ not in (int, float) for v in o):
                return nothing
            each += letter
            own.append(o)
        else:
            if not all(map(_has_memory, {t.__class__ for t in o})) or needs_grad(*o):
                return nothing
            reads += letter
            columns.append(o)
    if needs_grad(*ones):
        return nothing
    made = _op_chain(op, inplace, reads, shared, each)
    laid = [_Laid(*zip(*map(_LAID, column))) for column in columns]
    if inplace and not _apart(laid, ones):
        return nothing
    first = laid[0]
    key = first.dtypes[0], first.devices[0]
    if _same(laid, *key, n, ones):
        return _apply_group(made, op, columns[0], laid, own, numbers, ones, inplace)
    groups: dict[tuple, list[int]] = {}
    for i in range(n):
        key = first.dtypes[i], first.devices[i]
        if _same([column.of([i]) for column in laid], *key, 1, ones):
            groups.setdefault(key, []).append(i)
    for some in groups.values():
        if len(some) < _MANY:
            continue
        parts = [column.of(some) for column in laid]
        mine = [[values[i] for i in some] for values in own]
        xs = [columns[0][i] for i in some]
        done = _apply_group(made, op, xs, parts, mine, numbers, ones, inplace)
        for i, t in zip(some, done):
            nothing[i] = t
    return nothing


class _Laid(NamedTuple):
    """The attributes of a list's tensors, a sequence per attribute."""

    storages: Sequence[Any]
    offsets: Sequence[int]
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[dtypes.dtype]
    devices: Sequence[Any]
    dense: Sequence[bool | None]  # each tensor's `_contig`

    def of(self, some: Sequence[int]) -> _Laid:
        """Return the attributes of the tensors at the positions `some`."""
        return _Laid._make([[part[i] for i in some] for part in self])


_LAID = attrgetter("_storage", "_offset", "shape", "dtype", "device", "_contig")


@cache
def _has_memory(kind: type) -> bool:
    """Return whether tensors of a class have a storage of their own; sparse and batched (vmap) ones do not."""
    return issubclass(kind, core.Registry.tensor) and not hasattr(kind, "_storage")


@cache
def _op_chain(op: PointOp, inplace: bool, reads: str, shared: str, each: str) -> Chain:
    name, text = f"each_{op.name}", op.text
    if inplace:
        reads = reads[1:]
        return chain(name, f"x = {text}", "x", " ".join(reads), " ".join(shared), " ".join(each))
    return chain(name, f"out = {text}", "out", " ".join(reads), " ".join(shared), " ".join(each))


def _same(
    laid: Sequence[_Laid], dt: dtypes.dtype, dev: Any, n: int, ones: Sequence[Tensor]
) -> bool:
    """Return whether the n tensors of each list are dense, neither empty nor large, of one real floating dtype and
    device, alike in shape.

    Also checked: that the 0-dim tensors `ones` are on the device and do not promote the result to another dtype.
    """
    if dt.category != 2:
        return False
    shapes = laid[0].shapes
    for column in laid:
        if (
            column.dtypes.count(dt) < n
            or column.devices.count(dev) < n
            or column.dense.count(True) < n
            or column.shapes != shapes
        ):
            return False
    for one in ones:
        promotes = one.dtype.category > 2 or (one.dtype.category == 2 and () in shapes)
        if one.device != dev or (promotes and one.dtype is not dt):
            return False
    sizes = list(map(prod, shapes))
    return min(sizes) > 0 and max(sizes) <= _LARGE


def _apart(laid: Sequence[_Laid], ones: Sequence[Tensor]) -> bool:
    """Return whether no operation reads or writes memory that another one writes; the tensors of the first list are
    written.
    """
    targets = laid[0]
    written = set(map(id, targets.storages))
    if len(written) < len(targets.storages) or any(id(t._storage) in written for t in ones):
        return False
    for column in laid[1:]:
        if written.isdisjoint(map(id, column.storages)):
            continue
        for of, at, s, offset in zip(targets.storages, targets.offsets, column.storages, column.offsets):  # fmt: skip
            if id(s) in written and (s is not of or at != offset):
                return False
    # Memory shared with NumPy may be that of another tensor, too.
    values = [s.value for s in targets.storages]
    return not any(v.__class__ is Buffer and v.exported for v in values)


def _apply_group(
    made: Chain,
    op: PointOp,
    xs: Sequence[Tensor],
    laid: Sequence[_Laid],
    own: Sequence[Sequence[float]],
    numbers: Mapping[str, float],
    ones: Sequence[Tensor],
    inplace: bool,
) -> list[Any]:
    """Apply an op's chain to tensors that `_same` has found alike; return the results."""
    n, first = len(xs), laid[0]
    dt, dev, backend = first.dtypes[0], first.devices[0], first.storages[0].backend
    if op.rounds and dt.itemsize == 2:
        numbers = {name: dtypes.nearest(v, dt) for name, v in numbers.items()}
        own = [[dtypes.nearest(v, dt) for v in values] for values in own]
    sizes = tuple(map(prod, first.shapes))
    buffers, offsets = [], []
    for column in laid[inplace:]:
        buffers.append([s.value if s.value.__class__ is Buffer else s.buffer() for s in column.storages])  # fmt: skip
        offsets.append(column.offsets)
    shared = []
    for one in ones:
        t = one if one.dtype is dt else one.to(dt)
        shared.append(Shared(t._storage.buffer(), dt, t._offset))
    if inplace:
        for t in xs:
            if t._vc.__class__ is InferenceVersion:
                check_inference(t)
        written = _ready(first.storages)
        places = first.offsets
    else:
        written = backend.alloc_many([size * dt.itemsize for size in sizes])
        places = (0,) * n
    values = zip(*own) if own else repeat(())
    parts: list[Part] = list(zip(sizes, zip(written, *buffers), zip(places, *offsets), values))
    with backend.lock:
        multi.apply(backend, made, (dt,) * len(made.operands), parts, numbers, shared)
    if inplace:
        for t in xs:
            t._vc.value += 1
        return list(xs)
    make = core.Registry.tensor._make
    return [
        make(new_storage(backend, buffer, buffer.nbytes), shape, dt, dev, None, 0)
        for buffer, shape in zip(written, first.shapes)
    ]


def _ready(storages: Sequence[Storage]) -> list[Buffer]:
    """Return the buffers of storages, prepared for writing (pending readers have run)."""
    return [
        s.value if s.value.__class__ is Buffer and not s.reads else s.for_write() for s in storages
    ]


def slices(t: Tensor) -> list[Tensor]:
    """Return the parts of a dense tensor along its first dim, without history."""
    storage, shape, dt, dev, start = t._storage, Size(t.shape[1:]), t.dtype, t.device, t._offset
    make, step = core.Registry.tensor._make, prod(shape)
    return [make(storage, shape, dt, dev, None, start + i * step) for i in range(t.shape[0])]


def _apply_alike(
    chain: Chain,
    lists: Sequence[Sequence[Tensor]],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor],
    flag: Tensor | None,
) -> bool:
    """Do what `apply` does, for many dense tensors of one dtype and device, none listed twice; return False for others.

    Attributes are compared column by column: reading those of a hundred parameters one by one took a tenth of the time
    of their update.
    """
    first = lists[0][0] if lists[0] else None
    if first is None or len(lists[0]) < _MANY or first.dtype.category != 2:
        return False
    found = [_column(column, first) for column in lists]
    columns = [column for column in found if column is not None]
    shapes = [t.shape for t in lists[0]]
    sizes = list(map(prod, shapes))
    if (
        len(columns) < len(found)
        or not all(sizes)
        or any([t.shape for t in column] != shapes for column in lists[1:])
        or len(set(map(id, lists[0]))) != len(shapes)
    ):
        return False
    backend = first._storage.backend
    most = multi.slot_limit(backend, chain)
    for at in range(0, len(sizes), most):
        some = slice(at, at + most)
        buffers, offsets = [], []
        for k, column in enumerate(columns):
            if k < len(chain.writes):
                ready = _ready(column[some])
            else:
                ready = [
                    s.value if s.value.__class__ is Buffer else s.buffer() for s in column[some]
                ]
            buffers.append(ready)
            offsets.append([t._offset for t in lists[k][some]])
        parts: list[Part] = list(zip(sizes[some], zip(*buffers), zip(*offsets), repeat(())))
        _launch(chain, {(backend, *[first.dtype] * len(lists)): parts}, numbers, shared, flag)
    return True


def _column(column: Sequence[Tensor], first: Tensor) -> list[Any] | None:
    """Return the storages of tensors that are all dense and of the first one's dtype and device; None for others."""
    n, dt, dev = len(column), first.dtype, first.device
    if (
        [t.dtype for t in column].count(dt) == n
        and all(t.device is dev for t in column)
        and all(t._contig for t in column)
    ):
        return [t._storage for t in column]
    return None


def _launch(
    chain: Chain,
    groups: dict[tuple, list[Part]],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor],
    flag: Tensor | None,
) -> None:
    """Launch the collected parts and clear `groups`."""
    for (backend, *types), parts in groups.items():
        ones = []
        for x in shared:
            s = x.to(backend.device)
            ones.append(Shared(s._storage.buffer(), s.dtype, s._offset))
        with backend.lock:
            found = None if flag is None else flag._storage.for_write()
            multi.apply(backend, chain, tuple(types), parts, numbers, ones, found)
    groups.clear()


def _part(row: Sequence[Tensor], writes: int) -> tuple[tuple, Part] | None:
    """Return the key of the launch that one tensor's operands join, and their memory prepared.

    None if no kernel can take them.
    """
    first = row[0]
    shape, dev, dt = first.shape, first.device, first.dtype
    if dt.category < 2 or dt is dtypes.complex32:
        return None
    tensors: Sequence[Tensor] | None = row
    for t in row:
        alike = t.dtype is dt and t.device is dev and t.shape == shape
        if not (alike and (t._contig or t.is_contiguous())):
            tensors = _laid_alike(row, writes)
            break
    if tensors is None:
        return None
    buffers, types, offsets = [], [], []
    for k, t in enumerate(tensors):
        buffers.append(t._storage.for_write() if k < writes else t._storage.buffer())
        types.append(t.dtype)
        offsets.append(t._offset)
    count = prod(shape)
    if dt.category == 3:  # complex numbers are pairs of real ones
        count, types, offsets = 2 * count, [x.to_real() for x in types], [2 * o for o in offsets]
    return (first._storage.backend, *types), (count, tuple(buffers), tuple(offsets), ())


def _laid_alike(row: Sequence[Tensor], writes: int) -> Sequence[Tensor] | None:
    """Return the tensors in the first one's dense memory order.

    None if that takes more than copying tensors that are only read.
    """
    first = row[0]
    shape, dev, strides = first.shape, first.device, first._strides
    if not layouts.is_non_overlapping_and_dense(tuple(shape), strides):
        return None
    fitting = []
    for k, t in enumerate(row):
        if t.shape != shape or t.device != dev or t.dtype.is_complex is not first.dtype.is_complex:
            return None
        if t._strides != strides and not (t.is_contiguous() and first.is_contiguous()):
            if k < writes:
                return None
            t = _laid(t, first)
        fitting.append(t)
    return fitting


def _laid(t: Tensor, like: Tensor) -> Tensor:
    """Return a copy of a tensor in the memory order of `like`."""
    order = sorted(range(t.ndim), key=lambda d: -like._strides[d])
    back = sorted(range(t.ndim), key=lambda d: order[d])
    return t.permute(order).contiguous().permute(back)


# ---------------------------------------------------------------------------- the same text, by operators


def _compute(
    chain: Chain,
    row: Sequence[Tensor],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor],
    flag: Tensor | None,
) -> None:
    targets = [complex_numbers.view_as_real(t) if t.dtype.is_complex else t for t in row]
    values: dict[str, Any] = {**numbers, **dict(zip(chain.shared, shared, strict=True))}
    for k, (name, t) in enumerate(zip(chain.operands, targets, strict=True)):
        # The gradient reads the operands, so the write below must go to a copy.
        values[name] = t.clone() if differentiating() and k < len(chain.writes) else t
    for target, formula in chain.steps:
        value = evaluate(formula, values)
        if target == FLAG and flag is not None:
            flag.copy_(FUNCTIONS["maximum"](flag, value.any().to(flag.dtype)))
        values[target] = value
    for name, t in zip(chain.writes, targets, strict=False):
        t.copy_(values[name])


def evaluate(formula: Formula, values: Mapping[str, Any]) -> Any:
    """Compute a formula of the language with Tensor operators; differentiable."""
    return _evaluate(formula.tree, values)


_BINARY = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}  # fmt: skip


def _evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp):
        inner = _evaluate(node.operand, values)
        return inner.logical_not() if isinstance(node.op, ast.Not) else -inner
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, values), _evaluate(node.right, values)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Compare):
        left, right = _evaluate(node.left, values), _evaluate(node.comparators[0], values)
        return _BINARY[type(node.ops[0])](left, right)
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _call(node.func.id, [_evaluate(a, values) for a in node.args])


def _call(name: str, args: list[Any]) -> Any:
    if name == "where":
        return selection.where(*args)
    if name in ("max", "min"):
        a, b = args
        if a.__class__ in NUMBERS or b.__class__ in NUMBERS:
            t, number = (b, a) if a.__class__ in NUMBERS else (a, b)
            return t.clamp(min=number) if name == "max" else t.clamp(max=number)
        return FUNCTIONS[f"{name}imum"](a, b)
    return getattr(args[0], name)()
