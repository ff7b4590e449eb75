"""`MaskedTensor`: a tensor of which a mask says, element by element, whether it is there.

A subclass of Tensor that answers all functions itself (`__torch_function__`): pointwise functions apply to the values and leave the mask,
reductions skip what is masked out, functions of places apply to both. A plain tensor holds the values, and the history: derivatives are
those of plain functions, and 0 where an element is masked out. Functions that are not in the tables here raise TypeError.

This module is loaded when MaskedTensor is first used: once a program has a class that answers functions, all functions ask for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import dtypes
from .. import masked as plain
from ..autograd import Function
from ..ops.row import FUNCTIONS, first_name
from ..reexport import lend
from ..subclasses import DisableTorchFunctionSubclass
from ..tensor import Tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]


def _names(text: str) -> list[str]:
    return text.split()


UNARY_NAMES = _names(
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip "
    "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan "
    "nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc"
)
BINARY_NAMES = _names(
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp "
    "logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum "
    "minimum fmax fmin not_equal rsub"
)
_OPERATORS = _names(
    "__floordiv__ __rfloordiv__ __and__ __or__ __xor__ __lshift__ __rshift__ __eq__ __rsub__ __rmod__ __rpow__ __rdiv__ __invert__"
)
_ALONE = {"angle", "isnan", "positive", "signbit"}  # have no form that writes in place
_IN_PLACE = {
    *(f"{n}_" for n in (*UNARY_NAMES, *BINARY_NAMES) if n not in _ALONE),
    *_names("__iand__ __ior__ __ixor__ __ilshift__ __irshift__"),
}
_POINTWISE = {*UNARY_NAMES, *BINARY_NAMES, *_OPERATORS}
_REDUCTIONS = _names("sum mean amin amax argmin argmax prod all norm var std")
# Functions of places, applied to values and mask alike.
_PLACES = set(
    _names(
        "__getitem__ cat chunk concat expand expand_as flatten index_select movedim narrow permute ravel reshape reshape_as select split "
        "squeeze stack swapaxes swapdims t transpose unbind unflatten unfold unsqueeze view view_as"
    )
)
# Functions of the values that leave the mask; those of places and devices are told apart by their results.
_VALUES = set(
    _names(
        "bfloat16 bool clone contiguous cpu cuda detach double float half int long ones_like short to to_dense type"
    )
)
# Functions that tell of the values, or wait for them, without making a tensor.
_TOLD = set(
    _names(
        "__bool__ __float__ __int__ __len__ dim element_size is_complex is_contiguous is_floating_point is_nonzero is_same_size "
        "is_signed item ndimension nelement numel size storage_offset stride"
    )
)


class _Masking(Function):
    """A copy of a plain tensor's values; the gradient is 0 where they are masked out, whatever arrives there."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Tensor:
        ctx.mask = mask
        return data.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g.masked_fill(~ctx.mask, 0), None


