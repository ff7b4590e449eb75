"""Kernels of indexing, masking and joining against torch, on both schedules."""

from __future__ import annotations

from typing import Any

import kernel_tools as kt
import numpy as np
import pytest
from backends import backend_for
from support import data, poison

import cltensor as ct
from cltensor import dtypes
from cltensor.codegen.checks import flush_checks
from cltensor.codegen.index import lookup as ix
from cltensor.codegen.index import moves, scatter
from cltensor.codegen.move import copies, join, pad
from cltensor.codegen.operand import Operand
from cltensor.codegen.order import mask
from cltensor.codegen.region import is_gpu

pytestmark = pytest.mark.usefixtures("divided")

torch = pytest.importorskip("torch")
MOVED = ["bool", "int16", "float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", MOVED)
def test_reads_move_every_item_size(be: Any, dtype: str) -> None:
    x = kt.sample((3, 7, 20), getattr(torch, dtype))
    for t in (x, x.transpose(0, 2), x[1:, ::2, 3:])[: 3 if dtype == "float32" else 1]:
        for dim in range(3):
            i = kt.integers(0, t.shape[dim], 9)
            kt.same(
                kt.get(be, ix.index_select(be, kt.put(be, t), dim, kt.put(be, i))),
                t.index_select(dim, i),
            )
        i = kt.integers(0, t.shape[1], (t.shape[0], 4, t.shape[2] - 1)).transpose(0, 0)
        kt.same(kt.get(be, ix.gather(be, kt.put(be, t), 1, kt.put(be, i))), t.gather(1, i))
        i = kt.integers(-t.numel(), t.numel(), (5, 2))
        kt.same(kt.get(be, ix.take(be, kt.put(be, t), kt.put(be, i))), t.take(i))


def test_advanced_reads(be: Any) -> None:
    y = kt.sample((3, 20, 7), torch.float32)
    i, j = torch.broadcast_tensors(kt.integers(-7, 7, (4, 1)), kt.integers(-3, 3, (1, 6)))
    o, pi, pj = kt.put(be, y), kt.put(be, i), kt.put(be, j)
    kt.same(kt.get(be, ix.advanced_get(be, o, [(0, pj), (2, pi)])), y[j, :, i])
    kt.same(kt.get(be, ix.advanced_get(be, o, [(2, pi)])), y[:, :, i])
    kt.same(kt.get(be, ix.advanced_get(be, kt.put(be, y.mT), [(0, pj), (1, pi)])), y.mT[j, i])
    assert ix.advanced_shape(y.shape, [(0, pj), (2, pi)]) == tuple(y[j, :, i].shape)


@pytest.mark.parametrize("accumulate", [False, True])
def test_advanced_writes(be: Any, accumulate: bool) -> None:
    y = kt.sample((3, 20, 7), torch.float32)
    i = kt.integers(-7, 7, (4, 6))
    j = kt.integers(-3, 3, (4, 6), 1)
    if not accumulate:  # which of several duplicates wins is unspecified on a GPU
        i, j = torch.arange(-7, 0).reshape(7, 1).expand(7, 3), torch.arange(3).expand(7, 3)
    v = kt.sample((*i.shape, 20), torch.float32, 2)
    o = kt.put(be, y)
    ix.advanced_set(be, o, [(0, kt.put(be, j)), (2, kt.put(be, i))], kt.put(be, v), accumulate)
    expected = y.clone().index_put_(
        (j[..., None], torch.arange(20), i[..., None]), v, accumulate=accumulate
    )
    kt.same(kt.get(be, o), expected, 1e-5)
    o = kt.put(be, y)
    ix.advanced_set(be, o, [(1, kt.put(be, torch.tensor([0, 3, -1])))], 2.5)
    expected = y.clone()
    expected[:, [0, 3, -1]] = 2.5
    kt.same(kt.get(be, o), expected)


