"""What a fuzzer draws: parameters within limits, tensors that fit them, the same for the same seed."""

from __future__ import annotations

from typing import Any

import pytest

import cltensor as torch
from cltensor.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias


def fuzzer(seed: int = 0, **limits: Any) -> Fuzzer:
    sizes = [FuzzedParameter(f"k{i}", 4, 64, "loguniform") for i in range(2)]
    steps = [FuzzedParameter(f"s{i}", distribution={1: 0.6, 2: 0.4}) for i in range(2)]
    same = FuzzedParameter("same", distribution={ParameterAlias("k0"): 0.5, 1: 0.5})
    kind = FuzzedParameter("share", 0.25, 0.75, "uniform")
    x = FuzzedTensor("x", ("k0", "k1"), ("s0", "s1"), probability_contiguous=0.5, **limits)
    y = FuzzedTensor("y", ("same", 3), dtype=torch.int64)
    return Fuzzer([sizes, steps, same, kind], [x, y], [lambda k0, k1, **rest: k0 >= k1], seed)


def test_draws_are_within_limits() -> None:
    source = fuzzer(max_elements=1000)
    orders, aliased = set(), set()
    for tensors, told, params in source.take(40):
        x, y = tensors["x"], tensors["y"]
        assert x.shape == (params["k0"], params["k1"])
        assert 4 <= params["k1"] <= params["k0"] <= 64
        assert 0.25 <= params["share"] <= 0.75
        assert told["x"]["numel"] == x.numel() <= 1000
        assert told["x"]["is_contiguous"] == x.is_contiguous()
        memory = [params["k0"] * params["s0"], params["k1"] * params["s1"]]
        whole = (memory[1], 1) if told["x"]["order"] == [0, 1] else (1, memory[0])
        assert x.stride() == tuple(a * b for a, b in zip(whole, told["x"]["steps"]))
        assert y.shape in ((params["k0"], 3), (1, 3))
        assert y.dtype is torch.int64
        orders.add(tuple(told["x"]["order"]))
        aliased.add(y.shape[0] == 1)
    assert orders == {(0, 1), (1, 0)}
    assert aliased == {True, False}
    assert 0 < source.rejection_rate < 1


def test_a_seed_determines_what_is_drawn() -> None:
    first, second, other = ([p for _, _, p in fuzzer(seed).take(5)] for seed in (3, 3, 4))
    assert first == second != other


def test_what_cannot_be_drawn_raises() -> None:
    with pytest.raises(ValueError, match="did not satisfy"):
        next(fuzzer(min_elements=10**6).take(1))
    with pytest.raises(ValueError, match="must differ"):
        Fuzzer([FuzzedParameter("a", 1, 2, "uniform")] * 2, [])
    with pytest.raises(AssertionError, match="Unknown distribution"):
        FuzzedParameter("a", 1, 2, "normal")
    with pytest.raises(ValueError, match="weights must be positive"):
        FuzzedParameter("a", distribution={1: 0.0})
