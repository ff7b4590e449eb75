"""Torch's error for the arguments of a call that failed: which argument, its position, what type it must have.

Torch checks the types of all arguments before it computes anything. Here no type is checked beforehand: a function
given a wrong argument raises any exception, and only then are the arguments compared with its annotations (`flaw`).
Flags are the exception: they are checked beforehand (`flags`), because Python accepts any object as a truth value, and
the call would not fail. Knows functions by their names alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .. import dtypes
from ..errors import class_name
from . import core

# For each name, the numbers of arguments that each of torch's overloads of the function takes, then those of the
# method's overloads. Torch's error names the wrong argument only if the number of arguments leaves a single overload.
_FORMS: dict[str, tuple[list[range], list[range]]] = {}


# Torch's names of the first parameters of functions where these have other names here.
NAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        [
            *("linalg_cholesky", "linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh"),
            *("linalg_householder_product", "linalg_ldl_factor", "linalg_ldl_factor_ex", "linalg_matrix_exp", "linalg_matrix_norm"),
            *("linalg_norm", "linalg_solve_triangular", "linalg_tensorinv", "linalg_vector_norm"),
        ],
        ("input",),
    ),
    **dict.fromkeys(
        [
            *("special_airy_ai", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1"),
            "special_spherical_bessel_j0",
        ],
        ("x",),
    ),
    "linalg_det": ("A",),
    "lu_solve": ("input",),
    "linalg_lstsq": ("input", "b"),
    "linalg_tensorsolve": ("input", "other"),
}  # fmt: skip


def _ranges(text: str) -> list[range]:
    bounds = [form.partition("-") for form in text.split()]
    return [range(int(least), int(most or least) + 1) for least, _, most in bounds]


for _names, _of_function, _of_method in (
    ("add sub", "2-4", "1-2"),
    ("add_ copy_ sub_", "", "1-2"),
    ("addbmm addmv addr sspaddmm", "3-6", "2-4"),
    ("addbmm_ addmm_ addmv_ addr_ baddbmm_", "", "2-4"),
    ("addcdiv addcmul", "3-5", "2-3"),
    ("addcdiv_ addcmul_", "", "2-3"),
    ("addmm baddbmm", "3-6 4-7", "2-4"),
    ("all any", "1-2 1-4 2-4", "0 0-2 1-2"),
    ("arange", "1-7 2-7 2-9", ""),
    ("argsort", "1-3 2-5", "0-2 1-3"),
    ("bernoulli", "1-3 2-3", "0-1 1-2"),
    ("bernoulli_", "", "0-2 1-2"),
    (
        "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder",
        "2 2-3 2-3",
        "1 1",
    ),
    (
        (
            "bitwise_and_ bitwise_left_shift_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ clamp_max_ clamp_min_ copysign_ eq_ "
            "fill_ float_power_ floor_divide_ fmod_ ge_ greater_ greater_equal_ gt_ le_ less_ less_equal_ lt_ multiply_ ne_ "
            "not_equal_ pow_ remainder_ true_divide_ view xlogy_"
        ),
        "",
        "1 1",
    ),
    ("bartlett_window blackman_window hann_window", "1-6 2-7", ""),
    ("hamming_window", "1-6 2-7 3-8 4-9", ""),
    ("kaiser_window", "1-6 2-7 3-8", ""),
    ("bmm dsmm mm spmm", "2-3 3-4", ""),
    ("bucketize", "2-4 2-5", ""),
    ("clamp clip", "1-4 1-4", "0-2 0-2"),
    ("clamp_ clip_", "", "0-2 0-2"),
    (
        "clamp_max clamp_min copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal",
        "2-3 2-3",
        "1 1",
    ),
    ("conv1d conv2d conv3d searchsorted", "2-7 2-7", ""),
    ("count_nonzero", "1-2 2", "0-1 1"),
    ("cumulative_trapezoid linalg_cond trapezoid trapz", "1-3 2-3", ""),
    ("div", "2-3 3 3-4", "1 2 2"),
    ("div_", "", "1 2 2"),
    ("divide", "2 2-3 3 3-4", "1 1 2 2"),
    ("divide_", "", "1 1 2 2"),
    ("dsplit hsplit vsplit", "2 2", "1 1"),
    ("eye rand rand_like randn randn_like randperm", "1-7 2-8", ""),
    ("fake_quantize_per_tensor_affine", "5 5", ""),
    ("fill", "2 2", ""),
    ("float_power pow xlogy", "2-3 2-3 2-3", "1 1"),
    ("floor_divide multiply true_divide", "2 2-3", "1 1"),
    ("gradient", "1-4 2-3 2-4 2-4 3-4 3-4 3-4", ""),
    ("histogram", "1-6 2-5", "0-4 1-3"),
    ("histogramdd isin", "2-5 2-5 2-5", ""),
    ("index_fill narrow", "4 4", "3 3"),
    ("index_fill_", "", "3 3"),
    ("lerp", "3-4 3-4", "2 2"),
    ("lerp_ masked_fill_", "", "2 2"),
    ("linalg_matrix_norm linalg_norm", "1-6 2-6", ""),
    ("linalg_matrix_rank linalg_pinv", "1-5 1-5 2-4 2-4", ""),
    ("linspace", "3-9 3-9 3-9 3-9", ""),
    ("logspace", "3-10 3-10 3-10 3-10", ""),
    ("masked_fill moveaxis movedim", "3 3", "2 2"),
    ("max min", "1-2 2-3 2-4", "0 1 1-2"),
    ("mean", "1-3 2-5", "0-1 1-3"),
    ("median nanmedian", "1 2-4", "0 1-2"),
    ("nanquantile quantile", "2-6 2-6", "1-4 1-4"),
    ("nonzero round_", "", "0 1"),
    ("normal", "1-4 2-4 2-4 3-10", ""),
    ("nuclear_norm", "1-3 2-4", ""),
    ("prod sum", "1-2 2-5", "0-1 1-3"),
    ("randint", "2-8 3-9 3-9 4-10", ""),
    ("randint_like", "2-8 2-8 3-9 3-9 3-9 4-10", ""),
    ("random_", "", "0-1 1-2 2-3"),
    ("repeat_interleave", "1-2 2-4 2-4", "1-3 1-3"),
    ("round", "1-2 2-3", "0 1"),
    ("rsub view_copy", "2-3 2-3", ""),
    ("saddmm", "3-6", ""),
    ("scatter", "4-5 4-5 5-6 5-6", "3 3 4 4"),
    ("scatter_", "", "3 3 4 4"),
    ("set_", "", "0 1 1 3-4 3-4"),
    ("sort", "1-4 2-5", "0-2 1-3"),
    (
        (
            "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
            "special_chebyshev_polynomial_w special_hermite_polynomial_h special_hermite_polynomial_he "
            "special_laguerre_polynomial_l special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t "
            "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w "
            "special_xlog1py special_xlogy special_zeta"
        ),
        "2-3 2-3 2-3",
        "",
    ),
    ("squeeze", "1 2 2", "0 1 1"),
    ("squeeze_", "", "0 1 1"),
    ("squeeze_copy", "1-2 2-3 2-3", ""),
    ("std var", "1-2 1-5 2-5", "0-1 0-3 1-3"),
    ("std_mean var_mean", "1-2 1-4 2-4", ""),
    ("subtract", "2-3 2-4", "1-2 1-2"),
    ("subtract_", "", "1-2 1-2"),
    ("tensor_split", "2-3 2-3 2-3", "1-2 1-2 1-2"),
    ("to_sparse", "", "0-3 1"),
    ("where", "1 3 3 3 3-4", "2 2"),
):
    for _name in _names.split():
        _FORMS[_name] = _ranges(_of_function), _ranges(_of_method)


def _forms(name: str, method: bool) -> list[range]:
    """Return the numbers of arguments that each overload of a function or method takes; none where it has one form."""
    of_function, of_method = _FORMS.get(name, ([], []))
    if method or of_function or not name.endswith("_"):
        return of_method if method else of_function
    # torch.fill_ is the method as a function.
    return [range(n.start + 1, n.stop + 1) for n in of_method]


# ------------------------------------------------------------------------------------------- kinds of arguments


def is_whole(v: Any) -> bool:
    """Return whether torch takes a value as an int."""
    if core.is_tensor(v):
        return not v.ndim and v.dtype.category == 1
    return v.__class__ is not bool and hasattr(v, "__index__")


def _real(v: Any) -> bool:
    if core.is_tensor(v):
        return not v.ndim and not v.requires_grad and v.dtype.category < 3
    return isinstance(v, int | float | np.integer | np.floating) or hasattr(v, "__index__")


def _numeric(v: Any) -> bool:
    return isinstance(v, complex | np.complexfloating) or _real(v)


_OVERFLOW = "Overflow when unpacking long long"


def _too_big(v: Any) -> bool:
    return isinstance(v, int) and not -(1 << 63) <= v < 1 << 63


def _sequence(v: Any) -> bool:
    return isinstance(v, tuple | list)


class _Kind(NamedTuple):
    said: str  # the type as torch's errors name it
    fits: Callable[[Any], bool]  # whether a value has this type
    items: Callable[[Any], bool] | None = None  # for sequences: whether an element fits


_KINDS = {
    "Tensor": _Kind("Tensor", core.is_tensor),
    "Tensor | complex": _Kind("Tensor", lambda v: core.is_tensor(v) or _numeric(v)),
    "bool": _Kind("bool", lambda v: v.__class__ is bool),
    "int": _Kind("int", is_whole),
    "Tensor | float": _Kind("Tensor", lambda v: core.is_tensor(v) or _real(v)),
    "float": _Kind("float", _real),
    "float | str": _Kind("Number", lambda v: _real(v) or isinstance(v, str)),
    "complex": _Kind("Number", _numeric),
    "str": _Kind("str", lambda v: isinstance(v, str)),
    "dtype": _Kind("torch.dtype", lambda v: isinstance(v, dtypes.dtype | type)),
    "Dims": _Kind("tuple of ints", lambda v: _sequence(v) or is_whole(v), is_whole),
    "Sequence[int]": _Kind("tuple of ints", lambda v: _sequence(v) or is_whole(v), is_whole),
    "Sequence[Tensor]": _Kind("tuple of Tensors", _sequence),
}
_KINDS["Number"] = _KINDS["complex"]
_KINDS["int | Sequence[int]"] = _KINDS["Dims"]
_KINDS["pybool"] = _KINDS["bool"]
_KINDS["DType"] = _KINDS["dtypes.dtype"] = _KINDS["dtype"]


class _Parameter(NamedTuple):
    name: str
    kind: _Kind | None
    none: bool  # whether None is accepted
    required: bool
    named: bool  # keyword-only

    def flaw(self, value: Any) -> str:
        """Return what is wrong with the value's type, as in "must be int, not str"; "" if nothing is."""
        kind = self.kind
        if kind is None or (value is None and self.none):
            return ""
        if not kind.fits(value):
            return f"must be {kind.said}, not {class_name(value)}"
        if kind.items is not None and _sequence(value) and value and not kind.items(value[0]):
            return f"must be {kind.said}, but found element of type {class_name(value[0])} at pos 0"
        return ""

    def misfit(self, value: Any) -> str:
        """Return why torch cannot unpack a value that passes `flaw`: an integer beyond 64 bits, a later element of the
        wrong type; "" if it can.
        """
        if self.kind is _KINDS["int"]:
            return _OVERFLOW if _too_big(value) else ""
        if self.kind is None or self.kind.items is not is_whole:
            return ""
        for at, item in enumerate(value if _sequence(value) else (value,), 1):
            big = _too_big(item)
            if big or not (is_whole(item) or item.__class__ is bool):
                why = _OVERFLOW if big else f"type must be tuple of ints,but got {class_name(item)}"
                return f"argument '{self.name}' failed to unpack the object at pos {at} with error \"{why}{'' if big else chr(34)}"
        return ""


