"""``Optimizer``, the base class of optimizers: parameter groups, state, hooks, state dicts.

``state`` maps a parameter to its dict; ``param_groups`` is a list of dicts, each with its
``params`` and its options. A state dict names parameters by their position over all groups, as
PyTorch's does, so state dicts can be exchanged.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from .._boundary.arguments import refuse_foreign
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..autograd import profiler
from ..nn.modules._tree import zero_grads_of
from ..nn.modules.utils import typename
from ..nn.parameter import Parameter
from ..utils._foreach_utils import Indices as Indices
from ..utils._foreach_utils import (
    TensorListList,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)
from ..utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

Params: TypeAlias = (
    Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]] | Iterable[Any]
)
Group: TypeAlias = dict[str, Any]
Closure: TypeAlias = Callable[[], Any]
ParamsT: TypeAlias = Params
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Any, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[Any, Any] | None, Tensor]
GlobalOptimizerPreHook: TypeAlias = Callable[..., Any]
GlobalOptimizerPostHook: TypeAlias = Callable[..., None]
HookTable: TypeAlias = OrderedDict[int, Callable[..., Any]]

_F = TypeVar("_F", bound=Callable[..., Any])

_global_optimizer_pre_hooks: HookTable = OrderedDict()
_global_optimizer_post_hooks: HookTable = OrderedDict()

_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class _RequiredParameter:
    """The default of a required option."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(table: HookTable, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before the step of every optimizer."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after the step of every optimizer."""
    return _register(_global_optimizer_post_hooks, hook)


def _with_hooks(step: _F) -> _F:
    """Wraps ``step`` so that it runs the hooks and is a range of a profile. Without hooks or a
    profile, it costs one test.
    """

    @functools.wraps(step)
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks
            or _global_optimizer_post_hooks
            or profiler._running is not None
        ):
            return step(self, *args, **kwargs) if args or kwargs else step(self)
        with profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
            return run(self, args, kwargs)

    def run(self: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        all_args: Any = (self, *args)
        pre_hooks = (_global_optimizer_pre_hooks, self._optimizer_step_pre_hooks)
        for hook in chain.from_iterable(table.values() for table in pre_hooks):
            result = hook(self, all_args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            all_args, kwargs = result
        out = step(*all_args, **kwargs)
        post_hooks = (self._optimizer_step_post_hooks, _global_optimizer_post_hooks)
        for hook in chain.from_iterable(table.values() for table in post_hooks):
            hook(self, all_args, kwargs)
        return out

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


# ------------------------------------------------------------------ helpers for other libraries

_foreach_supported_types: list[type] = [Tensor, Parameter]


def _use_grad_for_differentiable(func: _F) -> _F:
    """Wraps ``step`` to record gradients only if the default ``differentiable`` is set."""

    @functools.wraps(func)
    def stepping(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with pygrad.set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return stepping  # type: ignore[return-value]


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x  # pygrad never compiles


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[_F], _F]:
    """A decorator that changes nothing, since there is no compiler to disable."""
    return lambda func: func


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """The default implementation for these parameters: (fused, foreach)."""
    if differentiable:
        return False, False

    def all_supported(devices: list[str], floating: bool) -> bool:
        return all(
            p is None
            or (
                type(p) in _foreach_supported_types
                and p.device.type in devices
                and (not floating or p.is_floating_point())
            )
            for p in params
        )

    fused = use_fused and all_supported(_get_fused_kernels_supported_devices(), True)
    return fused, not fused and all_supported(_get_foreach_kernels_supported_devices(), False)


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.device.type in devices and p.is_floating_point()):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported "
            f"devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex tensors by views as pairs of real numbers, in all lists."""
    for place, parameter in enumerate(params):
        if parameter.is_complex():
            for each in (params, *state_and_grads):
                each[place] = pygrad.view_as_real(each[place])


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    double = not is_fused and pygrad.get_default_dtype() == pygrad.float64
    return pygrad.float64 if double else pygrad.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


_params_doc = "params: parameters, or groups of them."
_foreach_doc = "foreach: accepted; there is one implementation."
_fused_doc = "fused: accepted; there is one implementation."
_capturable_doc = "capturable: only ``False``."
_differentiable_doc = "differentiable: only ``False``."
_maximize_doc = "maximize: ascend instead."


