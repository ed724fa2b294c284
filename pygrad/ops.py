"""Names of the ops as PyTorch's dispatcher has them: ``torch.ops.aten.mm.default``.

They are what a policy of selective checkpointing is told and lists. A call from Python is told as
one op: the one that PyTorch's dispatcher sees, and where that sees several, the one that does the
work (``linear`` is addmm or mm, ``matmul`` mm, mv, dot or bmm); an op that PyTorch composes of many
has its own name. Aliases and reshapes have the name of what they come to.

Example:
    >>> import pygrad as torch
    >>> torch.ops.aten.mm.default
    <OpOverload(op='aten.mm', overload='default')>
    >>> torch.ops.aten.add.Tensor(torch.ones(2), 1)
    tensor([2., 2.])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from . import _boundary, _index, _ops
from ._dtypes import bool_
from ._tensor import Tensor
from .autograd import profiler as _profiler

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "profiler"]


class OpOverload:
    """An op for arguments of certain kinds: the ``Tensor`` of ``aten.add.Tensor``."""

    __slots__ = ("_overloadname", "overloadpacket")

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload

    namespace = "aten"

    @property
    def __name__(self) -> str:
        return f"{self.overloadpacket.__name__}.{self._overloadname}"

    def name(self) -> str:
        """The name in schemas, such as 'aten::mm'."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{suffix}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        packet = f"aten.{self.overloadpacket.__name__}"
        return f"<OpOverload(op='{packet}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An op of all overloads, each of which is an attribute of it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def overloads(self) -> list[str]:
        """Those that a policy may be told."""
        return sorted(_overloads_of(self.__name__))

    def __getattr__(self, name: str) -> OpOverload:
        if name in _overloads_of(self.__name__):
            made = OpOverload(self, name)
            setattr(self, name, made)
            return made
        text = f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'"
        raise AttributeError(text, name=name, obj=self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__
        for word in _OFFERED:
            space, short = _ops.SPACES[word], name.removeprefix(_PREFIX.get(word, ""))
            if short in space:
                return space[short](*args, **kwargs)
        if name in _COMPOSED:
            return _COMPOSED[name](*args, **kwargs)
        raise NotImplementedError(f"aten.{name}: call the function of torch that it belongs to")

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _index_by(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return self[tuple(slice(None) if each is None else each for each in indices)]


def _softmax_by(name: str) -> Callable[..., Any]:
    def function(self: Tensor, dim: int, half_to_float: bool) -> Any:
        if half_to_float:
            raise RuntimeError("softmax with half to float conversion is not supported on CPU")
        return _ops.SPACES["torch"][name](self, dim)

    return function


def _convolution(
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
    name = f"conv{'_transpose' if transposed else ''}{weight.dim() - 2}d"
    options: Any = {"output_padding": output_padding} if transposed else {}
    return _ops.SPACES["torch"][name](
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        **options,
    )


def _safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Any:
    nothing = (self == -math.inf).all(dim, keepdim=True)
    shares = self.masked_fill(nothing, 0.0).softmax(dim, dtype=dtype)
    return shares.masked_fill(nothing, 0.0)


def _softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    mean = (grad_output * output).sum(dim, keepdim=True)
    return (output * (grad_output - mean)).to(input_dtype)


def _batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *args: Any) -> Any:
    """native_batch_norm; the two running statistics may be left out."""
    statistics = (None, None) if len(args) == 3 else ()
    return _ops.SPACES["torch"]["native_batch_norm"](input, weight, bias, *statistics, *args)


def _max_pool_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """The gradient of max_pool2d, all of which the indices say."""
    planes = self.masked_fill(self.new_ones((), dtype=bool_), 0.0).flatten(-2)  # in the graph
    grad: Tensor = planes.scatter_add(-1, indices.flatten(-2), grad_output.flatten(-2))
    return grad.reshape(self.shape)


_COMPOSED: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: _ops.C[name]
        for name in (
            "slice",
            "_batch_norm_with_update",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
        )
    },
    "index": _index_by,
    "alias": lambda self: self.view_as(self),
    "_to_copy": lambda self, **options: self.to(**{"dtype": self.dtype} | options, copy=True),
    "_softmax": _softmax_by("softmax"),
    "_log_softmax": _softmax_by("log_softmax"),
    "_adaptive_avg_pool2d": _ops.SPACES["nn"]["adaptive_avg_pool2d"],
    "convolution": _convolution,
    "_safe_softmax": _safe_softmax,
    "_softmax_backward_data": _softmax_backward,
    "_native_batch_norm_legit": _batch_norm_legit,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale,
}
"""Ops that have no row: what Python composes, and what only the dispatcher has."""


