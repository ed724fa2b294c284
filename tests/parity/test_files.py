"""Files that go both ways between PyTorch and pygrad: states, whole modules, training, errors."""

from __future__ import annotations

import inspect
import io
import operator
import os
import pickle
import re
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hostile_files import (
    archive,
    archive_of_pickle,
    call,
    name,
    number,
    numbers,
    replace_records,
    storage,
    text,
)
from hostile_files import tensor as tensor_of
from oracle import result_or_error

import pygrad
from pygrad._install.stand_ins import is_stand_in
from pygrad.serialization._globals import torch_name

pytestmark = pytest.mark.filterwarnings("ignore")
WAYS = {"from torch": (torch, pygrad), "to torch": (pygrad, torch)}
both_ways = pytest.mark.parametrize("way", WAYS)
FORMS = {"zip": {}, "before 1.6": {"_use_new_zipfile_serialization": False}}


def save(t: Any, obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    t.save(obj, file, **options)
    return file.getvalue()


def load(t: Any, raw: bytes, **options: Any) -> Any:
    return t.load(io.BytesIO(raw), **options)


# ------------------------------------------------------------------ the same bytes

OBJECTS: dict[str, Callable[[Any], Any]] = {}


def an_object(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    OBJECTS[make.__name__] = make
    return make


def model_of(t: Any) -> Any:
    """A model whose weights are the same in each library."""
    nn = t.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Linear(3, 1))
    with t.no_grad():
        for k, parameter in enumerate(model.parameters()):
            parameter.copy_(t.arange(parameter.numel()).reshape(parameter.shape).sub(2 + k) / 8)
    return model


def trained(t: Any, optimizer: str, **options: Any) -> Any:
    """Its optimizer after a step whose gradients are 1."""
    model = model_of(t)
    made = getattr(t.optim, optimizer)(model.parameters(), **options)
    for parameter in model.parameters():
        parameter.grad = t.ones_like(parameter)
    made.step()
    return made


@an_object
def state_of_a_model(t: Any) -> Any:
    return model_of(t).state_dict()


@an_object
def state_of_adam(t: Any) -> Any:
    return trained(t, "Adam", amsgrad=True).state_dict()


@an_object
def state_of_sgd(t: Any) -> Any:
    return trained(t, "SGD", lr=0.5, momentum=0.5).state_dict()


@an_object
def state_of_a_schedule(t: Any) -> Any:
    return t.optim.lr_scheduler.StepLR(trained(t, "SGD", lr=0.5), 2).state_dict()


@an_object
def views(t: Any) -> Any:
    x = t.arange(12.0).reshape(3, 4)
    return [x, x.t(), x[1:, ::2], x[0].expand(3, 4), x[2, 2], x[:0]]


@an_object
def tied_weights(t: Any) -> Any:
    model = model_of(t)
    return {"encoder": model[0].weight, "decoder": model[0].weight, "row": model[0].weight[1]}


@an_object
def lazy_tensors(t: Any) -> Any:
    x = t.tensor([1 + 2j, -3j])
    return x.conj(), x.clone().conj().imag


@an_object
def all_types(t: Any) -> Any:
    wide = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool"
    names = f"{wide} complex32 complex64 complex128".split()
    return {n: (t.arange(4).to(getattr(t, n)), getattr(t, n)) for n in names}


@an_object
def marked_tensors(t: Any) -> Any:
    noted = t.ones(2)
    noted.note = {"of": ["the", "user"]}
    frozen = t.nn.Parameter(t.ones(2), requires_grad=False)
    also = t.nn.Parameter(t.ones(2))
    also.tag = "head"
    return [t.ones(2, requires_grad=True), frozen, also, noted, t.nn.Buffer(t.ones(2))]


@an_object
def tensors_without_elements(t: Any) -> Any:
    return [t.ones(2, 3, device="meta").t(), t.nn.Parameter(t.ones(2, device="meta"))]


@an_object
def plain_values(t: Any) -> Any:
    places = t.Size([1, 2]), t.device("cpu"), t.device("cuda", 1), t.strided
    return [*places, {1, 2}, b"ab", bytearray(b"x"), 1j, None, True, 1 << 40, -(1 << 70), 2.5]


@an_object
def empty_and_bare_storages(t: Any) -> Any:
    return [t.ones(0), t.ones(0, 3), t.ones(2).untyped_storage()]


@an_object
def more_records_than_one_byte_counts(t: Any) -> Any:
    return {f"layer.{k}.weight": t.full((2,), float(k)) for k in range(300)}


def without_identifier(raw: bytes) -> bytes:
    """PyTorch computes it by a function of its C++ library."""
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        entry = file.getinfo("archive/.data/serialization_id")
        identifier, crc = file.read(entry), entry.CRC.to_bytes(4, "little")
    assert len(identifier) == 40
    return raw.replace(identifier, b"?" * 40).replace(crc, b"????")


@pytest.mark.parametrize("case", OBJECTS)
def test_file_is_the_one_that_pytorch_writes(case: str) -> None:
    mine, theirs = (save(t, OBJECTS[case](t)) for t in (pygrad, torch))
    assert without_identifier(mine) == without_identifier(theirs)


def describe(value: Any) -> Any:
    """What there is to an object, tensors with their places in memory."""
    if isinstance(value, (torch.Tensor, pygrad.Tensor)):
        layout = tuple(value.shape), value.stride(), value.storage_offset(), str(value.dtype)
        marks = value.requires_grad, value.is_conj(), value.is_neg(), type(value).__name__
        elements = "none" if value.is_meta else str(value.detach().tolist())
        return layout, marks, elements, describe(vars(value))
    if isinstance(value, dict):
        return type(value).__name__, [(describe(k), describe(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [describe(each) for each in value]
    return str(value)


@both_ways
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", OBJECTS)
def test_object_is_read_as_it_was_written(case: str, form: str, way: str) -> None:
    if form != "zip" and case in ("all_types", "empty_and_bare_storages"):
        pytest.skip("PyTorch does not read its own files of that form")
    writer, reader = WAYS[way]
    raw = save(writer, OBJECTS[case](writer), **FORMS[form])
    assert describe(load(reader, raw)) == describe(load(writer, raw))


def geometries(t: Any) -> dict[str, Any]:
    """Tensors of all kinds of places in their storages."""
    x, z = t.arange(12.0).reshape(3, 4), t.tensor([1 + 2j, -3j, 4])
    tagged = x.t()
    tagged.note = ["of the user"]
    return {
        "transposed": x.t(),
        "every other": x[1:, ::2],
        "expanded": x[0].expand(3, 4),
        "overlapping": x.as_strided((3, 3), (1, 1)),
        "element": x[2, 2],
        "channels last": t.ones(2, 3, 4, 5).to(memory_format=t.channels_last),
        "none, transposed": x[:0].t(),
        "one, transposed": t.ones(1, 5).t(),
        "conjugate": z[1:].conj(),
        "negative": z.conj().imag,
        "bools": (x > 3).t(),
        "halves": x.bfloat16().t(),
        "parameter": t.nn.Parameter(x.t()),
        "noted": tagged,
        "requiring grad": x.t().requires_grad_(),
    }


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("case", geometries(torch))
def test_plain_pickles_keep_what_those_of_pytorch_keep(case: str, protocol: int) -> None:
    def again(t: Any) -> Any:
        found = pickle.loads(pickle.dumps(geometries(t)[case], protocol))
        (shape, strides, _, kind), *rest = describe(found)
        return shape, strides, kind, rest  # an offset is that of the elements that were pickled

    assert again(pygrad) == again(torch)


def make_objects(t: Any) -> dict[str, Any]:
    """Objects that PyTorch's files may hold besides plain tensors."""
    nested, x = t.nested, t.arange(6.0).reshape(2, 3)
    parts = [t.ones(2, 3), t.zeros(4, 3)]
    jagged = nested.nested_tensor(parts, layout=t.jagged)
    linear = t.nn.Linear(2, 3)
    names = "max.dim min.dim sort.stable svd qr".split()
    return {
        "jagged": jagged,
        "jagged, transposed": jagged.transpose(1, 2),
        "jagged with holes": nested.narrow(
            t.ones(2, 4), 1, t.tensor([0, 1]), t.tensor([2, 3]), t.jagged
        ),
        "jagged, requiring grad": nested.nested_tensor(parts, layout=t.jagged, requires_grad=True),
        "nested": nested.nested_tensor(parts),
        "coo": x.to_sparse(),
        "csr": x.to_sparse_csr(),
        "csc": x.to_sparse_csc(),
        "bsr": t.eye(4).to_sparse_bsr((2, 2)),
        "bsc": t.eye(4).to_sparse_bsc((2, 2)),
        "meta": t.ones(2, 3, device="meta").t(),
        "packed": t.nn.utils.rnn.pack_sequence([t.ones(3), t.zeros(2)]),
        "values and places": x.max(1),
        "decomposed": t.linalg.qr(t.eye(2)),
        "functions": [t.nn.functional.relu, t.nn.init.ones_, t.utils.data.default_collate],
        "classes": [t.nn.Linear, t.Tensor, t.optim.Adam, t.float32, t.Size],
        "layouts": [t.strided, t.sparse_coo, t.device("cpu")],
        "uninitialized": t.nn.LazyLinear(3).weight,
        "module": t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2)),
        "optimizer": t.optim.AdamW([t.nn.Parameter(t.ones(2))]),
        "averaged": t.optim.swa_utils.AveragedModel(t.nn.Linear(1, 1)),
        "dataset": t.utils.data.TensorDataset(x, x),
        "normal": t.distributions.Normal(t.zeros(2), 1.0),
        "state of random numbers": t.manual_seed(3).get_state(),
        "storage": t.storage.TypedStorage(
            wrap_storage=x.untyped_storage(), dtype=t.float32, _internal=True
        ),
        "bytes": x.untyped_storage(),
        "hooked": linear.register_forward_pre_hook(print) and None,
        "containers": [defaultdict(list, a=[x]), OrderedDict(a=1), Counter("aab"), {1, 2}],
        "plain": [
            frozenset("a"),
            slice(1, None, 2),
            range(3),
            1j,
            Fraction(1, 3),
            partial(int, "1"),
        ],
        "names": names,
    }


@pytest.mark.parametrize("case", make_objects(pygrad))
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_pytorch_s_files_hold_is_read(case: str, weights_only: bool) -> None:
    """pygrad reads the file as PyTorch does, or refuses it as PyTorch does."""
    raw = save(torch, make_objects(torch)[case])

    def read(t: Any) -> Any:
        try:
            found = t.load(io.BytesIO(raw), weights_only=weights_only)
        except Exception as error:
            return type(error).__name__
        text = str(found) if not isinstance(found, list) else str([str(each) for each in found])
        text = re.sub(r"\bpygrad\.(torch\.)?", "torch.", text)
        return re.sub(r" at 0x\w+|\bj\d+|, device=.?meta.?", "", text)

    assert read(pygrad) == read(torch)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"])
def test_each_float_of_8_bits_is_read(
    kind: str, weights_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtype = getattr(torch, f"float8_{kind}")
    x = torch.arange(256, dtype=torch.uint8).view(dtype).view(16, 16)
    raw = save(torch, {"x": x, "view": x.t(), "dtype": dtype})
    monkeypatch.setattr(pygrad.utils.serialization.config.load, "float8", "float32")
    found = pygrad.load(io.BytesIO(raw), weights_only=weights_only)
    for mine, theirs in ((found["x"], x), (found["view"], x.t())):
        assert mine.stride() == theirs.stride()
        np.testing.assert_array_equal(mine.numpy(), theirs.float().numpy())
        assert (mine.signbit() | mine.isnan()).tolist() == (
            theirs.float().signbit() | theirs.float().isnan()
        ).tolist()
    assert str(found["dtype"]) == str(dtype)
    found["x"].zero_()
    assert not found["view"].any()


@both_ways
def test_storages_are_shared_when_read(way: str) -> None:
    writer, reader = WAYS[way]
    first, second, *_ = load(reader, save(writer, views(writer)))
    first[1, 2] = -1
    assert second[2, 1] == -1


@both_ways
@pytest.mark.parametrize("form", FORMS)
def test_sparse_tensors_go_to_the_other_library(form: str, way: str) -> None:
    def make(t: Any) -> list[Any]:
        x = t.tensor([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 3.0, 0.0]])
        twice = t.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (3,))
        compressed = [x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((1, 2))]
        return [x.to_sparse(), x.to_sparse(1), twice, *compressed, x.to_sparse_bsc((1, 2))]

    writer, reader = WAYS[way]
    found = load(reader, save(writer, make(writer), **FORMS[form]))
    for mine, theirs in zip(found, make(writer), strict=True):
        assert str(mine.layout) == str(theirs.layout)
        assert mine.to_dense().tolist() == theirs.to_dense().tolist()
        if str(mine.layout) == "torch.sparse_coo":
            assert mine.is_coalesced() == theirs.is_coalesced()


FUNCTIONS = "add tanh conv2d einsum special.erf linalg.norm fft.fft Tensor.add nn.functional.relu "
FUNCTIONS += "nn.functional.gelu nn.functional.linear nn.functional.scaled_dot_product_attention"


@both_ways
@pytest.mark.parametrize("path", FUNCTIONS.split())
def test_function_goes_to_the_other_library(path: str, way: str) -> None:
    writer, reader = WAYS[way]
    raw = save(writer, {"function": operator.attrgetter(path)(writer)})
    found = load(reader, raw, weights_only=False)["function"]
    assert found == operator.attrgetter(path)(reader)


@both_ways
def test_results_with_names_go_to_the_other_library(way: str) -> None:
    writer, reader = WAYS[way]
    raw = save(writer, writer.tensor([[1.0, 3.0]]).max(1))
    found = load(reader, raw, weights_only=False)
    assert isinstance(found, reader.return_types.max)
    assert found.indices.tolist() == [1]


@both_ways
def test_spectral_norm_goes_to_the_other_library(way: str) -> None:
    writer, reader = WAYS[way]
    layer = writer.nn.utils.spectral_norm(writer.nn.Linear(2, 3))
    found = load(reader, save(writer, layer), weights_only=False)
    x = [[1.0, 2.0]]
    for each in (found, layer):
        each.eval()
    mine, theirs = found(reader.tensor(x)).tolist(), layer(writer.tensor(x)).tolist()
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)
    assert found.state_dict()._metadata == layer.state_dict()._metadata
    plain = reader.nn.utils.remove_spectral_norm(found)
    assert list(plain.state_dict()) == ["bias", "weight"]


