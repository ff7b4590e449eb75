"""Distributions: samplers draw what they say, reparameterized samples are differentiated right, divergences have a registry."""

from __future__ import annotations

import abc

import numpy as np
import pytest
from scipy import stats
from support import close

import cltensor as torch
from cltensor import distributions as D

pytestmark = pytest.mark.usefixtures("one_by_one")  # compositions share kernels of single operators

N = 20_000


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.fp64)])
def test_gamma_and_binomial_numbers(dtype: str) -> None:
    torch.manual_seed(0)
    dt = getattr(torch, dtype)
    for a in (0.1, 1.0, 3.0, 50.0):
        x = torch._standard_gamma(torch.full((N,), a, dtype=dt)).tolist()
        assert stats.kstest(x, stats.gamma(a).cdf).pvalue > 1e-3
    for n, p in ((5, 0.3), (40, 0.5), (1000, 0.9)):
        x = torch.binomial(torch.full((N,), n, dtype=dt), torch.full((N,), p, dtype=dt)).tolist()
        expected = stats.binom(n, p).pmf(np.arange(n + 1)) * N
        found = np.bincount(np.array(x, int), minlength=n + 1)
        use = expected > 5
        score = ((found - expected)[use] ** 2 / expected[use]).sum()
        assert stats.chi2(use.sum() - 1).sf(score) > 1e-3


def test_edges() -> None:
    assert torch._standard_gamma(torch.zeros(3)).tolist() == [0, 0, 0]
    assert torch.binomial(torch.full((2,), 4.0), torch.tensor([0.0, 1.0])).tolist() == [0, 4]
    assert torch._standard_gamma(torch.zeros(0)).shape == (0,)
    with pytest.raises(RuntimeError, match="Found dtype"):
        torch.binomial(torch.ones(1), torch.ones(1, dtype=torch.float16))
    points = torch._sample_dirichlet(torch.full((4, 3), 0.5))
    close(points.sum(-1), np.ones(4))


def test_gradient_of_gamma_numbers() -> None:
    a = torch.full((N,), 2.5, requires_grad=True)
    x = torch._standard_gamma(a)
    (slope,) = torch.autograd.grad(x.sum(), a)
    assert x.grad_fn.name() == "StandardGammaBackward0"
    # d/da E x = 1 and d/da E x**2 = 2 a + 1
    assert abs(slope.mean().item() - 1) < 0.02
    assert abs((2 * x.detach() * slope).mean().item() - 6) < 0.3


@pytest.mark.parametrize(
    ("a", "b"), [(0.1, 0.2), (1.0, 30.0), (40.0, 0.5), (300.0, 500.0), (2e3, 3e3)]
)
def test_gradient_of_beta_numbers(a: float, b: float) -> None:
    """As a parameter a changes, a sample x stays at its quantile: dx/da = -(dF/da) / p (F: distribution, p: density)."""
    torch.manual_seed(0)
    shapes = torch.tensor([[a, b]] * 40, requires_grad=True)
    x = D.Beta(*shapes.unbind(1)).rsample()
    (found,) = torch.autograd.grad(x.sum(), shapes)
    x, one, eps = np.asarray(x.tolist()), stats.beta, 1e-3
    use = (x > 1e-30) & (x < 1 - 1e-6)
    for place, (da, db) in enumerate(((eps * a, 0), (0, eps * b))):
        slope = one.cdf(x, a + da, b + db) - one.cdf(x, a - da, b - db)
        expected = -slope / (2 * (da + db)) / one.pdf(x, a, b)
        np.testing.assert_allclose(
            np.asarray(found[:, place].tolist())[use], expected[use], rtol=4e-3
        )


def test_gradient_of_points() -> None:
    """The first element of a Dirichlet sample is beta distributed; what it gains, the others lose in proportion."""
    torch.manual_seed(0)
    a = torch.tensor([[0.5, 2.0, 3.0]] * 40, requires_grad=True)
    x = D.Dirichlet(a).rsample()
    assert x.grad_fn.name() == "_DirichletBackward"
    rows = [torch.autograd.grad(x[:, k].sum(), a, retain_graph=True)[0][:, 0] for k in range(3)]
    close(sum(rows), np.zeros(40))
    first, rest = rows[0], x[:, 1:].detach()
    close(torch.stack(rows[1:], 1) * rest.sum(1, True), (-first.unsqueeze(1) * rest).tolist(), 1e-4)
    v, eps = np.asarray(x[:, 0].tolist()), 1e-4
    slope = stats.beta.cdf(v, 0.5 + eps, 5) - stats.beta.cdf(v, 0.5 - eps, 5)
    close(first, -slope / (2 * eps) / stats.beta.pdf(v, 0.5, 5), 2e-3)


