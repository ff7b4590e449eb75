"""Rowwise kernels: normalisations and cross entropy against numpy and compositions of plain ops, schedules, numbers of
launches."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import close, data, on_device, one_by_one

import cltensor as ct
import cltensor.nn.functional as F
from cltensor import config
from cltensor.codegen.reduce import row_kinds, rowwise
from cltensor.codegen.reduce.prologue import of_operands
from cltensor.ops import core
from cltensor.ops.nn import rowwise as rows
from cltensor.runtime import STATS, get_backend

pytestmark = pytest.mark.usefixtures("divided")

few = settings(max_examples=5, deadline=None)
sizes = st.integers(2, 70)


def _run(kind: Any, xs: list, dims: tuple[int, ...], schedule: str, **given: Any) -> Any:
    backend, dt = get_backend(xs[0].device), xs[0].dtype
    source = of_operands(*[core.kernel_operand(x) for x in xs])
    found = rowwise.run(backend, kind, source, dims, dt, dt, schedule=schedule, **given)
    numbers = [core.result(op, xs[0].device) for op in found.numbers]
    return core.result(found.all, xs[0].device) if found.all else None, numbers


def _normed(a: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    a = a.astype(np.float64)
    return (a - a.mean(dims, keepdims=True)) / np.sqrt(a.var(dims, keepdims=True) + 1e-5)


def _norm_slope(a: np.ndarray, g: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    hat = _normed(a, dims)
    rstd = 1 / np.sqrt(a.astype(np.float64).var(dims, keepdims=True) + 1e-5)
    return rstd * (g - g.mean(dims, keepdims=True) - hat * (g * hat).mean(dims, keepdims=True))


@pytest.mark.parametrize(
    ("schedule", "dims"),
    [("row", (1,)), ("row", (0, 2)), ("col", (0, 2)), ("gpu-row", (0, 2)), ("gpu-col", (1,))],
    ids=str,
)
def test_norm_in_every_schedule(schedule: str, dims: tuple[int, ...]) -> None:
    a, g = data(3, 37, 150), data(3, 37, 150, seed=1)
    x = on_device(a)
    out, (mean, var, rstd) = _run(row_kinds.norm(False, False), [x], dims, schedule, eps=1e-5)
    close(out, _normed(a, dims), 2e-5)
    close(mean, a.mean(dims))
    close(var, a.var(dims))
    seen = [v.reshape([1 if d in dims else n for d, n in enumerate(a.shape)]) for v in (mean, rstd)]
    wide = [v.expand(a.shape) for v in seen]
    slope, sums = _run(row_kinds.channel_back(False), [x, on_device(g), *wide], dims, schedule)
    close(slope, _norm_slope(a, g, dims), 5e-5)
    close(sums[0], (g * _normed(a, dims)).sum(dims), 2e-4)
    close(sums[1], g.sum(dims), 2e-4)


def _along(x: Any) -> str:
    """Return the name of the schedule along rows for the tensor's device."""
    return "row" if get_backend(x.device).info.kind == "cpu" else "gpu-row"


def _statistics(x: Any, dims: tuple[int, ...]) -> list:
    _, (mean, _, rstd) = _run(row_kinds.norm(False, False), [x], dims, _along(x), eps=1e-5)
    kept = [1 if d in dims else n for d, n in enumerate(x.shape)]
    return [v.reshape(kept).expand(x.shape) for v in (mean, rstd)]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(300, 37), (7, 64), (130, 3, 21)], ids=str)
def test_sums_over_rows_are_left_in_parts(
    shape: tuple[int, ...], turned: bool, on_a_cpu: None, poisoned: None
) -> None:
    """Partial sums cover up to 128 rows each, in lines of whole vectors; also if other rows' elements lie between a
    row's own."""
    a, g, w = data(*shape), data(*shape, seed=1), data(*shape[1:], seed=2)
    dims = tuple(range(1, len(shape)))
    x = on_device(a)
    if turned:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    given = [x, on_device(g), *_statistics(x, dims), on_device(w).expand(shape)]
    slope, parts = _run(row_kinds.norm_back(True, True), given, dims, "row")
    close(slope, _norm_slope(a, g * w, dims), 5e-5)
    by_weight, by_bias = rows.columns(parts, shape[1:])
    close(by_weight, (g * _normed(a, dims)).sum(0).reshape(-1), 2e-4)
    close(by_bias, g.sum(0).reshape(-1), 2e-4)


