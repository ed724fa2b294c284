"""Trains a network on real handwriting, draws the learnt weights and predictions, and mutates saved
tensors.

The code is PyTorch's but for its imports. Every random number comes from one seed, so the hash of
the weights is the same each time.

    python -m pygrad.demo --out build/demo
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import pygrad as torch
from pygrad import nn
from pygrad.datasets import Digits
from pygrad.utils.data import DataLoader

try:
    from PIL import Image, ImageDraw
    from tqdm import tqdm
except ImportError as error:
    raise SystemExit(f"{error}; the demo needs: pip install 'pygrad-wasm[demo]'") from error

BATCH_SIZE = 32
LEARNING_RATE = 2e-3
# A little noise on the training images, because there are few.
NOISE = 0.1


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code is 1 if a mutation changed a gradient."""
    args = _parse(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    train_set, test_set = Digits(train=True), Digits(train=False)
    model = network()
    print(f"{len(train_set)} images to train with, {len(test_set)} to test with")
    start = time.perf_counter()
    losses = train(model, train_set, test_set, args.epochs)
    seconds = time.perf_counter() - start
    steps = len(losses) * len(losses[0])
    print(f"trained {steps} steps in {seconds:.1f} s")

    loss_path, predictions_path = args.out / "loss.png", args.out / "predictions.png"
    draw_loss(losses).save(loss_path)
    draw_predictions(test_set, predict(model, test_set.data)).save(predictions_path)
    print(f"pictures: {loss_path} {predictions_path}")
    print(f"test accuracy: {accuracy(model, test_set):.2f} %")
    print(f"weights SHA-256: {weights_sha256(model)}")
    return 0 if show_saved_tensors_are_snapshots() else 1


def network() -> nn.Module:
    """A perceptron with two hidden layers: (N, 64) -> (N, 10) scores."""
    return nn.Sequential(
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(128, 10),
    )


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pygrad.demo", description="Learn to read.")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the images (30)")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (0)")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="for the pictures")
    args = parser.parse_args(argv)
    if args.epochs < 1:
        parser.error("--epochs must be at least 1")
    return args


def train(
    model: nn.Module,
    train_set: Digits,
    test_set: Digits,
    epochs: int,
    on_epoch: Callable[[], object] = lambda: None,
) -> list[list[float]]:
    """Train `model` in place, calling `on_epoch` after each pass; the loss of every step, a list
    for each epoch.
    """
    loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    criterion = nn.CrossEntropyLoss()
    losses: list[list[float]] = []
    with tqdm(total=epochs * len(loader), unit="step", mininterval=0.2) as bar:
        for epoch in range(epochs):
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * (1 - epoch / epochs)
            model.train()
            losses.append([])
            for images, labels in loader:
                noisy = images + NOISE * torch.randn(images.shape)
                optimizer.zero_grad()
                loss = criterion(model(noisy), labels)
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
                bar.update()
            bar.write(
                f"epoch {epoch + 1:2d}  loss {_mean(losses[-1]):.4f}"
                f"  train {accuracy(model, train_set):6.2f} %"
                f"  test {accuracy(model, test_set):6.2f} %"
            )
            on_epoch()
    return losses


