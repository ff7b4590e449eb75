"""The short path of pointwise ops (ops/alike.py) gives what the general one does, and leaves no trace where it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from support import data, on_device

import cltensor as ct
from cltensor.ops import arithmetic, selection
from cltensor.ops.alike import apply_alike

SHAPES = [((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (3,)), ((), (2, 3))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("pending", [False, True])
def test_results_are_those_of_the_general_way(shapes: Any, pending: bool) -> None:
    x, y = (on_device(data(*s, seed=i)) for i, s in enumerate(shapes))
    y = y + 1 if pending else y
    found, wanted = x * y, arithmetic.mul.general((x, y))
    assert found.shape == wanted.shape and found.stride() == wanted.stride()
    types = arithmetic.mul._types[x.dtype]
    short = apply_alike(None, types, (x, y))
    assert (short is None) == (pending and y.shape != found.shape)
    assert all(ct.equal(t, wanted) for t in (found, *([] if short is None else [short])))


def test_refused_operands_count_as_unread() -> None:
    x, y = on_device(data(2, 3)), on_device(data(3, 2)).t()
    x * y  # makes the row's types
    z, types = x + 1, arithmetic.mul._types[x.dtype]
    counts = x._storage.reads, z._storage.value.users
    assert apply_alike(None, types, (x, y)) is None
    assert apply_alike(None, types, (z, y)) is None
    assert (x._storage.reads, z._storage.value.users) == counts


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("pending", [False, True])
def test_conditions_beside_other_operands(shapes: Any, pending: bool) -> None:
    x, at = (on_device(data(*s, seed=i)) for i, s in enumerate(shapes))
    mask = at > 0
    if not pending:
        mask._storage.buffer()
    for row, xs in [
        (selection.where_row, (mask, x, 0.5)),
        (selection.where_row, (mask, 0.5, x)),
        (selection.where_row, (mask, x, x + 1)),
        (selection.masked_fill_row, (x, mask, 2.0)),
    ]:
        found, wanted = row(*xs), row.general(xs)
        assert found.shape == wanted.shape and found.dtype is wanted.dtype
        assert found.stride() == wanted.stride() and ct.equal(found, wanted)


def test_a_condition_that_is_no_bool_is_left_to_the_general_way() -> None:
    x = on_device(data(2, 3))
    types = selection.masked_fill_row._types.get(x.dtype)
    if types is None:
        selection.masked_fill_row(x, x > 0, 1.0)
        types = selection.masked_fill_row._types[x.dtype]
    assert apply_alike(None, types, (x, (x > 0).int(), 1.0)) is None
    assert apply_alike(None, types, (x, x > 0, 1.0)) is not None
    assert apply_alike(None, types, (x > 0, x > 0, 1.0), first=x) is None
