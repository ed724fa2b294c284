"""Forward mode over reverse mode, op by op beside PyTorch: whether a tangent depends on what
requires grad, and in which words an op without a tangent refuses.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from helpers import with_grad
from oracle import torch
from samples import Entry, samples
from sampling import Call, fill_sample
from test_gradients import inputs
from test_node_fields import compared_entries, leaves, theirs, torch_arguments

import pygrad

DIFFER = {
    "affine_grid_generator": "that of a product, which here depends on both factors",
    "nn.functional.affine_grid": "affine_grid_generator",
    "bilinear": "a tangent of the weight, in which PyTorch has zero terms of both inputs",
    "cumulative_trapezoid": "trapezoid",
    "div": "of rounding_mode=None, a name of its own",
    "divide": "div",
    "gradient": "PyTorch's tangent, which is linear in that of the input, has no term of the input",
    "group_norm": "a tangent of the bias alone, in which PyTorch has a zero term of the weight",
    "linalg.vander": "PyTorch's tangent of a product of one factor depends on it",
    "native_group_norm": "group_norm",
    "logdet": "PyTorch's tangent is that of slogdet",
    "nn.functional.group_norm": "group_norm",
    "polar": "PyTorch's tangent depends on the result, whatever is given",
    "trapezoid": "PyTorch multiplies in another order",
    "trapz": "trapezoid",
    "vander": "PyTorch multiplies in place",
    **dict.fromkeys(
        [
            f"ops.aten.{name}_backward{data}"
            for data, names in (
                ("", "threshold hardtanh hardshrink softshrink tanh sigmoid hardswish"),
                ("", "elu softplus gelu"),
                ("_data", "_softmax _log_softmax"),
            )
            for name in names.split()
        ],
        "linear in the gradient, of which PyTorch's tangent has a term that is zero",
    ),
}
"""Ops whose tangents require grad in one of the libraries alone, in some sample."""


def tangent_requires_grad(library: Any, function: Any, entry: Entry, args: Any, kwargs: Any) -> Any:
    """Whether the tangent of the result requires grad, or the error; None if there is none."""
    forward_ad = library.autograd.forward_ad
    with forward_ad.dual_level():

        def dual(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(dual, value))
            if isinstance(value, library.Tensor) and value.requires_grad:
                return forward_ad.make_dual(value, library.ones_like(value.detach()))
            return value

        args = dual(args)
        if entry.mutates:
            args = [args[0].clone(), *args[1:]]
        try:
            result = function(*args, **{key: dual(value) for key, value in kwargs.items()})
        except Exception as error:
            return type(error).__name__, str(error)
        while isinstance(result, (list, tuple)):
            result = result[0]
        if not isinstance(result, library.Tensor):
            return None
        tangent = forward_ad.unpack_dual(result).tangent
        return None if tangent is None else tangent.requires_grad


def both(entry: Entry, sample: Call, chosen: set[int]) -> tuple[Any, Any]:
    tensors = with_grad(sample, inputs(sample))
    for place, tensor in enumerate(tensors):
        tensor.requires_grad_(place in chosen)
    mine = tangent_requires_grad(pygrad, entry.function, entry, *fill_sample(sample, tensors))
    return mine, tangent_requires_grad(
        torch, theirs(entry), entry, *torch_arguments(sample, chosen)
    )


@pytest.mark.parametrize("entry", compared_entries(), ids=lambda entry: entry.id)
def test_tangents_depend_on_the_same(entry: Entry) -> None:
    """Where PyTorch has no tangent pygrad may have one."""
    for sample in samples(entry)[:3]:
        for chosen in filter(None, leaves(sample)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mine, other = both(entry, sample, chosen)
            if isinstance(mine, tuple):
                assert mine == other
            elif isinstance(mine, bool) and isinstance(other, bool) and entry.id not in DIFFER:
                assert mine == other, chosen


@pytest.mark.parametrize("library", [torch, pygrad])
def test_gradient_of_a_tangent_that_is_constant(library: Any) -> None:
    forward_ad = library.autograd.forward_ad
    x = library.ones(2, requires_grad=True)
    with forward_ad.dual_level():
        y = forward_ad.make_dual(x, library.ones(2))
        for z in (y * 3, y.relu(), library.nn.functional.linear(y, library.ones(3, 2))):
            tangent = forward_ad.unpack_dual(z).tangent
            (grad,) = library.autograd.grad(tangent.sum(), x)
            assert bool((grad == 0).all())
