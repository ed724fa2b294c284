"""Answers the engine's questions about ops below autograd: ``__torch_dispatch__``.

The engine asks at the door of each op (wasm_core/ops/dispatch.c) while a mode is active, or for a
tensor whose class handles ops. The op is passed in the form of PyTorch's dispatcher: an
`OpOverload` of `pygrad.ops`, and arguments in the order of its schema.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from .. import ops
from .._boundary import asked, attributes, callbacks, calls, modes, overriding
from .._boundary.arguments import Index
from .._boundary.asked import MISSING, UNKNOWN, Enum, tensor_of, values_of
from .._ground.dtypes import (
    BY_CODE,
    CASTS,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    preserve_format,
    strided,
)
from .._ground.dtypes import device as _device
from .._ground.dtypes import layout as _layout
from .._table import functions
from .._table.builtins import builtin
from .._table.function_schema import Argument, FunctionSchema, native_lines
from .._tensor import creation
from .._tensor.index import ELLIPSIS, INT, NONE, SLICE
from .._tensor.tensor import Tensor
from .._transforms import derivatives
from ..autograd import graph
from . import backward_ops

_C = functions.C
_MODE: Final = asked.MODE


# ------------------------------------------------------------------ modes


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.disabled = 0
        self.own = ""
        """An op that is the engine's own, whatever libraries have put in its place."""


_here = _OfThread()
_pushed: Final[list[None]] = []
"""One for each mode of any thread."""


def _ask(of_modes: list[Any]) -> None:
    """Tells the engine whether to ask for all ops of this thread, with these modes."""
    modes.switch(_MODE, bool(of_modes or kernels))


def _keep_arguments() -> None:
    calls.keep_arguments(bool(_pushed or kernels))
    attributes.tell_items(bool(_pushed))
    creation.lift_fresh = _lift_fresh if _pushed else None


def _lift_fresh(tensor: Any) -> Any:
    """Passes a new tensor of a program's data to this thread's modes."""
    found = dispatch_call(ops.aten.lift_fresh.default, (tensor,), {}) if _here.modes else tensor
    return tensor if found is NotImplemented else found


def unseen(function: Callable[[Any], Any], value: Any) -> Any:
    """Calls a function of a tensor or a number without telling modes."""
    if not _here.modes:
        return function(value)
    with without_modes():
        return function(value)


@builtin
def push_mode(mode: Any) -> None:
    """The engine asks this mode first from now on, in this thread."""
    _here.modes.append(mode)
    modes.switch(_MODE, True)
    _pushed.append(None)
    _keep_arguments()


def pop_mode() -> Any:
    """Takes away the mode that was pushed last.

    Raises: AssertionError: there is no mode.
    """
    if not _here.modes:
        raise AssertionError("Trying to pop a mode off an empty stack")
    mode = _here.modes.pop()
    _ask(_here.modes)
    _pushed.pop()
    _keep_arguments()
    return mode


def mode_stack() -> list[Any]:
    """The modes of this thread, innermost last."""
    return list(_here.modes)


@contextmanager
def without_modes() -> Iterator[list[Any]]:
    """No mode is asked within."""
    was = _here.modes
    _here.modes = []
    _ask(_here.modes)
    try:
        yield was
    finally:
        _here.modes = was
        _ask(was)


class disabled:
    """`torch._C._DisableTorchDispatch`: while an instance lives, no class and no mode is asked."""

    def __init__(self) -> None:
        _here.disabled += 1
        self._mine = True

    def _end(self) -> None:
        if self._mine:
            self._mine = False
            _here.disabled -= 1

    def __enter__(self) -> disabled:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    __del__ = _end


