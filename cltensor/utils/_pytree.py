"""Trees of tuples, named tuples, lists, dicts, deques and registered classes: flattened to leaves and rebuilt from them.

Owns flattening, mapping and `TreeSpec`, the structure of a tree. _tree_kinds.py defines which types are containers.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._tree_kinds import (  # noqa: F401  names that libraries look for here
    SUPPORTED_NODES,
    Context,
    Flatten,
    FlattenWithKeys,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    Unflatten,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_unflatten,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_unflatten,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
    is_namedtuple_class,
    is_structseq_class,
    kind_of,
)

__all__ = ["Context", "GetAttrKey", "LeafSpec", "MappingKey", "NodeDef", "PyTree", "SUPPORTED_NODES", "SequenceKey", "TreeSpec", "is_constant_class", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq_class", "is_structseq_instance", "key_get", "keystr", "register_constant", "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_leaf"]  # fmt: skip

PyTree = Any
_MAPPINGS = (dict, OrderedDict, defaultdict)
IsLeaf = Callable[[Any], bool] | None
_get_node_type = kind_of
_CONSTANTS: set[type] = set()


def register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, *,
    flatten_with_keys_fn: FlattenWithKeys | None = None, **options: Any,
) -> None:  # fmt: skip
    """Register a class as a container, with functions to flatten and to rebuild instances. ValueError if registered already.

    `flatten_with_keys_fn` returns pairs of key and child, for `tree_flatten_with_path`. `options`, with which torch's
    export writes the class to files, are accepted and ignored.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Register a dataclass, or a class constructed from fields by name, as a container of its fields that are not None.

    ValueError for a class that is no dataclass without `field_names`, and for a dataclass whose constructor's fields,
    except `drop_field_names`, are not exactly `field_names`.
    """
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        names = field_names
    else:
        own = [f.name for f in dataclasses.fields(cls) if f.init]
        names = own if field_names is None else field_names
        if field_names is not None:
            _check_fields(set(own) - set(drop_field_names or ()), set(field_names))

    def keyed(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        fields = [(name, getattr(obj, name)) for name in names]
        held = [(GetAttrKey(name), value) for name, value in fields if value is not None]
        missing = [name for name, value in fields if value is None]
        return held, [[key.name for key, _ in held], missing]

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        held, context = keyed(obj)
        return [value for _, value in held], context

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        held, missing = context
        return cls(**dict(zip(held, values, strict=True)), **dict.fromkeys(missing))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=keyed)


def _check_fields(wanted: set[str], given: set[str]) -> None:
    if wanted == given:
        return
    text = "field_names does not include all dataclass fields.\n"
    if missing := wanted - given:
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please add them "
            "to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected := given - wanted:
        text += f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to `drop_field_names`.\n"
    raise ValueError(text)


def register_constant(cls: type) -> None:
    """Register a class whose instances are part of a tree's spec, not leaves.

    TypeError unless the class defines equality and a hash.
    """
    if cls.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    register_pytree_node(
        cls, lambda x: ((), x), lambda _, x: x, flatten_with_keys_fn=lambda x: ((), x)
    )
    _CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Tell whether a class was registered as a constant."""
    return isinstance(cls, type) and cls in _CONSTANTS


def _register_pytree_node(
    cls: type, flatten_fn: Flatten, unflatten_fn: Unflatten, *_old: Any, **options: Any
) -> None:
    """Register a class, with torch's older signature: functions to convert contexts, given by position, are ignored."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type) -> None:
    """Remove a class from the registry."""
    del SUPPORTED_NODES[cls]


class TreeSpec:
    """The structure of a tree: a container's type, its context (such as keys) and its children's specs.

    A leaf's type is None.
    """

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec]) -> None:
        self.type, self.context = type, context
        self._children = tuple(children_specs)
        self.num_children = len(self._children)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    def is_leaf(self) -> bool:
        """Return whether this is the spec of a leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """Return the children's specs."""
        return list(self._children)

    children_specs = property(children)  # the older name

    def child(self, index: int) -> TreeSpec:
        """Return the spec of the child at an index."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure with these leaves. ValueError unless there are `num_leaves` of them."""
        items = list(leaves)
        if len(items) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(items)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(items))

    def _build(self, source: Iterator[Any]) -> Any:
        if self.type is None:
            return next(source)
        made = [c._build(source) for c in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(made, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees at the positions of this spec's leaves. ValueError if the tree has another structure."""
        found: list[Any] = []
        self._up_to(tree, found)
        return found

    def _up_to(self, tree: Any, found: list[Any]) -> None:
        if self.type is None:
            found.append(tree)
            return
        kind = kind_of(tree)
        if kind is not self.type and not (kind in _MAPPINGS and self.type in _MAPPINGS):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if kind in _MAPPINGS:  # children in the order of the spec's keys, not of the tree's
            children = self._in_order(tree)
        elif kind is not deque and context != self.context:
            raise ValueError(
                f"Node context mismatch for custom node type {kind!r}; expected {self.context!r}, but got {context!r}."
            )
        for spec, child in zip(self._children, children, strict=True):
            spec._up_to(child, found)

    def _in_order(self, tree: Any) -> list[Any]:
        keys = self.context[1] if self.type is defaultdict else self.context
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            parts = (f"missing key(s): {missing}", f"extra key(s): {extra}")
            told = "; ".join(p for p, found in zip(parts, (missing, extra), strict=True) if found)
            raise ValueError(f"Node keys mismatch; {told}.")
        return [tree[k] for k in keys]

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        space = " " * (indent + 2)
        inside = f",\n{space}".join(c.__repr__(indent + 2) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inside}])"

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type is other.type
            and self.context == other.context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), self._children))


