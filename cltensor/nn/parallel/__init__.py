"""`cltensor.nn.parallel`: modules over several devices; programs that ask for it run on the one their tensors are on."""

from __future__ import annotations

from typing import Any, NoReturn

from ...reexport import expose
from ..modules.module import Module
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


class DataParallel(Module):
    """A module under the name `module`, called as it is: the batch is not split over devices.

    That is what torch's does without a GPU; names in the state dict begin with "module." as there.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or ())
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


class DistributedDataParallel(Module):
    """RuntimeError: there is no `cltensor.distributed` to train over."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            "DistributedDataParallel: cltensor works on the devices of one process (distributed.is_available() is False)"
        )


expose(
    globals(),
    {"data_parallel": "DataParallel data_parallel", "distributed": "DistributedDataParallel"},
)
