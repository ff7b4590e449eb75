"""NumPy's argument names, which torch accepts, too: `axis`, `keepdims`, and `a`, `x` or `x1` for the first operand.

The wrapper that accepts these names also refuses flags that are not bools. If the wrapped function fails, the wrapper
looks for an argument that is not a tensor but has a `__torch_function__`, and dispatches the call to that argument; if
there is none, it raises torch's error for the types of the arguments, if these are wrong. For the sake of these two
tasks it also wraps linear algebra and functions of lists of tensors, next to whose own time the wrapper's is short.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from . import arguments
from . import passed as passing
from .elsewhere import foreign
from .row import FUNCTIONS, METHODS, NUMPYS, titled

# Functions that torch has written in Python: they accept torch's parameter names only.
_PLAIN = {"norm", "split", "stft", "unique", "unique_consecutive"}
# Other functions that torch has written in Python, which do not check the types of their arguments.
_UNPARSED = {
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "einsum",
    "lu",
    "meshgrid",
    "pca_lowrank",
    "svd_lowrank",
    "tensordot",
}
# Functions without `dim` that are not wrapped, because they take hardly longer than the wrapper: views, mostly.
_QUICK = {"flatten", "permute", "reshape", "t", "transpose", "view_as_complex"}
# Methods that are not wrapped for the same reason: views, pending operations, and those that only inspect a tensor.
_QUICK_METHODS = _QUICK | {
    *("clone", "add", "sub", "subtract", "rsub", "add_", "sub_", "subtract_", "div", "divide", "true_divide", "floor_divide", "remainder", "fmod"),
    *("div_", "divide_", "true_divide_", "lerp", "lerp_", "pow", "pow_", "float_power", "float_power_", "abs", "absolute", "abs_", "absolute_"),
    *("bitwise_left_shift", "__lshift__", "bitwise_right_shift", "__rshift__", "clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max"),
    *("clamp_min_", "clamp_max_", "where", "masked_fill", "masked_fill_", "conj", "positive", "round", "round_", "square", "square_"),
    *("to", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble", "chalf", "type_as"),
    *("contiguous", "copy_", "fill_", "zero_", "view", "view_as", "reshape_as", "ravel", "swapdims", "swapaxes", "adjoint", "movedim", "moveaxis"),
    *("expand", "expand_as", "broadcast_to", "split", "as_strided", "unfold", "resolve_conj", "resolve_neg", "_conj", "_conj_physical"),
    *("as_subclass", "set_", "resize_", "resize_as_", "record_stream", "is_distributed", "dim_order", "apply_", "map_", "map2_"),
    *("coalesce", "is_coalesced", "indices", "_indices", "_values", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices"),
    *("_nnz", "sparse_dim", "dense_dim", "to_dense", "_is_all_true", "_is_any_true", "bernoulli_", "uniform_", "normal_", "random_"),
}  # fmt: skip
# Functions without NumPy's names, wrapped for `__torch_function__` and torch's errors: functions of lists of tensors,
# and others that take so long themselves that the wrapper adds little.
_OTHERS = {"block_diag", "broadcast_tensors", "cartesian_prod", "column_stack", "dstack", "einsum", "hstack", "meshgrid", "row_stack", "tensordot", "vstack",
    "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "masked_scatter", "put",
    "affine_grid_generator", "bilinear", "binomial", "embedding", "is_same_size", "can_cast", "cdist", "complex", "imag", "isin", "lu_solve", "lu_unpack", "polar", "promote_types", "randperm", "real"}  # fmt: skip
# Methods that are wrapped for torch's errors alone.
_OTHER_METHODS = {"cauchy_", "exponential_", "fill_diagonal_", "geometric_", "log_normal_", "logit_", "lu_solve", "nan_to_num_", "nonzero",
    "polygamma", "polygamma_", "resize_as", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill",
    "index_put", "index_reduce", "masked_scatter", "put", "scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_",
    "index_fill_", "index_put_", "index_reduce_", "masked_scatter_", "put_",
    "as_strided", "sparse_mask"}  # fmt: skip


def numpy_names(fn: Callable, name: str = "", method: bool = False) -> Callable:
    """Decorator: accept NumPy's `axis` and `keepdims` for `dim` and `keepdim`, and NumPy's names of the operands."""
    parameters = _parameters(fn)
    first = "input" if "input" in parameters else parameters[0]  # "A" in linear algebra
    ours = {"axis": "dim", "keepdims": "keepdim"}
    ours |= {n: first if own == "input" else own for own, names in NUMPYS.items() for n in names}
    places = {n: parameters.index(own) for n, own in ours.items() if own in parameters}
    return answered(fn, name, method, parameters, places)


def answered(
    fn: Callable,
    name: str = "",
    method: bool = False,
    parameters: Sequence[str] = (),
    places: Mapping[str, int] = MappingProxyType({}),
    *,
    passed: bool = False,
) -> Callable:
    """Wrap a function: a call that fails is dispatched to an argument's `__torch_function__` if there is one, else
    raises torch's error for the types of the arguments if these are wrong.

    name: the function's name in torch's errors, "" if torch's function does not check the types of its arguments.
    method: whether `fn` is called as a method. places: for each alternative name of a parameter, its index in
    `parameters`. passed: torch's function is written in Python: what it says is in the function's row in passed.py.
    """
    if name in arguments.NAMES:
        parameters = parameters or _parameters(fn)
        # A row's function has no parameters: it knows its names itself.
        names = arguments.NAMES[name][: len(parameters)]
        places = {**places, **{said: at for at, said in enumerate(names)}}
    classes = arguments.classes(fn) if name and not passed else {}
    flags = arguments.flags(fn) if name and not passed else ()
    first = min(flags, default=99)

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for key in [*kwargs] if kwargs else ():
            place = places.get(key)
            if place is not None and place >= len(args) and parameters[place] not in kwargs:
                kwargs[parameters[place]] = kwargs.pop(key)
            elif key in classes and kwargs[key].__class__ is not classes[key]:
                _refuse(fn, name, method, args, kwargs)
        if len(args) > first:
            for place in flags:
                if place < len(args) and args[place].__class__ is not bool:
                    _refuse(fn, name, method, args, kwargs)
        try:
            return fn(*args, **kwargs)
        except Exception:
            if not foreign(wrapper, args, kwargs):
                if passed:
                    if (error := passing.flaw(fn, args, kwargs)) is not None:
                        raise error from None
                else:
                    _refuse(fn, name, method, args, kwargs)
                raise
        return wrapper(*args, **kwargs)

    wrapper._numpy_names = True  # type: ignore[attr-defined]
    return wrapper


def _refuse(
    fn: Callable, name: str, method: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise torch's error for the arguments if their types, number or names are wrong."""
    if name and (error := arguments.flaw_of(fn, name, method, args, kwargs)) is not None:
        raise error from None


