"""Statements, in JavaScript."""

from __future__ import annotations

import ast
from typing import Any, Final

from pygrad import nn
from pygrad._tensor import namespace

from .calls import Calls, bound
from .expressions import COMPUTED, destructured
from .kinds import NUMBERS, kind_of
from .text import Refused, entry, indented, listed, local

_ALIKE: Final = ({"list", "sizes"}, {"tensor", "opaque"})
"""Kinds of which a variable may be one after the other."""
_ERRORS: Final = (AssertionError, RuntimeError, TypeError, ValueError)


class Translation(Calls):
    """Translates the body of a function."""

    def body(self, statements: list[ast.stmt]) -> list[str]:
        """Statements as lines."""
        return [line for each in statements for line in self.statement(each)]

    def block(self, statements: list[ast.stmt]) -> list[str]:
        """Statements in braces: variables that begin there end there."""
        before = dict(self.names)
        lines = indented(self.body(statements))
        self.names = before
        return lines

    def statement(self, node: ast.stmt) -> list[str]:
        """A statement as lines."""
        translate: Any = getattr(self, f"_{type(node).__name__}", None)
        if translate is None:
            raise Refused(ast.unparse(node))
        lines: list[str] = translate(node)
        return lines

    # ---------------------------------------------------------------- control

    def _Return(self, node: ast.Return) -> list[str]:
        return f"return {self.expression(node.value)};".split("\n") if node.value else ["return;"]

    def _Raise(self, node: ast.Raise) -> list[str]:
        match node.exc:
            case ast.Call(func=function, args=[message]) if self.meaning(function) in _ERRORS:
                name = self.meaning(function).__name__
                made = "TypeError" if name == "TypeError" else self.helper(name)
                return f"throw new {made}({self.expression(message)});".split("\n")
        raise Refused(ast.unparse(node))

    def _If(self, node: ast.If) -> list[str]:
        lines = [f"if ({self.condition(node.test)}) {{", *self.block(node.body)]
        match node.orelse:
            case []:
                return [*lines, "}"]
            case [ast.If() as other]:
                first, *rest = self._If(other)
                return [*lines, f"}} else {first}", *rest]
        return [*lines, "} else {", *self.block(node.orelse), "}"]

    def _For(self, node: ast.For) -> list[str]:
        if node.orelse:
            raise Refused(ast.unparse(node))
        over = self.iterated(node.iter)
        with self.looping(node) as names:
            head = f"for (const {destructured(node.target, names)} of {over}) {{"
            return [head, *self.block(node.body), "}"]

    def _With(self, node: ast.With) -> list[str]:
        match node.items:
            case [ast.withitem(context_expr=ast.Call(func=function), optional_vars=None)]:
                only_calls = all(isinstance(each, ast.Expr) for each in node.body)
                if self.meaning(function) is namespace.no_grad and only_calls:
                    return [f"{self.scope('no_grad')}(() => {{", *self.block(node.body), "});"]
        raise Refused(ast.unparse(node))

    # ---------------------------------------------------------------- calls for their effect

    def _Expr(self, node: ast.Expr) -> list[str]:
        match node.value:
            case ast.Constant():
                return []  # a docstring
            case ast.Call(func=function, args=[message, *_]) if (
                getattr(self.meaning(function), "__name__", "") == "warn"
            ):
                return f"{self.scope('warn')}({self.expression(message)});".split("\n")
            case (
                ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__")
                ) as made
            ):
                return self._base(made)
            case ast.Call():
                return f"{self.expression(node.value)};".split("\n")
        raise Refused(ast.unparse(node))

    def _base(self, node: ast.Call) -> list[str]:
        """The constructor of the base. That of Module has run before."""
        assert self.owner is not None
        behind = self.owner.__mro__[1:]
        base: Any = next(cls for cls in behind if "__init__" in vars(cls))
        given, named = self.parts(node)
        if base is not nn.Module:
            rows = [entry(*each) for each in bound(base.__init__, given, named).items()]
            return listed("super[MAKE]({ ", rows, " });")
        if given or named:
            raise Refused(ast.unparse(node))
        return []

    # ---------------------------------------------------------------- assignments

    def _Assign(self, node: ast.Assign) -> list[str]:
        return self._assigned(node.targets, node.value, self._made(node.value))

    def _AnnAssign(self, node: ast.AnnAssign) -> list[str]:
        kind = kind_of(ast.unparse(node.annotation))
        if node.value is not None:
            return self._assigned([node.target], node.value, kind)
        if isinstance(node.target, ast.Attribute):
            self.attributes[node.target.attr] = kind
        return []

    def _made(self, value: ast.expr) -> str:
        """The kind of an assigned value: of a call of the library an object to pass on."""
        is_object = isinstance(value, (ast.Call, ast.Dict)) or self._may_be_object(value)
        return self.kind(value) or ("opaque" if is_object else "")

    def _may_be_object(self, value: ast.expr) -> bool:
        """Whether a value is the result of a call, or None."""
        if isinstance(value, ast.IfExp):
            branches = (value.body, value.orelse)
            return all(isinstance(each, (ast.Call, ast.Constant)) for each in branches)
        return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Tuple)

    def _assigned(self, targets: list[ast.expr], value: ast.expr, kind: str) -> list[str]:
        (target, *others) = targets
        if others:
            raise Refused(f"several assignments of {ast.unparse(value)}")
        text = self.expression(value)
        match target:
            case ast.Name(id=name):
                word = "" if name in self.names else "let "
                was = self.names.setdefault(name, kind)
                if kind and was != kind and {was, kind} not in _ALIKE:
                    raise Refused(f"{name}, which is {was or 'anything'} and then {kind}")
                return f"{word}{local(name)} = {text};".split("\n")
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                self.attributes.setdefault(name, kind)
                return f"this.{name} = {text};".split("\n")
            case ast.Attribute():
                return f"{self.expression(target)} = {text};".split("\n")
            case ast.Tuple(elts=each) if self._has_integers(value):
                names = self.know(target, ["number"] * len(each))
                return f"let {destructured(target, names)} = {text};".split("\n")
        raise Refused(ast.unparse(target))

    def _has_integers(self, value: ast.expr) -> bool:
        """Whether a value is a shape, or several integers that a function returns."""
        function = self.meaning(value.func) if isinstance(value, ast.Call) else None
        said = str(getattr(function, "__annotations__", {}).get("return", ""))
        return self.kind(value) == "sizes" or said.startswith("tuple[int")

    def _AugAssign(self, node: ast.AugAssign) -> list[str]:
        match node.target:
            case ast.Name(id=name) if type(node.op) in COMPUTED:
                kinds = {self.names.get(name, ""), self.kind(node.value)}
                if kinds <= NUMBERS or (kinds == {"str"} and isinstance(node.op, ast.Add)):
                    word = f"{local(name)} {COMPUTED[type(node.op)]}="
                    return f"{word} {self.expression(node.value)};".split("\n")
        raise Refused(ast.unparse(node))
