"""Distributions agree with torch's: moments, densities, quantiles, entropies, divergences, shapes, printed forms and errors."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from parity.oracle import Ran, assert_same_error, first_line, lines, numbers, th
from support import ct

from cltensor import config


@pytest.fixture(autouse=True, scope="module")
def _torch_checks() -> None:
    """Turn torch's argument checks on: importing torch's compiler, as another test may do, turns them off."""
    th.distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every op at once, so that all tests share a few kernels; each fusion would build one of its own."""
    monkeypatch.setattr(config, "CONFIG", dataclasses.replace(config.CONFIG, eager=True))


A, B, C = [0.3, 1.7, 2.5], [[0.7], [1.4]], [0.2, 0.5, 0.9]
MATRIX = [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.1]]
TRIL = [[1.0, 0.0, 0.0], [0.3, 1.2, 0.0], [-0.4, 0.1, 0.8]]
PROBS = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]

# One distribution a line; `t` makes a tensor, `D` is the module.
DISTRIBUTIONS = """
D.Bernoulli(t(C))
D.Bernoulli(logits=t(A))
D.Beta(t(A), t(B))
D.Beta(2.0, 3.0)
D.Binomial(5, t(C))
D.Binomial(t([3.0, 4.0, 5.0]), logits=t(A))
D.Categorical(t(PROBS))
D.Categorical(logits=t(PROBS))
D.Cauchy(t(A), t(B))
D.Chi2(t(A))
D.ContinuousBernoulli(t(C))
D.ContinuousBernoulli(logits=t(A))
D.Dirichlet(t(A))
D.Dirichlet(t([A, C]))
D.Exponential(t(A))
D.FisherSnedecor(t([5.0, 7.0]), t([6.0, 9.0]))
D.Gamma(t(A), t(B))
D.Geometric(t(C))
D.Geometric(logits=t(A))
D.Gumbel(t(A), t(B))
D.HalfCauchy(t(A))
D.HalfNormal(t(A))
D.Independent(D.Normal(t([A, C]), 1.0), 1)
D.InverseGamma(t([1.5, 2.5, 3.5]), t(B))
D.Kumaraswamy(t([1.5, 2.5, 3.5]), t(B))
D.LKJCholesky(3, t(A))
D.Laplace(t(A), t(B))
D.LogNormal(t(A), t(B))
D.LogisticNormal(t(A), t(A))
D.LowRankMultivariateNormal(t(A), t([[1.0], [0.5], [-0.3]]), t(A))
D.MixtureSameFamily(D.Categorical(t(A)), D.Normal(t(A), t(A)))
D.MixtureSameFamily(D.Categorical(t(A)), D.Independent(D.Normal(t([A, A, A]), t([A, C, A])), 1))
D.Multinomial(4, t(PROBS))
D.Multinomial(4, logits=t(PROBS))
D.MultivariateNormal(t(A), t(MATRIX))
D.MultivariateNormal(t(A), precision_matrix=t(MATRIX))
D.MultivariateNormal(t([A, C]), scale_tril=t(TRIL))
D.NegativeBinomial(t(A), t(C))
D.NegativeBinomial(3, logits=t([-0.3, -1.0]))
D.Normal(t(A), t(B))
D.Normal(0, 1)
D.OneHotCategorical(t(PROBS))
D.OneHotCategorical(logits=t(PROBS))
D.OneHotCategoricalStraightThrough(t(PROBS))
D.Pareto(t(A), t([[1.5], [2.5]]))
D.Poisson(t(A))
D.RelaxedBernoulli(t(0.7), t(C))
D.RelaxedOneHotCategorical(t(0.7), t(PROBS))
D.StudentT(t([0.7, 1.5, 3.5]), t(A), t(B))
D.TransformedDistribution(D.Normal(t(A), t(A)), [D.AffineTransform(1.0, t(B)), D.ExpTransform()])
D.TransformedDistribution(D.Normal(t(A), t(A)), D.StickBreakingTransform())
D.Uniform(t(A), t([3.0, 4.0, 5.0]))
D.VonMises(t(A), t(A))
D.Weibull(t(A), t(B))
D.Wishart(t(4.0), t(MATRIX))
D.Wishart(t([4.0, 5.0]), scale_tril=t(TRIL))
"""
LINES = lines(DISTRIBUTIONS)


