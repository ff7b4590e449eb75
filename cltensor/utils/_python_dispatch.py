"""`torch.utils._python_dispatch`: queries about subclasses that wrap tensors beneath autograd; cltensor has none."""

from __future__ import annotations

from typing import Any

from ..reexport import absent

(TorchDispatchMode,) = absent(
    __name__, "TorchDispatchMode", "there is no dispatcher beneath functions"
)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return False: an instance of a subclass of Tensor holds its data itself and wraps no other tensor."""
    return False


is_traceable_wrapper_subclass_type = is_traceable_wrapper_subclass
