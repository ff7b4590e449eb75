"""Averages of weights: `AveragedModel` with its averaging functions, `SWALR`, and `update_bn`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

from .. import creation, dtypes
from ..autograd import no_grad
from ..nn.modules import Module
from ..nn.modules.batchnorm import _BatchNorm
from ..tensor import Tensor
from .lr_scheduler.base import LRScheduler, for_groups
from .optimizer import Optimizer
from .stepper import lerp, number, update

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _approach(averages: Sequence[Tensor], current: Sequence[Tensor], weight: float) -> None:
    """Move averages towards the current values by the fraction `weight` of the difference, in few launches."""
    update(
        "average", [lerp("a", "p", "weight", weight)], {"a": averages}, {"p": current}, {"weight": weight}
    )  # fmt: skip


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """Make the function that updates lists of exponential averages in place. ValueError for a decay outside [0, 1]."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: Sequence[Tensor], current: Sequence[Tensor], _: Any) -> None:
        if averages[0].dtype.category >= 2:
            _approach(averages, current, 1 - decay)
            return
        for a, p in zip(averages, current, strict=True):
            a.copy_(a * decay + p * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """Make the function that updates lists of equally weighted averages in place, given the number of values averaged
    so far.
    """

    @no_grad()
    def swa_update(averages: Sequence[Tensor], current: Sequence[Tensor], count: Any) -> None:
        share = 1 / (number(count) + 1)
        if averages[0].dtype.category >= 2:
            _approach(averages, current, share)
            return
        for a, p in zip(averages, current, strict=True):
            a.copy_(a + (p - a) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """Make the function that returns an exponential average's next value. ValueError for a decay outside [0, 1]."""
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Callable:
    """Make the function that returns an equally weighted average's next value."""

    @no_grad()
    def swa_update(average: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        return average + (current - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    device: that of the copy. avg_fn: returns the next average, given (average, current, count). multi_avg_fn: updates
    lists of averages in place. use_buffers: average buffers too, instead of copying them. `n_averaged` counts the
    updates.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", creation.tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()

    def update_parameters(self, model: Module) -> None:
        """Update the averages by the model's current parameters; the first time, copy these."""
        averages = [a.detach() for a in self._averaged(self.module)]
        current = [
            p.detach().to(a.device) for a, p in zip(averages, self._averaged(model), strict=False)
        ]
        if self.n_averaged.item() == 0:
            for a, p in zip(averages, current, strict=False):
                a.copy_(p)
        else:
            self._average(averages, current)
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1

    def _average(self, averages: list[Tensor], current: list[Tensor]) -> None:
        if self.avg_fn is not None and self.multi_avg_fn is None:
            for a, p in zip(averages, current, strict=True):
                a.copy_(self.avg_fn(a, p, self.n_averaged.to(a.device)))
            return
        average = self.multi_avg_fn or get_swa_multi_avg_fn()
        groups: dict[tuple, tuple[list[Tensor], list[Tensor]]] = {}
        for a, p in zip(averages, current, strict=True):
            mine, others = groups.setdefault((a.device, a.dtype), ([], []))
            mine.append(a)
            others.append(p)
        for (dev, _), (mine, others) in groups.items():
            average(mine, others, self.n_averaged.to(dev))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms anew, as plain averages over the loader's inputs."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the rate from its present value to `swa_lr` in `anneal_epochs` epochs, along a cosine or a line; constant
    after that.

    ValueError for another `anneal_strategy` or a bad number of epochs.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_groups("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return the fraction of the way from the first rate to `swa_lr` at a step."""
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        """Compute the rates of this epoch from those of the last one."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