def test_state_with_one_vector_of_spectral_norm_is_read_as_by_pytorch() -> None:
    whole, u = [[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]], [0.6, 0.8, 0.0]

    def vector(t: Any) -> Any:
        layer = t.nn.utils.spectral_norm(t.nn.Linear(2, 3))
        old = {"bias": t.zeros(3), "weight_orig": t.tensor(whole), "weight_u": t.tensor(u)}
        layer.load_state_dict({**old, "weight": t.tensor(whole) / 2.5})
        lacking = result_or_error(lambda: layer.load_state_dict(old))
        return layer.weight_v.tolist(), lacking

    (mine, error), (theirs, their_error) = vector(pygrad), vector(torch)
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)
    assert error == their_error


def test_version_of_pytorch_is_read() -> None:
    found = load(pygrad, save(torch, {"version": torch.__version__}), weights_only=False)
    assert found["version"] == str(torch.__version__)
    assert found["version"] >= (2, 13)


@pytest.mark.parametrize("args", [((1,),), ((1, 2), 3), (1, 2), ((1, 2), {}), ((1, 2),)])
def test_results_with_names_are_made_as_in_pytorch(args: Any) -> None:
    mine, theirs = (result_or_error(lambda t=t: t.return_types.max(*args)) for t in (pygrad, torch))
    assert str(mine) == str(theirs)


