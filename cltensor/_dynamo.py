"""`torch._dynamo`: the interface of torch's graph compiler. Only kernels are compiled here, so calls are accepted
without effect.

Owns the options that programs set, and types that they name. The documented part is compiler.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .compiler import (
    OptimizedModule,
    Options,
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
)
from .reexport import expose

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "is_dynamo_supported",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
    "set_stance",
]

disallow_in_graph = forbid_in_graph = allow_in_graph


class Unsupported(RuntimeError):
    """torch's error for programs that its compiler does not support; never raised here."""


class TorchRuntimeError(RuntimeError):
    """torch's error for failures during compilation; never raised here."""


class _Options(Options):
    """torch's options for graphs, with its defaults."""

    accumulated_cache_size_limit = 256
    allow_unspec_int_on_nn_module = False
    assume_static_by_default = True
    automatic_dynamic_shapes = True
    cache_size_limit = recompile_limit = 8
    capture_dynamic_output_shape_ops = False
    capture_scalar_outputs = False
    compiled_autograd = False
    disable = False
    dynamic_shapes = True
    force_parameter_static_shapes = True
    guard_nn_modules = True
    inline_inbuilt_nn_modules = True
    optimize_ddp = True
    skip_fwd_side_effects_in_bwd_under_checkpoint = False
    suppress_errors = False
    verbose = False


config = _Options(f"{__name__}.config", "Options that programs set; nothing reads them.")


def is_dynamo_supported() -> bool:
    """Return False."""
    return False


def is_compile_supported(device_type: Any) -> bool:
    """Return False."""
    return False


def mark_dynamic(t: Any, index: Any, **hints: Any) -> None:
    """Do nothing: kernels do not depend on sizes."""


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing: kernels do not depend on sizes."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Do nothing."""


maybe_mark_dynamic = mark_dynamic


def graph_break(msg: str = "") -> None:
    """Do nothing: there is no graph to break."""


def optimize(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return `compile`, as a decorator."""
    return compile


def run(fn: Any = None) -> Any:
    """Return the function as it is; a decorator when called without one."""
    return (lambda f: f) if fn is None else fn


@contextlib.contextmanager
def TransformGetItemToIndex() -> Iterator[None]:
    """Do nothing: `vmap` supports indexing with tensors anyway."""
    yield


expose(
    globals(),
    {
        "_trace_wrapped_higher_order_op": "TransformGetItemToIndex",
        "config": config,
        "eval_frame": "OptimizedModule is_dynamo_supported optimize",
        "exc": "TorchRuntimeError Unsupported",
        "external_utils": "is_compiling",
        "utils": "is_compile_supported",
    },
)
