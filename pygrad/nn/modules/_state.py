"""State dicts of modules: the state as a flat dict of tensors.

Keys are the dotted names of parameters and persistent buffers. The dict has an attribute
``_metadata`` with the version of each module class, so that a class can load the state of an older
version. Loading reports all differences at once, in PyTorch's words.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ref

from ... import utils
from ..._boundary.arguments import refuse_foreign
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy
from . import _conversions
from ._tree import ModuleTree

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeyLists(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_IncompatibleKeyLists):
    """The result of ``load_state_dict``: missing and unexpected keys."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        lists = f"missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r}"
        return f"_IncompatibleKeys({lists})"

    __str__ = __repr__


class _WrappedHook:
    """A hook with a weak reference to the module that it gets as its first argument, if any."""

    def __init__(self, hook: Callable[..., Any], module: object = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if self.with_module:
            self.module = ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return state | {"module": self.module()} if self.with_module else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["with_module"] and state["module"] is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], state.get("module"))  # type: ignore[misc]


class ModuleState(ModuleTree):
    """The base class of `Module` that saves and restores state."""

    _version: int = 1
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def get_extra_state(self) -> Any:
        """Override, with :meth:`set_extra_state`, to store other objects than tensors in the state
        dict.
        """
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Override to restore the result of :meth:`get_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    # --- saving ---

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """The parameters and persistent buffers of this module and its submodules, by dotted name.

        Args:
            destination: a mapping to fill; by default a new ordered one.
            prefix: the start of each key.
            keep_vars: store the tensors themselves, instead of detached ones that share storage.

        Returns:
            The mapping, with ``_metadata`` if it is a new one.

        Example:
            >>> from pygrad import nn
            >>> {name: tuple(t.shape) for name, t in nn.Linear(3, 2).state_dict().items()}
            {'weight': (2, 3), 'bias': (2,)}
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for pre_hook in self._state_dict_pre_hooks.values():
            pre_hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        return self._run_state_dict_hooks(destination, prefix, local_metadata)

    def _run_state_dict_hooks(
        self, destination: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> Any:
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write this module's own entries; override to save in another form."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not ModuleState.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)``; it may return a new dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after saving; its result is
        ignored.
        """
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before saving."""
        return _add(self._state_dict_pre_hooks, hook)

    # --- loading ---

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the tensors of a state dict to the parameters and buffers of the same names.

        Args:
            state_dict: a result of :meth:`state_dict`, possibly read from a file.
            strict: raise if the keys differ from those of this module.
            assign: assign the given tensors instead of copying their values.

        Returns:
            The missing and the unexpected keys.

        Raises:
            TypeError: ``state_dict`` is no mapping.
            RuntimeError: keys (if ``strict``) or shapes do not match; the message lists all
                differences. Matching tensors have been copied.

        Example:
            >>> from pygrad import nn
            >>> nn.Linear(2, 2).load_state_dict(nn.Linear(2, 2).state_dict())
            <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        report = _Report([], [], [])
        entries: Any = OrderedDict(state_dict)
        metadata = getattr(state_dict, "_metadata", None)
        if metadata is not None:
            entries._metadata = metadata
        self._load_tree(entries, metadata, "", assign, report)
        errors = report.errors
        if strict:
            errors = [
                *_key_error("Missing", report.missing),
                *_key_error("Unexpected", report.unexpected),
                *errors,
            ]
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return _IncompatibleKeys(report.missing, report.unexpected)

    def _load_tree(
        self,
        entries: dict[str, Any],
        metadata: Mapping[str, dict[str, Any]] | None,
        prefix: str,
        assign: bool,
        report: _Report,
    ) -> None:
        local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        # Always strict here: the caller decides how to treat the lists.
        self._load_from_state_dict(
            entries, prefix, local_metadata, True, report.missing, report.unexpected, report.errors
        )
        for name, child in self._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                own = {key: value for key, value in entries.items() if key.startswith(below)}
                child._load_tree(own, metadata, below, assign, report)
        keys = _IncompatibleKeys(report.missing, report.unexpected)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                    "expected to return new values, if incompatible_keys need to be modified, "
                    "it should be done inplace."
                )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Read this module's own entries; override to load an older form.

        Differences are appended to the three lists, never raised.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            if prefix + name in state_dict:
                value = state_dict[prefix + name]
                error = self._load_entry(name, prefix + name, target, value, assign)
                if error is not None:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(prefix + name)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        has_extra = type(self).set_extra_state is not ModuleState.set_extra_state
        if has_extra and extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif has_extra and strict:
            missing_keys.append(extra_key)
        if strict:
            if not has_extra and extra_key in state_dict:
                unexpected_keys.append(extra_key)
            unexpected_keys.extend(self._unknown_keys(state_dict, prefix, own))

    def _unknown_keys(self, state_dict: Any, prefix: str, own: Any) -> Iterator[str]:
        """The keys below the prefix that belong neither to this module nor to a child."""
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + _EXTRA_STATE_KEY_SUFFIX:
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else own):
                    yield key

    def _own_state(self) -> dict[str, Tensor]:
        """This module's own parameters and persistent buffers, without those that are ``None``."""
        own: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            if parameter is not None:
                own[name] = parameter
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                own[name] = buffer
        return own

    def _load_entry(
        self, name: str, key: str, target: Tensor, value: Any, assign: bool
    ) -> str | None:
        """Load one tensor; return a description of the error, or ``None``."""
        if not isinstance(value, Tensor):
            refuse_foreign(value)
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(value)}"
            )
        if is_lazy(target) and is_lazy(value):
            return None  # neither has elements
        # Scalars were saved with one dimension before PyTorch had tensors without any.
        if tuple(value.shape) == (1,) and target.dim() == 0:
            value = value[0]
        if not is_lazy(target) and value.shape != target.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from "
                f"checkpoint, the shape in current model is {target.shape}."
            )
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=2,
            )
        swaps = _conversions.get_swap_module_params_on_conversion()
        try:
            with pygrad.no_grad():
                if swaps:
                    self._swap_entry(target, value, assign)
                elif assign:
                    self._assign_entry(name, target, value)
                else:
                    target.copy_(value)
        except Exception as error:
            action = "swapping" if swaps else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{target.size()} and whose dimensions in the checkpoint are {value.size()}, "
                f"an exception occurred : {error.args}."
            )
        return None

    def _swap_entry(self, target: Tensor, value: Tensor, assign: bool) -> None:
        made = target.module_load(value, assign=assign)
        if made is target or made is value:
            raise RuntimeError(
                "module_load returned one of self or other, please .detach() the result if "
                "returning one of the inputs in module_load"
            )
        if isinstance(target, Parameter):
            if not isinstance(made, Parameter):
                made = Parameter(made, requires_grad=target.requires_grad)
            else:
                made.requires_grad_(target.requires_grad)
        utils.swap_tensors(target, made)

    def _assign_entry(self, name: str, target: Tensor, value: Tensor) -> None:
        if isinstance(target, Parameter):
            if isinstance(value, Parameter):
                value.requires_grad_(target.requires_grad)
            else:
                value = Parameter(value, requires_grad=target.requires_grad)
        setattr(self, name, value)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Call ``hook`` with the arguments of :meth:`_load_from_state_dict` before loading."""
        bound = _WrappedHook(hook, self) if with_module else hook
        return _add(self._load_state_dict_pre_hooks, bound)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the two lists."""
        return _add(self._load_state_dict_post_hooks, hook)


class _Report(NamedTuple):
    missing: list[str]
    unexpected: list[str]
    errors: list[str]


def _key_error(kind: str, keys: list[str]) -> list[str]:
    names = ", ".join(f'"{key}"' for key in keys)
    return [f"{kind} key(s) in state_dict: {names}. "] if keys else []


def _add(table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle
