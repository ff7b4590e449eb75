"""What `Module.to` was asked for: its forms of arguments, told apart as torch's parser does, and how it changes parameters."""

from __future__ import annotations

from typing import Any

from ...dtypes import asked
from ...dtypes import dtype as dtype_class
from ...runtime import device as device_class
from ...tensor import Tensor

CONVERSION = {"overwrite": False, "swap": False}  # `torch.__future__`'s settings


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    """Return device, dtype and memory format from the arguments of `Module.to`; TypeError unless they are of one of its forms."""
    first = args[0] if args else None
    rest = ("non_blocking", "copy")
    names: tuple[str, ...] = ("device", "dtype", *rest)
    if isinstance(first, (dtype_class, type)):
        names = ("dtype", *rest)
    elif isinstance(first, Tensor):
        names = ("tensor", *rest)
    given = {**kwargs, **dict(zip(names, args))}
    if len(given) < len(args) + len(kwargs) or not all(_fits_to(k, v) for k, v in given.items()):
        got = [_type_name(a) for a in args] + [f"{k}={_type_name(v)}" for k, v in kwargs.items()]
        raise TypeError(
            f"to() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
        )
    if "copy" in given:
        raise RuntimeError(".to() does not accept copy argument")
    device, dtype = given.get("device"), asked(given.get("dtype"), "to")
    if "tensor" in given:
        device, dtype = given["tensor"].device, given["tensor"].dtype
    return device, dtype, given.get("memory_format")


_TO_KINDS: dict[str, tuple[type, ...]] = {
    "device": (str, device_class, int, type(None)),
    "dtype": (dtype_class, type, type(None)),
    "non_blocking": (bool,),
    "copy": (bool,),
    "tensor": (Tensor,),
    "memory_format": (object,),
}


def _fits_to(name: str, value: Any) -> bool:
    return isinstance(value, _TO_KINDS.get(name, ())) and not (
        name == "device" and isinstance(value, bool)
    )


def _type_name(value: Any) -> str:
    kind = type(value)
    special = {dtype_class: "torch.dtype", device_class: "torch.device"}
    return special.get(kind, kind.__name__)