class Signature(NamedTuple):
    """The parameters of a function; `open`: it also takes `*args`, `free`: it also takes `**kwargs`."""

    parameters: tuple[_Parameter, ...]
    open: bool = False
    free: bool = False


def signature_of(names: Sequence[str], numbers: Sequence[bool], out: bool) -> Signature:
    """Return the signature of a row (a pointwise op) with the operands `names`.

    numbers: for each operand, whether it may be a number instead of a tensor. out: whether there is an `out` parameter.
    """
    of = {True: _KINDS["Tensor | complex"], False: _KINDS["Tensor"]}
    operands = [
        _Parameter(name, of[number], False, True, False)
        for name, number in zip(names, numbers, strict=True)
    ]
    if out:
        operands.append(_Parameter("out", _KINDS["Tensor"], True, False, True))
    return Signature(tuple(operands))


def parameter(name: str, annotation: str, *, none: bool = False) -> _Parameter:
    """Return a required parameter of the type that an annotation names, of any type if it names none that is checked.

    none: whether None is accepted, too.
    """
    return _Parameter(name, _KINDS.get(annotation), none, True, False)


@functools.cache
def _signature(fn: Any) -> Signature:
    parameters: list[_Parameter] = []
    is_open = is_free = False
    for p in inspect.signature(fn).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            is_open = True
            if p.name == "size":
                parameters.append(parameter("size", "Dims"))
        elif p.kind is p.VAR_KEYWORD:
            is_free = True
        else:
            text = p.annotation if isinstance(p.annotation, str) else ""
            kind = _KINDS.get(text.removesuffix(" | None"))
            required = p.default is p.empty
            none = text.endswith(" | None") or p.default is None
            name = "input" if not parameters and p.name in ("self", "t") else p.name
            parameters.append(_Parameter(name, kind, none, required, p.kind is p.KEYWORD_ONLY))
    # `inspect` looks through decorators, so ask the outermost function: the decorator of a function that takes sizes as
    # `*size` also accepts them as one tuple, by keyword.
    own = vars(fn).get("__plain__", fn)  # an intercepted function's code takes any arguments
    if "__signature__" not in vars(own):
        is_free = is_free or bool(own.__code__.co_flags & inspect.CO_VARKEYWORDS)
    return Signature(tuple(parameters), is_open, is_free)


