"""Replaces the public ops by wrappers while a profile runs, and restores them afterwards.

That is how a profile sees ops while no op knows of profiles. A function that a program imported before the profile
began (`from cltensor import relu`) stays the unwrapped op and has no range of its own; its launches are recorded all
the same. Owns the places and names of ops. Must not know what a range consists of.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session

# Modules of functions, and the prefixes of their ops' names.
_MODULES = {
    "nn.functional": "",
    "linalg": "linalg_",
    "fft": "fft_",
    "special": "special_",
}
_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
_SPECIAL = {
    **{f"__{k}__": v for k, v in _OPERATORS.items()},
    **{f"__r{k}__": v for k, v in _OPERATORS.items()},
    **{f"__i{k}__": v + "_" for k, v in _OPERATORS.items()},
    **{f"__{k}__": k for k in ("neg", "abs", "eq", "ne", "lt", "le", "gt", "ge")},
    "__invert__": "bitwise_not",
    "__getitem__": "index",
    "__setitem__": "index_put_",
    "item": "item",
    "detach": "detach",
    "cpu": "to",
    "cuda": "to",
}
_NO_OPS = frozenset({"can_cast", "promote_types", "result_type", "as_subclass", "apply_", "map_"})


def install(session: Session) -> Callable[[], None]:
    """Wrap the public ops, gradient nodes and optimisers' steps so that they record ranges.

    Return a function that restores them.
    """
    from .session import OP, USER

    put: list[tuple[Any, str, Any, Any]] = []

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        old = vars(owner).get(name)
        if callable(old) and not isinstance(old, type):
            new = make(old)
            setattr(owner, name, new)
            put.append((owner, name, old, new))

    for owner, name, label in _places():
        replace(owner, name, _around(session, f"aten::{label}", OP))
    loop = sys.modules.get("cltensor.autograd.loop")
    replace(loop, "_run_node", lambda run: _around_node(session, run))
    module = getattr(sys.modules.get("cltensor.nn"), "Module", None)
    if session.modules and module is not None:
        replace(module, "__call__", lambda call: _around_module(session, call))
    for optimiser in _optimisers():
        label = f"Optimizer.step#{optimiser.__name__}.step"
        replace(optimiser, "step", _around(session, label, USER))

    def restore() -> None:
        for owner, name, old, new in reversed(put):
            if vars(owner).get(name) is new:
                setattr(owner, name, old)

    return restore


def _around(session: Session, label: str, scope: int) -> Callable[[Any], Any]:
    def make(function: Any) -> Any:
        @functools.wraps(function)
        def op(*args: Any, **kwargs: Any) -> Any:
            if session.active is not session:
                return function(*args, **kwargs)
            made = session.enter(label, scope, args)
            try:
                return function(*args, **kwargs)
            finally:
                session.leave(made)

        return op

    return make


def _around_node(session: Session, run: Any) -> Any:
    from .session import BACKWARD

    @functools.wraps(run)
    def run_node(task: Any, node: Any, grads: Any) -> Any:
        label = f"autograd::engine::evaluate_function: {node.name()}"
        made = session.enter(label, BACKWARD, tuple(grads))
        try:
            return run(task, node, grads)
        finally:
            session.leave(made)

    return run_node


def _around_module(session: Session, call: Any) -> Any:
    from .session import USER

    @functools.wraps(call)
    def run_module(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = session.enter(f"nn.Module: {type(self).__name__}", USER, args)
        try:
            return call(self, *args, **kwargs)
        finally:
            session.leave(made)

    return run_module


def _places() -> Iterator[tuple[Any, str, str]]:
    """Yield (namespace, name, op) for each place where programs find an op."""
    package = sys.modules["cltensor"]
    rows = sys.modules["cltensor.ops.row"]
    tensor = package.Tensor
    for name in rows.FUNCTIONS:
        if name not in _NO_OPS:
            yield package, name, name
    for name in rows.METHODS:
        if name not in _NO_OPS and not name.startswith("__"):
            yield tensor, name, name
    for name, op in _SPECIAL.items():
        yield tensor, name, op
    for part, prefix in _MODULES.items():
        module = sys.modules.get(f"cltensor.{part}")
        if module is None:
            continue
        for name, value in list(vars(module).items()):
            own = getattr(value, "__module__", "") or ""
            if name[0].islower() and callable(value) and own.startswith("cltensor."):
                plain = not prefix or name.startswith(prefix)
                yield module, name, name if plain else prefix + name


def _optimisers() -> Iterator[type]:
    base = getattr(sys.modules.get("cltensor.optim"), "Optimizer", None)
    todo = [] if base is None else base.__subclasses__()
    while todo:
        found = todo.pop()
        todo += found.__subclasses__()
        if "step" in vars(found):
            yield found