@pytest.mark.parametrize("schedule", ["row", "gpu-row"])
@pytest.mark.parametrize("shape", [(3, 2, 4, 150), (3, 5, 1, 37), (2, 2, 3, 9)], ids=str)
def test_runs_of_a_row_are_summed_by_themselves(shape: tuple[int, ...], schedule: str) -> None:
    a, g, w = data(*shape), data(*shape, seed=1), data(*shape[1:3], 1, seed=2)
    dims = (2, 3)
    x = on_device(a)
    given = [x, on_device(g), *_statistics(x, dims), on_device(w).expand(shape)]
    slope, (by_weight, by_bias) = _run(row_kinds.GROUP_BACK, given, dims, schedule)
    close(slope, _norm_slope(a, g * w, dims), 5e-5)
    close(by_weight, (g * _normed(a, dims)).sum(3), 2e-4)
    close(by_bias, g.sum(3), 2e-4)


@pytest.mark.parametrize("groups", [32, 0], ids=["group_norm", "layer_norm"])
def test_gradients_of_norms_from_a_pending_sum_that_lies_across(
    groups: int, poisoned: None
) -> None:
    """More operands are strided across rows than along them; still the gradients of weight and bias are computed along
    rows."""
    a = data(1, 32, 64)
    w = data(32 if groups else 64, seed=1)
    b = data(32 if groups else 64, seed=2)
    terms = [data(1, 64, 32, seed=k) for k in (3, 4, 5)]
    x, weight, bias = (on_device(v).requires_grad_() for v in (a, w, b))
    first, second, third = (ct.tensor(t).to(x.device) for t in terms)  # not shared with numpy: lazy
    g = (first + second + third).transpose(1, 2)
    if groups:
        F.group_norm(x, groups, weight, bias).backward(g)
    else:
        F.layer_norm(x, (64,), weight, bias).backward(g)
    plain = np.add.reduce(terms).swapaxes(1, 2)
    scale, over = (w[:, None], (0, 2)) if groups else (w, (0, 1))
    close(x.grad, _norm_slope(a, plain * scale, (2,)), 5e-5)
    close(weight.grad, (plain * _normed(a, (2,))).sum(over), 2e-4)
    close(bias.grad, plain.sum(over), 2e-4)


@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
def test_equal_numbers_are_normalised_to_zero(schedule: str) -> None:
    """Equal numbers give exactly zero, however large they are: the computed mean equals them."""
    a = np.full((9, 1500), 100.3, np.float32)
    out, (mean, var, _) = _run(
        row_kinds.norm(False, False), [on_device(a)], (1,), schedule, eps=1e-5
    )
    assert not out.cpu().numpy().any() and not var.cpu().numpy().any()
    assert (mean.cpu().numpy() == a[:, 0]).all()


def _targets(x: Any, t: np.ndarray) -> rowwise.Targets:
    backend = get_backend(x.device)
    status = backend.alloc(4 * 8 * 4 * backend.info.compute_units)
    return rowwise.Targets(core.kernel_operand(on_device(t)).buffer, 0, -100, status, 0)


@pytest.mark.parametrize("shape", [(9, 300), (9, 40, 75), (9, 7), (9, 16)], ids=str)
def test_rows_that_begin_unlike_themselves(shape: tuple[int, ...]) -> None:
    """A CPU estimates a row's mean from its first elements; if these are unlike the rest, the row is summed first."""
    a = data(*shape).reshape(9, -1)
    a[1] += 100
    a[2, :16] = 0
    a[2, 16:] += 300
    a[3, :16] += 300
    a[4] = 0.1
    a[5, 1:] = a[5, 0]
    a[6, :16], a[6, 16:] = -1e-3, 1e-3
    dims = tuple(range(1, len(shape)))
    x = on_device(a.reshape(shape))
    out, (mean, var, _) = _run(row_kinds.norm(False, False), [x], dims, _along(x), eps=1e-5)
    wide = a.astype(np.float64)
    close(mean.reshape(-1), wide.mean(1), 1e-6)
    close(var.reshape(-1), wide.var(1), 2e-6)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    close(out.reshape(9, -1), want, 2e-4)
    assert not out.reshape(9, -1)[4].any() and not out.reshape(9, -1)[5].any()


