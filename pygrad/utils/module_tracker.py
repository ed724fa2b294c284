"""Tracking of the modules that are running, in forward and in backward."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from .._table import functions as _functions
from .._tensor.tensor import Tensor
from ..autograd.graph import register_multi_grad_hook
from ..autograd.variable import Variable
from ..nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from ._pytree import tree_leaves

if TYPE_CHECKING:
    from ..nn import Module

__all__ = ["ModuleTracker"]

_log = logging.getLogger("pygrad.utils.module_tracker")


class ModuleTracker:
    """A scope that tracks the names of running modules.

    A module that no other module calls has the name of its class. A child has its parent's name, a
    dot and its own name. ``parents`` is the set of the names of running modules and "Global".

    Example:
        >>> import pygrad
        >>> from pygrad.utils.module_tracker import ModuleTracker
        >>> class Inner(pygrad.nn.Module):
        ...     def forward(self, x):
        ...         print(sorted(tracker.parents), tracker.is_bw)
        ...         y = x * 2
        ...         y.register_hook(lambda g: print(sorted(tracker.parents), tracker.is_bw))
        ...         return y + 1
        >>> model = pygrad.nn.Sequential(Inner())
        >>> with ModuleTracker() as tracker:
        ...     model(pygrad.ones(2, requires_grad=True) * 1).sum().backward()
        ['Global', 'Sequential', 'Sequential.0'] False
        ['Global', 'Sequential', 'Sequential.0'] True
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._has_callback = False
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward is running."""
        return bool(_functions.C["_task_id"]() != -1)

    def __enter__(self) -> Self:
        self._handles = [
            register_module_forward_pre_hook(self._before_forward),
            register_module_forward_hook(self._after_forward),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name_of(self, module: Module) -> str:
        """The module's name. The first call for a module also names its descendants."""
        if module not in self._names:
            self._names[module] = type(module).__name__
            self._name_children(module)
        return self._names[module]

    def _name_children(self, module: Module) -> None:
        for name, child in module.named_children():
            known = child in self._names
            self._names[child] = f"{self._names[module]}.{name}"
            if not known:
                self._name_children(child)

    def _before_forward(self, module: Module, args: Any) -> None:
        name = self._name_of(module)
        self._enter(name)
        self._on_gradients(args, lambda _: self._leave(name))

    def _after_forward(self, module: Module, args: Any, output: Any) -> None:
        name = self._name_of(module)
        self._leave(name)
        self._on_gradients(output, lambda _: self._enter(name))

    def _on_gradients(self, values: Any, hook: Callable[[Any], None]) -> None:
        """Calls the hook when the gradients of all tensors in `values` are known."""
        leaves: Iterable[Any] = tree_leaves(values)
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, hook))

    def _enter(self, name: str) -> None:
        if self.is_bw and not self._has_callback:
            # The end of the backward removes modules whose inputs need no gradients.
            queue = Variable._execution_engine.queue_callback
            queue(self._end_backward)
            self._has_callback = True
        if name in self.parents:
            self._log_confusion("this Module was already entered", name)
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        if name not in self.parents:
            self._log_confusion("a Module is left that was never entered", name)
        self.parents.discard(name)

    def _end_backward(self) -> None:
        self.parents = {"Global"}
        self._has_callback = False

    def _log_confusion(self, why: str, name: str) -> None:
        when = "backward" if self.is_bw else "forward"
        _log.info("the modules that are running cannot be told: %s. %s during %s", why, name, when)
