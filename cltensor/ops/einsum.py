"""einsum: equations parsed into labels, operands brought into one space of dims, pairs multiplied.

Made of views and the products of products.py; owns no kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from math import prod
from types import EllipsisType
from typing import Any, NamedTuple

from ..autograd import record as graph
from .composite import at_once, plain
from .core import Tensor, is_tensor
from .products import bmm
from .row import public

_ELLIPSIS = -1


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else chr(ord("a") + index - 26)


def _number(letter: str) -> int:
    return ord(letter) - ord("A") if letter <= "Z" else ord(letter) - ord("a") + 26


@functools.lru_cache(1024)
def _parse(equation: str, count: int) -> tuple[list[list[int]], list[int] | None]:
    """Split an equation into the labels of every operand and of the output (None when not given); not to be changed."""
    left, arrow, right = equation.partition("->")
    operands: list[list[int]] = []
    start = 0
    for i, text in enumerate(left.split(",")):
        if i and i >= count:
            raise RuntimeError(
                "einsum(): fewer operands were provided than specified in the equation"
            )
        again = f"operand {i} for which an ellipsis was already found"
        operands.append(
            _labels(text, start, again, f"operand {i} that is not part of any ellipsis")
        )
        start += len(text) + 1
    if len(operands) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    if not arrow:
        return operands, None
    again = "output but an ellipsis (...) was already found"
    stray = "output that is not part of any ellipsis (...)"
    return operands, _labels(right, len(left) + len(arrow), again, stray)


def _labels(text: str, start: int, again: str, stray: str) -> list[int]:
    """Return the labels of one operand or the output, whose text is at `start` of the equation.

    `again` and `stray` end the errors for dots after an ellipsis and outside of one.
    """
    labels: list[int] = []
    at = 0
    while at < len(text):
        c = text[at]
        if c == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError(f"einsum(): found '.' for {again}")
            if text[at : at + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {stray}")
            labels.append(_ELLIPSIS)
            at += 2
        elif c.isascii() and c.isalpha():
            labels.append(_number(c))
        elif c != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + at} in the equation string, subscripts must be in [a-zA-Z]"
            )
        at += 1
    return labels


def _sublists(args: Sequence[Any]) -> tuple[list[Tensor], list[list[int]], list[int] | None]:
    """Read the form einsum(tensor, labels, tensor, labels, …, [output labels])."""

    def labels(items: Sequence[Any]) -> list[int]:
        made = []
        for s in items:
            if isinstance(s, EllipsisType):
                made.append(_ELLIPSIS)
            elif 0 <= s < 52:
                made.append(int(s))
            else:
                raise ValueError(
                    "einsum(): subscript in subscript list is not within the valid range [0, 52)"
                )
        return made

    output = labels(args[-1]) if len(args) % 2 else None
    pairs = args[: len(args) - len(args) % 2]
    return list(pairs[::2]), [labels(p) for p in pairs[1::2]], output


@public(method=False)
def einsum(*args: Any) -> Tensor:
    """Sum products of operands over the labels missing in the output: einsum("ij,jk->ik", a, b), lists of labels also work.

    Repeated labels take diagonals, `...` stands for any further dims, which broadcast.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    if is_tensor(args[0]):
        operands, labels, output = _sublists(args)
    else:
        equation, *rest = args
        if not isinstance(equation, str):
            raise TypeError(
                f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
            )
        operands = list(rest[0]) if len(rest) == 1 and isinstance(rest[0], list | tuple) else rest
        if not operands:
            raise ValueError(
                "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
            )
        if len(operands) > 1 and plain(operands) and not graph.needs_grad(*operands):
            return _replayed(operands, equation)[0]
        if len(operands) == 2 and (found := _product(operands, equation)) is not None:
            return found
        labels, output = _parse(equation, len(operands))
    return _einsum(operands, labels, output)


@at_once
def _replayed(operands: Sequence[Tensor], equation: str) -> list[Tensor]:
    return [_einsum(operands, *_parse(equation, len(operands)))]


class _Pair(NamedTuple):
    """How a batched matrix product computes an equation of two operands.

    Dims of `a` are permuted into those of the batch, the rows and the sum; of `b` into batch, sum, columns.
    """

    swapped: bool  # the equation's second operand is `a`
    of_a: tuple[int, ...]
    of_b: tuple[int, ...]
    of_out: tuple[int, ...]  # from batch, rows, columns to the output's order
    batch: int  # how many dims these are
    rows: int
    summed: int