# ------------------------------------------------------------------ training that goes on elsewhere


def data(t: Any) -> Any:
    x = np.random.default_rng(0).normal(size=(16, 2)).astype("float32")
    return t.from_numpy(x), t.from_numpy(np.sin(x.sum(1, keepdims=True)).astype("float32"))


def to_train(t: Any) -> Any:
    """Without a normalization, behind which the gradient of a bias is mere rounding."""
    model = model_of(t)
    return t.nn.Sequential(model[0], model[2], model[3])


def train(t: Any, model: Any, optimizer: Any, steps: int) -> None:
    x, y = data(t)
    for _ in range(steps):
        optimizer.zero_grad()
        t.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def optimizer_of(t: Any, model: Any, kind: str) -> Any:
    options = {"lr": 0.05, "momentum": 0.9} if kind == "SGD" else {"lr": 0.05}
    return getattr(t.optim, kind)(model.parameters(), **options)


def resume(t: Any, state: Any, kind: str) -> Any:
    model = to_train(t)
    model.load_state_dict(state["model"])
    optimizer = optimizer_of(t, model, kind)
    optimizer.load_state_dict(state["optimizer"])
    return model, optimizer


@both_ways
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_training_goes_on_in_the_other_library_and_comes_back(
    tmp_path: Path, way: str, kind: str
) -> None:
    here, there = WAYS[way]
    path = tmp_path / "state.pt"
    model = to_train(here)
    optimizer = optimizer_of(here, model, kind)
    train(here, model, optimizer, 3)
    for previous, t in ((here, there), (there, here)):
        previous.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        before = {k: v.tolist() for k, v in model.state_dict().items()}
        model, optimizer = resume(t, t.load(path), kind)
        assert {k: v.tolist() for k, v in model.state_dict().items()} == before
        train(t, model, optimizer, 3)
    alone = to_train(here)
    train(here, alone, optimizer_of(here, alone, kind), 9)
    for key, value in alone.state_dict().items():
        np.testing.assert_allclose(value.numpy(), model.state_dict()[key].numpy(), 1e-4, 1e-5)


