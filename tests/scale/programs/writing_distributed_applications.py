"""Messages, collectives and a training by hand, in the steps of PyTorch's tutorial on writing
distributed applications. The handwritten digits of pygrad stand in for a download. Its argument is
the backend.
"""

import importlib.util
import sys
from math import ceil
from pathlib import Path
from random import Random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def say(*what):
    line = " ".join(map(str, what))
    sys.stdout.write(f"rank {dist.get_rank()}: {line}\n")  # at once: others write as well
    sys.stdout.flush()


def blocking(rank):
    """Rank 0 sends, rank 1 receives."""
    tensor = torch.zeros(1)
    if rank == 0:
        tensor += 1
        dist.send(tensor=tensor, dst=1)
    elif rank == 1:
        dist.recv(tensor=tensor, src=0)
    say("has data", tensor[0])


def immediate(rank):
    """The same with requests: the tensor is not touched until wait() is over."""
    tensor = torch.zeros(1)
    request = None
    if rank == 0:
        tensor += 2
        request = dist.isend(tensor=tensor, dst=1)
    elif rank == 1:
        request = dist.irecv(tensor=tensor, src=0)
    if request is not None:
        request.wait()
    say("has data", tensor[0])


def collective(rank):
    """All-reduce within a group of its own; ranks outside take no part."""
    group = dist.new_group([0, 1])
    tensor = torch.full((2,), float(rank + 1))
    if rank < 2:
        dist.all_reduce(tensor, op=dist.ReduceOp.SUM, group=group)
        say("sum of the group", tensor.tolist())
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=group)
        dist.all_reduce(tensor, op=dist.ReduceOp.PRODUCT, group=group)
        say("product of the maxima", tensor.tolist())


def other_collectives(rank, size):
    """Broadcast, reduce, scatter, gather, all_gather and barrier."""
    tensor = torch.arange(3.0) + rank
    dist.broadcast(tensor, src=0)
    say("broadcast", tensor.tolist())
    tensor = torch.full((2,), float(rank))
    dist.reduce(tensor, dst=0, op=dist.ReduceOp.SUM)
    if rank == 0:
        say("reduced", tensor.tolist())
    mine = torch.empty(2)
    dist.scatter(mine, [torch.full((2,), 10.0 * i) for i in range(size)] if rank == 0 else None)
    say("scattered", mine.tolist())
    parts = [torch.empty(2) for _ in range(size)]
    dist.gather(mine + rank, parts if rank == 0 else None)
    if rank == 0:
        say("gathered", [part.tolist() for part in parts])
    dist.all_gather(parts, mine)
    say("all gathered", [part.tolist() for part in parts])
    dist.barrier()


def ring_allreduce(tensor):
    """The tutorial's own ring of isend and recv: every rank's tensor passes by every other."""
    rank, size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % size, (rank + 1) % size
    passing, coming, total = tensor.clone(), torch.empty_like(tensor), tensor.clone()
    for _ in range(size - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        total += coming
        request.wait()
        passing, coming = coming, passing
    return total


class DataPartitioner:
    """The samples, shuffled alike on every rank, of which each takes its part."""

    def __init__(self, images, labels, size, seed=1234):
        order = list(range(len(labels)))
        Random(seed).shuffle(order)
        self.images, self.labels = images, labels
        each = ceil(len(order) / size)
        self.parts = [order[i * each : (i + 1) * each] for i in range(size)]

    def use(self, rank):
        chosen = torch.tensor(self.parts[rank])
        return TensorDataset(self.images[chosen], self.labels[chosen])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 64)))
        return F.log_softmax(self.fc2(x), dim=1)


def digits():
    """Images (1797, 1, 8, 8) of 0 to 1 and their labels."""
    package = importlib.util.find_spec("pygrad").submodule_search_locations[0]
    with np.load(Path(package) / "datasets" / "digits.npz") as file:
        images, labels = file["images"].T.reshape(-1, 1, 8, 8), np.sort(file["labels"])
    return torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad, op=dist.ReduceOp.SUM)
        param.grad /= size


def train(rank, size, epochs=3):
    """Synchronous SGD with a conv net: the same seed, hence the same weights, on every rank."""
    torch.manual_seed(1234)
    part = DataPartitioner(*digits(), size).use(rank)
    batch = 128 // size
    loader = DataLoader(part, batch_size=batch, shuffle=False)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    batches = ceil(len(part) / batch)
    for epoch in range(epochs):
        epoch_loss = 0.0
        for data, target in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            epoch_loss += loss.item()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        say("epoch", epoch, f"mean loss {epoch_loss / batches:.2f}")
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    total = ring_allreduce(weights)
    say("all have the same weights:", torch.allclose(total / size, weights))


def main():
    dist.init_process_group(sys.argv[1])
    rank, size = dist.get_rank(), dist.get_world_size()
    blocking(rank)
    immediate(rank)
    collective(rank)
    other_collectives(rank, size)
    say("ring", ring_allreduce(torch.tensor([1.0 + rank, 2.0])).tolist())
    train(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
