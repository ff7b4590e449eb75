"""Recomputed results: which are not kept, that only memory use differs, and that in-place writes never reach them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import data

import cltensor as ct
from cltensor.lazy import recompute, schedule
from cltensor.runtime import STATS

SIZE = 64


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Decide for small tensors as for large ones."""
    monkeypatch.setattr(recompute, "LARGE", 0)


def operands():
    return [ct.tensor(data(SIZE, seed=seed)) for seed in (0, 1)]


def held(x, y):
    """Return the result of a chain and two of its intermediate results, which the caller then holds."""
    z = x * y + 2
    s = ct.sigmoid(z * z - x)
    return s * y + x, z, s


def read(t):
    return t.detach().cpu().numpy()


def test_cheap_results_of_what_the_kernel_reads_anyway_stay_pending():
    out, z, s = held(*operands())
    read(out)
    assert not out._storage.waits
    assert z._storage.waits and s._storage.waits


@pytest.mark.parametrize("name", ["small", "dear", "of more operands", "asked too often", "a draw"])
def test_other_results_are_kept(name, monkeypatch):
    x, y = operands()
    w = x + 0
    read(w)
    if name == "small":
        monkeypatch.setattr(recompute, "LARGE", 1 << 40)
        inner = x * y
    elif name == "dear":
        inner = ct.sin(ct.exp(ct.tanh(ct.log1p(x.abs()))))
    elif name == "of more operands":
        inner = x * y * w
    elif name == "a draw":
        inner = ct.rand(SIZE) * x
    else:
        inner = x * y
        for _ in range(recompute.MOST_TIMES):
            read(inner * x + y)
            assert inner._storage.waits
    read(inner * x + y)
    assert not inner._storage.waits


def test_a_sum_leaves_pending_what_its_gradient_computes_again():
    x, y = (t.requires_grad_() for t in operands())
    ct.opencl.synchronize()
    before = STATS.launches
    out, z, s = held(x, y)
    total = out.sum()
    gx, gy = ct.autograd.grad(total, (x, y))
    assert z._storage.waits and s._storage.waits
    read(gx)
    assert not gy._storage.waits  # computed by the kernel of gx
    assert STATS.launches - before <= 3  # a sum may take two


def test_what_is_left_pending_has_the_values_of_before_a_write():
    x, y = operands()
    x0, y0 = read(x).copy(), read(y).copy()
    out, z, s = held(x, y)
    read(out)
    x.fill_(7)
    y[::2] = 3
    expect = x0 * y0 + 2
    np.testing.assert_allclose(read(z), expect, rtol=1e-6)
    np.testing.assert_allclose(read(s), 1 / (1 + np.exp(-(expect * expect - x0))), rtol=1e-5)


def test_a_result_that_a_pending_one_reads_is_not_written_over():
    x, y = operands()
    wanted = read(x) * 2 * read(y)
    base = x * 2
    base._storage.value.again = recompute.MOST_TIMES
    inner = base * y
    read(inner + x * y)
    assert inner._storage.waits and not base._storage.waits
    base.add_(100)
    read(base)
    np.testing.assert_allclose(read(inner), wanted, rtol=1e-6)


def test_gradients_that_read_the_same_operands_are_one_launch():
    x, y = (t.requires_grad_() for t in operands())
    g = ct.ones(SIZE)
    out = ct.nn.functional.gelu(x) * y
    read(out)
    gx, gy = ct.autograd.grad(out, (x, y), g)
    before = STATS.launches
    ct.opencl.synchronize()
    assert STATS.launches - before == 1
    assert not gx._storage.waits and not gy._storage.waits


def test_a_product_is_kept_and_what_its_chain_gives_on_the_way_is_not():
    x, w = ct.randn(8, 64), ct.randn(64, 8).requires_grad_()
    h = x @ w
    s = ct.sigmoid(h)
    out = s * h
    read(out)
    assert not h._storage.waits and s._storage.waits
    wanted = 1 / (1 + np.exp(-read(h)))
    h.detach().zero_()
    np.testing.assert_allclose(read(s), wanted, rtol=1e-5)


def test_results_left_pending_do_not_count_among_the_pending_ones(monkeypatch):
    monkeypatch.setattr(schedule, "MAX_PENDING", 8)
    x, y = operands()
    outs, held_back = [], []
    before = dict(STATS.splits)
    for _ in range(12):
        out, *inner = held(x, y)
        read(out)
        outs.append(out)
        held_back += inner
    assert all(t._storage.waits for t in held_back)
    assert STATS.splits.get("pending", 0) == before.get("pending", 0)
    ct.opencl.synchronize()
    assert not any(t._storage.waits for t in held_back)
    held_back.clear()
    read(held(x, y)[0])
    assert not x._storage.backend.left


UNARY = [lambda t: t * 2 + 1, ct.sigmoid, ct.tanh, ct.relu, lambda t: t.clamp(-1, 1), ct.exp]
BINARY = [lambda a, b: a + b, lambda a, b: a * b, ct.maximum, lambda a, b: a - b * 0.5]


STEP = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=8, deadline=None)
@given(st.lists(STEP, min_size=3, max_size=9), st.booleans())
def test_random_graphs_have_the_bits_of_kept_results(steps, reduced):
    def run(large):
        recompute.LARGE = large
        made = [t.requires_grad_() for t in operands()]
        for kind, i, j in steps:
            a, b = made[i % len(made)], made[j % len(made)]
            made.append(UNARY[kind](a) if kind < len(UNARY) else BINARY[kind - len(UNARY)](a, b))
        out = made[-1].sum() if reduced else made[-1]
        forward = read(out).copy()
        grads = ct.autograd.grad(out.sum(), made[:2], allow_unused=True)
        return [
            forward,
            *(read(t).copy() for t in made),
            *(read(g) for g in grads if g is not None),
        ]

    (total, *kept), (again, *others) = run(1 << 40), run(0)
    np.testing.assert_allclose(again, total, rtol=1e-5 if reduced else 0)  # sums in other order
    for one, other in zip(kept, others, strict=True):
        np.testing.assert_array_equal(other, one)
