"""Modules and parameters in order or by key: `Sequential`, `ModuleList`, `ModuleDict`, `ParameterList`, `ParameterDict`; `Container`.

Owns what makes them lists and dicts. Only Sequential has a forward.
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from ...tensor import Tensor
from ..parameter import Parameter
from .module import Module, typename

__all__ = [
    "Container",
    "Sequential",
    "ModuleList",
    "ModuleDict",
    "ParameterList",
    "ParameterDict",
]

S = TypeVar("S", bound="Sequential")
L = TypeVar("L", bound="ModuleList")


def _position(idx: Any, size: int) -> int:
    """Return an index from 0; IndexError outside."""
    idx = operator.index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx % size


def _pairs(kind: str, items: Any, whole: str | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of an iterable; TypeError and ValueError for elements that are no pairs."""
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{whole or kind}.update should be called with an iterable of key/value pairs, but got {type(items).__name__}"
        )
    if isinstance(items, (Mapping, ModuleDict, ParameterDict)):
        yield from items.items()
        return
    for j, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{j} should be Iterable; is{type(pair).__name__}"
            )
        if len(pair) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{kind} update sequence element #{j} has length {len(pair)}; 2 is required"  # type: ignore[arg-type]
            )
        yield pair  # type: ignore[misc]


class Container(Module):
    """A module with children given by name, the form that predates `add_module`; emits a FutureWarning."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Ordered(Module):
    """Children named 0, 1, 2, … (or, in a Sequential, by names of their own)."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _key(self, idx: Any) -> str:
        return list(self._modules)[_position(idx, len(self))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def append(self, module: Module) -> Any:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module out and return it."""
        module = self[key]
        del self[key]
        return module

    def _shift_in(self, index: int, module: Module) -> None:
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError


class Sequential(_Ordered):
    """Call modules one after another, each on what the one before returned."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Module]] = args[0].items()
        else:
            named = ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def forward(self, input: Any) -> Any:
        """Pass the input through all modules."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self: S, index: int, module: Module) -> S:
        """Put a module before position `index`; returns self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        self._shift_in(index + n if index < 0 else index, module)
        return self

    def extend(self: S, sequential: Iterable[Module]) -> S:
        """Add modules at the end; returns self."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self: S, other: Any) -> S:
        _check_sequential(other)
        return self.extend(list(other))

    def __mul__(self, other: Any) -> Sequential:
        self._check_factor(other)
        return Sequential(*[m for _ in range(other) for m in self])

    __rmul__ = __mul__

    def __imul__(self: S, other: Any) -> S:
        self._check_factor(other)
        return self.extend([m for _ in range(other - 1) for m in self])

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")


def _check_sequential(other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)!s} is given."
        )


class ModuleList(_Ordered):
    """A list of modules, which are registered."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, idx: Any) -> str:  # torch's name, which subclasses call
        return str(_position(idx, len(self)))

    def _key(self, idx: Any) -> str:
        return self._get_abs_string_index(idx)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> None:
        """Put a module before position `index`."""
        self._shift_in(index, module)

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Add modules at the end; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self: L, modules: Iterable[Module]) -> L:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Print equal neighbours once, with their number."""
        blocks: list[list[Any]] = []  # first index, last index, text
        for i, text in enumerate(repr(m) for m in self):
            if blocks and blocks[-1][2] == text:
                blocks[-1][1] = i
            else:
                blocks.append([i, i, text])
        if not blocks:
            return f"{self._get_name()}()"
        lines = [
            f"({i}): {text}" if i == j else f"({i}-{j}): {j - i + 1} x {text}"
            for i, j, text in blocks
        ]
        inside = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {inside}\n)"


class ModuleDict(Module):
    """A dict of modules, which are registered."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the keys."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return pairs of keys and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of an iterable of pairs."""
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _as_parameter(value: Any) -> Any:
    return (
        Parameter(value)
        if isinstance(value, Tensor) and not isinstance(value, Parameter)
        else value
    )


def _describe(items: Iterable[tuple[Any, Any]], kind: Any) -> str:
    """Return the lines of a printed parameter container."""
    lines = []
    for key, value in items:
        if not isinstance(value, Tensor):
            lines.append(f"  ({key}): Object of type: {type(value).__name__}")
            continue
        size = "x".join(str(n) for n in value.size())
        where = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
        name = "Parameter" if isinstance(value, Parameter) else "Tensor"
        lines.append(f"  ({key}): {name} containing: [{kind(value)} of size {size}{where}]")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters, which are registered; tensors become parameters, other values are kept as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(_position(idx, len(self)))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(len(self))[idx]])
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end; returns self."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; returns self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def extra_repr(self) -> str:
        return _describe(enumerate(self), lambda p: p.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, which are registered; tensors become parameters, other values are kept as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, _checked(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, _checked(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Return another dict of the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, which becomes `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last pair out and return it."""
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or `default`."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dict with the same value for all keys."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return pairs of keys and values."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping or of an iterable of pairs."""
        pairs = _pairs("ParameterDict", parameters, "ParametersDict")
        ordered = (OrderedDict, ParameterDict)
        if isinstance(parameters, Mapping) and not isinstance(parameters, ordered):
            pairs = iter(sorted(pairs))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return _describe(self.items(), typename)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: Any) -> Any:
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self


def _checked(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}'). Open an issue on "
            "github if you need non-string keys."
        )
    return key
