"""`cltensor.fx`: there is no symbolic tracing; the names exist because model libraries decorate functions and ask for types with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..reexport import absent, expose
from . import experimental

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "experimental",
    "symbolic_trace",
    "wrap",
]


_WHY = "there are no graphs, functions run as they are"
Graph, GraphModule, Interpreter, Node, Proxy, Tracer, Transformer = absent(
    __name__, "Graph GraphModule Interpreter Node Proxy Tracer Transformer", _WHY
)
_CodeOnlyModule, _copy_attr = absent(__name__, "_CodeOnlyModule _copy_attr", _WHY)
SymInt, SymFloat, SymBool = absent(
    __name__, "SymInt SymFloat SymBool", "sizes are Python's numbers"
)
Argument = Target = Any  # of annotations
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Return what is given: a tracer would not look into the function. RuntimeError for what is neither name nor function."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> NoReturn:
    """NotImplementedError: functions run as Python; `capture` records what they launch."""
    raise NotImplementedError(
        "fx.symbolic_trace: there are no graph modules; functions run as they are"
    )


def is_fx_tracing() -> bool:
    """Return False."""
    return False


expose(
    globals(),
    {
        "_symbolic_trace": "Tracer is_fx_tracing symbolic_trace wrap",
        "graph": "Graph",
        "graph_module": "GraphModule _CodeOnlyModule _USER_PRESERVED_ATTRIBUTES_KEY _copy_attr",
        "node": "Argument Node Target",
        "proxy": "Proxy",
    },
)
