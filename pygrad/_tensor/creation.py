"""Tensors from Python and host data: `tensor`, `as_tensor`, `from_numpy`, `asarray`."""

from __future__ import annotations

import array
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

from .._boundary import calls, user_level
from .._boundary.arguments import name_of, refuse_foreign
from .._boundary.blocks import empty_for_host
from .._boundary.header import elements_at, write_at, write_double, write_float
from .._boundary.modes import MADE_META, switch
from .._boundary.modes import get as get_modes
from .._boundary.overriding import overridable_factory
from .._dispatch.handlers import lift_fresh, pushed
from .._ground.dtypes import (
    ALL,
    BY_NAME,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    device,
    dtype,
    float16,
    float32,
    float64,
    int64,
    switches_of_devices,
    uint8,
    uint64,
)
from .._ground.warnings import once
from .._table import functions
from .._table.builtins import builtin
from .base import Tensor, as_leaf
from .lent import find_exported_tensor, find_lent_tensor


def from_buffer(data: Any, shape: Sequence[int], kind: dtype) -> Tensor:
    """A tensor with a copy of the bytes of a C-contiguous buffer."""
    out, at = empty_for_host(shape, kind)
    write_at(at, memoryview(data).cast("B"))
    return out


# ------------------------------------------------------------------ nested Python data


def _is_sequence(data: Any) -> bool:
    """Whether it can be gone through by numbers, as a range or an ``array.array``."""
    kind = type(data)
    return (
        hasattr(kind, "__len__")
        and hasattr(kind, "__getitem__")
        and not isinstance(data, (str, bytes, dict))
    )


def _is_array(value: Any) -> bool:
    """Whether it stands for nested lists; a tensor within a list stands for one number."""
    if not hasattr(value, "__array__") or isinstance(value, Tensor):
        return False
    refuse_foreign(value)
    return True


def _shape_of(data: Any) -> list[int]:
    """The sizes of nested sequences, by their first elements."""
    shape: list[int] = []
    while _is_sequence(data) and not hasattr(data, "__array__"):
        shape.append(len(data))
        if not len(data):
            break
        try:
            data = data[0]
        except (TypeError, LookupError):
            name = type(data).__name__
            raise ValueError(f"could not determine the shape of object type '{name}'") from None
        if isinstance(data, str):
            raise ValueError("too many dimensions 'str'")
    if _is_array(data):
        shape.extend(data.shape)
    return shape


def _flatten(data: Any, shape: Sequence[int], level: int, out: list[Any]) -> None:
    """Appends the elements of anything that can be nested, and says what cannot."""
    if level == len(shape):
        if isinstance(data, Tensor) and data.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        out.append(data)
        return
    if not _is_sequence(data):
        raise TypeError("not a sequence")
    if not isinstance(data, (list, tuple)):
        data = list(data)  # of arrays and tensors rows, and at last numbers that know their dtype
    if len(data) != shape[level]:
        raise ValueError(
            f"expected sequence of length {shape[level]} at dim {level} (got {len(data)})"
        )
    if level == len(shape) - 1 and not any(isinstance(v, Tensor) for v in data):
        out.extend(data)
        return
    for item in data:
        _flatten(item, shape, level + 1, out)


def _collect_dtypes(data: Any, into: set[dtype]) -> None:
    """Adds the dtypes of all that is nested in `data`."""
    if isinstance(data, Tensor):
        into.add(data.dtype)
    elif isinstance(data, bool):
        into.add(bool_)
    elif hasattr(data, "dtype"):
        refuse_foreign(data)
        into.add(_numpy_dtype(data.dtype))
    elif isinstance(data, int):
        into.add(int64)
    elif isinstance(data, float):
        into.add(_default_dtype())
    elif isinstance(data, complex):
        into.update((_default_dtype(), complex32))  # of which promotion makes the complex type
    elif _is_sequence(data):
        samples = {type(item): item for item in data}.values()
        for item in data if any(map(_is_sequence, samples)) else samples:
            if item is data:
                raise TypeError("new(): self-referential lists are incompatible")
            _collect_dtypes(item, into)
    elif hasattr(data, "__index__"):
        into.add(int64)
    elif hasattr(data, "__float__"):
        into.add(_default_dtype())
    else:
        raise _cannot_infer(data)


