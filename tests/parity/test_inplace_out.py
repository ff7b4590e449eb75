"""In-place and `out=` forms: the value of every variable afterwards, warnings about resizing, dtype checks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, lines, tensor, th
from support import ct, data

# a, b, p, o float32 (3, 4); p positive, o zeros; u (4,); k, ko int64 (3, 4); m, mo masks; i an index (3,), j (3, 2)
# o64 float64 (3, 4); wrong (5, 2); none (0,); r (3,); big a base of 24; t a view of it, transposed, (3, 4)
TABLE = """
u = u[:1].clone(); u.addbmm_(a[None], b.t()[None])
torch.nn.functional.linear(a, b, out=torch.zeros(3, 3))
torch.nn.functional.gelu(a, out=o)
torch.nn.functional.softplus(a, out=o)
torch.nn.functional.softshrink(a, out=o)
torch.nn.functional.hardshrink(a, out=o)
torch.nn.functional.logsigmoid(a, out=o)
torch.nn.functional.gelu(a, out=o64)
torch.eq(g, a, out=m); torch.isin(g, a, out=m); torch.histc(g, 3, out=r)
torch.special.bessel_j0(g, out=o)
torch.nan_to_num(a, out=o64)
torch.slice_scatter(a, b[:1], end=1, out=o64)
torch.qr(a[:, :3], out=(o64, o64))
torch.lu_unpack(a[:, :3], torch.tensor([1, 2, 3], dtype=torch.int32), out=(o64, o64, o64))
r = torch.view_copy(t, (12,)); u = torch.view_copy(t, size=(2, 6)); k = torch.view_copy(t, dtype=torch.int32)
k.cauchy_()
u = p[:, :1].clone(); u.expand(3, 4).tril_()
u = p[:1].clone(); u.expand(3, 4).triu_(1)
u = p[None].clone(); u.expand(2, 3, 4).tril_()
u = g.detach()[:, :1].clone().requires_grad_(); u.expand(3, 4).tril_()
m = m.clone(); m[:, :1].expand(3, 4).triu_(-1)
g.logical_not_()
g.logical_and_(b)
g[0].logical_xor_(b[0])
g.logical_or_(g)
g.eq_(b)
torch.select_scatter(a, a[0], 0, 0, out=o)
torch.nn.functional.linear(a, b, out=torch.zeros(3, 3, dtype=torch.float64))
torch.nn.functional.linear(a, b, p[:, 0], out=torch.zeros(3, 3, dtype=torch.int64))
torch.nn.functional.softshrink(a, out=o64)
torch.nn.functional.logsigmoid(a, out=o64)
torch.nn.functional.avg_pool2d(a[None], 2, out=torch.zeros(1, 1, 2, dtype=torch.float16))
torch.nn.functional.avg_pool3d(a[None, None], (1, 2, 2), out=torch.zeros(1, 1, 1, 2, dtype=torch.float64))
torch.mv(a, u, out=torch.zeros(3, dtype=torch.float64))
torch.addbmm(a, a[None], torch.ones(1, 4, 4), out=torch.zeros(3, 4, dtype=torch.float64))
torch.linalg.ldl_solve(torch.eye(3), torch.ones(3, dtype=torch.int32), a, out=o64)
torch.nansum(a, 1, out=torch.zeros(3, dtype=torch.int64))
torch.nansum(a, 1, dtype=torch.complex64)
torch.cumsum(a, 0, out=m)
torch.cumprod(m, 0, dtype=torch.bool)
torch.zeros(3, 4, out=None); torch.ones(2, out=None); torch.full((2,), 1.0, out=None); torch.eye(2, out=None)
torch.arange(3, out=None); torch.linspace(0, 1, 3, out=None); torch.logspace(0, 1, 3, out=None)
torch.zeros(2, out=1)
torch.fft.fftfreq(5, out=o); torch.fft.rfftfreq(6, out=r[:1])
torch.fft.fftfreq(12, out=torch.zeros(6)); torch.fft.fftfreq(3, out=none)
torch.fft.rfftfreq(6, out=o64, dtype=torch.float32)
torch.fft.fftfreq(5, out=torch.zeros(5, requires_grad=True))
torch.unsafe_split(a, 2, 1)[0].zero_(); a.unsafe_chunk(2)[1].fill_(7); a.unsafe_split_with_sizes([1, 2])[0].add_(1); (a._version, a)
torch.conj_physical(a).zero_()
a.conj_physical().add_(b); torch.conj_physical(b, out=o).add_(1)
a.add_(b)
a.add_(1)
a.add_(b, alpha=2)
a.add_(u)
a.add_(k)
a.sub_(b)
a.mul_(b)
a.mul_(2)
a.div_(p)
a.div_(p, rounding_mode='floor')
a.pow_(2)
a.remainder_(2)
a.fmod_(p)
a.floor_divide_(p)
a.neg_()
a.abs_()
a.exp_()
p.log_()
p.sqrt_()
p.rsqrt_()
a.sin_()
a.tanh_()
a.sigmoid_()
a.relu_()
a.floor_()
a.round_()
a.trunc_()
a.clamp_(-0.5, 0.5)
a.clamp_min_(0)
a.zero_()
a.fill_(3)
a.fill_(torch.tensor(2))
a.copy_(b)
a.copy_(u)
a.copy_(k)
k.copy_(a * 3)
m.copy_(k)
a.masked_fill_(m, 9)
a.masked_scatter_(m, b)
a.lerp_(b, 0.5)
a.addcmul_(b, p, value=2)
a.addcdiv_(b, p)
a.addmm_(b, torch.ones(4, 4))
a.t_()
a.transpose_(0, 1)
a.unsqueeze_(0)
a.squeeze_()
a.resize_(2, 2)
a.resize_(4, 3)
a.index_add_(0, i, b)
a.index_copy_(0, i, b)
a.index_fill_(1, i, 5)
a.index_put_((i, i), u[:3])
a.scatter_(1, j, b)
a.scatter_(1, j, 2.0)
a.scatter_add_(1, j, b)
a.scatter_reduce_(1, j, b, 'prod')
a.cumsum_(0)
a.triu_()
a.fill_diagonal_(7)
a.swapaxes_(0, 1)
a.logical_not_()
a.lt_(0.5)
a.eq_(b)
k.add_(1)
k.mul_(True)
k.add_(k)
k.bitwise_and_(3)
k.add_(1.5)
k.div_(2)
k.mul_(a)
k.exp_()
k.floor_divide_(2)
m.add_(1)
m.logical_not_()
m.mul_(m)
m |= k > 0
k <<= 1
k //= 2
k %= 3
a += b
a -= 1
a *= u
a /= 2
a **= 2
a //= 2
a @= torch.eye(4)
k += 1.5
k /= 2
u += a
a[0] = 1
a[0] = u
a[:, 1] = b[:, 2]
a[1:, ::2] = 5
a[m] = 0
a[m] = b[m]
a[i] = b
a[i, i] = u[:3]
a[i, 0] = 3
a[..., -1] = r
a[None] = b
a[a > 0] *= 2
a[0] += u
a[0, 0] = k[0, 0]
k[0] = a[0] * 3
k[0] = 2.7
m[0] = 1
a[:] = a.flip(0)
a[1:] = a[:-1].clone()
a[0], a[1] = a[1].clone(), a[0].clone()
t.add_(1)
t.mul_(a)
t[0] = u
t.copy_(b)
t.zero_()
t.exp_()
t.cumsum_(1)
t.t().sub_(1)
big[3:9] = 0
big.add_(1)
big.view(4, 6)[:, 2].fill_(1)
big.view(4, 6).t()[1:3].mul_(2)
big.as_strided((3, 2), (2, 1)).add_(1)
u.expand(3, 4).add_(1)
u.expand(3, 4).zero_()
big[1:].copy_(big[:-1].clone())
torch.add(a, b, out=o)
torch.add(a, b, out=a)
torch.add(a, b, out=b)
torch.mul(a, 2, out=o)
torch.add(a, u, out=o)
torch.add(a, b, out=t)
torch.add(a, b, out=o64)
torch.add(a, b, out=ko)
torch.add(k, k, out=o)
torch.add(k, k, out=ko)
torch.add(a, b, out=wrong)
torch.add(a, b, out=none)
torch.add(a, b, out=torch.empty(0, dtype=torch.int32))
torch.exp(a, out=o)
torch.exp(k, out=o)
torch.exp(k, out=ko)
torch.exp(a, out=wrong)
torch.lt(a, b, out=mo)
torch.lt(a, b, out=o)
torch.sum(a, 1, out=r)
torch.sum(a, 0, out=r)
torch.mean(a, 1, out=r)
torch.prod(a, 1, out=r)
torch.amax(a, 1, out=r)
torch.max(a, 1, out=(r, i))
torch.max(a, b, out=o)
torch.sort(a, 1, out=(o, ko))
torch.cumsum(a, 0, out=o)
torch.argmax(a, 1, out=i)
torch.any(m, 1, out=mo)
torch.all(a, 0, out=mo)
torch.mm(a, b.t(), out=wrong)
torch.mm(a, b.t(), out=none)
torch.matmul(a, u, out=r)
torch.addmm(torch.zeros(3, 3), a, b.t(), out=none)
torch.cat((a, b), out=none)
torch.cat((a, b), out=wrong)
torch.stack((a, b), out=none)
torch.where(m, a, b, out=o)
torch.clamp(a, 0, 1, out=o)
torch.index_select(a, 0, i, out=o)
torch.gather(a, 1, j, out=none)
torch.take(a, i, out=r)
torch.masked_select(a, m, out=none)
torch.nonzero(m, out=ko)
torch.arange(4, out=u)
torch.linspace(0, 1, 4, out=u)
torch.zeros(3, 4, out=a)
torch.ones(2, out=a)
torch.full((3, 4), 2.0, out=a)
torch.eye(3, 4, out=a)
torch.eye(3, 4, out=ko)
torch.arange(0, 3, 1.5, out=i)
torch.linspace(0, 10, 3, out=i)
torch.full((3,), 1.5, out=i)
torch.tril(a, out=o)
torch.softmax(a, 1, out=o)
torch.softmax(u[:-1], 0, out=u[1:])
torch.pow(a, 2, out=o)
torch.norm(a, dim=1, out=r)
torch.var(a, 1, out=r)
torch.inverse(torch.eye(3) * 2, out=none)
torch.add(g, b, out=o)
torch.add(a, b, out=g)
g.mul_(2)
g[0] = 1
g.detach().mul_(2)
g.data.add_(1)
with torch.no_grad(): g.add_(1)
"""


def variables(module: Any) -> dict[str, Any]:
    """Return the variables that the statements name, as new tensors of a library."""
    big = data(24)
    made = {
        "a": data(3, 4),
        "b": data(3, 4, seed=1),
        "p": abs(data(3, 4, seed=2)) + 0.5,
        "o": np.zeros((3, 4), np.float32),
        "u": data(4),
        "k": data(3, 4, dtype="int64"),
        "ko": np.zeros((3, 4), np.int64),
        "m": data(3, 4, dtype="bool"),
        "mo": np.zeros(3, bool),
        "i": np.array([2, 0, 1]),
        "j": np.array([[0, 2], [1, 0], [2, 1]]),
        "o64": np.zeros((3, 4)),
        "wrong": np.ones((5, 2), np.float32),
        "none": np.zeros(0, np.float32),
        "r": np.zeros(3, np.float32),
        "big": big,
    }
    names = {k: tensor(module, v) for k, v in made.items()}
    names["t"] = names["big"][2:14].view(4, 3).t()
    names["g"] = tensor(module, data(3, 4), requires_grad=True)
    return names


@pytest.mark.parametrize("line", lines(TABLE))
def test_statement(line: str) -> None:
    names = {m: variables(m) for m in (ct, th)}

    def program(module: Any) -> None:
        exec(line, {"torch": module}, names[module])

    before = {k: v.data_ptr() for k, v in names[ct].items()}
    th_before = {k: v.data_ptr() for k, v in names[th].items()}
    found, expected = Ran(ct, program), Ran(th, program) if ct is not th else None
    if expected is None:
        return
    if expected.error is not None:
        if found.error is None and "not implemented for" in str(expected.error):
            return
        assert_same_error(found, expected)
    elif found.error is not None:
        raise AssertionError(f"{type(found.error).__name__}: {found.error}") from found.error
    for name, value in names[th].items():
        # The contents that `a.resize_(4, 3)` leaves are not compared.
        if line.startswith("a.resize_(4") and name == "a":
            continue
        assert_same_value(names[ct][name], value, where=f"{name}: ")
        moved = value.data_ptr() != th_before[name]
        if value.numel() and "resize" not in line and not moved:
            assert names[ct][name].data_ptr() == before[name], f"{name} moved"
    resized = [w for w in expected.warnings if "was resized" in w[1]]
    found_resized = [w for w in found.warnings if "was resized" in w[1]]
    assert [c for c, _ in found_resized] == [c for c, _ in resized]
    if resized:
        assert found_resized[0][1].split(".")[0] == resized[0][1].split(".")[0]


def test_the_warning_about_a_resized_result_points_at_the_caller() -> None:
    for module in (ct, th):
        x = module.ones(3, 4)
        for call in (module.neg, partial(module.sum, dim=0)):
            with pytest.warns(UserWarning, match="resized since it had shape") as seen:
                call(x, out=module.ones(2))
            assert [w.filename for w in seen] == [__file__]
