"""Methods of `Tensor` that belong to autograd: gradients, histories, hooks, views."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .._boundary import attributes, calls, header
from .._boundary.arguments import refuse_foreign
from .._boundary.callbacks import keep_face
from .._boundary.long_calls import command
from .._boundary.modes import LEVELS
from .._boundary.modes import get as get_modes
from .._boundary.objects import objects as _objects
from .._ground.dtypes import dtype
from .._table import functions
from .._tensor.base import TensorBase
from .._tensor.hooks import register_tensor_hook, replace_tensor_hooks, tensor_hooks
from .._tensor.late import late
from .._tensor.subclassing import answers_for_ops
from ._gradients import backward
from ._walk import walk
from .graph import node_of

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor

_C, _M = functions.C, functions.SPACES["method"]
_log: Final = logging.getLogger("pygrad.autograd.graph")
_DEBUG: Final = logging.DEBUG
_backward = command(calls.ROWS["_backward_of"])
_require_grad = _M["requires_grad_"]


@late
def _views() -> Any:
    from . import _views

    return _views


class AutogradMethods(TensorBase):
    """Methods and attributes of `Tensor` that belong to autograd."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor."""
        return attributes.requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and header.grad_fn_of(self._h):
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and not self.dtype._inexact:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        self._mark(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Starts (or for a leaf ends) recording of operations on this tensor; returns it.

        Raises:
            RuntimeError: not a floating dtype, or False for a tensor that is no leaf.
        """
        _require_grad(self, requires_grad)
        return calls.remember(self) if requires_grad else self  # type: ignore[return-value]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated, or None. Returns the same object each time."""
        return attributes.grad(self)  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._drop_grad()
            return
        if not isinstance(value, TensorBase):
            refuse_foreign(value)
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}"
            )
        _C["_set_grad"](self, value)
        self._g = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def _grad(self) -> Tensor | None:
        return self.grad if self._has_grad() else None

    @_grad.setter
    def _grad(self, value: Tensor | None) -> None:
        self.grad = value

    @property
    def grad_dtype(self) -> Any:
        """The dtype that ``.grad`` must have, and to which backward casts: this tensor's, unless
        set. None: any. Only for leaves.
        """
        return _C["grad_dtype"](self)

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        if value is not None and not isinstance(value, dtype):
            raise RuntimeError(
                f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
            )
        _C["_set_grad_dtype"](self, value)

    def _drop_grad(self) -> None:
        """Removes the gradient; its handle is released with the next call."""
        attributes.drop_grad(self)

    def _warn_of_missing_grad(self) -> None:
        if header.grad_fn_of(self._h) and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be "
                "populated during autograd.backward(). If you indeed want the .grad field to be "
                "populated for a non-leaf "
                "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
                "Tensor by mistake, make sure "
                "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
                UserWarning,
                stacklevel=3,
            )

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor in the graph, or None."""
        return node_of(self)

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        _M["detach_"](self)

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def volatile(self) -> bool:
        """False, with a warning: the attribute was replaced by `no_grad`. Setting it does
        nothing.
        """
        message = "volatile was removed (Variable.volatile is always False)"
        warnings.warn(message, UserWarning, stacklevel=2)
        return False

    @volatile.setter
    def volatile(self, value: Any) -> None:
        warnings.warn(
            "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
            UserWarning,
            stacklevel=2,
        )

    @property
    def name(self) -> None:
        """None: only variables of old PyTorch had names."""

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of its grad_fn."""
        return attributes.output_nr(self)

    @property
    def _base(self) -> Tensor | None:
        handle = header.base_of(self._h)
        if not handle:
            return None
        kept: Tensor | None = getattr(self, "_b", None)
        while kept is not None:
            if kept._h == handle:
                return kept
            kept = getattr(kept, "_b", None)
        self._b = base = calls.remembered_object(_C["_base"](self))
        return base  # type: ignore[no-any-return]

    def _view_func(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[Any], Any] | None = None,
        tensor_visitor_fn: Callable[[Any], Any] | None = None,
    ) -> Tensor | None:
        """Replays this view on another base; None if this is no view, or the other base has other
        sizes, strides or offset.

        Args:
            new_base: the other base.
            symint_visitor_fn, tensor_visitor_fn: called with each size and offset, or tensor,
                among the arguments of the ops that made this view; the result replaces it.

        Example:
            >>> import pygrad
            >>> x = pygrad.zeros(2, 3)[1]
            >>> x._view_func(pygrad.arange(6).view(2, 3))
            tensor([3, 4, 5])
        """
        return _views().view_func(  # type: ignore[no-any-return]
            self, new_base, symint_visitor_fn, tensor_visitor_fn, unsafe=False
        )

    def _view_func_unsafe(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[Any], Any] | None = None,
        tensor_visitor_fn: Callable[[Any], Any] | None = None,
    ) -> Tensor | None:
        """Like `_view_func`, for a base of any geometry."""
        return _views().view_func(  # type: ignore[no-any-return]
            self, new_base, symint_visitor_fn, tensor_visitor_fn, unsafe=True
        )

    def _rev_view_func_unsafe(self, new_view: Tensor) -> Tensor | None:
        """Inverse of `_view_func`: a view of `new_view` with the geometry of this view's base."""
        return _views().rev_view_func(self, new_view)  # type: ignore[no-any-return]

    @property
    def data(self) -> Tensor:
        """A view of the elements without history, with an own version counter."""
        found = self
        if answers_for_ops(self):  # the class handles ops
            found = self.detach()
            if answers_for_ops(found):
                return found
        return _C["data"](found)  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, TensorBase):
            refuse_foreign(value)
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if get_modes() >> (LEVELS + 1):
            where = "under vmap" if header.is_batched(self._h) else "inside functorch"
            raise RuntimeError(f"mutating directly with `.data` {where} transform is not allowed.")
        _C["_set_data"](self, value)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Adds d(self)/d(leaf) to the ``.grad`` of every leaf of the graph.

        Args:
            gradient: the factor, of this tensor's shape; not needed for one element.
            retain_graph: keep saved tensors for another backward; default `create_graph`.
            create_graph: record the backward itself, for higher derivatives.
            inputs: the only tensors to accumulate into.

        Raises:
            RuntimeError: no history, no scalar, or a graph that was freed.
        """
        plain = calls._tensor_type
        if inputs is None and create_graph is False and not _log.isEnabledFor(_DEBUG):
            step: Any = False
            if _objects and type(gradient) is plain:
                keep_face(gradient)  # hooks on this tensor receive it
            if retain_graph is None or retain_graph is False:
                if gradient is None:
                    step = _backward(self)
                elif type(gradient) is plain:
                    step = _C["_backward_of"](self, False, gradient)
            elif retain_graph is True and (gradient is None or type(gradient) is plain):
                step = _C["_backward_of"](self, True, gradient)
            if step is None:
                return
            if step:
                walk(step)
                return

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)  # type: ignore[arg-type]

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Calls ``hook(grad)`` whenever this tensor's gradient is complete; a returned tensor
        replaces the gradient.
        """
        return register_tensor_hook(self, hook, post=False)

    @property
    def _backward_hooks(self) -> Any:
        """The hooks of `register_hook`, in a dictionary; None if there are none. Setting a
        dictionary replaces all hooks by its functions, including later entries.
        """
        return tensor_hooks(self)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        if hooks is not None and not hasattr(hooks, "values"):
            raise TypeError(f"expected a dictionary of hooks, but got {type(hooks).__name__}")
        replace_tensor_hooks(self, hooks)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Calls ``hook(tensor)`` after a gradient was accumulated into this leaf."""
        return register_tensor_hook(self, hook, post=True)
