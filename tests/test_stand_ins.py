"""What PyTorch has and pygrad has not, in the dialect: named by all, and told when it is used."""

from __future__ import annotations

import enum
import importlib
import subprocess
import sys
import types
from typing import Any, Generic, TypeVar

import pytest

import pygrad
import pygrad.torch as torch
from pygrad._install import harmless
from pygrad._install import stand_ins as _stand_ins
from pygrad._install.stand_ins import is_stand_in

T = TypeVar("T")
MODULES = sorted(_stand_ins._blocks())


def stand_ins(kind: str) -> list[tuple[str, str]]:
    """Module and name of stand-ins of a kind, of one in ten public modules."""
    return [
        (module, name)
        for module in MODULES[::10]
        if "._" not in module
        for name, entry in _stand_ins.entries(module).items()
        if entry.kind == kind and not name.startswith("_")
    ]


def get(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"pygrad.{module}"), name)


def test_stand_in_functions_say_what_is_missing_when_called() -> None:
    count = 0
    for module, name in stand_ins("def"):
        found = get(module, name)
        if is_stand_in(found):
            with pytest.raises(NotImplementedError) as caught:
                found(1, key=2)
            text = str(caught.value)
            assert text == _stand_ins.refusal(f"{found.__module__}.{name}")
            assert text.startswith(f"pygrad has no {found.__module__}.{name}: ")
            assert "\n" not in text
            count += 1
    assert count > 150


def test_stand_in_classes_are_classes_until_they_are_called() -> None:
    count = 0
    for module, name in stand_ins("class"):
        found = get(module, name)
        if not is_stand_in(found):
            continue
        count += 1
        assert found.__name__ == name
        assert found | None
        assert not isinstance(3, found)
        if issubclass(found, BaseException):
            with pytest.raises(found):
                raise found("x")
            continue
        below = type("Below", (found,), {})
        for kind in (found, below, types.new_class("Two", (found, Generic[T]))):
            with pytest.raises(NotImplementedError, match=f"has no {found.__module__}.{name}: "):
                kind(1, key=2)
        if not issubclass(found, (tuple, list, dict)):
            assert found[int].__origin__ is found
    assert count > 100


def test_stand_ins_have_their_bases() -> None:
    assert issubclass(torch.nn.SyncBatchNorm, pygrad.nn.Module)
    assert issubclass(torch.distributed.DistError, RuntimeError)
    assert issubclass(torch.distributed.QueueEmptyError, torch.distributed.DistError)
    assert issubclass(torch.onnx.ExportableModule, torch.nn.Module)

    class Both(torch.distributed.algorithms.join.Joinable, torch.nn.Module):
        pass

    assert issubclass(Both, pygrad.nn.Module)


def test_protocols_may_be_derived_from_and_made() -> None:
    class Kept(torch.distributed.checkpoint.stateful.Stateful):
        pass

    assert Kept()


def test_enumerations_have_their_members() -> None:
    kind = torch.distributed.fsdp.ShardingStrategy
    assert issubclass(kind, enum.Enum)
    assert kind.FULL_SHARD in kind
    assert kind["NO_SHARD"].name == "NO_SHARD"
    assert torch.distributed.ReduceOp.SUM != torch.distributed.ReduceOp.MAX
    with pytest.raises(NotImplementedError, match="no torch.*HashStore: "):
        torch.distributed.HashStore()


def test_names_shown_in_several_places_are_one() -> None:
    assert torch.functional.einsum is pygrad.einsum
    assert torch.jit._script.script is pygrad.jit.script
    wrapper = torch.nn.parallel.distributed.DistributedDataParallel
    assert wrapper is pygrad.nn.parallel.DistributedDataParallel
    fsdp = importlib.import_module("pygrad.torch.distributed.fsdp.fully_sharded_data_parallel")
    assert torch.distributed.fsdp.FullyShardedDataParallel is fsdp.FullyShardedDataParallel


def test_function_is_not_replaced_by_the_module_of_its_name() -> None:
    spawn = torch.multiprocessing.spawn
    importlib.import_module("pygrad.torch.nn.parallel.data_parallel")
    importlib.import_module("pygrad.torch.nn.utils.weight_norm")
    assert callable(torch.nn.parallel.data_parallel)
    assert callable(torch.nn.utils.weight_norm)
    assert spawn is torch.multiprocessing.spawn


