"""Where the entries of a sparse tensor are: coordinates, and what follows from them alone.

A `Pattern` is shared by all tensors with entries in the same places (a tensor, its gradient, twice the tensor), so that sorting
is done once for all of them. What is derived from the indices is kept until they are written to. Knows no values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import creation, dtypes
from ..autograd.mode import unrecorded
from ..codegen.order import places
from ..ops import core
from ..ops.row import FUNCTIONS as F

Tensor = Any


class Merge:
    """A pattern coalesced, each place once and in order, and how its entries map there.

    `order` sorts the entries by place, `starts` says where each place begins among the sorted ones; both are None where
    every entry stays as it is.
    """

    def __init__(self, pattern: Pattern, order: Tensor, starts: Tensor) -> None:
        self.pattern, self.order, self.starts = pattern, order, starts
        self._group: Tensor = None

    @property
    def first(self) -> Tensor | None:
        """The number of one entry of each place; None where every entry stays as it is."""
        if self.order is None:
            return None
        with unrecorded():
            return self.order.index_select(0, self.starts)

    @property
    def group(self) -> Tensor | None:
        """The number of each entry's place; None where every entry stays as it is."""
        if self._group is None and self.order is not None:
            with unrecorded():
                places = creation.arange(self.pattern.count, device=self.order.device)
                count = self.order.shape[0]
                lengths = F["cat"]([self.starts[1:], places.new_full((1,), count)]) - self.starts
                sorted_group = F["repeat_interleave"](places, lengths, output_size=count)
                self._group = F["empty_like"](sorted_group).index_copy_(0, self.order, sorted_group)
        return self._group


class Lines(NamedTuple):
    """A matrix's entries by rows: where each row begins among them (`pointer`), and the column of each (`other`); or
    the reverse, by columns.

    `order`: the entries' numbers in the pattern, None if they are in the pattern's order.
    """

    pointer: Tensor
    other: Tensor
    order: Tensor | None