def predict(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    """The likeliest digit of each image. Shape: (N, 64) -> (N,), int64."""
    model.eval()
    with torch.no_grad():
        scores: torch.Tensor = model(images)
        return scores.argmax(dim=1)


def accuracy(model: nn.Module, digits: Digits) -> float:
    """The share of images whose digit is predicted, in per cent."""
    right = (predict(model, digits.data) == digits.targets).sum().item()
    return 100 * int(right) / len(digits)


def weights_sha256(model: nn.Module) -> str:
    """One hash over the name, type, shape and bytes of every weight."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        array = weight.numpy()
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def show_saved_tensors_are_snapshots() -> bool:
    """Overwrite every saved tensor between forward and backward, and print whether the gradient
    changed.
    """
    print("\nwriting over saved tensors between forward and backward:")
    calm, mutated = _gradient(mutate=False), _gradient(mutate=True)
    same = torch.equal(calm, mutated)
    print(f"  gradient, nothing touched:          {calm.flatten().tolist()}")
    print(f"  gradient, every saved tensor wiped: {mutated.flatten().tolist()}")
    print(f"  the gradient {'did not change' if same else 'CHANGED'}")
    allowed = torch.autograd.graph.allow_mutation_on_saved_tensors()
    print(f"  allow_mutation_on_saved_tensors() is True: {allowed is True}")
    return same


def _gradient(mutate: bool) -> torch.Tensor:
    inputs = torch.tensor([[0.5, -1.0], [2.0, 0.25]])
    weight = torch.tensor([[1.0, 0.5], [-0.5, 1.5]], requires_grad=True)
    hidden = torch.tanh(inputs @ weight)  # the product saves its inputs, tanh its result
    loss = (hidden * hidden).sum()  # and this saves that result again
    if mutate:
        inputs.zero_()
        hidden.detach().fill_(7.0)
        with torch.no_grad():
            weight.mul_(100.0)
    loss.backward()
    assert weight.grad is not None
    return weight.grad


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


INK, GRID, PALE, RIGHT, WRONG = "#222222", "#dddddd", "#9db8d9", "#1a7f37", "#c0272d"


def draw_predictions(digits: Digits, predicted: torch.Tensor, n_shown: int = 40) -> Image.Image:
    """Test images with their predicted digits: all mistakes first, as far as they fit."""
    truth, guess = digits.targets.tolist(), predicted.tolist()
    order = sorted(range(len(truth)), key=lambda i: truth[i] == guess[i])[:n_shown]
    columns, side, cell_w, cell_h = 10, 64, 80, 92
    rows = -(-len(order) // columns)
    sheet = Image.new("RGB", (columns * cell_w, rows * cell_h), "white")
    draw = ImageDraw.Draw(sheet)
    pixels = (255 * (1 - digits.data)).to(torch.uint8).numpy().reshape(-1, 8, 8)
    for place, i in enumerate(order):
        left, top = place % columns * cell_w + 8, place // columns * cell_h + 6
        digit = Image.fromarray(pixels[i]).resize((side, side), Image.Resampling.NEAREST)
        sheet.paste(digit, (left, top))
        draw.rectangle((left - 1, top - 1, left + side, top + side), outline=GRID)
        right = truth[i] == guess[i]
        text = f"{guess[i]}" if right else f"{guess[i]}, not {truth[i]}"
        draw.text((left, top + side + 4), text, fill=RIGHT if right else WRONG)
    return sheet


def draw_loss(losses: list[list[float]]) -> Image.Image:
    """The loss over the epochs: every step pale, each epoch's mean in ink."""
    width, height, left, top, right, bottom = 720, 400, 60, 30, 700, 350
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    n_epochs, n_steps = len(losses), len(losses[0])
    highest = max(max(epoch) for epoch in losses)

    def position(epoch: float, loss: float) -> tuple[float, float]:
        x = left + (right - left) * epoch / n_epochs
        return x, bottom - (bottom - top) * loss / highest

    for tick in range(5):
        loss = highest * tick / 4
        draw.line((position(0, loss), position(n_epochs, loss)), fill=GRID)
        draw.text((left - 8, position(0, loss)[1]), f"{loss:.2f}", fill=INK, anchor="rm")
    for epoch in range(0, n_epochs + 1, max(1, n_epochs // 6)):
        x, y = position(epoch, 0)
        draw.line((x, y, x, y + 4), fill=INK)
        draw.text((x, y + 8), str(epoch), fill=INK, anchor="mt")
    steps = [position(i / n_steps, loss) for i, loss in enumerate(chain.from_iterable(losses))]
    draw.line(steps, fill=PALE)
    draw.line(
        [position(i + 0.5, _mean(epoch)) for i, epoch in enumerate(losses)], fill=INK, width=2
    )
    draw.text(((left + right) / 2, height - 18), "epoch", fill=INK, anchor="mm")
    draw.text((left, 10), "training loss: each step, and each epoch's mean", fill=INK)
    return sheet


if __name__ == "__main__":
    raise SystemExit(main())
