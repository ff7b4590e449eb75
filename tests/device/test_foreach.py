"""`_foreach_*` on tensors laid out alike: few launches, with the values, versions and order of a call for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backends import SCHEDULES, backend_for
from support import data, launches

import cltensor as torch
from cltensor.codegen import multi as kernels
from cltensor.ops import multi
from cltensor.ops.power import POWERS

SHAPES = [(17,), (3, 5), (), (16,), (4097,), (1, 2, 3)]
COUNT = len(SHAPES)
NUMBERS = [0.3 * i - 0.7 for i in range(COUNT)]


def tensors(seed: int = 0, dtype: str = "float32") -> list[Any]:
    kind = getattr(torch, dtype)
    return [torch.tensor(abs(data(*s, seed=seed)) + 0.1).to(kind) for s in SHAPES]


def same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a.tolist(), b.tolist())


# name -> (call of a `_foreach_*` function on lists, the plain call on the lists' tensors number i)
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda f, a, b, c: f("add")(a, b), lambda f, a, b, c, i: f("add", a)(b)),
    "add scaled": (
        lambda f, a, b, c: f("add")(a, b, alpha=0.3),
        lambda f, a, b, c, i: f("add", a)(b, alpha=0.3),
    ),
    "mul number": (lambda f, a, b, c: f("mul")(a, 0.3), lambda f, a, b, c, i: f("mul", a)(0.3)),
    "sub numbers": (
        lambda f, a, b, c: f("sub")(a, NUMBERS),
        lambda f, a, b, c, i: f("sub", a)(NUMBERS[i]),
    ),
    "div one": (
        lambda f, a, b, c: f("div")(a, torch.tensor(0.3)),
        lambda f, a, b, c, i: f("div", a)(torch.tensor(0.3)),
    ),
    "addcdiv": (
        lambda f, a, b, c: f("addcdiv")(a, b, c, NUMBERS),
        lambda f, a, b, c, i: f("addcdiv", a)(b, c, value=NUMBERS[i]),
    ),
    "lerp": (lambda f, a, b, c: f("lerp")(a, b, 0.3), lambda f, a, b, c, i: f("lerp", a)(b, 0.3)),
    "sqrt": (lambda f, a, b, c: f("sqrt")(a), lambda f, a, b, c, i: f("sqrt", a)()),
}


def run(case: str, inplace: bool, a: list[Any], b: list[Any], c: list[Any]) -> tuple[Any, Any]:
    """Return what the `_foreach_*` function gives, and what plain calls give for each tensor."""
    many, one = CASES[case]
    end = "_" if inplace else ""
    copies = [x.clone() if inplace else x for x in a]

    def plain(name: str, x: Any) -> Any:
        return getattr(x, name + end)

    expected = [one(plain, *xs, i) for i, xs in enumerate(zip(copies, b, c, strict=True))]
    found = many(lambda name: getattr(torch, f"_foreach_{name}{end}"), a, b, c)
    if inplace:
        assert all(x is y for x, y in zip(found, a, strict=True))
    return found, expected


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_list_is_what_its_tensors_are(case: str, inplace: bool) -> None:
    a, b, c = (tensors(i) for i in range(3))
    versions = [x._version for x in a]
    same(*run(case, inplace, a, b, c))
    assert [x._version for x in a] == [v + inplace for v in versions]
    many, _ = CASES[case]
    count = launches(lambda: many(lambda name: getattr(torch, f"_foreach_{name}"), a, b, c))
    assert count == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats_round_as_one_tensor_does(dtype: str) -> None:
    a, b, c = (tensors(i, dtype) for i in range(3))
    for case in ("add scaled", "mul number", "sub numbers", "div one"):
        same(*run(case, False, a, b, c))


def test_tensors_that_lie_otherwise_are_computed_one_by_one() -> None:
    a, b = tensors(), tensors(1)
    a += [torch.tensor(data(6, 4))[:, ::2], torch.tensor(data(4, 3)).t(), torch.zeros(0, 3)]
    a += [torch.tensor(data(3)), torch.tensor(data(3)), torch.arange(3)]
    b += [torch.ones(6, 2), torch.ones(3, 4), torch.zeros(0, 3)]
    b += [torch.ones(()), torch.ones(3, dtype=torch.float64), torch.ones(3)]
    same(*run("add", False, a, b, b))
    shared = torch.tensor(data(40))  # parts of one tensor, none of them at its start
    parts = [shared[1 + 9 * i : 10 + 9 * i] for i in range(4)]
    same(*run("add", False, parts, [p.flip(0) for p in parts], parts))
    same(*run("add", True, parts, [p.flip(0) for p in parts], parts))
    assert torch.equal(torch.cat(parts), shared[1:37])


def test_lists_in_which_one_result_is_read_go_in_order() -> None:
    a = [torch.full((5,), float(i)) for i in range(5)]
    torch._foreach_add_(a, [*a[4:], *a[:4]])
    assert [x[0].item() for x in a] == [4, 5, 7, 10, 14]
    torch._foreach_mul_([a[0]] * 5, 2.0)
    assert a[0].tolist() == [128.0] * 5
    torch._foreach_add_(a, a)
    assert a[0].tolist() == [256.0] * 5
    one = torch.tensor(2.0)
    torch._foreach_mul_([*a[:4], one, a[4]], one)
    assert [a[3][0].item(), one.item(), a[4][0].item()] == [40.0, 4.0, 112.0]
    memory = np.ones(8, np.float32)
    torch._foreach_add_([torch.from_numpy(memory[: 8 - i]) for i in range(5)], 1.0)
    assert memory.tolist() == [6, 6, 6, 6, 5, 4, 3, 2]


def test_what_waits_is_run_first_and_readers_keep_what_they_read() -> None:
    a = [x * 2 for x in tensors()]
    later, expected = [x + 1 for x in a], [x.clone() for x in a]
    torch._foreach_mul_(a, [x * 1 for x in expected])
    same(a, [x * x for x in expected])
    same(later, [x + 1 for x in expected])


def test_gradients_are_recorded() -> None:
    a, b = tensors(), tensors(1)
    leaves = [x.requires_grad_() for x in tensors()]
    for x in torch._foreach_mul(leaves, b):
        x.sum().backward()
    same([x.grad for x in leaves], b)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_add_(leaves, 1.0)
    with torch.no_grad():
        torch._foreach_copy_(leaves, a)
        assert launches(lambda: torch._foreach_zero_(leaves)) == 1
    assert all(x.requires_grad and not x.any() for x in leaves)
    with torch.inference_mode():
        made = torch._foreach_clone(a)
    same(made, a)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        torch._foreach_neg_(list(made))


def test_a_list_inside_of_vmap() -> None:
    def fn(x: Any) -> Any:
        return sum(torch._foreach_mul([x, x + 1, x + 2, x + 3], 2.0))

    x = torch.tensor(data(3, 4))
    assert torch.equal(torch.vmap(fn)(x), fn(x))


def test_a_recording_plays_lists() -> None:
    a, b = tensors(), tensors(1)

    def step() -> Any:
        torch._foreach_mul_(a, NUMBERS)
        return torch._foreach_add(a, b, alpha=0.5)

    captured = torch.capture(step)
    copies = [x.clone() for x in a]
    for _ in range(4):
        found = captured()
        copies = [x * v for x, v in zip(copies, NUMBERS, strict=True)]
        same(found, [x.add(y, alpha=0.5) for x, y in zip(copies, b, strict=True)])
        torch._foreach_add([x[:1] for x in b if x.ndim], 1.0)  # has a table of its own


@pytest.mark.parametrize("power", [*POWERS, 0, 1.5])
def test_powers_of_a_list(power: float) -> None:
    a = tensors()
    same(torch._foreach_pow(a, power), [x.pow(power) for x in a])
    same(torch._foreach_pow(a, [power] * COUNT), [x.pow(power) for x in a])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_numbers_of_each_tensor_and_results_that_are_not_read(schedule: str) -> None:
    backend = backend_for(schedule)
    chain = multi.chain("test_each", "out = x * a + b", "out", "x", each="a b")
    parts, rows = [], []
    for i, n in enumerate((3, 5000, 129)):
        x = data(n)
        buffers = [backend.alloc(4 * n) for _ in range(2)]
        backend.write(buffers[0], 0, np.full(n, np.nan, np.float32))
        backend.write(buffers[1], 0, x)
        parts.append((n, tuple(buffers), (0, 0), (2.0 * i, 0.5 - i)))
        rows.append((buffers[0], x * np.float32(2 * i) + np.float32(0.5 - i)))
    kernels.apply(backend, chain, (torch.float32,) * 2, parts, {})
    for buffer, expected in rows:
        found = backend.read(buffer, 0, expected.nbytes).view(np.float32)
        np.testing.assert_array_equal(found, expected)
