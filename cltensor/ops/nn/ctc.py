"""The CTC loss of sequences whose labels are not aligned with them: arguments, reductions and the gradient's record."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...autograd import record as graph
from ...autograd.mode import unrecorded
from ...codegen import ctc as family
from ...runtime import get_backend
from .. import core
from ..core import Tensor
from ..refusals import no_kernel, raising
from ..row import FUNCTIONS, public
from ..selection import where
from .reductions import get_enum

_CHECKED = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(name: str, given: Any) -> list[int]:
    """Return lengths as ints, read on the host because they decide sizes."""
    if not core.is_tensor(given):
        return [int(v) for v in given]
    if given.dtype.category != 1:
        raise RuntimeError(f"{name} must be integral")
    return [int(v) for v in given.reshape(-1).tolist()]


def _check_lengths(name: str, values: Sequence[int], batch: int, most: int | None) -> None:
    if len(values) != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    for v in values:
        if v < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {v} {_CHECKED}"
            )
        if most is not None and v > most:
            raise RuntimeError(
                f"Expected {name} to have value at most {most}, but got value {v} {_CHECKED}"
            )


def _starts(targets: Tensor, lengths: Sequence[int], batch: int) -> list[int]:
    """Where each sample's labels begin, for labels one after the other (1-D) or padded (2-D)."""
    if targets.ndim == 1:
        ends = [0, *itertools.accumulate(lengths)]
        if targets.shape[0] != ends[-1]:
            raise RuntimeError(
                f"Expected tensor to have size {ends[-1]} at dimension 0, but got size {targets.shape[0]} for argument #2 "
                f"'targets' {_CHECKED}"
            )
        return [e * targets._strides[0] for e in ends[:-1]]
    if targets.ndim != 2:
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor for argument #2 'targets' {_CHECKED}"
        )
    if targets.shape[0] != batch:
        raise RuntimeError(
            f"Expected tensor to have size {batch} at dimension 0, but got size {targets.shape[0]} for argument #2 'targets' {_CHECKED}"
        )
    most = max(lengths, default=0)
    if targets.shape[1] < most:
        raise RuntimeError(
            f"Expected tensor to have size at least {most} at dimension 1, but got size {targets.shape[1]} for argument #2 "
            f"'targets' {_CHECKED}"
        )
    return [b * targets._strides[0] for b in range(batch)]


def _check(log_probs: Tensor, blank: int) -> None:
    if log_probs.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.ndim}-dimensional tensor for argument #1 'log_probs' {_CHECKED}"
        )
    if not log_probs.numel():
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < log_probs.shape[2]:
        raise RuntimeError("blank must be in label range")
    if log_probs.dtype not in (dtypes.float32, dtypes.float64):
        raise no_kernel("ctc_loss_cpu", log_probs.dtype)


def _from_start(t: Tensor) -> Tensor:
    """Return `t` contiguous and at the start of its storage, as the kernels read it."""
    t = t.detach().contiguous()
    return t.clone() if t._offset else t


def _back(ctx: Any, g: Tensor, *_: Any) -> Any:
    backend = get_backend(g.device)
    log_probs, targets = ctx.log_probs, ctx.targets
    with unrecorded(), backend.lock:
        x = _samples(log_probs, targets, ctx.input_lengths, ctx.target_lengths, ctx.blank)
        states, loss, slope = (
            core.kernel_operand(_from_start(t)) for t in (ctx.result1, ctx.result0, g)
        )
        found = family.gradient(backend, x, states, loss, slope, ctx.zero_infinity)
        out = core.result(found, g.device)
    if graph.needs_grad(g, log_probs):
        graph.record("NotImplemented", (g, log_probs), out, _refuse)
    return out


_refuse = raising("derivative for aten::_ctc_loss_backward is not implemented")


def _samples(
    log_probs: Tensor, targets: Tensor, times: Sequence[int], lengths: Sequence[int], blank: int
) -> family.Samples:
    starts = _starts(targets, lengths, log_probs.shape[1])
    return family.samples(
        get_backend(log_probs.device),
        core.kernel_operand(_from_start(log_probs)),
        core.kernel_operand(targets),
        times,
        lengths,
        starts,
        blank,
    )


@public("_ctc_loss", method=False)
def losses(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the loss of each sample (N) and the forward variables (N, T, 2 S + 1); see `ctc_loss`."""
    times = _lengths("input_lengths", input_lengths)
    lengths = _lengths("target_lengths", target_lengths)
    _check(log_probs, blank)
    batch = log_probs.shape[1]
    if targets.dtype.category != 1:
        targets = targets.long()
    _check_lengths("input_lengths", times, batch, log_probs.shape[0])
    _check_lengths("target_lengths", lengths, batch, None)
    backend = get_backend(log_probs.device)
    with unrecorded(), backend.lock:
        x = _samples(log_probs, targets, times, lengths, blank)
        found = family.alpha(backend, x)
        loss, states = (core.result(f, log_probs.device) for f in found)
    if graph.needs_grad(log_probs):
        saved = {
            "log_probs": log_probs,
            "targets": targets,
            "input_lengths": times,
            "target_lengths": lengths,
            "result0": loss.detach(),
            "result1": states,
            "blank": blank,
            "zero_infinity": zero_infinity,
        }
        graph.record("CtcLossBackward0", (log_probs,), loss, _back, saved)
    return loss, states


@public("ctc_loss", method=False)
def reduced_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """Compute `nn.functional.ctc_loss` with the reduction as a number: 0 none, 1 mean, 2 sum."""
    batched = log_probs.ndim != 2
    if not batched:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    lengths = _lengths("target_lengths", target_lengths)
    loss, _ = losses(log_probs, targets, input_lengths, lengths, blank, zero_infinity)
    if zero_infinity:
        loss = where(loss == float("inf"), 0.0, loss)
    if reduction == 1:
        count = FUNCTIONS["tensor"]([max(v, 1) for v in lengths], device=loss.device)
        return (loss / count.to(loss.dtype)).mean()
    if reduction == 2:
        return loss.sum()
    return loss if batched else loss.squeeze(0)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative log-likelihood of labels over all their alignments (Graves et al., 2006).

    log_probs (T, N, C) or (T, C); targets (N, S) padded, or all labels one after the other. `mean` divides each loss by its number
    of labels first. `zero_infinity`: losses of labels that do not fit into their input count as 0, without gradient.
    """
    way = get_enum(reduction)
    return reduced_loss(
        log_probs, targets, input_lengths, target_lengths, blank, way, zero_infinity
    )
