"""What scripts do beside the numbers: conversions, NumPy, mixed precision, names that are there."""

from __future__ import annotations

import array
import copy
import importlib
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from oracle import both, result_or_error, torch, warnings_of

import pygrad
from pygrad._ground import warnings as _warnings

ARRAY = np.array([1.0, 3.0])


def storages(t: Any) -> list[Any]:
    x = t.arange(4.0).view(2, 2)
    made = [t.tensor([True]), t.tensor([], dtype=t.int8), x.t(), x[1:]]
    return [each.storage() for each in made] + [x[1].untyped_storage(), x.untyped_storage()[:2]]


def write_storage(x: Any) -> list[Any]:
    storage, raw = x[1].storage(), x.untyped_storage()
    storage[0], storage[2:4] = 3.0, 2.0
    raw[7] = 64
    sizes = [len(storage), storage.nbytes(), storage.type(), storage.dtype, raw.size(), raw.device]
    return [x, *sizes, list(storage), storage.clone().fill_(1).tolist(), storage.untyped()[7]]


EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "float_of_two": lambda t: float(t.ones(2)),
    "int_of_none": lambda t: int(t.ones(0)),
    "complex_of_two": lambda t: complex(t.ones(2)),
    "item_of_two": lambda t: t.ones(2).item(),
    "reversed": lambda t: reversed(t.arange(4).view(2, 2)),
    "reversed_list": lambda t: list(reversed(t.arange(3))),
    "sqrt": lambda t: np.sqrt(t.ones(2)),
    "plus_array": lambda t: t.ones(2) + ARRAY,
    "is_nan": lambda t: np.isnan(t.ones(2)),
    "equal_array": lambda t: t.ones(2) == ARRAY,
    "array_equal": lambda t: ARRAY == t.ones(2),  # noqa: SIM300
    "unequal_array": lambda t: bool((t.ones(2) != ARRAY) is True),
    "equal_text": lambda t: t.ones(2) == "x",
    "equal_list": lambda t: t.ones(2) == [1, 1],
    "dict": lambda t: t.tensor({"a": 1}),
    "set": lambda t: t.tensor({1}),
    "bytes": lambda t: t.tensor(b"ab"),
    "bytearray": lambda t: t.tensor(bytearray(b"ab")),
    "compile_mode": lambda t: t.compile(t.relu, mode="x"),
    "compile_both": lambda t: t.compile(t.relu, mode="default", options={}),
    "compile_number": lambda t: t.compile(3),
    "compile": lambda t: t.compile(t.relu, disable=True)(t.ones(1)),
    "compile_decorator": lambda t: t.compile(disable=True)(t.relu)(-t.ones(1)),
    "precision": lambda t: [
        t.get_float32_matmul_precision(),
        t.set_float32_matmul_precision("high"),
        t.get_float32_matmul_precision(),
        t.set_float32_matmul_precision("highest"),
    ],
    "deterministic": lambda t: [
        t.use_deterministic_algorithms(True),
        t.are_deterministic_algorithms_enabled(),
        t.use_deterministic_algorithms(False),
        t.are_deterministic_algorithms_enabled(),
    ],
    "autocast_off": lambda t: t.autocast("cpu", enabled=False)(t.relu)(t.ones(1)),
    "autocast_cuda": lambda t: t.autocast("cuda")._enabled,
    "autocast_float32": lambda t: t.autocast("cpu", dtype=t.float32)._enabled,
    "autocast_device": lambda t: t.autocast("foo"),
    "autocast_number": lambda t: t.autocast(3),
    "half": lambda t: [t.ones(1).dtype in (t.float16, t.bfloat16), t.half, t.bfloat16.itemsize],
    "complex": lambda t: [t.cfloat, t.complex128, t.float32.to_complex(), t.cdouble.to_real()],
    "half_limits": lambda t: [t.finfo(t.float16), t.finfo(t.bfloat16).min, t.finfo(t.cfloat).dtype],
    "class": lambda t: [type(t.ones(1)), type(t.float32), type(t.ones(1).shape), t.FloatTensor],
    "list_of_one_element": lambda t: t.tensor([t.ones(1), t.ones(1, 1), 2.0]),
    "list_of_float64": lambda t: t.tensor([t.ones(()).double(), 2.0]),
    "storage": lambda t: [repr(each) for each in storages(t)],
    "storage_written": lambda t: write_storage(t.zeros(2, 2)),
    "storage_wrong": lambda t: [
        result_or_error(lambda i=i: t.ones(2).storage()[i]) for i in (2, "a", 1.5)
    ],
    "storage_slice": lambda t: t.ones(2).storage()[0:2],
    "channels_last": lambda t: [
        each.is_contiguous(memory_format=kind)
        for kind in (t.channels_last, t.contiguous_format, t.preserve_format)
        for each in (t.ones(2), t.ones(1, 2, 3, 4), t.ones(1, 2, 3, 4).to(memory_format=kind))
    ],
    "old_name_of_a_format": lambda t: [
        t.legacy_contiguous_format,
        t.empty_like(t.ones(2, 3).t(), memory_format=t.legacy_contiguous_format).stride(),
    ],
    "questions": lambda t: [
        *(f(t.ones(1)) for f in (t.is_signed, t.is_conj, t.is_neg, t.is_inference, t.get_device)),
        *(t.ones(1).is_shared(), t.is_autocast_enabled()),
    ],
    "debug_mode": lambda t: [
        t.set_deterministic_debug_mode("warn"),
        t.get_deterministic_debug_mode(),
        t.use_deterministic_algorithms(True),
        t.get_deterministic_debug_mode(),
        t.set_deterministic_debug_mode(0),
        t.is_deterministic_algorithms_warn_only_enabled(),
        t.are_deterministic_algorithms_enabled(),
    ],
    "debug_mode_text": lambda t: t.set_deterministic_debug_mode("foo"),
    "tensor_as_float": lambda t: [t.tensor([1, True], dtype=k) for k in (float, int, bool)],
    "range_as_data": lambda t: [t.Tensor(range(3)), t.LongTensor([range(2)])],
    "list_of_longer": lambda t: t.tensor([t.ones(2), t.ones(2)]),
    "list_of_none": lambda t: t.tensor([t.ones(0)]),
    "list_before_tensor": lambda t: t.tensor([[1, 2], t.ones(2)]),
    "list_of_arrays": lambda t: t.tensor([ARRAY, ARRAY]),
    "list_of_matrices": lambda t: t.tensor(
        [np.eye(2, dtype=np.int32), np.eye(2, dtype=np.float32)]
    ),
    "list_and_array": lambda t: t.tensor([[1, 2], ARRAY]),
    "list_of_arrays_ragged": lambda t: t.tensor([ARRAY, ARRAY[:1]]),
    "array_module": lambda t: t.tensor(array.array("f", [1, 2])),
    "uint8_negative": lambda t: t.tensor([-1, -255], dtype=t.uint8),
    "uint8_too_negative": lambda t: t.tensor([-256], dtype=t.uint8),
    "uint8_negative_float": lambda t: t.tensor([-1.5], dtype=t.uint8),
    "int_of_nan": lambda t: t.tensor([float("nan")], dtype=t.int32),
    "new_int_of_infinity": lambda t: t.arange(2).new_tensor([float("inf")]),
    "size_radd": lambda t: (1,) + t.ones(2, 3).shape,
    "size_times": lambda t: [t.Size([2, 3]) * 2, 2 * t.Size([2]), t.Size([2]) * -1],
    "size_plus_list": lambda t: t.Size([2]) + [3],
    "size_plus_number": lambda t: t.Size([2]) + 3,
    "size_of_tensor": lambda t: t.Size([t.tensor(2), True, np.int64(3)]),
    "size_of_float": lambda t: t.Size([1, 1.5]),
    "size_of_text": lambda t: t.Size("a"),
    "type_of": lambda t: [t.ones(1).type(k) for k in ("torch.LongTensor", t.ByteTensor, t.Tensor)],
    "type_unknown": lambda t: t.ones(1).type("foo"),
    "type_number": lambda t: t.ones(1).type(3),
    "isinstance": lambda t: [
        isinstance(t.ones(1), t.FloatTensor),
        isinstance(t.nn.Parameter(t.ones(1)), t.FloatTensor),
        isinstance(t.ones(1), (t.DoubleTensor, t.LongTensor)),
        isinstance(3, t.FloatTensor),
    ],
    "default_type": lambda t: [
        t.set_default_tensor_type("torch.DoubleTensor"),
        t.ones(1),
        t.set_default_tensor_type(t.FloatTensor),
        t.ones(1),
    ],
    "default_type_of_ints": lambda t: t.set_default_tensor_type(t.LongTensor),
    "default_type_dtype": lambda t: t.set_default_tensor_type(t.float32),
    "delete": lambda t: t.ones(2).__delitem__(0),
    "pickled_result": lambda t: pickle.loads(pickle.dumps(t.ones(2, requires_grad=True) * 2)),
    "pickled_dtypes": lambda t: pickle.loads(pickle.dumps([t.bool, t.float16])),
    "jit": lambda t: [t.jit.is_scripting(), t.jit.is_tracing(), t.jit.ignore(lambda: 3)()],
    "jit_ignore": lambda t: t.jit.ignore(drop=True)(lambda: 3)(),
    "compiler": lambda t: [
        t.compiler.is_compiling(),
        t.compiler.disable(lambda: 3)(),
        t.compiler.disable(recursive=False)(lambda: 3)(),
        t.compiler.reset(),
    ],
    "distributed": lambda t: [t.distributed.is_initialized(), t.distributed.is_nccl_available()],
    "distributed_rank": lambda t: t.distributed.get_rank(),
    "distributed_barrier": lambda t: t.distributed.barrier(),
    "pairs": lambda t: [t.nn.modules.utils._pair(3), t.nn.modules.utils._triple([1, 2, 3])],
    "types": lambda t: [t.types.Number, t.types.Device],
    "scaler_off": lambda t: [
        t.amp.GradScaler("cpu", enabled=False).state_dict(),
        t.amp.GradScaler().is_enabled(),
        t.cuda.amp.GradScaler(enabled=False).scale(3),
        t.cuda.amp.GradScaler().get_scale(),
    ],
    "scaler_factor": lambda t: t.amp.GradScaler("cpu", growth_factor=0.5),
    "scaler_state": lambda t: t.amp.GradScaler("cpu").load_state_dict({}),
    "scaler_number": lambda t: t.amp.GradScaler("cpu").scale(3),
    "scaler_early": lambda t: t.amp.GradScaler("cpu").update(),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression(name: str) -> None:
    both(EXPRESSIONS[name])


