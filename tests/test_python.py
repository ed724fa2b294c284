"""What Python asks of tensors: identity, text, copies, pickles, threads, forks, the public call."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from typing import Any

import pytest

import pygrad
from pygrad import _boundary


def python(code: str, **environment: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.strip()


# ------------------------------------------------------------------ calls


def test_the_first_list_that_a_call_gives_may_be_empty() -> None:
    assert (
        python("import pygrad; print(list(pygrad.zeros(0, 3)), pygrad.zeros(0).unbind())")
        == "[] ()"
    )


@pytest.mark.parametrize(
    ("short", "same"),
    [
        (lambda x: x.view(3, 2), lambda x: x.view((3, 2))),
        (lambda x: x.sum(0), lambda x: x.sum(dim=[0], keepdim=False, dtype=None)),
        (lambda x: x.permute(1, 0), lambda x: x.permute(dims=(1, 0))),
        (lambda x: x.max(1).values, lambda x: pygrad.max(input=x, axis=1)[0]),
        (lambda x: x.max(dim=1).values, lambda x: pygrad.max(x, 1, False)[0]),
        (lambda x: x.clamp(2, 4), lambda x: x.clamp(min=2.0, max=4)),
        (lambda x: x.reshape(-1), lambda x: x.reshape(shape=[pygrad.tensor(6)])),
        (lambda x: x.expand(2, 2, 3), lambda x: x.expand(pygrad.Size([2, 2, 3]))),
        (lambda x: x.to(pygrad.float64), lambda x: x.to(dtype=pygrad.float64, copy=False)),
        (lambda x: pygrad.cat([x, x]), lambda x: pygrad.cat((x, x.detach()), dim=-2)),
        (lambda x: pygrad.zeros(2, 3), lambda x: pygrad.zeros(size=(2, 3), dtype=x.dtype)),
        (lambda x: x.new_full((2,), 3), lambda x: x.new_full([2], fill_value=3.0)),
        (lambda x: x[1, 2], lambda x: x[pygrad.tensor(1)][2]),
    ],
)
def test_spellings_of_a_call_are_equal(short: Any, same: Any) -> None:
    x = pygrad.arange(6.0).reshape(2, 3)
    for _ in range(2):  # the first call of a kind makes its plan
        mine, other = short(x), same(x)
        assert mine.dtype is other.dtype
        assert mine.shape == other.shape
        assert mine.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.sum(1 << 70), ValueError),
        (lambda x: x.view(1 << 70, 2), ValueError),
        (lambda x: x.view([1 << 70, 2]), TypeError),
        (lambda x: pygrad.cat([x, "x"]), TypeError),
        (lambda x: pygrad.cat([x, 1]), TypeError),
        (lambda x: x.to("nowhere" * 2000), RuntimeError),
        (lambda x: x.sum(0, dimension=1), TypeError),
        (lambda x: x.max(1, False, 2), TypeError),
    ],
)
def test_arguments_that_fit_no_frame_raise(call: Any, error: Any) -> None:
    x = pygrad.ones(2, 3)
    for _ in range(2):
        with pytest.raises(error):
            call(x)
    assert x.sum(0).tolist() == [2.0, 2.0, 2.0]


def test_error_of_a_callback_is_not_taken_for_one_of_packing() -> None:
    runs = []

    def hook(grad: Any) -> None:
        runs.append(grad)
        raise struct.error("the hook's own")

    x = pygrad.ones(2, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(struct.error, match="own"):
        pygrad.autograd.backward(x.sum())
    with pytest.raises(struct.error, match="own"):
        x.sum().backward(pygrad.tensor(1.0), retain_graph=True)
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("data", "shape", "dtype"),
    [
        (1.5, (), "float32"),
        (True, (), "bool"),
        ([], (0,), "float32"),
        ([[], []], (2, 0), "float32"),
        ([1, 2.5, True], (3,), "float32"),
        ([1, True], (2,), "int64"),
        ([[1, 2], (3, 4)], (2, 2), "int64"),
        ([[[1.0]], [[2.0]]], (2, 1, 1), "float32"),
        ([pygrad.tensor(1), 2], (2,), "int64"),
        (range(3), (3,), "int64"),
    ],
)
def test_lists_make_tensors(data: Any, shape: Any, dtype: str) -> None:
    made = pygrad.tensor(data)
    assert (made.shape, made.dtype) == (shape, getattr(pygrad, dtype))
    assert made.tolist() == pygrad.tensor(made.tolist(), dtype=made.dtype).tolist()


def test_default_dtype_is_that_of_lists() -> None:
    pygrad.set_default_dtype(pygrad.float64)
    try:
        assert pygrad.tensor([1, 2.5]).dtype is pygrad.float64
    finally:
        pygrad.set_default_dtype(pygrad.float32)


def test_tolist_reads_any_strides() -> None:
    x = pygrad.arange(6).reshape(2, 3)
    assert x.t().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x[:, ::2].tolist() == [[0, 2], [3, 5]]
    assert x[1:, 1:].tolist() == [[4, 5]]
    assert x[0].expand(2, 3).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert x[:, :0].tolist() == [[], []]


# ------------------------------------------------------------------ identity


def test_grad_is_one_object() -> None:
    x = pygrad.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad is x.grad


def test_grad_is_the_object_that_was_assigned() -> None:
    x, g = pygrad.ones(2, requires_grad=True), pygrad.zeros(2)
    x.grad = g
    assert x.grad is g


def test_base_is_the_object_that_was_viewed() -> None:
    x = pygrad.ones(2)
    assert x[0]._base is x


@pytest.mark.parametrize("name", ["add_", "mul_", "copy_"])
def test_inplace_returns_its_tensor(name: str) -> None:
    x = pygrad.ones(2)
    assert getattr(x, name)(pygrad.ones(2)) is x


def test_conversions_that_change_nothing_return_their_tensor() -> None:
    x = pygrad.ones(2)
    assert x.to(pygrad.float32) is x
    assert x.float() is x
    assert x.contiguous() is x
    assert x.cpu() is x
    assert x.requires_grad_() is x


def test_augmented_assignment_keeps_the_object() -> None:
    x = kept = pygrad.ones(2)
    x += 1
    x *= 3
    assert x is kept
    assert x.tolist() == [6, 6]


def test_tensor_is_hashed_by_identity() -> None:
    x = pygrad.ones(2)
    assert {x: 1}[x] == 1
    assert hash(x) != hash(x.clone()) or x is not x.clone()


def test_attributes_may_be_set() -> None:
    x = pygrad.ones(2)
    x.label = "mine"
    assert x.label == "mine"


# ------------------------------------------------------------------ text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([1, 2], "tensor([1, 2])"),
        ([True, False], "tensor([ True, False])"),
        (3.0, "tensor(3.)"),
        ([], "tensor([])"),
        ([[1.0], [2.0]], "tensor([[1.],\n        [2.]])"),
        ([1e-8, 1.0], "tensor([1.0000e-08, 1.0000e+00])"),
        ([float("nan"), float("inf")], "tensor([nan, inf])"),
    ],
)
def test_repr(value: Any, text: str) -> None:
    assert repr(pygrad.tensor(value)) == str(pygrad.tensor(value)) == text


def test_repr_tells_dtype_and_history() -> None:
    assert repr(pygrad.zeros(1, dtype=pygrad.int32)) == "tensor([0], dtype=torch.int32)"
    x = pygrad.ones(1, requires_grad=True)
    assert repr(x) == "tensor([1.], requires_grad=True)"
    assert repr(x * 2) == "tensor([2.], grad_fn=<MulBackward0>)"


def test_format_of_a_number() -> None:
    assert f"{pygrad.tensor(1.23456):.2f}" == "1.23"


# ------------------------------------------------------------------ copies and pickles


def test_deepcopy_is_a_leaf_of_its_own() -> None:
    x = pygrad.ones(2, requires_grad=True)
    x.grad = pygrad.full((2,), 3.0)
    y = copy.deepcopy([x, x])
    assert y[0] is y[1]
    assert (y[0].requires_grad, y[0].grad.tolist()) == (True, [3, 3])
    with pygrad.no_grad():
        y[0].zero_()
    assert x.tolist() == [1, 1]


def test_deepcopy_of_an_inner_tensor_is_refused() -> None:
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(pygrad.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "uint8", "bool"])
def test_pickle_is_by_value(dtype: str) -> None:
    x = pygrad.arange(6).reshape(2, 3).to(getattr(pygrad, dtype)).t()
    y = pickle.loads(pickle.dumps(x))
    assert (y.dtype, y.shape, y.tolist()) == (x.dtype, x.shape, x.tolist())


def test_pickle_keeps_requires_grad_and_class() -> None:
    p = pickle.loads(pickle.dumps(pygrad.nn.Parameter(pygrad.ones(2))))
    assert isinstance(p, pygrad.nn.Parameter)
    assert p.requires_grad


def test_module_is_copied_and_pickled() -> None:
    model = pygrad.nn.Sequential(pygrad.nn.Linear(2, 3), pygrad.nn.ReLU())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other(pygrad.ones(1, 2)).tolist() == model(pygrad.ones(1, 2)).tolist()
        assert other[0].weight is not model[0].weight


# ------------------------------------------------------------------ numbers


def test_one_element_is_a_number() -> None:
    assert (int(pygrad.tensor(3.7)), float(pygrad.tensor(2)), bool(pygrad.tensor(0))) == (
        3,
        2.0,
        False,
    )
    assert [10, 20, 30][pygrad.tensor(1)] == 20
    assert pygrad.tensor(2.5).item() == 2.5


def test_operators_take_numbers_on_either_side() -> None:
    x = pygrad.tensor([4.0])
    results = [1 + x, 1 - x, 2 * x, 2 / x, 2**x, 9 // x, 9 % x, x + 1, x - 1, x * 2, x / 2, x**2]
    results += [x // 3, x % 3, -x, +x, abs(-x)]
    expected = [5, -3, 8, 0.5, 16, 2, 1, 5, 3, 8, 2, 16, 1, 1, -4, 4, 4]
    assert [r.item() for r in results] == expected


def test_tensor_and_foreign_operand_find_each_other() -> None:
    class Other:
        def __radd__(self, other: Any) -> str:
            return "other's"

    assert pygrad.ones(2) + Other() == "other's"


def test_comparison_is_elementwise() -> None:
    assert (pygrad.tensor([1, 2]) == 2).tolist() == [False, True]
    assert (pygrad.tensor([1, 2]) < pygrad.tensor([2, 2])).tolist() == [True, False]
    assert 2 in pygrad.tensor([1, 2])


def test_iteration_unpacking_and_len() -> None:
    a, b = pygrad.tensor([[1, 2], [3, 4]])
    assert (a.tolist(), b.tolist(), len(pygrad.ones(5, 2))) == ([1, 2], [3, 4], 5)


# ------------------------------------------------------------------ threads, forks


def test_threads_share_the_engine() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            x = pygrad.full((50, 50), float(seed), requires_grad=True)
            for _ in range(40):
                x.grad = None
                (x @ x).sum().backward()
                assert x.grad[0, 0].item() == 100.0 * seed
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_threads_and_finalizers_in_the_middle_of_a_call() -> None:
    """Threads that switch as often as they can, and cyclic garbage whose finalizers call the
    engine while a call is being written: nobody reads what another wrote.
    """
    wrong: list[object] = []

    class Noisy:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            if (pygrad.full((3,), 2.0) * 3 + 1).tolist() != [7.0] * 3:
                wrong.append("finalizer")

    def work(k: int) -> None:
        x = pygrad.full((4, 4), float(k))
        w = pygrad.ones(4, 4, requires_grad=True)
        for i in range(150):
            Noisy()
            if ((x + x) * 2.0).sum().item() != 64 * k:
                wrong.append("sum")
            handle = w.register_hook(lambda g: g * 2.0) if i % 10 == 0 else None
            w.grad = None
            (x * w).sum().backward()
            if w.grad is None or w.grad[1].tolist() != [float(2 * k if handle else k)] * 4:
                wrong.append("gradient")
            if handle is not None:
                handle.remove()

    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(20)
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert not wrong


def test_finalizer_may_call_while_the_engine_changes_hands(monkeypatch: Any) -> None:
    x, seen = pygrad.ones(2), []

    def turn_to(ident: int, turn_to: Any = _boundary.ownership._give_turn) -> None:
        monkeypatch.undo()
        seen.append((x + 1).sum().item())  # as one does that a garbage collection runs here
        turn_to(ident)

    monkeypatch.setattr(_boundary.ownership, "_give_turn", turn_to)
    worker = threading.Thread(target=lambda: seen.append((x * 2).sum().item()), daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
    assert seen[:2] == [4.0, 4.0]


def test_tensor_may_die_in_another_thread() -> None:
    before = pygrad.pg_live_count()
    box = [pygrad.ones(10) for _ in range(10)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert pygrad.pg_live_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_child_of_a_fork_works_or_says_so() -> None:
    code = """
