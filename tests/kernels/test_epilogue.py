"""Epilogues, pointwise chains inside a product's kernel: the same bits as in two launches, at the level of kernels and
of tensors."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cltensor as torch
from cltensor import config, dtypes, lazy
from cltensor.codegen.operand import Operand
from cltensor.codegen.pointwise import Node, PointOp
from cltensor.codegen.products import epilogue, gemm, gemm_cpu
from cltensor.lazy import product_tree, recompute
from cltensor.ops import dense
from cltensor.runtime import STATS

F = torch.nn.functional
F32 = dtypes.float32
ADD, RELU = PointOp("add", "x + y"), PointOp("relu", "where(x > 0, x, 0)")
SIZES = st.tuples(st.integers(2, 70), st.integers(2, 90), st.integers(2, 80))


def put(backend: Any, x: np.ndarray) -> Any:
    buffer = backend.alloc(x.nbytes)
    backend.write(buffer, 0, np.ascontiguousarray(x).ravel())
    return buffer


def operand(backend: Any, x: np.ndarray, turned: bool) -> Operand:
    rows, cols = x.shape
    strides = (1, rows) if turned else (cols, 1)
    return Operand(put(backend, x.T if turned else x), F32, x.shape, strides)


def fused_and_plain(
    backend: Any, size: tuple[int, int, int], turned: tuple[bool, bool], schedule: str
) -> None:
    """Check relu(p + full) + row and p = 2 * (a @ b) + 3 * bias, computed by one kernel, against p of a kernel without
    epilogue."""
    m, n, k = size
    rng = np.random.default_rng(m * n * k)
    a, b = rng.standard_normal((m, k), "f"), rng.standard_normal((k, n), "f")
    full, row = rng.standard_normal((m, n), "f"), rng.standard_normal(n, "f")
    left, right = operand(backend, a, turned[0]), operand(backend, b, turned[1])
    bias = Operand(put(backend, row), F32, (m, n), (0, 1))
    found = [put(backend, np.full((m, n), np.nan, "f")) for _ in range(2)]
    place = epilogue.Place
    chain = epilogue.Epilogue(
        ((F32, place(put(backend, full), 0, n, 1)), (F32, None), (F32, place(bias.buffer, 0, 0, 1))),
        (), (),
        (
            Node(ADD, F32, F32, (("a", 1), ("a", 0))),
            Node(RELU, F32, F32, (("t", 0),)),
            Node(ADD, F32, F32, (("t", 1), ("a", 2))),
        ),
        tuple((ref, F32, place(out, 0, n, 1)) for ref, out in zip((("t", 2), ("a", 1)), found, strict=True)),
    )  # fmt: skip
    how = {"alpha": 2, "beta": 3, "bias": bias, "schedule": schedule}
    assert gemm.fused(backend, left, right, chain, **how)
    plain = gemm.matmul(backend, left, right, **how).buffer
    p, both, alone = (
        backend.read(x, 0, 4 * m * n).view("f").reshape(m, n) for x in (plain, *found)
    )
    np.testing.assert_array_equal(alone, p)
    np.testing.assert_array_equal(both, np.maximum(p + full, 0) + row)
    expected = 2 * (a.astype("d") @ b.astype("d")) + 3 * row
    assert np.abs(p - expected).max() <= 1e-6 * (2 * np.abs(a) @ np.abs(b) + 3 * abs(row)).max()


@pytest.mark.parametrize("schedule", ["cpu", "gpu"])
@settings(max_examples=25, deadline=None, database=None)
@given(size=SIZES, turned=st.tuples(st.booleans(), st.booleans()))
def test_random_shapes(backend: Any, schedule: str, size: Any, turned: Any) -> None:
    fused_and_plain(backend, size, turned, schedule)


@pytest.mark.parametrize("size", [(700, 16, 4), (150, 170, 40), (151, 170, 41)], ids=str)
def test_shapes_that_gpus_have_tiles_for(backend: Any, size: tuple[int, int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for units in (2, 7):
            patch.setattr(backend, "info", dataclasses.replace(backend.info, compute_units=units))
            fused_and_plain(backend, size, (False, True), "gpu")


@pytest.mark.parametrize("size", [(40, 50, 1100), (20, 300, 1030), (300, 20, 1030)], ids=str)
@pytest.mark.usefixtures("on_a_cpu")
def test_sums_over_blocks_of_k(backend: Any, size: tuple[int, int, int]) -> None:
    for turned in ((False, False), (False, True), (True, False)):
        fused_and_plain(backend, size, turned, "cpu")


@pytest.mark.usefixtures("on_a_cpu")
@settings(max_examples=25, deadline=None, database=None)
@given(
    size=st.tuples(st.integers(17, 70), st.integers(9, 150), st.integers(2, 600)),
    turned=st.tuples(st.booleans(), st.booleans()),
)
def test_everything_packed(backend: Any, size: Any, turned: Any) -> None:
    """Both operands are packed, as for large matrices."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm_cpu, "_plans", {})
        patch.setattr(gemm_cpu, "DIRECT_A", 0)
        patch.setattr(gemm_cpu, "DIRECT_B", 0)
        fused_and_plain(backend, size, turned, "cpu")


