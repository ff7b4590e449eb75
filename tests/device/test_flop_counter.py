"""Arithmetic counted by module: products, convolutions and attention, forward and backward."""

from __future__ import annotations

from typing import Any

import pytest

import cltensor as torch
from cltensor import library, nn
from cltensor.utils.flop_counter import FlopCounterMode, register_flop_formula


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


def test_modules_forward_and_backward() -> None:
    conv, linear = 2 * 2 * 16 * 8 * 3 * 9, 2 * 2 * 8 * 5
    with FlopCounterMode(display=False) as counter:
        Net()(torch.ones(2, 3, 8, 8)).sum().backward()
    convolutions = {"aten.convolution": conv, "aten.convolution_backward": conv}
    products = {"aten.addmm": linear, "aten.mm": 2 * linear}
    found = counter.get_flop_counts()
    assert found["Net.body.0"] == found["Net.body"] == convolutions
    assert found["Net.head"] == products
    assert found["Net"] == found["Global"] == convolutions | products
    assert counter.get_total_flops() == 2 * conv + 3 * linear
    table = counter.get_table().splitlines()
    assert table[0].split() == ["Module", "FLOP", "%", "Total"]
    assert table[2].split() == ["Net", "28.128K", "100.00%"]
    assert [line.split()[0] for line in counter.get_table(1).splitlines()].count("Net.head") == 0


def test_attention_and_what_is_printed(capsys: Any) -> None:
    q = torch.ones(2, 3, 7, 8, requires_grad=True)
    with FlopCounterMode() as counter:
        nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    product = 2 * 2 * 3 * 7 * 7 * 8
    assert counter.get_total_flops() == 7 * product
    assert "Global" in capsys.readouterr().out
    with FlopCounterMode(display=False) as counter:
        torch.ones(2) + 1
    assert counter.get_flop_counts() == {}
    assert counter.get_table().splitlines()[2].split() == ["Global", "0", "0%"]


def test_operators_with_formulas_of_their_own() -> None:
    @library.custom_op("counted::twice", mutates_args=())
    def twice(x: torch.Tensor, n: int) -> torch.Tensor:
        return (x @ x.t()) * n

    def formula(x: Any, n: int, *, out_shape: Any) -> int:
        return x[0] * n + out_shape[1]

    op = torch.ops.counted.twice
    with FlopCounterMode(display=False, custom_mapping={op: formula}) as counter:
        twice(torch.ones(3, 2), 5)
        torch.ones(2, 3) @ torch.ones(3, 4)
    assert counter.get_flop_counts()["Global"] == {"counted.twice": 18, "aten.mm": 48}
    twice(torch.ones(3, 2), 5)
    assert counter.get_total_flops() == 66


def test_a_formula_may_be_registered_for_all_counters(dev: Any) -> None:
    @library.custom_op("counted::thrice", mutates_args=())
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @register_flop_formula(torch.ops.counted.thrice)
    def formula(x: Any, out_shape: Any = None, **kwargs: Any) -> int:
        return int(7 * x[0])

    with FlopCounterMode(display=False) as counter:
        thrice(torch.ones(5, device=dev))
    assert counter.get_total_flops() == 35
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(torch.ops.counted.thrice)(formula)
    with pytest.raises(ValueError, match="expected each target"):
        register_flop_formula("counted::thrice")(formula)
