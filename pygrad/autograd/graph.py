"""The graph as objects: nodes, edges, saved values of nodes, and hooks on all of these."""

from __future__ import annotations

import functools
import gc
import logging
import re
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from .. import _boundary
from .._boundary import calls, header
from .._boundary.objects import drop_object, get_object, keep_object, keep_watched
from .._ground.dtypes import BY_CODE, device, dtype
from .._ground.package import submodule
from .._table import functions as _functions
from .._table.builtins import builtin
from .._tensor.hooks import (
    EngineHandle,
    RemovableHandle,
    register_hook_of_several,
    register_node_hook,
)
from ._saved_tensors import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_saved_tensor_mode",
]

_C = _functions.C
_CPU: Final = device("cpu")
log = logging.getLogger("pygrad.autograd.graph")


_nodes: dict[int, weakref.ref[Node]] = {}
"""The objects that stand for nodes, by address; each takes its own entry away."""


class _Recorded:
    """The base of all classes of nodes; users know it as `Node`."""

    __slots__ = ("__weakref__", "_address", "_held")
    _address: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"cannot create '{cls.__name__}' instances")

    def __del__(
        self,
        released: list[int] = _boundary.released,
        nodes: Any = _nodes,
        watched: set[int] = _boundary.watched,
    ) -> None:
        address = self._address
        if address:
            ref = nodes.get(address)
            if ref is not None and ref() in (self, None):
                del nodes[address]
            released.append(address)
            if watched:
                _boundary.drain_if_last(address)

    def __dir__(self) -> list[str]:
        hidden = "__annotations__ __del__ __module__ __slots__ __weakref__ _address _held".split()
        return sorted({*object.__dir__(self)} - {*hidden})

    def name(self) -> str:
        """The node's name, such as 'MulBackward0'."""
        return str(_C["_node_name"](self._address))

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of the inputs, each with the number of the output that was used."""
        flat = _C["_node_next"](self._address)
        return tuple((_wrap(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for users that lives as long as the node. In anomaly mode it holds the place
        where the node was made.
        """
        ident, trace, parent = _C["_node_metadata"](self._address, 0)
        if not ident:
            made: dict[Any, Any] = {}
            if trace:
                made["traceback_"] = get_object(trace).format()
            if parent:
                made["parent_"] = _wrap(parent)
            ident = keep_watched(made)
            _C["_node_metadata"](self._address, ident)
        found: dict[Any, Any] = get_object(ident)
        return found

    @property
    def requires_grad(self) -> bool:
        """True: nodes exist only for results that require grad."""
        return True

    def _sequence_nr(self) -> int:
        return int(_C["_node_sequence"](self._address)) % (1 << 64)

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        _C["_node_set_sequence"](self._address, sequence_nr)

    @property
    def _input_metadata(self) -> tuple[_InputMetadata, ...]:
        """The required shape and dtype of each output's gradient."""
        found: list[_InputMetadata] = []
        while each := _C["_node_output"](self._address, len(found)):
            found.append(_InputMetadata(each[0], each[1:]))
        if nested_outputs:
            for place, describe in nested_outputs.get(self, {}).items():
                describe(found[place])
        return tuple(found)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_inputs, grad_outputs)`` after the node ran; a tuple that it returns
        replaces the grad_inputs.

        Example:
            >>> import pygrad
            >>> a = pygrad.zeros(3, requires_grad=True)
            >>> b = a.clone()
            >>> handle = b.grad_fn.register_hook(lambda gI, gO: (gO[0] * 2,))
            >>> b.sum().backward(retain_graph=True)
            >>> a.grad
            tensor([2., 2., 2.])
            >>> handle.remove()
        """
        return register_node_hook(self, fn, pre=False)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls ``fn(grad_outputs)`` before the node runs; a tuple that it returns replaces the
        grad_outputs.

        Example:
            >>> import pygrad
            >>> a = pygrad.zeros(3, requires_grad=True)
            >>> b = a.clone()
            >>> handle = b.grad_fn.register_prehook(lambda gO: (gO[0] * 2,))
            >>> b.sum().backward()
            >>> a.grad
            tensor([2., 2., 2.])
        """
        return register_node_hook(self, fn, pre=True)

    def _register_hook_dict(self, tensor: Any) -> None:
        if not isinstance(tensor, calls._tensor_type):
            raise TypeError("_register_hook_dict expected a variable")

    def __call__(self, *grads: Any) -> Any:
        """Runs the gradient function alone: the outputs' gradients give the inputs' gradients."""
        for i, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, calls._tensor_type):
                raise TypeError(f"argument {i} is not a Variable")
        found = _C["_node_call"](self._address, grads)
        return found[0] if len(found) == 1 else found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {self._address:#x}>"


class _Virtual(type):
    """Makes all nodes instances of `Node`, although none is created from it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return issubclass(type(instance), _Recorded if cls is Node else cls)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return (
            issubclass(subclass, _Recorded) if cls is Node else super().__subclasscheck__(subclass)
        )


class Node(_Recorded, metaclass=_Virtual):
    """One recorded operation. Its object stays the same while Python refers to it.

    Its class is named for the operation, such as ExpBackward0. The attributes ``_saved_*`` are the
    values that the operation saved for its gradient; ``_raw_saved_*`` take hooks.

    Example:
        >>> import pygrad
        >>> y = pygrad.ones(2, requires_grad=True).exp()
        >>> isinstance(y.grad_fn, pygrad.autograd.graph.Node), y.grad_fn.name()
        (True, 'ExpBackward0')
        >>> y.grad_fn._saved_result
        tensor([2.7183, 2.7183], grad_fn=<ExpBackward0>)
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"Can't instantiate abstract class {cls.__name__} with abstract methods "
            "_input_metadata, _register_hook_dict, _sequence_nr, metadata, name, next_functions, "
            "register_hook, register_prehook"
        )


