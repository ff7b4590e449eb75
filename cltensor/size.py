"""`Size`, the tuple that a tensor's shape is. Must not know of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from typing import Any, SupportsIndex

from .symbols import is_symbol

_item = tuple.__getitem__


class SymInt:
    """A size that is no number: that of a ragged dimension (nested/ragged.py)."""

    __slots__ = ()
    __module__ = "torch"


class Size(tuple[int, ...]):
    """A tuple of sizes.

    Slices, sums and multiples stay sizes; TypeError for items that are neither integers nor a `SymInt`.
    """

    __slots__ = ()
    __module__ = "torch"

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        if type(sizes) is cls:
            return sizes
        self = tuple.__new__(cls, sizes)
        for size in self:
            if type(size) is not int and not is_symbol(size):
                return _converted(self)
        return self

    def numel(self) -> int:
        """Return the number of elements of this shape."""
        return prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        found = _item(self, index)
        return tuple.__new__(Size, found) if found.__class__ is tuple else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            if hasattr(other, "__radd__"):
                return NotImplemented
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Any:
        return tuple.__new__(Size, tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (tuple(self),)


sized: Callable[[Iterable[int]], Size] = partial(tuple.__new__, Size)  # for ints: checks nothing


def _converted(items: Iterable[Any]) -> Size:
    sizes: list[Any] = []
    for i, item in enumerate(items):
        if isinstance(item, SymInt):
            sizes.append(item)
            continue
        if not hasattr(item, "__index__"):
            raise TypeError(
                f"torch.Size() takes an iterable of 'int' (item {i} is '{type(item).__name__}')"
            )
        sizes.append(item if is_symbol(item) else item.__index__())
    return tuple.__new__(Size, sizes)


def _restore(sizes: tuple[int, ...]) -> Size:
    return Size(sizes)
