"""Weights of convolutions in channels-last order."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> None:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the memory format of the weights of all Conv2d and ConvTranspose2d in a module; returns the module."""
    _convert(module, (Conv2d, ConvTranspose2d), memory_format)
    return module


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Convert the memory format of the weights of all Conv3d and ConvTranspose3d in a module; returns the module."""
    _convert(module, (Conv3d, ConvTranspose3d), memory_format)
    return module