import os, pygrad
x = pygrad.ones(3, requires_grad=True)
child = os.fork()
if child == 0:
    try:
        (x * 2).sum().backward()
        os._exit(0 if x.grad.tolist() == [2, 2, 2] else 1)
    except RuntimeError:
        os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert (x * 2).sum().item() == 6
print("both")
"""
    assert python(code) == "both"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_child_of_a_fork_has_an_engine_that_no_thread_was_in() -> None:
    code = """
import os, signal, threading, time, pygrad
a = pygrad.ones(900, 900, requires_grad=True)
y = (a @ a).sum()
thread = threading.Thread(target=y.backward)  # which lets other threads run meanwhile
thread.start()
time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if (pygrad.ones(3) * 2).sum().item() == 6 else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
print("both")
"""
    assert python(code) == "both"


# ------------------------------------------------------------------ the process

SCRIPT = """
import pygrad as torch
torch.manual_seed(0)
x = torch.randn(3, 3, requires_grad=True)
y = torch.cat([x @ x, x.exp()]).sum(dim=0)
y.backward(torch.ones(3))
hook = []
z = x * 2
z.register_hook(lambda g: hook.append(g.sum().item()))
z.sum().backward()
try:
    x.view(4)
except RuntimeError as error:
    print(error)
print(x.grad.sum().item(), hook, torch.autograd.graph.allow_mutation_on_saved_tensors() is True)
"""


def test_public_call_gives_the_same() -> None:
    assert python(SCRIPT, PYGRAD_PUBLIC_CALL="1") == python(SCRIPT)


TRAP = """
import pygrad
from pygrad import _boundary

