"""From Python values to a frame and back: one crossing a call.

`invoke` takes any op and any arguments; `binary`, `function` and their like make faster functions
for the most frequent calls. The engine decides which arguments are allowed, which overload they
select and what an error says.
"""

from __future__ import annotations

import functools
import struct
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from .. import _boundary as e
from .._ground import wanted
from .._ground.dtypes import BY_CODE
from . import overriding, table
from .arguments import (
    K_BOOL,
    K_COMPLEX,
    K_DTYPE,
    K_FLOAT,
    K_INDEX,
    K_INT,
    K_LIST,
    K_NONE,
    K_OVERRIDING,
    K_STR,
    K_TENSOR,
    KINDS,
    WORDS,
    Blob,
    Index,
    Overridden,
    encode,
    kind_of,
)
from .process import of_engines

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor

new_tensor: Callable[[int], Tensor]
_tensor_type: Any = object
_new: Callable[..., Any] = object.__new__
_keywords: dict[str, int] = {}


holders: Final[list[dict[str, Any]]] = [globals()]
"""Globals of modules with own copies of the variables that change here: see `_tell`."""


def _tell(**found: Any) -> None:
    """Changes globals of this module, and globals of the same name in the modules of `holders`."""
    for names in holders:
        for name in names.keys() & found.keys():
            names[name] = found[name]


def adopt_tensor(kind: type) -> None:
    """Passes the Tensor class to this module, on which it depends itself."""
    _tell(_tensor_type=kind, _make=functools.partial(object.__new__, kind))
    KINDS[kind] = K_TENSOR
    of_engines[kind] = __name__.partition(".")[0]
    overriding.adopt_tensor(kind)


ROWS: Final[dict[str, int]] = {}
"""The first row of each op name."""
_last = ""
for _row, (_, _schema) in enumerate(table.rows):
    if (_name := _schema[: _schema.index("(")]) != _last:
        ROWS[_name] = _row
    _last = _name

NAMED_RESULTS: Final[dict[int, Callable[[Sequence[Any]], Any]]] = {}
"""Row -> maker of the named tuple that its schema promises."""


_PACK = [struct.Struct(f"<QQq{n}q").pack_into for n in range(17)]
"""Packers by number of arguments: header, tags, first released handle, slots."""
_ONE_RELEASED = 1 << 56


# Globals of this module are the fastest to load; attributes of another cost a little more.
_lock, _mine = e.lock, e.mine
_call, _call_long, _result, _trap = e.call, e.call_long, e.result_slot, e.trap_slot
_TOO_LONG, _CALL_MODE = e.TOO_LONG, e.CALL_MODE
_released, _pop, _get_kind = e.released, e.released.pop, KINDS.get
_hand_over_rest = e.hand_over_rest
_memory, _frame, _ints, _unsigned = e.memory, e.frame, e.ints, e.unsigned
_N_RELEASE = e.N_RELEASE
_KEYWORDS, _NAMES, _DATA = e.KEYWORDS, e.KEYWORDS << 2, e.DATA


def _header(row: int, positional: int, keywords: int, mode: int) -> int:
    """The first eight bytes of a frame; the number of released handles is added in the top byte."""
    return row | positional << 32 | keywords << 40 | mode << 48


_PLAIN: Final = {
    K_TENSOR: (e.TENSOR, "q"),
    K_INT: (e.INT, "q"),
    K_FLOAT: (e.FLOAT, "d"),
    K_BOOL: (e.BOOL, "q"),
    K_NONE: (e.NONE, "q"),
    K_DTYPE: (e.DTYPE, "q"),
    K_STR: (0, "q"),
    K_LIST: (0, "q"),
    K_INDEX: (0, "q"),
}
"""The tag and the slot's format of each kind that plans know; tag 0 if it depends on the value."""
_OUTER: Final = {"out", "requires_grad"}
"""Keywords that affect the result."""


