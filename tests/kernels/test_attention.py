"""Attention on the device: both schedules against numpy, gradients of first and second order, masks, groups, launches, errors."""

from __future__ import annotations

import dataclasses
import math
import platform
from functools import partial
from typing import Any

import numpy as np
import pytest
from backends import backend_for
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from support import attended, close, data

import cltensor as ct
from cltensor.autograd import gradcheck, gradgradcheck
from cltensor.codegen import attention as family
from cltensor.codegen.operand import Operand
from cltensor.codegen.products import gemm_amx
from cltensor.layouts import contiguous_strides
from cltensor.nn import functional as F
from cltensor.runtime import STATS, device, get_backend

pytestmark = pytest.mark.usefixtures("divided")

attend = F.scaled_dot_product_attention


def _numpy(*operands: Any, **how: Any) -> np.ndarray:
    return attended(*operands, **how)[0]


def _tensors(*shapes: tuple[int, ...], dtype: Any = None) -> list[Any]:
    return [ct.tensor(data(*s), dtype=dtype or ct.float32, requires_grad=True) for s in shapes]


def _plain(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> Any:
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf) if mask.dtype is ct.bool else s + mask
    if causal:
        s = s.masked_fill(ct.ones(s.shape[-2:], dtype=ct.bool).tril().logical_not(), -math.inf)
    return s.softmax(-1) @ v


CASES = [
    # L, S, E, Ev, causal: inside a tile, past its edges, more and fewer queries than keys
    (5, 7, 8, 8, False),
    (70, 130, 40, 24, False),
    (200, 200, 64, 64, True),
    (150, 60, 20, 20, True),
    (60, 150, 20, 20, True),
]


def test_a_mask_may_lie_by_columns() -> None:
    q, k, v = _tensors((2, 19, 8), (2, 37, 8), (2, 37, 8))
    mask = ct.tensor(data(19, 37) > -0.3)
    mask[:, 0] = True
    found = []
    for seen in (mask, mask.T.contiguous().T, ct.stack([mask, ~mask], 2)[:, :, 0]):
        out = attend(q, k, v, seen)
        found.append([out.detach(), *ct.autograd.grad(out.sum(), (q, k, v))])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            close(a, b.tolist(), 1e-6)


@pytest.mark.parametrize("at", [0, 150, 299])
def test_a_score_far_above_all_others_is_all_there_is(at: int) -> None:
    """A dominant score gives its value alone, whichever tile of keys it is in: the running maximum of the online
    softmax never falls."""
    q, k, v = (ct.tensor(data(1, 300, 8, seed=i)) for i in range(3))
    k[:, at] = q[:, 5] * 1000
    found = attend(q[:, 5:6], k, v)
    close(found, v[:, at : at + 1].tolist(), 1e-5)


@pytest.mark.parametrize("n", [1, 2, 16, 17, 32, 33, 64, 65, 96, 97, 128, 129, 192, 193, 257])
def test_a_causal_mask_is_what_it_says_written_out(n: int) -> None:
    """`is_causal` equals a written-out mask for all remainders of tiles: the last tile may hold one key, which one row
    sees."""
    q, k, v = _tensors((1, n, 4), (1, n, 4), (1, n, 4))
    g = ct.tensor(data(1, n, 4, seed=1))
    written = ct.ones(n, n, dtype=ct.bool).tril()
    found = []
    for out in (attend(q, k, v, is_causal=True), attend(q, k, v, written)):
        found.append([out, *ct.autograd.grad(out, (q, k, v), g)])
    for a, b in zip(*found, strict=True):
        close(a, b.tolist(), 1e-5)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients_match_plain_ops(case: tuple[Any, ...]) -> None:
    length, keys, width, depth, causal = case
    q, k, v = _tensors((2, 3, length, width), (2, 3, keys, width), (2, 3, keys, depth))
    out = attend(q, k, v, is_causal=causal)
    assert out.grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    close(out, _numpy(*(x.tolist() for x in (q, k, v)), causal=causal), 1e-5)
    g = ct.tensor(data(*out.shape))
    found = ct.autograd.grad(out, (q, k, v), g)
    expected = ct.autograd.grad(_plain(q, k, v, causal=causal), (q, k, v), g)
    for a, b in zip(found, expected, strict=True):
        close(a, b.tolist(), 2e-5)


def _operand(backend: Any, x: np.ndarray) -> Any:
    dt = {"b": ct.bool, "f": ct.float32, "e": ct.float16, "d": ct.float64}[
        "b" if x.dtype == bool else x.dtype.char
    ]
    buffer = backend.alloc(x.nbytes)
    backend.write(buffer, 0, np.ascontiguousarray(x))
    return Operand(buffer, dt, x.shape, contiguous_strides(x.shape), 0)