def test_rows_that_begin_with_what_is_not_finite() -> None:
    a = data(4, 100)
    a[1, 0], a[2, 3], a[3, 50] = np.inf, np.nan, -np.inf
    x = on_device(a)
    _, (mean, var, _) = _run(row_kinds.norm(False, False), [x], (1,), _along(x), eps=1e-5)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isfinite(mean.cpu().numpy()), np.isfinite(a.mean(1)))
    assert var[1:].isnan().all()


@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
def test_cross_entropy_in_every_schedule(schedule: str) -> None:
    a = data(5, 37, 19) * 4
    x, t = on_device(a), np.arange(5 * 19).reshape(5, 19) % 37
    t[2, 3] = -100
    _, (top, over, loss, hit) = _run(
        row_kinds.nll(False, False), [x], (1,), schedule, targets=_targets(x, t)
    )
    wide = a.astype(np.float64)
    logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    counted = t >= 0
    picked = np.take_along_axis(logs, np.maximum(t, 0)[:, None], 1)[:, 0]
    close(loss, np.where(counted, -picked, 0))
    close(hit, np.where(counted, t, -1))
    factor = data(5, 19, seed=1)
    numbers = [v.unsqueeze(1).expand(a.shape) for v in (top, over, hit, on_device(factor))]
    slope, _ = _run(row_kinds.nll_back(False, False), [x, *numbers], (1,), schedule)
    hot = np.arange(37)[:, None] == t[:, None]
    close(slope, np.where(counted[:, None], (np.exp(logs) - hot) * factor[:, None], 0))


@pytest.mark.parametrize("width", [1, 5, 16, 37, 300])
def test_the_gradient_of_cross_entropy_at_a_target_in_every_place(width: int) -> None:
    """Also rows that end inside a vector; ignored rows have gradient 0 whatever their logits, and 1 - p is exact for p
    near 1."""
    a, t = data(width + 2, width, seed=3) * 3, np.arange(width + 2) % width
    a[width], t[width], a[width + 1, width - 1], t[width + 1] = np.nan, -100, 30, width - 1
    x = on_device(a).requires_grad_()
    F.cross_entropy(x, ct.tensor(t), reduction="sum").backward()
    with np.errstate(invalid="ignore"):
        wide = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
        wanted = wide / wide.sum(1, keepdims=True)
    rest = np.where(np.arange(width) == t[:, None], 0, wanted).sum(1)
    wanted[np.arange(width + 2), np.maximum(t, 0)] = -rest
    wanted[width] = 0
    np.testing.assert_allclose(x.grad.numpy(force=True), wanted, rtol=2e-6, atol=1.3e-7)


@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
def test_logsumexp_of_what_is_not_finite(schedule: str) -> None:
    """An infinite maximum is the result, unless an element is NaN, also after an infinity."""
    inf, nan = np.inf, np.nan
    a = np.tile(data(1, 40), (9, 1))
    a[1:5] = -inf
    a[2, 7], a[3, 39], a[4, 0] = 5, nan, inf
    a[5, 3], a[6, 5], a[6, 38], a[7, 2] = inf, inf, nan, nan
    a[8] = 3e38
    want = [np.log(np.exp(a[0].astype(np.float64)).sum()), -inf, 5, nan, inf, inf, nan, nan, 3e38]
    _, (found,) = _run(row_kinds.LOGSUMEXP, [on_device(a)], (1,), schedule)
    np.testing.assert_allclose(found.cpu().numpy(), want, rtol=1e-6)


