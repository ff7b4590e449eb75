"""Proxies, which stand for values while a function is traced: every operation on one becomes a node.

Knows no modules.
"""

from __future__ import annotations

import dataclasses
import dis
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ..ops.row import FUNCTIONS, METHODS
from ..subclasses import stand_in
from ..tensor import Tensor
from .codegen import OPERATORS
from .graph import Graph
from .node import Node, base_types

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "Scope", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """Raised where a traced function needs a value that is unknown while tracing."""


class Scope:
    """The path and type of the module in which nodes are being made."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class TracerBase:
    """Base of tracers: makes nodes from operations on proxies."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None
    ) -> Node:  # fmt: skip
        """Add a node to the graph, and note its module scope."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        stack = getattr(self, "module_stack", None)
        if stack:
            node.meta["nn_module_stack"] = OrderedDict(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return a proxy for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:  # fmt: skip
        """Make a node, with arguments that may be proxies, and return a proxy for its value."""
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, tuple(args), dict(kwargs), name, type_expr)
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = _where()
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Convert an argument to the form stored in nodes. NotImplementedError for a type that nodes cannot hold."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Node):
            return a
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, base_types) or a is None or a is ... or callable(a):
            return a
        import enum

        if isinstance(a, enum.Enum):
            return a
        if dataclasses.is_dataclass(a):
            given = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), given)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        key = self.create_arg(key)
        if isinstance(key, Node):
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")  # fmt: skip
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Raise TraceError: a branch depends on a value unknown while tracing."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Raise TraceError: a loop's length is unknown while tracing."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow "
            "can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Record the call `obj.keys()`, and return a proxy for its result."""
        return Attribute(obj, "keys")()


def _where() -> str:
    """Return the present call stack as traceback text, without the frames of this package."""
    import traceback

    home = __file__.rpartition("/fx/")[0]
    return "".join(
        traceback.StackSummary.from_list(
            [f for f in traceback.extract_stack() if not f.filename.startswith(home)]
        ).format()
    )


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to an existing graph, for programs that add nodes to one.

    Turns `__torch_function__` dispatch on for good.
    """

    def __init__(self, graph: Graph) -> None:
        stand_in()
        self.graph = graph
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", None), {}, {}


class Proxy:
    """Stands for a node's future value: operators, methods and functions applied to a proxy make nodes."""

    node: Node
    __hash__ = object.__hash__

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k.startswith("__") and k.endswith("__"):  # Python looks up special methods
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{k}'")
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: Any) -> Proxy:
        """Return a proxy for the copied node."""
        import copy

        made = Proxy.__new__(type(self))
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        """Yield the parts if the caller's bytecode gives their number, as in `a, b = x`; raise TraceError otherwise."""
        frame = sys._getframe(1)
        code = frame.f_code.co_code
        if dis.opname[code[frame.f_lasti]] == "UNPACK_SEQUENCE":
            parts: Any = self
            return (parts[i] for i in range(code[frame.f_lasti + 1]))
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        return any(x is item or x == item for x in self)

    def keys(self) -> Any:
        """Return a proxy for the keys of this mapping, as `**proxy` needs them."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Record a call of a function or of a tensor's method as a node."""
        found: dict[TracerBase, None] = {}
        _collect((args, kwargs or {}), found)
        if len(found) > 1:
            raise RuntimeError(f"Found multiple different tracers {list(found)} while trying to trace operations {orig_method}")  # fmt: skip
        tracer = next(iter(found))
        name = getattr(orig_method, "__name__", "")
        if name == "__get__":  # reading a property of Tensor
            owner = orig_method.__self__
            return tracer.create_proxy("call_function", getattr, (args[0], _name_of(owner)), {})
        if name in METHODS and FUNCTIONS.get(name) is not orig_method and getattr(Tensor, name, None) is orig_method:  # fmt: skip
            return tracer.create_proxy("call_method", name, args, kwargs or {})
        return tracer.create_proxy("call_function", orig_method, args, kwargs or {})


def _name_of(owner: Any) -> str:
    return next(n for k in Tensor.__mro__ for n, v in vars(k).items() if v is owner)


def _collect(a: Any, found: dict[TracerBase, None]) -> None:
    if isinstance(a, Proxy):
        found[a.tracer] = None
    elif isinstance(a, tuple | list):
        for x in a:
            _collect(x, found)
    elif isinstance(a, dict):
        for x in a.values():
            _collect(x, found)
    elif isinstance(a, slice):
        _collect((a.start, a.stop, a.step), found)


class Attribute(Proxy):
    """Stands for an attribute of a proxy.

    Called, it makes a `call_method` node; the `getattr` node is made only if used as a value.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter, whose shape, dtype and device are known while tracing."""

    _known: ClassVar[tuple[str, ...]] = ("shape", "size", "dim", "ndim", "numel", "nelement", "dtype", "device")  # fmt: skip

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    def __getattr__(self, k: str) -> Any:
        return getattr(self.param, k) if k in self._known else super().__getattr__(k)


def _give_operators() -> None:
    """Define Python's operators on `Proxy`, with the reflected ones."""

    def forward(name: str, target: Any) -> None:
        def call(self: Proxy, *rest: Any) -> Any:
            return self.tracer.create_proxy("call_function", target, (self, *rest), {})

        call.__name__ = name
        setattr(Proxy, name, call)

    def reflected(name: str, target: Any) -> None:
        def call(self: Proxy, other: Any) -> Any:
            return self.tracer.create_proxy("call_function", target, (other, self), {})

        call.__name__ = name
        setattr(Proxy, name, call)

    for name in OPERATORS:
        plain = name.strip("_")
        forward(f"__{plain}__", getattr(operator, name))
    for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul"):  # fmt: skip
        reflected(f"__r{name.strip('_')}__", getattr(operator, name))


_give_operators()
