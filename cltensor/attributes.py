"""`tensor.__dict__` as programs see it: the attributes they have set, without the fields that the tensor consists of.

Programs copy, update or assign `__dict__` to carry attributes over from one tensor to another; the fields must not go
along. Owns the list of fields. Must not know what they mean.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

_FIELDS = (
    "shape dtype device _storage _strides _offset _contig _vc _requires _node _nr _grad _grad_dtype _acc _view _hooks _post_hooks "
    "_retain _fw _root _pattern _layout _v _at _known _tally _nowhere"
)
FIELDS = frozenset(_FIELDS.split())


class _Held:
    """Has the real `__dict__`, which `Fields` hides."""


_READ = ("shape", "dtype", "device")


class _Read:
    """What `Tensor.shape` and the like return: a descriptor that reads an instance's field, as a property does."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<attribute {self.__name__!r} of tensors>"

    def __get__(self, t: Any, owner: type | None = None) -> Any:
        return self if t is None else fields(t)[self.__name__]


class _OnClass:
    """What makes `Tensor.shape` a `_Read`: a descriptor of the metaclass, which yields to attributes of the class."""

    def __init__(self, name: str) -> None:
        self._read = _Read(name)

    def __get__(self, cls: type | None, meta: type) -> Any:
        return self if cls is None else self._read


class FieldsMeta(type):
    """Provides `Tensor.shape` and the like on the class; as class attributes they would slow down instances' reads."""

    shape, dtype, device = _OnClass("shape"), _OnClass("dtype"), _OnClass("device")

    def __dir__(cls) -> list[str]:
        return sorted({*super().__dir__(), *_READ})


class Fields(_Held, metaclass=FieldsMeta):
    """Base of classes that keep their fields in the instance's real `__dict__`, beside attributes set by programs."""

    @property  # type: ignore[override]
    def __dict__(self) -> Attributes:
        """The attributes that programs have set on the object."""
        return Attributes(fields(self))

    @__dict__.setter
    def __dict__(self, values: Mapping[str, Any]) -> None:
        own = Attributes(fields(self))
        values = dict(values)
        own.clear()
        own.update(values)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_READ})


def hide(kind: type) -> None:
    """Hide the fields in a class with another base before Tensor, whose plain `__dict__` would show and replace them.

    Python does not let a class get another `__dict__` descriptor later, so every read and write of an attribute
    checks the name.
    """
    shown = next(vars(k)["__dict__"] for k in kind.__mro__ if "__dict__" in vars(k))
    if shown is vars(Fields)["__dict__"] or hasattr(kind, "_hides_fields"):
        return
    read: Any = kind.__getattribute__
    write: Any = kind.__setattr__

    def __getattribute__(self: Any, name: str) -> Any:
        return Attributes(fields(self)) if name == "__dict__" else read(self, name)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if name == "__dict__":
            vars(Fields)["__dict__"].fset(self, value)
        else:
            write(self, name, value)

    kind.__getattribute__, kind.__setattr__ = __getattribute__, __setattr__  # type: ignore[assignment,method-assign]
    kind._hides_fields = True  # type: ignore[attr-defined]


def fields(owner: Any) -> dict[str, Any]:
    """Return an object's real `__dict__`: its fields and the attributes that programs have set."""
    made: dict[str, Any] = _DICT.__get__(owner)
    return made


_DICT: Any = vars(_Held)["__dict__"]


def of_class(made: Any, kind: type) -> Any:
    """Make an object an instance of another class; return it, or another object with its fields if the class has slots."""
    try:
        made.__class__ = kind
    except TypeError:
        plain, made = made, object.__new__(kind)
        fields(made).update(fields(plain))
    return made


def made_as(kind: type, plain: Any) -> Any:
    """Return an object of the class `kind` with the fields of a new one that is not used any more.

    CPython reads attributes of an object whose class was changed several times more slowly.
    """
    made: Any = object.__new__(kind)
    for name, value in fields(plain).items():
        object.__setattr__(made, name, value)
    return made


def slot_names(kind: type) -> list[str]:
    """Return the names of the slots that a class and its bases declare."""
    names: list[str] = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    return names


def slots(owner: Any) -> dict[str, Any]:
    """Return the values of an object's slots, those that have one."""
    return {name: getattr(owner, name) for name in slot_names(type(owner)) if hasattr(owner, name)}


def state(owner: Any) -> Any:
    """Return what a pickle keeps of an object beside its fields: what the class says, or attributes, with slots if it has some."""
    own = getattr(type(owner), "__getstate__", None)
    if own is not getattr(object, "__getstate__", None):  # Python 3.10 has none
        return owner.__getstate__()
    attributes, kept = dict(owner.__dict__), slots(owner)
    return (attributes, kept) if kept else attributes


def restore(owner: Any, kept: Any) -> None:
    """Give an object what `state` returned for another of its class."""
    if hasattr(owner, "__setstate__"):
        owner.__setstate__(kept)
        return
    attributes, inner = kept if isinstance(kept, tuple) else (kept, {})
    owner.__dict__.update(attributes)
    for name, value in inner.items():
        setattr(owner, name, value)


class Attributes(MutableMapping[str, Any]):
    """A view of a real `__dict__` that hides the fields; writes go to the owner. Copies are plain dicts."""

    __slots__ = ("_all",)

    def __init__(self, everything: dict[str, Any]) -> None:
        self._all = everything

    def __getitem__(self, name: str) -> Any:
        if name in FIELDS:
            raise KeyError(name)
        return self._all[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in FIELDS:
            self._all[name] = value

    def __delitem__(self, name: str) -> None:
        if name in FIELDS:
            raise KeyError(name)
        del self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name in self._all if name not in FIELDS])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def copy(self) -> dict[str, Any]:
        """Return a plain dict of the attributes."""
        return dict(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return repr(dict(self))
