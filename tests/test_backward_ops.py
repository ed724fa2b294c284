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


def indices(x: Any, nd: int, *how: int) -> Any:
    """Where max_pool finds its maxima."""
    pool = getattr(nn, f"max_pool{nd}d")
    return pool(x.detach(), *how, return_indices=True)[1]


def group_statistics(x: Any) -> tuple[Any, Any]:
    """The mean and 1 / deviation that group_norm keeps, for two groups."""
    with torch.enable_grad():
        node: Any = nn.group_norm(x.detach().requires_grad_(), 2).grad_fn
    return node._saved_result1, node._saved_result2


S: Final = [(3, 4)]
EACH: Final = [True, True, True]
TARGET: Final = torch.tensor([1, 2, 1])
STATISTICS: Final = (
    torch.tensor([0.1, -0.2, 0.3]).double(),
    torch.tensor([1.1, 0.8, 0.6]).double(),
)
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
        on_result(aten._softmax_backward_data, 1, torch.float64),
    ),
    "_log_softmax_backward_data": (
        lambda x: x.log_softmax(0),
        S,
        on_result(aten._log_softmax_backward_data, 0, torch.float64),
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
    "convolution_backward": (
        lambda x, w, b: nn.conv2d(x, w, b, 1, 1, groups=2),
        [(2, 4, 5, 5), (6, 2, 3, 3), (6,)],
        lambda g, y, x, w, b: aten.convolution_backward(
            g, x, w, [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 2, EACH
        ),
    ),
    "convolution_backward transposed": (
        lambda x, w, b: nn.conv_transpose1d(x, w, b, 2, 1, 1),
        [(2, 4, 5), (4, 3, 3), (3,)],
        lambda g, y, x, w, b: aten.convolution_backward(
            g, x, w, [3], [2], [1], [1], True, [1], 1, EACH
        ),
    ),
    **{
        f"avg_pool{nd}d_backward": (
            lambda x, nd=nd: getattr(nn, f"avg_pool{nd}d")(x, 2, 1, 1, True, False),
            [(2, *[4] * nd)],
            on_inputs(getattr(aten, f"avg_pool{nd}d_backward"), [2], [1], [1], True, False, None),
        )
        for nd in (2, 3)
    },
    **{
        f"max_pool{nd}d_with_indices_backward": (
            lambda x, nd=nd: getattr(nn, f"max_pool{nd}d")(x, 2, 1, 1),
            [(2, *[4] * nd)],
            lambda g, y, x, nd=nd: getattr(aten, f"max_pool{nd}d_with_indices_backward")(
                g, x, [2], [1], [1], [1], False, indices(x, nd, 2, 1, 1)
            ),
        )
        for nd in (2, 3)
    },
    **{
        f"_adaptive_avg_pool{nd}d_backward": (
            lambda x, nd=nd: getattr(nn, f"adaptive_avg_pool{nd}d")(x, 3),
            [(2, *[5] * nd)],
            on_inputs(getattr(aten, f"_adaptive_avg_pool{nd}d_backward")),
        )
        for nd in (2, 3)
    },
    **{
        f"adaptive_max_pool{nd}d_backward": (
            lambda x, nd=nd: getattr(nn, f"adaptive_max_pool{nd}d")(x, 3),
            [(2, *[5] * nd)],
            lambda g, y, x, nd=nd: getattr(aten, f"adaptive_max_pool{nd}d_backward")(
                g, x, getattr(nn, f"adaptive_max_pool{nd}d")(x.detach(), 3, True)[1]
            ),
        )
        for nd in (2, 3)
    },
    **{
        f"{name}_pad{nd}d_backward": (
            lambda x, nd=nd, mode=mode: nn.pad(x, [1, 2] * nd, mode=mode),
            [(2, *[4] * nd)],
            on_inputs(getattr(aten, f"{name}_pad{nd}d_backward"), [1, 2] * nd),
        )
        for name, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for nd in (1, 2, 3)
    },
    "nll_loss_backward": (
        lambda x: nn.nll_loss(x, TARGET, ignore_index=2),
        S,
        lambda g, y, x: aten.nll_loss_backward(
            g, x, TARGET, None, 1, 2, torch.tensor(2.0).double()
        ),
    ),
    "nll_loss2d_backward": (
        lambda x: nn.nll_loss(x, TARGET.reshape(1, 1, 3), reduction="none"),
        [(1, 4, 1, 3)],
        lambda g, y, x: aten.nll_loss2d_backward(
            g, x, TARGET.reshape(1, 1, 3), None, 0, -100, torch.tensor(0.0).double()
        ),
    ),
    "embedding_dense_backward": (
        lambda w: nn.embedding(TARGET, w, padding_idx=2, scale_grad_by_freq=True),
        [(4, 3)],
        lambda g, y, w: aten.embedding_dense_backward(g, TARGET, 4, 2, True),
    ),
    "native_layer_norm_backward": (
        lambda x, w, b: nn.layer_norm(x, (4, 5), w, b),
        [(3, 4, 5), (4, 5), (4, 5)],
        lambda g, y, x, w, b: aten.native_layer_norm_backward(
            g, x, [4, 5], *torch.native_layer_norm(x, [4, 5], w, b, 1e-5)[1:], w, b, EACH
        ),
    ),
    "native_batch_norm_backward": (
        lambda x, w, b: nn.batch_norm(x, None, None, w, b, training=True),
        [(4, 3, 5), (3,), (3,)],
        lambda g, y, x, w, b: aten.native_batch_norm_backward(
            *(g, x, w, None, None),
            *torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)[1:],
            *(True, 1e-5, EACH),
        ),
    ),
    "native_batch_norm_backward in evaluation": (
        lambda x, w, b: nn.batch_norm(x, *STATISTICS, w, b),
        [(4, 3, 5), (3,), (3,)],
        lambda g, y, x, w, b: aten.native_batch_norm_backward(
            g, x, w, *STATISTICS, None, None, False, 1e-5, EACH
        ),
    ),
    "native_group_norm_backward": (
        lambda x, w, b: nn.group_norm(x, 2, w, b),
        [(3, 4, 5), (4,), (4,)],
        lambda g, y, x, w, b: aten.native_group_norm_backward(
            *(g, x, *group_statistics(x)),
            *(w, 3, 4, 5, 2, EACH),
        ),
    ),
}
"""A function, its inputs, and the op that makes its gradients from the incoming one, the result and
the inputs.
"""