_OPERAND: Final = {
    "Tensor Tensor": "add sub mul div atan2 ldexp split slice_scatter",
    "Scalar Tensor": "eq ne lt le gt ge fmod remainder rsub lerp copysign masked_fill fill "
    "bitwise_and bitwise_or bitwise_xor",
    "Tensor_Scalar Tensor": "bitwise_left_shift bitwise_right_shift",
    "int int": "transpose select unbind",
    "default dim_IntList": "sum count_nonzero",
    "default dim": "mean max min median any all squeeze",
    "default dim_int": "prod",
    "correction correction": "var std var_mean std_mean",
    "self self": "where",
}
"""Overloads of an op: with a number (or no dim), and with a tensor (or a dim)."""
_BY_DIM: Final = {"default dim_IntList", "default dim", "default dim_int"}
_OVERLOADS: Final[dict[str, tuple[str, str, bool]]] = {
    name: (overloads.split()[0], overloads.split()[1], overloads in _BY_DIM)
    for overloads, names in _OPERAND.items()
    for name in names.split()
}
_CALLED: Final = {
    "view.default": "reshape view_as reshape_as flatten ravel unflatten",
    "expand.default": "expand_as broadcast_to",
    "transpose.int": "swapaxes swapdims adjoint mT",
    "permute.default": "movedim moveaxis numpy_T",
    "slice.Tensor": "narrow",
    "index.Tensor": "",
    "split.Tensor": "chunk",
    "cat.default": "concat concatenate",
    "_to_copy.default": "to type_as float double long int short char byte bool",
    "_softmax.default": "softmax",
    "_log_softmax.default": "log_softmax",
    "convolution.default": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d",
    "native_layer_norm.default": "layer_norm",
    "native_group_norm.default": "group_norm",
    "native_batch_norm.default": "batch_norm",
    "hardtanh.default": "relu6",
    "log_sigmoid_forward.default": "logsigmoid",
    "pow.Tensor_Scalar": "square",
    "pow.Tensor_Tensor": "",
    "pow.Scalar": "",
    "alias.default": "",
    "mul.Tensor": "multiply outer ger",
    "sub.Tensor": "subtract",
    "div.Tensor": "divide true_divide",
    "neg.default": "negative",
    "abs.default": "absolute",
    "max_pool2d_with_indices.default": "max_pool2d",
    "_adaptive_avg_pool2d.default": "adaptive_avg_pool2d",
    "nll_loss_forward.default": "nll_loss",
    "sigmoid.default": "expit",
    "linalg_vector_norm.default": "norm vector_norm",
    "linalg_inv_ex.default": "inverse inv",
    "clamp.default": "clip",
    "_scaled_dot_product_flash_attention_for_cpu.default": "scaled_dot_product_attention",
}
"""What other names of the table come to."""
_COMES_TO: Final = {name: called for called, names in _CALLED.items() for name in names.split()}
_ELSEWHERE: Final = (
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _efficient_attention_forward _flash_attention_forward"
)
"""Ops of other devices, which a policy may list, and never meets."""
_NOT_TOLD: Final = {"detach", "detach_", "requires_grad_", "contiguous"}


@functools.cache
def _overloads_of(name: str) -> frozenset[str]:
    base = name.removesuffix("_")
    found = {called.partition(".")[2] for called in _CALLED if called.startswith(f"{base}.")}
    if base in _OVERLOADS:
        found |= set(_OVERLOADS[base][:2])
    return frozenset(found or {"default"})


_PREFIX: Final = {"special": "special_", "linalg": "linalg_", "fft": "fft_"}
_OFFERED: Final = ("torch", "method", "nn", *_PREFIX)


@functools.cache
def _known() -> frozenset[str]:
    names = {_PREFIX.get(k, "") + name for k in _OFFERED for name in _ops.SPACES[k]}
    names |= {called.partition(".")[0] for called in _CALLED}
    return frozenset(names | _COMPOSED.keys() | set(_ELSEWHERE.split()))


