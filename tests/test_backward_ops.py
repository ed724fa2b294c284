"""Backward ops of PyTorch's dispatcher are rows: they compute what a backward computes, by the same
code, and can be differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

import pygrad as torch
from pygrad._table import functions
from pygrad._table.function_schema import native_lines

aten = torch.ops.aten
nn = torch.nn.functional
Case = tuple[Callable[..., Any], list[tuple[int, ...]], Callable[..., Any]]


def on_inputs(op: Callable[..., Any], *more: Any, **named: Any) -> Callable[..., Any]:
    """The op of the gradient and the inputs."""
    return lambda g, y, *inputs: op(g, *inputs, *more, **named)


def on_result(op: Callable[..., Any], *more: Any) -> Callable[..., Any]:
    """The op of the gradient and the result."""
    return lambda g, y, *inputs: op(g, y, *more)


S: Final = [(3, 4)]
CASES: Final[dict[str, Case]] = {
    "threshold_backward": (
        lambda x: nn.threshold(x, 0.1, 2.0),
        S,
        on_inputs(aten.threshold_backward, 0.1),
    ),
    "leaky_relu_backward": (
        lambda x: nn.leaky_relu(x, 0.2),
        S,
        on_inputs(aten.leaky_relu_backward, 0.2, False),
    ),
    "hardtanh_backward": (nn.hardtanh, S, on_inputs(aten.hardtanh_backward, -1, 1)),
    "hardshrink_backward": (nn.hardshrink, S, on_inputs(aten.hardshrink_backward, 0.5)),
    "softshrink_backward": (nn.softshrink, S, on_inputs(aten.softshrink_backward, 0.5)),
    "tanh_backward": (torch.tanh, S, on_result(aten.tanh_backward)),
    "sigmoid_backward": (torch.sigmoid, S, on_result(aten.sigmoid_backward)),
    "log_sigmoid_backward": (
        nn.logsigmoid,
        S,
        lambda g, y, x: aten.log_sigmoid_backward(g, x, (-x.abs()).exp()),
    ),
    "hardswish_backward": (nn.hardswish, S, on_inputs(aten.hardswish_backward)),
    "elu_backward": (
        lambda x: nn.elu(x, 0.5),
        S,
        lambda g, y, x: aten.elu_backward(g, 0.5, 1, 1, False, x),
    ),
    "softplus_backward": (nn.softplus, S, on_inputs(aten.softplus_backward, 1, 20)),
    "gelu_backward": (nn.gelu, S, on_inputs(aten.gelu_backward)),
    "gelu_backward tanh": (
        lambda x: nn.gelu(x, approximate="tanh"),
        S,
        on_inputs(aten.gelu_backward, approximate="tanh"),
    ),
    "_softmax_backward_data": (
        lambda x: x.softmax(1),
        S,
        on_result(aten._softmax_backward_data, 1, torch.float32),
    ),
    "_log_softmax_backward_data": (
        lambda x: x.log_softmax(0),
        S,
        on_result(aten._log_softmax_backward_data, 0, torch.float32),
    ),
    "select_backward": (
        lambda x: x.select(1, 2),
        S,
        lambda g, y, x: aten.select_backward(g, x.shape, 1, 2),
    ),
    "slice_backward": (
        lambda x: x[:, 1:4:2],
        S,
        lambda g, y, x: aten.slice_backward(g, x.shape, 1, 1, 4, 2),
    ),
    "diagonal_backward": (
        lambda x: x.diagonal(1),
        S,
        lambda g, y, x: aten.diagonal_backward(g, x.shape, 1, 0, 1),
    ),
    "unfold_backward": (
        lambda x: x.unfold(1, 2, 1),
        S,
        lambda g, y, x: aten.unfold_backward(g, x.shape, 1, 2, 1),
    ),
}
"""A function, its inputs, and the op that makes its gradients from the incoming one, the result and
the inputs.
"""


def made(name: str, dtype: Any = torch.float32) -> tuple[list[Any], Any, list[Any]]:
    """The inputs of a case, its incoming gradient, and the gradients of a backward."""
    torch.manual_seed(0)
    function, shapes, _ = CASES[name]
    inputs = [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]
    y = function(*inputs)
    g = torch.randn(y.shape, dtype=dtype)
    return inputs, g, list(torch.autograd.grad(y, inputs, g))


def several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.parametrize("name", CASES)
def test_a_backward_op_has_the_bits_of_a_backward(name: str) -> None:
    inputs, g, expected = made(name)
    function, _, op = CASES[name]
    with torch.no_grad():
        found = several(op(g, function(*inputs), *inputs))
    assert len(found) == len(expected)
    assert all(map(torch.equal, found, expected))
    assert not any(each.requires_grad for each in found)


@pytest.mark.parametrize("name", CASES)
def test_a_backward_op_is_differentiable(name: str) -> None:
    inputs, g, _ = made(name, torch.float64)
    function, _, op = CASES[name]
    assert torch.autograd.gradcheck(
        lambda g, *x: several(op(g, function(*x), *x)), (g.requires_grad_(), *inputs)
    )


def test_every_backward_op_of_the_table_has_a_case() -> None:
    ops = {op.name for op in functions.TABLE if "only_aten" in op.words and "backward" in op.name}
    assert ops == {name.partition(" ")[0] for name in CASES}


def test_ops_of_the_dispatcher_alone_have_its_names() -> None:
    for op in functions.TABLE:
        if "only_aten" in op.words:
            assert op.name in native_lines(), op.name
