"""Tensors that a module recognises when they are assigned to it.

A ``Parameter`` is a leaf tensor that training changes; a ``Buffer`` is state that is saved but not
trained. Neither computes anything: they are tensors with a mark, and sharing the storage of the
tensor they were made from is part of the contract.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, TypeVar, cast

import pygrad
from pygrad._tensor import Tensor

__all__ = ["Buffer", "Parameter"]

_P = TypeVar("_P", bound="Parameter")
_TensorMeta: type[type] = type(Tensor)


class _ParameterMeta(_TensorMeta):  # type: ignore[valid-type,misc]
    """Lets a tensor subclass that was wrapped by ``Parameter(...)`` pass ``isinstance``."""

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Parameter and isinstance(instance, Tensor):
            if getattr(instance, "_is_param", False):
                return True
        return bool(super().__instancecheck__(instance))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a :class:`~pygrad.nn.Module` registers when it is assigned as an attribute.

    Args:
        data: the tensor to wrap, of any shape; its storage is shared. ``None`` gives an empty one.
        requires_grad: whether backward accumulates into ``.grad``.

    Raises:
        RuntimeError: ``data`` is of a tensor subclass whose ``detach`` loses that subclass, or
            ``requires_grad`` is asked of a dtype that cannot have gradients.

    Example:
        >>> import pygrad
        >>> weight = pygrad.nn.Parameter(pygrad.zeros(2, 3))
        >>> weight.requires_grad, weight.is_leaf, tuple(weight.shape)
        (True, True, (2, 3))
    """

    _is_param: bool

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = pygrad.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            made: Parameter = Tensor._make_subclass(cls, data, requires_grad)
            return made
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

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        # Everything happened in __new__; a tensor's own __init__ must not see these arguments.
        pass

    def __deepcopy__(self: _P, memo: dict[int, Any]) -> _P:
        if id(self) in memo:
            return cast(_P, memo[id(self)])
        copy = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        extra = dict(getattr(self, "__dict__", {}))
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict(), extra)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned as an attribute.

    Args:
        data: the tensor to wrap; its storage is shared. ``None`` gives an empty one.
        persistent: whether the buffer is part of the module's ``state_dict``.

    Example:
        >>> import pygrad
        >>> module = pygrad.nn.Module()
        >>> module.mean = pygrad.nn.Buffer(pygrad.zeros(3))
        >>> [name for name, _ in module.named_buffers()]
        ['mean']
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = pygrad.empty(0)
        buffer: Buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Buffer:
        if id(self) in memo:
            return cast(Buffer, memo[id(self)])
        copy = Buffer(self.data.clone(), persistent=self.persistent)
        copy._mark(self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __repr__(self) -> str:
        return repr(self.detach()._mark(self.requires_grad))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_buffer, (self.data, self.requires_grad, self.persistent)


def _rebuild_parameter(
    data: Tensor, requires_grad: bool, hooks: dict[int, Any], extra: dict[str, Any]
) -> Parameter:
    parameter = Parameter(data, requires_grad)
    for name, value in extra.items():
        setattr(parameter, name, value)
    return parameter


def _rebuild_buffer(data: Tensor, requires_grad: bool, persistent: bool) -> Buffer:
    buffer = Buffer(data, persistent=persistent)
    buffer.requires_grad_(requires_grad)
    return buffer
