"""The Kullback-Leibler divergence of two distributions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import linalg
from .._ground.dtypes import Size
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..nn import functional as F
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _inner
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, log_det
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Any]
_KL_REGISTRY: dict[tuple[type, type], Rule] = {}
_KL_MEMOIZE: dict[tuple[type, type], Rule | None] = {}


def register_kl(type_p: type[Distribution], type_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """Decorates a function that computes the divergence for two types of distributions.

    If several functions match a pair, the one with the nearest base classes is chosen. A warning is
    issued if the choice depends on which of the two types is compared first.

    As in PyTorch, a type need not derive from `Distribution`: libraries register their own base
    classes, which their distributions have in addition.

    Raises:
        TypeError: an argument is no type.

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
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(rule: Rule) -> Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        _KL_MEMOIZE.clear()
        return rule

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Rule | None:
    """The function for the nearest base classes, or None."""
    found = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        return None
    far_p, far_q = type_p.__mro__.index, type_q.__mro__.index
    by_p = min(found, key=lambda pair: (far_p(pair[0]), far_q(pair[1])))
    by_q = min(found, key=lambda pair: (far_q(pair[1]), far_p(pair[0])))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=2,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean under p of log p(x) - log q(x).

    Raises:
        NotImplementedError: no function is registered for the two types.

    Example:
        >>> from pygrad.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
        tensor(0.5000)
    """
    kinds = type(p), type(q)
    if kinds not in _KL_MEMOIZE:
        _KL_MEMOIZE[kinds] = _dispatch_kl(*kinds)
    rule = _KL_MEMOIZE[kinds]
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {kinds[0].__name__} and q type "
            f"{kinds[1].__name__}"
        )
    return rule(p, q)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- distributions of one type


@register_kl(ExponentialFamily, ExponentialFamily)
def _families(p: ExponentialFamily, q: ExponentialFamily) -> Any:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            + " " * 28
            + "be computed using Bregman divergences"
        )
    return p._divergence(q)


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_distribution(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ((1 + ratio).lgamma() - distance).exp()
    return distance - ratio.log() + euler_constant * (ratio - 1) + tail - 1


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
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Any:
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
    norms = (
        p._cont_bern_log_norm() + (-p.probs).log1p() - q._cont_bern_log_norm() - (-q.probs).log1p()
    )
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


Vectors = MultivariateNormal | LowRankMultivariateNormal


def _size(p: Vectors, q: Vectors, kind: str, gap: int = 26) -> int:
    """The length of the vectors; ``ValueError`` if p and q differ in it."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind} Normals with{' ' * gap}different event shapes "
            "cannot be computed"
        )
    return int(p.event_shape[0])


def _batch_trace_XXT(bmat: Tensor) -> Tensor:
    """The trace of X X^T."""
    return bmat.pow(2).sum((-2, -1))


def _batch_solve_triangular(tril: Tensor, matrix: Tensor) -> Tensor:
    """tril^-1 matrix, with broadcast batches."""
    batch = pygrad.broadcast_shapes(tril.shape[:-2], matrix.shape[:-2])
    tril = tril.expand(batch + Size(tril.shape[-2:]))
    matrix = matrix.expand(batch + Size(matrix.shape[-2:]))
    found: Tensor = linalg.solve_triangular(tril, matrix, upper=False)
    return found


