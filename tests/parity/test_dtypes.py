"""What programs do with dtypes beside computing, as PyTorch does it, in its words."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracle import torch

import pygrad.torch

NAMES = (
    "float16 bfloat16 float32 float64 complex32 complex64 complex128 uint8 int8 int16 int32 int64 "
    "uint16 uint32 uint64 bool"
).split()
"""Of all dtypes that PyTorch has for the CPU, quantized ones and those of 8 bits apart."""

EXPRESSIONS = """
(t.uint16, t.uint32, t.uint64, t.half, t.bfloat16, t.chalf)
t.bfloat16.to_complex()
t.int64.to_complex()
t.uint8.to_complex()
t.bool.to_complex()
t.uint16.to_real()
t.finfo(t.half)
t.finfo(t.bfloat16)
t.finfo(t.complex64)
t.finfo(t.complex32)
t.finfo(t.complex128)
t.finfo(t.uint16)
t.finfo(float)
t.finfo(complex)
t.finfo(int)
t.finfo(bool)
t.finfo(str)
t.iinfo(int)
t.iinfo(bool)
t.iinfo(float)
t.iinfo(t.uint16)
t.iinfo(t.uint32)
t.iinfo(t.uint64)
t.iinfo(t.complex64)
t.iinfo(t.half)
t.iinfo(t.bool)
t.tensor([1+2j])
t.tensor(1j)
t.tensor(1j).item()
t.tensor([1j, 2.0, 3])
t.tensor([[1j, 2.0], [3, True]])
t.tensor([1j], dtype=t.float32)
t.tensor([1j], dtype=t.int64)
t.tensor([1j], dtype=t.bool)
t.tensor([1j], dtype=t.half)
t.tensor(1j, dtype=t.half)
t.tensor(1+0j, dtype=t.float32)
t.tensor(1+0j, dtype=t.int32)
t.tensor([1+0j, 2], dtype=t.int32)
t.tensor([1,2,3], dtype=t.chalf)
t.tensor([1,2,3], dtype=t.cdouble)
t.tensor([1.5, 70000., -70000, 1e-8, float('nan')], dtype=t.half)
t.tensor([1.5, 1e39, -1e39, 1e-45, float('nan')], dtype=t.bfloat16)
t.tensor([1.5,2.5], dtype=t.uint16)
t.tensor([65535, 0], dtype=t.uint16)
t.tensor([65536], dtype=t.uint16)
t.tensor([-1], dtype=t.uint16)
t.tensor([-1], dtype=t.uint8)
t.tensor([-255], dtype=t.uint8)
t.tensor([-256], dtype=t.uint8)
t.tensor([-65535], dtype=t.uint16)
t.tensor([-65536], dtype=t.uint16)
t.tensor([2**32-1], dtype=t.uint32)
t.tensor([2**32], dtype=t.uint32)
t.tensor([-1], dtype=t.uint32)
t.tensor([2**64-1], dtype=t.uint64)
t.tensor([2**63], dtype=t.uint64)
t.tensor([2**64], dtype=t.uint64)
t.tensor([-1], dtype=t.uint64)
t.tensor(2**64-1, dtype=t.uint64).item()
t.tensor([2**63])
t.tensor(2**63)
t.tensor([2**64-1, 5], dtype=t.uint64).tolist()
t.tensor([2**62], dtype=t.float16)
t.tensor([2**70], dtype=t.float16)
t.tensor([2**70], dtype=t.complex64)
t.tensor(["a"], dtype=t.complex64)
t.tensor([None], dtype=t.complex64)
t.tensor([None], dtype=t.half)
t.tensor([[1j],[1,2]])
t.tensor([t.tensor(1j), 2])
t.tensor([t.tensor(1, dtype=t.half), 2])
t.tensor([t.tensor(1, dtype=t.half), t.tensor(2, dtype=t.bfloat16)])
t.tensor([t.tensor(1.5, dtype=t.half), t.tensor(2.5, dtype=t.half)])
t.tensor([np.float16(1.5), np.complex64(2)])
t.tensor([np.float16(1.5)])
t.tensor(np.float16(1.5))
t.tensor(np.complex64(1.5))
t.tensor([np.complex64(1.5)])
t.tensor([np.uint16(1.5)])
t.as_tensor(1j)
t.as_tensor([1,2], dtype=t.half)
t.as_tensor(np.array([1j,2]))
t.asarray([1j,2])
t.asarray(np.array([1j,2], dtype=np.complex64))
t.asarray(np.array([1,2], dtype=np.uint64), dtype=t.half)
t.asarray(1, dtype=t.half)
t.frombuffer(bytearray(b'\x00<\x00>'), dtype=t.bfloat16)
t.frombuffer(bytearray(range(8)), dtype=t.complex64)
t.frombuffer(bytearray(range(8)), dtype=t.chalf)
t.frombuffer(bytearray(range(8)), dtype=t.uint16)
t.frombuffer(bytearray(range(8)), dtype=t.uint32)
t.frombuffer(bytearray(range(8)), dtype=t.uint64)
t.frombuffer(bytearray(range(7)), dtype=t.uint64)
t.frombuffer(bytearray(range(7)), dtype=t.complex128)
t.tensor([1j,2]).tolist()
t.tensor([1.5,2], dtype=t.half).tolist()
t.tensor([1.5,2], dtype=t.bfloat16).tolist()
t.tensor([1.5,2j], dtype=t.chalf).tolist()
t.tensor([1,2], dtype=t.uint32).tolist()
complex(t.tensor([1j]))
complex(t.tensor([1j,2]))
float(t.tensor(1j))
float(t.tensor(1+0j))
int(t.tensor(1j))
int(t.tensor(1+0j))
(bool(t.tensor(1j)), bool(t.tensor(0j)))
(bool(t.tensor(0.0,dtype=t.half)), bool(t.tensor(2,dtype=t.uint64)))
float(t.tensor(2**64-1, dtype=t.uint64))
t.tensor(3, dtype=t.uint16).__index__()
[10,20,30,40][t.tensor(3, dtype=t.uint64)]
t.tensor(1.0, dtype=t.half).__index__()
t.tensor(1.0+0j).__index__()
t.tensor(1j).type()
t.zeros(2).type('torch.HalfTensor')
t.zeros(2).type('torch.BFloat16Tensor')
t.zeros(2).type('torch.ComplexFloatTensor')
t.zeros(2).type('torch.ComplexDoubleTensor')
t.zeros(2).type('torch.UInt16Tensor')
t.zeros(2).type(t.HalfTensor)
t.zeros(2).type(t.BFloat16Tensor)
t.HalfTensor([1,2])
t.HalfTensor(2).dtype
t.BFloat16Tensor([1.5,2])
t.HalfTensor
t.BFloat16Tensor
(isinstance(t.zeros(1,dtype=t.half), t.HalfTensor), isinstance(t.zeros(1), t.HalfTensor))
t.HalfTensor(t.zeros(2))
t.FloatTensor(t.zeros(2,dtype=t.half))
t.HalfStorage([1,2])
t.BFloat16Storage([1,2])
t.ComplexFloatStorage([1,2j])
t.ComplexDoubleStorage([1,2j])
t.zeros(2,dtype=t.half).storage()
t.zeros(2,dtype=t.complex64).storage()
t.zeros(2,dtype=t.complex32).storage()
t.zeros(2,dtype=t.uint16).storage()
t.zeros(2,dtype=t.half).storage_type()
t.zeros(2,dtype=t.complex128).storage_type()
t.zeros(2,dtype=t.uint16).storage_type()
t.zeros(2,dtype=t.complex32).storage_type()
t.FloatStorage([1,2]).half()
t.FloatStorage([1,2]).bfloat16()
t.FloatStorage([1,2]).complex_float()
t.FloatStorage([1,2]).complex_double()
t.HalfStorage([1,2]).type()
t.HalfStorage([1,2]).float()
t.ComplexFloatStorage([1,2]).type()
t.ones(2).untyped_storage().half()
t.zeros(2,dtype=t.uint16).storage().type()
t.zeros(2,dtype=t.uint16).storage().pickle_storage_type()
t.zeros(3).set_(t.HalfStorage([1,2]))
t.zeros(3,dtype=t.half).set_(t.HalfStorage([1,2]))
t.zeros(3,dtype=t.half).set_(t.FloatStorage([1,2]))
t.zeros(3,dtype=t.complex64).set_(t.FloatStorage([1,2]))
t.zeros(3,dtype=t.uint16).set_(t.FloatStorage([1,2]))
(t.is_conj(t.tensor(1j).conj()), t.is_neg(t.tensor(1j).conj().imag), t.is_conj(t.tensor(1j)))
t.tensor([[1j,2],[3,4]]).H
t.tensor([[1j,2],[3,4]]).mH
t.tensor([[1j,2],[3,4]]).adjoint()
t.ones(2,3).H
t.tensor([[[1j,2],[3,4]]]).H
t.tensor([1j,2]).H
t.tensor(1j).H
t.tensor([1j]).mH
t.finfo(t.bool)
t.finfo(t.int64)
t.finfo(3)
t.iinfo(3)
t.iinfo(t.int64)
t.iinfo(t.int32)
t.iinfo(t.uint8)
t.iinfo(t.int16).max
str(t.iinfo(t.int64))
t.finfo(t.float64)
t.finfo(t.float32)
t.tensor([None], dtype=t.bool)
t.tensor(['a'], dtype=t.bool)
int(t.tensor(2**64-1, dtype=t.uint64))
int(t.tensor(2**63-1, dtype=t.uint64))
int(t.tensor(float('inf')))
int(t.tensor(float('nan')))
int(t.tensor(1e30))
float(t.tensor(1j,requires_grad=True))
int(t.tensor(1e30,dtype=t.float16))
(isinstance(t.zeros(1,dtype=t.half), t.HalfTensor), isinstance(t.zeros(1), t.HalfTensor))
t.set_default_dtype(t.complex64)
t.set_default_dtype(t.uint16)
t.set_default_tensor_type(t.BoolTensor)
t.tensor([1,2],dtype='float')
t.zeros(2,dtype=t.half).numpy()
t.zeros(2,dtype=t.half).numpy().dtype
t.zeros(2,dtype=t.bfloat16).numpy()
t.zeros(2,dtype=t.chalf).numpy()
t.zeros(2,dtype=t.cfloat).numpy()
t.zeros(2,dtype=t.cdouble).numpy()
t.zeros(2,dtype=t.uint64).numpy()
t.from_numpy(np.zeros(2,dtype=np.float16))
t.from_numpy(np.zeros(2,dtype=np.clongdouble))
t.from_dlpack(np.zeros(2,dtype=np.complex64))
t.from_dlpack(np.zeros(2,dtype=np.float16))
t.from_dlpack(np.zeros(2,dtype=np.uint16))
t.from_dlpack(t.zeros(2,dtype=t.bfloat16))
np.from_dlpack(t.zeros(2,dtype=t.half))
np.from_dlpack(t.zeros(2,dtype=t.uint32))
np.from_dlpack(t.zeros(2,dtype=t.cfloat))
np.asarray(t.zeros(2,dtype=t.cfloat), dtype=np.complex128)
t.tensor([1,2,3,4],dtype=t.int16).view(t.half)
t.tensor([1,2,3,4],dtype=t.float32).view(t.half)
t.tensor([1,2,3,4],dtype=t.float32).view(t.complex64)
t.tensor([1,2,3,4],dtype=t.float32).view(t.complex128)
t.tensor([1,2,3],dtype=t.float32).view(t.complex64)
t.tensor([1j,2,3]).view(t.float32)
t.tensor([1j,2,3]).view(t.uint16)
t.tensor([1,2,3],dtype=t.uint16).view(t.int16)
t.tensor([1,2,3,4],dtype=t.half).view(t.uint64)
t.tensor([1j,2,3]).conj().view(t.float32)
(t.can_cast(t.half, t.int32), t.can_cast(t.complex64, t.float32))
t.promote_types(t.uint16, t.uint32)
t.promote_types(t.uint16, t.uint16)
t.promote_types(t.uint16, t.bool)
t.promote_types(t.uint16, t.float32)
t.promote_types(t.uint16, t.int32)
t.promote_types(t.uint8, t.uint64)
t.result_type(t.tensor([1.],dtype=t.half), 1j)
t.result_type(t.tensor([1.],dtype=t.bfloat16), 1j)
t.result_type(t.tensor([1.],dtype=t.float64), 1j)
t.result_type(t.tensor([1]), 1j)
t.result_type(1, 1j)
t.result_type(t.tensor([1.],dtype=t.half), t.tensor(1.0))
t.result_type(t.tensor([1],dtype=t.uint16), 1)
t.result_type(t.tensor([1],dtype=t.uint16), 1.5)
hash(t.half)==hash(t.float16)
again(t.tensor([1j,2]))
again(t.tensor([1,2],dtype=t.bfloat16))
again(t.half) is t.half and again(t.uint16) is t.uint16
copy.deepcopy(t.tensor([1j,2],requires_grad=True))
copy.deepcopy(t.tensor([1,2],dtype=t.chalf))
copy.deepcopy(t.half) is t.half
t.nn.Linear(2,2).half().weight.dtype
t.nn.Linear(2,2).bfloat16().weight.dtype
t.nn.Linear(2,2).to(t.complex64).weight.dtype
t.nn.Linear(2,2).to(t.uint16).weight.dtype
t.nn.Linear(2,2).type(t.half).weight.dtype
t.nn.BatchNorm1d(2).half().num_batches_tracked.dtype
t.nn.BatchNorm1d(2).half().state_dict()
t.nn.Linear(2,2).half().double().weight.dtype
f"{t.tensor(1.5,dtype=t.half):.2f}"
f"{t.tensor(1.5+2j):.2f}"
f"{t.tensor(7,dtype=t.uint64):5d}"
"{}".format(t.tensor([1j]))
(t.tensor(1+2j).real, t.tensor(1+2j).imag)
t.tensor(1.5,dtype=t.half).real
t.zeros(2,dtype=t.half).new([1,2])
t.zeros(2,dtype=t.complex64).new([1,2])
t.zeros(2,dtype=t.uint16).new([1,2])
t.zeros(2,dtype=t.complex64).new_tensor([1,2])
t.zeros(2,dtype=t.complex64).new_zeros(2)
~t.zeros(2,dtype=t.complex64)
t.tensor([1,2,3],dtype=t.half).apply_(lambda x: x+1)
t.tensor([1,2,3],dtype=t.complex64).apply_(lambda x: x+1j)
t.tensor([1,2,3],dtype=t.uint16).apply_(lambda x: x+1)
t.tensor([1,2,3],dtype=t.half).map_(t.tensor([1,2,3],dtype=t.half),lambda x,y: x+y)
t.tensor(1,dtype=t.half,requires_grad=True)
t.tensor(1j,requires_grad=True)
t.tensor(1,dtype=t.uint16,requires_grad=True)
(t.complex64 == t.cfloat, t.half != t.float16)
t.testing.make_tensor(2,3,dtype=t.complex64,device='cpu')
t.testing.make_tensor(2,3,dtype=t.complex128,device='cpu',low=0,high=1)
t.testing.assert_close(t.tensor([1j,2]), t.tensor([1j,2.5]))
t.testing.assert_close(t.tensor([1j,2]), t.tensor([1j,2]))
t.testing.assert_close(t.tensor([1,2],dtype=t.half), t.tensor([1,2.001],dtype=t.half))
t.testing.assert_close(t.tensor([1,2],dtype=t.bfloat16), t.tensor([1,2.01],dtype=t.bfloat16))
t.testing.assert_close(t.tensor([1,2],dtype=t.uint16), t.tensor([1,3],dtype=t.uint16))
t.testing.assert_close(t.tensor([1,2],dtype=t.uint64), t.tensor([1,2],dtype=t.uint64))
t.testing.assert_close(t.tensor([1,2],dtype=t.uint64), t.tensor([1,2**64-1],dtype=t.uint64))
t.testing.assert_close(1j, 2j)
t.half is t.float16 and t.cfloat is t.complex64 and t.cdouble is t.complex128
t.iinfo(t.uint64) == t.iinfo(t.uint64), t.finfo(t.half) == t.finfo(t.float)
[complex(t.tensor(x)) for x in (1j, 2.0, 2, True)]
[bool(t.tensor(x)) for x in (0j, 1j, 2.0)]
float(t.tensor(1.5, dtype=t.half)), float(t.tensor(1.5, dtype=t.bfloat16))
int(t.tensor(7, dtype=t.uint16)), bool(t.tensor(2, dtype=t.uint64))
t.zeros(2).half(), t.zeros(2).bfloat16(), t.zeros(2).cfloat(), t.zeros(2).chalf()
t.finfo(t.half).tiny, t.finfo(t.bfloat16).resolution, t.finfo(t.half).resolution
t.testing.make_tensor(2, 3, dtype=t.cfloat, device="cpu", requires_grad=True, noncontiguous=True)
t.testing.assert_close(t.tensor(1j), t.tensor(2j))
t.testing.assert_close(t.tensor([1.0],dtype=t.half), t.tensor([1.0]))
t.testing.assert_close(t.tensor([1.0],dtype=t.half), t.tensor([1.1]), check_dtype=False)
""".strip().splitlines()
"""Each of a library `t`; most are one call, some an error."""


def again(value: Any) -> Any:
    """A value that was pickled and unpickled."""
    return pickle.loads(pickle.dumps(value))


def evaluate(code: str, library: Any) -> str:
    """What an expression gives, as text, or its error; and what was warned of."""
    names = {"t": library, "np": np, "copy": copy, "again": again}
    library.manual_seed(0)
    library.set_default_dtype(library.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            text = repr(eval(code, names))
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
    texts = [str(each.message).split(" (Triggered")[0] for each in caught]
    texts = [each for each in texts if not each.startswith(("ComplexHalf", "TypedStorage"))]
    return "\n".join([text, *texts]).replace("pygrad", "torch")


@pytest.mark.parametrize("code", EXPRESSIONS)
def test_expression(code: str) -> None:
    assert evaluate(code, pygrad.torch) == evaluate(code, torch)


@pytest.mark.parametrize("function", ["can_cast", "promote_types"])
def test_pairs_of_dtypes(function: str) -> None:
    for a, b in itertools.product(NAMES, repeat=2):
        code = f"t.{function}(t.{a}, t.{b})"
        assert evaluate(code, pygrad.torch) == evaluate(code, torch), code


@pytest.mark.parametrize("number", ["True", "2", "1.5", "1j"])
def test_type_of_a_result_with_a_number(number: str) -> None:
    for name, shape in itertools.product(NAMES, ("", "1")):
        code = f"t.result_type(t.zeros([{shape}], dtype=t.{name}), {number})"
        assert evaluate(code, pygrad.torch) == evaluate(code, torch), code


@pytest.mark.parametrize("kind", ["iinfo", "finfo"])
@pytest.mark.parametrize("name", NAMES)
def test_limits(name: str, kind: str) -> None:
    for code in (f"t.{kind}(t.{name})", f"vars_of(t.{kind}(t.{name}))"):
        code = code.replace("vars_of", "(lambda i: (i.min, i.max, i.bits, i.dtype))")
        assert evaluate(code, pygrad.torch) == evaluate(code, torch)


@pytest.mark.parametrize("name", NAMES)
def test_description(name: str) -> None:
    dtype = f"t.{name}"
    for code in (
        f"[{dtype}.is_complex, {dtype}.is_signed, {dtype}.is_floating_point, {dtype}.itemsize]",
        f"{dtype}.to_real()",
        f"{dtype}.to_complex()",
        f"t.zeros(1, dtype={dtype}).type()",
        f"t.zeros(1, dtype={dtype}).storage_type()",
        f"t.zeros(2).type(t.zeros(1, dtype={dtype}).type())",
        f"t.set_default_dtype({dtype})",
        f"t.zeros(2, dtype={dtype}).new([1, 0])",
        f"t.ones(2, dtype={dtype}).tolist()",
        f"[f(t.ones(1, dtype={dtype})) for f in (t.is_complex, t.is_signed, t.is_floating_point)]",
    ):
        assert evaluate(code, pygrad.torch) == evaluate(code, torch), code


# ------------------------------------------------------------------ text

VALUES = [0.0, 1, -1, 1.5, 123.456, -1e-5, 1e5, 65504, np.nan, np.inf, -np.inf, 3e-7, 12345678.0]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"precision": 2},
    {"precision": 0},
    {"sci_mode": True},
    {"sci_mode": False},
    {"profile": "full"},
    {"profile": "short"},
    {"linewidth": 40},
    {"threshold": 3, "edgeitems": 1},
]
SHAPES = [(), (1,), (2,), (3,), (13,), (2, 3), (2, 2, 2), (0,), (2, 0)]


@pytest.fixture
def options(request: pytest.FixtureRequest) -> Iterator[None]:
    for library in (torch, pygrad.torch):
        library.set_printoptions(**{"profile": "default", **request.param})
    yield
    for library in (torch, pygrad.torch):
        library.set_printoptions(profile="default")


@pytest.mark.usefixtures("options")
@pytest.mark.parametrize("options", OPTIONS, indirect=True, ids=str)
@pytest.mark.parametrize(
    "name", ["float16", "bfloat16", "complex32", "complex64", "complex128", "uint16", "uint64"]
)
def test_text(name: str) -> None:
    for shape, start in itertools.product(SHAPES, (0, 3, 5, 9)):
        count = int(np.prod(shape))
        numbers: list[Any] = (VALUES * 3)[start : start + count]
        if name.startswith("complex"):
            parts = (VALUES * 3)[start + 2 : start + 2 + count]
            numbers = [complex(*pair) for pair in zip(numbers, parts, strict=True)]
        if name.startswith("uint"):
            numbers = [int(abs(v)) % 65536 if np.isfinite(v) else 7 for v in numbers]
        mine, theirs = (
            repr(t.tensor(numbers, dtype=getattr(t, name)).reshape(shape))
            for t in (pygrad.torch, torch)
        )
        assert mine == theirs


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("default", ["float16", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_text_names_what_is_not_the_default(name: str, default: str) -> None:
    for numbers in ([1, 0], []):
        texts = []
        for t in (pygrad.torch, torch):
            t.set_default_dtype(getattr(t, default))
            texts.append(repr(t.tensor(numbers, dtype=getattr(t, name))))
            t.set_default_dtype(t.float32)
        assert texts[0] == texts[1]


# ------------------------------------------------------------------ parts, memory, modules


def steps(t: Any) -> Iterator[Any]:
    """Parts of complex numbers, set; conjugates that wait, on their way out; modules, converted."""
    x = t.tensor([1 + 2j, 3 - 4j])
    x.real = t.tensor([9.0, 8.0])
    yield x.clone()
    x.imag = 5
    yield x.clone()
    yield x.conj().imag
    y = t.tensor([1.0, 2.0])
    y.real = 3
    yield y
    z = t.tensor([1j, 2]).conj()
    yield z.numpy(force=True), z.tolist(), z[0].item(), z.resolve_conj().numpy()
    yield z.untyped_storage().nbytes(), z.untyped_storage().tolist()
    copied = copy.deepcopy(z)
    yield copied, copied.is_conj(), again(z), complex(z[0]), z.data_ptr() == z.conj().data_ptr()
    for name in ("float16", "bfloat16", "complex64", "complex128"):
        module = t.nn.Linear(1, 1)
        t.nn.init.constant_(module.weight, 1.5)
        t.nn.init.constant_(module.bias, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.to(getattr(t, name))
        yield module.weight, module.state_dict()
        yield module.load_state_dict(t.nn.Linear(1, 1).state_dict()), module.weight.dtype


def test_parts_and_memory_and_modules() -> None:
    mine, theirs = ([repr(each) for each in steps(t)] for t in (pygrad.torch, torch))
    assert mine == theirs


@pytest.mark.parametrize(
    "name", ["float16", "complex64", "complex128", "uint16", "uint32", "uint64"]
)
def test_memory_is_shared_with_numpy(name: str) -> None:
    x = pygrad.ones(3, dtype=getattr(pygrad, name))
    array = x.numpy()
    assert array.dtype == name
    array[1] = 5
    again = pygrad.from_numpy(array)
    again[0] = 7
    assert x.tolist() == array.tolist() == [7, 5, 1]
    capsule = np.from_dlpack(x)
    assert capsule.dtype == name
    shared = pygrad.from_dlpack(x)
    shared[2] = 9
    assert capsule.tolist() == [7, 5, 9]
