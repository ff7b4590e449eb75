"""Updating many tensors in place by one chain of formulas: what optimisers and gradient scaling are made of.

Tensors whose operands lie alike in memory go to the multi-tensor kernels, a few launches for all of them. What does not fit
(operands with different layouts, gradients through the update) is computed from the same text with Tensor operators.
Knows nothing of optimisers.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from .. import dtypes, layouts
from ..autograd.record import differentiating
from ..autograd.version import InferenceVersion
from ..autograd.views import check_inference
from ..codegen import multi
from ..codegen.index.lookup import bounds_error
from ..codegen.language import Formula
from ..codegen.multi import FLAG, Chain, Part, Shared, chain
from ..runtime import Buffer
from . import complex_numbers, core, selection
from .core import NUMBERS, Tensor
from .row import FUNCTIONS

__all__ = ["Chain", "apply", "apply_rows", "chain"]

_MANY = 4  # tensors worth looking at by columns


def apply(
    chain: Chain,
    lists: Sequence[Sequence[Tensor]],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor] = (),
    flag: Tensor | None = None,
    *,
    differentiable: bool = False,
) -> None:
    """Apply a chain to tensors in place, a list of them for every operand of the chain, in its order.

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
        if id(row[0]) in seen:  # a tensor listed twice is updated twice, one after the other
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
            if len(parts) >= most:  # these run while the next are made ready
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
    """Apply a chain to the rows of `writes`, dense, that `keys` name, each at most once; `reads` have a row for each key.

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


def _apply_alike(
    chain: Chain,
    lists: Sequence[Sequence[Tensor]],
    numbers: Mapping[str, Any],
    shared: Sequence[Tensor],
    flag: Tensor | None,
) -> bool:
    """The same for many dense tensors of one dtype and device, none of them listed twice; false if they are not that.

    Looked at by columns: the numbers of a hundred parameters took as long as a tenth of their update does.
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
                ready = [
                    s.value if s.value.__class__ is Buffer and not s.reads else s.for_write()
                    for s in column[some]
                ]
            else:
                ready = [
                    s.value if s.value.__class__ is Buffer else s.buffer() for s in column[some]
                ]
            buffers.append(ready)
            offsets.append([t._offset for t in lists[k][some]])
        parts: list[Part] = list(zip(sizes[some], zip(*buffers), zip(*offsets)))
        _launch(chain, {(backend, *[first.dtype] * len(lists)): parts}, numbers, shared, flag)
    return True


def _column(column: Sequence[Tensor], first: Tensor) -> list[Any] | None:
    """The storages of dense tensors of the first one's dtype and device; None if they are not that."""
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
    """Run what is collected, and forget it."""
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
    """The memory of one tensor's operands, made ready, after what decides which launch it joins; None if no kernel can do it."""
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
    return (first._storage.backend, *types), (count, tuple(buffers), tuple(offsets))


def _laid_alike(row: Sequence[Tensor], writes: int) -> Sequence[Tensor] | None:
    """The tensors in the first one's dense order: what is only read is copied into it; None if that is not enough."""
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
    """A copy of a tensor in another's memory order."""
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
        # A gradient must not find its operands overwritten.
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
