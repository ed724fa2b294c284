"""Events of a profile, their averages, and the tables, stacks and traces made of them.

The layout of the tables is PyTorch's. Times are in microseconds, memory in bytes.
"""

from __future__ import annotations

import enum
import gzip
import json
import operator
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .._table import functions as _functions

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)
_COMMON = (
    *("key", "node_id", "is_async", "is_remote", "is_legacy", "overload_name"),
    *("input_shapes", "stack", "scope", "cpu_parent", "is_user_annotation"),
)
_SUMS = (
    *("self_cpu_time_total", "cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"),
    *("count", "flops"),
)

_C = _functions.C


DeviceType = enum.Enum(
    "DeviceType",
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta HPU VE Lazy "
    "IPU MTIA PrivateUse1",
    module=__name__,
    start=0,
)
DeviceType.__doc__ = "Kinds of devices. The events of a profile are of `DeviceType.CPU`."


class Interval(NamedTuple):
    """When an event ran, in microseconds since the profile began.

    >>> Interval(2.0, 5.0).elapsed_us()
    3.0
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """The length in microseconds."""
        return self.end - self.start


def _format_time(time_us: float) -> str:
    text: str = _C["_profile_quantity"](time_us, False)
    return text


def _format_memory(nbytes: float) -> str:
    text: str = _C["_profile_quantity"](nbytes, True)
    return text


class _Timed:
    """Derived numbers that events and averages share."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """Time of one call, including the events inside it."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _format_time(self.self_cpu_time_total)

    device_time = 0.0
    device_time_total = 0.0
    self_device_time_total = 0.0
    device_memory_usage = 0
    self_device_memory_usage = 0
    use_device: str | None = None


