"""vmap of convolutions whose weights are batched, beside PyTorch's: values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both

LEVELS = [  # of each level, which of input, weight and bias are batched
    ["w"],
    ["xw"],
    ["xwb"],
    ["b"],
    ["xb"],
    ["x", "wb"],
    ["w", "x", "xwb"],
    ["w", "xb"],
]
NAMES = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"]


def script(name: str, groups: int, has_n: bool, levels: list[str]) -> Callable[[Any], Any]:
    images, channels, filters, dims = [2] * has_n, 4, 6, int(name[-2])
    first, second = (channels, filters) if "transpose" in name else (filters, channels)
    shapes = {
        "x": [*images, channels, *[5] * dims],
        "w": [first, second // groups, *[3] * dims],
        "b": [filters],
    }

    def run(t: Any) -> Any:
        numbers = np.random.default_rng(0)
        given = [
            t.tensor(numbers.standard_normal([3] * sum(k in level for level in levels) + shape))
            for k, shape in shapes.items()
        ]
        for each in given:
            each.requires_grad_()

        def convolve(*args: Any) -> Any:
            return getattr(t.nn.functional, name)(*args, groups=groups, padding=1, stride=2)

        for level in reversed(levels):
            convolve = t.vmap(convolve, in_dims=tuple(0 if k in level else None for k in shapes))
        y = convolve(*given)
        return y, t.autograd.grad((y * y.detach().cos()).sum(), given)

    return run


@pytest.mark.parametrize("levels", LEVELS, ids="/".join)
@pytest.mark.parametrize("has_n", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_batched_filters(name: str, groups: int, has_n: bool, levels: list[str]) -> None:
    both(script(name, groups, has_n, levels))