def made(module: Any, line: str) -> Any:
    """Evaluate a line with a library's distributions, and with tensors of float64 that require grad."""

    def t(values: Any) -> Any:
        return module.tensor(values, dtype=module.float64, requires_grad=True)

    return eval(line, {**globals(), "D": module.distributions, "t": t})


def both(line: str) -> tuple[Any, Any]:
    """Return the distribution of a line in cltensor and in torch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return made(ct, line), made(th, line)


def values(dist: Any) -> Any:
    """Return samples of torch's distribution, the points at which both libraries' densities are compared."""
    th.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dist.sample((4,))


def compare(f: Any, found: Any, expected: Any, tol: float = 1e-7) -> None:
    """Assert that `f` of two distributions gives equal values, or errors of the same class."""
    a, b = Ran(found, f), Ran(expected, f)
    if b.error is not None:
        assert_same_error(a, b)
        return
    if a.error is not None:
        raise a.error
    if isinstance(b.value, th.Tensor):
        assert str(a.value.dtype) == str(b.value.dtype)
        assert tuple(a.value.shape) == tuple(b.value.shape)
        np.testing.assert_allclose(numbers(a.value), numbers(b.value), rtol=tol, atol=tol)
    else:
        assert str(a.value) == str(b.value)


@pytest.mark.parametrize("line", LINES)
def test_facts(line: str) -> None:
    ours, theirs = both(line)
    assert repr(ours) == repr(theirs)
    for name in ("batch_shape", "event_shape", "has_rsample", "has_enumerate_support"):
        assert str(getattr(ours, name)) == str(getattr(theirs, name)), name
    for name in ("mean", "mode", "variance", "stddev"):
        if name == "mode" and "Kumaraswamy" in line:
            continue  # torch's mode of it is always nan
        compare(lambda d, name=name: getattr(d, name).detach(), ours, theirs)
    compare(lambda d: repr(d.support).split("(")[0], ours, theirs)
    compare(lambda d: d.entropy().detach(), ours, theirs, 1e-6)
    compare(lambda d: d.enumerate_support(), ours, theirs)
    compare(lambda d: d.enumerate_support(expand=False), ours, theirs)


@pytest.mark.parametrize("line", LINES)
def test_densities(line: str) -> None:
    ours, theirs = both(line)
    x = values(theirs)
    mine = ct.tensor(x.numpy())
    for name in ("log_prob", "cdf"):
        a, b = (
            Ran(d, lambda d, v=v, name=name: getattr(d, name)(v))
            for d, v in ((ours, mine), (theirs, x))
        )
        if b.error is not None:
            assert_same_error(a, b)
            continue
        if a.error is not None:
            raise a.error
        np.testing.assert_allclose(numbers(a.value), numbers(b.value), rtol=1e-6, atol=1e-8)
    p = [0.1, 0.35, 0.8]
    shaped = [
        m.tensor(p, dtype=m.float64).reshape((3,) + (1,) * len(theirs.batch_shape))
        for m in (ct, th)
    ]
    a, b = (Ran(d, lambda d, v=v: d.icdf(v)) for d, v in zip((ours, theirs), shaped, strict=True))
    if b.error is not None:
        assert_same_error(a, b)
    else:
        assert a.error is None, a.error
        np.testing.assert_allclose(numbers(a.value), numbers(b.value), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("line", LINES)
def test_gradients_of_log_prob(line: str) -> None:
    grads = []
    x = values(both(line)[1])
    for module, value in ((ct, ct.tensor(x.numpy())), (th, x)):
        leaves: list[Any] = []

        def t(v: Any, module: Any = module, leaves: list[Any] = leaves) -> Any:
            leaves.append(module.tensor(v, dtype=module.float64, requires_grad=True))
            return leaves[-1]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dist = eval(line, {**globals(), "D": module.distributions, "t": t})
        score = dist.log_prob(value)
        found = module.autograd.grad(score.sum(), leaves, allow_unused=True) if leaves else []
        grads.append([None if g is None else numbers(g) for g in found])
    for a, b in zip(*grads, strict=True):
        if b is None or a is None:
            assert np.all((a if b is None else b) == 0) or a is b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("line", LINES)
def test_expand(line: str) -> None:
    ours, theirs = both(line)
    shape = (2, *theirs.batch_shape)
    a, b = ours.expand(shape), theirs.expand(shape)
    assert str(a.batch_shape) == str(b.batch_shape)
    assert str(a.event_shape) == str(b.event_shape)
    x = values(theirs)
    compare(
        lambda d: d.log_prob(
            ct.tensor(x.numpy()).unsqueeze(1) if d is a else x.unsqueeze(1)
        ).detach(),
        a,
        b,
        1e-6,
    )
    compare(lambda d: d.mean.detach(), a, b)


def _subclasses(module: Any) -> dict[str, Any]:
    """Distributions of a program, which expand attributes of their own before or after the library's."""
    D, Size = module.distributions, module.Size

    class Before(D.Categorical):
        arg_constraints = {"cut": D.constraints.real}  # noqa: RUF012

        def __init__(self, cut: Any, validate_args: Any = None) -> None:
            self.cut = cut
            super().__init__(logits=module.stack([cut, -cut], -1), validate_args=validate_args)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Before, _instance)
            new.cut = self.cut.expand(batch_shape)
            return super().expand(batch_shape, new)

    class After(D.Beta):
        def __init__(self, a: Any, validate_args: Any = None) -> None:
            super().__init__(a, 2 * a, validate_args=validate_args)
            self.pair = D.Gamma(module.stack([a, 2 * a], -1), 1.0)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = super().expand(batch_shape, self._get_checked_instance(After, _instance))
            new.pair = self.pair.expand((*batch_shape, 2))
            return new

    class Transformed(D.LogNormal):
        def __init__(self, a: Any) -> None:
            self.a = a
            super().__init__(a, 1.0)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Transformed, _instance)
            new.a = self.a.expand(batch_shape)
            return super().expand(batch_shape, _instance=new)

    class Module(D.Independent, module.nn.Module):
        pass

    class Marked(D.Normal):
        pass

    class Closed(D.Normal):
        def __init__(self, a: Any) -> None:
            super().__init__(a, 1.0)

    class Bare(D.Distribution):
        arg_constraints = {}  # noqa: RUF012

    a = module.tensor([0.5, 1.5])
    marked = Marked(a, 1.0)
    marked.note = "note"
    return {
        "before": lambda: vars(Before(a).expand(Size([3, 2]))),
        "after": lambda: After(a).expand(Size([3, 2])).pair.batch_shape,
        "after's parameters": lambda: vars(After(a).expand(Size([3, 2])))["_dirichlet"],
        "transformed": lambda: vars(Transformed(a).expand([3, 2]))["a"],
        "module": lambda: Module(D.Normal(a, 1.0), 1).expand([3]),
        "marked": lambda: vars(marked.expand([3, 2])),
        "closed": lambda: Closed(a).expand([3, 2]),
        "bare": lambda: Bare((2,)).expand([3, 2]),
    }


