"""torch.distributions: draws from the same stream, densities, moments, divergences, messages."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, outcome, result_or_error, torch

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
    "mixture_of_gammas": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.ones(3, 2)), t.distributions.Gamma(t.ones(3, 2), 2.0)
    ),
    "multivariate_mixture": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.ones(2)),
        t.distributions.Dirichlet(t.tensor([[0.5, 1.0, 3.0], [2.0, 0.1, 4.0]])),
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
    "gamma": lambda t: t.distributions.Gamma(vector(t, 0.3, 2), vector(t, 1, 3)),
    "gamma_number": lambda t: t.distributions.Gamma(2.0, 3.0),
    "chi2": lambda t: t.distributions.Chi2(vector(t, 0.3, 9)),
    "beta": lambda t: t.distributions.Beta(vector(t, 0.3, 2, 0.5), vector(t, 1, 3, 0.2)),
    "beta_number": lambda t: t.distributions.Beta(2, 3.0),
    "multi_dirichlet": lambda t: t.distributions.Dirichlet(
        t.tensor([[0.5, 1.0, 3.0], [2.0, 0.1, 4.0], [0.1, 0.9, 0.5]])
    ),
    "inverse_gamma": lambda t: t.distributions.InverseGamma(vector(t, 0.3, 1.5, 5), 2.0),
    "fisher": lambda t: t.distributions.FisherSnedecor(vector(t, 1, 3, 7), vector(t, 1, 3, 9)),
    "student": lambda t: t.distributions.StudentT(vector(t, 0.5, 1.5, 7), 1.0, vector(t, 1, 2, 3)),
    "student_number": lambda t: t.distributions.StudentT(2),
    "generalized_pareto": lambda t: t.distributions.GeneralizedPareto(
        t.tensor([0.0, 1.0, 2.0, 1.0]), 2.0, t.tensor([0.0, -0.5, 0.3, 2.0])
    ),
    "poi_negative_binomial": lambda t: t.distributions.NegativeBinomial(
        vector(t, 0.5, 4, 0), vector(t, 0.3, 0.9, 0.5)
    ),
    "poi_negative_binomial_logits": lambda t: t.distributions.NegativeBinomial(
        3, logits=vector(t, 0.3, -2)
    ),
    "one_von_mises": lambda t: t.distributions.VonMises(
        vector(t, 0.3, 2, -9), vector(t, 0.2, 9, 1e-7)
    ),
    "one_von_mises_float": lambda t: t.distributions.VonMises(t.tensor(1.0), t.tensor([0.5, 8.0])),
    "multi_lkj": lambda t: t.distributions.LKJCholesky(3, vector(t, 0.5, 2)),
    "multi_lkj_of_two": lambda t: t.distributions.LKJCholesky(2),
    "multi_low_rank": lambda t: t.distributions.LowRankMultivariateNormal(
        t.zeros(2, 3, dtype=t.float64),
        t.arange(6.0, dtype=t.float64).reshape(3, 2) / 4,
        vector(t, 1, 0.5, 2),
    ),
    "multi_low_rank_alone": lambda t: t.distributions.LowRankMultivariateNormal(
        vector(t, 1, 2), t.tensor(MATRIX, dtype=t.float64), vector(t, 1, 0.5)
    ),
    "multi_wishart": lambda t: t.distributions.Wishart(5, t.tensor(MATRIX, dtype=t.float64)),
    "multi_wishart_tril": lambda t: t.distributions.Wishart(
        vector(t, 2, 3, 2.5), scale_tril=t.tensor(MATRIX, dtype=t.float64).tril()
    ),
    "multi_wishart_precision": lambda t: t.distributions.Wishart(
        t.tensor([[4.0], [2.5]], dtype=t.float64),
        precision_matrix=t.tensor([MATRIX, MATRIX, MATRIX], dtype=t.float64),
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
        values = [repr(made), drawn, made.sample(), result_or_error(lambda: made.rsample((2,)))]
        values += [made.batch_shape, made.event_shape, repr(made.support), made.has_rsample]
        values += [result_or_error(lambda: made.log_prob(drawn)), result_or_error(made.entropy)]
        if not name.startswith(("cat", "one", "bern", "poi", "geo", "ind", "mul")):
            values += [
                result_or_error(lambda: made.cdf(drawn)),
                result_or_error(lambda: made.icdf(drawn.sigmoid())),
            ]
        for what in ("mean", "variance", "stddev", "mode", "enumerate_support"):
            if what != "mode" or "mixture" not in name:
                found = result_or_error(lambda what=what: getattr(made, what))
                values.append(result_or_error(found) if callable(found) else found)
        more = made.expand((4, *made.batch_shape))
        values += [repr(more), more.log_prob(drawn[:1]), more.sample((2,))]
        return [v if not isinstance(v, str) else v.split("\n")[0] for v in values]

    assert not outcome(lambda: script(pygrad)).error  # of both it would be no agreement
    both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in MADE if name not in ("mixture", "bernoulli")])
def test_divergence(name: str) -> None:
    def script(t: Any) -> Any:
        p = MADE[name](t)
        other = {"uniform": lambda: t.distributions.Uniform(vector(t, -2, 1), vector(t, 1, 3))}
        q = other[name]() if name in other else p.expand((2, *p.batch_shape))
        between = t.distributions.kl_divergence
        return result_or_error(lambda: between(p, q)), result_or_error(lambda: between(q, p))

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


KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Beta": lambda t, a, b: t.distributions.Beta(a, b),
    "Gamma": lambda t, a, b: t.distributions.Gamma(a, b),
    "Exponential": lambda t, a, b: t.distributions.Exponential(a * b),
    "Normal": lambda t, a, b: t.distributions.Normal(a, b),
    "Gumbel": lambda t, a, b: t.distributions.Gumbel(a, b),
    "Laplace": lambda t, a, b: t.distributions.Laplace(a, b),
    "Cauchy": lambda t, a, b: t.distributions.Cauchy(a, b),
    "Pareto": lambda t, a, b: t.distributions.Pareto(a / 5, b),
    "Uniform": lambda t, a, b: t.distributions.Uniform(a / 5, b / 5),
    "Bernoulli": lambda t, a, b: t.distributions.Bernoulli(a / b),
    "ContinuousBernoulli": lambda t, a, b: t.distributions.ContinuousBernoulli(a / b),
    "Geometric": lambda t, a, b: t.distributions.Geometric(a / b),
    "Binomial": lambda t, a, b: t.distributions.Binomial(3, a / b),
    "Poisson": lambda t, a, b: t.distributions.Poisson(a * b),
    "HalfNormal": lambda t, a, b: t.distributions.HalfNormal(a * b),
    "Dirichlet": lambda t, a, b: t.distributions.Dirichlet(t.stack([a, b])),
    "Categorical": lambda t, a, b: t.distributions.Categorical(logits=t.stack([a, b])),
    "OneHotCategorical": lambda t, a, b: t.distributions.OneHotCategorical(t.stack([a, b])),
    "Independent": lambda t, a, b: t.distributions.Independent(KINDS["Normal"](t, a, b), 1),
    "TransformedDistribution": lambda t, a, b: t.distributions.TransformedDistribution(
        KINDS["Normal"](t, a, b), [t.distributions.ExpTransform()]
    ),
    "MultivariateNormal": lambda t, a, b: t.distributions.MultivariateNormal(
        a, t.outer(a, a) + b.diag()
    ),
    "LowRankMultivariateNormal": lambda t, a, b: t.distributions.LowRankMultivariateNormal(
        a, t.stack([a, b]), b
    ),
    "Wishart": lambda t, a, b: t.distributions.Wishart(b[0] + 1, t.outer(a, a) + b.diag()),
    "Chi2": lambda t, a, b: t.distributions.Chi2(a * b),
    "LogNormal": lambda t, a, b: t.distributions.LogNormal(a, b),
    "InverseGamma": lambda t, a, b: t.distributions.InverseGamma(a, b),
    "StudentT": lambda t, a, b: t.distributions.StudentT(b, a, b),
    "FisherSnedecor": lambda t, a, b: t.distributions.FisherSnedecor(a, b),
    "VonMises": lambda t, a, b: t.distributions.VonMises(a, b),
    "NegativeBinomial": lambda t, a, b: t.distributions.NegativeBinomial(b, a / b),
    "LKJCholesky": lambda t, a, b: t.distributions.LKJCholesky(3, a),
    "Kumaraswamy": lambda t, a, b: t.distributions.Kumaraswamy(a, b),
    "Weibull": lambda t, a, b: t.distributions.Weibull(a, b),
}
"""One of each kind, of two parameters: a of 0.5, 1.5 and b of 2, 3."""

MODULES = [
    "torch.distributions",
    *(m.name for m in pkgutil.iter_modules(torch.distributions.__path__, "torch.distributions.")),
    "torch.quasirandom",
]


@pytest.mark.parametrize("name", MODULES)
def test_public_names_and_their_members_are_here(name: str) -> None:
    theirs = importlib.import_module(name)
    mine = importlib.import_module("pygrad" + name.removeprefix("torch"))
    offered = getattr(theirs, "__all__", ["SobolEngine"] if "quasi" in name else [])
    assert set(offered) <= set(dir(mine))
    for each in offered:
        kind, here = getattr(theirs, each), getattr(mine, each)
        if inspect.isclass(kind):
            members = {m for m in dir(kind) if not m.startswith("_")}
            assert members <= {*dir(here), *getattr(here, "__annotations__", ())}, each
        if inspect.isclass(kind) or inspect.isfunction(kind):
            assert list(inspect.signature(kind).parameters) == list(
                inspect.signature(here).parameters
            ), each


REGISTRY = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}


def test_every_divergence_of_pytorch_is_here() -> None:
    assert {(p.__name__, q.__name__) for p, q in pygrad.distributions.kl._KL_REGISTRY} == REGISTRY
    assert {name for pair in REGISTRY for name in pair} - KINDS.keys() == {"ExponentialFamily"}


@pytest.mark.parametrize("p", KINDS)
def test_divergences_from(p: str) -> None:
    def script(t: Any) -> Any:
        found = []
        for q in KINDS:
            for low, high in ((2.0, 3.0), (3.5, 6.0)):
                a = vector(t, 0.5, 1.5).requires_grad_()
                b = vector(t, 2, 3).requires_grad_()
                other = vector(t, 0.3, 1.7), vector(t, low, high)

                def divergence(a: Any = a, b: Any = b, q: Any = q, other: Any = other) -> Any:
                    return t.distributions.kl_divergence(KINDS[p](t, a, b), KINDS[q](t, *other))

                value = result_or_error(divergence)
                found.append(f"{q} {value}" if isinstance(value, str) else value)
                if not isinstance(value, str) and value.requires_grad:
                    value.sum().backward()
                    found += [a.grad, b.grad]
        return found

    assert not outcome(lambda: script(pygrad)).error
    both(script, rtol=1e-5, atol=1e-7)


def test_divergence_of_vectors_in_batches() -> None:
    def script(t: Any) -> Any:
        d = t.distributions
        matrix = t.tensor(MATRIX, dtype=t.float64)
        full = d.MultivariateNormal(t.zeros(4, 1, 2, dtype=t.float64), matrix)
        many = d.MultivariateNormal(vector(t, 1, 2), t.stack([matrix, 2 * matrix, matrix / 2]))
        low = d.LowRankMultivariateNormal(vector(t, 1, 2), t.stack([matrix] * 3), vector(t, 1, 2))
        short = d.LowRankMultivariateNormal(vector(t, 1), vector(t, 2)[None], vector(t, 1))
        every = (full, many, low, short)
        return [
            result_or_error(lambda p=p, q=q: d.kl_divergence(p, q)) for p in every for q in every
        ]

    both(script)


def test_rule_for_a_base_that_is_no_distribution_is_taken() -> None:
    def script(t: Any) -> Any:
        d = t.distributions

        class Base:
            pass

        class Mine(Base, d.Distribution):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__(validate_args=False)

        d.register_kl(Base, d.Distribution)(lambda p, q: "of a base")
        found = d.kl_divergence(Mine(), Mine())
        del d.kl._KL_REGISTRY[Base, d.Distribution]
        d.kl._KL_MEMOIZE.clear()
        return found

    both(script)


def test_rule_of_the_nearest_classes_is_taken() -> None:
    def script(t: Any) -> Any:
        d = t.distributions

        class Mine(d.Normal):  # type: ignore[misc, name-defined]
            pass

        class Finer(Mine):
            pass

        p, q, normal = Mine(0.0, 1.0), Finer(0.0, 1.0), d.Normal(1.0, 2.0)
        found = [d.kl_divergence(p, normal), d.kl_divergence(q, p)]
        d.register_kl(Mine, d.Normal)(lambda p, q: "mine, normal")
        d.register_kl(d.Normal, Mine)(lambda p, q: "normal, mine")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found += [d.kl_divergence(p, normal), d.kl_divergence(normal, q)]
            found += [d.kl_divergence(p, q), d.kl_divergence(p, q)]
        found += [f"{w.category.__name__}: {w.message}" for w in caught]
        d.register_kl(Mine, Mine)(lambda p, q: "mine, mine")
        found += [d.kl_divergence(p, q), d.kl_divergence(q, q)]
        for pair in [pair for pair in d.kl._KL_REGISTRY if Mine in pair]:
            del d.kl._KL_REGISTRY[pair]
        d.kl._KL_MEMOIZE.clear()
        return found

    both(script)


@pytest.mark.parametrize("name", KINDS)
def test_gradients_of_kinds(name: str) -> None:
    def script(t: Any) -> Any:
        found = []
        for what in ("rsample", "log_prob", "entropy", "cdf", "mean", "variance", "mode"):
            a = vector(t, 0.5, 1.5).requires_grad_()
            b = vector(t, 2, 3).requires_grad_()
            made = KINDS[name](t, a, b)
            if what == "rsample":
                value = made.rsample((5,)) if made.has_rsample else made.sample((5,))
            elif what in ("log_prob", "cdf"):
                drawn = made.sample((2,))
                value = result_or_error(
                    lambda made=made, what=what, drawn=drawn: getattr(made, what)(drawn)
                )
            elif what == "entropy":
                value = result_or_error(made.entropy)
            else:
                value = result_or_error(lambda made=made, what=what: getattr(made, what))
            found.append(value)
            # PyTorch forbids the gradient of what Wishart has written to since.
            if (
                not isinstance(value, str)
                and value.requires_grad
                and what + name != "rsampleWishart"
            ):
                weighted = (value * t.arange(1.0, value.numel() + 1).reshape(value.shape)).sum()
                found += [result_or_error(weighted.backward), a.grad, b.grad]
        return [v.split("\n")[0] if isinstance(v, str) else v for v in found]

    assert not outcome(lambda: script(pygrad)).error
    both(script, rtol=1e-5, atol=1e-7)


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
    "correlation": lambda d: d.CorrCholeskyTransform(),
    "cat": lambda d: d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=-1),
    "cat_rows": lambda d: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)]),
    "cat_lengths": lambda d: d.CatTransform([d.ExpTransform()], dim=1, lengths=[2], cache_size=1),
    "cat_events": lambda d: d.CatTransform(
        [d.AffineTransform(1.0, 3.0, event_dim=1), d.ExpTransform()], dim=0
    ),
    "cat_long": lambda d: d.CatTransform([d.ExpTransform()] * 3),
    "cat_far": lambda d: d.CatTransform([d.ExpTransform()], dim=3),
    "stack": lambda d: d.StackTransform([d.ExpTransform(), d.AbsTransform()], dim=1),
    "stack_vectors": lambda d: d.StackTransform([d.SoftmaxTransform(), d.identity_transform]),
    "stack_long": lambda d: d.StackTransform([d.ExpTransform()] * 3),
    "identity": lambda d: d.identity_transform,
    "inverse": lambda d: d.SigmoidTransform().inv,
    "biject": lambda d: d.biject_to(d.constraints.interval(1.0, 3.0)),
    "biject_vector": lambda d: d.biject_to(d.constraints.independent(d.constraints.positive, 1)),
    "to_simplex": lambda d: d.transform_to(d.constraints.simplex),
    "biject_correlation": lambda d: d.biject_to(d.constraints.corr_cholesky),
    "biject_cat": lambda d: d.biject_to(
        d.constraints.cat([d.constraints.positive, d.constraints.real], dim=1)
    ),
    "to_stack": lambda d: d.transform_to(
        d.constraints.stack([d.constraints.unit_interval, d.constraints.simplex])
    ),
    "to_half_open": lambda d: d.transform_to(d.constraints.half_open_interval(1.0, 3.0)),
    "to_semidefinite": lambda d: d.transform_to(d.constraints.positive_semidefinite),
    "to_less": lambda d: d.transform_to(d.constraints.less_than(2.0)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform(name: str) -> None:
    def script(t: Any) -> Any:
        made = TRANSFORMS[name](t.distributions)
        x = t.tensor([[0.3, 0.9], [0.2, 0.5]], dtype=t.float64, requires_grad=True)
        if "correlation" in name:
            x = t.tensor([[0.3, 0.9, -2.0], [0.2, -0.5, 0.1]], dtype=t.float64, requires_grad=True)
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
        return [
            y,
            back,
            back is x,
            x.grad,
            repr(made),
            repr(made.inv),
            *map(result_or_error, tries),
        ]

    both(script, rtol=1e-6)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "gamma": lambda t: t.distributions.Gamma(-1.0, 1.0),
    "gamma_value": lambda t: t.distributions.Gamma(1.0, 1.0).log_prob(t.tensor(-1.0)),
    "gamma_number": lambda t: t.distributions.Gamma(1.0, 2.0).log_prob(1.5),
    "chi2": lambda t: t.distributions.Chi2(t.tensor([1.0, 0.0])),
    "beta": lambda t: t.distributions.Beta(t.tensor([0.0, 1.0]), 1.0),
    "beta_value": lambda t: t.distributions.Beta(1.0, 1.0).log_prob(t.tensor(1.5)),
    "dirichlet": lambda t: t.distributions.Dirichlet(t.tensor(1.0)),
    "dirichlet_negative": lambda t: t.distributions.Dirichlet(t.tensor([1.0, -1.0])),
    "dirichlet_value": lambda t: t.distributions.Dirichlet(t.ones(2)).log_prob(t.ones(2)),
    "inverse_gamma": lambda t: t.distributions.InverseGamma(1.0, 0.0),
    "fisher": lambda t: t.distributions.FisherSnedecor(1.0, 0.0),
    "student": lambda t: t.distributions.StudentT(1.0, 0.0, -1.0),
    "generalized_pareto": lambda t: t.distributions.GeneralizedPareto(0.0, -1.0, 0.0),
    "generalized_pareto_value": lambda t: t.distributions.GeneralizedPareto(
        0.0, 1.0, -0.5
    ).log_prob(t.tensor(3.0)),
    "negative_binomial": lambda t: t.distributions.NegativeBinomial(-1.0, 0.5),
    "negative_binomial_certain": lambda t: t.distributions.NegativeBinomial(1.0, t.tensor(1.0)),
    "negative_binomial_both": lambda t: t.distributions.NegativeBinomial(1.0),
    "negative_binomial_value": lambda t: t.distributions.NegativeBinomial(1.0, 0.5).log_prob(
        t.tensor(0.5)
    ),
    "von_mises": lambda t: t.distributions.VonMises(t.tensor(0.0), t.tensor(-1.0)),
    "lkj": lambda t: t.distributions.LKJCholesky(1),
    "lkj_value": lambda t: t.distributions.LKJCholesky(2).log_prob(t.ones(2, 2)),
    "low_rank_number": lambda t: t.distributions.LowRankMultivariateNormal(
        t.tensor(1.0), t.ones(1, 1), t.ones(1)
    ),
    "low_rank_vector": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(2), t.ones(2), t.ones(2)
    ),
    "low_rank_factor": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(2), t.ones(3, 1), t.ones(2)
    ),
    "low_rank_diagonal": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(2), t.ones(2, 1), t.ones(3)
    ),
    "low_rank_batch": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(3, 2), t.ones(4, 2, 1), t.ones(2)
    ),
    "low_rank_negative": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(2), t.zeros(2, 1), t.tensor([2.0, 0.0])
    ),
    "wishart_none": lambda t: t.distributions.Wishart(3.0),
    "wishart_vector": lambda t: t.distributions.Wishart(3.0, t.ones(2)),
    "wishart_small": lambda t: t.distributions.Wishart(1.0, t.eye(2)),
    "wishart_indefinite": lambda t: t.distributions.Wishart(3.0, -t.eye(2)),
    "cat_number": lambda t: t.distributions.CatTransform([3]),
    "cat_lengths": lambda t: t.distributions.CatTransform(
        [t.distributions.ExpTransform()], lengths=[1, 2]
    ),
    "cat_constraint": lambda t: t.distributions.constraints.cat([3]),
    "cat_constraint_lengths": lambda t: t.distributions.constraints.cat([], lengths=[3]),
    "stack_number": lambda t: t.distributions.StackTransform([3]),
    "correlation_shape": lambda t: t.distributions.CorrCholeskyTransform().forward_shape((2,)),
    "correlation_number": lambda t: t.distributions.CorrCholeskyTransform().forward_shape(()),
    "correlation_inverse": lambda t: t.distributions.CorrCholeskyTransform().inverse_shape((2, 3)),
    "correlation_count": lambda t: t.distributions.CorrCholeskyTransform()(t.ones(2)),
    "expand_own": lambda t: _own(t)(1.0).expand((3,)),
    "expand_none": lambda t: type(
        "New", (t.distributions.Distribution,), {"arg_constraints": {}}
    )().expand((2,)),
    "independent_constraint": lambda t: t.distributions.constraints.independent(3, 1),
    "independent_dims": lambda t: t.distributions.constraints.independent(
        t.distributions.constraints.real, -1
    ),
    "independent_check": lambda t: t.distributions.constraints.real_vector.check(t.tensor(1.0)),
    "dependent_check": lambda t: t.distributions.constraints.dependent.check(t.ones(2)),
    "dependent_dim": lambda t: t.distributions.TransformedDistribution.support.event_dim,
    "dependent_kind": lambda t: t.distributions.constraints.dependent.is_discrete,
    "triangle": lambda t: t.distributions.utils.tril_matrix_to_vec(t.ones(2, 2), diag=2),
    "triangle_count": lambda t: t.distributions.utils.vec_to_tril_matrix(t.ones(2)),
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


def _own(t: Any) -> Any:
    """A class of a user's with an __init__ of its own, that does not say how it expands."""

    class Own(t.distributions.Normal):  # type: ignore[misc, name-defined]
        def __init__(self, scale: float) -> None:
            super().__init__(0.0, scale)

    return Own


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
            values.append(result_or_error(lambda: constraint.check(t.ones(2, 3)[:, :2])))
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