@both_ways
def test_safetensors_go_to_the_other_library(tmp_path: Path, way: str) -> None:
    here, there = WAYS[way]
    safetensors = pytest.importorskip("safetensors.torch")
    path = tmp_path / "state.safetensors"
    model = to_train(here)
    train(here, model, optimizer_of(here, model, "Adam"), 3)
    state = {k: v.contiguous() for k, v in model.state_dict().items()}
    if here is torch:
        safetensors.save_file(state, path)
    else:
        pygrad.save(model.state_dict(), path)
    other = to_train(there)
    other.load_state_dict(there.load(path))
    train(there, other, optimizer_of(there, other, "SGD"), 2)
    train(here, model, optimizer_of(here, model, "SGD"), 2)
    for key, value in model.state_dict().items():
        np.testing.assert_allclose(value.numpy(), other.state_dict()[key].numpy(), 1e-4, 1e-5)


# ------------------------------------------------------------------ whole modules

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "AdaptiveLogSoftmaxWithLoss": (4, 10, [3]),
    "Bilinear": (2, 3, 4),
    "ChannelShuffle": (2,),
    "Fold": ((2, 2), 2),
    "FractionalMaxPool2d": (2, (2, 2)),
    "FractionalMaxPool3d": (2, (2, 2, 2)),
    "GroupNorm": (2, 4),
    "MultiheadAttention": (4, 2, 0.0, True, True),
    "Threshold": (0.1, 20),
    "Transformer": (4, 2, 1, 1, 8),
    "Unflatten": (1, (2, 2)),
    **{f"Conv{way}{n}d": (2, 4, 3) for way in ("", "Transpose") for n in (1, 2, 3)},
    **{f"LazyConv{way}{n}d": (4, 3) for way in ("", "Transpose") for n in (1, 2, 3)},
    **{f"ConstantPad{n}d": (1, 2.0) for n in (1, 2, 3)},
    **{f"LPPool{n}d": (2, 3) for n in (1, 2, 3)},
    **{f"Transformer{part}Layer": (4, 2, 8) for part in ("Encoder", "Decoder")},
    **{f"{kind}{part}": (3, 4) for kind in ("RNN", "LSTM", "GRU") for part in ("", "Cell")},
    **dict.fromkeys(["Linear", "Embedding", "EmbeddingBag"], (3, 4)),
}
NOT_MADE = {
    "DataParallel": "it wraps a module",
    "RNNBase": "abstract",
    "RNNCellBase": "abstract",
    "TransformerDecoder": "it wraps a layer",
    "TransformerEncoder": "it wraps a layer",
}


