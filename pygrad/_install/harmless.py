"""Functions of PyTorch's compilers, exporters and devices that work without them: decorators that
change nothing, switches without effect, queries.

`stand_ins` uses them.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Final

Function = Callable[..., Any]


def _subject(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The argument that a function is about: the first, whatever its name is."""
    return next(iter((*given, *named.values())), None)


def _itself(name: str) -> Function:
    """A decorator, with or without arguments, that returns the decorated function."""

    def decorator(*given: Any, **named: Any) -> Any:
        function = _subject(given, named)
        if callable(function):
            return function
        return lambda decorated: decorated

    return decorator


def _factory(name: str) -> Function:
    """A function that takes any arguments and returns a decorator that changes nothing."""

    def factory(*_: Any, **__: Any) -> Any:
        return lambda decorated: decorated

    return factory


def _marker(name: str) -> Function:
    """A class whose instances are decorators that change nothing."""

    def __init__(self: Any, *_: Any, **__: Any) -> None:
        """Ignores its arguments."""

    def __call__(self: Any, *given: Any, **named: Any) -> Any:
        return _subject(given, named)

    return type(name, (), {"__init__": __init__, "__call__": __call__})


def _always(value: Any) -> Callable[[str], Function]:
    """A maker of functions that return `value`, or a copy of it if it is a list."""

    def maker(name: str) -> Function:
        def function(*_: Any, **__: Any) -> Any:
            return list(value) if isinstance(value, list) else value

        return function

    return maker


def _first(name: str) -> Function:
    """A function that returns its first argument."""

    def function(*given: Any, **named: Any) -> Any:
        return _subject(given, named)

    return function


def _annotate(name: str) -> Function:
    def function(the_type: Any, the_value: Any) -> Any:
        return the_value

    return function


def _scope(name: str) -> Function:
    """A scope in which nothing is different; also a decorator."""

    @contextlib.contextmanager
    def scope(*_: Any, **__: Any) -> Iterator[None]:
        yield

    return scope


def _extension(name: str) -> Function:
    def function(path: str) -> None:
        raise OSError(f"Could not load this library: {path}: pygrad cannot run machine code")

    return function


def _never_initialized(name: str) -> Function:
    """A decorator of functions that need other processes; they raise RuntimeError when called."""

    def decorator(func: Function) -> Function:
        @functools.wraps(func)
        def wrapper(*_: Any, **__: Any) -> Any:
            raise RuntimeError(
                "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
            )

        return wrapper

    return decorator


def _switch(value: Any) -> Callable[[str], Function]:
    """A maker of setters of an ineffective switch, which return its former value."""

    def maker(name: str) -> Function:
        setting = value

        def function(new: Any) -> Any:
            nonlocal setting
            before, setting = setting, new
            return before

        return function

    return maker


def _isinstance(name: str) -> Function:
    def isinstance_(obj: Any, target_type: Any) -> bool:
        kinds = tuple(target_type) if type(target_type) is list else target_type
        return builtins.isinstance(obj, kinds)

    return isinstance_


_TABLE: Final[dict[str, list[tuple[Callable[[str], Function], str]]]] = {
    "torch._dynamo": [
        (
            _itself,
            "allow_in_graph assume_constant_result disable disable_nested_graph_breaks "
            "disallow_in_graph dont_skip_tracing forbid_in_graph nonstrict_trace run optimize "
            "optimize_assert",
        ),
        (_factory, "substitute_in_graph"),
        (_scope, "set_stance error_on_graph_break patch_dynamo_config"),
        (
            _always(None),
            "graph_break mark_dynamic mark_static mark_static_address maybe_mark_dynamic reset "
            "reset_code_caches skip_frame step_unsupported",
        ),
        (_always(False), "is_compiling is_dynamo_supported is_inductor_supported"),
        (_always([]), "list_backends"),
        (_first, "register_backend"),
    ],
    "torch._dynamo.utils": [(_always(False), "is_compile_supported")],
    "torch._C": [
        (
            _always(False),
            "_is_tracing _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu _jit_texpr_fuser_enabled",
        ),
        (
            _always(None),
            "_debug_set_autodiff_subgraph_inlining _jit_override_can_fuse_on_cpu "
            "_jit_override_can_fuse_on_gpu _jit_set_texpr_fuser_enabled",
        ),
        (_switch(True), "_jit_set_profiling_executor _jit_set_profiling_mode"),
        (_switch(1), "_jit_set_num_profiled_runs"),
    ],
    "torch._C._dynamo.eval_frame": [(_always(None), "reset_code")],
    "torch._jit_internal": [
        (_itself, "_copy_to_script_wrapper _drop _overload _overload_method"),
    ],
    # torchvision asks for this before it resizes bytes directly; they are resized with the numbers
    # of PyTorch's AVX2 kernels.
    "torch.backends.cpu": [(_always("AVX2"), "get_cpu_capability")],
    "torch.compiler": [
        (_itself, "assume_constant_result nested_compile_region wrap_numpy"),
        (_factory, "substitute_in_graph"),
        (_scope, "set_stance"),
        (_always(None), "set_enable_guard_collectives set_default_backend"),
        (_always([]), "list_backends"),
    ],
    "torch._guards": [(_always(None), "active_fake_mode detect_fake_mode")],
    "torch._subclasses.fake_tensor": [(_always(False), "is_fake")],
    "torch.jit": [
        (_itself, "_script_if_tracing interface script_if_tracing script_method"),
        (_first, "optimize_for_inference"),
        (_annotate, "annotate"),
        (_isinstance, "isinstance"),
        (_scope, "fuser optimized_execution"),
        (_always(None), "enable_onednn_fusion set_fusion_strategy run_frozen_optimizations"),
        (_always(False), "onednn_fusion_enabled"),
        (_always([]), "export_opnames"),
    ],
    "torch.classes": [(_extension, "load_library")],
    "torch.cuda": [(_scope, "stream")],
    "torch.distributed.elastic.multiprocessing.errors": [(_itself, "record")],
    "torch.distributed.rpc.api": [(_never_initialized, "_require_initialized")],
    "torch.onnx": [
        (_always(False), "is_in_onnx_export"),
        (_always(None), "register_custom_op_symbolic unregister_custom_op_symbolic"),
        (_scope, "select_model_mode_for_export"),
    ],
    "torch.onnx.symbolic_helper": [(_factory, "parse_args quantized_args")],
    "torch.utils.data.datapipes._decorator": [
        (_marker, "functional_datapipe guaranteed_datapipes_determinism non_deterministic"),
    ],
}
_QUESTIONS: Final = {
    **dict.fromkeys("is_available is_built is_compiled is_initialized is_supported".split(), False),
    "device_count": 0,
}
"""Queries of any absent device or back end."""


def find(module: str, name: str) -> Function | None:
    """A stand-in for one of PyTorch's functions that works without the feature it belongs to, or
    None.

    Example:
        >>> find("torch.mtia", "is_available")()
        False
    """
    maker: Callable[[str], Function] | None = None
    for each, names in _TABLE.get(module, ()):
        if name in names.split():
            maker = each
    if maker is None and name in _QUESTIONS:
        maker = _always(_QUESTIONS[name])
    if maker is None:
        return None
    made = maker(name)
    made.__name__ = made.__qualname__ = name
    made.__module__, made.__doc__ = module, maker.__doc__
    return made