def _infer(data: Any) -> dtype | None:
    """PyTorch's inference: the default float type, else int64, else bool; None of no elements."""
    kinds: set[dtype] = set()
    _collect_dtypes(data, kinds)
    best = kinds.pop() if kinds else None
    for other in kinds:
        best = calls.invoke(calls.ROWS["promote_types"], 0, (best, other), {})
    return best


def _cannot_infer(value: Any) -> Exception:
    if isinstance(value, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(value).__name__}'")
    return RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def _default_dtype() -> dtype:
    return calls.invoke(calls.ROWS["get_default_dtype"], 0, (), {})  # type: ignore[no-any-return]


def _as_number(value: Any, kind: dtype) -> Any:
    if isinstance(value, complex) and kind is bool_:
        return value != 0
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        name = type(value).__name__
        if kind.is_floating_point:
            raise TypeError(f"must be real number, not {name}")
        raise TypeError(f"'{name}' object cannot be interpreted as an integer")
    if kind.is_floating_point:
        return float(value)
    if kind is bool_:
        return bool(value)
    around = 1 << 8 * kind.itemsize
    if not kind.is_signed and -around < value < 0 and not isinstance(value, float):
        return value + (0 if kind is uint64 else around)  # as C converts it
    try:
        return int(value)
    except (OverflowError, ValueError):
        raise _overflow(kind) from None


