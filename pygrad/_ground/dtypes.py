"""dtypes, devices, layouts and memory formats: names that PyTorch scripts pass around."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, SupportsIndex


class dtype:
    """An element type, such as ``pygrad.float32``. There is one object a type: compare with
    ``is``.

    Example:
        >>> import pygrad
        >>> pygrad.ones(1).dtype is pygrad.float32
        True
        >>> pygrad.complex64.to_real()
        torch.float32
    """

    __slots__ = (
        "_format",
        "_inexact",
        "code",
        "is_complex",
        "is_floating_point",
        "is_signed",
        "itemsize",
        "legacy",
        "name",
    )
    code: int
    _inexact: bool  # a tensor of it may require a gradient
    _format: str  # of the array module; "" where it has none
    name: str
    legacy: str  # "Float", as in FloatTensor and in messages

    def __init__(
        self, code: int, name: str, itemsize: int, kind: str, legacy: str, fmt: str = ""
    ) -> None:
        self.code, self.legacy, self._format = code, legacy, fmt
        self.name = name
        self.itemsize = itemsize
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self._inexact = kind in "fc"
        self.is_signed = kind not in "bu"

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    def limits(self) -> tuple[float, ...]:
        """The fields of `finfo` for a floating type: eps, max, min, tiny and resolution."""
        digits, top, resolution = _FLOATS[self]
        eps = 2.0 ** (1 - digits)
        most = (2.0 - eps) * 2.0 ** (top - 1)
        return eps, most, -most, 2.0 ** (2 - top), resolution

    def to_real(self) -> dtype:
        """The real type of the same precision."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex type of the same precision; complex64 of bfloat16.

        Raises:
            RuntimeError: of integers.
        """
        for kind, real in _REAL.items():
            if self in (kind, real):
                return kind
        if self is bfloat16:
            return complex64
        raise RuntimeError(f"Unknown Complex ScalarType for {self.legacy}")


uint8: Final = dtype(0, "uint8", 1, "u", "Byte", "B")
int8: Final = dtype(1, "int8", 1, "i", "Char", "b")
int16: Final = dtype(2, "int16", 2, "i", "Short", "h")
int32: Final = dtype(3, "int32", 4, "i", "Int", "i")
int64: Final = dtype(4, "int64", 8, "i", "Long", "q")
float16: Final = dtype(5, "float16", 2, "f", "Half")
float32: Final = dtype(6, "float32", 4, "f", "Float", "f")
float64: Final = dtype(7, "float64", 8, "f", "Double", "d")
complex32: Final = dtype(8, "complex32", 4, "c", "ComplexHalf")
complex64: Final = dtype(9, "complex64", 8, "c", "ComplexFloat")
complex128: Final = dtype(10, "complex128", 16, "c", "ComplexDouble")
bool_: Final = dtype(11, "bool", 1, "b", "Bool", "?")
bfloat16: Final = dtype(15, "bfloat16", 2, "f", "BFloat16")
uint16: Final = dtype(27, "uint16", 2, "u", "UInt16", "H")
uint32: Final = dtype(28, "uint32", 4, "u", "UInt32", "I")
uint64: Final = dtype(29, "uint64", 8, "u", "UInt64", "Q")
_REAL: Final = {complex32: float16, complex64: float32, complex128: float64}

ALL: Final = (
    *(uint8, int8, int16, int32, int64, float16, float32, float64, complex32, complex64),
    *(complex128, bool_, bfloat16, uint16, uint32, uint64),
)
BY_CODE: Final[list[dtype | None]] = [None] * 128
for _each in ALL:
    BY_CODE[_each.code] = _each
BY_NAME: Final = {each.name: each for each in ALL}
CASTS: Final = {
    each.legacy.lower(): each for each in ALL if each not in _REAL and each.code < uint16.code
}
"""Methods of tensors and storages that convert, and to which dtype. Complex types have methods of
other names, and the larger unsigned integers have none.
"""
C_NAMES: Final = {
    uint8: "unsigned char",
    int8: "signed char",
    int16: "short int",
    int32: "int",
    int64: "long int",
    float16: "c10::Half",
    float32: "float",
    float64: "double",
    complex32: "c10::complex<c10::Half>",
    complex64: "c10::complex<float>",
    complex128: "c10::complex<double>",
    bool_: "bool",
    bfloat16: "c10::BFloat16",
    uint16: "short unsigned int",
    uint32: "unsigned int",
    uint64: "long unsigned int",
}
"""Names of C types in PyTorch's messages, from its compiler."""


