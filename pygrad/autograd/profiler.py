"""Records ops, backward nodes and named ranges with their times.

The engine records the events while a profile is on; the clock is the host's `time.perf_counter_ns`.
While off, profiling costs one branch a call.
"""

from __future__ import annotations

import enum
import functools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from .. import _boundary
from .._table import functions as _functions
from .._table.builtins import builtin
from .profiler_util import DeviceType as DeviceType
from .profiler_util import EventList, FunctionEvent
from .profiler_util import FunctionEventAvg as FunctionEventAvg

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor

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
_T = TypeVar("_T")
_P = ParamSpec("_P")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

STEP = "ProfilerStep"
_EVALUATION = "autograd::engine::evaluate_function: "

_C = _functions.C
_plain_clock = _boundary.hosting.clock
_running: profile | None = None


class ProfilerActivity(enum.Enum):
    """The activities that a profile may record; here only the CPU's."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


@builtin
def kineto_available() -> bool:
    """True: a profile records as much as PyTorch's with its library Kineto.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.kineto_available()
        True
    """
    return True


@builtin
def _supported_activities() -> set[ProfilerActivity]:
    """The activities that a profile can record."""
    return {ProfilerActivity.CPU}


@builtin
def _profiler_enabled() -> bool:
    """Whether a profile is running."""
    return _running is not None


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
    """Warns that no other device can be profiled, as PyTorch does."""
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


def _event_list_report(
    report: Callable[Concatenate[EventList, _P], _T],
) -> Callable[Concatenate[profile, _P], _T]:
    """A report of an EventList as a method of a profile."""

    @functools.wraps(report)
    def wrapper(self: profile, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return report(self.function_events, *args, **kwargs)

    return wrapper


class profile:
    """Records the events inside the ``with`` block.

    Args:
        enabled: ``False`` makes it a no-op.
        record_shapes: keep the sizes of every argument.
        with_flops: estimate the floating point operations of products, convolutions, ``add``
            and ``mul`` from the shapes.
        profile_memory: count the bytes of linear memory that each event allocates and frees.
        with_stack: keep the Python stack of each call.
        with_modules, use_kineto, use_cpu, experimental_config, acc_events,
            custom_trace_id_callback, post_processing_timeout_s, activity_filters: as PyTorch's
            for a CPU; values that need another device or its tools raise.

    Other threads are not recorded.

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
        self._events: EventList | None = None

    def __enter__(self) -> profile | None:
        global _running
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.trace_id = self._new_trace_id() if self._new_trace_id else ""
        _C["_profile_start"](self.record_shapes, self.profile_memory, self.with_flops)
        _running = self
        _boundary.hosting.clock = self._clock
        self._stacks.clear()
        self.entered = True
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
        _boundary.hosting.clock = _plain_clock
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
        while (text := _C["_profile_event"](len(found))) is not None:
            if self._deadline is not None and time.monotonic() - began > self._deadline:
                break
            fields = json.loads(text)
            parent = fields.pop("parent")
            name = fields["name"]
            if name.startswith(STEP + "#"):  # one line of a table for all steps of a loop
                fields["name"] = STEP + "*"
            is_of_backward = fields["scope"] == 1 or name.startswith(_EVALUATION)
            event = FunctionEvent(
                thread=1,
                fwd_thread=int(is_of_backward and fields["sequence_nr"] >= 0),
                stack=self._stacks.get(len(found)),
                trace_name=name,
                **fields,
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

    table = _event_list_report(EventList.table)
    total_average = _event_list_report(EventList.total_average)

    def export_chrome_trace(
        self,
        path: str | os.PathLike[str],
        metadata: dict[str, str] | None = None,
        use_python_export: bool = False,
    ) -> None:
        """Writes the events as JSON (see :meth:`EventList.export_chrome_trace`); always in Python,
        whatever `use_python_export` is.
        """
        self.function_events.export_chrome_trace(path, metadata)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes the stacks and their times for flame graphs; needs ``with_stack=True``."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

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


def begin_async(name: str, tensors: Iterable[Tensor]) -> Callable[[], None]:
    """Begins a range beside the others, for work done elsewhere meanwhile.

    Args:

        tensors: its inputs.

    Returns:
        A function that ends the range. Without a running profile it does nothing.
    """
    if _running is None:
        return _do_nothing
    event = _C["_profile_begin_async"](name, list(tensors))
    return functools.partial(_end_async, _running, event)


def _end_async(of: profile, event: int) -> None:
    if _running is of:
        _C["_profile_end"](event)


def _do_nothing() -> None:
    pass


class record_function:
    """A range under a name of the caller's in the running profile; a decorator too.

    Args:
        name: the name of the event.
        args: a text stored with the event.

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
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


@builtin
def _record_function_with_args_enter(name: str, *args: Any) -> record_function:
    """Begins a range without a scope; the result ends it."""
    return record_function(name).__enter__()


@builtin
def _record_function_with_args_exit(handle: record_function) -> None:
    handle.__exit__()


class emit_itt:
    """Accepted for scripts written for Intel's tools. Without the tools nobody receives the ranges,
    as in PyTorch; a running :class:`profile` has them in its trace.

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
    """Like :class:`emit_itt`, for NVIDIA's tools, which need CUDA: accepted only inside a
    :class:`profile`, whose trace has the ranges.

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


if not TYPE_CHECKING:

    def __getattr__(name):
        """`_is_profiler_enabled`: whether a profile is running now."""
        if name == "_is_profiler_enabled":
            return _profiler_enabled()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
