"""Where the sequences of a jagged tensor are: offsets, lengths, and the size that stands for them.

Tensors of the same `Ragged` fit each other. Knows nothing of nested tensors.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any

from .. import creation, dtypes
from ..ops.row import FUNCTIONS
from ..ops.segments import Segments
from ..size import SymInt

_KNOWN: weakref.WeakValueDictionary[tuple[int, int], Ragged] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count(1)


class NestedInt(SymInt):
    """The size of a ragged dimension, or a multiple of it: equal to itself only, and not less than 2 in comparisons."""

    __slots__ = ("_number", "_times")

    def __init__(self, number: int, times: int = 1) -> None:
        self._number, self._times = number, times

    def __repr__(self) -> str:
        return f"{self._times}*j{self._number}" if self._times != 1 else f"j{self._number}"

    def __mul__(self, other: Any) -> NestedInt:
        if isinstance(other, NestedInt):
            raise ValueError("a ragged size is not multiplied by another")
        return NestedInt(self._number, self._times * other)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[int, int]:
        return self._number, self._times

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt):
            if self._number == other._number:
                return self._times >= other._times
        elif other <= 2:
            return True
        raise ValueError("nested int comparison is indeterminate")

    def __gt__(self, other: Any) -> bool:
        if not isinstance(other, NestedInt):
            return self >= other + 1
        return self >= other and self != other

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other


class Ragged:
    """Offsets [B + 1] of sequences along the ragged dimension of values, and their lengths [B] where there are gaps."""

    def __init__(
        self, offsets: Any, lengths: Any, longest: int | None, shortest: int | None
    ) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(next(_NUMBERS))
        self.known = longest, shortest  # what a program has said of the lengths

    @staticmethod
    def of(
        offsets: Any, lengths: Any = None, longest: int | None = None, shortest: int | None = None
    ) -> Ragged:
        """Return the one of these tensors: the same for the same objects."""
        key = id(offsets), id(lengths)
        found = _KNOWN.get(key)
        if found is None:
            found = _KNOWN[key] = Ragged(offsets, lengths, longest, shortest)
        return found

    @property
    def count(self) -> int:
        return self.offsets.shape[0] - 1

    @functools.cached_property
    def starts(self) -> list[int]:
        """Where sequences begin, as numbers."""
        return self.offsets.tolist()[:-1]

    @functools.cached_property
    def sizes(self) -> list[int]:
        """Their lengths, as numbers."""
        return (self.offsets.diff() if self.lengths is None else self.lengths).tolist()

    @property
    def longest(self) -> int:
        return max(self.sizes, default=0) if self.known[0] is None else self.known[0]

    @property
    def shortest(self) -> int:
        return min(self.sizes, default=0) if self.known[1] is None else self.known[1]

    @functools.cached_property
    def edges(self) -> Any:
        """The offsets as kernels of attention take them."""
        return self.offsets.to(dtypes.int32)

    @functools.cached_property
    def rows(self) -> Any:
        """The places of all elements along the ragged dimension, sequence after sequence."""
        starts = self.offsets[:-1]
        packed = self.packed
        return packed.inside + starts.index_select(0, packed.owners)

    @functools.cached_property
    def packed(self) -> Ragged:
        """The same sequences without gaps."""
        if self.lengths is None:
            return self
        ends = FUNCTIONS["cat"]([self.lengths.new_zeros(1), self.lengths.cumsum(0)])
        return Ragged.of(ends, None, self.longest, self.shortest)

    @functools.cached_property
    def owners(self) -> Any:
        """The number of the sequence that each element belongs to."""
        assert self.lengths is None
        numbers = creation.arange(self.count, device=self.offsets.device)
        return numbers.repeat_interleave(self.offsets.diff(), output_size=sum(self.sizes))

    @functools.cached_property
    def inside(self) -> Any:
        """The place of each element in its sequence."""
        places = creation.arange(sum(self.sizes), device=self.offsets.device)
        return places - self.offsets.index_select(0, self.owners)

    @functools.cached_property
    def padded(self) -> Any:
        """The place of each element in sequences padded to the length of the longest."""
        return self.inside + self.owners * self.longest

    def segments(self, total: int) -> Segments:
        """Return the sequences as segments of dim 0, of which there are `total` elements."""
        return Segments(self.offsets.detach(), 0, total)