class _Plan:
    """How arguments of some types, with keywords of some names, are written to a frame.

    Attributes:
        pack: writes the frame. counts, tags: of its header. tensors, nones, dtypes: their places.
        apart: the place of the one list, index or text, or -1. names: the ids of the keywords.
    """

    __slots__ = ("apart", "counts", "dtypes", "names", "nones", "pack", "tags", "tensors")

    def __init__(self, kinds: list[int], n_positional: int, names: list[int]) -> None:
        self.pack = struct.Struct("<iHBBQq" + "".join(_PLAIN[k][1] for k in kinds)).pack_into
        self.counts = n_positional | len(names) << 8
        self.tags = sum(_PLAIN[kind][0] << (4 * i) for i, kind in enumerate(kinds))
        self.tensors, self.nones, self.dtypes = (
            tuple(i for i, found in enumerate(kinds) if found == kind)
            for kind in (K_TENSOR, K_NONE, K_DTYPE)
        )
        self.apart = next((i for i, kind in enumerate(kinds) if not _PLAIN[kind][0]), -1)
        self.names = struct.pack(f"<{len(names)}i", *names)


_plans: Final[dict[tuple[Any, ...], _Plan | None]] = {}
"""Plans by the types of the arguments and the names of keywords; None if there is no plan."""


def _plan(key: tuple[Any, ...], args: Sequence[Any], kwargs: dict[str, Any]) -> _Plan | None:
    """Makes and keeps the plan for arguments like these."""
    values = (*args, *kwargs.values())
    kinds = [kind_of(v) if (kind := _get_kind(type(v))) is None else kind for v in values]
    known = len(kinds) <= 16 and _PLAIN.keys() >= set(kinds) and not kwargs.keys() & _OUTER
    made = None
    if known and sum(not _PLAIN[kind][0] for kind in kinds) <= 1:
        made = _Plan(kinds, len(args), [_keywords.get(name) or _intern(name) for name in kwargs])
    _plans[key] = made
    return made


def _pack_value(value: Any) -> tuple[int, int, bytes]:
    """Tag, slot and bytes of a text, an index or a short list of tensors or ints.

    Raises: struct.error: of anything else.
    """
    kind = type(value)
    if kind is str:
        raw = value.encode() + b"\0"
        if len(raw) <= e.DATA_BYTES:
            return e.STR, _DATA, raw
    elif kind is Index:
        n = len(value.words)
        if n <= 32:
            return e.INDEX, _DATA | n << 32, WORDS[n].pack(*value.words)
    elif (n := len(value)) <= 32:
        slot = _DATA | n << 32 | (kind is list) << 62
        kinds = {_get_kind(found) for found in set(map(type, value))}
        if kinds == _TENSORS_ALONE:
            return e.TENSORS, slot, WORDS[n].pack(*[item._h for item in value])
        if kinds == _INTS_ALONE:
            return e.INTS, slot, WORDS[n].pack(*value)
    raise struct.error


_TENSORS_ALONE, _INTS_ALONE = {K_TENSOR}, {K_INT}


def invoke(
    row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any], function: Any = None
) -> Any:
    """Calls the op that starts at `row` in the table.

    Args:
        function: the called function, for ``__torch_function__``; None: no type is asked.

    Raises: the engine's error, with PyTorch's type and message.
    """
    slots: list[Any] = [*args]
    if kwargs:
        values = kwargs.values()
        slots += values
        key: tuple[Any, ...] = (*map(type, args), *kwargs, *map(type, values))
    else:
        key = tuple(map(type, args))
    try:
        plan = _plans[key]
    except KeyError:
        plan = _plan(key, args, kwargs)
    if plan is None:
        return _invoke_any(row, mode, args, kwargs, function)
    tensors, tags = plan.tensors, plan.tags
    if (key := _lock.free) and _mine() and _lock.free is key:
        _lock.free = None
        try:
            for i in tensors:
                slots[i] = slots[i]._h
            for i in plan.nones:
                slots[i] = 0
            for i in plan.dtypes:
                slots[i] = slots[i].code
            dead = n_dead = 0
            try:
                if (i := plan.apart) >= 0:
                    tag, slots[i], raw = _pack_value(slots[i])
                    tags |= tag << (4 * i)
                    _memory[_DATA : _DATA + len(raw)] = raw
                if _released:
                    dead, n_dead = _pop(), 1
                plan.pack(_memory, _frame, row, plan.counts, mode, n_dead, tags, dead, *slots)
            except struct.error:  # another kind of list, or an int too large for the engine
                if n_dead:
                    _memory[_N_RELEASE] = 0
                    _released.append(dead)
            else:
                if kwargs:
                    raw = plan.names
                    _memory[_NAMES : _NAMES + len(raw)] = raw
                if _released:
                    _memory[_N_RELEASE] = e.hand_over(n_dead)
                try:
                    _call()
                    r = _result[0]
                    if 0 < r < _FRESH and not _trap[0]:
                        out = _make()
                        out._h = r
                        if tensors and not tensors[0] and args:
                            # an in-place op's result: the reference goes with `out`
                            if r == slots[0]:
                                return args[0]
                            meta = _unsigned[(r + _META) >> 2]
                            if meta and _unsigned[(meta + _BASE) >> 2]:
                                out._b = args[0]
                        return out
                except BaseException:
                    _release_unclaimed()
                    raise
                if _trap[0]:
                    raise e.trap_error()
                if r == _TOO_LONG:
                    return _cross_again(row, args, kwargs, mode)
                return _finish(r, row, args, kwargs, mode)
        finally:
            _lock.free = key
    return _invoke_any(row, mode, args, kwargs, function)