def _array(backend: Any, o: Any) -> np.ndarray:
    item = o.dtype.itemsize
    kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[o.dtype.code]
    raw = backend.read(o.buffer, 0, item * math.prod(o.shape)).view(kind)
    return np.lib.stride_tricks.as_strided(raw, o.shape, [item * s for s in o.strides])


@pytest.mark.parametrize(("schedule", "kind"), [("cpu", "bool"), ("cpu", "float"), ("gpu", "bool")])
def test_both_schedules(schedule: str, kind: str) -> None:
    backend = backend_for(schedule)
    if backend.device.type != ct.get_default_device().type:
        pytest.skip("a private backend of the first device")
    shapes = {"q": (1, 2, 3, 37, 20), "k": (1, 2, 3, 41, 20), "v": (1, 2, 3, 41, 12), "g": (1, 2, 3, 37, 12)}  # fmt: skip
    arrays = {name: data(*shape) for name, shape in shapes.items()}
    op, back = partial(_operand, backend), partial(_array, backend)
    mask = data(37, 41) > -0.5 if kind == "bool" else data(37, 41)
    if kind == "bool":
        mask[3] = False  # a row with all keys masked

    operands = [op(arrays[name]) for name in ("q", "k", "v")]
    wide = op(mask)._replace(shape=(1, 2, 3, 37, 41), strides=(0, 0, 0, 41, 1))
    scale = 1 / math.sqrt(20)
    for causal in (False, True):
        out, lse = family.forward(backend, *operands, wide, causal, scale, schedule=schedule)
        close(back(out), _numpy(arrays["q"], arrays["k"], arrays["v"], mask, causal), 1e-5)
        delta = op((back(out) * arrays["g"]).sum(-1))
        grads = family.backward(
            backend, *operands, wide, op(arrays["g"]), lse, delta, causal, scale, schedule=schedule
        )
        q, k, v = (ct.tensor(arrays[n], requires_grad=True) for n in ("q", "k", "v"))
        m, g = ct.tensor(mask), ct.tensor(arrays["g"])
        if kind == "bool":  # plain ops give NaN for the row with all keys masked
            m[3] = True
            g[..., 3, :] = 0
        with_rows = _plain(q, k, v, m, causal)
        for a, b in zip(grads, ct.autograd.grad(with_rows, (q, k, v), g), strict=True):
            close(back(a), b.tolist(), 2e-5)


LANES = [
    # L, S, E, Ev, type, bytes of local memory, with a mask, too: keys in parts or not, every tile, rows of any
    # alignment, one query or a few
    (70, 600, 64, 64, "f", 48 << 10, True),
    (70, 600, 64, 61, "f", 40 << 10, False),
    (40, 300, 30, 32, "f", 32 << 10, True),
    (40, 140, 128, 100, "f", 48 << 10, False),
    (20, 70, 64, 64, "d", 48 << 10, True),
    (40, 70, 256, 256, "f", 96 << 10, False),
    (33, 90, 64, 64, "e", 64 << 10, True),
    (3, 700, 64, 64, "f", 48 << 10, True),
    (1, 300, 20, 130, "f", 96 << 10, False),
    (2, 130, 128, 7, "d", 80 << 10, False),
]


