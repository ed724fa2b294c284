"""Memory: nothing leaks, its end is an error like others, and arrays that share it keep it
alive.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import leaves_nothing

import pygrad
from pygrad._boundary import calls
from pygrad._boundary.header import address_of
from pygrad._ground import warnings as _warnings

GIBIBYTE = 1 << 30


def in_use() -> int:
    """Bytes of the engine that belong to live tensors and nodes."""
    pygrad.pg_live_count()
    return pygrad._C._memory()[0]


def test_training_step_leaves_nothing_behind() -> None:
    model = pygrad.nn.Sequential(pygrad.nn.Linear(8, 8), pygrad.nn.ReLU(), pygrad.nn.Linear(8, 2))
    optimizer = pygrad.optim.Adam(model.parameters())
    x, y = pygrad.randn(4, 8), pygrad.tensor([0, 1, 0, 1])

    def step() -> None:
        optimizer.zero_grad()
        pygrad.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    step()
    step()
    in_use()  # the engine's place for results of several numbers is made at the first
    gc.collect()
    count, size = pygrad.pg_live_count(), in_use()
    for _ in range(20):
        step()
    assert (pygrad.pg_live_count(), in_use()) == (count, size)


def test_elements_of_a_large_tensor_begin_a_cache_line() -> None:
    """As in PyTorch, so that no row of 64 bytes lies across two lines."""
    kept = [pygrad.ones(n) for n in range(256, 1400, 13)]
    assert [x.data_ptr() % 64 for x in kept] == [0] * len(kept)


@leaves_nothing
def test_how_views_were_made_is_forgotten_with_them() -> None:
    before = pygrad.pg_live_count()
    with pygrad.autograd._force_original_view_tracking(True):
        x = pygrad.ones(2, 2, requires_grad=True)
        v = base = x.clone()
        for _ in range(50_000):  # nothing recurses on them
            v = v.view(2, 2)
    base.add_(1)
    v.sum().backward()
    assert v.grad_fn.name() == "ViewBackward0"
    assert (x.grad == 1).all()
    del x, v, base
    assert pygrad.pg_live_count() == before


def test_hook_on_several_results_dies_with_them() -> None:
    x = pygrad.ones(3, requires_grad=True)
    calls: list[list[bool]] = []
    for _ in range(3):
        y, z = x * 2, x.exp()
        pygrad.autograd.graph.register_multi_grad_hook(
            [y, z], lambda grads: calls.append([g is not None for g in grads])
        )
        y.sum().backward()
    assert calls == [[True, False]] * 3


def test_hook_on_several_forgets_gradients_of_a_backward_that_failed() -> None:
    x, y = (pygrad.ones(2, requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    pygrad.autograd.graph.register_multi_grad_hook((x, y), seen.append)

    def fail(g: Any) -> None:
        raise ValueError("no gradient")

    def step() -> None:
        u, v = x * 2, y * 2
        u.register_hook(fail)
        with pytest.raises(ValueError, match="no gradient"):
            (u.sum() + v.sum()).backward()  # y has its gradient, x will have none
        x.grad = y.grad = None

    step()
    before = pygrad.pg_live_count()
    for _ in range(5):
        step()
    assert pygrad.pg_live_count() == before
    assert not seen


@leaves_nothing
def test_failed_calls_leave_nothing_behind() -> None:
    x = pygrad.ones(2, 3, requires_grad=True)
    for bad in (
        lambda: x @ x,
        lambda: x.sum(5),
        lambda: (x * 2).view(4),
        lambda: pygrad.cat([x, x.double(), pygrad.ones(1)]),
        lambda: x[3],
        lambda: pygrad.nn.functional.cross_entropy(x, pygrad.tensor([0, 7])),
        lambda: (x * x).backward(),
        lambda: pygrad.ones(2, 3).double().set_(x),
    ):
        for _ in range(3):
            with pytest.raises((RuntimeError, IndexError)):
                bad()


def test_handle_that_waits_while_a_call_is_refused_is_released() -> None:
    x = pygrad.ones(3)
    before = pygrad.pg_live_count()
    for _ in range(20):
        pygrad.ones(3)
        with pytest.raises(ValueError, match="Overflow"):
            x.sum(2**70)
        x + 1
    assert pygrad.pg_live_count() == before


@leaves_nothing
@leaves_nothing
def test_function_whose_warning_is_an_error_leaves_nothing_behind() -> None:
    class Same(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            copy = x.clone()
            ctx.mark_dirty(copy)  # which is no input
            return x, copy

    x = pygrad.ones(3, requires_grad=True) * 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="mark_dirty"):
            Same.apply(x)


def test_abandoned_graph_is_freed() -> None:
    x = pygrad.ones(10, requires_grad=True)
    for _ in range(50):
        (x * x).exp().sum()


def test_leaves_that_died_are_forgotten() -> None:
    kept = [pygrad.ones(1, requires_grad=True) for _ in range(100)]
    for _ in range(3000):
        pygrad.ones(1, requires_grad=True)
    more = [pygrad.ones(1, requires_grad=True) for _ in range(3000)]
    alive = sum(ref() is not None for ref in calls.known_refs.values())
    assert len(calls.known_refs) <= 2 * alive + 1024
    (kept[7] * 2 + more[9]).sum().backward()
    assert kept[7].grad_fn is None
    assert calls.remembered_object(calls.share(kept[7]._h)) is kept[7]


def test_released_memory_is_used_again() -> None:
    pygrad.ones(1_000_000)
    first = pygrad._boundary.host.pages()
    for _ in range(100):
        pygrad.ones(1_000_000)
    assert pygrad._boundary.host.pages() - first <= 128


def test_bytes_are_counted() -> None:
    before = in_use()
    x = pygrad.ones(1000, dtype=pygrad.float64)
    assert 8000 <= in_use() - before < 9000
    del x
    assert in_use() == before


# ------------------------------------------------------------------ the end of memory


@pytest.mark.parametrize(
    "size", [(GIBIBYTE,), (1 << 31,), (1 << 40,), (1 << 20, 1 << 20), (1 << 31, 1 << 31)]
)
def test_tensor_too_large_is_an_error_after_which_all_works(size: tuple[int, ...]) -> None:
    count, before = pygrad.pg_live_count(), in_use()
    with pytest.raises((pygrad.OutOfMemoryError, RuntimeError)):
        pygrad.zeros(size, dtype=pygrad.float64)
    assert (pygrad.pg_live_count(), in_use()) == (count, before)
    assert pygrad.ones(3).sum().item() == 3


def test_out_of_memory_is_a_runtime_error_of_its_own() -> None:
    assert issubclass(pygrad.OutOfMemoryError, RuntimeError)
    with pytest.raises(pygrad.OutOfMemoryError):
        pygrad.empty(4 * GIBIBYTE, dtype=pygrad.int8)


def test_overflow_of_the_element_count_is_not_out_of_memory_of_a_small_size() -> None:
    with pytest.raises(RuntimeError):
        pygrad.empty(1 << 62, 1 << 62)


def test_out_of_memory_in_an_op_leaves_the_graph_usable() -> None:
    x = pygrad.ones(1 << 16, 1, requires_grad=True)
    y = x * 2
    before = pygrad.pg_live_count()
    for _ in range(2):
        with pytest.raises(pygrad.OutOfMemoryError):
            y + y.reshape(1, -1)
        gc.collect()  # the frames of the traceback
        assert pygrad.pg_live_count() == before
    y.sum().backward()
    assert x.grad.sum().item() == 2 << 16


def test_out_of_memory_in_backward_leaves_the_engine_usable() -> None:
    x = pygrad.ones(1, requires_grad=True)
    y = x.expand(1 << 30).expand(2, 1 << 30)
    before = pygrad.pg_live_count()
    with pytest.raises(pygrad.OutOfMemoryError):
        y.exp()
    gc.collect()
    assert pygrad.pg_live_count() == before
    x.sum().backward()
    assert x.grad.item() == 1


# ------------------------------------------------------------------ NumPy


def test_numpy_shares_memory_both_ways() -> None:
    x = pygrad.zeros(2, 3)
    array = x.numpy()
    array[0, 1] = 5
    x[1] = 7
    assert x.tolist() == [[0, 5, 0], [7, 7, 7]]
    assert array.tolist() == x.tolist()


def test_numpy_has_shape_strides_and_dtype() -> None:
    x = pygrad.arange(24, dtype=pygrad.int16).reshape(2, 3, 4).transpose(0, 2)[1:, ::2]
    array = x.numpy()
    assert array.shape == tuple(x.shape)
    assert array.strides == tuple(2 * s for s in x.stride())
    assert array.dtype == np.int16
    np.testing.assert_array_equal(array, x.tolist())


def test_array_keeps_its_tensor_alive() -> None:
    before = pygrad.pg_live_count()
    array = pygrad.full((1000,), 3.0).numpy()[10:20]
    junk = [pygrad.zeros(1000) for _ in range(50)]
    assert array.tolist() == [3.0] * 10
    del junk, array
    assert pygrad.pg_live_count() == before


def test_array_stays_valid_when_memory_grows() -> None:
    array = pygrad.full((1000,), 3.0).numpy()
    large = pygrad.zeros(50_000_000)
    assert array.sum() == 3000
    array += 1
    del large
    assert array.sum() == 4000


def test_address_is_one_of_this_process_and_stays() -> None:
    x = pygrad.arange(4.0, requires_grad=True)
    loss = (x * x).sum()  # shares the memory with what is saved
    address = x.data_ptr()
    elements = (ctypes.c_float * 4).from_address(address)
    assert list(elements) == [0, 1, 2, 3]
    saved = (x * x).sum()
    with pygrad.no_grad():
        x.add_(1)
        x[1:].copy_(pygrad.zeros(3))
    large = pygrad.zeros(50_000_000)
    assert (x.data_ptr(), list(elements)) == (address, [1, 0, 0, 0])
    del large
    elements[3] = 9
    assert x.tolist() == [1, 0, 0, 9]
    (loss + saved).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 4, 8, 12]


def test_addresses_tell_what_shares_memory() -> None:
    x = pygrad.arange(6.0)
    part = x.view(2, 3)[1:, 1:]
    assert part.data_ptr() == x.data_ptr() + 4 * 4
    assert x.detach().data_ptr() == x.data_ptr() != x.clone().data_ptr()
    assert x.numpy().__array_interface__["data"][0] == x.data_ptr()
    for each in (x, part):
        for storage in (each.untyped_storage(), each._typed_storage()):
            assert storage.data_ptr() == x.data_ptr()


def test_storage_whose_address_is_known_may_grow() -> None:
    x = pygrad.ones(2)
    x.data_ptr()
    assert x.untyped_storage().resizable()
    assert x.resize_(1000)[:2].tolist() == [1, 1]
    array = x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(5000)
    assert array[0] == 1


def test_saves_of_a_tensor_whose_address_is_known_share_one_copy() -> None:
    x = pygrad.ones(100_000, requires_grad=True)
    x.data_ptr()
    before = in_use()
    made = [x * x for _ in range(10)]
    assert in_use() - before < 11.5 * 400_000  # ten results and one copy
    del made
    assert in_use() - before < 401_000  # the copy, for the saves to come


def is_pinned(x: Any) -> bool:
    """Whether a save of x is a copy."""
    kept = pygrad.pg_live_count() and pygrad._C._snapshot(x)
    return address_of(kept) != address_of(x)


def test_address_that_was_compared_pins_while_it_lives() -> None:
    x, y = pygrad.ones(4), pygrad.ones(4)
    assert x.data_ptr() != y.data_ptr()
    assert x.data_ptr() == x.untyped_storage().data_ptr() == x.detach().data_ptr()
    assert not is_pinned(x)
    known = {x.data_ptr(): "x", y[2:].data_ptr(): "y"}
    assert is_pinned(x)
    assert is_pinned(y)
    assert known[x.data_ptr()] == "x"
    assert known[y.data_ptr() + 8] == "y"
    known.clear()
    assert not is_pinned(x)
    assert is_pinned(y)  # of which one was only added to


def test_address_that_may_have_gone_elsewhere_pins_for_good() -> None:
    for use in (lambda p: (ctypes.c_float * 4).from_address(p), int, lambda p: p == 0, hex, bool):
        x = pygrad.ones(4, requires_grad=True)
        use(x.data_ptr())
        assert is_pinned(x)


def test_compared_address_that_is_read_as_a_number_pins_for_good() -> None:
    x = pygrad.ones(4)
    address = x.data_ptr()
    assert {address: int(address)}[address] == address
    del address
    assert is_pinned(x)


def test_address_is_a_plain_number_elsewhere() -> None:
    address = pygrad.ones(4).data_ptr()
    assert isinstance(address, int)
    for copied in (copy.copy(address), copy.deepcopy(address), pickle.loads(pickle.dumps(address))):
        assert type(copied) is int
        assert copied == address
    assert address + 4 - address == 4
    assert pygrad.tensor(address).item() == address


def test_address_may_outlive_its_tensor() -> None:
    x = pygrad.ones(4)
    addresses = [x.data_ptr(), x.data_ptr()]
    del x
    pygrad.pg_live_count()
    assert len(set(addresses)) == 1


def test_numpy_of_a_tensor_that_requires_grad_is_refused() -> None:
    x = pygrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_from_numpy_of_a_shared_array_shares_again() -> None:
    x = pygrad.zeros(4)
    again = pygrad.from_numpy(x.numpy()[1:3])
    again.fill_(7)
    assert x.tolist() == [0, 7, 7, 0]
    assert again.data_ptr() == x[1:3].data_ptr()


def test_from_numpy_of_another_array_is_one_copy() -> None:
    array = np.zeros(3, np.float32)
    x = pygrad.from_numpy(array)
    array[0] = 9
    assert x.tolist() == [0, 0, 0]


SHARED_BY_PYTORCH: dict[str, Callable[[Any], Any]] = {
    "from_numpy": pygrad.from_numpy,
    "as_tensor": pygrad.as_tensor,
    "asarray": pygrad.asarray,
    "from_dlpack": pygrad.from_dlpack,
    "frombuffer": lambda array: pygrad.frombuffer(array, dtype=pygrad.float32),
}


@pytest.fixture
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgets the warnings that were given, as in a new process."""
    monkeypatch.setattr(_warnings, "_given", set())


