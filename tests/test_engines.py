"""Several engines in one process: isolated, freed, refused by each other, and parallel."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pygrad
from pygrad._boundary import process


@pytest.fixture
def e() -> Iterator[Any]:
    yield pygrad.Engine()
    gc.collect()


@pytest.fixture(scope="module")
def other() -> Iterator[Any]:
    """An engine whose tensors are given to the first."""
    yield pygrad.Engine()
    gc.collect()


def engines_alive() -> set[str]:
    return {name.partition(".")[0] for name in sys.modules if name.startswith("pygrad@")}


# ------------------------------------------------------------------ isolation


def test_engine_computes_and_differentiates(e: Any) -> None:
    x = e.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    assert type(x) is e.Tensor
    assert x.grad.tolist() == [2.0, 4.0]


def test_engine_trains_as_the_first_does(e: Any) -> None:
    def train(engine: Any) -> list[float]:
        engine.manual_seed(3)
        model = engine.nn.Sequential(
            engine.nn.Linear(3, 4), engine.nn.Tanh(), engine.nn.Linear(4, 1)
        )
        optimizer = engine.optim.Adam(model.parameters(), lr=0.1)
        x = engine.randn(8, 3)
        for _ in range(5):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        return [v for p in model.parameters() for v in p.flatten().tolist()]

    assert train(e) == train(pygrad)


def test_engine_has_the_whole_namespace(e: Any) -> None:
    missing = [name for name in pygrad.__all__ if not hasattr(e, name)]
    assert missing == []
    assert e.distributions.Normal(0.0, 1.0).sample().__class__ is e.Tensor
    assert isinstance(e.utils.data.DataLoader([1, 2]), e.utils.data.DataLoader)


def test_engines_have_memories_of_their_own(e: Any) -> None:
    before = pygrad.pg_live_count()
    kept = [e.ones(1000) for _ in range(10)]
    assert pygrad.pg_live_count() == before
    del kept
    assert e._boundary.host.base_address != pygrad._boundary.host.base_address


def test_engines_share_no_module_but_those_of_no_engine(e: Any) -> None:
    mine = {id(m) for n, m in sys.modules.items() if n.partition(".")[0] == "pygrad"}
    loaded = e.__builtins__["__import__"].__self__.loaded
    shared = {name.partition(".")[2] for name, module in loaded.items() if id(module) in mine}
    names = {name.partition(".")[2] for name in loaded}
    assert shared == pygrad._install.engines.SHARED & names


def test_seeds_are_apart(e: Any) -> None:
    pygrad.manual_seed(1)
    wanted = pygrad.rand(3).tolist()
    pygrad.manual_seed(1)
    e.manual_seed(2)
    e.rand(3)
    assert pygrad.rand(3).tolist() == wanted
    e.manual_seed(1)
    assert e.rand(3).tolist() == wanted


def test_modes_are_apart(e: Any) -> None:
    with e.no_grad():
        assert not e.is_grad_enabled()
        assert pygrad.is_grad_enabled()
        assert (pygrad.ones(1, requires_grad=True) * 2).requires_grad
    with pygrad.inference_mode():
        assert not e.ones(1).is_inference()
    with e.autograd.set_detect_anomaly(True, check_nan=False):
        assert not pygrad.is_anomaly_enabled()


def test_default_dtypes_are_apart(e: Any) -> None:
    e.set_default_dtype(e.float64)
    assert e.ones(1).dtype is pygrad.float64
    assert pygrad.ones(1).dtype is pygrad.float32


def test_dtypes_and_errors_are_the_same(e: Any) -> None:
    assert e.float32 is pygrad.float32
    assert e.ones(1, dtype=pygrad.int16).dtype is e.int16
    assert e.Size is pygrad.Size
    with pytest.raises(pygrad.LinAlgError):
        e.linalg.inv(e.zeros(2, 2))


def test_hooks_and_custom_functions_are_apart(e: Any) -> None:
    class Double(e.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    seen = []
    x = e.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(type(g)))
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert seen == [e.Tensor]


def test_engine_is_called_from_the_other_ones_hook(e: Any) -> None:
    x = pygrad.ones(2, requires_grad=True)

    def hook(gradient: Any) -> Any:
        y = e.tensor(gradient.tolist(), requires_grad=True)
        (y * y).sum().backward()
        return pygrad.tensor(y.grad.tolist())

    x.register_hook(hook)
    (x * 3).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 6.0]


def test_error_of_one_leaves_the_other_as_it_was(e: Any) -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        e.ones(2, 3) @ e.ones(2, 3)
    assert (pygrad.ones(2) + 1).tolist() == [2.0, 2.0]
    assert (e.ones(2) + 1).tolist() == [2.0, 2.0]


# ------------------------------------------------------------------ mixed


def operator(x: Any, y: Any) -> None:
    x + y


def reflected_operator(x: Any, y: Any) -> None:
    y * x


def comparison(x: Any, y: Any) -> None:
    x == y  # noqa: B015


def in_place_operator(x: Any, y: Any) -> None:
    x += y


def matrix_product(x: Any, y: Any) -> None:
    x @ y


def function(x: Any, y: Any) -> None:
    pygrad.relu(y)


def second_argument(x: Any, y: Any) -> None:
    pygrad.add(x, y)


def third_argument(x: Any, y: Any) -> None:
    pygrad.where(x > 0, x, y)


def keyword(x: Any, y: Any) -> None:
    pygrad.add(x, other=y)


def out(x: Any, y: Any) -> None:
    pygrad.add(x, x, out=y)


def method(x: Any, y: Any) -> None:
    x.add(y)


def method_of_the_class(x: Any, y: Any) -> None:
    pygrad.Tensor.add(y, x)


def copy_(x: Any, y: Any) -> None:
    x.copy_(y)


def in_a_list(x: Any, y: Any) -> None:
    pygrad.cat([x, y])


def in_a_tuple(x: Any, y: Any) -> None:
    pygrad.stack((y, x))


def in_nested_data(x: Any, y: Any) -> None:
    pygrad.tensor([x.sum(), y.sum()])


def in_data_of_a_dtype(x: Any, y: Any) -> None:
    pygrad.tensor([1.0, y.sum()], dtype=pygrad.float32)


def as_data(x: Any, y: Any) -> None:
    pygrad.tensor(y)


def as_tensor(x: Any, y: Any) -> None:
    pygrad.as_tensor(y)


def asarray(x: Any, y: Any) -> None:
    pygrad.asarray(y)


def index(x: Any, y: Any) -> None:
    x[y.long()]


def index_of_one_number(x: Any, y: Any) -> None:
    x[y.long()[0]]


def index_in_a_tuple(x: Any, y: Any) -> None:
    x[..., y.long()]


def index_in_a_list(x: Any, y: Any) -> None:
    x[[y.long()[0], 0]]


def index_assigned(x: Any, y: Any) -> None:
    x[y.long()] = 0


def assigned(x: Any, y: Any) -> None:
    x[0] = y[0]


def size(x: Any, y: Any) -> None:
    pygrad.zeros((y.long()[0], 2))


def contained(x: Any, y: Any) -> None:
    assert y in x


def grad_assigned(x: Any, y: Any) -> None:
    x.grad = y


def data_assigned(x: Any, y: Any) -> None:
    x.data = y


def gradient(x: Any, y: Any) -> None:
    (x.requires_grad_() * 2).backward(y)


def root(x: Any, y: Any) -> None:
    pygrad.autograd.backward(y)


def grad_inputs(x: Any, y: Any) -> None:
    pygrad.autograd.grad(x.requires_grad_().sum(), [y])


def grad_outputs(x: Any, y: Any) -> None:
    pygrad.autograd.grad(x.requires_grad_() * 2, [x], [y])


def backward_inputs(x: Any, y: Any) -> None:
    x.requires_grad_().sum().backward(inputs=[y])


def hook_result(x: Any, y: Any) -> None:
    z = x.requires_grad_() * 1
    z.register_hook(lambda g: y)
    z.sum().backward()


def saved_for_backward(x: Any, y: Any) -> None:
    class F(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(y)
            return a * 1

    F.apply(x.requires_grad_())


def optimizer(x: Any, y: Any) -> None:
    pygrad.optim.SGD([y])


def layer(x: Any, y: Any) -> None:
    pygrad.nn.Linear(2, 2)(y)


def parameter(x: Any, y: Any) -> None:
    pygrad.nn.Parameter(y)


def parameter_assigned(x: Any, y: Any) -> None:
    pygrad.nn.Linear(2, 2).weight = y


def parameter_registered(x: Any, y: Any) -> None:
    pygrad.nn.Linear(2, 2).register_parameter("p", y)


def buffer_registered(x: Any, y: Any) -> None:
    pygrad.nn.Linear(2, 2).register_buffer("p", y)


def buffer_assigned(x: Any, y: Any) -> None:
    module = pygrad.nn.Linear(2, 2)
    module.register_buffer("b", x)
    module.b = y


def state_loaded(x: Any, y: Any) -> None:
    pygrad.nn.Linear(2, 2).load_state_dict({"weight": y, "bias": y})


def random_generator(x: Any, y: Any) -> None:
    engine = sys.modules[type(y).__module__]
    pygrad.rand(2, generator=engine.Generator())


def random_state(x: Any, y: Any) -> None:
    pygrad.set_rng_state(y)


def jacobian(x: Any, y: Any) -> None:
    pygrad.autograd.functional.jacobian(lambda t: t, y)


def vmap(x: Any, y: Any) -> None:
    pygrad.vmap(pygrad.sin)(y)


def grad_of_function(x: Any, y: Any) -> None:
    pygrad.func.grad(lambda t: t.sum())(y)


def one_element(x: Any, y: Any) -> None:
    pygrad.full((2,), y[0])


def set_of_storage(x: Any, y: Any) -> None:
    x.set_(y)


def tensors_of_storage(x: Any, y: Any) -> None:
    x.set_(y.untyped_storage())


def clipped_by(x: Any, y: Any) -> None:
    x.clamp(min=y)


def gradients_clipped(x: Any, y: Any) -> None:
    y.grad = y.detach()
    pygrad.nn.utils.clip_grad_norm_([y], 1.0)


def einsum(x: Any, y: Any) -> None:
    pygrad.einsum("i,i->", x, y)


def mapped(x: Any, y: Any) -> None:
    x.map_(y, lambda a, b: a)


PLACES = [
    operator, reflected_operator, comparison, in_place_operator, matrix_product, function,
    second_argument, third_argument, keyword, out, method, method_of_the_class, copy_, in_a_list,
    in_a_tuple, in_nested_data, in_data_of_a_dtype,
    as_data, as_tensor, asarray, index, index_of_one_number,
    index_in_a_tuple, index_in_a_list, index_assigned, assigned, size, contained, grad_assigned,
    data_assigned, gradient, root, grad_inputs, grad_outputs, backward_inputs, hook_result,
    saved_for_backward, optimizer, layer, parameter, parameter_assigned, parameter_registered,
    buffer_registered, buffer_assigned, state_loaded, random_generator, random_state, jacobian,
    vmap, grad_of_function, one_element, set_of_storage, tensors_of_storage, clipped_by,
    gradients_clipped, einsum, mapped,
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_belongs_to_another_engine_is_refused(place: Any, other: Any) -> None:
    x, y = pygrad.tensor([1.0, 2.0]), other.tensor([0.0, 1.0])
    lived = other.pg_live_count()
    with pytest.raises((TypeError, RuntimeError), match="belongs to another engine") as caught:
        place(x, y)
    assert "pygrad@" in str(caught.value)
    del caught
    y.grad = None
    assert x.tolist() == [1.0, 2.0]
    assert y.tolist() == [0.0, 1.0]
    gc.collect()
    assert other.pg_live_count() == lived


def test_tensors_are_copied_by_numpy(other: Any) -> None:
    y = other.tensor([0.5, 1.5])
    x = pygrad.from_numpy(y.numpy())
    y += 1
    assert x.tolist() == [0.5, 1.5]


# ------------------------------------------------------------------ the end of an engine


def reserved_bytes() -> int:
    """Bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096


