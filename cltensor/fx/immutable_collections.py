"""Immutable lists and dicts for the arguments of nodes, which can only be assigned anew, so that graphs see changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from ..utils._pytree import SUPPORTED_NODES, register_pytree_node

_REFUSED = """'{}' object does not support mutation. If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Raise TypeError: replaces each method that would change the container."""
    raise TypeError(_REFUSED.format(type(self).__name__))


class immutable_list(list[Any]):
    """An immutable, hashable list."""

    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


class immutable_dict(dict[Any, Any]):
    """An immutable, hashable dict."""

    clear = pop = popitem = setdefault = update = _no_mutation
    __delitem__ = __ior__ = __setitem__ = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


def _list_again(values: Iterable[Any], context: Any) -> immutable_list:
    return immutable_list(values)


def _dict_again(values: Iterable[Any], context: Any) -> immutable_dict:
    return immutable_dict(zip(context, values, strict=True))


_LIST, _DICT = SUPPORTED_NODES[list], SUPPORTED_NODES[dict]
register_pytree_node(
    immutable_list,
    _LIST.flatten_fn,
    _list_again,
    flatten_with_keys_fn=_LIST.flatten_with_keys_fn,
)
register_pytree_node(
    immutable_dict,
    _DICT.flatten_fn,
    _dict_again,
    flatten_with_keys_fn=_DICT.flatten_with_keys_fn,
)
