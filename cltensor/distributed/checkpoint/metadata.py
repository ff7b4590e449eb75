"""What a checkpoint holds, by the names of its entries, in torch's classes: they are pickled into the folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...dtypes import dtype, float32
from ...memory_format import (
    channels_last,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from ...size import Size
from ...tensor import Tensor


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: its offsets in the tensor and its sizes along all dims."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """How a memory format is written."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(
    zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format), strict=True)
)


@dataclass
class TensorProperties:
    """What a tensor is, besides its values."""

    dtype: dtype = float32
    layout: layout = strided
    requires_grad: bool = False
    memory_format: memory_format = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        encoded = next(code for code, kind in _FORMATS.items() if kind is self.memory_format)
        return self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        self.memory_format = _FORMATS[encoded]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Return the properties of a tensor."""
        return TensorProperties(tensor.dtype, tensor.layout, bool(tensor.requires_grad))


@dataclass
class TensorStorageMetadata:
    """A tensor of a checkpoint, which may lie there in parts."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object of a checkpoint that is no tensor."""


@dataclass
class StorageMeta:
    """Where a checkpoint is, and the calls that wrote and read it."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The entries of a checkpoint by their names; the ways to them in the nested state, and their places in files."""

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """An entry's name and, for a part of a tensor, its offset and its place among the parts, which does not count in comparisons."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)