@pytest.mark.parametrize("name", _subclasses(th))
def test_expanding_subclasses(name: str) -> None:
    ours, theirs = (Ran(m, lambda m: _subclasses(m)[name]()) for m in (ct, th))
    if theirs.error is not None:
        assert_same_error(ours, theirs)
    elif isinstance(theirs.value, dict):
        kept = {key: value for key, value in ours.value.items() if key != "_given"}
        assert kept.keys() == theirs.value.keys() - {"_param"}
        assert all(str(kept[key]) == str(theirs.value[key]) for key in kept)
    else:
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("line", LINES)
def test_samples(line: str) -> None:
    """Samples have torch's shapes and dtypes and the right mean; those of `rsample` require grad as torch's do."""
    ours, theirs = both(line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs.sample((2,))
        ct.manual_seed(0)
        n = 4000 if math.prod(theirs.batch_shape + theirs.event_shape) < 20 else 1000
        x = ours.sample((n,))
    assert tuple(x.shape) == (n, *expected.shape[1:])
    assert str(x.dtype) == str(expected.dtype)
    assert not x.requires_grad
    ours.log_prob(x[:5])  # raises for a sample outside of the support
    assert ours.has_rsample == theirs.has_rsample
    if theirs.has_rsample:
        drawn = ours.rsample((3,))
        assert drawn.requires_grad == theirs.rsample((3,)).requires_grad
    try:
        mean, variance = numbers(theirs.mean), numbers(theirs.variance)
    except NotImplementedError:
        return
    if "VonMises" in line:
        return  # its variance is a circular one, and bounds no difference of means
    use = np.isfinite(mean) & np.isfinite(variance)
    error = np.sqrt(np.where(use, variance, 1) / n) * 6 + 1e-9
    found = numbers(x).mean(0)
    assert np.all(
        np.abs(np.where(use, found - mean, 0))
        < error * (3 if "Pareto" in line or "Gamma" in line else 1)
    )


SCALARS = {
    "Bernoulli": "D.Bernoulli(t(C))", "Beta": "D.Beta(t(A), t([0.7, 1.2, 0.4]))", "Binomial": "D.Binomial(3, t(C))",
    "Categorical": "D.Categorical(t(PROBS))", "Cauchy": "D.Cauchy(t(A), t(A))", "ContinuousBernoulli": "D.ContinuousBernoulli(t(C))",
    "Chi2": "D.Chi2(t(A))", "Dirichlet": "D.Dirichlet(t([A, C]))", "Exponential": "D.Exponential(t(A))", "Gamma": "D.Gamma(t(A), t([1.3, 0.2, 2.0]))",
    "Geometric": "D.Geometric(t(C))", "Gumbel": "D.Gumbel(t([0.1, -0.3, 2.0]), t(A))", "HalfNormal": "D.HalfNormal(t(A))",
    "Independent": "D.Independent(D.Normal(t(A), t(A)), 1)", "Laplace": "D.Laplace(t([0.1, -0.3, 2.0]), t(A))",
    "LogNormal": "D.LogNormal(t(A), t(A))", "LowRank": "D.LowRankMultivariateNormal(t(A), t([[1.0], [0.5], [-0.3]]), t(A))",
    "MVN": "D.MultivariateNormal(t(C), t(MATRIX))", "Normal": "D.Normal(t([0.1, -0.3, 2.0]), t(A))",
    "OneHot": "D.OneHotCategorical(t(PROBS))", "Pareto": "D.Pareto(t(A), t([1.5, 2.5, 0.7]))", "Poisson": "D.Poisson(t(A))",
    "Uniform": "D.Uniform(t([0.1, 0.2, 0.3]), t([0.8, 0.9, 1.5]))", "Weibull": "D.Weibull(t(A), t(A))",
}  # fmt: skip


def test_which_relaxed_distributions_say_that_they_are_differentiable() -> None:
    for path in ("relaxed_bernoulli.LogitRelaxedBernoulli", "relaxed_bernoulli.RelaxedBernoulli", "relaxed_categorical.ExpRelaxedCategorical"):  # fmt: skip
        module, name = path.split(".")
        ours, theirs = (getattr(getattr(m.distributions, module), name) for m in (ct, th))
        assert ours.has_rsample == theirs.has_rsample, path


@pytest.mark.parametrize("first", SCALARS)
def test_divergences(first: str) -> None:
    for second, program in SCALARS.items():
        p, tp = both(SCALARS[first])
        q, tq = both(program.replace("t(C)", "t([0.3, 0.6, 0.8])"))
        a, b = (
            Ran(m, lambda m, x=x, y=y: m.distributions.kl_divergence(x, y))
            for m, x, y in ((ct, p, q), (th, tp, tq))
        )
        where = f"{first} to {second}"
        if b.error is not None:
            assert type(a.error).__name__ == type(b.error).__name__, (
                f"{where}: {a.error or a.value}"
            )
            continue
        assert a.error is None, f"{where}: {a.error}"
        np.testing.assert_allclose(
            numbers(a.value), numbers(b.value), rtol=1e-5, atol=1e-7, err_msg=where
        )


ERRORS = """
D.Normal(t(A), t([1.0, -1.0, 0.0]))
D.Normal(t(A), t(A)).log_prob(1.0)
D.Normal(t(A), t(A)).log_prob(t([1.0, 2.0]))
D.Normal("a", 1.0)
D.Exponential(t(A)).log_prob(t([-1.0, 1.0, 2.0]))
D.Bernoulli(t(C), logits=t(C))
D.Bernoulli()
D.Bernoulli(t([1.5]))
D.Categorical(t(0.5))
D.Categorical(t(C)).log_prob(t(7.0))
D.Categorical(t([0.5, -0.5, 1.0]))
D.Uniform(t([2.0]), t([1.0]))
D.Independent(D.Normal(t(A), t(A)), 2)
D.Dirichlet(t(0.5))
D.Multinomial(t(3.0), t(C))
D.MultivariateNormal(t(0.5), t(MATRIX))
D.MultivariateNormal(t(A))
D.MultivariateNormal(t(A), t(A))
D.MultivariateNormal(t(A), -t(MATRIX))
D.MultivariateNormal(t(A), scale_tril=t(MATRIX))
D.LowRankMultivariateNormal(t(A), t(A), t(A))
D.LowRankMultivariateNormal(t(A), t([[1.0]]), t(A))
D.LKJCholesky(1)
D.MixtureSameFamily(D.Normal(0, 1), D.Normal(t(A), t(A)))
D.MixtureSameFamily(D.Categorical(t(A)), 3)
D.MixtureSameFamily(D.Categorical(t([0.5, 0.5])), D.Normal(t(A), t(A)))
D.TransformedDistribution(D.Normal(0, 1), 3)
D.TransformedDistribution(D.Normal(0, 1), [3])
D.kl_divergence(D.Normal(0, 1), D.Cauchy(t(A), t(A)))
D.Normal(0, 1).enumerate_support()
D.Poisson(t(A)).rsample()
D.Wishart(t(1.0), t(MATRIX))
D.Wishart(t(4.0))
D.Wishart(t(4.0), t(MATRIX), scale_tril=t(TRIL))
D.Geometric(t([0.0]))
D.biject_to(D.constraints.dependent)
D.transform_to(3)
D.constraints.dependent.check(t(A))
D.ReshapeTransform((2,), (3,))
D.ExpTransform(cache_size=2)
"""


@pytest.mark.parametrize("line", lines(ERRORS))
def test_errors(line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = (Ran(m, lambda m: made(m, line)) for m in (ct, th))
    assert b.error is not None
    assert_same_error(a, b)

    def words(error: Exception) -> str:
        text = re.sub(r"<class '[\w.]+'>", "<class>", first_line(error))
        return re.sub(r"\s+", " ", text)

    assert words(a.error) == words(b.error)


TRANSFORMS = """
T.AbsTransform() | real
T.AffineTransform(1.5, -2.0) | real
T.AffineTransform(t(A), t(A), event_dim=1) | real
T.CatTransform([T.ExpTransform(), T.identity_transform], dim=-1, lengths=[1, 2]) | real
T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)]) | real
T.CorrCholeskyTransform() | real
T.CumulativeDistributionTransform(torch.distributions.Normal(t(A), t(A))) | real
T.ExpTransform() | real
T.IndependentTransform(T.ExpTransform(), 1) | real
T.LowerCholeskyTransform() | square
T.PositiveDefiniteTransform() | square
T.PowerTransform(t(A)) | positive
T.ReshapeTransform((3,), (3, 1)) | real
T.SigmoidTransform() | real
T.SoftmaxTransform() | real
T.SoftplusTransform() | real
T.StackTransform([T.ExpTransform(), T.identity_transform, T.AffineTransform(1.0, 2.0)], dim=-1) | real
T.StickBreakingTransform() | real
T.TanhTransform() | real
T.ExpTransform().inv | positive
"""


@pytest.mark.parametrize("line", lines(TRANSFORMS))
def test_transforms(line: str) -> None:
    program, kind = (s.strip() for s in line.split("|"))
    start: Any = {"real": [[0.3, -1.2, 0.7]], "positive": [[0.3, 1.2, 0.7]], "square": MATRIX}[kind]
    made = []
    for m in (ct, th):
        names = {
            **globals(),
            "torch": m,
            "T": m.distributions.transforms,
            "t": lambda v, m=m: m.tensor(v, dtype=m.float64),
        }
        transform = eval(program, names)
        x = m.tensor(start, dtype=m.float64, requires_grad=True)
        y = transform(x)
        row: list[Any] = [
            numbers(y),
            numbers(transform.inv(y)),
            tuple(transform.forward_shape(x.shape)),
            tuple(transform.inverse_shape(y.shape)),
        ]
        row += [
            repr(transform),
            transform.bijective,
            transform.domain.event_dim,
            transform.codomain.event_dim,
        ]
        jacobian = Ran(m, lambda m, f=transform, x=x, y=y: f.log_abs_det_jacobian(x, y))
        row.append(type(jacobian.error).__name__ if jacobian.error else numbers(jacobian.value))
        row.append(numbers(m.autograd.grad(y.sum(), x)[0]))
        made.append(row)
    for a, b in zip(*made, strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
        else:
            assert a == b


CONSTRAINTS = [
    "boolean",
    "one_hot",
    "nonnegative_integer",
    "positive_integer",
    "real",
    "real_vector",
    "positive",
    "nonnegative",
    "unit_interval",
    "simplex",
    "lower_triangular",
    "lower_cholesky",
    "corr_cholesky",
    "square",
    "symmetric",
    "positive_semidefinite",
    "positive_definite",
    "integer_interval(0,3)",
    "greater_than(1)",
    "greater_than_eq(1)",
    "less_than(2.5)",
    "interval(0,2)",
    "half_open_interval(0,2)",
    "multinomial(3)",
    "independent(positive,1)",
    "cat([positive,real],-1,[1,2])",
    "stack([positive,real,unit_interval],-1)",
]


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraints(text: str) -> None:
    tables: list[Any] = [
        [[0.0, 1.0, 0.0], [1.0, 1.0, 3.0], [0.5, 0.3, 0.2]], MATRIX, TRIL, np.eye(3).tolist(), [[math.nan, -1.0, 2.5]] * 3,
    ]  # fmt: skip
    both_ = [eval(text, vars(m.distributions.constraints)) for m in (ct, th)]
    assert repr(both_[0]) == repr(both_[1])
    assert both_[0].is_discrete == both_[1].is_discrete
    assert both_[0].event_dim == both_[1].event_dim
    for table, (a, b) in itertools.product(tables, [both_]):
        found, expected = a.check(ct.tensor(table)), b.check(th.tensor(table))
        assert found.tolist() == expected.tolist()
    for name in ("biject_to", "transform_to"):
        a, b = (
            Ran(m, lambda m, c=c, name=name: repr(getattr(m.distributions, name)(c)))
            for m, c in zip((ct, th), both_, strict=True)
        )
        assert (a.value, type(a.error)) == (b.value, type(b.error))


def test_standard_gamma_gradient() -> None:
    a = np.exp(np.linspace(-2, 6, 60))
    x = a * np.exp(np.linspace(-1, 1, 60)[::-1] / np.sqrt(a + 1))
    found = ct._standard_gamma_grad(ct.tensor(a), ct.tensor(x))
    expected = th._standard_gamma_grad(th.tensor(a), th.tensor(x))
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=5e-3)


def test_gradient_of_beta_numbers() -> None:
    a = np.repeat([0.05, 0.5, 2.0, 9.0, 60.0], 40)
    b = np.tile(np.repeat([0.1, 0.7, 3.0, 20.0], 10), 5)
    x = (a / (a + b)) ** np.tile(np.linspace(0.5, 1.6, 10), 20)
    found = ct._dirichlet_grad(*(ct.tensor(v) for v in (x, a, a + b)))
    expected = th._dirichlet_grad(*(th.tensor(v) for v in (x, a, a + b)))
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=5e-3)
