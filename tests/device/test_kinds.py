"""Calls that differ in sizes only (Note [Kinds] in ops/kinds.py): replays for new sizes equal calls without replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor.lazy import tree
from cltensor.ops import replay
from cltensor.runtime import STATS

F = torch.nn.functional
# The first two calls record a kind; then come sizes on both sides of the schedules' thresholds, and earlier ones again.
SIZES = (6, 7, 9, 23, 40, 6, 130, 12, 1, 2, 64, 600, 7)


def whole(*shape: int) -> Any:
    """Return small integers as float32: their sums are exact in any order."""
    return torch.randint(-4, 5, shape).float()


def places(*shape: int, below: int) -> Any:
    return torch.randint(0, below, shape)


# name -> (function under test, function that makes its operands for a size n)
GROWING: dict[str, tuple[Callable[..., Any], Callable[[int], tuple]]] = {
    "sum": (lambda x: x.sum(0), lambda n: (whole(n, 7),)),
    "mean": (lambda x: x.mean(), lambda n: (whole(7, n).t(),)),
    "var": (lambda x: x.var(1), lambda n: (whole(5, n + 1),)),
    "argmax": (lambda x: x.argmax(-1), lambda n: (whole(3, n),)),
    "sum of a chain": (lambda x: (x * 2 + 1).sum(0), lambda n: (whole(n, 20),)),
    "softmax": (lambda x: torch.softmax(x, -1), lambda n: (whole(3, n),)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (8,), w), lambda n: (whole(n, 8), whole(8))),
    "layer_norm of a sum": (lambda x, y: F.layer_norm(x + y, (8,)), lambda n: (whole(n, 8), whole(n, 8))),
    "product": (lambda a, b: a @ b, lambda n: (whole(n, 8), whole(8, 24))),
    "product over a growing dim": (lambda a, b: a @ b, lambda n: (whole(1, n), whole(n, 16))),
    "linear": (F.linear, lambda n: (whole(n, 8), whole(24, 8), whole(24))),
    "products of a batch": (
        lambda q, k: q @ k.transpose(-1, -2), lambda n: (whole(2, 4, 1, 16), whole(2, 4, n, 16)),
    ),
    "attention": (
        F.scaled_dot_product_attention, lambda n: (whole(1, 2, 1, 8), whole(1, 2, n, 8), whole(1, 2, n, 8)),
    ),
    "cat": (lambda a, b: torch.cat([a, b], -2), lambda n: (whole(1, 2, n, 8), whole(1, 2, 1, 8))),
    "cat of rows": (lambda a, b: torch.cat([a, b]), lambda n: (whole(n), whole(1))),
    "cat of pending parts": (lambda a, b: torch.cat([a + 1, b]), lambda n: (whole(n, 3), whole(2, 3))),
    "stack": (lambda a: torch.stack([a, a]), lambda n: (whole(n, 3),)),
    "embedding": (F.embedding, lambda n: (places(2, n, below=5), whole(5, 8))),
    "index": (lambda x, i: x[i], lambda n: (whole(5, 7), places(n, below=5))),
    "gather": (lambda x, i: x.gather(1, i), lambda n: (whole(n, 7), places(n, 2, below=7))),
    "scatter": (lambda x, i: x.scatter(1, i, 2.0), lambda n: (whole(n, 7), places(n, 1, below=7))),
    "rows added to a copy": (
        lambda x, i, s: x.index_add(0, i, s),
        lambda n: (whole(4096, 128), places(n, below=4096), whole(n, 128)),
    ),
    "cumsum": (lambda x: x.cumsum(0), lambda n: (whole(n, 3),)),
    "sort": (lambda x: tuple(x.sort()), lambda n: (whole(n),)),
    "pad": (lambda x: F.pad(x, (1, 2)), lambda n: (whole(n, 3),)),
    "flip": (lambda x: x.flip(0), lambda n: (whole(n, 3),)),
    "tril": (lambda x: x.tril(), lambda n: (whole(n, n),)),
    "convolution": (lambda x, w: F.conv2d(x, w, padding=1), lambda n: (whole(1, 3, n, 9), whole(4, 3, 3, 3))),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), lambda n: (whole(1, 2, n + 1, 8),)),
    "interpolate": (
        lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
        lambda n: (whole(1, 2, n, 5),),
    ),
    "cross_entropy": (F.cross_entropy, lambda n: (whole(n, 7), places(n, below=7))),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), lambda n: (whole(n, 4), whole(6, 4))),
    "a cell": (
        lambda x, h, w, u: torch.rnn_tanh_cell(x, h, w, u),
        lambda n: (whole(n, 3), whole(n, 4), whole(4, 3), whole(4, 4)),
    ),
    "cosine_similarity": (F.cosine_similarity, lambda n: (whole(3, n), whole(3, n))),
    "normalize": (F.normalize, lambda n: (whole(3, n),)),
    "multi-head attention": (
        lambda x, w, o: F.multi_head_attention_forward(x, x, x, 4, 2, w, None, None, None, False, 0.0, o, None),
        lambda n: (whole(n, 2, 4), whole(12, 4) / 4, whole(4, 4)),
    ),
    "diag_embed": (torch.diag_embed, lambda n: (whole(3, n),)),
    "fold": (lambda x: F.fold(x, (2, x.shape[-1] + 2), (2, 3)), lambda n: (whole(2, 12, n),)),
    "a view": (lambda x: x[1:, 1:] + 1.0, lambda n: (whole(n + 1, 9),)),
    "a row to each row": (lambda x, y: x * y + y, lambda n: (whole(n, 9), whole(9))),
    "a slope": (
        lambda x, w: torch.autograd.grad(F.linear(x, w.requires_grad_()).square().sum(), w)[0],
        lambda n: (whole(n, 4), whole(5, 4)),
    ),
}  # fmt: skip


def found_by(fn: Callable, *operands: Any) -> list[Any]:
    found = fn(*operands)
    return [
        (t.dtype, tuple(t.shape), t.stride(), t.cpu().numpy().tobytes())
        for t in (found if isinstance(found, tuple) else (found,))
    ]


@pytest.fixture
def fresh() -> None:
    replay.forget()
    tree._entries.clear()
    tree._kinds.clear()


@pytest.mark.parametrize("name", GROWING)
def test_values(name: str, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, make = GROWING[name]
    cases = [make(n) for n in SIZES]
    torch.opencl.synchronize()
    found = [found_by(fn, *operands) for operands in cases]
    monkeypatch.setattr(replay, "MOST", 0)  # no replays
    replay.forget()
    for result, operands in zip(found, cases, strict=True):
        assert result == found_by(fn, *operands)


OTHERS = (
    "a view",
    "a row to each row",
    "tril",
    "interpolate",
    "fold",
)  # functions without replays, or with a kind for each size


@pytest.mark.parametrize("name", [name for name in GROWING if name not in OTHERS])
def test_sizes_never_met_are_replayed(name: str, fresh: None, backend: Any) -> None:
    fn, make = GROWING[name]
    for n in (20, 21, 22):
        fn(*make(n))
    cases = [make(n) for n in range(23, 31)]  # from some on, the schedule may differ

    torch.opencl.synchronize()
    before = STATS.replays
    for operands in cases:
        fn(*operands)
    # On a GPU the work-groups depend on the sizes, so that few of these calls share a kind.
    assert STATS.replays - before >= (len(cases) - 2 if backend.info.kind == "cpu" else 1)


def test_layouts_along_memory_and_across_it(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strides and offsets are symbolic, as sizes are: of slices of larger tensors, of transposed and expanded ones."""
    rng = np.random.default_rng(0)

    def laid(n: int, m: int, how: int) -> Any:
        rows, columns, start = (int(k) for k in rng.integers(0, 4, 3))
        return [
            lambda: whole(n, m),
            lambda: whole(n + rows, m + columns)[:n, :m],
            lambda: whole(m, n).t(),
            lambda: whole(n + start, m)[start:],
            lambda: whole(m).expand(n, m),
            lambda: whole(n, 2 * m)[:, ::2],
        ][how]()

    def all_of_them(x: Any, y: Any, w: Any) -> tuple:
        return (
            x.sum(0),
            x.softmax(1),
            torch.cat([x, y]),
            x * y + 1,
            x @ w,
            (x - y).mean(1),
            x[:, 0] + 0,
        )

    cases = []
    for _ in range(60):
        n, m, k = (int(v) for v in rng.integers(1, 90, 3))
        how, other = (int(v) for v in rng.integers(0, 6, 2))
        beside = how if rng.integers(2) else 0  # each pair of layouts is one more kernel
        cases.append((laid(n, m, how), laid(n, m, beside), laid(m, k, other)))
    torch.opencl.synchronize()
    found = [found_by(all_of_them, *operands) for operands in cases]
    monkeypatch.setattr(replay, "MOST", 0)
    for result, operands in zip(found, cases, strict=True):
        assert result == found_by(all_of_them, *operands)


