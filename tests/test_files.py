"""PyTorch's files: what is saved comes back as it was, and a file that lies does no harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from helpers import leaves_nothing
from hostile_files import (
    PROPER_ERRORS,
    archive,
    archive_of_pickle,
    call,
    damage,
    load_bytes,
    name,
    nothing_done,
    number,
    numbers,
    records,
    replace_records,
    save_bytes,
    seeds,
    storage,
    tensor,
    text,
)

import pygrad
from pygrad import serialization
from pygrad._ground.dtypes import ALL
from pygrad.utils.serialization import config

ROOT = Path(__file__).parents[1]
FORMS = {"zip": {}, "before 1.6": {"_use_new_zipfile_serialization": False}}
in_both_forms = pytest.mark.parametrize("form", FORMS)


def again(obj: Any, form: str = "zip", **options: Any) -> Any:
    return load_bytes(save_bytes(obj, **FORMS[form]), **options)


def reload_trusted(obj: Any, **options: Any) -> Any:
    """Saved, and loaded with all that it names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_bytes(save_bytes(obj, **options), weights_only=False)


# ------------------------------------------------------------------ what comes back


@in_both_forms
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_tensor_of_any_type_comes_back(form: str, dtype: Any) -> None:
    x = pygrad.arange(6).reshape(2, 3).to(dtype)
    found = again(x, form)
    assert (found.dtype, found.tolist()) == (dtype, x.tolist())


@in_both_forms
def test_views_keep_strides_and_offset_and_share_their_storage(form: str) -> None:
    x = pygrad.arange(12.0).reshape(3, 4)
    views = [x, x.t(), x[1:, ::2], x[0].expand(2, 4)]
    found = again(views, form)
    for mine, theirs in zip(found, views, strict=True):
        assert mine.stride() == theirs.stride()
        assert mine.storage_offset() == theirs.storage_offset()
    found[0][1, 2] = -1
    assert found[1][2, 1] == found[2][0, 1] == -1


@in_both_forms
def test_tied_weights_stay_tied(form: str) -> None:
    first, last = pygrad.nn.Linear(2, 2, bias=False), pygrad.nn.Linear(2, 2, bias=False)
    last.weight = first.weight
    found = again(pygrad.nn.Sequential(first, last).state_dict(), form)
    found["0.weight"].zero_()
    assert found["1.weight"].sum() == 0


@pytest.mark.parametrize("lazy", [lambda x: x.conj(), lambda x: x.imag, lambda x: x.conj().imag])
def test_bits_of_a_lazy_tensor_come_back(lazy: Any) -> None:
    x = lazy(pygrad.tensor([1 + 2j, -3j]))
    found = again(x)
    assert (found.is_conj(), found.is_neg()) == (x.is_conj(), x.is_neg())
    assert found.tolist() == x.tolist()


@in_both_forms
def test_marks_of_a_tensor_come_back(form: str) -> None:
    plain, leaf = pygrad.ones(1), pygrad.ones(1, requires_grad=True)
    parameter = pygrad.nn.Parameter(pygrad.ones(1), requires_grad=False)
    noted = pygrad.ones(1)
    noted.note = "of the user"
    found = again([plain, leaf, parameter, noted, pygrad.nn.Buffer(pygrad.ones(1))], form)
    assert [x.requires_grad for x in found] == [False, True, False, False, False]
    assert [type(x) is pygrad.nn.Parameter for x in found] == [False, False, True, False, False]
    assert found[3].note == "of the user"
    assert isinstance(found[4], pygrad.nn.Buffer)


def test_nan_and_infinity_come_back_with_the_sign_of_zero() -> None:
    found = again(pygrad.tensor([float("nan"), float("inf"), -0.0]))
    assert str(found.tolist()) == "[nan, inf, -0.0]"


@in_both_forms
def test_plain_values_come_back(form: str) -> None:
    values = {
        "none": None,
        "numbers": [1, -1, 1 << 40, -(1 << 70), 2.5, 1j, True],
        ("a", 1): "x" * 300,
        "bytes": b"ab\xff",
        "bytearray": bytearray(b"ab"),
        "set": {1, 2},
        "counter": Counter("aab"),
        "ordered": OrderedDict([("b", 1), ("a", 2)]),
        "size": pygrad.Size([1, 2]),
        "device": pygrad.device("cpu"),
        "layout": pygrad.strided,
        "dtype": pygrad.bfloat16,
    }
    found = again(values, form)
    assert found == values
    assert [type(x) for x in found.values()] == [type(x) for x in values.values()]


