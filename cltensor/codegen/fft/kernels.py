"""Kernels of Fourier transforms: what their templates are rendered with (templates/fft/)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..source import include, render
from .tables import unit_roots

if TYPE_CHECKING:
    from ...dtypes import dtype
    from ...runtime import Backend
    from . import block
    from .passes import Schedule

FAR = 8  # how many indices ahead the destinations of neighbouring lines are prefetched
GPU_GROUP = 128


@functools.cache
def line_kernel(
    backend: Backend, dt: dtype, lanes: int, columns: int, kind: str, rank: int, streamed: bool
) -> Any:
    real = dt.to_real()
    name = f"fft_line{columns}_{kind}_{real.code}_r{rank}{'_streamed' if streamed else ''}"
    roots = unit_roots(np.arange(16, dtype=np.int64), 16)
    text = render(
        "fft/line",
        fn=name,
        T=real.cl,
        itemsize=real.itemsize,
        lanes=lanes,
        columns=columns,
        kind=kind,
        rank=rank,
        gpu=False,
        group=1,
        ahead=include("ahead"),
        stream=include("stream"),
        streamed=streamed,
        sixteenths=[(float(w.real), float(w.imag)) for w in roots],
    )
    i64 = np.int64
    types: list[Any] = [None] * 7 + [i64] * 6 + [real.np] * 3 + [i64] * (3 * rank)
    return backend.kernel(name, text, types)


@functools.cache
def pass_kernel(backend: Backend, dt: dtype, plan: Schedule, lanes: int, rank: int) -> Any:
    """Return the kernel of a dtype, lanes and rank; all else about a pass (lengths, layouts, orders) is arguments."""
    real = dt.to_real()
    name = f"fft_{real.code}_v{lanes}_r{rank}{'_gpu' if plan.gpu else ''}"
    text = render(
        "fft/fft",
        fn=name,
        ahead=include("ahead"),
        far=FAR,
        T=real.cl,
        itemsize=real.itemsize,
        lanes=lanes,
        gpu=plan.gpu,
        group=GPU_GROUP,
        words=plan.words,
        rank=rank,
    )
    i64 = np.int64
    types: list[Any] = [None] * 7 + [i64] * 24 + [real.np] * 3 + [i64] * (3 * rank)
    return backend.kernel(name, text, types)


@functools.cache
def block_kernel(
    backend: Backend,
    dt: dtype,
    n: int,
    shape: block.Shape,
    flags: tuple[bool, ...],
    index: str,
    rank: int,
) -> Any:
    real = dt.to_real()
    names = (
        "across",
        "out_across",
        "columns",
        "src_real",
        "dst_real",
        "herm",
        "halved",
        "turned",
        "paired",
        "windowed",
    )
    chosen = dict(zip(names, flags, strict=True))
    told = "".join(f"_{name}" for name, flag in chosen.items() if flag)
    name = f"fft_block{n}x{shape.lanes}x{shape.width}{told}_{real.code}_{index}_r{rank}"
    text = render(
        "fft/block", fn=name, T=real.cl, I=index, n=n, rank=rank, **shape._asdict(), **chosen
    )
    kind = np.int32 if index == "int" else np.int64
    types: list[Any] = (
        [None] * (4 + chosen["windowed"]) + [kind] * 12 + [real.np] * 3 + [kind] * (3 * rank)
    )
    return backend.kernel(name, text, types)
