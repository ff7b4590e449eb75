"""Python code for a graph: the source of a function that runs the graph's operations, and the globals it needs.

After the last use of a value its variable is set to None, to release memory. Must not know modules.
"""

from __future__ import annotations

import enum
import operator
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..dtypes import dtype
from ..memory_format import layout, memory_format
from ..runtime import device
from ..size import Size
from ..utils import _pytree
from .names import Namespace, is_of_torch, qualified_name
from .node import Node

OPERATORS = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "getitem": "{}[{}]",
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "mod": "{} % {}",
    "matmul": "{} @ {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
}  # fmt: skip
_TEXTS = {getattr(operator, name): text for name, text in OPERATORS.items()}
_IN_PLACE = {
    operator.iadd: "{} += {}", operator.isub: "{} -= {}", operator.imul: "{} *= {}", operator.ifloordiv: "{} //= {}",
    operator.itruediv: "{} /= {}", operator.imod: "{} %= {}", operator.imatmul: "{} @= {}", operator.ipow: "{} **= {}",
    operator.ilshift: "{} <<= {}", operator.irshift: "{} >>= {}", operator.iand: "{} &= {}", operator.ior: "{} |= {}", operator.ixor: "{} ^= {}",
    operator.setitem: "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Python code for a graph: the source, the globals it needs, and the line of each node (by the node's number)."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


def dotted(base: str, target: str) -> str:
    """Return code for a dotted attribute path, with `getattr` for names that are not identifiers."""
    for name in target.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return for each node the nodes whose values it is the last to use."""
    taken: set[Node] = set()
    found: dict[Node, list[Node]] = defaultdict(list)
    for node in reversed(list(nodes)):
        for given in node._input_nodes:
            if given not in taken:
                taken.add(given)
                found[node].append(given)
    return found


class _Globals:
    """Writes values and annotations as code, and collects the globals which that code needs."""

    def __init__(self, namespace: Namespace) -> None:
        import sys

        package = sys.modules[__package__.partition(".")[0]]
        self.namespace = namespace
        self.found: dict[str, Any] = {
            "inf": float("inf"), "nan": float("nan"), "NoneType": type(None), "torch": package, "device": device, "pytree": _pytree,
        }  # fmt: skip
        self.wrapped: dict[str, None] = {}

    def add(self, hint: str, value: Any) -> str:
        """Return the code that names a value, adding a global unless it is an attribute of torch or a builtin."""
        if is_of_torch(value) and value is not device:
            return qualified_name(value)
        name = hint.replace(".", "_").replace("operator_", "_operator_")
        if self.found.get(name, self) is value:
            return name
        name = self.namespace.create_name(name, value)
        self.found[name] = value
        return name

    def kind(self, kind: Any) -> str:
        """Return an annotation as code."""
        if kind is None or kind is type(None):
            return "NoneType"
        if kind is ...:
            return "_"
        if isinstance(kind, str):
            return self.add(repr(kind), kind)
        origin, args = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.kind, args))
        if origin is None:
            return self.add(qualified_name(kind), kind)
        if not args:  # `typing.List` and the like without a parameter
            return self.add(qualified_name(origin), origin)
        if type(kind).__module__ == "typing":
            name = "Union" if origin is typing.Union else str(kind._name)
            head = self.add(f"typing_{name}", vars(typing)[name])
        else:
            head = self.add(qualified_name(origin), origin)
        inside = ",".join("[" + ",".join(map(self.kind, a)) + "]" if isinstance(a, list) else self.kind(a) for a in args)  # fmt: skip
        return f"{head}[{inside}]"

    def value(self, a: Any) -> str:
        """Return an argument as code."""
        if isinstance(a, Node):
            return repr(a)
        if isinstance(a, tuple):
            inside = ", ".join(map(self.value, a))
            if hasattr(a, "_fields"):
                return f"{self.add(qualified_name(type(a)), type(a))}({inside})"
            return f"({inside},)" if len(a) == 1 else f"({inside})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            return f"{{{', '.join(f'{k!r}: {self.value(v)}' for k, v in a.items())}}}"
        if isinstance(a, slice):
            return f"slice({self.value(a.start)}, {self.value(a.stop)}, {self.value(a.step)})"
        if isinstance(a, enum.Enum):
            return f"{self.add(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, type | types.FunctionType | types.BuiltinFunctionType):
            return self.add(qualified_name(a), a)
        if not isinstance(a, _PLAIN):  # its repr() may not be valid Python
            return self.add(f"_value_{type(a).__name__}", a)
        return repr(a)


_PLAIN = (str, int, float, bool, complex, bytes, type(None), type(...), range, dtype, device, Size, layout, memory_format)  # fmt: skip


class CodeGen:
    """Generates a function from a graph; subclasses may change the function's signature or the form of its results."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the head of the function: its `def` line."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, **options: Any) -> str:
        """Return the code of the return statement."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """Return arguments as the graph's placeholders take them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the graph's results as callers get them."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names and values of additional globals."""
        return []

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: Namespace, verbose: bool = False) -> PythonCode:  # fmt: skip
        listed = list(nodes)
        known = _Globals(namespace)
        known.found.update(self.additional_globals())
        free: list[str] = []
        body: list[str] = []
        after = last_uses(listed)
        returned = ""
        starts: dict[int, int] = {}  # number of a node -> index of its line in `body`
        for node in listed:
            starts[len(starts)] = len(body)
            kind = "" if node.type is None else f" : {known.kind(node.type)}"
            if node.op == "placeholder":
                default = f" = {known.value(node.args[0])}" if node.args else ""
                free.append(f"{node.target}{kind}{default}")
                plain = node.target.replace("*", "")
                if plain != repr(node):
                    body.append(f"{node!r} = {plain}\n")
                continue
            if node.op == "output":
                if node.type is not None:
                    returned = f" -> {known.kind(node.type)}"
                body.append(f"{self._output(node, known)}\n")
                continue
            spent = [*after[node], *(() if node.users else (node,))]
            clear = f";  {' = '.join([*map(repr, spent), 'None'])}" if spent else ""
            body.append(f"{self._line(node, kind, known, root_module)}{clear}\n")
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        if not body:
            body = ["pass\n"]
        lines = [f'torch.fx._symbolic_trace.wrap("{name}")' for name in known.wrapped]
        prologue = "\n" + "\n".join(lines)
        head = self.gen_fn_def(free, returned)
        text = "\n".join(f"    {line}" for line in "".join(body).split("\n"))
        src = f"{prologue}\n\n{head}\n{text}" if lines else f"\n\n\n{head}\n{text}"
        start = src[: src.index(head)].count("\n") + 2
        counts = {i: start + "".join(body[:at]).count("\n") for i, at in starts.items()}
        return PythonCode(src, known.found, dict(counts), start)

    def _output(self, node: Node, known: _Globals) -> str:
        return self.generate_output(_Text(known.value(node.args[0])))

    def _line(self, node: Node, kind: str, known: _Globals, root: str) -> str:
        name, target = f"{node!r}{kind}", node.target
        texts = [known.value(a) for a in node.args]
        texts_named = [f"{k} = {known.value(v)}" for k, v in node.kwargs.items()]
        inside = ", ".join([*texts, *texts_named])
        if node.op == "get_attr":
            return f"{name} = {dotted(root, target)}"
        if node.op == "call_module":
            return f"{name} = {dotted(root, target)}({inside})"
        if node.op == "call_method":
            rest = ", ".join([*texts[1:], *texts_named])
            return f"{name} = {dotted(texts[0], target)}({rest})"
        if not node.kwargs and target in _TEXTS:
            return f"{name} = {_TEXTS[target].format(*texts)}"
        if not node.kwargs and target in _IN_PLACE:
            return f"{_IN_PLACE[target].format(*texts)};  {name} = {texts[0]}"
        if target is getattr and len(texts) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():  # fmt: skip
            return f"{name} = {dotted(texts[0], node.args[1])}"
        called = known.add(qualified_name(target), target)
        if node.meta.get("is_wrapped"):
            known.wrapped[called] = None
        return f"{name} = {called}({inside})"


class _Text(str):
    """Code passed to `generate_output`, which inserts its argument's repr: for this class the text without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def compiled(code: PythonCode, place: str) -> Callable[..., Any]:
    """Compile code and return the function it defines. place: the file name for tracebacks."""
    import linecache

    known = dict(code.globals)
    # Without `dont_inherit`, this file's `from __future__ import annotations` would turn annotations in the code to
    # strings.
    exec(compile(code.src, place, "exec", dont_inherit=True), known)
    linecache.cache[place] = len(code.src), None, code.src.splitlines(keepends=True), place
    return known["forward"]