def _overflow(kind: dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {kind.name} without overflow")


def _pack(flat: Sequence[Any], kind: dtype) -> array.array[Any]:
    code = "b" if kind is bool_ else kind._format
    try:
        return array.array(code, flat)
    except (TypeError, OverflowError):
        pass
    numbers = [_as_number(v, kind) for v in flat]
    try:
        return array.array(code, numbers)
    except OverflowError:
        pass
    if kind.is_floating_point:  # a float64 beyond float32's range is infinite there
        return array.array(
            code,
            [max(min(v, 3.4e38), -3.4e38) * 10 if abs(v) > 3.4028235e38 else v for v in numbers],
        )
    if kind is int64:
        raise ValueError("Overflow when unpacking long long")
    if kind is uint64:
        negative = any(number < 0 for number in numbers)
        words = "can't convert negative int to unsigned" if negative else "int too big to convert"
        raise OverflowError(words)
    raise _overflow(kind)


_LISTS, _NUMBERS = {list, tuple}, {float, int, bool}


def _plain(data: Any) -> tuple[list[int], Sequence[Any], set[type]] | None:
    """Sizes, elements and their types of regular lists of Python's own numbers, else None."""
    shape: list[int] = []
    flat: Sequence[Any] = [data]
    types = {type(data)}
    while types <= _LISTS:
        if shape:
            if len(lengths := set(map(len, flat))) > 1:
                return None
            shape += lengths
            flat = list(chain.from_iterable(flat))
        else:
            shape.append(len(data))
            flat = data
        types = set(map(type, flat))
        if not types:
            return None
    return (shape, flat, types) if types <= _NUMBERS else None


def _from_nested(data: Any, kind: dtype | None) -> Tensor:
    found = _plain(data)
    if found is not None:
        shape, flat, types = found
        if kind is None and float not in types:
            kind = int64 if int in types else bool_
    else:
        if isinstance(data, (str, bytes)):
            raise _cannot_infer(data)
        shape, flat = _shape_of(data), []
        if 0 not in shape:
            kind = kind or _infer(data)
            _flatten(data, shape, 0, flat)
            for item in {type(item): item for item in flat}.values():
                refuse_foreign(item)
    kind = kind or _default_dtype()
    if not kind._format:
        return _tensor_via_double(shape, flat, kind)
    out, at = empty_for_host(shape, kind)
    if flat:
        write_at(at, _pack(flat, kind).tobytes())
    return out


def _tensor_via_double(shape: Sequence[int], flat: Sequence[Any], kind: dtype) -> Tensor:
    """Makes a tensor of a half or complex dtype, for which the host has no arrays."""
    if not kind.is_complex:
        wide, at = empty_for_host(shape, float64)
        write_at(at, _pack(flat, float64).tobytes())
        return wide.to(kind)
    wide, at = empty_for_host(shape, complex128)
    numbers = map(_as_complex, flat)
    write_at(at, array.array("d", [part for z in numbers for part in (z.real, z.imag)]).tobytes())
    return wide.to(kind)


def _as_complex(value: Any) -> complex:
    try:
        return complex(value)
    except TypeError:
        name = type(value).__name__
        raise TypeError(f"must be real number, not {name}") from None


def _from_float(value: float, kind: dtype | None) -> Tensor:
    """A tensor of one float, the most frequent case, by the shortest way."""
    out, at = empty_for_host((), kind)
    if not out.dtype._format:
        return _tensor_via_double((), [value], out.dtype)
    if out.dtype is float64:
        write_double(at, value)
    else:
        write_float(at, value)
    return out


# ------------------------------------------------------------------ NumPy


_BY_CHAR = {
    "f": float32,
    "d": float64,
    "?": bool_,
    "B": uint8,
    "b": BY_NAME["int8"],
    "h": BY_NAME["int16"],
    "e": float16,
    "F": complex64,
    "D": complex128,
}
_BY_KIND = {
    f"{'i' if t.is_signed else 'u'}{t.itemsize}": t for t in ALL if t._format in list("hiqHIQ")
}


def _numpy_dtype(kind: Any) -> dtype:
    found = _BY_CHAR.get(kind.char) or _BY_KIND.get(f"{kind.kind}{kind.itemsize}")
    if found is not None:
        return found
    if kind.name == "bfloat16":  # of ml_dtypes
        return bfloat16
    raise TypeError(
        f"can't convert np.ndarray of type numpy.{kind.type.__name__}. The only supported types "
        "are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
        "uint32, uint16, uint8, and bool."
    )


def _warn_of_copy(what: str, remedy: str) -> None:
    """Says, once a process, that memory is not shared which PyTorch would share."""
    if once("copied memory"):
        warnings.warn(
            f"pygrad copies {what} into the engine's memory, where PyTorch shares it: later writes "
            f"on one side do not show on the other. {remedy} This warning is given once.",
            stacklevel=user_level(),
        )


def _warn_of_read_only(what: str, consequence: str) -> None:
    """PyTorch's warning, once a process for each of its two texts."""
    if once(f"read-only {what}"):
        warnings.warn(
            f"The given {what} is not writable, and PyTorch does not support non-writable tensors. "
            f"This means {consequence}. You may want to copy the {what.split()[-1]} to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will "
            "be suppressed for the rest of this program.",
            stacklevel=user_level(),
        )


@builtin
@overridable_factory
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor of an array's elements.

    An array that views a tensor's memory (from ``Tensor.numpy()``) gives a tensor that shares that
    memory again. Any other array is copied once into the engine's memory: unlike PyTorch, later
    writes to it do not show in the tensor, which the first call with a writable array says in a
    warning. ``array = pygrad.from_numpy(array).numpy()`` makes an array that shares.

    Args:
        ndarray: a ``numpy.ndarray`` of a floating, complex or integer type or bool; of
            ``ml_dtypes.bfloat16`` too, which is copied.

    Raises:
        ValueError: a stride of the array is negative, or its bytes are in another order.

    Example:
        >>> import numpy, pygrad
        >>> pygrad.from_numpy(numpy.array([1.5, 2.5]))
        tensor([1.5000, 2.5000], dtype=torch.float64)
    """
    import numpy as np

    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {name_of(type(ndarray))})")
    return _tensor_from_array(ndarray, shares=True)


def _tensor_from_array(ndarray: Any, shares: bool, read_only: bool = False) -> Tensor:
    """A tensor of an array's elements: over its memory if that is the engine's, else a copy, with
    the warnings that are due where PyTorch `shares` it.
    """
    import numpy as np

    kind = _numpy_dtype(ndarray.dtype)
    if ndarray.base is not None:
        shared = find_exported_tensor(ndarray, kind)
        if shared is not None:
            return shared
    if any(stride < 0 for stride in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if not ndarray.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    if shares and ndarray.flags.writeable:
        _warn_of_copy(
            "an array",
            "To share, let `array = pygrad.from_numpy(array).numpy()` be the array that is "
            "written to; for a copy, call `pygrad.tensor(array)`.",
        )
    elif shares and not read_only:
        _warn_of_read_only(
            "NumPy array", "writing to this tensor will result in undefined behavior"
        )
    if kind is bfloat16:
        ndarray = ndarray.view(np.uint16)  # the same bits, of which buffers can be made
    out, at = empty_for_host(ndarray.shape, kind)
    if ndarray.nbytes <= 4096:
        write_at(at, ndarray.tobytes())
    elif ndarray.flags.c_contiguous:
        write_at(at, ndarray.data.cast("B"))
    else:
        target = np.frombuffer(elements_at(at, ndarray.nbytes), dtype=ndarray.dtype).reshape(
            ndarray.shape
        )
        np.copyto(target, ndarray)
    return out


# ------------------------------------------------------------------ public constructors


@builtin
@overridable_factory
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`: a number, nested lists, an array or a tensor.

    Args:
        data: numbers, nested to any depth; every list of a level must have the same length.
        dtype: of the result; default float32 for floats, int64 for ints, bool for bools.
        device: the CPU, or meta for no elements.
        requires_grad: whether operations on the result are recorded.
        pin_memory: accepted, without effect.

    Raises:
        ValueError: ragged lists. TypeError: data that are not numbers.

    Example:
        >>> import pygrad
        >>> pygrad.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
    """
    return tensor_from_data(data, dtype, device, requires_grad, "torch.tensor")


def tensor_from_data(
    data: Any, dtype: Any, device: Any, requires_grad: bool, caller: str
) -> Tensor:
    """Makes a tensor for `tensor` and ``Tensor.new_tensor``; a warning names `caller`."""
    device = _resolve_device(device)
    kind = _as_dtype(dtype)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            f"{caller}(sourceTensor).",
            UserWarning,
            stacklevel=3,
        )
    if type(data) is float and (kind is None or kind is float32 or kind is float64):
        out = _from_float(data, kind)
    else:
        out = _tensor_from(data, kind, copy=True)
    out = _move_to(out, device)
    if pushed:
        out = lift_fresh(out)
    return as_leaf(out) if requires_grad else out


