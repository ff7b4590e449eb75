"""Random numbers: the arguments of draws, what they fill, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import ct as torch


def test_arguments() -> None:
    assert (
        torch.rand(2, 3).shape
        == torch.rand((2, 3)).shape
        == torch.rand(size=[2, 3]).shape
        == (2, 3)
    )
    assert torch.rand(()).shape == ()
    assert torch.rand(0, 3).shape == (0, 3)
    assert torch.rand(2, requires_grad=True).requires_grad
    out = torch.empty(3)
    assert torch.rand(2, 2, out=out) is out
    once = torch.zeros(1).expand(3)
    for draw in (torch.rand, torch.randn):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            draw(3, out=once)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.bernoulli(torch.rand(3), out=once)
    assert out.shape == (2, 2)
    assert torch.randint(3, (2,)).dtype is torch.int64
    assert torch.randint(low=1, high=3, size=(2,), dtype=torch.float32).dtype is torch.float32
    base = torch.zeros(3, 4)
    assert torch.rand_like(base.t()).stride() == base.t().stride()
    assert torch.randn_like(base, dtype=torch.float16).dtype is torch.float16
    assert set(torch.randint_like(base, 3, 5).flatten().tolist()) <= {3.0, 4.0}
    assert torch.normal(torch.zeros(3, 1), torch.ones(4)).shape == (3, 4)
    assert torch.normal(0.0, 1.0, (2, 2)).shape == (2, 2)
    for none in (torch.randn(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.bool).normal_()):
        assert none.numel() == 0


def test_filling_a_view_changes_only_the_view() -> None:
    base = torch.zeros(6, 8)
    base[1:5, ::2].normal_(10, 1)
    found = base.cpu().numpy()
    assert (found[1:5, ::2] > 4).all()
    assert not found[:, 1::2].any()
    assert not found[0].any()


ERRORS = [
    (
        lambda: torch.zeros(3).normal_(0, -1),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    (
        lambda: torch.normal(0.0, -1.0, (2,)),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    (
        lambda: torch.zeros(3).random_(5, 3),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=3",
    ),
    (
        lambda: torch.randint(0, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=0 >= to=0",
    ),
    (
        lambda: torch.zeros(3).uniform_(2, 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=2 > to=1",
    ),
    (
        lambda: torch.zeros(3).exponential_(0),
        RuntimeError,
        "exponential_ expects lambda > 0.0, but found lambda=0",
    ),
    (
        lambda: torch.zeros(3).cauchy_(0, 0),
        RuntimeError,
        "cauchy_ expects sigma > 0.0, but found sigma=0",
    ),
    (
        lambda: torch.zeros(3).log_normal_(0, 0),
        RuntimeError,
        "log_normal_ expects std > 0.0, but found std=0",
    ),
    (
        lambda: torch.zeros(3).geometric_(1),
        RuntimeError,
        "geometric_ expects p to be in (0, 1), but got p=1",
    ),
    (
        lambda: torch.zeros(3).bernoulli_(2),
        RuntimeError,
        "bernoulli_ expects p to be in [0, 1], but got p=2",
    ),
    (
        lambda: torch.rand(2, dtype=torch.int64),
        NotImplementedError,
        "\"check_uniform_bounds\" not implemented for 'Long'",
    ),
    (
        lambda: torch.randn(2, dtype=torch.bool),
        NotImplementedError,
        "\"normal_kernel_cpu\" not implemented for 'Bool'",
    ),
    (
        lambda: torch.rand(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [-1]",
    ),
    (
        lambda: torch.randint(0, 300, (2,), dtype=torch.uint8),
        RuntimeError,
        "to - 1 is out of bounds for unsigned char",
    ),
    (
        lambda: torch.randint(3, (2,), dtype=torch.bool),
        RuntimeError,
        "to - 1 is out of bounds for bool",
    ),
    (
        lambda: torch.randperm(300, dtype=torch.uint8),
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    (
        lambda: torch.multinomial(torch.tensor([1.0, 1.0]), 3),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
    (
        lambda: torch.multinomial(torch.tensor([1, 1]), 1),
        RuntimeError,
        "multinomial only supports floating-point dtypes for input, got: Long",
    ),
    (
        lambda: torch.multinomial(torch.ones(1, 1, 1), 1),
        RuntimeError,
        "prob_dist must be 1 or 2 dim",
    ),
    (
        lambda: torch.zeros(1).expand(3).normal_(),
        RuntimeError,
        "unsupported operation: more than one element of the written-to tensor",
    ),
    (
        lambda: torch.rand(3, requires_grad=True).uniform_(),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    (
        lambda: torch.rand("a"),
        TypeError,
        "rand(): argument 'size' (position 1) must be tuple of ints, not str",
    ),
    (
        lambda: torch.rand(3, out=torch.empty(3), dtype=torch.float16),
        RuntimeError,
        "dtype Half does not match dtype of out parameter (Float)",
    ),
    (
        lambda: torch.rand(2, generator=torch.Generator("opencl:7"), device="cpu"),
        RuntimeError,
        "Expected a 'cpu' device type for generator but found 'opencl'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


HOST_CHECKS = [
    (
        lambda d: torch.multinomial(torch.zeros(2, device=d), 1),
        "invalid multinomial distribution (sum of probabilities <= 0)",
    ),
    (
        lambda d: torch.multinomial(torch.tensor([1.0, -1.0], device=d), 1),
        "probability tensor contains either `inf`, `nan` or element < 0",
    ),
    (
        lambda d: torch.poisson(-torch.ones(2, device=d)),
        "invalid Poisson rate, expected rate to be non-negative",
    ),
    (
        lambda d: torch.normal(torch.ones(2, device=d), -torch.ones(2, device=d)),
        "normal expects all elements of std >= 0.0",
    ),
    (
        lambda d: torch.bernoulli(2 * torch.ones(2, device=d)),
        "Expected p_in >= 0 && p_in <= 1 to be true",
    ),
]


@pytest.mark.parametrize(("call", "text"), HOST_CHECKS, ids=[e[1][:30] for e in HOST_CHECKS])
def test_values_are_checked_on_cpu(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call("cpu")
    assert str(caught.value).startswith(text)
