"""Profiles of a training loop, step by step: `pygrad.autograd.profiler` under a schedule.

Example:
    >>> import pygrad
    >>> from pygrad.profiler import profile, schedule
    >>> steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> with profile(schedule=steps, on_trace_ready=lambda p: print(p.step_num)) as prof:
    ...     for _ in range(6):
    ...         x = pygrad.ones(2) + 1
    ...         prof.step()
    4
    >>> [average.key for average in prof.key_averages()]
    ['ProfilerStep*', 'aten::ones', 'aten::add']
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Self

from .._ground.warnings import once
from ..autograd import profiler as _profiler
from ..autograd.profiler import ProfilerActivity, kineto_available, record_function
from ..autograd.profiler_util import DeviceType, EventList
from . import itt as itt

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """The actions of a profile during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


_NONE, _WARMUP, _RECORD, _SAVE = list(ProfilerAction)[:4]


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded: those of the CPU."""
    return _profiler._supported_activities()


def _default_schedule_fn(_: int) -> ProfilerAction:
    return _RECORD


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from a step's number to the profile's action. A cycle has steps that are skipped,
    then steps of warmup, then recorded steps.

    Args:
        wait, warmup, active: the number of steps of each kind in a cycle.
        repeat: the number of cycles; 0: no limit.
        skip_first: steps before the first cycle.
        skip_first_wait: unless 0, the first cycle does not wait.

    Raises:
        AssertionError: a number that is too small.

    Example:
        >>> plan = schedule(wait=1, warmup=1, active=1)
        >>> [plan(step).name for step in range(4)]
        ['NONE', 'WARMUP', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    cycle = [_NONE] * wait + [_WARMUP] * warmup + [_RECORD] * (active - 1) + [_SAVE]
    first = skip_first - (wait if skip_first_wait else 0)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        n_cycles, at = divmod(step - first, len(cycle))
        if step < skip_first or 0 < repeat <= n_cycles:
            return _NONE
        return cycle[at]

    return action


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """Makes an `on_trace_ready` that writes each trace to its own file.

    Args:
        dir_name: the directory, which is created if it does not exist.
        worker_name: the start of the files' names; by default the host's name and the process id.
        use_gzip: compress the files.
        use_python_export: ignored.

    Raises:
        RuntimeError: (when it is called) the directory cannot be made.
    """

    def handle(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return handle


def _activities(given: Iterable[Any]) -> set[ProfilerActivity]:
    """The set of activities. An activity named twice is an error."""
    found: set[ProfilerActivity] = set()
    for item in given:
        if isinstance(item, dict):
            raise NotImplementedError("profile: a choice among the events of an activity")
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        if item in found:
            raise ValueError(f"Activity {item} specified more than once")
        found.add(item)
    return found


class profile:
    """Records what runs inside the ``with`` block, or in the steps that a schedule selects.

    Args:
        activities: the activities to record; None: all that are supported. A warning names devices
            that do not exist.
        schedule: a function from a step's number to the action (see :func:`schedule`); without one,
            all steps are recorded.
        on_trace_ready: called with this object when a recording has ended.
        record_shapes, profile_memory, with_stack, with_flops, with_modules, acc_events,
        custom_trace_id_callback, post_processing_timeout_s: see
        :class:`pygrad.autograd.profiler.profile`.
        use_cuda: deprecated; warns.
        experimental_config, execution_trace_observer: raise NotImplementedError if given.

    Example:
        >>> import pygrad
        >>> with pygrad.profiler.profile(record_shapes=True) as prof:
        ...     x = pygrad.ones(2) + 1
        >>> [event.name for event in prof.events()]
        ['aten::ones', 'aten::add']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            text = "`use_cuda` is deprecated, use `activities` argument instead"
            warnings.warn(text, FutureWarning, stacklevel=2)
        if execution_trace_observer is not None:
            raise NotImplementedError("profile: execution_trace_observer")
        self.activities = supported_activities() if activities is None else _activities(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        devices = (ProfilerActivity.CUDA, ProfilerActivity.XPU)
        device = next((each for each in devices if each in self.activities), None)
        self.use_device = None if device is None else device.name.lower()
        self._options: dict[str, Any] = {
            "use_cpu": ProfilerActivity.CPU in self.activities,
            "use_device": self.use_device,
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
            "experimental_config": experimental_config,
            "acc_events": acc_events,
            "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
        }
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.on_trace_ready = on_trace_ready
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.profiler: _profiler.profile | None = None
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self._metadata: dict[str, str] = {}
        self._preset: dict[str, str] = {}
        self.current_action = self._scheduled_action(0)

    def _scheduled_action(self, step: int) -> ProfilerAction:
        action = self.schedule(step)
        if action is ProfilerAction.DEVICE_STOPPED:
            raise ValueError(
                "ProfilerAction.DEVICE_STOPPED is set internally by the profiler and must not be "
                "returned by a user-provided schedule"
            )
        return action

    # ------------------------------------------------------------ steps

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins with the action of the current step."""
        self._change(_NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends the recording, if there is one, and calls `on_trace_ready`."""
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """Begins the next step."""
        self._end_step()
        action = self._scheduled_action(self.step_num + 1)
        before, self.current_action = self.current_action, action
        self.step_num += 1
        self._change(before, action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"{_profiler.STEP}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """Changes from one action to the next; None is the end."""
        runs, ran = now in (_RECORD, _SAVE), before in (_RECORD, _SAVE)
        if before is _WARMUP and now in (_NONE, None):
            self.start_trace()  # an empty recording
            ran = True
        is_early = before is not _SAVE and now is not None
        if ran and not runs and is_early:
            name = "NONE" if now is _NONE else "WARMUP"
            warnings.warn(f"Incorrect schedule: {before.name} followed by {name}", stacklevel=4)
        if ran and (not runs or before is _SAVE):
            self.stop_trace()
            if not is_early and before is not _WARMUP:
                self._trace_ready()
            ran = False
        if now is not None and now is not _NONE and not ran and before is not _WARMUP:
            self.prepare_trace()
        if runs and not ran:
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # ------------------------------------------------------------ the recording

    def prepare_trace(self) -> None:
        """Prepares a recording, and discards the last one unless `acc_events`."""
        if self.profiler is not None and not self.acc_events and once("profile cycles"):
            warnings.warn(
                "Warning: Profiler clears events at the end of each cycle. Only events from the "
                "current cycle will be reported. To keep events across cycles, set "
                "acc_events=True.",
                stacklevel=2,
            )
        if self.profiler is None or not self.acc_events:
            self.profiler = _profiler.profile(**self._options)

    def start_trace(self) -> None:
        """Begins the recording."""
        self._require_profiler("starting trace").start()
        self._metadata = dict(self._preset)

    def stop_trace(self) -> None:
        """Ends the recording."""
        self._require_profiler("stopping trace").stop()

    def _require_profiler(self, purpose: str) -> _profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Stops and resumes the recording."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # ------------------------------------------------------------ results

    def events(self) -> EventList:
        """The events of the last recording, in the order in which they began."""
        return self._require_profiler("accessing events").function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums by name (see :meth:`EventList.key_averages`)."""
        return self._require_profiler("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the last recording as JSON that trace viewers show, compressed if the path ends
        with ".gz".
        """
        prof = self._require_profiler("exporting chrome trace")
        prof.export_chrome_trace(path, self._metadata, use_python_export)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks and their times for flame graphs; needs ``with_stack=True``."""
        self._require_profiler("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Raises NotImplementedError: events do not identify the tensors they allocate."""
        raise NotImplementedError("profile.export_memory_timeline")

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the trace of this recording."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value, given as JSON text, to the trace of this recording."""
        self._metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Adds a value, given as JSON text, to the traces of all later recordings."""
        self._preset[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets the function that names recordings prepared from now on."""
        self._options["custom_trace_id_callback"] = callback

    def get_trace_id(self) -> str | None:
        """The name of the recording; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id


_KinetoProfile = profile
