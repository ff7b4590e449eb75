"""Making tensors: dtypes inferred and asked for, memory formats, outputs, buffers and Python data, as torch has them."""

from __future__ import annotations

import collections
import fractions

import numpy as np
import pytest
from parity.oracle import assert_same_outcome, evaluate, lines
from support import data

# Python's types as dtypes
TYPES = """
torch.zeros(2).to(int)
torch.zeros(2).to(dtype=complex)
torch.zeros(2).view(int)
torch.ones(2).sum(dtype=int)
torch.ones(2).mean(dtype=float)
torch.ones(2).prod(0, dtype=int)
torch.ones(2).nansum(dtype=float)
torch.ones(2).cumsum(0, dtype=int)
torch.ones(2).softmax(0, dtype=float)
torch.linalg.vector_norm(torch.ones(2), dtype=float)
torch.rand(2, dtype=float).dtype
torch.randint(3, (2,), dtype=float).dtype
torch.randperm(3, dtype=float).dtype
torch.rand_like(torch.ones(2), dtype=float).dtype
torch.as_tensor(np.ones(2), dtype=int)
torch.frombuffer(bytearray(8), dtype=int)
torch.promote_types(float, torch.int8)
torch.promote_types(str, int)
torch.finfo(float).bits
torch.nn.Linear(2, 2).to(float).weight.dtype
torch.zeros(2, dtype=str)
torch.zeros(2).to(str)
"""

# ranges, with arguments by position and by keyword
RANGES = """
torch.arange(5)
torch.arange(end=5)
torch.arange(2, end=5)
torch.arange(2, end=9, step=3)
torch.arange(start=2, end=5)
torch.arange(2, 9, step=3)
torch.arange(9, 2, -3)
torch.arange(0, end=3, dtype=torch.float32)
torch.arange(torch.tensor(2), end=5)
torch.arange(0, end=torch.tensor(3.0))
torch.arange(np.int64(4))
torch.arange(1.0, 2.0, 0.25)
torch.linspace(torch.tensor(1.0), torch.tensor(2), 3)
torch.linspace(-9, 3, 10, dtype=torch.int64)
torch.linspace(0, 1, torch.tensor(3)), torch.linspace(0, 1, steps=torch.tensor(3, dtype=torch.uint8))
torch.logspace(0, 1, torch.tensor(3))
torch.linspace(-9, 5, 50, dtype=torch.int32)
torch.linspace(0, 299, 16, dtype=torch.int16)
torch.linspace(4.3, torch.tensor(-3), 50, dtype=torch.int64)
torch.linspace(0, 10**12, 7, dtype=torch.int64)
torch.linspace(7, 7, 1, dtype=torch.uint8)
"""

# memory formats
FORMATS = """
x.contiguous(memory_format=torch.channels_last).stride()
x.contiguous(memory_format=torch.channels_last)
x.to(memory_format=torch.channels_last).stride()
x.to(torch.float64, memory_format=torch.channels_last).stride()
x.to(torch.float64, memory_format=torch.channels_last)
x.transpose(0, 1).clone(memory_format=torch.channels_last).stride()
x.transpose(0, 1).clone(memory_format=torch.channels_last)
x.add(1).clone(memory_format=torch.channels_last).mul(2).sum((0, 2, 3))
x.unsqueeze(-1).contiguous(memory_format=torch.channels_last_3d).stride()
x.contiguous(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
x.contiguous(memory_format=torch.channels_last).is_contiguous()
x.unsqueeze(-1).is_contiguous(memory_format=torch.channels_last)
x.contiguous(memory_format=torch.channels_last).dim_order()
x.float(memory_format=torch.channels_last).stride()
x.cpu(memory_format=torch.channels_last).stride()
x[:, :, :1, :1].contiguous().to(memory_format=torch.channels_last).stride()
x.transpose(0, 1).to(torch.float64, memory_format=torch.contiguous_format).stride()
x.transpose(0, 1).to(memory_format=torch.contiguous_format).stride()
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
torch.zeros_like(x, memory_format=torch.channels_last).stride()
torch.rand_like(x, memory_format=torch.channels_last).stride()
torch.empty_like(x.contiguous(memory_format=torch.channels_last)).stride()
torch.zeros(120).resize_((2, 3, 4, 5), memory_format=torch.channels_last).stride()
torch.zeros(120).resize_as_(x.contiguous(memory_format=torch.channels_last)).stride()
torch.zeros(120).resize_as_(x.contiguous(memory_format=torch.channels_last), memory_format=torch.preserve_format).stride()
torch.nn.Conv2d(3, 4, 1).to(memory_format=torch.channels_last).weight.stride()
torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)(x.contiguous(memory_format=torch.channels_last)).stride()
x[0].contiguous(memory_format=torch.channels_last)
x.contiguous(memory_format=torch.channels_last_3d)
x.contiguous(memory_format=3)
x.transpose(0, 1).contiguous(memory_format=torch.preserve_format)
"""