def make(t: Any, kind: str) -> Any:
    cls = getattr(t.nn, kind)
    for arguments in (ARGUMENTS.get(kind, ()), (2,)):
        try:
            t.manual_seed(0)
            return cls(*arguments)
        except TypeError:
            continue
    raise AssertionError(f"{kind}: which arguments?")


KINDS = sorted(
    kind
    for kind, cls in vars(torch.nn).items()
    if inspect.isclass(cls)
    and issubclass(cls, torch.nn.Module)
    and hasattr(pygrad.nn, kind)
    and kind not in NOT_MADE
)


@both_ways
@pytest.mark.parametrize("kind", KINDS)
def test_whole_module_goes_to_the_other_library(kind: str, way: str) -> None:
    writer, reader = WAYS[way]
    module = make(writer, kind)
    found = load(reader, save(writer, module), weights_only=False)
    assert type(found) is getattr(reader.nn, kind)
    assert str(found) == str(module)
    if "Lazy" not in kind:
        assert describe(found.state_dict()) == describe(module.state_dict())


RUN: dict[str, Callable[[Any], Any]] = {
    "Conv2d of reflections": lambda t: (
        t.nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"),
        t.arange(16.0).reshape(1, 1, 4, 4),
    ),
    "ConvTranspose2d": lambda t: (t.nn.ConvTranspose2d(1, 2, 3), t.ones(1, 1, 4, 4)),
    "LSTM": lambda t: (t.nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), t.ones(5, 2, 3)),
    "GRU without bias": lambda t: (t.nn.GRU(3, 4, bias=False), t.ones(5, 2, 3)),
    "TransformerEncoder": lambda t: (
        t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(4, 2, 8), 2),
        t.arange(24.0).reshape(3, 2, 4).sin(),
    ),
    "LazyLinear": lambda t: (t.nn.LazyLinear(3), None),
    "BatchNorm": lambda t: (t.nn.BatchNorm1d(2), t.ones(3, 2)),
    "Sequential": lambda t: (model_of(t), t.ones(3, 2)),
    "ParameterList": lambda t: (t.nn.ParameterList([t.ones(1), t.zeros(2)]), None),
}


