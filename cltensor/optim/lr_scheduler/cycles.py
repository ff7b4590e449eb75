"""Schedules that raise and lower the rate, and the momentum against it: `CyclicLR` and `OneCycleLR`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, for_groups, function_state, set_value


class _MomentumCycle(LRScheduler):
    """Base of `CyclicLR` and `OneCycleLR`: sets a group's momentum or, for optimisers with betas, its first beta."""

    def _start_momentum(self, base: Any, top: Any, last_epoch: int) -> tuple[list, list]:
        """Find which option is the momentum, and set it to its maximum; return the minima and maxima of all groups."""
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in defaults
        bases = for_groups("base_momentum", self.optimizer, base)
        tops = for_groups("max_momentum", self.optimizer, top)
        if last_epoch == -1:
            for high, low, group in zip(tops, bases, self.optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return bases, tops

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumCycle):
    """Cycle the rate linearly between `base_lr` and `max_lr`; `mode` or `scale_fn` scales the amplitude.

    step_size_up, step_size_down: numbers of batches up and down. mode: "triangular", "triangular2" (half the amplitude
    each cycle) or "exp_range" (scaled by gamma ** batch). scale_mode: whether `scale_fn` is given the cycle's number or
    the iteration's.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_ref: Callable[[float], float]
        self._scale_fn_custom: Any = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        if self.mode == "exp_range":
            self._scale_fn_ref, self.scale_mode = partial(_power, self.gamma), "iterations"
        else:
            self._scale_fn_ref = _half if self.mode == "triangular2" else _one
            self.scale_mode = "cycle"

    def scale_fn(self, x: float) -> float:
        """Return the scale of the amplitude for a cycle or an iteration, as `scale_mode` says."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this batch, and write the momenta."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        share = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, momenta, strict=True):
                self._set_momentum(group, high - (high - low) * share * scale)
        return [
            low + (high - low) * share * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and plain functions."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        fn = state.pop("_scale_fn_custom")  # it comes last, as in torch
        state["_scale_fn_custom"] = None if fn is None else function_state(fn)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, which leaves plain functions as they are."""
        saved = state_dict.get("_scale_fn_custom")
        super().load_state_dict(
            {key: value for key, value in state_dict.items() if key != "_scale_fn_custom"}
        )
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)
        self._init_scale_fn()


def _one(x: float) -> float:
    return 1.0


def _half(x: float) -> float:
    return 1 / 2.0 ** (x - 1)


def _power(gamma: float, x: float) -> float:
    return gamma**x


class OneCycleLR(_MomentumCycle):
    """Raise the rate to `max_lr` and lower it to almost nothing, once, in `total_steps` batches (or epochs *
    steps_per_epoch).

    pct_start: fraction of the batches that raise the rate. anneal_strategy: "cos" or "linear". div_factor: `max_lr`
    over the first rate. final_div_factor: the first rate over the last. three_phase: return to the first rate before
    going down to the last. ValueError for arguments out of range, and for a step too many.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        tops = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for top, group in zip(tops, optimizer.param_groups, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        """Compute the rates of this batch, and write the momenta."""
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        phase, share = self._phase()
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(*ends, share))
        return [
            self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share)
            for group in self.optimizer.param_groups
        ]

    def _phase(self) -> tuple[dict[str, Any], float]:
        """Return the phase of this batch, and the fraction of the phase that is over."""
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if self.last_epoch <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        return phase, (self.last_epoch - start) / (end - start)


def _total(total: int | None, epochs: int | None, steps: int | None) -> int:
    if total is not None:
        if total <= 0 or not isinstance(total, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total}")
        return total
    if epochs is None or steps is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * steps


def _phases(total: int, rise: float, three: bool) -> list[dict[str, Any]]:
    def phase(end: float, *names: str) -> dict[str, Any]:
        keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
        return {"end_step": end, **dict(zip(keys, names, strict=True))}

    up = phase(float(rise * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if not three:
        down = phase(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
        return [up, down]
    back = phase(
        float(2 * rise * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"
    )
    rest = phase(total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
    return [up, back, rest]
