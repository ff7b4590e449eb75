"""`torch.fx`: graphs of a module's or function's operations, recorded on proxies, edited, and made into modules again.

The types of symbolic sizes are only names here, without instances: sizes are always numbers.
"""

from __future__ import annotations

from ..reexport import expose
from ..symbolic import SymBool, SymFloat, SymInt
from . import experimental, shape_prop
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .codegen import CodeGen, PythonCode
from .graph import Graph, _Namespace
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "PH",
    "Proxy",
    "ProxyableClassMeta",
    "PythonCode",
    "SymBool",
    "SymFloat",
    "SymInt",
    "Tracer",
    "Transformer",
    "_Namespace",
    "experimental",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

expose(
    globals(),
    {
        "passes": "shape_prop",
        "passes.shape_prop": shape_prop,
    },
)
