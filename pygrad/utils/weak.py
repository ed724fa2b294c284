"""Dictionaries with weak keys that are compared by identity, for example tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Self
from weakref import ref

from .._tensor.tensor import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]

WeakRef = ref


class WeakIdRef(weakref.ref[Any]):
    """A weak reference. Two are equal if they refer to the same object.

    Example:
        >>> import pygrad
        >>> from pygrad.utils.weak import WeakIdRef
        >>> x = pygrad.ones(2)
        >>> WeakIdRef(x) == WeakIdRef(x), WeakIdRef(x) == WeakIdRef(pygrad.ones(2))
        (True, False)
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self) -> Any:
        found = super().__call__()
        if isinstance(found, Tensor):
            fix = getattr(found, "_fix_weakref", None)
            if fix is not None:
                fix()
        return found

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, WeakIdRef) else None
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other


class _WeakHashRef(weakref.ref[Any]):
    """A weak reference. Two are equal if their objects are equal."""

    __slots__ = ("_hash",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        self._hash = hash(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, _WeakHashRef) else None
        if mine is not None and theirs is not None:
            return bool(mine == theirs)
        return self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary with weak keys compared by identity. Entries of deleted keys disappear.

    Args:
        dict: the initial entries.
        ref_type: the type of the references to keys.

    Example:
        >>> import pygrad
        >>> from pygrad.utils.weak import WeakIdKeyDictionary
        >>> x, y = pygrad.ones(1), pygrad.ones(1)
        >>> names = WeakIdKeyDictionary({x: "x", y: "y"})
        >>> names[x], names[y]
        ('x', 'y')
        >>> del y
        >>> len(names)
        1
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        holder = weakref.ref(self)

        def remove(key: Any) -> None:
            own = holder()
            if own is not None:
                own.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for held in list(self.data):
            key = held()
            if key is not None:
                yield key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def pop(self, key: Any, *args: Any) -> Any:
        """Removes an entry and returns its value, or the second argument if there is none."""
        return self.data.pop(self.ref_type(key), *args)

    def update(self, dict: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Adds the entries of another dictionary, or of pairs."""
        super().update(() if dict is None else dict, **kwargs)

    def copy(self) -> WeakIdKeyDictionary:
        """A shallow copy."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        import copy

        made = type(self)(None, self.ref_type)
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memo)
        return made

    def keyrefs(self) -> list[Any]:
        """The references to the keys; any of them may be dead."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Removes an entry."""
        while True:
            held, value = self.data.popitem()
            key = held()
            if key is not None:
                return key, value

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(None, self.ref_type)
        made.update(other)
        made.update(self)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        mine = {id(key): value for key, value in self.items()}
        return mine == {id(key): value for key, value in other.items()}


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor.

    Example:
        >>> import pygrad
        >>> from pygrad.utils.weak import TensorWeakRef
        >>> x = pygrad.ones(1)
        >>> held = TensorWeakRef(x)
        >>> held() is x
        True
    """

    ref: WeakRef[Tensor]

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
