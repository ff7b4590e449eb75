"""Fake quantisation: values, nodes, gradients and errors are torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, ct, first_line, lines, th

LINES = """
torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x, -0.1, 3, -8, 7)
torch.fake_quantize_per_tensor_affine(x, 0.0, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x.half(), 0.1, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x.bfloat16(), 0.1, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x.double(), 0.1, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(3), 0, 255)
torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.1]), torch.tensor([3], dtype=i), -128, 127)
torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(300), 0, 255)
torch.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255)
torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 255, 0)
torch.fake_quantize_per_tensor_affine(x.int(), 0.1, 0, 0, 255)
torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1, requires_grad=True), torch.tensor(3), 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2, 0.5]), torch.tensor([0, 1, 2], dtype=i), 1, 0, 20)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2, 0.5]), torch.tensor([0, 0.5, 2]), 1, 0, 20)
torch.fake_quantize_per_channel_affine(y.half(), torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=i), 0, 0, 20)
torch.fake_quantize_per_channel_affine(y.double(), torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=i), 0, 0, 20)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=i), 1, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=i), 3, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 1], dtype=i), -1, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]).double(), torch.tensor([0, 1], dtype=i), 0, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 300], dtype=i), 0, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0], dtype=i), 0, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([[0.1, 0.2]]), torch.tensor([0, 0], dtype=i), 0, 0, 255)
torch.fake_quantize_per_channel_affine(y, torch.tensor([0.1, 0.2]), torch.tensor([0, 0], dtype=i), 0, 255, 0)
torch.fake_quantize_per_channel_affine(y.int(), torch.tensor([0.1, 0.2]), torch.tensor([0, 0], dtype=i), 0, 0, 255)
"""


@pytest.mark.parametrize("line", lines(LINES))
def test_outcome(line: str) -> None:
    def program(torch: Any) -> Any:
        x = [0.0552, 2.5, 3.55, -0.25, 0.25, -0.973, 30.0, np.nan, np.inf]
        leaves = {
            "x": torch.tensor(x, requires_grad=True),
            "y": torch.arange(-4.0, 20.0).reshape(2, 3, 4).requires_grad_(),
        }
        out = eval(line, {"torch": torch, "i": torch.int32, **leaves})
        if out.grad_fn.next_functions[0][0].name() != "torch::autograd::AccumulateGrad":
            return out, None
        (grad,) = torch.autograd.grad(out.sum(), leaves["x" if out.ndim == 1 else "y"])
        return out, grad, out.grad_fn.name()

    found, expected = Ran(ct, program), Ran(th, program)
    if expected.error is not None:
        assert_same_error(found, expected)
        assert found.error is not None
        assert first_line(found.error) == first_line(expected.error)
        return
    assert found.error is None, found.error
    assert_same_value(found.value, expected.value)
