"""Pooling against torch: values, names of grad nodes, gradients, and the errors for bad arguments."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import assert_same_error, assert_same_outcome, evaluate, lines, tensor, th
from support import close, ct, data, store_past_cache

# x (2, 3, 8), y (2, 3, 8, 9), z (2, 3, 4, 5, 6)
VALUES = """
F.max_pool1d(x, 2)
F.max_pool1d(x, 3, 2, 1, 2, True, True)
torch.max_pool1d_with_indices(x, 2)
F.max_pool2d(y, 2)
F.max_pool2d(y, (3, 2), (2, 1), 1, return_indices=True)
F.max_pool2d(y, 2, stride=3, ceil_mode=True)
F.max_pool2d(y[0], (2,), [])
F.max_pool3d(z, 2, 1, padding=1, return_indices=True)
F.avg_pool1d(x[0], 2)
F.avg_pool1d(x, 3, 2, 1, True, False)
F.avg_pool2d(y, 3, 2, padding=1, ceil_mode=True)
F.avg_pool2d(y, 3, padding=1, count_include_pad=False)
F.avg_pool3d(z, 3, 2, padding=1, ceil_mode=True, divisor_override=5)
F.adaptive_avg_pool1d(x, 3)
F.adaptive_avg_pool2d(y, (None, 3))
F.adaptive_avg_pool2d(y, 1)
F.adaptive_avg_pool3d(z, (2, 3, 1))
F.adaptive_max_pool1d(x, 3, return_indices=True)
F.adaptive_max_pool2d(y, (3, 4))
F.adaptive_max_pool3d(z, (2, 2, 4), return_indices=True)
F.lp_pool1d(x, 2, 2)
F.lp_pool2d(y, 2, (2, 3), stride=1, ceil_mode=True)
F.lp_pool2d(y, float('inf'), 2)
F.lp_pool3d(z, 2, 2)
F.fractional_max_pool2d(y, 2, 3, _random_samples=torch.full((2, 3, 2), 0.4), return_indices=True)
F.fractional_max_pool3d(z, 2, 2, _random_samples=torch.full((2, 3, 3), 0.7))
F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(y, 2, return_indices=True), 2, output_size=(8, 9))
F.max_unpool3d(*F.max_pool3d(z, 2, return_indices=True), 2, output_size=(4, 5, 6))
"""

ERRORS = """
F.max_pool1d(x[0, 0], 2)
F.max_pool1d(x, 0)
F.max_pool1d(x, (2, 2))
F.max_pool1d(x, 2, padding=2)
F.max_pool1d(x, 9)
F.max_pool1d(x.long(), 2)
F.max_pool2d(y[0, 0], 2)
F.max_pool2d(y, 0)
F.max_pool2d(y, -1)
F.max_pool2d(y, 2, -1)
F.max_pool2d(y, 2, padding=-1)
F.max_pool2d(y, 2, padding=2, dilation=3)
F.max_pool2d(y, 2, dilation=0)
F.max_pool2d(y, (2, 2, 2))
F.max_pool2d(y, 2, (1, 1, 1))
F.max_pool2d(y, 2.5)
F.max_pool2d(y, 2, ceil_mode=1)
F.max_pool2d(y > 0, 2)
F.max_pool2d(torch.zeros(2, 0, 4, 4), 2)
F.max_pool3d(z, 9)
F.max_pool3d(torch.zeros(3, 0, 4, 4, 4), 2)
F.avg_pool1d(x, (2, 2))
F.avg_pool1d(x[0, 0], 2)
F.avg_pool2d(y, 9)
F.avg_pool2d(y, 2, divisor_override=0)
F.avg_pool2d(y.int(), 2)
F.avg_pool3d(z, 9)
F.avg_pool3d(z, (2, 2))
F.adaptive_avg_pool2d(y, -1)
F.adaptive_avg_pool2d(y, (2, 2, 2))
F.adaptive_avg_pool2d(y[0, 0], 2)
F.adaptive_avg_pool3d(z, -1)
F.adaptive_avg_pool3d(z.long(), 2)
F.adaptive_max_pool1d(x, (2, 2))
F.adaptive_max_pool2d(y, -1)
F.adaptive_max_pool2d(torch.zeros(2, 3, 0, 4), 2)
F.fractional_max_pool2d(y, 2)
F.fractional_max_pool2d(y, 9, output_size=3)
F.fractional_max_pool2d(y, 2, output_size=3, _random_samples=torch.rand(1, 3, 2))
F.fractional_max_pool3d(z, (2, 2), output_size=2)
F.max_unpool1d(x, x.long(), 2, output_size=(30,))
F.max_unpool2d(y, y.int(), 2)
F.max_unpool2d(y, y[0].long(), 2)
"""

ARRAYS = {"x": data(2, 3, 8), "y": data(2, 3, 8, 9), "z": data(2, 3, 4, 5, 6)}


@pytest.mark.parametrize("line", lines(VALUES))
def test_value(line: str) -> None:
    found, expected = evaluate(line.replace("F.", "torch.nn.functional."), ARRAYS)
    assert_same_outcome(found, expected)


@pytest.mark.parametrize("line", lines(ERRORS))
def test_error(line: str) -> None:
    found, expected = evaluate(line.replace("F.", "torch.nn.functional."), ARRAYS)
    assert expected.error is not None, f"torch returns {expected.value!r}"
    assert_same_error(found, expected)
    assert str(found.error) == str(expected.error)


@pytest.mark.parametrize("line", lines(VALUES))
def test_gradient_and_nodes(line: str) -> None:
    def differentiate(module: Any) -> tuple[list[str], list[Any]]:
        leaves = {k: tensor(module, v, requires_grad=True) for k, v in ARRAYS.items()}
        out = eval(line, {"torch": module, "F": module.nn.functional, **leaves})
        out = out[0] if isinstance(out, tuple) else out
        names, node = [], out.grad_fn
        while node is not None:
            names.append(node.name())
            node = node.next_functions[0][0] if node.next_functions else None
        out.square().sum().backward()
        return names, [v.grad for v in leaves.values() if v.grad is not None]

    found, expected = differentiate(ct), differentiate(th)
    assert found[0] == expected[0]
    close(found[1][0], expected[1][0].tolist(), 2e-5)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_of_averages_side_by_side(
    dtype: str, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows that do not overlap: the kernel takes runs of columns as vectors, and elements in no window get zeros."""
    if streamed:
        store_past_cache(monkeypatch)
    ways: list[tuple[Any, dict[str, Any]]] = [
        (2, {}), (3, {}), ((3, 2), {"ceil_mode": True}), ((1, 2), {"divisor_override": 5}), (4, {}), (8, {})
    ]  # fmt: skip
    for shape in ((2, 3, 64, 64), (1, 2, 65, 83), (2, 40, 48)):
        values = data(*shape)
        for kernel, how in ways:
            found = []
            for lib in (ct, th):
                x = lib.tensor(values).to(getattr(lib, dtype)).requires_grad_()
                y = lib.nn.functional.avg_pool2d(x, kernel, **how)
                g = lib.tensor(data(*y.shape)).to(y.dtype)
                found.append(lib.autograd.grad(y, [x], g)[0].double().numpy())
            close(found[0], found[1], 1e-2 if dtype == "bfloat16" else 1e-5)