def _release_unclaimed() -> None:
    """Releases a result for which no object was made, because a signal's handler raised as a call
    ended or memory ran out. The caller holds the engine.
    """
    r = _result[0] & ~e.VIEW
    if 0 < r < _FRESH:
        _result[0] = e.HEAD
        _released.append(r)


def _invoke_any(
    row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any], function: Any
) -> Any:
    """`invoke`, for any arguments and from any thread."""
    get, shift, tags, blob = KINDS.get, 0, 0, None
    slots, given = [], args
    if len(args) + len(kwargs) > 16:
        args = _gather_varargs(args)
    try:
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = get(type(value))
            if kind == K_TENSOR:
                slots.append(value._h)
                tags |= 2 << shift
            elif kind == K_INT and -_FRESH < value < _FRESH:
                slots.append(value)
                tags |= 3 << shift
            elif kind == K_NONE:
                slots.append(0)
                tags |= 1 << shift
            else:
                if blob is None:
                    blob = Blob(function is not None and _state.off == _ENABLED)
                tag, slot = encode(value, kind, blob)
                slots.append(slot)
                tags |= tag << shift
            shift += 4
    except Overridden:
        return overriding.call(function, given, kwargs, overriding.overloaded_args(given, kwargs))
    names = [_keywords.get(name) or _intern(name) for name in kwargs] if kwargs else []
    head = row | len(args) << 32 | len(names) << 40 | mode << 48  # see `_header`
    parts = blob.parts if blob is not None else None
    frame = head, tags, slots, names, b"".join(parts) if parts else b""
    return e.call_with_lock(_cross, frame, row, args, kwargs)


_state, _ENABLED = overriding.state, overriding.ENABLED


def operate(row: int, mode: int, function: Any, numbers: bool, self: Any, other: Any) -> Any:
    """An operator, for types that the quick way does not take. NotImplemented for operands that the
    op cannot use, so that Python asks the operand.
    """
    kind = K_TENSOR if type(other) is _tensor_type else kind_of(other)
    if kind == K_OVERRIDING:
        if _state.off != _ENABLED and not isinstance(other, _tensor_type):
            return NotImplemented
    elif kind > (K_COMPLEX if numbers else K_TENSOR):
        if row == ROWS["eq"] and hasattr(other, "__array__"):
            return invoke(row, mode, (self, self.__array_wrap__(other.__array__())), {}, function)
        return NotImplemented
    return invoke(row, mode, (self, other), {}, function)