def test_an_index_out_of_range_names_the_size_it_was_out_of(fresh: None) -> None:
    for n in (5, 6, 7, 8):
        x = whole(n, 3)
        assert x[places(4, below=n)].shape == (4, 3)
        with pytest.raises(
            IndexError, match=f"index {n} is out of bounds for dimension 0 with size {n}"
        ):
            x[torch.tensor([0, n])].tolist()
            torch.opencl.synchronize()


def test_kinds_are_told_apart(fresh: None) -> None:
    """Calls are of different kinds if a size is 1 in one of them (it broadcasts), if operands share memory in one of
    them, or if numbers that are not sizes differ.
    """
    for n in (5, 6, 7):
        x = whole(n, n)
        np.testing.assert_array_equal((x @ x).cpu().numpy(), x.cpu().numpy() @ x.cpu().numpy())
        y = whole(n, n)
        np.testing.assert_array_equal((x @ y).cpu().numpy(), x.cpu().numpy() @ y.cpu().numpy())
        assert torch.cat([x, x]).shape == (2 * n, n)
        for k in (1, 2, 3):
            np.testing.assert_array_equal(
                x.roll(k, 0).cpu().numpy(), np.roll(x.cpu().numpy(), k, 0)
            )
            assert x.sum(k % 2, keepdim=k > 1).shape == (
                (n,) if k == 1 else (1, n) if k == 2 else (n, 1)
            )


