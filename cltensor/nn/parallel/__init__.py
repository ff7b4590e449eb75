"""`cltensor.nn.parallel`: modules replicated over processes, and torch's wrappers for several devices.

The latter run a module on the device that its tensors are on.
"""

from __future__ import annotations

from typing import Any

from ... import cuda
from ...reexport import expose
from ..modules.module import Module
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


class DataParallel(Module):
    """A wrapper that calls its `module` as it is: the batch is not split over devices.

    torch's does the same without a GPU; as there, names in the state dict begin with "module.".
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or ()) if cuda.is_available() else []
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module on its inputs, as `DataParallel` does."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


expose(
    globals(),
    {"data_parallel": "DataParallel data_parallel"},
)
