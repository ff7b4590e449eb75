"""The kinds of containers that trees are made of: how each is flattened and rebuilt, and the keys of its children.

Owns the table of them, `SUPPORTED_NODES`, with its entries for Python's own containers and torch.Size. Must not know
trees; _pytree.py re-exports what programs use of this module.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..size import Size

Context = Any
Flatten = Callable[[Any], tuple[Iterable[Any], Context]]
Unflatten = Callable[[Iterable[Any], Context], Any]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[Any, Any]], Context]]


class NodeDef(NamedTuple):
    """A kind of container: its type, and the functions that flatten and rebuild its instances."""

    type: Any
    flatten_fn: Flatten
    unflatten_fn: Unflatten
    flatten_with_keys_fn: FlattenWithKeys | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}


@dataclass(frozen=True, slots=True)
class MappingKey:
    """An entry of a key path: the value under a mapping's key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """Return the mapping's value under the key."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """An entry of a key path: the element at a sequence's index."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """Return the sequence's element at the index."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An entry of a key path: an object's attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """Return the object's attribute."""
        return getattr(obj, self.name)


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class was made by `namedtuple`, or derives from such a class."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is a struct sequence, the kind of tuple that functions with several results return."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


def kind_of(tree: Any) -> Any:
    """Return the key for an object in `SUPPORTED_NODES`: `namedtuple` for any named tuple, else the object's class."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES and isinstance(tree, tuple):
        if hasattr(kind, "_fields"):
            return namedtuple
        if is_structseq_class(kind):  # registered when the first instance of the class is met
            SUPPORTED_NODES[kind] = NodeDef(kind, _tuple_flatten, lambda values, context: kind(values), _tuple_flatten_with_keys)  # fmt: skip
    return kind


# --- Python's own containers, and torch.Size, which is rebuilt as a plain tuple ------------------


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
    NodeDef(Size, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
):  # fmt: skip
    SUPPORTED_NODES[_kind.type] = _kind
