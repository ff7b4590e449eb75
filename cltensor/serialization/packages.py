"""Where storages are said to be in a file, and where they go from there: a table that programs may add devices of their own to.

Owns the table and its order. What reads and writes files asks it only once somebody has added to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import storages
from ..runtime import device
from ..storage import Storage
from ..storages import TypedStorage, UntypedStorage
from . import rebuild

__all__ = ["default_restore_location", "location_tag", "normalize_storage_type", "register_package"]

Memory = UntypedStorage | TypedStorage
Tagger = Callable[[Any], str | None]
Deserializer = Callable[[Any, str], Any]


def _tag(storage: Any) -> str | None:
    return str(storage.device)


def _restore(storage: Any, location: str) -> Any:
    try:
        place = rebuild.locate(location)
    except RuntimeError as error:
        if "tagged with" in str(error):  # a name of no device here
            return None
        raise
    return storage if storage.device == place else storage.to(device=place)


_package_registry: list[tuple[int, Tagger, Deserializer]] = [(10, _tag, _restore)]


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Add what names the place of a storage, and what brings a storage to a place; lower priorities are asked first.

    tagger: of a storage, returns the name of its place, or None. deserializer: of a storage and a name, returns the storage there, or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])
    rebuild.RESTORE = _restored
    rebuild.TAG = lambda storage, place: location_tag(UntypedStorage._over(storage, place))


def location_tag(storage: Memory) -> str:
    """Return the name a file has for the place of a storage. RuntimeError where nobody knows it."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_name(storage)}")


def normalize_storage_type(storage_type: type) -> Any:
    """Return the package's own class of the name that a storage's class has. AttributeError where there is none."""
    return getattr(storages, storage_type.__name__)


def default_restore_location(storage: Memory, location: str) -> Memory:
    """Return a storage at the place that a file names. RuntimeError where nobody knows it."""
    for _, _, restore in _package_registry:
        made = restore(storage, location)
        if made is not None:
            return made
    raise RuntimeError(
        f"don't know how to restore data location of {_name(storage)} (tagged with {location})"
    )


def _name(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def _restored(storage: Storage, place: device, location: str) -> Storage:
    return default_restore_location(UntypedStorage._over(storage, place), location)._storage
