"""The registry of location tags: how a storage's device is named in a file, and how a tag is resolved. Programs may extend it.

Owns the registry and its order. `save` and `load` consult it only once a program has registered an entry.
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
        if "tagged with" in str(error):  # no device here has this tag
            return None
        raise
    return storage if storage.device == place else storage.to(device=place)


_package_registry: list[tuple[int, Tagger, Deserializer]] = [(10, _tag, _restore)]


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Register how storages are tagged with a location and restored from a tag; entries of lower priority are tried first.

    tagger: function of a storage that returns its tag, or None. deserializer: function of a storage and a tag that
    returns the storage at that location, or None.
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=lambda entry: entry[0])
    rebuild.RESTORE = _restored
    rebuild.TAG = lambda storage, place: location_tag(UntypedStorage._over(storage, place))


def location_tag(storage: Memory) -> str:
    """Return the location tag of a storage. RuntimeError if no registered tagger gives one."""
    for _, tagger, _ in _package_registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_name(storage)}")


def normalize_storage_type(storage_type: type) -> Any:
    """Return the storage class of this package with the same name. AttributeError if there is none."""
    return getattr(storages, storage_type.__name__)


def default_restore_location(storage: Memory, location: str) -> Memory:
    """Return the storage at the location that a tag names. RuntimeError if no registered deserializer knows the tag."""
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
