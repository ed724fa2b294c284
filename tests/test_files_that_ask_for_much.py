"""Files that ask for more than they bring: memory, or time. Every function that a file of weights
may call is called with what is large by a few bytes, many times.
"""

from __future__ import annotations

import contextlib
import io
import json
import tracemalloc
from typing import Any

import pytest
from helpers import leaves_nothing
from hostile_files import (
    PROPER_ERRORS,
    archive_of_pickle,
    call,
    load_bytes,
    name,
    number,
    numbers,
    save_bytes,
    storage,
    tensor,
    text,
)

import pygrad
from pygrad.serialization import _globals

pytestmark = pytest.mark.filterwarnings("ignore")
_C = pygrad._table.functions.C
MOST = 64
"""A file may take so many times its own bytes, and 32 MiB."""
DATA = {"data/0": bytes(16)}
PRIME = 2**61 - 1
"""Numbers that differ by a multiple of it have the same hash."""


def put(value: bytes, place: int) -> bytes:
    """A value that is memoized."""
    return value + b"q" + bytes([place])


def got(place: int) -> bytes:
    return b"h" + bytes([place])


def most_bytes(raw: bytes) -> int:
    """The most bytes of the engine's that reading a file took at once."""
    _C["_reset_peak_memory"]()
    before = _C["_memory"]()[0]
    with contextlib.suppress(*PROPER_ERRORS):
        load_bytes(raw)
    return int(_C["_memory"]()[1] - before)


def asked_of_python(raw: bytes) -> int:
    """The most bytes of Python's that reading a file took at once."""
    tracemalloc.start()
    try:
        with contextlib.suppress(*PROPER_ERRORS):
            load_bytes(raw)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def many(of: bytes, times: int = 20) -> bytes:
    return b"(" + of * times + b"t"


HUGE = (1 << 28,), (0,)
"""Sizes and strides of a tensor that shows one element as often as memory has bytes."""
LARGE = {
    "a tensor": tensor(storage(), 0, *HUGE),
    "a tensor of places": tensor(storage(count=2, kind="LongStorage"), 0, *HUGE),
    "rows of places": tensor(storage(count=2, kind="LongStorage"), 0, (2, 1 << 28), (0, 0)),
    "a list": b"](" + b"N" * 1000 + b"e",
    "pairs": b"](" + b"".join(b"J" + n.to_bytes(4, "little") + b"N\x86" for n in range(300)) + b"e",
    "a dict": b"}(" + b"".join(b"J" + n.to_bytes(4, "little") + b"N" for n in range(300)) + b"u",
    "a text": text("a" * 3000),
    "a tuple of tuples": b")" + b"q\x09h\x09\x86" * 40,
}
DTYPE, LATIN = name("torch", "float64"), text("latin1")
COO, CSR = (
    call(name("torch.serialization", "_get_layout"), text(f"torch.sparse_{n}"))
    for n in ("coo", "csr")
)
MORE: dict[str, list[list[bytes]]] = {
    "_codecs.encode": [[got(0), LATIN]],
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": [[got(0), DTYPE, text("cpu"), b"\x89"]],
    "torch._utils._rebuild_device_tensor_from_numpy": [[got(0), DTYPE, text("cpu"), b"\x89"]],
    "torch._utils._rebuild_parameter": [[got(0), b"\x89", b"}"]],
    "torch._utils._rebuild_parameter_with_state": [[got(0), b"\x89", b"}", got(0)]],
    "torch._utils._rebuild_nested_tensor": [[got(0)] * 4],
    "torch._utils._rebuild_sparse_tensor": [
        [COO, b"(" + got(0) * 2 + numbers(2, 2) + b"\x89t"],
        [COO, b"(" + got(0) * 2 + numbers(2) + b"\x88t"],
        [CSR, b"(" + got(0) * 3 + numbers((1 << 28) - 1, 4) + b"t"],
    ],
    "torch.nested._internal.nested_tensor._rebuild_njt": [
        [b"}(" + text("values") + got(0) + text("offsets") + got(0) + b"u"]
    ],
    "torch._tensor._rebuild_from_type_v2": [
        [name("builtins", "set"), name("torch", "Tensor"), got(0) + b"\x85", b"}"],
        [name("torch._utils", "_rebuild_parameter"), name("torch", "Tensor")]
        + [b"(" + got(0) + b"\x89}t", got(0)],
    ],
}
"""Arguments that a function takes, where one large value after another is none."""


def callable_names() -> list[str]:
    return [n for n, value in _globals.SAFE.items() if id(value) in _globals.CALLS or n in MORE]


