"""A module made from a graph: `forward` is the graph's generated code.

Submodules, parameters and buffers are those the graph names.
"""

from __future__ import annotations

import copy
import itertools
import sys
import traceback
from pathlib import Path
from typing import Any

from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from .codegen import PythonCode, compiled
from .graph import Graph

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_NUMBER = itertools.count()


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy the attribute at a path from one module to another, making the modules along the path."""
    *way, name = target.split(".")
    for item in way:
        source, place = getattr(from_module, item), getattr(to_module, item, None)
        if source is place:  # shared already
            return
        if place is None:
            place = Module()
            setattr(to_module, item, place)
        from_module, to_module = source, place
    _assign(getattr(from_module, name), to_module, name)


def _assign(value: Any, module: Module, name: str) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Set a module's attribute at a path, making the modules along the path."""
    *way, name = target.split(".")
    for item in way:
        found = getattr(to_module, item, None)
        if found is None:
            found = Module()
            setattr(to_module, item, found)
        to_module = found
    _assign(from_obj, to_module, name)


def _imports(known: dict[str, Any]) -> list[str]:
    """Return import lines that define the globals of generated code. RuntimeError for a value that has none."""
    package = __package__.partition(".")[0]
    given = {
        "torch": f"import {package} as torch",
        "pytree": f"from {package}.utils import _pytree as pytree",
        "device": "device = torch.device",
        "inf": "from math import inf",
        "nan": "from math import nan",
        "NoneType": "NoneType = type(None)",
    }
    lines = [given[name] for name in given if name in known]
    for name, value in known.items():
        if name in given:
            continue
        if isinstance(value, str):
            lines.append(f"{name} = {value!r}")
        elif hasattr(value, "__module__") and "." not in getattr(value, "__qualname__", "."):
            lines.append(f"from {value.__module__} import {value.__qualname__} as {name}")
        else:
            raise RuntimeError(
                f"the graph takes {value!r}, which has no name that could be imported"
            )
    return lines


