"""Inputs at which derivatives are special: zeros, equal numbers, ties, bounds, indices that repeat,
nothing at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sampling import Array, Call, numbers

FILLS: dict[str, list[float]] = {
    "zeros": [0],
    "equal": [1],
    "ties": [0, 1, -1, 0.5, 1, 0],
    "bounds": [0.5, -0.5, 2, -2, -3, 3, 20, -1],
    "endless": [1, np.inf, 0.5, -np.inf, 2, np.nan],
}
"""Numbers that take the place of a sample's, again and again."""

POINTS = (*FILLS, "repeats", "empty")


def shrunk(sample: Call) -> Call:
    """The sample with no elements along its first dimension and those of the same size."""
    tensors = sample.tensors()
    size = tensors[0].shape[0] if tensors and tensors[0].shape else -1
    return sample.map(
        lambda what: replace(what, shape=tuple(0 if n == size else n for n in what.shape))
    )


def _element(what: Any, array: Array, point: str) -> Array:
    free = array.dtype == np.float64 and what.kind not in ("definite", "sorted")
    if point in FILLS and free and not what.constant:
        return np.resize(np.array(FILLS[point], dtype=np.float64), array.shape)
    return np.zeros_like(array) if point == "repeats" and what.dtype == "int64" else array


def sample_at_point(sample: Call, point: str) -> tuple[Call, list[Array]] | None:
    """A sample and its arrays at a special point; None if it has none of that kind."""
    tensors = sample.tensors()
    if point == "repeats" and not any(what.dtype == "int64" for what in tensors):
        return None
    if point == "empty":
        small = shrunk(sample)
        if small == sample:
            return None
        sample, tensors = small, small.tensors()
    try:
        made = [numbers(what, "float64", salt) for salt, what in enumerate(tensors, 1)]
    except ValueError:  # a permutation of nothing
        return None
    pairs = zip(tensors, made, strict=True)
    return sample, [np.asarray(_element(what, array, point)) for what, array in pairs]