@pytest.mark.parametrize("name", SHARED_BY_PYTORCH)
@pytest.mark.usefixtures("nothing_said")
def test_copy_where_pytorch_shares_is_said_once(name: str) -> None:
    make = SHARED_BY_PYTORCH[name]
    with pytest.warns(UserWarning, match="engine's memory, where PyTorch shares it") as said:
        make(np.zeros(3, np.float32))
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(np.zeros(3, np.float32))


@pytest.mark.parametrize("name", ["from_numpy", "as_tensor", "asarray", "from_dlpack"])
@pytest.mark.usefixtures("nothing_said")
def test_remedy_of_the_warning_shares(name: str) -> None:
    frame = np.zeros(1, dtype=np.float32)
    with pytest.warns(UserWarning, match=r"let `array = pygrad\.from_numpy\(array\)\.numpy\(\)`"):
        frame = pygrad.from_numpy(frame).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observation = SHARED_BY_PYTORCH[name](frame)
    seen = []
    for step in (1, 2, 3):
        frame[:] = step
        seen.append(observation.item())
    assert seen == [1, 2, 3]
    observation.fill_(4)
    assert frame.tolist() == [4]


@pytest.mark.usefixtures("nothing_said")
def test_copies_that_pytorch_makes_too_are_not_worth_a_word() -> None:
    array = np.zeros(3, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pygrad.tensor(array)
        pygrad.as_tensor(array, dtype=pygrad.float64)
        pygrad.asarray(array, copy=True)
        pygrad.asarray(np.float32(1))
        pygrad.as_tensor(array[0])
        pygrad.as_tensor([1.0, 2.0])
        pygrad.zeros(3)[np.array([0, 1])].add(1)
        pygrad.utils.data.default_collate([array, array])


READ_ONLY = "The given NumPy array is not writable, and PyTorch does not support non-writable"


@pytest.mark.parametrize("name", ["from_numpy", "as_tensor", "asarray"])
@pytest.mark.usefixtures("nothing_said")
def test_array_that_is_read_only_gets_the_warning_of_pytorch(name: str) -> None:
    array = np.zeros(3, np.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match=READ_ONLY):
        SHARED_BY_PYTORCH[name](array)
    pygrad.tensor(array)


@pytest.mark.usefixtures("nothing_said")
def test_buffer_that_is_read_only_gets_the_warning_of_pytorch() -> None:
    with pytest.warns(UserWarning, match="The given buffer is not writable, and PyTorch does not"):
        pygrad.frombuffer(bytes(4), dtype=pygrad.float32)


@pytest.mark.parametrize("make", [*SHARED_BY_PYTORCH.values()][:4] + [pygrad.tensor])
def test_array_of_negative_strides_is_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="At least one stride in the given numpy array"):
        make(np.arange(4.0)[::-1])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(10, dtype=np.float32)[::2],
        np.array(3.5),
        np.zeros((0, 3)),
        np.array([True, False]),
        np.arange(5, dtype=np.uint8),
        np.array([1.5, -np.inf], dtype=np.float16),
        np.array([1 + 2j, 3 - 4j], dtype=np.complex64)[::2],
        np.array([[1j], [np.nan]], dtype=np.complex128),
        np.array([0, 2**16 - 1], dtype=np.uint16),
        np.array([0, 2**32 - 1], dtype=np.uint32),
        np.array([0, 2**64 - 1], dtype=np.uint64),
    ],
    ids=str,
)
def test_from_numpy_takes_any_layout_and_dtype(array: Any) -> None:
    np.testing.assert_array_equal(pygrad.from_numpy(array).numpy(), array)
    assert pygrad.from_numpy(array).numpy().dtype == array.dtype


