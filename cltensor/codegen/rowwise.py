"""The row family: what passes over sets of elements several times (softmax, normalisations, cross entropy) in one kernel.

A `Kind` says what is accumulated in each pass and what is stored. The operands may be pending expressions, as in a
reduction, and those with stride 0 along a row serve as its numbers. Owns schedules and launches; knows nothing of tensors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from ..dtypes import dtype
from .language import _SIGNED, convert
from .operand import Operand
from .pointwise import scalar_type
from .prologue import Reader, Source, Split, along_reduced, dense, split
from .row_kinds import Kind
from .source import include, render

if TYPE_CHECKING:
    from ..runtime import Backend, Buffer

GRAIN = 8192  # elements that are worth a CPU work-item
PACE = 2000  # elements that a CPU's thread is done with in a microsecond
GROUP = 128
WIDE_VECTORS = 64
BLOCK = 128  # steps between flushes of a sum

_kernels: dict[tuple, Any] = {}


class Targets(NamedTuple):
    """Class indices, dense over the rows; the index that does not count; where a bad one is noted."""

    buffer: Buffer
    offset: int
    ignore: int
    status: Buffer
    slot: int


class Rows(NamedTuple):
    """A result over all elements (None where the kind stores none) and the numbers of the rows, dense over them."""

    all: Operand | None
    numbers: list[Operand]


def run(
    backend: Backend,
    kind: Kind,
    source: Source,
    dims: Sequence[int],
    compute: dtype,
    out: dtype,
    *,
    strides: tuple[int, ...] | None = None,
    eps: float = 0.0,
    targets: Targets | None = None,
    schedule: str | None = None,
) -> Rows:
    """Compute `kind` over the rows along `dims` into fresh memory, laid out by `strides` (row-major if None).

    `schedule` overrides the choice: "row", "col", "gpu-row", "gpu-col".
    """
    shape = source.shape
    n = math.prod(shape)
    steps = dense(shape) if strides is None else strides
    result = Operand(backend.alloc(n * out.itemsize), out, shape, steps, 0) if kind.store else None
    numbers = _numbers(backend, kind, shape, dims, compute)
    if not n:
        return Rows(result, numbers)
    _require(backend, source, compute, out)
    layouts = tuple([leaf[2] for leaf in source.leaves])
    cut = split(shape, layouts, tuple(dims) if shape else (), (steps,), ordered=True)
    gpu = backend.info.kind != "cpu" if schedule is None else schedule.startswith("gpu")
    row = along_reduced(cut) if schedule is None else schedule.endswith("row")
    scratch = bool(kind.keep) and out is not compute
    if scratch and (gpu or not row):
        kind, scratch = kind.recomputed(), False
    reader = Reader(
        source,
        cut,
        row=row,
        lanes=1 if gpu else backend.info.lanes,
        outputs=[out],
        wide=compute.itemsize > 4,
    )
    kernel = _kernel(backend, kind, reader, source, cut, compute, out, gpu, scratch)
    args = [cut.nout, 0, cut.nred, *reader.arguments(source, cut)]
    if result is not None:
        kept, reduced = cut.kept_strides[-1], cut.reduced_strides[-1]
        args += [result.buffer, *kept, *reduced]
    args += [x.buffer for x in numbers]
    if kind.epsilon:
        args.append(float(eps))
    if targets is not None:
        args += [*targets]
    nbytes = n * out.itemsize * bool(kind.store) + sum(
        min(leaf[0].nbytes, n * leaf[1].itemsize) for leaf in source.leaves
    )
    if gpu:
        units = backend.info.compute_units * 64
        groups = min(cut.nout if row else -(-cut.nout // GROUP), units)
        backend.launch(kernel, (groups * GROUP,), (GROUP,), args, nbytes)
    else:
        args[1] = chunk = _chunk(backend, cut.nout, n, 1 if row else reader.lanes)
        items = -(-cut.nout // chunk)
        if scratch:
            args.append(backend.alloc(items * (cut.nred + reader.lanes) * compute.itemsize))
        backend.launch(kernel, (items,), (1,), args, nbytes)
    return Rows(result, numbers)


def _numbers(
    backend: Backend, kind: Kind, shape: tuple[int, ...], dims: Sequence[int], compute: dtype
) -> list[Operand]:
    """Memory for what is stored once per row."""
    kept = tuple([size for d, size in enumerate(shape) if d not in dims])
    types = [compute, compute, compute, dtypes.int32] if kind.pick else [compute] * len(kind.rows)
    return [
        Operand(backend.alloc(math.prod(kept) * dt.itemsize), dt, kept, dense(kept), 0)
        for dt in types
    ]


def _require(backend: Backend, source: Source, compute: dtype, out: dtype) -> None:
    for dt in (
        compute,
        out,
        *(leaf[1] for leaf in source.leaves),
        *(node.compute for node in source.nodes),
    ):
        backend.require(dt)


def _chunk(backend: Backend, nout: int, n: int, lanes: int) -> int:
    """Rows for one CPU work-item."""
    alone = n < PACE * backend.info.wake_us
    items = 1 if alone else max(1, min(backend.info.compute_units * 4, n // GRAIN, nout))
    chunk = -(-nout // items)
    return -(-chunk // lanes) * lanes


def _kernel(
    backend: Backend,
    kind: Kind,
    reader: Reader,
    source: Source,
    cut: Split,
    compute: dtype,
    out: dtype,
    gpu: bool,
    scratch: bool,
) -> Any:
    along = cut.reduced_strides[-1][-1] if reader.row else cut.kept_strides[-1][-1]
    key = (backend.device, kind, compute, out, reader.key, reader.values, gpu, along == 1)
    kernel = _kernels.get(key)
    if kernel is not None:
        return kernel
    parameters, types = _signature(kind, reader, compute, out, scratch)
    codes = "_".join(dict.fromkeys(d.code for d in (*(d for d, _ in reader.program.leaves), out)))
    ops = "".join(node.op.name + "_" for node in reader.program.nodes)[:48]
    classes = "".join(c for _, c in reader.program.leaves)
    name = f"{kind.name}__{ops}{codes}__{'gpu_' if gpu else ''}{'row' if reader.row else 'col'}_{classes}{reader.kept_rank}{reader.reduced_rank}"
    head = reader.headers() + "".join(map(include, kind.headers(compute)))
    if compute.reg == "double" and "#define CLT_DOUBLE" not in head:
        head = "#define CLT_DOUBLE 1\n" + head
    index = dtypes.int64 if compute.itemsize > 4 else dtypes.int32
    scalar = Reader(source, cut, row=reader.row, lanes=1, outputs=[out]) if kind.pick else None
    unroll = 2 if reader.row and reader.lanes > 1 and kind.light else 1
    text = render(
        "rowwise", fn=name, kind=kind, reader=reader, scalar=scalar, lanes=reader.lanes, unroll=unroll, gpu=gpu, group=GROUP, block=BLOCK, dt=compute,
        out=out, compute=[index if k in kind.integers else compute for k in range(len(reader.values))], mask=_SIGNED[compute.reg],
        memories=reader.memories, headers=head, parameters=parameters, dense_out=along == 1, convert=convert, wide_vectors=WIDE_VECTORS,
        scratch=scratch,
    )  # fmt: skip
    kernel = _kernels[key] = backend.kernel(name, text, types)
    return kernel


def _signature(
    kind: Kind, reader: Reader, compute: dtype, out: dtype, scratch: bool
) -> tuple[list[str], list]:
    """The kernel's parameters and their types for the backend."""
    i64 = np.int64
    parameters = ["const long nout", "const long chunk", "const long nred", *reader.parameters()]
    types: list = [i64] * 3 + reader.argument_types()
    if kind.store:
        kept = reader.kept_rank if reader.row else reader.kept_rank - 1
        strides = [f"z_{d}" for d in range(kept)] + ([] if reader.row else ["z_k"])
        strides += [f"zr_{d}" for d in range(reader.reduced_rank - 1)] + ["z_r"]
        parameters += [f"__global {out.cl} *q0", *[f"const long {name}" for name in strides]]
        types += [None] + [i64] * len(strides)
    numbers = (
        [compute.cl, compute.cl, compute.cl, "int"] if kind.pick else [compute.cl] * len(kind.rows)
    )
    parameters += [f"__global {cl} *row{k}" for k, cl in enumerate(numbers)]
    types += [None] * len(numbers)
    if kind.epsilon:
        parameters.append(f"const {compute.reg} eps")
        types.append(scalar_type(compute))
    if kind.pick:
        parameters += ["__global const long *targets", "const long origin", "const long ignore"]
        parameters += ["__global long *status", "const long slot"]
        types += [None, i64, i64, None, i64]
    if scratch:
        parameters.append(f"__global {compute.cl} *spare")
        types.append(None)
    return parameters, types