# numbers, tensors and arrays inside Python data
DATA = """
torch.tensor([torch.tensor([1]), torch.tensor([2])])
torch.tensor([(torch.tensor([1]), torch.tensor(2))])
torch.tensor((torch.tensor(3), torch.tensor(4.5)))
torch.tensor([torch.tensor(True), torch.tensor(2)])
torch.tensor([torch.tensor(1, dtype=torch.int8), 3])
torch.tensor([torch.tensor(1.0, dtype=torch.half), 3.0])
torch.tensor([2.0, np.float64(1)])
torch.tensor(bytearray(b"abc"))
torch.tensor(collections.deque([(1, 2.5), collections.deque([3, 4])]))
torch.tensor(fractions.Fraction(1, 2))
torch.tensor((2**70, 1.5))
torch.tensor([1e300, float("nan"), -2.5], dtype=torch.bfloat16)
torch.tensor([1e300, float("nan"), -2.5], dtype=torch.float16)
torch.tensor([1e300, float("nan"), -2.5], dtype=torch.float32)
torch.tensor(np.array([1e300, 2 - 3j]), dtype=torch.complex64)
torch.tensor(np.array([1e5, -3.5]), dtype=torch.int16)
torch.tensor([-(2**63) - 1, float("nan"), 0], dtype=torch.bool)
torch.randint(6, (2, 0), dtype=torch.complex64)
torch.arange(1e-38, 1e38)
torch.tensor([np.int32(1), 2])
torch.tensor([[1, 2], np.array([1.0, 2.0])])
torch.tensor([torch.zeros(2), torch.zeros(2)])
torch.tensor([1, torch.tensor([1, 2])])
torch.tensor([[1, 2], 3])
torch.tensor((lambda z: z.append(z) or z)([0]))
torch.tensor(2**66, dtype=torch.float32)
torch.tensor([2**66, 1], dtype=torch.float64)
torch.tensor([2**66, 0], dtype=torch.bool)
torch.tensor(2**63)
torch.tensor([2**63])
torch.tensor(2**63, dtype=torch.uint64).item()
torch.Tensor(torch.tensor([1]), device="cpu")
torch.tensor([1]).new(torch.tensor([1]), device="cpu")
torch.Tensor(torch.tensor([1, 2]))
torch.FloatTensor(torch.tensor([1, 2]))
torch.ones(2).new(torch.tensor([True]))
torch.tensor(np.array([1, 2], dtype=">i4"))
torch.nn.Parameter(3)
torch.asarray(bytearray(8))
torch.asarray(memoryview(np.arange(3)), dtype=torch.int64)
torch.asarray([1, 2], copy=False)
torch.asarray(torch.arange(3), dtype=torch.float32, copy=False)
torch.asarray(torch.ones(3, requires_grad=True) + 0, requires_grad=True).is_leaf
torch.asarray(torch.ones(3, requires_grad=True), requires_grad=False).requires_grad
torch.frombuffer(bytearray(8), dtype=torch.bfloat16)
torch.frombuffer(bytearray(7), dtype=torch.int32)
torch.frombuffer(bytearray(8), dtype=torch.int32, count=3)
torch.frombuffer(bytearray(8), dtype=torch.int32, offset=8)
torch.frombuffer(bytearray(8), dtype=torch.int32, offset=-1)
torch.frombuffer([1], dtype=torch.int32)
"""

# sizes, strides and outputs
SHAPES = """
(lambda t: (torch.arange(0, 4, out=t.narrow(1, 1, 2)), t))(torch.zeros(2, 4))
(lambda t: (torch.linspace(0, 3, 4, out=t.narrow(1, 1, 2)), t))(torch.zeros(2, 4))
torch.empty_strided((2, 3), (1,))
torch.empty_strided((2,), (-1,))
torch.empty_strided((-2,), (1,))
torch.broadcast_shapes(3, (1,), [2, 1])
torch.broadcast_shapes(1, -12)
torch.broadcast_shapes(1.5)
torch.broadcast_shapes((3, 5), (2, 4, 1))
torch.cat([torch.zeros(0), torch.zeros(0)], 1)
torch.arange(8).view(2, 4).roll(1, dims=None)
torch.arange(4).view(2, 2).rot90(1, [0, 2])
torch.arange(4).view(2, 2).rot90(1, [0, -2])
torch.nonzero(torch.ones(3), as_tuple=True, out=torch.empty(0, dtype=torch.long))
torch.nonzero(torch.ones(3), out=torch.empty(0))
torch.view_as_complex(torch.tensor(2.0))
torch.tensor_split(torch.zeros(4), torch.tensor(1.5))
torch.tensor_split(torch.zeros(4), torch.tensor([[1]]))
torch.zeros(()).index_put([], torch.ones(1))
torch.zeros(3).__delitem__(0)
torch.add(1, 1, alpha=True)
torch.ones(2).sum(dtype=torch.complex64)
torch.ones(2, dtype=torch.int8).mean(0, dtype=torch.complex128)
torch.ones(3).norm(dtype=torch.complex64)
torch.randperm(2050, dtype=torch.half)
torch.zeros(2).uniform_(-3.5e38, 1)
torch.zeros(2).uniform_(-3e38, 3e38)
torch.zeros(2).uniform_(2, 1)
"""


