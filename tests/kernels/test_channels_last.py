"""Channels-last images: their own kernels give the values of row-major images, in the memory format that torch
gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import launches, store_past_cache

import cltensor as torch
from cltensor.codegen.conv import depthwise
from cltensor.lazy import recompute
from cltensor.ops.nn import rowwise
from cltensor.profiler import profile

F = torch.nn.functional


def numbers(seed: int, *shape: int) -> Any:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last if x.ndim == 4 else torch.channels_last_3d)


def shown(x: Any) -> np.ndarray:
    """Return a tensor's values as an array of a type that numpy has."""
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def both_ways(
    fn: Callable[..., Any], x: Any, *factors: Any, slope: Callable[[Any], Any] = last
) -> list[Any]:
    """Return a function's result and its gradients, for an output gradient laid out by `slope`."""
    operands = [v.detach().requires_grad_() for v in (x, *factors)]
    out = fn(*operands)
    g = slope(numbers(7, *out.shape))
    return [out.detach(), *torch.autograd.grad(out, operands, g)]


def assert_alike(
    fn: Callable[..., Any], x: Any, *factors: Any, tol: float = 2e-5, order: bool = True
) -> None:
    """Assert that results and gradients agree in both formats, and that those of channels-last images are channels last
    if the output gradient is."""
    expected = both_ways(fn, x, *factors, slope=lambda g: g)
    for slope in (lambda g: g, last):
        found = both_ways(fn, last(x), *factors, slope=slope)
        for a, b in zip(found, expected, strict=True):
            found_values, values = shown(a), shown(b)
            scale = float(np.abs(values).max()) or 1.0
            np.testing.assert_allclose(found_values, values, rtol=tol, atol=tol * scale)
    if order:
        assert [t.stride() for t in found[:2]] == [last(t).stride() for t in found[:2]]


