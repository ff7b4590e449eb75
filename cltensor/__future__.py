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
    """Choose whether conversion makes new parameters, which leaves old ones that an optimiser holds as they were."""
    CONVERSION["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversion gives a module new parameters."""
    return CONVERSION["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Choose whether conversion swaps the contents of parameters with converted ones; objects stay, as by default."""
    CONVERSION["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether conversion swaps the contents of parameters and converted ones."""
    return CONVERSION["swap"]
