"""`save`: a state written to a folder by one process or all of a group."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...size import Size
from ...tensor import Tensor
from ..state_dict import Stateful
from .api import Members
from .filesystem import FileSystemWriter
from .flat import flattened
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["save"]

Entry = TensorStorageMetadata | BytesStorageMetadata


def states_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state in which objects that have a state are replaced by that."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def place_of(checkpoint_id: Any, given: Any, kind: type, planner: Any) -> Any:
    """Return the writer or reader that was given, or one of the folder; RuntimeError where neither was."""
    if planner is not None:
        raise NotImplementedError("planners: tensors are saved and loaded whole, none is needed")
    if given is not None:
        return given
    if not checkpoint_id:
        raise RuntimeError(
            "`checkpoint_id` must be specified if storage_reader/storage_writer is None."
        )
    return kind(checkpoint_id)


def _described(value: Any) -> Entry:
    if not isinstance(value, Tensor):
        return BytesStorageMetadata()
    size = Size(value.shape)
    whole = ChunkStorageMetadata(Size([0] * len(size)), size)
    return TensorStorageMetadata(TensorProperties.create_from_tensor(value), size, [whole])


def _alone(value: Any) -> Any:
    """Return a tensor on the cpu, with memory of its own that is no larger than it; other values as they are."""
    if not isinstance(value, Tensor):
        return value
    value = value.detach().cpu()
    whole = value.untyped_storage().nbytes() == value.numel() * value.element_size()
    return value if whole else value.clone()


def _index(name: str, entry: Entry) -> MetadataIndex:
    if isinstance(entry, BytesStorageMetadata):
        return MetadataIndex(name)
    return MetadataIndex(name, entry.chunks[0].offsets, 0)


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Write a state into the folder `checkpoint_id`, in torch's format; return what it holds.

    state_dict: nested dicts and lists of tensors and other values, and objects with a `state_dict` method. In a group all
    processes call this: of entries with the same name, the process of the lowest rank writes its own. no_dist: this
    process saves by itself. CheckpointException, in all processes, where one fails.
    """
    members = Members(process_group, no_dist)
    writer: FileSystemWriter = place_of(checkpoint_id, storage_writer, FileSystemWriter, planner)

    def plan() -> tuple[dict[str, Entry], dict[str, Any]]:
        return {name: _described(value) for name, value in entries.items()}, paths

    entries, paths = flattened(states_of(state_dict))
    plans = members.gather("plan", plan)
    owners: dict[str, int] = {}
    for rank, (described, _) in enumerate(plans):
        for name in described:
            owners.setdefault(name, rank)

    def write() -> dict[str, Any]:
        mine = {name: v for name, v in entries.items() if owners[name] == members.rank}
        return writer.write(members.rank, {name: _alone(v) for name, v in mine.items()})

    places = members.gather("write", write)
    kept = {name: plans[rank][0][name] for name, rank in owners.items()}
    made = Metadata(
        kept,
        {name: plans[rank][1][name] for name, rank in owners.items()},
        {_index(name, kept[name]): places[rank][name] for name, rank in owners.items()},
        StorageMeta(writer.path),
    )
    members.gather("metadata", lambda: None if members.rank else writer.write_metadata(made))
    return made
