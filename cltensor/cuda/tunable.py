"""`torch.cuda.tunable`: the search for the fastest matrix product while a program runs, which is always off here.

Sizes of kernels are measured beforehand, by `python -m cltensor.tune`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WHY = "products are not tuned while a program runs; `python -m cltensor.tune` measures kernels"


def _off(name: str) -> Callable[[], bool]:
    def call() -> bool:
        return False

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "Return False."
    return call


def _switch(name: str) -> Callable[[bool], None]:
    def call(val: bool = True) -> None:
        if val:
            raise NotImplementedError(f"cuda.tunable.{name}: {_WHY}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Accept False; NotImplementedError for True: {_WHY}."
    return call


def _refused(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"cuda.tunable.{name}: {_WHY}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"NotImplementedError: {_WHY}."
    return call


_KINDS: dict[Callable[[str], Callable[..., Any]], str] = {
    _off: "is_enabled tuning_is_enabled record_untuned_is_enabled",
    _switch: "enable tuning_enable record_untuned_enable set_numerical_check_tolerances",
    _refused: "get_filename set_filename get_max_tuning_duration set_max_tuning_duration get_max_tuning_iterations "
    "set_max_tuning_iterations get_rotating_buffer_size set_rotating_buffer_size read_file tune_gemm_in_file "
    "mgpu_tune_gemm_in_file",
}
for _made, _names in _KINDS.items():
    globals().update({_name: _made(_name) for _name in _names.split()})


def get_results() -> tuple[()]:
    """Return an empty tuple: nothing was tuned."""
    return ()


def get_validators() -> tuple[()]:
    """Return an empty tuple: there are no results whose origin could be compared."""
    return ()


__all__ = [*" ".join(_KINDS.values()).split(), "get_results", "get_validators"]  # noqa: PLE0604 - the table decides