_LEAF = TreeSpec(None, None, ())


def treespec_leaf() -> TreeSpec:
    """Return the spec of a leaf."""
    return _LEAF


LeafSpec = treespec_leaf  # the older name


def _children(node: Any, is_leaf: IsLeaf) -> tuple[Any, list[Any], Context] | None:
    """Return a container's kind, children and context; None for a leaf."""
    if is_leaf is not None and is_leaf(node):
        return None
    known = SUPPORTED_NODES.get(kind_of(node))
    if known is None:
        return None
    children, context = known.flatten_fn(node)
    return known.type, list(children), context


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """Return the leaves in order, and the tree's spec."""
    leaves: list[Any] = []

    def walk(node: Any) -> TreeSpec:
        parts = _children(node, is_leaf)
        if parts is None:
            leaves.append(node)
            return _LEAF
        kind, children, context = parts
        return TreeSpec(kind, context, [walk(c) for c in children])

    return leaves, walk(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return a tree of the given structure with these leaves. ValueError unless there are `num_leaves` of them."""
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Yield the leaves in order."""
    parts = _children(tree, is_leaf)
    if parts is None:
        yield tree
        return
    for child in parts[1]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the leaves of all arguments in order."""
    return tree_leaves((args, tuple(kwargs.values())))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the tree's spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a value is a leaf, not an instance of a registered container."""
    return (is_leaf is not None and is_leaf(tree)) or kind_of(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the tree with each leaf replaced by the function's result on that leaf and the other trees' subtrees at its position."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten([func(*each) for each in zip(leaves, *others, strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call a function on the leaves, as `tree_map` does, for its side effects; return the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """Repeat each leaf of a prefix tree for all leaves of the spec below it.

    Return None if the tree is not a prefix.
    """
    parts = _children(tree, is_leaf)
    if parts is None:
        return [tree] * treespec.num_leaves
    kind, children, context = parts
    if (
        kind is not treespec.type
        or context != treespec.context
        or len(children) != treespec.num_children
    ):
        return None
    found: list[Any] = []
    for part, below in zip(children, treespec.children(), strict=True):
        each = _broadcast_to_and_flatten(part, below, is_leaf)
        if each is None:
            return None
        found += each
    return found


# --- ways to the leaves -------------------------------------------------------------------------


def keystr(kp: Iterable[Any]) -> str:
    """Return a key path in Python syntax: "['a'][0].weight"."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """Return what a key path leads to in an object."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _ways(node: Any, is_leaf: IsLeaf, way: tuple[Any, ...] = ()) -> Iterator[Any]:
    if tree_is_leaf(node, is_leaf):
        yield way, node
        return
    kind = kind_of(node)
    keyed = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if keyed is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for step, value in keyed(node)[0]:
        yield from _ways(value, is_leaf, (*way, step))


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[tuple[Any, ...], Any]]:
    """Return pairs of key path and leaf, in order.

    ValueError for a class registered without a function for its keys.
    """
    return list(_ways(tree, is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """Return pairs of key path and leaf, in order, and the tree's spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None
) -> Any:
    """As `tree_map`, with the key path to the leaf as the function's first argument."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten([func(*leaf, *rest) for leaf, *rest in zip(leaves, *others, strict=True)])


# --- leaves of a type ---------------------------------------------------------------------------


def _of(kind: Any) -> Callable[[Any], bool]:
    """Return a predicate for a type, a union or tuple of types, or a predicate."""
    if isinstance(kind, type | tuple) or not callable(kind):
        return lambda leaf: isinstance(leaf, kind)
    return kind


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the tree with the function applied to the leaves of a type, or those for which a predicate is true."""
    wanted = _of(kind)
    return tree_map(lambda leaf: func(leaf) if wanted(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Call a function on the leaves of a type, or those for which a predicate is true; return the tree itself."""
    wanted = _of(kind)
    return tree_map_(lambda leaf: func(leaf) if wanted(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(predicate: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Tell whether a predicate holds for all leaves."""
    return all(map(predicate, tree_iter(tree, is_leaf)))


def tree_any(predicate: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Return whether a predicate holds for any leaf."""
    return any(map(predicate, tree_iter(tree, is_leaf)))


def tree_all_only(
    kind: Any, predicate: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Tell whether a predicate holds for all leaves of a type."""
    wanted = _of(kind)
    return all(predicate(leaf) for leaf in tree_iter(tree, is_leaf) if wanted(leaf))


def tree_any_only(
    kind: Any, predicate: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Return whether a predicate holds for any leaf of a type."""
    wanted = _of(kind)
    return any(predicate(leaf) for leaf in tree_iter(tree, is_leaf) if wanted(leaf))


# --- classes of tuples --------------------------------------------------------------------------


def is_namedtuple_instance(obj: Any) -> bool:
    """Tell whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Return whether an object is a struct sequence, the kind of tuple that functions with several results return."""
    return is_structseq_class(type(obj))


_is_namedtuple_instance, is_namedtuple, is_structseq = is_namedtuple_instance, is_namedtuple_instance, is_structseq_instance  # fmt: skip
