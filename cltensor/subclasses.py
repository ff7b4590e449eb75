"""Subclasses of Tensor: functions and methods call their `__torch_function__`, whose default gives results their class.

Note [Asking]: to ask is to call `__torch_function__` of the arguments' classes, or of a mode, before a function runs.
In programs without subclasses this costs nothing: only when the first subclass is defined, the first mode is entered,
or a call first fails over an argument that is no tensor and has a `__torch_function__`, the public functions get
another code object, which asks and then runs the original code (interception.py). Attributes that describe a tensor
(`shape`, `dtype`, `device`) are read without asking.

Owns the protocol and the stack of modes. It must not know any op: it finds them in the namespaces.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from .attributes import fields, hide
from .claims import note_claims
from .interception import TEMPORARY, Ask, ask_first, asking, for_good, twin
from .ops.elsewhere import ANSWERING
from .ops.kinds import WATCHING
from .ops.row import FUNCTIONS
from .tensor import Tensor

# For each operator, the function that is passed to `__torch_function__`.
_ALIKE = "add sub mul matmul pow ne lt le gt ge neg abs"
_IN_PLACE = "add sub mul pow"
_UNARY = "neg abs pos invert getitem setitem len bool int float complex index contains reversed repr format"
_OWN = (
    "floordiv and or xor lshift rshift eq rsub rfloordiv rmod rpow rmatmul rlshift rrshift rtruediv iand ior ixor ilshift irshift imatmul "
    "invert getitem setitem len bool int float complex index contains reversed repr format"
)
_OPERATORS = {
    **{f"__{name}__": name for name in _ALIKE.split()},
    **{f"__i{name}__": f"{name}_" for name in _IN_PLACE.split()},
    **{f"__{name}__": f"__{name}__" for name in _OWN.split()},
    "__radd__": "add", "__rmul__": "mul", "__truediv__": "div", "__mod__": "remainder", "__pos__": "positive",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
    "__itruediv__": "div_", "__ifloordiv__": "floor_divide_", "__imod__": "remainder_",
}  # fmt: skip
_VIEWS = ("T", "mT", "H", "mH", "real", "imag", "data")
_UNASKED = {"as_subclass", "as_tensor", "asarray", "can_cast", "from_numpy", "is_tensor", "is_storage", "promote_types", "result_type", "tensor"}  # fmt: skip
_MODULES = ("functional", "nn.functional", "linalg", "fft", "special")
# These ask, too, but are in no table of ops.
_ASKED = "celu is_complex is_floating_point is_nonzero is_same_size numel rrelu selu"
_ASKED_INIT = "constant_ kaiming_uniform_ normal_ uniform_"
# Functions of nn.functional that torch has not written in Python: they pass arguments on as they are given. So do two of
# torch.functional, which have other parameters here.
_AS_GIVEN = {
    *("chain_matmul", "split"),
    *("avg_pool2d", "avg_pool3d", "elu_", "gelu", "grouped_mm", "hardshrink", "hardtanh_", "leaky_relu_", "linear", "logsigmoid"),
    *("native_channel_shuffle", "one_hot", "prelu", "relu_", "scaled_dot_product_attention", "sigmoid", "softplus", "softshrink"),
    *("tanh", "upsample", "upsample_bilinear", "upsample_nearest"),
}  # fmt: skip

# What gives public functions code that has to lie beneath the code that asks.
PREPARING: list[Callable[[], None]] = []


class _State(threading.local):
    off = 0
    modes: tuple[Any, ...] = ()


_STATE = _State()


@contextlib.contextmanager
def DisableTorchFunctionSubclass() -> Iterator[None]:
    """Call no `__torch_function__` of a class inside the block; modes are still asked."""
    _STATE.off += 1
    try:
        yield
    finally:
        _STATE.off -= 1


@contextlib.contextmanager
def DisableTorchFunction() -> Iterator[None]:
    """Call no `__torch_function__` of a class or a mode inside the block."""
    with DisableTorchFunctionSubclass(), _modes(()):
        yield


@contextlib.contextmanager
def _modes(modes: tuple[Any, ...]) -> Iterator[None]:
    before, _STATE.modes = _STATE.modes, modes
    try:
        yield
    finally:
        _STATE.modes = before


def current_modes() -> tuple[TorchFunctionMode, ...]:
    """Return the modes entered in this thread, the innermost last."""
    return _STATE.modes


class TorchFunctionMode:
    """While entered, its `__torch_function__` is called by every function and method, whatever the arguments."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Answer a call; a subclass must define how (NotImplementedError here)."""
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        stand_in()
        _STATE.modes = (*_STATE.modes, self)
        return self

    def __exit__(self, *error: Any) -> None:
        _STATE.modes = _STATE.modes[:-1]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs functions as they are."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the function."""
        return func(*args, **(kwargs or {}))


