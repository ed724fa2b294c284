"""``Module``, the base class of layers and models, and its calls with hooks.

The class is composed of base classes: attributes, the tree of submodules, the state dict. This file
has construction, calls, copying and printing, and the tables of hooks for all modules.

Without hooks a call is one test and ``forward``. With hooks the order is PyTorch's: pre-hooks,
entry to backward hooks, forward, forward hooks; hooks for every module come before the module's
own. Hooks registered with ``always_call`` run even if forward raises.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeAlias, get_type_hints

from ..._tensor.functions import compile
from ..._tensor.tensor import Tensor
from ...utils.hooks import RemovableHandle
from .._hooks import BackwardHook
from ._attributes import (
    ModuleAttributes,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from ._state import ModuleState, _IncompatibleKeys, _WrappedHook
from .utils import _addindent

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "_global_buffer_registration_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

HookTable: TypeAlias = OrderedDict[int, Callable[..., Any]]

_global_forward_pre_hooks: HookTable = OrderedDict()
_global_forward_hooks: HookTable = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: HookTable = OrderedDict()
_global_backward_hooks: HookTable = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _has_any_global_hook() -> bool:
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks
        or _global_forward_pre_hooks
    )


def _register(
    table: HookTable,
    hook: Callable[..., Any],
    prepend: bool = False,
    notes: tuple[tuple[OrderedDict[int, bool], bool], ...] = (),
) -> RemovableHandle:
    """Put a hook in its table, and its id in each requested table of flags."""
    handle = RemovableHandle(table, extra_dict=[note for note, _ in notes])
    table[handle.id] = hook
    for note, wanted in notes:
        if wanted:
            note[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module."""
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args[, kwargs], output)`` after the forward of every module."""
    notes = (
        (_global_forward_hooks_with_kwargs, with_kwargs),
        (_global_forward_hooks_always_called, always_call),
    )
    return _register(_global_forward_hooks, hook, notes=notes)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after the backward of every module."""
    return _register_global_backward(hook, full=True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older form of :func:`register_module_full_backward_hook`, on a single graph node."""
    return _register_global_backward(hook, full=False)


def _register_global_backward(hook: Callable[..., Any], *, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is not None and _global_is_full_backward_hook is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return _register(_global_backward_hooks, hook)


# All tables of hooks of a module; they must exist after unpickling too.
_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _forward_unimplemented(self: Module, *input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(ModuleState):
    """Base class of layers and models: assign layers in ``__init__``, and define ``forward``.

    :meth:`parameters`, :meth:`buffers`, :meth:`modules` and :meth:`state_dict` find the parameters,
    buffers and modules that are assigned as attributes.

    Example:
        >>> import pygrad
        >>> from pygrad import nn
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.out = nn.Linear(8, 2)
        ...
        ...     def forward(self, x):
        ...         return self.out(self.hidden(x).relu())
        >>> model = Model()
        >>> tuple(model(pygrad.zeros(5, 4)).shape)
        (5, 2)
        >>> print(model)
        Model(
          (hidden): Linear(in_features=4, out_features=8, bias=True)
          (out): Linear(in_features=8, out_features=2, bias=True)
        )
    """

    _backward_pre_hooks: HookTable
    _backward_hooks: HookTable
    _is_full_backward_hook: bool | None
    _forward_hooks: HookTable
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: HookTable
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    dump_patches: bool = False
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            name = type(self).__name__
            if kwargs:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Directly into the dict: the tables must exist before __setattr__ can use them.
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for table in _HOOK_TABLES:
            own[table] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; its result replaces the arguments.

        Args:
            prepend: run before the existing hooks.
            with_kwargs: call ``hook(module, args, kwargs)``; it may return new values of both.

        Example:
            >>> import pygrad
            >>> relu = pygrad.nn.ReLU()
            >>> handle = relu.register_forward_pre_hook(lambda module, args: (-args[0],))
            >>> relu(pygrad.tensor([-2.0, 3.0])).tolist()
            [2.0, 0.0]
            >>> handle.remove()
        """
        notes = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return _register(self._forward_pre_hooks, hook, prepend, notes)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; its result replaces the output.

        Args:
            prepend: run before the existing hooks.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: run even if forward, or another hook, raises.
        """
        notes = (
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
        )
        return _register(self._forward_hooks, hook, prepend, notes)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the outputs are known.

        A returned tuple replaces them.
        """
        return _register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when backward has passed the module.

        A returned tuple replaces the gradients of the inputs; ``None`` in it means zero.
        """
        self._require_kind_of_backward_hook(full=True)
        return _register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of :meth:`register_full_backward_hook`: a hook on the last graph node."""
        self._require_kind_of_backward_hook(full=False)
        return _register(self._backward_hooks, hook)

    def _require_kind_of_backward_hook(self, *, full: bool) -> None:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def _get_backward_hooks(
        self,
    ) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """The full backward hooks of this call, and the non-full ones."""
        kinds: dict[bool | None, list[Callable[..., Any]]] = {True: [], False: [], None: []}
        kinds[_global_is_full_backward_hook].extend(_global_backward_hooks.values())
        kinds[self._is_full_backward_hook].extend(self._backward_hooks.values())
        return kinds[True], kinds[False]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            if len(args) == 1 and not kwargs:
                return self.forward(args[0])  # the most frequent case, which this makes faster
            return self.forward(*args, **kwargs)
        return _HookedCall(self, args, kwargs).run()

    _call_impl = _wrapped_call_impl = __call__
    """PyTorch's internal entry points; an overridden `__call__` is bypassed."""

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        return self.forward(*input, **kwargs)

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _replicate_for_data_parallel(self) -> Module:
        """A copy for another device, without parameters and with its own dicts."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Checks the arguments of `pygrad.compile`. The module stays as it is, since pygrad has no
        compiler.

        Raises:
            RuntimeError: an unknown mode, or both a mode and options.

        Example:
            >>> from pygrad import nn
            >>> nn.Linear(2, 1).compile(mode="reduce-overhead")
        """
        compile(self.forward, *args, **kwargs)

    def _as_compiled(self) -> Module:
        """The result of `pygrad.compile` for this module; see `_compiled.py`."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Extra information for the printed form of this module; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = "".join(f"\n  {line}" for line in extra_lines + child_lines)
        return f"{self._get_name()}({lines}\n)" if lines else f"{self._get_name()}()"

    _derived: ClassVar[tuple[str, ...]] = ()
    """Attributes that are computed from others here, but that PyTorch's files contain."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {name: getattr(self, name) for name in self._derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for name in self._derived:
            own.pop(name, None)
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)
        for table in _HOOK_TABLES:
            own.setdefault(table, OrderedDict())


