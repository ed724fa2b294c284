"""Backward ops that a dispatch mode sees, and the operations that are counted: as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode as TorchMode
from torch.utils.flop_counter import FlopCounterMode as TorchFlops

import pygrad
from pygrad.utils._python_dispatch import TorchDispatchMode
from pygrad.utils.flop_counter import FlopCounterMode

Case = tuple[Callable[..., Any], list[tuple[int, ...]]]
CASES: dict[str, Case] = {
    "conv1d": (lambda t, x, w: t.conv1d(x, w), [(2, 3, 8), (4, 3, 3)]),
    "conv2d": (lambda t, x, w, b: t.conv2d(x, w, b, padding=1), [(2, 3, 6, 6), (4, 3, 3, 3), (4,)]),
    "conv2d in groups": (lambda t, x, w: t.conv2d(x, w, groups=2), [(2, 4, 6, 6), (6, 2, 3, 3)]),
    "conv3d": (lambda t, x, w: t.conv3d(x, w), [(1, 2, 4, 4, 4), (3, 2, 2, 2, 2)]),
    "conv_transpose2d": (
        lambda t, x, w: t.conv_transpose2d(x, w, stride=2, groups=2),
        [(2, 4, 5, 5), (4, 3, 3, 3)],
    ),
    "max_pool2d": (lambda t, x: t.nn.functional.max_pool2d(x, 2), [(2, 3, 6, 6)]),
    "max_pool3d": (lambda t, x: t.nn.functional.max_pool3d(x, 2), [(2, 3, 4, 4, 4)]),
    "avg_pool2d": (lambda t, x: t.nn.functional.avg_pool2d(x, 2, 1, 1), [(2, 3, 6, 6)]),
    "adaptive_avg_pool2d": (lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 2), [(2, 3, 5, 5)]),
    "adaptive_max_pool2d": (lambda t, x: t.nn.functional.adaptive_max_pool2d(x, 2), [(2, 3, 5, 5)]),
    "batch_norm": (
        lambda t, x, w, b: t.nn.functional.batch_norm(x, None, None, w, b, training=True),
        [(4, 3, 5), (3,), (3,)],
    ),
    "layer_norm": (
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (5,), w, b),
        [(2, 3, 5), (5,), (5,)],
    ),
    "embedding": (lambda t, w: t.nn.functional.embedding(t.tensor([1, 2, 1]), w), [(5, 4)]),
    "nll_loss": (lambda t, x: t.nn.functional.nll_loss(x, t.tensor([1, 0])), [(2, 4)]),
    "reflection": (lambda t, x: t.nn.functional.pad(x, (1, 1), mode="reflect"), [(2, 3, 5)]),
    "subscript": (lambda t, x: x[t.tensor([0, 0, 2])], [(3, 4)]),
    "gather": (lambda t, x: x.gather(1, t.tensor([[0, 0], [1, 3]])), [(2, 4)]),
    "index_select": (lambda t, x: x.index_select(1, t.tensor([2, 2])), [(3, 4)]),
    "cumsum": (lambda t, x: x.cumsum(1), [(3, 4)]),
}


_OF_AUTOGRAD = "copy", "detach", "new_empty"
"""Parts of names of ops by which autograd keeps a gradient, and computes nothing."""


def observe(library: Any, mode: Any, flops: Any, case: Case) -> tuple[list[str], int]:
    """The ops of the backward, without those that copy, and how many operations both passes are."""
    names: list[str] = []

    class Listing(mode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    function, shapes = case
    with flops(display=False) as counter, Listing():
        inputs = [library.ones(shape, requires_grad=True) for shape in shapes]
        y = function(library, *inputs)
        names.clear()
        y.sum().backward()
    computed = [name for name in names if not any(word in name for word in _OF_AUTOGRAD)]
    return computed, int(counter.get_total_flops())


@pytest.mark.parametrize("name", CASES)
def test_a_backward_shows_the_same_ops_and_counts_the_same(name: str) -> None:
    expected = observe(torch, TorchMode, TorchFlops, CASES[name])
    assert observe(pygrad, TorchDispatchMode, FlopCounterMode, CASES[name]) == expected
