"""`distributed.checkpoint`: states written to and read from a folder, by one process or by all of a group.

The folder's format is torch's own: a file of tensors and objects from each process, and one file that says where each is.
"""

from __future__ import annotations

from ...reexport import expose, lend
from .. import HuggingFaceStorageReader, HuggingFaceStorageWriter
from .api import CheckpointException
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from .state_dict_loader import load
from .state_dict_saver import save

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "Metadata",
    "TensorStorageMetadata",
    "load",
    "save",
]

_STATES = [
    f"{do}_{what}state_dict" for do in ("get", "set") for what in ("", "model_", "optimizer_")
]
expose(globals(), {"hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter"})
lend(
    globals(),
    {
        "state_dict": ("distributed.state_dict", " ".join(["StateDictOptions", *_STATES])),
        "stateful": ("distributed.state_dict", "Stateful"),
    },
)
