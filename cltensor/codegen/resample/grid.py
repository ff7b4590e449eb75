"""Sampling images at the points of a grid, and the gradients by points and by images. Knows nothing of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ... import dtypes
from ...layouts import contiguous_strides
from ..operand import Operand
from ..region import empty, index_type, is_gpu, run, workers
from ..source import include

if TYPE_CHECKING:
    from ...runtime import Backend

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
_TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}
_BLOCK = {"bilinear": 64, "nearest": 64, "bicubic": 16}  # points that a CPU takes together
_HEADERS = """#define CLT_LANES 16
#if defined(__AVX512DQ__) && defined(__has_builtin)
#if __has_builtin(__builtin_ia32_gathersiv16sf)
#define CLT_GATHER
#endif
#endif
"""


class Way(NamedTuple):
    """How to sample: one of MODES, one of PADDINGS, and whether -1 and 1 are the centres of the corner elements."""

    mode: str
    padding: str
    aligned: bool


def _run(
    backend: Backend,
    kind: str,
    way: Way,
    src: Operand,
    operands: dict[str, Operand],
    out: Operand,
    points: int,
    work: int,
) -> None:
    """Launch a kind of kernel; `src`: the layout of the images; `operands`: what is read, by name in the template."""
    dims = len(src.shape) - 2
    sizes = [v for d in range(dims) for v in (src.shape[-1 - d], src.strides[-1 - d])]
    batch, channels = src.shape[:2]
    buffers = [*operands.values(), out]
    dt = buffers[0].dtype
    starts = [operands[name].offset if name in operands else 0 for name in ("grid", "g")]
    gpu = is_gpu(backend)
    n = batch * channels * points
    reach = sum(abs(s) * (n - 1) for n, s in zip(sizes[::2], sizes[1::2], strict=True))
    wide = not gpu and dt is dtypes.float32 and reach < 1 << 31
    corners = "corners" if way.aligned else "edges"
    run(
        backend,
        "resample/grid",
        f"grid_sample_{kind}_{dims}d_{way.mode}_{way.padding}_{corners}_{dt.code}",
        [x.buffer for x in buffers],
        [batch, channels, points, src.offset, *starts, src.strides[0], src.strides[1], *sizes],
        work if gpu else min(workers(backend, n * _TAPS[way.mode] ** dims), work),
        2 * n * dt.itemsize,
        dt=dt,
        I=index_type(backend, src, *buffers),
        kind=kind,
        mode=way.mode,
        padding=way.padding,
        aligned=way.aligned,
        dims=dims,
        taps=_TAPS[way.mode],
        block=1 if gpu else _BLOCK[way.mode],
        wide=wide,
        headers=_HEADERS + include("elementary/rounding") if wide else "",
        gpu=gpu,
    )


def _work(backend: Backend, batch: int, points: int, way: Way) -> int:
    return batch * -(-points // (1 if is_gpu(backend) else _BLOCK[way.mode]))


def sample(backend: Backend, src: Operand, grid: Operand, way: Way) -> Operand:
    """Return `src` (N, C, spatial) at the points of `grid` (N, out, dims; dense; x first) as dense (N, C, out)."""
    out_shape = grid.shape[1:-1]
    out = empty(backend, src.dtype, (*src.shape[:2], *out_shape))
    points = math.prod(out_shape)
    if math.prod(out.shape):
        work = _work(backend, src.shape[0], points, way)
        _run(backend, "out", way, src, {"src": src, "grid": grid}, out, points, work)
    return out


def by_grid(backend: Backend, src: Operand, grid: Operand, g: Operand, way: Way) -> Operand:
    """Return the gradient by the points, given the gradient `g` of the samples (dense)."""
    out = empty(backend, grid.dtype, grid.shape)
    points = math.prod(grid.shape[1:-1])
    if math.prod(out.shape):
        work = _work(backend, src.shape[0], points, way)
        _run(backend, "grid", way, src, {"src": src, "grid": grid, "g": g}, out, points, work)
    return out


def by_input(
    backend: Backend, shape: tuple[int, ...], grid: Operand, g: Operand, way: Way
) -> Operand:
    """Return the gradient by the images, given that of the samples (dense); that of 16-bit floats is float32."""
    dt = dtypes.float64 if g.dtype is dtypes.float64 else dtypes.float32
    out = empty(backend, dt, shape)
    if math.prod(shape):
        laid = out._replace(strides=contiguous_strides(shape))
        points = math.prod(grid.shape[1:-1])
        _run(backend, "input", way, laid, {"grid": grid, "g": g}, out, points, shape[0] * shape[1])
    return out