class _InputMetadata:
    """The dtype, shape and device of a gradient that arrives at a node."""

    __slots__ = ("dtype", "is_cpp_nested_tensor", "is_nested_tensor", "shape")
    device: Final = _CPU

    def __init__(self, code: int, shape: Sequence[int]) -> None:
        self.dtype: dtype | None = BY_CODE[code] if code >= 0 else None
        self.shape: Any = list(shape)
        self.is_nested_tensor = self.is_cpp_nested_tensor = False

    def __repr__(self) -> str:
        return f"<pygrad._C._autograd._InputMetadata object at {id(self):#x}>"


nested_outputs: Final[weakref.WeakKeyDictionary[Any, dict[int, Callable[[Any], None]]]] = (
    weakref.WeakKeyDictionary()
)
"""Descriptions of the outputs of nodes of nested tensors, by node and output."""


class SavedTensor:
    """A saved tensor of a node. Found in a node's ``_raw_saved_*``."""

    __slots__ = ("__weakref__", "_node", "_slot")
    _node: Node
    _slot: int

    def __init__(self) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, *hooks: Callable[[Any], Any]) -> None:
        """Packs the saved tensor at once, and unpacks it whenever it is used.

        Args:
            hooks: the pack hook and the unpack hook.

        Raises:
            TypeError: not two, or not callable.
            RuntimeError: it has hooks already, is None, or was freed; or the first hook mutated it.

        Example:
            >>> import pygrad
            >>> y = pygrad.ones(2, requires_grad=True).exp()
            >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.tolist(), pygrad.tensor)
            >>> y.grad_fn._raw_saved_result.data
            [2.7182817459106445, 2.7182817459106445]
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None"
            )
        pair = keep_object(hooks)
        try:
            _C["_node_saved_hooks"](self._node._address, self._slot, pair)
        finally:
            drop_object(pair)

    def _packed_values(self) -> Any:
        """The pack hook's result with the unpack hook; None without hooks."""
        return get_object(_C["_node_packed"](self._node._address, self._slot))

    @property
    def data(self) -> Any:
        """The stored value: a tensor without history, or the pack hook's result."""
        packed = self._packed_values()
        if packed is not None:
            return packed[0]
        return _C["_node_saved_data"](self._node._address, self._slot)

    @property
    def unpack_hook(self) -> Any:
        """The unpack hook, or None."""
        packed = self._packed_values()
        return None if packed is None else packed[1]

    def unpack(self) -> Any:
        """The saved tensor, passed through the unpack hook if there is one."""
        found = _C["_node_saved"](self._node._address, self._slot)
        return _itself(found) if checked else found

    def __repr__(self) -> str:
        return f"<pygrad._C._autograd.SavedTensor object at {id(self):#x}>"


