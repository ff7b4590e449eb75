"""Trees of tuples, named tuples, lists, dicts, deques and registered classes: taken apart into leaves and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import _tree_paths as paths
from ._tree_paths import (  # noqa: F401  names that libraries look for here
    GetAttrKey,
    MappingKey,
    SequenceKey,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _tuple_flatten,
    _tuple_unflatten,
    keystr,
)

__all__ = ["Context", "GetAttrKey", "MappingKey", "SequenceKey", "TreeSpec", "keystr", "register_pytree_node", "tree_all", "tree_any", "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_map", "tree_map_only", "tree_map_with_path", "tree_structure", "tree_unflatten"]  # fmt: skip

Context = Any
Flatten = Callable[[Any], tuple[Iterable[Any], Context]]
Unflatten = Callable[[list[Any], Context], Any]
_REGISTERED: dict[type, tuple[Flatten, Unflatten]] = {}


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, **options: Any
) -> None:
    """Have instances of a class taken apart by one function, and made again by another. ValueError for a second time.

    options: `flatten_with_keys_fn`, which `tree_flatten_with_path` asks; how torch's export writes the class to files is accepted.
    """
    if cls in _REGISTERED:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _REGISTERED[cls] = flatten_fn, unflatten_fn
    if options.get("flatten_with_keys_fn") is not None:
        paths.KEYED[cls] = options["flatten_with_keys_fn"]


_register_pytree_node = register_pytree_node


@dataclass(frozen=True)
class TreeSpec:
    """The form of a tree: a kind of container, what it needs beside its children, and their forms; a leaf has kind None."""

    kind: Any
    context: Any
    children: tuple[TreeSpec, ...]

    @property
    def num_leaves(self) -> int:
        """How many leaves a tree of this form has."""
        return 1 if self.kind is None else sum(c.num_leaves for c in self.children)


_LEAF = TreeSpec(None, None, ())


def _is_named(kind: type) -> bool:
    """Whether a tuple's class names its elements: Python's named tuples, and what functions with several results return."""
    return hasattr(kind, "_fields") or hasattr(kind, "n_sequence_fields")


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """Return the leaves in order and the form."""
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        kind, context = type(node), None
        if is_leaf is not None and is_leaf(node):
            children = None
        elif kind in (dict, OrderedDict, defaultdict):
            keys = list(node)
            context = (keys, getattr(node, "default_factory", None))
            children = [node[k] for k in keys]
        elif kind in _REGISTERED:
            found, context = _REGISTERED[kind][0](node)
            children = list(found)
        elif kind is deque:
            context, children = node.maxlen, list(node)
        elif kind in (tuple, list) or (isinstance(node, tuple) and _is_named(kind)):
            children = list(node)
        else:
            children = None
        if children is None:
            leaves.append(node)
            return _LEAF
        return TreeSpec(kind, context, tuple([walk(c) for c in children]))

    return leaves, walk(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Put leaves into a form. ValueError when their number is another."""
    items = list(leaves)
    if len(items) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(items)} but the spec refers to a pytree "
            f"that holds {treespec.num_leaves} items ({treespec})."
        )
    source = iter(items)

    def build(spec: TreeSpec) -> Any:
        if spec.kind is None:
            return next(source)
        children = [build(c) for c in spec.children]
        if spec.kind in _REGISTERED:
            return _REGISTERED[spec.kind][1](children, spec.context)
        if spec.kind is deque:
            return deque(children, spec.context)
        if spec.kind in (dict, OrderedDict):
            return spec.kind(zip(spec.context[0], children, strict=True))
        if spec.kind is defaultdict:
            return defaultdict(spec.context[1], zip(spec.context[0], children, strict=True))
        return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """Return the form."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:  # fmt: skip
    """Return a tree of the function's values on the leaves, of several trees of one form side by side."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Return the leaves in order, each behind the way to it, and the form."""
    return list(paths.walk(tree, _REGISTERED, is_leaf)), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Return a tree of the function's values on the way to each leaf and the leaf; of several trees of one form side by side."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [tree_flatten(r, is_leaf)[0] for r in rests]
    made = [func(*leaf, *rest) for leaf, *rest in zip(leaves, *others, strict=True)]
    return tree_unflatten(made, spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with the function's values in the place of leaves of a type."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree)


def tree_all(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether a predicate holds for all leaves."""
    return all(map(predicate, tree_leaves(tree)))


def tree_any(predicate: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether a predicate holds for a leaf."""
    return any(map(predicate, tree_leaves(tree)))
