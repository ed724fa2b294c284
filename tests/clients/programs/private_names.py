"""normflows, pypose, pfhedge, torch_geometric: what they call of torch's private names."""

import normflows
import pypose
import torch
import torch_geometric.nn as g
from pfhedge.instruments import BrownianStock
from torch_geometric import EdgeIndex, Index

torch.manual_seed(0)
print(normflows.distributions.UniformGaussian(2, torch.tensor([1])).sample(3))
rotation, points = pypose.randn_SO3(1), torch.randn(1, 3)
print(pypose.func.jacrev(lambda x, p: x @ p)(rotation, points))
print(BrownianStock(cost=1e-4))
print(Index([0, 1, 1], dim_size=3, is_sorted=True))
print(EdgeIndex([[0, 1, 1, 2], [1, 0, 2, 1]], sparse_size=(3, 3)))
print(torch.nn.init._no_grad_uniform_(torch.nn.Linear(3, 3).weight, -1.0, 1.0))

edges, x = torch.randint(0, 12, (2, 40)), torch.randn(12, 8)
kinds = (["a", "b"], [("a", "r", "b"), ("b", "s", "a")])
model = g.to_hetero(g.GraphSAGE(8, 4, 2), kinds)
print(model({"a": x, "b": x * 2}, {("a", "r", "b"): edges, ("b", "s", "a"): edges})["b"])
