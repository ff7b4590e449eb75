"""The operations that take nested tensors, by torch's names, and the answer to a call with such operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import engine
from ..ops.row import ROWS, first_name

JAGGED: dict[str, Callable[..., Any]] = {}
STRIDED: dict[str, Callable[..., Any]] = {}

_OPERATORS = "floordiv and or xor lshift rshift eq ne rsub rdiv rfloordiv rmod rpow rlshift rrshift rtruediv iand ior ixor ilshift irshift invert"
_MORE = (
    "relu relu6 gelu silu elu celu selu leaky_relu hardtanh softplus logsigmoid hardswish hardsigmoid mish softsign tanhshrink "
    "hardshrink softshrink threshold prelu dropout alpha_dropout feature_alpha_dropout native_dropout where masked_fill nan_to_num clamp clip to float half double "
    "bfloat16 int long short char byte bool cpu cuda type type_as clone contiguous detach zero fill zeros_like ones_like "
    "full_like empty_like rand_like randn_like randint_like isnan isinf isfinite addcmul addcdiv lerp copy fmod frexp positive conj "
    "resolve_conj resolve_neg div add sub mul pow remainder floor_divide true_divide pin_memory bernoulli uniform normal"
)
NAMES = frozenset((*_OPERATORS.split(), *_MORE.split()))


def op(*names: str, strided: bool = False) -> Callable:
    """Enter a function for jagged tensors, or for strided ones, under torch's names."""

    def enter(fn: Callable) -> Callable:
        for name in names:
            (STRIDED if strided else JAGGED)[name] = fn
        return fn

    return enter


def elementwise(name: str) -> bool:
    """Tell whether a function computes each element of its result from the same element of each operand."""
    base = name.strip("_")
    return name in ROWS or base in ROWS or base in NAMES


def answer(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Answer a call with nested operands: the classes' `__torch_function__`."""
    kwargs = kwargs or {}
    if func in (engine.grad, engine.backward):  # they know that the values have the history
        return vars(func)["__plain__"](*args, **kwargs)
    name = first_name(func)
    if name == "__get__":
        name = getattr(getattr(getattr(func, "__self__", None), "fget", None), "__name__", name)
    known = cls._table.get(name)
    if known is None and name.startswith("__"):
        known = cls._table.get(name.strip("_"))
    if known is not None:
        return known(*args, **kwargs)
    if elementwise(name):
        return cls._by_elements(func, args, kwargs)
    own = next((vars(k)[name] for k in cls.__mro__[:2] if name in vars(k)), None)
    if callable(own):
        return own(*args, **kwargs)
    raise NotImplementedError(f"{name}(): not supported for NestedTensor")
