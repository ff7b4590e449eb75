"""Uninitialised memory is filled if deterministic algorithms are on, with the values torch uses."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from parity.oracle import assert_same_value, lines, th
from support import ct

from cltensor.ops.memory import Uninitialised

LINES = """
torch.empty(2)
torch.empty(2, dtype=torch.int8)
torch.empty(2, dtype=torch.bool)
torch.empty(2, dtype=torch.complex64)
torch.empty(2, dtype=torch.bfloat16)
torch.empty(2, dtype=torch.uint64)
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)
torch.empty(2, 3, out=torch.ones(1))
torch.empty_like(torch.ones(2, dtype=torch.int16))
torch.empty_strided((2, 2), (3, 1))
torch.empty_permuted((2, 3), (1, 0))
torch.ones(1).new_empty(2)
torch.ones(1).new_empty_strided((2,), (2,))
torch.ones(2).new(3)
torch.Tensor(3)
torch.FloatTensor(3)
torch.ones(2).resize_(4)
torch.ones(4)[1:].resize_(5)
torch.ones(2, dtype=torch.int32).resize_(2, 2)
torch.ones(3).resize_as_(torch.ones(5))
torch.nn.Parameter(torch.empty(2)).detach()
"""


@pytest.fixture(autouse=True)
def _asked() -> Iterator[None]:
    for torch in (th, ct):
        torch.use_deterministic_algorithms(True)
    yield
    for torch in (th, ct):
        torch.use_deterministic_algorithms(False)
        _switch(torch).fill_uninitialized_memory = True


def _switch(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.deterministic")


@pytest.mark.parametrize("line", lines(LINES))
def test_filled(line: str) -> None:
    found, expected = (eval(line, {"torch": torch}) for torch in (ct, th))
    assert_same_value(found, expected, where=line)


@pytest.mark.ours
def test_switch() -> None:
    for torch in (th, ct):
        switch = _switch(torch)
        assert switch.fill_uninitialized_memory is True
        with pytest.raises(RuntimeError, match=r"^expected a bool, but got int$"):
            switch.fill_uninitialized_memory = 3
        switch.fill_uninitialized_memory = False
        assert switch.fill_uninitialized_memory is False
        torch.zeros(64).resize_(0)
        kept = torch.ones(2).resize_(4)
        assert np.all(kept[:2].cpu().numpy() == 1)
    ct.empty(3)
    assert not Uninitialised.filled
    _switch(ct).fill_uninitialized_memory = True
    assert Uninitialised.filled
    ct.use_deterministic_algorithms(False)
    assert not Uninitialised.filled