@functools.lru_cache(1024)
def _pair_of(equation: str) -> _Pair | None:
    """Return the product that computes an equation; None if it takes diagonals, an ellipsis, or sums of one operand."""
    (a, b), output = _parse(equation, 2)
    if any(_ELLIPSIS in ls or len({*ls}) != len(ls) for ls in (a, b, output or ())):
        return None
    counts = [(label in a) + (label in b) for label in range(52)]
    place, _, out_dims, _ = _places(counts, 0, output)

    def dims(labels: Iterable[int]) -> list[int]:
        return sorted(labels, key=lambda label: place[label])

    batch = dims(ls for ls in a if ls in b and place[ls] < out_dims)
    summed = dims(ls for ls in a if ls in b and place[ls] >= out_dims)
    rows, columns = dims(set(a) - set(b)), dims(set(b) - set(a))
    if not summed or any(place[label] >= out_dims for label in (*rows, *columns)):
        return None
    swapped = bool(rows and columns) and place[rows[0]] > place[columns[-1]]  # as in `_pair`
    if swapped:
        a, b, rows, columns = b, a, columns, rows
    given = [*batch, *rows, *columns]
    wanted = sorted(given, key=lambda label: place[label])
    return _Pair(
        swapped,
        tuple([a.index(label) for label in (*batch, *rows, *summed)]),
        tuple([b.index(label) for label in (*batch, *summed, *columns)]),
        tuple([given.index(label) for label in wanted]),
        len(batch),
        len(rows),
        len(summed),
    )


def _product(operands: Sequence[Tensor], equation: str) -> Tensor | None:
    """Do what `_einsum` does, with fewer views, for an equation that is one product of operands without dims of size 1.

    None for any other.
    """
    if not (is_tensor(operands[0]) and is_tensor(operands[1])):
        return None
    pair = _pair_of(equation)
    if pair is None:
        return None
    a, b = reversed(operands) if pair.swapped else operands
    if a.ndim != len(pair.of_a) or b.ndim != len(pair.of_b) or 1 in a.shape or 1 in b.shape:
        return None
    batch, rows, summed = pair.batch, pair.rows, pair.summed
    left, right = [a.shape[d] for d in pair.of_a], [b.shape[d] for d in pair.of_b]
    if left[:batch] != right[:batch] or left[batch + rows :] != right[batch : batch + summed]:
        return None
    nb, ns = prod(left[:batch]), prod(left[batch + rows :])
    shape = [*left[: batch + rows], *right[batch + summed :]]
    x = _as(a, pair.of_a, (nb, prod(left[batch : batch + rows]), ns))
    y = _as(b, pair.of_b, (nb, ns, prod(right[batch + summed :])))
    out = _as(bmm(x, y).view(shape), pair.of_out, None)
    return out.view(out.shape) if out.requires_grad else out  # for the node: torch's last one


def _as(x: Tensor, order: tuple[int, ...], shape: tuple[int, ...] | None) -> Tensor:
    if order != tuple(range(len(order))):
        x = x.permute(order)
    return x if shape is None or x.shape == shape else x.reshape(shape)


def _sizes(operands: Sequence[Tensor], labels: list[list[int]]) -> tuple[list[int], int]:
    """Count the uses of every label and the most dims an ellipsis covers, checking ranks."""
    counts, covered = [0] * 52, 0
    for i, (x, ls) in enumerate(zip(operands, labels, strict=True)):
        n = len(ls)
        if _ELLIPSIS in ls:
            n -= 1
            if n > x.ndim:
                raise RuntimeError(
                    f"einsum(): the number of subscripts in the equation ({n}) is more than the number of dimensions ({x.ndim}) for operand {i}"
                )
            covered = max(covered, x.ndim - n)
        elif n != x.ndim:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({n}) does not match the number of dimensions ({x.ndim}) for operand {i} "
                "and no ellipsis was given"
            )
        for label in ls:
            if label != _ELLIPSIS:
                counts[label] += 1
    return counts, covered


def _places(
    counts: list[int], covered: int, output: list[int] | None
) -> tuple[list[int], int, int, int]:
    """Number the dims of the space that all operands share: the output's first, then the summed ones.

    Returns the place of each label, the ellipsis's place, the number of output dims, and that of all dims.
    """
    place, at, ellipsis = [-1] * 52, 0, 0
    if output is None:
        at = covered
        for label in range(52):
            if counts[label] == 1:
                place[label] = at
                at += 1
        out_dims = at
    else:
        seen = False
        for label in output:
            if label == _ELLIPSIS:
                ellipsis, seen = at, True
                at += covered
                continue
            if place[label] != -1:
                raise RuntimeError(
                    f"einsum(): output subscript {_letter(label)} appears more than once in the output"
                )
            if not counts[label]:
                raise RuntimeError(
                    f"einsum(): output subscript {_letter(label)} does not appear in the equation for any input operand"
                )
            place[label] = at
            at += 1
        out_dims = at
        if not seen:
            ellipsis = at
            at += covered
    for label in range(52):
        if counts[label] and place[label] == -1:
            place[label] = at
            at += 1
    return place, ellipsis, out_dims, at