_raw: weakref.WeakValueDictionary[tuple[int, int], SavedTensor] = weakref.WeakValueDictionary()


def _raw_saved(node: Node, slot: int) -> SavedTensor:
    found = _raw.get((node._address, slot))
    if found is None or found._node is not node:
        found = object.__new__(SavedTensor)
        found._node, found._slot = node, slot
        _raw[node._address, slot] = found
    return found


_classes: dict[str, type[_Recorded]] = {}
"""The classes of nodes, by the engine's names without their namespaces."""
_kinds: dict[int, type[_Recorded]] = {}
"""The classes by the engine's number of the kind."""


def _variable(self: Node) -> Any:
    """The leaf."""
    return calls.remembered_object(_C["_node_variable"](self._address))


def _raw_saved_from(node: Node, slot: int) -> tuple[SavedTensor, ...]:
    """The saved tensors of a node from a slot on."""
    return tuple(_raw_saved(node, k) for k in range(slot, _C["_node_saves"](node._address)))


def _saved_field(node: Node, kind: str, place: int) -> Any:
    """A saved value of a node, by kind and place: op_node_fields in autograd_services.c. Integers
    are shown unsigned, as in PyTorch.
    """
    found = _C["_node_field"](node._address, ord(kind), place)
    if checked:
        found = _itself(found)
    if kind == "i":
        return None if found is None else found % (1 << 64)
    return tuple(each % (1 << 64) for each in found) if isinstance(found, list) else found


checked = False
"""True once tensors were saved in "check" mode: then inputs come back as themselves."""


def _itself(value: Any) -> Any:
    """The existing object of a tensor that the engine has not copied. Slow where only the garbage
    collector knows it.
    """
    if isinstance(value, (tuple, list)):
        return type(value)(map(_itself, value))
    if not isinstance(value, calls._tensor_type) or header.references_to(value._h) == 1:
        return value
    found = calls.remembered_object(value)
    if found is not value:
        return found
    for each in gc.get_objects():
        if isinstance(each, type(value)) and each is not value:
            if getattr(each, "_h", 0) == value._h:
                return each
    return value


_RAW: Final[dict[str, Any]] = {"t": _raw_saved, "*": _raw_saved_from}


def _members(fields: str) -> dict[str, Any]:
    """The attributes of a node class that show its nodes' saved values."""
    members: dict[str, Any] = {}
    for field, kind, place in re.findall(r"(\w+):(.)(\d+)", fields):
        at = int(place)
        members["_saved_" + field] = property(functools.partial(_saved_field, kind=kind, place=at))
        if kind in _RAW:
            members["_raw_saved_" + field] = property(functools.partial(_RAW[kind], slot=at))
    return members


def class_named(name: str) -> type[_Recorded]:
    """The class of the nodes with this name, created if it has not been seen."""
    found = _classes.get(name)
    if found is None:
        members = {"__slots__": (), "__module__": "builtins", "__doc__": Node.__doc__}
        found = _classes[name] = type(name, (_Recorded,), members)
    return found


def _class_of(name: str, fields: str) -> type[_Recorded]:
    """The class of the nodes of one kind, with attributes for their saved values."""
    found = class_named(name.rpartition(":")[2])
    members = _members(fields)
    if name.endswith("::AccumulateGrad"):
        members["variable"] = property(_variable)
    for each, member in members.items():
        setattr(found, each, member)
    return found