# `typing.get_type_hints` resolves names in the file of each class or, for an instance, in the
# namespace of the caller. Annotations are resolved here, so that it succeeds everywhere.
ModuleAttributes.__annotations__["_modules"] = dict[str, Module | None]
_hints: Final = get_type_hints(Module)
for _kind in (ModuleAttributes, Module):
    _kind.__annotations__ = {name: _hints[name] for name in _kind.__annotations__}


class _HookedCall:
    """One call of a module with hooks."""

    def __init__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.ran: set[int] = set()

    def run(self) -> Any:
        try:
            self._run_pre_hooks()
            return self._run_forward()
        except Exception:
            self._run_always_called()
            raise

    def _run_pre_hooks(self) -> None:
        module = self.module
        hooks = (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items())
        for hook_id, hook in hooks:
            if hook_id in module._forward_pre_hooks_with_kwargs:
                both = hook(module, self.args, self.kwargs)
                if both is None:
                    continue
                if not (isinstance(both, tuple) and len(both) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, "
                        f"new_kwargs), but got {both}."
                    )
                self.args, self.kwargs = both
            else:
                args = hook(module, self.args)
                if args is not None:
                    self.args = args if isinstance(args, tuple) else (args,)

    def _run_forward(self) -> Any:
        module = self.module
        full_hooks, old_hooks = module._get_backward_hooks()
        pre_hooks = module._get_backward_pre_hooks()
        gates = None
        if full_hooks or pre_hooks:
            gates = BackwardHook(module, full_hooks, pre_hooks)
            self.args = gates.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        for hook_id, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
            self.ran.add(hook_id)
            self._run_forward_hook(hook_id, hook)
        if gates is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a "
                    f"tuple of Tensors but received {type(self.result)}",
                    stacklevel=5,
                )
            self.result = gates.setup_output_hook(self.result)
        if old_hooks:
            _hook_last_node(module, self.args, self.result, old_hooks)
        return self.result

    def _run_forward_hook(self, hook_id: int, hook: Callable[..., Any]) -> None:
        module = self.module
        if (
            hook_id in module._forward_hooks_with_kwargs
            or hook_id in _global_forward_hooks_with_kwargs
        ):
            replacement = hook(module, self.args, self.kwargs, self.result)
        else:
            replacement = hook(module, self.args, self.result)
        if replacement is not None:
            self.result = replacement

    def _run_always_called(self) -> None:
        """After an exception, run the ``always_call`` hooks; turn their errors into warnings."""
        module = self.module
        due = [
            ("global module", _global_forward_hooks, _global_forward_hooks_always_called),
            ("module", module._forward_hooks, module._forward_hooks_always_called),
        ]
        for kind, hooks, always in due:
            for hook_id, hook in hooks.items():
                if hook_id not in always or hook_id in self.ran:
                    continue
                try:
                    self._run_forward_hook(hook_id, hook)
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception "
                        f"that was silenced as another error was raised in forward: {error}",
                        stacklevel=4,
                    )


