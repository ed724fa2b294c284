"""A first program with DistributedDataParallel, in the steps of PyTorch's tutorial on it: one step
of training, then a checkpoint that rank 0 saves and every rank loads. Its argument is the backend.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def setup(backend):
    dist.init_process_group(backend)
    torch.manual_seed(dist.get_rank())


def say(what, numbers):
    shown = " ".join(f"{x:.4f}" for x in numbers)
    sys.stdout.write(f"rank {dist.get_rank()}: {what} {shown}\n")  # at once: others write as well
    sys.stdout.flush()


def train_step(model, optimizer):
    """One step on data of this rank's own; the gradients are the mean over ranks."""
    optimizer.zero_grad()
    outputs = model(torch.randn(20, 10))
    loss = nn.MSELoss()(outputs, torch.randn(20, 5))
    loss.backward()
    optimizer.step()
    return loss.item()


def weights(model):
    return [p.double().sum().item() for p in model.parameters()]


def demo_basic():
    """The ranks begin with different weights; DDP gives all of them those of rank 0."""
    model = ToyModel()
    ddp_model = DDP(model)
    say("weights", weights(ddp_model))
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.1)
    for _ in range(3):
        say("loss", [train_step(ddp_model, optimizer)])
    say("gradients", [p.grad.double().sum().item() for p in model.parameters()])
    say("trained", weights(ddp_model))


def demo_checkpoint(path):
    """Rank 0 alone saves, since all ranks hold the same; a barrier before the others load."""
    ddp_model = DDP(ToyModel())
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.1)
    if dist.get_rank() == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    there = {"cpu:0": "cpu"}
    ddp_model.load_state_dict(torch.load(path, map_location=there, weights_only=True))
    say("loaded", weights(ddp_model))
    train_step(ddp_model, optimizer)
    say("went on", weights(ddp_model))
    dist.barrier()
    if dist.get_rank() == 0:
        os.remove(path)


def main():
    setup(sys.argv[1])
    demo_basic()
    names = [os.path.join(tempfile.mkdtemp(), "model.pt") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, src=0)
    demo_checkpoint(names[0])
    if dist.get_rank() == 0:
        os.rmdir(os.path.dirname(names[0]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
