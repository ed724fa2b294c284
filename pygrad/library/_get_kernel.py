"""An op's function for a key, for functions that a library puts in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ops
from .._dispatch.handlers import disabled, here, kernels, without_modes
from .._dispatch.keys import KEYS, DispatchKeySet
from ._arguments import match_arguments, split
from ._calls import below_autograd
from ._registry import entry_of, is_native


def _kernel_of(name: str, device: str) -> Callable[..., Any]:
    """The function that an op of PyTorch runs on a device now: a library's, or the engine's own."""
    found = kernels.get(name, {}).get(device)
    if found is not None:
        return found
    func = ops.overload(*ops.names_in(name)[1:])

    def run(*args: Any, **kwargs: Any) -> Any:
        here.own = name
        try:
            return func(*args, **kwargs)
        finally:
            here.own = ""

    return run


class SafeKernelFunction:
    """An op's function for one key: see `get_kernel`."""

    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self._name, self._run = name, run

    def call_boxed(self, keyset: DispatchKeySet, /, *args: Any, **kwargs: Any) -> Any:
        """Runs the function below autograd, without asking modes or classes of tensors.

        Raises: TypeError: the first argument is no set of keys.
        """
        if not isinstance(keyset, DispatchKeySet):
            raise TypeError(
                "call_boxed(): incompatible function arguments. The first is a DispatchKeySet, "
                f"and {keyset!r:.200} was given"
            )
        with below_autograd(), without_modes(), disabled():
            return self._run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"SafeKernelFunction(debug='{self._name}')"


def get_kernel(op: Any, dispatch_key: Any) -> SafeKernelFunction:
    """An op's present function for a key, which stays the same if a library replaces it later.

    Args:
        op: an `OpOverload`, or a name such as "aten::add.Tensor". dispatch_key: "CPU" or "Meta";
            for an op of a library, any that it has a function for.

    Raises:
        RuntimeError: there is no such op. ValueError: `op` is no op, or there is no such key.
        NotImplementedError: the op has nothing for the key.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.library import Library, get_kernel
        >>> own, lib = get_kernel("aten::sin", "CPU"), Library("aten", "IMPL")
        >>> def doubled(keys, x):
        ...     return 2 * own.call_boxed(keys, x)
        >>> lib.impl("sin", doubled, "CPU", with_keyset=True)
        >>> torch.sin(torch.ones(1))
        tensor([1.6829])
    """
    if isinstance(op, ops.OpOverload):
        op = op.name()
    if not isinstance(op, str):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    key = getattr(dispatch_key, "name", dispatch_key)
    if key not in KEYS or not key:
        raise ValueError(f"Invalid dispatch key: {key}")
    if is_native(op):
        if key in ("CPU", "Meta"):
            return SafeKernelFunction(op, _kernel_of(op, key.lower()))
    else:
        entry = entry_of(op)
        if key in entry.kernels:
            function = entry.kernels[key]

            def run(*args: Any, **kwargs: Any) -> Any:
                given, named = split(entry.schema, match_arguments(entry.schema, args, kwargs))
                return function(*given, **named)

            return SafeKernelFunction(op, run)
    raise NotImplementedError(f"torch.library.get_kernel: pygrad has no function of {op} for {key}")