def _as_dtype(kind: Any) -> dtype | None:
    if kind is None or isinstance(kind, dtype):
        return kind
    if kind in (float, int, bool, complex):
        kinds: dict[Any, dtype] = {float: float64, int: int64, bool: bool_, complex: complex128}
        return kinds[kind]
    raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {type(kind).__name__}")


def _resolve_device(value: Any) -> device | None:
    """The named device, or the default one; None if new tensors are made there anyway. A device
    that does not exist raises the engine's error.
    """
    if value is not None and str(value) != "cpu":
        return functions.SPACES["torch"]["empty"](0, device=value).device  # type: ignore[no-any-return]
    if value is not None:
        return _CPU
    return _META if get_modes() & MADE_META else None


def _move_to(tensor: Tensor, where: device | None) -> Tensor:
    return tensor if where is None or tensor.device == where else tensor.to(where)


def data_as_tensor(data: Any, kind: dtype | None = None, shares: bool = False) -> Tensor:
    """`data` itself if it is a tensor of that dtype, else a tensor made of it.

    Args:
        shares: give the warnings that are due where PyTorch would share memory.
    """
    if isinstance(data, Tensor):
        return data if kind is None or kind is data.dtype else data.to(kind)
    return _tensor_from(data, kind, copy=False, shares=shares)


