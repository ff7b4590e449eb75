"""Settings of `torch.serialization` that programs make, and checks that they call before loading."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .inspection import LoadEndianness


class load:
    """What `load` does where its arguments say nothing."""

    mmap: bool = False
    mmap_flags: int | None = None if sys.platform == "win32" else 2  # MAP_PRIVATE
    endianness: LoadEndianness | None = None


class save:
    """Settings of `save`: whether archives need checksums, which are always written."""

    compute_crc32: bool = True


def get_crc32_options() -> bool:
    """Return what `set_crc32_options` was told."""
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Store whether archives need checksums; they are always written."""
    save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """Return what `set_default_mmap_options` was told."""
    return load.mmap_flags


class set_default_mmap_options:
    """Store flags of mmap, also for a block; files are always mapped read-only, where the flags mean the same."""

    def __init__(self, flags: int) -> None:
        if sys.platform == "win32":
            raise RuntimeError(
                "Changing the default mmap options is currently not supported for Windows"
            )
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before, load.mmap_flags = load.mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        load.mmap_flags = self._before


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool | None = True
) -> bool:
    """Tell whether a module's `__version__` is at least a version; what is no version is an error, or True."""
    try:
        parts = module.__version__.split(".")
        found = tuple(type(want)(part) for want, part in zip(req_version_tuple, parts))
        return found >= req_version_tuple
    except Exception as error:
        if error_if_malformed:
            raise RuntimeError(
                f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with tuple "
                f"{req_version_tuple}"
            ) from error
    return True
