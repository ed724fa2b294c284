"""``Module``, the base of every layer and model.

The class is put together from parts that build on each other: what a module owns, the tree of its
submodules, its state dict, its calls. Here are its construction, copying and printing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pygrad.nn.modules._attributes import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from pygrad.nn.modules._calls import (
    ModuleCalls,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from pygrad.nn.modules._state import _IncompatibleKeys
from pygrad.nn.modules.utils import addindent

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# Every table of hooks a module has; all are needed after unpickling too.
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


class Module(ModuleCalls):
    """Base of all layers and models: subclass it, assign layers in ``__init__``, add ``forward``.

    Parameters, buffers and modules that are assigned as attributes are found by
    :meth:`parameters`, :meth:`buffers`, :meth:`modules` and :meth:`state_dict`.

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

    dump_patches: bool = False
    call_super_init: bool = False

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
        # Straight into the dict: the tables must exist before __setattr__ can sort values.
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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Not offered: there is no compiler behind ``forward``."""
        raise NotImplementedError("Module.compile: pygrad has no compiler")

    def extra_repr(self) -> str:
        """What the printed form says about this module; override to say more."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = "".join(f"\n  {line}" for line in extra_lines + child_lines)
        return f"{self._get_name()}({lines}\n)" if lines else f"{self._get_name()}()"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        own.setdefault("_non_persistent_buffers_set", set())
        own.setdefault("_is_full_backward_hook", None)
        for table in _HOOK_TABLES:
            own.setdefault(table, OrderedDict())