@both_ways
@pytest.mark.parametrize("case", RUN)
def test_whole_module_runs_in_the_other_library(case: str, way: str) -> None:
    writer, reader = WAYS[way]
    module, _ = RUN[case](writer)
    _, given = RUN[case](reader)
    found = load(reader, save(writer, module.eval()), weights_only=False)
    if given is None:  # nothing to compare before a first call draws weights
        if case == "LazyLinear":
            assert found(reader.ones(2, 5)).shape == (2, 3)
        return
    mine, theirs = (
        out if isinstance(out, tuple) else (out,)
        for out in (found(given), module(RUN[case](writer)[1]))
    )
    np.testing.assert_allclose(mine[0].detach().numpy(), theirs[0].detach().numpy(), 1e-5, 1e-6)
    again = load(writer, save(reader, found), weights_only=False)
    assert describe(again.state_dict()) == describe(module.state_dict())


@both_ways
def test_allowed_module_goes_to_the_other_library(way: str) -> None:
    writer, reader = WAYS[way]
    raw = save(writer, model_of(writer))
    nn = reader.nn
    with reader.serialization.safe_globals([nn.Sequential, nn.Linear, nn.BatchNorm1d, nn.Tanh]):
        assert str(load(reader, raw)) == str(model_of(writer))


PACKAGES = (
    "amp autograd distributions distributions.constraints distributions.transforms nn nn.init "
    "nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn optim "
    "optim.lr_scheduler optim.swa_utils utils.data"
).split()
MADE_IN_C = {"DeviceType", "ProfilerActivity", "SavedTensor"}