@pytest.mark.parametrize(("width", "overlap"), [(20480, False), (20011, False), (20011, True)])
def test_long_rows_go_through_by_blocks(
    width: int, overlap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are relative to the maximum so far: rising rows, falling rows, rows that begin with -inf; a value that is
    not finite spoils its row only. `overlap`: a row's last vector is whole, as on AVX2."""
    monkeypatch.setattr(rowwise, "LANES", 1 << 20 if overlap else 0)
    monkeypatch.setattr(
        rowwise, "STREAM", 0
    )  # so that intermediate results of blocks are stored apart from the result
    assert width > rowwise.KEPT > 2 * rowwise.BLOCKS
    rise = np.linspace(-150, 150, width, dtype=np.float32)
    a = data(9, width) * 3
    a[1] += rise
    a[2] -= rise
    a[3, :9000] = a[4, 9000:] = a[5] = -np.inf
    a[6, 12000] = a[7, 3] = np.nan
    a[7, :9000] = -np.inf
    a[7, 8000] = np.nan
    a[8, 10000] = np.inf
    wide = a.astype(np.float64)
    with np.errstate(all="ignore"):
        below = wide - np.fmax.reduce(wide, 1, keepdims=True)
        e = np.exp(below)
        total = e.sum(1, keepdims=True)
    x = on_device(a)
    y, _ = _run(row_kinds.SOFTMAX, [x], (1,), "row")
    np.testing.assert_allclose(y.cpu().numpy(), e / total, rtol=4e-5, atol=1e-37)
    z, _ = _run(row_kinds.LOG_SOFTMAX, [x], (1,), "row")
    np.testing.assert_allclose(z.cpu().numpy(), below - np.log(total), rtol=1e-6, atol=1e-6)
    y = x.bfloat16().softmax(1)[:3].float().cpu().numpy()
    exact = x.bfloat16()[:3].double().softmax(1).cpu().numpy()
    np.testing.assert_allclose(y, exact, rtol=5e-3, atol=1e-30)
    loss = F.cross_entropy(x[:3], ct.tensor([5, width - 1, 9000], device=x.device))
    close(loss, (np.log(total[:3, 0]) - below[[0, 1, 2], [5, -1, 9000]]).mean(), 1e-6)


@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
def test_equal_extremes_share_a_gradient(schedule: str) -> None:
    a, g = np.rint(data(7, 50) * 2), data(7, 1, seed=1)
    a[3, 8] = np.nan
    best = a.max(1, keepdims=True)
    given = [on_device(v).expand(7, 50) if v.shape[1] == 1 else on_device(v) for v in (a, best, g)]
    slope, _ = _run(row_kinds.SHARED_BACK, given, (1,), schedule)
    hit = a == best
    with np.errstate(all="ignore"):
        close(slope, hit * g / hit.sum(1, keepdims=True), 1e-6)


def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "worth", lambda x, dims, most=0, **_: False)
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))


NORMS = {
    "layer": (lambda x, w, b: F.layer_norm(x, w.shape, w, b), lambda n, c, s: ((n, c, s), (s,))),
    "group": (lambda x, w, b: F.group_norm(x, 2, w, b), lambda n, c, s: ((n, 2 * c, s), (2 * c,))),
    "batch": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        lambda n, c, s: ((n + 1, c, s), (c,)),
    ),
    "rms": (lambda x, w, b: F.rms_norm(x, w.shape, w) + b, lambda n, c, s: ((n, c, s), (s,))),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_agree_with_the_plain_composition(name: str) -> None:
    fn, shapes = NORMS[name]

    def gradients(*arrays: np.ndarray) -> list:
        x, w, b = (on_device(a).requires_grad_() for a in arrays)
        out = fn(x, w, b)
        return [out, *ct.autograd.grad((out * out * w.sum()).sum(), [x, w, b])]

    @few
    @given(n=sizes, c=st.integers(2, 9), s=sizes)
    def check(n: int, c: int, s: int) -> None:
        whole, own = shapes(n, c, s)
        arrays = [data(*whole) + 3, data(*own, seed=1), data(*own, seed=2)]
        fast = gradients(*arrays)
        with pytest.MonkeyPatch.context() as patch:
            _plain(patch)
            plain = gradients(*arrays)
        for a, b in zip(fast, plain, strict=True):
            scale = max(1.0, float(b.detach().abs().max().item()))
            close(a / scale, b / scale, 1e-3)

    check()


