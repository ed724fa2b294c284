"""Gradients that are differentiated again: activations whose gradient is one node in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": lambda t: t.tanh,
    "sigmoid": lambda t: t.sigmoid,
    "relu": lambda t: t.relu,
    "threshold": lambda t: lambda x: t.nn.functional.threshold(x, 0.5, 2),
    "leaky_relu": lambda t: lambda x: t.nn.functional.leaky_relu(x, 0.1),
    "hardtanh": lambda t: lambda x: t.nn.functional.hardtanh(x, -0.5, 0.75),
    "relu6": lambda t: t.nn.functional.relu6,
    "hardshrink": lambda t: t.nn.functional.hardshrink,
    "softshrink": lambda t: t.nn.functional.softshrink,
    "hardswish": lambda t: t.nn.functional.hardswish,
    "elu": lambda t: lambda x: t.nn.functional.elu(x, 1.5),
    "selu": lambda t: t.nn.functional.selu,
    "celu": lambda t: lambda x: t.nn.functional.celu(x, 0.5),
    "softplus": lambda t: lambda x: t.nn.functional.softplus(x, 2.0, 3.0),
    "logsigmoid": lambda t: t.nn.functional.logsigmoid,
    "gelu": lambda t: t.nn.functional.gelu,
    "gelu tanh": lambda t: lambda x: t.nn.functional.gelu(x, approximate="tanh"),
}
VALUES = [-4.0, -1.5, -0.25, 0.0, 0.25, 1.5, 4.0, 7.0]


def saved_by(node: Any, *left_out: str) -> list[Any]:
    """The tensors that a node saved, by name."""
    names = [n for n in dir(node) if n.startswith("_saved") and n not in left_out]
    values = [(n, getattr(node, n)) for n in names]
    return [pair for pair in values if hasattr(pair[1], "shape")]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_gradient_is_a_node_of_its_own(name: str) -> None:
    def script(t: Any) -> Any:
        x = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
        g = t.ones_like(x).requires_grad_()
        (first,) = t.autograd.grad(ACTIVATIONS[name](t)(x), x, g, create_graph=True)
        node = first.grad_fn
        edges = [(before.name(), k) for before, k in node.next_functions]
        # PyTorch's logsigmoid keeps a buffer that it needs on a GPU alone.
        return [node.name(), *edges, *saved_by(node, "_saved_buffer"), first]

    both(script)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("strided", [False, True])
def test_derivatives_to_the_fourth(name: str, strided: bool) -> None:
    def script(t: Any) -> Any:
        leaf = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
        x = leaf.view(2, 4).t() if strided else leaf
        y = (ACTIVATIONS[name](t)(x) ** 2).sum()
        found = []
        for _ in range(4):
            (y,) = t.autograd.grad(y, leaf, create_graph=True)
            found.append(y)
            y = (y * t.arange(8, dtype=t.float64)).sum()
        return found

    both(script, atol=1e-7)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_both_parts_of_the_second_derivative(name: str) -> None:
    def script(t: Any) -> Any:
        x = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
        g = t.linspace(1, 2, 8, dtype=t.float64).requires_grad_()
        (first,) = t.autograd.grad(ACTIVATIONS[name](t)(x), x, g, create_graph=True)
        by_g, by_x = t.autograd.grad(first, (g, x), t.ones_like(first), create_graph=True)
        return [by_g, by_g.requires_grad, by_x]

    both(script)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_tangent_of_a_gradient(name: str) -> None:
    def script(t: Any) -> Any:
        forward = t.autograd.forward_ad
        with forward.dual_level():
            x = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
            dual = forward.make_dual(x, t.ones_like(x) * 0.5)
            y = ACTIVATIONS[name](t)(dual).sum()
            (first,) = t.autograd.grad(y, dual, create_graph=True)
            tangent = forward.unpack_dual(first).tangent
            return [first, t.zeros_like(x) if tangent is None else tangent]

    both(script)


def test_saved_tensors_of_the_gradient_are_packed() -> None:
    def script(t: Any) -> Any:
        packed: list[Any] = []

        def pack(saved: Any) -> Any:
            packed.append(saved.detach().clone())
            return saved

        x = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
        y = x.tanh().sum()
        with t.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
            t.autograd.grad(y, x, create_graph=True)
        return packed

    both(script)


def test_what_it_saved_is_a_snapshot() -> None:
    import pygrad as t

    x = t.tensor(VALUES, dtype=t.float64, requires_grad=True)
    y = x.sigmoid()
    (first,) = t.autograd.grad(y, x, t.ones_like(x), create_graph=True)
    (wanted,) = t.autograd.grad(first.sum(), x, retain_graph=True)
    with t.no_grad():
        y.zero_()
    (found,) = t.autograd.grad(first.sum(), x)
    assert t.equal(found, wanted)
