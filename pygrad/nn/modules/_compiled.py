"""The result of `pygrad.compile` for a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A wrapper around a module, which computes the same.

    Attributes other than its own (hooks, the table of its submodule) are read, set and deleted in
    the original module. Keys in its state dict begin with ``_orig_mod.``, as in PyTorch.

    Args:
        mod: the original module, stored as `_orig_mod`.
        dynamo_ctx: stored as `dynamo_ctx`, but not used.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Linear(2, 1)
        >>> compiled = pygrad.compile(layer)
        >>> compiled
        OptimizedModule(
          (_orig_mod): Linear(in_features=2, out_features=1, bias=True)
        )
        >>> compiled.in_features
        2
    """

    def __init__(self, mod: Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._modules["_orig_mod"] = mod
        self.__dict__["dynamo_ctx"] = dynamo_ctx

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the original module, including its hooks."""
        return self._orig_mod(*args, **kwargs)

    @property
    def training(self) -> bool:
        """The training flag of the original module."""
        mode: bool = self._orig_mod.training
        return mode

    @training.setter
    def training(self, mode: bool) -> None:
        if self._is_made():
            self._orig_mod.training = mode

    def _is_made(self) -> bool:
        return "_orig_mod" in self.__dict__.get("_modules", {})

    def _is_own(self, name: str) -> bool:
        return not self._is_made() or name in self.__dict__ or hasattr(type(self), name)

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if "_orig_mod" not in modules:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod":
            self._modules[name] = value
        elif self._is_own(name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_own(name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __len__(self) -> int:
        length: Callable[[], int] = self._orig_mod.__len__
        return length()

    def __iter__(self) -> Iterator[Any]:
        each: Iterator[Any] = iter(self._orig_mod)
        return each

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._orig_mod,)


def _as_compiled(self: Module) -> Module:
    return self if isinstance(self, OptimizedModule) else OptimizedModule(self)


Module._as_compiled = _as_compiled  # type: ignore[method-assign]
