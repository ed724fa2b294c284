"""Names of a function of Python, and the kinds of its expressions.

A kind says how a value is tested, compared and shown: "bool", "number" (an integer), "float",
"str", "tensor"; "sizes", "list" and "floats" for one number or several; "texts" for strings;
"class", "function" and "opaque" for what is only passed on; "none" for None. An empty one says that
nothing is known.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import math
import re
import types
from collections.abc import Iterator
from typing import Any, Final

from .text import Refused

PLAIN: Final = frozenset(("bool", "number", "float", "str"))
NUMBERS: Final = frozenset(("bool", "number", "float"))
SEQUENCES: Final = frozenset(("sizes", "list", "floats", "texts"))
HELPERS: Final = frozenset(("ntuple", "_reverse_repeat_tuple"))
"""Functions of Python's layers that ``web/nn/python.js`` has; their results are sequences."""
_ANNOTATIONS: Final = {
    "bool": "bool",
    "int": "number",
    "float": "float",
    "str": "str",
    "Tensor": "tensor",
    "Parameter": "tensor",
    "DeviceLike": "opaque",
    "DTypeLike": "opaque",
    "Any": "opaque",
    "Callable[..., Tensor]": "function",
    "list[int]": "list",
    "list[str]": "texts",
}
_OF_SIZES: Final = frozenset(
    "int tuple Sequence str None Size1 Size2 SizeAny SizeOrNone ShapeLike".split()
)
_OF_FLOATS: Final = frozenset("float tuple None".split())
_ELEMENTS: Final = {"sizes": "number", "list": "number", "floats": "float", "texts": "str"}


def kind_of(annotation: Any) -> str:
    """The kind of an annotation's values."""
    plain = str(annotation).removesuffix(" | None")
    words = set(re.findall(r"\w+", plain))
    if plain in _ANNOTATIONS:
        return _ANNOTATIONS[plain]
    return "sizes" if words <= _OF_SIZES else "floats" if words <= _OF_FLOATS else ""


