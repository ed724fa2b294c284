"""Probability distributions: PyTorch's ``torch.distributions``.

Example:
    >>> import pygrad
    >>> from pygrad.distributions import Categorical
    >>> policy = Categorical(logits=pygrad.zeros(4, requires_grad=True))
    >>> loss = -policy.log_prob(policy.sample()) * 2.0
    >>> loss.backward()
"""

from __future__ import annotations

from pygrad.distributions import constraints as constraints
from pygrad.distributions import kl as kl
from pygrad.distributions import transforms as transforms
from pygrad.distributions.bernoulli import Bernoulli
from pygrad.distributions.binomial import Binomial
from pygrad.distributions.categorical import Categorical
from pygrad.distributions.cauchy import Cauchy
from pygrad.distributions.constraint_registry import biject_to, transform_to
from pygrad.distributions.continuous_bernoulli import ContinuousBernoulli
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.exponential import Exponential
from pygrad.distributions.geometric import Geometric
from pygrad.distributions.gumbel import Gumbel
from pygrad.distributions.half_cauchy import HalfCauchy
from pygrad.distributions.half_normal import HalfNormal
from pygrad.distributions.independent import Independent
from pygrad.distributions.kl import kl_divergence, register_kl
from pygrad.distributions.kumaraswamy import Kumaraswamy
from pygrad.distributions.laplace import Laplace
from pygrad.distributions.log_normal import LogNormal
from pygrad.distributions.logistic_normal import LogisticNormal
from pygrad.distributions.mixture_same_family import MixtureSameFamily
from pygrad.distributions.multinomial import Multinomial
from pygrad.distributions.multivariate_normal import MultivariateNormal
from pygrad.distributions.normal import Normal
from pygrad.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from pygrad.distributions.pareto import Pareto
from pygrad.distributions.poisson import Poisson
from pygrad.distributions.relaxed_bernoulli import RelaxedBernoulli
from pygrad.distributions.relaxed_categorical import RelaxedOneHotCategorical
from pygrad.distributions.transformed_distribution import TransformedDistribution
from pygrad.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from pygrad.distributions.uniform import Uniform
from pygrad.distributions.weibull import Weibull

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cauchy",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CumulativeDistributionTransform",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
