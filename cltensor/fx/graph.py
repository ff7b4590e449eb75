"""A graph: nodes in the order in which they run. Owns that order, how nodes are made, copied, removed and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .codegen import CodeGen, PythonCode
from .names import Namespace, is_of_torch, short_name
from .node import Node, map_aggregate, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]
_Namespace = Namespace


class _node_list:
    """The nodes of a graph as a sequence, in their order or reversed."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        node = getattr(self.graph._root, self.direction)
        while node is not self.graph._root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class _InsertPoint:
    """Sets a graph's insertion point at once; as a context, restores the previous one at its end."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """An ordered list of nodes from placeholders to an output, each using values of earlier ones.

    `GraphModule` runs it.
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:  # fmt: skip
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._owning_module, self._owners = owning_module, 0
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()

    owning_module = property(
        lambda self: self._owning_module,
        lambda self, mod: setattr(self, "_owning_module", mod),
        doc="The module whose graph it is.",
    )

    @property
    def nodes(self) -> _node_list:
        """The nodes in their order."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the output node."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes of a kind, of a target if one is given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ------------------------------------------------------------------------------------- making

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node at the insertion point and return it. AssertionError for arguments of another type."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        taken = self._graph_namespace.create_name(name or self._target_to_str(target), None)
        node = Node(self, taken, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(taken, node)
        self._insert(node)
        self._len += 1
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        return short_name(target)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Make an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Make a node that reads a parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:  # fmt: skip
        """Make a node that calls a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:  # fmt: skip
        """Make a node that calls a method of its first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Make a node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Make the output node."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Copy a node of another graph into this one.

        `arg_transform` maps nodes among the arguments to nodes of this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:  # fmt: skip
        """Copy all nodes of another graph, and return its output in terms of the copies.

        val_map: node -> copy; read, and extended by the nodes copied.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    # ------------------------------------------------------------------------------ places, removal

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Set the insertion point before a node, or before all, within the block.

        AssertionError for a node of another graph.
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Set the insertion point after a node, or after all, within the block.

        Each new node comes directly after that node.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node. RuntimeError if it still has users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove unused nodes without side effects; return whether there were any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not impure(node) and not node.users:
                self.erase_node(node)
        return self._len < before

    # ------------------------------------------------------------------------------------- checks

    def lint(self) -> None:
        """Check the graph.

        RuntimeError for a node that uses a later node, belongs to another graph, shares a name, or has a missing
        target.
        """
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output"):  # fmt: skip
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for given in node._input_nodes:
                if given.graph is not self:
                    raise RuntimeError(f"Argument '{given}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}")  # fmt: skip
                if given not in seen:
                    raise RuntimeError(f"Argument '{given}' of Node '{node}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered\n{self}")  # fmt: skip
            seen[node] = None
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self._owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        found: Any = self._owning_module
        way = node.target.split(".")
        for i, name in enumerate(way):
            following = getattr(found, name, None)
            if following is None:
                raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {name} of {'.'.join(way[:i])}")  # fmt: skip
            found = following

    # --------------------------------------------------------------------------------------- text

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> PythonCode:
        """Return the graph as Python code. root_module: the name of the module in that code, such as "self"."""
        namespace = Namespace()

        def named(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = [(n, n._repr_fn) for n in self.nodes]
        try:
            for n in self.nodes:
                n._repr_fn = named
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose)
        finally:
            for n, fn in before:
                n._repr_fn = fn

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set the object that generates the graph's Python code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Set the function that transforms generated code, a list of lines; as a context, until the block ends.

        make_transformer: gets the present transformer, or None, and returns the new one.
        """
        import contextlib

        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until()

    def process_inputs(self, *args: Any) -> Any:
        """Return the arguments flattened to one for each placeholder, as the code generator defines."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the graph's results in the form that callers get, as the code generator defines."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print a table of the nodes; needs the package tabulate."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped]
        except ImportError:
            print("`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install tabulate` to install the library.")  # fmt: skip
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {n.format_node()}" for n in self.nodes)

    # ------------------------------------------------------------------------------------- copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        """Return a copy; constants among arguments are shared."""
        made = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = made
        made._codegen = self._codegen
        of: dict[Node, Node] = {}
        for node in self.nodes:
            of[node] = made.node_copy(node, lambda n: of[n])
            memo[id(node)] = of[node]
        return made

    def __reduce__(self) -> Any:
        """Pickle the graph as a list of operations, in which nodes are numbers."""
        numbers = {n: _Number(i) for i, n in enumerate(self.nodes)}
        rows = [
            (n.op, n.target, map_arg(n.args, numbers.__getitem__), dict(map_arg(n.kwargs, numbers.__getitem__)), n.name, n.type)
            for n in self.nodes
        ]  # fmt: skip
        return _from_rows, (rows, self._named_tracer)

    @property
    def _named_tracer(self) -> Any:
        """Return the tracer's class if another process can import it, which it cannot if defined in a function."""
        found = self._tracer_cls
        return found if found and "<locals>" not in found.__qualname__ else None


class _Number(int):
    """A reference to a node in a pickled graph, by number."""


def _from_rows(rows: list[Any], tracer_cls: Any) -> Graph:
    made = Graph(tracer_cls=tracer_cls)
    nodes: list[Node] = []

    def of(x: Any) -> Any:
        return nodes[x] if isinstance(x, _Number) else x

    for op, target, args, kwargs, name, kind in rows:
        given, named = map_aggregate(args, of), dict(map_aggregate(kwargs, of))
        nodes.append(made.create_node(op, target, given, named, name, kind))
    return made


_is_from_torch = is_of_torch