@few
@given(
    n=sizes, c=sizes, images=st.booleans(), weighted=st.booleans(), smoothing=st.sampled_from([0.0, 0.3]),
    reduction=st.sampled_from(["none", "sum", "mean"]),
)  # fmt: skip
def test_losses_of_classes_agree_with_plain_sums(
    n: int, c: int, images: bool, weighted: bool, smoothing: float, reduction: str
) -> None:
    shape, rest = ((3, c, n), (3, n)) if images else ((n, c), (n,))
    x = on_device(data(*shape) * 5).requires_grad_()
    t = np.random.default_rng(n).integers(0, c, rest)
    t[..., : n // 3] = -100
    t[..., -1] = c - 1
    weight = on_device(data(c).__abs__() + 0.1) if weighted else None
    share, target = (
        np.moveaxis(v[np.maximum(t, 0)] * (t >= 0)[..., None], -1, 1)
        for v in (np.eye(c) * (1 - smoothing) + smoothing / c, np.eye(c))
    )
    own = (ct.ones(c) if weight is None else weight).reshape([1, c] + [1] * (len(shape) - 2))

    def both(loss: Any) -> list:
        return [loss, ct.autograd.grad((loss * 2).sum(), [x])[0]]

    def plain(logs: Any, share: np.ndarray) -> Any:
        each = -(logs * own * on_device(share.astype(np.float32))).sum(1)
        total = (own * on_device(target.astype(np.float32))).sum() if reduction == "mean" else 1
        return each if reduction == "none" else each.sum() / total

    logs = x.log_softmax(1)
    found = both(
        F.cross_entropy(x, on_device(t), weight, reduction=reduction, label_smoothing=smoothing)
    )
    found += both(F.nll_loss(x.log_softmax(1), on_device(t), weight, reduction=reduction))
    with one_by_one():
        wanted = both(plain(x.log_softmax(1), share)) + both(plain(logs, target))
    for a, b in zip(found, wanted, strict=True):
        close(a, b, 1e-4)


@pytest.mark.parametrize("schedule", ["row", "col", "gpu-row", "gpu-col"])
def test_weights_and_smoothing_in_every_schedule(schedule: str) -> None:
    a, w = data(5, 37, 19) * 4, data(37, seed=1).__abs__() + 0.1
    x, t = on_device(a), np.arange(5 * 19).reshape(5, 19) % 37
    t[2, 3] = -100
    own = on_device(w).reshape(1, 37, 1).expand(a.shape)
    kind, share = row_kinds.nll(True, True), 0.2
    _, (top, over, loss, factor, spread, hit) = _run(kind, [x, own], (1,), schedule, targets=_targets(x, t), eps=share)  # fmt: skip
    wide, each = a.astype(np.float64), w[None, :, None]
    logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    hot = np.arange(37)[:, None] == t[:, None]
    mixed = hot * (1 - share) + share / 37
    counted = t >= 0
    close(loss, np.where(counted, -(logs * mixed * each).sum(1), 0), 1e-5)
    close(factor, (hot * each).sum(1))
    numbers = [v.unsqueeze(1).expand(a.shape) for v in (top, over, hit, factor, spread, factor)]
    slope, _ = _run(row_kinds.nll_back(True, True), [x, *numbers, own], (1,), schedule, eps=share)
    plain = np.exp(logs) * (mixed * each).sum(1, keepdims=True) - mixed * each
    close(slope, np.where(counted, plain.transpose(1, 0, 2) * factor.numpy(force=True), 0).transpose(1, 0, 2), 1e-5)  # fmt: skip


def test_cross_entropy_of_large_logits_is_exact() -> None:
    x = ct.full((2, 10), 1e6, requires_grad=True)
    loss = F.cross_entropy(x, ct.tensor([0, 3]))
    loss.backward()
    close(loss, np.log(10.0))
    close(x.grad[:, 5], [0.05, 0.05])


def test_weights_of_16_bit_floats() -> None:
    wide = on_device(data(4, 6))
    t, weight = ct.tensor([5, 0, 2, 2]), ct.tensor([0.5, 2.0, 1.5, 1.0, 1.0, 0.25])
    wanted = wide.softmax(1)
    wanted[[0, 1, 2, 3], t] -= 1
    x = wide.half().requires_grad_()
    F.cross_entropy(x, t, weight.half(), reduction="sum").backward()
    close(x.grad, wanted * weight[t][:, None], 2e-3)


def test_a_hook_between_the_nodes_is_heard() -> None:
    x = on_device(data(4, 5)).requires_grad_()
    t = ct.tensor([0, 1, 2, 3])
    (plain,) = ct.autograd.grad(F.cross_entropy(x, t), [x])
    loss = F.cross_entropy(x, t)
    loss.grad_fn.next_functions[0][0].register_prehook(lambda gs: (gs[0] * 2,))
    close(ct.autograd.grad(loss, [x])[0], 2 * plain)


def _launches(step: Any) -> int:
    step()
    before = STATS.launches
    step()
    return STATS.launches - before


def test_launch_counts() -> None:
    x, t = on_device(data(40, 50)).requires_grad_(), ct.tensor(list(range(40)))
    w, b = ct.ones(50, requires_grad=True), ct.zeros(50, requires_grad=True)
    c = on_device(data(6, 4, 30, 30)).requires_grad_()  # small pending operands would be run first
    v = ct.ones(4, requires_grad=True)
    g = on_device(data(40, 50, seed=1))
    for each in (x, t, w, b, c, v, g):
        each.data_ptr()

    def grads(out: Any, g: Any, *inputs: Any) -> None:
        for found in ct.autograd.grad(out, inputs, g):
            found.data_ptr()

    assert _launches(lambda: F.cross_entropy(x, t).data_ptr()) == 2
    assert _launches(lambda: grads(F.cross_entropy(x, t), None, x)) <= 4
    ways = [
        {"label_smoothing": 0.1},
        {"weight": w.detach()},
        {"weight": w.detach(), "label_smoothing": 0.1},
    ]
    for way in ways:
        assert _launches(lambda way=way: grads(F.cross_entropy(x, t, **way), None, x)) <= 4
    assert _launches(lambda: grads(F.nll_loss(x, t), None, x)) <= 4
    assert _launches(lambda: F.layer_norm(x, (50,), w, b).data_ptr()) == 1
    assert _launches(lambda: grads(F.layer_norm(x, (50,), w, b), g, x, w, b)) == 3
    one = ct.ones(6, 4, 30, 30)
    one.data_ptr()
    assert _launches(lambda: grads(F.batch_norm(c, None, None, v, v, True), one, c, v)) == 3
    assert _launches(lambda: grads(F.rms_norm(x, (50,)), g, x)) == 2
    assert _launches(lambda: grads(x.amax(1), g[:, 0], x)) == 2
    own = ct.tensor(data(40, 50)).requires_grad_()
    assert _launches(lambda: grads(own.var(1), g[:, 0], own)) == 2
    # The pending gradient of relu, of one expanded number, is read in the shape with groups.
    assert _launches(lambda: grads(F.group_norm(c, 2, v).relu().sum(), None, c, v)) == 4


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("name", ["rms", "group"])
def test_second_derivatives(name: str) -> None:
    fn, shapes = NORMS[name]
    whole, own = shapes(2, 2, 3)
    x, w, b = (on_device(data(*s, dtype="float64")).requires_grad_() for s in (whole, own, own))
    assert ct.autograd.gradcheck(fn, (x, w, b))
    assert ct.autograd.gradgradcheck(fn, (x, w, b))


@pytest.mark.parametrize("rows", [2, 16, 23, 300])
def test_short_rows_go_through_each_stage_together(rows: int) -> None:
    """Rows of a few vectors: values, and the same bits whatever rows are next to a row."""
    for width in (6, 16, 75, 128, 250):
        a = data(rows, width) * 4
        x, w, t = on_device(a), on_device(data(width, seed=1)), np.arange(rows) % width
        t[rows // 2] = -100
        wide = a.astype(np.float64)
        logs = wide - np.log(np.exp(wide).sum(1, keepdims=True))
        each = -logs[np.arange(rows), np.maximum(t, 0)] * (t >= 0)
        square = np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)

        def found(x: Any, w: Any, t: np.ndarray, width: int = width) -> list:
            return [
                x.softmax(1),
                x.log_softmax(1),
                F.cross_entropy(x, on_device(t), reduction="none"),
                F.layer_norm(x, (width,), w, w),
                F.rms_norm(x, (width,), eps=1e-5),
            ]

        scale = w.numpy(force=True)
        wanted = [np.exp(logs), logs, each, _normed(a, (1,)) * scale + scale, wide / square]
        whole = found(x, w, t)
        for one, want in zip(whole, wanted, strict=True):
            close(one, want, 2e-5)
        if rows > 3:
            part = found(on_device(a[2:]), w, t[2:])
            assert all(ct.equal(one[2:], other) for one, other in zip(whole, part, strict=True))


def test_logarithm_of_a_sum_of_exponentials() -> None:
    """logsumexp of one large term and many small ones, and of one term alone, where the logarithm is 0."""
    a = np.zeros((40, 200), np.float32)
    a[:, 1:] = -np.linspace(0, 100, 40, dtype=np.float32)[:, None]
    a[1::3, 1:] -= data(13, 199).__abs__()
    want = np.log(np.exp(a.astype(np.float64)).sum(1))
    loss = F.cross_entropy(on_device(a), ct.zeros(40, dtype=ct.int64), reduction="none")
    for found in (loss, on_device(a).logsumexp(1)):
        off = np.abs(found.numpy(force=True).astype(np.float64) - want)
        assert (off <= 1e-6 * np.maximum(want, 1)).all()
    assert loss[-1].item() == 0


def test_exponential_of_the_row_kernels() -> None:
    a = np.concatenate([-np.linspace(0, 104, 4001), [-1e30]]).astype(np.float32)
    found = (
        on_device(np.stack([np.zeros_like(a), a], 1))
        .softmax(1)
        .numpy(force=True)[:, 1]
        .astype(np.float64)
    )
    want = np.exp(a.astype(np.float64)) / (1 + np.exp(a.astype(np.float64)))
    assert (np.abs(found - want) <= 2 * np.spacing(want.astype(np.float32))).all()


def test_given_statistics_take_one_pass_back_for_weight_and_bias() -> None:
    """Batch normalisation in evaluation: one launch for the channels' factors, and one backward launch for both
    sums."""
    x = ct.tensor(data(4, 3, 5, 7))
    w = ct.ones(3, requires_grad=True)
    b = ct.zeros(3, requires_grad=True)
    mean, var = ct.tensor(data(3, seed=1)), ct.tensor(np.abs(data(3, seed=2)) + 0.5)
    g = ct.tensor(data(4, 3, 5, 7, seed=3))
    for t in (x, w, b, mean, var, g):
        t.data_ptr()
    y = ct.nn.functional.batch_norm(x, mean, var, w, b)
    hat = (x - mean.view(3, 1, 1)) / (var.view(3, 1, 1) + 1e-5).sqrt()
    close(y.detach(), hat.cpu().numpy(), 1e-5)
    before = STATS.launches
    by_w, by_b = ct.autograd.grad(y, (w, b), g)
    assert STATS.launches - before <= 2
    close(by_w, (g * hat).sum((0, 2, 3)).cpu().numpy(), 1e-4)
    close(by_b, g.sum((0, 2, 3)).cpu().numpy(), 1e-4)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])
