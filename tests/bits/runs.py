"""Fixed programs, hash by hash: what this host computes, for comparison with the others (runs.js).

python tests/bits/runs.py            all hashes as JSON; build/bits/calls.json must be there
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import sweep  # noqa: E402

import pygrad as torch  # noqa: E402
from pygrad import nn  # noqa: E402
from pygrad.datasets import Digits  # noqa: E402
from pygrad.demo import network, train, weights_sha256  # noqa: E402
from pygrad.utils.data import DataLoader  # noqa: E402

CALLS = HERE.parents[1] / "build" / "bits" / "calls.json"


def sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def hash_of(tensors: Iterable[torch.Tensor]) -> str:
    """Over the bytes of all tensors in turn."""
    return sha256(t.detach().clone().contiguous().numpy().tobytes() for t in tensors)


def hashes(parameters: Iterable[torch.Tensor], optimizer: Any) -> list[str]:
    """Three after a step: of the parameters, their gradients and the optimizer's state."""
    chosen = list(parameters)
    states = [optimizer.state[p] for p in chosen]
    state = [own[name] for own in states for name in sorted(own)]
    return [hash_of(chosen), hash_of(p.grad for p in chosen), hash_of(state)]


def demo() -> list[str]:
    """The weights of `make demo` after two epochs: Adam, dropout, shuffled batches."""
    torch.manual_seed(0)
    model = network()
    train(model, Digits(train=True), Digits(train=False), 2)
    return [weights_sha256(model)]


def digits() -> list[str]:
    """The first steps of such a training, in full."""
    torch.manual_seed(0)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    found = []
    loader = DataLoader(Digits(train=True), batch_size=32, shuffle=True)
    for _, (images, labels) in zip(range(10), loader, strict=False):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        found += hashes(model.parameters(), optimizer)
    return found


def convnet() -> list[str]:
    """SGD with momentum."""
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
    found = []
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        found += hashes(model.parameters(), optimizer)
    return found


def attention() -> list[str]:
    """A block of attention under a layer norm, with AdamW."""
    torch.manual_seed(2)
    x = torch.randn(2, 6, 8)
    weights = [(torch.randn(8, 8) * 0.3).requires_grad_() for _ in range(4)]
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    found = []
    for _ in range(5):
        q, k, v = (torch.matmul(x, w) for w in weights[:3])
        scores = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.35, -1)
        mixed = torch.matmul(torch.matmul(scores, v), weights[3])
        y = nn.functional.layer_norm(mixed + x, [8])
        optimizer.zero_grad()
        (nn.functional.gelu(y) * y * y).sum().backward()
        optimizer.step()
        found += hashes(weights, optimizer)
    return found


def double_backward() -> list[str]:
    """A penalty on the gradient by the inputs, in float64."""
    torch.manual_seed(3)
    weights = [torch.randn(*s, dtype=torch.float64).requires_grad_() for s in [(4, 8), (8, 1)]]
    optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9)
    found = []
    for _ in range(5):
        x = torch.randn(6, 4, dtype=torch.float64).requires_grad_()
        y = torch.matmul(torch.tanh(torch.matmul(x, weights[0])), weights[1]).sin().sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        optimizer.zero_grad()
        (slope.square().sum() + y * 0.1).backward()
        optimizer.step()
        found += [*hashes(weights, optimizer), hash_of([slope, x.grad])]
    return found


def nan() -> list[str]:
    """NaNs of many origins: hosts give them other bits, which must not be seen."""
    found = []
    for float_, int_, payload in [
        (torch.float32, torch.int32, 0x7FC12345),
        (torch.float64, torch.int64, 0x7FF8000012345678),
    ]:
        given = torch.tensor([payload], dtype=int_).view(float_)
        a = torch.tensor([0, math.inf, -1, -math.inf], dtype=float_)
        b = torch.tensor([0, math.inf, 0, 1], dtype=float_)
        made = [a / b, a - b, a.sqrt(), a.log(), a * 0, a.sin(), a.fmod(0), a.pow(0.5)]
        made += [a.neg().acosh(), a.cumsum(0)]
        x = a.detach().clone().requires_grad_()
        (x.sqrt() * b).sum().backward()
        mixed = [given + made[0], made[0] + given, given.neg(), given.matmul(given)]
        mixed += [torch.maximum(made[1], given), given.to(torch.float32)]
        last = [given, x.grad, given.expand(3), torch.stack(made).t()]
        found += [hash_of([t]) for t in [*made, *mixed, *last]]
    return [sha256(each.encode() for each in found)]


def ops(description: sweep.Description) -> dict[str, str]:
    """The hash of each op: all its calls, dtypes and modes."""
    found = {}
    for op in description["ops"]:
        outcomes = (
            sweep.run(torch, description, op, call, mode, dtype)
            for call in op["calls"]
            for mode in sweep.MODES
            for dtype in sweep.dtypes_of(op, mode)
        )
        found[op["id"]] = sha256(sweep.encode(each) for each in outcomes if each is not None)[:16]
    return found


RUNS: list[Callable[[], list[str]]] = [demo, digits, convnet, attention, double_backward, nan]

if __name__ == "__main__":
    print(
        json.dumps(
            {
                "runs": {run.__name__: run() for run in RUNS},
                "ops": ops(json.loads(CALLS.read_text(encoding="utf-8"))),
            }
        )
    )
