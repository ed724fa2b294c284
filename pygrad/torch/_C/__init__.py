"""Names of PyTorch's C++ part that programs use: the engine's services, each by its row's name, and
queries about the running backward.
"""

from __future__ import annotations

import enum
from types import MethodType
from types import SimpleNamespace as _Namespace
from typing import TYPE_CHECKING, Any

from ..._boundary import callbacks as _callbacks
from ..._boundary import header as _header
from ..._boundary import overriding as _overriding
from ..._boundary.modes import GRAD, ONE_THREAD, switch
from ..._boundary.overriding import DisableTorchFunction as DisableTorchFunction
from ..._boundary.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ..._dispatch.keys import DispatchKeySet as DispatchKeySet
from ..._dispatch.keys import ExcludeDispatchKeyGuard as ExcludeDispatchKeyGuard
from ..._dispatch.keys import _ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from ..._dispatch.keys import _IncludeDispatchKeyGuard as _IncludeDispatchKeyGuard
from ..._ground.dtypes import Size, device, dtype, finfo, iinfo, layout, memory_format
from ..._ground.errors import LinAlgError
from ..._ground.errors import OutOfMemoryError as _OutOfMemoryError
from ..._ground.package import submodule
from ..._table import functions
from ..._table.builtins import builtin
from ..._tensor.parse_to import parse_to
from ..._tensor.subclassing import answers_for_ops
from ..._tensor.tensor import Tensor
from ..._transforms.vmap import levels as _levels
from ...autograd import grad_mode as _grad_mode
from ...autograd import graph
from ...autograd.grad_mode import _set_view_replay_enabled as _set_view_replay_enabled
from ...autograd.grad_mode import is_multithreading_enabled as _is_multithreading_enabled
from ...autograd.variable import _EngineBase as _EngineBase
from . import _autograd as _autograd
from . import _functions as _functions
from . import _functorch as _functorch

globals().update(functions.C)

TensorBase = _TensorBase = Tensor
_LinAlgError, OutOfMemoryError = LinAlgError, _OutOfMemoryError
_ImperativeEngine = _EngineBase
has_lapack = True

_SPACES = functions.SPACES
_ENGINE = functions.C
is_grad_enabled = _SPACES["torch"]["is_grad_enabled"]
is_inference_mode_enabled = _SPACES["torch"]["is_inference_mode_enabled"]
is_anomaly_enabled = _SPACES["torch"]["is_anomaly_enabled"]
is_anomaly_check_nan_enabled = _SPACES["torch"]["is_anomaly_check_nan_enabled"]
set_anomaly_enabled = _SPACES["torch"]["set_anomaly_enabled"]

__all__ = [
    "Size",
    "TensorBase",
    "device",
    "dtype",
    "finfo",
    "iinfo",
    "layout",
    "memory_format",
]


class _EnableTorchFunction:
    """While an instance lives, types and modes are asked, even where they are switched off."""

    def __init__(self) -> None:
        self._before, _overriding.state.off = _overriding.state.off, _overriding.ENABLED

    def __del__(self) -> None:
        _overriding.state.off = self._before


@builtin
def _get_default_device() -> str:
    """The default device of tensors: always "cpu", as in PyTorch.

    Example:
        >>> import pygrad
        >>> pygrad._C._get_default_device()
        'cpu'
    """
    return "cpu"


@builtin
def _is_alias_of(arg0: Any, arg1: Any) -> bool:
    """Whether two objects are tensors with the same storage.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(3)
        >>> pygrad._C._is_alias_of(x, x[1:]), pygrad._C._is_alias_of(x, x.clone())
        (True, False)
    """
    if not (isinstance(arg0, Tensor) and isinstance(arg1, Tensor)):
        return False
    return bool(arg0.untyped_storage()._cdata == arg1.untyped_storage()._cdata)


@builtin
def _dispatch_isTensorSubclassLike(tensor: Tensor) -> bool:
    """Whether another handler answers ops on a tensor: its class or a transform."""
    return answers_for_ops(tensor) or _header.is_batched(tensor._h)