NORMS: dict[str, Callable[..., Any]] = {
    "batch_norm": lambda x, *wb: F.batch_norm(x, None, None, *wb, training=True),
    "group_norm, 1": lambda x, *wb: F.group_norm(x, 1, *wb),
    "group_norm, 4": lambda x, *wb: F.group_norm(x, 4, *wb),
    "group_norm, all": lambda x, *wb: F.group_norm(x, 16, *wb),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the sizes from which on channels-last images use their own kernels."""
    monkeypatch.setattr(rowwise, "SMALL", 1)
    monkeypatch.setattr(rowwise, "COLUMNS", 1)


@pytest.mark.parametrize(
    ("name", "weighted"),
    [*((name, True) for name in NORMS), ("batch_norm", False), ("group_norm, 4", False)],
)
def test_norms(name: str, weighted: bool, small: None, poisoned: None) -> None:
    factors = [numbers(k, 16) for k in (1, 2)] if weighted else []
    for offset in (0, 30):
        assert_alike(NORMS[name], numbers(0, 3, 16, 5, 7) + offset, *factors, tol=1e-4)


@pytest.mark.parametrize("name", ["batch_norm", "group_norm, 4"])
def test_norms_of_volumes(name: str, small: None, poisoned: None) -> None:
    factors = [numbers(k, 16) for k in (1, 2)]
    assert_alike(NORMS[name], numbers(0, 2, 16, 3, 4, 5), *factors, tol=1e-4)


def test_batch_norm_of_vectors(monkeypatch: pytest.MonkeyPatch, poisoned: None) -> None:
    x, factors = numbers(0, 90, 24), [numbers(k, 24) for k in (1, 2)]
    expected = both_ways(NORMS["batch_norm"], x, *factors, slope=lambda g: g)
    monkeypatch.setattr(rowwise, "COLUMNS", 1)
    found = both_ways(NORMS["batch_norm"], x, *factors, slope=lambda g: g)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.cpu().numpy(), rtol=1e-4, atol=1e-4)


def passes(fn: Callable[[], Any], elements: int) -> list[str]:
    """Return the kernels of a call that read or write a tensor of at least `elements` numbers."""
    fn()
    with profile() as prof:
        kept = fn()
        torch.opencl.synchronize()
    del kept
    found = [e for e in prof.events() if not e.name.startswith(("aten::", "autograd::"))]
    return [e.name for e in found if "merge" not in e.name and e.nbytes >= 4 * elements]


@pytest.mark.parametrize("name", ["batch_norm", "group_norm, 4"])
def test_what_follows_a_norm_joins_its_pass(
    name: str, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "LARGE", 1)
    x, g = [last(numbers(k, 3, 16, 40, 40)) for k in (0, 1)]
    w, b = [numbers(k, 16) for k in (2, 3)]
    for t in (x, g):
        t._storage.buffer()
    operands = [t.requires_grad_() for t in (x, w, b)]

    def forward() -> Any:
        return NORMS[name](*operands).relu()

    def both() -> Any:
        return torch.autograd.grad(forward(), operands, g)

    assert len(passes(forward, x.numel())) == 2  # statistics; the norm with its relu
    assert len(passes(both, x.numel())) == 3  # statistics; sums; the gradient


def test_numbers_of_groups_take_few_launches(small: None) -> None:
    x = last(numbers(0, 3, 16, 6, 6))
    w, b = [numbers(k, 16) for k in (2, 3)]
    x._storage.buffer()
    # Statistics, perhaps merged from parts; the groups' factors, the channels' means, the norm.
    assert launches(lambda: F.group_norm(x, 4, w, b)) <= 5


def test_norms_of_half_numbers_and_their_statistics(small: None) -> None:
    x = last(numbers(0, 4, 16, 6, 6) * 3 + 5)
    mean, var = torch.zeros(16), torch.ones(16)
    out = F.batch_norm(x.bfloat16(), mean, var, training=True, momentum=1.0)
    assert out.dtype is torch.bfloat16
    rounded = x.bfloat16().float().cpu().numpy()
    np.testing.assert_allclose(mean.cpu().numpy(), rounded.mean((0, 2, 3)), rtol=1e-3)
    np.testing.assert_allclose(var.cpu().numpy(), rounded.var((0, 2, 3), ddof=1), rtol=1e-3)
    hat = (rounded - rounded.mean((0, 2, 3), keepdims=True)) / rounded.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(out.float().cpu().numpy(), hat, rtol=2e-2, atol=2e-2)


def test_second_derivatives_of_norms(small: None) -> None:
    def slopes(x: Any) -> Any:
        x = x.detach().requires_grad_()
        out = NORMS["group_norm, 4"](x)
        (g,) = torch.autograd.grad((out * numbers(3, *x.shape)).sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), x)[0].cpu().numpy()

    x = numbers(0, 2, 16, 3, 4)
    np.testing.assert_allclose(slopes(last(x)), slopes(x), rtol=1e-3, atol=1e-3)


POOLED: dict[str, Callable[[Any], Any]] = {
    "max, side by side": lambda x: F.max_pool2d(x, 2),
    "max, overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max, dilated": lambda x: F.max_pool2d(x, 2, 1, 0, 2),
    "max and positions": lambda x: F.max_pool2d(x, 3, 2, return_indices=True)[0],
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "average, side by side": lambda x: F.avg_pool2d(x, 2),
    "average, overlapping": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average, of what is there": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "average of all": lambda x: F.adaptive_avg_pool2d(x, 1),
}


@pytest.mark.parametrize("name", POOLED)
@pytest.mark.parametrize("stream", [False, True])
def test_pooling(name: str, stream: bool, poisoned: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if stream:
        store_past_cache(monkeypatch)
    for channels in (3, 16, 21):
        x = numbers(0, 2, channels, 8, 11).mul(3).round()  # with ties
        order = channels > 3 and name != "average of all"
        assert_alike(POOLED[name], x, order=order)


def test_pooling_of_volumes_and_other_numbers(poisoned: None) -> None:
    x = numbers(0, 2, 16, 4, 5, 6)
    assert_alike(lambda x: F.max_pool3d(x, 2), x)
    assert_alike(lambda x: F.max_pool2d(x, 3, 2), x[:, :, 0].double())
    assert_alike(lambda x: F.avg_pool2d(x, 3, 2), x[:, :, 0].bfloat16(), tol=1e-2)


def test_pooling_sends_back_one_number() -> None:
    x = last(numbers(0, 2, 16, 6, 7)).requires_grad_()
    F.avg_pool2d(x, 2).sum().backward()
    assert x.grad is not None
    assert x.grad[:, :, :6, :6].eq(0.25).all()
    assert x.grad[:, :, :, 6].eq(0).all()


RESIZED: dict[str, dict[str, Any]] = {
    "nearest": {"mode": "nearest"},
    "bilinear": {"mode": "bilinear"},
    "bicubic": {"mode": "bicubic", "align_corners": True},
    "antialiased": {"mode": "bilinear", "antialias": True},
}


@pytest.mark.parametrize("name", RESIZED)
@pytest.mark.parametrize("size", [(9, 14), (3, 4), (5, 16)])
@pytest.mark.parametrize("stream", [False, True])
def test_resizing(
    name: str, size: tuple[int, int], stream: bool, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stream:
        store_past_cache(monkeypatch)
    for channels in (3, 16, 40):
        assert_alike(
            lambda x: F.interpolate(x, size=size, **RESIZED[name]), numbers(0, 2, channels, 5, 8)
        )


@pytest.mark.parametrize("dt", [torch.float64, torch.bfloat16])
def test_resizing_of_other_numbers(dt: Any) -> None:
    x = numbers(0, 2, 20, 5, 8).to(dt)
    for how in (RESIZED["nearest"], RESIZED["bilinear"]):
        found, expected = (
            F.interpolate(y, size=(7, 11), **how).double().cpu().numpy() for y in (last(x), x)
        )
        np.testing.assert_allclose(
            found, expected, rtol=1e-2, atol=1e-2 if dt is torch.bfloat16 else 1e-9
        )


CONVOLVED: dict[str, Callable[..., Any]] = {
    "stride 1": lambda x, *wb: F.conv2d(x, *wb, padding=1, groups=x.shape[1]),
    "stride 1, not padded": lambda x, *wb: F.conv2d(x, *wb, groups=x.shape[1]),
    "stride 2": lambda x, *wb: F.conv2d(x, *wb, padding=(2, 1), stride=2, groups=x.shape[1]),
    "transposed": lambda x, *wb: F.conv_transpose2d(
        x, *wb, stride=2, padding=1, output_padding=1, groups=x.shape[1]
    ),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [*((name, 3) for name in CONVOLVED), ("transposed", 5), ("stride 1", 7)],
)
def test_a_filter_for_each_channel(name: str, size: int, poisoned: None) -> None:
    shapes = ((8, 9, 7), (16, 12, 15), (37, 8, 30))
    for channels, rows, columns in shapes if size == 3 else shapes[2:]:
        factors = numbers(1, channels, 1, size, size), numbers(2, channels)
        assert_alike(CONVOLVED[name], numbers(0, 3, channels, rows, columns), *factors)


def test_filters_wider_than_images() -> None:
    factors = numbers(1, 16, 1, 7, 7), numbers(2, 16)
    call = lambda x, *wb: F.conv2d(x, *wb, padding=3, groups=16)  # noqa: E731
    for shape in ((1, 16, 1, 1), (2, 16, 2, 3), (1, 16, 9, 2)):
        assert_alike(call, numbers(0, *shape), *factors, order=False)


@pytest.mark.parametrize("channels", [16, 20])
def test_work_items_make_parts_of_the_gradient_by_filters(
    channels: int, monkeypatch: pytest.MonkeyPatch, poisoned: None
) -> None:
    monkeypatch.setattr(depthwise, "TASK_WORK", 500)
    monkeypatch.setattr(depthwise, "PACE", 0)
    factors = numbers(1, channels, 1, 3, 3), numbers(2, channels)
    assert_alike(CONVOLVED["stride 1"], numbers(0, 3, channels, 11, 10), *factors)
