"""Rules of both layouts: copies, conversions, comparisons, and differentiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._boundary import overriding
from .._boundary.overriding import DisableTorchFunctionSubclass
from .._ground.dtypes import channels_last, channels_last_3d, contiguous_format, preserve_format
from .._table import functions
from .._tensor.tensor import Tensor
from ..autograd import backward as _backward
from ..autograd import grad as _grad
from ..autograd._gradients import _inputs, _to_tuple
from ..autograd.graph import GradientEdge
from ._class import (
    Nested,
    each_element,
    fits,
    not_there,
    packed_tensor,
    rule,
    twin,
    view_as_nested,
    wrap_as_nested,
)
from ._functions import reflected_operators
from ._internal.nested_tensor import RULES as JAGGED
from ._internal.nested_tensor import NestedTensor
from ._jagged_shapes import close_gaps
from ._strided import RULES as STRIDED
from ._strided import StridedNestedTensor, copy_to_layout, to_consecutive


def both(names: str) -> Callable[[Any], Any]:
    """A rule of both layouts."""

    def put(function: Any) -> Any:
        return rule(JAGGED, names)(rule(STRIDED, names)(function))

    return put


_F = functions.SPACES["torch"]


# ------------------------------------------------------------------ copies

_FORMATS = {channels_last: "ChannelsLast", channels_last_3d: "ChannelsLast3d"}


@both("contiguous")
def contiguous(input: Any, memory_format: Any = contiguous_format) -> Any:
    """Itself if its entries are in order, else a copy in which they are."""
    if memory_format is not contiguous_format:
        raise NotImplementedError(
            "aten.contiguous: nested tensors have the contiguous format alone"
        )
    if input.is_contiguous():
        return input
    if isinstance(input, StridedNestedTensor):
        return to_consecutive(input)
    whole = close_gaps(input)
    values = packed_tensor(whole).contiguous()
    return view_as_nested(NestedTensor, values, whole._parts)


@both("clone")
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy, with the history."""
    if memory_format is contiguous_format and not input.is_contiguous():
        return input.contiguous()
    if memory_format not in (None, preserve_format, contiguous_format):
        raise RuntimeError(
            "Nested tensor clone supports Preserve and Contiguous memory formats, called clone "
            f"with memory format: {_FORMATS.get(memory_format, memory_format)}"
        )
    return wrap_as_nested(type(input), packed_clone(input), input._parts)


def packed_clone(x: Nested) -> Tensor:
    """A copy of the packed tensor, with the nested tensor's history."""
    with DisableTorchFunctionSubclass():
        return Tensor.clone(x)


@both("data")
def data(input: Any) -> Any:
    """The elements without history."""
    with DisableTorchFunctionSubclass():
        return wrap_as_nested(type(input), Tensor.data.__get__(input), input._parts)


@both("names")
def names(input: Any) -> tuple[None, ...]:
    """None for each dimension."""
    return (None,) * int(input.dim())


def _part_of_complex(name: str) -> None:
    @both(name)
    def function(input: Any) -> Any:
        if name == "real" and not input.is_complex():
            return input
        return each_element(input, name, _F[name], (input,), {})

    function.__name__ = name


_part_of_complex("real")
_part_of_complex("imag")


@both("requires_grad_")
def requires_grad_(input: Any, requires_grad: bool = True) -> Any:
    """Sets whether it is recorded; returns itself."""
    with DisableTorchFunctionSubclass():
        Tensor.requires_grad_(input, requires_grad)
    return input


@both("complex")
def complex_rule(real: Any, imag: Any) -> Any:
    """Raises NotImplementedError, as in PyTorch."""
    raise not_there("complex", real if isinstance(real, Nested) else imag)


@both("cpu")
def cpu(input: Any, memory_format: Any = None) -> Any:
    """Itself."""
    return input


