"""A node of a graph: one operation, its arguments and its users.

Knows nothing of how a graph is run or written as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..assertions import _assert
from ..dtypes import dtype
from ..memory_format import layout, memory_format
from ..runtime import device
from ..tensor import Tensor
from .immutable_collections import immutable_dict, immutable_list
from .names import qualified_name, type_text

if TYPE_CHECKING:
    from .graph import Graph

Argument = Target = Any  # torch's names for annotations
base_types = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)
_legal_ops = (
    "placeholder",
    "call_method",
    "call_module",
    "call_function",
    "get_attr",
    "output",
    "root",
)
_side_effectful_functions: set[Callable[..., Any]] = {_assert}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as having side effects, so that its calls are kept even if unused. Usable as a decorator."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply a function to each leaf of nested tuples, lists, dicts and slices.

    Resulting lists and dicts are immutable.
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict([(k, map_aggregate(v, fn)) for k, v in a.items()])
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return arguments with each node replaced by the function's result for that node."""
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One operation of a graph: `op` is its kind, `target` what is called or read; nodes in `args` and `kwargs` stand for their values.

    `users` has the nodes that use this node's value, in order, as keys of a dict. `meta` is a dict for programs and
    passes to store facts in. `type` is the value's annotation, or None.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], return_type: Any = None
    ) -> None:  # fmt: skip
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' not in _legal_ops: {list(_legal_ops)}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {qualified_name(type(target))} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {qualified_name(type(target))} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = immutable_dict()
        self._update(args, kwargs)

    # ---------------------------------------------------------------------------------- arguments

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update(self._args, k)

    def _update(self, args: Any, kwargs: Any) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(n: Node) -> Node:
            self._input_nodes[n] = None
            n.users[self] = None
            return n

        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument at an index."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before an index. AssertionError if the index is out of range."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one node by another among the arguments."""
        self._update(
            *map_arg((self._args, dict(self._kwargs)), lambda n: new_input if n is old_input else n)
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Make this node's users (only those for which the callback, if given, is true) use another node.

        Return the users changed. `propagate_meta`: copy this node's `meta` to the other one, which must have none.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys")  # fmt: skip
            replace_with.meta.update(self.meta)
        users = list(self.users)
        wanted = [u for u in users if delete_user_cb is None or delete_user_cb(u)]
        for user in wanted:
            user.replace_input_with(self, replace_with)
        return wanted

    # -------------------------------------------------------------------------------------- order

    next = property(lambda self: self._next, doc="The node after it.")
    prev = property(lambda self: self._prev, doc="The node before it.")

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one. AssertionError for a node of another graph."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x: Node) -> None:
        """Move a node of the same graph after this one."""
        if x is not self._next:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        """Return whether this node precedes another node of its graph."""
        found = self._next
        while found.op != "root":
            if found is other:
                return True
            found = found._next
        return False

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # ------------------------------------------------------------------------------- what is said

    @property
    def stack_trace(self) -> str | None:
        """The traceback of the call in the traced program, if recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has side effects, and so must be kept even if its value is unused."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        return False

    def _pretty_print_target(self, target: Any) -> str:
        return target if isinstance(target, str) else qualified_name_of_target(target)

    def format_node(self) -> str:
        """Return the node's line in the printed graph."""
        kind = "" if self.type is None else f"{type_text(self.type)} "
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            default = f"(default={self._args[0]})" if self._args else ""
            return f"%{self.name} : {kind}{users} = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{users} = get_attr[target={self.target}]"
        if self.op == "output":
            return f"return {self._args[0]}"
        target = self._pretty_print_target(self.target)
        args, kwargs = _format(self._args), _format(self._kwargs)
        return f"%{self.name} : {kind}{users} = {self.op}[target={target}](args = {args}, kwargs = {kwargs})"

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def __deepcopy__(self, memo: Any) -> Node:
        """Return the copied graph's node for this one; the node itself if its graph is not being copied."""
        return memo.get(id(self), self)


def qualified_name_of_target(target: Any) -> str:
    """Return a function's path as a graph prints it."""
    if (
        getattr(target, "__module__", None) == "builtins"
        or type(target).__name__ == "builtin_function_or_method"
    ):
        name = qualified_name(target)
        return name if "." in name else f"builtins.{name}"
    return qualified_name(target)


def _format(a: Any) -> str:
    """Return arguments as a graph prints them: nodes as %name, dicts without quotes."""
    if isinstance(a, tuple):
        inside = ", ".join(map(_format, a))
        return f"({inside},)" if len(a) == 1 else f"({inside})"
    if isinstance(a, list):
        return f"[{', '.join(map(_format, a))}]"
    if isinstance(a, dict):
        return f"{{{', '.join(f'{k}: {_format(v)}' for k, v in a.items())}}}"
    if isinstance(a, Node):
        return f"%{a.name}"
    return str(a)