def _wrap(address: int) -> Node | None:
    """The object of a node, one while it lives; takes over the reference that came with the
    address.
    """
    if not address:
        return None
    ref = _nodes.get(address)
    found = None if ref is None else ref()
    if found is not None:
        _boundary.released.append(address)
        return found
    number = _C["_node_kind"](address)
    kind = _kinds.get(number)
    if kind is None:
        kind = _class_of(_C["_node_name"](address), _C["_node_fields"](address))
        _kinds[number] = kind
    node = cast(Node, object.__new__(kind))
    node._address = address
    adopt(node)
    return node


def adopt(node: Node) -> None:
    """Makes an object represent the node at its address, as long as the object lives."""
    _nodes[node._address] = weakref.ref(node)


def running_node() -> Node | None:
    """The node whose gradient function, hook or custom function is running."""
    return _wrap(_C["_running_node"]())


def node_of(tensor: Any) -> Node | None:
    """The grad_fn of a tensor."""
    h = tensor._h
    if not header.grad_fn_of(h) and not header.meta_of(h):
        return None
    return _wrap(_C["_node_of"](tensor))


@builtin
def _get_sequence_nr() -> int:
    """The sequence number of the next node."""
    return int(_C["_node_sequence"](0))


# ------------------------------------------------------------------ edges


class GradientEdge(NamedTuple):
    """A place in the graph where a gradient passes: an output of a node. Made by
    `get_gradient_edge`; `pygrad.autograd.grad` and `backward` take it like a tensor.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge through which the gradient of a tensor passes.

    Raises:
        RuntimeError: the tensor does not require grad.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> edge = pygrad.autograd.graph.get_gradient_edge(y)
        >>> pygrad.autograd.grad((y * y).sum(), edge)
        (tensor([6., 6.]),)
    """
    _ = tensor.requires_grad  # AttributeError: it is no tensor
    node = _arrival(tensor)
    assert node is not None
    return GradientEdge(node, tensor.output_nr)


def _arrival(place: Any) -> Node | None:
    """The node at which the gradient of a tensor or an edge arrives."""
    if isinstance(place, GradientEdge):
        return place.node
    return _wrap(_C["_edge_of"](place))


def allow_mutation_on_saved_tensors() -> bool:
    """Always True: tensors saved for backward are snapshots, so mutating them is safe.

    Nothing needs to be switched on. In `pygrad.torch`, PyTorch's dialect, this is a context
    manager.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.graph.allow_mutation_on_saved_tensors()
        True
    """
    return True


class set_saved_tensor_mode:
    """The treatment of saved tensors that are mutated: "snapshot" (the default) or "check".

    "snapshot" gives gradients as if nothing had been mutated. "check" is PyTorch's rule: backward
    raises a RuntimeError; and a saved input is shown itself, not as a copy. Takes effect at once
    for tensors saved from then on; as a context manager it ends with the scope.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, requires_grad=True)
        >>> with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        ...     a = x * 1
        ...     y = a * a
        ...     _ = a.add_(1)
        >>> y.sum().backward()
        Traceback (most recent call last):
        ...
        RuntimeError: one of the variables needed for gradient computation has been modified by an
            inplace operation: ...
    """

    def __init__(self, mode: str) -> None:
        global checked
        if mode not in ("snapshot", "check"):
            raise ValueError(
                f'set_saved_tensor_mode: the mode is "snapshot" or "check", not {mode!r}'
            )
        self.mode = mode
        checked = checked or mode == "check"
        self._before = _C["_set_saved_mode"](mode)

    def __enter__(self) -> set_saved_tensor_mode:
        return self

    def __exit__(self, *_: Any) -> None:
        _C["_set_saved_mode"](self._before)