class MaskedTensor(Tensor):
    """Values and a mask of the same size: True where a value is there, False where it is masked out.

    >>> m = torch.masked.masked_tensor(torch.arange(3.0), torch.tensor([True, False, True]))
    >>> m + 1
    MaskedTensor(
      [  1.0000,       --,   3.0000]
    )
    >>> m.sum()
    MaskedTensor(  2.0000, True)
    """

    _masked_data: Tensor
    _masked_mask: Tensor

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        if not data._strided or not mask._strided:
            raise TypeError(
                f"MaskedTensor: values and mask must be strided, got {data.layout}, {mask.layout}"
            )
        if mask.dtype is not dtypes.bool:
            raise TypeError("mask must have dtype bool.")
        if data.dtype.is_complex or data.dtype is dtypes.float8_e4m3fn:
            raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
        if data.shape != mask.shape:
            raise ValueError("data.size() must equal mask.size()")
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
                "data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        if requires_grad and not data.is_floating_point():
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        return _over(data.detach().clone().requires_grad_(requires_grad), mask.clone())

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        pass

    def get_data(self) -> Tensor:
        """Return the values; those that are masked out are arbitrary."""
        return self._masked_data

    def get_mask(self) -> Tensor:
        """Return the mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """Return a plain tensor with `value` in the place of what is masked out."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    @property
    def requires_grad(self) -> bool:
        """Whether derivatives are wanted."""
        return self._masked_data.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._masked_data.requires_grad = value

    @property
    def grad(self) -> MaskedTensor | None:
        """The derivative that `backward` has accumulated, with this tensor's mask."""
        found = self._masked_data.grad
        return None if found is None else _over(found, self._masked_mask)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._masked_data.grad = value._masked_data if isinstance(value, MaskedTensor) else value

    @property
    def grad_fn(self) -> Any:
        """The node that made the values."""
        return self._masked_data.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no node made the values."""
        return self._masked_data.is_leaf

    @property
    def is_sparse(self) -> bool:
        """False: values are dense."""
        return False

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Say whether derivatives are wanted."""
        self._masked_data.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keep the derivative although this is no leaf."""
        self._masked_data.retain_grad()

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:  # fmt: skip
        """Compute derivatives of a scalar, or with `gradient`."""
        if isinstance(gradient, MaskedTensor):
            gradient = gradient.to_tensor(0)
        self._masked_data.backward(gradient, retain_graph, create_graph, inputs)

    def tolist(self) -> Any:
        """RuntimeError: a list has no place for what is masked out."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError: an array has no place for what is masked out."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        values, mask = self._masked_data.tolist(), self._masked_mask.tolist()
        if not self.ndim:
            return f"MaskedTensor({_cell(values) if mask else '--'}, {mask})"
        return f"MaskedTensor(\n{_block(values, mask, 1)}\n)"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return format(repr(self), form)

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not all(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        kwargs = kwargs or {}
        name = first_name(func)
        with DisableTorchFunctionSubclass():
            if name in _REDUCTIONS:
                return _reduced(name, *args, **kwargs)
            if name in _POINTWISE or name in _IN_PLACE:
                return _pointwise(func, name in _IN_PLACE, args, kwargs)
            if name in _PLACES:
                made = func(*_parts(args, "_masked_data"), **kwargs)
                masks = func(*_parts(args, "_masked_mask"), **kwargs)
                if isinstance(made, tuple | list):
                    return type(made)(_over(v, m) for v, m in zip(made, masks, strict=True))
                return _over(made, masks)
            if name in _VALUES:
                made = func(*_parts(args, "_masked_data"), **kwargs)
                if not isinstance(made, Tensor):
                    return made
                mask = args[0]._masked_mask
                return _over(made, mask if mask.device == made.device else mask.to(made.device))
            if name in _TOLD:
                return func(*_parts(args, "_masked_data"), **kwargs)
            if name == "__get__":
                return _attribute(func, args[0])
            if name in ("softmax", "log_softmax"):
                return _normalised(name, *args, **kwargs)
            if name in ("grad", "backward"):
                return _derived(func, args, kwargs)
            if name == "where" and len(args) == 3 and not isinstance(args[0], MaskedTensor):
                return _chosen(*args)
            if name == "copy_" and all(isinstance(a, MaskedTensor) for a in args[:2]):
                _same_mask(args[0]._masked_mask, args[1]._masked_mask)
                args[0]._masked_data.copy_(args[1]._masked_data)
                return args[0]
        return NotImplemented


def _over(values: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a MaskedTensor of a tensor, with its history, and a mask."""
    made: Any = values.detach().as_subclass(MaskedTensor)
    made._masked_data, made._masked_mask = values, mask
    return made


def _derived(func: Callable, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call `autograd.grad` or `autograd.backward` on values; derivatives with respect to MaskedTensors are masked."""
    values = dict(zip(kwargs, _parts(kwargs.values(), "_masked_data"), strict=True))
    found = func(*_parts(args, "_masked_data"), **values)
    if found is None:
        return None
    inputs = args[1] if len(args) > 1 else kwargs["inputs"]
    return tuple(
        _over(g, x._masked_mask) if isinstance(x, MaskedTensor) and g is not None else g
        for g, x in zip(found, (inputs,) if isinstance(inputs, Tensor) else inputs, strict=True)
    )


def _parts(args: Any, what: str) -> list[Any]:
    """Return arguments with each MaskedTensor replaced by its values or its mask, also in lists."""
    found = []
    for a in args:
        if isinstance(a, MaskedTensor):
            found.append(getattr(a, what))
        elif isinstance(a, list | tuple) and any(isinstance(x, MaskedTensor) for x in a):
            found.append(type(a)(_parts(a, what)))
        else:
            found.append(a)
    return found


def _same_mask(first: Tensor, second: Tensor) -> None:
    if first is not second and not FUNCTIONS["equal"](first, second):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )


def _pointwise(func: Callable, in_place: bool, args: Any, kwargs: Any) -> Any:
    operands = [a for a in (*args, *kwargs.values()) if isinstance(a, MaskedTensor)]
    for other in operands[1:]:
        _same_mask(operands[0]._masked_mask, other._masked_mask)
    given = {k: v._masked_data if isinstance(v, MaskedTensor) else v for k, v in kwargs.items()}
    made = func(*_parts(args, "_masked_data"), **given)
    if in_place:
        if not isinstance(args[0], MaskedTensor):
            raise TypeError(
                f"{func.__name__}: a MaskedTensor cannot be written into a plain tensor"
            )
        return args[0]
    if made is NotImplemented:
        return made
    mask = operands[0]._masked_mask
    if made.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return _over(made, mask)


def _reduced(name: str, input: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
    """Reduce what is there. A result is masked out where everything was."""
    values, mask = input._masked_data, input._masked_mask
    if name == "norm":
        ord, *rest = args or [kwargs.pop("p", 2.0)]
        dim = rest[0] if rest else kwargs.pop("dim", None)
        keepdim = rest[1] if len(rest) > 1 else kwargs.pop("keepdim", False)
        order = 2.0 if ord is None or ord == "fro" else ord
        made = plain.norm(values, order, dim, keepdim=keepdim, mask=mask, **kwargs)
        return _over(made, _any(mask, dim, keepdim))
    rest = list(args)
    if name in ("var", "std") and rest and isinstance(rest[0], bool):
        kwargs["unbiased"] = rest.pop(0)
    dim = rest.pop(0) if rest else kwargs.pop("dim", None)
    if name in ("var", "std") and rest:
        kwargs["unbiased"] = rest.pop(0)
    keepdim = rest.pop(0) if rest else kwargs.pop("keepdim", False)
    if name == "all":
        filled = values.masked_fill(~mask, True).bool()
        return _over(filled.all(keepdim=keepdim) if dim is None else filled.all(dim, keepdim), _any(mask, dim, keepdim))  # fmt: skip
    made = getattr(plain, name)(values, dim, keepdim=keepdim, mask=mask, **kwargs)
    return _over(made, _any(mask, dim, keepdim))


def _any(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if dim is None or dim == () or dim == []:
        found = mask.any()
        return found.reshape((1,) * mask.ndim) if keepdim else found
    return mask.any(dim, keepdim)


def _normalised(name: str, input: MaskedTensor, dim: int, *args: Any, **kwargs: Any) -> Any:
    dtype = kwargs.get("dtype", args[-1] if args else None)
    made = getattr(plain, name)(input._masked_data, dim, dtype=dtype, mask=input._masked_mask)
    return _over(made, input._masked_mask)


def _chosen(condition: Tensor, input: Any, other: Any) -> Any:
    if not (isinstance(input, MaskedTensor) and isinstance(other, MaskedTensor)):
        return NotImplemented
    where = FUNCTIONS["where"]
    return _over(where(condition, input._masked_data, other._masked_data), where(condition, input._masked_mask, other._masked_mask))  # fmt: skip


def _attribute(getter: Any, owner: MaskedTensor) -> Any:
    """Return the attribute `data`; NotImplemented for others. getter: the property's `__get__`."""
    if getattr(getter.__self__.fget, "__name__", "") == "data":
        return _over(owner._masked_data.detach(), owner._masked_mask)
    return NotImplemented


# --- printing ------------------------------------------------------------------------------------


def _cell(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _block(values: Any, mask: Any, level: int) -> str:
    """Return nested lists as lines; in a row, what is masked out is as wide as the widest value, or 8 characters."""
    indent = "  " * level
    if values and isinstance(values[0], list):
        blocks = [_block(v, m, level + 1) for v, m in zip(values, mask, strict=True)]
        return f"{indent}[\n" + ",\n".join(blocks) + f"\n{indent}]"
    cells = [_cell(v) if m else "" for v, m in zip(values, mask, strict=True)]
    width = max((len(c) or 8 for c in cells), default=0)
    return f"{indent}[{', '.join(c or '--'.rjust(width) for c in cells)}]"


# --- making --------------------------------------------------------------------------------------


def is_masked_tensor(obj: Any, /) -> bool:
    """Tell whether an object is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """Return a MaskedTensor of values and a mask; a leaf, whatever made the values."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a MaskedTensor whose derivatives flow to `data`: 0 where it is masked out."""
    MaskedTensor(data.detach() if isinstance(data, Tensor) else data, mask)  # checks them
    mask = mask.clone()
    return _over(_Masking.apply(data, mask), mask)


lend(
    globals(),
    {
        "binary": ("masked.maskedtensor", "BINARY_NAMES"),
        "core": ("masked.maskedtensor", "MaskedTensor is_masked_tensor"),
        "creation": ("masked.maskedtensor", "as_masked_tensor masked_tensor"),
        "passthrough": ("masked.maskedtensor", ""),
        "reductions": ("masked.maskedtensor", ""),
        "unary": ("masked.maskedtensor", "UNARY_NAMES"),
    },
)