def test_constraints_of_parts_and_of_other_values() -> None:
    def script(t: Any) -> Any:
        c, d = t.distributions.constraints, t.distributions
        x = t.tensor([[-1.0, 0.5], [2.0, 0.5]])
        cat = c.cat([c.positive, c.real], dim=1)
        rows = c.cat([c.simplex, c.real_vector], dim=0, lengths=[1, 1])
        stack = c.stack([c.positive, c.unit_interval], dim=-1)
        below = c.stack([c.simplex, c.simplex], dim=-2)
        found = [cat.check(x), cat.event_dim, cat.is_discrete, repr(cat), rows.check(x)]
        found += [stack.check(x), stack.event_dim, stack.is_discrete, repr(stack)]
        found += [below.check(x), below.event_dim, rows.event_dim]
        for constraint in (d.Uniform.support, d.Categorical.support, d.Multinomial.support):
            found += [c.is_dependent(constraint), constraint.is_discrete, constraint.event_dim]
        made = c.dependent(is_discrete=True, event_dim=2)
        found += [made.is_discrete, made.event_dim, made(event_dim=1).event_dim]
        return [*found, c.is_dependent(c.real), repr(c.dependent), d.Independent.support is None]

    both(script)


def test_helpers_that_libraries_use() -> None:
    def script(t: Any) -> Any:
        d = t.distributions
        a = t.arange(1.0, 13, dtype=t.float64).reshape(2, 2, 3).sin()
        tril = t.tensor(MATRIX, dtype=t.float64).tril()
        diagonal = vector(t, 1, 2)
        low = d.lowrank_multivariate_normal
        capacitance = low._batch_capacitance_tril(a, diagonal)
        x = vector(t, 0.3, 0.9)
        normal = d.multivariate_normal
        square = t.arange(9.0).reshape(3, 3)
        found = [capacitance, low._batch_lowrank_logdet(a, diagonal, capacitance)]
        found += [low._batch_lowrank_mahalanobis(a, diagonal, x.expand(5, 2, 2), capacitance)]
        found += [normal._batch_mv(a, vector(t, 1, 2, 3)), normal._batch_mahalanobis(tril, x)]
        found += [normal._batch_mahalanobis(t.stack([tril, 2 * tril]), x.expand(3, 2, 2))]
        found += [normal._precision_to_scale_tril(t.tensor(MATRIX, dtype=t.float64))]
        for order in (0, 1):
            found.append(d.von_mises._log_modified_bessel_fn(vector(t, 0.1, 3.7, 3.8, 90), order))
        found += [result_or_error(lambda: d.von_mises._log_modified_bessel_fn(x, 2))]
        found += [d.dirichlet._Dirichlet.apply(x), d.gamma._standard_gamma(x)]
        found += [d.dirichlet._Dirichlet_backward(x, diagonal, vector(t, 1, 3))]
        found += [d.wishart._mvdigamma(vector(t, 3, 4), 2), d.wishart._clamp_above_eps(x)]
        for diag in (-2, -1, 0, 1):
            vec = d.utils.tril_matrix_to_vec(square, diag)
            found += [vec, d.utils.vec_to_tril_matrix(vec, diag)]
        found += [d.utils._standard_normal((2, 3), t.float64, None)]
        found += [d.utils._sum_rightmost(a, 2), d.utils._sum_rightmost(a, 0)]
        found += [d.transforms._clipped_sigmoid(vector(t, -900, 0, 900))]
        found += [d.continuous_bernoulli.ContinuousBernoulli(x)._cont_bern_log_norm()]
        return found

    assert not outcome(lambda: script(pygrad)).error
    both(script)


