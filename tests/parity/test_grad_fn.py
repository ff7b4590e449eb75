"""Grad nodes: `grad_fn` has torch's name, and the first three levels of the graph have torch's nodes and edges."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import lines, tensor, th
from support import ct, data

# x, y (3, 4); p the same, positive; v (4,), s 0-dim; q (3, 3) definite; b3 (2, 3, 4): all require grad.
# c is a constant like x, i an index tensor, m a mask.
TABLE = """
torch.nn.functional.scaled_dot_product_attention(b3[None], b3[None], b3[None])
torch.gru_cell(x, y, torch.cat([x, y, x, y]), torch.cat([y, x, y, x]))
torch.autograd.grad(torch.relu(x).sum(), x, create_graph=True)[0] * 1
torch.autograd.grad(torch.nn.functional.pad(x, (1, 1), 'reflect').sum(), x, create_graph=True)[0] * 1
x + y
x + 1
1 + x
x - y
1 - x
x * y
x * 2
2 * x
x / y
x / 2
1 / x
x ** 2
x ** y
2 ** x
-x
+x
abs(x)
x @ y.t()
x % 2
x // 2
x.add(y, alpha=2)
torch.add(0.5, y, alpha=1.5)
torch.sub(1, y, alpha=0.5)
x.sub(y)
x.rsub(y) if hasattr(x, 'rsub') else torch.rsub(x, y)
x.mul(s)
x.div(y, rounding_mode='floor')
x.addcmul(y, y)
x.addcdiv(y, p)
x.lerp(y, 0.5)
x.lerp(y, p)
x.neg()
x.abs()
x.sign()
x.exp()
x.exp2()
x.expm1()
p.log()
p.log2()
p.log10()
p.log1p()
p.sqrt()
p.rsqrt()
p.reciprocal()
x.square()
torch.fft.fft(x)
torch.fft.ifft(x)
torch.fft.fft2(x)
torch.fft.rfft(x, n=3)
torch.fft.irfft(x)
torch.fft.ihfftn(x)
torch.fft.fftshift(x)
x.sin()
x.cos()
x.tan()
x.asin()
x.acos()
x.atan()
x.sinh()
x.cosh()
x.tanh()
x.asinh()
p.acosh()
x.atanh()
x.atan2(y)
x.hypot(y)
x.sigmoid()
x.relu()
x.erf()
x.erfc()
x.erfinv()
p.lgamma()
p.digamma()
x.logit()
x.sinc()
x.floor()
x.ceil()
x.round()
x.trunc()
x.frac()
x.fmod(2)
x.fmod(y)
x.remainder(2)
x.clamp(-1, 1)
x.clamp(min=0)
x.clamp_min(0)
x.clamp_max(1)
x.maximum(y)
x.minimum(y)
x.fmax(y)
x.fmin(y)
x.max(y)
x.copysign(y)
x.nan_to_num()
x.deg2rad()
x.rad2deg()
x.float_power(2)
x.pow(3)
x.pow(y)
x.logaddexp(y)
x.logaddexp2(y)
x.xlogy(p)
torch.special.xlog1py(x, 2)
torch.special.xlog1py(2, p)
torch.special.zeta(2, p)
x.masked_fill(m, 0)
x.where(m, y)
torch.where(m, x, 0.0)
x.sum()
x.sum(0)
x.sum((0, 1))
x.sum(1, keepdim=True)
x.mean()
x.mean(0)
x.prod()
x.prod(1)
x.var()
x.var(0)
x.std()
x.std(1)
x.max()
x.min()
x.max(1).values
x.min(0).values
x.amax(0)
x.amin((0, 1))
x.aminmax().min
x.norm()
x.norm(dim=1)
x.logsumexp(1)
x.median()
x.median(1).values
x.mode(1).values
x.kthvalue(2, 1).values
x.nansum()
x.nanmean()
x.cumsum(0)
x.cumprod(0)
x.cummax(0).values
x.logcumsumexp(0)
x.sort(1).values
x.topk(2).values
x.view(12)
x.view(-1, 2)
x.reshape(12)
x.t().reshape(12)
x.flatten()
x.ravel()
x.t()
x.T
x.mT
x.transpose(0, 1)
x.swapaxes(0, 1)
x.permute(1, 0)
x.movedim(0, 1)
x[0, 0].movedim(0, 0)
x.unsqueeze(0)
torch.view_copy(x, (12,))
torch.split_copy(x, 1)[0]
torch.unbind_copy(x)[1]
torch.squeeze_copy(x, 0)
torch.narrow_copy(x, 0, 0, 1)
torch.unsafe_split(x, 1)[0]
x.squeeze()
x.unsqueeze(0).squeeze(0)
x.unsqueeze(0).squeeze((0,))
x.expand(2, 3, 4)
x.expand_as(b3)
x.narrow(0, 1, 2)
x.select(0, 1)
x.diagonal()
x.diag()
v.diag()
x.unfold(1, 2, 1)
x.unflatten(1, (2, 2))
x.view_as(y)
x.as_strided((2, 2), (1, 2))
x.chunk(2)[0]
x.split(2)[0]
x.split([1, 2])[1]
x.unbind()[0]
x.tensor_split(2)[0]
x.contiguous()
x.t().contiguous()
x.clone()
x.repeat(2, 2)
x.tile((2, 2))
x.repeat_interleave(2, 0)
x.roll(1, 0)
x.flip(0)
x.fliplr()
x.rot90()
x.triu()
x.tril()
x.to(torch.float64)
x.double()
x.half()
x[0]
x[0, 1]
x[:, 1]
x[1:]
x[::2, 1:]
x[..., 0]
x[None]
x[m]
x[i]
x[i, i]
x[:, i]
x[[0, 1]]
x.index_select(0, i)
x.masked_select(m)
x.gather(1, i[:, None])
x.take(i)
x.take_along_dim(i[:, None], 1)
x.scatter(1, i[:, None], 1.0)
x.scatter(1, i[:, None], y)
x.scatter_add(1, i[:, None], y)
x.scatter_reduce(1, i[:, None], y, 'sum')
x.index_add(0, i, y)
x.index_copy(0, i, y)
x.index_fill(0, i, 0)
x.index_put((i,), y)
x.masked_scatter(m, y)
x.mm(y.t())
torch.matmul(x, v)
torch.matmul(v, y.t())
torch.matmul(v, v)
torch.matmul(b3, y.t())
torch.matmul(b3, b3.mT)
b3.bmm(b3.mT)
x.mv(v)
v.dot(v)
v.inner(v)
v.outer(v)
torch.addmm(q, x, y.t())
torch.addmv(v, y.t(), y[:, 0])
torch.addr(q, q[0], q[1])
torch.baddbmm(b3, b3 @ b3.mT, b3)
torch.addbmm(x, b3 @ b3.mT, b3)
torch.einsum('ij,kj->ik', x, y)
torch.tensordot(x, y, ([1], [1]))
torch.kron(q, q)
torch.cross(q, q + 1, 1)
torch.cat((x, y))
torch.cat((x, y), 1)
torch.stack((x, y))
torch.hstack((x, y))
torch.vstack((x, y))
torch.dstack((x, y))
torch.block_diag(x, y)
torch.meshgrid(v, v, indexing='ij')[0]
torch.broadcast_tensors(x, b3)[0]
torch.softmax(x, 1)
torch.log_softmax(x, 1)
torch.cdist(x, y)
torch.trace(q)
torch.det(q)
torch.inverse(q)
torch.linalg.inv(q)
torch.linalg.solve(q, q)
torch.linalg.norm(x)
torch.linalg.vector_norm(x)
torch.linalg.cholesky(q @ q.t())
torch.linalg.qr(q).R
torch.linalg.svd(x).S
torch.linalg.eigh(q + q.t()).eigenvalues
torch.logdet(q @ q.t())
torch.diff(x)
torch.cov(x)
torch.special.expit(x)
torch.special.entr(p)
F.relu(x)
F.leaky_relu(x)
F.elu(x)
F.selu(x)
F.gelu(x)
F.silu(x)
F.mish(x)
F.softplus(x)
F.softsign(x)
F.hardtanh(x)
F.hardswish(x)
F.hardsigmoid(x)
F.relu6(x)
F.celu(x)
F.glu(x)
F.logsigmoid(x)
F.threshold(x, 0.1, 0.0)
F.softmax(x, 1)
F.log_softmax(x, 1)
F.softmin(x, 1)
F.linear(x, y)
F.linear(x, y, y[:, 0])
F.mse_loss(x, c)
F.mse_loss(x, c, reduction='none')
F.l1_loss(x, c)
F.smooth_l1_loss(x, c)
F.huber_loss(x, c)
torch.autograd.grad(F.mse_loss(x, y), x, create_graph=True)[0] * 1
torch.autograd.grad(F.smooth_l1_loss(x, y), y, create_graph=True)[0] * 1
torch.autograd.grad(F.huber_loss(x, y, reduction='sum'), x, create_graph=True)[0] * 1
F.cross_entropy(x, i)
F.cross_entropy(x, c.softmax(1))
F.nll_loss(x, i)
F.kl_div(x, c)
F.binary_cross_entropy(x.sigmoid(), c.sigmoid())
F.binary_cross_entropy_with_logits(x, c.sigmoid())
F.cosine_similarity(x, y)
F.pairwise_distance(x, y)
F.normalize(x)
F.layer_norm(x, (4,))
F.batch_norm(x, None, None, training=True)
F.group_norm(b3, 3)
F.embedding(i, x)
F.dropout(x, 0.5)
F.dropout(x, 0.5, training=False)
F.pad(x, (1, 1))
F.one_hot(i) * s
F.interpolate(b3, scale_factor=2)
F.interpolate(b3[None], 3, mode='bilinear')
F.grid_sample(b3[None], b3.view(1, 3, 4, 2), align_corners=True)
F.affine_grid(b3.view(4, 2, 3), (4, 1, 2, 2), align_corners=False)
F.pixel_unshuffle(b3[:, :2], 2)
F.channel_shuffle(b3, 3)
F.embedding_bag(i, x, torch.tensor([0]))
F.ctc_loss(b3, torch.tensor([[1], [2], [1]]), (2, 2, 2), (1, 1, 1), reduction='none')
x.clone().add_(1)
x.clone().mul_(y)
x.clone().zero_()
x.clone().fill_(2)
x.clone().exp_()
x.clone().relu_()
x.clone().copy_(y)
x.clone().masked_fill_(m, 1)
x.clone().t_()
x.clone().unsqueeze_(0)
x.clone().clamp_(0, 1)
x.clamp(c)
x.clamp(max=c)
x.clamp(c, c)
x.clamp(float("nan"))
x.clamp_min(c)
x.clamp_max(c)
x.clone().clamp_(c)
x.clone().clamp_(max=c)
x.clone().clamp_min_(c)
x.clone().clamp_max_(c)
x.clone().clamp_max_(0)
x.clone().asinh_()
p.clone().arccosh_()
x.clone().atanh_()
x.clone().conj_physical_()
x.clone().eq_(0)
x.clone().not_equal_(y)
x.clone().lt_(0)
x.clone().less_equal_(y)
x.clone().gt_(y)
x.clone().ge_(0)
c.clone().ge_(x)
x.clone().logical_or_(y)
x.clone().set_(v)
p.polygamma(0)
p.polygamma(1)
p.polygamma(3)
p.clone().polygamma_(0)
p.clone().polygamma_(1)
p.clone().polygamma_(3)
p.mvlgamma(2)
p.clone().mvlgamma_(2)
x.renorm(2, 0, 0.1)
x.clone().renorm_(1, 1, 0.1)
x.clone().index_fill_(0, i, 2)
x.clone().scatter_(1, i[:, None], 1.0)
assign(x.clone(), 0, 1.0)
assign(x.clone(), 0, v)
assign(x.clone(), m, 0.0)
assign(x.clone(), i, y)
changed_view(x.clone())
F.conv1d(b3, b3[:, :, :2], v[:2])
F.conv2d(b3[None], b3.view(3, 2, 2, 2), padding=1)
F.conv2d(b3, b3.view(3, 2, 2, 2))
F.conv3d(b3[None, None], b3.view(3, 1, 2, 2, 2))
F.conv_transpose1d(b3, b3.view(3, 4, 2))
torch.conv_tbc(b3, b3.view(2, 4, 3), v[:3], 1)
F.unfold(b3[None], 2)
F.fold(b3.view(12, 2), (3, 2), 2)
"""


def names(module: Any) -> dict[str, Any]:
    def assign(t: Any, index: Any, value: Any) -> Any:
        t[index] = value
        return t

    def changed_view(t: Any) -> Any:
        t[0].mul_(2)
        return t

    x = data(3, 4)
    positive = abs(x) + 1.5
    square = data(3, 3) + 4 * (data(3, 3) * 0 + [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).astype("float32")
    tensors = {
        "x": 0.5 * x / abs(x).max(),
        "y": data(3, 4, seed=1),
        "p": positive,
        "v": data(4),
        "s": data()[()],
        "q": square,
        "b3": data(2, 3, 4),
    }
    return {
        "torch": module,
        "F": module.nn.functional,
        "assign": assign,
        "changed_view": changed_view,
        "c": tensor(module, data(3, 4, seed=2)),
        "i": module.tensor([2, 0, 1]),
        "m": tensor(module, x > 0),
        **{k: tensor(module, v, requires_grad=True) for k, v in tensors.items()},
    }


def name_of(node: Any) -> str:
    return "None" if node is None else type(node).__name__


@pytest.fixture(scope="module")
def made() -> tuple[dict[str, Any], dict[str, Any]]:
    return names(ct), names(th)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("line", lines(TABLE))
def test_name(line: str, made: Any) -> None:
    found, expected = (eval(line, dict(m)) for m in made)
    assert found.requires_grad == expected.requires_grad
    assert name_of(found.grad_fn) == name_of(expected.grad_fn)
    if expected.grad_fn is not None:
        assert found.grad_fn.name() == expected.grad_fn.name()


EDGES = """
x + y
x * y
x * 2
c * x
x - x
(x * y) + x
x.exp() * y.sin()
x.view(12) + 1
x.t() @ y
torch.cat((x, c, y.exp()))
torch.stack((x, y))
torch.where(m, x, y)
torch.where(m, x, c)
x.sum() * s
x.mean() + s
x + v
torch.addmm(q, x, y.t())
F.linear(x, y, y[:, 0])
F.cross_entropy(x, i)
x[0] * v
x.pow(2).sum(0)
torch.matmul(x, v)
x.clone().mul_(y)
x.softmax(1).log()
F.conv1d(b3, b3[:, :, :2].exp(), v[:2])
"""


@pytest.mark.parametrize("line", lines(EDGES))
def test_edges(line: str, made: Any) -> None:
    def tree(node: Any, depth: int = 3) -> Any:
        if node is None or not depth:
            return name_of(node)
        edges = [(tree(n, depth - 1), i) for n, i in node.next_functions]
        while edges and edges[-1][0] == "None":  # edges of constants at the end do not count
            edges.pop()
        return name_of(node), edges

    found, expected = (tree(eval(line, dict(m)).grad_fn) for m in made)
    assert found == expected
