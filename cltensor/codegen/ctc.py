"""The kernels of the CTC loss: forward and backward variables, and the gradient. Knows operands, nothing of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .. import dtypes
from .checks import checking
from .operand import Operand
from .region import empty, from_host, index_type, is_gpu, run, workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runtime import Backend

_LANES = 64


class Samples(NamedTuple):
    """Log-probabilities (T, N, C) dense, labels, and the plan: for each sample its times, labels and first label's place."""

    lp: Operand
    targets: Operand
    plan: Operand
    longest: int
    blank: int


def samples(
    backend: Backend,
    lp: Operand,
    targets: Operand,
    times: Sequence[int],
    lengths: Sequence[int],
    starts: Sequence[int],
    blank: int,
) -> Samples:
    """Lay out a batch; `starts` counts elements of `targets` from its first."""
    plan = from_host(backend, dtypes.int64, np.array([*times, *lengths, *starts], np.int64))
    return Samples(lp, targets, plan, max(lengths, default=0), blank)


def _run(
    backend: Backend,
    kind: str,
    x: Samples,
    buffers: Sequence[Operand],
    forgive: bool = False,
    status: checking | None = None,
) -> None:
    times, batch, classes = x.lp.shape
    width = 2 * x.longest + 1
    gpu = is_gpu(backend)
    lanes = _LANES if gpu else 1
    work: int | tuple[int, int] = (batch * lanes, lanes)
    if kind == "grad":
        n = batch * times
        work = n if gpu else min(workers(backend, n * (width + classes) * 8), n)
    scalars = [batch, times, classes, width, x.blank, x.targets.offset, x.targets.strides[-1]]
    run(
        backend,
        "ctc",
        f"ctc_{kind}_{x.lp.dtype.code}_{x.targets.dtype.code}",
        [
            *(o.buffer for o in (x.lp, x.targets, x.plan, *buffers)),
            *([status.buffer] if status else []),
        ],
        [*([status.offset] if status else []), *scalars, int(forgive)],
        work,
        batch * times * (width + classes) * x.lp.dtype.itemsize,
        kind=kind,
        dt=x.lp.dtype,
        target=x.targets.dtype.cl,
        I=index_type(backend, x.lp, *buffers),
        lanes=lanes,
        gpu=gpu,
    )


def _states(backend: Backend, x: Samples) -> Operand:
    times, batch, _ = x.lp.shape
    return empty(backend, x.lp.dtype, (batch, times, 2 * x.longest + 1))


def alpha(backend: Backend, x: Samples) -> tuple[Operand, Operand]:
    """Return the loss of each sample and the forward variables (N, T, states). RuntimeError for a label out of range."""
    classes = x.lp.shape[2]

    def describe(value: int, sample: int) -> Exception:
        return RuntimeError(
            f"ctc_loss: label {value} of sample {sample} is not in the label range [0, {classes})"
        )

    states, loss = _states(backend, x), empty(backend, x.lp.dtype, (x.lp.shape[1],))
    with checking(backend, describe) as status:
        _run(backend, "alpha", x, [states, loss], status=status)
    return loss, states


def gradient(
    backend: Backend, x: Samples, states: Operand, loss: Operand, slope: Operand, forgive: bool
) -> Operand:
    """Return the gradient by the log-probabilities; `forgive`: that of an infinite loss is 0."""
    beta, out = _states(backend, x), empty(backend, x.lp.dtype, x.lp.shape)
    _run(backend, "beta", x, [beta, loss])
    _run(backend, "grad", x, [states, loss, beta, slope, out], forgive)
    return out
