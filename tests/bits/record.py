"""Writes web/recorded.json: the hash of the demo's weights after each epoch, for the page.

python tests/bits/record.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pygrad as torch
from pygrad.datasets import Digits
from pygrad.demo import network, train, weights_sha256

TARGET = Path(__file__).parents[2] / "web" / "recorded.json"
SEED, EPOCHS = 0, 30


def hashes(epochs: int = EPOCHS) -> list[str]:
    """One an epoch, of a training that is planned for 30."""
    torch.manual_seed(SEED)
    model = network()
    found: list[str] = []
    train(
        model,
        Digits(train=True),
        Digits(train=False),
        epochs,
        lambda: found.append(weights_sha256(model)),
    )
    return found


if __name__ == "__main__":
    TARGET.write_text(json.dumps({"seed": SEED, "hashes": hashes()}, indent=1) + "\n")