def call_below_modes(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls an op below all classes and modes."""
    _here.disabled += 1
    try:
        return func(*args, **kwargs)
    finally:
        _here.disabled -= 1


# ------------------------------------------------------------------ functions of libraries

kernels: Final[dict[str, dict[str, Callable[..., Any]]]] = {}
"""Functions that libraries have put in the place of PyTorch's own ops, by the names of their
overloads, then by the type of device."""


class _Layer:
    """A value that was put over others of the same key."""

    def __init__(self, value: Any) -> None:
        self.value = value


_NOTHING: Final = _Layer(None)
_layers: Final[dict[tuple[int, Any], tuple[dict[Any, Any], list[_Layer]]]] = {}
"""The values that were put, by dict and key, above the one that was there before."""


def put_over(values: dict[Any, Any], key: Any, value: Any) -> Callable[[], None]:
    """Sets a value in a dict; returns a function that takes it away. Several values of one key may
    be taken away in any order: that of the latest one which is left counts.
    """
    place = id(values), key
    before = _Layer(values[key]) if key in values else _NOTHING
    _, layers = _layers.setdefault(place, (values, [before]))
    mine = _Layer(value)
    layers.append(mine)
    values[key] = value

    def take_away() -> None:
        layers.remove(mine)
        if layers[-1] is _NOTHING:
            values.pop(key, None)
        else:
            values[key] = layers[-1].value
        if len(layers) == 1:
            del _layers[place]

    return take_away


def put_kernel(name: str, device: str, function: Callable[..., Any]) -> Callable[[], None]:
    """Lets an op of PyTorch, 'aten::div.Tensor', run this function on tensors of a device from now
    on, in all threads. Returns a function that undoes this.
    """
    mine = kernels.setdefault(name, {})
    undo = put_over(mine, device, function)
    modes.switch_on_everywhere(_MODE)
    _keep_arguments()

    def take_away() -> None:
        undo()
        if not mine and kernels.get(name) is mine:
            del kernels[name]
        if not kernels:
            # existing threads drop the mode at their next change of modes
            modes.clear_for_new_threads(_MODE)
            _ask(_here.modes)
            _keep_arguments()

    return take_away


def kernel_of(name: str, device: str) -> Callable[..., Any]:
    """The function that an op of PyTorch runs on a device now: a library's, or the engine's own."""
    found = kernels.get(name, {}).get(device)
    if found is not None:
        return found
    func = ops.overload(*ops.names_in(name)[1:])

    def run(*args: Any, **kwargs: Any) -> Any:
        _here.own = name
        try:
            return func(*args, **kwargs)
        finally:
            _here.own = ""

    return run


def _run_kernel(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs the function that a library has put in an op's place; NotImplemented if there is none
    for such tensors.
    """
    name = func.name()
    mine = kernels.get(name)
    if mine is None:
        return NotImplemented
    if _here.own == name:
        return NotImplemented
    tensors = tensors_in((*args, *kwargs.values()))
    if any(each.layout is not strided for each in tensors):
        return NotImplemented
    device = "meta" if any(each.is_meta for each in tensors) else "cpu"
    return mine[device](*args, **kwargs) if device in mine else NotImplemented


# ------------------------------------------------------------------ classes that handle ops


disabled_dispatch: Final = Tensor.__torch_dispatch__
"""`torch._C._disabled_torch_dispatch_impl`: a class that has it answers for nothing."""


@functools.cache
def _answers(kind: Any) -> bool:
    """Whether tensors of a class are asked for their ops."""
    method = getattr(kind, "__torch_dispatch__", None)
    return method is not None and method is not disabled_dispatch


answers: Callable[[type], bool] = _answers


def host_tensor(tensor: Any, hidden: bool = False) -> Any:
    """Makes the tensor's class handle its ops and returns the tensor. If `hidden`, only the class
    has the elements.
    """
    _C["_hosted"](tensor, hidden)
    callbacks.keep_face(tensor)
    return tensor


def _extent(sizes: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """The number of elements of a storage up to the last one of a tensor with this geometry."""
    if 0 in sizes:
        return offset
    return offset + 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))


def make_wrapper(
    cls: type,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Any:
    """See `Tensor._make_wrapper_subclass`."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    if cls.__torch_dispatch__ is Tensor.__torch_dispatch__:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    if layout is not None and not isinstance(layout, _layout):
        raise TypeError(
            "_make_wrapper_subclass(): argument 'layout' must be torch.layout, not "
            f"{type(layout).__name__}"
        )
    if device is not None and _device(device).type not in ("cpu", "meta"):
        raise NotImplementedError(f"_make_wrapper_subclass: device={device!r} is not supported")
    if strides is not None and len(size) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    if layout not in (None, strided):
        raise NotImplementedError(f"_make_wrapper_subclass: layout={layout} is not supported")
    if pin_memory:
        raise RuntimeError("pinned memory needs an accelerator, and there is none")
    seen = calls.intercept(None)  # no call of the program's
    try:
        with without_modes():
            empty = partial(functions.SPACES["torch"]["empty"], dtype=dtype, device=device)
            if strides is None:
                made = empty([int(n) for n in size])
                if memory_format is not None and memory_format is not contiguous_format:
                    made = made.contiguous(memory_format=memory_format)
            else:
                place = [int(n) for n in size], [int(n) for n in strides]
                made = empty(0)
                made.resize_(_extent(*place, int(storage_offset or 0)))
                made.as_strided_(*place, int(storage_offset or 0))
            made.zero_()
            _C["_set_version"](made, 0)
    finally:
        calls.intercept(seen)
    out: Any = object.__new__(cls)
    out._h, made._h = made._h, 0
    if answers(cls):
        host_tensor(out, True)
    return out._mark(True) if requires_grad else calls.remember(out)


# ------------------------------------------------------------------ arguments of questions

_FORMATS: Final = (contiguous_format, preserve_format, channels_last, channels_last_3d)


# ------------------------------------------------------------------ choice of the overload

Called = tuple[str, str, list[Any], dict[str, Any]]
"""Name, overload, args and kwargs."""


_REDUCTIONS: Final = {"none": 0, "mean": 1, "sum": 2}


class _Misfit(Exception):
    """A value that an argument does not take."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) and not isinstance(value, Enum)


def _convert(argument: Argument, value: Any, of_row: bool = True) -> Any:
    """Converts a value to an argument's type; C has no None for a number, nor a number for a list.

    Raises: _Misfit: the value does not fit.
    """
    kind, optional = argument.type, False
    if kind.kind_ == "OptionalType":
        kind, optional = kind.getElementType(), True
    if value is MISSING or value is None:
        if optional:
            return None
        if argument.has_default_value() and (
            of_row or value is MISSING or kind.name in ("number", "Tensor")
        ):
            return argument.default_value
        raise _Misfit
    if isinstance(value, Enum) and argument.name not in _ENUMERATIONS.get(kind.name, ()):
        raise _Misfit
    if kind.kind_ == "ListType":
        return _convert_list(kind, value, of_row)
    return _convert_one(kind.name, value)


_ENUMERATIONS: Final = {
    "int": ("reduction", "normalization"),
    "SymInt": ("reduction", "normalization"),
    "ScalarType": ("dtype", "self_dtype", "input_dtype"),
    "MemoryFormat": ("memory_format",),
}
"""Arguments that are members of an enumeration in C, by type."""


def _convert_list(kind: Any, value: Any, of_row: bool) -> Any:
    inner = kind.element
    of = inner.getElementType().name if inner.kind_ == "OptionalType" else inner.name
    if not isinstance(value, (list, tuple)):
        if of in ("int", "SymInt") and type(value) is int and kind.size is not None and of_row:
            return [value] * kind.size
        raise _Misfit
    if kind.size is not None and kind.size > 1 and len(value) != kind.size:
        if len(value) > 1:
            raise _Misfit
        value = list(value) * kind.size
    if inner.kind_ == "OptionalType":
        return [None if each is None else _convert_one(of, each) for each in value]
    return [_convert_one(of, each) for each in value]


def _convert_one(name: str, value: Any) -> Any:
    if name == "Tensor":
        if isinstance(value, Tensor) or _is_number(value):
            return value
    elif name in ("number", "complex"):
        if _is_number(value):
            return value
    elif name in ("int", "SymInt"):
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, str) and value in _REDUCTIONS:
            return _REDUCTIONS[value]
    elif name == "float":
        if isinstance(value, (int, float)) and not isinstance(value, (bool, Enum)):
            return float(value)
    elif name == "bool":
        if isinstance(value, bool):
            return value
    elif name == "str":
        if isinstance(value, str):
            return value
    elif name == "ScalarType":
        if isinstance(value, Enum):
            return BY_CODE[value] if value < len(BY_CODE) else None
        if type(value).__name__ == "dtype":
            return value
    elif name == "MemoryFormat":
        if isinstance(value, Enum):
            return None if value == 1 else _FORMATS[value]
        if isinstance(value, str):
            return next(f for f in _FORMATS if f.name.endswith(value.rpartition(".")[2]))
    elif name in ("Device", "Layout"):
        return None if name == "Layout" else value
    elif name == "Generator":
        return None
    raise _Misfit


