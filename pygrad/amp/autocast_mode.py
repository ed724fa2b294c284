"""`autocast`, and the decorators of custom functions for it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from .._ground.dtypes import bfloat16, float16, float64
from .._ground.dtypes import device as Device
from .._ground.dtypes import dtype as Dtype
from .._tensor.tensor import Tensor
from . import _state

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` supports a type of device.

    Example:
        >>> import pygrad
        >>> pygrad.amp.is_autocast_available("cpu")
        True
    """
    return Device(device_type).type in _state.DEVICES


class autocast:
    """A scope, or decorator, in which some ops compute in a dtype of 16 bits: matrix products and
    convolutions. Ops that need more range or precision (losses, transforms, decompositions) compute
    in float32; `cat` and `stack` in the widest dtype of their arguments. All other ops compute in
    the dtypes of their arguments.

    The casts are part of the graph: a parameter of float32 has a gradient of float32. A parameter
    is cast once until the outermost scope ends. Tensors of float64 are not cast, nor are arguments
    of ops in place or with ``out=``.

    Args:
        device_type: "cpu"; scopes of other devices do nothing here.
        dtype: bfloat16 or float16; if None, the value of `get_autocast_dtype`, initially bfloat16.
        enabled: False makes a scope in which nothing is cast, even within another scope.
        cache_enabled: False casts a parameter again for each op.

    Raises:
        ValueError: `device_type` is no str.
        RuntimeError: a device that autocast does not support.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, 2, requires_grad=True)
        >>> with pygrad.autocast("cpu"):
        ...     y = w @ w
        ...     loss = pygrad.nn.functional.mse_loss(y, pygrad.zeros(2, 2))
        >>> y.dtype, loss.dtype
        (torch.bfloat16, torch.float32)
        >>> loss.backward()
        >>> w.grad
        tensor([[4., 4.],
                [4., 4.]])
    """

    def __init__(
        self,
        device_type: str,
        dtype: Dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = _state.get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self._cache_enabled = (
            _state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        if enabled and device_type == "cuda":
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2
            )
            enabled = False
        elif enabled and self.fast_dtype not in (bfloat16, float16):
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._outer: list[tuple[bool, Dtype, bool]] = []

    def _set(self, enabled: bool, dtype: Dtype, cache: bool) -> None:
        _state.set_autocast_enabled(self.device, False)
        _state.set_autocast_dtype(self.device, dtype)
        _state.set_autocast_enabled(self.device, enabled)
        _state.set_autocast_cache_enabled(cache)

    def __enter__(self) -> autocast:
        self._outer.append(
            (
                _state.is_autocast_enabled(self.device),
                _state.get_autocast_dtype(self.device),
                _state.is_autocast_cache_enabled(),
            )
        )
        self._set(self._enabled, self.fast_dtype, self._cache_enabled)
        _state.autocast_increment_nesting()
        return self

    def __exit__(self, *_: object) -> None:
        if _state.autocast_decrement_nesting() == 0:
            _state.clear_autocast_cache()
        self._set(*self._outer.pop())

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return inside


def _cast(value: Any, device_type: str, dtype: Dtype) -> Any:
    """Casts the tensors of floating dtype, except float64, in a nested structure."""
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.dtype is not float64
        return value.to(dtype) if fits and device_type == "cpu" else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        each = (_cast(v, device_type, dtype) for v in value)
        return type(value)(each) if isinstance(value, (list, tuple)) else each
    return value


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Dtype | None = None) -> Any:
    """Decorates ``forward`` of a `Function` for use with `autocast`.

    Args:
        fwd: the method.
        device_type: "cpu", or another.
        cast_inputs: under `autocast`, a dtype to which tensors of floating dtype, except float64,
            are cast; the method then runs without autocast. None: the method's ops are cast as
            usual. No effect outside of `autocast`.

    Example:
        >>> import pygrad
        >>> class Double(pygrad.autograd.Function):
        ...     @staticmethod
        ...     @pygrad.amp.custom_fwd(device_type="cpu", cast_inputs=pygrad.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     @pygrad.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> with pygrad.autocast("cpu"):
        ...     Double.apply(pygrad.ones(1, dtype=pygrad.bfloat16))
        tensor([2.])
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = _state.get_autocast_dtype(device_type)
        on = _state.is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return wrapper


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates ``backward`` of a `Function` whose ``forward`` has `custom_fwd`: it runs with the
    `autocast` settings of ``forward``.
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return wrapper
