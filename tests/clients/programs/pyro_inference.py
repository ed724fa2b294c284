"""pyro: variational inference of a coin and of a regression, and NUTS."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from torch.distributions import constraints

pyro.set_rng_seed(0)
flips = torch.tensor([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0])


def coin(data):
    fairness = pyro.sample("fairness", dist.Beta(10.0, 10.0))
    with pyro.plate("flips", len(data)):
        pyro.sample("seen", dist.Bernoulli(fairness), obs=data)


def guide(data):
    a = pyro.param("a", torch.tensor(15.0), constraint=constraints.positive)
    b = pyro.param("b", torch.tensor(15.0), constraint=constraints.positive)
    pyro.sample("fairness", dist.Beta(a, b))


svi = SVI(coin, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
print([svi.step(flips) for _ in range(5)])
print(pyro.param("a").item(), pyro.param("b").item())

x = torch.linspace(-1, 1, 20)
y = 2.0 * x + 0.5 + 0.1 * torch.randn(20)


def regression(x, y=None):
    slope = pyro.sample("slope", dist.Normal(0.0, 5.0))
    offset = pyro.sample("offset", dist.Normal(0.0, 5.0))
    scale = pyro.sample("scale", dist.HalfCauchy(1.0))
    with pyro.plate("points", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + offset, scale), obs=y)


pyro.clear_param_store()
around = AutoNormal(regression)
svi = SVI(regression, around, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO(num_particles=2))
print([svi.step(x, y) for _ in range(5)])
print({name: value.item() for name, value in around.median().items()})
print(Predictive(regression, guide=around, num_samples=3)(x)["y"].mean().item())

sampler = MCMC(
    NUTS(regression, max_tree_depth=4), num_samples=5, warmup_steps=5, disable_progbar=True
)
sampler.run(x, y)
print({name: value.mean().item() for name, value in sampler.get_samples().items()})
