"""Bytes that the engine did not write: of files, buffers, storages, views, arrays that share them.

A bool is true for every byte but 0, in every op and by every door; what is counted or used as an
address is checked where nobody can change it any more.
"""

from __future__ import annotations

import io
import json
import threading
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    UNINITIALISED,
    leaves,
    leaves_nothing,
    no_breakdown,
    plain,
    sweep_entries,
)
from samples import Entry, samples
from sampling import DTYPES, Array, Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")
f = pygrad.nn.functional

TRUE = np.array([1, 2, 3, 128, 254, 255], "uint8")


def hostile_bool(clean: Array) -> Any:
    """The same bools, whose true bytes are any but 0."""
    random_bytes = np.random.default_rng(zlib.crc32(clean.tobytes())).choice(TRUE, clean.shape)
    return pygrad.from_numpy(np.where(clean, random_bytes, 0).astype("uint8")).view(pygrad.bool)


def with_hostile_bools(array: Array) -> Any:
    return hostile_bool(array) if array.dtype == bool else pygrad.from_numpy(array.copy())


def outcome(entry: Entry, sample: Call, dtype: str, make: Callable[[Array], Any]) -> Any:
    """What a call gives and what it leaves in its first argument, or its error; then gradients."""
    args, kwargs = build(sample, dtype, make)
    if entry.mutates:
        args[0] = args[0].clone()
    inputs = [t for t in leaves([args, kwargs]) if t.is_floating_point()]
    for tensor in inputs if not entry.mutates else ():
        tensor.requires_grad_()
    try:
        pygrad.manual_seed(0)
        result = entry.function(*args, **kwargs)
        outputs = [t for t in leaves(result) if t.requires_grad]
        wanted = [t for t in inputs if t.requires_grad] if outputs else []
        total = sum((t * t).sum() for t in outputs)
        grads = pygrad.autograd.grad(total, wanted, allow_unused=True) if wanted else ()
    except PROPER_ERRORS as error:
        assert not isinstance(error, pygrad.EngineError)
        return type(error), str(error)
    tensors = leaves([result, args[:1] if entry.mutates else [], list(grads)])
    return plain(result), [(str(t.dtype), str(t.tolist())) for t in tensors]


def takes_bools(entry: Entry) -> bool:
    return bool(samples(entry)) and entry.name not in UNINITIALISED


@sweep_entries(takes_bools)
@leaves_nothing
def test_every_byte_of_a_bool_but_0_is_true(entry: Entry, sample: Call) -> None:
    masks = any(what.dtype == "bool" for what in sample.tensors())
    if entry.name in ("view", "view_copy") and "int32" in str(sample):
        pytest.skip("shows the bytes")
    for dtype in ("bool", "float32") if masks else ("bool",):
        clean = outcome(entry, sample, dtype, lambda array: pygrad.from_numpy(array.copy()))
        assert outcome(entry, sample, dtype, with_hostile_bools) == clean


BOOL_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a, b: ~a,
    "eq": lambda a, b: a == b,
    "eq True": lambda a, b: a == True,  # noqa: E712
    "lt": lambda a, b: a < b,
    "logical_xor": lambda a, b: a.logical_xor(b),
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "where": lambda a, b: pygrad.where(a, 2.0, b),
    "masked_fill": lambda a, b: a.float().masked_fill(b, 7),
    "sum": lambda a, b: a.sum(),
    "sum of columns": lambda a, b: a.sum(0),
    "max": lambda a, b: [a.max(), *a.max(0), *a.min(-1)],
    "cummax": lambda a, b: [*a.cummax(0), *a.cummin(-1)],
    "sort": lambda a, b: [*a.sort(-1), *a.sort(0, descending=True)],
    "unique": lambda a, b: a.unique(return_inverse=True, return_counts=True),
    "unique rows": lambda a, b: a.unique(dim=0, return_inverse=True),
    "mode": lambda a, b: a.mode(0),
    "nonzero": lambda a, b: a.nonzero(),
    "count_nonzero": lambda a, b: a.count_nonzero(0),
    "any, all": lambda a, b: [a.any(), a.all(0)],
    "casts": lambda a, b: [a.to(getattr(pygrad, d)) for d in DTYPES],
    "copies": lambda a, b: [a.clone(), a.contiguous(), a.flip(0), pygrad.cat([a, b])],
    "masked read": lambda a, b: [a.float()[b], a[b]],
    "masked write": lambda a, b: pygrad.zeros(a.shape).masked_scatter(a, pygrad.ones(a.numel())),
    "index_add": lambda a, b: a.index_add(0, pygrad.zeros(len(a), dtype=pygrad.int64), b),
    "products": lambda a, b: a.scatter_reduce(0, pygrad.zeros(a.shape).long(), b, "prod"),
    "bincount": lambda a, b: pygrad.bincount(a.reshape(-1).long()),
    "searchsorted": lambda a, b: pygrad.searchsorted(pygrad.arange(4), a.long()),
}
LAYOUTS_OF_BOOLS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t(),
    "every other": lambda t: t[:, ::2],
    "expanded": lambda t: t[:, :1].expand(*t.shape),
    "one": lambda t: t[:1, :1],
}


