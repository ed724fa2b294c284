"""Graphs of programs: runs a function or module with proxies, which record its operations."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
import inspect
import itertools
import math
import os
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, ClassVar, Final, TypeVar

from .._tensor import functions as _functions
from .._tensor.tensor import Tensor
from ..nn import Module, Parameter, Sequential
from ..utils import _pytree as pytree
from ._compatibility import compatibility
from ._names import is_from_torch, module_of
from ._patching import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._patching import _new_patcher, _Patcher
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .graph_module import GraphModule, _default_tracer
from .node import base_types, map_aggregate
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

F = TypeVar("F")

_STARRED: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: Final[dict[type, None]] = {}
_tracing = 0
_constant_attribute_types: Final = (Tensor, pytree.TreeSpec)
_orig_module_call: Final[Callable[..., Any]] = Module.__call__
_orig_module_getattr: Final[Callable[..., Any]] = Module.__getattr__
"""The two methods that a trace replaces; tracers of other packages call these originals."""


def is_fx_tracing() -> bool:
    """Whether a trace runs."""
    return _tracing > 0


is_fx_symbolic_tracing = is_fx_tracing


def _proxies_in(*values: Any) -> list[Proxy]:
    found: list[Proxy] = []

    def note(value: Any) -> None:
        if isinstance(value, Proxy):
            found.append(value)

    map_aggregate(values, note)
    return found


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction a trace records.

    Example:
        >>> import pygrad
        >>> from pygrad import fx
        >>> class Pair(metaclass=fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> traced = fx.symbolic_trace(lambda x: Pair(x, 1).left)
        >>> [node.name for node in traced.graph.nodes]
        ['x', 'pair', 'getattr_1', 'output']
        >>> traced(5)
        5
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if is_fx_tracing() and (proxies := _proxies_in(args, kwargs)):
            return proxies[0].tracer.create_proxy("call_function", cls, args, kwargs)
        made: Any = cls.__new__(cls)  # type: ignore[call-overload]
        made.__init__(*args, **kwargs)
        return made


def _patch_function(fn: Any, nargs: int) -> FunctionType:
    """A function with ``*args`` and ``**kwargs`` as plain parameters, which get proxies."""
    code = fn.__code__.replace(
        co_argcount=nargs,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=fn.__code__.co_flags & ~_STARRED,
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


class PHBase:
    """A place among concrete arguments that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH: Final = PHBase()


