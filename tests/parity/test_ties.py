"""topk and kthvalue take the same of equal elements as PyTorch, and leave them in its order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import both

LENGTHS = [1, 2, 3, 4, 5, 16, 17, 18, 64, 100, 257, 1300]


def values(length: int, distinct: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, distinct, (3, length)).astype(np.float64)


def counts(length: int) -> list[int]:
    return sorted({1, 2, length // 64, length // 3, length - 1, length} & {*range(length + 1)})


@pytest.mark.parametrize("distinct", [1, 2, 5, 50])
@pytest.mark.parametrize("length", LENGTHS)
def test_of_few_values(length: int, distinct: int) -> None:
    rows = values(length, distinct, length)

    def script(t: Any) -> Any:
        x = t.from_numpy(rows)
        found = [
            t.topk(x, k, largest=largest, sorted=in_order)
            for k in counts(length)
            for largest in (False, True)
            for in_order in (False, True)
        ]
        return [tuple(each) for each in found], [tuple(x.kthvalue(k)) for k in counts(length) if k]

    both(script)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_of_other_types(dtype: str) -> None:
    rows = values(200, 7, 3)

    def script(t: Any) -> Any:
        x = t.from_numpy(rows).to(getattr(t, dtype)).t()
        return [tuple(t.topk(x, k, 0)) for k in (1, 3, 80)], tuple(x.kthvalue(90, 0))

    both(script)


def test_of_nan() -> None:
    def script(t: Any) -> Any:
        x = t.tensor([1.0, float("nan"), 3.0, -0.0, float("nan"), 0.0, 3.0] * 30)
        found = [tuple(x.topk(k, largest=high)) for k in (2, 5, 100) for high in (False, True)]
        return found, [tuple(x.kthvalue(k)) for k in (1, 30, 200, 210)]

    both(script)


def worst(length: int) -> Any:
    """By McIlroy's adversary: medians of three that split off as little as can be."""
    half = length // 2
    order = np.empty(length)
    for k in range(half):
        order[k] = k + 1 if k % 2 == 0 else half + k + (half % 2 == 0)
        order[half + k] = 2 * (k + 1)
    return order


def test_of_an_order_in_which_partitions_are_uneven() -> None:
    rows = worst(4096) // 3

    def script(t: Any) -> Any:
        x = t.from_numpy(rows)
        return [tuple(x.topk(k, largest=high)) for k in (100, 2000) for high in (False, True)]

    both(script)