def classes_of(package: str) -> list[tuple[str, Any, Any]]:
    """The classes of a package that both libraries have, by their names there."""
    modules: list[ModuleType] = [
        __import__(f"{root}.{package}", fromlist=["_"]) for root in ("torch", "pygrad")
    ]
    return [
        (name_, theirs, getattr(modules[1], name_))
        for name_, theirs in vars(modules[0]).items()
        if inspect.isclass(theirs) and theirs.__module__.startswith("torch")
        if not name_.startswith("_") and name_ in vars(modules[1]) and name_ not in MADE_IN_C
        if not is_stand_in(vars(modules[1])[name_])
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_classes_have_the_names_that_pytorch_gives_them(package: str) -> None:
    wrong = {
        name_: (found, (theirs.__module__, theirs.__qualname__))
        for name_, theirs, mine in classes_of(package)
        if (found := torch_name(mine)) != (theirs.__module__, theirs.__qualname__)
    }
    assert wrong == {}


# ------------------------------------------------------------------ the same errors

GOOD = save(torch, {"x": torch.arange(4.0)})
OLD = save(torch, {"x": torch.arange(4.0)}, **FORMS["before 1.6"])
DATA = {"data/0": bytes(16)}


def lying(**changes: Any) -> bytes:
    return archive_of_pickle(tensor_of(**{"of": storage(), **changes}), **DATA)


FILES: dict[str, bytes] = {
    "good": GOOD,
    "compressed": archive_of_pickle(tensor_of(storage()), **DATA),
    "a command": archive_of_pickle(call(name("os", "system"), text("true"))),
    "an expression": archive_of_pickle(call(name("__builtin__", "eval"), text("1"))),
    "a class of a program": archive_of_pickle(call(name("mymodule", "Config"))),
    "bytes that are empty": archive_of_pickle(call(name("__builtin__", "bytes"))),
    "an instruction of protocol 4": archive_of_pickle(b"\x8c\x01a"),
    "a call of a string": archive_of_pickle(call(text("a"))),
    "a new string": archive_of_pickle(text("a") + b")\x81"),
    "a state for a list": archive_of_pickle(b"]}b"),
    "an item for a list": archive_of_pickle(b"]NNs"),
    "items for a list": archive_of_pickle(b"](NNu"),
    "an entry for a dict": archive_of_pickle(b"}Na"),
    "entries for a dict": archive_of_pickle(b"}(NNe"),
    "another word for a storage": archive_of_pickle(b"(" + text("module") + b"tQ"),
    "a storage that is a string": archive_of_pickle(text("0") + b"Q"),
    "a record that is not there": lying(of=storage("1")),
    "a path that leaves the archive": lying(of=storage("../../etc/passwd")),
    "a storage that is too large": lying(of=storage(count=5)),
    "a storage that is too small": lying(of=storage(count=3)),
    "a tensor beyond its storage": lying(size=(5,)),
    "an offset beyond the storage": lying(offset=4),
    "a negative stride": lying(stride=(-1,)),
    "a storage of another machine": lying(of=storage(at="cuda:0")),
    "a storage of another kind of machine": lying(of=storage(at="hpu")),
    "a storage of no machine": lying(of=storage(at="nowhere")),
    "no pickle": replace_records(GOOD, datapkl=None),
    "another byte order": replace_records(GOOD, byteorder=b"middle"),
    "bytes turned round": replace_records(GOOD, byteorder=b"big"),
    "a script": replace_records(GOOD, constantspkl=b""),
    "a file that is cut": GOOD[:400],
    "a file that is empty": b"",
    "a number": pickle.dumps(7, 2),
    "an older file": OLD,
    "an older file that is cut": OLD[:-5],
    "an older file without a pickle": OLD[:40],
}


@pytest.mark.parametrize("case", FILES)
def test_file_gives_what_it_gives_pytorch(case: str) -> None:
    mine, theirs = (
        result_or_error(lambda t=t: describe(load(t, FILES[case]))) for t in (pygrad, torch)
    )
    if case in ("a file that is empty", "an older file without a pickle"):
        mine, theirs = (found.partition(":")[0] for found in (mine, theirs))
    assert mine == theirs


CALLS: dict[str, Callable[[Any, str], Any]] = {
    **{
        f"to {where!r}": lambda t, path, where=where: t.load(path, map_location=where)
        for where in ("cpu", "meta", {"cpu": "cpu"}, {"cpu": "meta"}, {"cpu": "cuda:0"})
    },
    **{
        f"to {where!r}": lambda t, path, where=where: t.load(path, map_location=where)
        for where in ("cuda", "xpu", "hpu", "foo", 3)
    },
    "to a device": lambda t, path: t.load(path, map_location=t.device("cpu")),
    "by a function": lambda t, path: t.load(path, map_location=lambda storage, _: storage),
    "by a function of None": lambda t, path: t.load(path, map_location=lambda *_: None),
    "by a function of 5": lambda t, path: t.load(path, map_location=lambda *_: 5),
    "mapped": lambda t, path: t.load(path, mmap=True),
    "mapped without a path": lambda t, path: load(t, GOOD, mmap=True),
    "mapped of the older form": lambda t, path: load(t, OLD, mmap=True),
    "by pickle": lambda t, path: t.load(path, pickle_module=pickle),
    "by pickle, safely": lambda t, path: t.load(path, pickle_module=pickle, weights_only=True),
    "with another argument": lambda t, path: t.load(path, foo=1),
    "with an encoding": lambda t, path: t.load(path, encoding="latin1"),
    "of a number": lambda t, path: t.load(3),
    "of no file": lambda t, path: t.load("/nowhere/at/all"),
    "to a number": lambda t, path: t.save(1, 3),
    "to no folder": lambda t, path: t.save(1, "/nowhere/at/all"),
    "of one storage as two types": lambda t, path: save(t, [x := t.ones(2), x.view(t.int32)]),
    "unsafe names": lambda t, path: t.serialization.get_unsafe_globals_in_checkpoint(
        io.BytesIO(save(t, t.nn.Linear(1, 1)))
    ),
    "unsafe names of weights": lambda t, path: t.serialization.get_unsafe_globals_in_checkpoint(
        path
    ),
    "unsafe names of the older form": (
        lambda t, path: t.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(OLD))
    ),
    "a byte order that is none": lambda t, path: t.serialization.set_default_load_endianness(1),
    "flags that are none": lambda t, path: t.serialization.set_default_mmap_options(77),
    "a pair that is none": lambda t, path: with_safe(t, (1, "a", "b"), path),
    "a name that is none": lambda t, path: with_safe(t, (int, 1), path),
    "a version": lambda t, path: [
        t.serialization.check_module_version_greater_or_equal(np, (1, 0)),
        t.serialization.check_module_version_greater_or_equal(np, (99,)),
    ],
    "a location": lambda t, path: t.serialization.location_tag(t.ones(1).untyped_storage()),
}


