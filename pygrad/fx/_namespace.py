"""Names in generated code: valid, no builtin's, each given once."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, Final, NamedTuple

from .._ground.dtypes import device
from ..utils import _pytree as pytree
from . import _pytree as fx_pytree
from ._names import dialect

_NAME: Final = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")
_ILLEGAL: Final = re.compile(r"[^0-9a-zA-Z_]+")


class _CustomBuiltin(NamedTuple):
    """A name available to every graph's code: the line that imports it, and the object."""

    import_str: str
    obj: Any


_taken: Final[dict[str, Any]] = {word: object() for word in keyword.kwlist} | vars(builtins)
_taken.pop("_", None)  # the last value printed by an interactive session
_custom_builtins: Final[dict[str, _CustomBuiltin]] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _taken[name] = obj


for _line, _name, _object in (
    ("from math import inf", "inf", math.inf),
    ("from math import nan", "nan", math.nan),
    ("NoneType = type(None)", "NoneType", type(None)),
    ("import torch", "torch", dialect()),
    ("from torch import device", "device", device),
    ("import torch.fx._pytree as fx_pytree", "fx_pytree", fx_pytree),
    ("import torch.utils._pytree as pytree", "pytree", pytree),
):
    _register_custom_builtin(_name, _line, _object)


class _Namespace:
    """Gives names that are valid, not given yet, and no builtin's but for the builtin itself."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A free name like the candidate; if an object is given, its existing or new name.

        Example:
            >>> from pygrad.fx.graph import _Namespace
            >>> namespace = _Namespace()
            >>> [namespace.create_name(c, None) for c in ("x", "x", "len", "a.b", "2", "x_5", "x")]
            ['x', 'x_1', 'len_1', 'a_b', '_2', 'x_5', 'x_6']
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        name = candidate
        found = _NAME.fullmatch(name)
        if found is None:
            name = _ILLEGAL.sub("_", name) or "_unnamed"
            if name[0].isdigit():
                name = "_" + name
            found = _NAME.fullmatch(name)
            assert found is not None
        base, digits = found.groups()
        if digits is not None and name not in self._used_names:
            number = int(digits)
        else:
            number = self._base_count.get(base, 0)
            if _taken.get(name, obj) is not obj:
                number += 1
                name = f"{base}_{number}"
        while name in self._used_names:
            number += 1
            name = f"{base}_{number}"
        self._used_names.add(name)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Record a created name as an object's."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
