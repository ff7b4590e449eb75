"""Named tuples that functions with several results return, with torch's names and printed form."""

from __future__ import annotations

import operator
from typing import Any


def _class(name: str, fields: tuple[str, ...]) -> type:
    def new(cls: type, values: Any) -> Any:
        self: tuple = tuple.__new__(cls, values)
        if len(self) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(self)}-sequence given)"
            )
        return self

    def represent(self: Any) -> str:
        return (
            f"torch.return_types.{name}(\n"
            + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
            + ")"
        )

    members: dict[str, Any] = {
        "__new__": new,
        "__repr__": represent,
        "__slots__": (),
        "__module__": "torch.return_types",
    }
    members |= {
        "n_fields": len(fields),
        "n_sequence_fields": len(fields),
        "n_unnamed_fields": 0,
        "__match_args__": fields,
    }
    members["__reduce__"] = lambda self: (_rebuild, (name, tuple(self)))
    for at, field in enumerate(fields):
        members[field] = property(operator.itemgetter(at))
    return type(name, (tuple,), members)


def _rebuild(name: str, values: tuple) -> Any:
    return globals()[name](values)


_PAIR = ("values", "indices")
max = _class("max", _PAIR)
min = _class("min", _PAIR)
sort = _class("sort", _PAIR)
topk = _class("topk", _PAIR)
median = _class("median", _PAIR)
nanmedian = _class("nanmedian", _PAIR)
mode = _class("mode", _PAIR)
kthvalue = _class("kthvalue", _PAIR)
cummax = _class("cummax", _PAIR)
cummin = _class("cummin", _PAIR)
aminmax = _class("aminmax", ("min", "max"))
frexp = _class("frexp", ("mantissa", "exponent"))
histogram = _class("histogram", ("hist", "bin_edges"))


def __getattr__(name: str) -> Any:
    """Return `max_out` for `max`, and so on: what torch returns with `out=` is printed by that name."""
    plain = globals().get(name.removesuffix("_out"))
    if not name.endswith("_out") or not (isinstance(plain, type) and hasattr(plain, "n_fields")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _class(name, plain.__match_args__)  # type: ignore[attr-defined]
    return made
