"""botorch: a Gaussian process is fitted, and acquisition functions of it are maximised."""

import warnings

import torch
from botorch.acquisition import LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils import standardize
from gpytorch.mlls import ExactMarginalLogLikelihood

warnings.filterwarnings("ignore")
torch.manual_seed(0)
x = torch.rand(10, 2, dtype=torch.double)
y = standardize(1 - (x - 0.5).norm(dim=-1, keepdim=True))
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(torch.tensor([[0.4, 0.4]], dtype=torch.double))
print(posterior.mean, posterior.variance)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
sampler = SobolQMCNormalSampler(torch.Size([16]), seed=1)
for wanted, q in (
    (UpperConfidenceBound(model, beta=0.1), 1),
    (LogExpectedImprovement(model, best_f=y.max()), 1),
    (qExpectedImprovement(model, best_f=y.max(), sampler=sampler), 2),
):
    found, value = optimize_acqf(wanted, bounds, q=q, num_restarts=2, raw_samples=8)
    print(type(wanted).__name__, found, value)