# deprecated calls with numbers between the tensors, parts of complex numbers, NumPy's argument names, limits of dtypes
FORMS = """
torch.add(torch.ones(2), 2, torch.ones(2))
torch.ones(2).sub_(2, torch.ones(2))
torch.ones(2).add_(1, 2, 3)
torch.addcmul(torch.ones(2), 3, torch.ones(2), torch.ones(2))
torch.ones(2).addcdiv_(-3, torch.ones(2), torch.ones(2))
torch.addmm(1, torch.ones(2, 2), 2, torch.ones(2, 2), torch.ones(2, 2))
torch.ones(2, 2).addmm_(2, 3, torch.ones(2, 2), torch.ones(2, 2))
torch.ones(2, 2).addmm(2, torch.ones(2, 2), torch.ones(2, 2))
(lambda t: (setattr(t, "real", 1), setattr(t, "imag", torch.arange(2.0)), t)[2])(torch.zeros(2, dtype=torch.cfloat))
setattr(torch.zeros(2), "imag", 1)
reversed(x[0, 0, 0])
reversed(torch.tensor(3))
torch.stack([x, x], axis=1).shape
torch.cat([x, x], axis=2).shape
x.softmax(axis=1)
x.cumsum(axis=-1)
torch.cumsum(x=x, axis=1)
x.kthvalue(1, axis=0, keepdims=True).values
x.unsqueeze(axis=0).shape
x.split(2, axis=0)
x.masked_fill_(torch.ones(2, 3, 4, 5, dtype=torch.uint8), 1)
x.transpose(0, 2)[::2].clone().stride()
x.transpose(0, 2)[::2].clone()
torch.arange(3).expand(2, 3).clone().stride()
torch.bernoulli(torch.ones(3), out=torch.zeros(2, dtype=torch.bool))
torch.cummax(torch.ones(3), 0, out=(torch.zeros(3), torch.zeros(3)))
torch.zeros(2).new(size=(3, 4)).shape
torch.zeros(2).set_(torch.zeros(2, dtype=torch.int64))
torch.zeros(2).set_(torch.zeros(2).untyped_storage(), 0, (2,), (-1,))
torch.zeros(2).set_(torch.zeros(2).untyped_storage(), -1, (2,), (1,))
torch.zeros(2).set_(torch.zeros(2).untyped_storage(), 1, (2,))
torch.zeros(2).set_(torch.zeros(2).untyped_storage(), 0, (3,), (1,)).shape
torch.arange(3).apply_(lambda v: "a")
torch.arange(3).map_(torch.arange(3), "a")
torch.set_num_threads(-1)
torch._check(False, lambda: "no")
torch._check_index(False)
torch._check("a")
torch._check_tensor_all(torch.tensor([True, False]))
torch._check_tensor_all(torch.ones(1))
torch._assert_async(torch.tensor(0))
torch.tensor([1, 2**63 + 1], dtype=torch.uint64)
torch.tensor([1, 2**63], dtype=torch.float64)
torch.tensor([1, 2**63, 2.5])
torch.arange(2**63, 2**63 + 2, dtype=torch.float64)
torch.arange(2**62, 2**62 + 3, dtype=torch.float32)
torch.ones(2).half().clamp(min=-float("inf"))
torch.ones(2, dtype=torch.uint8).clamp(-5)
torch.where(torch.tensor([True]), 2**63, 1.0)
__import__("pickle").loads(__import__("pickle").dumps(torch.tanh)) is torch.tanh
__import__("pickle").loads(__import__("pickle").dumps(torch.addmm)) is torch.addmm
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", lines(TYPES + RANGES + FORMATS + DATA + SHAPES + FORMS))
def test_made_as_torch_makes_it(line: str) -> None:
    found, expected = evaluate(
        line, {"x": data(2, 3, 4, 5)}, collections=collections, fractions=fractions
    )
    assert_same_outcome(found, expected)


def test_a_buffer_is_shared() -> None:
    from support import ct

    memory = np.zeros(3, np.float32)
    for view in (
        ct.asarray(memory),
        ct.asarray(memoryview(memory)),
        ct.frombuffer(memory, dtype=ct.float32),
    ):
        view.add_(1)
    assert memory.tolist() == [3, 3, 3]
    ct.asarray(memory, copy=True).zero_()
    assert memory.tolist() == [3, 3, 3]