def _parameters(fn: Callable) -> tuple[str, ...]:
    """Return the names of a function's parameters, keyword-only ones last."""
    code = fn.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def install(**spaces: Any) -> None:
    """Wrap the functions in the tables of exported functions and methods that need it.

    spaces: tables of other modules' functions, by the prefix of their names in torch's errors ("linalg").
    """
    tables = [("", FUNCTIONS, False), ("", METHODS, True)]
    tables += [(f"{space}_", table, False) for space, table in spaces.items()]
    for prefix, table, method in tables:
        for name, fn in table.items():
            if not hasattr(fn, "__code__") or (not prefix and name in _PLAIN):
                continue
            said = "" if not prefix and name in _UNPARSED else prefix + name.removeprefix(prefix)
            titles = fn
            if hasattr(fn, "_numpy_names"):
                fn = inspect.getattr_static(fn, "__wrapped__")
            parameters = _parameters(fn)
            operands = "input" in parameters and name not in (_QUICK_METHODS if method else _QUICK)
            if "dim" in parameters or operands:
                made = numpy_names(fn, said, method)
            elif prefix or name in (_OTHER_METHODS if method else _OTHERS):
                made = answered(fn, said, method)
            else:
                continue
            table[name] = titled(made, titles.__name__, titles.__doc__ or "")