@pytest.mark.parametrize("path", callable_names())
@leaves_nothing
def test_function_gives_no_more_than_the_file_brings(path: str) -> None:
    function = name(*path.rsplit(".", 1))
    for value in LARGE.values():
        for args in [[got(0)], [got(0)] * 2, *MORE.get(path, [])]:
            for given in (call(function, *args), b"}" + got(0) + b"b"):
                raw = archive_of_pickle(put(value, 0), many(given), **DATA)
                assert most_bytes(raw) <= MOST * len(raw), (path, args)


@pytest.mark.parametrize("kind", ["a list", "pairs"])
@pytest.mark.parametrize("path", ["collections.OrderedDict", "torch.Size"])
def test_copies_of_containers_are_counted(path: str, kind: str) -> None:
    raw = archive_of_pickle(
        put(LARGE[kind], 0), many(call(name(*path.rsplit(".", 1)), got(0)), 1000)
    )
    assert asked_of_python(raw) <= MOST * len(raw) + (64 << 20)


def alike(n: int) -> list[int]:
    return [k * PRIME for k in range(1, n)]


def in_safetensors(outline: Any) -> bytes:
    outer = json.dumps({"version": 1, "object": outline})
    header = json.dumps({"__metadata__": {"pygrad": outer}}).encode()
    return len(header).to_bytes(8, "little") + header


KEYS = [number(n) for n in alike(5000)]
PARTS = b"(" + b"N" * 900 + b"t"
COLLIDING = {
    "a dict": archive_of_pickle(b"}(" + b"".join(key + b"N" for key in KEYS) + b"u"),
    "a dict by and by": archive_of_pickle(b"}" + b"".join(key + b"Ns" for key in KEYS)),
    "an ordered dict": archive_of_pickle(
        call(
            name("collections", "OrderedDict"), b"](" + b"".join(k + b"N\x86" for k in KEYS) + b"e"
        )
    ),
    "a set": archive_of_pickle(call(name("builtins", "set"), b"](" + b"".join(KEYS) + b"e")),
    "pairs of numbers": archive_of_pickle(
        b"}(" + b"".join(key + b"K\x01\x86N" for key in KEYS) + b"u"
    ),
    "one tuple of many parts": archive_of_pickle(put(PARTS, 1), b"}" + (got(1) + b"Ns") * 20_000),
    "a dict of safetensors": in_safetensors(["dict", [[["int", str(n)], 0] for n in alike(5000)]]),
    "a set of safetensors": in_safetensors(["set", [["int", str(n)] for n in alike(5000)]]),
}


@pytest.mark.parametrize("case", COLLIDING)
@leaves_nothing
def test_keys_that_take_long_are_refused(case: str) -> None:
    with pytest.raises(PROPER_ERRORS, match=r"same hash|more than it brings"):
        load_bytes(COLLIDING[case])


def test_keys_of_one_hash_are_taken_if_few() -> None:
    few = {n: str(n) for n in alike(20)}
    many_dicts = [{"step": 1, 5: 2, (1, 2): 3.0} for _ in range(2000)]
    assert load_bytes(save_bytes([few, many_dicts])) == [few, many_dicts]


def test_storages_of_an_older_file_are_together_no_larger_than_it() -> None:
    file = io.BytesIO()
    pygrad.save(pygrad.zeros(1), file, _use_new_zipfile_serialization=False)
    head = file.getvalue()[: file.getvalue().index(b"\x80\x02ctorch._utils")]
    each = b"".join(
        b"("
        + text("storage")
        + name("torch", "ByteStorage")
        + text(str(n))
        + text("cpu")
        + number(50_000)
        + b"NtQ"
        for n in range(1000)
    )
    raw = head + b"\x80\x02(" + each + b"t."
    assert len(raw) > 50_000
    assert most_bytes(raw) <= MOST * len(raw)
    with pytest.raises(RuntimeError, match="unexpected EOF"):
        load_bytes(raw)


def test_a_version_is_not_shown_whole() -> None:
    file = io.BytesIO()
    pygrad.save(pygrad.zeros(1), file, _use_new_zipfile_serialization=False)
    magic = file.getvalue()[: file.getvalue().index(b".") + 1]
    with pytest.raises(RuntimeError, match="Invalid protocol version"):
        load_bytes(magic + b"\x80\x02" + LARGE["a tuple of tuples"] + b".")


def test_what_a_writer_writes_is_no_more() -> None:
    """Views, expanded tensors and shared storages are read, however often they occur."""
    x = pygrad.arange(1000.0)
    views = [x[k:] for k in range(900)]
    wide = [
        pygrad.ones(1).expand(1 << 20, 1 << 10),
        pygrad.nn.Parameter(pygrad.ones(1).expand(1 << 30)),
    ]
    sparse = pygrad.eye(300).to_sparse()
    found = load_bytes(save_bytes([views, wide, [sparse] * 3, [sparse.to_sparse_csr()]]))
    assert len(found[0]) == 900
    assert [each.shape for each in found[1]] == [each.shape for each in wide]
    assert found[2][0].to_dense().equal(pygrad.eye(300))
