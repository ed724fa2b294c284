"""Operators of tensors, and their conversion to Python's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import _boundary
from .._boundary import calls, header, overriding
from .._boundary.arguments import K_COMPLEX, K_TENSOR, kind_of
from .._boundary.calls import invoke
from .._boundary.modes import GRAD
from .._boundary.modes import get as get_modes
from .._boundary.shapes import binary
from .._ground.warnings import warn_of_conversion
from .._table import functions
from .base import TensorBase

if TYPE_CHECKING:
    from .tensor import Tensor

_ROW = calls.ROWS


class OperatorMethods(TensorBase):
    """The operators of `Tensor` that are not plain methods of the table, and its conversions."""

    __slots__ = ()

    def __neg__(self) -> Tensor:
        return self.neg()

    def __pos__(self) -> Tensor:
        return self.positive()

    def __abs__(self) -> Tensor:
        return self.abs()

    def __invert__(self) -> Tensor:
        if self.dtype._inexact:
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
            )
        return self.bitwise_not()

    # For an operand that is neither a tensor nor a number, NotImplemented lets Python ask the
    # operand.

    def __rdiv__(self, other: Any) -> Tensor:
        try:
            scaled: Tensor = self.reciprocal() * other
        except TypeError:
            return NotImplemented
        return scaled

    __rtruediv__ = __rdiv__

    def __rpow__(self, other: Any) -> Tensor:
        return _call_reflected("pow", self, other)  # type: ignore[arg-type]

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _call_reflected("floor_divide", self, other)  # type: ignore[arg-type]

    def __rmod__(self, other: Any) -> Tensor:
        return _call_reflected("remainder", self, other)  # type: ignore[arg-type]

    def __rmatmul__(self, other: Any) -> Tensor:
        return _call_reflected("matmul", self, other)  # type: ignore[arg-type]

    def __rlshift__(self, other: Any) -> Tensor:
        return _call_reflected("bitwise_left_shift", self, other)  # type: ignore[arg-type]

    def __rrshift__(self, other: Any) -> Tensor:
        return _call_reflected("bitwise_right_shift", self, other)  # type: ignore[arg-type]

    @property
    def real(self) -> Tensor:
        """The real parts of complex numbers, a view; of others the tensor itself."""
        return functions.SPACES["torch"]["real"](self)  # type: ignore[no-any-return]

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of complex numbers, a view.

        Raises: RuntimeError: the elements are real.
        """
        return functions.SPACES["torch"]["imag"](self)  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    # ------------------------------------------------------------ Python numbers

    def __bool__(self) -> bool:
        n = self.numel()
        if n == 1:
            if header.is_batched(self._h):
                raise RuntimeError(
                    "vmap: It looks like you're attempting to use a Tensor in some data-dependent "
                    "control flow. We don't support that yet, please file an issue at "
                    "https://github.com/pytorch/pytorch/issues ."
                )
            return bool(self.item())
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def is_nonzero(self) -> bool:
        """Whether the single element is not zero."""
        return bool(self)

    def _scalar(self) -> Any:
        """The single element for Python's conversions; within a graph PyTorch warns of them."""
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if self.requires_grad and get_modes() & GRAD:
            warn_of_conversion()
        return self.item()

    def __int__(self) -> int:
        value = int(_real_of(self._scalar(), "int64_t"))
        if self.dtype.is_signed or value >> 63 == 0:
            return value
        raise RuntimeError(_NO_ROOM.format("int64_t"))

    def __float__(self) -> float:
        return float(_real_of(self._scalar(), "double"))

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        value = self.item() if self.numel() == 1 and not self.dtype._inexact else None
        if value is None:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(value)


_NO_ROOM: Final = "value cannot be converted to type {} without overflow"


def _real_of(value: Any, kind: str) -> Any:
    """A number converted to a real type of C, which cannot hold some complex numbers."""
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise RuntimeError(_NO_ROOM.format(kind))
    return value.real


def _call_reflected(op: str, self: Tensor, other: Any) -> Tensor:
    """The op with `other` first; NotImplemented if it does not take such an operand."""
    if kind_of(other) > (K_COMPLEX if op != "matmul" else K_TENSOR):
        return NotImplemented  # type: ignore[no-any-return]
    return invoke(_ROW[op], 0, (other, self), {})  # type: ignore[no-any-return]


_OPERATORS: Final = {
    "add": "__add__ __radd__",
    "sub": "__sub__",
    "rsub": "__rsub__",
    "mul": "__mul__ __rmul__",
    "div": "__truediv__ __div__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "pow": "__pow__",
    "matmul": "__matmul__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
    "bitwise_and": "__and__ __rand__",
    "bitwise_or": "__or__ __ror__",
    "bitwise_xor": "__xor__ __rxor__",
    "bitwise_left_shift": "__lshift__",
    "bitwise_right_shift": "__rshift__",
}

_INPLACE_OPERATORS: Final = {
    "add": "__iadd__",
    "sub": "__isub__",
    "mul": "__imul__",
    "div": "__itruediv__ __idiv__",
    "floor_divide": "__ifloordiv__",
    "remainder": "__imod__",
    "pow": "__ipow__",
    "bitwise_and": "__iand__",
    "bitwise_or": "__ior__",
    "bitwise_xor": "__ixor__",
    "bitwise_left_shift": "__ilshift__",
    "bitwise_right_shift": "__irshift__",
}

_NAMED: Final = frozenset(
    "add sub mul div remainder matmul ne lt le gt ge "
    "__rand__ __ror__ __rxor__ __ifloordiv__".split()
)
"""Ops whose operators ``__torch_function__`` sees as the method of their name, ``x + y`` as `add`;
other operators appear under their own names.
"""

for _table, _mode in (
    (_OPERATORS, _boundary.METHOD),
    (_INPLACE_OPERATORS, _boundary.METHOD | _boundary.INPLACE),
):
    for _op, _names in _table.items():
        for _name in _names.split() if _op in _ROW else ():
            _function = binary(_ROW[_op], _mode, _op != "matmul")
            _function.__name__ = _name
            setattr(OperatorMethods, _name, _function)
            if _op in _NAMED or _name in _NAMED:
                overriding.NAMES[_function] = _op + "_" * (_mode != _boundary.METHOD)

calls.holders.append(globals())
