"""Every differentiable operator beyond test_rows.py's: first and second derivatives against finite differences.

A case is a line: a name, a function of tensors, the shapes of its inputs and the interval they are drawn from. Inputs are
float64; the first is a strided view (every other column of a wider tensor), so that no formula relies on dense memory, save in
most pointwise cases: how elements are read does not depend on the formula. Binary operators broadcast their second input.
"""

import numpy as np
import pytest
from support import close

import cltensor as ct
from cltensor.autograd import gradcheck, gradgradcheck

F = ct.nn.functional
M, V, ROW = (3, 4), (4,), (1, 4)
ANY, POSITIVE, UNIT = (-2.0, 2.0), (0.3, 3.0), (-0.8, 0.8)

# Without a numpy reference in their rows: those with one are tested in test_rows.py.
UNARY = {ANY: "sigmoid erf erfc relu frac", POSITIVE: "lgamma digamma", UNIT: "erfinv"}


POINTWISE = [
    ("add", lambda x, y: x + y, (M, ROW)),
    ("add alpha", lambda x, y: ct.add(x, y, alpha=3), (M, V)),
    ("sub", lambda x, y: x - y, (M, V)),
    ("rsub", lambda x, y: ct.rsub(x, y, alpha=2), (M, V)),
    ("number minus", lambda x: 3 - x, (M,)),
    ("number over", lambda x: 2 / x, (M,), POSITIVE),
    ("pow 3", lambda x: x**3, (M,)),
    ("pow 2.5", lambda x: x**2.5, (M,), POSITIVE),
    ("number pow", lambda x: 2.0**x, (M,)),
    ("clamp", lambda x: x.clamp(-0.5, 0.7), (M,)),
    ("clamp tensors", lambda x, y, z: ct.clamp(x, y - 3, z + 3), (M, V, V)),
    ("renorm", lambda x: x.renorm(2, 0, 0.5), (M,)),
    ("renorm of three", lambda x: x.renorm(3, 1, 0.2), (M,)),
    ("mvlgamma", lambda x: (x * x + 2).mvlgamma(3), (M,)),
    ("clamp_min", lambda x: x.clamp(min=0.1), (M,)),
    ("where", lambda x, y: ct.where(ct.arange(4) > 1, x, y), (M, ROW)),
    ("lerp", lambda x, y, w: ct.lerp(x, y, w), (M, M, M), UNIT),
    ("lerp number", lambda x, y: ct.lerp(x, y, 0.3), (M, V)),
    ("addcmul", lambda x, y, z: ct.addcmul(x, y, z, value=0.5), (M, V, M)),
    ("addcdiv", lambda x, y, z: ct.addcdiv(x, y, z, value=0.5), (M, V, M), POSITIVE),
    ("xlogy", lambda x, y: ct.xlogy(x, y), (M, V), POSITIVE),
    ("masked_fill", lambda x: x.masked_fill(ct.arange(4) > 2, 1.5), (M,)),
    ("logit", lambda x: ct.logit(x), (M,), (0.2, 0.8)),
    ("gelu", lambda x: F.gelu(x), (M,)),
    ("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), (M,)),
    ("silu", lambda x: F.silu(x), (M,)),
    ("mish", lambda x: F.mish(x), (M,)),
    ("softplus", lambda x: F.softplus(x), (M,)),
    ("elu", lambda x: F.elu(x), (M,)),
    ("leaky_relu", lambda x: F.leaky_relu(x), (M,)),
    ("logsigmoid", lambda x: F.logsigmoid(x), (M,)),
    ("hardswish", lambda x: F.hardswish(x), (M,)),
]
POINTWISE += [
    (name, lambda x, name=name: getattr(ct, name)(x), (M,), domain)
    for domain, names in UNARY.items()
    for name in names.split()
]
STRIDED = {"add", "number minus", "clamp tensors", "where", "lerp", "elu"}

CASES = [
    *POINTWISE,
    # reductions
    ("sum", lambda x: x.sum(), (M,)),
    ("sum dim", lambda x: x.sum(0), (M,)),
    ("mean", lambda x: x.mean(1, keepdim=True), (M,)),
    ("prod", lambda x: x.prod(), (M,), POSITIVE),
    ("prod dim", lambda x: x.prod(1), (M,), POSITIVE),
    ("var", lambda x: x.var(0), (M,)),
    ("std", lambda x: x.std(1), (M,)),
    ("max", lambda x: x.max(), (M,)),
    ("max dim", lambda x: x.max(1).values, (M,)),
    ("min dim", lambda x: x.min(0).values, (M,)),
    ("amax", lambda x: x.amax((0, 1)), (M,)),
    ("amin", lambda x: x.amin(1), (M,)),
    ("norm", lambda x: x.norm(), (M,)),
    ("norm 3", lambda x: x.norm(3, 1), (M,), POSITIVE),
    ("logsumexp", lambda x: x.logsumexp(1), (M,)),
    ("cumsum", lambda x: x.cumsum(1), (M,)),
    ("cumprod", lambda x: x.cumprod(1), (M,), POSITIVE),
    ("median", lambda x: x.median(), (M,)),
    ("median dim", lambda x: x.median(1).values, (M,)),
    ("kthvalue", lambda x: x.kthvalue(2, 1).values, (M,)),
    ("sort", lambda x: x.sort(1).values, (M,)),
    ("topk", lambda x: x.topk(2, 1).values, (M,)),
    ("trace", lambda x: x.trace(), (M,)),
    # shape
    ("t", lambda x: x.t() * 2, (M,)),
    ("permute", lambda x: x.permute(1, 0) * 2, (M,)),
    ("reshape", lambda x: x.reshape(2, 6) * 2, (M,)),
    ("expand", lambda x: x.unsqueeze(1).expand(3, 2, 4) * 2, (M,)),
    ("select", lambda x: x[1] * 2, (M,)),
    ("slice", lambda x: x[:, 1:3] * 2, (M,)),
    ("diagonal", lambda x: x.diagonal() * 2, (M,)),
    ("unfold", lambda x: x.unfold(1, 2, 1) * 2, (M,)),
    ("as_strided", lambda x: x.contiguous().as_strided((2, 3), (1, 2)) * 2, (M,)),
    ("cat", lambda x, y: ct.cat([x, y], 0), (M, ROW)),
    ("stack", lambda x, y: ct.stack([x, y], 1), (M, M)),
    ("repeat", lambda x: x.repeat(2, 2), (M,)),
    ("flip", lambda x: x.flip(0), (M,)),
    ("roll", lambda x: x.roll(1, 0), (M,)),
    ("tril", lambda x: x.tril(), (M,)),
    ("triu", lambda x: x.triu(1), (M,)),
    ("diag", lambda x: x[0].diag(), (M,)),
    ("unbind", lambda x: x.unbind(0)[1] * x.unbind(0)[0], (M,)),
    ("split", lambda x: x.split(2, 1)[0] * 2, (M,)),
    # indexing
    ("index", lambda x: x[ct.tensor([0, 2, 0])], (M,)),
    ("mask", lambda x: x[ct.tensor([True, False, True])], (M,)),
    ("index_select", lambda x: x.index_select(1, ct.tensor([3, 3, 0])), (M,)),
    ("gather", lambda x: x.gather(1, ct.tensor([[0, 0], [1, 2], [3, 3]])), (M,)),
    ("scatter", lambda x, y: x.scatter(1, ct.tensor([[0], [1], [3]]), y), (M, (3, 1))),
    (
        "scatter_add",
        lambda x, y: x.scatter_add(1, ct.tensor([[0, 0], [1, 2], [3, 3]]), y),
        (M, (3, 2)),
    ),
    ("take", lambda x: x.take(ct.tensor([0, 5, 5])), (M,)),
    ("masked_select", lambda x: x.masked_select(ct.arange(4) > 1), (M,)),
    ("index_put", lambda x, y: x.index_put((ct.tensor([0, 2]),), y), (M, (2, 4))),
    ("index_add", lambda x, y: x.index_add(0, ct.tensor([0, 0]), y), (M, (2, 4))),
    # products
    ("mm", lambda x, y: x.mm(y), (M, (4, 2))),
    ("mv", lambda x, y: x.mv(y), (M, V)),
    ("dot", lambda x, y: x[0].dot(y), (M, V)),
    ("bmm", lambda x, y: x.reshape(1, 3, 4).bmm(y), (M, (1, 4, 2))),
    ("matmul", lambda x, y: x @ y, (M, (2, 4, 2))),
    ("addmm", lambda c, a, b: ct.addmm(c, a, b, beta=0.5, alpha=2), ((3, 2), M, (4, 2))),
    ("addmv", lambda a, b, c: ct.addmv(c, a, b), (M, V, (3,))),
    ("addr", lambda c, a, b: ct.addr(c, a, b), (M, (3,), V)),
    ("outer", lambda x, y: ct.outer(x[0], y), (M, (3,))),
    (
        "baddbmm",
        lambda c, a, b: ct.baddbmm(c.reshape(1, 3, 2), a, b),
        ((3, 2), (1, 3, 4), (1, 4, 2)),
    ),
    ("cross", lambda x, y: ct.linalg.cross(x, y, dim=0), ((3, 2), (3, 2))),
    # softmax and losses
    ("softmax", lambda x: x.softmax(1), (M,)),
    ("log_softmax", lambda x: x.log_softmax(0), (M,)),
    ("cross_entropy", lambda x: F.cross_entropy(x, ct.tensor([0, 3, 1])), (M,)),
    ("nll_loss", lambda x: F.nll_loss(x, ct.tensor([0, 3, 1])), (M,)),
    ("mse_loss", lambda x, y: F.mse_loss(x, y), (M, M)),
    # linear algebra
    ("inverse", lambda x: ct.inverse(x @ x.t() + ct.eye(3, dtype=ct.float64)), ((3, 3),)),
    ("det", lambda x: ct.det(x @ x.t() + ct.eye(3, dtype=ct.float64)), ((3, 3),)),
    (
        "solve",
        lambda x, y: ct.linalg.solve(x @ x.t() + ct.eye(3, dtype=ct.float64), y),
        ((3, 3), (3, 2)),
    ),
    ("cholesky", lambda x: ct.linalg.cholesky(x @ x.t() + ct.eye(3, dtype=ct.float64)), ((3, 3),)),
    ("qr", lambda x: ct.linalg.qr(x)[1].abs(), ((4, 3),)),
    ("svdvals", lambda x: ct.linalg.svdvals(x), ((3, 4),)),
    ("eigvalsh", lambda x: ct.linalg.eigvalsh(x + x.t()), ((3, 3),)),
]
DENSE = {case[0] for case in POINTWISE} - STRIDED

pytestmark = pytest.mark.usefixtures("one_by_one")


def inputs(shapes, domain, strided):
    rng = np.random.RandomState(3)
    made = []
    for k, shape in enumerate(shapes):
        low, high = domain
        apart = k == 0 and strided
        t = ct.tensor(rng.uniform(low, high, (*shape[:-1], shape[-1] * 2) if apart else shape))
        made.append((t[..., ::2] if apart else t).detach().requires_grad_())
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_first_and_second_derivatives(case):
    name, fn, shapes, *rest = case
    xs = inputs(shapes, rest[0] if rest else ANY, name not in DENSE)
    assert gradcheck(fn, xs)
    assert gradgradcheck(fn, xs)


ONE = ct.ones(())
FAR = [  # a function, an argument where a careless formula overflows or cancels, and the derivatives there
    ("softplus", F.softplus, 100.0, 1.0, 0.0),
    ("logsigmoid", F.logsigmoid, -100.0, 1.0, 0.0),
    ("soft_margin_loss", lambda x: F.soft_margin_loss(x, -ONE), 100.0, 1.0, 0.0),
    ("bce", lambda x: F.binary_cross_entropy_with_logits(x, 0 * ONE), 100.0, 1.0, 0.0),
    ("elu", F.elu, 100.0, 1.0, 0.0),
    ("celu", F.celu, 100.0, 1.0, 0.0),
    ("selu", F.selu, 100.0, 1.0507009873554805, 0.0),
    ("mish", F.mish, 1e5, 1.0, 0.0),
    ("gelu", lambda x: F.gelu(x, approximate="tanh"), -1e5, 0.0, 0.0),
    ("log_ndtr", lambda x: ct.special.log_ndtr(x), 20.0, 0.0, 0.0),
    ("i1", lambda x: ct.special.i1(x), 1e-30, 0.5, 0.0),
    ("sinc", ct.sinc, 0.0, 0.0, -3.2898681336964524),
    ("nextafter itself", lambda x: ct.nextafter(x, ONE) * x, 1.0, 1.0, 0.0),
    ("sinc nearby", ct.sinc, 1e-4, -3.289868e-4, -3.2898680),
]


@pytest.mark.parametrize("case", FAR, ids=lambda case: case[0])
def test_derivatives_where_formulas_overflow_or_cancel(case):
    _, fn, at, first, second = case
    x = ct.tensor(at, requires_grad=True)
    (slope,) = ct.autograd.grad(fn(x), x, create_graph=True)
    bend = ct.autograd.grad(slope, x)[0].item() if slope.requires_grad else 0.0
    assert (slope.item(), bend) == pytest.approx((first, second), rel=1e-5, abs=1e-20)


def test_logarithms_of_operands_of_less_precision_keep_digits():
    x = ct.tensor([2.0], requires_grad=True)
    y = ct.tensor([3.0], dtype=ct.half)
    assert ct.autograd.grad(ct.xlogy(x, y), x)[0].item() == pytest.approx(np.log(3), rel=1e-6)
    assert ct.autograd.grad(y**x, x)[0].item() == pytest.approx(9 * np.log(3), rel=1e-6)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_products_of_real_parts_differentiate():
    x = ct.tensor([2.0 + 5.0j, 3.0], requires_grad=True)
    x.prod(0, dtype=ct.float32).backward()
    assert x.grad.tolist() == [3.0, 2.0]


def test_running_logarithms_differentiate_twice_where_complex_shares_cancel():
    x = ct.tensor([40.0, 0.0, 0.0], dtype=ct.complex128, requires_grad=True)  # every result is 40
    shares = ct.tensor([1.0, 0.5, -0.5], dtype=ct.complex128, requires_grad=True)
    assert gradgradcheck(lambda x: x.logcumsumexp(0), x, shares)


def test_running_logarithms_keep_their_digits_far_from_zero():
    x = ct.tensor([8192.0, 0.0, 0.0], requires_grad=True)  # every result is 8192
    x.logcumsumexp(0).backward(ct.tensor([0.3, -0.7, 0.45]))
    assert x.grad.tolist() == pytest.approx([0.05, 0.0, 0.0], abs=1e-6)


def test_gradients_where_nothing_turns_and_margins_are_just_kept() -> None:
    """Gradients of atan2 at the origin, and of margin losses at margins of exactly zero, are those of torch."""
    x, y = (ct.tensor([0.0, 3.0], requires_grad=True) for _ in range(2))
    ct.atan2(x, y).sum().backward()
    close(x.grad, [0, 1 / 6])
    close(y.grad, [0, -1 / 6])
    z = ct.tensor([2.0, 1.0, 3.0], requires_grad=True)
    F = ct.nn.functional
    (F.multi_margin_loss(z, ct.tensor(0)) * 3).backward()
    close(z.grad, [-1, 0, 1])
    z.grad = None
    (F.multilabel_margin_loss(z, ct.tensor([0, -1, 0])) * 3).backward()
    close(z.grad, [-1, 0, 1])


def test_slices_whose_norm_is_no_number_keep_their_slope():
    x = ct.tensor([[3.0, 4.0], [np.nan, 1.0]], requires_grad=True)
    (g,) = ct.autograd.grad(ct.renorm(x, 2, 0, 1.0), x, ct.tensor([[1.0, 1.0], [5.0, 7.0]]))
    assert g[1].tolist() == [5.0, 7.0]
    close(g[0], [0.2 - 0.2 * 0.84, 0.2 - 0.2 * 1.12], 1e-5)  # g / 5 - x (g . x) / 5**3


def test_slices_are_kept_to_a_norm_that_their_dtype_cannot_hold():
    x = ct.tensor([[6e4, 6e4], [6.0, 8.0]], dtype=ct.float16, requires_grad=True)
    y = ct.renorm(x, 2, 0, 2.0)
    close(y, [[2**0.5, 2**0.5], [1.2, 1.6]], 1e-3)
    (g,) = ct.autograd.grad(y, x, ct.tensor([[1.0, 1.0], [1.0, 0.0]], dtype=ct.float16))
    close(g, [[0, 0], [0.2 - 0.2 * 0.36, -0.2 * 0.48]], 1e-3)  # (g - x (g . x) / |x|**2) * 2 / |x|


def test_bounds_that_meet_have_no_slope():
    x = ct.tensor([0.5, -0.5], requires_grad=True)
    low, high = (ct.zeros(2, requires_grad=True) for _ in range(2))
    g = ct.autograd.grad(ct.clamp(x, low, high).sum(), (x, low, high))
    assert [t.tolist() for t in g] == [[0, 0], [0, 0], [1, 0]]


def test_targets_of_certain_probabilities_have_endless_slopes():
    p, t = ct.tensor([0.0, 1.0, 0.5]), ct.tensor([0.0, 1.0, 0.5], requires_grad=True)
    (g,) = ct.autograd.grad(F.binary_cross_entropy(p, t, reduction="sum"), t)
    assert g.tolist() == [np.inf, -np.inf, 0.0]


def test_extremes_that_are_no_numbers_have_no_number_as_slope():
    for f in (ct.amax, ct.amin, lambda x, d: ct.aminmax(x, dim=d).min):
        x = ct.tensor([[1.0, np.nan], [2.0, 3.0]], requires_grad=True)
        (g,) = ct.autograd.grad(f(x, 1).sum(), x)
        assert g[0].isnan().all() and g[1].sum() == 1


def test_differences_that_are_no_numbers_are_not_counted():
    x = ct.tensor([[1.0, np.nan, np.inf, 0.0], [1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 0.0, 0.0]])
    assert ct.cdist(x, x, 0.0)[0].isnan().all() and ct.cdist(x, x, 0.0)[1].tolist()[1:] == [0, 1]
    found = F.pdist(x, 0.0)
    assert found[:2].isnan().all() and found[2] == 1
