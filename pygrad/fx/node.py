"""Nodes: the steps of a graph, in a doubly linked list, and the walk over arguments."""

from __future__ import annotations

import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Optional, TypeAlias, TypeVar, Union

from .._ground.dtypes import device, dtype, layout, memory_format
from .._ground.package import pygrad
from .._tensor.functions import _assert
from .._tensor.tensor import Tensor
from ..ops import OpOverload, OpOverloadPacket, profiler
from ._compatibility import compatibility
from ._metadata import abbreviate_dtype, format_list
from ._names import module_of, qualified_name, type_name, type_repr
from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import ArgsKwargsPair, normalize_function, normalize_module

if TYPE_CHECKING:
    from .graph import Graph

F = TypeVar("F", bound=Callable[..., Any])

BaseArgumentTypes = Union[  # noqa: UP007 (programs ask typing.get_args)
    str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout
]
base_types: Final = typing.get_args(BaseArgumentTypes)
Target: TypeAlias = Callable[..., Any] | str
Argument = Optional[  # noqa: UP045 (it names itself)
    Union[
        tuple["Argument", ...],
        Sequence["Argument"],
        Mapping[str, "Argument"],
        slice,
        range,
        "Node",
        BaseArgumentTypes,
    ]
]

LEGAL_OPS: Final = frozenset(
    "placeholder call_method call_module call_function get_attr output root".split()
)
_RANDOM: Final = (
    "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli "
    "multinomial"
).split()
"""PyTorch's list of random functions. Ops of the dispatcher say it by a tag."""
_side_effectful_functions: Final[set[Any]] = {
    _assert,
    operator.setitem,
    profiler._record_function_enter,
    profiler._record_function_enter_new,
    profiler._record_function_exit,
}
_EFFECTFUL_OPS: Final = frozenset(
    "aten._assert_async.msg aten._assert_scalar.default aten._assert_tensor_metadata.default "
    "aten.sym_constrain_range.default aten.sym_constrain_range_for_size.default".split()
)
"""Overloads that are not eliminated, by their names."""
_get_qualified_name = qualified_name
_type_repr = type_repr


def has_side_effect(fn: F) -> F:
    """A decorator: calls of this function are not eliminated as dead code."""
    _side_effectful_functions.add(fn)
    return fn


def _is_random(function: Any) -> bool:
    return any(function is getattr(pygrad, name, None) for name in _RANDOM)


def _function_is_impure(function: Any, impure_random: bool) -> bool:
    """Whether a call of the function is known to do more than return a value."""
    if isinstance(function, OpOverloadPacket) and function not in _side_effectful_functions:
        function = getattr(function, "default", function)
    if isinstance(function, OpOverload):
        if str(function) in _EFFECTFUL_OPS:
            return True
        if impure_random and any("nondeterministic_seeded" in str(tag) for tag in function.tags):
            return True
    if getattr(getattr(function, "_schema", None), "is_mutable", False):
        return True
    try:
        listed = function in _side_effectful_functions
    except TypeError:  # without a hash
        listed = False
    return listed or _is_random(function)


