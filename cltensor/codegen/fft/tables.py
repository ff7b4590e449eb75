"""Tables of roots of unity on the device, made in double precision on the host."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from ..region import from_host

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend, Buffer
    from ..operand import Operand

FINE = 4096  # entries in the fine part of a long table, known to the template


def unit_roots(numerators: np.ndarray, n: int) -> np.ndarray:
    """Return exp(-2 pi i k / n) for integers 0 <= k < n, real and imaginary part within one rounding of float64."""
    quadrant = (4 * numerators + n // 2) // n
    angle = (4 * numerators - quadrant * n) * (math.pi / (2 * n))
    cos, sin = np.cos(angle), np.sin(angle)
    turn = quadrant % 4
    re = np.choose(turn, [cos, -sin, -cos, sin])
    im = np.choose(turn, [sin, cos, -sin, -cos])
    return re - 1j * im


def table(backend: Backend, dt: dtype, numbers: np.ndarray) -> Operand:
    """Copy a table of complex numbers from the host to the device, rounded to `dt`."""
    return from_host(backend, dt, numbers.astype(dt.np))


def upload(backend: Backend, dt: dtype, numbers: np.ndarray) -> Buffer:
    return table(backend, dt, numbers).buffer


@functools.lru_cache(maxsize=64)
def roots(backend: Backend, dt: dtype, n: int) -> Buffer:
    return upload(backend, dt, unit_roots(np.arange(n, dtype=np.int64), n))


@functools.lru_cache(maxsize=32)
def turns(backend: Backend, dt: dtype, n: int) -> Buffer:
    """Return the roots of unity of a long length in two parts: the first FINE, and every FINEth."""
    fine = np.arange(FINE, dtype=np.int64) % n
    coarse = np.arange(0, n, FINE, dtype=np.int64)
    return upload(backend, dt, unit_roots(np.concatenate([fine, coarse]), n))


@functools.lru_cache(maxsize=32)
def steps(backend: Backend, dt: dtype, n: int, count: int, lanes: int) -> Buffer:
    """Return powers 0 .. lanes - 1 of the first `count` roots, real and imaginary parts as vectors."""
    k = np.arange(count, dtype=np.int64)[:, None] * np.arange(lanes, dtype=np.int64) % n
    roots = unit_roots(k, n)
    return upload(backend, dt, np.stack([roots.real, roots.imag], 1).reshape(-1).view(complex))


@functools.lru_cache(maxsize=64)
def twists(backend: Backend, dt: dtype, n: int, columns: int, lanes: int) -> Buffer:
    """Return exp(-2 pi i c k / n) for k < n / columns, real and imaginary parts as vectors; c is a lane's column."""
    k = np.arange(n // columns, dtype=np.int64)[:, None]
    roots = unit_roots(k * (np.arange(lanes, dtype=np.int64) % columns) % n, n)
    return upload(backend, dt, np.stack([roots.real, roots.imag], 1).reshape(-1).view(complex))
