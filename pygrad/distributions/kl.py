"""How far one distribution is from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from ..nn import functional as F
from .bernoulli import Bernoulli
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .distribution import Distribution
from .exponential import Exponential
from .geometric import Geometric
from .gumbel import EULER, Gumbel
from .independent import Independent
from .laplace import Laplace
from .multivariate_normal import MultivariateNormal, log_det, mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import sum_rightmost

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_RULES: dict[tuple[type, type], Rule] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """A decorator: the function computes the divergence of distributions of these types.

    Raises:
        TypeError: a type that is none of distributions.

    Example:
        >>> import pygrad
        >>> from pygrad import distributions as d
        >>> @d.register_kl(d.Poisson, d.Uniform)
        ... def far(p, q):
        ...     return pygrad.tensor(9.0)
        >>> d.kl_divergence(d.Poisson(1.0), d.Uniform(0.0, 1.0))
        tensor(9.)
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(rule: Rule) -> Rule:
        _RULES[type_p, type_q] = rule
        return rule

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean, over p, of log p(x) - log q(x).

    Raises:
        NotImplementedError: no rule for the two types.

    Example:
        >>> from pygrad.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            rule = _RULES.get((kind_p, kind_q))
            if rule is not None:
                return rule(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ((1 + ratio).lgamma() - distance).exp()
    return distance - ratio.log() + EULER * (ratio - 1) + tail - 1


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.scale < q.scale, math.inf)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    once = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * once).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Any:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), math.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    ones = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    ones = ones.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    zeros = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    zeros = zeros.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return ones + zeros


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    norms = p._log_norm() + (-p.probs).log1p() - q._log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + norms


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return apart - (4 * p.scale * q.scale).log()


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be "
            "computed"
        )
    columns = mahalanobis(q._tril.unsqueeze(-3), p._tril.mT).sum(-1)
    distance = mahalanobis(q._tril, q.loc - p.loc)
    return log_det(q._tril) - log_det(p._tril) + 0.5 * (columns + distance - p.event_shape[0])


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