def _map_leaves(a: Any, leaf: Callable[[Any], Any]) -> Any:
    """The argument with each leaf replaced; containers in it become immutable."""
    if isinstance(a, tuple):
        parts = [_map_leaves(each, leaf) for each in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([_map_leaves(each, leaf) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: _map_leaves(each, leaf) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(
            _map_leaves(a.start, leaf), _map_leaves(a.stop, leaf), _map_leaves(a.step, leaf)
        )
    return leaf(a)


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply `fn` to each leaf of nested tuples, lists, dicts and slices.

    Example:
        >>> from pygrad.fx.node import map_aggregate
        >>> map_aggregate((1, [2, {"a": 3}]), lambda x: x * 10)
        (10, [20, {'a': 30}])
    """
    return _map_leaves(a, fn)


@compatibility(is_backward_compatible=True)
def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply `fn` to each `Node` in nested tuples, lists, dicts and slices."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return _map_leaves(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as a graph prints it, its nodes with a % before their names."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for at, a in enumerate(arg) if at < max_list_len]
        text = ", ".join(shown)
        more = f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        if isinstance(arg, list):
            return f"[{text}{more}]"
        return f"({text}{',' if len(arg) == 1 else ''}{more})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(a)}" for key, a in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


@compatibility(is_backward_compatible=True)
class Node:
    """One step of a `Graph`: an input, a call, an attribute that is read, or the result.

    Attributes:
        op: ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module`` or
            ``output``.
        target: the called or read thing: a function, or the name of a method, module or attribute.
        args, kwargs: the arguments; assigning to them updates `users`.
        users: the nodes that use the value, in order.
        meta: notes of passes about the node; copies of the node share them.

    Example:
        >>> import operator
        >>> from pygrad.fx import Graph
        >>> graph = Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(operator.add, (x, 1))
        >>> y.format_node()
        '%add : [num_users=0] = call_function[target=operator.add](args = (%x, 1), kwargs = {})'
        >>> list(x.users), y.all_input_nodes
        ([add], [x])
    """

    graph: Graph
    op: str
    target: Target
    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in LEGAL_OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        wanted = "Callable" if op == "call_function" else "str"
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type_name(target)} but a {wanted} is expected"
            )
        self.graph = graph
        self._name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users = {}
        self.meta = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._erased = False
        self._prev = self._next = self
        self._position = 0
        self._update_args_kwargs(args, kwargs)

    # --- its place in the list ---

    @property
    def next(self) -> Node:
        """The node after this one; after the last, the root of the list."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    @compatibility(is_backward_compatible=True)
    def prepend(self, x: Node) -> None:
        """Put a node of the same graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._update_position(x)

    @compatibility(is_backward_compatible=True)
    def append(self, x: Node) -> None:
        """Put a node of the same graph behind this one."""
        self._next.prepend(x)

    @property
    def _sort_key(self) -> int:
        return self.graph._position_of(self)

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # --- its arguments ---

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assigned values are frozen, and their nodes' users updated."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        found: dict[Node, None] = {}

        def collect(leaf: Any) -> Any:
            if isinstance(leaf, Node):
                found.setdefault(leaf)
            return leaf

        new_args, new_kwargs = _map_leaves(args, collect), _map_leaves(kwargs, collect)
        for old in self._input_nodes:
            if old not in found:
                old.users.pop(self, None)
        self._args, self._kwargs = new_args, new_kwargs
        for new in found:
            new.users.setdefault(self)
        self._input_nodes = found

    @compatibility(is_backward_compatible=True)
    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the positional argument at this index."""
        args: list[Any] = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    @compatibility(is_backward_compatible=True)
    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before this index."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    @compatibility(is_backward_compatible=True)
    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace the argument of this name, or add it."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old: Node, new: Node) -> None:
        def replace(node: Node) -> Node:
            return new if node is old else node

        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    @compatibility(is_backward_compatible=True)
    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace a node among the arguments by another one."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    @compatibility(is_backward_compatible=True)
    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users of this node use another one.

        Args:
            replace_with: the other one.
            delete_user_cb: whether to change a user; all are changed if not given.
            propagate_meta: copy `meta`; the other's must be empty.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None) or ()
        changed = [u for u in list(self.users) if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            for hook in hooks:
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    # --- what it is called ---

    @property
    def name(self) -> str:
        """The name of its value in generated code, unless that takes it for something else."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        for user in self.users:
            for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
                hook(old=self, new=name, user=user)
        self._name = name

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            namespace = self.graph._graph_namespace
            self.name = namespace.create_name(candidate, None)
            namespace._rename_object(self, self.name)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @property
    def stack_trace(self) -> str | None:
        """The program's stack when the node was made, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        named = getattr(target, "__name__", None)
        module = module_of(target)
        if named is not None and module == "builtins":
            return f"builtins.{named}"
        if named is not None and module == "_operator":
            return f"operator.{named}"
        return qualified_name(target)

    @compatibility(is_backward_compatible=True)
    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a graph prints it.

        Args:
            placeholder_names: of a graph's printing: gets an input's name, and None is returned.
            maybe_return_typename: of a graph's printing: gets the type of the result.
            include_tensor_metadata: dtype, shape, strides and device, if `meta` has a tensor.
        """
        kind = f"{type_repr(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names:
                name = str(self.target)
                note = f": {type_repr(self.type)}" if self.type else ""
                placeholder_names.append(name + (name + note if note else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self.args[0]}"
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if include_tensor_metadata and isinstance(value, Tensor):
            shape, stride = format_list(value.shape), format_list(value.stride())
            note = f'Tensor "{abbreviate_dtype(value.dtype)}{shape}{stride}{value.device}"'
            head = f"%{self.name} : {note}[num_users={len(self.users)}] = {self.op}"
        return (
            f"{head}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    # --- what it does ---

    @compatibility(is_backward_compatible=False)
    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must not be eliminated even if its value is unused."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(str(self.target)), "_is_impure", False))
        return self.op == "call_function" and _function_is_impure(self.target, impure_random)

    @compatibility(is_backward_compatible=False)
    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments in the order of the callee's signature, with defaults filled in.

        Args:
            root: the module in which to look modules up.
            normalize_to_only_use_kwargs: return all of them by name.

        Returns:
            The pair of arguments; None where the signature is not known.
        """
        if self.op == "call_function":
            return normalize_function(
                typing.cast(Any, self.target),
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, str(self.target), self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None


__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