_DEVICE_TYPES: Final = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu mtia"
    " privateuseone"
).split()


def _device_refused(value: Any, index: Any) -> Exception:
    """The error for a device of something else than a text or a device."""
    kind = type(value).__name__
    if index is not None:
        names = {"device": "torch.device"}
        place, wanted, got = (2, "int", index) if isinstance(value, str) else (1, "str", value)
        got = names.get(type(got).__name__, type(got).__name__)
        argument = ("type", "index")[place - 1]
        return TypeError(
            f"device(): argument '{argument}' (position {place}) must be {wanted}, not {got}"
        )
    if isinstance(value, int):  # a bare number means an accelerator
        return RuntimeError(
            "Device index must not be negative"
            if value < 0
            else "Cannot access accelerator device when none is available."
        )
    given = "" if value is Ellipsis else kind
    wrong = f"      didn't match because some of the arguments have invalid types: (!{kind}!)\n"
    return TypeError(
        f"device() received an invalid combination of arguments - got ({given}), but expected one "
        f"of:\n * (torch.device device)\n{wrong if given else ''} * (str type, int index = -1)\n"
    )


def _device_named(text: str) -> tuple[str, int | None]:
    """The type and index in a text such as ``cuda:1``."""
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, colon, number = text.partition(":")
    if colon and (not number.isdecimal() or number != str(int(number))):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return kind, int(number) if colon else None


switches_of_devices: Final[list[Callable[[Any], bool]]] = []
"""Functions that allow tensors on a device and return whether they were made on meta before. They
belong to the first engine, since devices belong to no engine. Raise for a device that pygrad lacks.
"""


class _Entered(threading.local):
    """The devices that this thread has entered: for each, whether it was meta outside."""

    def __init__(self) -> None:
        self.outside: list[bool] = []


_entered: Final = _Entered()


class device:
    """The place of a tensor: "cpu", inside the engine's memory, or "meta", where tensors have
    shapes, strides and types but no elements. Other devices can be named, as PyTorch's can without
    their hardware, but hold no tensors. As a context manager, sets the device of tensors made
    without one.

    Args:
        type: the name, such as "cpu" or "cuda:1"; or a device.
        index: its number, if the name has none.

    Raises:
        RuntimeError: no such name, a bad number, or a number alone, which means an accelerator.
        TypeError: anything else.

    Example:
        >>> import pygrad
        >>> pygrad.device("cpu")
        device(type='cpu')
        >>> with pygrad.device("meta"):
        ...     x = pygrad.ones(1 << 20, 1 << 20)
        >>> (x @ x).sum(0)
        tensor(..., device='meta', size=(1048576,))
    """

    __slots__ = ("index", "type")
    type: str
    index: Any

    def __init__(self, type: Any = ..., index: int | None = None) -> None:
        kind = type
        if isinstance(kind, device) and index is None:
            index, kind = kind.index, kind.type
        elif not isinstance(kind, str) or not isinstance(index, int | None):
            raise _device_refused(kind, index)
        elif index is None:
            kind, index = _device_named(kind)
        elif ":" in kind:
            raise RuntimeError(
                "type (string) must not include an index because index was passed explicitly: "
                + kind
            )
        if kind not in _DEVICE_TYPES:
            raise RuntimeError(
                f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device "
                f"string: {kind}"
            )
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        self.type = kind
        self.index = index

    def __enter__(self) -> device:
        for each in switches_of_devices:
            _entered.outside.append(each(self))
        return self

    def __exit__(self, *_: object) -> None:
        for each in switches_of_devices:
            each("meta" if _entered.outside.pop() else "cpu")

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')"
            if self.index is None
            else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)


