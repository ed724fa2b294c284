"""Profiles: which events there are, how they nest, and what the reports say."""

from __future__ import annotations

import gc
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import pygrad
from pygrad import _boundary
from pygrad.autograd import profiler


def names(prof: Any) -> list[str]:
    return [event.name for event in prof.function_events]


def step() -> None:
    x = pygrad.ones(4, 4, requires_grad=True)
    (x @ x).relu().sum().backward()


def test_ops_and_backward_nodes_appear_in_order() -> None:
    with profiler.profile() as prof:
        step()
    assert [name for name in names(prof) if "evaluate" not in name] == [
        "aten::ones",
        "aten::matmul",
        "aten::mm",
        "aten::relu",
        "aten::sum",
        "SumBackward0",
        "aten::expand",
        "ReluBackward0",
        "MmBackward0",
        "aten::add",
        "torch::autograd::AccumulateGrad",
    ]


def parent_of(prof: Any, name: str) -> str:
    return next(e for e in prof.function_events if e.name == name).cpu_parent.name


def test_ops_within_ops_and_within_backwards_are_events() -> None:
    x = pygrad.ones(3, 3, requires_grad=True)
    with profiler.profile(record_shapes=True) as prof:
        pygrad.nn.functional.cosine_similarity(x, x * 2).sum().backward()
        pygrad.linalg.matrix_exp(x)
    assert parent_of(prof, "aten::vector_norm") == "aten::cosine_similarity"
    assert parent_of(prof, "aten::matmul") == "aten::matrix_exp"
    assert parent_of(prof, "aten::mm") == "aten::matmul"
    assert parent_of(prof, "aten::eq") == "LinalgVectorNormBackward0"
    assert next(e for e in prof.function_events if e.name == "aten::mm").input_shapes[:2] == [
        [3, 3],
        [3, 3],
    ]


def test_a_call_of_a_host_and_the_function_it_runs_are_one_event() -> None:
    x = pygrad.ones(3)
    with profiler.profile() as prof:
        x * x
        x.exp()
        x.flip(0)
    assert names(prof) == ["aten::mul", "aten::exp", "aten::flip"]


def test_in_place_op_has_its_own_name() -> None:
    x = pygrad.ones(2)
    with profiler.profile() as prof:
        x.add_(1)
    assert names(prof) == ["aten::add_"]


def test_children_lie_inside_and_take_their_share() -> None:
    with profiler.profile() as prof:
        with profiler.record_function("outer"):
            with profiler.record_function("inner"):
                step()
    outer, inner = prof.function_events[:2]
    assert (outer.name, inner.name) == ("outer", "inner")
    assert inner.cpu_parent is outer
    assert outer.self_cpu_time_total == outer.cpu_time_total - inner.cpu_time_total
    for event in prof.function_events:
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end
    total = sum(e.cpu_time_total for e in prof.function_events if e.cpu_parent is None)
    assert prof.self_cpu_time_total == pytest.approx(total)


def test_sequence_number_joins_an_op_and_its_node() -> None:
    with profiler.profile() as prof:
        step()
    made = {e.sequence_nr: e.name for e in prof.function_events if e.name == "aten::relu"}
    run = {e.sequence_nr: e.name for e in prof.function_events if e.name == "ReluBackward0"}
    assert made.keys() == run.keys()


def test_shapes_are_those_of_the_arguments() -> None:
    with profiler.profile(record_shapes=True) as prof:
        pygrad.ones(2, 3) @ pygrad.ones(3, 4)
    assert prof.function_events[-1].input_shapes == [[2, 3], [3, 4]]
    assert len(prof.key_averages(group_by_input_shape=True)) == 3


def test_asynchronous_ranges_lie_beside_the_others() -> None:
    x, y = pygrad.ones(2, 3), pygrad.ones(4)
    with profiler.profile(record_shapes=True) as prof:
        end = profiler.begin_async("mpi:all_reduce", [x, y])
        with profiler.record_function("meanwhile"):
            x.exp()
            end()
        x.log()
    shown = [(e.name, e.is_async, e.input_shapes) for e in prof.function_events]
    assert shown == [
        ("mpi:all_reduce", True, [[2, 3], [4]]),
        ("meanwhile", False, []),
        ("aten::exp", False, [[2, 3]]),
        ("aten::log", False, [[2, 3]]),
    ]
    waited, meanwhile, exp = prof.function_events[:3]
    assert not waited.cpu_children
    assert meanwhile.cpu_children == [exp]
    assert waited.time_range.start <= meanwhile.time_range.start
    assert exp.time_range.end <= waited.time_range.end <= meanwhile.time_range.end


def test_asynchronous_range_without_its_profile_is_nothing() -> None:
    profiler.begin_async("before", [pygrad.ones(1)])()
    with profiler.profile():
        end = profiler.begin_async("late", [])
    with profiler.profile() as prof, profiler.record_function("range"):
        end()
        pygrad.ones(1)
    outer, inner = prof.function_events
    assert outer.cpu_children == [inner]


def test_names_of_ranges_are_whole() -> None:
    name = "a" + "é" * 99 + '"\n' + "b" * 500
    gc.collect()
    _boundary.drain()
    before = pygrad._C._memory()[0]
    with profiler.profile() as prof:
        with profiler.record_function(name):
            pass
        with profiler.record_function(""):
            pass
    assert names(prof) == [name, ""]
    assert pygrad._C._memory()[0] == before


def test_memory_is_that_of_the_engine() -> None:
    gc.collect()
    _boundary.drain()  # what other tests left is not to be freed in this profile
    with profiler.profile(profile_memory=True) as prof:
        kept = pygrad.ones(1000)
        with profiler.record_function("free"):
            del kept
            pygrad.zeros(1)
    made, freed = prof.function_events[:2]
    assert 4000 <= made.cpu_memory_usage < 4400
    assert -4200 < freed.cpu_memory_usage < -3600