class _CodeOnlyModule(Module):
    """A module with a given state, as the root from which a graph module is made."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


class GraphModule(Module):
    """A module that runs a graph. root: a module, or a dict by path, that has the attributes which the graph names.

    `graph` may be changed; `recompile()` then regenerates `forward` and `code`. Assigning another graph does so, too.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Make a class for each instance, since `forward` must be an attribute of the class to be scripted, wrapped or inspected."""
        made = next(c for c in cls.__mro__ if not c.__dict__.get("_is_impl"))
        impl = type("GraphModuleImpl", (made,), {"_is_impl": True, "__module__": made.__module__})
        return super().__new__(impl)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = getattr(root, "training", self.training)
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
            kept = getattr(root, "meta", {}).get(_USER_PRESERVED_ATTRIBUTES_KEY)
        elif isinstance(root, dict):
            wanted = [n for n in graph.nodes if n.op in ("get_attr", "call_module")]
            for node in wanted:
                if node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target} but that target was not provided in ``root``!")  # fmt: skip
            for target in sorted({n.target for n in wanted}, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
            kept = None
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._named_tracer
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        if kept is not None:
            self.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = kept

    __jit_unused_properties__ = ("graph",)

    @property
    def graph(self) -> Graph:
        """The graph that the module runs."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return self._code

    def recompile(self) -> PythonCode:
        """Regenerate `forward` from the graph; to be called after changes of the graph."""
        python = self._graph.python_code(root_module="self")
        self._code, self._lineno_map = python.src, python._lineno_map
        self._prologue_start = python._prologue_start
        type(self).forward = compiled(python, f"<eval_with_key>.{next(_NUMBER)}")  # type: ignore[method-assign]
        return python

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph; if the generated code raises, print the failing line."""
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            if last.filename.startswith("<eval_with_key>") and last.lineno:
                print(self._around(last), file=sys.stderr)
            raise

    @staticmethod
    def _around(frame: traceback.FrameSummary) -> str:
        import linecache

        lines = linecache.getlines(frame.filename)
        at = frame.lineno or 0
        before, after = "".join(lines[max(at - 4, 0) : at]), "\n".join(lines[at : at + 2])
        return f"Call using an FX-traced Module, line {at} of the traced Module's generated forward function:\n{before}\n{'~' * 80} <--- HERE\n{after}"

    # ---------------------------------------------------------------------------------- submodules

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a submodule at a path, making the modules along it.

        Return False if another kind of attribute is in the way.
        """
        *way, name = target.split(".")
        place: Any = self
        for item in way:
            found = getattr(place, item, None)
            if found is None:
                found = Module()
                setattr(place, item, found)
            if not isinstance(found, Module):
                return False
            place = found
        place.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a path; return False if there is none."""
        *way, name = target.split(".")
        place: Any = self
        for item in way:
            place = getattr(place, item, None)
            if not isinstance(place, Module):
                return False
        if not isinstance(getattr(place, name, None), Module):
            return False
        delattr(place, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules of which the graph uses neither themselves nor a part."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                way = node.target.split(".")
                used.update(".".join(way[:i]) for i in range(1, len(way) + 1))
                if node.op == "call_module":
                    inside = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inside if name)
        for name in [n for n, _ in self.named_modules() if n and n not in used]:
            self.delete_submodule(name)

    # --------------------------------------------------------------------------- text, copies, files

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """Return the text of the module as a class, with those of graph modules inside of it, and print it."""
        lines = "\n".join(f"    {line}" if line.strip() else "" for line in self._code.strip().split("\n"))  # fmt: skip
        text = f"class {self._get_name()}(torch.nn.Module):\n{lines}\n"
        inner = [m.print_readable(print_output=False) for m in self.children() if isinstance(m, GraphModule)]  # fmt: skip
        for part in inner:
            text += "\n" + "\n".join(f"    {line}" if line else "" for line in part.split("\n"))
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return f"{super().__str__()}\n{self._code}\n{hint}"

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: the generated code, and the state of the parts it names."""
        from ..serialization import save

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        held = {name: m for name, m in self.named_modules() if name}
        tensors = dict(itertools.chain(self.named_parameters(recurse=False), self.named_buffers(recurse=False)))  # fmt: skip
        lines = [
            *_imports(self.graph.python_code("self").globals),
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, module in held.items():
            if "." in name:
                continue
            save(module, place / f"{name}.pt")
            lines.append(f'        self.{name} = torch.load(r"{place / f"{name}.pt"}", weights_only=False)')  # fmt: skip
        for name, value in tensors.items():
            kind = "register_parameter" if isinstance(value, Parameter) else "register_buffer"
            made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            made = f"torch.nn.Parameter({made})" if isinstance(value, Parameter) else made
            lines.append(f'        self.{kind}("{name}", {made})')
        lines.append(f'        self.load_state_dict(torch.load(r"{place / "state_dict.pt"}"))')
        lines += [f"    {line}" if line.strip() else "" for line in self._code.strip().split("\n")]
        (place / "module.py").write_text("\n".join(lines) + "\n")
        (place / "__init__.py").write_text("from .module import *\n")

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        """Return a copy with a graph of its own."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, body, body.__dict__["_graph"], type(self).__name__)
        for name in ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks", "_forward_pre_hooks"):  # fmt: skip
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.copy(getattr(self, "meta", {}))
        return made

    def _deepcopy_init(self) -> Any:
        return GraphModule.__init__

    def __copy__(self) -> GraphModule:
        """Return a graph module with a copy of the graph and the same parts."""
        made = GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)
        made.meta = getattr(self, "meta", {})
        return made

    def __reduce__(self) -> Any:
        """Pickle the graph and the parts it names."""
        body = {k: v for k, v in self.__dict__.items() if k not in ("_code", "_lineno_map")}
        return _again, (body, type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()


def _again(body: dict[str, Any], name: str) -> GraphModule:
    """Rebuild a pickled graph module."""
    module = GraphModule(_CodeOnlyModule(body), body["_graph"], name)
    module.training = body.get("training", True)
    return module
