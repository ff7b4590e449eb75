"""Symbolic integers, which record what is done with them: replayed for other numbers, a record gives what plain
integers give, or None."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cltensor import layouts, symbols
from cltensor.size import Size
from cltensor.symbols import Work, is_symbol, plain

sizes = st.integers(2, 600)


def noted(fn: Any, *numbers: int) -> tuple[Any, Any]:
    """Return a function's results, and the generated function that gives the results for other numbers."""
    with Work() as work:
        results = fn(*[work.number(n) for n in numbers])
        again = work.function(results)
    return results, again


def divided(n: int, m: int) -> tuple[Any, ...]:
    """Compute arithmetic and comparisons of the kinds that schedules use."""
    total = math.prod((n, m))
    items = max(1, min(16, total // 1000))
    chunk = -(-total // items)
    cost = 0.6 * n * m + n / 4 - m
    order = sorted([n, m, 64])
    return (
        total,
        items,
        chunk,
        *divmod(n, m),
        abs(n - m),
        cost < 2.5 * n,
        sum(order),
        order[0],
        n % 16 == 0,
    )


@given(sizes, sizes, sizes, sizes)
def test_other_numbers_give_what_the_function_gives_or_nothing(
    n: int, m: int, k: int, o: int
) -> None:
    results, again = noted(divided, n, m)
    assert plain(results) == divided(n, m) == again(n, m)
    assert again(k, o) in (None, divided(k, o))


@given(sizes, sizes, sizes, sizes, st.permutations(range(3)))
def test_layouts(n: int, m: int, k: int, o: int, order: list[int]) -> None:
    def merged(a: int, b: int) -> tuple[Any, ...]:
        shape = (a, b, 3)
        strides = layouts.contiguous_strides(shape)
        turned = [tuple([v[d] for d in order]) for v in (shape, strides)]
        return (
            *layouts.collapse(turned[0], [turned[1]]), layouts.is_contiguous(*turned),
            layouts.storage_extent(*turned), layouts.view_strides(*turned, (a * b * 3,)),
        )  # fmt: skip

    def tuples(found: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([tuple(x) if isinstance(x, list) else x for x in found])

    _, again = noted(lambda a, b: tuples(merged(a, b)), n, m)
    assert again(n, m) == tuples(merged(n, m))
    assert again(k, o) in (None, tuples(merged(k, o)))


ASKED = {
    "a place in a list": lambda n: (list(range(100))[n],),
    "a key": lambda n: ({7: 1}.get(n, 0),),
    "a member of a set": lambda n: (int(n in {7, 8}),),
    "a text": lambda n: (len(f"{n}"),),
    "a length": lambda n: (len([0] * n),),
    "a range": lambda n: (sum(range(n)),),
    "bits": lambda n: (n.bit_length(),),
    "a root": lambda n: (math.isqrt(n),),
    "a float": lambda n: (int(math.sqrt(n)),),
    "a power": lambda n: (2**n,),
    "a format": lambda n: (len(f"{n:d}"),),
}


@pytest.mark.parametrize("how", ASKED)
def test_what_python_asks_by_itself_holds_for_the_same_number_only(how: str) -> None:
    results, again = noted(ASKED[how], 7)
    assert plain(results) == again(7) == ASKED[how](7)
    assert again(8) is None


@pytest.mark.parametrize(("condition", "other"), [
    (lambda n: n == 7, 8), (lambda n: n != 8, 8), (lambda n: n < 10, 10), (lambda n: n <= 9, 10), (lambda n: n >= 5, 4),
    (lambda n: n % 2, 8), (lambda n: not n // 8, 8), (lambda n: (n, 1) == (7, 1), 8), (lambda n: n in (3, 7), 8),
    (lambda n: min(n, 9) == n, 12), (lambda n: n * 0.5 < 4, 8), (lambda n: n / 2 < 4, 8),
])  # fmt: skip
def test_answers_are_conditions(condition: Any, other: int) -> None:
    _, again = noted(lambda n: (n,) if condition(n) else (0,), 7)
    assert again(7) == (7,)
    assert again(other) is None


def test_what_follows_from_the_least_is_no_condition() -> None:
    _, again = noted(lambda n: (n,) if n > 0 and n != 1 and n * n >= 4 and n < 1 << 63 else (), 7)
    assert [again(n) for n in (2, 3, 1000)] == [(2,), (3,), (1000,)]


def test_numbers_of_finished_work_are_plain() -> None:
    with Work() as work:
        old = work.number(7)
    assert not is_symbol(old)
    with Work() as work:
        total = work.number(5) * old + old
        assert is_symbol(total)
        again = work.function((total,))
    assert again(6) == (49,)
    assert isinstance(old, int)
    assert old + 1 == 8
    assert hash(old) == hash(7)


def test_shapes_of_symbols() -> None:
    with Work() as work:
        shape = Size((work.number(3), 4))
        assert all(map(is_symbol, shape[:1]))
        assert is_symbol(shape.numel())


def test_remembered_functions_are_called_meanwhile() -> None:
    calls = []

    @symbols.remembered(8)
    def double(n: int) -> int:
        calls.append(n)
        return 2 * n

    assert [double(3), double(3)] == [6, 6]
    assert len(calls) == 1
    _, again = noted(lambda n: (double(n),), 3)
    assert again(5) == (10,)
    assert len(calls) == 2


@given(st.lists(st.integers(-3, 5)), st.integers(-3, 5))
def test_numbers_of_a_kind(numbers: list[int], more: int) -> None:
    given_, found = (tuple(numbers), "a", more, None, True), []
    kind = symbols.pattern(given_, found)
    values = iter(found)
    assert symbols.opened(given_, lambda n: (n, next(values))) == symbols.opened(
        given_, lambda n: (n, n)
    )
    assert not list(values)
    assert symbols.pattern(given_, []) == kind
