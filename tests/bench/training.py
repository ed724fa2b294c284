"""Workloads that are training steps: gradients cleared, forward, loss, backward, optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from work import Make, Work, classes, linear, tiny_net, wave, workload

LR_TIMED = 1e-5
"""While timing: weights must not run off to denormals or NaN."""


def training(build: Callable[[float], Callable[[], Any]], lr: float) -> Work:
    """`build(lr)` gives a step that returns the loss; five losses are compared."""

    def check() -> list[float]:
        step = build(lr)
        return [step().item() for _ in range(5)]

    return Work(build(LR_TIMED), check)


def stepping(opt: Any, loss_of: Callable[[], Any]) -> Callable[[], Any]:
    """One training step."""

    def step() -> Any:
        opt.zero_grad()
        loss = loss_of()
        loss.backward()
        opt.step()
        return loss

    return step


@workload("small training", 5)
def mlp_tiny(torch: Any) -> Work:
    def build(lr: float) -> Callable[[], Any]:
        x, y = wave(torch, 64, 2), wave(torch, 64, 1, phase=1)
        net = tiny_net(torch)
        opt = torch.optim.SGD(net.parameters(), lr=lr)
        return stepping(opt, lambda: torch.nn.functional.mse_loss(net(x), y))

    return training(build, 0.1)


def classifier(sizes: tuple[int, ...], batch: int, kind: str, lr: float, **options: float) -> Make:
    """A perceptron with ReLU and cross entropy."""

    def make(torch: Any) -> Work:
        nn = torch.nn

        def build(lr: float) -> Callable[[], Any]:
            x, y = wave(torch, batch, sizes[0]), classes(torch, batch, n=sizes[-1])
            layers: list[Any] = []
            for i, (a, b) in enumerate(pairwise(sizes)):
                layers += [nn.ReLU()] * (i > 0) + [linear(torch, a, b, i)]
            net = nn.Sequential(*layers)
            opt = getattr(torch.optim, kind)(net.parameters(), lr=lr, **options)
            return stepping(opt, lambda: nn.functional.cross_entropy(net(x), y))

        return training(build, lr)

    return make


MNIST = (784, 256, 128, 10)
workload("small training", 2.5, "mlp_digits")(classifier((64, 128, 10), 64, "Adam", 1e-3))
workload("medium training", 0.5, "mlp_mnist")(classifier(MNIST, 128, "SGD", 0.05, momentum=0.9))
workload("medium training", 0.5, "mlp_mnist_adam")(classifier(MNIST, 128, "Adam", 1e-3))
workload("medium training", 0.4, "mlp_big")(classifier((1024, 1024, 1024, 10), 256, "SGD", 0.05))


def conv(torch: Any, n_in: int, n_out: int, width: int, phase: float, padding: int = 0) -> Any:
    """A convolution with weights from the formula."""
    layer = torch.nn.Conv2d(n_in, n_out, width, padding=padding)
    scale = 1 / math.sqrt(n_in * width * width)
    with torch.no_grad():
        layer.weight.copy_(wave(torch, n_out, n_in, width, width, phase=phase, scale=scale))
        layer.bias.copy_(wave(torch, n_out, phase=phase + 0.5, scale=scale))
    return layer


@workload("medium training", 0.5)
def lenet(torch: Any) -> Work:
    """LeCun et al. 1998's LeNet-5 with ReLU and max pooling, 32 images of 28x28."""
    nn = torch.nn

    def build(lr: float) -> Callable[[], Any]:
        x, y = wave(torch, 32, 1, 28, 28), classes(torch, 32, n=10)
        net = nn.Sequential(
            *(conv(torch, 1, 6, 5, 1, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(conv(torch, 6, 16, 5, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(linear(torch, 400, 120, 3), nn.ReLU()),
            *(linear(torch, 120, 84, 4), nn.ReLU()),
            linear(torch, 84, 10, 5),
        )
        opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        return stepping(opt, lambda: nn.functional.cross_entropy(net(x), y))

    return training(build, 0.05)


def block_class(torch: Any, width: int, heads: int) -> type:
    """A transformer's block: layer norm before causal attention and before the perceptron."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self, phase: float) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = linear(torch, width, 3 * width, phase)
            self.project = linear(torch, width, width, phase + 1)
            self.up = linear(torch, width, 4 * width, phase + 2)
            self.down = linear(torch, 4 * width, width, phase + 3)

        def forward(self, x: Any, mask: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = (
                part.view(batch, length, heads, -1).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            scores = (q @ k.transpose(-2, -1)) * (width // heads) ** -0.5
            weights = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
            mixed = (weights @ v).transpose(1, 2).contiguous().view(batch, length, width)
            x = x + self.project(mixed)
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    return Block


@workload("medium training", 0.6)
def char_transformer(torch: Any) -> Work:
    """Two blocks of width 64 with four heads on 16 texts of 64 characters out of 65."""
    nn, width, length, n = torch.nn, 64, 64, 65

    def build(lr: float) -> Callable[[], Any]:
        text = classes(torch, 16, length + 1, n=n)
        x, y = text[:, :-1].contiguous(), text[:, 1:].reshape(-1)
        characters, places = nn.Embedding(n, width), nn.Embedding(length, width)
        with torch.no_grad():
            characters.weight.copy_(wave(torch, n, width, scale=0.05))
            places.weight.copy_(wave(torch, length, width, phase=1, scale=0.05))
        block = block_class(torch, width, heads=4)
        blocks = [block(10.0 * k) for k in (1, 2)]
        norm, head = nn.LayerNorm(width), linear(torch, width, n, 5)
        mask = torch.triu(torch.ones(length, length), diagonal=1).bool()
        order = torch.arange(length)
        opt = torch.optim.AdamW(
            [p for m in (characters, places, *blocks, norm, head) for p in m.parameters()], lr=lr
        )

        def loss_of() -> Any:
            h = characters(x) + places(order)
            for each in blocks:
                h = each(h, mask)
            return nn.functional.cross_entropy(head(norm(h)).view(-1, n), y)

        return stepping(opt, loss_of)

    return training(build, 1e-3)