def made(name: str, dtype: Any = torch.float64) -> tuple[list[Any], Any, list[Any]]:
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
    inputs, g, _ = made(name)
    function, _, op = CASES[name]
    assert torch.autograd.gradcheck(
        lambda g, *x: several(op(g, function(*x), *x)), (g.requires_grad_(), *inputs)
    )


def test_every_backward_op_of_the_table_has_a_case() -> None:
    ops = {op.name for op in functions.TABLE if "only_aten" in op.words and "backward" in op.name}
    assert ops - {"native_dropout_backward"} == {name.partition(" ")[0] for name in CASES}


def test_the_gradient_of_dropout() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    y, mask = torch.native_dropout(x, 0.5, True)
    g = torch.randn(3, 4)
    assert torch.equal(
        aten.native_dropout_backward(g, mask, 2.0), torch.autograd.grad(y, [x], g)[0]
    )


def test_what_a_backward_op_cannot_read_is_an_error() -> None:
    x, g = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    one = torch.ones(1)
    with pytest.raises(RuntimeError, match="mean to have 6 elements"):
        aten.native_layer_norm_backward(g, x, [4], one, one, None, None, EACH)
    with pytest.raises(RuntimeError, match="grad_out to have the shape"):
        aten.native_layer_norm_backward(one, x, [4], one, one, None, None, EACH)
    with pytest.raises(RuntimeError, match="3 elements, but got 2"):
        aten.native_layer_norm_backward(g, x, [4], one, one, None, None, [True, False])
    with pytest.raises(RuntimeError, match="statistics of 3 channels"):
        aten.native_batch_norm_backward(g, x, None, None, None, one, one, True, 1e-5, EACH)
    with pytest.raises(RuntimeError, match="mean to have 2 elements"):
        aten.native_group_norm_backward(g, x, one, one, None, 2, 3, 4, 1, EACH)
    with pytest.raises(RuntimeError, match="gradient has shape"):
        aten.avg_pool2d_backward(one, x, [2], [1], [0], False, True, None)
    with pytest.raises(RuntimeError, match="padded tensor has shape"):
        aten.reflection_pad1d_backward(g, x, [1, 1])
    with pytest.raises(RuntimeError, match="gradient of shape"):
        aten.embedding_dense_backward(one, TARGET, 4, -1, False)
    with pytest.raises(RuntimeError, match="gradient has shape"):
        aten.convolution_backward(
            one, x, torch.ones(1, 3, 2), None, [1], [0], [1], False, [0], 1, EACH
        )


def test_a_loss_and_its_total_weight() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    loss, total = aten.nll_loss_forward(x, TARGET, None, 1, 2)
    assert torch.equal(loss, nn.nll_loss(x, TARGET, ignore_index=2))
    assert total.item() == 2
    assert not total.requires_grad


def test_ops_of_the_dispatcher_alone_have_its_names() -> None:
    for op in functions.TABLE:
        if "only_aten" in op.words:
            assert op.name in native_lines(), op.name
