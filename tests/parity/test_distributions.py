"""torch.distributions: draws from the same stream, densities, moments, divergences, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, tried

import pygrad


def vector(t: Any, *values: float) -> Any:
    return t.tensor(values, dtype=t.float64)


MATRIX = [[2.0, 0.3], [0.3, 1.0]]
MADE: dict[str, Callable[[Any], Any]] = {
    "normal": lambda t: t.distributions.Normal(vector(t, 0.5, -1), vector(t, 1, 2)),
    "normal_number": lambda t: t.distributions.Normal(0, 2.0),
    "categorical": lambda t: t.distributions.Categorical(t.tensor([[1.0, 2, 3], [3, 0, 1]])),
    "categorical_logits": lambda t: t.distributions.Categorical(logits=vector(t, 0.1, 2, -1)),
    "one_hot": lambda t: t.distributions.OneHotCategorical(vector(t, 1, 2, 3)),
    "bernoulli": lambda t: t.distributions.Bernoulli(vector(t, 0.2, 0.5, 0.9)),
    "bernoulli_logits": lambda t: t.distributions.Bernoulli(logits=vector(t, 0.2, -3)),
    "uniform": lambda t: t.distributions.Uniform(vector(t, -1, 0), vector(t, 1, 3)),
    "exponential": lambda t: t.distributions.Exponential(vector(t, 0.5, 3)),
    "laplace": lambda t: t.distributions.Laplace(vector(t, 0.5, 3), 2.0),
    "cauchy": lambda t: t.distributions.Cauchy(vector(t, 0.5, 3), 2.0),
    "poisson": lambda t: t.distributions.Poisson(t.tensor([0.5, 3.0])),
    "geometric": lambda t: t.distributions.Geometric(vector(t, 0.3, 0.9)),
    "geometric_logits": lambda t: t.distributions.Geometric(logits=vector(t, 0.3, 0.9)),
    "log_normal": lambda t: t.distributions.LogNormal(vector(t, 0.3, 0.9), 0.5),
    "half_normal": lambda t: t.distributions.HalfNormal(vector(t, 0.3, 0.9)),
    "independent": lambda t: t.distributions.Independent(MADE["normal"](t), 1),
    "multivariate": lambda t: t.distributions.MultivariateNormal(
        vector(t, 1, 2), t.tensor(MATRIX, dtype=t.float64)
    ),
    "multivariate_precision": lambda t: t.distributions.MultivariateNormal(
        t.zeros(3, 2, dtype=t.float64), precision_matrix=t.tensor(MATRIX, dtype=t.float64)
    ),
    "multivariate_tril": lambda t: t.distributions.MultivariateNormal(
        vector(t, 1, 2), scale_tril=t.tensor(MATRIX, dtype=t.float64).tril()
    ),
    "mixture": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(vector(t, 1, 3)), MADE["normal"](t)
    ),
    "half_cauchy": lambda t: t.distributions.HalfCauchy(vector(t, 0.3, 0.9)),
    "gumbel": lambda t: t.distributions.Gumbel(vector(t, 0.3, 0.9), 2.0),
    "gumbel_number": lambda t: t.distributions.Gumbel(0.5, 2.0),
    "pareto": lambda t: t.distributions.Pareto(vector(t, 1, 2), vector(t, 3, 0.5)),
    "weibull": lambda t: t.distributions.Weibull(vector(t, 1, 2), vector(t, 3, 0.5)),
    "kumaraswamy": lambda t: t.distributions.Kumaraswamy(vector(t, 1.5, 2), vector(t, 3, 0.5)),
    "continuous": lambda t: t.distributions.ContinuousBernoulli(vector(t, 0, 0.3, 0.4999, 0.9)),
    "continuous_logits": lambda t: t.distributions.ContinuousBernoulli(
        logits=vector(t, -2, 0, 0.3), lims=(0.45, 0.55)
    ),
    "multivariate_logistic": lambda t: t.distributions.LogisticNormal(vector(t, 0.3, 2), 0.5),
    "ind_relaxed": lambda t: t.distributions.RelaxedBernoulli(
        t.tensor(0.5, dtype=t.float64), vector(t, 0.2, 0.6)
    ),
    "one_hot_relaxed": lambda t: t.distributions.RelaxedOneHotCategorical(
        t.tensor(0.5, dtype=t.float64), logits=vector(t, 0.2, 0.6, -1)
    ),
    "one_hot_straight": lambda t: t.distributions.OneHotCategoricalStraightThrough(
        vector(t, 1, 2, 3)
    ),
    "poi_binomial": lambda t: t.distributions.Binomial(5, t.tensor([0.2, 0.7])),
    "poi_binomial_logits": lambda t: t.distributions.Binomial(
        t.tensor([2.0, 3.0]), logits=t.tensor([0.2, 0.0])
    ),
    "multinomial": lambda t: t.distributions.Multinomial(4, vector(t, 1, 2, 0)),
    "transformed": lambda t: t.distributions.TransformedDistribution(
        MADE["normal"](t),
        [t.distributions.TanhTransform(), t.distributions.AffineTransform(1.0, -2.0)],
    ),
    "multivariate_transformed": lambda t: t.distributions.TransformedDistribution(
        MADE["multivariate"](t),
        t.distributions.IndependentTransform(t.distributions.ExpTransform(), 1),
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_distribution(name: str) -> None:
    def script(t: Any) -> Any:
        made = MADE[name](t)
        drawn = made.sample((3,))
        values = [repr(made), drawn, made.sample(), tried(lambda: made.rsample((2,)))]
        values += [made.batch_shape, made.event_shape, repr(made.support), made.has_rsample]
        values += [tried(lambda: made.log_prob(drawn)), tried(made.entropy)]
        if not name.startswith(("cat", "one", "bern", "poi", "geo", "ind", "mul", "mix")):
            inside = made.cdf(drawn)
            values += [inside, made.icdf(inside)]
        for what in ("mean", "variance", "stddev", "mode", "enumerate_support"):
            if what != "mode" or name != "mixture":
                found = tried(lambda what=what: getattr(made, what))
                values.append(tried(found) if callable(found) else found)
        if name != "mixture":
            more = made.expand((4, *made.batch_shape))
            values += [repr(more), more.log_prob(drawn[:1])]
        return [v if not isinstance(v, str) else v.split("\n")[0] for v in values]

    both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in MADE if name not in ("mixture", "bernoulli")])
def test_divergence(name: str) -> None:
    def script(t: Any) -> Any:
        p = MADE[name](t)
        other = {"uniform": lambda: t.distributions.Uniform(vector(t, -2, 1), vector(t, 1, 3))}
        q = other[name]() if name in other else p.expand((2, *p.batch_shape))
        between = t.distributions.kl_divergence
        return tried(lambda: between(p, q)), tried(lambda: between(q, p))

    both(script, rtol=1e-5, atol=1e-6)


PAIRS: dict[str, Callable[[Any], Any]] = {
    "normal": lambda t: (t.distributions.Normal(0.0, 1.0), t.distributions.Normal(1.0, 2.0)),
    "categorical": lambda t: (
        t.distributions.Categorical(vector(t, 1, 0, 3)),
        t.distributions.Categorical(vector(t, 1, 2, 0)),
    ),
    "bernoulli": lambda t: (
        t.distributions.Bernoulli(vector(t, 0, 0.5, 1)),
        t.distributions.Bernoulli(vector(t, 0.3, 1, 0)),
    ),
    "laplace": lambda t: (t.distributions.Laplace(0.0, 1.0), t.distributions.Laplace(1.0, 2.0)),
    "exponential": lambda t: (t.distributions.Exponential(2.0), t.distributions.Exponential(3.0)),
    "geometric": lambda t: (t.distributions.Geometric(0.2), t.distributions.Geometric(0.3)),
    "poisson": lambda t: (t.distributions.Poisson(2.0), t.distributions.Poisson(3.0)),
    "gumbel": lambda t: (t.distributions.Gumbel(0.0, 1.0), t.distributions.Gumbel(1.0, 2.0)),
    "pareto": lambda t: (t.distributions.Pareto(2.0, 1.0), t.distributions.Pareto(1.0, 2.0)),
    "binomial": lambda t: (t.distributions.Binomial(2, 0.2), t.distributions.Binomial(2, 0.4)),
    "counts": lambda t: (t.distributions.Binomial(2, 0.2), t.distributions.Binomial(3, 0.4)),
    "log_normal": lambda t: (MADE["log_normal"](t), t.distributions.LogNormal(1.0, 2.0)),
    "half": lambda t: (MADE["half_normal"](t), t.distributions.HalfNormal(2.0)),
    "half_and_log": lambda t: (MADE["half_normal"](t), MADE["log_normal"](t)),
    "none": lambda t: (MADE["categorical"](t), t.distributions.Normal(3.0, 1.0)),
    "continuous": lambda t: (
        t.distributions.ContinuousBernoulli(vector(t, 0.2, 0.5, 0.9)),
        t.distributions.ContinuousBernoulli(vector(t, 0.5, 0.1, 0.95)),
    ),
    "multivariate": lambda t: (MADE["multivariate"](t), MADE["multivariate_precision"](t)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergence_of_pair(name: str) -> None:
    def script(t: Any) -> Any:
        p, q = PAIRS[name](t)
        return t.distributions.kl_divergence(p, q), t.distributions.kl_divergence(q, p)

    both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        *("normal", "uniform", "exponential", "laplace", "cauchy", "log_normal", "categorical"),
        *("gumbel", "pareto", "weibull"),
    ],
)
def test_gradients(name: str) -> None:
    def script(t: Any) -> Any:
        a = vector(t, 0.5, 1.5).requires_grad_()
        b = vector(t, 2.0, 3.0).requires_grad_()
        kind = {
            "normal": "Normal",
            "uniform": "Uniform",
            "laplace": "Laplace",
            "cauchy": "Cauchy",
            "log_normal": "LogNormal",
            "gumbel": "Gumbel",
            "pareto": "Pareto",
            "weibull": "Weibull",
        }.get(name)
        if kind:
            made = getattr(t.distributions, kind)(a, b)
        elif name == "exponential":
            made = t.distributions.Exponential(a * b)
        else:
            made = t.distributions.Categorical(logits=a * b)
        drawn = made.rsample() if made.has_rsample else made.sample()
        (made.log_prob(drawn).sum() + drawn.double().sum() + made.entropy().sum()).backward()
        return a.grad, b.grad

    both(script, rtol=1e-6)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda d: d.ExpTransform(),
    "exp_cached": lambda d: d.ExpTransform(cache_size=1),
    "power": lambda d: d.PowerTransform(2.0),
    "sigmoid": lambda d: d.SigmoidTransform(),
    "softplus": lambda d: d.SoftplusTransform(),
    "tanh": lambda d: d.TanhTransform(),
    "abs": lambda d: d.AbsTransform(),
    "affine": lambda d: d.AffineTransform(1.0, -2.0),
    "affine_event": lambda d: d.AffineTransform(1.0, 3.0, event_dim=1),
    "softmax": lambda d: d.SoftmaxTransform(),
    "sticks": lambda d: d.StickBreakingTransform(),
    "cholesky": lambda d: d.LowerCholeskyTransform(),
    "definite": lambda d: d.PositiveDefiniteTransform(),
    "cumulative": lambda d: d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)),
    "reshape": lambda d: d.ReshapeTransform((2, 2), (4,)),
    "independent": lambda d: d.IndependentTransform(d.TanhTransform(), 1),
    "compose": lambda d: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)]),
    "compose_mixed": lambda d: d.ComposeTransform(
        [d.SigmoidTransform(), d.StickBreakingTransform(), d.AffineTransform(0.0, 2.0)]
    ),
    "identity": lambda d: d.identity_transform,
    "inverse": lambda d: d.SigmoidTransform().inv,
    "biject": lambda d: d.biject_to(d.constraints.interval(1.0, 3.0)),
    "biject_vector": lambda d: d.biject_to(d.constraints.independent(d.constraints.positive, 1)),
    "to_simplex": lambda d: d.transform_to(d.constraints.simplex),
    "to_less": lambda d: d.transform_to(d.constraints.less_than(2.0)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str) -> None:
    def script(t: Any) -> Any:
        made = TRANSFORMS[name](t.distributions)
        x = t.tensor([[0.3, 0.9], [0.2, 0.5]], dtype=t.float64, requires_grad=True)
        y = made(x)
        back = made.inv(y)
        y.sum().backward()
        tries = [
            lambda: made.log_abs_det_jacobian(x, y),
            lambda: made.inv.log_abs_det_jacobian(y, x),
            lambda: made.sign,
            lambda: made.event_dim,
            lambda: repr(made.domain),
            lambda: repr(made.codomain),
            lambda: made.forward_shape(t.Size((3, 2, 2))),
            lambda: made.with_cache(0 if name == "exp_cached" else 1) == made,
            lambda: TRANSFORMS[name](t.distributions) == made,
            lambda: made.inv.inv is made,
        ]
        return [y, back, back is x, x.grad, repr(made), repr(made.inv), *map(tried, tries)]

    both(script, rtol=1e-6)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "scale": lambda t: t.distributions.Normal(t.zeros(2), t.tensor([1.0, -1.0])),
    "shapes": lambda t: t.distributions.Normal(t.zeros(2), t.ones(3)),
    "text": lambda t: t.distributions.Normal("a", 1.0),
    "number": lambda t: t.distributions.Normal(0.0, 1.0).log_prob(0.0),
    "broadcast": lambda t: MADE["normal"](t).log_prob(t.zeros(3)),
    "nan": lambda t: t.distributions.Normal(0.0, 1.0).log_prob(t.tensor(float("nan"))),
    "unchecked": lambda t: t.distributions.Normal(0.0, 1.0, validate_args=False).log_prob(
        t.tensor(float("nan"))
    ),
    "class": lambda t: MADE["categorical_logits"](t).log_prob(t.tensor(5)),
    "half": lambda t: MADE["categorical_logits"](t).log_prob(t.tensor(0.5)),
    "none": lambda t: t.distributions.Categorical(),
    "both": lambda t: t.distributions.Categorical(t.ones(2), t.ones(2)),
    "scalar": lambda t: t.distributions.Categorical(t.tensor(1.0)),
    "negative": lambda t: t.distributions.Categorical(t.tensor([-1.0, 3.0])),
    "probability": lambda t: t.distributions.Bernoulli(2.0),
    "boolean": lambda t: t.distributions.Bernoulli(0.5).log_prob(t.tensor(0.5)),
    "uniform": lambda t: t.distributions.Uniform(1.0, 0.0),
    "outside": lambda t: t.distributions.Uniform(0.0, 1.0).log_prob(t.tensor(2.0)),
    "dimensions": lambda t: t.distributions.Independent(MADE["normal"](t), 2),
    "event": lambda t: MADE["multivariate"](t).log_prob(t.zeros(3)),
    "never": lambda t: t.distributions.Geometric(t.tensor([0.0, 0.5])),
    "never_unchecked": lambda t: t.distributions.Geometric(0.0, validate_args=False),
    "concentration": lambda t: t.distributions.Kumaraswamy(1.0, -1.0),
    "continuous": lambda t: t.distributions.ContinuousBernoulli(1.5, validate_args=True),
    "continuous_value": lambda t: t.distributions.ContinuousBernoulli(0.5).log_prob(t.tensor(1.5)),
    "indefinite": lambda t: t.distributions.MultivariateNormal(t.zeros(2), -t.eye(2)),
    "matrices": lambda t: t.distributions.MultivariateNormal(t.zeros(2)),
    "cache": lambda t: t.distributions.ExpTransform(cache_size=2),
    "elements": lambda t: t.distributions.ReshapeTransform((2, 3), (5,)),
    "shape": lambda t: t.distributions.ReshapeTransform((2, 3), (6,)).forward_shape((3,)),
    "no_transform": lambda t: t.distributions.TransformedDistribution(MADE["normal"](t), 3),
    "no_transforms": lambda t: t.distributions.TransformedDistribution(MADE["normal"](t), [3]),
    "base": lambda t: t.distributions.TransformedDistribution(
        MADE["normal_number"](t), t.distributions.StickBreakingTransform()
    ),
    "constraint": lambda t: t.distributions.biject_to(t.distributions.constraints.one_hot),
    "register": lambda t: t.distributions.biject_to.register(3, abs),
    "counts": lambda t: t.distributions.Multinomial(t.tensor([2]), t.ones(2)),
    "components": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.ones(3)), MADE["normal"](t)
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    both(REFUSED[name])


def test_submodules_by_name() -> None:
    from pygrad.distributions.categorical import Categorical
    from pygrad.distributions.normal import Normal

    assert (Categorical, Normal) == (
        pygrad.distributions.Categorical,
        pygrad.distributions.Normal,
    )


MATRICES = [
    [[1.0, 0.0], [0.0, 1.0]],
    [[1.0, 0.5], [0.5, 1.0]],
    [[1.0, 2.0], [2.0, 1.0]],
    [[1.0, 0.0], [0.6, 0.8]],
    [[2.0, 0.0], [1.0, 3.0]],
    [[-1.0, 0.0], [0.0, 1.0]],
    [[0.0, 1.0], [-1.0, 0.0]],
]


@pytest.mark.parametrize(
    "name",
    "square symmetric lower_triangular corr_cholesky lower_cholesky positive_definite "
    "positive_semidefinite".split(),
)
def test_constraints_of_matrices(name: str) -> None:
    def script(t: Any) -> Any:
        constraint = getattr(t.distributions.constraints, name)
        values = [constraint.check(t.tensor(rows)) for rows in MATRICES]
        values.append(constraint.check(t.tensor(MATRICES[:2])))
        if name != "corr_cholesky":
            values.append(tried(lambda: constraint.check(t.ones(2, 3)[:, :2])))
        return [*values, repr(constraint), constraint.event_dim, constraint.is_discrete]

    both(script)


def test_constraints_of_numbers() -> None:
    def script(t: Any) -> Any:
        c, x = t.distributions.constraints, t.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])
        found = []
        for constraint in (c.half_open_interval(0.0, 1.0), c.positive_integer, c.less_than(1.0)):
            found += [constraint.check(x), repr(constraint), constraint.is_discrete]
        return [*found, c.square.check(t.ones(3, 2, 4))]

    both(script)
