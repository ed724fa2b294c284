"""save and load: safetensors, by value, without unpickling."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import pygrad
from pygrad._ground.dtypes import ALL

NAMED = [dtype.name for dtype in ALL if dtype.name not in ("complex32", "complex128")]
"""The dtypes that safetensors files have names for."""


def tensors() -> dict[str, Any]:
    return {d.name: pygrad.arange(6).reshape(2, 3).to(d) for d in ALL if d.name in NAMED}


def test_saved_tensors_are_loaded(tmp_path: Path) -> None:
    pygrad.save(tensors(), tmp_path / "t.safetensors")
    loaded = pygrad.load(tmp_path / "t.safetensors")
    for name, tensor in tensors().items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].tolist() == tensor.tolist()


def test_file_is_read_by_others(tmp_path: Path) -> None:
    given = {name: tensor for name, tensor in tensors().items() if name != "bfloat16"}
    pygrad.save(given, tmp_path / "t.safetensors")
    for name, array in load_file(tmp_path / "t.safetensors").items():
        np.testing.assert_array_equal(array, given[name].numpy())


def test_file_is_the_one_that_its_library_writes(tmp_path: Path) -> None:
    given = {name: tensor for name, tensor in tensors().items() if name != "bfloat16"}
    pygrad.save(given, tmp_path / "a.safetensors")
    save_file({name: tensor.numpy() for name, tensor in given.items()}, tmp_path / "b.safetensors")
    (mine, header), (theirs, other) = (parts_of(tmp_path / f"{name}.safetensors") for name in "ab")
    del header["__metadata__"]
    assert header == other
    assert mine == theirs


def parts_of(path: Path) -> tuple[bytes, Any]:
    """The data and the header of a safetensors file."""
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    return raw[end:], json.loads(raw[8:end])


@pytest.mark.parametrize("name", ["complex32", "complex128"])
def test_complex_type_without_a_name_is_saved_by_its_parts(tmp_path: Path, name: str) -> None:
    x = pygrad.tensor([[1 + 2j, -0.5j]], dtype=getattr(pygrad, name), requires_grad=True)
    pygrad.save({"x": x}, tmp_path / "t.safetensors")
    assert load_file(tmp_path / "t.safetensors")["x"].tolist() == [[[1, 2], [0, -0.5]]]
    again = pygrad.load(tmp_path / "t.safetensors")["x"]
    assert (again.dtype, again.tolist(), again.requires_grad) == (x.dtype, x.tolist(), True)


def test_bits_of_a_half_are_saved(tmp_path: Path) -> None:
    bits = pygrad.tensor([0x3C01, -0x7FFF, 0x0001, 0x7C00], dtype=pygrad.int16)
    for dtype in (pygrad.float16, pygrad.bfloat16):
        pygrad.save([bits.view(dtype)], tmp_path / "t.safetensors")
        (again,) = pygrad.load(tmp_path / "t.safetensors")
        assert again.view(pygrad.int16).tolist() == bits.tolist()


def test_conjugate_that_waits_is_saved_as_it_reads(tmp_path: Path) -> None:
    x = pygrad.tensor([1 + 2j, -3j]).conj()
    pygrad.save([x, x.imag], tmp_path / "t.safetensors")
    again, imaginary = pygrad.load(tmp_path / "t.safetensors")
    assert again.tolist() == [1 - 2j, 3j]
    assert imaginary.tolist() == [-2, 3]


def test_file_of_others_is_read(tmp_path: Path) -> None:
    save_file({"a": np.arange(4.0)}, tmp_path / "t.safetensors")
    assert pygrad.load(tmp_path / "t.safetensors")["a"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "layout", [lambda x: x.t(), lambda x: x[:, ::2], lambda x: x[0].expand(2, 3)]
)
def test_any_layout_is_saved_by_value(tmp_path: Path, layout: Any) -> None:
    x = layout(pygrad.arange(6.0).reshape(2, 3))
    pygrad.save({"x": x}, tmp_path / "t.safetensors")
    assert pygrad.load(tmp_path / "t.safetensors")["x"].tolist() == x.tolist()


def test_state_dict_makes_the_round_trip(tmp_path: Path) -> None:
    a, b = pygrad.nn.Linear(3, 2), pygrad.nn.Linear(3, 2)
    pygrad.save(a.state_dict(), tmp_path / "t.safetensors")
    b.load_state_dict(pygrad.load(tmp_path / "t.safetensors"))
    assert a.weight.tolist() == b.weight.tolist()


def test_pickle_is_refused_and_not_executed(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "boom",))

    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(Exception) as caught:  # noqa: PT011
        pygrad.load(tmp_path / "evil.pt")
    assert not isinstance(caught.value, pygrad.EngineError)
    assert not (tmp_path / "boom").exists()


def test_parameters_come_back_as_such(tmp_path: Path) -> None:
    given = {
        f"{kind} {requires_grad}": make(pygrad.ones(1)).requires_grad_(requires_grad)
        for kind, make in (("tensor", pygrad.clone), ("parameter", pygrad.nn.Parameter))
        for requires_grad in (False, True)
    }
    pygrad.save(given, tmp_path / "t.safetensors")
    for name, found in pygrad.load(tmp_path / "t.safetensors").items():
        assert type(found) is type(given[name])
        assert found.requires_grad is given[name].requires_grad


def test_tensors_whose_paths_are_alike_stay_apart(tmp_path: Path) -> None:
    given = {"a.b": pygrad.zeros(1), "a": {"b": pygrad.ones(1), "b_": pygrad.ones(1) * 2}}
    given["__metadata__"] = pygrad.ones(1) * 3
    pygrad.save(given, tmp_path / "t.safetensors")
    found = pygrad.load(tmp_path / "t.safetensors")
    assert (found["a.b"].item(), found["a"]["b"].item(), found["a"]["b_"].item()) == (0, 1, 2)
    assert found["__metadata__"].item() == 3


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 20, -1])
def test_damaged_file_is_an_error(tmp_path: Path, cut: int) -> None:
    pygrad.save(tensors(), tmp_path / "t.safetensors")
    raw = (tmp_path / "t.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(raw[:cut])
    with pytest.raises((RuntimeError, ValueError, EOFError)):
        pygrad.load(tmp_path / "cut.safetensors")


def test_buffers_are_files_too() -> None:
    buffer = io.BytesIO()
    pygrad.save({"x": pygrad.ones(2)}, buffer)
    buffer.seek(0)
    assert pygrad.load(buffer)["x"].tolist() == [1, 1]


def test_nan_is_saved_with_one_pattern(tmp_path: Path) -> None:
    pygrad.save({"x": pygrad.zeros(1) / 0}, tmp_path / "a.safetensors")
    pygrad.save({"x": pygrad.tensor([float("nan")])}, tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