def test_results_have_plain_sizes(fresh: None) -> None:
    for n in (5, 6, 7):
        x = whole(n, 4).softmax(0)
        assert [type(k) for k in (*x.shape, *x.stride(), x.storage_offset(), x.nbytes)] == [int] * 6
        assert type(x._storage.nbytes) is int
        assert type(x._storage.buffer().nbytes) is int


def test_parts_are_written_with_a_launch_each(fresh: None) -> None:
    """A write to a part of a tensor is one launch, whatever the part's sizes, strides and offset, and whichever operands
    of the value are held; two if the value reads the tensor that is written.
    """
    rng = np.random.default_rng(0)
    expected = rng.integers(-4, 5, (9, 11)).astype(np.float32)
    x = torch.tensor(expected) * 1
    rows, held = whole(9, 1), whole(11) * 2
    column, line = rows.cpu().numpy().copy(), held.cpu().numpy().copy()
    torch.opencl.synchronize()
    before, written = STATS.launches, 0
    for k in range(60):
        (a, b), (c, d) = np.sort(rng.integers(0, 9, 2)), np.sort(rng.integers(0, 11, 2))
        b, d, step = b + 1, d + 1, int(rng.integers(1, 3))
        x[a:b:step, c:d] += k
        expected[a:b:step, c:d] += k
        x.t()[c:d, a:b] *= -1
        expected.T[c:d, a:b] *= -1
        x[a, c] = k
        expected[a, c] = k
        x[:, c:d] -= rows
        expected[:, c:d] -= column
        x[b - 1] = x[a] + held
        expected[b - 1] = expected[a] + line
        # The last part is computed, then copied, because it may read the memory it writes.
        written += 6
    assert STATS.launches - before == written
    np.testing.assert_array_equal(x.cpu().numpy(), expected)


def test_a_tensor_copied_onto_itself_is_left(fresh: None) -> None:
    x = torch.zeros(3, 4) * 1
    x.data_ptr()
    before, version = STATS.launches, x._version
    x[1:] = x[1:]
    x.copy_(x.view(3, 4))
    assert (STATS.launches - before, x._version - version) == (0, 2)
    wide = torch.arange(3.0).expand(2, 3)
    wide[:] = wide


def test_what_is_done_with_makes_room_for_what_follows() -> None:
    """A replay takes as many buffers as are needed at once: for a 32nd power, the result and two for the squares."""
    pool = torch.zeros(1)._storage.backend.pool
    for n in (5, 5, 5):
        a = torch.tensor(np.eye(n) * 2)
        before = pool.allocations
        found = torch.linalg.matrix_power(a, 32)
        taken = pool.allocations - before
        assert found.tolist() == (np.eye(n) * 2.0**32).tolist()
    assert taken == 3
