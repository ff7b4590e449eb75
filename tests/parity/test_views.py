"""Chains of random views: layouts, values, shared memory and errors are torch's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, first_line, numbers, th
from support import ct

CHAINS = 520
BASES = ((24,), (4, 6), (2, 3, 4), (3, 1, 4), (2, 2, 3, 2), (5, 5), (1,), (), (0, 3))


def an_index(r: random.Random, shape: tuple[int, ...]) -> Any:
    """Return a random index of ints, slices, None and an ellipsis, which mostly fits the shape."""
    items: list[Any] = []
    for n in shape[: r.randint(0, len(shape))]:
        kind = r.random()
        if kind < 0.3:
            items.append(r.randint(-n - (r.random() < 0.1), max(n - 1, 0)))
        elif kind < 0.9:
            ends = [None, *range(-n - 1, n + 2)]
            items.append(slice(r.choice(ends), r.choice(ends), r.choice([None, 1, 2, 3])))
        else:
            items.append(slice(None))
    for extra in (None, Ellipsis):
        if r.random() < 0.15:
            items.insert(r.randint(0, len(items)), extra)
    return tuple(items)


def some_factors(r: random.Random, n: int) -> list[int]:
    """Return a random shape of `n` elements; rarely one that does not fit."""
    shape = []
    while n > 1 and r.random() < 0.8:
        factor = r.choice([f for f in range(1, n + 1) if n % f == 0])
        shape.append(factor)
        n //= factor
    shape.append(n)
    if r.random() < 0.3:
        shape[r.randrange(len(shape))] = -1
    if r.random() < 0.06:
        shape.append(2)
    return shape


def a_step(r: random.Random, t: Any) -> tuple[str, tuple[Any, ...], int | None]:
    """Return a method name, arguments that mostly fit `t`, and which of several results to take."""
    shape, nd = tuple(t.shape), t.dim()
    d = r.randint(-nd, nd - 1) if nd else r.choice([0, -1])
    if r.random() < 0.04:
        d = nd + r.randint(0, 1)
    n = shape[d] if nd and -nd <= d < nd else 1
    name = r.choice(
        [
            "view",
            "reshape",
            "transpose",
            "permute",
            "squeeze",
            "squeeze_all",
            "unsqueeze",
            "expand",
            "narrow",
            "select",
            "__getitem__",
            "diagonal",
            "unfold",
            "flatten",
            "chunk",
            "split",
            "unbind",
            "movedim",
            "swapdims",
            "t",
            "as_strided",
            "detach",
            "unflatten",
            "T",
            "mT",
            "ravel",
            "view_as",
            "expand_as",
            "tensor_split",
            "hsplit",
        ]
    )
    pick = r.randint(0, 1)
    dims = list(range(nd))
    r.shuffle(dims)
    match name:
        case "view" | "reshape":
            return name, (some_factors(r, t.numel()),), None
        case "transpose" | "swapdims" | "movedim":
            return name, (d, r.randint(-nd, nd - 1) if nd else 0), None
        case "permute":
            return (
                name,
                (
                    *(k - nd * (r.random() < 0.2) for k in dims),
                    *((0,) if r.random() < 0.05 else ()),
                ),
                None,
            )
        case "squeeze" | "unbind":
            return name, (d,), None if name == "squeeze" else 0
        case "squeeze_all":
            return "squeeze", (), None
        case "unsqueeze":
            return name, (r.randint(-nd - 1, nd),), None
        case "expand":
            sizes = [r.choice([-1, 3]) if k == 1 else r.choice([-1, k]) for k in shape]
            sizes = ([2] if r.random() < 0.3 else []) + sizes
            if r.random() < 0.06 and sizes:
                sizes[-1] = 7
            return name, tuple(sizes) or (2,), None
        case "narrow":
            start = r.randint(-1, n)
            return name, (d, start, r.randint(0, max(n - max(start, 0), 0))), None
        case "select":
            return name, (d, r.randint(-n, max(n - 1, 0)) if r.random() < 0.95 else n), None
        case "__getitem__":
            return name, (an_index(r, shape),), None
        case "diagonal":
            return (
                name,
                (r.randint(-2, 2), *(r.sample(range(-nd, 0), 2) if nd > 1 else (0, 1))),
                None,
            )
        case "unfold":
            return name, (d, r.randint(0, n + (r.random() < 0.1)), r.randint(1, 2)), None
        case "flatten":
            return name, tuple(sorted(r.sample(range(nd), 2))) if nd > 1 else (), None
        case "chunk" | "tensor_split":
            return name, (r.randint(1, 3), d), pick
        case "hsplit":
            return name, (r.choice([1, 2]),), 0
        case "split":
            return name, (r.choice([1, 2, max(n, 1)]), d), pick
        case "unflatten":
            return name, (d, (-1, r.choice([1, 2, n or 1]))), None
        case "as_strided":
            return name, ((2, 2), (r.randint(0, 2), 1), r.randint(0, 3)), None
        case "view_as":
            return name, ("like", (t.numel(),)), None
        case "expand_as":
            return name, ("like", (2, *shape)), None
        case _:
            return name, (), None


def take(module: Any, t: Any, step: tuple[str, tuple[Any, ...], int | None]) -> Any:
    """Apply a step, as `a_step` returns it, to a tensor."""
    name, args, pick = step
    if name in ("T", "mT"):
        return getattr(t, name)
    if args[:1] == ("like",):
        args = (module.empty(args[1]),)
    made = getattr(t, name)(*args)
    return made if pick is None else made[min(pick, len(made) - 1)]


def layout(t: Any) -> tuple[Any, ...]:
    """Return the shape, strides, offset and contiguity of a view."""
    return tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.is_contiguous()


def shares_memory(t: Any) -> bool:
    """Return whether two elements of a tensor have the same place in memory."""
    places = sum(
        np.arange(n).reshape(-1, *[1] * (t.dim() - d - 1)) * s
        for d, (n, s) in enumerate(zip(t.shape, t.stride(), strict=True))
    )
    return np.unique(places).size < t.numel()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(CHAINS))
def test_chain(seed: int) -> None:
    r = random.Random(seed)
    shape = r.choice(BASES)
    array = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    # Memory seen by numpy and memory of the library's own take different paths.
    make = "from_numpy" if seed % 2 else "tensor"
    base, expected_base = (getattr(m, make)(array.copy()) for m in (ct, th))
    view, expected = base, expected_base
    told = f"{shape}"
    for _ in range(r.randint(1, 6)):
        step = a_step(r, expected)
        told += f"\n.{step[0]}{step[1]} {'' if step[2] is None else step[2]}"
        found_ran = Ran(ct, lambda m, v=view, s=step: take(m, v, s))
        expected_ran = Ran(th, lambda m, v=expected, s=step: take(m, v, s))
        if expected_ran.error is not None:
            assert_same_error(found_ran, expected_ran)
            assert first_line(found_ran.error) == first_line(expected_ran.error), told
            continue
        assert found_ran.error is None, (
            f"{told}\n{type(found_ran.error).__name__}: {found_ran.error}"
        )
        shares = found_ran.value.data_ptr() - view.data_ptr()
        if expected.numel() and expected_ran.value.numel():
            assert shares == expected_ran.value.data_ptr() - expected.data_ptr() or (
                step[0] in ("reshape", "flatten", "ravel")
                and expected_ran.value.untyped_storage().data_ptr()
                != expected.untyped_storage().data_ptr()
            ), told
        view, expected = found_ran.value, expected_ran.value
        assert layout(view) == layout(expected), told
        assert view._is_view() == expected._is_view(), told
        assert view.dim() <= 8
    np.testing.assert_array_equal(numbers(view), numbers(expected), err_msg=told)

    # Writes through the view show in the base, and writes to the base in the view. Where elements of the
    # view share memory, the result of mul_ depends on the order of work, so fill_ writes one value to all.
    write = "fill_" if shares_memory(expected) else "mul_"
    writes = [Ran(m, lambda m, v=v: getattr(v, write)(-2)) for m, v in ((ct, view), (th, expected))]
    if writes[1].error is not None:
        assert_same_error(*writes)
    else:
        assert writes[0].error is None, f"{told}\n{write}: {writes[0].error}"
    np.testing.assert_array_equal(numbers(base), numbers(expected_base), err_msg=f"{told}\n{write}")
    base.add_(100)
    expected_base.add_(100)
    np.testing.assert_array_equal(
        numbers(view), numbers(expected), err_msg=f"{told}\nadd_ to the base"
    )
