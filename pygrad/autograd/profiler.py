"""What ran and how long it took: ops, backward nodes and ranges that the caller names.

The engine records the events while a profile is on; the clock is the host's
`time.perf_counter_ns`. Off, it costs one branch a call.
"""

from __future__ import annotations

import enum
import functools
import os
import sys
import time
import warnings
from _thread import get_ident
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar

from .. import _engine, _ops
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "EventList",
    "FunctionEvent",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "profile",
    "record_function",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_OP, _RANGE = 0, 7  # scopes, as PyTorch numbers them
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PRODUCTS = {"mm", "matmul", "bmm", "addmm", "baddbmm", "mv", "linear"}

_C = _ops.C
_plain_clock = _engine.clock
_running: profile | None = None


class ProfilerActivity(enum.Enum):
    """What a profile may record: here, what the CPU does."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def _stack() -> list[str]:
    """The callers outside of this package, innermost first."""
    calls = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            calls.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return calls


def _warn_of_device(name: str | None, use_cuda: bool) -> None:
    """Says that no other device is here to be profiled, as PyTorch does."""
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` "
            "instead.",
            FutureWarning,
            stacklevel=3,
        )
    if name in ("cuda", "xpu"):
        text = f"{name.upper()} is not available, disabling {name.upper()} profiling"
        warnings.warn(text, stacklevel=3)
    elif name is not None:
        warnings.warn(f"The {name} is not a valid device option.", stacklevel=3)


class profile:
    """Records what runs inside of the ``with`` block.

    Args:
        enabled: ``False`` makes it a no-op.
        record_shapes: keep the sizes of every argument.
        with_flops: estimate the floating point operations of products, convolutions, ``add``
            and ``mul`` from the shapes.
        profile_memory: count the bytes of linear memory that each event allocates and frees.
        with_stack: keep the Python stack of each call.
        with_modules, use_kineto, use_cpu, experimental_config, acc_events,
            custom_trace_id_callback, post_processing_timeout_s, activity_filters: as PyTorch's
            for a CPU; what would need another device or its tools raises.

    What other threads do meanwhile is not recorded.

    Raises:
        AssertionError: no CPU.
        RuntimeError: entered twice, or while another profile runs.

    >>> import pygrad
    >>> x = pygrad.ones(3, requires_grad=True)
    >>> with pygrad.autograd.profiler.profile() as prof:
    ...     (x * x).sum().backward()
    >>> names = [event.name for event in prof.function_events]
    >>> "aten::mul" in names, "MulBackward0" in names
    (True, True)
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict[Any, set[str]] | None = None,
    ) -> None:
        _warn_of_device("cuda" if use_cuda else use_device, use_cuda)
        if not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        if experimental_config is not None or activity_filters is not None:
            name = "activity_filters" if experimental_config is None else "experimental_config"
            raise NotImplementedError(f"profile: {name} is for other devices")
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.entered = False
        self.use_device = None
        self.trace_id = ""
        self._new_trace_id = custom_trace_id_callback
        self._deadline = post_processing_timeout_s
        self._stacks: dict[int, list[str]] = {}
        self._thread = 0
        self._events: EventList | None = None

    def __enter__(self) -> profile | None:
        global _running
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if _running is not None:
            if _running._thread == get_ident():
                raise RuntimeError("Profiler is already enabled on this thread")
            raise RuntimeError("pygrad: a profile runs on another thread, and there can be but one")
        self._thread = get_ident()
        self.entered = True
        self.trace_id = self._new_trace_id() if self._new_trace_id else ""
        self._stacks.clear()
        _engine.clock = self._clock
        _running = self
        _C["_profile_start"](self.record_shapes)
        return self

    def start(self) -> None:
        """Begins to record, as entering the scope does."""
        self.__enter__()

    def stop(self) -> None:
        """Ends it, as leaving the scope does."""
        self.__exit__(None, None, None)

    def __exit__(self, *_: object) -> None:
        global _running
        if not self.enabled or _running is not self:
            return
        _C["_profile_stop"]()
        _running = None
        _engine.clock = _plain_clock
        events = self._read()
        if self.acc_events and self._events is not None:
            self._events.extend(events)
        else:
            self._events = events
        _C["_profile_clear"]()
        self.entered = not self.acc_events

    def _clock(self, event: int) -> int:
        """Nanoseconds; called by the engine when an event begins (its number) or ends (-1)."""
        if event >= 0 and self.with_stack:
            self._stacks[event] = _stack()
        return time.perf_counter_ns()

    def _read(self) -> EventList:
        """The engine's events, in the order in which they began."""
        found = EventList(profile_memory=self.profile_memory, with_flops=self.with_flops)
        began = time.monotonic()
        while (fields := _C["_profile_event"](len(found))) is not None:
            scope, parent, start, end, sequence, n_bytes, out_numel = fields
            name = _C["_profile_name"](len(found))
            if self._deadline is not None and time.monotonic() - began > self._deadline:
                break
            shapes: list[list[int]] = []
            while (shape := _C["_profile_shape"](len(found), len(shapes))) is not None:
                shapes.append(shape)
            event = FunctionEvent(
                len(found) + 1,
                name,
                1,
                start / 1000,
                end / 1000,
                input_shapes=shapes,
                stack=self._stacks.get(len(found)),
                scope=scope,
                cpu_memory_usage=n_bytes if self.profile_memory else 0,
                sequence_nr=sequence,
                flops=_flops(name, shapes, out_numel) if self.with_flops and scope == _OP else 0,
                is_user_annotation=scope == _RANGE,
            )
            if parent >= 0:
                found[parent].append_cpu_child(event)
            found.append(event)
        return found

    @property
    def function_events(self) -> EventList:
        """All events, in the order in which they began; none before the profile has ended."""
        return EventList() if self._events is None else self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums by name (see :meth:`EventList.key_averages`)."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The events as a text table (see :meth:`EventList.table`)."""
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a JSON file for trace viewers."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes the stacks and their times for flame graphs; needs ``with_stack=True``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each moment counted once."""
        return self.function_events.self_cpu_time_total

    def toggle_collection_dynamic(
        self, enabled: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Stops and resumes the recording inside of the block.

        Args:
            enabled: whether to record from now on.
            activities: nothing happens unless :attr:`ProfilerActivity.CPU` is among them.

        Raises:
            TypeError: one of them is no activity.

        >>> import pygrad
        >>> from pygrad.autograd.profiler import ProfilerActivity, profile
        >>> with profile() as prof:
        ...     prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        ...     x = pygrad.ones(2)
        ...     prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        ...     y = x + 1
        >>> [event.name for event in prof.function_events]
        ['aten::add']
        """
        chosen = set(activities)
        if not all(isinstance(each, ProfilerActivity) for each in chosen):
            raise TypeError("toggle_collection_dynamic(): activities are those of ProfilerActivity")
        if ProfilerActivity.CPU in chosen:
            _C["_profile_toggle"](enabled)

    def __str__(self) -> str:
        return str(self.function_events)

    def __repr__(self) -> str:
        return repr(self.function_events)


def _flops(name: str, shapes: list[list[int]], out_numel: int) -> int:
    """Estimates by PyTorch's rule: two for each product of a matrix product or convolution, one
    an element of ``add`` and ``mul``.
    """
    op = name.removeprefix("aten::")
    if op in _PRODUCTS:
        factors = [shape for shape in shapes if len(shape) >= 1]
        left = factors[-2] if op in ("addmm", "baddbmm") else factors[0]
        return 2 * out_numel * left[-1]
    if op == "conv2d" and len(shapes) > 1 and len(shapes[1]) == 4:
        _, channels, height, width = shapes[1]
        return 2 * out_numel * channels * height * width
    return out_numel if op in ("add", "mul") else 0


class record_function:
    """A range under a name of the caller's in the running profile; a decorator too.

    Args:
        name: what the event is called.
        args: a text that goes with it.

    >>> import pygrad
    >>> with pygrad.autograd.profiler.profile() as prof:
    ...     with pygrad.autograd.profiler.record_function("step"):
    ...         y = pygrad.ones(2) + 1
    >>> [event.name for event in prof.function_events]
    ['step', 'aten::ones', 'aten::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if args is not None and not isinstance(args, str):
            raise RuntimeError(
                "profiler::_record_function_enter_new() Expected a value of type 'Optional[str]' "
                f"for argument 'args' but instead found type '{type(args).__name__}'."
            )
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self._event = -1

    def __enter__(self) -> record_function:
        self._event = _C["_profile_begin"](self.name) if _running is not None else -1
        return self

    def __exit__(self, *_: object) -> None:
        if self._event >= 0 and _running is not None:
            _C["_profile_end"](self._event)

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]


class emit_itt:
    """Accepted for scripts written for Intel's tools. Without them, as in PyTorch, nobody receives
    the ranges; those of a running :class:`profile` are in its trace.

    Args:
        enabled: False makes it do nothing.
        record_shapes: for the tool; a :class:`profile` has an argument of its own.

    Raises:
        RuntimeError: on entering it a second time.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.profiler.emit_itt():
        ...     y = pygrad.ones(2) + 1
    """

    _tool = "ITT"

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes

    def __enter__(self) -> Self | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self._tool} annotation context manager is not reentrant")
        self.entered = True
        self._begin()
        return self

    def _begin(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class emit_nvtx(emit_itt):
    """As :class:`emit_itt`, for NVIDIA's tools, which need CUDA: accepted inside of a
    :class:`profile`, in whose trace the ranges are.

    Raises:
        AssertionError: no profile is running, so this is PyTorch's error without CUDA.
        RuntimeError: on entering it a second time.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.profiler.emit_nvtx():
        ...     y = pygrad.ones(2) + 1
        Traceback (most recent call last):
        AssertionError: Torch not compiled with CUDA enabled
    """

    _tool = "NVTX"

    def _begin(self) -> None:
        if _running is None:
            raise AssertionError("Torch not compiled with CUDA enabled")


def load_nvprof(path: str | os.PathLike[str]) -> EventList:
    """Would read a database of nvprof, which profiles CUDA alone.

    Raises:
        NotImplementedError: always, naming what to use instead.
    """
    raise NotImplementedError(
        f"load_nvprof({os.fspath(path)!r}): nvprof records CUDA events, pygrad runs on the CPU; "
        "use profile() and export_chrome_trace()"
    )
