"""Expressions but calls, in JavaScript."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from pygrad._tensor import namespace
from pygrad.nn import functional, init

from .kinds import NUMBERS, PLAIN, SEQUENCES, Kinds, constant
from .text import Refused, entry, joined, literal, local

LIBRARY: Final = {functional: "F", init: "init", namespace: "torch"}
"""Modules whose functions JavaScript has."""
_COMPARED: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
COMPUTED: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
"""Operators that numbers have in both languages."""
_HELPED: Final = {ast.Mod: "modulo", ast.FloorDiv: "floorDivide", ast.Div: "divide"}


class Expressions(Kinds):
    """Translates expressions."""

    def expression(self, node: ast.expr) -> str:
        """An expression in JavaScript."""
        translate: Any = getattr(self, f"_{type(node).__name__}", None)
        if translate is None:
            raise Refused(ast.unparse(node))
        text: str = translate(node)
        return text

    def condition(self, node: ast.expr) -> str:
        """An expression as a condition. An empty sequence is false in Python alone."""
        kind = self.kind(node)
        if isinstance(node, ast.BoolOp):
            return self._in_words(node, self.condition)
        if kind in PLAIN:
            return self.expression(node)
        if kind in SEQUENCES or kind == "opaque":
            return f"{self.helper('truth')}({self.expression(node)})"
        raise Refused(f"the truth of {ast.unparse(node)}")

    def operand(self, node: ast.expr) -> str:
        """An expression, in parentheses if it is an operation."""
        text = self.expression(node)
        is_call = isinstance(node, ast.BinOp) and self._helped(node) is not None
        is_operation = isinstance(node, (ast.BinOp, ast.IfExp, ast.BoolOp, ast.Compare))
        return f"({text})" if is_operation and not is_call else text

    # ---------------------------------------------------------------- names and literals

    def _Constant(self, node: ast.Constant) -> str:
        return literal(node.value)

    def _Name(self, node: ast.Name) -> str:
        if node.id == "self":
            return "this"
        if node.id in self.names:
            return local(node.id)
        value = constant(self.module, node.id)
        if value is None:
            raise Refused(f"the name {node.id}")
        return self.expression(value)

    def _Attribute(self, node: ast.Attribute) -> str:
        if node.attr == "_parameters" and isinstance(node.value, ast.Name):
            return "this"  # its members are fields
        if node.attr == "__name__" and isinstance(node.value, ast.Call):
            return self.type_name(node.value)
        owner = self.meaning(node.value)
        if owner in LIBRARY:
            name = {"long": "int64"}.get(node.attr, node.attr)
            return f"{self.scope(LIBRARY[owner])}.{name}"
        if owner is not None:
            raise Refused(ast.unparse(node))
        return f"{self.expression(node.value)}.{node.attr}"

    def type_name(self, node: ast.Call) -> str:
        """The name of ``type(value)``."""
        (value,) = node.args
        if self.meaning(node.func) is not type:
            raise Refused(ast.unparse(node))
        if isinstance(value, ast.Name) and value.id == "self":
            return "this.constructor.name"
        return f"{self.helper('typeName')}({self.expression(value)})"

    def _Tuple(self, node: ast.Tuple | ast.List) -> str:
        return joined("[", list(map(self.expression, node.elts)), "]")

    _List = _Tuple

    def _Set(self, node: ast.Set) -> str:
        return joined("new Set([", list(map(self.expression, node.elts)), "])")

    def _Starred(self, node: ast.Starred) -> str:
        return f"...{self.expression(node.value)}"

    def _Dict(self, node: ast.Dict) -> str:
        rows = []
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                raise Refused(ast.unparse(node))
            rows.append(entry(key.value, self.expression(value)))
        return joined("{ ", rows, " }")

    # ---------------------------------------------------------------- operations

    def _in_words(self, node: ast.BoolOp, translate: Callable[[ast.expr], str]) -> str:
        word = " && " if isinstance(node.op, ast.And) else " || "
        parts = []
        for each in node.values:
            text = translate(each)
            parts.append(f"({text})" if isinstance(each, (ast.BoolOp, ast.IfExp)) else text)
        return word.join(parts)

    def _BoolOp(self, node: ast.BoolOp) -> str:
        if self.kind(node) not in ("bool", "number"):
            raise Refused(f"the value of {ast.unparse(node)}")
        return self._in_words(node, self.expression)

    def _UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            return f"!{inner}" if inner.replace(".", "").isidentifier() else f"!({inner})"
        if isinstance(node.op, ast.USub) and self.kind(node.operand) in NUMBERS:
            return f"-{self.operand(node.operand)}"
        raise Refused(ast.unparse(node))

    def _helped(self, node: ast.BinOp) -> str | None:
        """The helper of an operator whose meaning differs in JavaScript."""
        if isinstance(node.op, ast.Mult) and self.kind(node.left) in SEQUENCES:
            return "repeat"
        return _HELPED.get(type(node.op))

    def _BinOp(self, node: ast.BinOp) -> str:
        if not self.kind(node):
            raise Refused(f"{ast.unparse(node)}, whose operands have no kind")
        helper = self._helped(node)
        if helper is not None:
            left, right = self.expression(node.left), self.expression(node.right)
            return f"{self.helper(helper)}({left}, {right})"
        if type(node.op) not in COMPUTED:
            raise Refused(ast.unparse(node))
        return f"{self.operand(node.left)} {COMPUTED[type(node.op)]} {self.operand(node.right)}"

    def _Compare(self, node: ast.Compare) -> str:
        if len(node.ops) == 1:
            return self._compared(node.left, node.ops[0], node.comparators[0])
        operands = [node.left, *node.comparators]
        if not all(isinstance(each, (ast.Name, ast.Constant, ast.UnaryOp)) for each in operands):
            raise Refused(f"{ast.unparse(node)}: its middle would be computed twice")
        pairs = zip(operands, node.ops, operands[1:], strict=False)
        return " && ".join(self._compared(*each) for each in pairs)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        a, b = self.operand(left), self.operand(right)
        kinds = {self.kind(left), self.kind(right)}
        negated = isinstance(op, (ast.NotEq, ast.IsNot, ast.NotIn))
        if type(op) in _COMPARED and kinds <= NUMBERS:
            return f"{a} {_COMPARED[type(op)]} {b}"
        if isinstance(op, (ast.Is, ast.IsNot)) or (
            isinstance(op, (ast.Eq, ast.NotEq)) and kinds & PLAIN
        ):
            return f"{a} {'!==' if negated else '==='} {b}"
        if (
            isinstance(op, ast.In)
            and isinstance(left, ast.Constant)
            and self.kind(right) == "opaque"
        ):
            return f"{a} in {b}"
        if isinstance(op, (ast.In, ast.NotIn)):
            return f"{'!' if negated else ''}{self.helper('contains')}({b}, {a})"
        if isinstance(op, (ast.Eq, ast.NotEq)) and kinds <= SEQUENCES | {"none"}:
            return f"{'!' if negated else ''}{self.helper('equal')}({a}, {b})"
        raise Refused(f"a comparison of {ast.unparse(left)} with {ast.unparse(right)}")

    def _IfExp(self, node: ast.IfExp) -> str:
        body, other = self.operand(node.body), self.operand(node.orelse)
        return f"{self.condition(node.test)} ? {body} : {other}"

    def _Subscript(self, node: ast.Subscript) -> str:
        value, kind = self.expression(node.value), self.kind(node.value)
        match node.slice:
            case ast.Constant(value=str(name)) if kind == "opaque":
                return f"{value}.{name}"
            case ast.Slice(lower=lower, upper=None, step=None) if lower and kind in SEQUENCES:
                return f"{value}.slice({self.expression(lower)})"
            case index if kind == "tensor":
                return f"{value}.index({self.expression(index)})"
            case ast.UnaryOp() as index if kind in SEQUENCES:
                return f"{value}.at({self.expression(index)})"
            case index if kind in SEQUENCES or isinstance(node.value, ast.Tuple):
                return f"{value}[{self.expression(index)}]"
        raise Refused(ast.unparse(node))

    # ---------------------------------------------------------------- texts

    def _JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = []
        values: list[Any] = node.values
        for each in values:
            if isinstance(each, ast.Constant):
                parts.append(str(each.value).replace("`", "\\`").replace("${", "\\${"))
            elif isinstance(each.value, ast.Call) and self.meaning(each.value.func) is type:
                parts.append(f"<class '${{{self.type_name(each.value)}}}'>")
            else:
                parts.append(f"${{{self._shown(each)}}}")
        return f"`{''.join(parts)}`"

    def _shown(self, node: ast.FormattedValue) -> str:
        """A part of a text. What JavaScript has as a number may be a float."""
        kind, text = self.kind(node.value), self.expression(node.value)
        is_set = isinstance(constant(self.module, getattr(node.value, "id", "")), ast.Set)
        if node.format_spec is not None or not (kind or is_set) or kind in ("tensor", "opaque"):
            raise Refused(f"the text of {ast.unparse(node.value)}")
        function = "repr" if node.conversion == ord("r") else "show"
        if kind == "str" and function == "show":
            return text
        if kind in ("list", "texts"):
            return f"{self.helper('showList')}({text})"
        return f"{self.helper(function)}({text}{', true' if kind.startswith('float') else ''})"

    # ---------------------------------------------------------------- loops in an expression

    def _GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> str:
        return self.loop("map", node, self.expression)

    _ListComp = _GeneratorExp

    def loop(
        self,
        method: str,
        node: ast.GeneratorExp | ast.ListComp,
        translate: Callable[[ast.expr], str],
    ) -> str:
        """A comprehension, by a method of arrays."""
        (clause, *others) = node.generators
        if clause.ifs or others:
            raise Refused(ast.unparse(node))
        over = self.iterated(clause.iter)
        with self.looping(clause) as names:
            element = translate(node.elt)
        return f"{over}.{method}(({destructured(clause.target, names)}) => {element})"

    def iterated(self, node: ast.expr) -> str:
        """The sequence of a loop."""
        if isinstance(node, ast.Call) and self.meaning(node.func) is zip:
            return f"{self.helper('zip')}({', '.join(map(self.expression, node.args))})"
        if isinstance(node, ast.Call) and self.meaning(node.func) is enumerate:
            return f"{self.iterated(node.args[0])}.entries()"
        return self.expression(node)


def destructured(target: ast.expr, names: list[str]) -> str:
    """Variables of a loop or of a division of a sequence."""
    text = ", ".join(map(local, names))
    return f"[{text}]" if isinstance(target, ast.Tuple) else text