class Optimizer:
    """Base class of optimizers; subclasses define ``step``.

    Args:
        params: tensors, pairs of a name and a tensor, or dicts, one for each group, with ``params``
            and the options that differ from the defaults.
        defaults: the default options of groups.

    Raises:
        TypeError: ``params`` is a tensor or a set, or contains something other than tensors.
        ValueError: there are no parameters, one is not a leaf, or one is in two groups.

    Example:
        >>> import pygrad
        >>> class Descent(pygrad.optim.Optimizer):
        ...     def step(self, closure=None):
        ...         with pygrad.no_grad():
        ...             for group in self.param_groups:
        ...                 for p in group["params"]:
        ...                     p.sub_(p.grad, alpha=group["lr"])
        >>> w = pygrad.ones(2, requires_grad=True)
        >>> optimizer = Descent([w], {"lr": 0.5})
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5, 0.5]
    """

    _optimizer_step_pre_hooks: HookTable
    _optimizer_step_post_hooks: HookTable
    _optimizer_state_dict_pre_hooks: HookTable
    _optimizer_state_dict_post_hooks: HookTable
    _optimizer_load_state_dict_pre_hooks: HookTable
    _optimizer_load_state_dict_post_hooks: HookTable

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {typename(params)}"
            )
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    OptimizerPreHook: TypeAlias = Callable[..., Any]
    OptimizerPostHook: TypeAlias = Callable[..., None]

    def _make_hook_tables(self) -> None:
        """Make missing tables of hooks, and make this class's ``step`` run hooks."""
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Make this class's ``step`` run hooks."""
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = []
        for index, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {index}\n")
            lines.extend(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return f"{type(self).__name__} ({''.join(lines)})"

    @staticmethod
    def profile_hook_step(func: _F) -> _F:
        """Wraps ``step`` so that it runs hooks and is a range of a profile."""
        return _with_hooks(func)

    def _cuda_graph_capture_health_check(self) -> None:
        """Does nothing, since there are no GPU graphs to capture."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def _optimizer_step_code(self) -> None:
        """Does nothing. Debuggers look for this method in PyTorch."""

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: TensorListList, with_indices: bool = False
    ) -> Any:
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor,
        value: Tensor,
        param_id: int,
        param_groups: list[dict[Any, Any]],
        key: Any = None,
    ) -> Tensor:
        """Casts a loaded state value to its dtype for the parameter."""
        return _cast_state(param, value, key)  # type: ignore[no-any-return]

    # --- hooks ---

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before step; it may return new arguments."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before :meth:`state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` afterwards; its result replaces the dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --- state dicts ---

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with parameters named by their position.

        Returns:
            ``{"state": {position: {...}}, "param_groups": [{..., "params": [position, ...]}]}``;
            tensors are not copied.
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        positions: dict[int, int] = {}
        start = 0
        groups = []
        for group in self.param_groups:
            for position, parameter in enumerate(group["params"], start):
                positions.setdefault(id(parameter), position)
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [positions[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            positions[id(key)] if isinstance(key, Tensor) else key: value
            for key, value in self.state.items()
        }
        state_dict: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replacement = post_hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state and the options of a state dict; parameters stay unchanged.

        State tensors get the dtype of their parameter, except ``step``, which is always float32.

        Raises:
            ValueError: the groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replacement = pre_hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size "
                    "of optimizer's group"
                )
        parameters: dict[Any, Tensor] = {}
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            parameters.update(zip(saved["params"], group["params"], strict=True))
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                state[parameters[key]] = _cast_state(parameters[key], value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    # --- training ---

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradient of every parameter, or fill it with zeros."""
        if profiler._running is not None:
            name = type(self).__name__
            with profiler.record_function(f"Optimizer.zero_grad#{name}.zero_grad"):
                self._zero_grad(set_to_none)
        else:
            self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            zero_grads_of(group["params"], set_to_none)

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters; ``closure``, if given, computes the loss and its gradients."""
        raise NotImplementedError

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, for example layers that are unfrozen during training.

        Args:
            param_group: a dict with ``params`` and the options that differ from the defaults.

        Raises:
            TypeError, ValueError: see the constructor.

        Example:
            >>> import pygrad
            >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=0.1)
            >>> optimizer.add_param_group({"params": pygrad.ones(2, requires_grad=True), "lr": 1.0})
            >>> [group["lr"] for group in optimizer.param_groups]
            [0.1, 1.0]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _unpack_params(param_group)
        for parameter in param_group["params"]:
            if not isinstance(parameter, Tensor):
                refuse_foreign(parameter)
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + typename(parameter)
                )
            if self.defaults.get("differentiable"):
                continue
            if not (parameter.is_leaf or parameter.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_against_other_groups(param_group)
        self.param_groups.append(param_group)

    def _check_against_other_groups(self, param_group: Group) -> None:
        params = set(param_group["params"])
        if len(params) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, "
                "this will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {'with names' if named else 'without names'} to the optimizer"
                )
        if not params.isdisjoint(p for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")


def _unpack_params(param_group: Group) -> None:
    """Make ``params`` a list of tensors, and ``param_names`` a list of names if there are any."""
    params = param_group["params"]
    if isinstance(params, Tensor):
        params = [params]
    elif isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    params = list(params)
    names = [entry[0] for entry in params if isinstance(entry, tuple)]
    param_group["params"] = [e[1] if isinstance(e, tuple) else e for e in params]
    if not names:
        return
    if len(names) != len(params):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    param_group["param_names"] = names


def _cast_state(parameter: Tensor, value: Any, key: Any = None) -> Any:
    """Casts the tensors in a loaded state value to their dtype for this parameter."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=pygrad.float32)
        return value.to(dtype=parameter.dtype) if parameter.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _cast_state(parameter, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return type(value)(_cast_state(parameter, v) for v in value)  # type: ignore[call-arg]
    return value
