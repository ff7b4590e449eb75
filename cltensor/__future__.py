"""`torch.__future__`: how converting a module (`to`, `half`, ...) changes its parameters."""

from __future__ import annotations

from .nn.modules.moving import CONVERSION

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Say whether a converted module has new parameters; those that an optimiser holds then stay as they were."""
    CONVERSION["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether a converted module has new parameters."""
    return CONVERSION["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Say whether parameters exchange what they hold with converted ones: they stay the same objects, as by default."""
    CONVERSION["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether parameters exchange what they hold with converted ones."""
    return CONVERSION["swap"]
