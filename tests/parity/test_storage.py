"""The memory behind tensors: making, sharing, growing and copying it, beside PyTorch."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import both, result_or_error

import pygrad

KINDS = "Float Double Long Int Short Char Byte Bool".split()
SCRIPTS: dict[str, Callable[[Any], Any]] = {}


def script(run: Callable[[Any], Any]) -> Callable[[Any], Any]:
    SCRIPTS[run.__name__] = run
    return run


def all_tried(*calls: Callable[[], Any]) -> list[Any]:
    return [result_or_error(call) for call in calls]


@script
def one_object_for_all_views(t: Any) -> Any:
    x = t.arange(4.0)
    storage = x.untyped_storage()
    others = [x[1:], x.detach(), x.view(2, 2).t(), x.storage()._untyped_storage]
    same = [getattr(each, "untyped_storage", lambda e=each: e)() is storage for each in others]
    numbers = {x.storage()._cdata, x[1].untyped_storage()._cdata, storage._cdata}
    return same, len(numbers), x.clone().untyped_storage() is storage, x.storage() is x.storage()


@script
def set_to_a_storage(t: Any) -> Any:
    x = t.arange(4.0)
    raw = x.untyped_storage()
    shown = t.empty(0).set_(raw, 1, (2,), (2,))
    shown[0] = 9
    return [
        x,
        shown,
        t.empty(0).set_(x.storage()),
        t.empty(0, dtype=t.int32).set_(raw),
        t.empty(0).set_(source=x.storage(), storage_offset=2, size=t.Size([2])),
        shown.untyped_storage() is raw,
        shown._is_view(),
        shown._version,
        x._version,
    ]


@script
def set_beyond_the_storage_grows_it(t: Any) -> Any:
    x = t.arange(4.0)
    grown = t.empty(0).set_(x.untyped_storage(), 1, (2, 2))
    from_tensor = t.empty(0).set_(t.ones(2), 3, (2,))
    return x.untyped_storage().nbytes(), grown.shape, grown[0], x, from_tensor.shape


@script
def set_wrongly(t: Any) -> Any:
    raw, numbers = t.ones(2).untyped_storage(), t.ones(2).storage()
    shown = t.ones(3)
    array = shown.numpy()
    kinds = [getattr(t, name) for name in "float64 int64 int32 int16 int8 uint8 bool".split()]
    return [
        *[result_or_error(lambda k=k: t.empty(0, dtype=k).set_(numbers)) for k in kinds],
        *all_tried(
            lambda: t.empty(0).set_(raw, -1, (2,)),
            lambda: t.empty(0).set_(raw, 0, (2,), (-1,)),
            lambda: t.empty(0).set_(raw, 0, (2,), (1, 1)),
            lambda: t.empty(0).set_(t.ones(3), 0, (2,), (2**62,)),
            lambda: t.empty(0).set_(shown, 0, (9,)),
            lambda: t.ones(2, requires_grad=True).set_(raw),
            lambda: shown.resize_(9),
        ),
        array.tolist(),
    ]


@script
def made_of_counts_and_numbers(t: Any) -> Any:
    made, typed = t.UntypedStorage, t.TypedStorage
    return [
        made(3).nbytes(),
        made(),
        made([1, 2, 300]),
        made((1, -1), device="cpu"),
        typed([1, 2], dtype=t.int8),
        typed(dtype=t.int16),
        typed(3).dtype,
        typed(wrap_storage=t.ones(2).untyped_storage(), dtype=t.int32),
        *all_tried(
            lambda: made(2, 3),
            lambda: made(2.5),
            lambda: made("ab"),
            lambda: made([1.5]),
            lambda: made(foo=1),
            lambda: made(1, device="cuda"),
            lambda: typed(2.5),
            lambda: typed(1, 2),
            lambda: typed(wrap_storage=made(4)),
            lambda: typed(3, wrap_storage=made(4)),
            lambda: typed(wrap_storage=made(4), dtype=3),
            lambda: typed(wrap_storage=3, dtype=t.int8),
            lambda: typed(wrap_storage=made(4), dtype=t.int8, device="cpu"),
            lambda: t.StorageBase(),
        ),
    ]


@script
def classes_of_dtypes(t: Any) -> Any:
    found: list[Any] = []
    for kind in KINDS:
        made, x = getattr(t, f"{kind}Storage"), getattr(t, f"{kind}Tensor")([1, 0])
        other = getattr(t, "IntStorage" if kind != "Int" else "LongStorage")
        storage = x.storage()
        found += [made([1, 0]), made(2).dtype, made.dtype, made().size(), storage.type()]
        found += [isinstance(storage, made), isinstance(storage, other), x.storage_type() is made]
        found += [issubclass(made, t.TypedStorage), storage.pickle_storage_type()]
        found += [made(wrap_storage=x.untyped_storage()), t.is_storage(storage), made.__name__]
    return found


@script
def classes_used_wrongly(t: Any) -> Any:
    made, raw = t.FloatStorage, t.ones(2).untyped_storage()
    return all_tried(
        lambda: made(t.ones(2).storage()),
        lambda: made(2, 3),
        lambda: made(2, dtype=t.float32),
        lambda: made(2, device="cpu"),
        lambda: made(3, wrap_storage=raw),
        lambda: made(wrap_storage=3),
        lambda: t.cuda.FloatStorage(2),
        lambda: t.storage._LegacyStorage(2),
        lambda: t.DoubleTensor(t.ones(2).storage()),
    )


@script
def tensors_of_storages(t: Any) -> Any:
    x = t.arange(3.0)
    made = t.Tensor(x.storage())
    made[0] = 5
    copied = t.tensor(x.storage())
    copied[1] = 7
    found = [x, made, t.FloatTensor(x.untyped_storage()), copied, t.as_tensor(x.storage())]
    found.append(t.tensor(x.untyped_storage(), dtype=t.int32))
    return [*found, result_or_error(lambda: t.tensor(x.storage(), dtype=t.float64))]


@script
def casts(t: Any) -> Any:
    typed, raw = t.tensor([1.5, 0.0]).storage(), t.tensor([1, 0], dtype=t.int16).untyped_storage()
    names = "double float long int short char byte bool".split()
    found = [getattr(each, name)() for name in names for each in (typed, raw)]
    return [*found, typed.cpu(), raw.to(device="cpu") is raw, raw.type(), typed.get_device()]


@script
def copies(t: Any) -> Any:
    x = t.arange(3.0)
    raw, typed = x.untyped_storage(), x.storage()
    made = [raw.clone(), typed.clone(), copy.copy(raw), copy.deepcopy(raw), copy.deepcopy(typed)]
    x.fill_(1)
    made += [t.zeros(3).storage().copy_(typed), t.zeros(3).untyped_storage().copy_(raw)]
    made.append(pickle.loads(pickle.dumps(typed)))
    return made, all_tried(
        lambda: raw.copy_(t.ones(2).untyped_storage()),
        lambda: typed.copy_(t.ones(3).double().storage()),
        lambda: raw.copy_(3),
    )


@script
def elements_of_bytes(t: Any) -> Any:
    raw = t.UntypedStorage([1, 2, 3, 4])
    raw[0], raw[3] = 300, -1
    raw[1:3] = 9
    return [raw, raw[1:3].tolist(), raw[-1], len(raw), raw.fill_(7).tolist()] + all_tried(
        lambda: raw[0:4:2],
        lambda: raw["a"],
        lambda: raw[4],
        lambda: raw.__setitem__(-1, 0),
        lambda: raw.__setitem__(0, "a"),
        lambda: raw.__setitem__(0, 1.5),
        lambda: raw.fill_(1.5),
    )


@script
def growing(t: Any) -> Any:
    x = t.arange(3.0)
    raw, typed = x.untyped_storage(), x.storage()
    raw.resize_(20)
    seen = [raw.nbytes(), typed.size(), x, raw[:12].tolist()]
    typed.resize_(7)
    x[0] = 5
    seen += [raw.nbytes(), t.empty(0).set_(raw, 0, (3,)), raw.resizable()]
    shown = t.ones(2)
    array = shown.numpy()
    held = [shown.untyped_storage().resizable(), array.tolist()]
    wrong = all_tried(
        lambda: raw.resize_("a"),
        lambda: typed.resize_("a"),
        lambda: shown.untyped_storage().resize_(100),
        lambda: shown.storage().resize_(100),
    )
    return seen, held, wrong


@script
def buffers(t: Any) -> Any:
    made, raw = t.IntStorage.from_buffer, t.UntypedStorage.from_buffer
    return all_tried(
        lambda: made(bytes(8), "native"),
        lambda: made(bytearray([1, 0, 0, 0, 0, 0, 0, 2]), "big"),
        lambda: made(b"abcdefgh", "little", 1, 3),
        lambda: t.ByteStorage.from_buffer(b"abc"),
        lambda: t.BoolStorage.from_buffer(bytearray([0, 1, 2, 64]), "big"),
        lambda: raw(b"abcd", "native", dtype=t.int16),
        lambda: raw(b"abcd", dtype=t.int8),
        lambda: raw(b"abcd"),
        lambda: made(b"abc", "native"),
        lambda: made(b"abcd"),
        lambda: made(b"abcd", "x"),
        lambda: made(b"abcd", "native", 2),
        lambda: made(b"abcd", "native", -1, 9),
    )


@script
def bytes_turned_round(t: Any) -> Any:
    raw = t.tensor([1, 2, 3], dtype=t.int16).untyped_storage()
    raw.byteswap(t.int16)
    raw.byteswap(t.bool)
    wide = t.arange(2).untyped_storage()
    wide.byteswap(t.complex128)
    return raw, wide, result_or_error(lambda: raw.byteswap(t.int64))


@script
def what_they_are(t: Any) -> Any:
    raw, typed = t.ones(2).untyped_storage(), t.ones(2).storage()
    names = "is_shared is_pinned get_device element_size nbytes size".split()
    said = [getattr(each, name)() for each in (raw, typed) for name in names]
    said += [getattr(each, name) for each in (raw, typed) for name in ("filename", "is_sparse")]
    said += [raw.__sizeof__() > 8, typed._nbytes(), typed._data_ptr() == typed.data_ptr()]
    return said, result_or_error(raw.pin_memory), t.empty(0).untyped_storage().data_ptr()


@script
def addresses_of_nothing(t: Any) -> Any:
    x = t.ones(2)
    part = x[2:]
    return [
        t.empty(0).data_ptr(),
        part.data_ptr(),
        part.untyped_storage().data_ptr() == x.data_ptr(),
        t.empty(2).resize_(0, 2).data_ptr(),
        part.numpy().shape,
        t.from_numpy(part.numpy()).shape,
    ]


def bytes_of(tensor: Any) -> bytes:
    """What lies where a tensor says that its elements are, as writers of files find it."""
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


@script
def memory_is_found_by_its_address(t: Any) -> Any:
    kinds = [t.float32, t.float64, t.int64, t.int32, t.int16, t.int8, t.uint8]
    whole = [t.tensor([[0, 1, 2], [3, 4, 5]], dtype=kind) for kind in kinds]
    whole.append(whole[0] > 1)
    shared: dict[Any, list[int]] = {}
    for i, x in enumerate([*whole, *(x[1] for x in whole)]):
        storage = x.untyped_storage()
        key = (x.device.type, storage.data_ptr(), storage.nbytes())
        shared.setdefault(key, []).append(i)
    pointer = ctypes.cast(whole[0].data_ptr(), ctypes.POINTER(ctypes.c_ubyte))
    storages = [ctypes.string_at(x[1:]._typed_storage().data_ptr(), x.nbytes) for x in whole]
    return [
        [bytes_of(x) for x in whole],
        [bytes_of(x[1]) for x in whole],
        [bytes_of(x.t().contiguous()) for x in whole],
        storages == [bytes_of(x) for x in whole],
        np.ctypeslib.as_array(pointer, (24,)).tobytes(),
        list(shared.values()),
    ]


@script
def memory_is_written_to_by_its_address(t: Any) -> Any:
    x = t.ones(2, 3, requires_grad=True)
    y = x.detach().view(6)[2:]
    version = x._version
    ctypes.memset(y.data_ptr(), 0, 8)
    source = t.arange(3.0)
    ctypes.memmove(x[1].data_ptr(), source.data_ptr(), 12)
    (x * x).sum().backward()
    grad = x.grad.clone()
    ctypes.memset(x.grad.data_ptr(), 0, 4)
    return x, y, x._version - version, grad, x.grad


@script
def deep_copies_share_as_the_originals_do(t: Any) -> Any:
    x = t.arange(6.0).view(2, 3)
    whole, part, turned, other = copy.deepcopy([x, x[1], x.t(), t.ones(1)])
    part[0] = 9
    layer = t.nn.Linear(2, 2)
    layer.weight.grad = t.ones(2, 2)
    twin = copy.deepcopy(layer)
    return [
        whole,
        turned,
        turned.stride(),
        part.storage_offset(),
        part.untyped_storage() is whole.untyped_storage(),
        other.untyped_storage() is whole.untyped_storage(),
        x,
        twin.weight.grad,
        twin.weight is layer.weight,
        type(twin.weight).__name__,
    ]


@script
def geometry_beyond_any_memory(t: Any) -> Any:
    one, big = t.ones(1), 2**62
    return all_tried(
        lambda: one.as_strided((2,), (big,)),
        lambda: one.as_strided((2, 2), (big, big)),
        lambda: one.as_strided((2, 2**32), (2**31, 2**31)),
        lambda: one.as_strided((2,), (1,), big),
        lambda: one.as_strided((2,), (1,), 2**63 - 1),
        lambda: t.empty(2, big),
        lambda: t.zeros(2**31, 2**33),
        lambda: t.empty((0, 4, 2**61)),
        lambda: t.ones(0).view(0, 4, 2**61),
        lambda: t.empty(()).resize_([0, 4, 2**61]),
        lambda: one.expand(2**32, 2**32),
    )


@script
def resizing_to_the_same_sizes_keeps_strides(t: Any) -> Any:
    x, y = t.empty(2, 3).t(), t.empty(4)[::2]
    last = t.empty(2, 3, 4, 5).contiguous(memory_format=t.channels_last)
    return [
        x.resize_(3, 2).stride(),
        x.resize_as_(x).stride(),
        x.resize_as_(t.empty(3, 2)).stride(),
        y.resize_(2).stride(),
        y.resize_(2, 1).stride(),
        last.resize_(2, 3, 4, 5).stride(),
        x.resize_(3, 2, memory_format=t.contiguous_format).stride(),
    ]


@script
def ranges_fill_what_has_as_many_elements(t: Any) -> Any:
    def fill(make: Any, *args: Any) -> Any:
        whole = t.zeros(2, 3)
        make(*args, out=whole.narrow(1, 1, 2))
        return whole

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            fill(t.arange, 4),
            fill(t.arange, 0, 8, 2),
            fill(t.range, 0, 3),
            fill(t.linspace, 0, 3, 4),
            fill(t.logspace, 0, 3, 4),
            t.arange(4, out=t.empty(2, 2, dtype=t.int32)),
            t.linspace(0, 3, 5, out=t.empty(2, 2)),
        ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_storages(name: str) -> None:
    both(SCRIPTS[name])


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_bytes(b"abcdefghijkl")
    name = str(path)

    def run(t: Any) -> Any:
        x = t.from_file(name, size=2)
        x[0] = 0
        return [x, path.read_bytes()] + all_tried(
            lambda: t.from_file(name, False, 3, dtype=t.int8, requires_grad=False),
            lambda: t.UntypedStorage.from_file(name, False, 3),
            lambda: t.ShortStorage.from_file(name, False, 2),
            lambda: t.TypedStorage.from_file(name, False, 2),
            lambda: t.from_file(name, size=200),
            lambda: t.from_file(name + "s", size=2),
        )

    both(run)


def test_files_in_place(tmp_path: Path) -> None:
    name = str(tmp_path / "numbers")

    def run(t: Any) -> Any:
        # PyTorch writes a zero to the first byte of a file that it makes longer.
        Path(name).write_bytes(b"\0bcdefghijkl")
        x = t.from_file(name, shared=True, size=20, dtype=t.int16)
        storage = x.untyped_storage()
        x[0] = 3
        x[10:].add_(7)
        known = [
            x,
            os.path.getsize(name),
            Path(name).read_bytes(),
            x.is_shared(),
            x[1:].is_shared(),
        ]
        known += [x.clone().is_shared(), storage.filename, storage.resizable(), storage.nbytes()]
        return known + all_tried(
            lambda: x.resize_(50),
            lambda: x.resize_(5),
            lambda: storage.resize_(500),
            lambda: t.from_file(name, shared=True, size=0, dtype=t.int8),
            lambda: t.from_file(name, shared=True, size=-1, dtype=t.int8),
            lambda: t.UntypedStorage.from_file(name, True, 3),
            lambda: t.ShortStorage.from_file(name, True, 2),
            lambda: t.from_file(name, shared=True, size=4, requires_grad=True),
            lambda: t.from_file(str(tmp_path), shared=True, size=4),
            lambda: t.from_file(name + "/no", shared=True, size=4),
            lambda: t.from_file("/dev/null", shared=True, size=4),
            lambda: x.share_memory_() is x,
        )

    both(run)


def test_storage_goes_with_its_last_name() -> None:
    before = pygrad.pg_live_count()
    x = pygrad.ones(3)
    storage = x.untyped_storage()
    gone = weakref.ref(storage)
    del x
    assert storage.tolist()[:4] == [0, 0, 128, 63]
    copy.deepcopy(storage)
    del storage
    assert gone() is None
    assert pygrad.pg_live_count() == before


def test_snapshots_keep_what_a_storage_held() -> None:
    x = pygrad.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    x.untyped_storage().fill_(0)
    y.backward()
    assert x.tolist() == [0.0, 0.0]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_storages_do_not_shrink() -> None:
    with pytest.raises(NotImplementedError, match="shrink"):
        pygrad.ones(3).untyped_storage().resize_(0)