def test_embedding_gradient_is_the_same_every_time(be: Any) -> None:
    i, v = kt.integers(0, 11, 3000), kt.sample((3000, 16), torch.float32)
    runs = []
    for _ in range(2):
        o = kt.put(be, torch.zeros(11, 16))
        ix.advanced_set(be, o, [(0, kt.put(be, i))], kt.put(be, v), accumulate=True)
        runs.append(kt.get(be, o))
    assert torch.equal(*runs)
    kt.same(runs[0], torch.zeros(11, 16).index_add(0, i, v), 1e-3)


def test_the_last_duplicate_wins_on_a_cpu() -> None:
    be = backend_for("cpu")
    i, v = kt.integers(0, 50, 100_000), torch.arange(100_000)
    o = kt.put(be, torch.zeros(50, dtype=torch.int64))
    scatter.scatter(be, o, 0, kt.put(be, i), kt.put(be, v))
    expected = torch.stack([v[i == k].max() for k in range(50)])
    kt.same(kt.get(be, o), expected)


@pytest.mark.parametrize(("size", "count"), [(10, 1000), (200, 50_000)])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
def test_scatter_reduces(be: Any, reduce: str, size: int, count: int) -> None:
    for dtype in (torch.float32, torch.int32):
        for include_self in (True, False):
            z, i = kt.sample(size, dtype), kt.integers(0, size, count)
            s = kt.sample(count, dtype, 1, 0.02).abs() + (1 if reduce == "prod" else 0)
            o = kt.put(be, z)
            scatter.scatter(be, o, 0, kt.put(be, i), kt.put(be, s), reduce, include_self)
            kt.same(
                kt.get(be, o),
                z.clone().scatter_reduce_(0, i, s, reduce, include_self=include_self),
                1e-3,
            )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("count", [64, 128, 129, 5000])