def test_modules_are_packages_where_pytorch_has_packages() -> None:
    line = "; ".join(
        f"import pygrad.torch.{name}"
        for name in "nn.parallel.distributed nn.attention.flex_attention jit.annotations "
        "distributed.tensor distributed.fsdp testing.serialization cuda.streams".split()
        if _stand_ins.is_module(f"torch.{name}")
    )
    subprocess.run([sys.executable, "-W", "error", "-c", line], check=True, timeout=60)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pygrad.torch.hub.nowhere")


def test_star_import_gives_what_pytorch_has_there() -> None:
    names: dict[str, Any] = {}
    exec("from pygrad.torch.distributed.fsdp import *", names)
    assert "FullyShardedDataParallel" in names


def test_types_of_elements_that_no_tensor_has_are_types() -> None:
    kind = torch.float8_e4m3fn
    assert isinstance(kind, torch.dtype)
    assert (str(kind), kind.itemsize, kind.is_floating_point) == ("torch.float8_e4m3fn", 1, True)
    assert (torch.quint8.is_floating_point, torch.quint8.is_signed) == (False, False)
    assert kind in {kind: 1}
    assert kind != torch.float16
    for use in (
        lambda: torch.ones(2, dtype=kind),
        lambda: torch.ones(2).to(kind),
        lambda: torch.tensor([1.0], dtype=kind),
        lambda: torch.nn.Linear(1, 1).to(kind),
    ):
        before = torch.pg_live_count()
        with pytest.raises(NotImplementedError, match="pygrad has no torch.float8_e4m3fn: tensors"):
            use()
        torch.nn.Linear(1, 1)
        assert torch.pg_live_count() == before


def test_dispatch_keys_make_sets() -> None:
    key, make = torch._C.DispatchKey, torch._C.DispatchKeySet
    both = make(key.AutocastCPU) | make(key.AutocastCUDA)
    assert (both.has(key.AutocastCPU), both.has(key.CPU)) == (True, False)
    assert both - make(key.AutocastCUDA) == both & make(key.AutocastCPU) == make(key.AutocastCPU)
    assert both.remove(key.AutocastCUDA).add(key.AutocastCUDA) == both
    assert str(make(key.CPU)) == "DispatchKeySet(CPU)"
    with torch._C._ExcludeDispatchKeyGuard(both), torch._C._IncludeDispatchKeyGuard(both):
        assert (torch.ones(1) * 2).item() == 2


def test_compiled_extensions_are_refused_as_libraries_that_cannot_be_loaded() -> None:
    for load in (torch.ops.load_library, torch.classes.load_library):
        with pytest.raises(OSError, match="Could not load this library: x.so: pygrad cannot run"):
            load("x.so")


def test_classes_of_devices_that_are_not_there_are_classes() -> None:
    for name in "Stream Event CUDAGraph FloatTensor LongStorage".split():
        kind = getattr(torch.cuda, name)
        assert isinstance(kind, type)
        assert kind | None
        assert not isinstance(torch.ones(1), kind)
    with pytest.raises(RuntimeError, match="torch.cuda.Stream requires CUDA support"):
        torch.cuda.Stream()
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class CUDAGraph"):
        torch.cuda.CUDAGraph()


# ------------------------------------------------------------------ what does no harm


def double(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    "path",
    """jit.script jit.ignore jit.unused jit.export jit.interface jit.script_method jit.freeze
    jit.script_if_tracing jit.optimize_for_inference compiler.disable compiler.allow_in_graph
    compiler.assume_constant_result _dynamo.disable _dynamo.allow_in_graph _dynamo.run
    _dynamo.disallow_in_graph _dynamo.forbid_in_graph _dynamo.optimize""".split(),
)
def test_decorator_gives_back_the_function(path: str) -> None:
    module, _, name = path.rpartition(".")
    decorator = get(f"torch.{module}", name)
    assert decorator(double) is double
    if name in ("ignore", "disable", "optimize"):
        assert decorator()(double) is double


def test_what_is_traced_is_itself() -> None:
    model = torch.nn.Linear(2, 1)
    assert torch.jit.trace(model, torch.ones(1, 2)) is model
    assert torch.jit.trace(double, (torch.ones(1),), check_trace=False) is double
    assert torch.jit.trace_module(model, {"forward": torch.ones(1, 2)}) is model


def test_scripted_classes_are_modules() -> None:
    class Net(torch.jit.ScriptModule):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 1)

        @torch.jit.script_method
        def forward(self, x: Any) -> Any:
            return self.inner(x)

    assert Net()(torch.ones(3, 2)).shape == (3, 1)
    assert not isinstance(torch.nn.Linear(1, 1), torch.jit.ScriptModule)
    assert torch.jit.annotate(int, 3) == 3
    assert torch.jit.isinstance([1], list)
    with torch.jit.optimized_execution(False), torch.jit.strict_fusion():
        pass


