"""Construction by type: `sparse.FloatTensor(…)` and its kin, and `s.new(…)`."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..creation.factory import place
from ..errors import warn_once
from ..legacy import TENSOR_NAMES, TensorType
from ..memory_format import sparse_coo
from ..ops.core import is_tensor
from ..runtime import device as Device
from ..size import Size
from .creation import coo_of, empty
from .table import op
from .tensor import SparseTensor

_NEW_FORMS = """
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def _legacy(args: tuple, named: dict[str, Any], dtype: Any, home: Any, owner: str) -> SparseTensor:
    """Make what `s.new(…)` and `sparse.FloatTensor(…)` return: of sizes, or of indices and values.

    home: the device of the tensor, or of the type, that is called. owner: what it is called in an error.
    """
    at = place(home)
    if (asked := named.get("device")) is not None and Device(asked).type != at.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {at.type} but device type: {Device(asked).type} was passed"
        )
    if "size" in named:
        args = (Size(named["size"]),)
    parts = args[:2] if len(args) > 1 and all(is_tensor(a) for a in args[:2]) else ()
    if parts and len(args) < 4 and all(isinstance(a, tuple | list) for a in args[2:]):
        indices, values = parts
        if indices.dtype is not dtypes.int64:
            raise RuntimeError(f"expected scalar type Long but found {indices.dtype.scalar_name}")
        return coo_of(indices, values, *args[2:])
    if len(args) == 1 and isinstance(args[0], tuple | list) and not isinstance(args[0], Size):
        raise TypeError(
            f"{owner}(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided tensor and convert it to "
            "sparse via to_sparse."
        )
    size = args[0] if len(args) == 1 and isinstance(args[0], Size) else args
    if any(not isinstance(n, int) for n in size):
        got = ", ".join("Tensor" if is_tensor(a) else type(a).__name__ for a in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({got}), but expected one of:{_NEW_FORMS}"
        )
    return empty(size or (0,), dtype, at)


@op("new", function=False)
def new(self: Any, *args: Any, **named: Any) -> SparseTensor:
    """Make a sparse tensor of sizes, or of indices and values, of the same dtype."""
    return _legacy(args, named, self.dtype, self.device, "SparseTensor.new")


def _deprecated(args: tuple) -> None:
    if args and is_tensor(args[0]):
        old = "indices, values, shape, *, device="
        new = "indices, values, shape, dtype=, device="
        if len(args) < 3:
            old, new = "indices, values, *, device=", "indices, values, dtype=, device="
    else:
        old, new = ("shape, *, device=", "shape, dtype=, device=") if args else ("", "(0,), dtype=")
    warn_once(
        f"torch.sparse.SparseTensor({old}) is deprecated.  Please use torch.sparse_coo_tensor({new})."
    )


class _SparseType(TensorType):
    """The type of torch.sparse.FloatTensor and its kin: calling makes a sparse tensor, isinstance asks for layout and dtype."""

    def __instancecheck__(cls, other: Any) -> bool:
        return (
            isinstance(other, SparseTensor)
            and other.layout is sparse_coo
            and other.dtype is cls._dtype
            and (other.device.type == "cuda") == (cls._device == "cuda")
        )

    def __call__(cls, *args: Any, **named: Any) -> SparseTensor:
        made = _legacy(args, named, cls._dtype, cls._device, "torch.sparse.SparseTensor")
        _deprecated(args)
        return made


def typed(name: str, dt: Any, dev: str | None = None) -> _SparseType:
    """Return the type of sparse tensors of a dtype, on GPUs if `dev` is "cuda"."""
    made = _SparseType(
        f"{name}Tensor", (), {"__doc__": f"Constructor and type check of sparse {dt!r} tensors."}
    )
    made._dtype, made._device = dt, dev
    made.__module__ = "torch.cuda.sparse" if dev else "torch.sparse"
    return made


TYPED = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long")
TYPES = {f"{name}Tensor": typed(name, TENSOR_NAMES[name]) for name in TYPED}
