"""The array API's namespace, where the standard asks for more, or for something else, than torch's function does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cltensor as torch

xp: Any = torch.array_api


@pytest.fixture
def x() -> Any:
    return torch.tensor([[3.0, 1.0, 3.0], [0.0, 1.0, 2.0]])


def test_equal_is_elementwise(x: Any) -> None:
    assert xp.equal(x, xp.flip(x, axis=1)).tolist() == [[True] * 3, [False, True, False]]


def test_distinct_values(x: Any) -> None:
    values, indices, inverse, counts = xp.unique_all(x)
    assert values.tolist() == [0, 1, 2, 3]
    assert indices.tolist() == [3, 1, 5, 0]
    assert xp.take(values, inverse.flatten()).tolist() == x.flatten().tolist()
    assert counts.tolist() == xp.unique_counts(x).counts.tolist() == [1, 2, 1, 2]
    assert xp.unique_inverse(x).inverse_indices.shape == x.shape


def test_no_axes_reduce_nothing(x: Any) -> None:
    assert xp.sum(x, axis=()).tolist() == x.tolist()
    assert xp.max(x, axis=(), keepdims=True).shape == (2, 3)
    assert xp.sum(torch.tensor(2.0)).item() == 2
    assert xp.linalg.vector_norm(-x, axis=()).tolist() == x.tolist()


def test_integer_sums_keep_their_sign() -> None:
    small = torch.tensor([200, 100], dtype=torch.uint8)
    assert xp.sum(small).dtype is torch.uint64
    assert xp.cumulative_prod(small.to(torch.int8), include_initial=True).dtype is torch.int64
    assert xp.count_nonzero(small, keepdims=True).tolist() == [2]


def test_makers_of_arrays() -> None:
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.eye(2, k=-5).tolist() == [[0, 0], [0, 0]]
    for n, m in ((300, 301), (70_000, 1), (1, 70_000)):
        large = torch.eye(n, m, dtype=torch.int16)
        assert large.diagonal().tolist() == [1] * min(n, m)
        assert large.sum() == min(n, m)
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.arange(3, 0).shape == (0,)
    assert xp.full(2, 7).tolist() == [7, 7]


def test_copy_false_never_copies(x: Any) -> None:
    assert xp.reshape(x, (6,), copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="would need a copy"):
        xp.reshape(x.mT, (6,), copy=False)


def test_products_promote(x: Any) -> None:
    whole = torch.tensor([1, 2, 3])
    assert xp.linalg.vecdot(x, whole).tolist() == [14, 8]
    assert xp.matmul(whole, x.mT).tolist() == [14, 8]
    assert xp.linalg.trace(x[:, :2].to(torch.int8), offset=1).dtype is torch.int64
    with pytest.raises(ValueError, match="axis 0 of vecdot"):
        xp.vecdot(x, x, axis=0)


def test_transforms_take_axes(x: Any) -> None:
    expected = np.fft.fft(np.array(x.tolist()), axis=0)
    np.testing.assert_allclose(xp.fft.fft(x, axis=0).tolist(), expected, atol=1e-6)
    assert (
        xp.fft.fftshift(x, axes=1).tolist()
        == np.fft.fftshift(np.array(x.tolist()), axes=1).tolist()
    )


def test_factorizations_are_named() -> None:
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    result = xp.linalg.svd(a)
    torch.testing.assert_close(result.U * result.S @ result.Vh, a)
    assert xp.linalg.slogdet(a).sign.item() == 1
    b = torch.tensor([[[3.0], [4.0]], [[1.0], [0.0]]])
    torch.testing.assert_close(a @ xp.linalg.solve(a, b), b)


def test_numbers_take_the_dtype_of_the_array(x: Any) -> None:
    assert xp.maximum(x, 1).tolist() == [[3, 1, 3], [1, 1, 2]]
    assert xp.logical_or(False, torch.tensor([True, False])).tolist() == [True, False]
    assert xp.minimum(2, torch.tensor([1, 3], dtype=torch.int8)).dtype is torch.int8


def test_limits_name_the_dtype(x: Any) -> None:
    assert xp.finfo(x).dtype is xp.finfo(torch.complex64).dtype is torch.float32
    assert xp.iinfo(torch.int8)[:3] == (8, 127, -128)
    assert xp.repeat(x, torch.tensor([1, 2], dtype=torch.int8), axis=0).shape == (3, 3)


def test_casts_and_signs_are_the_standards() -> None:
    assert xp.can_cast(torch.uint8, torch.uint16)
    assert xp.can_cast(torch.uint32, torch.int64)
    assert not xp.can_cast(torch.uint32, torch.int32)
    assert not xp.can_cast(torch.bool, torch.uint16)
    assert str(xp.sign(torch.tensor([-2.0, torch.nan])).tolist()) == "[-1.0, nan]"


def test_to_device(x: Any) -> None:
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match="one stream"):
        x.to_device(x.device, stream=1)


def test_complex_neighbours_differ_in_either_part() -> None:
    z = torch.tensor([1 + 1j, 1 + 1j, 1 + 2j, 2 + 2j, 2 + 2j])
    for x in (z, torch.stack([z, z], 1)[:, 1]):
        values, counts = torch.unique_consecutive(x, return_counts=True)
        assert values.tolist() == [1 + 1j, 1 + 2j, 2 + 2j]
        assert counts.tolist() == [2, 1, 2]
