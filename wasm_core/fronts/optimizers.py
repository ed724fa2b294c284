"""The descriptions of optimizers for the JavaScript front: ``web/optim_table.js``.

Written with the stubs by ``make stubs``, from the classes of `pygrad.optim` and the rows of their
formulas. A check, an expression in Python, becomes one in JavaScript.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any, Final

from pygrad import optim
from pygrad.optim._builtin import BuiltinOptimizer
from pygrad.optim._description import PARTS, Check, formula

FILE: Final = Path(__file__).parent.parent.parent / "web" / "optim_table.js"
CLASSES: Final[tuple[type[BuiltinOptimizer], ...]] = tuple(
    cls
    for name in sorted(optim.__all__)
    if isinstance(cls := getattr(optim, name), type) and issubclass(cls, BuiltinOptimizer)
)
_HEAD: Final = """\
/** Made by `make stubs` from the classes of pygrad.optim and from rows. Do not edit.
 *
 * An optimizer has the row of its formula and the rows that are one loop, the options in the order
 * of `defaults`, the checks, the entries of a parameter's state with how each begins, and the kinds
 * of parameters that it refuses. A row has the entries that its lists hold, and the places of its
 * numbers among the options. */
"""
_OPERATORS: Final = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "===",
    ast.NotEq: "!==",
    ast.Is: "===",
    ast.IsNot: "!==",
}


def in_javascript(node: ast.expr) -> str:
    """An expression of a check in JavaScript: ``o`` has the options, ``f`` the functions.

    Raises:
        NotImplementedError: a kind of expression that no check had so far.
    """
    match node:
        case ast.Constant(value=value):
            return json.dumps(value)
        case ast.Name(id="parameter"):
            return "parameter"
        case ast.Name(id=name):
            return f"o.{name}"
        case ast.Subscript(value=value, slice=place):
            return f"{in_javascript(value)}[{in_javascript(place)}]"
        case ast.Attribute(value=value, attr=name):
            return f"{in_javascript(value)}.{name}"
        case ast.Tuple(elts=items):
            return f"[{', '.join(map(in_javascript, items))}]"
        case ast.Call(func=ast.Name(id=name), args=[value]):
            return f"f.{name}({in_javascript(value)})"
        case ast.Call(func=function, args=[]):
            return f"{in_javascript(function)}()"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"!({in_javascript(operand)})"
        case ast.BoolOp(op=op, values=values):
            sign = " && " if isinstance(op, ast.And) else " || "
            return f"({sign.join(map(in_javascript, values))})"
        case ast.Compare(left=value, ops=[ast.In()], comparators=[items]):
            return f"{in_javascript(items)}.includes({in_javascript(value)})"
        case ast.Compare(left=left, ops=ops, comparators=rest):
            sides = [left, *rest]
            pairs = zip(sides, ops, rest, strict=False)
            return " && ".join(
                f"{_number(a)} {_OPERATORS[type(op)]} {_number(b)}" for a, op, b in pairs
            )
    raise NotImplementedError(ast.unparse(node))


def _number(node: ast.expr) -> str:
    """A side of a comparison: a tensor of one element stands for its number."""
    text = in_javascript(node)
    return f"f.number({text})" if text.startswith("o.") else text


def _check(check: Check) -> str:
    expression, message = check
    test = in_javascript(ast.parse(expression, mode="eval").body)
    names = {"parameter", "places"}
    shown = re.sub(
        r"\{(\w+)",
        lambda m: "${" + (f"f.{m[1]}" if m[1] in names else f"o.{m[1]}"),
        message.replace("`", "\\`"),
    )
    return f"[(o, f) => {test.replace('parameter', 'f.parameter')}, (o, f) => `{shown}`]"


def _checks(checks: tuple[Check, ...]) -> str:
    return (
        "["
        + "".join(f"\n      {_check(each)}," for each in checks)
        + ("\n    ]" if checks else "]")
    )


def _options(cls: type[BuiltinOptimizer]) -> list[str]:
    return cls._order.split()


def _optimizer(cls: type[BuiltinOptimizer]) -> str:
    row, _, rest = cls._loop.partition(" if ")
    option, _, other = rest.partition(" else ")
    state = {key: [each.maker, each.value, each.condition] for key, each in cls._entries.items()}
    parent = cls.__base__
    facts: dict[str, Any] = {
        "extends": parent.__name__ if parent in CLASSES else "",
        "row": cls._row,
        "loop": [row, option, other] if rest else [row] if row else [],
        "order": _options(cls),
        "fixed": dict(cls._fixed),
        "state": state,
        "refuses": list(cls._refuses),
        "begins_at_once": cls._begins_at_once,
    }
    lines = [f"    {name}: {json.dumps(value)}," for name, value in facts.items()]
    lines.append(f"    checks: {_checks(cls._checks)},")
    lines.append(f"    checks_of_parameters: {_checks(cls._checks_of_parameters)},")
    return "\n".join([f"  {cls.__name__}: {{", *lines, "  },"])


def _rows() -> list[str]:
    found: dict[str, None] = {}
    for cls in CLASSES:
        names = [cls._row, *re.findall(r"_\w+_(?!\w)", cls._loop)]
        found.update(dict.fromkeys(names))
    return list(found)


def _formula(name: str) -> str:
    own = formula(name)
    numbers = {
        each: [kind, *PARTS.get(each, (each,))]
        for each, kind in zip(own.options, own.kinds, strict=True)
    }
    return f"  {name}: {json.dumps({'states': own.states, 'numbers': numbers})},"


def table() -> str:
    """The text of ``web/optim_table.js``."""
    lines = [_HEAD, "export const optimizers = {", *map(_optimizer, CLASSES), "};", ""]
    lines += ["export const formulas = {", *map(_formula, _rows()), "};"]
    return "\n".join(lines) + "\n"
