"""Grid sampling: values and gradients against the formula, both schedules against each other, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import backend_for
from support import close, data

import cltensor as ct
import cltensor.nn.functional as F
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen.resample import grid
from cltensor.ops.nn.grid_formula import composed

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators


_WAYS = [
    grid.Way(m, p, a)
    for m, p, a in (
        ("bilinear", "zeros", False),
        ("nearest", "border", False),
    )
]
_MORE = [
    grid.Way(m, p, a)
    for m, p, a in (
        ("bilinear", "reflection", True),
        ("nearest", "reflection", False),
        ("bicubic", "border", False),
    )
]


def _points(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1.6, 1.6, shape)


def test_nearest_elements_of_every_width() -> None:
    """Sixteen neighbouring results read one vector of the source, two, or more, depending on the sizes."""
    for n in range(17, 90):
        x = ct.arange(float(n)).view(1, 1, 1, n)
        for m in (33, 48):
            places = np.minimum(np.floor(np.arange(m, dtype=np.float32) * np.float32(n / m)), n - 1)
            assert F.interpolate(x, size=(1, m)).view(-1).tolist() == places.tolist(), (n, m)


@pytest.mark.parametrize("way", _WAYS, ids=str)
def test_samples_and_gradients_match_the_formula(way: grid.Way) -> None:
    found = []
    g = ct.tensor(data(2, 3, 5, 8).tolist(), dtype=ct.float64)
    for sample in (
        lambda x, p: F.grid_sample(x, p, way.mode, way.padding, way.aligned),
        lambda x, p: composed(x, p, way),
    ):
        x = ct.tensor(data(2, 3, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
        p = ct.tensor(_points(2, 5, 8, 2).tolist(), dtype=ct.float64, requires_grad=True)
        out = sample(x, p)
        out.backward(g)
        found.append((out, x.grad, ct.zeros_like(p) if p.grad is None else p.grad))
    for kernel, formula in zip(*found, strict=True):
        close(kernel, formula.detach().tolist(), 1e-9)


def test_cubic_samples_and_gradients() -> None:
    x = ct.tensor(data(1, 2, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
    theta = ct.eye(2, 3, dtype=ct.float64).unsqueeze(0)
    grid = F.affine_grid(theta, (1, 1, 4, 6), align_corners=False)
    close(F.grid_sample(x, grid, "bicubic", align_corners=False), x.tolist(), 1e-9)
    points = ct.tensor(_points(1, 2, 3, 2).tolist(), dtype=ct.float64, requires_grad=True)

    def sampled(x: Any, p: Any) -> Any:
        return F.grid_sample(x, p, "bicubic", "reflection", align_corners=False)

    assert gradcheck(sampled, (x, points))


@pytest.mark.parametrize(
    ("padding", "aligned"), [("border", True), ("reflection", False), ("reflection", True)]
)
def test_slopes_by_points_outside(padding: str, aligned: bool) -> None:
    """Outside of the image, a sample has zero gradient by its point with padding "border", and one of the opposite sign
    with "reflection".
    """
    x = ct.tensor(data(1, 2, 4, 6).tolist(), dtype=ct.float64, requires_grad=True)
    points = ct.tensor(_points(1, 3, 4, 2).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradcheck(lambda x, p: F.grid_sample(x, p, "bilinear", padding, aligned), (x, points))


def test_samples_are_differentiable_twice() -> None:
    x = ct.tensor(data(1, 1, 3, 3).tolist(), dtype=ct.float64, requires_grad=True)
    points = ct.tensor(_points(1, 1, 2, 2).tolist(), dtype=ct.float64, requires_grad=True)
    assert gradgradcheck(lambda x, p: F.grid_sample(x, p, align_corners=False), (x, points))


def test_volumes_are_sampled() -> None:
    x = ct.tensor(data(1, 2, 3, 4, 5).tolist())
    theta = ct.eye(3, 4).unsqueeze(0)
    for aligned in (True, False):
        grid = F.affine_grid(theta, (1, 2, 3, 4, 5), align_corners=aligned)
        close(F.grid_sample(x, grid, align_corners=aligned), x.tolist(), 1e-5)


@pytest.mark.elsewhere
@pytest.mark.parametrize(
    ("way", "dims"),
    [(_WAYS[0], 2), (_WAYS[0], 3), *((w, 3 if w.mode == "nearest" else 2) for w in _MORE)],
    ids=str,
)
def test_grid_sample_schedules_agree(way: grid.Way, dims: int) -> None:
    from kernel_tools import get, put, torch

    size = (7, 4, 6)[:dims]
    points = (3, 5, 7)[:dims]  # 15 or 105 in all: the last ones do not fill a vector
    arrays = [
        data(2, 3, *size), _points(2, *points, dims).astype(np.float32), data(2, 3, *points)
    ]  # fmt: skip
    arrays[1][1, ..., 0] *= 50
    found = []
    for b in map(backend_for, ("cpu", "gpu")):
        x, p, g = (put(b, torch.tensor(a)) for a in arrays)
        results = (
            grid.sample(b, x, p, way),
            grid.by_grid(b, x, p, g, way),
            grid.by_input(b, x.shape, p, g, way),
        )
        found.append([get(b, r) for r in results])
    for cpu, gpu in zip(*found, strict=True):
        np.testing.assert_allclose(cpu, gpu, rtol=1e-4, atol=1e-4)


def test_a_point_that_is_no_number_reads_nothing() -> None:
    grid = ct.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e20, -3.0]]]])
    out = F.grid_sample(ct.ones(1, 1, 3, 4), grid, mode="nearest", align_corners=False)
    assert out.flatten().tolist() == [0.0, 0.0, 0.0]
    grid = ct.tensor([[[[[float("nan"), 0.0, 0.0], [0.0, 0.0, 0.0]]]]])
    out = F.grid_sample(ct.ones(1, 1, 3, 3, 3), grid, align_corners=False)
    assert out.flatten().tolist() == [0.0, 1.0]


def test_the_nearest_element_does_not_move_with_the_point() -> None:
    grid = ct.zeros(1, 2, 3, 2, requires_grad=True)
    F.grid_sample(
        ct.full((1, 1, 3, 3), float("inf")), grid, "nearest", align_corners=False
    ).sum().backward()
    assert not grid.grad.any()


def test_grid_errors() -> None:
    x, grid = ct.ones(1, 2, 4, 4), ct.zeros(1, 3, 3, 2)
    with pytest.raises(RuntimeError, match="expected grid and input to have same batch size"):
        F.grid_sample(x, ct.zeros(2, 3, 3, 2), align_corners=True)
    with pytest.raises(RuntimeError, match="expected grid to have size 2 in last dimension"):
        F.grid_sample(x, ct.zeros(1, 3, 3, 3), align_corners=True)
    with pytest.raises(ValueError, match="expected mode to be"):
        F.grid_sample(x, grid, mode="cubic")
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior"):
        F.grid_sample(x, grid)
    with pytest.raises(ValueError, match="Expected a batch of 2D affine matrices"):
        F.affine_grid(ct.ones(1, 3, 4), (1, 1, 2, 2), align_corners=False)
