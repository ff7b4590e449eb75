"""The environment variables `CLTENSOR_*`, read once into one frozen record.

Owns their names, defaults and validation. Imports nothing of the package: every floor reads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Config:
    """What the environment asks for. Field `x` is the variable `CLTENSOR_X`."""

    device: str | None = None
    """The default device, e.g. "opencl:1". Unset: "cpu" where an OpenCL CPU device exists."""
    eager: bool = False
    """Run every op at once instead of fusing pointwise chains."""
    # What is written to stderr; each level includes those below.
    debug: int = 0
    """1 devices and builds, 2 one line per launch, 3 why chains were split, 4 kernel source."""
    cache_dir: Path | None = None
    """The folder of compiled kernels. Unset: the user's cache folder."""
    cache_size: int = 512 << 20
    """Bytes of compiled kernels kept on disk; 0 turns the disk cache off."""
    cpu: str | None = None
    """Which runtime "cpu" is if there are several: "pocl", "intel", part of a platform's name."""
    pool_cap: int | None = None
    """Bytes of free device memory kept for reuse. Unset: a quarter of the device's memory."""
    team: bool = True
    """Have threads of our own run PoCL's machine code where that is known how to; 0 leaves it to PoCL's queue."""
    amx: bool = True
    """Multiply bfloat16 by tiles where processor and system have Intel's AMX; 0 does without."""
    tuning: str | None = None
    """The folder of `python -m cltensor.tune`'s tables; 0 for none. Unset: the user's data folder."""


def parse_bytes(name: str, text: str) -> int:
    """Return the bytes that `text` such as "512M" or "2g" names; ValueError if it names none."""
    digits = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = digits[-1:] if digits[-1:] in _UNITS else ""
    try:
        count = float(digits.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        count = -1
    if not 0 <= count < float("inf"):
        raise ValueError(f"{name} must be a number of bytes such as 512M or 2G, got {text!r}")
    return int(count)


def _parse_flag(name: str, text: str) -> bool:
    if (lower := text.strip().lower()) in _TRUE:
        return True
    if lower in _FALSE:
        return False
    raise ValueError(f"{name} must be 0 or 1, got {text!r}")


def _parse_debug(name: str, text: str) -> int:
    if text.strip() not in ("0", "1", "2", "3", "4"):
        raise ValueError(f"{name} must be an integer from 0 to 4, got {text!r}")
    return int(text)


_PARSERS = {
    "eager": _parse_flag,
    "team": _parse_flag,
    "amx": _parse_flag,
    "debug": _parse_debug,
    "cache_dir": lambda name, text: Path(text).expanduser().absolute(),
    "cache_size": parse_bytes,
    "pool_cap": parse_bytes,
}


def from_env(environ: Mapping[str, str]) -> Config:
    """Return the record that `environ` describes; an empty variable counts as unset.

    Raises ValueError that names the variable when its value makes no sense.
    """
    found: dict[str, object] = {}
    for field in fields(Config):
        name = f"CLTENSOR_{field.name.upper()}"
        text = environ.get(name, "").strip()
        if text:
            parse = _PARSERS.get(field.name)
            found[field.name] = parse(name, text) if parse else text
    return Config(**found)  # type: ignore[arg-type]


CONFIG = from_env(os.environ)
