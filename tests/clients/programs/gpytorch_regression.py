"""gpytorch: exact Gaussian process regression, and a variational one, fitted for a few steps."""

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(6.0 * x) + 0.1 * torch.randn(40)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    loss = -objective(model(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
model.eval()
likelihood.eval()
with torch.no_grad():
    predicted = likelihood(model(torch.tensor([0.25, 0.5, 1.5])))
print(predicted.mean, predicted.variance)


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, distribution))
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.MaternKernel(nu=1.5)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


sparse = Variational(x[::5, None].clone())
noise = gpytorch.likelihoods.GaussianLikelihood()
bound = gpytorch.mlls.VariationalELBO(noise, sparse, num_data=40)
optimizer = torch.optim.Adam([*sparse.parameters(), *noise.parameters()], lr=0.05)
for _ in range(4):
    optimizer.zero_grad()
    loss = -bound(sparse(x[:, None]), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
