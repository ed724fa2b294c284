"""Access to tensors and submodules of a module by their full names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._tensor.tensor import Tensor
from ..modules.module import Module
from .stateless import _MISSING as _MISSING
from .stateless import _owner, _swap

__all__: list[str] = []


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Replaces the parameter, buffer or attribute `name` by a tensor."""
    swap_tensor(module, name, tensor, allow_missing=True)


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replaces the parameter, buffer or attribute `name` by a tensor; returns the former value.

    Raises:
        KeyError: the name has a dot, or is empty.
        AttributeError: there is no such attribute.
        TypeError: the former or the new value is not a tensor.
    """
    _check_name(module, name)
    if not allow_missing and not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return _swap(module, name, tensor)


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Replaces a submodule; returns the former one."""
    _check_name(module, name)
    for each in (module, submodule):
        if not isinstance(each, Module):
            raise TypeError(f"{each} is not an instance of torch.nn.Module")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if before is None:
        raise TypeError(f"{name} attribute is not set to a valid module")
    module._modules[name] = submodule
    return before


def _check_name(module: Any, name: str) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


class NamedMemberAccessor:
    """Access to a module's tensors and submodules by dotted names.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils._named_member_accessor import NamedMemberAccessor
        >>> net = pygrad.nn.Sequential(pygrad.nn.Linear(2, 1))
        >>> _ = NamedMemberAccessor(net).swap_tensor("0.weight", pygrad.ones(1, 2))
        >>> net[0].weight
        tensor([[1., 1.]])
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Module:
        """The submodule of that name; the module itself for an empty name."""
        return _owner(self.module, f"{name}.")[0] if name else self.module

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Replaces a submodule; returns the former one."""
        owner, name = _owner(self.module, path)
        return swap_submodule(owner, name, value)

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of that name."""
        owner, last = _owner(self.module, name)
        if not hasattr(owner, last):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, last)
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(f"{name} attribute is not a tensor: {found}")
        return found  # type: ignore[return-value]

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Replaces the tensor of that name."""
        owner, last = _owner(self.module, name)
        set_tensor(owner, last, value)

    def del_tensor(self, name: str) -> None:
        """Deletes the tensor of that name."""
        owner, last = _owner(self.module, name)
        delattr(owner, last)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Replaces the tensor of that name; returns the former value."""
        owner, last = _owner(self.module, name)
        return swap_tensor(owner, last, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """The tensors of these names."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Replaces the tensors of these names."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Replaces the tensors that are the keys of a dict."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Deletes the tensors of these names."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False
    ) -> list[Any]:
        """Replaces the tensors of these names; returns the former values."""
        return [self.swap_tensor(n, v, allow_missing) for n, v in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Replaces tensors by name; returns the former values, and the names without one."""
        before: dict[str, Any] = {}
        missing = []
        try:
            for name, value in named_tensors.items():
                found = self.swap_tensor(name, value, allow_missing=True)
                if found is _MISSING:
                    missing.append(name)
                before[name] = found
        finally:
            if missing and not allow_missing:
                for name, value in before.items():
                    self.swap_tensor(name, value, allow_missing=True)
        if missing and not allow_missing:
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The names of tensors missing from `keys`, and the keys that name no tensor."""
        given = set(keys)
        names = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(names - given), sorted(given - names)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """All parameters by name."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """All buffers by name."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """All parameters, then all buffers, by name."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Module]]:
        """All modules by name."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    listed = list(values) if not isinstance(values, (list, tuple)) else values
    return zip(names, listed, strict=True)
