"""Type promotion against torch: the whole table by `result_type`, a sample by additions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from cltensor import dtypes

torch = pytest.importorskip("torch")

NAMES = [d.name for d in dtypes.ALL]
RANKS = {2: (2,), 1: ()}
SCALARS = {"bool": True, "int64": 3, "float32": 2.5, "complex64": 1j}


def outcome(function: Callable[..., Any], *args: Any) -> tuple[str, str]:
    try:
        return "ok", str(function(*args))
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error)


def test_promote_types_table() -> None:
    for a, b in itertools.product(NAMES, NAMES):
        ours = outcome(dtypes.promote_types, dtypes.BY_NAME[a], dtypes.BY_NAME[b])
        theirs = outcome(torch.promote_types, getattr(torch, a), getattr(torch, b))
        assert ours == theirs, (a, b)


def test_can_cast_table() -> None:
    for a, b in itertools.product(NAMES, NAMES):
        expected = torch.can_cast(getattr(torch, a), getattr(torch, b))
        assert dtypes.can_cast(dtypes.BY_NAME[a], dtypes.BY_NAME[b]) == expected, (a, b)


@pytest.mark.parametrize("default", ["float32", "float64", "float16", "bfloat16"])
def test_result_type_table(default: str) -> None:
    def operands() -> list[tuple[tuple[Any, int], Any, str]]:
        made = [
            (
                (dtypes.BY_NAME[n], rank),
                torch.empty(shape, dtype=getattr(torch, n)),
                f"{n} rank {rank}",
            )
            for n in NAMES
            for rank, shape in RANKS.items()
        ]
        made += [((dtypes.scalar_dtype(v), 0), v, repr(v)) for v in SCALARS.values()]
        return made

    dtypes.set_default_dtype(dtypes.BY_NAME[default])
    torch.set_default_dtype(getattr(torch, default))
    try:
        for (mine_a, torch_a, name_a), (mine_b, torch_b, name_b) in itertools.product(
            operands(), operands()
        ):
            ours = outcome(dtypes.result_type_of, (mine_a, mine_b))
            theirs = outcome(torch.result_type, torch_a, torch_b)
            assert ours == theirs, (name_a, name_b)
    finally:
        dtypes.set_default_dtype(dtypes.float32)
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name: str) -> None:
    ours, theirs = dtypes.BY_NAME[name], getattr(torch, name)
    for field in ("itemsize", "is_floating_point", "is_complex", "is_signed", "abbr"):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert repr(ours) == repr(theirs)
    assert str(ours) == str(theirs)
    assert outcome(ours.to_real) == outcome(theirs.to_real)
    assert outcome(ours.to_complex) == outcome(theirs.to_complex)
    for function, fields in (
        ("finfo", "bits eps max min tiny smallest_normal resolution dtype"),
        ("iinfo", "bits max min dtype"),
    ):
        mine = outcome(getattr(dtypes, function), ours)
        assert mine == outcome(getattr(torch, function), theirs)
        if mine[0] == "ok":
            a, b = getattr(dtypes, function)(ours), getattr(torch, function)(theirs)
            assert [getattr(a, f) for f in fields.split()] == [
                getattr(b, f) for f in fields.split()
            ]


# Pairs of dtypes that are common in programs, and pairs with a special rule.
ADDITIONS = [
    (a, rank_a, b, rank_b)
    for a, b in [
        ("bool", "uint8"),
        ("bool", "int64"),
        ("bool", "float32"),
        ("uint8", "int8"),
        ("int8", "int16"),
        ("uint8", "int32"),
        ("int32", "int64"),
        ("int64", "float32"),
        ("int64", "float16"),
        ("int32", "float64"),
        ("float16", "float32"),
        ("float16", "bfloat16"),
        ("bfloat16", "float32"),
        ("float32", "float64"),
        ("float32", "complex64"),
        ("float64", "complex64"),
        ("int64", "complex64"),
    ]
    for rank_a, rank_b in [(2, 2), (2, 1), (1, 2)]
]


@pytest.mark.parametrize(("a", "rank_a", "b", "rank_b"), ADDITIONS)
def test_addition(a: str, rank_a: int, b: str, rank_b: int) -> None:
    import cltensor

    def dtype_of(lib: Any) -> str:
        left = lib.ones(RANKS[rank_a], dtype=getattr(lib, a))
        right = lib.ones(RANKS[rank_b], dtype=getattr(lib, b))
        return str((left + right).dtype)

    assert dtype_of(cltensor) == dtype_of(torch)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int32", "float16", "bfloat16", "float32", "float64", "complex64"]
)
@pytest.mark.parametrize("scalar", SCALARS.values(), ids=str)
def test_addition_of_scalar(name: str, scalar: Any) -> None:
    import cltensor

    def dtypes_of(lib: Any) -> tuple[str, str]:
        x = lib.ones(2, dtype=getattr(lib, name))
        return str((x + scalar).dtype), str((scalar * x).dtype)

    assert dtypes_of(cltensor) == dtypes_of(torch)
