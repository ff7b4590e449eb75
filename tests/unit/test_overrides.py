"""`__torch_function__` of classes that are no tensors, called by functions that dispatch to it."""

from __future__ import annotations

from typing import Any

import pytest

from cltensor import overrides


class Plain:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return cls.__name__, func.__name__, types, args, kwargs


class Derived(Plain):
    pass


class Silent:
    def __torch_function__(self, *call: Any) -> Any:
        return NotImplemented


@overrides.wrap_torch_function(lambda a, b=None: (a, b))
def mix(a: Any, b: Any = None) -> Any:
    """Say so."""
    return "plain"


def test_the_function_runs_where_nothing_overrides_it() -> None:
    assert mix(1, b=2) == "plain"
    assert mix.__doc__ == "Say so."
    assert not overrides.has_torch_function((1, Plain))
    assert not overrides.is_tensor_like("text")
    assert overrides.is_tensor_like(Plain())


def test_a_subclass_is_asked_first() -> None:
    a, b = Plain(), Derived()
    name, func, types, args, kwargs = mix(a, b=b)
    assert (name, func, types) == ("Derived", "mix", (Derived, Plain))
    assert args == (a,)
    assert kwargs == {"b": b}


def test_no_answer_is_an_error() -> None:
    with pytest.raises(TypeError, match="no implementation found for"):
        mix(Silent())
    assert mix(Silent(), Plain())[0] == "Plain"
