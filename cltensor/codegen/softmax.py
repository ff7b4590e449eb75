"""The softmax family: softmax and log_softmax along a dim and their gradients, one kernel each.

The operands may be pending expressions, as in a reduction. Knows nothing of tensors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import dtype
from .language import _SIGNED, convert
from .operand import Operand
from .prologue import Reader, Source, along_reduced, dense, split
from .source import include, render

if TYPE_CHECKING:
    from ..runtime import Backend

GRAIN = 8192
GROUP = 128
WIDE_VECTORS = 64
KINDS = ("softmax", "log_softmax", "softmax_back", "log_softmax_back")

_kernels: dict[tuple, Any] = {}


def softmax(
    backend: Backend,
    kind: str,
    source: Source,
    dim: int,
    compute: dtype,
    out: dtype,
    *,
    schedule: str | None = None,
) -> Operand:
    """Compute `kind` of a source along `dim` into fresh dense memory.

    The gradients read two values: the forward result and the gradient. `schedule` overrides the choice: "row", "col",
    "gpu-row", "gpu-col".
    """
    shape = source.shape
    n = math.prod(shape)
    result = Operand(backend.alloc(n * out.itemsize), out, shape, dense(shape), 0)
    if not n:
        return result
    for dt in (
        compute,
        out,
        *(leaf[1] for leaf in source.leaves),
        *(node.compute for node in source.nodes),
    ):
        backend.require(dt)
    cut = split(
        shape,
        tuple([leaf[2] for leaf in source.leaves]),
        (dim,) if shape else (),
        (result.strides,),
        ordered=True,
    )
    gpu = backend.info.kind != "cpu" if schedule is None else schedule.startswith("gpu")
    row = along_reduced(cut) if schedule is None else schedule.endswith("row")
    reader = Reader(
        source,
        cut,
        row=row,
        lanes=1 if gpu else backend.info.lanes,
        outputs=[out],
        wide=compute.itemsize > 4,
    )
    kept_steps, step = cut.kept_strides[-1], cut.reduced_strides[-1][-1]
    unit = (step if row else kept_steps[-1]) == 1
    key = (backend.device, kind, compute, out, reader.key, reader.values, gpu, unit)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _kernels[key] = _build(backend, kind, reader, compute, out, gpu, unit)
    steps = [*kept_steps] if row else [*kept_steps[:-1]]
    args = [
        cut.nout,
        0,
        *reader.arguments(source, cut),
        result.buffer,
        *steps,
        *([] if row else [kept_steps[-1]]),
        step,
    ]
    nbytes = n * out.itemsize + sum(
        min(leaf[0].nbytes, n * leaf[1].itemsize) for leaf in source.leaves
    )
    units = backend.info.compute_units
    if not gpu:
        items = max(1, min(units * 4, n // GRAIN, cut.nout))
        chunk = -(-cut.nout // items)
        if not row:
            chunk = -(-chunk // reader.lanes) * reader.lanes
        args[1] = chunk
        backend.launch(kernel, (-(-cut.nout // chunk),), (1,), args, nbytes)
    elif row:
        backend.launch(kernel, (min(cut.nout, units * 64) * GROUP,), (GROUP,), args, nbytes)
    else:
        backend.launch(
            kernel, (min(-(-cut.nout // GROUP), units * 64) * GROUP,), (GROUP,), args, nbytes
        )
    return result


def _build(
    backend: Backend, kind: str, reader: Reader, compute: dtype, out: dtype, gpu: bool, unit: bool
) -> Any:
    i64 = np.int64
    rank = reader.kept_rank if reader.row else reader.kept_rank - 1
    parameters = [
        "const long nout",
        "const long chunk",
        *reader.parameters(),
        f"__global {out.cl} *q0",
        *[f"const long z_{d}" for d in range(rank)],
    ]
    types: list = [i64, i64, *reader.argument_types(), None] + [i64] * rank
    if not reader.row:
        parameters.append("const long z_k")
        types.append(i64)
    parameters.append("const long z_r")
    types.append(i64)
    codes = "_".join(dict.fromkeys(d.code for d in (*(d for d, _ in reader.program.leaves), out)))
    ops = "".join(node.op.name + "_" for node in reader.program.nodes)[:48]
    classes = "".join(c for _, c in reader.program.leaves)
    name = f"{kind}__{ops}{codes}__{'gpu_' if gpu else ''}{'row' if reader.row else 'col'}_{classes}{reader.kept_rank}"
    head = reader.headers() + (include("exp") if compute.reg == "float" else "")
    if compute.reg == "double" and "CLT_DOUBLE" not in head:
        head = "#define CLT_DOUBLE 1\n" + head
    text = render(
        "softmax", fn=name, kind=kind, reader=reader, lanes=reader.lanes, gpu=gpu, group=GROUP, dt=compute, out=out, mask=_SIGNED[compute.reg],
        memories=reader.memories, headers=head, parameters=parameters, dense_out=unit, convert=convert,
        wide_vectors=WIDE_VECTORS,
    )  # fmt: skip
    return backend.kernel(name, text, types)