def _sparse_tensors() -> dict[str, Any]:
    x = pygrad.tensor([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 3.0, 0.0]])
    batch = pygrad.stack([x, x.flip(0)])
    return {
        "COO": x.to_sparse(),
        "COO, hybrid": x.to_sparse(1),
        "COO, twice in a place": pygrad.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,)),
        "COO, empty": pygrad.sparse_coo_tensor(size=(2, 3)),
        "CSR": x.to_sparse_csr(),
        "CSC": x.to_sparse_csc(),
        "CSR, a batch": batch.to_sparse_csr(),
        "BSR": x.to_sparse_bsr((1, 2)),
        "BSC": x.to_sparse_bsc((1, 2)),
    }


@in_both_forms
@pytest.mark.parametrize("kind", list(_sparse_tensors()))
def test_sparse_tensor_comes_back(form: str, kind: str) -> None:
    x = _sparse_tensors()[kind]
    found = again({"x": x}, form)["x"]
    assert (found.layout, found.shape) == (x.layout, x.shape)
    assert found.to_dense().tolist() == x.to_dense().tolist()
    if x.layout is pygrad.sparse_coo:
        assert found.is_coalesced() == x.is_coalesced()


@in_both_forms
def test_places_outside_a_sparse_tensor_are_an_error(form: str) -> None:
    x = pygrad.ones(3).to_sparse()
    x._indices().add_(5)
    y = pygrad.ones(2, 2).to_sparse_csr()
    y.col_indices().add_(5)
    with pytest.raises(RuntimeError, match="for dim 0, size is 3 but found index 5"):
        again(x, form)
    with pytest.raises(RuntimeError, match="col_indices"):
        again([pygrad.ones(1), y], form)


def test_state_of_training_comes_back() -> None:
    def make() -> Any:
        model = pygrad.nn.Sequential(pygrad.nn.Linear(3, 4), pygrad.nn.BatchNorm1d(4))
        return model, pygrad.optim.Adam(model.parameters(), lr=0.1, amsgrad=True)

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        model(pygrad.arange(12.0).reshape(4, 3)).pow(2).sum().backward()
        optimizer.step()

    first, other = make(), make()
    step(*first)
    states = again([part.state_dict() for part in first])
    for part, state in zip(other, states, strict=True):
        part.load_state_dict(state)
    step(*first)
    step(*other)
    for name_, value in first[0].state_dict().items():
        assert value.tolist() == other[0].state_dict()[name_].tolist()


