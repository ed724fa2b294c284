"""Calls, in JavaScript: of the library, of methods, of other functions of layers, of builtins."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import numbers
import types
from collections.abc import Callable
from typing import Any, Final

from pygrad import nn
from pygrad._table.functions import TABLE
from pygrad._table.schema import arguments
from pygrad._tensor.tensor import Tensor
from pygrad.nn import functional

from .expressions import LIBRARY, Expressions
from .kinds import HELPERS, NUMBERS, PLAIN, SEQUENCES
from .text import Refused, call, entry, joined, literal, local

_TYPES: Final = {
    str: "typeof {} === 'string'",
    float: "typeof {} === 'number'",
    int: "Number.isInteger({})",
    numbers.Integral: "Number.isInteger({})",
    tuple: "Array.isArray({})",
    list: "Array.isArray({})",
    Tensor: "isTensor({})",
}
_BUILTINS: Final = (tuple, list, len, bool, int, float, str, math.sqrt)


def bound(function: Callable[..., Any], given: list[str], named: dict[str, str]) -> dict[str, str]:
    """The arguments of a call by name, with the defaults of those that are not given."""
    found = {}
    given, named = list(given), dict(named)
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise Refused("a function of any number of arguments")
        if given:
            found[each.name] = given.pop(0)
        elif each.name in named:
            found[each.name] = named.pop(each.name)
        elif each.default is not each.empty:
            found[each.name] = literal(each.default)
    if given or named:
        raise Refused(f"arguments of {function.__name__}")
    return found


@functools.cache
def _order(name: str) -> dict[str, str | None]:
    """The arguments of a row of torch.nn.functional that may stand in order, with their defaults;
    empty if its overloads differ.
    """
    rows = [schema for op in TABLE if name in op.names("nn") for _, schema in op.rows_in("nn")]
    orders = {
        tuple((each.name, each.default) for each in arguments(row) if not each.keyword_only)
        for row in rows
    }
    return dict(orders.pop()) if len(orders) == 1 else {}


def in_order(name: str, given: list[str], named: dict[str, str]) -> list[str]:
    """Moves arguments by name to their places, which takes the engine less time."""
    front, found = list(given), list(given)
    left = dict(named)
    for argument, default in list(_order(name).items())[len(given) :]:
        if not left or (argument not in left and default is None):
            break
        front.append(left.pop(argument, "") or literal(ast.literal_eval(str(default))))
        if argument in named:
            found = list(front)
    for argument in list(_order(name))[: len(found)]:
        named.pop(argument, None)
    return found


class Calls(Expressions):
    """Translates calls."""

    def _Call(self, node: ast.Call) -> str:
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        function = self.meaning(node.func)
        if function is None and isinstance(node.func, ast.Name):
            return self._local(node, node.func.id)
        if function is isinstance:
            return self._instance(node)
        if function in (all, any) and isinstance(node.args[0], ast.GeneratorExp):
            method = "every" if function is all else "some"
            return self.loop(method, node.args[0], self.condition)
        if function in _BUILTINS:
            return self._builtin(function, *node.args)
        return self._own(node, function)

    def parts(self, node: ast.Call) -> tuple[list[str], dict[str, str]]:
        """The arguments in order, and those by name."""
        named = {}
        for each in node.keywords:
            value = self.expression(each.value)
            named[each.arg or f"...{value}"] = value
        return [self.expression(each) for each in node.args], named

    def _arguments(self, node: ast.Call) -> list[str]:
        """The arguments of a call of the library: those by name are in an object of options."""
        given, named = self.parts(node)
        if isinstance(node.func, ast.Attribute) and self.meaning(node.func.value) is functional:
            given = in_order(node.func.attr, given, named)
        rows = [key if key.startswith("...") else entry(key, v) for key, v in named.items()]
        if len(rows) == 1 and rows[0].startswith("..."):
            return [*given, rows[0].removeprefix("...")]
        return [*given, joined("{ ", rows, " }")] if rows else given

    def _local(self, node: ast.Call, name: str) -> str:
        """A call of a variable: of the class in a classmethod, or of a function of the library."""
        kind = self.names.get(name)
        if kind not in ("class", "function", "opaque"):
            raise Refused(f"a call of {name}")
        return call("new this" if kind == "class" else local(name), self._arguments(node))

    def _own(self, node: ast.Call, function: Any) -> str:
        """A call of a class of layers, or of a function of their modules."""
        if isinstance(function, type) and issubclass(function, nn.Module | Tensor):
            return call(f"new {self.scope(function.__name__, function)}", self._arguments(node))
        if not isinstance(function, types.FunctionType):
            raise Refused(ast.unparse(node))
        if not function.__module__.startswith("pygrad.nn"):
            raise Refused(f"{function.__name__}, which is no function of layers")
        name = function.__name__
        name = self.helper(name) if name in HELPERS else self.scope(name, function)
        return call(name, list(bound(function, *self.parts(node)).values()))

    def _method(self, node: ast.Call, function: ast.Attribute) -> str:
        """A call of a method, or of a function of a module."""
        owner, name = self.meaning(function.value), function.attr
        if owner is math and name == "sqrt":
            return self._builtin(math.sqrt, *node.args)
        if isinstance(owner, types.ModuleType) and owner not in LIBRARY:
            return self._own(node, getattr(owner, name))
        match function.value:
            case ast.Name(id="self") if hasattr(self.owner, name):
                method = getattr(self.owner, name)
                if method is not getattr(nn.Module, name, None):
                    given = bound(method, *self.parts(node))
                    return call(f"this.{name}", list(given.values()))
            case ast.Call(func=ast.Name(id="super")):
                return call(f"super.{name}", self._arguments(node))
            case ast.Constant(value=str()) as text if name == "join":
                return f"{self.expression(node.args[0])}.join({self.expression(text)})"
            case value if name == "append" and self.kind(value) in ("list", "texts"):
                return call(f"{self.expression(value)}.push", self._arguments(node))
            case value if self.kind(value) in PLAIN | SEQUENCES:
                raise Refused(f"a method of {ast.unparse(value)}, which is no tensor")
        if owner is not None:
            return call(self._Attribute(function), self._arguments(node))
        return call(f"{self.operand(function.value)}.{name}", self._arguments(node))

    # ---------------------------------------------------------------- builtins

    def _instance(self, node: ast.Call) -> str:
        value, of = node.args
        kinds = of.elts if isinstance(of, ast.Tuple) else [of]
        wanted = [self.meaning(each) for each in kinds]
        if any(each not in _TYPES for each in wanted):
            raise Refused(ast.unparse(node))
        if Tensor in wanted:
            self.scope("isTensor")
        tests = [_TYPES[each] for each in wanted if each is not int or float not in wanted]
        text = self.expression(value)
        return " || ".join(dict.fromkeys(test.format(text) for test in tests))

    def _builtin(self, function: Any, value: ast.expr) -> str:
        text, kind = self.expression(value), self.kind(value)
        if function is bool:
            return f"Boolean({self.condition(value)})"
        if function is float and kind == "tensor":
            return f"Number({text}.item())"
        if function is float and kind in NUMBERS | {"floats"}:
            return text
        if function is math.sqrt and kind in NUMBERS:
            return f"Math.sqrt({text})"
        if function is int and kind in NUMBERS | {"sizes"}:
            return f"Math.trunc({text})"
        if kind not in SEQUENCES:
            raise Refused(f"{function.__name__}({ast.unparse(value)})")
        if function is str and kind == "sizes":
            return f"{self.helper('show')}({text})"
        if function is len:
            return f"{text}.length"
        if function in (tuple, list):
            return text if isinstance(value, ast.GeneratorExp) else f"[...{text}]"
        raise Refused(f"{function.__name__}({ast.unparse(value)})")