class _Named:
    """A constant that prints as PyTorch's does."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Named):
    """The layout of elements: ``strided``, or a sparse one such as ``sparse_coo``."""


class memory_format(_Named):
    """The order of strides asked for."""


strided: Final = layout("strided")
sparse_coo: Final = layout("sparse_coo")
sparse_csr: Final = layout("sparse_csr")
sparse_csc: Final = layout("sparse_csc")
sparse_bsr: Final = layout("sparse_bsr")
sparse_bsc: Final = layout("sparse_bsc")
jagged: Final = layout("jagged")
LAYOUTS: Final = {
    each.name: each
    for each in (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
}
"""Layouts by name."""
contiguous_format: Final = memory_format("contiguous_format")
legacy_contiguous_format: Final = contiguous_format
"""An older name of `contiguous_format`."""
preserve_format: Final = memory_format("preserve_format")
channels_last: Final = memory_format("channels_last")
channels_last_3d: Final = memory_format("channels_last_3d")


class Size(tuple[int, ...]):
    """The sizes of a tensor: a tuple of ints.

    Raises:
        TypeError: something else than ints.

    Example:
        >>> import pygrad
        >>> pygrad.zeros(2, 3).shape
        torch.Size([2, 3])
        >>> (1,) + pygrad.zeros(2, 3).shape
        torch.Size([1, 2, 3])
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        given = list(sizes)
        for i, size in enumerate(given):
            if type(size) is not int:
                if getattr(type(size), "is_symbolic_size", False):
                    continue
                try:
                    given[i] = operator.index(size)
                except (TypeError, RuntimeError):
                    raise TypeError(
                        "torch.Size() takes an iterable of 'int' "
                        f"(item {i} is '{type(size).__name__}')"
                    ) from None
        return tuple.__new__(cls, given)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)

    def numel(self) -> int:
        """The product of the sizes."""
        n = 1
        for size in self:
            n *= size
        return n

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other).__add__(self) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        value = tuple.__getitem__(self, index)
        return size_of(value) if isinstance(index, slice) else value


size_of: Final = functools.partial(tuple.__new__, Size)
"""A Size of known ints, unchecked."""


_FLOATS: Final = {
    float16: (11, 16, 1e-3),
    bfloat16: (8, 128, 1e-2),
    float32: (24, 128, 1e-6),
    float64: (53, 1024, 1e-15),
}
"""Binary digits, the exponent beyond the largest, and decimal resolution."""


class finfo:
    """Limits of a floating type: ``eps``, ``max``, ``min``, ``tiny``, ``smallest_normal``,
    ``resolution``, ``bits``.

    Example:
        >>> import pygrad
        >>> pygrad.finfo(pygrad.float64).eps
        2.220446049250313e-16
    """

    def __init__(self, type: dtype | None = None) -> None:
        kind = (float32 if type is None else _check_dtype("finfo", type)).to_real()
        if not kind.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        self.bits = kind.itemsize * 8
        self.dtype = kind.name
        self.eps, self.max, self.min, self.tiny, self.resolution = kind.limits()
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


class iinfo:
    """Limits of an integer type: ``min``, ``max``, ``bits``."""

    def __init__(self, type: dtype) -> None:
        type = _check_dtype("iinfo", type)
        if type._inexact:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        self.bits = type.itemsize * 8
        self.dtype = type.name
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -(self.max + 1) if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


_OF_PYTHON: Final = {float: float64, complex: complex128, int: int64, bool: bool_}


def _check_dtype(name: str, kind: Any) -> dtype:
    """The dtype, or the dtype of a Python type, for finfo and iinfo."""
    kind = _OF_PYTHON.get(kind, kind) if isinstance(kind, type) else kind
    if isinstance(kind, dtype):
        return kind
    found = type(kind).__name__
    raise TypeError(f"{name}(): argument 'type' (position 1) must be torch.dtype, not {found}")