def test_rows_across_memory_are_turned_on_the_way(
    kind: str, dev: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows across memory take one launch, softmax with the bits of a contiguous copy: partial squares, dims between,
    prologues."""
    backend = get_backend(ct.device(dev))
    if backend.info.kind != "cpu" or backend.info.lanes < rowwise.LANES:
        pytest.skip("the schedule of a CPU with wide vectors")
    if kind == "float64" and not backend.info.fp64:
        pytest.skip("no float64")
    monkeypatch.setattr(rowwise, "TURNED_LEAST", 1)
    monkeypatch.setattr(rows.lazy, "TURN", 1)
    rowwise._plan.cache_clear()
    shapes = ((16, 16), (17, 33), (40, 300), (300, 40), (33, 129), (3, 20, 70), (2, 16, 5, 19))
    for shape in shapes if kind == "float32" else shapes[:5]:  # dims between: one dtype is enough
        x = on_device(data(*shape)).to(getattr(ct, kind))
        turned = x.transpose(-1, -2) if x.ndim < 4 else x.permute(0, 2, 3, 1)
        ct.opencl.synchronize()
        before = STATS.launches
        found = ct.softmax(turned, -1)
        ct.opencl.synchronize()
        assert STATS.launches == before + 1, shape
        copy = turned.contiguous()
        copy.data_ptr()  # it is read, and not what it is a copy of
        assert ct.equal(found, ct.softmax(copy, -1)), shape
        if kind != "float32":
            continue
        assert ct.equal(ct.log_softmax(turned * 2, -1), ct.log_softmax(copy * 2, -1))
        width = turned.shape[-1:]
        w = on_device(data(*width, seed=1)).to(x.dtype)
        normed = F.layer_norm(turned, width, w, w)
        assert normed.is_contiguous()
        # Short rows of the copy are walked side by side, which adds up in another order.
        ct.testing.assert_close(normed, F.layer_norm(copy, width, w, w), rtol=3e-6, atol=3e-6)
    rowwise._plan.cache_clear()