def _tensor_from(data: Any, kind: dtype | None, copy: bool, shares: bool = False) -> Tensor:
    if isinstance(data, Tensor):
        out = data.detach()
        wanted = kind or data.dtype
        return (out.clone() if wanted is data.dtype else out.to(wanted)) if copy else out
    if type(data).__module__ == "numpy" and hasattr(data, "dtype"):
        import numpy as np

        shares = shares and isinstance(data, np.ndarray)
        out = _tensor_from_array(
            np.asarray(data), shares and kind in (None, _numpy_dtype(data.dtype))
        )
        if copy and data.ndim:
            out = out.clone() if kind is None else out
        return out if kind is None or kind is out.dtype else out.to(kind)
    if not isinstance(data, (list, tuple, int, float, complex)):
        refuse_foreign(data)
    if not isinstance(data, (list, tuple, int, float, complex)) and hasattr(data, "untyped"):
        named: Any = kind or getattr(data, "dtype", int64)
        return data._elements_as(named)  # type: ignore[no-any-return]
    if not isinstance(data, (list, tuple, int, float, complex)) and hasattr(data, "__array__"):
        return _tensor_from(data.__array__(), kind, copy, shares)
    if isinstance(data, (list, tuple)):
        if data and type(data[0]).__name__ == "ndarray" and once("list of arrays"):
            warnings.warn(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please "
                "consider converting the list to a single numpy.ndarray with numpy.array() before "
                "converting to a tensor.",
                stacklevel=4,
            )
    return _from_nested(data, kind)