_WIDE = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
_nn = _Namespace(
    **{
        name: found if isinstance(found, MethodType) else builtin(found)
        for name, found in _SPACES["nn"].items()
    }
    | {name: _ENGINE[name] for name in _WIDE}
    | {"_parse_to": parse_to}
)
_special = _Namespace(**{f"special_{name}": found for name, found in _SPACES["special"].items()})
_linalg = _Namespace(**{f"linalg_{name}": found for name, found in _SPACES["linalg"].items()})
_VariableFunctions = _Namespace(**_SPACES["torch"])


class _Static(type):
    def __getattr__(cls, name: str) -> Any:
        try:
            return _SPACES["torch"][name]
        except KeyError:
            raise AttributeError(
                f"type object {cls.__name__!r} has no attribute {name!r}"
            ) from None


class _VariableFunctionsClass(metaclass=_Static):
    """The class in which PyTorch's pickles find functions of `torch`, as its static methods."""


# ------------------------------------------------------------------ modes


@builtin
def _set_grad_enabled(enabled: bool) -> None:
    """Turns recording on or off, as `pygrad.set_grad_enabled` does."""
    switch(GRAD, enabled)


@builtin
def _set_multithreading_enabled(enabled: bool) -> None:
    switch(ONE_THREAD, not enabled)


_is_view_replay_enabled = _grad_mode.is_view_replay_enabled


@builtin
def _log_api_usage_once(event: str) -> None:
    """Does nothing, as PyTorch does without a logger."""


@builtin
def _get_tracing_state() -> None:
    """None: nothing is ever traced."""


@builtin
def _are_functorch_transforms_active() -> bool:
    """Whether this is inside a transform of `pygrad.func`.

    Example:
        >>> import pygrad
        >>> pygrad._C._are_functorch_transforms_active()
        False
    """
    return bool(_levels.stack or _levels.transforms)


# ------------------------------------------------------------------ __torch_function__

_disabled_torch_function_impl = _overriding.disabled


class _TorchFunctionState(enum.Enum):
    """How much of ``__torch_function__`` a thread has switched off."""

    ENABLED = _overriding.ENABLED
    SUBCLASSES_DISABLED = _overriding.SUBCLASSES_OFF
    ALL_DISABLED = _overriding.ALL_OFF


@builtin
def _get_torch_function_state() -> _TorchFunctionState:
    return _TorchFunctionState(_overriding.state.off)


@builtin
def _set_torch_function_state(state: _TorchFunctionState) -> None:
    _overriding.state.off = state.value


@builtin
def _is_torch_function_enabled() -> bool:
    """Whether types are asked."""
    return _overriding.state.off == _overriding.ENABLED


@builtin
def _is_torch_function_all_disabled() -> bool:
    return _overriding.state.off == _overriding.ALL_OFF


@builtin
def _is_torch_function_mode_enabled() -> bool:
    """Whether there is a mode to ask."""
    return _overriding.has_modes()


@builtin
def _push_on_torch_function_stack(cls: Any) -> None:
    _overriding.push_mode(cls)


@builtin
def _pop_torch_function_stack() -> Any:
    return _overriding.pop_mode()


@builtin
def _len_torch_function_stack() -> int:
    return len(_overriding.state.modes)


@builtin
def _get_function_stack_at(idx: int) -> Any:
    modes = _overriding.state.modes
    if not 0 <= idx < len(modes):
        raise RuntimeError("Tried to get stack at idx that's too big")
    return modes[idx]


# ------------------------------------------------------------------ the backward that is running


@builtin
def _current_graph_task_id() -> int:
    """The number of the running backward, -1 outside a backward.

    Example:
        >>> import pygrad
        >>> pygrad._C._current_graph_task_id()
        -1
    """
    return int(_ENGINE["_task_id"]())


@builtin
def _current_autograd_node() -> graph.Node | None:
    """The node that is running, or None.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> y = x * 2
        >>> handle = y.register_hook(lambda g: print(pygrad._C._current_autograd_node().name()))
        >>> y.backward()
        MulBackward0
    """
    return graph.running_node()


