"""Losses of inputs and targets of any sizes: results and errors are torch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from parity.oracle import ct, th

INPUTS = ((), (1,), (2,), (1, 1), (1, 2), (2, 1), (2, 2), (2, 0))
TARGETS = (0, [0], [0, 1], [[0]], [[0, -1]], [[0], [0]], [[0, 1], [1, -1]], [])


def told(torch: Any, name: str, shape: tuple[int, ...], labels: Any, reduction: str) -> Any:
    x = torch.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    y = torch.tensor(labels, dtype=torch.int64)
    try:
        return getattr(torch.nn.functional, name)(x, y, reduction=reduction).detach().numpy()
    except (RuntimeError, ValueError, IndexError) as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


@pytest.mark.parametrize("shape", INPUTS)
@pytest.mark.parametrize(
    "name", ["multilabel_margin_loss", "soft_margin_loss", "multilabel_soft_margin_loss"]
)
def test_sizes(name: str, shape: tuple[int, ...]) -> None:
    for labels, reduction in itertools.product(TARGETS, ("none", "mean")):
        found, expected = (told(lib, name, shape, labels, reduction) for lib in (ct, th))
        if isinstance(expected, str):
            assert found == expected, (labels, reduction)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=str(labels))
            assert found.shape == expected.shape


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_no_classes(name: str, reduction: str) -> None:
    for shape, labels in (((2, 0), [-100, -100]), ((2, 0), [3, 3]), ((0,), -100), ((0,), 1)):
        found, expected = (told(lib, name, shape, labels, reduction) for lib in (ct, th))
        if isinstance(expected, str):
            assert found == expected
        else:
            np.testing.assert_array_equal(found, expected)
    x = ct.zeros(2, 0, requires_grad=True)
    y = ct.tensor([-100, -100])
    getattr(ct.nn.functional, name)(x, y, reduction="sum").backward()
    assert x.grad.shape == (2, 0)