@pytest.mark.parametrize(
    "array",
    [np.array(["a"]), np.zeros(2, np.clongdouble), np.array([object()])],
    ids=lambda array: array.dtype.char,
)
def test_from_numpy_refuses_other_dtypes(array: Any) -> None:
    with pytest.raises(TypeError, match="can't convert np.ndarray of type"):
        pygrad.from_numpy(array)


@pytest.mark.parametrize("size", [3, 5000])
def test_from_numpy_takes_bfloat16_of_those_who_have_it(size: int) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    array = (np.arange(2 * size) / 4).astype(bfloat16)[::2]
    x = pygrad.from_numpy(array)
    assert x.dtype is pygrad.bfloat16
    assert x.tolist() == array.astype(float).tolist()
    with pytest.raises(TypeError, match="unsupported ScalarType BFloat16"):
        x.numpy()


def test_from_numpy_of_the_other_byte_order_is_refused() -> None:
    with pytest.raises(ValueError, match="byte order"):
        pygrad.from_numpy(np.zeros(2, ">f4"))


def test_array_protocol() -> None:
    x = pygrad.tensor([1.5, 2.5])
    np.testing.assert_array_equal(np.asarray(x), [1.5, 2.5])
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float64), [1.5, 2.5])
    assert np.add(x.numpy(), 1).tolist() == [2.5, 3.5]
    copied = np.array(x)
    copied[0] = 0
    assert x.tolist() == [1.5, 2.5]