class PHWithMeta(PHBase):
    """Like `PHBase`, with attributes that are copied to the input's node."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


@compatibility(is_backward_compatible=True)
class Tracer(TracerBase):
    """Makes the graph of a module or a function. Override its methods to choose leaf modules and
    the treatment of arguments, attributes and calls.

    Args:
        autowrap_modules: Python modules whose functions are recorded if called with proxies.
        autowrap_functions: functions recorded likewise, wherever the program has them.
        param_shapes_constant: let the program branch on shapes of parameters.

    Example:
        >>> import pygrad
        >>> from pygrad import fx, nn
        >>> class Keep(fx.Tracer):
        ...     def is_leaf_module(self, module, name):
        ...         return name == "0"
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Flatten())
        >>> [node.op for node in Keep().trace(model).nodes]
        ['placeholder', 'call_module', 'call_method', 'output']
    """

    _qualname_counter: ClassVar[dict[str, int]] = collections.defaultdict(int)
    root: Any

    @compatibility(is_backward_compatible=True)
    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        named = itertools.chain.from_iterable(vars(m).items() for m in autowrap_modules)
        functions = [f for name, f in named if not name.startswith("_") and callable(f)]
        self._autowrap_function_ids = {id(f) for f in (*functions, *autowrap_functions)}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[Any, str] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = Tracer.__new__(Tracer)
        for name, value in self.__dict__.items():
            shallow = name == "_autowrap_search"  # modules of Python
            made.__dict__[name] = copy.copy(value) if shallow else copy.deepcopy(value, memo)
        return made

    # --- arguments ---

    @compatibility(is_backward_compatible=True)
    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with a number that the root module has no attribute of."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        numbers = itertools.count(self._qualname_counter[prefix])
        at = next(n for n in numbers if not hasattr(self.root, f"{prefix}{n}"))
        self._qualname_counter[prefix] = at + 1
        return f"{prefix}{at}"

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Any:
        """The argument of a node for a value of the program. A tensor or module becomes a read of
        an attribute of the root, which is added if missing.

        Raises:
            NameError: a parameter that is not the root's.
        """
        if isinstance(a, Parameter):
            name = _name_of(a, self.root.named_parameters())
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            name = _name_of(a, self.root.named_buffers())
        elif isinstance(a, Module):
            name = _name_of(a, self.root.named_modules())
        else:
            name = None
        if name is not None:
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(each) for each in a)
            return self.create_node("call_function", a.__class__, args, {})
        if isinstance(a, _constant_attribute_types):
            key = a if isinstance(a, Tensor) else id(a)
            if not (name := self.tensor_attrs.get(key)):
                kind = "_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant"
                name = self.tensor_attrs[key] = self.get_fresh_qualname(kind)
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:  # made before the trace
            name = self.get_fresh_qualname(f"_{a.__class__.__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # --- modules ---

    @compatibility(is_backward_compatible=True)
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a submodule is one node: true for modules of ``torch.nn`` except
        `Sequential`.
        """
        own = (module_of(m) or "").startswith(("torch.nn", "torch.ao.nn"))
        return own and not isinstance(m, Sequential)

    @compatibility(is_backward_compatible=True)
    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a submodule of the root.

        Raises:
            NameError: it is no submodule.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = _name_of(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    @compatibility(is_backward_compatible=True)
    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Handles a call of a submodule: makes a node for a leaf, else runs it."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = path, scope.module_type
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            found, _ = self.module_stack.popitem(last=True)
            if found != key:
                raise AssertionError(f"Unexpected key {found}, expected {key}")
        return result

    @compatibility(is_backward_compatible=False)
    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Handles the read of a parameter, buffer or submodule: returns proxies for parameters."""
        if isinstance(attr_val, Parameter):
            name = _name_of(attr_val, self.root.named_parameters())
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            name = _name_of(attr_val, self.root.named_buffers())
        else:
            return attr_val
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            made: dict[str, Any] = {}
            if "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                made["proxy_factory_fn"] = (
                    functools.partial(self._parameter_proxy, name, attr_val)
                    if self.param_shapes_constant
                    else None
                )
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **made)
        return parameter_proxy_cache[name]

    def _parameter_proxy(self, name: str, parameter: Parameter, node: Any) -> ParameterProxy:
        return ParameterProxy(self, node, name, parameter)

    # --- inputs ---

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: Any = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function to run, and its arguments: an input for each argument that is not given."""
        analysed: Any = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        signature = inspect.signature(analysed)
        starred = code.co_flags & _STARRED
        if isinstance(concrete_args, tuple) and concrete_args and starred and total == 1:
            for at, given in enumerate(concrete_args):
                args.append(self.create_proxy("placeholder", f"input_{at}", (), {}))
                _note_placeholder(given, args[-1])
            return root_fn, args
        plain = names[len(args) : total]
        if isinstance(concrete_args, tuple):
            if len(plain) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(plain)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(plain, concrete_args, strict=True))

        def make_placeholder(name: str) -> Any:
            return self._proxy_placeholder(name, concrete_args, signature, analysed)

        args += [make_placeholder(name) for name in plain]
        if code.co_kwonlyargcount > 0 or starred:
            rest = iter(names[total:])
            if code.co_flags & inspect.CO_VARARGS:
                args.append(make_placeholder("*" + next(rest)))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(make_placeholder("**" + next(rest)))
            root_fn = _patch_function(root_fn, len(args))
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        codegen = _PyTreeCodeGen(_PyTreeInfo(names[:total], in_spec, None))
        self.graph._codegen = codegen

        def flatten_fn(*args: Any):  # type: ignore[no-untyped-def]  # its annotation is the code's
            result = root_fn(*pytree.tree_unflatten(list(args), in_spec))
            leaves, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return leaves

        return flatten_fn, flat

    def _proxy_placeholder(
        self,
        name: str,
        concrete_args: dict[str, Any] | None,
        sig: inspect.Signature,
        fn_for_analysis: Callable[..., Any],
    ) -> Any:
        default: tuple[Any, ...] = ()
        if not name.startswith("*") and sig.parameters[name].default is not sig.empty:
            default = (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            kind = _annotations(fn_for_analysis).get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        numbers = itertools.count(1)

        def concrete(value: Any) -> Any:
            made = self.create_proxy("placeholder", f"{name}_{next(numbers)}", default, {})
            if isinstance(value, PHBase):
                _note_placeholder(value, made)
                return made
            if value is None:
                message = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (made, message), {})
            elif type(value) in base_types and type(value) is not Tensor:
                message = f"{name} has been specialized to have value {value} but got another value"
                args = (made == value, message)
                self.create_proxy("call_function", _functions._assert, args, {})
            else:
                warnings.warn(
                    "Was not able to add assertion to guarantee correct input "
                    f"{name} to specialized function. It is up to the user to make sure that your "
                    "inputs match the inputs you specialized the function with.",
                    stacklevel=2,
                )
            return value

        return pytree.tree_map(concrete, concrete_args[name])

    # --- the trace ---

    @compatibility(is_backward_compatible=True)
    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's ``forward``, or of a function.

        Args:
            root: the module or function.
            concrete_args: arguments that are no inputs but have these values; containers of `PH`
                where their elements are inputs.

        Raises:
            TraceError: the program branches on a value, or takes it apart.
        """
        global _tracing
        _tracing += 1
        try:
            return self._trace_root(root, concrete_args)
        finally:
            _tracing -= 1

    def _trace_root(self, root: Any, concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            fn: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root = Module()
            fn = root
        self.graph = Graph(tracer_cls=type(self))
        if code := getattr(fn, "__code__", None):
            self.graph._co_fields = {
                "co_name": code.co_name,
                "co_filename": code.co_filename,
                "co_firstlineno": code.co_firstlineno,
            }
        self.tensor_attrs = {}
        for path, module in self.root.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, _constant_attribute_types):
                    key = value if isinstance(value, Tensor) else id(value)
                    self.tensor_attrs[key] = f"{path}.{name}" if path else name
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        fn_globals = fn.__globals__
        fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
        with _new_patcher() as patcher:
            self._patch_modules(patcher)
            _patch_wrapped_functions(patcher)
            for names in (fn_globals, *map(vars, self._autowrap_search)):
                _autowrap_check(patcher, names, self._autowrap_function_ids)
            returned = _annotations(inspect.unwrap(fn)).get("return")
            result = self.create_arg(fn(*args))
            self.create_node("output", "output", (result,), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    def _patch_modules(self, patcher: _Patcher) -> None:
        """Lets calls of modules, and readings of their parameters, come here."""
        call, read = _orig_module_call, _orig_module_getattr
        proxies: dict[str, Proxy] = {}

        @functools.wraps(read)
        def reading(mod: Module, attr: str) -> Any:
            return self.getattr(attr, read(mod, attr), proxies)

        @functools.wraps(call)
        def calling(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            names = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", reading, deduplicate=False)
        patcher.patch_method(Module, "__call__", calling, deduplicate=False)


_default_tracer.append(Tracer)


def _name_of(value: Any, named: Any) -> str | None:
    """The name of a value among named ones, or None."""
    return next((name for name, each in named if each is value), None)


def _annotations(fn: Any) -> dict[str, Any]:
    """The annotations of a function. For functions of this package they are evaluated, and Any is
    left out, where PyTorch has no annotation.
    """
    if not is_from_torch(fn):
        return inspect.get_annotations(fn)
    try:
        named = inspect.get_annotations(fn, eval_str=True)
    except NameError:  # known to type checkers alone
        return {}
    return {name: kind for name, kind in named.items() if kind is not Any}


def _note_placeholder(place: Any, proxy: Proxy) -> None:
    if isinstance(place, PHBase) and place is not PH:
        _transfer_attrs(place, proxy.node)


# --- functions that are noted whole ---

_wrapped_fns_to_patch: Final[dict[tuple[int, str], dict[str, Any]]] = {}
_wrapped_methods_to_patch: Final[list[tuple[type, str]]] = (
    [(Tensor, "__getitem__")] if os.environ.get("FX_PATCH_GETITEM") == "1" else []
)


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(orig_fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not (proxies := _proxies_in(args, kwargs)):
            return orig_fn(*args, **kwargs)
        made = proxies[-1].tracer.create_proxy("call_function", orig_fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return wrapper


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not (proxies := _proxies_in(args, kwargs)):
            return orig_fn(*args, **kwargs)
        return proxies[-1].tracer.create_proxy("call_method", name, args, kwargs)

    return wrapper


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), names in _wrapped_fns_to_patch.copy().items():
        known = name in names or not hasattr(builtins, name)
        function = names[name] if known else getattr(builtins, name)
        patcher.patch(names, name, _create_wrapped_func(function))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _create_wrapped_func(value))


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: F) -> F:
    """Let traces record the calls of a function of this module, instead of running it.

    Called at the top level of a module, with a function or a function's name, also a builtin's; or
    used as a decorator.

    Raises:
        NotImplementedError: called within a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    named: Any = fn_or_name
    name = named if isinstance(named, str) else named.__name__
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    if frame.f_back.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_back.f_globals), name] = frame.f_back.f_globals
    return fn_or_name


@compatibility(is_backward_compatible=True)
def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """The graph of a module or a function, as a module.

    Args:
        root: the module or function to trace.
        concrete_args: arguments that are no inputs; see `Tracer.trace`.

    Raises:
        TraceError: the program branches on a value, or takes it apart.

    Example:
        >>> from pygrad import fx
        >>> module = fx.symbolic_trace(lambda x, y: (x + y).relu())
        >>> print(module.code.strip())
        def forward(self, x, y):
            add = x + y;  x = y = None
            relu = add.relu();  add = None
            return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]
