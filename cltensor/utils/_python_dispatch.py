"""`torch.utils._python_dispatch`: what libraries ask about tensors that wrap others beneath autograd, of which there are none here."""

from __future__ import annotations

from typing import Any

from ..reexport import absent

(TorchDispatchMode,) = absent(
    __name__, "TorchDispatchMode", "there is no dispatcher beneath functions"
)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return False: a subclass of Tensor is the tensor, and wraps none."""
    return False


is_traceable_wrapper_subclass_type = is_traceable_wrapper_subclass
