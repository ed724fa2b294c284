"""tensordict: parameters of a module as a dictionary, put into the module for a call."""

import torch
from tensordict import TensorDict

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
params = TensorDict.from_module(module)
x = torch.randn(5, 3)
print(sorted(params.keys(True, True)), params.batch_size)
with params.data.clone().zero_().to_module(module):
    print(module(x))
print(module(x))
batch = TensorDict({"a": torch.arange(6.0).reshape(3, 2), "b": {"c": torch.ones(3)}}, [3])
print(batch[1:]["a"], torch.stack([batch, batch]).shape, batch.apply(lambda t: t * 2)["b", "c"])