x = pygrad.ones(2)
_boundary.released.append(0xFFFFFFF0)  # beyond the memory
for call in (lambda: x + 1, lambda: x.exp(), lambda: pygrad.zeros(3)):
    try:
        call()
    except pygrad.EngineError as error:
        print("unusable" in str(error), "out of bounds memory access" in str(error))
"""


@pytest.mark.parametrize("public", ["0", "1"])
def test_trap_is_reported_then_and_ever_after(public: str) -> None:
    """An engine that did not survive a call gives no results any more, right or wrong."""
    assert python(TRAP, PYGRAD_PUBLIC_CALL=public).split() == ["True", "True"] * 3


def test_engine_loads_without_a_cache() -> None:
    assert python("import pygrad; print(pygrad.ones(2).sum().item())", PYGRAD_CACHE="0") == "2.0"


def test_engine_loads_without_a_home(tmp_path: Any) -> None:
    code = "import pygrad; print(pygrad.ones(2).sum().item())"
    assert python(code, HOME=str(tmp_path / "none"), XDG_CACHE_HOME=str(tmp_path / "no")) == "2.0"
    assert python(code, HOME="/proc/none", XDG_CACHE_HOME="", PYGRAD_CACHE="0") == "2.0"


def test_tensors_alive_at_exit_are_no_trouble() -> None:
    code = """
