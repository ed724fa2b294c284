"""Functions rewritten before they are traced: an ``assert`` becomes a call that a trace records."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType
from typing import Any

from ..._ground.package import PACKAGE
from ...nn import Module
from .._symbolic_trace import Tracer
from ..graph import Graph


def _import_expression(module: str, name: str) -> ast.expr:
    """The expression of a name of this package, whatever the program calls that."""
    text = f"__import__({f'{PACKAGE}{module}'!r}, fromlist=[{name!r}]).{name}"
    return ast.parse(text, mode="eval").body


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites the source of a function; derive to rewrite more."""

    def rewrite(self, fn: Any) -> FunctionType:
        """The function compiled from the rewritten source, with the old function's globals."""
        fn = inspect.unwrap(getattr(fn, "__func__", fn))
        tree = self.visit(ast.parse(textwrap.dedent("".join(inspect.getsourcelines(fn)[0]))))
        names: dict[str, Any] = copy.copy(fn.__globals__)
        exec(compile(ast.fix_missing_locations(tree), "", "exec"), names)
        new = names[fn.__name__]
        made = FunctionType(
            new.__code__, fn.__globals__, new.__name__, new.__defaults__, new.__closure__
        )
        made.__kwdefaults__ = copy.copy(new.__kwdefaults__)
        return functools.update_wrapper(made, new)  # type: ignore[return-value]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """``assert a, b`` is ``torch._assert(a, b)``."""
        message = node.msg or ast.Constant(value="")
        call = ast.Call(_import_expression("", "_assert"), [node.test, message], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """``a: T = b`` is ``a = annotate(b, T)``."""
        if node.value is None:
            return node
        call = ast.Call(
            _import_expression(".fx.annotate", "annotate"), [node.value, node.annotation], []
        )
        return ast.copy_location(ast.Assign([node.target], call), node)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)

    class RewrittenModule(Module):
        forward = AST_Rewriter().rewrite(fn.forward)

    made = RewrittenModule()
    made.__dict__.update({name: copy.copy(value) for name, value in vars(fn).items()})
    return made


class RewritingTracer(Tracer):
    """A tracer that rewrites the traced module or function."""

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of the rewritten module or function."""
        return super().trace(_rewrite(root), concrete_args)


__all__ = ["AST_Rewriter", "RewritingTracer"]
