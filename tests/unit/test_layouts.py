"""Layouts against numpy: every view function must show the elements that numpy's view shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from cltensor import layouts as L

MEMORY = np.arange(20000)
quick = settings(max_examples=80, deadline=None)


def show(shape: L.Shape, strides: L.Shape, offset: int = 0) -> np.ndarray[Any, Any]:
    assert L.storage_extent(shape, strides, offset) <= MEMORY.size
    return as_strided(MEMORY[offset:], shape, [8 * s for s in strides])


@st.composite
def layouts(draw: st.DrawFn, max_dims: int = 4, min_dims: int = 0) -> L.Layout:
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=min_dims, max_size=max_dims)))
    order = draw(st.permutations(range(len(shape))))
    strides = list(L.dense_strides(tuple(max(s, 1) for s in shape), order))
    for i in range(len(shape)):
        strides[i] *= draw(st.sampled_from([1, 1, 1, 2, 0]))
    return shape, tuple(strides), draw(st.integers(0, 5))


def dim_of(data: st.DataObject, ndim: int) -> int:
    return data.draw(st.integers(-ndim, ndim - 1))


@quick
@given(layouts(min_dims=1), st.data())
def test_slice_select_narrow(lay: L.Layout, data: st.DataObject) -> None:
    x = show(*lay)
    dim = dim_of(data, x.ndim)
    start, stop = (data.draw(st.none() | st.integers(-6, 6)) for _ in range(2))
    step = data.draw(st.integers(1, 3))
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = slice(start, stop, step)
    assert np.array_equal(show(*L.slice_(*lay, dim, start, stop, step)), x[tuple(key)])
    size = x.shape[dim]
    if size:
        index = data.draw(st.integers(-size, size - 1))
        assert np.array_equal(show(*L.select(*lay, dim, index)), x.take(index, dim))
    first = data.draw(st.integers(0, size))
    length = data.draw(st.integers(0, size - first))
    key[dim] = slice(first, first + length)
    assert np.array_equal(show(*L.narrow(*lay, dim, first, length)), x[tuple(key)])


@quick
@given(layouts(min_dims=1), st.data())
def test_orders(lay: L.Layout, data: st.DataObject) -> None:
    x = show(*lay)
    dims = data.draw(st.permutations(range(x.ndim)))
    y = L.permute(*lay, dims)
    assert np.array_equal(show(*y), x.transpose(dims))
    assert L.permute(*y, L.permute_inverse(dims)) == lay
    assert L.permuted(*lay[:2], tuple(d - x.ndim for d in dims)) == (*y[:2], tuple(dims))
    a, b = dim_of(data, x.ndim), dim_of(data, x.ndim)
    assert np.array_equal(show(*L.transpose(*lay, a, b)), x.swapaxes(a, b))
    assert np.array_equal(
        show(*L.permute(*lay, L.movedim_order(x.ndim, a, b))), np.moveaxis(x, a, b)
    )
    at = data.draw(st.integers(-x.ndim - 1, x.ndim))
    assert np.array_equal(show(*L.unsqueeze(*lay, at)), np.expand_dims(x, at))
    assert np.array_equal(show(*L.squeeze(*lay)), x.squeeze())


@quick
@given(layouts(min_dims=2), st.data())
def test_diagonal_unfold(lay: L.Layout, data: st.DataObject) -> None:
    x = show(*lay)
    a, b = data.draw(st.permutations(range(x.ndim)))[:2]
    k = data.draw(st.integers(-3, 3))
    ours, theirs = show(*L.diagonal(*lay, k, a, b)), x.diagonal(k, a, b)
    assert ours.shape == theirs.shape
    assert np.array_equal(ours, theirs)
    size = data.draw(st.integers(0, x.shape[a]))
    step = data.draw(st.integers(1, 3))
    windows = show(*L.unfold(*lay, a, size, step))
    for i in range(windows.shape[a]):
        span = range(i * step, i * step + size)
        assert np.array_equal(windows.take(i, a), np.moveaxis(x.take(span, a), a, -1))


@quick
@given(layouts(), st.data())
def test_view_strides(lay: L.Layout, data: st.DataObject) -> None:
    shape, strides, offset = lay
    x = show(*lay)
    left, target = x.size, []
    while left > 1:
        factor = data.draw(st.sampled_from([f for f in range(1, left + 1) if left % f == 0]))
        target.append(factor)
        left //= factor
    new = tuple(target) if x.size else (0, *shape)
    found = L.view_strides(shape, strides, new)
    if found is not None:
        assert np.array_equal(show(new, found, offset), x.reshape(new))
    else:
        assert not L.is_contiguous(shape, strides)
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            L.view(shape, strides, offset, new)


@quick
@given(st.lists(layouts(max_dims=3), min_size=1, max_size=3))
def test_broadcast_and_collapse(lays: list[L.Layout]) -> None:
    try:
        expected = np.broadcast_shapes(*(lay[0] for lay in lays))
    except ValueError:
        with pytest.raises(RuntimeError, match="must match the size of tensor b"):
            L.broadcast_shapes(*(lay[0] for lay in lays))
        return
    shape = L.broadcast_shapes(*(lay[0] for lay in lays))
    assert shape == expected
    wide = [L.expand_strides(s, t, shape) for s, t, _ in lays]
    for lay, strides in zip(lays, wide, strict=True):
        assert np.array_equal(show(shape, strides, lay[2]), np.broadcast_to(show(*lay), shape))
    flat, merged = L.collapse(shape, wide)
    for lay, strides, short in zip(lays, wide, merged, strict=True):
        assert np.array_equal(
            show(flat, short, lay[2]).ravel(), show(shape, strides, lay[2]).ravel()
        )
    if 0 not in shape:
        for i in range(len(flat) - 1):
            assert flat[i] != 1
            assert any(s[i] != s[i + 1] * flat[i + 1] for s in merged)


@quick
@given(layouts())
def test_dense(lay: L.Layout) -> None:
    shape, strides, _ = lay
    cells = show(shape, strides).ravel().tolist()
    dense = sorted(cells) == list(range(len(cells)))
    assert L.is_non_overlapping_and_dense(shape, strides) == dense
    assert L.is_contiguous(shape, strides) == (cells == list(range(len(cells))))
    kept = L.preserve_strides(shape, strides)
    assert L.is_non_overlapping_and_dense(shape, kept)
    if dense:
        assert kept == strides
    if L.internal_overlap(shape, strides) == L.FULL_OVERLAP:
        assert len(set(cells)) < len(cells)


@quick
@given(layouts(), layouts())
def test_overlap_is_never_missed(a: L.Layout, b: L.Layout) -> None:
    shared = bool(set(show(*a).ravel()) & set(show(*b).ravel()))
    if shared:
        assert L.overlap(a, b) != L.NO_OVERLAP
        assert L.may_share(a, b)
    if L.overlap(a, b) in (L.FULL_OVERLAP, L.PARTIAL_OVERLAP) and 0 not in a[0]:
        assert shared


def test_combs_do_not_share() -> None:
    assert not L.may_share(((4,), (2,), 0), ((4,), (2,), 1))
    assert L.may_share(((4,), (2,), 0), ((4,), (3,), 1))


def test_elementwise_keeps_shared_order() -> None:
    assert L.elementwise_strides((3, 2), [((3, 2), (1, 3)), ((), ())]) == (1, 3)
    assert L.elementwise_strides((3, 2), [((3, 2), (1, 3)), ((3, 2), (2, 1))]) == (1, 3)
    assert L.elementwise_strides((3, 2), [((3, 2), (2, 1)), ((3, 2), (1, 3))]) == (2, 1)
    assert L.elementwise_strides((3, 2), [((3, 1), (1, 0)), ((2,), (1,))]) == (2, 1)
    image = (2, 3, 4, 5)
    last = L.channels_last_strides(image)
    assert last == (60, 1, 15, 3)
    assert L.is_channels_last(image, last)
    assert L.elementwise_strides(image, [(image, last), ((3, 1, 1), (1, 1, 1))]) == last


def test_shapes() -> None:
    assert L.infer_shape((-1, 3), 6) == (2, 3)
    assert L.reshape((2, 3), (3, 1), (-1,)) == ((6,), (1,))
    assert L.reshape((2, 3), (1, 2), (3, -1)) == ((3, 2), None)
    assert L.infer_shape((2, -1), 0) == (2, 0)
    assert L.flatten_shape((2, 3, 4), 1) == (2, 12)
    assert L.flatten_shape(()) == (1,)
    assert L.unflatten_shape((2, 6), 1, (2, -1)) == (2, 2, 3)
    assert L.reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)
    assert L.reduced_shape((2, 3, 4), (0, 2), False) == (3,)
    assert L.split_sizes(7, 3) == [3, 3, 1]
    assert L.chunk_sizes(7, 3) == [3, 3, 1]
    assert L.tensor_split_bounds(7, 3) == [(0, 3), (3, 5), (5, 7)]
    assert L.tensor_split_bounds(5, [1, 9]) == [(0, 1), (1, 5), (5, 5)]
    assert L.wrap_dims(None, 3) == (0, 1, 2)
    assert L.wrap_dims((-1, 0), 3) == (2, 0)
    assert L.wrap_dims(-1, 0) == ()
    assert L.as_strided((2, 2), (1, 1), 1, 4, 16) == ((2, 2), (1, 1), 1)


V = ((2, 3), (3, 1), 0)
Z: L.Layout = ((), (), 0)
ERRORS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (
        RuntimeError,
        (
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
            "dimension 1"
        ),
        lambda: L.broadcast_shapes((2, 3), (2, 4)),
    ),
    (
        RuntimeError,
        (
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton "
            "dimension 2"
        ),
        lambda: L.broadcast_shapes((2, 1, 3), (3, 2)),
    ),
    (
        RuntimeError,
        (
            "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
            "dimension 1"
        ),
        lambda: L.broadcast_shapes((2, 3), (5, 4)),
    ),
    (
        RuntimeError,
        (
            "The expanded size of the tensor (4) must match the existing size (3) at "
            "non-singleton dimension 0.  Target sizes: [4, 4].  Tensor sizes: [3, 1]"
        ),
        lambda: L.expand((3, 1), (1, 1), 0, (4, 4)),
    ),
    (
        RuntimeError,
        (
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
            "dimension 0"
        ),
        lambda: L.expand(*V, (-1, 2, 3)),
    ),
    (
        RuntimeError,
        (
            "expand(torch.FloatTensor{[2, 3]}, size=[3]): the number of sizes provided (1) "
            "must be greater or equal to the number of dimensions in the tensor (2)"
        ),
        lambda: L.expand(*V, (3,)),
    ),
    (
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
        lambda: L.wrap_dim(5, 2),
    ),
    (
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        lambda: L.wrap_dim(1, 0),
    ),
    (
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
        lambda: L.wrap_dims((0, -2), 2),
    ),
    (RuntimeError, "shape '[4]' is invalid for input of size 6", lambda: L.infer_shape((4,), 6)),
    (RuntimeError, "only one dimension can be inferred", lambda: L.infer_shape((-1, -1), 6)),
    (
        RuntimeError,
        "invalid shape dimension -2 at index 0 of shape [-2, 3]",
        lambda: L.infer_shape((-2, 3), 6),
    ),
    (
        RuntimeError,
        (
            "cannot reshape tensor of 0 elements into shape [-1, 0] because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        ),
        lambda: L.infer_shape((-1, 0), 0),
    ),
    (
        RuntimeError,
        (
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        ),
        lambda: L.view((3, 2), (1, 3), 0, (6,)),
    ),
    (
        RuntimeError,
        "start (1) + length (5) exceeds dimension size (2).",
        lambda: L.narrow(*V, 0, 1, 5),
    ),
    (
        IndexError,
        "start out of range (expected to be in range of [-2, 2], but got 5)",
        lambda: L.narrow(*V, 0, 5, 1),
    ),
    (RuntimeError, "narrow(): length must be non-negative.", lambda: L.narrow(*V, 0, 0, -1)),
    (RuntimeError, "narrow() cannot be applied to a 0-dim tensor.", lambda: L.narrow(*Z, 0, 0, 1)),
    (
        IndexError,
        "select(): index 2 out of range for tensor of size [2, 3] at dimension 0",
        lambda: L.select(*V, 0, 2),
    ),
    (IndexError, "select() cannot be applied to a 0-dim tensor.", lambda: L.select(*Z, 0, 0)),
    (RuntimeError, "permute(): duplicate dims are not allowed.", lambda: L.permute(*V, (0, 0))),
    (
        RuntimeError,
        (
            "permute(sparse_coo): number of dimensions in the tensor input does not match "
            "the length of the desired ordering of dimensions i.e. input.dim() = 2 is not "
            "equal to len(dims) = 1"
        ),
        lambda: L.permute(*V, (0,)),
    ),
    (
        RuntimeError,
        "maximum size for tensor at dimension 0 is 2 but size is 3",
        lambda: L.unfold(*V, 0, 3, 1),
    ),
    (RuntimeError, "step is 0 but must be > 0", lambda: L.unfold(*V, 0, 1, 0)),
    (RuntimeError, "size is -1 but must be >= 0", lambda: L.unfold(*V, 0, -1, 1)),
    (RuntimeError, "diagonal dimensions cannot be identical 1, 1", lambda: L.diagonal(*V, 0, 1, 1)),
    (
        RuntimeError,
        "movedim: repeated dim in `source` ([0, 0])",
        lambda: L.movedim_order(2, (0, 0), (0, 1)),
    ),
    (
        RuntimeError,
        (
            "movedim: Invalid source or destination dims: source ([0, 1] dims) should "
            "contain the same number of dims as destination ([0] dims)"
        ),
        lambda: L.movedim_order(2, (0, 1), (0,)),
    ),
    (
        RuntimeError,
        "flatten() has invalid args: start_dim cannot come after end_dim",
        lambda: L.flatten_shape((2, 3), 1, 0),
    ),
    (
        RuntimeError,
        (
            "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (3) in "
            "the input tensor"
        ),
        lambda: L.unflatten_shape((2, 3), 1, (2, 2)),
    ),
    (
        RuntimeError,
        "split_size can only be 0 if dimension size is 0, but got dimension size of 2",
        lambda: L.split_sizes(2, 0),
    ),
    (
        RuntimeError,
        (
            "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size "
            "at dimension 0), but got split_sizes=[1, 2]"
        ),
        lambda: L.split_sizes(2, [1, 2]),
    ),
    (
        RuntimeError,
        "chunk expects `chunks` to be greater than 0, got: 0",
        lambda: L.chunk_sizes(2, 0),
    ),
    (
        RuntimeError,
        "mismatch in length of strides and shape",
        lambda: L.as_strided((2, 3), (3,), 0, 4, 24),
    ),
    (
        RuntimeError,
        (
            "setStorage: sizes [4, 3], strides [3, 1], storage offset 0, and itemsize 4 "
            "requiring a storage size of 48 are out of bounds for storage of size 24"
        ),
        lambda: L.as_strided((4, 3), (3, 1), 0, 4, 24),
    ),
    (
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [2, -1]",
        lambda: L.check_shape((2, -1)),
    ),
]


@pytest.mark.parametrize(("kind", "text", "call"), ERRORS)
def test_error_text(kind: type[Exception], text: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text