def flags(fn: Any) -> tuple[int, ...]:
    """Return the positions of a function's parameters that are annotated as bool."""
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount]
    return tuple([at for at, name in enumerate(names) if classes(fn).get(name) is bool])


def classes(fn: Any) -> dict[str, type]:
    """Return the class of each parameter whose value is checked before the call when it is given by keyword: the bools
    and the ints.
    """
    kinds = {"bool": bool, "pybool": bool, "int": int}
    return {name: kinds[of] for name, of in fn.__annotations__.items() if of in kinds}


# ------------------------------------------------------------------------------------------- what is said


def invalid_combination(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any] = MappingProxyType({})
) -> TypeError:
    """Return torch's TypeError for arguments that match none of a function's overloads."""
    given = "".join([class_name(v) + ", " for v in args])
    given += "".join([f"{k}={class_name(v)}, " for k, v in reversed(list(kwargs.items()))])
    if args:
        given = given[:-2]
    return TypeError(f"{name}() received an invalid combination of arguments - got ({given})")


def lacking(names: Sequence[str]) -> str:
    """Return the end of torch's text for missing arguments, which has the plural where one is missing. `names` are
    those of all required parameters from the first missing one on, given or not.
    """
    plural = "s" if len(names) == 1 else ""
    quoted = ", ".join([f'"{n}"' for n in names])
    return f" missing {len(names)} required positional argument{plural}: {quoted}"


