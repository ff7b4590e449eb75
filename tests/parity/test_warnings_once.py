"""Warnings that torch gives once per process: cltensor gives them once, too, with the same text."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from parity.oracle import th
from support import ct

LINES = [
    "torch.zeros(3).index_reduce_(0, torch.tensor([0]), torch.zeros(1), 'amax')",
    "torch.meshgrid(torch.zeros(2), torch.zeros(2))",
    "torch.zeros(2, 2, 2).T",
    "torch.cross(torch.zeros(3), torch.zeros(3))",
    "torch.chain_matmul(torch.eye(2), torch.eye(2))",
    "torch.zeros(3).scatter(0, torch.tensor([0]), torch.zeros(1), reduce='add')",
    "torch.from_numpy(np.broadcast_to(np.zeros(1), (2,)))",
    "torch.frombuffer(b'abcd', dtype=torch.uint8)",
    "torch.zeros(2, requires_grad=True).sum().backward(create_graph=True)",
    "torch.set_default_tensor_type('torch.FloatTensor')",
    "torch.nn.functional.conv1d(torch.zeros(1, 1, 4), torch.zeros(1, 1, 2), padding='same')",
    "torch.cholesky(torch.eye(2))",
    "torch.nuclear_norm(torch.eye(2))",
    "torch.frobenius_norm(torch.eye(2), 1)",
    "torch.qr(torch.eye(2))",
    "torch.lu(torch.eye(2))",
    "torch.lu_solve(torch.eye(2), *torch.linalg.lu_factor(torch.eye(2)))",
    "torch.triangular_solve(torch.eye(2), torch.eye(2))",
    "torch.sparse.DoubleTensor()",
    "torch.sparse.DoubleTensor(2, 3)",
    "torch.sparse.DoubleTensor(torch.tensor([[0, 1]]), torch.ones(2).double())",
    "torch.sparse.DoubleTensor(torch.tensor([[0, 1]]), torch.ones(2).double(), (3,))",
]


def warned(torch: Any, line: str) -> list[tuple[type[Warning], str]]:
    """Evaluate a line; return the categories and texts of its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        eval(line, {"torch": torch, "np": np})
    return [(w.category, str(w.message).partition(" (Triggered")[0].strip()) for w in seen]


@pytest.mark.parametrize("line", LINES)
def test_once(line: str) -> None:
    found: list[list[tuple[type[Warning], str]]] = []
    for torch in (th, ct):
        torch.set_warn_always(True)
        found.append(warned(torch, line))
        torch.set_warn_always(False)
        warned(torch, line)
        assert warned(torch, line) == []
    assert found[0]
    assert found[1] == found[0]