def _cross(
    frame: tuple[int, int, list[Any], list[int], bytes],
    row: int,
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """Writes a frame, calls the engine and makes the result. The engine is taken.

    Args:
        frame: header, tags, slots, the ids of keywords, and what lies in the frame's data.
    """
    head, tags, slots, names, data = frame
    dead = 0
    if _released:
        dead = _pop()
        head += _ONE_RELEASED * (e.hand_over(1) if _released else 1)
    at = _KEYWORDS
    for ident in names:
        _ints[at] = ident
        at += 1
    if data:
        _memory[_DATA : _DATA + len(data)] = data
    _PACK[len(slots)](_memory, _frame, head, tags, dead, *slots)
    return _cross_frame(_call, row, args, kwargs)


def _cross_frame(
    call: Callable[[], None],
    row: int,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    mode: int = 0,
) -> Any:
    """Calls the engine with the written frame, and makes the result."""
    try:
        call()
        r = _result[0]
        if 0 < r < 4294967296 and not (kwargs and kwargs.keys() & _OUTER) and not _trap[0]:
            first = args[0] if args and isinstance(args[0], _tensor_type) else None
            if first is not None and r == first._h:
                _result[0] = e.HEAD
                _released.append(r)
                return first
            out = _new(_tensor_type)
            out._h = r
            if first is not None:
                meta = _unsigned[(r + _META) >> 2]
                if meta and _unsigned[(meta + _BASE) >> 2]:
                    out._b = first
            return out
    except BaseException:
        _release_unclaimed()
        raise
    if _trap[0]:
        raise e.trap_error()
    if r == _TOO_LONG:
        return _cross_again(row, args, kwargs, mode)
    return _finish(r, row, args, kwargs, mode)


def _cross_again(row: int, args: Sequence[Any], kwargs: dict[str, Any], mode: int) -> Any:
    """Makes the call of the frame, which the engine has found too long, while other threads run."""
    _memory[_CALL_MODE] |= e.LONG
    return _cross_frame(_call_long, row, args, kwargs, mode)


_META, _NUMEL, _NOTED = e.layout["meta"], e.layout["numel"], e.layout["noted"]
_BASE = e.layout["meta_base"]


def _intern(name: str) -> int:
    at = _keywords[name] = e.intern(name)
    return at


def _gather_varargs(args: Sequence[Any]) -> Sequence[Any]:
    """Gathers sizes into one tuple: x.view(1, 2, ..., 20) has more sizes than there are slots."""
    n = sum(not isinstance(a, int) for a in args[:2])
    return (*args[:n], tuple(args[n:]))


def _substitute_out(result: Tensor, kwargs: dict[str, Any]) -> Tensor:
    """The caller's own object if the result is the tensor passed as out=."""
    out = kwargs.get("out")
    if out is not None and getattr(out, "_h", 0) == result._h:
        return out  # type: ignore[no-any-return]
    return remember(result) if kwargs.get("requires_grad") else result


def wrap(handle: int) -> Tensor:
    """A Tensor that takes over the reference which the engine passed with a handle."""
    out = _new(_tensor_type)
    out._h = handle
    return out  # type: ignore[no-any-return]


_new_ref: Final = weakref.ref
known_refs: Final[dict[int, weakref.ref[Any]]] = {}
"""Tensors that the engine may hand back, by handle: leaves that require grad, tensors with hooks,
gradients that hooks keep. Those of the dead go when there are many: a `WeakValueDictionary` takes
five times as long.
"""
_many = 1024


def remember(tensor: Any) -> Any:
    """Makes `remembered_object` find this very object; returns it."""
    known_refs[tensor._h] = weakref.ref(tensor)
    if len(known_refs) > _many:
        _forget_the_dead()
    return tensor


def exchange(one: Any, other: Any) -> None:
    """Gives two objects each other's tensor."""
    refs = known_refs.get(one._h), known_refs.get(other._h)
    for name in ("_h", "_b", "_g"):
        mine, yours = getattr(one, name, None), getattr(other, name, None)
        setattr(one, name, yours)
        setattr(other, name, mine)
    for ref, tensor in zip(refs, (other, one), strict=True):
        if ref is not None:
            remember(tensor)


def _forget_the_dead() -> None:
    global _many
    for handle, ref in list(known_refs.items()):
        if ref() is None and known_refs.get(handle) is ref and not _ints[(handle + _NOTED) >> 2]:
            known_refs.pop(handle, None)  # another thread may do the same
    _many = 2 * len(known_refs) + 1024


def remembered_object(tensor: Any) -> Any:
    """The remembered object of the same engine tensor; else `tensor` itself, with the attributes
    kept from an object that is gone.
    """
    ref = known_refs.get(tensor._h)
    if ref is None:
        return tensor
    found = ref()
    if found is not None and found._h == tensor._h:
        return found
    if _ints[(tensor._h + _NOTED) >> 2]:
        return revive(tensor)
    if known_refs.get(tensor._h) is ref:
        known_refs.pop(tensor._h, None)
    return tensor


revive: Callable[[Any], Any] = lambda tensor: tensor  # noqa: E731
"""Set by `callbacks`, which needs this module."""


def share(handle: int) -> Tensor:
    """A Tensor with an own reference to a handle that another owner keeps; counted without a
    call.
    """
    retain((handle,))
    return wrap(handle)


def retain(handles: Sequence[int]) -> None:
    """Counts one more reference to each tensor of `handles`, without a call; 0 is skipped."""
    e.call_with_lock(_retain, handles)


def _retain(handles: Sequence[int]) -> None:
    for handle in handles:
        if handle:
            _ints[handle >> 2] += 1


def _finish(r: int, row: int, args: Sequence[Any], kwargs: dict[str, Any], mode: int = 0) -> Any:
    """Handles results other than one plain tensor, failures, and work that waits for the host."""
    if r < 0:
        error = e.failure(r)
        e.collect_pending(beside_an_error=True)
        try:
            if type(error) is TypeError and row in _old_rows():
                found = _rearrange_old_form(row, mode, args, kwargs)
                if found is not None:
                    return invoke(row, mode, *found)
            if wanted.TRACES:
                wanted.count_refusal(error)
            raise error
        finally:
            del error  # its traceback refers to this frame
    pending = r >= e.PENDING
    r &= e.PENDING - 1
    result: Any
    if r:
        ref = known_refs.get(r) if pending else None
        if args and getattr(args[0], "_h", 0) == r:
            e.released.append(r)
            result = args[0]
        elif ref is not None and (result := ref()) is not None and result._h == r:
            e.released.append(r)  # the object has a reference already
        else:
            result = remembered_object(wrap(r)) if pending else wrap(r)
        if kwargs:
            result = _substitute_out(result, kwargs)
    else:
        result = _read_result(row, kwargs)
        if type(result) is tuple:
            first = args[0] if args else kwargs.get("input")
            if isinstance(first, _tensor_type):
                _tell_base(result, first)
    if pending:
        e.collect_pending()
    return result


@functools.cache
def _old_rows() -> dict[int, str]:
    from . import old_forms  # which few programs need

    return {ROWS[name]: name for name in old_forms.names()}


def _rearrange_old_form(row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    from . import old_forms

    method, inplace = bool(mode & e.METHOD), bool(mode & e.INPLACE)
    return old_forms.rearrange(_old_rows()[row], method, inplace, args, kwargs)


def _tell_base(views: Sequence[Any], base: Any) -> None:
    """Sets the base object of views; either all results of an op are views or none is."""
    for view in views:
        if view is None:
            return
        meta = _unsigned[(view._h + _META) >> 2]
        if not meta or not _unsigned[(meta + _BASE) >> 2]:
            return
        view._b = base


def _read_result(row: int, kwargs: dict[str, Any]) -> Any:
    tag, value = _ints[_TAG], _words[_RESULT]
    if tag in (_TENSORS, _INTS):
        value >>= 3
        found = _words[value : value + _ints[_TAG + 1]].tolist()
        return found if tag == _INTS else _tensors(found, row, kwargs)
    if tag == e.NONE:
        return None
    if tag == e.INT:
        return value
    if tag == e.FLOAT:
        return e.doubles[_RESULT]
    if tag == e.BOOL:
        return value != 0
    if tag == e.COMPLEX:
        return complex(e.doubles[value >> 3], e.doubles[(value >> 3) + 1])
    if tag == e.DTYPE:
        return BY_CODE[value]
    return e.text_at(value)


_words, _RESULT, _TAG, _TENSORS, _INTS = e.words, e.RESULT, e.RESULT_TAG, e.TENSORS, e.INTS


def _tensors(handles: list[int], row: int, kwargs: dict[str, Any]) -> Any:
    """Several results: a tuple, named if the schema has names for them."""
    outs = kwargs.get("out") if kwargs else None
    given = {t._h: t for t in outs} if isinstance(outs, (tuple, list)) else None
    items: list[Any] = []
    for handle in handles:
        if given and handle in given:
            _released.append(handle)
            items.append(given[handle])
        else:
            items.append(remembered_object(wrap(handle)) if handle else None)
    named = NAMED_RESULTS.get(row)
    return named(items) if named else tuple(items)


# ------------------------------------------------------------------ fast operators

# A thread that owns the engine and finds it free takes it, in this order: `_mine` is a call, after
# which other threads may run; a read or a write of a field is none. All other cases take the slow
# way.

# The parameters of call2 are 16 bytes apart: head, released handle, two arguments.
_slot, _double_slot = e.result_slot, e.double_slot
_call2, _call2_long, _call2_places = e.call2, e.call2_long, e.call2_places
_LONG_HEAD: Final = e.LONG << 48
_make: Any = object
"""A Tensor without a handle."""
_SELF = e.SELF
_FRESH = (1 << 30) - 1  # below it a result needs no second look, and comparing is fastest


@functools.cache
def _counts(*tags: int) -> int:
    """The part of a head that holds the number and the types of the arguments."""
    packed = sum(tag << (4 * i) for i, tag in enumerate(tags))
    return e.HEAD | _header(0, len(tags), packed, 0)


_ROW_BITS: Final = (1 << 32) - 1


def _head(row: int, mode: int, *tags: int) -> int:
    return _counts(*tags) | row | mode << 48


def _other(r: int, head: int, args: tuple[Any, ...]) -> Any:
    """The result of a call2 that returned anything but a small handle of a fresh tensor. `head`:
    the call's head, or its low half, the row.
    """
    row = head & _ROW_BITS
    if r == e.SELF:
        return args[0]
    if r & e.HEAD:
        raise e.trap_error()
    if r == e.TOO_LONG:
        return _again(row, args)
    if r & e.FAILED:
        return _finish(e.FAILED - r, row, args, {})
    if r & e.VIEW:
        out = wrap(r ^ e.VIEW)
        out._b = args[0]
        return out
    return _finish(r & ~e.DESCRIBED, row, args, {})


def _again(row: int, args: tuple[Any, ...]) -> Any:
    """Repeats a call2 that the engine found too long, while other threads run."""
    _slot[0] = _words[_RESULT] | _LONG_HEAD
    _slot[2] = 0  # the released handle is handed over already
    try:
        _call2_long(*_call2_places)
        r = _slot[0]
        if r < _FRESH:
            return wrap(r)
    except BaseException:
        _release_unclaimed()
        raise
    return _other(r, row, args)


# ------------------------------------------------------------------ interceptors


_watchers: Final[list[Callable[..., Any]]] = []


def intercept(seen: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Hands every call of an op, with the arguments of `invoke`, to a function instead, which may
    call `call_op`; None: to nobody. Free while nothing intercepts: the quick ways test who owns the
    engine anyway, and are told that another thread does.

    Returns: the function that intercepted before.
    """
    before = _watchers[-1] if _watchers else None
    _watchers[:] = [] if seen is None else [seen]
    _direct()
    return before


def keep_arguments(keeps: bool) -> None:
    """Sets whether `remembered_object` finds the tensors given to calls, as it does while the
    engine asks a mode for each op.
    """
    global _last_way
    _last_way = _call_remembering if keeps else call_op
    _direct()


def _direct() -> None:
    """Sets the route of calls: first to modes, then to an interceptor, then to the engine."""
    way = (
        _call_with_modes if overriding.modes_anywhere else _call_watched if _watchers else _last_way
    )
    _tell(invoke=way, _mine=e.mine if way is call_op else _never)


def _call_with_modes(
    row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any], function: Any = None
) -> Any:
    if function is not None and overriding.has_modes():
        return overriding.call(function, args, kwargs, overriding.overloaded_args(args, kwargs))
    way = _call_watched if _watchers else _last_way
    return way(row, mode, args, kwargs, function)


def _call_watched(
    row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any], function: Any = None
) -> Any:
    if function is not None and (found := overriding.overloaded_args(args, kwargs)):
        return overriding.call(function, args, kwargs, found)
    return _watchers[-1](row, mode, args, kwargs)


def _call_remembering(
    row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any], function: Any = None
) -> Any:
    """`call_op`, for when the engine passes arguments back: remembers their objects first."""
    for value in (*args, *kwargs.values()) if kwargs else args:
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(each, _tensor_type):
                ref = known_refs.get(each._h)
                if ref is None and len(known_refs) < _many:
                    known_refs[each._h] = _new_ref(each)
                elif (ref is None or ref() is not each) and remembered_object(each) is each:
                    remember(each)
    return _invoke_any(row, mode, args, kwargs, function)  # no quick way is open


overriding.on_modes = _direct
call_op: Final = invoke
_last_way: Callable[..., Any] = call_op
"""The route of calls without modes and interceptors."""


def _never() -> bool:
    return False
