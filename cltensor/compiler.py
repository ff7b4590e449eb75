"""`compile`, which runs functions and modules as they are, and `cltensor.compiler`: functions by which programs control
it, without effect: only kernels are compiled here.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from .creation import as_tensor
from .nn.modules.module import Module
from .reexport import expose
from .tensor import Tensor
from .utils._pytree import tree_map_only

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "load_cache_artifacts",
    "load_compiled_function",
    "nested_compile_region",
    "reset",
    "save_cache_artifacts",
    "set_default_backend",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]


class OptimizedModule(Module):
    """What `compile` makes of a module: a module that runs the original, its only child `_orig_mod`.

    As in torch, names of parameters, buffers and modules begin with `_orig_mod.`, and other attributes are those of the
    original, read and written.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        del self.__dict__["training"]
        self._modules["_orig_mod"] = mod

    @staticmethod
    def dynamo_ctx(fn: Callable) -> Callable:
        """Return the function as it is; torch compiles it."""
        return fn

    @property
    def training(self) -> bool:
        """Whether the original module is being trained."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the original module."""
        return self._modules["_orig_mod"](*args, **kwargs)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_modules", {}) or name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or name in self._modules or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__ or name in self._modules:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})


_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return a function as it is, a module as an `OptimizedModule` that runs it.

    Other options have no effect: pointwise chains are fused in any case. To run a function without its Python, see
    `capture`. disable: return a module as it is, too. Without `model`, a decorator. AssertionError if it is not
    callable, RuntimeError for a mode that torch does not have, and for a mode beside options.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend in (None, "inductor") and (mode or "default") not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return functools.partial(compile, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable or not isinstance(model, Module) or isinstance(model, OptimizedModule):
        return model
    return OptimizedModule(model)


class Options(ModuleType):
    """Options of a compiler that does not exist here: they can be set and read, and have no effect."""

    @contextlib.contextmanager
    def patch(
        self, changes: str | dict[str, Any] | None = None, value: Any = None, **more: Any
    ) -> Iterator[None]:
        """Set options inside the block, given as a name and a value, a dict, or keywords."""
        wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
        before = {name: getattr(self, name) for name in wanted}
        vars(self).update(wanted)
        try:
            yield
        finally:
            vars(self).update(before)


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: Any = None) -> Any:
    """Return the function as it is; a decorator when called without one."""
    return (lambda f: f) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return the function as it is."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return the function as it is."""
    return fn


def is_compiling() -> bool:
    """Return False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return an empty list."""
    return []


def reset() -> None:
    """Do nothing: there is nothing compiled to forget."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing."""


def set_stance(stance: str = "default", **options: Any) -> None:
    """Do nothing: the call is accepted."""


_default_backend: Any = "inductor"


def get_default_backend() -> Any:
    """Return what `set_default_backend` was told."""
    return _default_backend


def set_default_backend(backend: Any) -> None:
    """Store the choice, which has no effect: nothing is compiled."""
    global _default_backend
    _default_backend = backend


def substitute_in_graph(original_fn: Any, **options: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that returns the function as it is: `original_fn` is never traced."""
    return lambda f: f


def nested_compile_region(fn: Callable | None = None, **options: Any) -> Any:
    """Return the function as it is; a decorator when called without one."""
    return (lambda f: f) if fn is None else fn


def wrap_numpy(fn: Callable) -> Callable:
    """Turn a function of numpy arrays into one of tensors, whose results are tensors on the cpu device."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map_only(Tensor, lambda t: t.numpy(), (args, kwargs))
        return tree_map_only(np.ndarray, as_tensor, fn(*args, **kwargs))

    return call


def save_cache_artifacts() -> None:
    """Return None, as torch does when nothing was compiled."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Return None, as torch does of what it cannot use: kernels are kept in the library's own cache."""


def load_compiled_function(file: Any, **options: Any) -> Any:
    """NotImplementedError: functions are not compiled."""
    raise NotImplementedError("compiler.load_compiled_function: functions are not compiled here")


config = Options(f"{__name__}.config", "Options that programs set; nothing reads them.")
vars(config).update(
    job_id=None, dynamic_shapes=True, assume_static_by_default=True, automatic_dynamic_shapes=True, recompile_limit=8,
    accumulated_recompile_limit=256, verbose=False, capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False, log_file_name=None,
    fail_on_recompile_limit_hit=False, force_disable_caches=False,
)  # fmt: skip
expose(globals(), {"config": config})