# ---- tensors


@pytest.fixture
def inputs(dev: Any, monkeypatch: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def make(*shape: int) -> Any:
        return torch.tensor(rng.standard_normal(shape, "f"), device=dev)

    (make(2, 3) @ make(3, 2)).numpy(force=True)  # queries the driver for its registers, once
    monkeypatch.setattr(dense, "WAITS", 0)  # products of any size stay pending
    return {"x": make(120, 90), "w": make(110, 90), "b": make(110), "r": make(120, 110), "c": make(120, 1)}  # fmt: skip


CHAINS = {
    "relu": (1, lambda x, w, b, r, c: F.relu(F.linear(x, w, b))),
    "gelu": (1, lambda x, w, b, r, c: F.gelu(F.linear(x, w, b))),
    "rank 3": (1, lambda x, w, b, r, c: F.relu(F.linear(x.view(4, 30, 90), w, b))),
    "bias after": (1, lambda x, w, b, r, c: F.linear(x.view(4, 30, 90), w) + b),
    "residual": (1, lambda x, w, b, r, c: (x @ w.t()).sigmoid() * 2 + r * c),
    "turned residual": (1, lambda x, w, b, r, c: x @ w.t() + r.t().contiguous().t()),
    "its own factor": (1, lambda x, w, b, r, c: F.relu(x @ w[:90]) * x + x),
    "cast": (1, lambda x, w, b, r, c: (x @ w.t()).to(torch.bfloat16)),
    "mask": (1, lambda x, w, b, r, c: F.linear(x, w, b) > 0),
    "two results": (1, lambda x, w, b, r, c: (lambda t: (t * 2, t.exp()))(F.linear(x, w) + 1)),
    "two products": (2, lambda x, w, b, r, c: F.linear(x, w, b) + F.linear(x, w)),
    "a sum": (2, lambda x, w, b, r, c: F.relu(F.linear(x, w)).sum(1)),
    "flattened": (2, lambda x, w, b, r, c: F.linear(x, w).view(-1) + 1),
    "complex": (2, lambda x, w, b, r, c: F.linear(x, w) * 1j),
    "uneven rows": (
        2,
        lambda x, w, b, r, c: F.linear(x.view(4, 30, 90), w) + r.view(30, 4, 110).transpose(0, 1),
    ),
    "a part": (2, lambda x, w, b, r, c: F.linear(x, w)[:, 5:50] + 1),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains(dev: Any, inputs: dict[str, Any], name: str, monkeypatch: Any) -> None:
    count, chain = CHAINS[name]

    def run() -> list[Any]:
        found = chain(**inputs)
        return list(found) if isinstance(found, tuple) else [found]

    torch.opencl.synchronize()
    before = STATS.launches
    fused = run()
    torch.opencl.synchronize()
    turns = name == "turned residual"  # transposing that takes launches of its own
    assert STATS.launches - before == count or turns
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))
    for ours, plain in zip(fused, run(), strict=True):
        assert torch.equal(ours, plain)


LONG_WAY = ("two results", "two products")  # not replayed: planned as a Fusion each time


@pytest.fixture
def remembered(inputs: dict[str, Any], monkeypatch: Any) -> dict[str, Any]:
    """Return inputs of chains, with the recording of launches turned on."""
    monkeypatch.setattr(product_tree, "MOST", 1024)
    lazy.forget()
    return inputs


@pytest.mark.parametrize("name", CHAINS)
def test_chains_met_before(remembered: dict[str, Any], name: str) -> None:
    """From the third occurrence on a chain's launches are replayed, also for other values in other memory."""
    for turn in range(4):
        given = {key: x * (turn + 1) for key, x in remembered.items()}
        torch.opencl.synchronize()
        before = STATS.replays
        found = CHAINS[name][1](**given)
        torch.opencl.synchronize()
        replays = STATS.replays - before
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))
            plain = CHAINS[name][1](**given)
        pairs = zip(found, plain, strict=True) if isinstance(found, tuple) else [(found, plain)]
        assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    assert replays == (name not in LONG_WAY)


def test_what_tells_chains_apart(remembered: dict[str, Any]) -> None:
    """Chains differ, for replay, by their numbers, by operands that share memory or not, and by which results are
    held."""
    x, w = remembered["x"], remembered["w"][:90]
    product = x.numpy(force=True) @ w.numpy(force=True)
    other = x.clone()
    for _ in range(4):
        for k in (0.0, -0.0, 1, 2.5):
            y = (x @ w).abs() * k
            assert (torch.signbit(y) == (str(k)[0] == "-")).all()
            np.testing.assert_allclose(y.numpy(force=True), abs(product) * k, atol=1e-3)
        for added in (x, other):
            y = x @ w + added
            torch.opencl.synchronize()
            np.testing.assert_allclose(
                y.numpy(force=True), product + x.numpy(force=True), atol=1e-3
            )
            other.add_(0)
        held = x @ w
        last = held.relu() + 1
        del held
        kept = x @ w
        again = kept.relu() + 1
        torch.opencl.synchronize()
        assert torch.equal(last, again)
        assert torch.equal(kept.relu() + 1, again)


