"""Records, promotion, limits and pickling of element types."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from cltensor import dtypes as dt
from cltensor.size import Size


@pytest.mark.parametrize("d", dt.ALL, ids=str)
def test_record(d: dt.dtype) -> None:
    assert type(d).__name__ == "dtype"
    assert repr(d) == str(d) == f"torch.{d.name}"
    assert pickle.loads(pickle.dumps(d)) is d
    assert copy.deepcopy(d) is d
    assert copy.copy(d) is d
    assert dt.ALL[d.index] is d
    assert getattr(dt, d.name) is d
    if d.np is not None:
        assert d.np.itemsize == d.itemsize
        assert dt.from_numpy(d.np) is d
        assert dt.from_numpy(d.np.newbyteorder(">")) is d
    assert {d} == {dt.BY_NAME[d.name]}


def test_no_new_dtype() -> None:
    with pytest.raises(TypeError, match=r"cannot create 'torch\.dtype' instances"):
        dt.dtype()


def test_aliases() -> None:
    assert (dt.half, dt.float, dt.double) == (dt.float16, dt.float32, dt.float64)
    assert (dt.short, dt.int, dt.long) == (dt.int16, dt.int32, dt.int64)
    assert (dt.chalf, dt.cfloat, dt.cdouble) == (dt.complex32, dt.complex64, dt.complex128)


def test_promotion_is_commutative_and_idempotent() -> None:
    for a in dt.ALL:
        assert dt.promote_types(a, a) is a
        for b in dt.ALL:
            try:
                expected = dt.promote_types(b, a)
            except RuntimeError:
                with pytest.raises(RuntimeError, match="uint16, uint32, uint64"):
                    dt.promote_types(a, b)
                continue
            assert dt.promote_types(a, b) is expected


def test_scalars_are_weak() -> None:
    assert dt.result_type_of([(dt.float16, 2), (dt.float32, 0)]) is dt.float16
    assert dt.result_type_of([(dt.int32, 2), (dt.float32, 0)]) is dt.float32
    assert dt.result_type_of([(dt.float32, 2), (dt.float64, 1)]) is dt.float32
    assert dt.result_type_of([(dt.bool, 2), (dt.int64, 0)]) is dt.int64
    assert dt.result_type_of([(dt.float64, 1), (dt.complex64, 0)]) is dt.complex128
    with pytest.raises(ValueError, match="at least one"):
        dt.result_type_of([])


def test_scalar_dtype_follows_default() -> None:
    assert dt.scalar_dtype(True) is dt.bool
    assert dt.scalar_dtype(np.bool_(True)) is dt.bool
    assert dt.scalar_dtype(np.int32(1)) is dt.int64
    assert dt.scalar_dtype(np.float64(1)) is dt.float32
    dt.set_default_dtype(dt.float64)
    try:
        assert dt.scalar_dtype(1.0) is dt.float64
        assert dt.scalar_dtype(1j) is dt.complex128
        assert dt.finfo().bits == 64
    finally:
        dt.set_default_dtype(dt.float32)
    assert dt.get_default_dtype() is dt.float32
    with pytest.raises(TypeError, match="only floating-point types"):
        dt.set_default_dtype(dt.int32)
    with pytest.raises(TypeError, match="expected a number"):
        dt.scalar_dtype("1")


def test_from_numpy_rejects() -> None:
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type numpy\.object_"):
        dt.from_numpy(np.dtype(object))


@pytest.mark.parametrize("d", [dt.float16, dt.float32, dt.float64], ids=str)
def test_finfo_matches_numpy(d: dt.dtype) -> None:
    ours, theirs = dt.finfo(d), np.finfo(d.np)
    for field in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
        assert getattr(ours, field) == pytest.approx(float(getattr(theirs, field)), rel=1e-3), field


def test_size() -> None:
    size = Size([2, 3])
    assert repr(size) == "torch.Size([2, 3])"
    assert size == (2, 3)
    assert hash(size) == hash((2, 3))
    assert size.numel() == 6
    for made in (
        size[:1],
        size + (4,),
        (4,) + size,
        size * 2,
        2 * size,
        pickle.loads(pickle.dumps(size)),
    ):
        assert type(made) is Size
    assert repr(Size()) == "torch.Size([])"
    assert Size([np.int64(2)]) == (2,)
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([1, 2.0])
    with pytest.raises(TypeError, match=r"can only concatenate tuple \(not list\) to torch\.Size"):
        size + [1]


def test_types_of_which_there_are_no_tensors() -> None:
    kind = dt.FOREIGN["float8_e4m3fn"]
    assert isinstance(kind, dt.dtype)
    assert (kind.is_floating_point, kind.itemsize, repr(kind)) == (True, 1, "torch.float8_e4m3fn")
    assert (dt.uint4.is_floating_point, dt.uint4.is_signed) == (False, False)
    assert (repr(dt.qint32), dt.qint32.itemsize, dt.bits16.itemsize) == ("torch.qint32", 4, 2)
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert copy.deepcopy(kind) is kind
    assert repr(dt.finfo(dt.float8_e5m2)) == (
        "finfo(resolution=1, min=-57344, max=57344, eps=0.25, smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float8_e5m2)"
    )
    assert dt.promote_types(kind, kind) is kind
    message = (
        "Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and Char"
    )
    with pytest.raises(RuntimeError, match=message):
        dt.promote_types(kind, dt.int8)