@rule(JAGGED, "copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes the entries of another tensor of the same sizes to this one."""
    if not isinstance(src, NestedTensor):
        raise RuntimeError("copy_ to a nested tensor is from one of the same sizes")
    mine, other = input._parts, src._parts
    values = packed_tensor(src)
    same = mine.same(other) or [n for _, n in mine._read_spans()] == [
        n for _, n in other._read_spans()
    ]
    if not same or mine.ragged != other.ragged or values.shape != packed_tensor(input).shape:
        raise RuntimeError(
            "copy_ only supports Nested Tensors that have same size and the same offset tensor."
        )
    with DisableTorchFunctionSubclass():
        Tensor.copy_(input, values)
    return input


@both("new_empty new_zeros new_ones new_full")
def new(input: Any, size: Any = (), *_: Any, **__: Any) -> Any:
    """Raises RuntimeError: a nested tensor has no other sizes."""
    raise RuntimeError("new_empty() not supported for NJT with shape != ()")


def _define_reflected(name: str, op: str) -> None:
    @both(name)
    def function(input: Any, other: Any) -> Any:
        return _F[op](other, input)

    function.__name__ = name


for _name, _op in reflected_operators().items():
    _define_reflected(_name, _op)


@both("__setitem__ _setitem")
def setitem(input: Any, index: Any, value: Any) -> None:
    """Writes to an entry, or to an indexed part of it."""
    items = index if isinstance(index, tuple) else (index,)
    if not items or not isinstance(items[0], int) or isinstance(items[0], bool):
        raise not_there("index_put_", input)
    entry = input.select(0, items[0])
    entry[items[1:] if items[1:] else ...] = value


@both("is_same_size")
def is_same_size(input: Any, other: Any) -> bool:
    """Whether both are nested with the same sizes."""
    for what, x in (("Self", input), ("Other", other)):
        if not isinstance(x, Nested):
            others = "Other" if what == "Self" else "Self"
            raise RuntimeError(
                f"Expected both self and other to be nested tensors. {others} is nested. While "
                f"{what} is not nested."
            )
    if isinstance(input, NestedTensor) and isinstance(other, NestedTensor):
        return bool(input._size == other._size)
    return fits(other, input)


@both("equal")
def equal(input: Any, other: Any) -> bool:
    """Whether both have the same entries."""
    if type(input) is not type(other):
        return False
    mine, others = input._entries("equal"), other._entries("equal")
    return len(mine) == len(others) and all(map(Tensor.equal, mine, others))


@both("numel nelement")
def numel(input: Any) -> int:
    """The number of elements in all entries."""
    return int(input.numel())


@both("size")
def size(input: Any, dim: int | None = None) -> Any:
    """All sizes, or one."""
    return input.size(dim)


@both("stride")
def stride(input: Any, dim: int | None = None) -> Any:
    """All strides, or one."""
    return input.stride(dim)


@both("is_contiguous")
def is_contiguous(input: Any, memory_format: Any = None) -> bool:
    """Whether the entries are in order."""
    return bool(input.is_contiguous())


@both("dim")
def dim(input: Any) -> int:
    """The number of dimensions."""
    return int(input.dim())


@both("item")
def item(input: Any) -> Any:
    """The single element."""
    if input.numel() != 1:
        raise RuntimeError(f"a Tensor with {input.numel()} elements cannot be converted to Scalar")
    return packed_tensor(input.contiguous()).reshape(()).item()


@both("tolist")
def tolist(input: Any) -> Any:
    """Raises RuntimeError: `unbind` it first."""
    if isinstance(input, NestedTensor):
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")
    return input.stride()


@both("numpy __array__")
def numpy(input: Any, *_: Any, **__: Any) -> Any:
    """Raises RuntimeError: `unbind` it first."""
    if isinstance(input, NestedTensor):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    return input.shape


# ------------------------------------------------------------------ differentiation


def _packed_gradient(at: int, output: Any, grad: Any) -> Any:
    """A gradient from which a backward starts, checked against its output.

    Raises: RuntimeError: it does not fit.
    """
    nested = isinstance(output, Nested)
    if grad is None:
        if nested:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return grad
    if isinstance(output, GradientEdge) or (not nested and not isinstance(grad, Nested)):
        return grad
    if isinstance(output, StridedNestedTensor) or not nested:
        is_same_size(output, grad)
    if not fits(grad, output) or grad.numel() != output.numel():
        shapes = [_sizes(x) for x in (grad, output)]
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{at}] has a shape of {shapes[0]} and output[{at}] has "
            f"a shape of {shapes[1]}."
        )
    return copy_to_layout(grad, output) if isinstance(grad, StridedNestedTensor) else grad


def _sizes(x: Any) -> Any:
    return x._nested_tensor_size() if isinstance(x, StridedNestedTensor) else x.shape


def _gradients(outputs: Sequence[Any], given: Any) -> Any:
    """The gradients of several outputs, checked."""
    listed = [None] * len(outputs) if given is None else list(_to_tuple(given))
    if len(listed) != len(outputs):
        return given  # the engine refuses it
    found = [_packed_gradient(i, *each) for i, each in enumerate(zip(outputs, listed, strict=True))]
    return None if given is None else found


def _ungated_function(function: Any) -> Any:
    return overriding.ungated_function(function) or function


@both("autograd.backward")
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """The backward of nested outputs, with nested gradients."""
    if grad_variables is None:
        grad_tensors = _gradients(_to_tuple(tensors), grad_tensors)
    with DisableTorchFunctionSubclass():
        _ungated_function(_backward)(
            tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs
        )


@both("backward")
def backward_of(
    self: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """The method of that name."""
    backward(self, gradient, retain_graph, create_graph, None, inputs)


@both("autograd.grad")
def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, *args: Any, **options: Any) -> Any:
    """Gradients by nested inputs, which are nested like them."""
    batched = options.get("is_grads_batched", args[4] if len(args) > 4 else False)
    if batched:
        raise NotImplementedError("is_grads_batched is not implemented for nested tensors")
    grad_outputs = _gradients(_to_tuple(outputs), grad_outputs)
    with DisableTorchFunctionSubclass():
        found = _ungated_function(_grad)(outputs, inputs, grad_outputs, *args, **options)
    by = _inputs(inputs, "grad")
    results = found.values() if type(found) is dict else found
    wrapped = [
        twin(g, x) if isinstance(x, Nested) and type(g) is Tensor else g
        for g, x in zip(results, by, strict=True)
    ]
    return dict(zip(found, wrapped, strict=True)) if type(found) is dict else tuple(wrapped)
