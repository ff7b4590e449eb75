"""Execution of a graph node by node; subclasses of the classes here observe values or replace what a node does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from ..subclasses import ASKING
from ._symbolic_trace import Tracer
from .codegen import last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy


class Interpreter:
    """Runs a graph module node by node; each kind of node has a method that a subclass may override.

    `env` maps nodes to values. `garbage_collect_values`: drop each value after its last use. `graph`: another graph of
    the module to run.
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Any = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(self.graph.nodes)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:  # fmt: skip
        """Run the graph and return its results. initial_env: values of nodes that need not be computed."""
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    told = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
                    message = f"{error.args[0]}\n\n{told}" if error.args else told
                    if isinstance(error, KeyError):
                        raise RuntimeError(*(message, *error.args[1:])) from error
                    error.args = (message, *error.args[1:])
                raise
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
            if self.garbage_collect_values:
                for done in self.user_to_last_uses.get(node, ()):
                    self.env.pop(done, None)
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph on the arguments in a list, which is emptied so that it does not keep them alive."""
        placed = [n for n in self.graph.nodes if n.op == "placeholder"]
        env = dict(zip(placed, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """Return the value of a node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument of `run`, or the placeholder's default. RuntimeError if there is neither."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        first, *rest = args
        return getattr(first, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the results."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return the module's attribute at a dotted path. RuntimeError if there is none."""
        found: Any = self.module
        way = target.split(".")
        for i, name in enumerate(way):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(way[: i + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a node's arguments, with nodes replaced by their values."""
        return _plain(self.map_nodes_to_values(n.args, n)), _plain(self.map_nodes_to_values(n.kwargs, n))  # fmt: skip

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return arguments with nodes replaced by their values. RuntimeError for a node that was not computed."""

        def value(given: Node) -> Any:
            if given not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {given}! Run Graph.lint() to diagnose such issues")  # fmt: skip
            return self.env[given]

        return map_arg(args, value)


def _plain(a: Any) -> Any:
    """Return arguments with ordinary, mutable lists and dicts in place of the nodes' immutable ones."""
    if isinstance(a, tuple):
        parts = [_plain(x) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts) if type(a) is tuple else a
    if isinstance(a, list):
        return [_plain(x) for x in a]
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    return a


class _Retracer(Tracer):
    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root = graph, root
        self.tensor_attrs: dict[Any, str] = {}
        self.submodule_paths = {mod: name for name, mod in root.named_modules()}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a new graph by running a graph on proxies: what a method returns for a node takes the node's place."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Retracer(self.new_graph, module)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make an input."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a node that reads an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a node that calls a submodule."""
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a node that calls a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the module of the new graph."""
        returned = None
        for node in self.graph.nodes:
            if node.op == "output":
                returned = node.type
        with ASKING:
            result = super().run(enable_io_processing=False)
        if result is not None:
            made = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(made, returned)
        return GraphModule(self.module, self.new_graph)
