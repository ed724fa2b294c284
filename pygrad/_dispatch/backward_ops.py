"""Backward ops of PyTorch's dispatcher, as ``aten.convolution_backward``: their functions, and the
mapping of nodes to them.

In a backward, a dispatch mode or the class of a wrapper is asked for these ops, because the
engine's gradient functions would read elements themselves. Most functions run the forward op anew
and differentiate it by autograd, which gives the engine's bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._boundary import header
from .._ground.dtypes import bool_
from .._table import functions
from .._tensor.base import Tensor
from ..autograd import enable_grad as _enable_grad
from ..autograd import grad as _grad

_torch, _nn = functions.SPACES["torch"], functions.SPACES["nn"]
Gradients = tuple[Tensor | None, ...]
Called = tuple[str, list[Any]]
"""The name of an op and its arguments."""


# ------------------------------------------------------------------ by the forward op


def _vjp(function: Callable[..., Any], operands: Sequence[Any], wanted: Any, g: Tensor) -> Any:
    """The gradients of ``function(*operands)`` by the wanted operands, for a gradient `g` of its
    result; None for the other operands.
    """
    recorded = _torch["is_grad_enabled"]()
    with _enable_grad():
        places = [
            (each.view_as(each) if each.requires_grad else each.detach().requires_grad_())
            if want and each is not None
            else each
            for each, want in zip(operands, wanted, strict=True)
        ]
        y = function(*places)
        leaves = [
            place for place, want in zip(places, wanted, strict=True) if want and place is not None
        ]
        found = iter(_grad(y, leaves, g, create_graph=True) if leaves else ())
    return [
        None if not want or place is None else (next(found) if recorded else next(found).detach())
        for place, want in zip(places, wanted, strict=True)
    ]


def _vjp_of_one(function: Callable[[Tensor], Any], x: Tensor, g: Tensor) -> Tensor:
    """The gradient of ``function(x)``."""
    found: Tensor = _vjp(function, [x], [True], g)[0]
    return found


def _first_argument_gradient(name: str, *order: str) -> Callable[..., Tensor]:
    """The gradient of a function of torch.nn.functional by its first argument. `order` names the
    function's other arguments, which follow the gradient and the first argument in the call.
    """

    def function(grad_output: Tensor, self: Tensor, *args: Any) -> Tensor:
        keywords = dict(zip(order, args, strict=True))
        return _vjp_of_one(lambda x: _nn[name](x, **keywords), self, grad_output)

    return function


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """``aten.convolution``: a convolution, or its transpose, of one to three dimensions."""
    name = f"conv{'_transpose' if transposed else ''}{weight.dim() - 2}d"
    options: Any = {"output_padding": output_padding} if transposed else {}
    return _torch[name](
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        **options,
    )


def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Gradients:
    how: Any = None, stride, padding, dilation, transposed, output_padding, groups
    pulled = _vjp(
        lambda x, w: convolution(x, w, *how), [input, weight], output_mask[:2], grad_output
    )
    dims = [0, *range(2, grad_output.dim())]
    return pulled[0], pulled[1], grad_output.sum(dims) if output_mask[2] else None


def _max_pool_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
    nd: int = 2,
) -> Tensor:
    """The gradient of max_pool2d, computed from the indices alone."""
    # zeros with history
    planes = self.masked_fill(self.new_ones((), dtype=bool_), 0.0).flatten(-nd)
    grad: Tensor = planes.scatter_add(-1, indices.flatten(-nd), grad_output.flatten(-nd))
    return grad.reshape(self.shape)


def _adaptive_max_pool_backward(
    nd: int, grad_output: Tensor, self: Tensor, indices: Tensor
) -> Tensor:
    return _max_pool_backward(grad_output, self, (), (), (), (), False, indices, nd)


def _adaptive_avg_pool_backward(nd: int, grad_output: Tensor, self: Tensor) -> Tensor:
    sizes = grad_output.shape[-nd:]
    pool = _nn[f"adaptive_avg_pool{nd}d"]
    return _vjp_of_one(lambda x: pool(x, sizes), self, grad_output)


def _nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tensor:
    how = ("none", "mean", "sum")[reduction]
    loss: Tensor = _nn["nll_loss"](x, target, weight, ignore_index=ignore_index, reduction=how)
    return loss


def _nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    how = target, weight, reduction, ignore_index
    return _vjp_of_one(lambda x: _nll_loss(x, *how), self, grad_output)


def _nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """``aten.nll_loss_forward``: the loss, and the sum of the weights of the targets that count,
    or 0 without a reduction.
    """
    loss = _nll_loss(self, target, weight, reduction, ignore_index)
    counts = target != ignore_index
    if reduction == 0:
        return loss, self.new_zeros(())
    if weight is None:
        return loss, counts.sum().to(self.dtype)
    return loss, (weight[target.where(counts, 0)] * counts).sum()


def _embedding_dense_backward(
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Tensor:
    table = grad_output.new_zeros((num_weights, grad_output.shape[-1]))
    padding = None if padding_idx < 0 else padding_idx
    return _vjp_of_one(
        lambda w: _nn["embedding"](
            indices, w, padding_idx=padding, scale_grad_by_freq=scale_grad_by_freq
        ),
        table,
        grad_output,
    )


def _pad_backward(mode: str, grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
    return _vjp_of_one(lambda x: _nn["pad"](x, list(padding), mode=mode), self, grad_output)


# ------------------------------------------------------------------ normalizations


def _normalized_backward(
    g: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, dims: list[int]
) -> tuple[Tensor, Tensor]:
    """The gradient by x of (x - mean) * rstd * weight, where mean and rstd are statistics of x over
    `dims`; and the normalized x. S. Ioffe and C. Szegedy, "Batch Normalization", 2015, section 3.
    """
    normalized = (x - mean) * rstd
    g = g if weight is None else g * weight
    along = (g * normalized).mean(dims, keepdim=True)
    return (g - g.mean(dims, keepdim=True) - normalized * along) * rstd, normalized


def _gradients_by_mask(mask: Sequence[bool], *made: Callable[[], Tensor]) -> Gradients:
    return tuple(make() if want else None for want, make in zip(mask, made, strict=True))


def _layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Gradients:
    lead = input.dim() - len(normalized_shape)
    dims, before = list(range(lead, input.dim())), list(range(lead))
    of_input, normalized = _normalized_backward(grad_out, input, weight, mean, rstd, dims)

    def sum_leading(t: Tensor) -> Tensor:
        found: Tensor = t.sum(before) if before else t
        return found

    return _gradients_by_mask(
        output_mask,
        lambda: of_input,
        lambda: sum_leading(grad_out * normalized),
        lambda: sum_leading(grad_out),
    )


def _batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Gradients:
    shape = [1, -1] + [1] * (input.dim() - 2)
    dims = [0, *range(2, input.dim())]

    def view_by_channel(t: Any) -> Any:
        return None if t is None else t.view(shape)

    if train:
        mean, rstd = view_by_channel(save_mean), view_by_channel(save_invstd)
        of_input, normalized = _normalized_backward(
            grad_out, input, view_by_channel(weight), mean, rstd, dims
        )
    else:
        rstd = (view_by_channel(running_var) + eps).rsqrt()
        normalized = (input - view_by_channel(running_mean)) * rstd
        of_input = grad_out * (rstd if weight is None else rstd * view_by_channel(weight))
    return _gradients_by_mask(
        output_mask,
        lambda: of_input,
        lambda: (grad_out * normalized).sum(dims),
        lambda: grad_out.sum(dims),
    )


def _group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Gradients:
    by_group, by_channel = [N, group, C // group, HxW], [N, C, HxW]
    of_input, normalized = _normalized_backward(
        grad_out.reshape(by_group),
        input.reshape(by_group),
        None if weight is None else weight.view(1, group, C // group, 1),
        mean.view(N, group, 1, 1),
        rstd.view(N, group, 1, 1),
        [2, 3],
    )
    flat = grad_out.reshape(by_channel)
    return _gradients_by_mask(
        output_mask,
        lambda: of_input.reshape(input.shape),
        lambda: (flat * normalized.reshape(by_channel)).sum([0, 2]),
        lambda: flat.sum([0, 2]),
    )


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "convolution_backward": _convolution_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "max_pool3d_with_indices_backward": functools.partial(_max_pool_backward, nd=3),
    "_adaptive_avg_pool2d_backward": functools.partial(_adaptive_avg_pool_backward, 2),
    "_adaptive_avg_pool3d_backward": functools.partial(_adaptive_avg_pool_backward, 3),
    "adaptive_max_pool2d_backward": functools.partial(_adaptive_max_pool_backward, 2),
    "adaptive_max_pool3d_backward": functools.partial(_adaptive_max_pool_backward, 3),
    **{
        f"avg_pool{nd}d_backward": _first_argument_gradient(
            f"avg_pool{nd}d",
            *"kernel_size stride padding ceil_mode count_include_pad divisor_override".split(),
        )
        for nd in (2, 3)
    },
    **{
        f"{mode}_pad{nd}d_backward": functools.partial(_pad_backward, word)
        for mode, word in (("reflection", "reflect"), ("replication", "replicate"))
        for nd in (1, 2, 3)
    },
    "nll_loss_forward": _nll_loss_forward,
    "nll_loss2d_forward": _nll_loss_forward,
    "nll_loss_backward": _nll_loss_backward,
    "nll_loss2d_backward": _nll_loss_backward,
    "embedding_dense_backward": _embedding_dense_backward,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_batch_norm_backward": _batch_norm_backward,
    "native_group_norm_backward": _group_norm_backward,
    "native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale,
}
"""Functions by the name of the op, including a forward op whose results its gradient needs."""


# ------------------------------------------------------------------ gradient functions as ops

_WINDOW: Final = "self, kernel_size, stride, padding"
_NORM: Final = "result1, result2"
_CALLS: Final = {
    "Convolution": "convolution_backward(g, input, weight, bias_sym_sizes_opt, stride, padding, "
    "dilation, transposed, output_padding, groups, mask3)",
    **{
        f"MaxPool{nd}DWithIndices": f"max_pool{nd}d_with_indices_backward(g, {_WINDOW}, dilation, "
        "ceil_mode, result1)"
        for nd in (2, 3)
    },
    **{
        f"AvgPool{nd}D": f"avg_pool{nd}d_backward(g, {_WINDOW}, ceil_mode, count_include_pad, "
        "divisor_override)"
        for nd in (2, 3)
    },
    **{
        f"Adaptive{kind}Pool{nd}D": f"{name}_pool{nd}d_backward(g, self{more})"
        for kind, name, more in (
            ("Avg", "_adaptive_avg", ""),
            ("Max", "adaptive_max", ", result1"),
        )
        for nd in (2, 3)
    },
    **{
        f"{mode.title()}Pad{nd}D": f"{mode}_pad{nd}d_backward(g, self, padding)"
        for mode in ("reflection", "replication")
        for nd in (1, 2, 3)
    },
    **{
        f"NllLoss{kind.upper()}": f"nll_loss{kind}_backward(g, self, target, weight, reduction, "
        "ignore_index, total_weight)"
        for kind in ("", "2d")
    },
    "NativeLayerNorm": f"native_layer_norm_backward(g, input, normalized_shape, {_NORM}, weight, "
    "bias, mask3)",
    "NativeBatchNorm": "native_batch_norm_backward(g, input, weight, running_mean, running_var, "
    f"{_NORM}, training, eps, mask3)",
    "NativeGroupNorm": f"native_group_norm_backward(g, input, {_NORM}, weight, N, C, HxW, group, "
    "mask3)",
}
"""The op of each node, and its arguments by the names under which the node saved them. `g` is the
first incoming gradient; `mask3` tells which of three gradients are wanted.
"""


def _fold(node: Any, g: Tensor) -> Any:
    size = node._saved_self_sym_argsize_minus_2, node._saved_self_sym_argsize_minus_1
    return _nn["fold"](g, size, *_window(node))


def _window(node: Any) -> tuple[Any, ...]:
    return (
        node._saved_kernel_size,
        node._saved_dilation,
        node._saved_padding,
        node._saved_stride,
    )


_STEPS: Final[dict[str, Callable[[Any, Tensor], Tensor]]] = {
    "Index": lambda node, g: g.new_zeros(node._saved_self_sym_sizes).index_put(
        node._saved_indices, g, True
    ),
    "Gather": lambda node, g: g.new_zeros(node._saved_self.shape).scatter_add(
        _to_signed(node._saved_dim), node._saved_index, g
    ),
    "IndexSelect": lambda node, g: g.new_zeros(node._saved_self_sym_sizes).index_add(
        _to_signed(node._saved_dim), node._saved_index, g
    ),
    "Cumsum": lambda node, g: (
        g.flip(_to_signed(node._saved_dim))
        .cumsum(_to_signed(node._saved_dim))
        .flip(_to_signed(node._saved_dim))
    ),
    "Im2Col": _fold,
    "Col2Im": lambda node, g: _nn["unfold"](g, *_window(node)),
}
"""Nodes whose gradient is several ops."""


_NORMS: Final = {"NativeLayerNorm", "NativeBatchNorm"}
"""Nodes that compute the mean and deviation anew where elements are hidden."""


def _to_signed(value: Any) -> Any:
    """Converts integers of a node, which are unsigned 64-bit words, to signed ones."""
    if type(value) is int and value >= 1 << 63:
        return value - (1 << 64)
    return list(map(_to_signed, value)) if type(value) is tuple else value


def _embedding(node: Any, g: Tensor) -> Called | None:
    if node._saved_sparse:
        return None
    names = "indices weight_sym_argsize_0 padding_idx scale_grad_by_freq".split()
    saved = [_to_signed(getattr(node, f"_saved_{name}")) for name in names]
    return "embedding_dense_backward", [g, *saved]


def backward_of_node(
    node: Any, g: Sequence[Any], wanted: Sequence[int]
) -> Called | Callable[[], Tensor] | None:
    """The backward op that computes a node's gradient function, with its arguments, or a function
    that calls several ops; None if PyTorch has no such op.

    Args:
        node: the node, with its saved values.
        g: the incoming gradients.
        wanted: which of its inputs need a gradient.
    """
    name = node.name().removesuffix("Backward0")
    if g[0] is None:
        return None
    if name == "Embedding":
        return _embedding(node, g[0])
    if name in _STEPS and not getattr(node, "_saved_sparse_grad", False):
        return functools.partial(_STEPS[name], node, g[0])
    if name not in _CALLS or (name in _NORMS and header.has_form(node._saved_input._h)):
        return None
    op, _, rest = _CALLS[name].partition("(")
    mask = [bool(each) for each in [*wanted, 0, 0][:3]]
    known = {"g": g[0], "mask3": mask}
    names = rest.removesuffix(")").split(", ")
    return op, [
        known[each] if each in known else _to_signed(getattr(node, f"_saved_{each}"))
        for each in names
    ]