def with_safe(t: Any, pair: Any, path: str) -> Any:
    with t.serialization.safe_globals([pair]):
        return load(t, FILES["a class of a program"])


@pytest.mark.parametrize("case", CALLS)
def test_call_gives_what_it_gives_in_pytorch(case: str, tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "x.pt")
    Path(path).write_bytes(GOOD)
    mine, theirs = (
        result_or_error(lambda t=t: describe(CALLS[case](t, path))) for t in (pygrad, torch)
    )
    assert (
        mine.split("Unpickler.__init__()")[-1] == theirs.split("Unpickler.__init__()")[-1]
        if (isinstance(mine, str) and isinstance(theirs, str))
        else mine == theirs
    )


@pytest.mark.parametrize("given", [{"foo": 1}, {"encoding": "latin1"}])
def test_argument_for_pickle_warns_as_in_pytorch(given: Any) -> None:
    for t in (torch, pygrad):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result_or_error(lambda t=t: load(t, GOOD, **given))
        messages = [str(w.message) for w in caught if "TypedStorage" not in str(w.message)]
        assert messages == ["pickle_load_args only works if `weights_only=False`."]


@pytest.mark.parametrize(
    "folder", ["a.pt", "a.tar.pt", "plain", "dir.d/c", "a b.pt", "a..", "é.pt"]
)
def test_folder_of_an_archive_is_called_as_in_pytorch(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder
    path.parent.mkdir(exist_ok=True)
    found = []
    for t in (torch, pygrad):
        t.save(1, path)
        with zipfile.ZipFile(path) as file:
            found.append(file.namelist())
    assert found[0] == found[1]


def test_every_name_of_the_module_is_there() -> None:
    missing = [n for n in torch.serialization.__all__ if not hasattr(pygrad.serialization, n)]
    assert missing == []


def test_files_for_archives_are_made_by_hand() -> None:
    assert load(torch, archive({"data.pkl": b"\x80\x02K\x07.", "version": b"3\n"})) == 7
    assert numbers(1)[1:] == number(1) + b"t"
