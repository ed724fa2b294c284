"""A restricted unpickler for files of weights, which runs no code: it makes plain data and calls
the functions of a closed list.

It supports the instructions of PyTorch's own reader of weights, which are those of protocol 2. It
does not recurse. The total cost is limited to a small multiple of the file's size: instructions
that may cost more than their bytes, such as a call with arguments from the memo, are counted.
"""

from __future__ import annotations

import os
import pickle
import struct
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import IO, Any, Final

from .._tensor import rebuild
from .._tensor.float8 import FORMS
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from ._globals import (
    CALLS,
    READING,
    SAFE,
    TAKING_TENSORS,
    Keys,
    allowed_globals,
    find,
    tensors_among,
    weight,
)

_BLOCKED: Final = ("sys", "os", "posix", "nt")
_LONGEST_NAME: Final = 1 << 16
_STEPS_A_BYTE: Final = 4
_STEPS_AT_LEAST: Final = 1 << 18
_STEPS_AN_ELEMENT: Final = 4
_DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,  # includes UnicodeError
)
"""Errors of functions on the closed list for arguments that no valid file has."""


class Unpickler:
    """Reads one pickle.

    Args:
        file: positioned at the start of the pickle; it is read exactly to the pickle's end.
        encoding: the encoding of strings written by Python 2; 'bytes' leaves them as bytes.
        persistent_load: makes the storage for a persistent id.
        size: the total number of bytes with those of storages; None: the rest of the file.
    """

    def __init__(
        self,
        file: IO[bytes],
        *,
        encoding: str = "bytes",
        persistent_load: Callable[[Any], Any] | None = None,
        size: int | None = None,
    ) -> None:
        self._file = file
        brought = length_left(file) if size is None else size
        self._left = max(_STEPS_AT_LEAST, _STEPS_A_BYTE * brought)
        self._keys = Keys()
        self._encoding = encoding
        self._persistent_load = persistent_load
        self._added = allowed_globals()
        self._own = {id(value) for value in self._added.values()}
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self._module_name = self._name = ""

    def load(self) -> Any:
        """Reads the object in the pickle.

        Raises:
            UnpicklingError: the pickle is damaged, or needs a global that is not allowed.
            EOFError: it is truncated.
        """
        steps = _STEPS
        while True:
            code = self._file.read(1)
            if not code:
                raise EOFError("Ran out of input")
            if code == pickle.STOP:
                return self._pop()
            step = steps.get(code[0])
            if step is None:
                raise UnpicklingError(f"Unsupported operand {code[0]}")
            step(self)

    def _count(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise UnpicklingError("the file asks for more than it brings")

    # ------------------------------------------------------------ bytes and the stack

    def _take(self, count: int) -> bytes:
        raw = self._file.read(count)
        if len(raw) != count:
            raise EOFError("Ran out of input: the pickle was cut off")
        return raw

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        line = self._file.readline(_LONGEST_NAME)
        if not line.endswith(b"\n"):
            raise EOFError("Ran out of input: a name was cut off")
        return self._text(line[:-1], "utf-8")

    def _text(self, raw: bytes, encoding: str, errors: str = "strict") -> str:
        try:
            return raw.decode(encoding, errors)
        except ValueError as error:
            raise UnpicklingError(f"a string is damaged: {error}") from None

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        if not self._stack:
            raise UnpicklingError("the pickle is damaged: the stack is empty")
        return self._stack.pop()

    def _top(self) -> Any:
        if not self._stack:
            raise UnpicklingError("the pickle is damaged: the stack is empty")
        return self._stack[-1]

    def _pop_mark(self) -> list[Any]:
        if not self._outer:
            raise UnpicklingError("the pickle is damaged: there is no mark")
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    # ------------------------------------------------------------ plain values

    def _tuple_of(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    def _unicode(self) -> None:
        raw = self._take(self._number("<I"))
        self._push(self._text(raw, "utf-8", "surrogatepass"))

    def _string(self) -> None:
        raw = self._take(self._number("<B"))
        self._push(raw if self._encoding == "bytes" else self._text(raw, self._encoding))

    def _long(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _protocol(self) -> None:
        protocol = self._number("<B")
        if protocol != 2:
            warnings.warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was not the default "
                "pickle protocol used by `torch.load` (2). The weights_only Unpickler might not "
                "support all instructions implemented by this protocol, please file an issue for "
                "adding support if you encounter this.",
                stacklevel=2,
            )

    def _get(self, place: int) -> None:
        if place not in self._memo:
            raise UnpicklingError(f"the pickle is damaged: nothing was memoized as {place}")
        self._push(self._memo[place])

    def _put(self, place: int) -> None:
        self._memo[place] = self._top()

    # ------------------------------------------------------------ containers

    def _extend(self, items: list[Any]) -> None:
        top = self._top()
        if type(top) is not list:
            word = "append to" if len(items) == 1 else "extend"
            raise UnpicklingError(f"Can only {word} lists, but got {type(top)}")
        top.extend(items)

    def _append(self) -> None:
        item = self._pop()
        self._extend([item])

    def _appends(self) -> None:
        self._extend(self._pop_mark())

    def _set_items(self, code: str, items: list[Any]) -> None:
        top = self._top()
        if type(top) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(
                f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got "
                f"{type(top)}"
            )
        if len(items) % 2:
            raise UnpicklingError("the pickle is damaged: a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            try:
                self._count(self._keys.check(key))
                top[key] = value
            except (TypeError, ValueError) as error:
                raise UnpicklingError(f"no key of a dict: {error}") from None

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items("SETITEM", [key, value])

    # ------------------------------------------------------------ globals of a file

    def _global(self) -> None:
        module, name = self._line(), self._line()
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        else:
            module = IMPORT_MAPPING.get(module, module)
        path = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked."
            )
        if path.removeprefix("torch.") in FORMS:
            self._push(find(module, name))
            return
        for names in (SAFE, self._added):
            if path in names:
                self._push(names[path])
                return
        path = path.removeprefix("builtins.")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{path}])` or the "
            f"`torch.serialization.safe_globals([{path}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def _call(self, function: Any, args: Any) -> Any:
        """Calls a function that the closed list or the user allows."""
        if id(function) in self._own:
            return function(*self._arguments(args))
        if function is rebuild._rebuild_from_type_v2:
            self._count(weight(args, self._left))
            return self._call_guarded(self._rebuild, args)
        if id(function) not in CALLS:
            raise UnpicklingError(
                f"Trying to call reduce for unrecognized function {format_value(function)}"
            )
        self._weigh(function, args)
        return self._call_guarded(CALLS[id(function)], args)

    def _arguments(self, args: Any) -> tuple[Any, ...]:
        if not isinstance(args, tuple):
            raise UnpicklingError(f"the pickle is damaged: arguments are {type(args)}, no tuple")
        return args

    def _weigh(self, function: Any, args: Any) -> None:
        """Counts the cost of a call of the closed list.

        Raises:
            UnpicklingError: the total cost exceeds the limit; or the function takes no tensors,
                which Python would iterate element by element.
        """
        self._count(weight(args, self._left))
        if id(function) in READING:
            self._count(_STEPS_AN_ELEMENT * sum(each.numel() for each in tensors_among(args)))
        elif id(function) not in TAKING_TENSORS:
            for _ in tensors_among(args):
                raise UnpicklingError(f"{format_value(function)} takes no tensors")

    def _call_guarded(self, function: Callable[..., Any], args: Any) -> Any:
        try:
            return function(*self._arguments(args))
        except _DAMAGE as error:
            raise UnpicklingError(f"{type(error).__name__}: {error}") from None

    def _rebuild(self, function: Any, kind: Any, args: Any, state: Any) -> Any:
        if not (isinstance(kind, type) and issubclass(kind, Tensor)):
            raise TypeError("not a class of tensors")
        return rebuild._as_type(self._call(function, args), kind, state)

    def _reduce(self) -> None:
        args, function = self._pop(), self._pop()
        try:
            self._push(self._call(function, args))
        except NotImplementedError as error:
            key = next((each for each in reversed(self._stack) if isinstance(each, str)), None)
            where = "" if key is None else f". In the file it stands behind the key {key!r:.200}"
            raise NotImplementedError(f"{error}{where}") from None

    def _new(self) -> None:
        args, kind = self._pop(), self._pop()
        if id(kind) in self._own and isinstance(kind, type):
            self._push(kind.__new__(kind, *self._arguments(args)))
        elif id(kind) in CALLS and isinstance(kind, type):
            self._push(self._call(kind, args))
        else:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via "
                f"`add_safe_globals` but got {format_value(kind)}"
            )

    def _build(self) -> None:
        state, made = self._pop(), self._top()
        self._count(weight(state, self._left))
        if type(made) in (OrderedDict, Counter):
            self._call_guarded(rebuild._set_obj_state, (made, state))
        elif type(made) in (Tensor, Parameter):
            self._call_guarded(_restore, (made, state))
        elif type(made) is rebuild._DimRange:
            made.__setstate__(state)
        elif id(type(made)) in self._own:
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                self._call_guarded(rebuild._set_obj_state, (made, state))
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {type(made)}"
            )

    def _persistent(self) -> None:
        name = self._pop()
        if type(name) not in (tuple, int):
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(name)}")
        if type(name) is tuple and name and name[0] not in ("storage", b"storage"):
            raise UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(name[0])}"
            )
        if self._persistent_load is None:
            raise UnpicklingError("unsupported persistent id encountered")
        self._push(self._persistent_load(name))


