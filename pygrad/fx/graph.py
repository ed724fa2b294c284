"""Graphs: nodes in order, which together are a function."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from ..nn import Module, Parameter
from ._codegen import CodeGen, PythonCode, TransformCodeFunc
from ._codegen import _BoxedCodeGen as _BoxedCodeGen
from ._codegen import _format_target as _format_target
from ._codegen import _parse_stack_trace as _parse_stack_trace
from ._codegen import _ParsedStackTrace as _ParsedStackTrace
from ._codegen import _PyTreeCodeGen as _PyTreeCodeGen
from ._codegen import _PyTreeInfo as _PyTreeInfo
from ._codegen import inplace_methods as inplace_methods
from ._codegen import magic_methods as magic_methods
from ._codegen import reflectable_magic_methods as reflectable_magic_methods
from ._compatibility import compatibility
from ._names import is_from_torch, node_name, type_name
from ._namespace import _custom_builtins as _custom_builtins
from ._namespace import _CustomBuiltin as _CustomBuiltin
from ._namespace import _Namespace
from ._namespace import _register_custom_builtin as _register_custom_builtin
from .immutable_collections import immutable_dict
from .node import Argument, Node, Target, map_arg
from .node import _get_qualified_name as _get_qualified_name
from .node import _type_repr as _type_repr

if TYPE_CHECKING:
    from ._symbolic_trace import Tracer
    from .graph_module import GraphModule

_LEGAL: Final = frozenset(
    "call_function call_method get_attr call_module placeholder output".split()
)
_CASE_CHANGES: Final = re.compile(r"(?<=[a-z])([A-Z])")
_is_from_torch = is_from_torch


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _snake_case(s: str) -> str:
    """A name in lower case, words apart.

    Example:
        >>> from pygrad.fx.graph import _snake_case
        >>> _snake_case("BatchNorm2d"), _snake_case("ALL_CAPS")
        ('batch_norm2d', 'all_caps')
    """
    return _CASE_CHANGES.sub(r"_\1", s).lower()


class _InsertPoint:
    """The point where nodes are inserted, until the scope ends."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.graph._insert = self.orig_insert