@builtin
@overridable_factory
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` itself if it is a tensor of that dtype, else a tensor made of it. An array is copied
    as by `from_numpy`, with its warning.
    """
    device = _resolve_device(device)
    return _move_to(data_as_tensor(data, _as_dtype(dtype), shares=True), device)


@builtin
@overridable_factory
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor, which shares memory with it where that is the engine's.

    Args:
        obj: a tensor, a DLPack capsule, an array, bytes or another buffer, which is read as
            elements of `dtype`, a number, or nested sequences of them.
        dtype: of the result.
        device: the CPU, or meta for no elements.
        copy: True for memory of its own; False to raise rather than convert; None for either.
        requires_grad: whether operations on the result are recorded; None: if those on a tensor
            `obj` are. A leaf `obj` that is not copied is switched itself.

    Raises:
        ValueError: `copy` is False for what has another dtype, or no memory.

    Example:
        >>> import pygrad
        >>> pygrad.asarray(bytes([1, 2]), dtype=pygrad.int8)
        tensor([1, 2], dtype=torch.int8)
    """
    kind = _as_dtype(dtype)
    found = _tensor_over_memory(obj, kind, copy)
    if copy is False:
        if found is None:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        if device is not None and str(device) != "cpu":
            raise ValueError(f"can't alias tensor from device 'cpu' to '{device}'.")
        if kind is not None and kind is not found.dtype:
            names = (
                each.type().rpartition(".")[2] for each in (found, found.new_empty(0).to(kind))
            )
            mine, wanted = (name.removesuffix("Tensor") for name in names)
            raise ValueError(f"can't alias tensor with dtype '{mine}' into dtype '{wanted}'.")
    out = as_tensor(obj if found is None else found, kind, device)
    if copy and out is found:
        out = out.clone()
    if requires_grad is None or requires_grad == out.requires_grad:
        return out
    return out.requires_grad_(requires_grad) if out.is_leaf else out.detach()


def _tensor_over_memory(obj: Any, kind: dtype | None, copy: bool | None) -> Tensor | None:
    """The argument of `asarray` as a tensor; None for a sequence or a number."""
    if isinstance(obj, Tensor):
        return obj
    refuse_foreign(obj)
    if type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if type(obj).__module__ == "numpy" and hasattr(obj, "dtype"):
        if type(obj).__name__ == "ndarray":
            same = kind is None or kind is _numpy_dtype(obj.dtype)
            return _tensor_from_array(obj, shares=same and not copy)
        if copy is False:
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
            )
        return _tensor_from(obj, None, copy=False)
    if isinstance(obj, (list, tuple, int, float, str)):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return _tensor_from_buffer(obj, kind or _default_dtype(), -1, 0, shares=not copy)


class _OfCapsule:
    """An object from which NumPy takes a DLPack capsule."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor from any object with ``__dlpack__`` on the CPU, or from its capsule: shared if it
    is pygrad's own memory, else copied, with the warning of `from_numpy`.

    Args:
        device: the CPU, or None.
        copy: True copies always, without a warning; False refuses to copy.

    Raises:
        RuntimeError: the capsule has been read before.
        NotImplementedError: `copy` is False, and memory is not pygrad's.
    """
    import numpy as np

    if device is not None:
        functions.SPACES["torch"]["empty"](0, device=device)  # which refuses what is not here
    if isinstance(ext_tensor, Tensor):
        found = ext_tensor.__class__.detach(ext_tensor)
        return found.clone() if copy else found
    if isinstance(ext_tensor, np.ndarray) and copy is None:
        return _tensor_from_array(ext_tensor, shares=True, read_only=True)
    if hasattr(ext_tensor, "__dlpack__"):
        array = np.from_dlpack(ext_tensor)
    else:
        try:
            array = np.from_dlpack(_OfCapsule(ext_tensor))
        except (ValueError, RuntimeError, TypeError):
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                "consumed only once, so you might have already constructed a tensor from it once."
            ) from None
    shared = find_lent_tensor(array, _numpy_dtype(array.dtype))
    if shared is None:
        if copy is False:
            raise NotImplementedError("from_dlpack: copy=False of memory that is not pygrad's")
        return _tensor_from_array(array, shares=not copy, read_only=True)
    return shared.clone() if copy else shared


@builtin
@overridable_factory
def frombuffer(
    buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A 1-D tensor with a copy of a buffer's bytes: unlike PyTorch, later writes to the buffer do
    not show in the tensor, which the first call with a writable one says in a warning.

    Example:
        >>> import pygrad
        >>> pygrad.frombuffer(bytes([1, 0, 2, 0]), dtype=pygrad.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    out = _tensor_from_buffer(buffer, dtype, count, offset, shares=True)
    return as_leaf(out) if requires_grad else out


def _tensor_from_buffer(buffer: Any, dtype: dtype, count: int, offset: int, shares: bool) -> Tensor:
    raw = memoryview(buffer).cast("B")[offset:]
    if count < 0 and len(raw) % dtype.itemsize:
        raise ValueError(
            f"buffer length ({len(raw)} bytes) after offset ({offset} bytes) must be a multiple of "
            f"element size ({dtype.itemsize})"
        )
    n = len(raw) // dtype.itemsize if count < 0 else count
    if n * dtype.itemsize > len(raw):
        raise ValueError(
            f"requested buffer length ({n} * {dtype.itemsize} bytes) after offset ({offset} bytes) "
            "must not be greater "
            f"than actual buffer length ({len(raw) + offset} bytes)"
        )
    if shares and not raw.readonly:
        _warn_of_copy(
            "a buffer", "To share, write to `tensor.numpy()`, which is a buffer over its memory."
        )
    elif shares:
        _warn_of_read_only(
            "buffer",
            "you can write to the underlying (supposedly non-writable) buffer using the tensor",
        )
    return from_buffer(raw[: n * dtype.itemsize], (n,), dtype)


def get_default_device() -> device:
    """The device of new tensors that name none: the CPU, unless it was set to another.

    Example:
        >>> import pygrad
        >>> pygrad.get_default_device()
        device(type='cpu')
        >>> with pygrad.device("meta"):
        ...     pygrad.get_default_device()
        device(type='meta')
    """
    return _META if get_modes() & MADE_META else _CPU


def set_default_device(device: Any) -> None:
    """Sets the device of new tensors that name none: the CPU (or None), or meta.

    Raises:
        AssertionError, NotImplementedError: for a device that is not there, as making a tensor on
            it does.

    Example:
        >>> import pygrad
        >>> pygrad.set_default_device("meta")
        >>> pygrad.ones(2, 3)
        tensor(..., device='meta', size=(2, 3))
        >>> pygrad.set_default_device(None)
    """
    _switch_device(device)


def _switch_device(where: Any) -> bool:
    """Sets the default device; returns whether it was meta."""
    found = _CPU if where is None else _resolve_device(where)
    return bool(switch(MADE_META, found == _META) & MADE_META)


_CPU: Final = device("cpu")
_META: Final = device("meta")
if not switches_of_devices:
    switches_of_devices.append(_switch_device)
