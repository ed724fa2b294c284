"""Trains a small transformer to continue a text, on as many processes as there are, and prints the
hash of what comes out. Gradients are views of buckets, and clipped by their norm.
"""

from __future__ import annotations

import sys
from typing import Any

from digest import digest

import pygrad as torch
import pygrad.distributed as dist
from pygrad import nn
from pygrad.nn.parallel import DistributedDataParallel

STEPS, MICRO_BATCHES, TEXTS, LENGTH, WIDTH = 8, 5, 4, 24, 32
TEXT = "the sum of many numbers depends on the order in which they are added, but not here. " * 20


class Model(nn.Module):
    """Two layers of attention over the characters before."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(characters, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, x: Any) -> Any:
        h = self.characters(x) + self.places(torch.arange(LENGTH))
        return self.head(self.layers(h, mask=self.mask, is_causal=True))


def main() -> None:
    dist.init_process_group("mpi")
    alphabet = sorted(set(TEXT))
    text = torch.tensor([alphabet.index(c) for c in TEXT])
    torch.manual_seed(dist.get_rank())
    model = Model(len(alphabet))
    ddp = DistributedDataParallel(model, micro_batches=MICRO_BATCHES, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3)
    for step in range(STEPS):
        optimizer.zero_grad()
        for i in ddp.micro_batches_of_rank():
            torch.manual_seed(step * MICRO_BATCHES + i)
            starts = torch.randint(len(text) - LENGTH, (TEXTS,)).tolist()
            x = torch.stack([text[s : s + LENGTH] for s in starts])
            y = torch.stack([text[s + 1 : s + LENGTH + 1] for s in starts])
            nn.functional.cross_entropy(ddp(x).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        optimizer.step()
    sys.stdout.write(f"rank {dist.get_rank()} sha256 {digest(model, optimizer)}\n")
    dist.destroy_process_group()


main()
