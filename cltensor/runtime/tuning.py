"""Measured facts about a device: sizes in its schedules that beat the defaults, and its peak rates.

A table is a JSON file that `python -m cltensor.tune` writes, one per device and driver, in CLTENSOR_TUNING or the
user's data folder; tables for known devices come with the package. A table has only sizes that leave every result
bit-identical: how work is divided and in what order independent elements are visited, never the order of a sum. Code
reads `backend.tuned.get("family.name", default)` and puts the value into its kernel's source or into the launch, so
that a kernel built for another value is not mistaken for it in a cache.

Owns the names, the files and their checks. Must not know what a size does, nor how it is measured.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cltensor.config import CONFIG
from cltensor.errors import debug_line

from .folders import write_whole

if TYPE_CHECKING:
    from .platforms import DeviceInfo

FORMAT = 1
SHIPPED = Path(__file__).resolve().parent.parent / "tuning"
# Every size that may be tuned, with the range of sensible values; tables with values outside are ignored.
LIMITS: dict[str, tuple[int, int]] = {
    "copy.tile": (8, 16),  # side of the tile of a transposed copy on a GPU
    "copy.vectors": (1, 64),  # on a CPU: cache lines of a source row in the tile of such a copy
    "gemm.step": (4, 32),  # K per step in a GPU work-group's local memory; also for convolutions
    "move.grain": (256, 1 << 24),  # elements worth a work-item, where elements only move
    "multi.grain": (256, 1 << 24),  # elements worth a work-item, in optimisers' steps
    "pointwise.grain": (4096, 1 << 24),  # the same for a fused chain, divided by its cost
    "pointwise.group": (16, 1024),  # work-items per work-group on a GPU
    "pointwise.items": (1, 64),  # work-items per compute unit, at most
    "rows.grain": (256, 1 << 24),  # elements worth a work-item, where each row is reduced by itself
}
PEAKS = ("copy", "flops")


class Table(dict[str, int]):
    """Sizes measured to beat the defaults, and the device's `peaks` (copy in bytes/s, flops in 1/s; 0: unknown)."""

    def __init__(
        self, values: dict[str, int] | None = None, peaks: dict[str, float] | None = None
    ) -> None:
        super().__init__(values or {})
        self.peaks = dict.fromkeys(PEAKS, 0.0) | (peaks or {})


def identity(info: DeviceInfo) -> dict[str, str]:
    """Return the identity of a table's device; a device with another driver version is another device."""
    names = ("platform", "platform_version", "name", "device_version", "driver_version")
    return {name: getattr(info, name) for name in names}


def folder() -> Path | None:
    """Return the folder of the user's tables; None when CLTENSOR_TUNING=0 turns off all tables."""
    if CONFIG.tuning == "0":
        return None
    if CONFIG.tuning is not None:
        return Path(CONFIG.tuning).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("cltensor")) / "tuning"


def path(info: DeviceInfo) -> Path | None:
    """Return the file of a device's table, whether or not it exists."""
    where = folder()
    if where is None:
        return None
    digest = hashlib.sha256(json.dumps(identity(info)).encode()).hexdigest()[:12]
    return where / f"{re.sub(r'[^A-Za-z0-9]+', '-', info.name)[:40].strip('-')}-{digest}.json"


def load(info: DeviceInfo) -> Table:
    """Return the device's table: the package's values, overridden by what the user measured."""
    own = path(info)
    if own is None:
        return Table()
    found = Table()
    with contextlib.suppress(OSError):
        for shipped in sorted(SHIPPED.glob("*.json")):
            _merge(found, shipped, info)
    _merge(found, own, info)
    return found


def _merge(into: Table, file: Path, info: DeviceInfo) -> None:
    try:
        data = json.loads(file.read_text())
        about = data["device"]
        if data["format"] != FORMAT or not about:
            raise ValueError("made by another version")
        have = identity(info) | {"kind": info.kind}
        if any(have.get(key) != value for key, value in about.items()):
            if file.parent != SHIPPED:
                raise ValueError("made for another device or driver")
            return
        values = {key: _checked(key, value) for key, value in data["values"].items()}
        peaks = {key: float(data.get("peaks", {}).get(key, 0)) for key in PEAKS}
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        debug_line(1, "the table of tuned sizes %s is ignored: %s", file, error)
        return
    into.update(values)
    into.peaks.update({key: value for key, value in peaks.items() if value > 0})


def _checked(key: str, value: Any) -> int:
    if key not in LIMITS:
        raise ValueError(f"no size is called {key!r}")
    low, high = LIMITS[key]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{key} must be an integer from {low} to {high}, not {value!r}")
    return value


def save(info: DeviceInfo, table: Table, notes: dict[str, Any]) -> Path:
    """Write a device's table, atomically, and return its path; `notes` are for human readers. OSError if that fails."""
    file = path(info)
    if file is None:
        raise OSError("CLTENSOR_TUNING=0 forbids tables")
    text = json.dumps(
        {
            "format": FORMAT,
            "device": identity(info),
            "values": dict(sorted(table.items())),
            "peaks": table.peaks,
            "measured": notes,
        },
        indent=1,
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, f"{text}\n".encode())
    return file
