"""The peak rates of a device, measured by kernels of a few lines: memory bandwidths and the multiply-add rate. Knows no
tensors.

Memory has four bandwidths: copying, updating in place, reading alone, writing alone. With plain stores a CPU's cache
first reads the lines that a copy writes; non-temporal stores avoid that. Reads and writes use separate paths, so
neither alone reaches the full bandwidth.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

# The loop's statement, on elements a[i] and b[i]; of several the fastest counts. `read` adds to the sum s so that its
# loads are not optimised away. `write` writes ones, because Zen 5 writes zeros to memory twice as fast as other
# numbers.
MOVES = {
    "copy": ("b[i] = a[i];", "PAST_CACHE(a[i], b + i);"),
    "update": ("b[i] = b[i] + 1.0f;",),
    "read": ("s += a[i];",),
    "write": ("b[i] = 1.0f;", "PAST_CACHE((FLOAT)(1.0f), b + i);"),
}
ON_CPU = """
#ifdef __has_builtin
#if __has_builtin(__builtin_nontemporal_store)
#define PAST_CACHE(value, place) __builtin_nontemporal_store(value, place)
#endif
#endif
#ifndef PAST_CACHE
#define PAST_CACHE(value, place) *(place) = value
#endif
#define FLOAT float16
__kernel void bench_NAME(__global const float16 *a, __global float16 *b, long n) {
  const long begin = get_global_id(0) * n, end = begin + n;
  float16 s = 0.0f;
  for (long i = begin; i < end; i++) { MOVE }
  if (s.s0 != 0.0f) b[begin] = s;
}
"""
ON_GPU = """
#define PAST_CACHE(value, place) *(place) = value
#define FLOAT float4
__kernel void bench_NAME(__global const float4 *a, __global float4 *b, long n) {
  float4 s = 0.0f;
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) { MOVE }
  if (s.x != 0.0f) b[get_global_id(0)] = s;
}
"""
MULTIPLY = """
__kernel void bench_multiply(__global float *out, long rounds, float m, float c) {
  VEC START;
  for (long i = 0; i < rounds; i++) { STEPS }
  const VEC s = SUM;
  out[get_global_id(0)] = FIRST;
}
"""
# (SIMD lanes, independent chains): enough chains to hide the latency, few enough to fit into registers, for AVX2 and
# AVX-512.
SHAPES = {"cpu": ((8, 12), (16, 6), (16, 12)), "gpu": ((1, 10),)}


def _multiply(lanes: int, chains: int) -> str:
    """Return the source of a kernel that does nothing but multiply-adds."""
    names = [f"x{k}" for k in range(chains)]
    vector = f"float{lanes}" if lanes > 1 else "float"
    return (
        MULTIPLY.replace("START", ", ".join(f"{n} = ({vector})(0.1f)" for n in names))
        .replace("STEPS", " ".join(f"{n} = {n} * m + c;" for n in names))
        .replace("SUM", " + ".join(names))
        .replace("VEC", vector)
        .replace("FIRST", "s.s0" if lanes > 1 else "s")
    )


class Probe(NamedTuple):
    """A launch that exercises one resource, and its amount of work: bytes moved or operations."""

    run: Callable[[], None]
    amount: float


def _best(probes: Sequence[Probe], wait: Callable[[], None], queued: int) -> list[float]:
    """Return bytes or operations per second for each probe; the probes take turns, so that none finds its own data in
    the cache.

    `queued` launches are waited for together: on a GPU, where waiting takes a large part of a single launch's time and
    the data do not fit into the cache.
    """
    times: list[list[float]] = [[] for _ in probes]
    for _ in range(12):
        for probe, taken in zip(probes, times, strict=True):
            begin = time.perf_counter()
            for _ in range(queued):
                probe.run()
            wait()
            taken.append((time.perf_counter() - begin) / queued)
    return [
        probe.amount / statistics.median(sorted(taken)[:6])
        for probe, taken in zip(probes, times, strict=True)
    ]


def _memory(backend: Any, cpu: bool) -> Iterator[tuple[str, Probe]]:
    """Yield a probe for each statement in MOVES, with its name."""
    import numpy as np

    n, units = (1 << 24) if cpu else (1 << 27), backend.info.compute_units
    a, b = backend.alloc(4 * n), backend.alloc(4 * n)
    for buffer in (a, b):  # untouched pages may all map to one page of zeros, which stays cached
        backend.write(buffer, 0, np.ones(n, np.float32))
    sizes, count = ((units,), (1,)), n // units // 16
    if not cpu:
        sizes, count = ((units * 2048,), (256,)), n // 4
    for name, move in ((name, move) for name, moves in MOVES.items() for move in moves):
        text = (ON_CPU if cpu else ON_GPU).replace("NAME", name).replace("MOVE", move)
        kernel = backend.kernel(f"bench_{name}", text, (None, None, np.int64))
        run = functools.partial(backend.launch, kernel, *sizes, [a, b, count])
        yield name, Probe(run, (4 if name in ("read", "write") else 8) * n)


def _arithmetic(backend: Any, cpu: bool) -> Iterator[tuple[str, Probe]]:
    """Yield a multiply-add probe for each of SHAPES."""
    import numpy as np

    units = backend.info.compute_units
    out = backend.alloc(4 * units * 2048)
    rounds = 100_000 if cpu else 20_000  # long compared with the time to wake threads
    sizes = ((units,), (1,)) if cpu else ((units * 2048,), (256,))
    for lanes, chains in SHAPES["cpu" if cpu else "gpu"]:
        types = (None, np.int64, np.float32, np.float32)
        text = _multiply(lanes, chains)
        kernel = backend.kernel("bench_multiply", text, types, ("-cl-mad-enable",))
        args = [out, rounds, 0.999, 0.001]
        run = functools.partial(backend.launch, kernel, *sizes, args)
        yield "flops", Probe(run, 2.0 * lanes * chains * rounds * sizes[0][0])


def _backend(device: str) -> Any:
    from cltensor.runtime import device as named
    from cltensor.runtime import get_backend

    return get_backend(named(device))


@functools.cache
def probes(device: str) -> dict[str, Probe]:
    """Return the fastest probe for each of "copy", "update", "read", "write" and "flops"."""
    return {name: probe for name, (probe, _) in _measured(device).items()}


def peaks(device: str) -> dict[str, float]:
    """Return the peak rates per second: bytes for "copy", "update", "read", "write", float32 operations for "flops"."""
    return {name: speed for name, (_, speed) in _measured(device).items()}


def _measured(device: str) -> dict[str, tuple[Probe, float]]:
    backend = _backend(device)
    cpu = backend.info.kind == "cpu"
    every = [*_memory(backend, cpu), *_arithmetic(backend, cpu)]
    found: dict[str, tuple[Probe, float]] = {}
    speeds = _best([probe for _, probe in every], backend.finish, 1 if cpu else 8)
    for (name, probe), speed in zip(every, speeds, strict=True):
        if name not in found or speed > found[name][1]:
            found[name] = probe, speed
    return found