def no_sizes(function: str, name: str, position: int, value: Any) -> TypeError:
    """Return torch's error for an argument that is neither an int nor a sequence of ints."""
    expected = parameter(name, "Sequence[int]")
    if wrong := expected.flaw(value):
        return TypeError(f"{function}(): argument '{name}' (position {position}) {wrong}")
    return TypeError(f"{function}(): {expected.misfit(value)}")


def flaw(
    signature: Signature, name: str, method: bool, args: Sequence[Any], kwargs: dict[str, Any]
) -> TypeError | ValueError | None:
    """Return torch's error for arguments of wrong types, number or names; None if nothing is wrong with them.

    method: `args[0]` is the tensor whose method was called; it does not count as an argument.
    """
    if method and not signature.open and all(p.name == "out" for p in signature.parameters[1:]):
        if kwargs:
            return TypeError(f"TensorBase.{name}() takes no keyword arguments")
        if len(args) > 1:
            return TypeError(f"TensorBase.{name}() takes no arguments ({len(args) - 1} given)")
    text = _text(signature, method, args, kwargs)
    if not text:
        return _overflow(signature, name, args, kwargs)
    given = len(args) + len(kwargs) - method
    if (forms := _forms(name, method)) and sum([given in n for n in forms]) != 1:
        return invalid_combination(name, args[1:] if method else args, kwargs)
    return TypeError(f"{name}(){text}")


