"""Attention within sequences of different lengths: both schedules and the matrix units against attention of each alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from backends import backend_for
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from support import close, data
from support import one_by_one as unfused

import cltensor as ct
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen import attention as family
from cltensor.codegen.attention import units
from cltensor.codegen.attention.asked import Ragged
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import gemm_amx
from cltensor.nn import functional as F
from cltensor.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from cltensor.runtime import STATS

from .test_gemm import get, put
from .test_gemm_mma import with_units

__all__ = ["with_units"]

pytestmark = pytest.mark.usefixtures("divided")


def edges(lengths: Any) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def seen(queries: int, keys: int, window: tuple[int, int]) -> np.ndarray:
    """Return which keys each query sees: the last query is aligned with the last key."""
    away = np.arange(keys)[None] - (np.arange(queries)[:, None] + keys - queries)
    left, right = (1 << 30 if w < 0 else w for w in window)
    return (away >= -left) & (away <= right)


def one_by_one(q: Any, k: Any, v: Any, lengths: Any, keys: Any, window: tuple[int, int]) -> Any:
    """Return the attention of each sequence alone, (T, H, Ev), by plain operations in the operands' dtype."""
    found = []
    for i, (n, m) in enumerate(zip(lengths, keys, strict=True)):
        a, b = edges(lengths)[i], edges(keys)[i]
        qi, ki, vi = (x[s : s + c].transpose(0, 1) for x, s, c in ((q, a, n), (k, b, m), (v, b, m)))
        ki, vi = (x.repeat_interleave(q.shape[1] // k.shape[1], 0) for x in (ki, vi))
        if not m:
            found.append(q.new_zeros(n, q.shape[1], v.shape[2]))
            continue
        hidden = ct.tensor(~seen(n, m, window), device=q.device)
        scores = (qi @ ki.mT / math.sqrt(q.shape[2])).masked_fill(hidden, -math.inf)
        blind = hidden.all(-1, True)
        weights = scores.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0)
        found.append((weights @ vi).transpose(0, 1))
    # What no query sees has gradients too: zeros.
    return ct.cat(found) + 0 * (q.sum() + k.sum() + v.sum())


def operands(
    lengths: Any, keys: Any, heads: tuple[int, int], width: int, depth: int, dtype: Any = ct.float32
) -> tuple[list[Any], list[Any]]:
    """Return query, key and value with gradients, and the int32 offsets of queries and keys."""
    shapes = (
        (sum(lengths), heads[0], width),
        (sum(keys), heads[1], width),
        (sum(keys), heads[1], depth),
    )
    made = [ct.tensor(data(*s, seed=i)).to(dtype).requires_grad_() for i, s in enumerate(shapes)]
    return made, [ct.tensor(edges(lengths)), ct.tensor(edges(keys))]


WINDOWS = [(-1, -1), (-1, 0), (7, 0), (3, 5), (20, -1), (-1, 4)]


@drawn(
    lengths=st.lists(st.tuples(st.integers(0, 3) | st.integers(0, 150), st.integers(0, 2) | st.integers(0, 150)), min_size=1, max_size=5),
    heads=st.sampled_from([(1, 1), (2, 2), (4, 2)]), width=st.integers(1, 40), window=st.sampled_from(WINDOWS), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=25, deadline=None, derandomize=True)
def test_any_lengths(
    lengths: list[tuple[int, int]], heads: Any, width: int, window: tuple[int, int], seed: int
) -> None:
    queries, keys = zip(*lengths, strict=True)
    (q, k, v), (at, beside) = operands(queries, keys, heads, width, width + seed % 3)
    out = varlen_attn(
        q, k, v, at, beside, max(queries), max(keys), window_size=window, enable_gqa=True
    )
    g = ct.tensor(data(*out.shape, seed=seed))
    with unfused():
        expected = one_by_one(q, k, v, queries, keys, window)
        wanted = ct.autograd.grad(expected, (q, k, v), g, materialize_grads=True)
    close(out, expected.detach().numpy(), 1e-5)
    for a, b in zip(ct.autograd.grad(out, (q, k, v), g), wanted, strict=True):
        close(a, b.numpy(), 5e-5)


CASES = [
    # queries, keys, heads, width, depth, window: empty and single rows, more tiles than one, aligned and not
    ([5, 0, 37, 1, 90], [7, 3, 37, 0, 60], (2, 2), 16, 16, (-1, -1)),
    ([5, 0, 37, 1, 90], [7, 3, 37, 0, 60], (2, 2), 16, 12, (-1, 0)),
    ([130, 3], [200, 70], (2, 1), 20, 20, (9, 0)),
    ([70, 64], [64, 70], (4, 2), 64, 64, (30, 40)),
    ([70, 20], [20, 90], (1, 1), 32, 32, (70, -1)),
    ([1, 2, 1], [30, 200, 0], (4, 2), 20, 12, (-1, -1)),
    ([1, 1], [130, 20], (2, 2), 16, 16, (40, 0)),
]


def _by_kernels(
    backend: Any, case: Any, dt: Any, schedule: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of what the family computes and what is expected: output, log-sum-exp, gradients."""
    queries, keys, (heads, shared), width, depth, window = case
    total, beside, count = sum(queries), sum(keys), len(queries)
    shapes = ((total, heads, width), (beside, shared, width), (beside, shared, depth), (total, heads, depth))  # fmt: skip
    placed = [put(backend, data(*s, seed=i), dt) for i, s in enumerate(shapes)]
    exact = [ct.tensor(get(backend, x).astype(np.float64), requires_grad=True) for x in placed]

    def sequences(op: Operand) -> Operand:
        groups = heads // shared
        (rows, own, cols) = op.shape
        inner = (groups * cols, cols) if own == heads else (cols, 0)
        return op._replace(
            shape=(count, shared, groups, rows, cols), strides=(0, *inner, own * cols, 1)
        )

    def rows(op: Operand) -> Operand:
        groups = heads // shared
        return op._replace(
            shape=(count, shared, groups, total), strides=(0, groups * total, total, 1)
        )

    q, k, v, g = (sequences(x) for x in placed)
    at = [put(backend, edges(n), ct.int32) for n in (queries, keys)]
    ragged = Ragged(*at, None, max(queries), max(keys), *window)
    wide = ct.float64 if dt is ct.float64 else ct.float32
    kind = np.float64 if dt is ct.float64 else np.float32
    out = put(backend, np.zeros(shapes[3], kind), dt)
    lse = put(backend, np.zeros((heads, total), kind), wide)
    scale = 1 / math.sqrt(width)
    family.forward_ragged(backend, q, k, v, ragged, sequences(out), lse, scale, schedule=schedule)
    with unfused():
        expected = one_by_one(*exact[:3], queries, keys, window)
        slopes = ct.autograd.grad(expected, exact[:3], exact[3].detach())
    delta = (get(backend, out).astype(kind) * get(backend, placed[3]).astype(kind)).sum(-1).T
    known = {
        "g": g,
        "lse": rows(lse),
        "delta": rows(put(backend, np.ascontiguousarray(delta), wide)),
    }
    made = [put(backend, np.zeros((n, heads, c), kind), wide) for n, c in ((total, width), (beside, width), (beside, depth))]  # fmt: skip
    family.backward_ragged(
        backend, q, k, v, ragged, known, tuple(sequences(x) for x in made), scale, schedule=schedule
    )
    pairs = [(get(backend, out), expected.detach().numpy())]
    for x, wanted in zip(made, slopes, strict=True):
        found = get(backend, x)
        if wanted.shape != found.shape:
            found = found.reshape(found.shape[0], shared, -1, found.shape[2]).sum(2)
        pairs.append((found, wanted.numpy()))
    return pairs


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("schedule", "dt"), [("cpu", ct.float32), ("gpu", ct.float32)], ids=str)
def test_both_schedules(schedule: str, dt: Any, case: Any) -> None:
    backend = backend_for(schedule)
    if backend.device.type != ct.get_default_device().type:
        pytest.skip("a private backend of the first device")
    for found, wanted in _by_kernels(backend, case, dt, schedule):
        np.testing.assert_allclose(found, wanted, atol=2e-5, rtol=0)


@pytest.mark.elsewhere
@pytest.mark.parametrize("case", CASES[1:3], ids=str)
def test_matrix_units(with_units: Any, case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    run = units._run
    monkeypatch.setattr(units, "_run", lambda *args: (used.append(args[1]), run(*args)))
    (found, wanted), *slopes = _by_kernels(with_units, case, ct.bfloat16, "gpu")
    np.testing.assert_allclose(found, wanted, atol=2.0**-6, rtol=0)
    for a, b in slopes:
        np.testing.assert_allclose(a, b, atol=2.0**-5 * max(1.0, np.abs(b).max()), rtol=0)
    assert used == ["forward", "by_query", "by_keys"]


@pytest.mark.parametrize("case", [CASES[1], CASES[3], CASES[4]], ids=str)
def test_tiles_of_bfloat16(case: Any, dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of AMX tiles in plain OpenCL C computes ragged batches too."""
    backend = backend_for("cpu")
    if backend.device.type != ct.get_default_device().type:
        pytest.skip("a private backend of the first device")
    monkeypatch.setattr(gemm_amx, "TWIN", 1)
    case = (*case[:4], 32, case[5])
    (found, wanted), *_ = _by_kernels(backend, case, ct.bfloat16, "cpu")
    np.testing.assert_allclose(found, wanted, atol=2.0**-6, rtol=0)


@pytest.mark.usefixtures("one_by_one")
def test_gradients_of_first_and_second_order() -> None:
    (q, k, v), (at, beside) = operands([2, 0, 3], [3, 1, 2], (2, 1), 3, 2, ct.float64)

    def attend(*x: Any) -> Any:
        return varlen_attn(*x, at, beside, 3, 3, window_size=(-1, 0), enable_gqa=True)

    assert gradcheck(attend, (q, k, v))
    assert gradgradcheck(attend, (q, k, v))


def test_one_launch_computes_all_sequences() -> None:
    """Besides the launches that fill the results with zeros; other lengths build no other kernel."""
    counts = []
    for n in ([3, 50, 20], [3, 50, 20], [60, 1, 20, 7, 8, 9]):
        (q, k, v), (at, _) = operands(n, n, (2, 2), 16, 16)
        ct.opencl.synchronize()
        before, built = STATS.launches, STATS.builds
        varlen_attn(q.detach(), k.detach(), v.detach(), at, at, max(n), max(n))
        ct.opencl.synchronize()
        counts.append((STATS.launches - before, STATS.builds - built))
    assert counts[1] == counts[2] == (counts[0][0], 0)
    assert counts[0][0] <= 3


def test_memory_does_not_grow_with_the_square() -> None:
    n = 4000
    (q, k, v), (at, _) = operands([n], [n], (1, 1), 4, 4)
    before = STATS.bytes_moved
    out = varlen_attn(q, k, v, at, at, n, n, window_size=(8, 0))
    assert out.shape == (n, 1, 4)
    assert STATS.bytes_moved - before < n * n * 4
    close(out[:9, 0], one_by_one(q[:9], k[:9], v[:9], [9], [9], (-1, 0))[:, 0].tolist(), 1e-5)


def test_sums_and_rows_outside() -> None:
    """Rows before, behind and beyond `max_q` belong to no sequence: zero, with zero gradients."""
    q, k, v = (ct.tensor(data(9, 2, 4, seed=i), requires_grad=True) for i in range(3))
    at = ct.tensor([2, 4, 8], dtype=ct.int32)
    out, lse = varlen_attn(q, k, v, at, at, 3, 3, return_aux=AuxRequest(lse=True))
    assert lse.shape == (2, 9)
    for first, n in ((2, 2), (4, 3)):
        part = slice(first, first + n)
        close(out[part], one_by_one(q[part], k[part], v[part], [n], [n], (-1, -1)).tolist(), 1e-5)
        scores = q[part].transpose(0, 1) @ k[part].transpose(0, 1).mT / 2
        close(lse[:, part], scores.logsumexp(-1).tolist(), 1e-5)
    slopes = ct.autograd.grad(out.sum(), (q, k, v))
    for x in (out, *slopes):
        assert not x[[0, 1, 7, 8]].any()
    assert all(x[[2, 3, 4]].any() for x in (out, slopes[2]))


def test_offsets_beyond_the_operands_read_nothing_there() -> None:
    q = ct.tensor(data(4, 1, 4))
    out = varlen_attn(
        q,
        q,
        q,
        ct.tensor([0, 3, 900], dtype=ct.int32),
        ct.tensor([0, -7, 900], dtype=ct.int32),
        50,
        50,
    )
    assert not out[:3].any()
    close(out[3:], one_by_one(q[3:], q, q, [1], [4], (-1, -1)).tolist(), 1e-5)


def test_keys_in_use_and_pages() -> None:
    q, k, v = (ct.tensor(data(n, 2, 8, seed=i)) for i, n in enumerate((3, 12, 12)))
    at, beside = ct.tensor([0, 1, 3], dtype=ct.int32), ct.tensor([0, 6, 12], dtype=ct.int32)
    used = ct.tensor([4, 5], dtype=ct.int32)
    out = varlen_attn(q, k, v, at, beside, 2, 6, seqused_k=used)
    rows = [*range(4), *range(6, 11)]
    expected = one_by_one(q, k[rows], v[rows], [1, 2], [4, 5], (-1, -1))
    close(out, expected.detach().numpy(), 1e-5)
    # The same keys in pages of two, in another order.
    order = [3, 0, 5, 1, 4, 2]
    pages = [
        ct.tensor(np.asarray(x.tolist(), np.float32).reshape(6, 2, 2, 8)[np.argsort(order)])
        for x in (k, v)
    ]
    table = ct.tensor([order[:3], order[3:]], dtype=ct.int32)
    for edge in (None, beside):
        paged = varlen_attn(q, *pages, at, edge, 2, 6, seqused_k=used, block_table=table)
        assert paged.tolist() == out.tolist()
    into = ct.empty_like(q)
    assert varlen_attn_out(into, q, k, v, at, beside, 2, 6, seqused_k=used) is into
    assert into.tolist() == out.tolist()


def test_a_batch_of_equal_lengths_is_plain_attention() -> None:
    x = ct.tensor(data(3, 40, 2, 16))
    at = ct.tensor([0, 40, 80, 120], dtype=ct.int32)
    out = varlen_attn(*[x.flatten(0, 1)] * 3, at, at, 40, 40, window_size=(-1, 0))
    heads = x.transpose(1, 2)
    plain = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    assert out.tolist() == plain.transpose(1, 2).flatten(0, 1).tolist()


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"key": ct.ones(4, 1, 8), "value": ct.ones(4, 1, 8)}, ValueError, "same number of heads but got Hq=2 and Hkv=1"),
        ({"query": ct.ones(4, 3, 8), "enable_gqa": True}, ValueError, "multiple of kv heads for GQA but got Hq=3 and Hkv=2"),
        ({"window_size": (1, 2, 3)}, ValueError, "window_size must have length 2, got 3"),
        ({"cu_seq_q": ct.tensor([0, 4])}, RuntimeError, "cu_seq_q must have dtype int32, but got torch.int64"),
        ({"cu_seq_k": ct.tensor([0, 1, 4], dtype=ct.int32)}, RuntimeError, "one element more than there are sequences"),
        ({"value": ct.ones(4, 2, 8).half()}, RuntimeError, "query, key, and value must have the same dtype"),
        ({"key": ct.ones(4, 2, 7)}, RuntimeError, "sizes do not fit"),
        ({"query": ct.ones(1, 4, 2, 8)}, RuntimeError, "query must have shape"),
        ({"seqused_k": ct.tensor([3], dtype=ct.int32), "query": ct.ones(4, 2, 8, requires_grad=True)}, RuntimeError, "seqused_k is an inference-only parameter"),
    ],
)  # fmt: skip
def test_what_does_not_fit(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    at = ct.tensor([0, 4], dtype=ct.int32)
    named = {name: ct.ones(4, 2, 8) for name in ("query", "key", "value")}
    named |= {"cu_seq_q": at, "cu_seq_k": at, "max_q": 4, "max_k": 4}
    if change.get("query") is not None and change["query"].ndim == 4:
        kind = (kind, ValueError)  # type: ignore[assignment]
        change = {**change, "enable_gqa": True}
    with pytest.raises(kind, match=text):
        varlen_attn(**{**named, **change})