@pytest.mark.parametrize(
    "name", "Bernoulli ContinuousBernoulli Exponential Gamma Normal Wishart".split()
)
def test_entropy_of_an_exponential_family_by_its_normalizer(name: str) -> None:
    """By differentiation the base finds what each class says in closed form."""

    def script(t: Any) -> Any:
        made = KINDS[name](t, vector(t, 0.5, 1.5), vector(t, 2, 3))
        by_normalizer = t.distributions.ExponentialFamily.entropy(made)
        t.testing.assert_close(by_normalizer.detach(), made.entropy())
        other = KINDS[name](t, vector(t, 0.7, 1.2), vector(t, 2.5, 4))
        rule = t.distributions.kl._KL_REGISTRY[(t.distributions.ExponentialFamily,) * 2]
        return by_normalizer, rule(made, other)

    assert not outcome(lambda: script(pygrad)).error
    both(script)


def test_own_distribution_and_family() -> None:
    def script(t: Any) -> Any:
        d = t.distributions

        class Squared(d.ExponentialFamily):  # type: ignore[misc, name-defined]
            """Of x ** 2, x exponential: a support and parameters of its own."""

            arg_constraints = {"rate": d.constraints.positive}  # noqa: RUF012
            _mean_carrier_measure = 0.0

            def __init__(self, rate: Any, validate_args: Any = None) -> None:
                self.rate = rate
                super().__init__(rate.shape, validate_args=validate_args)

            def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
                new = self._get_checked_instance(Squared, _instance)
                new.rate = self.rate.expand(batch_shape)
                super(Squared, new).__init__(t.Size(batch_shape), validate_args=False)
                new._validate_args = self._validate_args
                return new

            @d.constraints.dependent_property(is_discrete=False, event_dim=0)
            def support(self) -> Any:
                return d.constraints.greater_than(self.rate)

            @d.utils.lazy_property
            def twice(self) -> Any:
                return self.rate * 2

            @property
            def _natural_params(self) -> Any:
                return (-self.rate,)

            def _log_normalizer(self, x: Any) -> Any:
                return -(-x).log()

            def log_prob(self, value: Any) -> Any:
                if self._validate_args:
                    self._validate_sample(value)
                return -self.rate * value

        rate = vector(t, 1, 2).requires_grad_()
        made = Squared(rate)
        wide = made.expand((3, 2))
        with t.no_grad():
            twice = made.twice
        found = [repr(made), wide.log_prob(t.full((3, 2), 4.0)), wide.rate.shape, made.entropy()]
        found += [twice, made.twice is twice, d.constraints.is_dependent(Squared.support)]
        found += [
            result_or_error(lambda: made.log_prob(t.zeros(2))),
            d.kl_divergence(made, Squared(rate * 2)),
        ]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found.append(made.expand((2,)).batch_shape)
            bare = d.Distribution((2,))
            bare._validate_sample(t.ones(2))
            d.Normal(0.0, 1.0).sample_n(2)
        return found + [f"{w.category.__name__}: {w.message}" for w in caught]

    both(script)


