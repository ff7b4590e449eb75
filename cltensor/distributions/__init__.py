"""`cltensor.distributions`: probability distributions to sample, score and compare, with gradients where there are any.

One module per family; `constraints` says where values lie, `transforms` maps them, `kl` holds divergences.
"""

from ..reexport import expose
from . import constraints, transforms
from .beta import Beta, Dirichlet, Kumaraswamy
from .categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from .constraint_registry import biject_to, transform_to
from .continuous import (
    Cauchy,
    GeneralizedPareto,
    Gumbel,
    Laplace,
    Pareto,
    Uniform,
    Weibull,
)
from .discrete import (
    Bernoulli,
    Binomial,
    ContinuousBernoulli,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from .distribution import Distribution, ExponentialFamily
from .gamma import Chi2, Exponential, FisherSnedecor, Gamma, InverseGamma, StudentT
from .half import HalfCauchy, HalfNormal
from .independent import Independent
from .kl import kl_divergence, register_kl
from .mixture_same_family import MixtureSameFamily
from .multivariate_normal import LogisticNormal, LowRankMultivariateNormal, MultivariateNormal
from .normal import LogNormal, Normal
from .relaxed import (
    ExpRelaxedCategorical,
    LogitRelaxedBernoulli,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from .transformed_distribution import TransformedDistribution
from .transforms import *  # noqa: F403 - its __all__
from .transforms import __all__ as _TRANSFORMS
from .von_mises import VonMises
from .wishart import LKJCholesky, Wishart

expose(
    globals(),
    {
        "bernoulli": "Bernoulli", "binomial": "Binomial", "cauchy": "Cauchy", "chi2": "Chi2",
        "continuous_bernoulli": "ContinuousBernoulli", "dirichlet": "Dirichlet", "exp_family": "ExponentialFamily",
        "exponential": "Exponential", "fishersnedecor": "FisherSnedecor", "generalized_pareto": "GeneralizedPareto",
        "geometric": "Geometric", "gumbel": "Gumbel", "half_cauchy": "HalfCauchy", "half_normal": "HalfNormal",
        "inverse_gamma": "InverseGamma", "kumaraswamy": "Kumaraswamy", "laplace": "Laplace", "lkj_cholesky": "LKJCholesky",
        "log_normal": "LogNormal", "logistic_normal": "LogisticNormal", "lowrank_multivariate_normal": "LowRankMultivariateNormal",
        "multinomial": "Multinomial", "negative_binomial": "NegativeBinomial",
        "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "pareto": "Pareto", "poisson": "Poisson",
        "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
        "relaxed_categorical": "ExpRelaxedCategorical RelaxedOneHotCategorical", "studentT": "StudentT",
        "uniform": "Uniform", "weibull": "Weibull",
    },
)  # fmt: skip

__all__ = [  # noqa: PLE0604 - transforms' names are added
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution",
    "ExpRelaxedCategorical", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LogitRelaxedBernoulli", "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "constraints", "kl_divergence", "register_kl",
    "transform_to", "transforms", *_TRANSFORMS,
]  # fmt: skip