@pytest.mark.parametrize(
    "place",
    [lambda storage, _: storage, {"cuda:0": "cpu"}, "cpu"],
    ids=["function", "mapping", "name"],
)
def test_place_to_load_to(place: Any) -> None:
    def script(t: Any) -> Any:
        file = io.BytesIO()
        t.save({"a": t.ones(2)}, file)
        file.seek(0)
        return t.load(file, map_location=place)

    both(script)


def test_grad_scaler() -> None:
    def script(t: Any) -> Any:
        w = t.nn.Parameter(t.ones(2))
        optimizer = t.optim.SGD([w], 0.1)
        scaler = t.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
        seen = [result_or_error(lambda: scaler.step(optimizer))]
        for factor in (1.0, float("inf"), 1.0, 1.0, 2.0):
            optimizer.zero_grad()
            scaler.scale((w * factor).sum()).backward()
            if factor == 1.0:
                scaler.unscale_(optimizer)
                seen.append(result_or_error(lambda: scaler.unscale_(optimizer)))
            scaler.step(optimizer)
            seen.append(result_or_error(lambda: scaler.step(optimizer)))
            scaler.update()
            seen += [w.detach().clone(), w.grad.clone(), str(scaler.state_dict())]
        state = scaler.state_dict()
        other = t.amp.GradScaler("cpu")
        other.load_state_dict(state)
        scaler.update(4.0)
        return *seen, str(other.state_dict()), scaler.get_scale(), scaler.scale([w.sum()])

    both(script)