def test_distribution_may_be_a_module_too() -> None:
    """A module has `_parameters`, which are others."""

    def script(t: Any) -> Any:
        class Prior(t.nn.Module, t.distributions.Gamma):
            def __init__(self, concentration: Any, rate: Any) -> None:
                t.nn.Module.__init__(self)
                t.distributions.Gamma.__init__(self, concentration, rate, validate_args=True)

        prior = Prior(t.tensor([1.0, 2.0]), 0.5)
        return [
            str(t.distributions.Gamma.__repr__(prior)),
            prior.mean,
            prior.log_prob(t.tensor(2.0)),
            result_or_error(lambda: Prior(1.0, -1.0)),
        ]

    both(script)


def test_independent_expands_to_its_own_class() -> None:
    def script(t: Any) -> Any:
        class Mine(t.distributions.Independent):
            def twice(self) -> Any:
                return 2 * self.mean

        class Other(t.distributions.Independent):
            def __init__(self, base: Any) -> None:
                super().__init__(base, 1)

        base = t.distributions.Normal(t.zeros(2, 3), t.ones(3))
        wide = Mine(base, 1).expand([4, 2])
        filled = Mine.__new__(Mine)
        same = Mine(base, 2).expand(t.Size([5]), filled)
        return [
            [type(wide).__name__, wide.batch_shape, wide.event_shape, wide.twice()],
            [same is filled, same.batch_shape, same.event_shape, same.base_dist.batch_shape],
            result_or_error(lambda: Other(base).expand([4, 2])),
        ]

    both(script)