def test_many_contributions_to_few_places(
    be: Any, dtype: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(be, monkeypatch)
    kind = getattr(torch, dtype)
    x, rows = kt.integers(-9, 9, (7, 3)).to(kind), kt.integers(-1, 2, (count, 3)).to(kind)
    one_place, ends = torch.full((count,), 4), (torch.arange(count) > count - 3) * 6
    for index in (one_place, ends, kt.integers(2, 5, (count,)), torch.arange(count) * 3 // count):
        o = kt.put(be, x)
        scatter.index_add(be, o, 0, kt.put(be, index), kt.put(be, rows))
        kt.same(kt.get(be, o), x.double().index_add(0, index, rows.double()).to(kind))
        o, own = kt.put(be, x), index[:, None].expand(-1, 3).contiguous()
        scatter.scatter(be, o, 0, kt.put(be, own), kt.put(be, rows), "amax")
        kt.same(kt.get(be, o), x.scatter_reduce(0, own, rows, "amax"))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16", "float64", "complex64"])
def test_scatter_add_dtypes_and_dims(be: Any, dtype: str) -> None:
    kind = getattr(torch, dtype)
    for dim in (0, 1):
        z, i = kt.sample((6, 9), kind), kt.integers(0, 6, (6, 5))
        s = kt.sample((6, 9), kind, 1)
        o = kt.put(be, z)
        scatter.scatter(be, o, dim, kt.put(be, i), kt.put(be, s), "add")
        kt.same(kt.get(be, o), z.scatter_add(dim, i, s), 5e-2 if kind.itemsize == 2 else 1e-4)


@pytest.mark.parametrize(
    ("dtype", "rows", "count"),
    [
        *(("float32", *shape) for shape in ((5, 33), (7, 64), (3, 256), (2, 300), (1, 2048))),
        *((dtype, *shape) for dtype in ("bfloat16", "int64", "complex64") for shape in ((5, 33), (2, 300))),
        *(("float32", 3, 2049), ("bfloat16", 1, 2048), ("int64", 3, 1025), ("complex64", 3, 1024)),
    ],
)  # fmt: skip
def test_rows_with_indices_of_their_own(
    be: Any, dtype: str, rows: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's work-group sorts indices that fit local memory; sums are in the order of the index."""
    poison(be, monkeypatch)
    made, way = [], moves._combine_in_rows
    monkeypatch.setattr(moves, "_combine_in_rows", lambda *a: made.append(way(*a)) or made[-1])
    kind, size = getattr(torch, dtype), 37
    for k, index in enumerate((kt.integers(0, size, (rows, count)), torch.full((rows, count), 11))):
        z, s = kt.sample((rows, size), kind), kt.sample((rows, count), kind, k)
        if kind.itemsize == 2:  # values for which sums are exact
            z, s = z.round(), kt.integers(-1, 2, (rows, count)).to(kind)
        for dim, (a, i, v) in ((1, (z, index, s)), (0, (z.T, index.T, s.T))):
            o = kt.put(be, a.contiguous())
            scatter.scatter(be, o, dim, kt.put(be, i), kt.put(be, v), "add")
            kt.same(kt.get(be, o), a.scatter_add(dim, i, v), 1e-3)
        if dtype == "float32" and is_gpu(be) and rows > 1 and count <= 2048:
            expected = z.numpy().copy()
            for row in range(rows):
                for place in range(size):
                    met = s.numpy()[row][index[row].numpy() == place]
                    if met.size:
                        expected[row, place] += np.add.accumulate(met)[-1]
            assert (kt.get(be, o).T.numpy() == expected).all()
    one_row = rows == 1  # its contributions are sorted together with others
    few = count <= (2048 if kind.itemsize <= 4 else 1024)
    assert made == ([few] * 4 if is_gpu(be) and not one_row else [])


@pytest.mark.parametrize("reduce", ["prod", "amax", "mean"])
def test_many_rows_with_indices_of_their_own(be: Any, reduce: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Work-groups loop over many rows, in every layout."""
    monkeypatch.setattr(moves, "_GROUPS", 3)
    for shape, dim in (((3, 41, 7), 1), ((41, 5, 3), 0), ((5, 31, 41), 2), ((700, 35), 1)):
        i, s = kt.integers(0, 6, shape), kt.integers(-1, 2, shape).float()
        z = kt.sample([6 if d == dim else n for d, n in enumerate(shape)], torch.float32)
        for include_self in (True, False):
            o = kt.put(be, z)
            scatter.scatter(be, o, dim, kt.put(be, i), kt.put(be, s), reduce, include_self)
            expected = z.clone().scatter_reduce_(dim, i, s, reduce, include_self=include_self)
            kt.same(kt.get(be, o), expected, 1e-5)


def test_a_bad_index_of_a_row_is_named(be: Any) -> None:
    i = kt.integers(0, 9, (3, 70))
    i[2, 68] = 9
    o, s = kt.put(be, torch.zeros(3, 9)), kt.put(be, torch.ones(3, 70))
    with pytest.raises(RuntimeError, match="index 9 is out of bounds for dimension 1 with size 9"):
        scatter.scatter(be, o, 1, kt.put(be, i), s, "add")
        flush_checks(be)


def test_scatter_scalars_and_zero_dims(be: Any) -> None:
    z, i = kt.sample((4, 5), torch.float32), kt.integers(0, 4, (2, 5))
    o = kt.put(be, z)
    scatter.scatter(be, o, 0, kt.put(be, i), 7.5)
    kt.same(kt.get(be, o), z.scatter(0, i, 7.5))
    o = kt.put(be, z)
    scatter.scatter(be, o, 0, kt.put(be, i), 2, "multiply")
    kt.same(kt.get(be, o), z.scatter(0, i, 2.0, reduce="multiply"), 1e-6)
    o = kt.put(be, torch.tensor(3.0))
    scatter.scatter(be, o, 0, kt.put(be, torch.tensor(0)), kt.put(be, torch.tensor(5.0)))
    assert kt.get(be, o) == 5
    assert kt.get(be, ix.gather(be, o, 0, kt.put(be, torch.tensor(0)))) == 5


def test_index_family(be: Any) -> None:
    for dim in range(3):
        z = kt.sample((6, 7, 8), torch.float32)
        i = kt.integers(0, z.shape[dim], 40)
        shape = list(z.shape)
        shape[dim] = 40
        s = kt.sample(shape, torch.float32, 1)
        o = kt.put(be, z)
        scatter.index_add(be, o, dim, kt.put(be, i), kt.put(be, s), alpha=0.5)
        kt.same(kt.get(be, o), z.clone().index_add_(dim, i, s, alpha=0.5), 1e-4)
        o = kt.put(be, z)
        scatter.index_reduce(be, o, dim, kt.put(be, i), kt.put(be, s), "amax")
        kt.same(kt.get(be, o), z.clone().index_reduce_(dim, i, s, "amax"))
        few, part = torch.arange(z.shape[dim]).flip(0)[:5], s.narrow(dim, 0, 5)
        o = kt.put(be, z)
        scatter.index_copy(be, o, dim, kt.put(be, few), kt.put(be, part))
        kt.same(kt.get(be, o), z.clone().index_copy_(dim, few, part))
        o = kt.put(be, z)
        scatter.index_fill(be, o, dim, kt.put(be, few - z.shape[dim]), 2.5)
        kt.same(kt.get(be, o), z.clone().index_fill_(dim, few - z.shape[dim], 2.5))
    z = kt.sample((4, 5), torch.float32).T
    i, s = kt.integers(-20, 20, 6), kt.sample(6, torch.float32)
    o = kt.put(be, z)
    ix.put(be, o, kt.put(be, i), kt.put(be, s), accumulate=True)
    kt.same(kt.get(be, o), z.clone().put_(i, s, accumulate=True), 1e-5)


def _at(*values: int) -> Any:
    return torch.tensor(values)


ERRORS = [
    (lambda x, i: x.gather(0, i), lambda b, x, i: ix.gather(b, x, 0, i), (4,), _at(0, 4)),
    (lambda x, i: x.gather(0, i), lambda b, x, i: ix.gather(b, x, 0, i), (4,), _at(0, -1)),
    (lambda x, i: x.index_select(0, i), lambda b, x, i: ix.index_select(b, x, 0, i), (4,), _at(4)),
    (
        lambda x, i: x.index_select(1, i),
        lambda b, x, i: ix.index_select(b, x, 1, i),
        (3, 4),
        _at(1, -1),
    ),
    (lambda x, i: x.take(i), ix.take, (3, 4), _at(-13)),
    (lambda x, i: x[i], lambda b, x, i: ix.advanced_get(b, x, [(0, i)]), (3, 4), _at(0, 5)),
    (
        lambda x, i: x[i, i],
        lambda b, x, i: ix.advanced_get(b, x, [(0, i), (1, i)]),
        (9, 4),
        _at(0, 7),
    ),
    (
        lambda x, i: x.index_fill_(0, i, 1.0),
        lambda b, x, i: scatter.index_fill(b, x, 0, i, 1.0),
        (3, 4),
        _at(-9),
    ),
    (
        lambda x, i: x.scatter_(0, i, 1.0),
        lambda b, x, i: scatter.scatter(b, x, 0, i, 1.0),
        (4,),
        _at(4),
    ),
    (
        lambda x, i: x.scatter_add_(0, i, torch.ones(2)),
        lambda b, x, i: scatter.scatter(b, x, 0, i, kt.put(b, torch.ones(2)), "add"),
        (4,),
        _at(-1, 2),
    ),
    (
        lambda x, i: x.index_add_(1, i, torch.ones(3, 1)),
        lambda b, x, i: scatter.index_add(b, x, 1, i, kt.put(b, torch.ones(3, 1))),
        (3, 4),
        _at(4),
    ),
    (
        lambda x, i: x.index_copy_(0, i, torch.ones(1, 4)),
        lambda b, x, i: scatter.index_copy(b, x, 0, i, kt.put(b, torch.ones(1, 4))),
        (3, 4),
        _at(-1),
    ),
]


@pytest.mark.parametrize(("oracle", "ours", "shape", "index"), ERRORS)
def test_bad_indices_raise_in_torchs_words(
    be: Any, oracle: Any, ours: Any, shape: Any, index: Any
) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        oracle(torch.zeros(shape), index)
    o = kt.put(be, torch.zeros(shape))
    with pytest.raises(expected.type) as found:
        ours(be, o, kt.put(be, index))
        flush_checks(be)
    assert str(found.value) == str(expected.value).split("\n")[0]
    flush_checks(be)  # an error is reported once


@pytest.mark.parametrize("count", [4, 300, 9000])
def test_a_bad_index_writes_nothing_beside_the_operand(be: Any, count: int) -> None:
    whole = torch.arange(90.0).view(30, 3)
    rows = kt.sample((count, 3), torch.float32)
    writes: list[Any] = [
        lambda o, i, s: ix.advanced_set(be, o, [(0, i)], s),
        lambda o, i, s: ix.advanced_set(be, o, [(0, i)], s, accumulate=True),
        lambda o, i, s: scatter.index_add(be, o, 0, i, s),
        lambda o, i, s: scatter.index_copy(be, o, 0, i, s),
        lambda o, i, s: scatter.scatter(be, o, 0, i._replace(shape=s.shape, strides=(1, 0)), s),
    ]
    for write in writes:
        for at, bad in ((0, 12), (count // 2, 12), (count - 1, -13)):
            index = kt.integers(0, 10, count)
            index[at] = bad
            o = kt.put(be, whole[10:20])
            with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
                write(o, kt.put(be, index), kt.put(be, rows))
                flush_checks(be)
            found = kt.get(be, o._replace(shape=(30, 3), offset=0))
            kt.same(found[:10], whole[:10])
            kt.same(found[20:], whole[20:])


@pytest.mark.parametrize("reduce", ["amax", "amin", "mul"])
def test_nan_wins_where_values_meet(be: Any, reduce: str) -> None:
    x = kt.sample((7, 3), torch.float32)
    src = kt.sample((300, 3), torch.float32, 1)
    index = kt.integers(0, 6, 300)
    x[1, 0], src[5, 1], src[299, 2], src[0] = float("nan"), float("nan"), float("nan"), -0.5
    name = {"mul": "prod"}.get(reduce, reduce)
    for rows in (3, 300):
        o = kt.put(be, x)
        scatter.index_reduce(be, o, 0, kt.put(be, index[:rows]), kt.put(be, src[:rows]), name, True)
        places = index[:rows, None].expand(-1, 3)
        expected = x.scatter_reduce(0, places, src[:rows], name)
        kt.same(kt.get(be, o), expected, 1e-4)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex64"])
def test_scaled_rows_that_are_one_number_each(kind: str) -> None:
    x = ct.tensor(data(5, 67), device=ct.get_default_device()).to(getattr(ct, kind))
    index, column = ct.tensor([4, 0, 4]), ct.tensor(data(3, 1, seed=1)).to(x.dtype)
    wide = column.expand(3, 67)
    found = x.index_add(0, index, wide, alpha=3)
    expected = x.index_add(0, index, wide.clone(), alpha=3)
    assert found.tolist() == expected.tolist()
    assert found.tolist() != x.index_add(0, index, wide).tolist()


def test_truths_added_up_are_one(be: Any) -> None:
    for count in (3, 300):
        o = kt.put(be, torch.zeros(5, dtype=torch.bool))
        index, ones = torch.full((count,), 2), torch.ones(count, dtype=torch.bool)
        scatter.index_add(be, o, 0, kt.put(be, index), kt.put(be, ones))
        assert be.read(o.buffer, 0, 5).tolist() == [0, 0, 1, 0, 0]


def test_one_bad_index_among_many_is_named(be: Any) -> None:
    x = kt.put(be, kt.sample((5, 40), torch.float32))
    for shape, size, read in (
        ((5, 33), 40, lambda i: ix.gather(be, x, 1, i)),
        ((70, 40), 5, lambda i: ix.gather(be, x, 0, i)),
        ((9000,), 5, lambda i: ix.advanced_get(be, x, [(0, i), (1, i)])),
    ):
        for bad in (size, size + 7):
            index = kt.integers(0, 5, shape)
            index.view(-1)[-3] = bad
            with pytest.raises((RuntimeError, IndexError), match=f"index {bad} is out of bounds"):
                read(kt.put(be, index))
                flush_checks(be)


def test_nothing_is_read_of_what_is_empty(be: Any) -> None:
    with pytest.raises(RuntimeError, match="index 0 is out of bounds for dimension 1 with size 0"):
        ix.gather(be, kt.put(be, torch.zeros(3, 0)), 1, kt.put(be, torch.zeros(3, 20, dtype=int)))
        flush_checks(be)


@pytest.mark.parametrize("seed", range(4))
def test_reads_anywhere(be: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(be, monkeypatch)
    rng = np.random.default_rng(seed)
    x = kt.sample(tuple(rng.integers(1, 60, 3)), torch.float32).transpose(0, int(rng.integers(3)))
    shape = tuple(rng.integers(1, 50, 2))
    each = [kt.integers(-n, n, shape, seed + n) for n in x.shape]
    operands = [kt.put(be, i) for i in each]
    o = kt.put(be, x)
    kt.same(kt.get(be, ix.advanced_get(be, o, list(enumerate(operands)))), x[tuple(each)])
    kt.same(kt.get(be, ix.advanced_get(be, o, [(1, operands[1])])), x[:, each[1]])
    for dim in range(3):
        size = [int(rng.integers(1, n + 1)) for n in x.shape]
        size[dim] = int(rng.integers(1, 70))
        index = kt.integers(0, x.shape[dim], size, seed)
        kt.same(kt.get(be, ix.gather(be, o, dim, kt.put(be, index))), x.gather(dim, index))


def selected(be: Any, x: Any, m: Operand) -> Any:
    return kt.get(be, kt.valid(be, *mask.masked_select(be, kt.put(be, x), m)))


def coordinates(be: Any, m: Operand) -> Any:
    return kt.get(be, kt.valid(be, *mask.nonzero(be, m))).T


@pytest.mark.parametrize("n", [1, 33, 20_000])
def test_masks(be: Any, n: int) -> None:
    x = kt.sample((2, n), torch.float32).T
    m = kt.sample((n, 2), torch.float32, 3) > 1
    kt.same(selected(be, x, kt.put(be, m)), x.masked_select(m))
    kt.same(coordinates(be, kt.put(be, m)), m.nonzero())
    z = kt.sample((n, 2), torch.int64, 1, 0.7)
    kt.same(coordinates(be, kt.put(be, z)), z.nonzero())
    s = kt.sample(int(m.sum()) + 1, torch.float32, 4)[1:]
    o = kt.put(be, x)
    mask.masked_scatter(be, o, kt.put(be, m), kt.put(be, s))
    kt.same(kt.get(be, o), x.clone().masked_scatter_(m, s))
    assert coordinates(be, kt.put(be, torch.tensor(3.0))).shape == (1, 0)
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        mask.masked_scatter(
            be, o, kt.put(be, torch.ones(n, 2, dtype=torch.bool)), kt.put(be, torch.ones(1))
        )
        flush_checks(be)


@pytest.mark.parametrize("n", [7, 8, 9, 103])
def test_indices_of_each_element(be: Any, n: int) -> None:
    """A CPU looks up eight indices at a time, contiguous or strided; a bad one among them is reported."""
    x = kt.sample((50, 60, 2), torch.float32)
    j, i = kt.integers(-50, 50, n, 1), kt.integers(-60, 60, n, 2)
    o, apart = kt.put(be, x), torch.stack([i, i], 1)[:, 0]
    pj, narrow = kt.put(be, j), kt.put(be, i.int())
    for source in (x, x[..., 1]):
        for each in (narrow, kt.put(be, apart)):
            found = ix.advanced_get(be, kt.put(be, source), [(0, pj), (1, each)])
            kt.same(kt.get(be, found), source[j, i])
    for place in {0, n // 2, n - 1}:
        bad = i.clone()
        bad[place] = 60
        with pytest.raises(IndexError, match="index 60 is out of bounds for dimension 1 with"):
            ix.advanced_get(be, o, [(0, pj), (1, kt.put(be, bad))])
            flush_checks(be)


@pytest.mark.parametrize("value", [-1, 100])
def test_a_bad_index_along_rows_is_told_wherever_it_is(be: Any, value: int) -> None:
    """Blocks of indices are checked together, while the next row is prefetched; a bad index is found in any place."""
    x, s = kt.sample((3, 100), torch.float32), kt.sample((3, 70), torch.float32, 1)
    o, error = kt.put(be, x), f"index {value} is out of bounds for dimension 1 with size 100"
    for place in ((0, 0), (1, 63), (1, 64), (2, 69)):
        i = kt.integers(0, 100, (3, 70))
        kt.same(kt.get(be, ix.gather(be, o, 1, kt.put(be, i))), x.gather(1, i))
        i[place] = value
        at, add = kt.put(be, i), kt.put(be, s)
        calls = [lambda at=at: ix.gather(be, o, 1, at)]
        if be.info.kind == "cpu":
            calls += [lambda at=at, v=v, how=how: scatter.scattered(be, o.dtype, x.shape, o, at, v, how)
                      for v, how in ((add, "add"), (0.5, None))]  # fmt: skip
        for call in calls:
            with pytest.raises(RuntimeError, match=error):
                call()
                flush_checks(be)


@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "float64", "complex64"])
def test_nonzero_of_every_width(be: Any, dtype: str) -> None:
    """Vectors count in integers of their elements' width, which would overflow in long rows; GPU lanes do not."""
    x = torch.ones(2, 70_000 if be.info.kind == "cpu" else 7_000).to(getattr(torch, dtype))
    x[0, ::7] = 0
    kt.same(coordinates(be, kt.put(be, x)), x.nonzero())
    if dtype == "int8":  # any nonzero byte counts; eight bytes become bits of one number
        x = torch.as_tensor(np.random.default_rng(0).integers(-128, 128, x.shape)).to(torch.int8)
        x *= kt.sample(x.shape, torch.float32) > 0
        kt.same(coordinates(be, kt.put(be, x)), x.nonzero())


def test_nonzero_of_a_number(dev: Any) -> None:
    for value in (0.0, 2.0, False, True):
        x, y = ct.tensor(value, device=dev), torch.tensor(value)
        assert x.nonzero().shape == ct.argwhere(x).shape == y.nonzero().shape
        assert [t.tolist() for t in x.nonzero(as_tuple=True)] == [[0] * bool(value)]
        assert ct.nonzero_static(x, size=2).shape == (2, 0)


@pytest.mark.parametrize(
    ("kept", "launches"), [(0.0, 1), (0.002, 1), (0.02, 1), (0.5, 1), (1.0, 1), (0.02, 2), (0.5, 2)]
)
def test_masks_of_every_density(
    be: Any, kept: float, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For small masks each work-item counts by itself, in one launch; for larger ones a launch counts first."""
    poison(be, monkeypatch)
    if launches == 2:
        monkeypatch.setattr(mask, "is_small", lambda *args: False)
    rng = np.random.default_rng(int(kept * 100))
    for shape in ((1,), (1999,), (3, 5, 777), (5000, 3), (2, 1, 8)):
        flags = torch.as_tensor(rng.random((2, *shape)) < kept)
        for m in (flags[1], flags.movedim(0, -1)[..., 0]):
            x = kt.sample((*shape, 2), torch.float32)[..., 1]
            s = kt.sample(m.numel(), torch.float32, 2)
            operand = kt.put(be, m)
            kt.same(coordinates(be, operand), m.nonzero())
            for y in (x, x.contiguous(), x.double(), x.half(), x.to(torch.int8)):
                kt.same(selected(be, y, operand), y.masked_select(m))
            o, s = kt.put(be, x), s[: int(m.sum())]
            mask.masked_scatter(be, o, operand, kt.put(be, s))
            flush_checks(be)
            kt.same(kt.get(be, o), x.clone().masked_scatter_(m, s))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding_of_every_layout(be: Any, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(be, monkeypatch)
    rng = np.random.default_rng(len(mode))
    ours = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
    more = {"constant_values": 7} if mode == "constant" else {}
    for seed in range(12):
        rank = int(rng.integers(1, 5 if mode in ("constant", "reflect") else 4))
        x = kt.sample(tuple(rng.choice([4, 5, 17, 40], rank)), torch.float32, seed)
        x = x.permute(*rng.permutation(rank)) if seed % 3 else x
        pairs = [tuple(rng.integers(0, 4, 2).tolist()) for _ in range(rank)]
        if seed % 2:
            pairs[0] = (0, 0)
        wanted = np.pad(x.numpy(), pairs, mode=mode, **more)
        kept = []
        for d, n in enumerate(wanted.shape):  # a negative amount crops
            cut = int(rng.integers(0, 3)) if not pairs[d][0] and mode != "wrap" else 0
            pairs[d] = (pairs[d][0] - cut, pairs[d][1])
            kept.append(slice(cut, n))
        found = pad.pad(be, kt.put(be, x), pairs, ours, 7)
        kt.same(kt.get(be, found), torch.as_tensor(wanted[tuple(kept)].copy()))


@pytest.mark.parametrize("n", [1, 5, 1000, 30_000])
def test_counted_repetition(be: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    poison(be, monkeypatch)
    for counts in (
        kt.integers(0, 4, n),
        kt.integers(0, 2, n) * 9,
        torch.zeros(n, dtype=torch.int64),
    ):
        ends = counts.cumsum(0)
        found = join.spread(be, kt.put(be, ends), int(ends[-1]), dtypes.int32)
        kt.same(kt.get(be, found), torch.repeat_interleave(counts.int()))


@pytest.mark.parametrize("dtype", MOVED)
def test_rearrangements(be: Any, dtype: str) -> None:
    a = kt.sample((3, 4, 5), getattr(torch, dtype))
    b = kt.sample((5, 2, 3), getattr(torch, dtype)).transpose(0, 2)
    kt.same(kt.get(be, join.flip(be, kt.put(be, b), [0, 2])), b.flip([0, 2]))
    kt.same(kt.get(be, join.roll(be, kt.put(be, a), [1, -7], [0, 2])), a.roll([1, -7], [0, 2]))


@pytest.mark.parametrize(
    "dt", [d for d in dtypes.ALL if d.name != "complex32"], ids=lambda d: d.name
)
def test_fill(be: Any, dt: Any) -> None:
    kind = getattr(torch, dt.name)
    x = torch.zeros(4, 6, dtype=kind)
    o = kt.put(be, x[:, ::2])
    copies.fill_strided(be, o, 3)
    kt.same(kt.get(be, o), torch.full((4, 3), 3, dtype=kind))
    kt.same(kt.get(be, o._replace(offset=1)), torch.zeros(4, 3, dtype=kind))