class FunctionEvent(_Timed):
    """One call of an op, one run of a backward node, or one range that a caller named.

    Args:
        id: its number, unique in a profile.
        name: ``"aten::mul"``, ``"MulBackward0"`` or the name of the range.
        start_us, end_us: when it ran.
        input_shapes: the sizes of each argument, ``[]`` for one that is no tensor.
        stack: the frames of the call, innermost first: ``"file.py(3): function"``.
        cpu_memory_usage: the bytes it left allocated (negative: freed).
        sequence_nr: the number of the backward node it made or is; -1 for none.

    >>> from pygrad.autograd.profiler_util import FunctionEvent
    >>> FunctionEvent(0, "aten::mul", 0, 10.0, 12.5).cpu_time_str
    '2.500us'
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[list[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = 0,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, str] | None = None,
        structured_input_shapes: list[Any] | None = None,
        structured_input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        self.id = id
        self.name = name
        self.trace_name = trace_name
        self.overload_name = overload_name
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = [] if input_shapes is None else input_shapes
        self.stack = [] if stack is None else stack
        self.scope = scope
        self.use_device = use_device
        self.cpu_memory_usage = cpu_memory_usage
        self.device_memory_usage = device_memory_usage
        self.is_async = is_async
        self.is_remote = is_remote
        self.sequence_nr = sequence_nr
        self.node_id = node_id
        self.device_type = device_type
        self.device_index = device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy = is_legacy
        self.flops = flops or 0
        self.concrete_inputs = [] if concrete_inputs is None else concrete_inputs
        self.kwinputs = {} if kwinputs is None else kwinputs
        self.is_user_annotation = is_user_annotation
        self.is_python_function = is_python_function
        self.activity_type = activity_type
        self._metadata_json = metadata_json
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id = external_id
        self.linked_correlation_id = linked_correlation_id
        self.extra_meta = extra_meta
        self.structured_input_shapes = structured_input_shapes
        self.structured_input_strides = structured_input_strides
        self.input_dtypes = input_dtypes
        self.python_id = python_id
        self.python_parent_id = python_parent_id
        self.python_module_id = python_module_id
        self.kernels: list[Any] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def key(self) -> str:
        """The key of averages: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Time without the events inside."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Memory without the events inside."""
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Makes `child` an event inside of this one."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} node_id={self.node_id} "
            f"cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]} "
            f"thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} is_async={self.is_async} "
            f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(_Timed):
    """Sums over the events of one key; averages are the sums over `count`.

    >>> from pygrad.autograd.profiler_util import FunctionEvent, FunctionEventAvg
    >>> total = FunctionEventAvg()
    >>> total += FunctionEvent(0, "a", 0, 0.0, 4.0)
    >>> total += FunctionEvent(1, "a", 0, 5.0, 7.0)
    >>> total.key, total.count, total.cpu_time
    ('a', 2, 3.0)
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.is_legacy = False
        self.is_user_annotation: bool | None = None
        self.overload_name: str | None = None
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds an event, or a sum of the same key, to this one; returns this one."""
        if self.key is None:  # the first event gives the common fields
            for name in _COMMON:
                setattr(self, name, getattr(other, name))
        elif self.key != other.key:
            raise ValueError(f"cannot add an event of {other.key!r} to those of {self.key!r}")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time=0.000us cuda_time=0.000us "
            f"input_shapes={self.input_shapes!s} cpu_memory_usage={self.cpu_memory_usage} "
            "cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """Events, or averages of them, with the reports that can be made of a list.

    >>> from pygrad.autograd.profiler_util import EventList, FunctionEvent
    >>> events = EventList([FunctionEvent(0, "a", 0, 0, 3), FunctionEvent(1, "a", 0, 4, 5)])
    >>> [(average.key, average.count) for average in events.key_averages()]
    [('a', 2)]
    >>> events.self_cpu_time_total
    4
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args)
        self._use_device: str | None = options.pop("use_device", None)
        self._profile_memory: bool = options.pop("profile_memory", False)
        self._with_flops: bool = options.pop("with_flops", False)
        if options:
            raise TypeError(
                f"EventList() got an unexpected keyword argument {next(iter(options))!r}"
            )

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each moment counted once."""
        total: float = sum(event.self_cpu_time_total for event in self)
        return total

    def _populate_cpu_children(self) -> None:
        """Makes each event a child of the innermost event of its thread and node that encloses its
        time. Asynchronous events, and events of other devices, stand alone.
        """
        whole = [e for e in self if not e.is_async and e.device_type is DeviceType.CPU]
        open_events: dict[tuple[int, int], list[FunctionEvent]] = {}
        for event in sorted(whole, key=lambda e: (e.time_range.start, -e.time_range.end)):
            around = open_events.setdefault((event.thread, event.node_id), [])
            time = event.time_range
            while around and not (
                time.start < around[-1].time_range.end and time.end <= around[-1].time_range.end
            ):
                around.pop()
            if around:
                around[-1].append_cpu_child(event)
            around.append(event)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Sums by name; by shapes of the inputs and the innermost calls of the stack too if
        asked for.
        """
        groups: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            key = [event.key, str(event.node_id), str(event.is_legacy)]
            key += [event.overload_name or ""] if group_by_overload_name else []
            key += [str(event.input_shapes)] if group_by_input_shapes else []
            key += event.stack[:group_by_stack_n]
            groups.setdefault(tuple(key), FunctionEventAvg()).add(event)
        averages = EventList(
            groups.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, under the key ``"Total"``."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None  # any key may be added; the last one's shapes stay
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a text table.

        Args:
            sort_by: an attribute of the events, largest first: ``"self_cpu_time_total"``,
                ``"cpu_time_total"``, ``"count"``, ``"self_cpu_memory_usage"``, ...
            row_limit: the most rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: where longer
                text is cut.
            header: a line above the table.
            top_level_events_only: leave out events inside another event.
            time_unit: ``"s"``, ``"ms"`` or ``"us"`` for all times; each its own by default.
        """
        events: Iterable[Any] = self
        if sort_by is not None:
            metric = sort_by.replace("cuda", "device").replace("xpu", "device")
            events = sorted(self, key=operator.attrgetter(metric), reverse=True)
        shown = ((e.key, str(e.input_shapes), *e.stack) for e in events)
        text: str = _C["_profile_table"](
            "\x1e".join(map("\x1f".join, shown)),
            [float(n) for e in events for n in (*_tabulated(e), e.cpu_parent is not None)],
            self.self_cpu_time_total,
            [
                self._profile_memory,
                self._with_flops,
                row_limit,
                max_src_column_width,
                max_name_column_width,
                max_shapes_column_width,
                top_level_events_only,
            ],
            header,
            time_unit,
        )
        return text

    def export_stacks(self, path: str | os.PathLike[str], metric: str) -> None:
        """Writes one line for each stack, outermost call first, with its microseconds: the input of
        flame-graph tools.

        Raises:
            ValueError: an unknown `metric`.
        """
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {list(_METRICS)!s}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric, 0))
                if event.stack and value > 0:
                    calls = (call.translate(_NO_SEPARATORS) for call in reversed(event.stack))
                    file.write(f"{';'.join(calls)} {value}\n")

    def export_chrome_trace(
        self, path: str | os.PathLike[str], metadata: dict[str, str] | None = None
    ) -> None:
        """Writes the events as JSON that trace viewers show, arrows from each op to its backward
        node included.

        Args:
            path: the file; compressed if its name ends with ".gz".
            metadata: more members of the JSON, each a text of JSON itself.
        """
        shown = ([e.trace_name or e.name, e.input_shapes, e.stack] for e in self)
        texts = "\x1e".join("\x1f".join(map(json.dumps, fields)) for fields in shown)
        numbers = [float(number) for event in self for number in _traced(event)]
        trace = _C["_profile_trace"](texts, numbers, os.getpid())
        more = "".join(f", {json.dumps(key)}: {value}" for key, value in (metadata or {}).items())
        written = (trace[:-1] + more + "}").encode()
        is_compressed = os.fspath(path).endswith(".gz")
        Path(path).write_bytes(gzip.compress(written) if is_compressed else written)


_NO_SEPARATORS = str.maketrans(";\t\n ", "____")
_TRACED = "id time_range.start cpu_time_total sequence_nr scope is_user_annotation thread"

_tabulated = operator.attrgetter(*_SUMS, "cpu_time")
_traced = operator.attrgetter(*_TRACED.split())
