"""Graphs of the ops that a function calls: below autograd, with all transforms carried out.

`make_fx` runs a function on real arguments under a dispatch mode, which records the ops of
``torch.ops.aten`` in a graph. Gradients and `vmap` within the function also leave their ops there.

Example:
    >>> import pygrad as torch
    >>> from pygrad.fx.experimental.proxy_tensor import make_fx
    >>> module = make_fx(lambda x: x.sin() * 2)(torch.ones(3))
    >>> print(module.code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        mul = torch.ops.aten.mul.Tensor(sin, 2);  sin = None
        return mul
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ... import ops
from ..._boundary.header import address_of
from ..._dispatch.handlers import mode_stack
from ..._table.functions import return_types
from ..._tensor.tensor import Tensor
from ...nn import Module, Parameter
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode
from .._metadata import metadata_of
from .._symbolic_trace import PH, Tracer
from ..graph import Graph
from ..graph_module import GraphModule
from ..proxy import Proxy

_MISSING: Final = object()
_CONSTANT_ELEMENTS: Final = 1
"""The most elements of a tensor whose value is known while the function is traced."""


class _ProxyTensor:
    """The proxy of a tensor in the graph, and the tensor's value if it is a known constant."""

    tensor: Tensor
    """The tensor itself, kept so that no other tensor gets its handle."""

    def __init__(self, proxy: Proxy, constant: Tensor | None) -> None:
        self.proxy, self.constant = proxy, constant


def _place_of(tensor: Tensor) -> Any:
    """A key that is equal for two tensors of the same elements."""
    if tensor.is_meta or not tensor.numel():
        return None
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return address_of(tensor), tensor.dtype, shape, strides


class PythonKeyTracer(Tracer):
    """Makes the graph. Tensors from outside become attributes of its module.

    Modules are no nodes: their computations are traced.
    """

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self._by_handle: dict[int, _ProxyTensor] = {}
        self._by_place: dict[Any, _ProxyTensor] = {}

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The module is run."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Returns parameters unchanged."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """The argument of a node; a parameter that the root lacks is added to it."""
        if isinstance(a, tuple) and type(a) in return_types.values():
            return self.create_arg(tuple(a))
        if not isinstance(a, Parameter):
            return super().create_arg(a)
        for name, parameter in self.root.named_parameters():
            if parameter is a:
                return self.create_node("get_attr", name, (), {})
        name = self.get_fresh_qualname("_param_constant")
        setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})

    def note(self, tensor: Tensor, proxy: Proxy, constant: Tensor | None = None) -> None:
        """Makes a proxy represent a tensor from now on."""
        noted = _ProxyTensor(proxy, constant)
        noted.tensor = tensor
        self._by_handle[tensor._h] = noted
        place = _place_of(tensor)
        if place is not None:
            self._by_place[place] = noted

    def find_proxy(self, tensor: Tensor) -> _ProxyTensor | None:
        """The proxy of a tensor, or of another tensor of the same elements."""
        found = self._by_handle.get(tensor._h)
        return found if found is not None else self._by_place.get(_place_of(tensor))

    def unwrap_proxy(self, e: Any) -> Any:
        """The proxy of a tensor that has one; anything else unchanged."""
        found = self.find_proxy(e) if isinstance(e, Tensor) else None
        return e if found is None else found.proxy


def has_proxy_slot(obj: Any, tracer: PythonKeyTracer) -> bool:
    """Whether a proxy in the graph represents a tensor."""
    return isinstance(obj, Tensor) and tracer.find_proxy(obj) is not None


def set_proxy_slot(obj: Tensor, tracer: PythonKeyTracer, proxy: Any) -> None:
    """Makes a proxy represent a tensor."""
    tracer.note(obj, proxy.proxy if isinstance(proxy, _ProxyTensor) else proxy)


def get_proxy_slot(
    obj: Tensor,
    tracer: PythonKeyTracer,
    default: Any = _MISSING,
    transform: Callable[[Any], Any] = lambda found: found,
) -> Any:
    """The proxy of a tensor, transformed by a function.

    Raises:
        RuntimeError: there is no proxy and no default.
    """
    found = tracer.find_proxy(obj)
    if found is not None:
        return transform(found)
    if default is _MISSING:
        raise RuntimeError(f"{obj} is not tracked with proxy for {tracer}")
    return default


