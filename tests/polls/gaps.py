"""How far apart the polls of each op are, in instructions of WebAssembly: `make polls`.

A call cannot be interrupted between two polls. Every op runs on large tensors, with polls forty
times as frequent as usual. An op whose longest stretch without a poll exceeds `MOST` fails, unless
`FAR` names it. The count of instructions is exact, so the machine and its load do not matter.
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from typing import Any, Final

from fuel import stores
from samples import Entry, entries, samples
from sampling import Dtype, X

import pygrad as torch
from pygrad._boundary import hosting

EVERY: Final = 1 << 18
"""The work between two polls; usually it is forty times as much."""
MOST: Final = 25_000_000
"""The instructions that an op may take between two polls: some eight milliseconds."""
ELEMENTS: Final = 200_000
"""The elements of the largest operand."""
FAR: Final = set((Path(__file__).parent / "far.txt").read_text().split())
"""Ops with longer stretches: they fill large memory, search or sort in one go, or their elements
take long and are few.
"""


class Polls:
    """The longest stretch without a poll, by the fuel that the engine has left."""

    def __init__(self) -> None:
        self.last = self.longest = 0

    def __call__(self) -> None:
        left = stores[0].get_fuel()
        self.longest = max(self.longest, self.last - left)
        self.last = left

    def measure(self, entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> int:
        self.last, self.longest = stores[0].get_fuel(), 0
        try:
            entry.function(*args, **kwargs)
        except Exception:
            pass  # the sizes do not fit together
        self()
        return self.longest


def largest_factor(sample: X) -> int:
    """The factor by which a tensor's sides are longer when it has about ELEMENTS elements."""
    rank, numel = max(1, len(sample.shape)), max(1, math.prod(sample.shape))
    return max(1, int((ELEMENTS / numel) ** (1 / rank)))


def large(sample: X, factor: int) -> Any:
    """A tensor of a sample, each side `factor` times as long."""
    shape = [side * factor for side in sample.shape]
    dtype = getattr(torch, sample.dtype or ("bool" if sample.kind == "mask" else "float32"))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(shape, dtype=dtype) * 0.8 + 0.1
    if dtype is torch.bool:
        return torch.rand(shape) > 0.5
    return torch.randint(0, max(2, sample.high), shape).to(dtype)


def longest_stretch(entry: Entry, polls: Polls) -> int:
    found = 0
    for sample in samples(entry):
        tensors = sample.tensors()
        if not tensors:
            continue
        whole = min(largest_factor(each) for each in tensors)
        for factor in {min(16, whole), whole}:
            made = sample.map(lambda each, factor=factor: large(each, factor))
            args = [getattr(torch, v.name) if isinstance(v, Dtype) else v for v in made.args]
            found = max(found, polls.measure(entry, args, made.kwargs))
            if found > 10 * MOST:
                return found
    return found


def main() -> int:
    warnings.simplefilter("ignore")
    polls = Polls()
    hosting.on_poll = polls
    torch._C._poll_every(EVERY)
    wanted = set(sys.argv[1:])
    chosen = [e for e in entries() if samples(e) and (not wanted or e.name in wanted)]
    found = {entry.id: longest_stretch(entry, polls) for entry in chosen}
    far = {name for name, stretch in found.items() if stretch > MOST}
    for name in sorted(far - FAR, key=lambda name: -found[name]):
        print(f"FAR {name}: {found[name]:,} instructions without a poll")
    if not wanted:
        for name in sorted(FAR - far):
            print(f"near by now, so not for far.txt: {name}")
    print(f"polls: {len(found)} ops, {len(far)} of them far apart, {len(far - FAR)} unknown")
    return 1 if far - FAR or (not wanted and FAR - far) else 0


if __name__ == "__main__":
    sys.exit(main())
