"""Files that are the memory of tensors: ``from_file(shared=True)``."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pygrad as torch
from pygrad._boundary import callbacks, drain
from pygrad._boundary import mapped_files as mapping
from pygrad._boundary.release import live_count

pytestmark = pytest.mark.skipif(not mapping.MAPS_FILES, reason="files are mapped on Linux")


@pytest.fixture
def name(tmp_path: Path) -> str:
    return str(tmp_path / "numbers")


def map_file(name: str, size: int, dtype: Any = torch.int32) -> Any:
    return torch.from_file(name, shared=True, size=size, dtype=dtype)


def in_file(name: str, like: Any) -> list[Any]:
    raw = Path(name).read_bytes()
    return torch.frombuffer(bytearray(raw), dtype=like.dtype).tolist()  # type: ignore[no-any-return]


def test_a_file_is_made_with_the_size_that_is_asked_for(name: str) -> None:
    x = map_file(name, 10)
    assert os.path.getsize(name) == 40
    assert os.stat(name).st_mode & 0o777 == 0o600
    assert x.tolist() == [0] * 10


def test_a_file_grows_and_is_never_cut(name: str) -> None:
    Path(name).write_bytes(b"\1\2\3")
    assert map_file(name, 5, torch.uint8).tolist() == [1, 2, 3, 0, 0]
    assert map_file(name, 2, torch.uint8).tolist() == [1, 2]
    assert os.path.getsize(name) == 5


WRITES = {
    "fill": lambda x: x.fill_(2),
    "subscript": lambda x: x.__setitem__(slice(1, None, 2), 5),
    "view": lambda x: x.view(2, 3).t()[1].add_(3),
    "out": lambda x: torch.add(torch.ones(6), 1, out=x),
    "copy": lambda x: x.copy_(torch.arange(6.0)),
    "foreach": lambda x: torch._foreach_add_([x], 1),
    "numpy": lambda x: x.numpy().__setitem__(3, 4),
    "storage": lambda x: x.untyped_storage().fill_(0),
}


@pytest.mark.parametrize("how", WRITES)
def test_what_is_written_is_in_the_file(name: str, how: str) -> None:
    x = map_file(name, 6, torch.float32)
    WRITES[how](x)
    WRITES[how](expected := torch.zeros(6))
    assert in_file(name, x) == x.tolist() == expected.tolist()


def test_an_optimizer_writes_to_the_file(name: str) -> None:
    x = torch.from_file(name, shared=True, size=3, requires_grad=True)
    optimizer = torch.optim.Adam([x], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (x - 1).square().sum().backward()
        optimizer.step()
    assert in_file(name, x) == x.tolist()
    assert x.tolist()[0] > 0.5


def test_tensors_of_one_file_show_the_same(name: str) -> None:
    x, y = map_file(name, 2000), map_file(name, 1000, torch.int64)
    x[0] = 7
    assert y[0] == 7
    y[999] = -1
    assert x[1998:].tolist() == [-1, -1]


def test_another_process_writes_to_the_tensor(name: str) -> None:
    x = map_file(name, 3, torch.uint8)
    x[0] = 1
    write = "import sys; f = open(sys.argv[1], 'r+b'); f.seek(1); f.write(b'\\5'); f.close()"
    subprocess.run([sys.executable, "-c", write, name], check=True)
    assert x.tolist() == [1, 5, 0]


def test_a_child_of_a_fork_writes_to_the_tensor(name: str) -> None:
    x = map_file(name, 3)
    child = os.fork()
    if not child:
        x[2] = 9
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert x.tolist() == [0, 0, 9]


def test_what_a_backward_needs_stays_as_it_was(name: str) -> None:
    x = torch.from_file(name, shared=True, size=4, requires_grad=True)
    with torch.no_grad():
        x.copy_(torch.arange(4.0))
    y = (x * x).sum() + x[1:3].exp().sum()
    expected = 2 * x.detach().clone()
    expected[1:3] += x.detach()[1:3].exp()
    Path(name).write_bytes(bytes(16))  # which no engine could see
    assert x.tolist() == [0.0] * 4
    y.backward()
    torch.testing.assert_close(x.grad, expected)


def test_a_write_after_saving_does_not_reach_what_was_saved(name: str) -> None:
    x = torch.from_file(name, shared=True, size=4)
    w = torch.ones(4, requires_grad=True)
    x.fill_(3)
    y = (x * w).sum()
    x.fill_(5)
    y.backward()
    assert w.grad.tolist() == [3.0] * 4


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 4095, 4096, 4097, 100_000])
def test_nothing_lies_beside_the_elements(name: str, n: int) -> None:
    before = torch.full((n,), 1, dtype=torch.uint8)
    x = map_file(name, n, torch.uint8)
    after = torch.full((n,), 2, dtype=torch.uint8)
    x.fill_(255)
    assert Path(name).read_bytes() == b"\xff" * n
    assert (before == 1).all()
    assert (after == 2).all()


DTYPES = "bool uint8 int16 int64 float16 bfloat16 float64 complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(name: str, dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = map_file(name, 5, kind)
    x.fill_(1)
    assert x.dtype is kind
    assert in_file(name, x) == torch.ones(5, dtype=kind).tolist()


def test_nothing_is_asked_of_a_file_for_no_elements(name: str) -> None:
    x = map_file(name, 0)
    assert x.tolist() == []
    assert x.is_shared()
    assert not os.path.exists(name)


def test_what_is_shared_says_so(name: str) -> None:
    x = map_file(name, 4)
    storage = x.untyped_storage()
    assert x.is_shared()
    assert x[1:].is_shared()
    assert x.detach().is_shared()
    assert storage.is_shared()
    assert storage.filename == name
    assert storage.nbytes() == 16
    assert x.share_memory_() is x
    assert storage.share_memory_() is storage
    assert not x.clone().is_shared()
    assert not torch.ones(2).is_shared()
    assert torch.ones(2).untyped_storage().filename is None


def test_storages_of_files(name: str) -> None:
    untyped = torch.UntypedStorage.from_file(name, True, 8)
    typed = torch.FloatStorage.from_file(name, True, 2)
    untyped[3] = 64
    assert typed.tolist() == [2.0, 0.0]
    assert untyped.filename == typed.filename == name
    assert typed.is_shared()


def test_the_memory_of_a_file_does_not_grow(name: str) -> None:
    x = map_file(name, 4)
    assert not x.untyped_storage().resizable()
    for grow in (lambda: x.resize_(100), lambda: x.untyped_storage().resize_(100)):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            grow()
    assert x.resize_(2).shape == (2,)


def test_a_copy_is_no_file(name: str) -> None:
    import copy
    import pickle

    x = map_file(name, 2)
    x.fill_(4)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        other.fill_(1)
    assert x.tolist() == [4, 4]


def test_what_tensordict_does(name: str) -> None:
    source = torch.arange(12.0).view(3, 4)
    x = torch.from_file(name, shared=True, size=12, dtype=source.dtype).view(3, 4)
    x.copy_(source)
    again = torch.from_file(name, shared=True, size=12, dtype=source.dtype).view(3, 4)
    again[1] = -1
    assert x[1].tolist() == [-1.0] * 4
    assert torch.equal(x[2], source[2])


def test_errors_are_those_of_the_system(tmp_path: Path) -> None:
    for where, why in ((tmp_path, "Is a directory (21)"), (tmp_path / "a/b", "No such file")):
        with pytest.raises(RuntimeError) as raised:
            map_file(str(where), 1)
        assert str(raised.value).startswith(
            f"unable to open file <{where}> in read-write mode: {why}"
        )
    for size in (1 << 28, -1):
        with pytest.raises(RuntimeError, match="unable to (resize|mmap|open)"):
            map_file("/dev/null" if size > 0 else str(tmp_path / "c"), size, torch.uint8)


@pytest.mark.skipif(os.geteuid() == 0, reason="who may write to everything")
def test_a_file_that_may_not_be_written(name: str) -> None:
    Path(name).write_bytes(b"abcd")
    os.chmod(name, 0o400)
    with pytest.raises(RuntimeError, match=r"in read-write mode: Permission denied \(13\)"):
        map_file(name, 1)


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with pytest.raises(RuntimeError):
            map_file(str(tmp_path), 1)

    counts = []
    for _ in range(5):
        fail()
        gc.collect()
        drain()
        drain()
        counts.append((live_count(), torch._table.functions.C["_memory"]()[2]))
    assert counts[2:] == counts[1:-1]  # some lists are made once


def test_more_than_an_engine_has_is_refused_before_the_file_is_made(name: str) -> None:
    held = len(callbacks.objects)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        map_file(name, 1 << 40)
    assert not os.path.exists(name)
    assert len(callbacks.objects) == held


def maps() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_the_place_of_a_file_is_memory_again(name: str) -> None:
    memory = torch._table.functions.C["_memory"]
    map_file(name, 5000).fill_(7)
    gc.collect()
    drain()
    drain()
    in_use, blocks = memory()[0], memory()[2]
    regions = maps()
    raw = Path(name).read_bytes()
    for _ in range(1000):
        x = map_file(name, 5000)
        assert x[4999] == 7
        del x
    drain()
    drain()
    assert memory()[0] == in_use
    assert memory()[2] == blocks
    assert maps() <= regions + 4
    for _ in range(50):  # what comes to lie there does not reach the file
        torch.full((5000,), -1, dtype=torch.int32)
    assert Path(name).read_bytes() == raw


def test_a_tensor_that_is_saved_keeps_the_file(name: str) -> None:
    x = map_file(name, 4)
    part = x[2:]
    del x
    gc.collect()
    drain()
    part.fill_(6)
    assert in_file(name, part) == [0, 0, 6, 6]


def test_engines_map_files_each_for_itself(name: str) -> None:
    other = torch.Engine()
    x = map_file(name, 3)
    y = other.from_file(name, shared=True, size=3, dtype=other.int32)
    x[0] = 8
    assert y.tolist() == [8, 0, 0]
    del y, other
    gc.collect()
    x[1] = 9
    assert in_file(name, x) == [8, 9, 0]


def test_where_no_file_can_be_mapped_the_error_says_why(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapping, "MAPS_FILES", False)
    with pytest.raises(NotImplementedError, match="shared=True needs .* 64-bit Linux only"):
        map_file(name, 1)
    assert not os.path.exists(name)