def test_flops_of_products() -> None:
    with profiler.profile(with_flops=True) as prof:
        pygrad.ones(2, 3) @ pygrad.ones(3, 4)
        pygrad.nn.functional.conv2d(pygrad.ones(1, 2, 5, 5), pygrad.ones(3, 2, 3, 3))
    by_name = {event.name: event.flops for event in prof.function_events}
    assert by_name["aten::matmul"] == 2 * 2 * 3 * 4
    assert by_name["aten::conv2d"] == 2 * (3 * 3 * 3) * (2 * 3 * 3)


def test_stack_names_the_callers(tmp_path: Path) -> None:
    def call() -> None:
        pygrad.ones(2)

    with profiler.profile(with_stack=True) as prof:
        call()
    assert prof.function_events[0].stack[0].endswith(": call")
    assert __file__ in prof.function_events[0].stack[0]
    prof.export_stacks(tmp_path / "stacks")
    line = (tmp_path / "stacks").read_text().splitlines()[0]
    calls, _, value = line.rpartition(" ")
    assert calls.split(";")[-1].endswith("call")
    assert int(value) > 0


def test_trace_is_a_list_of_events(tmp_path: Path) -> None:
    with profiler.profile(record_shapes=True) as prof:
        step()
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    drawn = [event for event in trace if event["ph"] == "X"]
    assert [event["name"] for event in drawn] == names(prof)
    assert all(event["dur"] >= 0 for event in drawn)
    starts = [e["id"] for e in trace if e["ph"] == "s"]
    assert starts == [e["id"] for e in trace if e["ph"] == "f"] != []
    ops = {event["ts"] for event in drawn if event["name"].startswith("aten::")}
    assert {event["ts"] for event in trace if event["ph"] == "s"} <= ops


def test_profile_while_another_thread_has_one() -> None:
    found = []

    def run_other() -> None:
        with pytest.raises(RuntimeError, match="another thread"):
            profiler.profile().__enter__()
        found.append("refused")

    with profiler.profile() as prof:
        thread = threading.Thread(target=run_other)
        thread.start()
        thread.join()
        pygrad.ones(2)
    assert found == ["refused"]
    assert [event.name for event in prof.function_events] == ["aten::ones"]


def test_toggle_wants_activities() -> None:
    with profiler.profile() as prof:
        prof.toggle_collection_dynamic(False, [profiler.ProfilerActivity.CUDA])
        pygrad.ones(2)
        with pytest.raises(TypeError, match="ProfilerActivity"):
            prof.toggle_collection_dynamic(False, ["CPU"])
    assert [event.name for event in prof.function_events] == ["aten::ones"]


def test_profile_that_is_off_is_free_of_events() -> None:
    with profiler.profile(enabled=False) as prof:
        step()
    assert prof is None


def test_only_one_profile_runs() -> None:
    with profiler.profile() as prof:
        with pytest.raises(RuntimeError, match="already enabled"):
            with profiler.profile():
                pass
        step()
    assert "MmBackward0" in names(prof)
    with pytest.raises(RuntimeError, match="not reentrant"):
        with prof:
            pass


def test_error_in_the_block_ends_the_profile() -> None:
    prof = profiler.profile()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        with prof, profiler.record_function("broken"):
            pygrad.ones(2, 3) @ pygrad.ones(2, 3)
    assert names(prof) == ["broken", "aten::ones", "aten::ones", "aten::matmul", "aten::mm"]
    assert all(event.cpu_time_total >= 0 for event in prof.function_events)
    with profiler.profile():
        pass


def test_engine_keeps_nothing_of_a_profile() -> None:
    step()
    before = pygrad._C._memory()
    with profiler.profile(record_shapes=True):
        step()
    assert pygrad._C._memory()[0] <= before[0] + 64


def test_accumulated_events_of_several_blocks() -> None:
    prof = profiler.profile(acc_events=True)
    for _ in range(2):
        with prof:
            pygrad.ones(2)
    assert names(prof) == ["aten::ones"] * 2


def test_ranges_of_other_tools_are_those_of_a_profile() -> None:
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA"), profiler.emit_nvtx():
        pass
    with profiler.emit_itt() as entered:
        assert isinstance(entered, profiler.emit_itt)
        with pytest.raises(RuntimeError, match="ITT annotation context manager is not reentrant"):
            entered.__enter__()
    for emit in (profiler.emit_nvtx, profiler.emit_itt):
        with profiler.profile() as prof, emit():
            pygrad.ones(1)
        assert names(prof) == ["aten::ones"]
        with emit(enabled=False) as off:
            assert off is None
    with pytest.raises(NotImplementedError, match="CUDA"):
        profiler.load_nvprof("trace.sqlite")


def test_no_cpu_is_refused() -> None:
    with pytest.raises(AssertionError):
        profiler.profile(use_cpu=False)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
def test_signal_while_a_profile_runs_is_not_lost() -> None:
    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    def interrupt(result: pygrad.Tensor, prof: profiler.profile) -> None:
        with prof:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.004)
            result.sum().backward()

    was = signal.signal(signal.SIGVTALRM, ring)
    try:
        for _ in range(4):
            x = y = pygrad.ones(500, 500, requires_grad=True)
            for _ in range(4):
                y = y @ x
            prof = profiler.profile()
            with pytest.raises(Alarm):
                interrupt(y, prof)
            assert prof.function_events[0].name == "aten::sum"
            assert all(event.cpu_time_total >= 0 for event in prof.function_events)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, was)
