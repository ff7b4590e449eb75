"""Subscripts, gathering and scattering: values against numpy on all layouts, gradients, errors, writes seen through views."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import LAYOUTS, close, ct, data, laid

from cltensor.codegen.index import collect, moves

M = np.array([[True, False, True, False], [False, False, True, True], [True, True, False, False]])
SUBSCRIPTS: dict[str, Any] = {
    "int": 1,
    "negative": -1,
    "two": (0, 2),
    "slice": slice(1, None),
    "steps": (slice(None, None, 2), slice(0, 3, 2)),
    "empty slice": slice(2, 1),
    "none": (None, slice(None), None, 1),
    "ellipsis": (..., 2),
    "list": [0, 2, 0],
    "pairs": ([0, 1, 2], [3, 0, 3]),
    "column": (slice(None), [1, 3]),
    "int and list": (1, [3, 0]),
    "grid": (np.array([[0], [2]]), np.array([1, 1, 3])),
    "negative list": [-1, -3],
    "mask": M,
    "row mask": np.array([True, False, True]),
    "column mask": (slice(None), np.array([True, False, True, True])),
    "mask and int": (np.array([True, False, True]), 2),
    "true": True,
    "false": False,
    "empty list": np.zeros((0,), np.int64),
}


def on_device(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(on_device, index))
    return ct.tensor(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("how", LAYOUTS)
def test_read(how: str) -> None:
    t, a = laid(data(3, 4), how)
    for name, index in SUBSCRIPTS.items():
        got = t[on_device(index)]
        want = a[index]
        assert tuple(got.shape) == want.shape, name
        if want.size:
            close(got, want)


NUMBERS = st.none() | st.integers(-6, 6)
ITEMS = st.one_of(
    st.integers(-3, 2),
    st.none(),
    st.builds(slice, NUMBERS, NUMBERS, st.sampled_from([None, 1, 2, 3])),
    st.just(slice(None)),
)


@settings(deadline=None, derandomize=True)
@given(st.permutations(range(4)), st.lists(ITEMS, max_size=4), st.none() | st.integers(0, 4))
def test_views_of_any_subscript_are_numpys(
    order: list[int], items: list[Any], place: int | None
) -> None:
    if place is not None:
        items = [*items[:place], ..., *items[place:]]
    whole = np.arange(3 * 4 * 5 * 3).reshape(3, 4, 5, 3)
    a, t = whole.transpose(order), ct.from_numpy(whole).permute(order)
    want, got = a[tuple(items)], t[tuple(items)]
    assert tuple(got.shape) == want.shape
    if want.size:
        assert got.numpy().tolist() == want.tolist()
        assert np.shares_memory(got.numpy(), whole)
        # numpy's strides of single elements differ
        wanted = [
            s // whole.itemsize for s, n in zip(want.strides, want.shape, strict=True) if n > 1
        ]
        assert [s for s, n in zip(got.stride(), got.shape, strict=True) if n > 1] == wanted


def test_an_ellipsis_beside_another_and_too_many_items_are_no_views_in_one_step() -> None:
    t = ct.zeros(2, 3)
    assert t[..., ...].shape == (2, 3)
    for index in ((..., 0, 0, 0), (0, 0, ..., 0), (0, 0, 0, ...)):
        with pytest.raises(IndexError, match="too many indices for tensor of dimension 2"):
            t[index]


def test_index_tensors_alone_are_read_and_written_in_one_step() -> None:
    a = data(5, 4, 3)
    i, j = np.array([[0, -1], [2, 2]]), np.array([[3, 1], [0, -4]])
    for _ in range(3):  # the second call is recorded, the third replays it
        t, wanted = ct.tensor(a), a.copy()
        close(t[ct.tensor(i), ct.tensor(j)], a[i, j])
        close(t[ct.tensor(i)], a[i])
        t[ct.tensor(i), ct.tensor(j)] = 7.0
        wanted[i, j] = 7.0
        t[ct.tensor(j[0])] = ct.tensor(a[:1])
        wanted[j[0]] = a[:1]
        close(t, wanted)
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        ct.zeros(0, 2)[ct.zeros(1, dtype=ct.int64)]
    with pytest.raises(IndexError, match="too many indices for tensor of dimension 1"):
        ct.zeros(3)[ct.tensor([0]), ct.tensor([0])]


def test_read_higher_ranks() -> None:
    a = data(2, 3, 4, 5)
    t = ct.tensor(a)
    mask = data(3, 4, dtype="bool")
    i, j = np.array([0, 1, 1]), np.array([2, 0, 2])
    for index in (
        (slice(None), j, slice(None), i),
        (slice(None), j, i),
        (i, slice(None), j),
        (0, j, slice(None), i),
        (i, None, j),
        (slice(None), mask),
        (..., None, j),
        (slice(1, None), slice(None), i[:, None], j),
    ):
        close(t[on_device(index)], a[index])


def test_read_zero_dim_and_empty() -> None:
    z = ct.tensor(5.0)
    assert z[()].item() == z[...].item() == 5
    assert z[None].tolist() == [5]
    assert z[True].tolist() == [5]
    e = ct.zeros(0, 3)
    assert e[:].shape == (0, 3)
    assert e[ct.zeros(0, dtype=ct.int64)].shape == (0, 3)
    assert e[e > 0].shape == (0,)
    assert ct.arange(6)[ct.zeros(2, 0, dtype=ct.int64)].shape == (2, 0)


def test_zero_dim_tensors_and_numpy_numbers_are_ints() -> None:
    t = ct.arange(12).reshape(3, 4)
    for one in (ct.tensor(1), ct.tensor(1, dtype=ct.int32), np.int64(1), np.array(1)):
        assert t[one].tolist() == [4, 5, 6, 7]
    assert t[ct.tensor(1), ct.tensor([0, 2])].tolist() == [4, 6]
    assert t[range(2)].tolist() == t[:2].tolist()
    with pytest.warns(UserWarning, match="dtype torch.uint8 is now deprecated"):
        assert t[ct.tensor([1, 0, 1], dtype=ct.uint8)].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]


def test_grad_nodes() -> None:
    x = data(3, 4)
    t = ct.tensor(x, requires_grad=True)
    i = ct.tensor([0, 2])
    for found, name in (
        (t[0], "SelectBackward0"), (t[1:], "SliceBackward0"), (t[:], "SliceBackward0"), (t[None], "UnsqueezeBackward0"),
        (t[...], "AliasBackward0"), (t[:, :], "AliasBackward0"), (t[i], "IndexBackward0"), (t[t > 0], "IndexBackward0"),
        (t[0, 1], "SelectBackward0"), (t[:, 1], "SelectBackward0"),
    ):  # fmt: skip
        assert found.grad_fn.name() == name
    assert t[0, 1].grad_fn.next_functions[0][0].name() == "SelectBackward0"


@pytest.mark.parametrize("how", ["contiguous", "transposed", "offset", "strided"])
def test_write(how: str, backend: Any) -> None:
    places = np.arange(12).reshape(3, 4)
    for name, index in SUBSCRIPTS.items():
        if name == "list":
            continue  # with duplicate indices, which write wins is unspecified
        met = places[index]
        if backend.info.kind != "cpu" and len(np.unique(met)) < met.size:
            continue
        t, a = laid(data(3, 4), how)
        a = a.copy()
        hole = a[index]
        value = data(*hole.shape, seed=1) if hole.ndim else data(1, seed=1)[0]
        t[on_device(index)] = ct.tensor(value)
        a[index] = value
        close(t, a)
        t[on_device(index)] = 2.5
        a[index] = 2.5
        close(t, a)


def test_write_broadcasts_converts_and_shows_in_views() -> None:
    base = ct.zeros(4, 6)
    view = base[1:3, ::2]
    view[:, [0, 2]] = ct.tensor([1.0, 2.0])
    view[0, 1] = ct.tensor(7)
    want = np.zeros((4, 6))
    want[1:3, 0], want[1:3, 4], want[1, 2] = 1, 2, 7
    close(base, want)
    base[base > 5] = -1
    want[want > 5] = -1
    close(view, want[1:3, ::2])
    n = ct.arange(3)
    n[0] = 1.7
    n[1:] = ct.tensor([2.9, -2.9])
    assert n.tolist() == [1, 2, -2]
    one = ct.zeros(2, 3)
    one[:] = ct.tensor([[[1.0, 2.0, 3.0]]])
    assert one.tolist() == [[1, 2, 3]] * 2
    one[False] = 9
    assert one.sum().item() == 12


def test_overlapping_source_of_an_indexed_write() -> None:
    t = ct.arange(6.0).reshape(3, 2)
    t[[0, 1]] = t[[1, 2]]
    assert t.tolist() == [[2, 3], [4, 5], [4, 5]]
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        t[ct.tensor([2, 1, 0])] = t
    crossed = t.reshape(-1)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        crossed.scatter_(0, ct.tensor([1, 0]), crossed[4:])
    # If it takes too long to decide whether source and destination overlap, a copy of the source is read.
    crossed[::2][ct.tensor([2, 1])] = crossed[1::2][:2]
    assert t.tolist() == [[2, 3], [5, 5], [3, 5]]


def test_filling_a_mask_of_expanded_elements_warns() -> None:
    cell = ct.ones(2, 1)
    with pytest.warns(UserWarning, match="masked_fill_ on expanded tensors"):
        cell.expand(2, 3).masked_fill_(ct.tensor([[True, False, False], [False] * 3]), 5.0)
    assert cell.tolist() == [[5], [1]]


def test_mask_assignment_of_a_number_reads_nothing_back() -> None:
    t = ct.tensor(data(5, 7))
    t.tolist()
    before = ct.stats()["launches"]
    t[t > 0] = 0.0
    assert ct.stats()["launches"] == before
    close(t, np.where(data(5, 7) > 0, 0, data(5, 7)))


def test_one_number_is_cheap() -> None:
    t = ct.tensor(data(5, 7)) * 2
    t.tolist()
    before = ct.stats()["launches"]
    assert t[2, 3].item() == pytest.approx(2 * float(data(5, 7)[2, 3]))
    assert ct.stats()["launches"] == before


I0 = [[0, 1, 2, 0], [2, 2, 0, 1]]


@pytest.mark.parametrize(
    ("how", "dtype"), [*((how, "float32") for how in LAYOUTS), ("contiguous", "int64")]
)
def test_gather_and_take(how: str, dtype: str) -> None:
    t, a = laid(data(3, 4, dtype=dtype), how)
    i = np.array(I0)
    close(ct.gather(t, 0, ct.tensor(i)), np.take_along_axis(a, i, 0))
    close(t.gather(1, ct.tensor(I0, dtype=ct.int32)), a[np.arange(2)[:, None], i])
    close(ct.take(t, ct.tensor([[0, 5], [-1, 3]])), a.reshape(-1)[[[0, 5], [-1, 3]]])
    close(
        ct.take_along_dim(t, ct.tensor([[2], [0], [1]]), 1),
        np.take_along_axis(a, np.array([[2], [0], [1]]), 1),
    )
    close(t.index_select(1, ct.tensor([3, 0, 0])), a[:, [3, 0, 0]])
    close(ct.index_select(t, 0, ct.tensor(2)), a[[2]])


def reference(
    dst: np.ndarray,
    index: np.ndarray,
    src: np.ndarray,
    fold: Callable[[Any, Any], Any],
    fresh: bool = False,
) -> np.ndarray:
    """Return `dst` after scattering `src` along dim 0, element by element; with `fresh`, the first write to a place
    replaces the old value (include_self=False).
    """
    out, seen = dst.copy(), set()
    for i, j in np.ndindex(index.shape):
        at = index[i, j], j
        out[at] = src[i, j] if fresh and at not in seen else fold(out[at], src[i, j])
        seen.add(at)
    return out


FOLDS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("n", [16, 21, 64, 100, 195])
def test_gather_along_rows(n: int, kind: str) -> None:
    a, i = data(5, 40), np.random.default_rng(0).integers(0, 40, (5, n)).astype(kind)
    t, index = ct.tensor(a), ct.tensor(i)
    close(t[:, index[0] - 20], a[:, i[0] - 20])
    close(t.double()[:, index[1] - 40], a[:, i[1]].astype(np.float64))
    for wrong in (index[0] - 41, index[0] + 40):
        with pytest.raises(IndexError, match="is out of bounds for dimension 0 with size 40"):
            t[:, wrong].tolist()
    close(t.gather(1, index), np.take_along_axis(a, i.astype(np.int64), 1))
    close(t.index_select(1, index[0]), a[:, i[0]])
    for bad, place in ((40, (3, n - 1)), (-1, (4, 2))):
        wrong = index.clone()
        wrong[place] = bad
        with pytest.raises(
            RuntimeError, match=f"index {bad} is out of bounds for dimension 1 with size 40"
        ):
            t.gather(1, wrong).tolist()


@pytest.mark.parametrize("n", [256, 259, 1001])
def test_elements_of_more_than_a_cache(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the source counts as larger than a cache, positions are computed well before their elements are read: all
    elements are right, and indices out of range are reported.
    """
    monkeypatch.setattr(moves, "STREAM", 1)
    rng = np.random.default_rng(n)
    a, i, j = data(40, 50), rng.integers(-40, 40, n), rng.integers(0, 50, n)
    t = ct.tensor(a)
    close(t[ct.tensor(i), ct.tensor(j)], a[i, j])
    close(t[ct.tensor(i % 40).int(), ct.arange(n) // 40], a[i % 40, np.arange(n) // 40])
    flat = rng.integers(0, 2000, (3, n))
    close(t.take(ct.tensor(flat)), a.ravel()[flat])
    across = rng.integers(0, 40, (7, n))
    wide = data(40, n)
    close(ct.tensor(wide).gather(0, ct.tensor(across)), np.take_along_axis(wide, across, 0))
    flat[2, n - 3] = 2000
    with pytest.raises(IndexError, match="out of range"):
        t.take(ct.tensor(flat)).tolist()


@pytest.mark.usefixtures("one_by_one")
def test_gradients_of_rows_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST", "NARROW"):
        monkeypatch.setattr(collect, name, 1)
    a, i, g = data(11, 70), np.array([[3, 0, 3], [10, 3, 7]]), data(2, 3, 70, seed=1)
    want = np.zeros_like(a)
    np.add.at(want, i, g)
    index, grad = ct.tensor(i), ct.tensor(g)
    ways: list[Callable[[Any], Any]] = [
        lambda x: x[index],
        lambda x: ct.nn.functional.embedding(index, x),
        lambda x: x.index_select(0, index.reshape(-1)).reshape(2, 3, 70),
    ]
    for way in ways:
        x = ct.tensor(a).requires_grad_()
        close(ct.autograd.grad(way(x), x, grad)[0], want)
        outer = grad.clone().requires_grad_()
        (own,) = ct.autograd.grad(way(x), x, outer, create_graph=True)
        close(ct.autograd.grad((own * own).sum(), outer)[0], 2 * want[i])
        rows_of = ct.func.vmap(lambda v, way=way, x=x: ct.autograd.grad(way(x), x, v)[0])
        close(rows_of(ct.stack([grad, grad * 2])), np.stack([want, want * 2]))


@pytest.mark.parametrize("how", ["contiguous", "transposed", "offset", "strided"])
def test_scatter(how: str) -> None:
    i, s = np.array(I0), data(2, 4, seed=3)
    t, a = laid(data(3, 4), how)
    unique = np.array([[0, 1, 2, 0], [2, 0, 1, 1]])
    close(t.scatter(0, ct.tensor(unique), ct.tensor(s)), reference(a, unique, s, lambda o, n: n))
    close(t.scatter(0, ct.tensor(i), 3), reference(a, i, np.full_like(s, 3), lambda o, n: n))
    close(ct.scatter_add(t, 0, ct.tensor(i), ct.tensor(s)), reference(a, i, s, np.add))
    close(
        t.scatter(0, ct.tensor(i), 2.0, reduce="multiply"),
        reference(a, i, np.full_like(s, 2), np.multiply),
    )
    for reduce, fold in FOLDS.items():
        for keep in (True, False):
            got = t.scatter_reduce(0, ct.tensor(i), ct.tensor(s), reduce, include_self=keep)
            close(got, reference(a, i, s, fold, not keep))
    t.scatter_(0, ct.tensor(i), -1.0)
    close(t, reference(a, i, np.full_like(s, -1), lambda o, n: n))


def test_scatter_mean() -> None:
    got = ct.zeros(3).scatter_reduce(
        0, ct.tensor([0, 0, 2]), ct.tensor([1.0, 3.0, 5.0]), "mean", include_self=False
    )
    assert got.tolist() == [2, 0, 5]


def test_an_element_of_a_tensor_may_be_what_it_is_filled_with() -> None:
    t = ct.tensor([3.0, 1.0, 2.0, 4.0])
    t.masked_fill_(t < 3, t[3])
    assert t.tolist() == [3.0, 4.0, 4.0, 4.0]
    t.index_fill_(0, ct.tensor([1, 3]), t[0])
    assert t.tolist() == [3.0, 3.0, 4.0, 3.0]


def test_index_family() -> None:
    a, s = data(4, 3), data(2, 3, seed=1)
    t, i, v = ct.tensor(a), ct.tensor([2, 0]), ct.tensor(s)
    want = a.copy()
    want[[2, 0]] += 2 * s
    close(t.index_add(0, i, v, alpha=2), want)
    want = a.copy()
    want[[2, 0]] = s
    close(t.index_copy(0, i, v), want)
    close(t.index_put((i,), v), want)
    want = a.copy()
    want[:, [2, 0]] = 9
    close(t.index_fill(1, ct.tensor([-1, 0]), 9), want)
    close(t.index_fill(1, i, ct.tensor(9)), want)
    twice = a.copy()
    np.add.at(twice, [1, 1], s)
    close(t.index_add(0, ct.tensor([1, 1]), v), twice)
    close(t.index_put((ct.tensor([1, 1]),), v, accumulate=True), twice)
    flat = a.copy()
    flat.reshape(-1)[[1, 7]] = [5, 6]
    close(t.put(ct.tensor([1, 7]), ct.tensor([5.0, 6.0])), flat)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        close(t.index_reduce(0, ct.tensor([1, 1]), v, "amax")[1], np.maximum(a[1], s.max(0)))
    for name, args in {
        "index_add_": (0, i, v), "index_copy_": (0, i, v), "index_fill_": (0, i, 3.0), "put_": (ct.tensor([1, 7]), v[0, :2]),
        "index_put_": ((i,), v), "masked_scatter_": (t > 0, ct.tensor(data(12))), "scatter_add_": (0, ct.tensor([[1, 1, 0]]), v),
    }.items():  # fmt: skip
        base = ct.tensor(np.repeat(a, 2, 0))
        view, version = base[::2], base._version
        assert getattr(view, name)(*args) is view
        close(base[::2], getattr(t, name[:-1])(*args))
        close(base[1::2], a)
        assert base._version == version + 1


def test_parts_written_into_a_copy() -> None:
    a = data(3, 4)
    t = ct.tensor(a)
    want = a.copy()
    want[:, 1] = 7
    close(ct.select_scatter(t, ct.full((3,), 7.0), 1, 1), want)
    want = a.copy()
    want[:, 0:4:2] = 7
    close(t.slice_scatter(ct.full((3, 2), 7.0), 1, 0, 4, 2), want)
    want = a.copy()
    want[[0, 1, 2], [1, 2, 3]] = 7
    close(t.diagonal_scatter(ct.full((3,), 7.0), 1), want)
    close(t, a)


@pytest.mark.parametrize("how", LAYOUTS)
def test_masks(how: str) -> None:
    t, a = laid(data(3, 4), how)
    close(t.masked_select(ct.tensor(M)), a[M])
    close(ct.masked_select(t, ct.tensor([True, False, True, True])), a[:, [0, 2, 3]].reshape(-1))
    assert ct.nonzero(t > 0).tolist() == np.argwhere(a > 0).tolist()
    for got, want in zip(ct.nonzero(t > 0, as_tuple=True), np.nonzero(a > 0), strict=True):
        close(got, want)
    assert [v.tolist() for v in ct.where(t > 0)] == [v.tolist() for v in np.nonzero(a > 0)]
    s, want = data(12, seed=4), a.copy()
    want[M] = s[: M.sum()]
    close(t.masked_scatter(ct.tensor(M), ct.tensor(s)), want)
    assert ct.argwhere(ct.tensor(3.0)).shape == (1, 0)
    assert ct.nonzero(ct.zeros(0, 2)).shape == (
        0,
        2,
    )


def test_search() -> None:
    edges, v = np.sort(data(6)), data(3, 4, seed=2)
    for right in (False, True):
        want = np.searchsorted(edges, v, "right" if right else "left")
        close(ct.searchsorted(ct.tensor(edges), ct.tensor(v), right=right), want)
        close(ct.bucketize(ct.tensor(v).t(), ct.tensor(edges), right=right), want.T)
    assert ct.bucketize(2, ct.tensor([1, 2, 3]), out_int32=True).dtype is ct.int32
    assert ct.searchsorted(
        ct.tensor([3.0, 1.0]), ct.tensor([2.0]), sorter=ct.tensor([1, 0])
    ).tolist() == [1]


ERRORS = (
    ("t[3]", IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ("t[0, -5]", IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    ("t[0, 0, 0]", IndexError, "too many indices for tensor of dimension 2"),
    ("z[0]", IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"),
    ("z[:]", IndexError, "slice() cannot be applied to a 0-dim tensor."),
    ("t[::-1]", ValueError, "step must be greater than zero"),
    ("t[1.5]", IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
    ("t[ct.tensor([1.5])]", IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ("t[ct.tensor([0, 5])]", IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ("t[ct.tensor([0, 1]), ct.tensor([0, 1, 2])]", IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    ("t[ct.zeros(4, dtype=ct.bool)]", IndexError, "The shape of the mask [4] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0"),
    ("set(t, 0, ct.zeros(3))", RuntimeError, "The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0.  Target sizes: [4].  Tensor sizes: [3]"),
    ("set(t, [0, 1], ct.zeros(3))", RuntimeError, "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2, 4]"),
    ("set(t, [0, 1], ct.zeros(4).long())", RuntimeError, "Index put requires the source and destination dtypes match, got Float for the destination and Long for the source."),
    ("set(t, 0, 'a')", TypeError, "can't assign a str to a torch.FloatTensor"),
    ("set(t, 0, 1j)", RuntimeError, "value cannot be converted to type float without overflow"),
    ("t.gather(0, ct.tensor([[5]]))", RuntimeError, "index 5 is out of bounds for dimension 0 with size 3"),
    ("t.gather(0, ct.tensor([0]))", RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
    ("t.index_select(0, ct.tensor([7]))", IndexError, "index out of range in self"),
    ("t.take(ct.tensor([15]))", IndexError, "out of range: tried to access index 15 on a tensor of 12 elements."),
    ("t.scatter_reduce(0, ct.tensor([[0]]), t, 'x')", RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got x"),
    ("t.masked_select(t)", RuntimeError, "masked_select: expected BoolTensor for mask"),
    ("t.masked_scatter(t > -9, ct.zeros(2))", RuntimeError, "Number of elements of source < number of ones in mask"),
)  # fmt: skip


@pytest.mark.parametrize(("code", "kind", "text"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(code: str, kind: type[Exception], text: str) -> None:
    names = {
        "t": ct.tensor(data(3, 4)),
        "z": ct.tensor(1.0),
        "ct": ct,
        "set": lambda t, i, v: t.__setitem__(i, v),
    }
    with pytest.raises(kind) as found:
        out = eval(code, names)
        ct.cuda.synchronize() if out is None else out.tolist()  # on devices that report index errors late
    assert str(found.value).split("\n")[0].replace("torch.opencl.", "torch.") == text


@pytest.mark.parametrize("kind", ["uint8", "int16"])
@pytest.mark.parametrize("width", [16, 31, 32, 33, 34, 64, 68, 130])
def test_rows_of_small_numbers_move_by_words_where_they_are_some(kind: str, width: int) -> None:
    values = (np.random.default_rng(0).random((50, width + 6)) * 200).astype(kind)
    table, index = ct.tensor(values), np.array([3, 49, 0, 7, 7, 21, 48])
    for first in (0, 1, 4):
        rows = table[:, first : first + width].index_select(0, ct.tensor(index))
        np.testing.assert_array_equal(rows.cpu().numpy(), values[index, first : first + width])


def test_complex_products_have_the_bits_of_a_product() -> None:
    """Scattered complex products have the bits of `*`. Each place gets one factor, so that no order matters."""
    x, y = data(40, 7, dtype="complex64"), data(40, 7, seed=1, dtype="complex64")
    d, s, i = ct.tensor(x), ct.tensor(y), ct.arange(40).flip(0)
    assert ct.equal(d.scatter_reduce(0, i[:, None].expand(40, 7), s, "prod"), d * s.flip(0))
    assert ct.equal(ct.zeros_like(d).index_add(0, i.flip(0), s, alpha=2 + 3j), s * (2 + 3j))


@pytest.mark.parametrize("shape", [(300, 3), (3000, 1)], ids=str)
def test_complex_numbers_of_16_bit_parts_are_summed(shape: tuple[int, int]) -> None:
    """Sums of complex32 numbers are right. On a GPU, the partial sums of long runs of equal indices are complex64,
    twice as wide as the numbers.
    """
    rng = np.random.default_rng(0)
    parts = rng.integers(-3, 4, (*shape, 2)).astype(np.float32)
    places = rng.integers(0, 5, shape[0])
    expected = np.zeros((5, shape[1], 2), np.float32)
    np.add.at(expected, places, parts)
    values = ct.view_as_complex(ct.tensor(parts)).to(ct.complex32)
    found = ct.zeros(5, shape[1], dtype=ct.complex32).index_add(0, ct.tensor(places), values)  # fmt: skip
    close(ct.view_as_real(found.to(ct.complex64)), expected)