import pygrad
x = pygrad.ones(3, requires_grad=True)
array = x.detach().numpy()
node = (x * 2).grad_fn
cycle = [x, node, array]
cycle.append(cycle)
x.register_hook(lambda g: None)
print("ok")
"""
    assert python(code) == "ok"


def test_default_dtype_is_for_new_floats() -> None:
    pygrad.set_default_dtype(pygrad.float64)
    try:
        assert pygrad.tensor(1.5).dtype == pygrad.ones(2).dtype == pygrad.float64
    finally:
        pygrad.set_default_dtype(pygrad.float32)


def test_public_names_are_sorted_and_exist() -> None:
    assert list(pygrad.__all__) == sorted(set(pygrad.__all__))
    for name in pygrad.__all__:
        assert hasattr(pygrad, name)


INTERRUPTED = """
import signal, time, pygrad

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
x = pygrad.rand(900, 900, requires_grad=True)
for delay in (0.001, 0.01, 0.03):
    y = x @ x
    y.register_hook(lambda g: g)  # the engine is busy before it calls this, and after
    z = (y @ x).sum()
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        z.backward()
        time.sleep(0.1)
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
w = pygrad.ones(2, requires_grad=True)
w.register_hook(lambda g: 2 * g)
w.sum().backward()
print(w.grad.tolist())
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timer here")
def test_handlers_of_signals_may_raise_while_the_engine_is_busy() -> None:
    assert python(INTERRUPTED).strip() == "[2.0, 2.0]"


