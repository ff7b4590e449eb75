"""`GradScaler`: multiplies losses so that 16-bit gradients do not vanish, and skips steps whose gradients overflowed.

Scale and counters stay on the device; the host reads one number per step and device: whether gradients overflowed.
"""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .. import creation, cuda, dtypes
from ..autograd import no_grad
from ..ops import multi
from ..ops.row import FUNCTIONS
from ..tensor import Tensor

__all__ = ["GradScaler", "OptState"]

_UNSCALE = multi.chain("unscale", "found = not isfinite(g)\ng = g * inverse", "g", "", "inverse")
_HINT = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


def _amp_foreach_non_finite_check_and_unscale_(
    self: list[Tensor], found_inf: Tensor, inv_scale: Tensor
) -> None:
    """Multiply gradients by `inv_scale` in place; `found_inf` becomes 1 where a number is not finite."""
    for name, x in (("inv_scale", inv_scale), ("found_inf", found_inf)):
        if x.numel() != 1:
            raise RuntimeError(f"{name} must be a 1-element tensor.")
        if x.dtype is not dtypes.float32:
            raise RuntimeError(f"{name} must be a float tensor.")
    with no_grad():
        multi.apply(_UNSCALE, [self], {}, [inv_scale], found_inf)


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Shrink a scale after an overflow, and grow it after `growth_interval` steps without one, which `growth_tracker`
    counts.
    """
    if growth_tracker.dtype is not dtypes.int32:
        raise RuntimeError("growth_tracker must be an int tensor.")
    where = FUNCTIONS["where"]
    with no_grad():
        overflow = found_inf > 0
        count = growth_tracker + 1
        due = count == growth_interval
        grown = self * scale_growth_factor
        calm = where(due.logical_and(grown.isfinite()), grown, self)
        new = where(overflow, self * scale_backoff_factor, calm)
        growth_tracker.copy_(
            where(overflow.logical_or(due), 0, count).reshape(growth_tracker.shape)
        )
        return self.copy_(new.reshape(self.shape))


SCALING = (
    _amp_foreach_non_finite_check_and_unscale_,
    _amp_update_scale_,
)  # what torch has at its top level


class OptState(Enum):
    """What has been done to an optimiser's gradients since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scale losses, unscale gradients, and step optimisers where gradients are finite.

    init_scale: the first scale. growth_factor: what it is multiplied by after `growth_interval` steps without overflow.
    backoff_factor: what it is multiplied by after an overflow. enabled: False makes every method pass its argument
    through.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_fresh_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  " + _HINT)
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None.  " + _HINT)
        return self._scale, self._growth_tracker

    def _scale_on(self, dev: Any) -> Tensor:
        if self._scale is None:
            self._scale = creation.tensor(float(self._init_scale), dtype=dtypes.float32, device=dev)
            self._growth_tracker = creation.tensor(
                self._init_growth_tracker, dtype=dtypes.int32, device=dev
            )
        return self._scale.to(dev)

    def scale(self, outputs: Any) -> Any:
        """Multiply a tensor, or all in nested iterables, by the scale. ValueError for anything else."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply gradients by `inv_scale`; returns a flag for each device, 1 where one was not finite."""
        grads: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if not isinstance(p, Tensor):
                    raise AssertionError(
                        f"expected param to be torch.Tensor, got {type(p).__name__}"
                    )
                if p.grad is None:
                    continue
                if not allow_fp16 and p.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                g = p.grad
                if g.is_sparse:
                    if g.dtype is dtypes.float16:  # sums of entries may overflow, too
                        g = p.grad = g.coalesce()
                    g = g._values()
                grads.setdefault(g.device, []).append(g)
        flags = {}
        for dev, some in grads.items():
            flag = flags[dev] = found_inf.to(dev, copy=True)
            _amp_foreach_non_finite_check_and_unscale_(some, flag, inv_scale)
        return flags

    def unscale_(self, optimizer: Any) -> None:
        """Divide an optimiser's gradients by the scale, to clip them for example. RuntimeError the second time."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.reciprocal()
        found = creation.tensor(0.0, dtype=dtypes.float32, device=scale.device)
        known["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found, False)
        known["stage"] = OptState.UNSCALED

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if sum(flag.item() for flag in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients unless `unscale_` has, and step if all are finite; return what the optimiser's step
        returned.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            value = self._step_with_scale(optimizer, known, *args, **kwargs)
        else:
            if known["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not known["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            value = self._maybe_opt_step(optimizer, known, *args, **kwargs)
        known["stage"] = OptState.STEPPED
        return value

    def _step_with_scale(
        self, optimizer: Any, known: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Step an optimiser that unscales by itself: it reads its attributes `grad_scale` and `found_inf`, set here for
        the step.
        """
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        scale, _ = self._check_scale_growth_tracker("step")
        if known["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        flags = [flag.to(scale.device) for flag in known["found_inf_per_device"].values()]
        own = getattr(optimizer, "grad_scale", None)
        unscaled = known["stage"] is OptState.UNSCALED
        optimizer.grad_scale = own if unscaled else scale * (1 if own is None else own)
        optimizer.found_inf = sum(flags)
        value = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale, optimizer.found_inf
        return value

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adjust the scale by what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        with no_grad():
            if new_scale is None:
                self._adjust(scale, tracker)
            elif isinstance(new_scale, float):
                scale.fill_(new_scale)
            else:
                fits = new_scale.device.type == self._device and new_scale.numel() == 1
                if not fits or new_scale.requires_grad:
                    raise AssertionError(
                        "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                        "requires_grad=False."
                    )
                scale.copy_(new_scale)
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _adjust(self, scale: Tensor, tracker: Tensor) -> None:
        flags = [
            flag.to(scale.device)
            for known in self._per_optimizer_states.values()
            for flag in known["found_inf_per_device"].values()
        ]
        if not flags:
            raise AssertionError("No inf checks were recorded prior to update.")
        _amp_update_scale_(
            scale,
            tracker,
            sum(flags),
            self._growth_factor,
            self._backoff_factor,
            self._growth_interval,
        )

    def get_scale(self) -> float:
        """Return the scale; waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of steps without overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without overflow after which the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        known = self._growth_tracker
        return self._init_growth_tracker if known is None else int(known.item())

    def is_enabled(self) -> bool:
        """Tell whether scaling is on."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return scale, factors and counters; nothing where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; RuntimeError if it is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        saved = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            saved["_init_scale"] = self.get_scale()
            saved["_init_growth_tracker"] = self._get_growth_tracker()
            saved["_scale"] = saved["_growth_tracker"] = None
        return saved

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, zero = (
            creation.tensor(v, dtype=dtypes.float32, device=scale.device) for v in (1.0, 0.0)
        )
        flags = self._unscale_grads_(optimizer, one, zero, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = flags
        return flags

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