@register_kl(MultivariateNormal, MultivariateNormal)
def _vectors(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    size = _size(p, q, "Multivariate")
    mine, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = _batch_trace_XXT(_batch_solve_triangular(theirs, mine))
    distance = _batch_mahalanobis(theirs, q.loc - p.loc)
    return log_det(theirs) - log_det(mine) + 0.5 * (trace + distance - size)


def _from_low_rank(q: LowRankMultivariateNormal, factor: Tensor) -> Any:
    """The trace of q's precision times factor factor^T."""
    scaled = factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    return _batch_trace_XXT(scaled) - _batch_trace_XXT(_inner(q) @ factor)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_ranks(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Any:
    size = _size(p, q, "Low Rank Multivariate")
    diagonal = p._unbroadcasted_cov_diag
    trace = (diagonal / q._unbroadcasted_cov_diag).sum(-1)
    trace = trace - _batch_trace_XXT(_inner(q) * diagonal.sqrt().unsqueeze(-2))
    trace = trace + _from_low_rank(q, p._unbroadcasted_cov_factor)
    return 0.5 * (q._log_det() - p._log_det() + trace + q._distance(q.loc - p.loc) - size)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _vectors_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Any:
    size = _size(p, q, "(Low Rank) Multivariate")
    tril = p._unbroadcasted_scale_tril
    norm = q._log_det() - 2 * log_det(tril)
    return 0.5 * (norm + _from_low_rank(q, tril) + q._distance(q.loc - p.loc) - size)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_vectors(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Any:
    size = _size(p, q, "(Low Rank) Multivariate")
    tril = q._unbroadcasted_scale_tril
    trace = _batch_trace_XXT(_batch_solve_triangular(tril, p._unbroadcasted_cov_factor))
    root = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = trace + _batch_trace_XXT(_batch_solve_triangular(tril, root))
    distance = _batch_mahalanobis(tril, q.loc - p.loc)
    return 0.5 * (2 * log_det(tril) - p._log_det() + trace + distance - size)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Any:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    a, b = p.concentration, q.concentration
    logs = a.digamma() - a.sum(-1, True).digamma()  # the means of log x
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * logs).sum(-1)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Any:
    a, b = p.concentration, q.concentration
    norm = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norm + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Any:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---------------------------------------------------------------- distributions of two types
#
# The negative entropy of p minus the mean of log q.


def _infinite_like(tensor: Tensor) -> Tensor:
    return pygrad.full_like(tensor, math.inf)


def _x_log_x(tensor: Tensor) -> Tensor:
    return tensor.xlogy(tensor)


def _infinite(parameter: str, p: type[Distribution], *others: type[Distribution]) -> None:
    """Registers infinite divergences: p always has values outside of the others' supports."""

    def rule(p: Any, q: Any) -> Tensor:
        return _infinite_like(getattr(p, parameter))

    for q in others:
        register_kl(p, q)(rule)


_infinite("concentration1", Beta, Pareto)
_infinite("probs", ContinuousBernoulli, Pareto)
_infinite("rate", Exponential, Beta, ContinuousBernoulli, Pareto, Uniform)
_infinite("concentration", Gamma, Beta, ContinuousBernoulli, Pareto, Uniform)
_infinite("loc", Gumbel, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite("loc", Laplace, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite("loc", Normal, Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_infinite("scale", Pareto, Beta, ContinuousBernoulli, Uniform)
_infinite("rate", Poisson, Bernoulli, Binomial)


def _to_normal(mean: Any, variance: Any, q: Normal) -> Any:
    """The mean of -log q for a variable with a given mean and variance."""
    width = q.scale.pow(2)
    return 0.5 * ((2 * math.pi * width).log() + (variance + (mean - q.loc).pow(2)) / width)


def _to_gamma(mean: Any, mean_log: Any, q: Gamma) -> Any:
    a = q.concentration
    return a.lgamma() - a * q.rate.log() - (a - 1) * mean_log + q.rate * mean


def _to_continuous_bernoulli(mean: Any, q: ContinuousBernoulli) -> Any:
    return -mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Any:
    return _to_continuous_bernoulli(p.mean, q) - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _mean_exponential(p: Any, q: Exponential) -> Any:
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Any:
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _to_gamma(p.mean, mean_log, q) - p.entropy()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Uniform, Normal)
def _moments_normal(p: Any, q: Normal) -> Any:
    return _to_normal(p.mean, p.variance, q) - p.entropy()


@register_kl(Laplace, Normal)
def _laplace_normal(p: Laplace, q: Normal) -> Any:
    return _to_normal(p.loc, 2 * p.scale.pow(2), q) - p.entropy()


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Any:
    found = (q.high - q.low).log() - p.entropy()
    return found.masked_fill((q.low > 0) | (q.high < 1), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Any:
    found = (q.high - q.low).log() - p.entropy()
    # PyTorch's condition, which also excludes equal bounds.
    return found.masked_fill((q.low >= 0) | (q.high <= 1), math.inf)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Any:
    mean_log = -p.rate.log() - euler_constant
    return _to_gamma(p.mean, mean_log, q) - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Any:
    at, width = q.loc / q.scale, p.rate * q.scale
    tail = at.exp() * width / (width + 1)
    return width.log() - 1 - at + tail + width.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Any:
    at, width = q.loc / q.scale, p.rate * q.scale
    tail = at.exp() * (1 + width.reciprocal()).pow(-p.concentration)
    return q.scale.log() + p.mean / q.scale - at + tail - p.entropy()


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Any:
    at, width = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return q.scale.log() + at + (0.5 * width - at).exp() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Any:
    apart = p.loc - q.loc
    at = apart / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * (-0.5 * at.pow(2)).exp()
    distance = near + apart * (math.sqrt(0.5) * at).erf()
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Any:
    mean = p.alpha * p.scale / (p.alpha - 1)
    found = q.rate * mean - q.rate.log() - p.entropy()
    return found.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    mean = p.alpha * p.scale / (p.alpha - 1)
    found = _to_gamma(mean, mean_log, q) - p.entropy()
    return found.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Any:
    step = p.scale / (p.alpha - 1)
    variance = p.alpha * step.pow(2) / (p.alpha - 2)
    found = _to_normal(p.alpha * step, variance, q) - p.entropy()
    return found.masked_fill(p.alpha <= 2, math.inf)


def _mean_log(p: Uniform) -> Any:
    """The mean of log x under the uniform distribution."""
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Any:
    a, b = q.concentration1, q.concentration0
    rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / (p.high - p.low) - 1
    found = a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * _mean_log(p) - (b - 1) * rest
    return (found - p.entropy()).masked_fill((p.high > 1) | (p.low < 0), math.inf)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Any:
    found = _to_continuous_bernoulli(p.mean, q) - p.entropy()
    return found.masked_fill((p.high >= 1) | (p.low <= 0), math.inf)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Any:
    found = q.rate * p.mean - q.rate.log() - p.entropy()
    return found.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Any:
    found = _to_gamma(p.mean, _mean_log(p), q) - p.entropy()
    return found.masked_fill(p.low < 0, math.inf)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Any:
    width = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return width.log() + 0.5 * (high + low) - width * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Any:
    norm = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    found = (q.alpha + 1) * _mean_log(p) - norm
    return found.masked_fill(p.low < q.scale, math.inf)
