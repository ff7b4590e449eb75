"""Scans with a program's own operation."""

from __future__ import annotations

from typing import Any

import pytest

import cltensor as torch
from cltensor._higher_order_ops import associative_scan
from cltensor.testing import assert_close


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
def test_sums_and_products_from_either_end(n: int, dev: Any) -> None:
    x = torch.arange(1.0, 2 * n + 1, device=dev).view(2, n) / 4
    assert_close(associative_scan(lambda a, b: a + b, x, 1), x.cumsum(1))
    assert_close(associative_scan(torch.mul, x, -1, reverse=True), x.flip(1).cumprod(1).flip(1))


def test_a_linear_recurrence_is_a_scan_of_pairs(dev: Any) -> None:
    torch.manual_seed(0)
    a, b = (torch.rand(5, 3, device=dev, requires_grad=True) for _ in range(2))

    def step(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, found = associative_scan(step, (a, b), 0)
    state, states = torch.zeros(3, device=dev), []
    for i in range(5):
        state = a[i] * state + b[i]
        states.append(state)
    expected = torch.stack(states)
    assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(found.square().sum(), (a, b)),
        torch.autograd.grad(expected.square().sum(), (a, b)),
        strict=True,
    ):
        assert_close(one, other)


def test_what_cannot_be_scanned() -> None:
    for call in (
        lambda: associative_scan(3, torch.ones(2), 0),
        lambda: associative_scan(torch.add, [1, 2], 0),
        lambda: associative_scan(torch.add, torch.ones(2), 0, combine_mode="other"),
        lambda: associative_scan(torch.add, torch.ones(0), 0),
    ):
        with pytest.raises(ValueError):
            call()