def track_tensor_tree(
    inner_res: Any, proxy_res: Any, *, constant: Any, tracer: PythonKeyTracer
) -> Any:
    """Makes the proxy of a result, or of its elements, represent the tensors in it; returns the
    result.

    Args:
        inner_res: a tensor, or a container of tensors.
        proxy_res: its proxy.
        constant: its value if that is known, of the same structure.
        tracer: the tracer of the proxies.
    """
    if isinstance(inner_res, Tensor):
        proxy_res.node.meta["tensor_meta"] = metadata_of(inner_res)
        tracer.note(inner_res, proxy_res, constant)
    elif isinstance(inner_res, (tuple, list)):
        for at, each in enumerate(inner_res):
            known = None if constant is None else constant[at]
            track_tensor_tree(each, proxy_res[at], constant=known, tracer=tracer)
    elif isinstance(inner_res, dict):
        for key, each in inner_res.items():
            known = None if constant is None else constant[key]
            track_tensor_tree(each, proxy_res[key], constant=known, tracer=tracer)
    return inner_res


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A mode in which each op is recorded as a node of a graph, and run."""

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        _allow_fake_constant: bool = False,
        _error_on_data_dependent_ops: bool = True,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.enable_tracing = True
        self.decomposition_table = decomposition_table or {}
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: the mode belongs to a tracer."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return proxy_call(self, func, False, tuple(args), dict(kwargs or {}))


def maybe_handle_decomp(
    proxy_mode: ProxyTorchDispatchMode, op: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Calls the mode's decomposition of an op; NotImplemented if there is none."""
    function = proxy_mode.decomposition_table.get(op)
    if function is None:
        return NotImplemented
    with proxy_mode:
        return function(*args, **kwargs)