WARNING: dict[str, Callable[[Any], Any]] = {
    "float": lambda t: float(t.ones(1, requires_grad=True)),
    "float_no_grad": lambda t: t.no_grad()(float)(t.ones(1, requires_grad=True)),
    "item": lambda t: t.ones(1, requires_grad=True).item(),
    "precision": lambda t: t.set_float32_matmul_precision("x"),
    "default_type": lambda t: t.set_default_tensor_type("torch.FloatTensor"),
    "new_tensor": lambda t: t.ones(1).new_tensor(t.ones(1)),
    "autocast": lambda t: t.autocast("cuda"),
    "float32": lambda t: t.autocast("cpu", dtype=t.float32),
    "scaler": lambda t: t.amp.GradScaler(),
    "old_scaler": lambda t: t.cuda.amp.GradScaler(),
    "old_autocast": lambda t: t.cuda.amp.autocast(enabled=False),
}


@pytest.mark.parametrize("name", WARNING)
def test_warning(name: str) -> None:
    pygrad.set_warn_always(True)
    torch.set_warn_always(True)
    try:
        assert warnings_of(lambda: WARNING[name](pygrad)) == warnings_of(
            lambda: WARNING[name](torch)
        )
    finally:
        pygrad.set_warn_always(False)
        torch.set_warn_always(False)


def test_warning_of_lists_of_arrays_comes_once() -> None:
    with mock.patch.object(_warnings, "_given", set()):
        mine = [warnings_of(lambda: pygrad.tensor([ARRAY, ARRAY])) for _ in range(2)]
    torch.set_warn_always(True)
    try:
        theirs = warnings_of(lambda: torch.tensor([ARRAY, ARRAY]))
    finally:
        torch.set_warn_always(False)
    assert mine == [theirs[:1], []]