def test_expanding_forgets_what_was_computed_for_the_old_shape() -> None:
    d = D.LowRankMultivariateNormal(torch.zeros(3), torch.ones(3, 1), torch.ones(3))
    close(d.variance, [2.0] * 3)
    close(d.expand((2,)).variance, [[2.0] * 3] * 2)


def test_generalized_pareto() -> None:
    d = D.GeneralizedPareto(torch.zeros(3), torch.ones(3), torch.tensor([0.3, 0.0, -0.4]))
    x = torch.tensor([0.5, 0.5, 0.5])
    expected = [stats.genpareto(c) for c in (0.3, 0.0, -0.4)]
    close(d.log_prob(x), [e.logpdf(0.5) for e in expected])
    close(d.cdf(x), [e.cdf(0.5) for e in expected])
    close(d.icdf(d.cdf(x)), x)
    close(d.mean, [e.mean() for e in expected])


def test_register_kl() -> None:
    class Mine(D.Normal):
        pass

    one = Mine(0.0, 1.0)
    assert D.kl_divergence(one, D.Normal(0.0, 1.0)).item() == 0
    D.register_kl(Mine, Mine)(lambda p, q: 7)
    assert D.kl_divergence(one, one) == 7
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented"):
        D.kl_divergence(one, D.StudentT(1.0))


def test_register_kl_of_bases_that_are_no_distributions() -> None:
    class Base(abc.ABC):  # noqa: B024 - it only claims a class
        pass

    class Own(D.StudentT):
        pass

    Base.register(Own)
    D.register_kl(Own, Base)(lambda p, q: 5)
    assert D.kl_divergence(Own(1.0), Own(2.0)) == 5
    with pytest.raises(TypeError, match="must be a class"):
        D.register_kl(Own, 3)


def test_points_of_small_concentrations_are_inside() -> None:
    """Samples are ratios of gamma numbers, most of which are too small here for float32. Yet the ratios must differ
    from 0, 1/2 and 1.
    """
    torch.manual_seed(0)
    x = torch.distributions.Beta(torch.full((500,), 0.01), torch.full((500,), 0.01)).sample()
    if x._storage.backend.info.fp64:
        assert (x == 0.5).sum().item() == 0
        assert 0 < x.min().item() < x.max().item() < 1
    points = torch.distributions.Dirichlet(torch.full((50, 3), 0.05).requires_grad_()).rsample()
    points[:, 0].sum().backward()
    assert points.sum(-1).sub(1).abs().max().item() < 1e-6


def test_singular_matrices_are_drawn_again() -> None:
    """With few degrees of freedom, hundreds of the first samples are not positive definite in float32."""
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="Low df values"):
        few = D.Wishart(torch.tensor([1.05, 1.5]), torch.eye(2))
    with pytest.warns(UserWarning, match="Singular sample detected"):
        once = few.sample((2000,))
    assert few.support.check(once).all().item()
    with pytest.warns(UserWarning, match="Singular sample detected"):
        assert few.rsample((2000,), max_try_correction=1).isfinite().all().item()
    assert not few.support.check(few.rsample((2000,), max_try_correction=0)).all().item()
    close(once.mean(0), few.mean.tolist(), 0.2)


def test_transforms_and_distributions_may_be_modules() -> None:
    class Shift(D.transforms.Transform, torch.nn.Module):
        domain = codomain = D.constraints.real
        bijective = True

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.by = torch.nn.Parameter(torch.ones(2))

        def _call(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.by

        def log_abs_det_jacobian(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            kept = self._cached_x_y
            assert (x is kept[0], y is kept[1]) == (True, True)
            return torch.zeros_like(x)

    class Learnt(D.Normal, torch.nn.Module):
        def __init__(self) -> None:
            super().__init__(torch.zeros(2), torch.ones(2))
            self.shift = Shift()

    learnt = Learnt()
    assert list(learnt.state_dict()) == ["shift.by"]
    x = torch.zeros(2)
    y = learnt.shift(x)
    assert y.tolist() == [1, 1]
    assert learnt.shift.inv(y) is x
    assert learnt.shift.log_abs_det_jacobian(x, y).tolist() == [0, 0]
