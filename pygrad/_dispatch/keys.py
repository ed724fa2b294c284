"""Dispatch keys by name, and sets of them, which libraries build when they are imported. Nothing
here is dispatched by keys, so excluding or including some changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

DEVICES: Final = (
    *("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA"),
    *("PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta"),
)
_KINDS: Final = ("", "Autograd", "NestedTensor", "Quantized", "Sparse", "SparseCsr")
KEYS: Final = frozenset(kind + device for kind in _KINDS for device in ("", *DEVICES)).union(
    ("AutocastCPU", "AutocastCUDA", "AutocastHPU", "AutocastIPU", "AutocastMPS", "AutocastXPU"),
    ("AutocastPrivateUse1", "AutogradFunctionality", "AutogradNestedTensor", "AutogradOther"),
    ("ADInplaceOrView", "BackendSelect", "Conjugate", "Dense", "Functionalize", "Negative"),
    ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    ("CompositeImplicitAutograd", "CompositeImplicitAutogradNestedTensor"),
    ("FuncTorchBatched", "FuncTorchBatchedDecomposition", "FuncTorchDynamicLayerBackMode"),
    ("FuncTorchDynamicLayerFrontMode", "FuncTorchGradWrapper", "FuncTorchVmapMode"),
    ("PreDispatch", "Python", "PythonDispatcher", "PythonTLSSnapshot", "Undefined", "ZeroTensor"),
)
"""All that a library may name, and the empty text: none."""


class DispatchKeySet:
    """A set of keys, built from single keys and joined by ``|``.

    Example:
        >>> import pygrad.torch as torch
        >>> key = torch._C.DispatchKey
        >>> keys = torch._C.DispatchKeySet(key.CPU) | torch._C.DispatchKeySet(key.CUDA)
        >>> keys.has(key.CPU), keys.has(key.Meta)
        (True, False)
    """

    __slots__ = ("_keys",)

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(getattr(key, "name", key) for key in keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys | other._keys))

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys - other._keys))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(self._keys))})"

    def has(self, key: Any) -> bool:
        """Whether a key is in it."""
        return getattr(key, "name", key) in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with a key more."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return self - DispatchKeySet(key)


class _Guard:
    """A scope in which other keys count: all is as outside."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self.keys = keys

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _ExcludeDispatchKeyGuard(_Guard):
    """A scope without some keys."""


ExcludeDispatchKeyGuard = _ExcludeDispatchKeyGuard


class _IncludeDispatchKeyGuard(_Guard):
    """A scope with some keys more."""