def test_engine_dropped_is_freed() -> None:
    gc.collect()
    before, alive, stores = reserved_bytes(), engines_alive(), len(process._stores)
    e = pygrad.Engine()
    x = e.ones(3, requires_grad=True)
    (x * x).sum().backward()
    name, gone = e.__name__, weakref.ref(e)
    assert reserved_bytes() > before + (4 << 30)
    assert name in engines_alive()
    del e, x
    gc.collect()
    assert gone() is None
    assert engines_alive() == alive
    assert len(process._stores) == stores
    assert reserved_bytes() < before + (1 << 30)


def test_tensor_keeps_its_engine() -> None:
    gc.collect()
    stores = len(process._stores)
    x = pygrad.Engine().ones(3)
    gc.collect()
    assert (x + 1).type() == "torch.FloatTensor"  # which needs a module that was not yet there
    assert x.untyped_storage().nbytes() == 12
    del x
    gc.collect()
    assert len(process._stores) == stores


def test_array_keeps_the_memory_that_it_shows() -> None:
    array = pygrad.Engine().arange(3.0).numpy()
    gc.collect()
    array += 1
    assert array.tolist() == [1.0, 2.0, 3.0]


def used(e: Any) -> None:
    """Leaves in an engine one of all that it may hold of Python's."""
    x = e.randn(4, 4, requires_grad=True)
    x.register_hook(lambda g: g * x)  # a cycle through the engine
    x.noted = [x]
    model = e.nn.Linear(4, 2)
    optimizer = e.optim.Adam(model.parameters())
    model.register_forward_hook(lambda *_: None)
    loss = model(x).sum()
    loss.grad_fn.register_hook(lambda *_: loss.detach().numpy() and None)
    loss.backward(retain_graph=True)
    optimizer.step()
    e.vmap(e.sin)(x)
    with e.profiler.profile():
        x.exp()
    with e.autograd.set_detect_anomaly(True, check_nan=False):
        e.utils.checkpoint.checkpoint(e.sin, x, use_reentrant=False)
    threading.Thread(target=lambda: x.cos()).start()