def test_questions_about_what_is_not_there_have_an_answer() -> None:
    for module in "mtia xpu cuda backends.nnpack backends.cusparselt".split():
        assert get(f"torch.{module}", "is_available")() is False
    assert torch.mtia.device_count() == 0
    assert torch.onnx.is_in_onnx_export() is False
    assert torch._dynamo.is_compiling() is torch.compiler.is_compiling() is False
    assert torch.compiler.list_backends() == []
    # torchvision resizes bytes as bytes if it is told so, and else as float32.
    assert torch.backends.cpu.get_cpu_capability() == "AVX2"


def test_switches_of_a_compiler_that_is_not_there_return_what_they_were() -> None:
    for name in ("_jit_set_profiling_executor", "_jit_set_profiling_mode"):
        switch = getattr(torch._C, name)
        assert [switch(False), switch(True), switch(True)] == [True, False, True]
    assert torch._C._jit_set_texpr_fuser_enabled(False) is None
    assert torch._C._is_tracing() is torch.jit.is_tracing() is False
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        torch.backends.cudnn.benchmark = False
    assert torch.backends.flags_frozen() is False


def test_every_harmless_name_is_one_of_pytorchs() -> None:
    for module, rows in harmless._TABLE.items():
        for _, names in rows:
            for name in names.split():
                assert _stand_ins.is_module(module)
                assert callable(get(module, name)), (module, name)


def test_description_is_not_read_for_pygrad_alone() -> None:
    program = "import pygrad, sys; assert 'pygrad._install.stand_ins' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_pygrad_itself_has_no_stand_ins() -> None:
    with pytest.raises(AttributeError, match="module 'pygrad' has no attribute 'onnx'"):
        pygrad.onnx  # type: ignore[attr-defined]  # noqa: B018


def test_every_sentence_tells_what_to_do() -> None:
    for above in _stand_ins._INSTEAD:
        said = _stand_ins.refusal(f"{above}.name")
        assert said == f"pygrad has no {above}.name: {_stand_ins._INSTEAD[above]}"
        assert above == "torch" or _stand_ins.is_module(above)


def test_decorators_that_packages_use_as_they_are_imported_change_nothing() -> None:
    from pygrad.torch.utils.data import IterDataPipe, functional_datapipe

    @functional_datapipe("batch_graphs")
    class Mine(IterDataPipe):  # type: ignore[misc]
        pass

    assert isinstance(functional_datapipe, type)
    assert isinstance(Mine, type)
    assert issubclass(Mine, IterDataPipe)


def test_a_function_that_needs_other_processes_is_refused_when_called() -> None:
    from pygrad.torch.distributed.rpc.api import _require_initialized

    function = _require_initialized(lambda: 1)
    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        function()


def test_names_that_opacus_imports_are_there() -> None:
    from pygrad.torch.distributed._composable.fsdp import FSDPModule
    from pygrad.torch.distributed._tensor.experimental import implicit_replication
    from pygrad.torch.utils.data.dataloader import _collate_fn_t

    assert isinstance(FSDPModule, type)
    assert callable(implicit_replication)
    assert _collate_fn_t is not None


def test_scopes_of_devices_that_are_not_there_do_nothing_where_none_is_meant() -> None:
    with pygrad.cuda.stream(None), pygrad.cuda.device(-1):
        assert pygrad.ones(1).item() == 1
    with pytest.raises(RuntimeError, match="without CUDA support"), pygrad.cuda.device(0):
        pass


def test_decorator_of_elastic_programs_gives_back_the_function() -> None:
    record = get("torch.distributed.elastic.multiprocessing.errors", "record")
    assert record(len) is len


def test_programs_ask_what_pytorch_was_built_with() -> None:
    assert not any(get("torch", f"has_{name}") for name in ("cuda", "cudnn", "mkldnn", "mps"))


@pytest.mark.parametrize("name", ["_nn", "_special", "_linalg"])
def test_a_namespace_that_is_imported_keeps_its_functions(name: str) -> None:
    before = vars(getattr(pygrad._C, name))
    module = importlib.import_module(f"pygrad.torch._C.{name}")
    assert getattr(pygrad._C, name) is module
    assert before.keys() <= vars(module).keys()
