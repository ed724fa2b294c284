"""Where functions are asked: draws of numbers, by the precision of their type."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, np.finfo], Numbers]  # type: ignore[type-arg]
"""Draws n numbers for a type, which are rounded to it afterwards."""


def draw_between(low: float, high: float) -> Draw:
    """Draws half of the numbers evenly and half by their exponents, down to 0 if it is between."""

    def draw(rng: np.random.Generator, n: int, kind: np.finfo) -> Numbers:  # type: ignore[type-arg]
        even = rng.random(n) * (high / 2 - low / 2) * 2 + low
        ends = [abs(low), abs(high)]
        across = low * high <= 0
        least = float(kind.tiny) if across else min(ends)
        size = np.exp(rng.uniform(math.log(least), math.log(max(ends)), n))
        sign = np.where(rng.random(n) < 0.5, -1.0, 1.0) if low * high < 0 else np.sign(low + high)
        return np.clip(np.where(rng.random(n) < 0.5, even, size * sign), low, high)

    return draw


def near(*places: float, side: int = 0) -> Draw:
    """Numbers as close to a place as the type has them, and farther; of one side if it is given."""

    def draw(rng: np.random.Generator, n: int, kind: np.finfo) -> Numbers:  # type: ignore[type-arg]
        place = np.array(places)[rng.integers(0, len(places), n)]
        step = np.exp2(rng.uniform(-kind.nmant, -2, n)) * np.maximum(np.abs(place), 0.5)
        return place + step * (side or np.where(rng.random(n) < 0.5, -1.0, 1.0))

    return draw
