"""cat and its kin, repeats, flips, rolls, triangles, diagonals, grids, padding: against numpy, with gradients and errors."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import LAYOUTS, close, ct, data, kernels_of, laid, store_past_cache

from cltensor.codegen.move import join as kernels
from cltensor.runtime import STATS


@pytest.mark.parametrize("how", LAYOUTS)
def test_cat_and_stack(how: str) -> None:
    t, a = laid(data(3, 4), how)
    b = data(3, 4, seed=1)
    u = ct.tensor(b)
    for dim in (0, 1, -1):
        close(ct.cat([t, u * 2, t], dim), np.concatenate([a, b * 2, a], dim))
        close(ct.stack((t, u), dim), np.stack([a, b], dim))
    close(ct.concat([t, u[:1]]), np.concatenate([a, b[:1]]))
    close(ct.concatenate([t, u], axis=1), np.concatenate([a, b], 1))
    close(ct.hstack([t, u]), np.hstack([a, b]))
    close(ct.vstack([t[0], u[0]]), np.vstack([a[0], b[0]]))
    close(ct.row_stack([t, u]), np.vstack([a, b]))
    close(ct.dstack([t, u]), np.dstack([a, b]))
    close(ct.column_stack([t, u[:, 0]]), np.column_stack([a, b[:, 0]]))


def test_cat_of_empty_tensors_and_dtypes() -> None:
    a = data(2, 3)
    close(ct.cat([ct.zeros(0), ct.tensor(a), ct.zeros(0, 3)]), a)
    assert ct.cat([ct.zeros(0), ct.zeros(0)]).shape == (0,)
    assert ct.cat([ct.tensor([1]), ct.tensor([2.5])]).dtype is ct.float32
    assert ct.cat([ct.tensor([True]), ct.tensor([2], dtype=ct.int8)]).tolist() == [1, 2]
    assert ct.stack([ct.tensor(1), ct.tensor(2)]).tolist() == [1, 2]
    out = ct.zeros(4, 3)
    assert ct.cat([ct.tensor(a), ct.tensor(a)], out=out) is out
    close(out, np.concatenate([a, a]))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("rows", [1, 31, 8193])
def test_many_short_rows_are_joined_in_one_launch(rows: int, dtype: str) -> None:
    dt = getattr(ct, dtype)
    for parts, length in [(2, 1), (3, 1), (4, 2), (8, 3), (2, 4)]:
        arrays = [data(rows + 1, length, seed=n) * 9 for n in range(parts)]
        xs = [ct.tensor(a).to(dt).clone()[1:] for a in arrays]  # dense, with an offset
        plain = [x.tolist() for x in xs]
        ct.opencl.synchronize()
        before = STATS.launches
        joined, stacked = ct.cat(xs, 1), ct.stack(xs, 1)
        assert STATS.launches - before == (2 if rows == 8193 else 2 * parts)
        assert joined.dtype is dt and stacked.shape == (rows, parts, length)
        wanted = [[v for p in plain for v in p[i]] for i in range(rows)]
        assert joined.tolist() == wanted
        assert stacked.reshape(rows, -1).tolist() == wanted


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("rows", [1, 3, 1301])
def test_long_rows_are_joined_in_one_launch(rows: int, dtype: str) -> None:
    """Elements may have any size and rows may start anywhere; work is divided among threads within a row, too."""
    dt = getattr(ct, dtype)
    for widths in [(9000, 64), (64, 9001, 131), (8192, 8192)]:
        arrays = [np.resize(np.rint(data(4999, seed=n) * 9), (rows + 1, n)) for n in widths]
        xs = [ct.tensor(a).to(dt).clone()[1:] for a in arrays]
        ct.opencl.synchronize()
        before = STATS.launches
        joined = ct.cat(xs, 1)
        assert STATS.launches - before == 1
        assert joined.dtype is dt
        wanted = np.concatenate([a[1:] for a in arrays], 1)
        np.testing.assert_array_equal(joined.numpy(force=True), wanted)


def test_cat_computes_pending_operands_in_place() -> None:
    a, b = ct.tensor(data(300, 64)), ct.tensor(data(300, 64, seed=1))  # small ones are run first
    ct.cat([a + 1, b * 2]).tolist()
    before = ct.stats()["launches"]
    joined = ct.cat([a + 1, b * 2])
    assert ct.stats()["launches"] - before <= 2
    close(joined, np.concatenate([data(300, 64) + 1, data(300, 64, seed=1) * 2]))


@pytest.mark.parametrize("how", LAYOUTS)
def test_rearranging(how: str) -> None:
    t, a = laid(data(3, 4), how)
    close(t.repeat(2, 3), np.tile(a, (2, 3)))
    close(t.repeat(2, 1, 2), np.tile(a, (2, 1, 2)))
    close(ct.tile(t, (2,)), np.tile(a, 2))
    close(t.repeat_interleave(2), np.repeat(a, 2))
    close(ct.repeat_interleave(t, 3, dim=1), np.repeat(a, 3, 1))
    close(ct.repeat_interleave(t, ct.tensor([1, 0, 2]), dim=0), np.repeat(a, [1, 0, 2], 0))
    close(t.flip(0), a[::-1])
    close(ct.flip(t, (0, 1)), a[::-1, ::-1])
    close(t.fliplr(), np.fliplr(a))
    close(t.flipud(), np.flipud(a))
    for k in range(-1, 5):
        close(ct.rot90(t, k), np.rot90(a, k))
    close(t.roll(5), np.roll(a, 5))
    close(ct.roll(t, (1, -2), (0, 1)), np.roll(a, (1, -2), (0, 1)))
    assert t.repeat(0, 1).shape == (0, 4)


@pytest.mark.parametrize("how", LAYOUTS)
def test_triangles_and_diagonals(how: str) -> None:
    t, a = laid(data(3, 4), how)
    for k in (-1, 0, 2):
        close(t.tril(k), np.tril(a, k))
        close(ct.triu(t, k), np.triu(a, k))
        close(t.diag(k), np.diag(a, k))
    close(ct.trace(t), np.trace(a), 1e-4)
    close(ct.diagflat(t[:2, :2], 1), np.diagflat(a[:2, :2], 1))


def test_triangles_of_batches_and_indices() -> None:
    a = data(2, 3, 3, dtype="int64")
    close(ct.tensor(a).tril(), np.tril(a))
    close(ct.tensor(a > 0).triu(1), np.triu(a > 0, 1))
    assert ct.tril_indices(3, 4, 1).tolist() == [list(v) for v in np.tril_indices(3, 1, 4)]
    assert ct.triu_indices(3, 4, -1).tolist() == [list(v) for v in np.triu_indices(3, -1, 4)]
    assert ct.tril_indices(0, 3).shape == (2, 0)
    base = ct.ones(4, 4)
    assert base[1:, 1:].tril_() is not None
    want = np.ones((4, 4))
    want[1:, 1:] = np.tril(want[1:, 1:])
    close(base, want)


def test_triangles_of_pending_values_fuse() -> None:
    t = ct.tensor(data(8, 8))
    ((t + 1).tril() * 2).tolist()
    before = ct.stats()["launches"]
    close((t + 1).tril() * 2, np.tril(data(8, 8) + 1) * 2)
    assert ct.stats()["launches"] == before + 1


@pytest.mark.parametrize("shape", [(1, 1), (40, 33), (2, 70, 128), (3, 5, 300)])
def test_triangles_of_what_is_in_memory_are_one_launch(shape: tuple[int, ...]) -> None:
    for dtype in ("float32", "uint8", "int64", "complex128"):
        a = (np.arange(np.prod(shape)).reshape(shape) % 97 + 1).astype(dtype)
        t = ct.tensor(a)
        for k in (-400, -shape[-2], -17, -1, 0, 1, 16, shape[-1], 400):
            before = ct.stats()["launches"]
            low, up = t.tril(k), t.triu(k)
            low._storage.buffer(), up._storage.buffer()
            assert ct.stats()["launches"] == before + 2
            np.testing.assert_array_equal(low.cpu().numpy(), np.tril(a, k))
            np.testing.assert_array_equal(up.cpu().numpy(), np.triu(a, k))


@pytest.mark.parametrize("n", [150_001, 4_300_000])
def test_long_rows_are_rolled_by_all_threads(backend: Any, n: int) -> None:
    a = np.arange(n, dtype=np.float32)
    t = ct.tensor(a)
    ct.opencl.synchronize()
    before = STATS.launches
    rolled = t.roll(140_000)
    ct.opencl.synchronize()
    if backend.info.kind == "cpu":
        assert STATS.launches > before  # kernels: a copy by the driver would use one thread
    np.testing.assert_array_equal(rolled.cpu().numpy(), np.roll(a, 140_000))


def test_large_triangles_go_past_the_cache() -> None:
    a = np.arange(2048 * 2112, dtype=np.float32).reshape(2048, 2112)
    t = ct.tensor(a)
    np.testing.assert_array_equal(t.tril(5).cpu().numpy(), np.tril(a, 5))
    np.testing.assert_array_equal(t.triu(-7).cpu().numpy(), np.triu(a, -7))
    if ct.opencl.get_device_properties(t.device).host_shared:
        assert [name.endswith("_streamed") for name in kernels_of(lambda: t.tril(5))] == [True]


def test_diagonals() -> None:
    a = data(2, 3)
    want = np.zeros((2, 4, 4), np.float32)
    for b, i in np.ndindex(2, 3):
        want[b, i, i + 1] = a[b, i]
    close(ct.diag_embed(ct.tensor(a), 1), want)
    close(ct.diag_embed(ct.tensor(a), 1, 0, 2), want.transpose(1, 0, 2))
    close(ct.diag(ct.tensor(a[0]), -1), np.diag(a[0], -1))
    block = np.zeros((4, 6))
    block[:2, :3], block[2:3, 3:5], block[3, 5] = a, a[0, :2], 7
    close(ct.block_diag(ct.tensor(a), ct.tensor(a[0, :2]), ct.tensor(7.0)), block)


def test_grids() -> None:
    a, b = data(3), data(2, seed=1)
    for indexing in ("ij", "xy"):
        for got, want in zip(
            ct.meshgrid(ct.tensor(a), ct.tensor(b), indexing=indexing),
            np.meshgrid(a, b, indexing=indexing),
            strict=True,
        ):
            close(got, want)
    with pytest.warns(UserWarning, match="required to pass the indexing argument"):
        ct.meshgrid(ct.arange(2), ct.arange(2))
    assert ct.cartesian_prod(ct.tensor([1, 2]), ct.tensor([3, 4])).tolist() == [
        [1, 3],
        [1, 4],
        [2, 3],
        [2, 4],
    ]
    for r, again in ((2, False), (3, False), (2, True), (1, False)):
        make = itertools.combinations_with_replacement if again else itertools.combinations
        assert ct.combinations(ct.arange(4), r, again).tolist() == [
            list(c) for c in make(range(4), r)
        ]


def test_at_least_and_splits() -> None:
    z, v, m = ct.tensor(1.0), ct.arange(3), ct.arange(12).reshape(3, 4)
    assert [t.shape for t in ct.atleast_1d(z, v, m)] == [(1,), (3,), (3, 4)]
    assert [t.shape for t in ct.atleast_2d([z, v, m])] == [(1, 1), (1, 3), (3, 4)]
    assert [t.shape for t in ct.atleast_3d(z, v, m)] == [(1, 1, 1), (1, 3, 1), (3, 4, 1)]
    assert [t.tolist() for t in m.hsplit(2)] == [
        t.tolist() for t in np.hsplit(np.arange(12).reshape(3, 4), 2)
    ]
    assert [t.shape for t in ct.vsplit(m, (1,))] == [(1, 4), (2, 4)]
    assert [t.shape for t in ct.dsplit(m.reshape(1, 3, 4), 2)] == [(1, 3, 2)] * 2


def test_padding() -> None:
    from cltensor.ops.nn.padding import constant_pad as pad

    a = data(3, 4)
    close(pad(ct.tensor(a), (1, 2), 5.0), np.pad(a, ((0, 0), (1, 2)), constant_values=5))
    close(pad(ct.tensor(a).t(), (1, -1, -1, 2)), np.pad(a.T[1:, :-1], ((0, 2), (1, 0))))
    close(pad(ct.zeros(0, 2), (1, 1, 1, 0), 3), np.full((1, 4), 3))


GRADIENTS: dict[str, Callable[..., Any]] = {
    "cat": lambda x, s: ct.cat([x, s, x[:, :1]], 1),
    "stack": lambda x, s: ct.stack([x, s], 1),
    "repeat": lambda x, s: x.repeat(2, 1, 2) * s[0].repeat(2),
    "flip": lambda x, s: x.flip(0, 1) * s,
    "rot90": lambda x, s: x.rot90() * s.rot90(3),
    "roll": lambda x, s: x.roll((1, -2), (0, 1)) * s.roll(1),
    "tril": lambda x, s: x.tril() * s.triu(-1),
    "diag": lambda x, s: x.diag(1) * s[0].diag()[0, :3],
    "diag_embed": lambda x, s: ct.diag_embed(x, 1)[:, :4, 1:] * s[0],
    "trace": lambda x, s: x.trace() * s,
    "block_diag": lambda x, s: ct.block_diag(x, s[0], s),
    "combinations": lambda x, s: ct.combinations(x[0]),
    "pad": lambda x, s: ct.constant_pad_nd(x, (1, -1, 2, 0), 1.5),
    "meshgrid": lambda x, s: ct.meshgrid(x[0], s[1], indexing="xy")[0] * s[0],
    "tril_": lambda x, s: (x * 1).tril_() * s,
}


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    x = ct.tensor(data(3, 4, dtype="float64"), requires_grad=True)
    s = ct.tensor(data(3, 4, seed=1, dtype="float64"), requires_grad=True)
    fn = GRADIENTS[name]
    if name in ("combinations", "pad"):
        assert ct.autograd.gradcheck(lambda x: fn(x, s), (x,))
    else:
        assert ct.autograd.gradcheck(fn, (x, s))


def test_grad_nodes() -> None:
    x = ct.tensor(data(3, 4), requires_grad=True)
    for got, name in (
        (ct.cat([x, x]), "Cat"), (ct.stack([x, x]), "Stack"), (x.repeat(2, 1), "Repeat"), (x.flip(0), "Flip"), (x.roll(1), "Roll"),
        (x.tril(), "Tril"), (x.triu(), "Triu"), (x.trace(), "Trace"), (x[0].diag(), "DiagEmbed"), (x.rot90(), "Rot90"),
    ):  # fmt: skip
        assert got.grad_fn.name() == name + "Backward0"


ERRORS = (
    ("ct.cat([])", ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    ("ct.cat([t, t[:, :2]])", RuntimeError, "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 2 for tensor number 1 in the list."),
    ("ct.cat([t, t[0]])", RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
    ("ct.cat([z, z])", RuntimeError, "zero-dimensional tensor (at position 0) cannot be concatenated"),
    ("ct.cat([t, 5])", TypeError, "expected Tensor as element 1 in argument 0, but got int"),
    ("ct.cat([t], 2)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    ("ct.stack([t, t[0]])", RuntimeError, "stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [4] at entry 1"),
    ("ct.stack([])", RuntimeError, "stack expects a non-empty TensorList"),
    ("t.repeat(2)", RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"),
    ("t.flip(0, 0)", RuntimeError, "dim 0 appears multiple times in the list of dims"),
    ("t.roll((1, 2), 0)", RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
    ("t[0].tril()", RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    ("z.diag()", RuntimeError, "diag(): Supports 1D or 2D tensors. Got 0D"),
    ("t.hsplit(3)", RuntimeError, "torch.hsplit attempted to split along dimension 1, but the size of the dimension 4 is not divisible by the split_size 3!"),
    ("ct.repeat_interleave(t, ct.tensor([1, 0]), dim=0)", RuntimeError, "repeats must have the same size as input along dim, but got repeats.size(0) = 2 and input.size(0) = 3"),
)  # fmt: skip


@pytest.mark.parametrize(("code", "kind", "text"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(code: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found:
        eval(code, {"t": ct.tensor(data(3, 4)), "z": ct.tensor(1.0), "ct": ct})
    assert str(found.value).split("\n")[0] == text


def test_many_small_pending_parts_are_run_first_and_large_ones_into_their_place() -> None:
    for size, launches in ((10, 16), (20_000, 8)):
        base = [ct.full((size,), float(i)) for i in range(8)]
        ct.opencl.synchronize()
        for join in (ct.stack, ct.cat):
            join([b + 1 for b in base])
            before = STATS.launches
            parts = [b + 1 for b in base]
            found = join(parts)
            assert STATS.launches - before == launches
            assert found.reshape(8, size)[:, -1].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("dtype", "streamed"),
    [("float32", False), ("float32", True), ("int64", True), ("complex64", False)],
)
def test_rows_side_by_side_are_one_launch(
    dtype: str, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if streamed:
        store_past_cache(monkeypatch)
    rng, backend = np.random.default_rng(0), ct.zeros(1)._storage.backend
    for widths in ((70, 300), (16, 17, 301), (64, 64, 64, 64), (33, 33)):
        parts = [(rng.random((150, n)) * 100).astype(dtype) for n in widths]
        tensors = [ct.tensor(x) for x in parts]
        ct.opencl.synchronize()
        before = ct.stats().launches
        got = ct.cat(tensors, 1)
        if backend.info.kind == "cpu":
            assert ct.stats().launches - before == 1
        np.testing.assert_array_equal(got.cpu().numpy(), np.concatenate(parts, 1))
    images = [ct.tensor(data(3, n, 20, 37)) for n in (4, 2)]
    want = np.concatenate([x.cpu().numpy() for x in images], 1)
    np.testing.assert_array_equal(ct.cat(images, 1).cpu().numpy(), want)
    same = [ct.tensor(data(40, 33, 16, seed=k)) for k in range(3)]
    want = np.stack([x.cpu().numpy() for x in same], 1)
    np.testing.assert_array_equal(ct.stack(same, 1).cpu().numpy(), want)


@pytest.mark.elsewhere
@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "int64"])
@pytest.mark.parametrize(("units", "each"), [(1 << 20, 16), (1, 3), (1, 16)])
def test_rows_side_by_side_are_one_launch_on_a_gpu(
    dtype: str, units: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are copied in units of at most 16 bytes; a lane copies its unit of one row, or of several."""
    monkeypatch.setattr(kernels, "is_gpu", lambda _: True)
    monkeypatch.setattr(kernels, "_GROUPS", 1)
    monkeypatch.setattr(kernels, "_EACH", each)
    monkeypatch.setattr(kernels, "GRAIN", 1)
    rng, backend = np.random.default_rng(0), ct.zeros(1)._storage.backend
    monkeypatch.setattr(backend, "info", dataclasses.replace(backend.info, compute_units=units))
    for rows, widths in ((37, (80, 304)), (9, (40, 33, 301, 1000)), (1, (64, 640)), (6, (1, 130, 99))):  # fmt: skip
        parts = [(rng.random((rows, n)) * 100).astype(dtype) for n in widths]
        tensors = [ct.tensor(x) for x in parts]
        ct.opencl.synchronize()
        before = ct.stats().launches
        got = ct.cat(tensors, 1)
        assert ct.stats().launches - before == 1
        np.testing.assert_array_equal(got.cpu().numpy(), np.concatenate(parts, 1))
        got = ct.cat([x[:, 3:] if x.shape[1] > 200 else x for x in tensors], 1)
        cut = [x[:, 3:] if x.shape[1] > 200 else x for x in parts]
        np.testing.assert_array_equal(got.cpu().numpy(), np.concatenate(cut, 1))
        np.testing.assert_array_equal(ct.cat(tensors[:1] * 3, 0).cpu().numpy(), np.concatenate(parts[:1] * 3, 0))  # fmt: skip


def test_lists_of_many_are_told_apart() -> None:
    """Long lists are examined attribute by attribute in later calls. Lists are told apart by shapes, dtypes, offsets,
    and by which of their entries are the same tensor.
    """
    base = data(40, 3)
    table, whole = ct.tensor(base), [ct.tensor(base[i]) for i in range(12)]
    rows = [table[i] for i in range(40)]
    lists = [
        whole,
        rows[:12],
        rows[5:17],
        [rows[0]] * 12,
        [whole[i // 2] for i in range(12)],
        [whole[i % 6] for i in range(12)],
        [x[: 1 + i % 3] for i, x in enumerate(whole)],
        [x.flip(0) if i % 2 else x for i, x in enumerate(whole)],
        [x * 2 for x in whole],
        [table[i::13, 1][:3] for i in range(12)],
        [x.to(ct.float64) if i == 7 else x for i, x in enumerate(whole)],
    ]
    for _ in range(3):
        for xs in lists:
            arrays = [x.cpu().numpy() for x in [y.clone() for y in xs]]
            close(ct.cat(xs), np.concatenate(arrays))
            if len({a.shape for a in arrays}) == 1:
                close(ct.stack(xs, 1), np.stack(arrays, 1))
