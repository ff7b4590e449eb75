"""Sequences of different lengths: padded tensors, `PackedSequence`, and conversions between these.

Lengths and batch sizes are integers on the host; a conversion is one gather or scatter of rows. Knows no recurrent
networks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ... import creation, dtypes, layouts
from ...memory_format import contiguous_format
from ...ops.row import FUNCTIONS
from ...tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_SORTED_TEXT = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` "
    "to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability."
)
_MADE_BY_HAND_TEXT = (
    "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. They should be "
    "instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn. "
    "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
)


class PackedSequence_(NamedTuple):
    """The fields of a `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def _casting(dtype_name: str) -> Any:
    def cast(self: Any) -> Any:
        return self.to(dtype=getattr(dtypes, dtype_name))

    cast.__doc__ = f"Convert the data to {dtype_name}."
    return cast


class PackedSequence(PackedSequence_):
    """Sequences of different lengths, step by step: `data` (rows, *), and the number of sequences in each step.

    `batch_sizes` is an int64 tensor on the cpu. Where the sequences were sorted, longest first, `sorted_indices` is the
    order and `unsorted_indices` its inverse. Made by the functions of this module.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Any:
        """Make a PackedSequence of its fields, or of the pair (data, batch_sizes)."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, list | tuple) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(_MADE_BY_HAND_TEXT)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert dtype or device of the data as `Tensor.to` does; indices follow to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if x is None else x.to(data.device)
            for x in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """Move to the cpu device."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Move to the device that stands for "cuda"."""
        return self.to(*args, **kwargs) if args or "device" in kwargs else self.to("cuda", **kwargs)

    def pin_memory(self) -> Any:
        """Return the same sequence; kept for programs that pin."""
        return self

    double = _casting("float64")
    float = _casting("float32")
    half = _casting("float16")
    long = _casting("int64")
    int = _casting("int32")
    short = _casting("int16")
    char = _casting("int8")
    byte = _casting("uint8")

    @property
    def is_cuda(self) -> bool:
        """Tell whether the data is on a cuda device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Tell whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a 1-D permutation (None of None)."""
    if permutation is None:
        return None
    order = creation.arange(permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return creation.empty_like(order).scatter_(0, permutation, order)


# ------------------------------------------------------------------------------------------- rows


def _index(places: Sequence[int], x: Tensor) -> Tensor:
    return creation.tensor(places, dtype=dtypes.int64, device=x.device)


def _pick(x: Tensor, places: list[int]) -> Tensor:
    """Return the rows at the given places; the tensor itself if these are all its rows in order."""
    if places == list(range(x.shape[0])):
        return x
    return x.index_select(0, _index(places, x))


def _spread(rows: Tensor, places: list[int], total: int, value: float) -> Tensor:
    """Put rows at places of a new tensor of `total` rows that holds `value` elsewhere."""
    if places == list(range(total)):
        return rows
    filled = rows.new_full((total, *rows.shape[1:]), value)
    return filled.index_copy(0, _index(places, rows), rows)


def _step_places(sizes: Sequence[int], batch: int) -> list[int]:
    return [t * batch + b for t, size in enumerate(sizes) for b in range(size)]


# ------------------------------------------------------------------------------------------- packing


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences (T, B, *), or (B, T, *) with `batch_first`, of the given lengths (a list or a cpu tensor).

    They must come longest first unless `enforce_sorted` is False. RuntimeError in torch's words for bad lengths.
    """
    if not isinstance(lengths, Tensor):
        lengths = creation.as_tensor(lengths, dtype=dtypes.int64, device="cpu")
    elif lengths.dtype is not dtypes.int64:
        lengths = lengths.to(dtypes.int64)
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, sizes = _packed(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, None)


def _packed(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D {lengths.device.type} {lengths.dtype.scalar_name} tensor"
        )
    x = input.transpose(0, 1) if batch_first else input
    most, batch = x.size(0), x.size(1)
    counts = lengths.tolist()
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(_SORTED_TEXT)
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if counts[0] > most:
        raise RuntimeError(f"Expected lengths of at most {most}, but got {counts[0]}")
    sizes = [sum(n > t for n in counts) for t in range(counts[0])]
    data = _pick(x.flatten(0, 1), _step_places(sizes, batch))
    return data, creation.tensor(sizes, dtype=dtypes.int64, device="cpu")


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Undo `pack_padded_sequence`: return the padded sequences in their original order, and their lengths.

    They are padded to the longest, or to `total_length`.
    """
    sizes = sequence.batch_sizes.tolist()
    total = len(sizes)
    if total_length is not None:
        if total_length < total:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {total}"
            )
        total = total_length
    batch = sizes[0]
    rows = _spread(sequence.data, _step_places(sizes, batch), total * batch, padding_value)
    padded = rows.unflatten(0, (total, batch))
    if batch_first:
        padded = padded.transpose(0, 1)
    counts = [sum(size > b for size in sizes) for b in range(batch)]
    lengths = creation.tensor(counts, dtype=dtypes.int64, device="cpu")
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences (L, *) of different lengths into (T, B, *), or (B, T, *), padded on one side.

    The result has the first sequence's dtype.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    items = tuple(sequences)
    if not items:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    first, lengths = items[0], [s.size(0) for s in items]
    for s in items:
        layouts.broadcast_shapes(s.shape[1:], first.shape[1:])
    rows = [
        s.to(first.dtype).expand(n, *first.shape[1:]) for s, n in zip(items, lengths, strict=True)
    ]
    batch, most = len(items), max(lengths)
    outer, inner = (most, 1) if batch_first else (1, batch)
    places = []
    for b, n in enumerate(lengths):
        begin = most - n if padding_side == "left" else 0
        places += [b * outer + (begin + t) * inner for t in range(n)]
    joined = rows[0] if batch == 1 else FUNCTIONS["cat"](rows)
    out = _spread(joined, places, batch * most, padding_value)
    return out.unflatten(0, (batch, most) if batch_first else (most, batch))


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Return a list of copies of padded sequences, cut to the given lengths."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    rows = zip(x.unbind(0), lengths.tolist(), strict=True)
    return [row[:n].clone(memory_format=contiguous_format) for row, n in rows]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L, *), longest first unless `enforce_sorted` is False."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the list of sequences that `pack_sequence` was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
