"""`Variable`, which once held a tensor to differentiate: kept for scripts that still use it."""

from __future__ import annotations

import warnings
from typing import Any

from .._boundary.objects import drop_object, keep_object
from .._table import functions as _functions
from .._tensor.base import Tensor, as_leaf
from ._backward import differentiate

__all__ = ["Variable", "VariableMeta"]


_C = _functions.C


class _EngineBase:
    """The engine as `Variable._execution_engine` shows it."""

    def queue_callback(self, callback: Any, /) -> None:
        """Queues a function without arguments, called when the running backward has walked its
        graph. A callback may queue others; if one raises, the backward raises at once.

        Raises:
            RuntimeError: outside of any backward.

        Example:
            >>> import pygrad
            >>> engine = pygrad.autograd.Variable._execution_engine
            >>> x = pygrad.ones(1, requires_grad=True)
            >>> y = x * 2
            >>> handle = y.register_hook(
            ...     lambda g: engine.queue_callback(lambda: print("all done", x.grad))
            ... )
            >>> y.backward()
            all done tensor([2.])
        """
        ident = keep_object(lambda _: callback())
        try:
            _C["_queue_callback"](ident)
        except BaseException:
            drop_object(ident)
            raise

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Any, ...]:
        """The common part of `backward` (`accumulate_grad`) and `grad`; returns the gradients of
        `grad`.
        """
        found = differentiate(
            tuple(tensors),
            tuple(inputs) or None,
            tuple(grad_tensors),
            keep_graph,
            create_graph,
            allow_unused=allow_unreachable,
            materialize=False,
            accumulate=accumulate_grad,
        )
        return tuple(found or ())

    def is_checkpoint_valid(self) -> bool:
        """Whether no backward that is running was given inputs."""
        return bool(_C["_is_checkpoint_valid"]())


ImperativeEngine = _EngineBase


class VariableMeta(type):
    """Makes every tensor an instance of Variable."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """Deprecated: tensors record their operations themselves. Returns a tensor.

    Args:
        data: a tensor; without one, the result is empty.
        requires_grad: whether the result requires grad, regardless of `data`.
        volatile: has no effect, and warns.

    Raises:
        TypeError: `data` is no tensor.
        ValueError: both `requires_grad` and `volatile`.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.Variable(pygrad.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = ImperativeEngine()

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
            data = _functions.SPACES["torch"]["empty"](0, device="cpu")
        elif not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return as_leaf(data.detach()) if requires_grad else data.detach()


def _is_checkpoint_valid() -> bool:
    """Whether no backward that is running was given inputs."""
    return Variable._execution_engine.is_checkpoint_valid()