def _bind(
    schema: FunctionSchema,
    named: dict[str, Any] | None,
    given: Sequence[Any],
    absent: dict[str, str],
) -> Any:
    """Binds values to a schema's arguments: in order, or by a row's names where it has them.

    Raises: _Misfit: they do not fit.
    """
    rest, values = dict(named or {}), []
    ordered = list(given)
    for at, argument in enumerate(schema.arguments):
        if named is None:
            values.append(_convert(argument, ordered.pop(0) if ordered else MISSING, False))
            continue
        name = next((n for n in _ALSO_CALLED.get(argument.name, ()) if n in rest), argument.name)
        if name not in rest and at == 0 and rest and argument.type.name == "Tensor":
            name = next(iter(rest))
        values.append(_convert(argument, rest.pop(name, MISSING)))
    left = ordered
    if named is not None:
        left = [v for k, v in rest.items() if k not in _OUTSIDE and not _is_text(v, absent.get(k))]
    if not all(each is MISSING or each is None for each in left):
        raise _Misfit
    return values


def _is_text(value: Any, text: str | None) -> bool:
    """Whether a schema writes a number, a text, True or False like that."""
    if text is None or not isinstance(value, (bool, int, float, str)):
        return False
    return text.strip("'\"") in (str(value), f"{value:g}" if isinstance(value, float) else "")


_SIDES: Final = frozenset(
    f"{kind}_pool{nd}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for nd in (2, 3)
)
"""Functions of C's that have the number of dimensions behind the input."""
_DOORS: Final = {"prelu_kernel": "_prelu_kernel"}
"""Ops that C calls by another name."""
_ALSO_CALLED: Final = {
    "self": ("input", "self"),
    "p": ("p", "probability"),
    "train": ("training", "train"),
    "size": ("sizes", "size"),
    "dim": ("dims", "dim"),
    "split_size": ("split_size_or_sections", "split_size"),
    "indices": ("indices", "input"),
    "weight": ("weight",),
}
"""Names of an argument in rows."""
_OUTSIDE: Final = {
    "requires_grad",
    "return_indices",
    "_stacklevel",
    "inplace",
    "implicit",
    "pin_memory",
}


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, Tensor) or isinstance(default, Tensor):
        return False
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return False
    return bool(type(value) is type(default) and value == default) or (
        _is_number(value) and _is_number(default) and value == default
    )


