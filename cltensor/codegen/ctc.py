"""The kernels of the CTC loss: forward and backward variables, and the gradient; for CPUs with vectors and for GPUs' lanes.

Knows operands, nothing of tensors.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import dtypes
from .checks import checking
from .memory import Memory
from .operand import Operand
from .region import empty, from_host, index_type, is_gpu, run, workers
from .source import include, lane_macros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..runtime import Backend

_LANES = 64
_memory = functools.cache(Memory)  # part of a kernel's key


class Samples(NamedTuple):
    """The operands of a batch of N samples."""

    lp: Operand  # log-probabilities (T, N, C), dense
    targets: Operand  # labels of all samples
    # int64: N numbers of time steps, then N numbers of labels, then N indices in `targets` of a sample's first label.
    plan: Operand
    longest: int  # the largest number of labels of a sample
    blank: int  # the class that stands for no label


def samples(
    backend: Backend,
    lp: Operand,
    targets: Operand,
    times: Sequence[int],
    lengths: Sequence[int],
    starts: Sequence[int],
    blank: int,
) -> Samples:
    """Prepare a batch. `starts` holds the index in `targets` of each sample's first label."""
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
    """Launch the kernel of a kind: "alpha", "beta" or "grad".

    `buffers` are the forward or backward variables, the losses, on a CPU those of `_aside`, and what the kind has
    besides.
    """
    times, batch, classes = x.lp.shape
    width, dt = 2 * x.longest + 1, x.lp.dtype
    scalars = [batch, times, classes, width, x.blank, x.targets.offset, x.targets.strides[-1]]
    scalars.append(int(forgive))
    schedule = "gpu"
    work: int | tuple[int, int]
    way: dict[str, Any]
    if is_gpu(backend):
        work = batch * times if kind == "grad" else (batch * _LANES, _LANES)
        way = {"lanes": _LANES, "gpu": True}
    else:
        work, schedule = batch, "cpu"
        if kind == "grad":
            work = min(workers(backend, batch * times * (width + classes) * 2), batch * times)
        scalars.append(_room(x))
        way = {"memory": _memory(dt, _lanes(dt)), "headers": _headers(dt)}
    run(
        backend,
        f"ctc/{schedule}",
        f"ctc_{schedule}_{kind}_{dt.code}_{x.targets.dtype.code}",
        [
            *(o.buffer for o in (x.lp, x.targets, x.plan, *buffers)),
            *([status.buffer] if status else []),
        ],
        [*([status.offset] if status else []), *scalars],
        work,
        batch * times * (width + classes) * dt.itemsize,
        kind=kind,
        dt=dt,
        target=x.targets.dtype.cl,
        I=index_type(backend, x.lp, *buffers),
        **way,
    )


def _lanes(dt: dtypes.dtype) -> int:
    return 64 // dt.itemsize


@functools.cache
def _headers(dt: dtypes.dtype) -> str:
    """Return the headers of a CPU's kernels."""
    double = dt.itemsize > 4
    names = ("elementary/exp",) if double else ("elementary/exp", "elementary/log")
    return lane_macros(_lanes(dt), double) + include(*names)


def _room(x: Samples) -> int:
    """Return the number of states of the longest sample, rounded up to whole vectors, plus one vector."""
    lanes = _lanes(x.lp.dtype)
    return (2 * x.longest // lanes + 2) * lanes


def _aside(backend: Backend, x: Samples) -> list[Operand]:
    """Allocate a CPU's scratch memory besides the variables.

    Labels of all states and whether each can be reached from the last but one, and the variables of two times.
    """
    if is_gpu(backend):
        return []
    batch, room, dt = x.lp.shape[1], _room(x), x.lp.dtype
    places = empty(backend, dtypes.int32, (batch, 2, room))
    return [places, empty(backend, dt, (batch, 2, room + _lanes(dt)))]


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
        _run(backend, "alpha", x, [states, loss, *_aside(backend, x)], status=status)
    return loss, states


def gradient(
    backend: Backend, x: Samples, states: Operand, loss: Operand, slope: Operand, forgive: bool
) -> Operand:
    """Return the gradient by the log-probabilities; with `forgive` it is 0 where the loss is infinite."""
    beta, out = _states(backend, x), empty(backend, x.lp.dtype, x.lp.shape)
    aside = _aside(backend, x)
    _run(backend, "beta", x, [beta, loss, *aside])
    _run(backend, "grad", x, [states, loss, *aside[:1], beta, slope, out], forgive)
    return out