class _Namespace:
    """The ops of one library."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name not in _known():
            text = f"'_OpNamespace' 'aten' object has no attribute '{name}'"
            raise AttributeError(text, name=name, obj=self)
        packet = OpOverloadPacket(name)
        setattr(self, name, packet)
        return packet


aten: Final = _Namespace()


@functools.cache
def _named(called: str) -> OpOverload:
    name, _, overload = called.partition(".")
    found: OpOverload = getattr(getattr(aten, name), overload)
    return found


def _name_of(op: _ops.Op) -> str:
    """As aten has it: what is only in `linalg` or `special` says so in its name."""
    if op.name in _COMES_TO or op.words & {"torch", "method", "nn"}:
        return op.name
    return next((_PREFIX[k] for k in _PREFIX if k in op.words), "") + op.name


@functools.cache
def _rows() -> dict[int, str]:
    """The name of the op that begins at each row, of those that make tensors."""
    return {
        op.row: _name_of(op)
        for op in _ops.TABLE
        if "Tensor" in op.schemas[0].partition("->")[2]
        and (op.name == "_getitem" or not op.name.startswith("_"))
        and op.name not in _NOT_TOLD
    }


def _product(args: Sequence[Any]) -> str:
    left, right = (each.ndim for each in args[:2])
    if right == 1:
        return "dot.default" if left == 1 else "mv.default"
    return "mm.default" if right == 2 else "bmm.default"


_WIDTH: Final = {_index.NONE: 1, _index.ELLIPSIS: 1, _index.SLICE: 4}
_SUBSCRIPTS: Final = {
    _index.TENSOR: "index.Tensor",
    _index.BOOL: "index.Tensor",
    _index.INT: "select.int",
    _index.SLICE: "slice.Tensor",
    _index.NONE: "unsqueeze.default",
}
"""What a subscript is told as: by the first of these that is in it."""


def _subscript(args: Sequence[Any]) -> str:
    if isinstance(args[1], int):
        return _SUBSCRIPTS[_index.INT]
    words, at, kinds = args[1].words, 0, set()
    while at < len(words):
        kinds.add(words[at])
        at += _WIDTH.get(words[at], 2)
    return next((name for kind, name in _SUBSCRIPTS.items() if kind in kinds), "alias.default")


def _power(args: Sequence[Any]) -> str:
    base, exponent = (isinstance(each, Tensor) for each in args[:2])
    return f"pow.Tensor_{'Tensor' if exponent else 'Scalar'}" if base else "pow.Scalar"


_CHOSEN: Final[dict[str, Callable[[Sequence[Any]], str]]] = {
    "matmul": _product,
    "pow": _power,
    "linear": lambda args: "mm.default" if len(args) < 3 or args[2] is None else "addmm.default",
    "_getitem": _subscript,
}
"""Ops whose arguments decide."""


def told(row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any]) -> OpOverload | None:
    """What a policy is told of a call; None for a call that is no op of PyTorch's dispatcher."""
    name = _rows().get(row)
    if name is None:
        return None
    write = "_" if mode & _boundary.INPLACE else ""
    if name in _CHOSEN:
        values = (*args, *(v for v in kwargs.values() if isinstance(v, Tensor)))
        base, _, overload = _CHOSEN[name](values).partition(".")
        return _named(f"{base}{write}.{overload}")
    called = _COMES_TO.get(name, "")
    base = called.partition(".")[0] or name
    overload = called.partition(".")[2] or "default"
    if name in _OVERLOADS:
        plain, other, by_dim = _OVERLOADS[name]
        second = args[1] if len(args) > 1 else next(iter(kwargs.values()), None)
        overload = plain if second is None or not (by_dim or isinstance(second, Tensor)) else other
    return _named(f"{base}{write}.{overload}")


class _Ranges:
    """Ranges of a profile without a scope: `torch.ops.profiler` in old programs."""

    def _record_function_enter_new(self, name: str, args: str | None = None) -> Any:
        """Begins a range; what it returns ends it."""
        return _profiler.record_function(name, args).__enter__()

    _record_function_enter = _record_function_enter_new

    def _record_function_exit(self, handle: Any) -> None:
        handle.__exit__(None, None, None)


profiler: Final = _Ranges()