class Pattern:
    """Coordinates `indices` (sparse dims, entries) within sizes; for a compressed matrix (`pointer`, `plain`, `along`)
    instead.

    coalesced: each place occurs once, and the entries are in order. checked: all coordinates are known to be within the
    sizes. compressed: where each row (`along` 0) or column (1) begins among the entries, and each entry's coordinate in
    the other dim.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        indices: Tensor | None,
        *,
        coalesced: bool = False,
        checked: bool = False,
        compressed: tuple[Tensor, Tensor, int] | None = None,
    ) -> None:
        self.sizes, self._indices = tuple(int(n) for n in sizes), indices
        self.compressed = compressed
        self.coalesced = coalesced or (compressed is None and self.count < 2)
        self._checked = checked
        self._kept: dict[str, Any] = {}
        self._version = -1

    @property
    def count(self) -> int:
        """Number of entries."""
        if self.compressed is not None:
            return self.compressed[1].shape[-1]
        assert self._indices is not None
        return self._indices.shape[1]

    @property
    def indices(self) -> Tensor:
        """Coordinates (sparse dims, entries), int64."""
        if self._indices is None:
            assert self.compressed is not None
            pointer, plain, along = self.compressed
            with unrecorded():
                lengths = pointer[1:] - pointer[:-1]
                lines = creation.arange(lengths.shape[0], device=plain.device)
                lines = F["repeat_interleave"](lines, lengths.long(), output_size=plain.shape[0])
                pair = [lines, plain.long()]
                self._indices = F["stack"](pair if along == 0 else pair[::-1])
        return self._indices

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        version = self.indices._vc.value
        if version != self._version:
            self._kept.clear()
            self._version = version
        found = self._kept.get(name)
        if found is None:
            with unrecorded():
                found = self._kept[name] = make()
        return found

    # ---- checks

    def check(self) -> None:
        """Raise RuntimeError in torch's words for coordinates outside the sizes."""
        if self._checked or not self.count:
            return
        if self.indices.shape[0]:
            with unrecorded():
                least, most = F["stack"]([self.indices.amin(1), self.indices.amax(1)]).tolist()
            for dim, (low, high, size) in enumerate(zip(least, most, self.sizes, strict=True)):
                if low < 0:
                    raise RuntimeError(f"found negative index {low} for dim {dim}")
                if high >= size:
                    raise RuntimeError(
                        f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {high}"
                    )
        self._checked = True

    # ---- what follows

    @property
    def keys(self) -> Tensor:
        """Each entry's linear (row-major) index over the sparse dims."""
        return self._keep("keys", self._make_keys)

    def _make_keys(self) -> Tensor:
        indices, sizes = self.indices, self.sizes
        if not sizes:
            return indices.new_zeros(self.count)
        if not self.count or (self._checked and len(sizes) == 1):
            return indices.reshape(len(sizes), self.count)[0].contiguous()
        operand = core.kernel_operand(indices)
        keys = places.numbers(operand.buffer.backend, operand, sizes)
        if keys is None:
            self.check()
        assert keys is not None
        self._checked = True
        return core.result(keys, indices.device)

    @property
    def merge(self) -> Merge:
        """How entries coalesce."""
        if self.coalesced:
            return Merge(self, None, None)
        return self._keep("merge", self._make_merge)

    def _make_merge(self) -> Merge:
        count = self.count
        if count < 2:
            self.check()
            return Merge(
                Pattern(self.sizes, self.indices, coalesced=True, checked=True), None, None
            )
        keys, order = F["sort"](self.keys, stable=True)
        backend, sorted_keys = keys._storage.backend, core.kernel_operand(keys)
        starts, indices = places.merged(backend, sorted_keys, self.sizes or (1,))
        merge = Merge(self, order, core.result(starts, keys.device))
        made = core.result(indices, keys.device)
        if not self.sizes:
            made = made[:0]
        merge.pattern = Pattern(self.sizes, made, coalesced=True, checked=True)
        return merge

    @property
    def rows(self) -> Lines:
        """The entries of a matrix by rows, within a row by ascending columns."""
        return self._keep("rows", lambda: self._lines(0))

    @property
    def columns(self) -> Lines:
        """The entries of a matrix by columns, within a column by ascending rows."""
        return self._keep("columns", lambda: self._lines(1))

    def _lines(self, along: int) -> Lines:
        self.check()
        if self.compressed is not None and self.compressed[2] == along:
            pointer, plain, _ = self.compressed
            return Lines(pointer.long().contiguous(), plain.long().contiguous(), None)
        order = self.merge.order  # by rows, and by columns within
        indices = self.indices if order is None else self.indices.index_select(1, order)
        line, other = indices[along], indices[1 - along]
        if along == 1:
            line, turned = F["sort"](line, stable=True)
            other = other.index_select(0, turned)
            order = turned if order is None else order.index_select(0, turned)
        ends = creation.arange(self.sizes[along] + 1, device=line.device)
        return Lines(F["searchsorted"](line.contiguous(), ends), other.contiguous(), order)

    # ---- other patterns

    def find(self, wanted: Pattern) -> tuple[Tensor, Tensor]:
        """Return, for each entry of `wanted`, whether this coalesced pattern has an entry in that place, and its number
        (0 where not).
        """
        keys, sought = self.keys, wanted.keys
        with unrecorded():
            if not self.count:
                return sought.new_zeros(sought.shape, dtype=dtypes.bool), sought.new_zeros(
                    sought.shape
                )
            at = F["searchsorted"](keys, sought).clamp(max=self.count - 1)
            found = keys.index_select(0, at) == sought
            return found, at * found

    def permuted(self, order: Sequence[int]) -> Pattern:
        """The same entries with the sparse dims in another order."""
        sizes = [self.sizes[d] for d in order]
        if self.compressed is not None and list(order) == [1, 0]:
            pointer, plain, along = self.compressed
            return Pattern(
                sizes, None, checked=self._checked, compressed=(pointer, plain, 1 - along)
            )
        with unrecorded():
            indices = F["stack"]([self.indices[d] for d in order])
        made = Pattern(sizes, indices, checked=self._checked)
        made.coalesced = self.coalesced and (not self.count or list(order) == sorted(order))
        return made

    def compress(self, along: int) -> tuple[Pattern, Tensor | None]:
        """Return the pattern, coalesced, compressed by rows (`along` 0) or columns (1), and the order its entries take,
        None if unchanged.
        """
        lines = self.rows if along == 0 else self.columns
        made = Pattern(
            self.sizes, None, checked=True, compressed=(lines.pointer, lines.other, along)
        )
        return made, lines.order

    def to(self, device: Any) -> Pattern:
        """The pattern on another device."""
        if self.compressed is not None:
            pointer, plain, along = self.compressed
            moved = (pointer.to(device), plain.to(device), along)
            return Pattern(self.sizes, None, checked=self._checked, compressed=moved)
        return Pattern(
            self.sizes, self.indices.to(device), coalesced=self.coalesced, checked=self._checked
        )

    def clone(self) -> Pattern:
        """Return a pattern with copies of the index tensors."""
        if self.compressed is not None:
            pointer, plain, along = self.compressed
            copied = (pointer.clone(), plain.clone(), along)
            return Pattern(self.sizes, None, checked=self._checked, compressed=copied)
        made = Pattern(self.sizes, self.indices.clone(), checked=self._checked)
        made.coalesced = self.coalesced
        return made


def empty_pattern(sizes: Sequence[int], device: Any) -> Pattern:
    """A pattern without entries."""
    indices = creation.zeros((len(sizes), 0), dtype=dtypes.int64, device=device)
    return Pattern(sizes, indices, coalesced=True, checked=True)
