"""Fixed programs, hash by hash: what this host computes, for comparison with the others.

python tests/bits/runs.py            all runs as JSON
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pygrad as torch
from pygrad import nn
from pygrad.datasets import Digits
from pygrad.demo import network, train, weights_sha256


def sha256(tensors: list[torch.Tensor]) -> str:
    """Over the bytes of all tensors in turn."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()


def digits() -> list[str]:
    """The network of `make demo` after two epochs: Adam, dropout, shuffled batches."""
    torch.manual_seed(0)
    model = network()
    train(model, Digits(train=True), Digits(train=False), 2)
    return [weights_sha256(model)]


def convnet() -> list[str]:
    """Three steps of SGD with momentum, the parameters after each."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = torch.randn(8, 1, 8, 8), torch.randint(10, (8,))
    hashes = []
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        hashes.append(sha256(list(model.parameters())))
    return hashes


def attention() -> list[str]:
    """The output of an attention head under a layer norm, and the gradients of its inputs."""
    torch.manual_seed(2)
    q, k, v = (torch.randn(2, 4, 8).requires_grad_() for _ in range(3))
    weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.35, -1)
    y = nn.functional.layer_norm(torch.matmul(weights, v), [8])
    (y * y * y).sum().backward()
    return [sha256([y]), sha256([q.grad, k.grad, v.grad])]


def double_backward() -> list[str]:
    """First and second derivatives, in float64."""
    torch.manual_seed(3)
    x = torch.randn(6, dtype=torch.float64).requires_grad_()
    y = (x.tanh() * x.exp() + x.sin()).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    return [sha256([first]), sha256([second])]


RUNS: list[Callable[[], list[str]]] = [digits, convnet, attention, double_backward]

if __name__ == "__main__":
    print(json.dumps({run.__name__: run() for run in RUNS}))
