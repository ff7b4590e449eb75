"""`rearrange`: permute, split and join a tensor's dims by a pattern of names, "b (h w) c -> b c h w".

Owns the parsing of patterns; `reshape` and `permute` do the rest.
"""

from __future__ import annotations

import functools
import keyword
import warnings
from math import prod
from typing import NamedTuple

from .ops.row import FUNCTIONS
from .tensor import Tensor

_DOTS = "…"
Group = tuple[str, ...]


class DimensionBindError(Exception):
    """A tensor's size does not agree with a pattern, or cannot be inferred by it."""


class _Pattern(NamedTuple):
    """A pattern of `rearrange`, parsed."""

    # The names that make up each of the input's dims; () is a dim of size 1.
    left: tuple[Group, ...]
    right: tuple[Group, ...]  # the same for the result's dims
    names: frozenset[str]  # all names


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """Permute, split and join dims by name.

    pattern: names of dims left and right of "->"; names in parentheses form one dim, 1 and () are dims of size 1, and
    ... stands for all dims not named. axes_lengths: sizes of names that cannot be inferred. Several tensors are
    stacked along a new first dim. ValueError for a bad pattern, DimensionBindError for sizes that disagree with it.

    >>> import cltensor as torch
    >>> torch.func.rearrange(torch.arange(6).reshape(2, 3), "a b -> b a").shape
    torch.Size([3, 2])
    """
    if not isinstance(tensor, Tensor):
        tensor = FUNCTIONS["stack"](tensor)
    found = _read(pattern)
    left = [g for g in found.left if g != (_DOTS,)]
    dotted = len(left) < len(found.left)
    rest = tensor.ndim - len(left)
    if rest < 0 or (rest and not dotted):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor ({tensor.ndim})"
        )
    for size in axes_lengths.values():
        if not isinstance(size, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(size)}")
    unknown = {name for name in axes_lengths if name not in found.names}
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    others = tuple(f"{_DOTS}{i}" for i in range(rest))
    names: list[str] = []
    sizes: dict[str, int] = {}
    place = 0
    for group in found.left:
        if group == (_DOTS,):
            for name in others:
                sizes[name] = tensor.shape[place]
                place += 1
            names += others
            continue
        _bind(group, tensor.shape[place], axes_lengths, sizes)
        names += group
        place += 1
    out = tensor.reshape([sizes[n] for n in names])
    right = [_spread(g, others) for g in found.right]
    order = [names.index(n) for group in right for g in group for n in g]
    shape = [prod(sizes[n] for n in g) for group in right for g in group]
    return out.permute(order).reshape(shape)


def _spread(group: Group, others: tuple[str, ...]) -> list[Group]:
    """Return the dims of a group on the right: "..." makes one for each dim that it stands for, "(...)" only one."""
    if group == (_DOTS,):
        return [(n,) for n in others]
    return [tuple(m for n in group for m in (others if n in (_DOTS, f"({_DOTS}") else (n,)))]


def _bind(group: Group, size: int, given: dict[str, int], sizes: dict[str, int]) -> None:
    """Find the sizes of the names that form a dim of size `size`, and enter them into `sizes`."""
    known = prod(given[n] for n in group if n in given)
    open_ = [n for n in group if n not in given]
    if len(open_) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {open_[0]} and {open_[1]}"
        )
    if open_ and (not known or size % known):
        shown = tuple(given.get(n, "?") for n in group)
        raise DimensionBindError(
            f"inferred dimension does not evenly fit into larger dimension: {size} vs {shown}"
        )
    if not open_ and known != size:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({size} != {known}) when matching dimension pack {group}"
        )
    for n in group:
        sizes[n] = given[n] if n in given else size // known


# ------------------------------------------------------------------------------------------- patterns


@functools.lru_cache(256)
def _read(pattern: str) -> _Pattern:
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = _groups(sides[0]), _groups(sides[1])
    mine, theirs = ({n.lstrip("(") for g in side for n in g} for side in (left, right))
    if _DOTS in theirs - mine:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(f"({_DOTS}" in g for g in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    apart = (mine ^ theirs) - {_DOTS}
    if apart:
        raise ValueError(
            f"Identifiers only on one side of rearrange expression (should be on both): {apart}"
        )
    return _Pattern(tuple(left), tuple(right), frozenset(mine - {_DOTS}))


def _groups(text: str) -> list[Group]:
    """Return the groups of one side of a pattern. "..." becomes the name "…", in parentheses the name "(…"."""
    if "." in text:
        if text.count("...") != 1 or text.count(".") != 3:
            many = "; only one ellipsis for tensor " if "..." in text else ""
            raise ValueError(f"Expression may contain dots only inside ellipsis (...){many}")
        text = text.replace("...", f" {_DOTS} ")
    for sign in text:
        if not (sign in f"() {_DOTS}_" or sign.isalnum()):
            raise ValueError(f"Unknown character '{sign}'")
    found: list[Group] = []
    inner: list[str] | None = None
    seen: set[str] = set()
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            if inner is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            inner = []
        elif word == ")":
            if inner is None:
                raise ValueError("Brackets are not balanced")
            found.append(tuple(inner))
            inner = None
        elif word.isdecimal():
            if int(word) != 1:
                raise ValueError("rearrange only supports unnamed axes of size 1")
            if inner is None:
                found.append(())
        else:
            _check_name(word, seen)
            if inner is None:
                found.append((word,))
            else:
                inner.append(f"({word}" if word == _DOTS else word)
    if inner is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return found


def _check_name(word: str, seen: set[str]) -> None:
    if word in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
    seen.add(word)
    if word == _DOTS:
        return
    why = "" if word.isidentifier() else "not a valid python identifier"
    if word.startswith("_") or word.endswith("_"):
        why = "axis name should should not start or end with underscore"
    if why:
        raise ValueError(f"Invalid axis identifier: {word}\n{why}")
    if keyword.iskeyword(word):
        warnings.warn(
            f"It is discouraged to use axes names that are keywords: {word}",
            RuntimeWarning,
            stacklevel=5,
        )