def test_a_played_product_lets_go_of_its_operands(remembered: dict[str, Any]) -> None:
    """After a replay the operands may be written in place, without a copy and without another launch."""
    x, w = remembered["x"].clone(), remembered["w"]
    for _ in range(4):
        y = F.relu(x @ w.t())
        torch.opencl.synchronize()
        assert x._storage.reads == 0
        expected = np.maximum(x.numpy(force=True) @ w.numpy(force=True).T, 0)
        home = x._storage.value
        x.add_(1)
        torch.opencl.synchronize()
        assert x._storage.value is home
        np.testing.assert_allclose(y.numpy(force=True), expected, atol=1e-3)


def test_a_product_that_is_held_is_kept(inputs: dict[str, Any]) -> None:
    x, w, b = (inputs[n] for n in "xwb")
    y = F.linear(x, w, b)
    z = F.relu(y)
    torch.opencl.synchronize()
    before = STATS.launches
    expected = np.maximum(y.numpy(force=True), 0)
    np.testing.assert_array_equal(z.numpy(force=True), expected)
    assert STATS.launches == before
    # The product is read after the chain that used it has run, through an operand that was not held.
    t = F.linear(x, w) + 1
    u, v = t * 2, t.view(-1).exp()
    del t
    u.numpy(force=True)
    np.testing.assert_allclose(
        v.numpy(force=True), np.exp(u.numpy(force=True).ravel() / 2), rtol=1e-5
    )


def test_a_product_that_is_held_is_kept_by_its_chain(inputs: dict[str, Any]) -> None:
    x, w = (inputs[n] for n in "xw")
    wanted = x.numpy(force=True) @ w.numpy(force=True).T
    y = F.linear(x, w)
    z = F.relu(y)
    torch.opencl.synchronize()
    y = F.linear(x, w)
    z = F.relu(y)
    before = STATS.launches
    z._storage.buffer()
    assert STATS.launches == before + 1
    assert not y._storage.waits
    np.testing.assert_allclose(y.numpy(force=True), wanted, atol=1e-4)
    np.testing.assert_array_equal(z.numpy(force=True), np.maximum(y.numpy(force=True), 0))


def test_a_product_may_change_while_something_waits_for_it(inputs: dict[str, Any]) -> None:
    x, w = (inputs[n] for n in "xw")
    for asked in (0, 1):
        y = F.linear(x, w)
        found = (y + 1, y * 2)
        y._storage.buffer() if not asked else found[1]._storage.buffer()
        old = x.numpy(force=True) @ w.numpy(force=True).T
        y[3:5] = 7
        y.mul_(0)
        np.testing.assert_allclose(found[0].numpy(force=True), old + 1, atol=1e-4)
        np.testing.assert_allclose(found[1].numpy(force=True), old * 2, atol=1e-4)
        assert not y.any()


def test_operands_may_change_while_a_product_waits(inputs: dict[str, Any]) -> None:
    x, w = inputs["x"].clone(), inputs["w"]
    expected = x.numpy(force=True) @ w.numpy(force=True).T
    y = x @ w.t()
    x.add_(1)
    x[3:5] = 7
    np.testing.assert_allclose(y.numpy(force=True), expected, atol=1e-4)
    x = inputs["x"].clone()
    y = F.relu(x @ w.t())
    x.zero_()
    np.testing.assert_allclose(y.numpy(force=True), np.maximum(expected, 0), atol=1e-4)
    assert not x.any()
    square = torch.ones(12, 12, device=x.device)
    square.addmm_(square, square)  # the operands are the destination itself
    assert (square == 13).all()


def test_a_factor_that_changes_shares_its_products_launch(
    inputs: dict[str, Any], monkeypatch: Any
) -> None:
    monkeypatch.setattr(recompute, "LARGE", 0)  # recompute results of any size
    x, w = inputs["x"].clone(), inputs["w"][:90]
    old = inputs["x"].numpy(force=True)  # a copy: memory that numpy sees is not used lazily
    y = F.relu(x @ w) * 2
    x.add_(1)
    expected = 2 * np.maximum(old @ w.numpy(force=True), 0)
    np.testing.assert_allclose(y.numpy(force=True), expected, atol=1e-4)
    np.testing.assert_array_equal(x.numpy(force=True), old + 1)


def test_the_gradient_of_a_transposed_weight_is_not_copied(inputs: dict[str, Any]) -> None:
    x, b = inputs["x"], inputs["b"]
    w = inputs["w"].clone().requires_grad_()
    y = F.linear(x, w, b)
    g = inputs["r"]
    torch.opencl.synchronize()
    before = STATS.launches
    y.backward(g)
    torch.opencl.synchronize()
    assert STATS.launches - before == 1
    assert w.grad.is_contiguous()
    np.testing.assert_allclose(
        w.grad.numpy(force=True), g.numpy(force=True).T @ x.numpy(force=True), atol=1e-4
    )
