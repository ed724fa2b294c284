"""Reports of the same events, by both libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from oracle import both, torch

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
    """PyTorch's lists what its ops call in turn; ours is a part of that, in the same order."""

    def script(t: Any) -> list[str]:
        x = t.ones(3, 3, requires_grad=True)
        with t.autograd.profiler.profile() as prof:
            with t.autograd.profiler.record_function("forward"):
                y = (x @ x).exp().mul(2).sum()
            y.backward()
        return [event.name for event in prof.function_events]

    mine, theirs = script(pygrad), iter(script(torch))
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

        def shown() -> list[Any]:
            total = prof.total_average()
            return [
                *(str(prof), repr(prof), prof.table(), prof.key_averages()),
                *(prof.function_events, prof.self_cpu_time_total, total.key, total.count),
            ]

        found = shown()
        with prof:
            t.ones(2)
            found += shown()
        return [*found, len(prof.function_events) > 0]

    both(script)
