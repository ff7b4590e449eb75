"""NumPy scalars as arguments: a dim, a size or a factor taken from an array works as a Python number does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_value, ct, lines, th

# I is NumPy's int64, F32 its float32, F64 its float64; `a` is a 2 x 3 ramp, `n` six integers.
LINES = """
a.sum(I(1))
a.sum((I(0), I(1)))
a.mean(np.int32(1))
a.prod(I(1))
a.max(I(1))
a.amax(I(1))
a.argmax(I(1))
a.std(I(1))
a.var(I(0), correction=I(0))
a.any(I(1))
a.all(I(1))
a.logsumexp(I(1))
a.median(I(1))
a.kthvalue(I(1), I(1))
a.topk(I(1), I(1))
a.sort(I(1))
a.cumsum(I(1))
a.softmax(I(1))
a.count_nonzero(I(0))
a.nansum(I(0))
a.quantile(F64(0.5), I(0))
torch.var_mean(a, I(0))
torch.linalg.norm(a, I(2), I(1))
torch.linalg.vector_norm(a, F64(2), I(1))
torch.gradient(torch.arange(4.0), spacing=F64(2))
torch.gradient(a, dim=I(1))
a.reshape(I(3), I(2))
a.unsqueeze(I(1))
a[:1].squeeze(I(0))
a.transpose(I(1), I(0))
a.movedim(I(0), I(1))
a.chunk(I(2), I(1))
a.flip(I(1))
a.roll(I(1), I(1))
a.roll(I(1))
torch.unflatten(a, I(1), (I(3), 1))
torch.tensor_split(a, I(2))
torch.hsplit(a, I(3))
torch.fft.fftshift(a, I(1))
torch.fft.fft(a, I(2), I(1))
torch.eye(I(2), I(3))
torch.bincount(n, minlength=I(9))
torch.nan_to_num(a / 0, F64(1), F32(2), I(3))
torch.trapezoid(a, dx=F64(2))
torch.cumulative_trapezoid(a, dx=F32(2))
F.normalize(a, p=F64(2), dim=I(1))
F.cross_entropy(a, n[:2], label_smoothing=F64(0.1))
F.cross_entropy(a, n[:2], label_smoothing=F32(0.5), ignore_index=I(1))
F.batch_norm(a, torch.zeros(3), torch.ones(3), momentum=F64(0.1), eps=F32(0.5))
F.layer_norm(a, (I(3),), eps=F32(0.5))
F.leaky_relu(-a, F32(0.5))
F.softplus(a, F64(2), F32(3))
F.interpolate(a[None], size=I(5))
F.max_pool2d(a[None, None], I(2), I(1))
torch.set_num_threads(I(torch.get_num_threads()))
nn.Flatten(I(0))(a)
nn.AvgPool2d(I(2), stride=I(1))(a[None])
nn.ConstantPad1d(I(1), F64(2))(a)
"""


@pytest.mark.parametrize("line", lines(LINES))
def test_numpy_number(line: str) -> None:
    def program(torch: Any) -> Any:
        names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np}
        names |= {"I": np.int64, "F32": np.float32, "F64": np.float64}
        return eval(line, names | {"a": torch.arange(6.0).reshape(2, 3), "n": torch.arange(6)})

    found, expected = Ran(ct, program), Ran(th, program)
    assert expected.error is None
    if found.error is not None:
        raise found.error
    assert_same_value(found.value, expected.value)
