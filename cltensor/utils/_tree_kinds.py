"""The kinds of containers that trees are made of: how each is taken apart and put together, and the keys of its children.

Owns the table and the containers of Python's own. Must not know trees (_pytree.py), which offers what is here.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

Context = Any
Flatten = Callable[[Any], tuple[Iterable[Any], Context]]
Unflatten = Callable[[Iterable[Any], Context], Any]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Context]]


class NodeDef(NamedTuple):
    """A kind of container."""

    type: Any
    flatten_fn: Flatten
    unflatten_fn: Unflatten
    flatten_with_keys_fn: FlattenWithKeys | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


@dataclass(frozen=True, slots=True)
class MappingKey:
    """A step to the value under a key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Take the step."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """A step to the element at an index."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Take the step."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """A step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Take the step."""
        return getattr(obj, self.name)


def is_namedtuple_class(cls: Any) -> bool:
    """Tell whether a class is one that `namedtuple` makes, or derives from one."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls: Any) -> bool:
    """Tell whether a class is what a function with several results returns."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def kind_of(tree: Any) -> Any:
    """Return what the table knows a container by: `namedtuple` for all of these, else the class."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and isinstance(tree, tuple):
        if hasattr(kind, "_fields"):
            return namedtuple
        if is_structseq_class(kind):  # known from the first one on
            SUPPORTED_NODES[kind] = NodeDef(kind, _tuple_flatten, lambda values, context: kind(values), _tuple_flatten_with_keys)  # fmt: skip
    return kind


# --- Python's own containers --------------------------------------------------------------------


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Any]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def _tuple_flatten_with_keys(d: tuple[Any, ...]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _list_flatten(d: list[Any]) -> tuple[list[Any], Any]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Any) -> Any:
    return context(*values)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[tuple[Any, Any]], Any]:
    steps = [(GetAttrKey(name), value) for name, value in zip(d._fields, d, strict=True)]
    return steps, type(d)


def _ordereddict_unflatten(values: Iterable[Any], context: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict[Any, Any]) -> tuple[list[Any], Any]:
    values, keys = _dict_flatten(d)
    return values, [d.default_factory, keys]


def _defaultdict_unflatten(values: Iterable[Any], context: Any) -> defaultdict[Any, Any]:
    return defaultdict(context[0], zip(context[1], values, strict=True))


def _defaultdict_flatten_with_keys(
    d: defaultdict[Any, Any],
) -> tuple[list[tuple[Any, Any]], Any]:
    return _dict_flatten_with_keys(d)[0], _defaultdict_flatten(d)[1]


def _deque_flatten(d: deque[Any]) -> tuple[list[Any], Any]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Any) -> deque[Any]:
    return deque(values, maxlen=context)


def _deque_flatten_with_keys(d: deque[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], d.maxlen


_odict_flatten, _odict_unflatten = _dict_flatten, _ordereddict_unflatten
for _kind in (
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
):  # fmt: skip
    SUPPORTED_NODES[_kind.type] = _kind
