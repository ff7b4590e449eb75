"""`torch.testing`: close values pass, errors name the place of others, and `make_tensor` obeys its arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cltensor as torch
from cltensor.testing import assert_close, make_tensor


def text(actual: Any, expected: Any, **kwargs: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **kwargs)
    return str(caught.value)


def test_close() -> None:
    x = torch.arange(3.0)
    assert_close(x, x + 1e-7)
    assert_close({"a": [x, 1.0, None]}, {"a": [x.clone(), 1.0, None]})
    assert_close(np.ones(2), np.ones(2))
    assert_close(torch.tensor(math.nan), torch.tensor(math.nan), equal_nan=True)
    assert_close(x, x.double(), check_dtype=False)
    assert_close(1.0, 1, check_dtype=False)
    assert_close(x, x + 0.5, atol=1, rtol=0)
    assert_close(
        torch.ones(3, device="meta"), x, check_device=False
    )  # meta tensors have no values, so none differ


def test_texts() -> None:
    assert text(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 4, 5])) == (
        "Tensor-likes are not close!\n\nMismatched elements: 2 / 3 (66.7%)\n"
        "Greatest absolute difference: 2.0 at index (1,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (1,) (up to 1.3e-06 allowed)"
    )
    assert text(torch.ones(1), torch.zeros(1), rtol=0, atol=0) == (
        "Tensor-likes are not equal!\n\nMismatched elements: 1 / 1 (100.0%)\n"
        "Greatest absolute difference: 1.0 at index (0,)\nGreatest relative difference: inf at index (0,)"
    )
    assert text(torch.tensor(math.nan), torch.tensor(math.nan)) == (
        "Scalars are not close!\n\nExpected nan but got nan.\nAbsolute difference: nan (up to 1e-05 allowed)\n"
        "Relative difference: nan (up to 1.3e-06 allowed)"
    )
    assert text({"a": [0, 1]}, {"a": [0, 2]}).endswith("The failure occurred for item ['a'][1]")
    assert text([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"
    assert text({"a": 1}, {"b": 1}) == (
        "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']"
    )
    assert text(torch.ones(2), torch.ones(3)) == (
        "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3])."
    )
    empty = [
        torch.sparse_coo_tensor(torch.zeros(d, 0), torch.ones(0, *(2,) * (2 - d)), (2, 2))
        for d in (1, 2)
    ]
    assert text(*empty) == (
        "The number of sparse dimensions in sparse COO tensors does not match: 1 != 2"
    )
    assert "attribute 'dtype'" in text(torch.ones(2), torch.ones(2).double())
    assert text(None, 1) == "None mismatch: None is not 1"
    assert text(True, False) == "Booleans mismatch: True is not False"
    assert text(1, 2, msg="so") == "so"
    assert text(1, 2, msg=lambda s: f"<{s[:7]}>") == "<Scalars>"


def test_what_cannot_be_compared() -> None:
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(torch.ones(1), np.ones(1))
    with pytest.raises(
        ValueError, match="Both 'rtol' and 'atol' must be either specified or omitted"
    ):
        assert_close(1.0, 1.0, rtol=1)


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_make_tensor(name: str) -> None:
    dt = getattr(torch, name)
    t = make_tensor((3, 4), dtype=dt, device="cpu", noncontiguous=True, exclude_zero=True)
    assert (t.dtype, t.shape, t.is_contiguous()) == (dt, (3, 4), False)
    assert all(t.flatten().tolist())
    assert make_tensor(dtype=dt, device="cpu").shape == ()
    if name == "float32":
        t = make_tensor(100, dtype=dt, device="cpu", low=2, high=3, requires_grad=True)
        assert t.requires_grad
        assert 2 <= t.min().item() <= t.max().item() < 3


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"low": 2, "high": 1}, "`low` must be less than `high`, but got 2 >= 1"),
        ({"low": math.nan}, "`low` and `high` cannot be NaN"),
        ({"dtype": torch.uint8, "low": -9, "high": -1}, r"only supports \[0, 256\)"),
        ({"dtype": torch.int8, "requires_grad": True}, "`requires_grad=True` is not supported"),
        ({"noncontiguous": True, "memory_format": torch.channels_last}, "mutually exclusive"),
    ],
)
def test_make_tensor_refuses(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_tensor(2, **{"dtype": torch.float32, "device": "cpu", **arguments})


def test_the_older_comparison_is_looser() -> None:
    with pytest.warns(FutureWarning, match="assert_allclose"):
        torch.testing.assert_allclose([1.0, math.nan], np.array([1.00005, math.nan]))
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_allclose(torch.ones(2), torch.full((2,), 1.001))
