"""Values, dtypes and shapes of pointwise functions, reductions, views, indexing and creation; where torch raises, the
same class of error.

The inputs that the lines name are described in calls.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from parity.calls import cases, check_call
from parity.oracle import Ran, assert_same_outcome, lines, th
from support import ct

POINTWISE = """
a + b
a - b
a * b
a / b
a // p
a % p
a ** 2
p ** b.abs().clamp(max=3)
-a
abs(a)
a + 1
a + 1.5
2 - a
a * True
1 / p
a + u
a * h
a + d
a + i[:, None]
a < b
a <= 0
a > b
a >= 0.5
a == b
a != 0
~m
a & b
a | 3
a ^ b
i << 1
i >> 1
torch.add(a, b, alpha=2)
torch.add(a, 2, 3), torch.sub(a, torch.tensor(2), 3)
torch.sub(a, b, alpha=2)
torch.rsub(a, b)
torch.div(a, p, rounding_mode='floor')
torch.div(a, p, rounding_mode='trunc')
torch.fmod(a, p)
torch.remainder(a, p)
torch.remainder(a, -3)
torch.addcmul(a, b, p, value=2)
torch.addcdiv(a, b, p)
torch.lerp(a, b, 0.25)
torch.maximum(a, b)
torch.minimum(a, b)
torch.fmax(a, b)
torch.clamp(a, -1, 1)
torch.clamp(a, min=0.5)
torch.clamp(a, max=b)
torch.clamp(a, min=float('nan'))
torch.clamp(a, b, torch.where(m, b, float('nan')))
torch.arange(250, 256, dtype=torch.uint8) >> torch.arange(6, 12, dtype=torch.uint8)
torch.where(m, a, b)
torch.where(m, a, 0)
torch.where(a > 0, a, 1.5)
torch.masked_fill(a, m, 7)
torch.exp(a)
torch.exp2(a)
torch.expm1(a)
torch.log(p)
torch.log2(p)
torch.log10(p)
torch.log1p(p)
torch.sqrt(p)
torch.rsqrt(p)
torch.reciprocal(p)
torch.square(a)
torch.sin(a)
torch.cos(a)
torch.tan(a)
torch.asin(a / 10)
torch.acos(a / 10)
torch.atan(a)
torch.sinh(a / 2)
torch.cosh(a / 2)
torch.tanh(a)
torch.asinh(a)
torch.acosh(p)
torch.atanh(a / 10)
torch.atan2(a, b)
torch.hypot(a, b)
torch.sigmoid(a)
torch.relu(a)
torch.erf(a)
torch.erfc(a)
torch.erfinv(a / 10)
torch.lgamma(p)
torch.digamma(p)
torch.logit(torch.sigmoid(a))
torch.sinc(a)
torch.sign(a)
torch.sgn(a)
torch.signbit(a)
torch.floor(a)
torch.ceil(a)
torch.round(a)
torch.trunc(a)
torch.frac(a)
torch.heaviside(a, b)
torch.copysign(a, b)
torch.nextafter(a, b)
torch.ldexp(a, i[:, None])
torch.logaddexp(a, b)
torch.logaddexp2(a, b)
torch.xlogy(a, p)
torch.gcd(a, b)
torch.lcm(a, b)
torch.logical_and(a, b)
torch.logical_or(a, b)
torch.logical_xor(a, b)
torch.logical_not(a)
torch.bitwise_and(a, b)
torch.bitwise_not(a)
torch.isnan(a / (a - a))
torch.isinf(a / 0)
torch.isfinite(a / 0)
torch.isclose(a, b, atol=1.0)
torch.nan_to_num(a / 0), torch.nan_to_num(torch.complex(a / 0, a))
torch.deg2rad(a)
torch.float_power(p, 2)
torch.positive(a)
a.to(torch.float16)
a.to(torch.int32)
a.to(torch.bool)
a.double()
a.long()
torch.result_type(a, 1.5)
torch.result_type(a, i)
torch.can_cast(a.dtype, torch.int64)
"""

REDUCTIONS = """
a.sum()
a.sum(0)
a.sum((0, 1))
a.sum(-1, keepdim=True)
a.sum(1, dtype=torch.float64)
h.sum((0, 2))
h.sum(1)
a.mean()
a.mean(1)
a.prod()
a.prod(0)
a.max()
a.min()
a.max(0)
a.min(1, keepdim=True)
a.amax(1)
a.amin((0, 1))
a.aminmax()
a.argmax()
a.argmin(0)
a.argmax(1, keepdim=True)
a.all()
a.any()
a.all(0)
a.any(1, keepdim=True)
a.var()
a.std(0)
a.var(1, correction=0)
torch.std_mean(a, 1)
torch.var_mean(a)
a.norm()
a.norm(1, dim=1)
a.norm(inf)
torch.logsumexp(a, 1)
torch.count_nonzero(a)
torch.count_nonzero(a, 0)
torch.hash_tensor(a, 1, keepdim=True)
torch.diff(a, 0, 1, a, a)
torch.diff(a, 2, 1, a[:, :1], a)
torch.hash_tensor(a.to(torch.bfloat16), (0, 1))
torch.hash_tensor(a > 1, 0)
a.median()
a.median(1).values
(a.double() + torch.arange(12).view(3, 4) / 100).median(1)
a.nanmedian()
a.mode(1)
a.kthvalue(2, 1).values
(a.double() + torch.arange(12).view(3, 4) / 100).kthvalue(2, 1)
a.nansum()
a.nanmean()
torch.quantile(a, 0.3)
torch.quantile(a, u.abs().clamp(max=1), dim=1)
a.cumsum(0)
a.cumsum(1)
a.cumprod(1)
a.cummax(1)
a.cummin(0)
torch.logcumsumexp(a, 1)
torch.diff(a)
torch.trace(a)
torch.dist(a, b)
torch.sort(a, 1)
torch.sort(a, 0, descending=True)
torch.argsort(a, dim=1, stable=True)
torch.topk(a, 2)
torch.topk(a, 2, 0, largest=False)
torch.msort(a)
torch.unique(a)
torch.unique(a[:0], dim=0)
torch.unique_consecutive(a[:, None][:0], dim=1)
torch.ones(10, dtype=torch.uint8).all()
torch.sum(x=a, axis=0, keepdims=True)
torch.histogram(a, 3, weight=a * a, density=True)
torch.histogram(a, density=True)
torch.histogram(a, torch.tensor([-1.0, 0.0, 1.5]))
torch.unique(a, return_inverse=True, return_counts=True)
torch.unique_consecutive(a)
torch.bincount(i)
torch.histc(a, 4, -2, 2)
torch.searchsorted(torch.sort(u).values, a)
torch.bucketize(a, torch.sort(u).values, right=True)
torch.equal(a, b)
torch.allclose(a, a)
torch.softmax(a, 1)
torch.log_softmax(a, 0)
"""

SHAPES = """
a.t()
a.reshape(2, 6)
a.reshape(shape=(4, 3))
a.view(size=(4, 3))
a.permute(dims=(1, 0))
a.expand(size=(2, 3, 4))
a.repeat(repeats=(1, 2))
torch.tile(a, dims=(2,))
torch.flip(a, dims=(1,))
torch.view_copy(a, (4, 3))
torch.expand_copy(a, (2, 3, 4))
torch.as_strided_copy(a, (2, 2), (1, 2))
torch.split_copy(a, 2, 1)
torch.unbind_copy(a)
torch.unsafe_split(a, 2)
a.unsafe_chunk(2)
a.narrow_copy(1, 1, 2)
a.flatten()
a.t().reshape(-1)
a.unsqueeze(1)
h.permute(2, 0, 1).contiguous()
h.transpose(0, 2)
a.expand(2, 3, 4)
a.repeat(2, 1)
a.tile((1, 2))
a.repeat_interleave(2)
a.repeat_interleave(i, 0)
a.roll(1)
a.roll((1, 2), (0, 1))
a.flip(0, 1)
a.fliplr()
a.rot90()
a.triu()
a.tril(-1)
a.diag()
u.diag(1)
a.diagonal(1)
torch.diag_embed(a)
a.unfold(1, 2, 1)
a.split(2)
a.split([1, 3], 1)
a.chunk(2, 1)
a.unbind(1)
a.tensor_split(3, 1)
a.tensor_split(sections=3, dim=1)
torch.tensor_split(a, indices=(1, -1), dim=-1)
torch.tensor_split(a, tensor_indices_or_sections=torch.tensor([1, 2]))
torch.hsplit(a, indices=[1])
torch.vsplit(a, sections=1)
torch.cat((a, b))
torch.cat((a, d), 1)
torch.cat((a, b[:0], a[:1]))
torch.stack((a, b), 1)
torch.stack((a, b), -1)
torch.hstack((a, b))
torch.vstack((a, u))
torch.dstack((a, b))
torch.column_stack((a, b))
torch.block_diag(a, b)
torch.cartesian_prod(u, u)
torch.combinations(u, 2)
torch.meshgrid(u, i, indexing='ij')
torch.meshgrid(u, u, indexing='xy')
torch.broadcast_to(u, (3, 4))
torch.atleast_2d(u)
torch.movedim(h, 0, -1)
torch.narrow(a, 1, 1, 2)
torch.select(a, 0, -1)
torch.squeeze(a[None], 0)
torch.vander(u, 3)
a[1]
a[:, 1]
a[1:, ::2]
a[..., -1]
a[None, 0]
a[i]
a[:, j]
a[i, i]
a[i[:, None], j]
a[m]
a[[0, 2]]
a[0, i]
a[i, :, None]
h[:, i]
h[0, ..., i]
h[:, i, i]
a[m.any(1)]
a[a > 0]
a.index_select(1, i)
a.gather(1, j)
a.gather(0, j)
a[0].gather(0, j[0, 0])
a[0].scatter_add(0, j[0, 0], a[0, 0])
a[0].scatter(0, j[0, 0], a[0, 0])
a.take(i)
a.take_along_dim(j, 1)
a.masked_select(m)
a.nonzero()
torch.nonzero(a, as_tuple=True)
torch.argwhere(m)
a.scatter(1, j, b)
a.scatter(1, j, 3)
a.scatter_add(1, j, b)
a.scatter_reduce(1, j, b, 'amax')
a.scatter_reduce(1, j, b, 'sum', include_self=False)
a.index_add(0, i, b)
a.index_copy(0, i, b)
a.index_fill(1, i, 2)
a.index_put((i, i), u[:3])
a.index_put((i, i), u[:3], accumulate=True)
a.masked_scatter(m, b)
torch.isin(a, u)
a.tolist()
a[0, 0].item()
a.size(), a.stride(), a.numel(), a.dim(), a.element_size(), a.nbytes
a.dtype, a.device, a.shape, a.is_floating_point(), a.is_contiguous()
len(a), list(a)[1], u[0] in u
"""

CREATION = """
torch.arange(5)
torch.arange(1, 6, 2)
torch.arange(0, 1, 0.25)
torch.arange(5, 0, -2)
torch.linspace(0, 1, 5)
torch.linspace(3, 10, 4, dtype=torch.int64), torch.linspace(-3.9, 5.9, 50, dtype=torch.int64)
torch.logspace(0, 2, 3), torch.logspace(0.5, 3.5, 4, base=2, dtype=torch.int64), torch.linspace(7.9, -3.5, 50, dtype=torch.int32), torch.linspace(3, 5, 1)
torch.linspace(1 + 1j, 3 - 2j, 5), torch.linspace(0, 2, 3, dtype=torch.complex64)
torch.logspace(1j, 2, 3), torch.logspace(0, 2, 5, base=3, dtype=torch.complex64)
torch.zeros(2, 3)
torch.ones((2,), dtype=torch.int32)
torch.full((2, 2), 7)
torch.full((2,), 1.5)
torch.full((2,), True)
torch.eye(2, 3)
torch.zeros_like(a)
torch.ones_like(i)
torch.full_like(a, 3)
torch.empty(0)
torch.tensor([1, 2])
torch.tensor([1, 2.5])
torch.tensor([[True], [False]])
torch.tensor(3)
torch.tensor([])
torch.tensor(np.ones(2))
torch.as_tensor([1.0, 2.0])
torch.from_numpy(np.arange(3, dtype=np.int16))
torch.Tensor([1, 2])
torch.Tensor(2, 0)
torch.LongTensor([3])
torch.tril_indices(3, 3)
torch.triu_indices(2, 3)
torch.tril_indices(4, 3, -1, device='meta').shape, torch.triu_indices(3, 5, 1, dtype=torch.int32, device='meta').shape
torch.hann_window(5)
torch.hamming_window(4, periodic=False)
torch.one_hot(i) if hasattr(torch, 'one_hot') else torch.nn.functional.one_hot(i)
a.new_zeros(2)
a.new_tensor([1])
a.new_full((2,), 3)
torch.promote_types(torch.int32, torch.float16)
torch.finfo(torch.float32).eps, torch.iinfo(torch.int8).max
torch.get_default_dtype()
torch.complex(a, b)
torch.polar(p, b)
torch.view_as_real(torch.complex(a, b))
torch.complex(a, b).abs()
torch.complex(a, b) * torch.complex(b, a)
torch.complex(a, b).conj().real
torch.tensor([1 + 2j, 3])
torch.broadcast_shapes((3, 1), (1, 4))
"""

# Bits of 16-bit results, also with Python numbers as operands; integers that wrap around; infinities; empty tensors.
EDGES = """
[x.view(torch.int16) for x in (p.bfloat16() + 0.1, p.half() - 0.7, p.half() % 0.3, p.bfloat16() ** 0.3, p.bfloat16() * 0.3, p.half() / 0.7)]
[torch.lcm(n * torch.arange(-120, 120, 7).to(t), torch.arange(60, 95).to(t)) for n, t in ((1, torch.int8), (200, torch.int16), (1, torch.uint8))]
(p.bfloat16() / 10) == 0.3, (p.half() / 10) >= 0.3, F.hardshrink((p / 10).bfloat16(), 0.3)
[torch.nextafter(a.to(t), b.to(t)).view(torch.int16) for t in (torch.half, torch.bfloat16)]
torch.nextafter(torch.tensor([0.0, -0.0, torch.inf, torch.nan, 65504]).half(), torch.tensor([-1.0, 0, 0, 0, torch.inf]).half())
[torch.round((a / 3).to(t), decimals=n).view(torch.int16) for t in (torch.half, torch.bfloat16) for n in (2, -1)]
torch.pow(2, torch.tensor([0, 7, 8, 17], dtype=torch.uint8)), torch.pow(-3, torch.tensor([0, 5, 127, -1], dtype=torch.int8)), torch.pow(3, torch.tensor([63, 100, 2**40 + 1]))
torch.heaviside(a / a - a / a + torch.nan, b)
torch.arange(2.1, -2.9, -1, dtype=torch.int16), torch.arange(0, 5, 1.5, dtype=torch.uint8), torch.arange(0, 2, 0.5, dtype=torch.int32)
torch.tensor([1, -1]).sum(dtype=torch.bool), torch.tensor([[0.5, -2], [0, 1]]).prod(1, dtype=torch.bool)
torch.i0(a / 0), torch.special.i1(a / 0)
torch.acos(torch.complex(a / 0, b / 0)), torch.asin(torch.complex(a / 0, b / 0)), torch.exp2(torch.complex(a / 0, b))
torch.cumulative_trapezoid(a[:0], dim=0), torch.cumulative_trapezoid(a[:, :1]), torch.trapezoid(u[:0], u[:0])
torch.cumulative_trapezoid(torch.arange(200, 208, dtype=torch.uint8), torch.arange(8, 0, -1, dtype=torch.uint8))
"""

SECTIONS = (
    (EDGES, ("float32",)),
    (POINTWISE, ("float32", "float64", "int64", "bool")),
    (REDUCTIONS, ("float32", "float64", "int64")),
    (SHAPES, ("float32", "bool")),
    (CREATION, ("float32",)),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("line", "dtype"), cases(SECTIONS))
def test_call(line: str, dtype: str) -> None:
    check_call(line, dtype)


# Functions of infinities and nan. x (5, 3) contains these, t (5,) and labels (5, 3) are targets. Values and gradients.
NOT_FINITE = """
F.multi_margin_loss(x, t, reduction="none")
F.multi_margin_loss(x, t, p=2, reduction="none")
F.multilabel_margin_loss(x, labels, reduction="none")
F.elu(x)
F.celu(x, 2.0)
F.selu(x)
F.relu6(x)
F.hardtanh(x)
F.softplus(x)
"""


@pytest.mark.parametrize("line", lines(NOT_FINITE))
def test_what_is_not_finite(line: str) -> None:
    inf, nan = float("inf"), float("nan")

    def run(module: Any) -> Any:
        rows = [[nan, 1, 2], [0, inf, 1], [1, 2, 3], [-inf, 0, 0], [nan, nan, nan]]
        x = module.tensor(rows, dtype=module.float32).requires_grad_()
        t = module.tensor([1, 1, 0, 0, 2])
        labels = module.tensor([[0, 1, -1], [1, -1, -1], [0, 2, -1], [0, -1, 0], [2, -1, 0]])
        value = eval(line, {"F": module.nn.functional, "x": x, "t": t, "labels": labels})
        (found,) = module.autograd.grad(value.sum(), x)
        return value, found

    found, expected = Ran(ct, run), Ran(th, run)
    assert_same_outcome(found, expected)


def test_statistics_of_batch_norm_have_the_dtype_of_its_parameters() -> None:
    for kinds in (("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16")):
        for training in (True, False):

            def run(module: Any, kinds: Any = kinds, training: Any = training) -> Any:
                dt, own = (getattr(module, k) for k in kinds)
                x, w = module.arange(24.0).reshape(2, 3, 4).to(dt), module.ones(3, dtype=own)
                made = module.native_batch_norm(x, w, w, w * 0, w * 1, training, 0.1, 1e-5)
                return [(str(t.dtype).rpartition(".")[2], tuple(t.shape)) for t in made]

            assert_same_outcome(Ran(ct, run), Ran(th, run))
