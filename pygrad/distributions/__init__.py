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
from pygrad.distributions.bernoulli import Bernoulli
from pygrad.distributions.categorical import Categorical
from pygrad.distributions.cauchy import Cauchy
from pygrad.distributions.distribution import Distribution
from pygrad.distributions.exponential import Exponential
from pygrad.distributions.geometric import Geometric
from pygrad.distributions.half_normal import HalfNormal
from pygrad.distributions.independent import Independent
from pygrad.distributions.kl import kl_divergence, register_kl
from pygrad.distributions.laplace import Laplace
from pygrad.distributions.log_normal import LogNormal
from pygrad.distributions.mixture_same_family import MixtureSameFamily
from pygrad.distributions.multivariate_normal import MultivariateNormal
from pygrad.distributions.normal import Normal
from pygrad.distributions.one_hot_categorical import OneHotCategorical
from pygrad.distributions.poisson import Poisson
from pygrad.distributions.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "HalfNormal",
    "Independent",
    "Laplace",
    "LogNormal",
    "MixtureSameFamily",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Poisson",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