@pytest.mark.parametrize("layout", LAYOUTS_OF_BOOLS)
@pytest.mark.parametrize("shape", [(3, 5), (40, 70)])
@pytest.mark.parametrize("op", BOOL_OPS)
def test_loops_over_bools_see_0_or_1(op: str, shape: tuple[int, int], layout: str) -> None:
    rng = np.random.default_rng(3)
    clean = [rng.random(shape) < chance for chance in (0.3, 0.7)]
    laid_out = LAYOUTS_OF_BOOLS[layout]
    got = BOOL_OPS[op](*(laid_out(hostile_bool(each)) for each in clean))
    want = BOOL_OPS[op](*(laid_out(pygrad.from_numpy(each)) for each in clean))
    for mine, other in zip(leaves(got), leaves(want), strict=True):
        assert mine.dtype == other.dtype
        assert mine.tolist() == other.tolist()


def test_a_copy_of_a_bool_is_made_of_0_and_1() -> None:
    m = hostile_bool(np.array([[True, False, True], [True, True, False]]))
    for copy in (
        m.clone(),
        m.t().contiguous(),
        m[:, ::2].contiguous(),
        m.flip(1),
        m | m,
        m.max(0)[0],
    ):
        assert set(copy.view(-1).view(pygrad.uint8).tolist()) <= {0, 1}


def from_a_file(raw: bytes) -> Any:
    header = {"m": {"dtype": "BOOL", "shape": [len(raw)], "data_offsets": [0, len(raw)]}}
    text = json.dumps(header).encode()
    return pygrad.load(io.BytesIO(len(text).to_bytes(8, "little") + text + raw))["m"]


def from_a_storage(raw: bytes) -> Any:
    m = pygrad.zeros(len(raw), dtype=pygrad.bool)
    for i, byte in enumerate(raw):
        m.untyped_storage()[i] = byte
    return m


def from_shared_memory(raw: bytes) -> Any:
    m = pygrad.zeros(len(raw), dtype=pygrad.bool)
    m.numpy().view("uint8")[:] = np.frombuffer(raw, "uint8")
    return m


DOORS: dict[str, Callable[[bytes], Any]] = {
    "file": from_a_file,
    "storage": from_a_storage,
    "shared memory": from_shared_memory,
    "view": lambda raw: pygrad.tensor(list(raw), dtype=pygrad.uint8).view(pygrad.bool),
    "NumPy": lambda raw: pygrad.from_numpy(np.frombuffer(raw, "uint8").copy().view(bool)),
    "buffer": lambda raw: pygrad.frombuffer(bytearray(raw), dtype=pygrad.bool),
    "DLPack": lambda raw: pygrad.from_dlpack(np.frombuffer(raw, "uint8").copy().view(bool)),
    "storage's buffer": lambda raw: pygrad.BoolStorage.from_buffer(raw, "native")._view(
        pygrad.bool
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_bool_selects_where_it_is_not_0_whatever_door_its_bytes_came_by(door: str) -> None:
    m = DOORS[door](bytes([0, 1, 2, 255] * 64))
    neighbours = [pygrad.full((n,), 7.0) for n in range(1, 300)]
    junk = pygrad.full((70_000,), 1234.0)
    del junk  # freed memory must not be taken for indices
    assert m[:4].tolist() == [False, True, True, True]
    assert [bool(m[i]) for i in range(4)] == [m[i].item() for i in range(4)]
    assert len(m.nonzero()) == m.sum() == m.count_nonzero() == 192
    assert m.nonzero().view(-1)[:4].tolist() == [1, 2, 3, 5]
    y = pygrad.arange(256.0)
    assert y[m].tolist() == [i for i in range(256) if i % 4]
    y[m] = 5.0
    assert y.tolist() == [5.0 if i % 4 else float(i) for i in range(256)]
    y[m] = pygrad.arange(192.0)
    assert y.masked_select(m).tolist() == list(range(192))
    y.masked_scatter_(m, pygrad.ones(192))
    assert y.sum() == 192 + sum(range(0, 256, 4))
    assert all((each == 7).all() for each in neighbours)


# ------------------------------------------------------------------ memory that others write to


def test_indices_may_change_while_they_are_read() -> None:
    n, rows = 4096, 64
    m, index = pygrad.zeros(n, dtype=pygrad.bool), pygrad.zeros(n, dtype=pygrad.int64)
    table, stop = pygrad.ones(rows, 2, requires_grad=True), threading.Event()
    bytes_, numbers_ = m.numpy().view("uint8"), index.numpy()

    def write() -> None:
        chance = np.random.default_rng(0)
        while not stop.is_set():
            bytes_[:] = chance.choice(np.array([0, 0, 1, 255], "uint8"), n)
            numbers_[:] = chance.choice([0, 5], n)
            numbers_[chance.integers(n)] = chance.choice([2**63 - 1, -(2**63), 10**9, 3])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        x = pygrad.zeros(n)
        for _ in range(100):
            found = m.nonzero().view(-1)
            assert (found[1:] > found[:-1]).all()
            x[m] = 1.0
            assert len(x[m]) <= n
            for call in (
                lambda: f.embedding(index, table, scale_grad_by_freq=True).sum().backward(),
                lambda: f.embedding_bag(index.view(64, 64), table).sum().backward(),
                lambda: f.multi_margin_loss(pygrad.zeros(n, rows), index),
                lambda: pygrad.repeat_interleave(index[:16] % 7),
                lambda: f.one_hot(index[:64], rows),
                lambda: pygrad.searchsorted(pygrad.arange(float(n)), pygrad.ones(3), sorter=index),
                lambda: pygrad.arange(n) // index,
            ):
                with no_breakdown():
                    call()
    finally:
        stop.set()
        writer.join()
    assert pygrad.ones(3).sum().item() == 3
