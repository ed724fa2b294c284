"""Reports of the same events, by both libraries."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from oracle import both, result_or_error, torch, warnings_of

import pygrad

STACK = ["file.py(3): f", "file.py(9): <module>"]


def events(library: Any, **options: Any) -> Any:
    """Four events, one of them inside another."""
    util = library.autograd.profiler_util

    def event(number: int, name: str, start: float, end: float, **more: Any) -> Any:
        return util.FunctionEvent(
            number,
            name,
            0,
            start,
            end,
            input_shapes=more.pop("shapes", []),
            stack=more.pop("stack", []),
            flops=more.pop("flops", 0),
            **more,
        )

    found = [
        event(0, "a", 0, 1000, shapes=[[2, 3], []], cpu_memory_usage=4096, flops=12_345_678),
        event(1, "bbb", 10, 400, shapes=[[2, 3]], cpu_memory_usage=-2048),
        event(2, "bbb", 500, 700.25, sequence_nr=4, flops=600),
        event(3, "c" * 70, 2000, 1_503_500.5, cpu_memory_usage=3 << 30),
    ]
    for parent, child in ((0, 1), (0, 2)):
        found[parent].append_cpu_child(found[child])
    if library is torch:
        for parent, child in ((0, 1), (0, 2)):
            found[child].set_cpu_parent(found[parent])
        options.setdefault("use_device", None)
        listed = util.EventList(found, **options)
        listed._tree_built = True
        return listed
    return util.EventList(found, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sort_by": "self_cpu_time_total"},
        {"sort_by": "cpu_time_total", "row_limit": 2},
        {"header": "a line above"},
        {"top_level_events_only": True},
        {"max_name_column_width": 20, "max_shapes_column_width": 12},
        {"time_unit": "ms"},
        {"sort_by": "nope"},
    ],
    ids=str,
)
@pytest.mark.parametrize("memory", [False, True])
def test_table(options: dict[str, Any], memory: bool) -> None:
    both(lambda t: events(t, profile_memory=memory, with_flops=memory).table(**options))


@pytest.mark.parametrize("options", [{}, {"group_by_input_shapes": True}], ids=str)
def test_averages(options: dict[str, Any]) -> None:
    def script(t: Any) -> Any:
        averages = events(t, profile_memory=True, with_flops=True).key_averages(**options)
        return [str(average) for average in averages] + [averages.table(sort_by="count")]

    both(script)


def test_stacks_in_a_table() -> None:
    def script(t: Any) -> Any:
        util = t.autograd.profiler_util
        made = [
            util.FunctionEvent(
                k, "ab", 0, 10 * k, 10 * k + 5, stack=STACK, input_shapes=[], flops=0
            )
            for k in range(2)
        ]
        listed = util.EventList(made, use_device=None)
        if t is torch:
            listed._tree_built = True
        by_stack = listed.key_averages(group_by_stack_n=1)
        return [listed.table(), by_stack.table(max_src_column_width=9), by_stack[0].stack]

    both(script)


def test_total_average() -> None:
    both(lambda t: str(events(t).total_average()))


def test_exported_stacks(tmp_path: Path) -> None:
    def script(t: Any) -> str:
        util = t.autograd.profiler_util
        made = util.FunctionEvent(0, "ab", 0, 0, 25.5, stack=STACK, input_shapes=[], flops=0)
        path = str(tmp_path / "stacks")
        util.EventList([made], use_device=None).export_stacks(path, "self_cpu_time_total")
        return Path(path).read_text()

    both(script)


@pytest.mark.parametrize("metric", ["self_cpu_time_total", "cpu_time"])
def test_metric_of_exported_stacks(metric: str, tmp_path: Path) -> None:
    both(lambda t: events(t).export_stacks(str(tmp_path / "stacks"), metric))


def test_times_and_sizes_in_words() -> None:
    def script(t: Any) -> list[str]:
        util = t.autograd.profiler_util
        texts = [util._format_time(us) for us in (0.5, 999.9, 1000, 1_234_567.0)]
        return texts + [util._format_memory(n) for n in (0, 1023, 1024, 1_234_567, -(5 << 30))]

    both(script)


def test_names_of_a_training_step() -> None:
    """What is called, and the nodes, in the order of PyTorch's; what ops call in turn is each
    library's own.
    """

    def script(t: Any) -> list[Any]:
        x = t.ones(3, 3, requires_grad=True)
        with t.autograd.profiler.profile() as prof:
            with t.autograd.profiler.record_function("forward"):
                y = (x @ x).exp().mul(2).sum()
            y.backward()
        return list(prof.function_events)

    def is_called(event: Any) -> bool:
        within = event.cpu_parent.name if event.cpu_parent else "forward"
        return not event.name.startswith("aten::") or within == "forward"

    mine = [event.name for event in script(pygrad) if is_called(event)]
    theirs = iter([event.name for event in script(torch)])
    assert all(name in theirs for name in mine), mine
    assert "MulBackward0" in mine


def test_what_describes_a_tensor_is_no_event() -> None:
    def script(t: Any) -> list[str]:
        x = t.ones(2, 3)
        with t.autograd.profiler.profile() as prof:
            x.requires_grad_()
            _ = x.is_leaf, x.retains_grad, x.output_nr, x._version, x.requires_grad, x.grad, x.data
            _ = x.dim(), x.size(0), x.stride(), x.numel(), x.type(), x.is_contiguous()
            _ = x.is_floating_point(), x.is_inference(), x.is_signed(), x.get_device()
            _ = t.numel(x), t.is_grad_enabled(), t.get_default_dtype()
            x.mul(x).retain_grad()
        return [event.name for event in prof.function_events]

    both(script)


def test_profile_is_not_reentrant() -> None:
    def script(t: Any) -> None:
        with t.autograd.profiler.profile() as prof:
            with prof:
                pass

    both(script)


def test_before_the_end_there_are_no_events() -> None:
    def script(t: Any) -> Any:
        prof = t.autograd.profiler.profile()

        def show() -> list[Any]:
            total = prof.total_average()
            return [
                *(str(prof), repr(prof), prof.table(), prof.key_averages()),
                *(prof.function_events, prof.self_cpu_time_total, total.key, total.count),
            ]

        found = show()
        with prof:
            t.ones(2)
            found += show()
        return [*found, len(prof.function_events) > 0]

    both(script)


# ------------------------------------------------------------------ events made by hand


def children_of(library: Any, spans: list[tuple[int, int, int]], **more: Any) -> Any:
    """The places of the children of each event, of spans (thread, start, end)."""
    util = library.autograd.profiler_util
    found = util.EventList(
        util.FunctionEvent(
            id=i, name="", node_id=0, thread=thread, start_us=start, end_us=end, **more
        )
        for i, (thread, start, end) in enumerate(spans)
    )
    found._populate_cpu_children()
    return [[child.id for child in event.cpu_children] for event in found]


SPANS = {
    "two threads": [(1, 0, 1), (1, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 3)],
    "inside each other": [(0, 0, 10), (0, 1, 5), (0, 2, 3), (0, 3, 4), (0, 6, 9), (0, 11, 12)],
    "the same time": [(0, 0, 5), (0, 0, 5), (0, 0, 3)],
    "they overlap": [(0, 0, 5), (0, 3, 8), (0, 4, 5), (0, 6, 7)],
    "of no length": [(0, 2, 2), (0, 0, 4), (0, 4, 4), (0, 0, 0)],
    "in no order": [(0, 6, 9), (0, 1, 5), (0, 0, 10), (0, 2, 3)],
}


@pytest.mark.parametrize("how", ["plain", "asynchronous", "elsewhere"])
@pytest.mark.parametrize("name", SPANS)
def test_events_are_put_into_each_other(name: str, how: str) -> None:
    def find(library: Any) -> Any:
        kinds = {
            "plain": {},
            "asynchronous": {"is_async": True},
            "elsewhere": {"device_type": library.autograd.DeviceType.CUDA},
        }
        return children_of(library, SPANS[name], **kinds[how])

    assert find(pygrad) == find(torch)


def test_fields_of_an_event() -> None:
    def fields(library: Any) -> Any:
        with library.autograd.profiler.profile(use_kineto=True) as prof:
            x = library.ones(2, requires_grad=True)
            (x * 2).sum().backward()
        found = {}
        for event in prof.function_events:
            if (
                event.name in ("aten::mul", "MulBackward0", "SumBackward0")
                and event.sequence_nr >= 0
            ):
                found[event.name] = (
                    event.thread,
                    event.fwd_thread,
                    event.scope,
                    str(event.device_type),
                    event.is_async,
                    event.is_legacy,
                    event.node_id,
                    event.kernels,
                    event.concrete_inputs,
                    event.kwinputs,
                    event.trace_name,
                )
        return sorted(found.items())

    assert fields(pygrad) == fields(torch)


def test_whether_a_profile_runs() -> None:
    def script(t: Any) -> Any:
        seen = [t.autograd._profiler_enabled(), t.autograd.profiler._is_profiler_enabled]
        with t.autograd.profiler.profile():
            seen += [t.autograd._profiler_enabled(), t.autograd.profiler._is_profiler_enabled]
        seen += [t.autograd._profiler_enabled(), t.autograd.profiler._is_profiler_enabled]
        activities = [each.name for each in t.autograd._supported_activities()]
        devices = list(t.autograd.DeviceType.__members__)
        return seen, activities, t.autograd.kineto_available(), sorted(devices)

    both(script)


# ------------------------------------------------------------------ steps


def run(t: Any, steps: int = 9, **options: Any) -> Any:
    """What becomes ready when, and what it holds."""
    seen: list[Any] = []

    def ready(prof: Any) -> None:
        ranges = [e.name for e in prof.events() if e.name.startswith("Prof")]
        seen.append((prof.step_num, ranges, str(prof.current_action)))

    plan = options.pop("plan", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "Warning: Profiler clears")  # once a process
        if isinstance(plan, dict):
            options["schedule"] = t.profiler.schedule(**plan)
        elif plan is not None:
            actions = [getattr(t.profiler.ProfilerAction, name) for name in plan]
            options["schedule"] = lambda step: actions[min(step, len(actions) - 1)]
        with t.profiler.profile(on_trace_ready=ready, **options) as prof:
            for _ in range(steps):
                t.ones(2) + 1
                prof.step()
        names = {e.name for e in prof.events()} if prof.profiler else None
        kept = sorted(names & {"aten::add", "aten::ones"}) if names is not None else None
    return seen, kept, prof.step_num, [str(w.message) for w in caught]


PLANS: dict[str, Any] = {
    "no plan": None,
    "cycles": {"wait": 1, "warmup": 1, "active": 2},
    "one cycle": {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
    "two cycles": {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
    "no warmup": {"wait": 0, "warmup": 0, "active": 2},
    "some are skipped": {"wait": 2, "warmup": 1, "active": 2, "skip_first": 3},
    "the first does not wait": {
        "wait": 4,
        "warmup": 1,
        "active": 1,
        "skip_first": 2,
        "skip_first_wait": 1,
    },
    "ends in a warmup": {"wait": 5, "warmup": 5, "active": 1},
    "ends in a wait": {"wait": 20, "warmup": 1, "active": 1},
    "by hand": ["WARMUP", "RECORD", "RECORD_AND_SAVE", "RECORD_AND_SAVE", "NONE"],
    "warmup, then none": ["WARMUP", "NONE", "NONE"],
    "record, then none": ["RECORD", "NONE", "NONE"],
    "record, then warmup": ["RECORD", "WARMUP", "RECORD_AND_SAVE", "NONE"],
    "never": ["NONE"],
}


@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("name", PLANS)
def test_steps_of_a_plan(name: str, accumulates: bool) -> None:
    plan = PLANS[name]
    if name == "record, then warmup":
        pytest.skip("PyTorch starts a recording there that it never made ready")
    mine = run(pygrad, plan=plan, acc_events=accumulates)
    theirs = run(torch, plan=plan, acc_events=accumulates)
    assert mine == theirs


def test_cycles_forget_the_last_one_and_say_so() -> None:
    run(pygrad, plan={"wait": 0, "warmup": 1, "active": 1})
    pygrad.set_warn_always(True)
    try:
        profile = pygrad.profiler.profile()
        profile.prepare_trace()
        with pytest.warns(UserWarning, match="set acc_events=True"):
            profile.prepare_trace()
    finally:
        pygrad.set_warn_always(False)


@pytest.mark.parametrize("options", [{}, {"skip_first_wait": 1}, {"repeat": 2}, {"skip_first": 3}])
def test_plan_by_itself(options: dict[str, int]) -> None:
    def actions(t: Any) -> list[str]:
        plan = t.profiler.schedule(wait=2, warmup=1, active=3, **options)
        return [str(plan(step)) for step in range(40)]

    assert actions(pygrad) == actions(torch)
    both(lambda t: t.profiler.schedule(wait=1, warmup=1, active=1)(-1))


@pytest.mark.parametrize("plan", [{"wait": -1}, {"active": 0}, {"warmup": -1}, {"repeat": -1}])
def test_plan_that_is_none(plan: dict[str, int]) -> None:
    both(lambda t: t.profiler.schedule(**({"wait": 1, "warmup": 1, "active": 1} | plan)))


def test_errors_of_a_stepped_profile() -> None:
    def script(t: Any) -> Any:
        p = t.profiler
        cpu = p.ProfilerActivity.CPU
        stops = lambda step: p.ProfilerAction.DEVICE_STOPPED  # noqa: E731
        fresh = p.profile(schedule=lambda step: p.ProfilerAction.NONE)
        return (
            result_or_error(lambda: p.profile(activities=[])),
            result_or_error(lambda: p.profile(activities=[cpu, cpu])),
            result_or_error(lambda: p.profile(activities=[cpu, 1])),
            result_or_error(lambda: p.profile(schedule=stops)),
            result_or_error(fresh.start_trace),
            result_or_error(fresh.stop_trace),
            result_or_error(fresh.events),
            fresh.get_trace_id(),
            [each.name for each in p.supported_activities()],
        )

    both(script)


def test_devices_that_are_not_there() -> None:
    def script(t: Any) -> Any:
        p = t.profiler

        def both_of_them() -> None:
            with p.profile(activities=[p.ProfilerActivity.CPU, p.ProfilerActivity.CUDA]):
                pass

        return warnings_of(both_of_them), warnings_of(lambda: p.profile(use_cuda=False))

    both(script)


@pytest.mark.parametrize("compressed", [False, True])
def test_trace_files(compressed: bool, tmp_path: Path) -> None:
    def script(t: Any) -> Any:
        folder = tmp_path / t.__name__ / "deep"
        handler = t.profiler.tensorboard_trace_handler(
            str(folder), worker_name="me", use_gzip=compressed
        )
        plan = t.profiler.schedule(wait=0, warmup=1, active=1)
        with t.profiler.profile(schedule=plan, on_trace_ready=handler) as prof:
            prof.preset_metadata_json("early", '{"a": [1]}')
            for k in range(4):
                if k % 2:
                    prof.add_metadata("late", "a word")
                    prof.add_metadata_json("number", "3")
                t.ones(2) + 1
                prof.step()
        found = []
        for path in sorted(folder.iterdir()):
            raw = path.read_bytes()
            trace = json.loads(gzip.decompress(raw) if compressed else raw)
            names = {event["name"] for event in trace["traceEvents"]}
            found.append(
                (
                    re.sub(r"\d{5,}", "N", path.name),
                    [trace[key] for key in ("early", "late", "number")],
                    sorted(names & {"aten::add", "ProfilerStep#1", "ProfilerStep#3"}),
                )
            )
        return found

    both(script)


def ranges(t: Any, run: Any) -> list[str]:
    """The names of what a profile shows of a function beside operators and nodes, in order."""
    with t.autograd.profiler.profile() as prof:
        run()
    return [e.name for e in prof.function_events if e.is_user_annotation]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_ranges_of_a_training_loop(kind: str) -> None:
    def script(t: Any) -> Any:
        weight = t.nn.Parameter(t.ones(2))
        optimizer = getattr(t.optim, kind)([weight], lr=0.1)
        seen: list[str] = []
        optimizer.register_step_post_hook(lambda *_: seen.append("hook"))
        data = t.utils.data.TensorDataset(t.ones(4, 2))
        loader = t.utils.data.DataLoader(data, batch_size=2)

        def run() -> None:
            for (batch,) in loader:
                optimizer.zero_grad()
                (weight * batch).sum().backward()
                optimizer.step()

        return ranges(t, run), seen, weight.detach()

    both(script)


def test_ranges_without_a_scope() -> None:
    def script(t: Any) -> Any:
        def run() -> None:
            for enter in (
                t.ops.profiler._record_function_enter,
                t.ops.profiler._record_function_enter_new,
            ):
                t.ops.profiler._record_function_exit(enter("a", "args"))
            handle = t.autograd._record_function_with_args_enter("b", 1, t.ones(2))
            t.autograd._record_function_with_args_exit(handle)

        run()
        with t.autograd.profiler.profile() as prof:
            run()
        return [e.name for e in prof.function_events if e.name in ("a", "b")]

    both(script)


def test_averages_know_ranges() -> None:
    def script(t: Any) -> Any:
        with t.autograd.profiler.profile() as prof, t.autograd.profiler.record_function("mine"):
            t.ones(2) + 1
        kept = ("mine", "aten::add")
        found = {a.key: a.is_user_annotation for a in prof.key_averages() if a.key in kept}
        return sorted(found.items())

    both(script)


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.rand(3),
        lambda t: t.randn(2, 2),
        lambda t: t.randint(3, (4,)),
        lambda t: t.normal(0.0, 1.0, (2,)),
        lambda t: t.full((3,), 2.0),
    ],
)
def test_factories_make_an_empty_tensor_and_fill_it(make: Any) -> None:
    def run(t: Any) -> Any:
        with t.autograd.profiler.profile() as prof:
            make(t)
        return [
            (event.name, [child.name for child in event.cpu_children], event.sequence_nr)
            for event in prof.function_events
        ]

    both(run)