def _einsum(
    operands: Sequence[Tensor], labels: list[list[int]], output: list[int] | None
) -> Tensor:
    for x in operands:
        if not is_tensor(x):
            raise TypeError(
                f"einsum(): argument 'operands' (position 2) must be tuple of Tensors, not {type(x).__name__}"
            )
    counts, covered = _sizes(operands, labels)
    place, ellipsis, out_dims, total = _places(counts, covered, output)
    sizes, held = [1] * total, [0] * total
    ready = []
    for i, (x, ls) in enumerate(zip(operands, labels, strict=True)):
        order, where, at = [-1] * total, [-1] * 52, 0
        missing = covered - (x.ndim - len(ls) + 1)
        for label in ls:
            if label == _ELLIPSIS:
                for _ in range(missing):
                    x = x.unsqueeze(at)
                for k in range(covered):
                    order[ellipsis + k] = at
                    at += 1
            elif where[label] != -1:
                dim = where[label]
                if x.shape[dim] != x.shape[at]:
                    raise RuntimeError(
                        f"einsum(): subscript {_letter(label)} is repeated for operand {i} but the sizes don't match, {x.shape[at]} != {x.shape[dim]}"
                    )
                x = x.diagonal(0, dim, at).movedim(-1, dim)
            else:
                where[label] = at
                order[place[label]] = at
                at += 1
        for index, p in enumerate(order):
            if p == -1:
                x = x.unsqueeze(-1)
                order[index] = at
                at += 1
        x = x.permute(order)
        for dim, n in enumerate(x.shape):
            if n != 1:
                if sizes[dim] not in (1, n):
                    name = next(
                        (_letter(label) for label in range(52) if place[label] == dim), "..."
                    )
                    raise RuntimeError(
                        f"einsum(): subscript {name} has size {n} for operand {i} which does not broadcast with previously seen size {sizes[dim]}"
                    )
                sizes[dim] = n
                held[dim] += 1
        ready.append(x)
    return _contract(ready, out_dims, total, held)


def _contract(ready: list[Tensor], out_dims: int, total: int, held: list[int]) -> Tensor:
    several = len(ready) > 1
    a = ready[0]
    for b in ready[1:]:
        both: list[int] = []
        only_a: list[int] = []
        only_b: list[int] = []
        of_a, of_b = tuple(a.shape), tuple(b.shape)
        for dim in range(out_dims, total):
            sa, sb = of_a[dim] != 1, of_b[dim] != 1
            if sa and sb:
                held[dim] -= 1
                if held[dim] == 1:
                    both.append(dim)
                    held[dim] = 0
            elif held[dim] == 1 and (sa or sb):
                (only_a if sa else only_b).append(dim)
                held[dim] = 0
        if only_a:
            a = a.sum(tuple(only_a), keepdim=True)
        if only_b:
            b = b.sum(tuple(only_b), keepdim=True)
        a = _pair(a, b, both) if both else a * b
    if total > out_dims:
        a = a.view(tuple(a.shape[:out_dims])) if several else a.sum(tuple(range(out_dims, total)))
    return a


def _pair(a: Tensor, b: Tensor, summed: list[int]) -> Tensor:
    """Return the sum over the dims `summed` of the product of two operands of one rank, as one batched matrix product.

    Dims of size 1 in one operand broadcast. Summed dims are kept with size 1.
    """
    both: list[int] = []
    left: list[int] = []
    right: list[int] = []
    of_a, of_b = tuple(a.shape), tuple(b.shape)
    for dim, (m, n) in enumerate(zip(of_a, of_b, strict=True)):
        if dim not in summed:
            (right if m == 1 else left if n == 1 else both).append(dim)
    if left and right and left[0] > right[-1]:
        return _pair(b, a, summed)  # so that the result's dims lie in memory in their own order
    shape = (
        *[of_a[d] for d in both],
        *[of_a[d] for d in left],
        *[1] * len(summed),
        *[of_b[d] for d in right],
    )
    nb, nl = prod([of_a[d] for d in both]), prod([of_a[d] for d in left])
    ns, nr = prod([of_a[d] for d in summed]), prod([of_b[d] for d in right])
    order = [*both, *left, *summed, *right]
    inverse = [0] * len(order)
    for i, d in enumerate(order):
        inverse[d] = i
    a = a.permute(order).reshape(nb, nl, ns)
    b = b.permute((*both, *summed, *right, *left)).reshape(nb, ns, nr)
    return bmm(a, b).view(shape).permute(inverse)
