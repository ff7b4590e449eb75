"""`torch.ops.aten`: the public functions under torch's names of operators.

There is no dispatcher behind the names: `aten.add.Tensor` and `aten.add` call the same function. Must not know any
function: each is looked up when it is called.
"""

from __future__ import annotations

from typing import Any

from . import core
from .row import FUNCTIONS, METHODS, OPERATORS

# Operators that are named otherwise as methods of tensors.
_OTHER_NAMES = {
    "_local_scalar_dense": "item",
    "_reshape_alias": "as_strided",
    "_unsafe_view": "reshape",
    "sym_numel": "numel",
    "sym_size": "size",
    "sym_stride": "stride",
}


class Overload:
    """An operator, or one of its overloads. Each is made once, so that it can be a key of tables."""

    namespace = "aten"

    def __init__(self, name: str, overload: str = "", packet: Overload | None = None) -> None:
        self._name, self._overload = name, overload
        self.__name__ = f"{name}.{overload}" if overload else name
        if packet is not None:
            self.overloadpacket = packet

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        if not self._overload:
            return f"<OpOverloadPacket(op='aten.{self._name}')>"
        return f"<OpOverload(op='aten.{self._name}', overload='{self._overload}')>"

    def __deepcopy__(self, memo: dict) -> Overload:
        return self

    def name(self) -> str:
        """The operator's name in the dispatcher's spelling."""
        known = "" if self._overload in ("", "default") else f".{self._overload}"
        return f"aten::{self._name}{known}"

    def __getattr__(self, overload: str) -> Overload:
        if overload.startswith("_"):
            raise AttributeError(f"'OpOverloadPacket' object has no attribute '{overload}'")
        if self._overload:
            raise AttributeError(
                f"The underlying op of 'aten.{self._name}' has no overload name '{overload}'"
            )
        made = Overload(self._name, overload, self)
        setattr(self, overload, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; NotImplementedError if there is none of this name."""
        if self._name == "alias":
            return METHODS["view_as"](*args, *args)
        name = _OTHER_NAMES.get(self._name, self._name)
        function = OPERATORS.get(name) or FUNCTIONS.get(name) or METHODS.get(name)
        function = function or getattr(core.Registry.tensor, name, None)
        if function is None:
            raise NotImplementedError(f"aten::{self._name}: there is no function of this name")
        return function(*args, **kwargs)


class _Names:
    """The namespace `aten`, which makes each operator when it is first asked for."""

    def __getattr__(self, name: str) -> Overload:
        if name.startswith("__"):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        made = Overload(name)
        setattr(self, name, made)
        return made


aten = _Names()
