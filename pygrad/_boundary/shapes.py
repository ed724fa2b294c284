"""The fast ways into the engine. Made by `make stubs` from fast_ways.py. Do not edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._ground.dtypes import dtype
from .arguments import K_TENSOR, KINDS, WORDS, Index
from .calls import _head, _other, _release_unclaimed, holders, invoke, operate
from .constants import DTYPE, FLOAT, INDEX, INT, INTS, METHOD, NONE, SELF, TENSOR, VIEW
from .frame import DATA
from .host import call2, call2_places, double_slot, memory, result_slot
from .ownership import lock, mine
from .release import hand_over_rest, released

# Globals of this module are the fastest to load.
_lock, _mine, _memory, _DATA, _SELF, _VIEW = lock, mine, memory, DATA, SELF, VIEW
_released, _pop, _hand_over_rest, _get_kind = released, released.pop, hand_over_rest, KINDS.get
_call2, _call2_places = call2, call2_places
_slot, _double_slot = result_slot, double_slot
_FRESH = (1 << 30) - 1  # below it a result needs no second look, and comparing is fastest
_tensor_type: Any = object
_make: Any = object
"""A Tensor without a handle."""
holders.append(globals())


def binary(row: int, mode: int = METHOD, numbers: bool = True) -> Callable[[Any, Any], Any]:
    """A function (tensor, tensor or number) -> tensor for an operator, with as little Python as it
    takes; `numbers`: whether it takes them.
    """
    return _pair(row, mode, numbers)[0]


def _pair(
    row: int, mode: int, numbers: bool = True, *part_of: Any
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """`binary`, and what it uses for other things than tensors; `part_of`: the function that they
    are parts of, if it is not that one.
    """
    tensors = _head(row, mode, TENSOR, TENSOR)
    with_int = _head(row, mode, TENSOR, INT)
    with_float = _head(row, mode, TENSOR, FLOAT)

    def call_with_number(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is not float and (kind is not int or not -_FRESH < other < _FRESH):
            return otherwise(self, other)
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                if kind is float:
                    _slot[0] = with_float
                    _slot[4] = self._h
                    _double_slot[6] = other
                else:
                    _slot[0] = with_int
                    _slot[4] = self._h
                    _slot[6] = other
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0]
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return self if r == _SELF else _other(r, with_int, (self, other))
            finally:
                _lock.free = key
        return otherwise(self, other)

    def call_binary(self: Any, other: Any) -> Any:
        if type(self) is not _tensor_type and _get_kind(type(self)) != K_TENSOR:
            return otherwise(self, other)
        if type(other) is not _tensor_type and _get_kind(type(other)) != K_TENSOR:
            return call_with_number(self, other)
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                _slot[0] = tensors
                _slot[4] = self._h
                _slot[6] = other._h
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0]
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r, tensors, (self, other))
            finally:
                _lock.free = key
        return otherwise(self, other)

    # Each name of this function that the others use costs their calls a nanosecond or two.
    (itself,) = part_of or (call_binary,)
    otherwise = partial(operate, row, mode, itself, numbers)
    if not numbers:
        call_with_number = otherwise
    return call_binary, call_with_number


def function(row: int, mode: int, bound: bool = False, private: bool = False) -> Callable[..., Any]:
    """A function of any arguments for an op. It is quick for one tensor, and for a tensor with
    another, a float or an int. If `bound`, it ignores a first argument before them. If `private`,
    it asks no argument's ``__torch_function__``.
    """
    head = _head(row, mode, TENSOR)
    with_tensor: Callable[[Any, Any], Any]
    call_with_number: Callable[[Any, Any], Any]

    # Few functions ever get a second operand: the first such call makes the functions for it.
    def first(self: Any, other: Any) -> Any:
        nonlocal with_tensor, call_with_number
        with_tensor, call_with_number = _pair(row, mode, True, itself)
        return with_tensor(self, other)

    with_tensor = call_with_number = first

    def call(*args: Any, **kwargs: Any) -> Any:
        n = len(args)
        if kwargs or not 0 < n < 3 or _get_kind(type(args[0])) != K_TENSOR:
            return invoke(row, mode, args, kwargs, itself)
        if n == 2:
            kind = type(args[1])
            if kind is float or kind is int:
                return call_with_number(*args)
            if kind is _tensor_type:
                return with_tensor(*args)
            return invoke(row, mode, args, kwargs, itself)
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                _slot[0] = head
                _slot[4] = args[0]._h
                _slot[6] = 0
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0]
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r, row, args)
            finally:
                _lock.free = key
        return invoke(row, mode, args, kwargs, itself)

    if not bound:
        itself = None if private else call
        return call

    # The body stands here a second time: a call of `call`, or a slice of args, would take time.
    def call_bound(_: Any, /, *args: Any, **kwargs: Any) -> Any:
        n = len(args)
        if kwargs or not 0 < n < 3 or _get_kind(type(args[0])) != K_TENSOR:
            return invoke(row, mode, args, kwargs, itself)
        if n == 2:
            kind = type(args[1])
            if kind is float or kind is int:
                return call_with_number(*args)
            if kind is _tensor_type:
                return with_tensor(*args)
            return invoke(row, mode, args, kwargs, itself)
        if (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                _slot[0] = head
                _slot[4] = args[0]._h
                _slot[6] = 0
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0]
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r, row, args)
            finally:
                _lock.free = key
        return invoke(row, mode, args, kwargs, itself)

    itself = None if private else call_bound
    return call_bound


def indexer(row: int, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function (tensor, index) -> view for the op behind ``x[i]``; `otherwise` takes an
    index that is not an int.
    """
    head = _head(row, METHOD, TENSOR, INT)

    def call_indexed(self: Any, index: Any) -> Any:
        if type(index) is not int:
            return otherwise(self, index)
        if type(self) is not _tensor_type and _get_kind(type(self)) != K_TENSOR:
            return otherwise(self, index)
        if -_FRESH < index < _FRESH and (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                _slot[0] = head
                _slot[4] = self._h
                _slot[6] = index
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0] ^ _VIEW
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        out._b = self
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r ^ _VIEW, head, (self, index))
            finally:
                _lock.free = key
        return otherwise(self, index)

    return call_indexed


