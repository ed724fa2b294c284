"""Proxies: values that record the operations on them as nodes of a graph."""

from __future__ import annotations

import copy
import dis
import enum
import inspect
import operator
import traceback
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from .. import nn
from .._boundary.overriding import arm
from .._ground.dtypes import Size
from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._names import is_tensor_method
from .graph import Graph, magic_methods, reflectable_magic_methods
from .node import Argument, Node, Target, base_types, map_aggregate, map_arg
from .operator_schemas import check_for_mutable_operation

_COPY_META_FIELDS: Final = fx_traceback.COPIED_FIELDS
_OWN_FILES: Final = str(Path(__file__).parent.parent) + "/"


class Scope:
    """A submodule while it is traced: its dotted name, and its type.

    Example:
        >>> from pygrad.fx.proxy import Scope
        >>> Scope("layer1.0", None).module_path
        'layer1.0'
    """

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Sets a scope to another one until the block ends."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = scope.module_path, scope.module_type
        self._scope = scope
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *_: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


class TraceError(ValueError):
    """The error of a program that a trace cannot express, such as one that branches on a value."""


def _no_nodes(node: Node) -> Node:
    raise RuntimeError(
        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}"
    )


@compatibility(is_backward_compatible=True)
class TracerBase:
    """Makes nodes of the operations on its proxies; subclasses may change how."""

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert a node into the graph, with its origin recorded."""
        if kind == "call_function" and self.check_mutable_operations and callable(target):
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = self.scope.module_path, self.scope.module_type
        if fx_traceback.has_preserved_node_meta():
            meta = fx_traceback.get_current_meta()
            if meta.get("stack_trace"):
                node.stack_trace = meta["stack_trace"]
            for field in _COPY_META_FIELDS:
                if field in meta:
                    node.meta[field] = copy.copy(meta[field])
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            if frames := self._filter_traceback_frames(traceback.extract_stack()):
                node.stack_trace = "".join(frames.format()).strip()
        return node

    def _filter_traceback_frames(
        self, user_stack_summary: traceback.StackSummary
    ) -> traceback.StackSummary:
        """The frames of the program, from its first ``forward`` on."""
        frames = [f for f in user_stack_summary if not f.filename.startswith(_OWN_FILES)]
        at = next((i for i, frame in enumerate(frames) if frame.name == "forward"), len(frames))
        if self._record_forward_stack_traces_only:
            return traceback.StackSummary.from_list([f for f in frames if f.name == "forward"])
        return traceback.StackSummary.from_list(frames[at:])

    @compatibility(is_backward_compatible=True)
    def proxy(self, node: Node) -> Proxy:
        """A proxy for the value of a node."""
        return Proxy(node, self)

    @compatibility(is_backward_compatible=True)
    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Insert a node for a call with these arguments, which may be proxies, and return its
        proxy.
        """
        node = self.create_node(
            kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr
        )
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def _find_user_frame(self) -> types.FrameType | None:
        """The innermost frame that is not of this package."""
        frame = inspect.currentframe()
        while frame and frame.f_code.co_filename.startswith(_OWN_FILES):
            frame = frame.f_back
        return frame

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Any:
        """The argument of a node for a value of the program.

        Raises:
            NotImplementedError: a value of a type that code cannot have.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(each) for each in a]
            if type(a) is tuple:
                return tuple(parts)
            made: Any = type(a)
            return made(*parts) if hasattr(a, "_fields") else made(parts)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            ends = (self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
            return type(a)(*ends)
        if callable(a) and hasattr(a, "_schema"):  # an op as a value
            return a
        if is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", a.__class__, (), values)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        return key if isinstance(key, str) else map_arg(self.create_arg(key), _no_nodes)

    @compatibility(is_backward_compatible=True)
    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a proxy, unknown to a trace unless a program overrides this.

        Raises:
            TraceError: always.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    @compatibility(is_backward_compatible=True)
    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The elements of a proxy, unknown to a trace unless a program overrides this.

        Raises:
            TraceError: always.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be "
            "attempted when the Proxy is used in a loop or"
            " as a *args or **kwargs function argument. "
            "See the torch.fx docs on pytorch.org for a "
            "more detailed explanation of what types of "
            "control flow can be traced, and check out the"
            " Proxy docstring for help troubleshooting "
            "Proxy iteration errors"
        )

    @compatibility(is_backward_compatible=True)
    def keys(self, obj: Proxy) -> Any:
        """The keys of a proxy: another proxy, unless a program overrides this."""
        return Attribute(obj, "keys")()


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """A tracer that only appends to a graph.

    Example:
        >>> from pygrad.fx import Graph, Proxy
        >>> from pygrad.fx.proxy import GraphAppendingTracer
        >>> graph = Graph()
        >>> x = Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))
        >>> _ = graph.output((x * 2).node)
        >>> print(graph.python_code("self").src.strip())
        def forward(self, x):
            mul = x * 2;  x = None
            return mul
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """Raises `AssertionError` where an ``assert`` was traced and does not hold."""
    if not x:
        raise AssertionError("Assertion failed")


