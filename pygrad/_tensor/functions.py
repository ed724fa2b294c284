"""Functions of the torch namespace that are about Python, not about numbers."""

from __future__ import annotations

import string
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._boundary.overriding import announced, overridable
from .._ground import dtypes
from .._ground import warnings as _warnings
from .._ground.dtypes import Size, dtype
from .._ground.package import submodule
from .._table import functions
from .._table.builtins import builtin
from .base import Tensor


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is the storage of a tensor."""
    from ..storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


@builtin
@overridable
def is_nonzero(input: Tensor) -> bool:
    """Whether a one-element tensor is not zero."""
    return bool(input)


@overridable
def _assert(condition: Any, message: str) -> None:
    """``assert condition, message`` as a call.

    Raises:
        AssertionError: the condition is false.
    """
    if not condition:
        raise AssertionError(message)


@builtin
@overridable
def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Refuses a one-element tensor that is zero.

    Raises:
        RuntimeError: it is, with `assert_msg` for its text.

    Example:
        >>> import pygrad
        >>> pygrad._assert_async(pygrad.tensor(True), "not so")
    """
    if not input.is_meta and not input:
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def typename(obj: Any) -> str:
    """The legacy type name of a tensor; the qualified name of a class or function, or of another
    object's type.
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    name: str = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None)
    return name if module in (None, "", "builtins") else f"{module}.{name}"


def set_default_dtype(d: dtype, /) -> None:
    """The floating type of new tensors of Python floats: float32 at the start."""
    functions.C["_set_default_dtype"](d)


@builtin
def get_num_threads() -> int:
    """1: the engine runs on the calling thread."""
    return 1


@builtin
def set_num_threads(num: int) -> None:
    """Accepts any positive number; the engine always has one thread."""
    if not isinstance(num, int) or num < 1:
        raise RuntimeError("set_num_threads expects a positive integer")


@builtin
def get_num_interop_threads() -> int:
    """1: ops run one after the other."""
    return 1


@builtin
def set_num_interop_threads(num: int) -> None:
    """Accepts any positive number; ops always run one after the other."""
    if not isinstance(num, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


_DEBUG_MODES = ("default", "warn", "error")
_debug_mode = 0


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered for queries: every algorithm here is deterministic."""
    set_deterministic_debug_mode((1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms are on: see `use_deterministic_algorithms`."""
    return _debug_mode > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was last given `warn_only`."""
    return _debug_mode == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`use_deterministic_algorithms` by 0 or "default", 1 or "warn", 2 or "error"."""
    global _debug_mode
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    _debug_mode = debug_mode


def get_deterministic_debug_mode() -> int:
    """The mode last given to `set_deterministic_debug_mode`, as a number."""
    return _debug_mode


@builtin
def set_flush_denormal(mode: bool) -> bool:
    """False: subnormal numbers are never flushed to zero here."""
    return False


_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered for `get_float32_matmul_precision`: float32 products are always computed in
    float32.
    """
    global _precision
    if precision in ("highest", "high", "medium"):
        _precision = precision
        return
    warnings.warn(
        f"{precision} is not one of 'highest', 'high', or 'medium'; the "
        "currentsetFloat32MatmulPrecision call has no effect.",
        stacklevel=2,
    )


def get_float32_matmul_precision() -> str:
    """The precision last given to `set_float32_matmul_precision`."""
    return _precision


def get_device_module(device: dtypes.device | str | None = None) -> Any:
    """The module about a kind of device, such as `pygrad.cuda`; by default `pygrad.cpu`.

    Raises:
        RuntimeError: a kind of device that has no module, or something else.

    Example:
        >>> import pygrad
        >>> pygrad.get_device_module("cpu").is_available()
        True
    """
    if device is not None and not isinstance(device, (str, dtypes.device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = "cpu" if device is None else dtypes.device(device).type
    try:
        return submodule(kind)
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None


_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **more: Any,
) -> Any:
    """Returns the function itself: there is no compiler, and a compiled function computes the same.

    A module is wrapped in another, as in PyTorch: the names of its state dict get the prefix
    ``_orig_mod.``, and `_orig_mod` is the module; with ``disable=True`` the module itself is
    returned. Works as a decorator, with or without arguments. Other arguments have no effect.

    Raises:
        RuntimeError: a mode that PyTorch does not have, or mode and options both.
        AssertionError: `model` cannot be called.

    Example:
        >>> import pygrad
        >>> @pygrad.compile(mode="max-autotune")
        ... def double(x):
        ...     return x * 2
        >>> double(pygrad.ones(1))
        tensor([2.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if model is None:
        return lambda each: compile(each, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    of_module = None if disable else getattr(type(model), "_as_compiled", None)
    return model if of_module is None else of_module(model)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to."""
    sizes = [[shape] if isinstance(shape, int) else list(shape) for shape in shapes]
    flat = [size for each in sizes for size in each]
    return Size(functions.C["_broadcast_shapes"](flat, [len(each) for each in sizes]))


_print_options: dict[str, Any] = {}
_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}
_print_options.update(_PROFILES["default"], sci_mode=None)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors print: digits, when to summarise, line width, scientific notation; see PyTorch's
    function.
    """
    if profile is not None:
        _print_options.update(_PROFILES[profile])
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            _print_options[name] = value
    _print_options["sci_mode"] = sci_mode
    o = _print_options
    sci = -1 if o["sci_mode"] is None else int(o["sci_mode"])
    functions.C["_printoptions"](
        o["precision"], float(o["threshold"]), o["edgeitems"], float(o["linewidth"]), sci
    )


def _subscripts(labels: Iterable[Any]) -> str:
    """The letters of an equation for a list of labels."""
    letters = string.ascii_uppercase + string.ascii_lowercase
    text = ""
    for label in labels:
        if label is not ... and not (label >= 0 and label < len(letters)):
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
        text += "..." if label is ... else letters[label]
    return text


def einsum(*args: Any) -> Tensor:
    """The sum of products that an equation describes, as ``einsum("ij,jk->ik", a, b)``.

    Without an equation each operand is followed by the list of its labels, numbers below 52 or
    ``...``; a last list, if present, has the labels of the result.

    Args:
        args: the equation and the operands, singly or in a list; or operands with their labels.

    Raises:
        ValueError: no operand, or a label that is out of range.
        RuntimeError: the equation does not fit the operands.

    Example:
        >>> import pygrad
        >>> a = pygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> pygrad.einsum("ij,j->i", a, pygrad.ones(2))
        tensor([3., 7.])
        >>> pygrad.einsum(a, [0, 1], [1, 0])
        tensor([[1., 3.],
                [2., 4.]])
    """
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], (list, tuple)):
        return _einsum(args[0], *args[1])  # the form in which overriding types see the call
    return _einsum(*args)


announced.add(einsum)


def _einsum(*args: Any) -> Tensor:
    if len(args) < 2 or args[1] == []:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        equation = ",".join(map(_subscripts, args[1::2]))
        if len(args) % 2:
            equation += "->" + _subscripts(args[-1])
        args = (equation, *args[: len(args) // 2 * 2 : 2])
    product: Tensor = functions.SPACES["torch"]["einsum"](*args)
    return product


_einsum.__qualname__ = "einsum"  # the name that overriding types receive
overridable(_einsum)


@overridable
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Converts indices into a flattened tensor of a shape to indices of each dimension.

    Args:
        indices: of an integer dtype.
        shape: an int or a sequence of ints, none of them negative.

    Returns:
        A tensor of the shape of `indices` for each dimension.

    Raises:
        TypeError: `shape` is no shape. ValueError: it is negative, or an index lies beyond it.

    Example:
        >>> import pygrad
        >>> pygrad.unravel_index(pygrad.tensor(5), (2, 3))
        (tensor(1), tensor(2))
    """
    if not isinstance(shape, (int, Sequence)) or isinstance(shape, bool):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {_type(shape)}")
    for each in shape if isinstance(shape, Sequence) else ():
        if not isinstance(each, int):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {_type(each)}"
            )
    found: tuple[Tensor, ...] = functions.SPACES["torch"]["unravel_index"](indices, shape)
    return found


def _type(value: Any) -> str:
    """The class of a value, under its name in PyTorch."""
    return "<class 'torch.Tensor'>" if isinstance(value, Tensor) else str(type(value))


@overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums products over dimensions of `a` and `b`: the last `dims` of a with the first of b, or
    the dimensions in a pair of lists.

    Args:
        a: the left operand.
        b: the right operand.
        dims: how many dimensions, or two lists of dimensions.
        out: where to put the result.

    Example:
        >>> import pygrad
        >>> pygrad.tensordot(pygrad.ones(2, 3), pygrad.ones(3, 4), 1).shape
        torch.Size([2, 4])
    """
    options = {} if out is None else {"out": out}
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        left, right = dims
        pair = [[each] if isinstance(each, int) else list(each) for each in (left, right)]
        return functions.C["_tensordot"](a, b, *pair, **options)  # type: ignore[no-any-return]
    return functions.SPACES["torch"]["tensordot"](a, b, dims, **options)  # type: ignore[no-any-return]


@overridable
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor`, or `linalg.lu_factor_ex` if `get_infos`, by its older name.

    Args:
        A: (*, m, n).
        pivot: only True, as in PyTorch on the CPU.
        get_infos: return LU, pivots and info, with names; else the first two.
        out: where to put them.

    Raises:
        RuntimeError: fewer dimensions; no pivots.
        NotImplementedError: integers.
        TypeError: not as many places as results.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     pygrad.lu(pygrad.tensor([[4.0]]))
        (tensor([[4.]]), tensor([1], dtype=torch.int32))
    """
    found = functions.SPACES["torch"]["_lu_with_info"](A, pivot, not get_infos)
    results = found if get_infos else tuple(found[:2])
    if out is None:
        return results
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for place, result in zip(out, results, strict=True):
        place.resize_as_(result).copy_(result)
    return out


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that come once a process come every time; for tests.

    Example:
        >>> import pygrad
        >>> pygrad.set_warn_always(True)
        >>> pygrad.is_warn_always_enabled()
        True
        >>> pygrad.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _warnings.set_always(b)
    functions.C["_set_warn_always"](b)