@functools.cache
def constant(module: types.ModuleType, name: str) -> ast.expr | None:
    """The expression that a module assigns to a name: a set's order is that of its source."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node.value
    return None


class Kinds:
    """What the expressions of one function are.

    Args:
        module: the module whose names the function uses.
        owner: its class, if it is a method.
        attributes: the kinds of the attributes of ``self``, which its statements add to.

    Attributes:
        names: the kinds of the variables.
        used: names of the library and of other translations, with their meaning.
        helpers: names of ``web/nn/python.js``.
    """

    def __init__(
        self, module: types.ModuleType, owner: type | None, attributes: dict[str, str]
    ) -> None:
        self.module = module
        self.owner = owner
        self.attributes = attributes
        self.names: dict[str, str] = {}
        self.used: dict[str, Any] = {}
        self.helpers: set[str] = set()

    def helper(self, name: str) -> str:
        """A name of ``web/nn/python.js``."""
        self.helpers.add(name)
        return name

    def scope(self, name: str, thing: Any = None) -> str:
        """A name of the library or of another translation."""
        self.used[name] = thing
        return name

    def meaning(self, node: ast.expr) -> Any:
        """The object that a name or an attribute of a module is; None if it is local."""
        if isinstance(node, ast.Name) and node.id not in self.names:
            found = vars(self.module).get(node.id)
            return getattr(builtins, node.id, None) if found is None else found
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            if isinstance(owner, types.ModuleType):
                return getattr(owner, node.attr)
        return None

    def kind(self, node: ast.expr) -> str:
        """The kind of an expression's values."""
        match node:
            case ast.Constant(value=value):
                return "none" if value is None else kind_of(type(value).__name__)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case ast.UnaryOp(operand=operand):
                return self.kind(operand)
            case ast.JoinedStr() | ast.Attribute(attr="__name__"):
                return "str"
            case ast.Name(id=name):
                return self.names.get(name, "")
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self.attributes.get(name, "")
            case ast.Attribute(value=value, attr="shape") if self.kind(value) == "tensor":
                return "sizes"
            case ast.Attribute() if callable(self.meaning(node)):
                return "function"
            case ast.BoolOp(values=values):
                return _common(map(self.kind, values))
            case ast.IfExp(body=body, orelse=other):
                return _common(map(self.kind, (body, other)))
            case ast.BinOp():
                return self._kind_of_operation(node)
            case ast.List() | ast.Tuple() | ast.GeneratorExp() | ast.ListComp():
                return self._kind_of_sequence(node)
            case ast.Subscript(value=value, slice=index):
                kind = self.kind(value)
                return kind if isinstance(index, ast.Slice) else _ELEMENTS.get(kind, "")
            case ast.Call():
                return self._kind_of_call(node)
        return ""

    def _kind_of_operation(self, node: ast.BinOp) -> str:
        left, right = self.kind(node.left), self.kind(node.right)
        if left in SEQUENCES and isinstance(node.op, ast.Mult):
            return left
        if not {left, right} <= NUMBERS:
            return ""
        return "float" if "float" in (left, right) or isinstance(node.op, ast.Div) else "number"

    def _kind_of_sequence(self, node: Any) -> str:
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            with self.looping(node.generators[0]):
                kinds = {self.kind(node.elt)}
        else:
            kinds = {self._kind_of_element(each) for each in node.elts}
        if kinds <= {"number", "none"}:
            return "list" if isinstance(node, (ast.List, ast.ListComp)) else "sizes"
        return {"float": "floats", "str": "texts"}.get(_common(kinds), "")

    def _kind_of_element(self, node: ast.expr) -> str:
        if isinstance(node, ast.Starred):
            return _ELEMENTS.get(self.kind(node.value), "")
        return self.kind(node)

    def _kind_of_call(self, node: ast.Call) -> str:
        match node.func:
            case ast.Attribute(value=value, attr="dim" | "size") if self.kind(value) == "tensor":
                return "number"
            case ast.Attribute(value=ast.Constant(value=str()), attr="join"):
                return "str"
            case ast.Attribute(
                value=ast.Name(id="self") | ast.Call(func=ast.Name(id="super")), attr=name
            ):
                method = getattr(self.owner, name, None)
                return kind_of(getattr(method, "__annotations__", {}).get("return", ""))
        function = self.meaning(node.func)
        if function in (tuple, list):
            kind = self.kind(node.args[0])
            return "list" if function is list and kind == "sizes" else kind
        if getattr(function, "__name__", "") in HELPERS:
            return "floats" if self.kind(node.args[0]).startswith("float") else "sizes"
        for kind, functions in _BUILTINS.items():
            if function in functions:
                return kind
        return kind_of(getattr(function, "__annotations__", {}).get("return", ""))

    # ---------------------------------------------------------------- variables of loops

    def elements(self, node: ast.expr) -> list[str]:
        """The kinds of a loop's variables, from its sequence."""
        if isinstance(node, ast.Call) and self.meaning(node.func) is zip:
            return [kind for each in node.args for kind in self.elements(each)]
        if isinstance(node, ast.Call) and self.meaning(node.func) is enumerate:
            return ["number", *self.elements(node.args[0])]
        kind = self.kind(node)
        if kind not in SEQUENCES:
            raise Refused(f"a loop over {ast.unparse(node)}")
        return [_ELEMENTS[kind]]

    def know(self, target: ast.expr, kinds: list[str]) -> list[str]:
        """Makes variables known; their names."""
        each = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [name.id for name in each if isinstance(name, ast.Name)]
        if not len(each) == len(names) == len(kinds):
            raise Refused(ast.unparse(target))
        self.names |= dict(zip(names, kinds, strict=True))
        return names

    @contextlib.contextmanager
    def looping(self, clause: ast.comprehension | ast.For) -> Iterator[list[str]]:
        """The names of a loop's variables, which are known within it."""
        before = dict(self.names)
        yield self.know(clause.target, self.elements(clause.iter))
        self.names = before


_BUILTINS: Final = {
    "bool": (all, any, isinstance, bool),
    "number": (len, int),
    "float": (float, math.sqrt),
    "str": (str,),
}


def _common(kinds: Any) -> str:
    """The one kind of several, of which some may be None; a float if some are."""
    found = set(kinds) - {"none"}
    if found == {"number", "float"}:
        return "float"
    if found == {"sizes", "list"}:
        return "sizes"
    return found.pop() if len(found) == 1 else ""