CLEARED = """
import traceback, pygrad

def wrong(g):
    raise ValueError(len(seen))

seen = []
for _ in range(4):
    x = pygrad.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(wrong)
    y.register_hook(wrong)
    try:
        y.sum().backward()
    except ValueError as error:
        names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        seen.append((str(error), names[0], names[-1]))
        traceback.clear_frames(error.__traceback__)
print(seen == [(str(i), "<module>", "wrong") for i in range(4)])
"""


def test_frames_of_errors_from_hooks_may_be_cleared() -> None:
    assert python(CLEARED) == "True"


def test_results_that_end_in_a_list_have_it_as_one_of_them() -> None:
    points = pygrad.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    for bins in (2, [2, 2], [pygrad.tensor([0.0, 1.0, 2.0])] * 2):
        found = pygrad.histogramdd(points, bins)
        assert isinstance(found, pygrad.return_types.histogramdd)
        hist, edges = found
        assert hist is found.hist
        assert edges is found.bin_edges
        assert hist.tolist() == [[0.0, 1.0], [1.0, 1.0]]
        assert [each.tolist() for each in edges] == [[0.0, 1.0, 2.0]] * 2


AT_EXIT = """
import pygrad

class Kept:
    def __init__(self):
        self.x = pygrad.ones(3)

    def __del__(self):
        x = pygrad.ones(2, requires_grad=True)
        (x * x).sum().backward()
        y = self.x
        print(y.tolist(), repr(y), y.untyped_storage().nbytes(), x.grad.tolist(), y.type(), list(y))
        print((x * x).grad_fn.next_functions[0][0].name(), pygrad.as_tensor([1.0]), y.dim_order())

kept = Kept()
"""


def test_finalizers_may_use_tensors_while_python_exits() -> None:
    """Finalizers run when nothing can be imported any more."""
    done = subprocess.run(
        [sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "[1.0, 1.0, 1.0]" in done.stdout
    assert "AccumulateGrad" in done.stdout


def test_dir_has_the_public_names_before_they_are_used() -> None:
    """TAB offers them; what is no name of PyTorch's or ours it does not offer."""
    code = (
        "import pygrad, rlcompleter\n"
        "complete = rlcompleter.Completer({'torch': pygrad}).complete\n"
        "for name in 'save load autocast cuda distributions backends amp jit hub fx'.split():\n"
        "    assert name in dir(pygrad), name\n"
        "    assert complete('torch.' + name[:3], 0), name\n"
        "for name in 'Any TYPE_CHECKING annotations calls pg_live_count'.split():\n"
        "    assert name not in dir(pygrad), name\n"
        "assert all(hasattr(pygrad, name) for name in dir(pygrad))\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
