"""What the device can do at most, measured by kernels of a few lines: its copy speed and its multiply-add rate. Knows no tensors."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

COPY = """
typedef float16 __attribute__((aligned(4))) u16;
__kernel void bench_copy(__global const float *a, __global float *b, long chunk) {
  const long begin = get_global_id(0) * chunk;
  for (long i = begin; i < begin + chunk; i += 16) *(__global u16 *)(b + i) = *(__global const u16 *)(a + i);
}
__kernel void bench_copy_lanes(__global const float4 *a, __global float4 *b, long n) {
  for (long i = get_global_id(0); i < n; i += get_global_size(0)) b[i] = a[i];
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
# Lanes and independent chains: enough of them to hide the latency, few enough for the registers, on AVX2 and on AVX-512.
SHAPES = {"cpu": ((8, 12), (16, 6), (16, 12)), "gpu": ((1, 10),)}


def _multiply(lanes: int, chains: int) -> str:
    """The text of a kernel with nothing but multiply-adds."""
    names = [f"x{k}" for k in range(chains)]
    vector = f"float{lanes}" if lanes > 1 else "float"
    return (
        MULTIPLY.replace("START", ", ".join(f"{n} = ({vector})(0.1f)" for n in names))
        .replace("STEPS", " ".join(f"{n} = {n} * m + c;" for n in names))
        .replace("SUM", " + ".join(names))
        .replace("VEC", vector)
        .replace("FIRST", "s.s0" if lanes > 1 else "s")
    )


def _best(run: Callable[[], None], wait: Callable[[], None]) -> float:
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - begin)
    return statistics.median(sorted(times)[:6])


def peaks(device: str) -> dict[str, float]:
    """Return the device's copy speed in bytes read and written a second, and its float32 operations a second."""
    import numpy as np

    from cltensor.runtime import device as named
    from cltensor.runtime import get_backend

    backend = get_backend(named(device))
    info = backend.info
    cpu = info.kind == "cpu"
    n = (1 << 24) if cpu else (1 << 27)
    a, b = backend.alloc(4 * n), backend.alloc(4 * n)
    for buffer in (a, b):  # memory never written may be one page of zeros, read from the cache
        backend.write(buffer, 0, np.ones(n, np.float32))
    args: list[Any]
    if cpu:
        items = info.compute_units
        kernel = backend.kernel("bench_copy", COPY, (None, None, np.int64))
        sizes, args = ((items,), (1,)), [a, b, n // items]
    else:
        kernel = backend.kernel("bench_copy_lanes", COPY, (None, None, np.int64))
        sizes, args = ((info.compute_units * 2048,), (256,)), [a, b, n // 4]
    copy = 8 * n / _best(lambda: backend.launch(kernel, *sizes, args), backend.finish)

    rate = 0.0
    for lanes, chains in SHAPES["cpu" if cpu else "gpu"]:
        types = (None, np.int64, np.float32, np.float32)
        text = _multiply(lanes, chains)
        multiply = backend.kernel("bench_multiply", text, types, ("-cl-mad-enable",))
        rounds = 2_000_000 if cpu else 20_000  # long beside the waking of threads
        sizes = ((info.compute_units,), (1,)) if cpu else ((info.compute_units * 2048,), (256,))
        took = _best(
            functools.partial(backend.launch, multiply, *sizes, [a, rounds, 0.999, 0.001]),
            backend.finish,
        )
        rate = max(rate, 2.0 * chains * lanes * rounds * sizes[0][0] / took)
    return {"copy": copy, "flops": rate}
