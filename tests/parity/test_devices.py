"""Devices that are not there: what can be asked of them, and the words in which they refuse."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from oracle import both, result_or_error, torch, warnings_of

import pygrad

ASKED = """
torch.cuda.is_available() torch.cuda.is_initialized() torch.cuda.device_count()
torch.cuda.is_bf16_supported() torch.cuda.memory_allocated() torch.cuda.max_memory_allocated()
torch.cuda.memory_reserved() torch.cuda.max_memory_reserved() torch.cuda.memory_stats()
torch.cuda.get_rng_state_all() torch.cuda.get_arch_list() torch.cuda.manual_seed(1)
torch.cuda.manual_seed_all(1) torch.cuda.seed() torch.cuda.seed_all() torch.cuda.empty_cache()
torch.cuda.set_rng_state(torch.get_rng_state()) torch.cuda.init() torch.cuda.current_device()
torch.cuda.synchronize() torch.cuda.current_stream() torch.cuda.default_stream()
torch.cuda.get_device_name(0) torch.cuda.get_device_properties(0) torch.cuda.mem_get_info()
torch.cuda.get_device_capability() torch.cuda.ipc_collect() torch.cuda.get_rng_state()
torch.cuda.initial_seed() torch.cuda.cudart() torch.cuda.Stream() torch.cuda.Event()
torch.cuda.Event(enable_timing=True) torch.cuda.CUDAGraph() torch.cuda.set_device(0)
torch.cuda.reset_peak_memory_stats() torch.cuda.is_current_stream_capturing()
torch.cuda.FloatTensor(2) torch.cuda.LongTensor([1]) torch.cuda.device(0).__enter__()
torch.cuda.nvtx.range_push("x") torch.cuda.nvtx.range_pop() torch.cuda.nvtx.mark("x")
torch.cuda.nvtx.range("x").__enter__() torch.cuda.profiler.start() torch.cuda.profiler.stop()
torch.cuda.profiler.profile().__enter__() torch.backends.cuda.is_built()
torch.backends.cuda.matmul.allow_tf32 torch.backends.cuda.flash_sdp_enabled()
torch.backends.cuda.enable_math_sdp(True)
torch.backends.cudnn.is_available() torch.backends.cudnn.version() torch.backends.cudnn.benchmark
torch.backends.mps.is_available() torch.backends.mps.is_built() torch.mps.is_available()
torch.mps.device_count() torch.mps.synchronize() torch.mps.empty_cache() torch.mps.manual_seed(1)
torch.xpu.is_available() torch.xpu.device_count() torch.xpu.synchronize() torch.xpu.empty_cache()
torch.xpu.current_device() torch.cpu.is_available() torch.cpu.device_count()
torch.cpu.current_device() torch.accelerator.is_available() torch.accelerator.device_count()
torch.accelerator.current_accelerator() torch.version.cuda torch.version.hip
torch.device("cuda").type torch.device("cuda:1").index torch.device("cuda",1)
torch.device(type="cuda",index=1) torch.device(torch.device("mps")) torch.device("cpu:3")
torch.device("cuda",index=2) torch.device(0) torch.device(-1) torch.device("cuda",-1)
torch.device("cuda:-1") torch.device("cuda:01") torch.device("cuda:") torch.device("cuda:1:2")
torch.device("cuda:x") torch.device("cuda:1",1) torch.device("") torch.device("CPU")
torch.device("foo") torch.device() torch.device(1.5) torch.device(None) torch.device(0,1)
torch.device("cuda","x") torch.device(torch.device("cuda"),2)
torch.device("cuda:0")==torch.device("cuda",0)
torch.ones(2,device="cuda") torch.ones(2,device="cuda:0") torch.ones(2,device=0)
torch.ones(2,device="xpu") torch.randn(5,requires_grad=True,device="cuda")
torch.tensor([1.],device="cuda") torch.tensor([1.],device=torch.device("cuda"))
torch.as_tensor([1.],device="cuda") torch.eye(2,device="cuda") torch.arange(3,device="cuda")
torch.linspace(0,1,2,device="cuda") torch.full((2,),1,device="cuda")
torch.randint(3,(2,),device="cuda") torch.randperm(3,device="cuda")
torch.nn.Linear(2,2,device="cuda") torch.nn.Linear(2,2).cuda() torch.nn.Linear(2,2).to("cuda:1")
torch.nn.Linear(2,2).to(torch.device("cuda")) x.cuda() x.cuda(0) x.cuda("cuda:0") x.to("cuda")
x.to(torch.device("cuda")) x.to(device="cuda") x.to("cuda",torch.float64) x.to(0) x.to("xpu")
x.xpu() x.to("foo") x.to("cpu") x.to("cpu",non_blocking=True) x.cpu() x.to("cpu:0").device
torch.get_device_module().is_available() torch.get_device_module("cuda:0").device_count()
torch.get_device_module(torch.device("cpu")).is_available() torch.get_device_module("meta")
torch.get_device_module("foo") torch.get_device_module(3)
x.is_cuda x.is_mps x.is_xpu x.get_device() x.is_pinned() x.pin_memory() x.new_zeros(2,device="cuda")
x.new_tensor([1.],device="cuda") torch.ones(1,pin_memory=True)
torch.zeros_like(x,device="cuda") torch.rand_like(x,device="cuda")
torch.accelerator.synchronize() torch.accelerator.current_stream()
torch.accelerator.memory_allocated() torch.accelerator.empty_cache()
torch.accelerator.set_device_index(0) torch.accelerator.device_index(0).__enter__()
torch.accelerator.device_index(None).__enter__() torch.cpu.set_device("cpu")
torch.cpu.is_initialized() torch.cpu.Stream().wait_stream(None) torch.cpu.Event().query()
torch.cpu.Event().record() torch.cpu.current_stream()==torch.cpu.current_stream()
torch.cpu.stream(None).__enter__() torch.cpu.stream(torch.cpu.Stream()).__enter__()
repr(torch.Stream()) repr(torch.Stream("cpu")) repr(torch.Stream(device="meta"))
torch.Stream("cuda") torch.Stream().query() torch.Stream().synchronize()
torch.Stream().wait_stream(torch.Stream()) torch.Stream().record_event()
torch.Stream().wait_event(torch.Event()) torch.Stream()==torch.Stream()
torch.Stream().__enter__()==torch.Stream() torch.Stream().device torch.Stream().stream_id
torch.Stream().device_index torch.Stream().device_type torch.Stream("meta").device_type
repr(torch.Event(enable_timing=True)) torch.Event("cuda") torch.Event().query()
torch.Event().synchronize() torch.Event().wait() torch.Event().record() torch.Event().device
torch.Event().elapsed_time(torch.Event())
""".split()


@pytest.mark.parametrize("asked", ASKED)
def test_answer_is_pytorchs(asked: str) -> None:
    both(lambda t: eval(asked, {"torch": t, "x": t.ones(2)}))


@pytest.mark.parametrize("asked", [a for a in ASKED if a.startswith("torch.device")])
def test_whole_message_of_a_device(asked: str) -> None:
    mine, theirs = (
        result_or_error(lambda t=t: str(eval(asked, {"torch": t}))) for t in (pygrad, torch)
    )
    assert mine == theirs


@pytest.mark.parametrize(
    "options",
    [{"use_cuda": True}, *({"use_device": d} for d in ("cuda", "cuda:0", "cpu", "xpu", "foo"))],
)
def test_profile_of_another_device_warns(options: dict[str, Any]) -> None:
    def run(t: Any) -> Any:
        def profile() -> None:
            with t.autograd.profiler.profile(**options) as prof:
                t.ones(1)
            assert prof.use_device is None

        return warnings_of(profile)

    assert run(pygrad) == run(torch)


def test_ranges_of_a_tool_are_entered_once() -> None:
    def script(t: Any) -> Any:
        emit = t.autograd.profiler.emit_itt
        with emit() as first:
            pass
        with emit(record_shapes=True), emit(enabled=False) as off:
            assert off is None
        return (
            result_or_error(first.__enter__),
            result_or_error(t.autograd.profiler.emit_nvtx().__enter__),
        )

    both(script)


def test_no_warning_without_a_device() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pygrad.autograd.profiler.profile()


def test_device_as_a_scope() -> None:
    def script(t: Any) -> Any:
        with t.device("cpu") as device:
            return [device, t.ones(2).device, t.ones(2)]

    both(script)
