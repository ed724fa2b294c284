"""The settings of autocast.

The engine reads the settings of the CPU as bits of the thread's modes. This module only stores the
settings of devices that pygrad does not run on.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

from .._boundary.modes import AUTOCAST, CAST_ANEW, FLOAT16, get, switch
from .._ground.dtypes import bfloat16, float16
from .._ground.dtypes import device as Device
from .._ground.dtypes import dtype as Dtype
from .._table import functions
from .._table.builtins import builtin

DEVICES = frozenset(
    "cpu cuda hpu ipu maia mps mtia privateuseone xla xpu".split()  # with a dispatch key
)
_BFLOAT16 = frozenset({"cpu", "hpu", "mps", "xla"})
"""The devices whose default dtype is bfloat16; for all others it is float16."""


class _OfThread(threading.local):
    """Per-thread settings that are not bits of the modes."""

    def __init__(self) -> None:
        self.nesting = 0
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, Dtype] = {}


_here = _OfThread()


def _parse_device_type(device_type: Any, name: str, unknown: str) -> str:
    if not isinstance(device_type, str):
        raise TypeError(
            f"{name}(): argument 'device_type' (position 1) must be str, not "
            f"{type(device_type).__name__}"
        )
    kind = Device(device_type).type
    if kind not in DEVICES:
        raise RuntimeError(unknown)
    return kind


_NO_KEY = "unknown device type for autocast in get_autocast_dispatch_key_from_device_type"


@builtin
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops of a device are cast: see `autocast`.

    Raises:
        RuntimeError: no such device, or one that autocast does not know.

    Example:
        >>> import pygrad
        >>> with pygrad.autocast("cpu"):
        ...     pygrad.is_autocast_enabled("cpu")
        True
    """
    kind = _parse_device_type(device_type, "is_autocast_enabled", _NO_KEY)
    return bool(get() & AUTOCAST) if kind == "cpu" else _here.enabled.get(kind, False)


@builtin
def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Turn `autocast` on or off for this thread. A single bool sets it for "cuda".

    Raises:
        NotImplementedError: the dtype set for the CPU is neither bfloat16 nor float16.
    """
    place = 2
    if enabled is None and isinstance(device_type, bool):
        device_type, enabled, place = "cuda", device_type, 1
    kind = _parse_device_type(device_type, "set_autocast_enabled", _NO_KEY)
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position {place}) must be bool, not "
            f"{type(enabled).__name__}"
        )
    if kind != "cpu":
        _here.enabled[kind] = enabled
        return
    if enabled and (dtype := get_autocast_dtype("cpu")) not in (bfloat16, float16):
        raise NotImplementedError(f"set_autocast_enabled: autocast to {dtype}")
    switch(AUTOCAST, enabled)


@builtin
def get_autocast_dtype(device_type: str) -> Dtype:
    """The dtype that `autocast` computes in.

    Example:
        >>> import pygrad
        >>> pygrad.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    kind = _parse_device_type(device_type, "get_autocast_dtype", "unsupported scalarType")
    return _here.dtypes.get(kind, bfloat16 if kind in _BFLOAT16 else float16)


@builtin
def set_autocast_dtype(device_type: str, dtype: Dtype) -> None:
    """Set the dtype that `autocast` computes in, for this thread."""
    kind = _parse_device_type(device_type, "set_autocast_dtype", _NO_KEY)
    if not isinstance(dtype, Dtype):
        raise TypeError(
            "set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not "
            f"{type(dtype).__name__}"
        )
    if kind == "cpu":
        if get() & AUTOCAST and dtype not in (bfloat16, float16):
            raise NotImplementedError(f"set_autocast_dtype: autocast to {dtype}")
        switch(FLOAT16, dtype is float16)
    _here.dtypes[kind] = dtype


@builtin
def is_autocast_cache_enabled() -> bool:
    """Whether `autocast` caches its casts of parameters until it ends."""
    return not get() & CAST_ANEW


@builtin
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether `autocast` caches its casts of parameters, for this thread."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    switch(CAST_ANEW, not enabled)


@builtin
def clear_autocast_cache() -> None:
    """Free the casts of parameters that `autocast` caches."""
    functions.SPACES["internal"]["_autocast_forget"]()


@builtin
def autocast_increment_nesting() -> int:
    """Add one to the nesting depth of `autocast` on this thread; returns the new depth."""
    _here.nesting += 1
    return _here.nesting


@builtin
def autocast_decrement_nesting() -> int:
    """Subtract one from the nesting depth of `autocast` on this thread; returns the new depth."""
    _here.nesting -= 1
    return _here.nesting


def _warn(name: str, instead: str) -> None:
    warnings.warn(
        f"torch.{name}() is deprecated. Please use torch.{instead} instead.",
        DeprecationWarning,
        stacklevel=3,
    )


@builtin
def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled` of the CPU, by its older name."""
    _warn("is_autocast_cpu_enabled", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


@builtin
def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled` of the CPU, by its older name."""
    _warn("set_autocast_cpu_enabled", "set_autocast_enabled('cpu', enabled)")
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type(enabled).__name__})")
    set_autocast_enabled("cpu", enabled)


@builtin
def get_autocast_cpu_dtype() -> Dtype:
    """`get_autocast_dtype` of the CPU, by its older name."""
    _warn("get_autocast_cpu_dtype", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


@builtin
def set_autocast_cpu_dtype(dtype: Dtype) -> None:
    """`set_autocast_dtype` of the CPU, by its older name."""
    _warn("set_autocast_cpu_dtype", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


@builtin
def get_autocast_gpu_dtype() -> Dtype:
    """`get_autocast_dtype` of "cuda", by its older name."""
    _warn("get_autocast_gpu_dtype", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


@builtin
def set_autocast_gpu_dtype(dtype: Dtype) -> None:
    """`set_autocast_dtype` of "cuda", by its older name."""
    _warn("set_autocast_gpu_dtype", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)