def _hook_last_node(module: Any, args: Any, result: Any, hooks: list[Callable[..., Any]]) -> None:
    """Register non-full backward hooks on the graph node of the first tensor of a result."""
    first = result
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next(value for value in first.values() if isinstance(value, Tensor))
        else:
            first = first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_WrappedHook(hook, module))
    why = _shortcoming(args, result, node)
    if why:
        warnings.warn(f"Using {why}", FutureWarning, stacklevel=5)


_GONE = "is deprecated and will be removed in future versions. This hook will be missing some"
_INSTEAD = " Please use register_full_backward_hook to get the documented behavior."


def _shortcoming(args: Any, result: Any, node: Any) -> str | None:
    """PyTorch's warning if a hook on the last node misses some gradients; else ``None``."""
    for value, does, what in (
        (result, "return", "grad_output"),
        (args, "take as input", "grad_input"),
    ):
        if isinstance(value, Tensor):
            continue
        if not (isinstance(value, tuple) and all(isinstance(v, Tensor) for v in value)):
            return (
                f"non-full backward hooks on a Module that does not {does} a single Tensor or a "
                f"tuple of Tensors {_GONE} of the {what}.{_INSTEAD}"
            )
    outputs = (result,) if isinstance(result, Tensor) else result
    nodes = {y.grad_fn for y in outputs if y.grad_fn is not None}
    if not nodes or (len(nodes) == 1 and node not in nodes):
        return (
            "a non-full backward hook when outputs are nested in python data structure "
            f"{_GONE} grad_output."
        )
    if len(nodes) > 1:
        return (
            "a non-full backward hook when outputs are generated by different autograd Nodes "
            f"{_GONE} grad_output.{_INSTEAD}"
        )
    before = {x.grad_fn for x in args if x.grad_fn is not None}
    if before != {each for each, _ in node.next_functions}:
        return (
            "a non-full backward hook when the forward contains multiple autograd Nodes "
            f"{_GONE} grad_input.{_INSTEAD}"
        )
    return None