def proxy_call(
    proxy_mode: ProxyTorchDispatchMode,
    func: Any,
    pre_dispatch: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Records a call of an op in the graph of a mode, and runs it.

    Raises:
        RuntimeError: its result is a number that depends on the function's arguments.
    """
    tracer = proxy_mode.tracer
    leaves, spec = pytree.tree_flatten((args, kwargs))
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    noted = [tracer.find_proxy(each) for each in tensors]
    for each, found in zip(tensors, noted, strict=True):
        if found is None and type(each) not in (Tensor, Parameter):
            return NotImplemented
    decomposed = maybe_handle_decomp(proxy_mode, func, args, kwargs)
    if decomposed is not NotImplemented:
        return decomposed
    fixed = all(found is None or found.constant is not None for found in noted)

    def constant_of(value: Any) -> Any:
        found = tracer.find_proxy(value) if isinstance(value, Tensor) else None
        return value if found is None else found.constant

    def call_on_constants() -> Any:
        known_args, known_kwargs = pytree.tree_unflatten(list(map(constant_of, leaves)), spec)
        return func(*known_args, **known_kwargs)

    if func is ops.aten._local_scalar_dense.default:
        if fixed:
            return call_on_constants()
        if proxy_mode._error_on_data_dependent_ops:
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {func} - "
                "erroring out! It's likely that this is caused by data-dependent control flow or "
                "similar.  It may be possible to trace this with dynamic shapes; try setting "
                "tracing_mode='symbolic' in your make_fx call."
            )
    nodes = pytree.tree_unflatten([tracer.unwrap_proxy(each) for each in leaves], spec)
    shown = func
    if func is ops.aten.lift_fresh.default:  # a copy each time that the graph runs
        shown = ops.aten.lift_fresh_copy.default
    name = tracer.graph._target_to_str(func.overloadpacket.__name__)
    if shown is not func:
        name = "lift_fresh_copy"
    proxy = tracer.create_proxy("call_function", shown, nodes[0], nodes[1], name=name)
    out = shown(*args, **kwargs)
    constant = None
    if shown is not func:
        if out.numel() <= _CONSTANT_ELEMENTS:
            constant = args[0].clone()
    elif fixed and any(found is not None for found in noted) and _is_small(out):
        constant = call_on_constants()
    return track_tensor_tree(out, proxy, constant=constant, tracer=tracer)


def _is_small(out: Any) -> bool:
    found = [each for each in pytree.tree_leaves(out) if isinstance(each, Tensor)]
    return all(each.numel() <= _CONSTANT_ELEMENTS for each in found)


# ------------------------------------------------------------------ functions


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that records ops now, or None."""
    for mode in reversed(mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that records ops now, or None."""
    return get_innermost_proxy_mode()


def get_torch_dispatch_modes() -> list[Any]:
    """The modes of this thread, innermost last."""
    return mode_stack()


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[ProxyTorchDispatchMode | None]:
    """A scope in which nothing is recorded."""
    mine = get_innermost_proxy_mode()
    above = []
    while mine is not None:
        above.append(_pop_mode())
        if above[-1] is mine:
            break
    try:
        yield mine
    finally:
        for mode in reversed(above):
            _push_mode(mode)


@contextmanager
def decompose(
    decomposition_table: Mapping[Any, Callable[..., Any]] | None,
) -> Iterator[Mapping[Any, Callable[..., Any]]]:
    """A scope in which the recording mode calls these functions instead of ops, by overload.

    Raises:
        AssertionError: there is no such mode.
    """
    mode = get_proxy_mode()
    if mode is None:
        raise AssertionError("Expected proxy mode to be set")
    before, mode.decomposition_table = mode.decomposition_table, decomposition_table or {}
    try:
        yield mode.decomposition_table
    finally:
        mode.decomposition_table = before


def fake_signature(fn: Callable[..., Any], nargs: int) -> Callable[..., Any]:
    """A function of `nargs` plain arguments: arg0, arg1, ..."""
    names = ",".join(f"arg{at}" for at in range(nargs))
    made: Callable[..., Any] = eval(f"lambda {names}: fn({names})", {"fn": fn})
    return made


def wrap_key(
    f: Callable[..., Any],
    tensors: Sequence[Any],
    tracer: PythonKeyTracer,
    pre_dispatch: bool = False,
) -> Callable[..., Any]:
    """A function of proxies that runs `f` on these arguments, which the proxies represent."""
    leaves, _ = pytree.tree_flatten(tensors)

    @functools.wraps(f)
    def wrapper(*proxies: Any) -> Any:
        given, _ = pytree.tree_flatten(proxies)
        if len(given) != len(leaves):
            raise AssertionError(f"Expected {len(leaves)} proxies, got {len(given)}")
        with disable_proxy_modes_tracing():
            for leaf, proxy in zip(leaves, given, strict=True):
                if isinstance(leaf, Tensor):
                    track_tensor_tree(leaf, proxy, constant=None, tracer=tracer)
        return pytree.tree_map(tracer.unwrap_proxy, f(*tensors))

    return wrapper


def dispatch_trace(
    root: Any, tracer: Tracer, concrete_args: tuple[Any, ...] | None = None
) -> GraphModule:
    """Traces a function to a module. All ops stay, used or not."""
    graph: Graph = tracer.trace(root, concrete_args)  # type: ignore[arg-type]
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """A function that runs `f` on its arguments and returns the graph of the ops that it called.

    Args:
        f: a function of tensors, or of containers of tensors. Other arguments are fixed.
        decomposition_table: functions that are called instead of ops, by `OpOverload`.
        tracing_mode: "real".
        record_stack_traces: whether nodes record the stack of their call.

    Returns:
        A function of the arguments of `f`. The module that it returns takes arguments of the same
        structure; tensors that `f` captures are its attributes.

    Raises:
        AssertionError: no such tracing mode.
        NotImplementedError: tracing_mode "fake" or "symbolic", as there are no fake tensors and no
            symbols; pre_dispatch; record_module_stack; proxy_module_inputs.
        RuntimeError: from the function: `f` reads a number that depends on its arguments.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.fx.experimental.proxy_tensor import make_fx
        >>> def function(x):
        ...     return torch.func.grad(lambda x: (x * x).sum())(x)
        >>> module = make_fx(function)(torch.ones(2))
        >>> module(torch.tensor([1.0, 3.0]))
        tensor([2., 6.])
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")
    if tracing_mode != "real":
        raise NotImplementedError(
            f"make_fx: tracing_mode={tracing_mode!r} is not implemented: there are no fake tensors "
            'and no symbols; use "real"'
        )
    refused = {
        "pre_dispatch": pre_dispatch,
        "record_module_stack": record_module_stack,
        "proxy_module_inputs": proxy_module_inputs,
    }
    for name, value in refused.items():
        if value:
            raise NotImplementedError(f"make_fx: {name}={value} is not implemented")

    @functools.wraps(f)
    def wrapper(*args: Any) -> GraphModule:
        tracer = PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces
        mode = ProxyTorchDispatchMode(
            tracer,
            tracing_mode,
            pre_dispatch,
            _allow_fake_constant,
            _error_on_data_dependent_ops,
        )
        mode.decomposition_table = decomposition_table or {}
        places = pytree.tree_map(lambda _: PH, args)
        code = getattr(inspect.unwrap(f), "__code__", None)
        starred = code is None or code.co_flags & inspect.CO_VARARGS
        function = fake_signature(f, len(places)) if starred else f
        keyed = wrap_key(function, args, tracer)
        with mode:
            return dispatch_trace(keyed, tracer, tuple(places))

    return wrapper


def wrapper_and_args_for_make_fx(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[[list[Any]], Any], list[Any]]:
    """A function of a list, which `make_fx` can trace, and the list, for a call with keywords."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    # As in PyTorch, this name becomes that of the traced module's class.
    def call_flat(flat_args: list[Any]) -> Any:
        fn_args, fn_kwargs = pytree.tree_unflatten(flat_args, spec)
        return func(*fn_args, **fn_kwargs)

    return call_flat, leaves


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The graph of a call, which a running trace does not record."""
    wrapped, leaves = wrapper_and_args_for_make_fx(func, args, kwargs)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table, tracing_mode)(leaves)


__all__ = [
    "ProxyTorchDispatchMode",
    "PythonKeyTracer",
    "decompose",
    "disable_proxy_modes_tracing",
    "dispatch_trace",
    "fake_signature",
    "get_innermost_proxy_mode",
    "get_isolated_graphmodule",
    "get_proxy_mode",
    "get_proxy_slot",
    "get_torch_dispatch_modes",
    "has_proxy_slot",
    "make_fx",
    "maybe_handle_decomp",
    "proxy_call",
    "set_proxy_slot",
    "track_tensor_tree",
    "wrap_key",
    "wrapper_and_args_for_make_fx",
]