@builtin
def _current_graph_task_execution_order() -> list[graph.Node]:
    """All nodes of the running backward, in the order in which they run.

    Raises:
        RuntimeError: outside a backward; or more threads are allowed.
    """
    addresses = _ENGINE["_task_order"]()
    nodes = [node for node in map(graph._wrap, addresses) if node is not None]
    if _is_multithreading_enabled():
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed "
            "with multithreading disabled, e.g. by running:\n\n"
            ">>> with torch.autograd.set_multithreading_enabled(False):\n"
            "...     torch.autograd.grad(...)\n"
        )
    return nodes


@builtin
def _will_engine_execute_node(node: Any) -> bool:
    """Whether the running backward will run a node.

    Raises:
        RuntimeError: outside a backward; no node; or a leaf of a running `grad`.
    """
    if not isinstance(node, graph.Node):
        raise RuntimeError(
            f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}"
        )
    return bool(_ENGINE["_will_run"](node._address))


# ------------------------------------------------------------------ tensors of the engine


class _WeakTensorRef:
    """A weak reference to an engine's tensor: it expires with the tensor, which may live without
    Python objects.

    Args:
        tensor: the tensor.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2)
        >>> known, y = pygrad._C._WeakTensorRef(x), x.view(1, 2)
        >>> del x  # the view has it as its base
        >>> known.expired()
        False
        >>> del y
        >>> known.expired()
        True
    """

    __slots__ = ("_number",)

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected a Tensor, but got {type(tensor).__name__}")
        self._number = _callbacks.note(tensor)

    def expired(self) -> bool:
        """Whether the tensor is freed."""
        return not _callbacks.is_noted(self._number)


@builtin
def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Sets whether marks of cached tensors count, including earlier marks."""
    _ENGINE["_set_caching"](enabled)


@builtin
def _add_cached_tensor(t: Tensor) -> None:
    """Marks a tensor that a cache keeps for later calls: as a gradient, backward may keep its
    memory as ``.grad`` though the cache has it too.

    Raises:
        RuntimeError: that is not enabled.
    """
    _ENGINE["_set_cached"](t, True)


@builtin
def _remove_cached_tensor(t: Tensor) -> None:
    """Removes the mark."""
    _ENGINE["_set_cached"](t, False)


@builtin
def _is_cached_tensor(t: Tensor) -> bool:
    """Whether the tensor is marked as cached and marks count."""
    return bool(_ENGINE["_is_cached"](t))


_LATE = {
    "FunctionSchema": ("_table.function_schema", "FunctionSchema"),
    "parse_schema": ("_table.function_schema", "parse_schema"),
    "Argument": ("_table.function_schema", "Argument"),
    "TensorType": ("_table.function_schema", "TensorType"),
    "IntType": ("_table.function_schema", "IntType"),
    "ListType": ("_table.function_schema", "ListType"),
    "OptionalType": ("_table.function_schema", "OptionalType"),
    "_disabled_torch_dispatch_impl": ("_dispatch.handlers", "disabled_dispatch"),
    "_DisableTorchDispatch": ("_dispatch.handlers", "disabled"),
    "_AutoDispatchBelowAutograd": ("library._calls", "below_autograd"),
    "_SafeKernelFunction": ("library._get_kernel", "SafeKernelFunction"),
    "_dispatch_has_kernel": ("library._registry", "exists"),
    "_dispatch_has_kernel_for_dispatch_key": ("library._registry", "has_kernel"),
    "_dispatch_has_computed_kernel_for_dispatch_key": ("library._registry", "computes"),
    "_get_autograd_fallback_mode": ("library._calls", "fallback_mode"),
    "_set_autograd_fallback_mode": ("library._calls", "set_fallback_mode"),
    "_jit_resolve_packet": ("library._registry", "resolve_packet"),
    "_len_torch_dispatch_stack": ("utils._python_dispatch", "_len_torch_dispatch_stack"),
    "_get_dispatch_stack_at": ("utils._python_dispatch", "_get_dispatch_stack_at"),
    "_push_on_torch_dispatch_stack": ("_dispatch.handlers", "push_mode"),
    "_pop_torch_dispatch_stack": ("utils._python_dispatch", "_pop_mode"),
    "PyTorchFileReader": ("serialization._file_reader", "PyTorchFileReader"),
}
"""Names that few programs use: module and name there."""


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        module, of = _LATE[name]
        found = globals()[name] = getattr(submodule(module), of)
        return found
