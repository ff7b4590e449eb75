"""Copies of a module on several devices whose gradients flow back to the module: `torch.nn.parallel.replicate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module
from . import comm

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Return a replica of a module for each device.

    A replica's parameters are copies made by `Tensor.to`, so that a gradient reaches the original; with `detach` it does
    not. Replicas have no parameters of their own: `parameters()` is empty.
    """
    places = [comm.place(d) for d in devices]
    made = []
    for where in places:
        replicas = {id(m): _bare(m) for m in network.modules()}
        copies: dict[int, Any] = {}
        for module in network.modules():
            replica = replicas[id(module)]
            for name, child in module._modules.items():
                replica._modules[name] = None if child is None else replicas[id(child)]
            for name, p in module._parameters.items():
                if p is not None and id(p) not in copies:
                    copies[id(p)] = (p.detach() if detach else p).to(where)
                    if copies[id(p)] is p:
                        copies[id(p)] = p.view_as(p)
                replica.__dict__[name] = None if p is None else copies[id(p)]
            for name, b in module._buffers.items():
                replica._buffers[name] = None if b is None else b.detach().to(where)
        made.append(replicas[id(network)])
    return made


def _bare(module: Module) -> Module:
    """Return a module of the same class and attributes that has no parameters, children or buffers yet."""
    replica = module.__new__(type(module))
    replica.__dict__ = {
        **module.__dict__,
        "_parameters": {},
        "_buffers": {},
        "_modules": {},
        "_is_replica": True,
    }
    return replica