def test_engines_made_and_dropped_leave_nothing() -> None:
    used(pygrad.Engine())
    gc.collect()
    before, hooks, modules = reserved_bytes(), len(gc.callbacks), len(sys.modules)
    lists = process.before_fork, process.after_fork, process.after_fork_in_child, process.at_exit
    heard = [len(each) for each in lists]
    for _ in range(20):
        used(pygrad.Engine())
        gc.collect()
    assert reserved_bytes() < before + (64 << 20)
    assert (len(gc.callbacks), len(sys.modules)) == (hooks, modules)
    assert [len(each) for each in lists] == heard


def test_finalizers_of_a_dying_engine_find_its_memory() -> None:
    script = """if True:
        import gc
        import pygrad
        gc.disable()  # a collection in between may change which finalizer is the first
        class Noted:
            def __del__(self):
                assert self.x.tolist() == [1.0, 1.0]
                print("seen")
        for _ in range(3):
            e = pygrad.Engine()
            noted = Noted()
            noted.x = e.ones(2, requires_grad=True)
            noted.x.noted = noted
            noted.x.register_hook(lambda g: noted)
            y = noted.x * 2
            y.grad_fn.metadata["y"] = y
            del e, noted, y
            gc.collect()
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["seen"] * 3


def test_process_ends_with_engines_alive() -> None:
    script = "import pygrad; e = pygrad.Engine(); x = e.ones(2, requires_grad=True); y = x * 2"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ------------------------------------------------------------------ threads, processes, pickles


def test_engines_run_on_threads_at_once(other: Any) -> None:
    engines = [pygrad, other, pygrad.Engine()]
    found: dict[int, list[float]] = {}
    gate = threading.Barrier(len(engines))

    def work(k: int, engine: Any) -> None:
        gate.wait(10)
        total = []
        for n in range(30):
            a = engine.full((40, 40), float(k + 1), requires_grad=True)
            (a @ a).sum().backward()
            total.append(a.grad.sum().item() + n)
        found[k] = total

    threads = [threading.Thread(target=work, args=each) for each in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(len(engines)):
        assert found[k] == [2 * 40**3 * (k + 1.0) + n for n in range(30)]


def test_engine_runs_while_another_is_in_a_long_call(other: Any) -> None:
    entered, leave = threading.Event(), threading.Event()
    x = other.ones(2, requires_grad=True)

    def hook(gradient: Any) -> None:
        entered.set()
        assert leave.wait(10)

    x.register_hook(hook)
    thread = threading.Thread(target=lambda: (x * 2).sum().backward())
    thread.start()
    assert entered.wait(10)
    assert (pygrad.ones(2) + 1).tolist() == [2.0, 2.0]  # or it would wait for ever
    leave.set()
    thread.join()
    assert x.grad.tolist() == [2.0, 2.0]


def test_child_process_uses_both(other: Any) -> None:
    x, y = pygrad.ones(2), other.ones(2)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(write, repr([(x + 1).tolist(), (y + 2).tolist()]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 1000) == b"[[2.0, 2.0], [3.0, 3.0]]"
    os.close(read)
    os.close(write)


def test_pickles_and_copies_stay_in_their_engine(e: Any) -> None:
    model = e.nn.Linear(2, 1)
    for made in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert type(made) is e.nn.Linear
        assert made.weight.tolist() == model.weight.tolist()
    function = pickle.loads(pickle.dumps(e.add))
    assert function(e.ones(1), e.ones(1)).tolist() == [2.0]


def test_pickle_outlives_no_engine() -> None:
    raw = pickle.dumps(pygrad.Engine().ones(2))
    gc.collect()
    with pytest.raises(ModuleNotFoundError, match="pygrad@"):
        pickle.loads(raw)


def test_file_is_read_by_any_engine(e: Any, tmp_path: Path) -> None:
    e.save({"w": e.tensor([1.0, 2.0])}, tmp_path / "w.safetensors")
    found = pygrad.load(tmp_path / "w.safetensors")
    assert type(found["w"]) is pygrad.Tensor
    assert found["w"].tolist() == [1.0, 2.0]


def test_engine_itself_is_not_pickled(e: Any) -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(e)
