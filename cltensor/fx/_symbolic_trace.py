"""Symbolic tracing: a module or function runs once on proxies, and the operations on them become a graph.

During the run, `__torch_function__` dispatch is on (`ASKING` in subclasses.py), calls of modules go to the tracer, and
functions given to `wrap` are recorded as one call. All patches are undone afterwards.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

from .._C import ScriptObject  # type: ignore[attr-defined]  # noqa: F401  tracers ask for it here
from ..assertions import _assert
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..subclasses import ASKING
from ..tensor import Tensor
from ._compatibility import compatibility
from .graph import Graph
from .graph_module import GraphModule
from .node import base_types
from .proxy import ParameterProxy, Proxy, Scope, TracerBase

# Functions given to `wrap`: (id of the globals, name) -> the globals.
_FUNCTIONS: dict[tuple[int, str], dict[str, Any]] = {}
_RUNNING = [0]
_PACKAGE = __package__.partition(".")[0]
_PYTHON_LIBRARY = (math,)
_MISSING: Any = object()

# Tracers in other libraries define their own `trace` with these and `_Patcher`, which therefore have torch's names.
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__


class _Hole:
    """Placeholder in a concrete argument: the part that is traced, not fixed."""

    def __repr__(self) -> str:
        return "PH"


PH = _Hole()


def is_fx_tracing() -> bool:
    """Tell whether a function is being traced."""
    return bool(_RUNNING[0])


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Register a function of the calling module to be recorded as one call, not traced into. Takes its name, or decorates it.

    RuntimeError for neither a name nor a function; NotImplementedError if not called at module level.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _FUNCTIONS[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _recorded(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper that records a node if an argument is a proxy, and else calls the function."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = _first_proxy((args, kwargs))
        if found is None:
            return original(*args, **kwargs)
        made = found.tracer.create_proxy("call_function", original, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return call


def _first_proxy(a: Any) -> Proxy | None:
    if isinstance(a, Proxy):
        return a
    parts = a if isinstance(a, tuple | list) else a.values() if isinstance(a, dict) else ()
    return next((p for p in map(_first_proxy, parts) if p is not None), None)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Traces modules and functions; subclasses decide which modules are leaves, and see each node made.

    autowrap_modules: Python modules whose functions are recorded when called with a proxy. autowrap_functions: further
    functions. param_shapes_constant: parameters' shapes are real numbers while tracing, so that branches on them work.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = _PYTHON_LIBRARY,
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_function_ids = {
            id(value) for m in autowrap_modules for name, value in vars(m).items() if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}  # fmt: skip
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}

    # -------------------------------------------------------------------- what a class may override

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a module's call is recorded as one node: true of the package's layers except Sequential."""
        home = type(m).__module__
        ours = home.startswith((f"{_PACKAGE}.nn", "torch.nn", f"{_PACKAGE}.ao.nn", "torch.ao.nn"))
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return a submodule's path. NameError for a module that is not installed as one."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, found in self.root.named_modules():
            if found is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of a submodule's call: a proxy for its node if it is a leaf, else `forward`'s result."""
        path = self.path_of_module(m)
        before = self.scope
        self.scope = Scope(path, type(m))
        count = self.num_calls.get(path, 0)
        self.num_calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.popitem()
            self.scope = before

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the result of reading a module's attribute: a proxy for a parameter, else the attribute's value.

        With `proxy_buffer_attributes`, it is a proxy for a buffer, too.
        """
        if isinstance(attr_val, Parameter):
            return self._read(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._read(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _read(self, value: Any, named: Iterable[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        name = next((n for n, p in named if p is value), None)
        if name is None:
            return value
        if name not in cache:
            make: dict[str, Any] = {}
            if self.param_shapes_constant:
                make["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, value)
            cache[name] = self.create_proxy("get_attr", name, (), {}, **make)
        return cache[name]

    def create_arg(self, a: Any) -> Any:
        """Convert an argument to the form stored in nodes. Parameters, buffers and modules become nodes that read them.

        So do other tensors, which become attributes of the root. NameError for a parameter that the root does not have.
        """
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Module):
            for name, m in self.root.named_modules():
                if a is m:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), args, {})
        return super().create_arg(a)

    def _constant(self, a: Tensor) -> str:
        for name, buffer in self.root.named_buffers():
            if a is buffer:
                return name
        found = self.tensor_attrs.get(a)
        if found is not None:
            return found
        i = 0
        while hasattr(self.root, f"_tensor_constant{i}"):
            i += 1
        name = f"_tensor_constant{i}"
        setattr(self.root, name, a)
        self.tensor_attrs[a] = name
        return name

    # ------------------------------------------------------------------------------------- tracing

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return `prefix` with a number behind it, such that the root has no attribute of that name."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Make the placeholders; return the function to call and the arguments, all by position, to call it with."""
        plain = inspect.unwrap(root_fn)
        code = plain.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if not count:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            count -= 1
            next(names)
            args.append(self.root)
        known = inspect.signature(plain).parameters
        given = concrete_args or {}
        if isinstance(given, tuple):
            wanted = code.co_varnames[is_module : is_module + count]
            if len(wanted) != len(given):
                raise RuntimeError(f"Tracing expected {len(wanted)} arguments but got {len(given)} concrete arguments")  # fmt: skip
            given = dict(zip(wanted, given, strict=True))
        named: dict[str, Any] = {}
        for i in range(count):
            name = next(names)
            value = self._placeholder(name, known, plain, given)
            if i + is_module < code.co_argcount:
                args.append(value)
            else:
                named[name] = value
        packed = [
            f"{stars}{next(names)}"
            for stars, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS))
            if code.co_flags & flag
        ]
        if not packed:
            return (functools.partial(root_fn, **named) if named else root_fn), args
        last = [self._placeholder(name, known, plain, given) for name in packed]
        return _by_position(plain), [*args, *named.values(), *last]

    def _placeholder(self, name: str, known: Any, fn: Any, given: dict[str, Any]) -> Any:
        kind = _annotation(fn, name)
        stars = name.startswith("*")
        default = () if stars or known[name].default is inspect.Parameter.empty else (known[name].default,)  # fmt: skip
        if name not in given or given[name] is PH:
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        value = given[name]
        if isinstance(value, tuple | list | dict):
            raise NotImplementedError(
                f"fx: concrete argument {name!r} is a container; only values of one part are filled in"
            )
        out = self.create_proxy("placeholder", f"{name}_1", default, {})
        head = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            args = (out, head)
            self.create_proxy("call_function", _assert_is_none, args, {})
        elif isinstance(value, base_types) and not isinstance(value, Tensor):
            self.create_proxy("call_function", _assert, (out == value, head), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to "
                "make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )
        return value

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """Return the graph of a module or function. concrete_args: values for arguments that are not to be traced."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")  # fmt: skip
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=getattr(type(self), "__tracer_cls__", type(self)))
        self.tensor_attrs: dict[Any, str] = {}
        for path, mod in self.root.named_modules():
            for name, value in vars(mod).items():
                if isinstance(value, Tensor):
                    self.tensor_attrs[value] = f"{path}.{name}" if path else name
        function, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        try:
            with _Patcher() as patcher:
                self._patch(patcher, inspect.unwrap(fn))
                result = function(*args)
                returned = _annotation(fn, "return")
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)  # fmt: skip
        finally:
            self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: _Patcher, fn: Any) -> None:
        """Route calls and attribute reads of modules to this tracer, and make wrapped functions record themselves."""
        cache: dict[str, Any] = {}

        @functools.wraps(_orig_module_call)
        def calling(mod: Any, *args: Any, **kwargs: Any) -> Any:
            home = sys.modules.get(type(mod).__module__)
            _autowrap_check(patcher, vars(home) if home else {}, self._autowrap_function_ids)
            return self.call_module(mod, functools.partial(_orig_module_call, mod), args, kwargs)

        @functools.wraps(_orig_module_getattr)
        def reading(mod: Any, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        patcher.patch_method(Module, "__call__", calling, deduplicate=False)
        patcher.patch_method(Module, "__getattr__", reading, deduplicate=False)
        _autowrap_check(patcher, getattr(fn, "__globals__", {}), self._autowrap_function_ids)
        for module in self._autowrap_search:
            _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
        _patch_wrapped_functions(patcher)


class _Patcher:
    """Context that undoes patched names at its end, and keeps `__torch_function__` dispatch on for its duration."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []  # (globals or class, name, old value)
        self._visited: set[int] = set()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replace a function in a module's globals."""
        self._undo.append((frame_dict, name, frame_dict.get(name, _MISSING)))
        frame_dict[name] = _marked(new_fn, deduplicate)

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class; with `deduplicate`, not if that has been patched already."""
        before = getattr(cls, name)
        if deduplicate and getattr(before, "__fx_already_patched", False):
            return
        self._undo.append((cls, name, vars(cls).get(name, _MISSING)))
        setattr(cls, name, _marked(new_fn, deduplicate))

    def visit_once(self, thing: Any) -> bool:
        """Return whether this is the first visit of an object."""
        new = id(thing) not in self._visited
        self._visited.add(id(thing))
        return new

    def __enter__(self) -> _Patcher:
        _RUNNING[0] += 1
        ASKING.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        for holder, name, value in reversed(self._undo):
            if isinstance(holder, type):
                delattr(holder, name) if value is _MISSING else setattr(holder, name, value)
            elif value is _MISSING:
                holder.pop(name, None)
            else:
                holder[name] = value
        self._undo.clear()
        self._visited.clear()
        ASKING.__exit__()
        _RUNNING[0] -= 1


def _marked(fn: Any, mark: bool) -> Any:
    if mark:
        fn.__fx_already_patched = True
    return fn


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Patch the functions given to `wrap` to record themselves."""
    for (_, name), frame in list(_FUNCTIONS.items()):
        original: Any = frame.get(name, getattr(builtins, name, None))
        if original is not None and not getattr(original, "__fx_already_patched", False):
            patcher.patch(frame, name, _recorded(original))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Patch the functions with these ids in a module's globals to record themselves, once for each module."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _recorded(value))


def _annotation(fn: Any, name: str) -> Any:
    """Return a function's annotation for a name. This package's are evaluated from text, and its Any counts as none."""
    kind = getattr(fn, "__annotations__", {}).get(name)
    if isinstance(kind, str) and (fn.__module__ or "").startswith(f"{_PACKAGE}."):
        kind = eval(kind, fn.__globals__)
        return None if kind is Any else kind
    return kind


def _by_position(fn: FunctionType) -> FunctionType:
    """Return a copy of a function that takes all arguments by position, *args and **kwargs as one value (a proxy) each."""
    code, packs = fn.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    count = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & packs).bit_count()
    plain = code.replace(co_flags=code.co_flags & ~packs, co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0)  # fmt: skip
    return FunctionType(plain, fn.__globals__, fn.__name__, None, fn.__closure__)


class ProxyableClassMeta(type):
    """Metaclass that records constructing an instance from proxies as one call."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _first_proxy((args, kwargs))
        if found is None:
            return super().__call__(*args, **kwargs)
        return found.tracer.create_proxy("call_function", cls, args, kwargs)


class ScopeContextManager:
    """Context that sets a tracer's scope to a module's, and restores it at the end."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, Scope(scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *error: Any) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


@compatibility(is_backward_compatible=True)
def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Trace a module or function, and return a GraphModule that computes the same.

    concrete_args: values that arguments are fixed to, so that branches on them are followed.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