class _node_list:
    """The nodes of a graph in order; nodes may be added and erased during iteration."""

    def __init__(self, graph: Graph, direction: Literal["_prev", "_next"] = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        return self._walk(self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return self._walk("_prev" if self.direction == "_next" else "_next")

    def _walk(self, direction: str) -> Iterator[Node]:
        root = self.graph._root
        node: Node = getattr(root, direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, direction)


@compatibility(is_backward_compatible=True)
class Graph:
    """A function as a list of nodes: inputs, calls in order, and one result.

    Example:
        >>> import operator
        >>> from pygrad import nn
        >>> from pygrad.fx import Graph, GraphModule
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> doubled = graph.call_function(operator.mul, (x, 2))
        >>> _ = graph.output(doubled)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, 2), kwargs = {})
            return mul
        >>> GraphModule(nn.Module(), graph)(21)
        42
    """

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._in_order = True
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> GraphModule | None:
        """The module that owns this graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order; `reversed` iterates backwards."""
        return _node_list(self)

    # --- the order of nodes, numbered when it is asked for ---

    def _update_position(self, node: Node) -> None:
        if self._in_order and node._next is self._root:
            node._position = node._prev._position + 1
        else:
            self._in_order = False

    def _position_of(self, node: Node) -> int:
        if not self._in_order:
            for at, each in enumerate(self.nodes, 1):
                each._position = at
            self._in_order = True
        return node._position

    @compatibility(is_backward_compatible=False)
    def output_node(self) -> Node:
        """The last node, which is the result."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    @compatibility(is_backward_compatible=False)
    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with this op and, if given, this target, in order."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # --- copies ---

    @compatibility(is_backward_compatible=True)
    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Copy the nodes of another graph into this one.

        Args:
            g: the other graph.
            val_map: maps old to new nodes, filled here; nodes already in it are not copied.
            return_output_node: also return the other graph's output node.

        Returns:
            The new value of the other graph's result; None if it has none.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, memo if memo else {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            result, old = found
            made.output(result, type_expr=old.type).meta = copy.copy(old.meta)
        return made

    @compatibility(is_backward_compatible=True)
    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Copy a node of another graph into this one; `arg_transform` maps the nodes among its
        arguments to nodes of this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    # --- new nodes ---

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a node at the insert point.

        Args:
            op: the kind; see `Node`.
            target: the called or read thing.
            args, kwargs: the arguments.
            name: the name of its value; derived from the target if not given.
            type_expr: the type of its value, for annotations in the code.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        name = self._graph_namespace.create_name(candidate, None)
        node = Node(self, name, op, target, args or (), kwargs or immutable_dict(), type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            return _snake_case(node_name(target))
        return _snake_case(target[2:-2] if _is_magic(target) else target)

    @compatibility(is_backward_compatible=True)
    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Insert an input; without a default value it must be given."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert the reading of an attribute of the module, by its dotted name."""
        owner = self.owning_module
        if owner is not None and not _is_registered(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert the call of a submodule, by its dotted name."""
        if self.owning_module and self.owning_module.get_submodule(module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the "
                "owning GraphModule! Call GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert the call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Insert the call of a function."""
        return self.create_node(
            "call_function", the_function, args, kwargs, name=name, type_expr=type_expr
        )

    @compatibility(is_backward_compatible=True)
    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Insert the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    @compatibility(is_backward_compatible=True)
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert before this node from now on, or within a ``with`` statement; without a node at
        the beginning.
        """
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    @compatibility(is_backward_compatible=True)
    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert behind this node; without a node at the end. Several nodes come in reverse
        order.
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    # --- nodes that go ---

    @compatibility(is_backward_compatible=True)
    def erase_node(self, to_erase: Node) -> None:
        """Take out an unused node.

        Raises:
            RuntimeError: it has users, or is another graph's.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs(
            map_arg(to_erase._args, lambda _: None), map_arg(to_erase._kwargs, lambda _: None)
        )

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.meta.clear()
            self.erase_node(node)

    @compatibility(is_backward_compatible=True)
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase unused nodes without effect, also in graphs that are attributes.

        Args:
            is_impure_node: whether a node has an effect; `Node.is_impure` if not given.

        Returns:
            True if a node was erased.
        """
        self.lint()
        changed = False
        for node in reversed(self.nodes):
            if node.users:
                continue
            if not (is_impure_node(node) if is_impure_node else node.is_impure()):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            read = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                graph = getattr(child, "graph", None)
                if name in read and isinstance(graph, Graph):
                    changed |= graph.eliminate_dead_code()
                    child.recompile()
        return changed

    # --- texts ---

    @compatibility(is_backward_compatible=True)
    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the source of a function.

        Args:
            root_module: the name of the module of which attributes are read: ``self``.
            verbose: with shapes, if `meta` has them, and where nodes are from.
        """
        namespace = _Namespace()  # of this source alone: values and objects from outside

        def name_of(node: Node) -> str:
            return namespace.create_name(node.name, node)

        names = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in names:
            node._repr_fn = name_of
        try:
            return self._codegen._gen_python_code(
                self.nodes,
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                record_func=record_func,
                additional_meta=additional_meta,
            )
        finally:
            for node, before in names:
                node._repr_fn = before

    def __str__(self) -> str:
        lines = [node.format_node([]) for node in self.nodes]
        return "\n    ".join(["graph():", *(line for line in lines if line)])

    @compatibility(is_backward_compatible=True)
    def print_tabular(self) -> None:
        """Print the nodes as a table, by the package ``tabulate``."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on "
                "this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    # --- checks ---

    @compatibility(is_backward_compatible=True)
    def lint(self) -> None:
        """Check that the nodes are this graph's, in order and with distinct names, and that their
        targets exist.

        Raises:
            RuntimeError: a check fails; names the node.
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _LEGAL:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for arg in node._input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, "
                        "but was used as an argument! If you are copying nodes from another "
                        "graph, make sure to use ``arg_transform`` on node_copy() to remap "
                        f"values\n{self}"
                    )
                if arg not in seen:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                _check_target(self.owning_module, node)

    # --- the way it is written ---

    @compatibility(is_backward_compatible=False)
    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph, given the arguments of the function."""
        return self._codegen.process_inputs(*args)

    @compatibility(is_backward_compatible=False)
    def process_outputs(self, out: Any) -> Any:
        """Converts the graph's result to the function's result."""
        return self._codegen.process_outputs(out)

    @compatibility(is_backward_compatible=False)
    def set_codegen(self, codegen: CodeGen) -> None:
        """Let the graph be written by another `CodeGen`."""
        self._codegen = codegen

    @compatibility(is_backward_compatible=False)
    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Let a function change the lines of the body, from now on or within a ``with`` statement.

        Args:
            make_transformer: called with the function that is there already, or None; gives the
                new one, from lines to lines.
        """
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def on_generate_code_context_manager() -> Iterator[None]:
            try:
                yield
            finally:
                codegen._body_transformer = before

        return on_generate_code_context_manager()


def _is_registered(owner: Module, name: str) -> bool:
    """Whether a module has a module, parameter or buffer of this dotted name."""
    path, _, last = name.rpartition(".")
    try:
        module = owner.get_submodule(path)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        return False
    found = getattr(module, last, None)
    return isinstance(found, (Module, Parameter)) or last in module._buffers


def _check_target(owner: Module, node: Node) -> None:
    """Raises if a module does not have a node's target."""
    wanted, fits = ("a Callable", callable(node.target))
    if node.op != "call_function":
        wanted, fits = "a str", isinstance(node.target, str)
    if not fits:
        raise ValueError(
            f"Node {node} target {node.target} has type {type_name(node.target)} but "
            f"{wanted} is expected"
        )
    if node.op not in ("get_attr", "call_module"):
        return
    parts = str(node.target).split(".")
    found: Any = owner
    for at, part in enumerate(parts):
        found, path = getattr(found, part, None), ".".join(parts[:at])
        if found is None:
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute "
                f"{part} of {path}"
            )
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(
                f"Node {node} target {node.target} {part} of {path} does not reference an nn.Module"
            )


__all__ = ["CodeGen", "Graph", "PythonCode"]