def length_left(file: IO[bytes]) -> int:
    """The number of bytes of a file after its position."""
    at = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(at)
    return end - at


def format_value(value: Any) -> str:
    """Formats a value for an error; values of unlimited size or depth appear as their type."""
    if isinstance(value, (str, int, float)) or callable(value):
        return f"{value!s:.200}"
    return f"of {type(value)}"


def _restore(made: Any, state: Any) -> None:
    """Restores the state of a tensor from releases before 0.4: its storage, or a variable's
    state.
    """
    if not isinstance(state, (tuple, list)) or len(state) not in (3, 4, 5):
        raise TypeError("not the state of a tensor")
    if len(state) == 4:
        storage, offset, size, stride = state
        made.set_(rebuild._rebuild_tensor(storage, offset, size, stride))
        return
    if len(state) == 5:
        made.data = state[0]
        state = (state[3], state[4], state[2])
    made.requires_grad = state[0]


def _pushes(value: Any) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(value)


def _pushes_new(kind: type) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(kind())


def _pushes_number(form: str) -> Callable[[Unpickler], None]:
    return lambda machine: machine._push(machine._number(form))


_STEPS: Final[dict[int, Callable[[Unpickler], None]]] = {
    code[0]: step
    for code, step in {
        pickle.PROTO: Unpickler._protocol,
        pickle.GLOBAL: Unpickler._global,
        pickle.REDUCE: Unpickler._reduce,
        pickle.NEWOBJ: Unpickler._new,
        pickle.BUILD: Unpickler._build,
        pickle.BINPERSID: Unpickler._persistent,
        pickle.MARK: Unpickler._mark,
        pickle.TUPLE: lambda machine: machine._push(tuple(machine._pop_mark())),
        pickle.TUPLE1: lambda machine: machine._tuple_of(1),
        pickle.TUPLE2: lambda machine: machine._tuple_of(2),
        pickle.TUPLE3: lambda machine: machine._tuple_of(3),
        pickle.EMPTY_TUPLE: _pushes(()),
        pickle.EMPTY_LIST: _pushes_new(list),
        pickle.EMPTY_DICT: _pushes_new(dict),
        pickle.EMPTY_SET: _pushes_new(set),
        pickle.APPEND: Unpickler._append,
        pickle.APPENDS: Unpickler._appends,
        pickle.SETITEM: Unpickler._set_item,
        pickle.SETITEMS: lambda machine: machine._set_items("SETITEMS", machine._pop_mark()),
        pickle.NONE: _pushes(None),
        pickle.NEWFALSE: _pushes(False),
        pickle.NEWTRUE: _pushes(True),
        pickle.BININT: _pushes_number("<i"),
        pickle.BININT1: _pushes_number("<B"),
        pickle.BININT2: _pushes_number("<H"),
        pickle.BINFLOAT: _pushes_number(">d"),
        pickle.LONG1: Unpickler._long,
        pickle.BINUNICODE: Unpickler._unicode,
        pickle.SHORT_BINSTRING: Unpickler._string,
        pickle.BINGET: lambda machine: machine._get(machine._number("<B")),
        pickle.LONG_BINGET: lambda machine: machine._get(machine._number("<I")),
        pickle.BINPUT: lambda machine: machine._put(machine._number("<B")),
        pickle.LONG_BINPUT: lambda machine: machine._put(machine._number("<I")),
    }.items()
}