def _drop_defaults(
    schema: FunctionSchema, values: Sequence[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Drops trailing and keyword arguments that equal the schema's defaults, as PyTorch does."""
    args, kwargs, last = [], {}, 0
    for argument, value in zip(schema.arguments, values, strict=True):
        absent = argument.has_default_value() and _same(value, argument.default_value)
        if argument.kwarg_only:
            if not absent:
                kwargs[argument.name] = value
            continue
        args.append(value)
        if not absent:
            last = len(args)
    return args[:last], kwargs


_BY_VALUE: Final = {"bernoulli": (1, "float"), "masked_fill": (2, "Scalar")}
"""The index of an op's argument that is a tensor or a number, and the overload that takes a
number.
"""


def _order(name: str, values: Sequence[Any]) -> list[str]:
    """The overloads of an op, the most likely first."""
    have = native_lines()[name]
    base = name.removesuffix("_")
    first = []
    if base in _BY_VALUE and len(values) > _BY_VALUE[base][0]:
        place, of_number = _BY_VALUE[base]
        first = ["Tensor" if isinstance(values[place], Tensor) else of_number]
    elif base in ops._OVERLOADS:
        plain, other, by_dim = ops._OVERLOADS[base]
        second = values[1] if len(values) > 1 else None
        absent = second is None or second is MISSING
        is_plain = absent if by_dim else not isinstance(second, Tensor)
        first = [plain, other] if is_plain else [other, plain]
    elif base == "pow":
        first = [ops._power(values).partition(".")[2]]
    return [n for n in dict.fromkeys((*first, "default", *have)) if n in have]


def fit_overload(
    name: str,
    named: dict[str, Any] | None,
    values: Sequence[Any],
    out: Any = None,
    absent: dict[str, str] | None = None,
    several: bool = False,
) -> Called | None:
    """The overload of an op of PyTorch that takes these values, and has several results if
    wanted.
    """
    if name not in native_lines():
        return None
    for overload in _order(name, values):
        is_out = overload == "out" or overload.endswith("_out")
        if is_out != (out is not None):
            continue
        schema = ops.schema_of(name, overload)
        if several and len(schema.returns) == 1 and schema.returns[0].type.kind_ != "ListType":
            continue
        try:
            bound = _bind(
                schema, {**named, "out": out} if named and is_out else named, values, absent or {}
            )
        except _Misfit:
            continue
        return (name, overload, *_drop_defaults(schema, bound))
    return None


# ------------------------------------------------------------------ ops that need more than that

Composed = Callable[[], Any]
"""Makes an answer of calls of other ops."""


def _softmax_rule(name: str) -> Callable[[list[Any]], Called | None]:
    def function(values: list[Any]) -> Called | None:
        x, dim = values[:2]
        dim, dtype = int(dim or 0), values[-1] if len(values) > 2 else None
        if isinstance(dtype, Enum):
            dtype = BY_CODE[dtype] if dtype < len(BY_CODE) else None
        if dtype is not None and type(dtype).__name__ == "dtype":
            x = x.to(dtype)
        return f"_{name}", "default", [x, dim, False], {}

    return function


def _steps(index: Sequence[int], x: Any) -> Iterator[tuple[Any, ...]]:
    """A subscript as a sequence of ops, each with its arguments after the first."""
    width, items, at = {NONE: 1, ELLIPSIS: 1, SLICE: 4}, [], 0
    while at < len(index):
        n = width.get(index[at], 2)
        items.append(index[at : at + n])
        at += n
    used, dim = sum(kind[0] not in (NONE, ELLIPSIS) for kind in items), 0
    lists: list[Any] = []
    for kind, *item in items:
        if kind == INT:
            yield ops.aten.select.int, dim, item[0]
            continue
        if kind == NONE:
            yield ops.aten.unsqueeze.default, dim
        elif kind == ELLIPSIS:
            dim += x.dim() - used - 1
        elif kind == SLICE:
            start, stop, step = (None if each == _ABSENT else each for each in item)
            if (start, stop, step) != (None, None, None):
                start, step = start or 0, 1 if step is None else step
                yield ops.aten.slice.Tensor, dim, start, _END if stop is None else stop, step
        else:
            lists += [None] * (dim - len(lists))
            lists.append(tensor_of(item[0]))
        dim += 1
    if lists:
        yield ops.aten.index.Tensor, lists


_ABSENT, _END = -(1 << 63), (1 << 63) - 1


def _subscript_ops(values: list[Any]) -> Composed | None:
    x, index = values
    if not isinstance(index, Index):
        return None

    def run() -> Any:
        found = x
        for op, *args in _steps(index.words, x):
            found = op(found, *args)
        return ops.aten.alias.default(x) if found is x else found

    return run


def _narrow_call(values: list[Any]) -> Called:
    x, dim, start, length = values
    return "slice", "Tensor", [x, dim, int(start), int(start) + length], {}


def _linear(values: list[Any]) -> Composed:
    x, weight, bias = values

    def run() -> Any:
        aten = ops.aten
        turned = aten.t.default(weight)
        if x.dim() == 2 and bias is not None:
            return aten.addmm.default(bias, x, turned)
        flat = x if x.dim() == 2 else aten.view.default(x, [-1, x.shape[-1]])
        if x.dim() == 1:
            flat = aten.unsqueeze.default(x, 0)
        y = (
            aten.mm.default(flat, turned)
            if bias is None
            else aten.addmm.default(bias, flat, turned)
        )
        return y if x.dim() == 2 else aten.view.default(y, [*x.shape[:-1], weight.shape[0]])

    return run


def _matmul(values: list[Any]) -> Composed | Called | None:
    a, b = values
    ranks = a.dim(), b.dim()
    if max(ranks) <= 2:
        name = {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get(ranks)
        if name:
            return name, "default", [a, b], {}
    if ranks == (3, 3) and a.shape[0] == b.shape[0]:
        return "bmm", "default", [a, b], {}
    return None


def _as_strided_call(name: str, values: list[Any]) -> Called:
    *rest, offset = values
    own = not isinstance(offset, int) or offset < 0  # the tensor's own offset
    return name, "default", rest if own else values, {}


def _sum_to_size_ops(values: list[Any]) -> Composed:
    x, size = values

    def run() -> Any:
        lead = x.dim() - len(size)
        dims = [i for i in range(x.dim()) if i < lead or (size[i - lead] == 1 and x.shape[i] != 1)]
        y = ops.aten.sum.dim_IntList(x, dims, True) if dims else x
        return ops.aten.view.default(y, list(size)) if lead else y

    return run


def _copy_call(values: list[Any]) -> Called:
    return "copy_", "default", values[:2], {}


def _cast(values: list[Any]) -> Called | None:
    x, kinds = values[0], [v for v in values[1:] if type(v).__name__ == "dtype"]
    kinds += [BY_CODE[v] for v in values[1:2] if isinstance(v, Enum) and v < len(BY_CODE)]
    return ("_to_copy", "default", [x], {"dtype": kinds[0]}) if kinds else None


def _cast_call(kind: Any, values: list[Any]) -> Called:
    return "_to_copy", "default", [values[0]], {"dtype": kind}


def _convolution_call(turned: bool, nd: int, values: list[Any]) -> Called | None:
    x, weight, bias, stride, padding, *rest = values
    groups, dilation, more = (rest[1], rest[2], rest[0]) if turned else (rest[1], rest[0], [0])
    lists = [stride, padding, dilation, more]
    if x.dim() != nd + 2 or isinstance(padding, str):
        return None
    lists = [[v] if isinstance(v, int) else list(v) for v in lists]
    stride, padding, dilation, more = (v * (nd if len(v) == 1 else 1) for v in lists)
    args = [x, weight, bias, stride, padding, dilation, turned, more, groups]
    return "convolution", "default", args, {}


def _embedding_call(values: list[Any]) -> Called | None:
    """Takes the arguments of torch's function or of nn.functional's, which has the indices
    first.
    """
    if len(values) == 5:
        return fit_overload("embedding", None, values)
    indices, weight, padding, max_norm, _, by_frequency, sparse = values
    if isinstance(max_norm, float):
        return None  # max_norm also writes to the weight
    padding = padding % weight.shape[0] if isinstance(padding, int) else MISSING
    return fit_overload("embedding", None, [weight, indices, padding, by_frequency, sparse])


def _pooling_call(name: str, values: list[Any]) -> Called | None:
    names = "self kernel_size stride padding dilation ceil_mode".split()
    return fit_overload(name, dict(zip(names, values, strict=False)), values)


def _dropout_ops(values: list[Any]) -> Composed | None:
    """An op draws the noise, so that a recorder of ops draws new noise each time."""
    x, p, training, *kind = values
    if kind[:1] not in ([], [0]) or not training or not 0 < p < 1 or not x.numel():
        return None

    def run() -> Any:
        aten = ops.aten
        noise = aten.bernoulli_.float(aten.empty_like.default(x), 1 - p)
        return aten.mul.Tensor(x, aten.div_.Scalar(noise, 1 - p))

    return run


def _chunk_call(values: list[Any]) -> Called | None:
    x, chunks, *rest = values
    dim = rest[0] if rest and rest[0] is not MISSING else 0
    if chunks <= 0 or not x.dim() or not x.shape[dim]:
        return None
    size = -(-x.shape[dim] // chunks)
    return "split", "Tensor", [x, size, dim] if dim else [x, size], {}


def _layer_norm_call(values: list[Any]) -> Called | None:
    x, sizes, weight, bias, eps, *_ = values
    given = [x, sizes, weight, bias, 1e-5 if eps is MISSING else eps]
    return fit_overload("native_layer_norm", None, given)


def _group_norm_call(values: list[Any]) -> Called | None:
    x, groups, weight, bias, eps, *_ = values
    n, channels = x.shape[:2]
    places = x.numel() // max(n * channels, 1)
    given = [x, weight, bias, n, channels, places, groups, 1e-5 if eps is MISSING else eps]
    return fit_overload("native_group_norm", None, given)


def _nll_loss(values: list[Any]) -> Called | None:
    """Takes the arguments of C's function or of the row, which also has PyTorch's older ones."""
    x, target, weight, *rest = values
    if len(rest) == 4:
        if isinstance(rest[0], bool) or isinstance(rest[2], bool):
            return None
        rest = [rest[1], rest[3]]
    name = {1: "nll_loss_forward", 2: "nll_loss_forward", 4: "nll_loss2d_forward"}.get(x.dim())
    if name is None:
        return None
    ignored = -100 if rest[0] is MISSING else rest[0]
    reduction = "mean" if rest[1] is MISSING else rest[1]
    return fit_overload(name, None, [x, target, weight, reduction, ignored])


def _softmax_gradient(name: str, values: list[Any]) -> Called:
    return f"{name}_backward_data", "default", [*values, values[1].dtype], {}


def _second(name: str, order: str, values: list[Any]) -> Called:
    """A gradient that is an op of its own: g, x and parameters in the order that PyTorch has."""
    g, x, params, _ = values
    known = {"g": g, "x": x, "F": False}
    args = [known[each] if each in known else params[int(each)] for each in order.split()]
    return name, "default", args, {}


_SPECIAL: Final[dict[str, Callable[[list[Any]], Called | Composed | None]]] = {
    "softmax": _softmax_rule("softmax"),
    "log_softmax": _softmax_rule("log_softmax"),
    "_getitem": _subscript_ops,
    "__getitem__": _subscript_ops,
    "dropout": _dropout_ops,
    "embedding": _embedding_call,
    "nll_loss": _nll_loss,
    "max_pool2d": functools.partial(_pooling_call, "max_pool2d_with_indices"),
    "max_pool3d": functools.partial(_pooling_call, "max_pool3d_with_indices"),
    "chunk": _chunk_call,
    "layer_norm": _layer_norm_call,
    "group_norm": _group_norm_call,
    "narrow": _narrow_call,
    "linear": _linear,
    "matmul": _matmul,
    "sum_to_size": _sum_to_size_ops,
    "copy_": _copy_call,
    "unique_consecutive": lambda v: None,  # the number of results depends on the arguments
    "as_strided": functools.partial(_as_strided_call, "as_strided"),
    "as_strided_scatter": functools.partial(_as_strided_call, "as_strided_scatter"),
    **{name: functools.partial(_cast_call, kind) for name, kind in CASTS.items()},
    "cdouble": functools.partial(_cast_call, complex128),
    "cfloat": functools.partial(_cast_call, complex64),
    "_to_copy": _cast,
    "to": _cast,
    "view_as": lambda v: ("view", "default", [v[0], list(v[1].shape)], {}),
    "expand_as": lambda v: ("expand", "default", [v[0], list(v[1].shape)], {}),
    "reshape": lambda v: ("view", "default", [v[0], list(v[1])], {}),
    "contiguous": lambda v: ("clone", "default", [v[0]], {"memory_format": contiguous_format}),
    "square": lambda v: ("pow", "Tensor_Scalar", [v[0], 2], {}),
    **{
        f"{node}BackwardBackward0": functools.partial(_second, name, order)
        for node, name, order in (
            ("Threshold", "threshold_backward", "g x 0"),
            ("LeakyRelu", "leaky_relu_backward", "g x 0 F"),
            ("Hardtanh", "hardtanh_backward", "g x 0 1"),
            ("Hardshrink", "hardshrink_backward", "g x 0"),
            ("Softshrink", "softshrink_backward", "g x 0"),
            ("Tanh", "tanh_backward", "g x"),
            ("Sigmoid", "sigmoid_backward", "g x"),
            ("Hardswish", "hardswish_backward", "g x"),
            ("Elu", "elu_backward", "g 0 1 2 F x"),
            ("Softplus", "softplus_backward", "g x 0 1"),
            ("LogSigmoid", "log_sigmoid_backward", "g x x"),
        )
    },
    **{
        f"{node}BackwardDataBackward0": functools.partial(_softmax_gradient, name)
        for node, name in (("Softmax", "_softmax"), ("LogSoftmax", "_log_softmax"))
    },
    **{
        f"conv{'_transpose' if turned else ''}{nd}d": functools.partial(
            _convolution_call, turned, nd
        )
        for turned in (False, True)
        for nd in (1, 2, 3)
    },
    "GeluBackwardBackward0": lambda v: (
        "gelu_backward",
        "default",
        v[:2],
        {"approximate": "tanh"} if v[3] == "gelu_tanh" else {},
    ),
    "t": lambda v: (
        ("t", "default", v, {})
        if v[0].dim() <= 2
        else ("transpose", "int", [v[0], v[0].dim() - 2, v[0].dim() - 1], {})
    ),
    "item": lambda v: ("_local_scalar_dense", "default", [v[0]], {}),
    "prod": lambda v: None if v[1] is MISSING and len(v) == 4 else fit_overload("prod", None, v),
    "numpy_T": lambda v: (
        "permute",
        "default",
        [v[0], list(range(v[0].dim() - 1, -1, -1))],
        {},
    ),
}
"""The op that PyTorch's dispatcher sees, by the name of the op here."""
_ONLY_AT_LAST: Final = {
    "_getitem",
    "__getitem__",
    "narrow",
    "linear",
    "matmul",
    "sum_to_size",
    "to",
    "view_as",
    "expand_as",
    "reshape",
    "contiguous",
    "square",
}
"""Composite ops: asked only where they are one loop here."""


@functools.cache
def _row(row: int) -> tuple[str, tuple[str, ...], dict[str, str]] | None:
    """The PyTorch name of a row's op, its arguments' names, and their defaults."""
    for op in functions.TABLE:
        if op.row <= row < op.row + len(op.schemas):
            if "masked" in op.words:
                return None
            if op.words <= {"internal", "windows", "silent"} and op.name not in _SPECIAL:
                return None
            schema = op.schemas[row - op.row]
            inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
            parts = [part.partition("=") for part in inside.split(", ") if part != "*"]
            names = tuple(part.split(" ")[-1] for part, _, _ in parts)
            absent = {part.split(" ")[-1]: text for part, _, text in parts if text}
            return ops.name_in_aten(op), names, absent
    return None


@functools.cache
def _is_composite(name: str) -> bool:
    """Whether autograd in PyTorch sees the op's parts instead of the op, in all its forms."""
    forms = native_lines().get(name)
    if forms is None:
        return True
    return all(
        "composite" in words for form, (words, _) in forms.items() if not form.endswith("out")
    )


_SILENT: Final = {
    "requires_grad_",
    "retain_grad",
    "is_complex",
    "is_floating_point",
    "size",
    "stride",
    "numel",
    "dim",
    "type",
    "data",
    "grad",
    "is_contiguous",
    "is_signed",
    "is_conj",
    "is_neg",
    "is_inference",
    "storage_offset",
    "resolve_conj",
    "resolve_neg",
    "_make_dual",
    "_unpack_dual",
    "_fw_primal",
    "detach_",
    "requires_grad",
    "retains_grad",
    "is_leaf",
}


def _requested_call(
    row: int, name: str, how: int, words: Sequence[int]
) -> Called | Composed | None:
    """The call that the engine's question describes; None: the question is not passed on."""
    named: dict[str, Any] | None = None
    absent: dict[str, str] = {}
    if row >= 0:
        found = _row(row)
        if found is None:
            return None
        name, names, absent = found
    base = ops._COMES_TO.get(name, "").partition(".")[0] or name
    write = "_" if how & asked.INPLACE else ""
    if name in _SILENT:
        return None
    special = _SPECIAL.get(name) if not write else None
    if not how & asked.AT_LAST:
        if name in _ONLY_AT_LAST:
            return None
        if (
            special is None
            and _is_composite(name + write)
            and (name not in ops._COMES_TO or _is_composite(base + write))
        ):
            return None
    values, out = values_of(words), None
    if row >= 0:
        if how & asked.OUT:
            out = values.pop()
        named = dict(zip(names, values, strict=False))
    elif name in _SIDES:
        del values[1]
    elif values and asked.parameters_last(words):
        values[-1:] = values[-1] or []  # the parameters of an element-wise op
    if any(each is UNKNOWN for each in values):
        return None
    name, base = _DOORS.get(name, name), _DOORS.get(name, base)
    if special is not None:
        return special(values)
    several = not _gives_one(words)
    also = ops.name_in_aten(name) if row < 0 else base
    for called in dict.fromkeys((name + write, base + write, also + write)):
        fit = (
            fit_overload(called, named, values, out, absent, several)
            if ops.is_callable(called)
            else None
        )
        if fit is not None:
            if row < 0 and name == "ones_like":  # the gradient that a backward begins with
                fit[3].setdefault("memory_format", preserve_format)
                return _complete_factory_call(fit)
            if fit[0] == "index_put_":
                return _convert_index_put_value(fit)
            return _complete_factory_call(fit) if row >= 0 and out is None else fit
    return None


def _convert_index_put_value(called: Called) -> Called:
    """A number that a subscript puts into a tensor has the tensor's dtype."""
    into, _, value = called[2][:3]
    if not isinstance(value, Tensor):
        make = partial(functions.SPACES["torch"]["scalar_tensor"], dtype=into.dtype)
        called[2][2] = unseen(make, value)
    elif not value.dim() and value.dtype is not into.dtype:
        called[2][2] = unseen(lambda each: each.to(into.dtype), value)
    return called


def _complete_factory_call(called: Called) -> Called:
    """Completes the call of a function that makes tensors: PyTorch's Python functions pass the
    device, where no tensor does, and that the memory is not pinned.
    """
    name, overload, args, kwargs = called
    arguments = ops.schema_of(name, overload).arguments
    if not any(each.name == "pin_memory" for each in arguments):
        return called
    where = {"device": kwargs.get("device")}
    if where["device"] is not None:
        where["device"] = _device(where["device"])
    elif arguments[0].type.name != "Tensor":
        where["device"] = _device("meta" if modes.get() & modes.MADE_META else "cpu")
    kwargs = {"pin_memory": False, **kwargs, **where}
    names = [each.name for each in arguments if kwargs.get(each.name) is not None]
    return name, overload, args, {each: kwargs[each] for each in names}


# ------------------------------------------------------------------ asking


def tensors_in(args: Iterable[Any]) -> list[Any]:
    """The tensors among arguments or results, also in lists."""
    found = []
    for each in args:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (list, tuple)):
            found += tensors_in(each)
    return found


def _overloaded_args(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """One tensor of each class that handles ops, subclasses before their bases."""
    found: list[Any] = []
    for each in tensors_in((*args, *kwargs.values())):
        kind = type(each)
        if not answers(kind) or any(type(other) is kind for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, each)
    return found


def dispatch_by_rule(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], rules: dict[Any, Callable[..., Any]]
) -> Any:
    """Like `dispatch_call`, with rules by class that precede the handlers of classes."""
    if not (_here.modes or _overloaded_args(args, kwargs)):
        return NotImplemented
    return dispatch_call(func, args, kwargs, rules)


def _call_handler(each: Any, kind: type, rules: Any, call: Sequence[Any]) -> Any:
    rule = (rules or {}).get(kind)
    if rule is not None:
        return rule(each, *call)
    find = getattr if each is kind else overriding.method_of
    return find(each, "__torch_dispatch__")(*call)


def dispatch_call(
    func: Any, args: Sequence[Any], kwargs: dict[str, Any], rules: dict[Any, Any] | None = None
) -> Any:
    """The answer of a mode or a tensor's class to a call; NotImplemented if there is none to ask.

    Raises: TypeError: all that were asked gave NotImplemented.
    """
    tensors = [] if _here.disabled else _overloaded_args(args, kwargs)
    types = tuple(type(each) for each in tensors)
    stack = [] if _here.disabled else _here.modes
    if stack:
        mode = stack.pop()
        _ask(stack)
        try:
            found = _call_handler(mode, type(mode), rules, (func, types, tuple(args), kwargs))
        finally:
            stack.append(mode)
            modes.switch(_MODE, True)
        if found is not NotImplemented:
            return found
        stands = [f"mode object {mode!r}"]
    else:
        stands = []
    for each in tensors:
        kind = type(each)
        found = _call_handler(kind, kind, rules, (func, types, tuple(args), kwargs))
        if found is not NotImplemented:
            return found
        stands.append(f"tensor subclass {type(each)!r}")
    if not stands:
        return _run_kernel(func, args, kwargs) if kernels else NotImplemented
    lines = "\n\n".join(f"  - {each}" for each in stands)
    raise TypeError(
        f"Multiple dispatch failed for '{_op_text(func)}'; all __torch_dispatch__ handlers "
        f"returned NotImplemented:\n\n{lines}\n\nFor more information, try re-running with "
        "TORCH_LOGS=not_implemented"
    )


def _op_text(func: Any) -> str:
    return f"torch.ops.{func}"


def _wrong(value: Any, wanted: str) -> RuntimeError:
    if wanted == "at::Tensor" and value is not None:
        return RuntimeError(f"Unable to cast {value!s:.200} to Tensor")
    if wanted == "std::tuple":
        return RuntimeError(
            f"Object of type {type(value).__name__!r} is not an instance of 'sequence'"
        )
    return RuntimeError(
        f"Unable to cast Python instance of type {type(value)} to C++ type '{wanted}'"
    )


def _handles(values: Sequence[Any]) -> list[int]:
    for each in values:
        if each is not None and not isinstance(each, Tensor):
            raise _wrong(each, "at::Tensor")
    return asked.handles_of(values)


def _answer(schema: FunctionSchema, result: Any) -> list[int]:
    """A result as words for the engine.

    Raises: RuntimeError: it does not fit the schema.
    """
    returns = schema.returns
    if not returns:
        return [asked.NOTHING]
    if len(returns) > 1:
        if not isinstance(result, (tuple, list)):
            raise _wrong(result, "std::tuple")
        if len(result) != len(returns):
            raise RuntimeError(
                f"{schema.name} was to return {len(returns)} values, and {len(result)} came"
            )
        result = [
            each for one in result for each in (one if isinstance(one, (list, tuple)) else [one])
        ]
        return [asked.TENSORS, len(result), *_handles(result)]
    kind = returns[0].type
    if kind.kind_ == "ListType":
        if not isinstance(result, (tuple, list)):
            raise _wrong(result, "std::vector<at::Tensor>")
        return [asked.TENSORS, len(result), *_handles(result)]
    if kind.name == "Tensor" or isinstance(result, Tensor):
        if result is not None and not isinstance(result, Tensor):
            raise _wrong(result, "at::Tensor")
        return [asked.TENSOR, *_handles([result])]
    if isinstance(result, (bool, int, float)):
        return asked.number_words(result)
    raise _wrong(result, "c10::Scalar")


def _encode_composed(found: Any) -> list[int]:
    if isinstance(found, (tuple, list)):
        return [asked.TENSORS, len(found), *_handles(found)]
    return [asked.TENSOR, *_handles([found])]


def _gradients(words: list[int]) -> list[int]:
    """Answers for the gradient function of the node that runs: a gradient for each input."""
    came, wanted, _ = values_of(words)
    called = backward_ops.backward_of_node(graph.running_node(), came, wanted)
    if called is None:
        return [asked.LATER]
    if callable(called):
        return _encode_composed([called()])
    name, args = called
    found = dispatch_call(ops.overload(name, "default"), args, {})
    if found is NotImplemented:
        return [asked.LATER]
    return _encode_composed(found if isinstance(found, (tuple, list)) else [found])


def dispatch_unrecorded(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The answer of a mode or a class to an op that the engine does not have, where nothing records
    it; NotImplemented if there is none to ask.
    """
    if _here.disabled or functions.SPACES["torch"]["is_grad_enabled"]():
        return NotImplemented
    return dispatch_by_rule(func, args, kwargs, {})


def _run(ident: int, words: list[int], _: int) -> list[int]:
    """Answers the engine."""
    if _here.disabled and not kernels:
        return [asked.LATER, 1]
    before, overriding.state.recorded = overriding.state.recorded, bool(words[2] & asked.RECORDED)
    try:
        return _answer_question(words)
    finally:
        overriding.state.recorded = before


def _answer_question(words: list[int]) -> list[int]:
    row, name, how = asked.header(words)
    if how & asked.GRADIENT:
        return _gradients(words)
    called = _requested_call(row, name, how, words)
    if called is None:
        return [asked.LATER]
    if callable(called):
        return _encode_composed(called())
    func = ops.overload(called[0], called[1])
    result = dispatch_call(func, called[2], called[3])
    if result is NotImplemented:  # there is no class to ask
        return [asked.LATER, 1]
    if len(func._schema.returns) > 1 and _gives_one(words):
        return _encode_first(result)
    if asked.wants_grad(words, _place_of_grad(words[0])) and isinstance(result, Tensor):
        result._mark(True)
    return _answer(func._schema, result)


def _encode_first(result: Any) -> list[int]:
    """Answers with several results where the op here returns one: its node keeps the others."""
    if isinstance(result, (tuple, list)) and all(isinstance(each, Tensor) for each in result):
        return [asked.FIRST, len(result), *_handles(result)]
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    return [asked.TENSOR, *_handles([first])]


def _gives_one(words: Sequence[int]) -> bool:
    """Whether the op returns one result here."""
    return not asked.has_places(words) if words[0] < 0 else _row_gives_one(words[0])


@functools.cache
def _row_gives_one(row: int) -> bool:
    op = next(op for op in functions.TABLE if op.row <= row < op.row + len(op.schemas))
    return not op.schemas[row - op.row].rpartition("->")[2].strip().startswith("(Tensor")


@functools.cache
def _place_of_grad(row: int) -> int:
    """The index of a row's argument `requires_grad`, or -1."""
    found = _row(row) if row >= 0 else None
    return found[1].index("requires_grad") if found and "requires_grad" in found[1] else -1


callbacks.runners[asked.ASKED] = _run
ops.dispatch_unrecorded = dispatch_unrecorded
ops.lift_fresh = _lift_fresh
derivatives.unseen = unseen
