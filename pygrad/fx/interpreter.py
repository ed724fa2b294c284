"""Runs graphs node by node, and makes graphs from graphs that way."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..nn import Module
from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Runs a graph. Override `call_function` and the like to do something else, or more.

    Args:
        module: the module with the graph and its attributes.
        garbage_collect_values: let values go after their last use.
        graph: another graph than the module's.

    Example:
        >>> import pygrad
        >>> from pygrad import fx
        >>> class Doubled(fx.Interpreter):
        ...     def call_method(self, target, args, kwargs):
        ...         return 2 * super().call_method(target, args, kwargs)
        >>> Doubled(fx.symbolic_trace(lambda x: x.sum())).run(pygrad.ones(3)).item()
        6.0
    """

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        module: Module,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for value in node._input_nodes:
                    if value not in seen:
                        seen.add(value)
                        self.user_to_last_uses.setdefault(node, []).append(value)

    @compatibility(is_backward_compatible=True)
    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph.

        Args:
            args: its inputs.
            initial_env: values of nodes, which are not run.
            enable_io_processing: take and return the module's values; else the graph's.

        Raises:
            Exception: a node's error, with the node in its message.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._explain(node, error)
                raise
            for value in self.user_to_last_uses.get(node, ()):
                del self.env[value]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    @staticmethod
    def _explain(node: Node, error: Exception) -> None:
        """Adds the node that raised an error to its message."""
        text = f"While executing {node.format_node()}"
        text = f"{error.args[0]}\n\n{text}" if error.args else text
        text += (
            f"\nOriginal traceback:\n{node.stack_trace}\nUse tlparse to see full graph. "
            "(https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-"
            "pt2-logs)"
        )
        error.args = (text, *error.args[1:])
        if isinstance(error, KeyError):  # a KeyError's text would be the repr
            raise RuntimeError(*error.args) from error

    @compatibility(is_backward_compatible=True)
    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with the inputs in a list, and empty the list."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(inputs):
            detail = "extra" if len(args_list) > len(inputs) else "missing"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders "
                f"but received {len(args_list)} ({detail} arguments)"
            )
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def _set_current_node(self, node: Node) -> AbstractContextManager[None]:
        return fx_traceback.set_current_meta(node, f"Interpreter_{self.__class__.__name__}")

    @compatibility(is_backward_compatible=True)
    def run_node(self, n: Node) -> Any:
        """Run one node: call the method with the name of its op."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input; all that are left for ``*args``; the default if none is."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from error

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    @compatibility(is_backward_compatible=True)
    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    @compatibility(is_backward_compatible=True)
    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module with a dotted name.

        Raises:
            RuntimeError: there is no such attribute.
        """
        found: Any = self.module
        path = target.split(".")
        for at, name in enumerate(path):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: at + 1])}")
            found = getattr(found, name)
        return found

    @compatibility(is_backward_compatible=True)
    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, values in the places of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    @compatibility(is_backward_compatible=True)
    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument of a node, values in the places of nodes."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() "
                    "to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """Makes a graph from a graph: methods return proxies, and `transform` the new module.

    Example:
        >>> import pygrad
        >>> from pygrad import fx
        >>> class Negated(fx.Transformer):
        ...     def call_method(self, target, args, kwargs):
        ...         return -super().call_method(target, args, kwargs)
        >>> module = Negated(fx.symbolic_trace(lambda x: x.sin())).transform()
        >>> print(module.code.strip())
        def forward(self, x):
            sin = x.sin();  x = None
            neg = -sin;  sin = None
            return neg
    """

    @compatibility(is_backward_compatible=True)
    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph

            def is_leaf_module(self, _: Module, __: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    @compatibility(is_backward_compatible=True)
    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A node that reads an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Records a call of a submodule as the tracer does: a node for a leaf."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node that calls a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    @compatibility(is_backward_compatible=True)
    def transform(self) -> GraphModule:
        """The module of the new graph."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            bare = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            self.new_graph.output(bare).meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Transformer"]
