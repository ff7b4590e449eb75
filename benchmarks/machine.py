"""What the device can do at most, measured by kernels of a few lines: its copy speed and its multiply-add rate."""

from __future__ import annotations

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
#define STEP(k) x##k = x##k * m + c;
__kernel void bench_multiply(__global float *out, long rounds, float m, float c) {
  VEC x0 = (VEC)(0.1f), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0, x8 = x0, x9 = x0;
  for (long i = 0; i < rounds; i++) { STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) }
  const VEC s = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9;
  out[get_global_id(0)] = FIRST(s);
}
"""
CHAINS = 10


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
    args: list[Any]
    if cpu:
        items = info.compute_units
        kernel = backend.kernel("bench_copy", COPY, (None, None, np.int64))
        sizes, args = ((items,), (1,)), [a, b, n // items]
    else:
        kernel = backend.kernel("bench_copy_lanes", COPY, (None, None, np.int64))
        sizes, args = ((info.compute_units * 2048,), (256,)), [a, b, n // 4]
    copy = 8 * n / _best(lambda: backend.launch(kernel, *sizes, args), backend.finish)

    lanes = 16 if cpu else 1
    text = MULTIPLY.replace("VEC", f"float{lanes}" if lanes > 1 else "float")
    text = text.replace("FIRST(s)", "s.s0" if lanes > 1 else "s")
    multiply = backend.kernel(
        "bench_multiply", text, (None, np.int64, np.float32, np.float32), ("-cl-mad-enable",)
    )
    rounds = 200_000 if cpu else 20_000
    sizes = ((info.compute_units,), (1,)) if cpu else ((info.compute_units * 2048,), (256,))
    took = _best(
        lambda: backend.launch(multiply, *sizes, [a, rounds, 0.999, 0.001]), backend.finish
    )
    return {"copy": copy, "flops": 2.0 * CHAINS * lanes * rounds * sizes[0][0] / took}