def increment_version(tensor: Any) -> None:
    """Adds one to the version of a tensor, or of each of several, after a mutation that the engine
    did not see.

    Example:
        >>> import pygrad
        >>> x, y = pygrad.ones(2), pygrad.ones(2)
        >>> pygrad.autograd.graph.increment_version([x, x, y])
        >>> x._version, y._version
        (2, 1)
    """
    if isinstance(tensor, calls._tensor_type):
        tensor = (tensor,)
    kind, several = calls._tensor_type, isinstance(tensor, Iterable)
    given = [each if isinstance(each, kind) else None for each in tensor] if several else None
    _C["_increment_version"](given)


# ------------------------------------------------------------------ hooks on several tensors


class _MultiHandle(RemovableHandle):
    """The handle of several hooks that are removed together."""

    handles: tuple[RemovableHandle, ...]

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Removes all of them."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


class _HandleOfSeveral(EngineHandle, _MultiHandle):
    """The handle of one hook on several tensors."""

    def __repr__(self) -> str:
        kind = _MultiHandle  # as PyTorch shows it
        return f"<{kind.__module__}.{kind.__qualname__} object at {id(self):#x}>"


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all"
) -> RemovableHandle:
    """Calls a function once a backward, with the gradients of several tensors.

    Args:
        tensors: the tensors of the gradients.
        fn: in mode "all", called with a list of all of them, None for those that this backward
            does not compute, once the last is known; in mode "any", with the first that is known.
        mode: "all" or "any".

    Example:
        >>> import pygrad
        >>> a = pygrad.rand(2, requires_grad=True)
        >>> b = pygrad.rand(2, requires_grad=True)
        >>> c, d = a * b, a * b
        >>> def fn(grads):
        ...     print([g is not None for g in grads])
        >>> handle = pygrad.autograd.graph.register_multi_grad_hook((a, b, c, d), fn)
        >>> c.sum().backward(retain_graph=True)
        [True, True, True, False]
        >>> c.sum().backward(inputs=(a,), retain_graph=True)
        [True, False, True, False]
    """
    return register_hook_of_several(tensors, fn, mode, _HandleOfSeveral)


# ------------------------------------------------------------------ logging


def _nodes_below(roots: Iterable[Node | None]) -> Iterator[Node]:
    """Every node that the roots reach, each once."""
    waiting = deque(node for node in roots if node is not None)
    seen = set(waiting)
    while waiting:
        node = waiting.popleft()
        for below, _ in node.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
        yield node


_SHORT_NAMES: Final = {
    "float64": "f64",
    "float32": "f32",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "b8",
}


def _short(tensor: Any) -> str:
    if tensor is None:
        return "None"
    kind = str(tensor.dtype).rpartition(".")[2]
    return f"{_SHORT_NAMES[kind]}[{', '.join(map(str, tensor.shape))}]"


def _register_logging_hooks_on_whole_graph(t_outputs: Sequence[Any]) -> Callable[[], None]:
    """Logs every node of a graph when it runs; returns a function that ends the logging."""

    def prehook(grad_outputs: Sequence[Any]) -> None:
        node = _wrap(_C["_running_node"]())
        shown = ",".join(_short(tensor) for tensor in grad_outputs)
        log.debug("Executing: %s with grad_outputs: [%s]", node, shown)

    roots = [root for root in t_outputs if isinstance(root, GradientEdge) or root.requires_grad]
    nodes = _nodes_below(map(_arrival, roots))
    handles = [node.register_prehook(prehook) for node in list(nodes)]

    def unregister_hooks() -> None:
        for handle in handles:
            handle.remove()

    return unregister_hooks


def _run_logged(outputs: Sequence[Any], run: Callable[[], Any]) -> Any:
    """Returns ``run()``; meanwhile logs every node of the graph if debug logging is on."""
    if not log.isEnabledFor(logging.DEBUG):
        return run()
    unregister = _register_logging_hooks_on_whole_graph(outputs)
    try:
        return run()
    finally:
        unregister()


def _engine_run_backward(t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """`Variable._execution_engine.run_backward`; logs each node if debug logging is on."""
    engine = submodule("autograd.variable").Variable._execution_engine
    found: tuple[Any, ...] = engine.run_backward(t_outputs, *args, **kwargs)
    return found