def test_storages_come_back() -> None:
    x = pygrad.tensor([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        typed = x.storage()
    found = again([typed])[0]
    assert (found.tolist(), found.dtype) == ([1.0, 2.0], pygrad.float32)
    assert again(x.untyped_storage()).tolist() == x.untyped_storage().tolist()


def test_tensor_in_a_graph_comes_back_as_a_leaf() -> None:
    x = pygrad.ones(2, requires_grad=True) * 2
    found = again(x)
    assert found.is_leaf
    assert found.requires_grad


def test_hook_is_not_saved() -> None:
    x = pygrad.ones(1, requires_grad=True)
    x.register_hook(lambda g: g * 100)
    with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
        found = again(x)
    found.backward()
    assert found.grad.item() == 1


@pytest.mark.parametrize("protocol", range(6))
def test_any_protocol_of_pickle_is_read_when_trusted(protocol: int) -> None:
    model = pygrad.nn.Sequential(pygrad.nn.Linear(1, 1), pygrad.nn.LSTM(1, 1))
    if protocol == 0:
        with pytest.raises(pickle.PicklingError, match="cannot name a storage"):
            save_bytes(model, pickle_protocol=protocol)
        return
    assert str(reload_trusted(model, pickle_protocol=protocol)) == str(model)


def test_arrays_and_objects_of_others_come_back_when_trusted() -> None:
    from argparse import Namespace

    found = reload_trusted({"array": np.arange(3), "options": Namespace(lr=0.1), "path": Path("a")})
    assert found["array"].tolist() == [0, 1, 2]
    assert (found["options"].lr, found["path"]) == (0.1, Path("a"))


def test_function_of_pygrad_comes_back_when_trusted() -> None:
    f = pygrad.nn.functional
    functions = [f.relu, f.gelu, pygrad.tanh, pygrad.Tensor.add, f.max_pool2d]
    assert reload_trusted(functions) == functions


class Halved(pygrad.Tensor):
    def __reduce_ex__(self, protocol: Any) -> Any:
        kept = super().__reduce_ex__(protocol)
        return _double, (kept,)


def _double(kept: Any) -> Any:
    function, args = kept
    return function(*args) * 2


@pytest.mark.parametrize(
    "function",
    [pygrad.add, pygrad.nn.functional.gelu, pygrad.nn.functional.linear, pygrad.fft.fft],
    ids=lambda function: function.__name__,
)
def test_builtin_is_saved_by_a_name_that_pytorch_has(function: Any) -> None:
    raw = save_bytes({"activation": function})
    assert reload_trusted({"activation": function})["activation"] is function
    assert b"_builtins" not in records(raw)["data.pkl"]


def test_names_of_results_come_back() -> None:
    found = reload_trusted(pygrad.tensor([[1.0, 3.0]]).max(1))
    assert found.values.tolist() == [3.0]
    assert isinstance(found, pygrad.return_types.max)


def test_class_with_its_own_pickle_is_asked() -> None:
    x = Halved([1.0, 2.0])
    assert reload_trusted(x).tolist() == [2.0, 4.0]
    assert b"torch._utils\n_rebuild_tensor_v2" in records(save_bytes(x))["data.pkl"]


class Noted(pygrad.Tensor):
    __slots__ = ("note",)


def test_subclass_keeps_its_class_and_slots() -> None:
    x = Noted([1.0])
    x.note, x.other = "slot", "attribute"
    with serialization.safe_globals([Noted]):
        found = again(x)
    assert (type(found), found.note, found.other) == (Noted, "slot", "attribute")


def test_engines_read_the_files_of_each_other() -> None:
    engine = pygrad.Engine()
    file = io.BytesIO()
    engine.save(engine.nn.Linear(2, 1).state_dict(), file)
    for reader in (pygrad, engine):
        file.seek(0)
        assert isinstance(reader.load(file)["weight"], reader.Tensor)


# ------------------------------------------------------------------ the file


def test_equal_objects_give_equal_files() -> None:
    def make() -> bytes:
        pygrad.manual_seed(0)
        return save_bytes(pygrad.nn.TransformerEncoderLayer(4, 2).state_dict())

    assert make() == make()


@pytest.mark.parametrize("protocol", range(6))
def test_a_plain_pickle_keeps_strides(protocol: int) -> None:
    """The pickle has the elements from the first to the last, and no others of the storage."""
    x = pygrad.arange(12.0).view(3, 4)
    wide = pygrad.ones(1).expand(1 << 20, 3)
    for given in (x.t(), x[1:, ::2], x[0].expand(3, 4), x[:0].t(), x[:, 1], wide):
        found = pickle.loads(pickle.dumps(given, protocol))
        assert (found.stride(), found.storage_offset()) == (given.stride(), 0)
        assert found.equal(given)
    assert len(pickle.dumps(wide, protocol)) < 1000
    z = pygrad.tensor([1 + 2j, -3j])[1:]
    for lazy in (z.conj(), z.conj().imag):
        found = pickle.loads(pickle.dumps(lazy, protocol))
        assert (found.is_conj(), found.is_neg()) == (lazy.is_conj(), lazy.is_neg())
        assert found.tolist() == lazy.tolist()


def test_floats_of_8_bits_are_named_or_read_as_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms of files hold them; parity compares all bytes of all types."""
    raw = bytes([0x3C, 0xC0, 0x7F, 0x01])
    rebuild = name("torch._utils", "_rebuild_tensor_v3")
    of = storage(kind="UntypedStorage", count=4)
    flat, wide = (
        call(
            rebuild,
            of,
            number(0),
            numbers(*size),
            numbers(*stride),
            b"\x89}",
            name("torch", "float8_e4m3fn"),
        )
        for size, stride in (((4,), (1,)), ((1 << 28, 4), (0, 1)))
    )
    pair = b"}(" + text("w") + flat + text("wide") + wide + text("x") + b"K\x01u"
    file = archive_of_pickle(pair, **{"data/0": raw})
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    other = len(header).to_bytes(8, "little") + header + raw
    for each, words in ((file, "stands behind the key 'w'"), (other, "tensor 'w' has dtype")):
        with pytest.raises(NotImplementedError, match=words) as error:
            load_bytes(each)
        assert "config.load.float8" in str(error.value)
        with monkeypatch.context() as patched:
            patched.setattr(config.load, "float8", "float32")
            found = load_bytes(each)
        assert found["w"][[0, 1, 3]].tolist() == [1.5, -2, 2**-9]
        assert found["w"].dtype is pygrad.float32
        assert found["w"][2].isnan()


ORDERED = """
import hashlib, io, pygrad
names = {f"n{k}" for k in range(40)}
file = io.BytesIO()
pygrad.save([names, frozenset(names)], file)
pygrad.save(names, "set.safetensors")
tensors = {f"{9 - k}": pygrad.tensor(k) for k in range(10)}
pygrad.save(tensors, "tensors.safetensors")
print(hashlib.sha256(file.getvalue() + open("set.safetensors", "rb").read()).hexdigest())
print(list(pygrad.load("tensors.safetensors")))
"""


def test_order_is_the_same_in_each_process(tmp_path: Path) -> None:
    """Files order sets and names, which Python and libraries leave to each process."""
    found = {
        subprocess.run(
            [sys.executable, "-c", ORDERED],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    header = {
        n: {"dtype": "U8", "shape": [1], "data_offsets": [k, k + 1]}
        for k, n in ((1, "a"), (0, "b"))
    }
    text = json.dumps(
        header | {"empty": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}
    ).encode()
    assert list(load_bytes(len(text).to_bytes(8, "little") + text + b"ab")) == ["empty", "b", "a"]


def test_nan_has_one_pattern() -> None:
    bits = pygrad.tensor([0x7FC00000, 0x7F800001, -1], dtype=pygrad.int32)
    patterns = again(bits.view(pygrad.float32)).view(pygrad.int32)
    assert len(set(patterns.tolist())) == 1


def test_file_is_a_sound_zip_with_aligned_records(tmp_path: Path) -> None:
    pygrad.save([pygrad.ones(3), pygrad.ones(0), pygrad.ones(5)], tmp_path / "some.name.pt")
    with zipfile.ZipFile(tmp_path / "some.name.pt") as file:
        assert file.testzip() is None
        assert {entry.filename.split("/")[0] for entry in file.infolist()} == {"some.name"}
        raw = (tmp_path / "some.name.pt").read_bytes()
        for entry in file.infolist():
            sizes = raw[entry.header_offset + 26 : entry.header_offset + 30]
            lengths = int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little")
            assert (entry.header_offset + 30 + lengths) % 64 == 0


def test_file_without_checksums_is_read() -> None:
    serialization.set_crc32_options(False)
    try:
        raw = save_bytes(pygrad.ones(2))
    finally:
        serialization.set_crc32_options(True)
    assert serialization.get_crc32_options()
    assert load_bytes(raw).tolist() == [1, 1]


def test_skipped_data_leave_their_room() -> None:
    x = pygrad.tensor([1.0, 2.0])
    with serialization.skip_data():
        raw = save_bytes(x)
        assert load_bytes(save_bytes(x)).tolist() == [0, 0]
    assert len(raw) == len(save_bytes(x))
    assert load_bytes(raw).tolist() == [0, 0]


def test_alignment_is_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config.save, "storage_alignment", 4096)
    raw = save_bytes(pygrad.ones(2))
    assert raw.index(np.ones(2, "float32").tobytes()) % 4096 == 0
    assert load_bytes(raw).tolist() == [1, 1]


def test_extension_asks_for_safetensors(tmp_path: Path) -> None:
    for path in (tmp_path / "x.safetensors", str(tmp_path / "y.safetensors")):
        pygrad.save({"x": pygrad.ones(1)}, path)
        with open(path, "rb") as file:
            assert file.read(9)[8:] == b"{"
        assert pygrad.load(path)["x"].tolist() == [1]


@pytest.mark.parametrize("extension", ["pt", "pth", "bin", "safetensors", ""])
def test_format_is_told_by_content(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"x.{extension}"
    pygrad.save({"x": pygrad.ones(1)}, tmp_path / "x.safetensors")
    plain = (tmp_path / "x.safetensors").read_bytes()
    forms = [plain]
    if extension != "safetensors":
        forms += [save_bytes({"x": pygrad.ones(1)}, **form) for form in FORMS.values()]
    for raw in forms:
        path.write_bytes(raw)
        assert pygrad.load(path)["x"].tolist() == [1]
        assert load_bytes(raw)["x"].tolist() == [1]


def test_files_that_are_open_are_read_and_written(tmp_path: Path) -> None:
    with open(tmp_path / "x.pt", "wb") as file:
        pygrad.save(pygrad.ones(1), file)
    with open(tmp_path / "x.pt", "rb") as file:
        assert pygrad.load(file).item() == 1
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        pygrad.save(pygrad.ones(1), file)
    with gzip.open(tmp_path / "x.gz", "rb") as file:
        assert pygrad.load(file).item() == 1


def test_several_objects_of_the_older_form_stand_one_after_another() -> None:
    file = io.BytesIO(
        save_bytes(1, **FORMS["before 1.6"]) + save_bytes(pygrad.ones(1), **FORMS["before 1.6"])
    )
    assert pygrad.load(file) == 1
    assert pygrad.load(file).item() == 1


def test_bytes_of_the_other_order_are_turned() -> None:
    raw = save_bytes(pygrad.tensor([1, 256], dtype=pygrad.int16))
    turned = replace_records(raw, byteorder=b"big")
    assert load_bytes(turned).tolist() == [256, 1]
    unmarked = save_bytes(
        pygrad.tensor([1, 256], dtype=pygrad.int16), _disable_byteorder_record=True
    )
    assert load_bytes(unmarked).tolist() == [1, 256]
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        assert load_bytes(unmarked).tolist() == [256, 1]
    finally:
        serialization.set_default_load_endianness(None)


def test_failed_save_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"before")
    x = pygrad.ones(2)
    for wrong in (lambda: None, [x, x.view(pygrad.int32)]):
        with pytest.raises((AttributeError, pickle.PicklingError, RuntimeError)):
            pygrad.save(wrong, path)
    assert path.read_bytes() == b"before"
    assert pickle.loads(pickle.dumps(x)).tolist() == [1, 1]  # by value, as always


def test_mapped_file_is_read(tmp_path: Path) -> None:
    pygrad.save(pygrad.ones(1), tmp_path / "x.pt")
    assert pygrad.load(tmp_path / "x.pt", mmap=True).item() == 1
    shared = serialization.set_default_mmap_options(serialization._options.MAP_SHARED)
    with shared, pytest.raises(NotImplementedError, match="MAP_SHARED"):
        pygrad.load(tmp_path / "x.pt", mmap=True)


# ------------------------------------------------------------------ what a file may name


def test_unpickling_warns_once_and_is_not_the_default() -> None:
    raw = save_bytes(pygrad.nn.Linear(1, 1))
    pygrad._ground.warnings._given.discard("unpickling")
    with pytest.warns(UserWarning, match="runs whatever code the file names"):
        load_bytes(raw, weights_only=False)
    load_bytes(raw, weights_only=False)
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.linear.Linear"):
        load_bytes(raw)


def test_environment_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = save_bytes(pygrad.nn.Linear(1, 1))
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError):
        load_bytes(raw, weights_only=False)


def test_module_is_loaded_once_its_parts_are_allowed() -> None:
    model = pygrad.nn.Sequential(pygrad.nn.Linear(2, 1), pygrad.nn.ReLU())
    raw = save_bytes(model)
    file = io.BytesIO(raw)
    wanted = serialization.get_unsafe_globals_in_checkpoint(file)
    assert wanted == [
        "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear",
        "torch.nn.modules.activation.ReLU",
    ]
    nn = pygrad.nn
    with serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(raw)) == []
        found = load_bytes(raw)
    assert found(pygrad.ones(2)).item() == model(pygrad.ones(2)).item()
    with pytest.raises(pickle.UnpicklingError, match="Sequential"):
        load_bytes(raw)


def test_allowed_name_may_be_another() -> None:
    raw = archive_of_pickle(call(name("gone.module", "function"), text("a")))
    with serialization.safe_globals([(str.upper, "gone.module.function")]):
        assert load_bytes(raw) == "A"


def test_class_of_pytorch_that_is_not_here_is_named() -> None:
    raw = archive_of_pickle(call(name("torch.nn.modules.nowhere", "Nothing")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(AttributeError, match=r"names torch\.nn\.modules\.nowhere\.Nothing"):
            load_bytes(raw, weights_only=False)


# ------------------------------------------------------------------ where storages go


def test_places_are_mapped() -> None:
    raw = archive_of_pickle(tensor(storage(at="cuda:1")), **{"data/0": bytes(16)})
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        load_bytes(raw)
    for where in ("cpu", pygrad.device("cpu"), {"cuda:1": "cpu"}, lambda storage, _: storage):
        assert load_bytes(raw, map_location=where).tolist() == [0] * 4
    seen: list[Any] = []
    load_bytes(raw, map_location=lambda storage, tag: seen.append((len(storage), tag)) or storage)
    assert seen == [(16, "cuda:1")]


@in_both_forms
def test_tensors_on_meta_have_places_but_no_bytes(form: str) -> None:
    x = pygrad.arange(12.0).reshape(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = again([x, x.t()[1:]], form, map_location="meta")
        bare = again(pygrad.nn.Parameter(pygrad.ones(2, 3, device="meta")), form)
    assert (first.device.type, first.dtype, first.stride()) == ("meta", x.dtype, (4, 1))
    assert (second.shape, second.stride(), second.storage_offset()) == ((3, 3), (1, 4), 1)
    assert (type(bare), bare.shape, bare.is_meta) == (pygrad.nn.Parameter, (2, 3), True)


def test_bytes_are_not_read_for_meta() -> None:
    raw = GOOD.replace(np.arange(4, dtype="float32").tobytes(), b"damaged bytes ..")
    assert raw != GOOD
    assert load_bytes(raw, map_location="meta")["x"].is_meta
    with pytest.raises(RuntimeError, match="CRC-32"):
        load_bytes(raw)


def test_package_of_the_user_is_asked_in_its_turn() -> None:
    taggers = serialization._locations._taggers
    before = [*taggers]
    try:
        serialization.register_package(
            5, lambda storage: "mine", lambda storage, tag: storage if tag == "mine" else None
        )
        raw = save_bytes(pygrad.ones(1))
        assert b"mine" in records(raw)["data.pkl"]
        assert load_bytes(raw).item() == 1
    finally:
        taggers[:] = before
    with pytest.raises(RuntimeError, match=r"don't know how to restore .* \(tagged with mine\)"):
        load_bytes(raw)


# ------------------------------------------------------------------ files that lie

GOOD = save_bytes({"x": pygrad.arange(4.0), "y": [1, "a"]})
DATA = {"data/0": bytes(16)}
DEEP = 200_000
TUPLES_OF_TUPLES = b")" + b"q\x00h\x00\x86" * 64
"""A tuple of 2 ** 64 parts, in 300 bytes."""


def _lying(**changes: Any) -> bytes:
    return archive_of_pickle(tensor(**{"of": storage(), **changes}), **DATA)


HOSTILE = {
    "a command": archive_of_pickle(call(name("posix", "system"), text("touch boom"))),
    "a command by os": archive_of_pickle(call(name("os", "system"), text("touch boom"))),
    "a process": archive_of_pickle(call(name("subprocess", "Popen"), text("boom"))),
    "an expression": archive_of_pickle(
        call(name("__builtin__", "eval"), text("open('boom', 'w')"))
    ),
    "an import": archive_of_pickle(call(name("builtins", "__import__"), text("os"))),
    "an attribute": archive_of_pickle(
        call(name("builtins", "getattr"), name("torch", "Tensor"), text("a"))
    ),
    "a dotted name": archive_of_pickle(name("torch", "serialization.os.system")),
    "a name within a name": archive_of_pickle(name("torch.Tensor", "__init__.__globals__")),
    "a function of pygrad": archive_of_pickle(call(name("pygrad", "load"), text("boom"))),
    "an instruction that imports": archive_of_pickle(b"\x8c\x02os\x8c\x06system\x93"),
    "an old instance": archive_of_pickle(b"(ios\nsystem\n"),
    "an extension": archive_of_pickle(b"\x82\x01"),
    "a call of a string": archive_of_pickle(call(text("upper"), text("a"))),
    "a call of a dtype": archive_of_pickle(call(name("torch", "float32"), text("a"))),
    "a call of a tensor": archive_of_pickle(call(tensor(storage()), number(1)), **DATA),
    "a call of a list": archive_of_pickle(b"]" * 1 + b")R"),
    "a new string": archive_of_pickle(text("a") + b")\x81"),
    "the handle of a tensor": archive_of_pickle(
        call(
            name("torch._tensor", "_rebuild_from_type_v2"),
            name("torch._utils", "_rebuild_tensor_v2"),
            name("torch", "Tensor"),
            b"(" + storage() + number(0) + numbers(4) + numbers(1) + b"\x89}t",
            b"(N}" + text("_h") + number(8) + b"st",
        ),
        **DATA,
    ),
    "a type that is none": archive_of_pickle(
        call(
            name("torch._tensor", "_rebuild_from_type_v2"),
            name("torch", "Size"),
            name("torch", "device"),
            b")",
            b"}",
        )
    ),
    "a state for a list": archive_of_pickle(b"]}b"),
    "sizes for a tensor": archive_of_pickle(call(name("torch", "Tensor"), number(1 << 40))),
    "sizes for a storage": archive_of_pickle(
        call(name("torch.storage", "UntypedStorage"), number(1 << 40))
    ),
    "sizes for a bytearray": archive_of_pickle(
        call(name("builtins", "bytearray"), number(1 << 40))
    ),
    "another codec": archive_of_pickle(call(name("_codecs", "encode"), text("a"), text("rot13"))),
    "another word for a storage": archive_of_pickle(b"(" + text("module") + b"tQ"),
    "a storage that is a string": archive_of_pickle(text("0") + b"Q"),
    "a storage of no class": archive_of_pickle(
        b"(" + text("storage") + b"N" + text("0") * 2 + b"K\x00tQ"
    ),
    "a record that is not there": _lying(of=storage("1")),
    "a path that leaves the archive": _lying(of=storage("../../../etc/passwd")),
    "an absolute path": _lying(of=storage("/etc/passwd")),
    "a key that is a number": archive_of_pickle(
        b"("
        + text("storage")
        + name("torch", "FloatStorage")
        + number(0)
        + text("cpu")
        + b"K\x04tQ"
    ),
    "a place that is no word": archive_of_pickle(
        b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + b"}K\x04tQ", **DATA
    ),
    "a storage that is too large": _lying(of=storage(count=5)),
    "a storage that is too small": _lying(of=storage(count=3)),
    "a storage of terabytes": _lying(of=storage(count=1 << 50)),
    "a storage of a negative size": _lying(of=storage(count=-4)),
    "a tensor beyond its storage": _lying(size=(5,)),
    "an offset beyond the storage": _lying(offset=4),
    "an offset before the storage": _lying(offset=-1),
    "a stride beyond the storage": _lying(size=(2,), stride=(4,)),
    "a negative stride": _lying(stride=(-1,)),
    "a negative size": _lying(size=(-4,)),
    "sizes that overflow": _lying(size=(1 << 33, 1 << 33), stride=(0, 0)),
    "a size of a hundred bits": _lying(size=(1 << 100,), stride=(0,)),
    "more sizes than strides": _lying(size=(2, 2)),
    "a thousand dimensions": _lying(size=(1,) * 1000, stride=(1,) * 1000),
    "sizes of text": archive_of_pickle(
        call(name("torch._utils", "_rebuild_tensor"), storage(), b"K\x00", text("4"), text("1")),
        **DATA,
    ),
    "a storage of a class of tensors": archive_of_pickle(
        b"(" + text("storage") + name("torch", "Tensor") + text("0") + text("cpu") + b"K\x04tQ",
        **DATA,
    ),
    "gradients of integers": archive_of_pickle(
        call(
            name("torch._utils", "_rebuild_tensor_v2"),
            storage(kind="IntStorage"),
            number(0),
            numbers(4),
            numbers(1),
            b"\x88}",
        ),
        **DATA,
    ),
    "a hook that is none": archive_of_pickle(
        call(
            name("torch._utils", "_rebuild_tensor_v2"),
            storage(),
            number(0),
            numbers(4),
            numbers(1),
            b"\x88}K\x00" + text("a") + b"s",
        ),
        **DATA,
    ),
    "a tuple that is too large to hash": archive_of_pickle(b"}", TUPLES_OF_TUPLES, b"Ns"),
    "a tuple that is too large for a set": archive_of_pickle(
        call(name("builtins", "set"), b"]" + TUPLES_OF_TUPLES + b"a")
    ),
    "a tuple that is too deep to hash": archive_of_pickle(b"})", b"\x85" * DEEP, b"Ns"),
    "a list for a key": archive_of_pickle(b"}]Ns"),
    "nothing on the stack": archive_of_pickle(b"R"),
    "no mark": archive_of_pickle(b"t"),
    "a key without a value": archive_of_pickle(b"}(Nu"),
    "a memo that is empty": archive_of_pickle(b"h\x07"),
    "a text of 4 GB": archive_of_pickle(b"X\xff\xff\xff\xff"),
    "text that is none": archive_of_pickle(b"X\x01\x00\x00\x00\xff"),
    "names that are none": archive_of_pickle(b"c\xff\n\xff\n"),
    "a name without an end": archive_of_pickle(b"c" + b"a" * 100_000),
    "a pickle without an end": archive({"data.pkl": b"\x80\x02N", "version": b"3"}),
    "no pickle": replace_records(GOOD, datapkl=None),
    "no version": replace_records(GOOD, version=None),
    "a version to come": replace_records(GOOD, version=b"99"),
    "a version that is none": replace_records(GOOD, version=b"x" * 1000),
    "another byte order": replace_records(GOOD, byteorder=b"middle" * 1000),
    "a script": replace_records(GOOD, constantspkl=b""),
    "no records": archive({}),
    "records in no folder": archive({"data.pkl": b"N."}, folder=""),
    "no zip file": b"PK\x03\x04" + bytes(100),
    "an empty file": b"",
    "text": b"hello world",
    "a number of another program": pickle.dumps(7, 2),
    "a tar file": bytes(257) + b"ustar" + bytes(250),
    "an older file of terabytes": save_bytes([pygrad.ones(4)], **FORMS["before 1.6"]).replace(
        b"K\x04N", b"J\xff\xff\xff\x7fN"
    ),
    "an older file with views": save_bytes([pygrad.ones(4)], **FORMS["before 1.6"]).replace(
        b"K\x04Nt", b"K\x04(" + text("v") + b"K\x01K\x02tt"
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.filterwarnings("ignore:'torch.load' received a zip file")
@leaves_nothing
def test_file_that_lies_is_an_error(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with nothing_done(), pytest.raises(PROPER_ERRORS) as caught:
        load_bytes(HOSTILE[case])
    assert not isinstance(caught.value, (pygrad.EngineError, MemoryError, RecursionError))
    assert os.listdir(tmp_path) == []


def test_forbidden_name_is_in_the_error_with_a_way_out() -> None:
    with pytest.raises(pickle.UnpicklingError) as caught:
        load_bytes(archive_of_pickle(call(name("mymodule", "Config"))))
    assert "Weights only load failed" in str(caught.value)
    assert "GLOBAL mymodule.Config was not an allowed global by default" in str(caught.value)
    assert "torch.serialization.add_safe_globals([mymodule.Config])" in str(caught.value)


@in_both_forms
@leaves_nothing
def test_file_cut_anywhere_is_an_error(form: str) -> None:
    raw = save_bytes({"x": pygrad.arange(4.0), "y": [1, "a"]}, **FORMS[form])
    for end in range(len(raw)):
        with pytest.raises(PROPER_ERRORS):
            load_bytes(raw[:end])


@leaves_nothing
def test_changed_byte_of_the_data_is_an_error() -> None:
    at = GOOD.index(np.arange(4, dtype="float32").tobytes())
    raw = bytearray(GOOD)
    raw[at + 5] ^= 1
    with pytest.raises(RuntimeError, match="CRC-32"):
        load_bytes(bytes(raw))


@leaves_nothing
def test_deep_lists_are_loaded() -> None:
    found = load_bytes(archive_of_pickle(b"]" * DEEP, b"a" * (DEEP - 1)))
    depth = 1
    while found:
        (found,) = found
        depth += 1
    assert depth == DEEP


@leaves_nothing
def test_records_that_overlap_are_an_error() -> None:
    """As in a zip bomb, whose entries all show the same bytes."""
    raw = bytearray(save_bytes([pygrad.ones(4), pygrad.zeros(4)]))
    entries = [raw.index(b"PK\x01\x02", 0)]
    while (at := raw.find(b"PK\x01\x02", entries[-1] + 1)) > 0:
        entries.append(at)
    first, second = entries[4], entries[5]
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]
    with pytest.raises(RuntimeError, match="overlaps another record"):
        load_bytes(bytes(raw))


@leaves_nothing
def test_compressed_zeros_do_not_grow_beyond_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = {f"data/{k}": bytes(1 << 20) for k in range(8)}
    storages = b"".join(storage(str(k), 1 << 18) for k in range(8))
    head = {"data.pkl": b"\x80\x02]" + b"(" + storages + b"e.", "version": b"3"}
    raw = archive({**head, **zeros}, compressed=True)
    assert len(load_bytes(raw)) == 8
    monkeypatch.setattr(serialization._archive, "_LARGEST_PLAIN", 1 << 21)
    with pytest.raises(RuntimeError, match="compressed records are too large"):
        load_bytes(raw)


@leaves_nothing
def test_record_that_says_too_small_a_size_is_not_unpacked_further() -> None:
    raw = bytearray(archive({"data.pkl": b"\x80\x02N." * (1 << 20), "version": b"3"}, True))
    at = raw.index(b"PK\x01\x02")
    raw[at + 24 : at + 28] = (5).to_bytes(4, "little")
    with pytest.raises(RuntimeError, match="unexpected decompressed size"):
        load_bytes(bytes(raw))


# ------------------------------------------------------------------ files at random

FUZZED = int(os.environ.get("PYGRAD_FUZZED_FILES", "400"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", range(4))
@leaves_nothing
def test_damaged_file_is_loaded_or_an_error(batch: int) -> None:
    random = Random(batch)
    good = seeds()
    found = Counter[str]()
    with nothing_done():
        for _ in range(FUZZED // 4):
            raw = damage(random.choice(good), random)
            try:
                load_bytes(raw)
            except PROPER_ERRORS as error:
                assert not isinstance(error, (pygrad.EngineError, RecursionError))
                found[type(error).__name__] += 1
            else:
                found["loaded"] += 1
    assert {"loaded", "UnpicklingError", "RuntimeError"} <= found.keys()
