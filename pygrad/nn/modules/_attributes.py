"""The attributes of a module: parameters, buffers and submodules.

Each kind has an ordered table. Assigning a parameter, buffer or module to an attribute enters it
into the table of its kind and removes the name from the other tables. Calls, their hooks and state
dicts are in other files.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..._boundary.arguments import refuse_foreign
from ..._tensor.tensor import Tensor
from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter
from .utils import typename

if TYPE_CHECKING:
    from .module import Module

_T = TypeVar("_T")

_global_buffer_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def _add_hook(table: OrderedDict[int, Callable[..., Any]], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` whenever any module registers a buffer."""
    return _add_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` whenever any module registers a submodule."""
    return _add_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` whenever any module registers a parameter."""
    return _add_hook(_global_parameter_registration_hooks, hook)


def _pass_to_hooks(
    hooks: OrderedDict[int, Callable[..., Any]], owner: object, name: str, value: _T
) -> _T:
    """Pass the value to each registration hook; a result other than ``None`` replaces it."""
    for hook in hooks.values():
        replacement = hook(owner, name, value)
        if replacement is not None:
            value = replacement
    return value


class ModuleAttributes:
    """The base class of `Module` that stores attributes by name."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]

    def _check_new_name(self, kind: str, name: object, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that is saved (if ``persistent``) and converted, but not trained.

        Raises:
            KeyError: the name is empty, has a dot, or is already an attribute.
            TypeError: ``tensor`` is neither a tensor nor ``None``.

        Example:
            >>> import pygrad
            >>> module = pygrad.nn.Module()
            >>> module.register_buffer("count", pygrad.zeros(()))
            >>> list(module.state_dict())
            ['count']
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_new_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            refuse_foreign(tensor)
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _pass_to_hooks(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; ``None`` records that the module has none of this name.

        Raises:
            KeyError: the name is empty, has a dot, or is already an attribute.
            TypeError: ``param`` is neither a ``Parameter`` nor ``None``.
            ValueError: ``param`` is not a leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_new_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            refuse_foreign(param)
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        self._parameters[name] = _pass_to_hooks(
            _global_parameter_registration_hooks, self, name, param
        )

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under ``name``.

        Raises:
            KeyError: the name is empty, has a dot, or is already an attribute.
            TypeError: ``module`` is neither a module nor ``None``.
        """
        if module is not None and not isinstance(module, ModuleAttributes):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _pass_to_hooks(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias for :meth:`add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        # A frequent case: a loop over the tables would take half as long again.
        owned = self.__dict__
        if (table := owned.get("_parameters")) and name in table:
            return table[name]
        if (table := owned.get("_modules")) and name in table:
            return table[name]
        if (table := owned.get("_buffers")) and name in table:
            return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        parameters = self.__dict__.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                refuse_foreign(value)
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif not (self._set_module(name, value) or self._set_buffer(name, value)):
            super().__setattr__(name, value)

    def _forget(self, name: str, *tables: dict[str, Any]) -> None:
        """Remove the name from the instance and these tables, before it is assigned again."""
        for table in (self.__dict__, *tables):
            table.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_module(self, name: str, value: Any) -> bool:
        modules = self.__dict__.get("_modules")
        if isinstance(value, ModuleAttributes):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, self._parameters, self._buffers)
        elif modules is None or name not in modules:
            return False
        elif value is not None:
            raise TypeError(
                f"cannot assign '{typename(value)}' as child module '{name}' "
                "(torch.nn.Module or None expected)"
            )
        modules[name] = _pass_to_hooks(_global_module_registration_hooks, self, name, value)
        return True

    def _set_buffer(self, name: str, value: Any) -> bool:
        buffers = self.__dict__.get("_buffers")
        is_buffer = isinstance(value, Tensor) and isinstance(value, Buffer)
        if not (is_buffer or (buffers is not None and name in buffers)):
            return False
        if value is not None and not isinstance(value, Tensor):
            refuse_foreign(value)
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if is_buffer:
            persistent = bool(value.persistent)  # type: ignore[union-attr]
        else:
            persistent = name not in self._non_persistent_buffers_set
        if _takes_persistent(type(self).register_buffer):
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )
        return True

    def __delattr__(self, name: str) -> None:
        if name in self._buffers:
            self._non_persistent_buffers_set.discard(name)
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                table.pop(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._modules,
            *self._buffers,
        ]
        return sorted(name for name in names if not name[0].isdigit())


def _takes_persistent(method: Callable[..., None]) -> bool:
    """Whether ``register_buffer``, which a subclass may override, has the argument
    ``persistent``.
    """
    if method is ModuleAttributes.register_buffer:
        return True
    import inspect

    return "persistent" in inspect.signature(method).parameters