def subscript(row: int) -> Callable[[Any, Index], Any]:
    """A function (tensor, index) -> view or copy for the op behind ``x[...]``."""
    head = _head(row, METHOD, TENSOR, INDEX)
    at = _DATA

    def call_subscript(self: Any, index: Index) -> Any:
        words = index.words
        n = len(words)
        if n <= 32 and (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                WORDS[n].pack_into(_memory, at, *words)
                _slot[0] = head
                _slot[4] = self._h
                _slot[6] = at | n << 32
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0] ^ _VIEW
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        out._b = self
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r ^ _VIEW, row, (self,))
            finally:
                _lock.free = key
        return invoke(row, METHOD, (self, index), {})

    return call_subscript


def maker(row: int) -> Callable[[Sequence[int], dtype | None], Any]:
    """A function (sizes, dtype or None for the default) -> fresh tensor for an op of these."""
    heads = _head(row, 0, INTS, NONE), _head(row, 0, INTS, DTYPE)

    def make(sizes: Sequence[int], kind: dtype | None) -> Any:
        n = len(sizes)
        if n <= 32 and (key := _lock.free) and _mine() and _lock.free is key:
            _lock.free = None
            try:
                WORDS[n].pack_into(_memory, _DATA, *sizes)
                _slot[4] = _DATA | n << 32
                if kind is None:
                    _slot[0], _slot[6] = heads[0], 0
                else:
                    _slot[0], _slot[6] = heads[1], kind.code
                _slot[2] = _pop() if _released else 0
                if _released:
                    _hand_over_rest()
                try:
                    _call2(*_call2_places)
                    r = _slot[0]
                    if r < _FRESH:
                        out = _make()
                        out._h = r
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                return _other(r, row, (None,))
            finally:
                _lock.free = key
        return invoke(row, 0, (tuple(sizes), kind), {})

    return make
