"""`torch.utils.weak`: dictionaries whose keys, such as tensors, are compared by identity and not kept alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from ..tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

WeakRef = weakref.ref
_Data = dict[Any, Any]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference compared and hashed by its object's identity.

    After the object's death the hash stays the same, and the reference equals only itself.
    """

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Callable[[Any], None] | None = None) -> WeakIdRef:
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdRef):
            return NotImplemented
        mine, theirs = self(), other()
        return self is other if mine is None or theirs is None else mine is theirs

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict with weakly referenced keys, compared by identity; an entry is removed when its key dies."""

    def __init__(
        self, dict: Mapping[Any, Any] | Iterable[Any] | None = None, ref_type: type = WeakIdRef
    ) -> None:
        self.data: _Data = {}
        self.ref_type = ref_type
        own = weakref.ref(self)

        def forget(key: Any) -> None:
            mine = own()
            if mine is not None:
                mine.data.pop(key, None)

        self._remove = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # the key's type does not support weak references
            return False

    def __len__(self) -> int:
        return sum(key() is not None for key in list(self.data))

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            if (key := ref()) is not None:
                yield key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __eq__(self, other: object) -> Any:
        """Compare the entries; keys are compared by identity."""
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def keyrefs(self) -> list[Any]:
        """Return the weak references to the keys; a key may have died before its reference is used."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a dictionary of the same class with the same entries."""
        return type(self)(self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        """Return a dictionary of the same class with the same keys and deep copies of the values."""
        import copy

        return type(self)([(k, copy.deepcopy(v, memo)) for k, v in self.items()])

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(other, self.ref_type)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor. AssertionError for something else."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