def _text(signature: Signature, method: bool, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Return the end of an error's text after the function's name, "" if the arguments are right."""
    parameters, args = signature.parameters[method:], args[method:]
    places = [p for p in parameters if not p.named]
    if len(args) > len(places) and not signature.open:
        least, most = sum([p.required for p in places]), len(places)
        count = f"{most} positional argument{'s' * (most != 1)}"
        if least != most:
            count = f"from {least} to {most} positional arguments"
        return f" takes {count} but {len(args)} {'was' if len(args) == 1 else 'were'} given"
    for place, p in enumerate(parameters):
        if place < len(args) and not p.named:
            if wrong := p.flaw(args[place]):
                return f": argument '{p.name}' (position {place + 1}) {wrong}"
        elif p.name in kwargs:
            if wrong := p.flaw(kwargs[p.name]):
                return f": argument '{p.name}' {wrong}"
        elif p.required:
            return lacking([q.name for q in parameters[place:] if q.required])
    names = {p.name: place for place, p in enumerate(parameters)}
    for key in kwargs:
        if key not in names:
            if not signature.free:
                return f" got an unexpected keyword argument '{key}'"
        elif names[key] < len(args) and not parameters[names[key]].named:
            return f" got multiple values for argument '{key}'"
    return ""


def _overflow(
    signature: Signature, name: str, args: Sequence[Any], kwargs: dict[str, Any]
) -> TypeError | ValueError | None:
    """Return torch's error for integers beyond 64 bits and for elements of sequences after the first, which torch
    checks last, when it unpacks them; None if there are none.
    """
    for place, p in enumerate(signature.parameters):
        value = args[place] if place < len(args) and not p.named else kwargs.get(p.name)
        if p.kind is _KINDS["Sequence[Tensor]"] and p.name != "out":
            for at, item in enumerate(value or ()):
                if not core.is_tensor(item):
                    return TypeError(
                        f"expected Tensor as element {at} in argument {place}, but got {class_name(item)}"
                    )
        if value is not None and (why := p.misfit(value)):
            return ValueError(why) if why is _OVERFLOW else TypeError(f"{name}(): {why}")
    return None


def _with_sizes(
    signature: Signature, method: bool, args: Sequence[Any]
) -> tuple[Signature, Sequence[Any]]:
    """Return the signature and arguments of a function of sizes given one by one as of one that takes them as a tuple."""
    own, rest = signature.parameters[:method], signature.parameters[method:]
    size = parameter("size", "Dims")
    others = [p._replace(named=True) for p in rest if p.name != "size"]
    if len(args) > method and is_whole(args[method]):
        args = (*args[:method], tuple(args[method:]))
    return signature._replace(parameters=(*own, size, *others), open=False, free=False), args


def flaw_of(
    fn: Callable, name: str, method: bool, args: Sequence[Any], kwargs: dict[str, Any]
) -> TypeError | ValueError | None:
    """Return torch's error as `flaw` does, with the signature read from the annotations of `fn`."""
    signature, said = _signature(fn), NAMES.get(name, ())
    if signature.open and "size" in [p.name for p in signature.parameters]:
        signature, args = _with_sizes(signature, method, args)
    names = dict(zip([p.name for p in signature.parameters], said, strict=False))
    if names:
        renamed = [p._replace(name=names.get(p.name, p.name)) for p in signature.parameters]
        signature = signature._replace(parameters=tuple(renamed))
        kwargs = {names.get(key, key): value for key, value in kwargs.items()}
    return flaw(signature, name, method, args, kwargs)
