"""torch's `library`: operators that a program defines, with gradients of their own, available under `torch.ops`.

Owns their schemas, their functions for each type of device, and their gradients. It must not know the package's own
ops: there is no dispatcher, so that these cannot be overridden.
"""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from types import NoneType, UnionType
from typing import Any

from . import dtypes, ops
from .autograd import Function, no_grad
from .ops.namespaces import Namespace
from .runtime import device
from .tensor import Tensor
from .utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

_COMPOSITE = ("", "default", "CompositeImplicitAutograd")
_WORDS = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtypes.dtype: "ScalarType", device: "Device",
    int | float | bool: "Scalar",
}  # fmt: skip
_FAKES: dict[str, Callable] = {}  # by operator name; the operator need not exist yet


class Tag(enum.Enum):
    """Properties of an operator, for tools that transform programs."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


class Operator:
    """One operator and its only overload: `torch.ops.mine.sin` and `torch.ops.mine.sin.default` are the same object."""

    def __init__(self, qualname: str, schema: str) -> None:
        self.qualname, self._schema = qualname, f"{qualname}{schema}"
        self.__name__ = qualname.replace("::", ".")
        self.kernels: dict[str, Callable] = {}
        self.backward: Callable | None = None
        self.setup_context: Callable | None = None
        self._node = type(
            f"GeneratedBackwardFor_{qualname.replace('::', '_')}_default",
            (_Call,),
            {},
        )

    @property
    def default(self) -> Operator:
        """The overload without a name."""
        return self

    def __repr__(self) -> str:
        return self.__name__

    def mutates(self) -> bool:
        """Tell whether the operator writes to an argument."""
        return "!" in self._schema

    def kernel(self, args: Any) -> Callable:
        """Return the function for the first tensor argument's device. NotImplementedError if no function serves it."""
        found = next((t.device.type for t in tree_leaves(args) if isinstance(t, Tensor)), "cpu")
        for key in (found, *_COMPOSITE):
            if key in self.kernels:
                return self.kernels[key]
        raise NotImplementedError(
            f"Could not run '{self.qualname}' with arguments from the '{found.upper()}' backend: it has no function for it."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator.

        The history is a single node, which raises in the backward pass if no gradient is registered. A composite
        function without a registered gradient is differentiated through its own ops instead; an operator that writes
        to arguments has no history.
        """
        kernel = self.kernel((args, kwargs))
        if self.backward is None and any(self.kernels.get(k) is kernel for k in _COMPOSITE[1:]):
            return kernel(*args, **kwargs)
        if self.mutates():
            with no_grad():
                return kernel(*args, **kwargs)
        bound = inspect.signature(kernel).bind(*args, **kwargs)
        bound.apply_defaults()
        leaves, form = tree_flatten((bound.args, bound.kwargs))
        # A Function returns tensors only; other results are passed on in `made`.
        made: list[Any] = []
        outs = self._node.apply(self, kernel, form, made, *leaves)  # type: ignore[attr-defined]
        return tree_unflatten(_merged(made[0], outs), made[1])


def _merged(others: list[Any], tensors: Any) -> list[Any]:
    given = iter(tensors if isinstance(tensors, tuple) else (tensors,))
    return [next(given) if v is None else v[0] for v in others]


class _Call(Function):
    """An operator's call as a node of the graph; the ops inside the operator's function are not recorded."""

    @staticmethod
    def forward(
        ctx: Any, operator: Operator, kernel: Any, form: Any, made: list[Any], *leaves: Any
    ) -> Any:
        """Run the function, and let the operator's `setup_context` save what the gradient needs."""
        args, kwargs = tree_unflatten(list(leaves), form)
        output = kernel(*args, **kwargs)
        found, spec = tree_flatten(output)
        given = {id(t) for t in leaves if isinstance(t, Tensor)}
        if any(id(t) in given for t in found):
            raise RuntimeError(
                f"{operator.qualname}: The output of this custom operator must not also be an input to this custom operator and may not "
                "alias any inputs to this custom operator or other returns. Please return a clone of it."
            )
        made += [[None if isinstance(v, Tensor) else (v,) for v in found], spec]
        ctx._operator, ctx._form = operator, form
        if operator.setup_context is not None:
            named = {"keyword_only_inputs": kwargs} if kwargs else {}
            operator.setup_context(ctx=ctx, inputs=tuple(args), output=output, **named)
        return tuple(v for v in found if isinstance(v, Tensor))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Call the operator's gradient function. RuntimeError if it has none."""
        operator = ctx._operator
        if operator.backward is None:
            raise RuntimeError(
                f"Trying to backward through {operator}.default but no autograd formula was registered. "
                "Please use register_autograd to add one."
            )
        found = operator.backward(ctx, *grads)
        found = list(found) if isinstance(found, tuple | list) else [found]
        flat: list[Any] = []
        for value, place in zip(found, ctx._form.child(0).children(), strict=True):
            n = place.num_leaves
            flat += [value] if place.is_leaf() else list(value) if value else [None] * n
        flat += [None] * (ctx._form.num_leaves - len(flat))
        return (None, None, None, None, *flat)


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """Return a function's schema, read from its annotations. ValueError if one is missing or of an unsupported type.

    mutates_args: the names of the arguments that the function writes to, "unknown" for all that are tensors.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    got = f"Got func with signature {signature})"
    unknown = mutates_args == "unknown"
    written = set() if unknown else set(mutates_args)
    if extra := written - set(signature.parameters):
        raise ValueError(
            f"infer_schema(func): {extra} in mutates_args were not found in the custom op's signature. mutates_args should contain the "
            f"names of all args that the custom op mutates, or just the string 'unknown' if you don't know. {got}"
        )
    parts: list[str] = []
    star = False
    for index, (name, p) in enumerate(signature.parameters.items()):
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. {got}"
            )
        word = _word(hints[name])
        if word is None:
            raise ValueError(
                f"infer_schema(func): Parameter {name} has unsupported type {hints[name]}. {got}"
            )
        if name in written or (unknown and word.startswith("Tensor")):
            word = word.replace("Tensor", f"Tensor(a{index}!)", 1)
        default = "" if p.default is p.empty else "=" + _spelt(p.default)
        parts.append(f"{word} {name}{default}")
    returned = hints.get("return", NoneType)
    several = typing.get_args(returned) if typing.get_origin(returned) is tuple else None
    words = [] if returned is NoneType else [_word(t) for t in several or (returned,)]
    if None in words:
        raise ValueError(f"infer_schema(func): Return has unsupported type {returned}. {got}")
    out = words[0] if len(words) == 1 else f"({', '.join(map(str, words))})"
    return f"{op_name or ''}({', '.join(parts)}) -> {out}"


def _word(kind: Any) -> str | None:
    if kind in _WORDS:
        return _WORDS[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, UnionType) and NoneType in args:
        rest = [a for a in args if a is not NoneType]
        word = _word(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007  made at run time
        return word and word + "?"
    if origin in (list, Sequence) and args:
        word = _word(args[0])
        return word and word + "[]"
    return None


def _spelt(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _split(qualname: str) -> tuple[str, str]:
    space, found, name = qualname.partition("::")
    if not found:
        raise ValueError("not enough values to unpack (expected 2, got 1)")
    return space, name.partition(".")[0]


def _add(qualname: str, schema: str) -> Operator:
    space, name = _split(qualname)
    home = getattr(ops, space, None)
    if not isinstance(home, Namespace):
        raise RuntimeError(f"the namespace {space} is the package's own")
    made = Operator(f"{space}::{name}", schema)
    vars(home)[name] = made
    return made


def _find(op: Any) -> Operator:
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, Operator):
        return op
    space, name = _split(op)
    found = vars(getattr(ops, space)).get(name)
    if not isinstance(found, Operator):
        raise RuntimeError(f"operator {space}::{name} does not exist")
    return found


def _kinds(device_types: Any) -> list[str]:
    if device_types is None:
        return ["default"]
    return [device_types] if isinstance(device_types, str) else list(device_types)


class CustomOpDef:
    """An operator made by `custom_op`: can be called, and given a gradient and functions for other devices."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable, kinds: Any) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._qualname, self._init_fn = f"{namespace}::{name}", fn
        self.__name__ = None
        self._opoverload = _add(self._qualname, schema)
        for kind in [""] if kinds is None else _kinds(kinds):
            self._opoverload.kernels[kind] = fn

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator."""
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Any:
        """Use a function on some types of devices; a decorator if no function is given."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Keep the function that computes the shapes of results; only `opcheck` uses it, for lack of a compiler."""
        return register_fake(self, fn)

    def register_vmap(self, func: Callable | None = None, /) -> Any:
        """Accept a batching rule and ignore it: `vmap` calls the operator for each slice."""
        return register_vmap(self, func)

    def register_autograd(
        self, backward: Callable, /, *, setup_context: Callable | None = None
    ) -> None:
        """Give the operator a gradient. RuntimeError if it writes to its arguments."""
        register_autograd(self, backward, setup_context=setup_context)


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator "namespace::name" of an annotated function; a decorator if no function is given.

    mutates_args: names of the arguments that the function writes to. schema: replaces the annotations.
    """
    if fn is None:
        return lambda f: custom_op(
            name, f, mutates_args=mutates_args, device_types=device_types, schema=schema
        )
    space, own = _split(name)
    return CustomOpDef(
        space, own, schema or infer_schema(fn, mutates_args=mutates_args), fn, device_types
    )


def register_kernel(
    op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None
) -> Any:
    """Use a function for an operator on some types of devices; a decorator if no function is given."""
    if func is None:
        return lambda f: register_kernel(op, device_types, f)
    for kind in _kinds(device_types):
        _find(op).kernels["" if kind == "default" else kind] = func
    return func


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:  # fmt: skip
    """Keep the function that computes the shapes of an operator's results; a decorator if no function is given.

    Only `opcheck` calls it: there is no graph compiler here. Unlike in torch, the operator need not exist, so that
    libraries can be imported whose compiled part could not be loaded.
    """
    if func is None:
        return lambda f: register_fake(op, f)
    _FAKES[op if isinstance(op, str) else _find(op).qualname] = func
    return func


impl_abstract = register_fake


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """Accept a batching rule and ignore it: `vmap` calls the operator for each slice."""
    return (lambda f: f) if func is None else func


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """NotImplementedError: autocast knows the package's own ops only."""
    raise NotImplementedError("register_autocast: autocast knows the package's own ops only")


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """Give an operator a gradient: `setup_context(ctx, inputs, output)` saves what `backward(ctx, *grads)` reads.

    RuntimeError for an operator that writes to its arguments or does not exist.
    """
    found = _find(op)
    if found.mutates():
        shown = op if isinstance(op, CustomOpDef) else found
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} with schema {found._schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    found.backward, found.setup_context = backward, setup_context


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare the operator "namespace::name" with a schema, "(Tensor x) -> Tensor"; `impl` gives it functions."""
    _add(qualname, schema)


def impl(qualname: str, types: Any, func: Callable | None = None, *, lib: Any = None) -> Any:
    """Use a function for an operator on some types of devices, or as "default"; a decorator if none is given."""
    if func is None:
        return lambda f: impl(qualname, types, f)
    for kind in _kinds(types):
        key = "" if kind == "CompositeExplicitAutograd" else kind
        _find(qualname).kernels[key if key in _COMPOSITE else key.lower()] = func
    return func


def opcheck(
    op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Check an operator on sample arguments: its schema, its gradient, its fake (`test_utils`, `raise_exception`, `atol`, `rtol`)."""
    from ._operator_checks import opcheck as check

    return check(op, args, kwargs, **options)


def fallthrough_kernel() -> typing.NoReturn:
    """Raise NotImplementedError: there is no dispatcher whose next kernel a call could fall through to."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A namespace to define operators in ("DEF", "FRAGMENT"), or to give them functions ("IMPL")."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        """ValueError for another kind."""
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an operator, "name(Tensor x) -> Tensor"; return its name. RuntimeError if it exists, or no schema."""
        match = re.fullmatch(r"\s*([\w.]+)(\(.*\)\s*->.*)", schema, re.DOTALL)
        if match is None:
            raise RuntimeError(f"Couldn't parse schema: {schema}")
        name = match[1].partition(".")[0]
        if name in vars(getattr(ops, self.ns)):
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema}) with the same name and overload name multiple times."
            )
        _add(f"{self.ns}::{match[1]}", match[2])
        return match[1]

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:  # fmt: skip
        """Use a function for an operator under a dispatch key; only device and composite keys have an effect."""
        name = op_name.qualname if isinstance(op_name, Operator) else op_name
        name = name if "::" in name else f"{self.ns}::{name}"
        key = dispatch_key or self.dispatch_key or "default"
        impl(name, key, fn)
