"""`load`: a state read from a folder into the tensors that are there."""

from __future__ import annotations

import os
from typing import Any

from ...autograd.mode import no_grad
from ...tensor import Tensor
from ..state_dict import Stateful
from .api import Members
from .filesystem import FileSystemReader
from .flat import flattened, put
from .metadata import BytesStorageMetadata, Metadata, MetadataIndex
from .state_dict_saver import place_of, states_of

__all__ = ["load"]


def _check(name: str, value: Any, metadata: Metadata) -> None:
    """Raise torch's error where the checkpoint lacks an entry, or has a tensor for another value or of another size."""
    entry = metadata.state_dict_metadata.get(name)
    if entry is None:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
    if isinstance(entry, BytesStorageMetadata):
        return
    if not isinstance(value, Tensor):
        raise ValueError(
            f"Invalid checkpoint metadata for {name}, expected BytesStorageMetadata but found {type(entry)}"
        )
    if value.shape != entry.size:
        raise ValueError(
            f"Size mismatch between saved {entry.size} and current: {value.size()} for {name}"
        )


def _read(reader: FileSystemReader, name: str, value: Any, metadata: Metadata) -> Any:
    """Return an entry: tensors are written into the one that is there, part by part."""
    entry = metadata.state_dict_metadata[name]
    places = metadata.storage_data
    if isinstance(entry, BytesStorageMetadata):
        return reader.read(places[MetadataIndex(name)])
    for chunk in entry.chunks:
        spans = zip(chunk.offsets, chunk.sizes, strict=True)
        part = value.detach()[tuple([slice(first, first + n) for first, n in spans])]
        part.copy_(reader.read(places[MetadataIndex(name, chunk.offsets)]))
    return value


@no_grad()
def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read the entries that `state_dict` has from the folder `checkpoint_id`, which torch may have written, too.

    Tensors are filled in place, whatever parts they were saved in; other values are replaced; an object with a
    `load_state_dict` method gets its state. In a group all processes call this. no_dist: this process loads by itself.
    CheckpointException, in all processes, where one fails: a RuntimeError where an entry is missing, a ValueError where
    it has another size.
    """
    members = Members(process_group, no_dist)
    reader: FileSystemReader = place_of(checkpoint_id, storage_reader, FileSystemReader, planner)
    states = states_of(state_dict)
    entries, paths = flattened(states)

    found: list[Metadata] = []

    def plan() -> None:
        found.append(reader.read_metadata())
        for name, value in entries.items():
            _check(name, value, found[0])

    def read() -> None:
        for name, value in entries.items():
            put(states, paths[name], _read(reader, name, value, found[0]))

    members.gather("plan", plan)
    members.gather("read", read)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]
