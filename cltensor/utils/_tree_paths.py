"""The way to each leaf of a tree: keys, indices and names from the root on; part of `_pytree`, which offers what is here."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

KEYED: dict[
    type, Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
] = {}  # of registered classes


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


def keystr(kp: Iterable[Any]) -> str:
    """Return a way as Python would write it: "['a'][0].weight"."""
    return "".join(map(str, kp))


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _list_flatten(d: list[Any]) -> tuple[list[Any], Any]:
    return d, None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    return list(values)


def _list_flatten_with_keys(d: list[Any]) -> tuple[list[tuple[Any, Any]], Any]:
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _tuple_flatten(d: tuple[Any, ...]) -> tuple[list[Any], Any]:
    return list(d), None


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    return tuple(values)


def walk(node: Any, registered: Any, is_leaf: Any, way: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield (way, leaf) for each leaf. ValueError for a registered class that does not say the keys of its children."""
    kind = type(node)
    if is_leaf is not None and is_leaf(node):
        steps = None
    elif kind in (dict, OrderedDict, defaultdict):
        steps = _dict_flatten_with_keys(node)[0]
    elif kind in registered:
        if kind not in KEYED:
            raise ValueError(
                f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
            )
        steps = list(KEYED[kind](node)[0])
    elif isinstance(node, tuple) and hasattr(kind, "_fields"):
        steps = [(GetAttrKey(name), value) for name, value in zip(kind._fields, node, strict=True)]
    elif kind in (tuple, list, deque) or (isinstance(node, tuple) and hasattr(kind, "n_sequence_fields")):  # fmt: skip
        steps = [(SequenceKey(i), value) for i, value in enumerate(node)]
    else:
        steps = None
    if steps is None:
        yield way, node
        return
    for step, value in steps:
        yield from walk(value, registered, is_leaf, (*way, step))