@pytest.mark.elsewhere
@pytest.mark.parametrize("case", LANES, ids=str)
def test_tiles_of_lanes(case: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    length, keys, width, depth, kind, local, masked = case
    backend = backend_for("gpu")
    if backend.device.type != ct.get_default_device().type:
        pytest.skip("a private backend of the first device")
    monkeypatch.setattr(
        backend,
        "info",
        dataclasses.replace(backend.info, local_mem=local, compute_units=8, max_group=256),
    )
    outer = (1, 2, 2) if length < 10 else (1, 1, 2)  # the longer ones take seconds as it is
    shapes = [(*outer, length, width), (*outer, keys, width), (*outer, keys, depth), (*outer, length, depth)]  # fmt: skip
    q, k, v, g = (data(*s, seed=i).astype(kind) for i, s in enumerate(shapes))
    seen = data(length, keys, seed=9) > 0
    seen[0] = False
    close_to = {"f": 2e-5, "d": 1e-12, "e": 4e-3}[kind]
    for mask, causal in ((None, False), (None, True), (seen, False))[: 2 + masked]:
        there = None
        if mask is not None:
            there = _operand(backend, mask)._replace(
                shape=(*outer, length, keys), strides=(0, 0, 0, keys, 1)
            )
        operands = [_operand(backend, x) for x in (q, k, v)]
        scale = 1 / math.sqrt(width)
        assert family.takes(backend, operands[0].dtype, outer, length, keys, width, depth)
        out, lse = family.forward(backend, *operands, there, causal, scale, schedule="gpu")
        close(_array(backend, out), _numpy(q, k, v, mask, causal), close_to)
        wide = np.float32 if kind == "e" else kind
        delta = (_array(backend, out).astype(wide) * g.astype(wide)).sum(-1)
        known = [_operand(backend, g), lse, _operand(backend, delta)]
        found = family.backward(backend, *operands, there, *known, causal, scale, schedule="gpu")
        exact = [ct.tensor(x.astype(np.float64), requires_grad=True) for x in (q, k, v)]
        plain = g.astype(np.float64)
        written = None if mask is None else ct.tensor(mask)
        if mask is not None:  # plain ops give NaN for the row with all keys masked
            written[0], plain[..., 0, :] = True, 0
        wanted = ct.autograd.grad(_plain(*exact, written, causal), exact, ct.tensor(plain))
        for a, b in zip(found, wanted, strict=True):
            close(_array(backend, a), b.tolist(), 5 * close_to)


@drawn(
    length=st.integers(1, 3) | st.integers(1, 150), keys=st.integers(1, 150), width=st.integers(1, 40),
    kind=st.sampled_from(["", "causal", "bool", "bool turned", "float", "turned"]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_number_of_rows_beside_what_is_none_of_them(
    length: int, keys: int, width: int, kind: str, seed: int
) -> None:
    def inside(a: np.ndarray) -> Any:
        """Return the array as a view into a larger one filled with NaN."""
        whole = np.full((*a.shape[:-2], a.shape[-2] + 3, a.shape[-1] + 5), np.nan, np.float32)
        whole[..., 1:-2, 2:-3] = a
        return ct.tensor(whole)[..., 1:-2, 2:-3]

    q, k, v = (data(2, n, width, seed=seed + i) for i, n in enumerate((length, keys, keys)))
    given: Any = None
    if kind not in ("", "causal"):
        given = (
            data(keys, length, seed=seed).T if kind == "turned" else data(length, keys, seed=seed)
        )
    mask = None if given is None else inside(given.T).mT if kind == "turned" else inside(given)
    if kind.startswith("bool"):
        given = given > -0.5
        given[:, 0] = True
        mask = ct.tensor(np.pad(given, ((0, 0), (0, 9))))[:, :keys]
        mask = mask.T.contiguous().T if kind == "bool turned" else mask
    leaves = [inside(x).detach().requires_grad_() for x in (q, k, v)]
    causal = kind == "causal"
    out = attend(*leaves, attn_mask=mask, is_causal=causal)
    close(out, _numpy(q, k, v, given, causal), 1e-5)
    g = ct.tensor(data(*out.shape, seed=seed + 5))
    plain = [ct.tensor(x, requires_grad=True) for x in (q, k, v)]
    seen = None if given is None else ct.tensor(np.ascontiguousarray(given))
    wanted = ct.autograd.grad(_plain(*plain, seen, causal), plain, g)
    for a, b in zip(ct.autograd.grad(out, leaves, g), wanted, strict=True):
        close(a, b.tolist(), 5e-5)


@pytest.mark.usefixtures("one_by_one")
def test_second_order_masks_and_groups() -> None:
    q, k, v = _tensors((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 2), dtype=ct.float64)
    mask = ct.tensor(data(3, 5), dtype=ct.float64, requires_grad=True)
    assert gradcheck(lambda *x: attend(*x[:3], x[3], enable_gqa=True), (q, k, v, mask))
    assert gradgradcheck(lambda *x: attend(*x, enable_gqa=True), (q, k, v))
    both = attend(q, k, v, enable_gqa=True)
    close(both, _numpy(*(x.tolist() for x in (q, k, v))), 1e-12)


def test_rows_that_see_nothing_are_zero() -> None:
    q, k, v = _tensors((1, 4, 8), (1, 6, 8), (1, 6, 8))
    mask = ct.ones(4, 6, dtype=ct.bool)
    mask[2] = False
    fused = attend(q, k, v, mask)
    plain = attend(q, k, v, mask, dropout_p=1e-9)
    assert fused[0, 2].tolist() == plain[0, 2].tolist() == [0.0] * 8
    for out in (fused, plain):
        grads = ct.autograd.grad(out.sum(), (q, k, v))
        assert all(bool(g.isfinite().all()) for g in grads)
        assert grads[0][0, 2].tolist() == [0.0] * 8


def test_sixteen_bits_accumulate_in_float() -> None:
    q, k, v = _tensors((2, 9, 16), (2, 30, 16), (2, 30, 16), dtype=ct.float16)
    out = attend(q, k, v)
    assert out.dtype is ct.float16
    close(out.float(), _numpy(*(x.tolist() for x in (q, k, v))), 2e-3)
    out.sum().backward()
    assert q.grad.dtype is ct.float16


@pytest.mark.parametrize("dtype", [ct.float32, ct.float64, ct.float16, ct.bfloat16], ids=str)
def test_a_few_queries(dtype: Any, backend: Any) -> None:
    """Token-by-token generation: the number of keys grows, and no kernel is built for a new number."""
    wide = ct.tensor(data(2, 3, 150, 70)).to(dtype)
    exact = wide.double().tolist() if dtype is ct.float64 else wide.float().tolist()
    tolerance = {ct.float64: 1e-12, ct.float32: 1e-5}.get(dtype, 1e-2)
    known = np.asarray(exact)
    before = 0
    kinds = 1 if backend.info.kind == "cpu" else 2  # a GPU divides many keys among groups
    for n, (count, keys) in enumerate(((1, 1), (1, 150), (1, 16), (2, 65), (3, 130))):
        q, k, v = (wide[:, :, n : n + c] for n, c in ((7, count), (0, keys), (0, keys)))
        out = attend(q, k, v)
        assert out.dtype is dtype
        expected = _numpy(known[:, :, 7 : 7 + count], known[:, :, :keys], known[:, :, :keys])
        close(out.double() if dtype is ct.float64 else out.float(), expected, tolerance)
        before = STATS.builds if n < kinds else before
    if kinds == 1 or dtype is not ct.float64:  # wide rows of float64 are plain products on a GPU
        assert STATS.builds == before


def test_no_matrix_of_scores_and_few_launches(backend: Any) -> None:
    q, k, v = _tensors((1, 1, 512, 8), (1, 1, 512, 8), (1, 1, 512, 8))
    attend(q, k, v).sum().backward()
    ct.opencl.synchronize()
    before = STATS.launches
    out = attend(q, k, v)
    ct.opencl.synchronize()
    joined = backend.info.kind != "cpu"  # on a GPU a second launch joins parts of the keys
    assert STATS.launches - before == 1 + joined
    assert out.shape == (1, 1, 512, 8)
    # The result keeps the heads inside the rows, so that joining heads copies nothing.
    x = ct.ones(2, 5, 3, 8).transpose(1, 2)
    assert attend(x, x, x).transpose(1, 2).is_contiguous()


def test_empty_and_scaled() -> None:
    q, k, v = _tensors((2, 0, 8), (2, 3, 8), (2, 3, 8))
    assert attend(q, k, v).shape == (2, 0, 8)
    none = ct.zeros(2, 0, 8)
    assert attend(k, none, none).tolist() == [[[0.0] * 8] * 3] * 2
    close(attend(k, k, v, scale=0.0), v.mean(-2, True).expand(2, 3, 8).tolist(), 1e-6)


def test_errors() -> None:
    q = ct.ones(2, 3, 4, 8)
    cases: list[tuple[Any, str]] = [
        (lambda: attend(q, q.double(), q), "same dtype, but got query.dtype: float key.dtype: double"),
        (lambda: attend(q, q[0, 0, 0], q), "at least 2 dimensional, but got query.dim: 4 key.dim: 1"),
        (lambda: attend(q, q, q, ct.ones(4, 4).int()), "Expected attn_mask dtype to be bool or float"),
        (lambda: attend(q, q, q, dropout_p=1.5), "between 0 and 1, but got 1.5"),
        (lambda: attend(q, q[:, :2], q[:, :2], enable_gqa=True), "must divide the number of heads"),
        (lambda: attend(q, q[..., :7], q), "Expected size for first two dimensions of batch2"),
        (lambda: attend(q.long(), q.long(), q.long()), "expected scalar type Float but found Long"),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(TypeError, match="argument 'key'"):
        attend(q, [1], q)


def test_multihead_module_matches_its_parts() -> None:
    ct.manual_seed(0)
    layer = ct.nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True)
    x, y = ct.randn(5, 2, 16), ct.randn(7, 2, 16)
    padding = ct.zeros(2, 7, dtype=ct.bool)
    padding[1, 4:] = True
    out, weights = layer(x, y, y, key_padding_mask=padding)
    fast, none = layer(x, y, y, key_padding_mask=padding, need_weights=False)
    assert none is None
    assert weights.shape == (2, 5, 9)
    close(weights.sum(-1), np.ones((2, 5)), 1e-5)
    assert weights[1, :, 4:7].abs().max().item() == 0
    close(fast, out.tolist(), 1e-5)
    turned = ct.nn.MultiheadAttention(16, 4, batch_first=True)
    straight = ct.nn.MultiheadAttention(16, 4)
    straight.load_state_dict(turned.state_dict())
    a, b = turned(x, x, x)[0], straight(x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1))[0]
    close(a, b.transpose(0, 1).tolist(), 1e-6)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        ct.nn.MultiheadAttention(10, 3)


def test_transformer_causal_hint_and_mask_agree() -> None:
    ct.manual_seed(0)
    model = ct.nn.Transformer(16, 2, 1, 1, 32, dropout=0.0)
    src, tgt = ct.randn(4, 2, 16), ct.randn(6, 2, 16)
    mask = model.generate_square_subsequent_mask(6)
    found = model(src, tgt, tgt_mask=mask)
    close(model(src, tgt, tgt_mask=mask, tgt_is_causal=True), found.tolist(), 1e-6)
    changed = tgt.clone()
    changed[-1] += 1
    close(model(src, changed, tgt_mask=mask)[:-1], found[:-1].tolist(), 1e-5)
    found.sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_what_the_kernels_take() -> None:
    assert family.takes(backend_for("cpu"), ct.float32, (2,), 3, 3, 8, 8)
    assert not family.takes(backend_for("cpu"), ct.float32, (2,), 0, 3, 8, 8)
    assert not family.takes(backend_for("gpu"), ct.float32, (2,), 3, 3, 4096, 8)


@pytest.mark.parametrize("queries", [1, 16])
def test_weights_too_small_to_be_normal_are_zeros(queries: int) -> None:
    """One key has weight 1, the others e^-90: products with those would be denormal, and take Intel's processors
    fifteen times as long."""
    info = get_backend(device("cpu")).info
    if not info.is_pocl or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("no builtin sets the mode")
    q, k, v = _tensors((1, 1, queries, 16), (1, 1, 32, 16), (1, 1, 32, 16))
    with ct.no_grad():
        for x in (q, k, v):
            x.zero_()
        q[..., 0], k[..., 1:, 0], v[..., 1:, :] = 360, -1, 1e38
    q, k, v = (x.detach().to("cpu").requires_grad_() for x in (q, k, v))
    out = attend(q, k, v)
    assert not out.any()
    out.sum().backward()
    assert (v.grad[..., 0, :] == queries).all()
    assert not v.grad[..., 1:, :].any()
    assert (k.detach() * 1e-39).any()  # the thread's denormal mode is restored


@pytest.mark.elsewhere
@pytest.mark.parametrize("of", ["tiles", "twin"])
def test_products_of_tiles(
    of: str, dev: Any, poisoned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bfloat16 by AMX tiles, or their twin: remainders of rows, keys and widths, masks, layouts, rows with all keys
    masked."""
    backend = get_backend(dev)
    if backend.info.kind != "cpu":
        pytest.skip("tiles are for work-items that are threads")
    if of == "tiles" and not gemm_amx.has_tiles(backend):
        pytest.skip("no tiles on this processor and driver")
    if of == "twin":
        monkeypatch.setattr(gemm_amx, "TWIN", 1)
    for queries, keys, width, depth in ((17, 40, 40, 32), (150, 150, 64, 64), (33, 290, 8, 32)):
        q, k, v = (
            ct.tensor(data(2, 3, n, w, seed=w)).bfloat16()
            for n, w in ((queries, width), (keys, width), (keys, depth))
        )
        seen = data(queries, keys, seed=5) > -0.5
        seen[2] = False
        added = ct.tensor(data(queries, keys, seed=6)).bfloat16()
        exact = [x.float().numpy(force=True) for x in (q, k, v)]
        for mask, causal in ((None, False), (None, True), (ct.tensor(seen), False), (added, False)):
            if causal and queries != keys:
                continue
            there = mask if mask is None or mask is not added else added.float()
            there = there if there is None else there.numpy(force=True)
            expected = _numpy(*exact, there, causal)
            for turned in (False, True):
                given = q.transpose(1, 2).contiguous().transpose(1, 2) if turned else q
                found = attend(given, k, v, attn_mask=mask, is_causal=causal)
                close(found.float().numpy(force=True), expected, 2e-2)
    negative = attend(q, k, v, scale=-0.5).float().numpy(force=True)
    close(negative, _numpy(exact[0] * -0.5 * math.sqrt(width), *exact[1:]), 2e-2)
