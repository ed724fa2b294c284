"""Containers of modules: Sequential, ModuleList, ModuleDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any, Self, SupportsIndex, overload

from .module import Module
from .utils import _addindent

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """The base class of Sequential and ModuleList: ordered children with indices and slices."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def _key(self, idx: SupportsIndex) -> str:
        """The name of the child at an index. A negative index counts from the end."""
        position = operator.index(idx)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]

    _get_abs_string_index = _key

    def _renumber(self) -> None:
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def _insert(self, position: int, module: Module) -> None:
        children = list(self._modules.values())
        children.insert(position, module)
        self._modules = {str(i): child for i, child in enumerate(children)}

    def __setitem__(self, index: SupportsIndex, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self


class Sequential(_Numbered):
    """Passes its input through modules in order.

    Args:
        args: the modules, or one ``OrderedDict`` of modules, whose keys are their names.

    Example:
        >>> import pygrad
        >>> from pygrad import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> tuple(net(pygrad.zeros(5, 4)).shape)
        (5, 2)
        >>> len(net), net[1]
        (3, ReLU())
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Module]] = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Module: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def _get_item_by_idx(self, iterator: Iterable[Any], idx: SupportsIndex) -> Any:
        """The item at an index. A negative index counts from the end."""
        position = operator.index(idx)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(iterator)[position]

    def __add__(self, other: object) -> Sequential:
        return Sequential(*self, *_as_sequential(other))

    def __iadd__(self, other: object) -> Self:
        return self.extend(list(_as_sequential(other)))

    def __mul__(self, other: object) -> Sequential:
        return Sequential(*list(self) * self._repetitions(other))

    __rmul__ = __mul__

    def __imul__(self, other: object) -> Self:
        return self.extend(list(self) * (self._repetitions(other) - 1))

    def _repetitions(self, other: object) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    @overload
    def pop(self, key: slice) -> Self: ...
    @overload
    def pop(self, key: int) -> Module: ...
    def pop(self, key: int | slice) -> Any:
        """Remove the module at ``key`` and return it."""
        module = self[key]
        del self[key]
        return module


def _as_sequential(other: object) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)!s} is given."
        )
    return other


class ModuleList(_Numbered):
    """A list of modules, registered as submodules. It has no ``forward``.

    Example:
        >>> from pygrad import nn
        >>> layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: SupportsIndex) -> Module: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at ``index``."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        Raises:
            TypeError: ``modules`` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in modules:
            self.append(module)
        return self

    @overload
    def pop(self, key: slice) -> Self: ...
    @overload
    def pop(self, key: int) -> Module: ...
    def pop(self, key: int | slice) -> Any:
        """Remove the module at ``key`` and return it."""
        module = self[key]
        del self[key]
        return module

    def __repr__(self) -> str:
        runs: list[tuple[int, int, str]] = []
        for index, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], index, text)
            else:
                runs.append((index, index, text))
        lines = "".join(f"\n  {_describe_run(*run)}" for run in runs)
        return f"{self._get_name()}({lines}\n)" if runs else f"{self._get_name()}()"


def _describe_run(first: int, last: int, text: str) -> str:
    """The printed form of consecutive children that print alike, with their number."""
    if first == last:
        return _addindent(f"({first}): {text}", 2)
    return _addindent(f"({first}-{last}): {last - first + 1} x {text}", 2)


class ModuleDict(Module):
    """A dict of modules, registered as submodules. It has no ``forward``.

    Example:
        >>> from pygrad import nn
        >>> heads = nn.ModuleDict({"left": nn.Linear(2, 1), "right": nn.ReLU()})
        >>> list(heads), heads["right"]
        (['left', 'right'], ReLU())
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove the module with that name and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names, in order of insertion."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules, in order of insertion."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules, in order of insertion."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules from a mapping or from pairs; replace modules of the same name.

        Raises:
            TypeError, ValueError: ``modules`` is neither.
        """
        for key, module in pairs_for_update(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


def pairs_for_update(source: Any, owner: str, entry_owner: str) -> list[tuple[str, Any]]:
    """The items of a mapping, or of a sequence of pairs; raises PyTorch's errors for other
    objects.
    """
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got "
            + type(source).__name__
        )
    if isinstance(source, Mapping) or (isinstance(source, Module) and hasattr(source, "items")):
        return list(source.items())
    pairs = []
    for position, pair in enumerate(source):
        which = f"{entry_owner} update sequence element #{position}"
        if not isinstance(pair, Iterable):
            raise TypeError(f"{which} should be Iterable; is{type(pair).__name__}")
        entry = tuple(pair)
        if len(entry) != 2:
            raise ValueError(f"{which} has length {len(entry)}; 2 is required")
        pairs.append(entry)
    return pairs
