"""Nested states as flat ones: entries by the keys on the way to them, joined by dots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...tensor import Tensor

Path = tuple[str | int, ...]


def _whole(value: Any) -> bool:
    """Return whether a value is one entry: lists are where neither they nor lists in them hold tensors or dicts."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return not any(isinstance(v, Tensor) or not _whole(v) for v in value)


def _walk(path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
    if _whole(value):
        yield path, value
        return
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in items:
        yield from _walk((*path, str(key) if isinstance(value, Mapping) else key), item)


def flattened(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return a state's entries by name, and the way to each; ValueError where two have the same name."""
    entries: dict[str, Any] = {}
    paths: dict[str, Path] = {}
    for path, value in _walk((), state):
        name = ".".join(map(str, path))
        if name in entries:
            raise ValueError(f"duplicated flatten key {name}")
        entries[name], paths[name] = value, path
    return entries, paths


def put(state: Any, path: Path, value: Any) -> None:
    """Replace the entry at the end of a path, whose keys are written as text where a dict has others."""
    for key in path[:-1]:
        state = state[_own(state, key)]
    state[_own(state, path[-1])] = value


def _own(state: Any, key: str | int) -> Any:
    if isinstance(state, Mapping) and key not in state:
        return next(own for own in state if str(own) == key)
    return key
