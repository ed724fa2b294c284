"""Tensors that a module registers when they are assigned as attributes.

A ``Parameter`` is a leaf tensor that training changes; a ``Buffer`` is state that is saved but not
trained. Both are marked tensors that share the storage of the original tensor. Uninitialized ones
have only a dtype and a device: they have no engine tensor, and operations that need one raise.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

from .._boundary.arguments import refuse_foreign
from .._boundary.overriding import disabled
from .._tensor import namespace as pygrad
from .._tensor.host_data import reduction
from .._tensor.tensor import Tensor
from ._types import DeviceLike, DTypeLike

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

_P = TypeVar("_P", bound="Parameter")
_TensorClass: TypeAlias = type[Tensor]  # within the class, `type` is a method
_TensorMeta: type[type] = type(Tensor)


class _ParameterMeta(_TensorMeta):  # type: ignore[valid-type,misc]
    """Makes ``isinstance`` accept a tensor of a subclass that was wrapped by ``Parameter(...)``."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Parameter and isinstance(instance, Tensor):
            if getattr(instance, "_is_param", False):
                return True
        return bool(super().__instancecheck__(instance))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a :class:`~pygrad.nn.Module` registers when it is assigned as an attribute.

    Args:
        data: the tensor to wrap, of any shape; its storage is shared. ``None`` means an empty one.
        requires_grad: whether backward accumulates into ``.grad``.

    Raises:
        RuntimeError: ``data`` is of a tensor subclass whose ``detach`` loses the subclass, or
            gradients are requested for a dtype that cannot have them.

    Example:
        >>> import pygrad
        >>> weight = pygrad.nn.Parameter(pygrad.zeros(2, 3))
        >>> weight.requires_grad, weight.is_leaf, tuple(weight.shape)
        (True, True, (2, 3))
    """

    _is_param: bool
    _shown_as = "tensor"
    _is_parameter_class = True
    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = pygrad.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            made: Parameter = Tensor._make_subclass(cls, data, requires_grad)
            return made
        refuse_foreign(data)
        detached = data.detach()._mark(requires_grad)
        if type(detached) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return type "
                f"{type(detached).__name__} was found instead. To use the type as a Parameter, "
                "please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        wrapped = cast(Parameter, detached)
        wrapped._is_param = True
        return wrapped

    def __deepcopy__(self: _P, memo: dict[int, Any]) -> _P:
        if id(self) in memo:
            return cast(_P, memo[id(self)])
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if reduction.form is not None:
            return reduction.form(self)
        extra = dict(getattr(self, "__dict__", {}))
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict(), extra)


class _BufferMeta(_TensorMeta):  # type: ignore[valid-type,misc]
    """Makes ``isinstance`` accept the result of ``Buffer(...)``, which is a marked tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Buffer and isinstance(instance, Tensor):
            if getattr(instance, "_is_buffer", False):
                return True
        return bool(super().__instancecheck__(instance))


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer when it is assigned as an attribute.

    Args:
        data: the tensor to wrap; its storage is shared. ``None`` means an empty one.
        persistent: whether the buffer is part of the module's ``state_dict``.

    Returns:
        A marked tensor of the class of ``data``; a parameter becomes a plain tensor.

    Example:
        >>> import pygrad
        >>> module = pygrad.nn.Module()
        >>> module.mean = pygrad.nn.Buffer(pygrad.zeros(3))
        >>> [name for name, _ in module.named_buffers()]
        ['mean']
    """

    persistent: bool
    _is_buffer: bool
    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = pygrad.empty(0)
        refuse_foreign(data)
        buffer = cast(Buffer, data.detach()._mark(data.requires_grad))
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def _rebuild_parameter(
    data: Tensor, requires_grad: bool, hooks: dict[int, Any], extra: dict[str, Any]
) -> Parameter:
    parameter = Parameter(data, requires_grad)
    for name, value in extra.items():
        setattr(parameter, name, value)
    return parameter


# ------------------------------------------------------------------ uninitialized


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer is uninitialized.

    Example:
        >>> import pygrad
        >>> pygrad.nn.parameter.is_lazy(pygrad.nn.LazyLinear(3).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedTensorMixin:
    """A tensor of unknown shape. :meth:`materialize` turns it into a tensor of another class.

    It has a dtype and a device, which can be converted, and no elements: operations on it raise
    ValueError.
    """

    __slots__ = ()

    __torch_function__ = disabled
    cls_to_become: ClassVar[_TensorClass]
    layout = pygrad.strided
    grad: Any = None
    grad_fn = None
    is_leaf = True
    __dict__: dict[str, Any]

    def _begin(self, requires_grad: bool, device: DeviceLike, dtype: DTypeLike) -> None:
        empty = pygrad.empty(0, device=device, dtype=dtype)
        self.__dict__["_wanted"] = (requires_grad, empty.device, empty.dtype)

    def materialize(self, shape: Any, device: DeviceLike = None, dtype: DTypeLike = None) -> None:
        """Turns this object into a tensor of the given shape, with arbitrary elements.

        Args:
            shape: the sizes.
            device, dtype: by default the current ones.

        Example:
            >>> import pygrad
            >>> weight = pygrad.nn.UninitializedParameter()
            >>> weight.materialize((2, 3))
            >>> type(weight).__name__, tuple(weight.shape)
            ('Parameter', (2, 3))
        """
        requires_grad, own_device, own_dtype = self.__dict__["_wanted"]
        made = pygrad.empty(
            shape,
            device=own_device if device is None else device,
            dtype=own_dtype if dtype is None else dtype,
        )
        del self.__dict__["_wanted"]
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        tensor = cast(Tensor, self)
        tensor._h, made._h = made._h, 0
        tensor._mark(requires_grad)

    @property
    def _h(self) -> int:
        kind = type(self).__name__
        raise ValueError(
            "Attempted to use an uninitialized parameter in an operation. This error happens when "
            f"you are using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{kind}` "
            "objects. When using LazyModules Call `forward` with a dummy batch to initialize the "
            "parameters before calling torch functions"
        )

    def __del__(self) -> None:
        """Releases nothing: an uninitialized parameter has no tensor of the engine."""

    @property
    def shape(self) -> Any:
        """An uninitialized parameter has no shape.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    @property
    def requires_grad(self) -> bool:
        """Whether the parameter will require grad."""
        return bool(self.__dict__["_wanted"][0])

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.__dict__["_wanted"] = (bool(value), self.device, self.dtype)

    @property
    def device(self) -> Any:
        """The device of the future parameter."""
        return self.__dict__["_wanted"][1]

    @property
    def dtype(self) -> Any:
        """The dtype of the future parameter."""
        return self.__dict__["_wanted"][2]

    @property
    def data(self) -> Tensor:
        """An empty tensor of the future dtype. Assigning a tensor sets that dtype and device."""
        return pygrad.empty(0, device=self.device, dtype=self.dtype)

    @data.setter
    def data(self, value: Tensor) -> None:
        self.__dict__["_wanted"] = (self.requires_grad, value.device, value.dtype)

    def size(self, dim: int | None = None) -> Any:
        """The size of an empty tensor."""
        return self.data.size(dim)

    def _has_grad(self) -> bool:
        return False

    def is_floating_point(self) -> bool:
        """Whether the future dtype is a floating point type."""
        return bool(self.dtype.is_floating_point)

    def is_complex(self) -> bool:
        """Whether the future dtype is complex."""
        return bool(self.dtype.is_complex)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """An uninitialized tensor of another dtype or device."""
        return self._with_data(self.data.to(*args, **kwargs))

    def _with_data(self, data: Tensor) -> Any:
        if data.dtype == self.dtype and data.device == self.device:
            return self
        return type(self)(self.requires_grad, data.device, data.dtype)  # type: ignore[call-arg]

    def share_memory_(self) -> None:
        """An uninitialized parameter has no memory to share.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self.__dict__["_wanted"])
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), self.__dict__["_wanted"]


def _conversion(name: str) -> Any:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._with_data(getattr(self.data, name)(*args, **kwargs))

    convert.__name__ = name
    convert.__doc__ = f"One of another dtype or device, itself uninitialized: ``Tensor.{name}``."
    return convert


for _name in "half float double bfloat16 char short int long type cuda cpu".split():
    setattr(UninitializedTensorMixin, _name, _conversion(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc, override]
    """A parameter of unknown shape, as lazy modules have before their first call.

    Args:
        requires_grad: whether backward accumulates into ``.grad``.
        device, dtype: see :func:`pygrad.empty`.

    Example:
        >>> import pygrad
        >>> pygrad.nn.UninitializedParameter(dtype=pygrad.float64)
        <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> UninitializedParameter:
        made = object.__new__(cls)
        made._begin(requires_grad, device, dtype)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc, override]
    """A buffer of unknown shape, as lazy modules have before their first call.

    Args:
        requires_grad: whether it will require grad.
        device, dtype: see :func:`pygrad.empty`.
        persistent: whether the buffer is part of the module's ``state_dict``.

    Example:
        >>> import pygrad
        >>> buffer = pygrad.nn.UninitializedBuffer()
        >>> buffer.materialize(4)
        >>> tuple(buffer.shape)
        (4,)
    """

    cls_to_become = Tensor
    persistent: bool
    _is_buffer: bool

    def __new__(
        cls,
        requires_grad: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        made = object.__new__(cls)
        made._begin(requires_grad, device, dtype)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass
