"""A GPU's convolutions with few output channels per group, and of one tap: random shapes against numpy, when they are
chosen, and how lanes share them."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from support import close, convolved, data
from support import on_device as tensor

import cltensor as ct
from cltensor.codegen.conv import as_product, correlation, direct, window

F = ct.nn.functional
pytestmark = pytest.mark.usefixtures("divided")


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "_on_cpu", lambda backend, asked: False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the names of the functions of direct.py are added whenever these compute a result."""
    names: list[str] = []
    for name in ("correlate", "weigh"):
        way = getattr(direct, name)

        def noted(*args: Any, way: Any = way, name: str = name) -> Any:
            found = way(*args)
            if found is not None and found is not False:
                names.append(name)
            return found

        monkeypatch.setattr(direct, name, noted)
    return names


def agree(x: np.ndarray, w: np.ndarray, last: bool = False, **kwargs: Any) -> None:
    """Compare a convolution and its gradients with numpy; gradients are linear in the output's gradient, so a scalar
    product of each suffices."""
    leaves = [tensor(v) for v in (x, w)]
    if last:
        leaves[0] = leaves[0].contiguous(memory_format=ct.channels_last)
    for leaf in leaves:
        leaf.requires_grad_()
    shift = data(w.shape[0], seed=2)
    y = getattr(F, f"conv{x.ndim - 2}d")(*leaves, tensor(shift), **kwargs)
    expected = convolved(x, w, **kwargs)
    close(y, expected + shift.reshape(-1, *(1,) * (x.ndim - 2)), 1e-4)
    g = data(*expected.shape, seed=3)
    sent = tensor(g)
    y.backward(sent.contiguous(memory_format=ct.channels_last) if last else sent)
    for leaf, along in zip(leaves, (data(*x.shape, seed=4), data(*w.shape, seed=5)), strict=True):
        pair = (along, w) if leaf is leaves[0] else (x, along)
        found = float((leaf.grad * tensor(along)).sum())
        assert found == pytest.approx(float((convolved(*pair, **kwargs) * g).sum()), rel=1e-3, abs=1e-2)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_numpy(seed: int, made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """With as many places and channels per lane as allowed, and with one each."""
    pick = random.Random(seed)
    monkeypatch.setattr(direct, "LANES", pick.choice([(0, 0), (1 << 40, 1 << 40)]))
    dims = pick.choice([1, 2, 2, 2, 3])
    groups, rows, channels = pick.choice([(5, 1, 1), (3, 2, 1), (1, 3, 4), (2, 5, 3), (1, 16, 2), (1, 4, 19)])  # fmt: skip
    taps = [pick.choice([1, 2, 3, 3, 5, 7, 9]) for _ in range(dims)]
    kwargs = {
        "stride": tuple(pick.choice([1, 1, 2, 3]) for _ in taps),
        "dilation": tuple(pick.choice([1, 1, 2]) for _ in taps),
        "padding": tuple(pick.randint(0, k // 2) for k in taps),
        "groups": groups,
    }
    sizes = [d * (k - 1) + pick.randint(1, 9) for d, k in zip(kwargs["dilation"], taps, strict=True)]  # fmt: skip
    x = data(pick.randint(1, 3), groups * channels, *sizes)
    agree(x, data(groups * rows, channels, *taps, seed=1), **kwargs)
    assert "correlate" in made


@pytest.mark.parametrize("seed", range(6))
def test_lanes_share_the_channels_of_a_place(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few places; also on a device with small work-groups and little local memory."""
    pick = random.Random(seed)
    monkeypatch.setattr(direct, "SLICED", 2)
    monkeypatch.setattr(direct, "LANES", (pick.choice([1 << 40, 200]), 0))
    if seed % 2:
        monkeypatch.setattr(direct, "_lanes", lambda backend, most=128: 64)
    if seed == 2:
        monkeypatch.setattr(direct, "_room", lambda dt, slices, numbers: 1 << 60 if slices > 2 else 0)  # fmt: skip
    slices = []
    way = direct._kernel
    monkeypatch.setattr(direct, "_kernel", lambda *a: slices.append(a[5]) or way(*a))
    groups, rows, channels, size = pick.choice([(1, 3, 21, 9), (2, 5, 11, 7), (1, 2, 64, 12)])
    x, w = data(2, groups * channels, size, 8), data(groups * rows, channels, 3, 4, seed=1)
    agree(x, w, groups=groups, stride=pick.choice([1, 2]), padding=1)
    assert max(slices) == (2 if seed % 2 or seed == 2 else 8)


@pytest.mark.parametrize(("groups", "taps", "stride"), [(8, 3, 1), (19, 7, 1), (33, 3, 2), (65, 2, 1), (40, 9, 1)])  # fmt: skip
def test_channels_side_by_side_share_a_group(
    groups: int, taps: int, stride: int, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "LANES", (0, 0))
    side = []
    way = direct._side
    monkeypatch.setattr(direct, "_side", lambda *args: side.append(way(*args)) or side[-1])
    x, w = data(2, groups, 11, 10), data(groups, 1, taps, taps, seed=1)
    agree(x, w, last=True, groups=groups, stride=stride, padding=taps // 2)
    assert "weigh" in made
    assert min(side) > 1


def test_a_place_in_pieces_and_with_wide_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device of many compute units, and with indices that do not fit 32 bits."""
    for groups, far in ((1 << 20, 1 << 30), (0, 0)):
        monkeypatch.setattr(direct, "GROUPS", groups)
        monkeypatch.setattr(window, "FAR", far)
        agree(data(3, 4, 23, 21), data(6, 2, 3, 3, seed=1), groups=2, padding=1)
        agree(data(5, 9, 24, 21), data(9, 1, 3, 3, seed=1), last=True, groups=9, padding=1)


def test_more_channels_go_by_tiles(made: list[str]) -> None:
    agree(data(1, 3, 6, 5), data(direct.FEW + 1, 3, 3, 3, seed=1))
    assert made == ["correlate"]  # the gradient with respect to the input, which has three channels
    assert F.conv2d(tensor(data(2, 8, 9, 8))[:0], tensor(data(8, 1, 3, 3)), groups=8).shape == (
        0,
        8,
        7,
        6,
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_other_dtypes(dtype: str) -> None:
    a, b = np.round(data(2, 6, 7, 9) * 4), np.round(data(6, 1, 3, 3, seed=1) * 4)
    x, w = (tensor(v).to(getattr(ct, dtype)) for v in (a, b))
    close(F.conv2d(x, w, groups=6, padding=1).float(), convolved(a, b, groups=6, padding=(1, 1)), 1e-2)  # fmt: skip


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("part", [4, 256])
def test_filters_of_one_tap_are_products_of_what_lies_there(
    last: bool, groups: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Convolutions of one tap are matrix products without copies, also with a stride that leaves places evenly spaced;
    gradients in parts of images."""
    for name, value in (("TILE", 1), ("PART", part)):
        monkeypatch.setattr(as_product, name, value)
    monkeypatch.setattr(direct, "FEW", 0)
    made, forward, back = [], as_product.correlate_single, as_product.weigh_single

    def noted(way: Any, *args: Any) -> Any:
        found = way(*args)
        made.append(found is not None and found is not False)
        return found

    monkeypatch.setattr(as_product, "correlate_single", partial(noted, forward))
    monkeypatch.setattr(as_product, "weigh_single", partial(noted, back))
    w = data(6, 5, 1, 1, seed=1)
    agree(data(3, 5 * groups, 6, 8), w, last, groups=groups)
    assert made == [True, True, True]
    agree(data(3, 5 * groups, 6, 8), w, last, groups=groups, stride=2)
    agree(data(3, 5 * groups, 16), w[..., 0], groups=groups, stride=2)
    agree(data(3, 5 * groups, 6, 8), w, last, groups=groups, padding=1)