LISTS: list[Callable[[Any], Any]] = [
    lambda t: [[0, 1], [1, 0]],
    lambda t: [[0, 1]],
    lambda t: [slice(None), 0],
    lambda t: [None, 0],
    lambda t: [..., 0],
    lambda t: [t.tensor(0), 1],
    lambda t: [t.tensor([0]), t.tensor([1])],
    lambda t: [ARRAY.astype(int) - 1, range(2)],
    lambda t: [0, [1]],
    lambda t: [[]],
    lambda t: [True, False],
    lambda t: [1, 0],
    lambda t: [],
    lambda t: [[0, 1]] * 40,
    lambda t: ([0, 1], [[0]]),
    lambda t: range(2),
    lambda t: ["a"],
]


@pytest.mark.parametrize("make", LISTS)
def test_list_as_an_index(make: Callable[[Any], Any]) -> None:
    def script(t: Any) -> Any:
        x = t.arange(24).view(2, 3, 4)
        index = make(t)
        got = x[index]
        x[index] = 7
        return got, x

    both(script)
    texts = [warnings_of(lambda t=t: result_or_error(lambda: script(t))) for t in (pygrad, torch)]
    assert texts[0] == texts[1]


def test_warning_of_a_list_as_an_index_names_the_line() -> None:
    x = pygrad.zeros(2, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x[[[0], [1]]]
        x[[[0], [1]]] = 1
    assert [each.filename for each in caught] == [__file__] * 2


@pytest.mark.parametrize("requires_grad", [True, False])
def test_shallow_copy_shares_memory(requires_grad: bool) -> None:
    def script(t: Any) -> Any:
        x = t.arange(3.0).requires_grad_(requires_grad)
        x.note = "kept"
        y = copy.copy(x)
        y.detach()[0] = 5
        p = copy.copy(t.nn.Parameter(x.detach()))
        return x, y.requires_grad, y.note, y is x, type(p).__name__

    both(script)


def test_scripted_function_is_itself() -> None:
    @pygrad.jit.script
    def double(x: Any) -> Any:
        return x * 2

    assert double(pygrad.ones(1)).tolist() == [2.0]
    model = pygrad.nn.Linear(1, 1)
    assert pygrad.jit.script(model) is model
    assert pygrad.jit.trace(model, pygrad.ones(1)) is model
    with pytest.raises(NotImplementedError, match=r"jit\.load"):
        pygrad.jit.load("model.pt")


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_shares_of_a_dataset(shuffle: bool, drop_last: bool, count: int) -> None:
    def script(t: Any) -> Any:
        kind = t.utils.data.DistributedSampler
        shares = [kind(range(5), count, rank, shuffle, 3, drop_last) for rank in range(count)]
        first = [list(share) for share in shares]
        for share in shares:
            share.set_epoch(1)
        return first, [list(share) for share in shares], [len(share) for share in shares]

    both(script)


def test_shares_without_a_process_group() -> None:
    both(lambda t: t.utils.data.DistributedSampler(range(5), 2))
    both(lambda t: t.utils.data.DistributedSampler(range(5), 2, 2))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("nn.modules.utils", "_ntuple _single _pair _triple _quadruple"),
        ("nn.modules.upsampling", "Upsample UpsamplingNearest2d UpsamplingBilinear2d"),
        ("nn.modules.pixelshuffle", "PixelShuffle PixelUnshuffle"),
        ("nn.modules.channelshuffle", "ChannelShuffle"),
        ("nn.modules.fold", "Fold Unfold"),
        ("nn.common_types", "_size_2_t _size_any_t _ratio_3_t _tensor_list_t"),
        ("nn.attention", "SDPBackend sdpa_kernel"),
        ("utils.data._utils.collate", "default_collate default_convert"),
        ("utils.dlpack", "to_dlpack from_dlpack"),
        ("storage", "TypedStorage UntypedStorage"),
    ],
)
def test_names_are_where_programs_import_them_from(module: str, names: str) -> None:
    for library in ("torch", "pygrad"):
        found = importlib.import_module(f"{library}.{module}")
        assert all(hasattr(found, name) for name in names.split()), library


def test_kernels_of_attention() -> None:
    def run(t: Any) -> Any:
        attention = importlib.import_module(f"{t.__name__}.nn.attention")
        kinds, seen = attention.SDPBackend, []
        for chosen in (kinds.MATH, [kinds.MATH, kinds.FLASH_ATTENTION], "a"):
            with attention.sdpa_kernel(chosen) as given:
                x = t.ones(1, 1, 2, 2)
                seen += [given, t.nn.functional.scaled_dot_product_attention(x, x, x)]
        return seen

    both(run)


def test_kernels_of_attention_in_the_older_form() -> None:
    def run(t: Any) -> Any:
        x = t.arange(8.0).view(1, 1, 4, 2)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with t.backends.cuda.sdp_kernel(
                enable_flash=False, enable_mem_efficient=False
            ) as given:
                y = t.nn.functional.scaled_dot_product_attention(x, x, x)
        return y, given, [(str(each.message), each.category) for each in seen]

    both(run)