def test_dlpack_out_and_in() -> None:
    x = pygrad.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(x)
    array_again = pygrad.from_dlpack(np.arange(3))
    np.testing.assert_array_equal(array, x.numpy())
    assert array_again.tolist() == [0, 1, 2]
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        pygrad.ones(2, requires_grad=True).__dlpack__()


@leaves_nothing
def test_finalisers_within_a_call_do_not_disturb_it() -> None:
    """Garbage is collected while a call is being prepared: what dies then must not enter the
    engine.
    """
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for k in range(300):
            cycle: list[Any] = [pygrad.ones(2), pygrad.ones(2).numpy()]
            cycle += [(pygrad.ones(2, requires_grad=True) * 2).grad_fn, cycle]
            del cycle
            total = pygrad.cat([pygrad.full((2, 2), k), pygrad.ones([1, 2])], dim=0).sum(dim=[0, 1])
            assert total.item() == 4 * k + 2
    finally:
        gc.set_threshold(*threshold)


def test_failed_call_leaves_no_garbage_to_collect() -> None:
    """One that referred to its own frames would keep the arguments alive until a collection."""
    gc.collect()
    gc.disable()
    try:
        before = pygrad.pg_live_count()
        for _ in range(3):
            try:
                pygrad.ones(2, 3) @ pygrad.ones(2, 3)
            except RuntimeError:
                pass
        assert pygrad.pg_live_count() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
def test_nan_leaves_with_one_pattern(layout: str) -> None:
    bits = pygrad.tensor([[-4093, 0, 0], [0, 0x7FC12345, 0]], dtype=pygrad.int32)
    made = bits.view(pygrad.float32).clone()
    shown = {"contiguous": made, "transposed": made.t(), "sliced": made[:, ::2]}[layout]
    found = set(shown.numpy().copy().view("uint32").ravel().tolist())
    assert found == {0, 0x7FC00000}


@pytest.mark.parametrize("seen_as", ["float16", "float32", "complex64"])
def test_looking_at_bytes_as_another_type_changes_none(seen_as: str) -> None:
    bits = pygrad.arange(-(2**62), 2**62, 2**50 + 2**20 + 1)
    before = bits.tolist()
    seen = bits.view(getattr(pygrad, seen_as))
    array = seen[3:].numpy()
    assert np.isnan(array).any()
    assert bits.tolist() == before
    assert array.tobytes() == np.array(before).tobytes()[3 * array.itemsize :]
