"""torch_geometric: four kinds of layers over a graph, pooling, and a mini-batch of graphs."""

import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_undirected

torch.manual_seed(0)
edges = to_undirected(torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]]))
x = torch.randn(5, 6)
print(degree(edges[0], 5), add_self_loops(edges)[0].shape)
for layer in (
    GCNConv(6, 4),
    GATConv(6, 4, heads=2),
    SAGEConv(6, 4),
    GINConv(torch.nn.Linear(6, 4)),
):
    out = layer(x, edges)
    out.pow(2).mean().backward()
    print(
        type(layer).__name__, out.sum().item(), [p.grad.norm().item() for p in layer.parameters()]
    )

graphs = Batch.from_data_list([Data(x=x, edge_index=edges), Data(x=2 * x, edge_index=edges)])
print(graphs.num_graphs, global_mean_pool(GCNConv(6, 2)(graphs.x, graphs.edge_index), graphs.batch))
