"""Reverse scans, which gradients of scans use, against a scan between two flips."""

from __future__ import annotations

from typing import Any

import kernel_tools as kt
import pytest
from support import one_by_one, poison

import cltensor as ct
from cltensor.codegen.order import scan as sc
from cltensor.runtime import STATS

pytestmark = pytest.mark.usefixtures("divided")

torch = pytest.importorskip("torch")

KINDS = [
    *(("cumsum", dtype) for dtype in ("float32", "float64", "bfloat16", "int64", "complex64")),
    *(("logcumsumexp", dtype) for dtype in ("float32", "float16", "float64")),
    *(("cumprod", dtype) for dtype in ("float32", "int32")),
]
TOLERANCE = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-4, "complex64": 1e-4}
SHAPES = [((4500,), 0), ((37, 50), 1), ((70, 83), 0), ((19, 5), 1), ((35, 3, 64), 1), ((5,), 0), ((), 0), ((0, 3), 0), ((3, 1), 1)]  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_a_scan_from_the_end_is_one_between_flips(
    be: Any, kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if be.info.kind == "gpu" and dtype not in ("float32", "int64"):
        pytest.skip("a GPU schedule's text does not depend on the dtype in more ways")
    poison(be, monkeypatch)
    for shape, dim in SHAPES:
        x = kt.sample(shape, getattr(torch, dtype), spread=1.0)
        if kind == "cumprod" and x.numel() > 4000:
            continue
        if x.is_floating_point() and x.numel() > 1000:
            x.view(-1)[x.numel() // 3], x.view(-1)[50] = float("inf"), float("nan")
        found = kt.get(be, sc.scan(be, kt.put(be, x), dim, kind, back=True))
        turned = x.flip(dim) if shape else x
        expected = getattr(turned, kind)(dim)
        kt.same(found, expected.flip(dim) if shape else expected, TOLERANCE.get(dtype, 1e-9) * 10)
        plain = kt.get(be, sc.scan(be, kt.put(be, turned), dim, kind))
        if dtype == "float32" and be.info.kind == "cpu":  # the same bits
            kt.same(found, plain.flip(dim) if shape else plain)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("kind", ["cumsum", "logcumsumexp"])
def test_operands_lie_in_any_way(
    be: Any, kind: str, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    wide = kt.sample((67, 90), torch.float32)
    for x in (
        wide.T, wide[3:, 5:], wide[::2, ::3], wide[:, :1].expand(67, 90), wide[:1].expand(67, 90), wide[0, 0].expand(67, 90),
        wide[:, 8], wide[1, 1].expand(5000),
    ):  # fmt: skip
        for dim in range(x.ndim):
            found = kt.get(be, sc.scan(be, kt.put(be, x), dim, kind, back=back))
            exact = (x.flip(dim) if back else x).double()
            exact = getattr(exact, kind)(dim).float()
            kt.same(found, exact.flip(dim) if back else exact, 1e-4)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("kind", ["cumsum", "cumprod"])
def test_rows_across_memory_are_transposed_first(
    be: Any, kind: str, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if be.info.kind == "gpu":
        pytest.skip("a GPU's lanes read rows in any layout")
    copies = []
    dense = sc.dense
    monkeypatch.setattr(sc, "dense", lambda be, x: copies.append(x) or dense(be, x))
    poison(be, monkeypatch)
    x = kt.sample((130, 90), torch.float32) / 8 + 1
    across, along = (
        sc.scan(be, kt.put(be, y), 1, kind, back=back) for y in (x.T, x.T.contiguous())
    )
    kt.same(kt.get(be, across), kt.get(be, along))
    assert len(copies) == 1


@pytest.mark.parametrize(("rows", "length"), [(1, 2048), (3, 2101), (2, 70_007)])
def test_long_rows_of_exponentials_are_taken_in_parts_from_the_end(
    be: Any, rows: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    x = kt.sample((rows, length), torch.float32, rows, 9.0)
    x[0, length // 2], x[-1, -33:] = float("inf"), -float("inf")
    found = kt.get(be, sc.scan(be, kt.put(be, x), 1, "logcumsumexp", back=True))
    kt.same(found, x.double().flip(1).logcumsumexp(1).flip(1).float(), 1e-5)


@pytest.mark.parametrize(("shape", "dim"), [((3000,), 0), ((40, 33), 1), ((40, 33), 0), ((30, 5), 1)])  # fmt: skip
def test_the_gradient_of_cumsum_is_one_scan(shape: tuple[int, ...], dim: int, dev: Any) -> None:
    x = kt.sample(shape, torch.float32)
    g = kt.sample(shape, torch.float32, 1)
    ours, weight = (
        ct.tensor(x.numpy(), device=dev, requires_grad=True),
        ct.tensor(g.numpy(), device=dev),
    )
    value = ours.cumsum(dim)
    ct.autograd.grad(value, ours, weight, retain_graph=True)
    before = STATS.launches
    weight.cumsum(dim).tolist()
    forward = STATS.launches - before
    before = STATS.launches
    (grad,) = ct.autograd.grad(value, ours, weight)
    grad.tolist()
    assert STATS.launches - before == forward
    kt.same(torch.tensor(grad.tolist()), g.flip(dim).cumsum(dim).flip(dim), 1e-4)


def test_gradients_of_scans_are_differentiated_again(dev: Any) -> None:
    x = ct.tensor(kt.sample((4, 5), torch.float64).numpy(), device=dev, requires_grad=True)
    with one_by_one():
        for f in (lambda x: x.cumsum(1), lambda x: x.cumsum(0), lambda x: x.logcumsumexp(1), lambda x: x.cumprod(0)):  # fmt: skip
            assert ct.autograd.gradgradcheck(f, x)
    weight = ct.ones(4, 5, dtype=ct.float64, device=dev, requires_grad=True)
    (grad,) = ct.autograd.grad(x.cumsum(1), x, weight, create_graph=True)
    assert type(grad.grad_fn).__name__ == "FlipBackward0"
    rows = ct.vmap(lambda g: ct.autograd.grad(x.cumsum(1), x, g)[0])(ct.stack([weight, 2 * weight]))
    assert (rows[1] == 2 * grad).all()