def _instruction(frame: types.FrameType) -> tuple[list[dis.Instruction], int]:
    """The instructions of a frame's code, and the index of the current one."""
    found = list(dis.get_instructions(frame.f_code))
    return found, next(at for at, each in enumerate(found) if each.offset == frame.f_lasti)


def _is_asserted(frame: types.FrameType) -> bool:
    """Whether a frame asks for a truth to leave out the raising of an AssertionError."""
    found, at = _instruction(frame)
    here, then = found[at], found[at + 1 : at + 2]
    if not here.opname.startswith("POP_JUMP") or not here.opname.endswith("IF_TRUE") or not then:
        return False
    return then[0].opname == "LOAD_ASSERTION_ERROR" or (
        then[0].opname == "LOAD_GLOBAL" and then[0].argval == "AssertionError"
    )


@compatibility(is_backward_compatible=True)
class Proxy:
    """An unknown value, whose uses become nodes.

    Operators, methods, attributes and functions of ``torch`` return proxies again. Its truth, its
    length and its elements are not known: `TraceError`.
    """

    tracer: TracerBase
    node: Node

    @compatibility(is_backward_compatible=True)
    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        arm()  # from the first proxy on, Python functions ask their arguments
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy.__new__(Proxy)
        for name, value in self.__dict__.items():
            try:
                made.__dict__[name] = copy.deepcopy(value, memo)
            except Exception:  # objects that cannot be copied deeply are copied shallowly
                made.__dict__[name] = copy.copy(value)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        found, at = _instruction(frame.f_back)
        if found[at].opname == "UNPACK_SEQUENCE":  # a, b = proxy: that many elements
            return (self[i] for i in range(found[at].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        frame = inspect.currentframe()
        if self.tracer.trace_asserts and frame and frame.f_back and _is_asserted(frame.f_back):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    @compatibility(is_backward_compatible=True)
    def keys(self) -> Any:
        """The keys of a mapping; of ``**proxy`` too."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want "
            "this call to be recorded, please call torch.fx.wrap('len') at "
            "module scope"
        )

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Any,
        types: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(a: Any) -> None:
            if isinstance(a, cls):
                tracers[a.tracer] = None

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while "
                f"trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        if is_tensor_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = tracer.graph._target_to_str(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """An attribute of a proxy: called, a method; anything else makes the node that reads it."""

    root: Proxy
    attr: str

    @compatibility(is_backward_compatible=True)
    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads it, made when first asked for."""
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, with known shape: a program may branch on it."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: nn.Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """The parameter's shape."""
        return self.param.shape

    def size(self) -> Size:
        """The parameter's shape."""
        return self.param.shape

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return self.param.ndim

    def numel(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()

    def nelement(self) -> int:
        """How many elements the parameter has."""
        return self.param.nelement()


def _operators() -> None:
    """Gives `Proxy` the operators of Python, from either side."""

    def add(name: str, function: Callable[..., Any]) -> None:
        function.__name__ = name
        setattr(Proxy, name, function)

    def make_operator(target: Any) -> Callable[..., Any]:
        def from_left(*args: Any, **kwargs: Any) -> Any:
            return args[0].tracer.create_proxy("call_function", target, args, kwargs)

        return from_left

    def make_reflected_operator(target: Any) -> Callable[..., Any]:
        def from_right(self: Proxy, other: Any) -> Any:
            return self.tracer.create_proxy("call_function", target, (other, self), {})

        return from_right

    for name in magic_methods:
        target = getattr(operator, name, None)
        if target is None:  # div, which Python has no longer
            continue
        bare = name.strip("_")
        add(f"__{bare}__", make_operator(target))
        if name in reflectable_magic_methods:
            add(f"__r{bare}__", make_reflected_operator(target))


_operators()
