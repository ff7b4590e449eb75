"""Names that programs seldom use, beside torch: a line each."""

from __future__ import annotations

import numpy as np
import pytest

from .oracle import assert_same_value, evaluate, lines

ARRAYS = {
    "x": np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 0.0], [2.0, 1.0, 5.0]], "float32"),
    "c": np.array([1 + 1j, 2, 3j], "complex64"),
    "n": np.array([3, 1, 2]),
}
LINES = """
x.get_device()
x.is_set_to(x), x.is_set_to(x.clone()), x[1:].is_set_to(x[1:]), x[1:].is_set_to(x)
torch.isreal(c), torch.isreal(x), x.isreal()
torch.pinverse(x), x[:2].pinverse()
torch.nuclear_norm(x), torch.nuclear_norm(x, True), torch.nuclear_norm(x, (0, 1))
torch.frobenius_norm(x, 1), torch.frobenius_norm(x, (0, 1), True)
torch.orgqr(*torch.geqrf(x)), x.orgqr(x[0])
torch._adaptive_avg_pool3d(x.reshape(1, 1, 3, 3, 1), (2, 1, 1))
torch._conj(c)
torch.true_divide(n, 2), x.true_divide(2), (n * 1.0).true_divide_(4)
torch.are_deterministic_algorithms_enabled(), torch.is_warn_always_enabled()
torch._check_is_size(3), torch._check_is_size(3, max=4), torch._check_value(True), torch._check_type(True), torch._check_not_implemented(True)
torch.jit.is_tracing(), torch.jit.annotate(int, 3)
torch.distributions.Normal(x[2], 1.0).sample_n(3).shape
torch.distributions.Categorical(x[2]).perplexity(), torch.distributions.Normal(x[2], 1.0).perplexity()
torch.distributions.Bernoulli(torch.tensor([0.25, 0.5]))._natural_params, torch.distributions.Bernoulli(torch.tensor([0.25]))._log_normalizer(x[0])
torch.distributions.Normal(x[0], 2.0)._natural_params, torch.distributions.Normal(0.0, 1.0)._log_normalizer(x[0], -x[2])
torch.distributions.Gamma(x[2], 2.0)._natural_params, torch.distributions.Gamma(1.0, 1.0)._log_normalizer(x[2], -x[2])
torch.distributions.Exponential(x[2])._natural_params, torch.distributions.Exponential(1.0)._log_normalizer(-x[2])
torch.distributions.Beta(x[2], 2.0)._natural_params, torch.distributions.Beta(1.0, 1.0)._log_normalizer(x[2], x[2] + 1)
torch.distributions.Dirichlet(x[2])._natural_params, torch.distributions.Dirichlet(x[2])._log_normalizer(x[2])
torch.distributions.ContinuousBernoulli(torch.tensor([0.25]))._natural_params, torch.distributions.ContinuousBernoulli(torch.tensor([0.25]))._log_normalizer(x[2])
torch.distributions.GeneralizedPareto(0.0, 1.0, torch.tensor([0.1, 0.3])).variance, torch.distributions.GeneralizedPareto(0.0, 1.0, torch.tensor([0.1])).entropy()
torch.distributions.LowRankMultivariateNormal(x[0], x[:, :1], x[2]).covariance_matrix, torch.distributions.LowRankMultivariateNormal(x[0], x[:, :1], x[2]).precision_matrix
torch.utils._pytree.tree_all(lambda v: v > 0, [1, (2, 3)]), torch.utils._pytree.tree_any_only(int, lambda v: v > 2, [1, (2, 3.5)])
torch.utils.checkpoint.detach_variable((x.requires_grad_(), 3))[0].requires_grad
torch.finfo(torch.float32) == torch.finfo(torch.float32), torch.iinfo(torch.int8) == torch.iinfo(torch.int16)
(lambda s: (s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval(), s.set_growth_factor(3.0), s.set_backoff_factor(0.25), s.set_growth_interval(7), s.get_growth_factor(), s.get_backoff_factor(), s.get_growth_interval()))(torch.amp.GradScaler("cpu"))
"""


@pytest.mark.parametrize("line", lines(LINES))
def test_value(line: str) -> None:
    found, expected = evaluate(line, ARRAYS)
    assert expected.error is None, expected.error
    assert found.error is None, found.error
    assert_same_value(found.value, expected.value)
    assert found.warnings == expected.warnings
