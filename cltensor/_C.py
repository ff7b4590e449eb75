"""`torch._C`: those names of torch's binary core that well-known libraries use, with answers that hold here.

There is no such core: the names are defined elsewhere in the package, or tell that nothing is traced.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from . import _VF as _VariableFunctions
from .accelerator import current_accelerator
from .autograd import TensorBase
from .backends import cudnn
from .batching.levels import transforming
from .batching.mapping import _add_batch_dim, _remove_batch_dim
from .dtypes import dtype
from .futures import Future
from .linalg import LinAlgError as _LinAlgError
from .memory_format import layout, memory_format
from .nn.functional import (
    avg_pool2d,
    avg_pool3d,
    elu_,
    gelu,
    hardtanh_,
    leaky_relu_,
    linear,
    one_hot,
    scaled_dot_product_attention,
    softplus,
    softshrink,
)
from .nn.functional import logsigmoid as log_sigmoid
from .nn.modules.moving import parse_to
from .random import Generator
from .reexport import SCRIPT, absent, expose
from .runtime import device
from .size import Size
from .storages import StorageBase
from .subclasses import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    current_modes,
)
from .subclasses import disabled as _disabled_torch_function_impl
from .tensor import Tensor

__all__ = ["Future", "Generator", "Size", "TensorBase", "device", "dtype", "layout", "memory_format"]  # fmt: skip

_TensorMeta = type(Tensor)
_VariableFunctionsClass = _VariableFunctions  # pickles of torch's get functions from it
globals().update(
    zip(
        SCRIPT.split(),
        absent(__name__, SCRIPT, "there is no TorchScript, functions run as they are"),
        strict=True,
    )
)


class DispatchKey(enum.Enum):
    """Names of the backends and layers of torch's dispatcher; there is no dispatcher here."""

    Undefined, CPU, CUDA, XPU, Meta, AutogradCPU, AutogradCUDA, AutogradXPU = range(8)
    AutocastCPU, AutocastCUDA, AutocastXPU = range(8, 11)
    CompositeImplicitAutograd, CompositeExplicitAutograd = range(11, 13)


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def has(self, key: DispatchKey) -> bool:
        """Tell whether a key is in the set."""
        return key in self._keys


def _get_tracing_state() -> None:
    """Return None: nothing is traced."""


def _are_functorch_transforms_active() -> bool:
    """Tell whether a transform of `func` is running: `vmap`, `grad`, `vjp`, `jvp` and what is made of them."""
    return transforming()


def is_batchedtensor(tensor: Tensor) -> bool:
    """Tell whether a running `vmap` hides a dimension of a tensor."""
    from .batching import Batched

    return isinstance(tensor, Batched)


is_legacy_batchedtensor = is_batchedtensor  # `is_grads_batched` uses the same `vmap`


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Return the tensor that holds the values of one whose batch dim a running `vmap` hides; others as they are."""
    return tensor.value if is_batchedtensor(tensor) else tensor  # type: ignore[attr-defined]


def _setting(value: Any, tells: bool = True) -> tuple[Callable[[Any], Any], Callable[[], Any]]:
    """Return a function that sets an option and `tells` its earlier value, and one that returns the present value."""

    def exchange(new: Any) -> Any:
        nonlocal value
        earlier, value = value, new
        return earlier if tells else None

    return exchange, lambda: value


# Options of TorchScript's compiler, which programs set and set back. They are kept; there is no such compiler.
_jit_set_profiling_executor, _ = _setting(True)
_jit_set_profiling_mode, _ = _setting(True)
_jit_set_num_profiled_runs, _jit_get_num_profiled_runs = _setting(1)
_jit_set_fusion_strategy, _ = _setting([("STATIC", 2), ("DYNAMIC", 10)])
_jit_set_texpr_fuser_enabled, _jit_texpr_fuser_enabled = _setting(True, False)
_jit_override_can_fuse_on_cpu, _jit_can_fuse_on_cpu = _setting(False, False)
_jit_override_can_fuse_on_gpu, _jit_can_fuse_on_gpu = _setting(False, False)


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no usage is reported."""


def _is_alias_of(first: Tensor, second: Tensor) -> bool:
    """Tell whether two tensors share a storage."""
    return first._storage is second._storage


def _parse_to(*args: Any, **kwargs: Any) -> tuple[device | None, dtype | None, bool, Any]:
    """Parse the arguments of a module's `to` into device, dtype, `non_blocking` and memory format."""
    where, kind, waits_not, form = parse_to(*args, **kwargs)
    return None if where is None else device(where), kind, waits_not, form


def _get_accelerator() -> device:
    """Return the type of device to put tensors on."""
    return current_accelerator() or device("cpu")


def _get_cudnn_enabled() -> bool:
    """Return `backends.cudnn.enabled`."""
    return cudnn.enabled


def _is_torch_function_mode_enabled() -> bool:
    """Tell whether a `TorchFunctionMode` is entered."""
    return bool(current_modes())


expose(
    globals(),
    {
        # Functions of torch.nn.functional that pickles of torch's have under these names.
        "_nn": "_parse_to avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear log_sigmoid one_hot "
        "scaled_dot_product_attention softplus softshrink",
        "_functorch": "_add_batch_dim _remove_batch_dim get_unwrapped is_batchedtensor "
        "is_legacy_batchedtensor",
    },
)