def disabled(func: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run a function as it is: `__torch_function__` of classes whose results are plain tensors, such as Parameter."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def overrides(value: Any) -> bool:
    """Tell whether a value's class has a `__torch_function__` of its own, and classes are asked at present."""
    kind = type(value)
    if kind is Tensor or kind is type or _STATE.off:
        return False
    own = getattr(kind, "__torch_function__", None)
    if own is None or own is disabled:
        return False
    # That of torch's own tensors would call the same function again, for ever: such arguments are refused instead.
    return not (getattr(own, "__module__", None) or "").startswith("torch.")


_CLASSMETHOD_MODE = "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method"
_PLAIN_METHOD = (
    "Defining your `__torch_function__ as a plain method is deprecated and will be an error in future, "
    "please define it as a classmethod."
)


def dispatch(
    public_api: Callable,
    relevant: Iterable[Any],
    args: Any,
    kwargs: Any,
    warning: type[Warning] = DeprecationWarning,
) -> Any:
    """Return what the innermost mode, or else one of the relevant arguments, makes of a call; subclasses come first.

    NotImplemented if all return that. `warning`: the category for a `__torch_function__` that is no classmethod.
    """
    types: list[type] = []
    found: list[Any] = []
    for value in filter(overrides, relevant):
        if (kind := type(value)) not in types:
            at = next((i for i, t in enumerate(types) if issubclass(kind, t)), len(types))
            types.insert(at, kind)
            found.insert(at, value)
    if _STATE.modes:
        *outer, mode = _STATE.modes
        if isinstance(getattr(mode.__torch_function__, "__self__", None), type):
            raise RuntimeError(_CLASSMETHOD_MODE)
        with _modes(tuple(outer)):
            made = mode.__torch_function__(public_api, tuple(types), args, kwargs)
        if made is not NotImplemented:
            return made
    for value in found:
        asked = value.__torch_function__
        if getattr(asked, "__self__", None) is value:
            level = 3 if warning is DeprecationWarning else 4  # skips the frames of the asking code
            warnings.warn(_PLAIN_METHOD, warning, stacklevel=level)
        made = asked(public_api, tuple(types), args, kwargs)
        if made is not NotImplemented:
            return made
    return NotImplemented


def _asked(args: Any, kwargs: Any) -> list[Any]:
    """Return the arguments, and items of lists and tuples among them, for which `overrides` holds."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if value.__class__ is Tensor:
            continue
        if isinstance(value, tuple | list):
            found += filter(overrides, value)
        elif overrides(value):
            found.append(value)
    return found


def _answers(function: Any, args: Any, kwargs: Any, caller: str) -> bool:
    """Tell whether a non-tensor argument of a failed call overrides functions; if so, all functions ask from now on.

    So such a class is asked in programs that define no subclass of Tensor. False for calls from within the package:
    the public function around such a call fails in turn, and then it is called again and asks.
    """
    if hasattr(function, "__asking__") or not _asked(args, kwargs):
        return False
    if caller == __package__ or caller.startswith(f"{__package__}."):
        return False
    stand_in()
    return hasattr(function, "__asking__")


def torch_function(
    cls: type, func: Callable, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Run a function and give its results, also those in tuples and lists, the class `cls`: Tensor's default.

    NotImplemented if an argument is of a class that `cls` does not derive from.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    made = disabled(func, types, args, kwargs)
    return made if getattr(func, "__name__", "") in _UNASKED else _of_class(made, cls)


def _of_class(value: Any, cls: type) -> Any:
    if cls is Tensor:
        return value
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else value.as_subclass(cls)
    if isinstance(value, tuple | list):
        return type(value)(_of_class(v, cls) for v in value)
    return value


# --- functions that ask -------------------------------------------------------------------------


def _ask_of(public: Any, operator: bool) -> Callable[[FunctionType], Ask]:
    """Return a factory of a function's ask (see `ask_first`). public: the function passed to `__torch_function__`."""

    def make(plain: FunctionType) -> Ask:
        spread = (
            plain.__name__ == "einsum"
        )  # an equation's operands in a list are asked like arguments
        named = _passes_names(public)

        def ask(args: Any, kwargs: Any) -> Any:
            if spread and len(args) == 2 and isinstance(args[0], str):
                args = (args[0], *args[1]) if isinstance(args[1], tuple | list) else args
            asked = [] if _STATE.off else _asked(args, kwargs)
            if not asked and not _STATE.modes:
                return plain(*args, **kwargs)
            called = public
            if named:
                args, kwargs = _by_name(plain, args, kwargs)
                called = _pooling(public, kwargs)
            made = dispatch(called, asked, args, kwargs, UserWarning)
            if made is NotImplemented and not operator:
                who = [f"mode object {mode!r}" for mode in _STATE.modes[-1:]]
                who += [f"tensor subclass {kind}" for kind in dict.fromkeys(map(type, asked))]
                raise TypeError(
                    f"Multiple dispatch failed for 'torch.{plain.__name__}'; all __torch_function__ handlers returned NotImplemented:\n\n"
                    + "".join(f"  - {text}\n" for text in who)
                    + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
                )
            return made

        return ask

    return make


def _passes_names(function: Any) -> bool:
    """Tell whether torch passes the function's optional arguments on by name, given or not: it does so in
    torch.functional and nn.functional.
    """
    name, package = getattr(function, "__name__", ""), sys.modules[__package__]
    if name in _AS_GIVEN:
        return False
    if vars(package.functional).get(name) is function:
        return True
    if vars(package).get(name) is function:
        return False
    return vars(package.nn.functional).get(name) is function


def _pooling(function: Any, kwargs: dict[str, Any]) -> Any:
    """Return the function that torch calls: a pooling that is asked for indices is another one there."""
    if kwargs.get("return_indices") is not True:
        return function
    functional = sys.modules[__package__].nn.functional
    return vars(functional).get(f"{function.__name__}_with_indices", function)


def _by_name(function: FunctionType, args: Any, kwargs: Any) -> tuple[Any, dict[str, Any]]:
    """Return a call's arguments with the required ones by position and all others by name, unless they do not fit."""
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    places, names = [], {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            places.extend(value)
        elif parameter.default is parameter.empty:
            places.append(value)
        else:
            names[name] = value
    return tuple(places), names


_signature = functools.cache(inspect.signature)


@functools.cache
def stand_in() -> None:
    """Let the public functions and Tensor's methods ask from now on."""
    for prepare in PREPARING:
        prepare()
    with for_good():
        for function, public, operator in askers():
            if not hasattr(function, "__asking__"):
                ask_first(function, _ask_of(public, operator))
                vars(function)["__asking__"] = True


class _Asking:
    """While entered, the public functions and Tensor's methods ask; used for an fx tracer's proxies."""

    def __init__(self) -> None:
        self._entered = 0
        self._own: list[tuple[FunctionType, Any]] = []

    def __enter__(self) -> None:
        with for_good():
            self._entered += 1

    def __exit__(self, *error: Any) -> None:
        with for_good():
            self._entered -= 1

    def give_back(self) -> None:
        """Restore the code of the functions that ask only while this is entered."""
        for function, code in self._own:
            function.__code__ = code
        self._own.clear()

    def take_again(self) -> None:
        """If entered, let functions ask again, but for those that ask permanently anyway."""
        met: set[int] = set()
        for function, public, operator in askers() if self._entered else ():
            if id(function) not in met and not hasattr(function, "__asking__"):
                met.add(id(function))
                self._own.append((function, function.__code__))
                ask = _ask_of(public, operator)(twin(function))
                function.__code__ = asking(function, ask)


ASKING = _Asking()
TEMPORARY.append(ASKING)


def askers() -> Iterator[tuple[FunctionType, Any, bool]]:
    """Yield all functions that can ask, with what they pass to `__torch_function__` and whether they are operators.

    Operators (binary ones) may return NotImplemented. A function that autocasts is two objects, the users' and the
    library's: both pass the users'.
    """
    for function, shown, operator in _candidates():
        if isinstance(function, FunctionType):
            public = function if shown is None else shown
            yield function, public, operator
            beneath = vars(function).get("__uncast__")
            if isinstance(beneath, FunctionType):
                yield beneath, public, operator


def _candidates() -> Iterator[tuple[Any, Any, bool]]:
    package = sys.modules[__package__]
    for name, shown in _OPERATORS.items():
        binary = name.strip("_") not in _UNARY.split()
        yield vars(Tensor).get(name), getattr(Tensor, shown, None), binary
    for name in _VIEWS:
        own = getattr(Tensor, name)
        if isinstance(own, property) and own.fget in FUNCTIONS.values():
            # The getter needs a function object of its own: `torch.real` and `Tensor.real` pass different functions.
            own = property(twin(own.fget), own.fset, own.fdel, own.__doc__)  # type: ignore[arg-type]
            setattr(Tensor, name, own)
        if isinstance(own, property):
            yield own.fget, own.__get__, False
    for kind in Tensor.__mro__[:-1]:
        for name, value in list(vars(kind).items()):
            if name[0] != "_" and name not in _UNASKED:
                yield value, None, False
    for name, value in list(vars(package).items()):
        home = getattr(value, "__module__", None) or ""
        factory = home.startswith(f"{__package__}.creation") and name[0] != "_"
        changes = name in package._METHODS and name[-1] == "_"
        if (name in FUNCTIONS or factory or changes) and name not in _UNASKED:
            yield value, None, False
    for name in _ASKED.split():
        yield getattr(package, name), None, False
    for name in _ASKED_INIT.split():
        yield getattr(package.nn.init, name), None, False
    yield package._assert, None, False
    yield package.autograd.grad, None, False
    yield package.autograd.backward, None, False
    yield package.ops.profiler._record_function_exit, None, False
    for path in _MODULES:
        # Imported now: a module first used later would bring functions that do not ask.
        module = importlib.import_module(f".{path}", __package__)
        for name, value in list(vars(module).items()):
            home = getattr(value, "__module__", None) or ""
            if name[0].islower() and home.startswith(f"{__package__}."):
                yield value, None, False


def _enrol(cls: Any, **kwargs: Any) -> None:
    """Turn on asking when the first user subclass of Tensor is defined.

    The package's own subclasses, and classes derived from them, return plain tensors and need no asking.
    """
    object.__init_subclass__(**kwargs)
    ours = getattr(cls, "__module__", "").startswith(f"{__package__}.")
    if ours and "__torch_function__" not in vars(cls):
        cls.__torch_function__ = disabled
    hide(cls)
    if not ours:
        _show_fields()
        note_claims(cls, Tensor)
    if cls.__torch_function__ is not disabled:
        stand_in()


class _Field:
    """`shape`, `dtype` or `device` as an attribute of the class; an instance's attribute has precedence."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __get__(self, t: Any, owner: Any = None) -> Any:
        return self if t is None else fields(t)[self.__name__]


def _show_fields() -> None:
    """Let `super().shape` work in subclasses. Without any, Tensor has no such attributes, as they slow all ops down."""
    for name in ("shape", "dtype", "device"):
        if name not in vars(Tensor):
            setattr(Tensor, name, _Field(name))


ANSWERING.append(_answers)
WATCHING.append(current_modes)
Tensor.__torch_function__ = classmethod(torch_function)  # type: ignore[attr-defined]
Tensor.__init_subclass__ = classmethod(_enrol)  # type: ignore[assignment, method-assign]
