"""Files that lie: made by hand, instruction by instruction, and at random from good ones."""

from __future__ import annotations

import codecs
import io
import pickle
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pygrad

PROPER_ERRORS = (pickle.UnpicklingError, EOFError, RuntimeError, ValueError)
"""What a file may raise: damage is an UnpicklingError or a RuntimeError, a strange byte order a
ValueError.
"""
Change = Callable[[str, bytes], bytes | None]


def archive(records: dict[str, bytes], compressed: bool = False, folder: str = "archive") -> bytes:
    """A zip file of these records."""
    file = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", method) as made:
        for name, raw in records.items():
            made.writestr(f"{folder}/{name}", raw)
    return file.getvalue()


def records(raw: bytes) -> dict[str, bytes]:
    """The records of a file, by their names below its folder."""
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def save_bytes(obj: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    pygrad.save(obj, file, **options)
    return file.getvalue()


def load_bytes(raw: bytes, **options: Any) -> Any:
    return pygrad.load(io.BytesIO(raw), **options)


def replace_records(raw: bytes, **new: bytes | None) -> bytes:
    """A file with other records; None takes one away. In names, a double underscore is a slash."""
    found: dict[str, bytes | None] = {**records(raw)}
    found.update(
        {name.replace("__", "/").replace("pkl", ".pkl"): data for name, data in new.items()}
    )
    return archive({name: data for name, data in found.items() if data is not None})


def archive_of_pickle(*parts: bytes, **others: bytes) -> bytes:
    """A file whose pickle has these instructions."""
    text = b"\x80\x02" + b"".join(parts) + b"."
    return archive({"data.pkl": text, "version": b"3\n", "byteorder": b"little", **others})


# ------------------------------------------------------------------ instructions


def name(module: str, of: str) -> bytes:
    return f"c{module}\n{of}\n".encode()


def number(value: int) -> bytes:
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def call(function: bytes, *args: bytes) -> bytes:
    return function + b"(" + b"".join(args) + b"tR"


def storage(key: str = "0", count: int = 4, kind: str = "FloatStorage", at: str = "cpu") -> bytes:
    kind_of = name("torch.storage" if kind == "UntypedStorage" else "torch", kind)
    return b"(" + text("storage") + kind_of + text(key) + text(at) + number(count) + b"tQ"


def tensor(of: bytes, offset: int = 0, size: Any = (4,), stride: Any = (1,)) -> bytes:
    hooks = call(name("collections", "OrderedDict"))
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    return call(rebuild, of, number(offset), numbers(*size), numbers(*stride), b"\x89", hooks)


# ------------------------------------------------------------------ what must not happen

_DEEDS = (
    "os.",
    "subprocess.",
    "exec",
    "compile",
    "pickle.find_class",
    "open",
    "socket.",
    "shutil.",
)
_done: list[str] | None = None


def _look(event: str, args: Any) -> None:
    if _done is not None and event.startswith(_DEEDS) and event != "os.listdir":
        _done.append(f"{event} {args!r:.200}")


sys.addaudithook(_look)


@contextmanager
def nothing_done() -> Iterator[None]:
    """Nothing is run, opened or looked up by name within."""
    global _done
    for raw in seeds():  # what is imported late is, now
        load_bytes(raw)
    for codec in ("cp437", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        codecs.lookup(codec)  # of zip files and of JSON
    _done = []
    try:
        yield
        assert not _done, _done
    finally:
        _done = None


# ------------------------------------------------------------------ by chance


def seeds() -> list[bytes]:
    """Good files of all formats."""
    model = pygrad.nn.Sequential(pygrad.nn.Linear(2, 3), pygrad.nn.BatchNorm1d(3))
    model(pygrad.ones(2, 2)).sum().backward()
    optimizer = pygrad.optim.Adam(model.parameters())
    optimizer.step()
    whole = pygrad.arange(12.0).reshape(3, 4)
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": [whole, whole.t(), whole[1:, ::2]],
        "bits": pygrad.tensor([1 + 2j]).conj(),
        "parameter": model[0].weight,
        "words": ("a", b"bytes", {1, 2}, 1j, pygrad.Size([1]), pygrad.float16, None, 1 << 70),
        "small": [pygrad.ones(2, dtype=pygrad.uint16), pygrad.ones(0), pygrad.tensor(True)],
    }
    file = io.BytesIO()
    pygrad.save(state, file, _use_new_zipfile_serialization=False)
    compressed = archive(records(save_bytes(state)), compressed=True)
    plain = pygrad.serialization._safetensors.encode(model.state_dict())
    return [save_bytes(state), file.getvalue(), compressed, plain]


_OPCODES = b"().0NQRabcdeghijlopqrstu}]KMJXUGI\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8f\x93"


def damage(raw: bytes, random: Random) -> bytes:
    """A file with one or a few changes, of bytes or of instructions of its pickle."""
    if raw.startswith(b"PK") and random.random() < 0.6:
        found = records(raw)
        victim = "data.pkl" if random.random() < 0.8 else random.choice(list(found))
        found[victim] = _damage_bytes(found[victim], random)
        if random.random() < 0.1:
            del found[random.choice(list(found))]
        return archive(found, compressed=random.random() < 0.2)
    return _damage_bytes(raw, random)


def _damage_bytes(raw: bytes, random: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(random.choice((1, 1, 1, 2, 5, 20))):
        at = random.randrange(len(data) + 1)
        upto = min(len(data), at + random.randrange(1, 24))
        kind = random.randrange(7)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:upto]
        elif kind == 2:
            data[at:at] = data[at:upto]
        elif kind == 3:
            data[at:upto] = random.randbytes(upto - at)
        elif kind == 4:
            data[at : at + 1] = bytes([random.choice(_OPCODES)])
        elif kind == 5:
            data[at : at + 4] = struct.pack("<i", random.choice((-1, 0, 1 << 30, -(1 << 31))))
        else:
            other = random.randrange(len(data) + 1)
            data[at:upto] = data[other : other + upto - at]
    return bytes(data)
