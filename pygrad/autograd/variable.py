"""`Variable`, which once held a tensor to differentiate: kept for scripts that still say it."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _ops
from .._tensor import Tensor, as_leaf

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Makes every tensor an instance of Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """Deprecated: tensors record what is done with them themselves. Returns a tensor.

    Args:
        data: a tensor; without one, the result is empty.
        requires_grad: whether the result requires grad; what `data` does makes no difference.
        volatile: has no effect, and warns.

    Raises:
        TypeError: `data` is no tensor.
        ValueError: both `requires_grad` and `volatile`.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.Variable(pygrad.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(
        cls,
        data: Any = None,
        requires_grad: Any = False,
        volatile: Any = False,
        _grad_fn: Any = None,
        name: Any = None,
    ) -> Any:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if _grad_fn is not None:
            raise NotImplementedError("Variable: _grad_fn is not supported")
        if data is None:
            data = _ops.SPACES["f"]["empty"](0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return as_leaf(data.detach()) if requires_grad else data.detach()
