"""`functional_call`: call a module with other parameters and buffers than its own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ...tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def functional_call(*args: Any, **kwargs: Any) -> Any:
    """Deprecated name of `cltensor.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. Please "
        "use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return call(*args, **kwargs)


def call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given tensors in place of its own. What it assigns to their names is stored in the dict.

    tie_weights: a tensor that has several names is replaced under all of them. strict: RuntimeError unless all are
    named.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def replaced(
    module: Module, given: dict[str, Any], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Replace tensors of a module for the duration of a with block."""
    values = _tied(module, given) if tie_weights else dict(given)
    if strict:
        _check_names(module, values)
    kept: dict[str, Any] = {}
    try:
        for name, value in values.items():
            kept[name] = _swap(module, name, value)
        yield
    finally:
        for name in reversed(list(kept)):
            now = _swap(module, name, kept[name])
            if name in given:
                given[name] = now


_MISSING = object()


def _swap(module: Module, path: str, value: Any) -> Any:
    """Put a value (or nothing) at a dotted name; return the former value."""
    where, _, name = path.rpartition(".")
    owner = module.get_submodule(where)
    if not _may_stand(value):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    for members in (owner._parameters, owner._buffers):
        if name in members:
            old = members[name]
            if value is _MISSING:
                del members[name]
            else:
                members[name] = value
            return old
    old = getattr(owner, name, _MISSING)
    if not _may_stand(old):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
    return old


def _may_stand(value: Any) -> bool:
    return value is None or value is _MISSING or isinstance(value, Tensor)


def _named_tensors(module: Module) -> dict[str, Any]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _tied(module: Module, given: dict[str, Any]) -> dict[str, Any]:
    """Return the values with those of tied names added; ValueError if several differ."""
    names: dict[int, list[str]] = {}
    for name, value in _named_tensors(module).items():
        names.setdefault(id(value), []).append(name)
    values = dict(given)
    for group in names.values():
        mine = [n for n in group if n in given]
        if len(group) == 1 or not mine:
            continue
        if len({id(given[n]) for n in mine}) != 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using tie_weights=False"
            )
        values.update(dict.fromkeys(group, given[mine[0]]))
    return values


def _check_names(module: Module, values: dict[str, Any]) -> None:
    own = _named_tensors(module)
    unexpected = sorted(n for n in values if n not in own)
    missing = sorted(n for n in own if n not in values)
    errors = []
    if unexpected:
        errors.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        errors.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if errors:
        joined = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{joined}")


_functional_call, _reparametrize_module = call, replaced  # torch's names, which programs use
