"""Exceptions that handlers of signals raise at any line, callbacks that raise what control flow is
made of, and a lock that somebody left behind: no crash, no wait for ever, nothing switched off.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from test_python import python

import pygrad
from pygrad import _boundary
from pygrad._boundary import ownership

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")

SECONDS = float(os.environ.get("PYGRAD_SIGNALS_SECONDS", "3"))
"""How long each program runs."""

PRELUDE = """
import gc, os, random, signal, sys, threading, time
import pygrad as torch
from pygrad import _boundary
SECONDS = float(sys.argv[1])
random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
sys.unraisablehook = id  # a function of Python could be interrupted

class Boom(BaseException):
    pass

armed, rings = False, 0

def ring(*_):
    global rings
    if armed:
        rings += 1
        raise Boom

signal.signal(signal.SIGALRM, ring)

def storm(work, between=lambda: None, every=None):
    "Interrupts some work at random, again and again; `between` says that all is well."
    global armed
    end = time.time() + SECONDS
    while time.time() < end:
        try:
            armed = True
            first = random.choice([3e-5, 1e-4, 2e-4, 1e-3])
            signal.setitimer(signal.ITIMER_REAL, first, every or random.choice([2e-4, 2e-2]))
            while time.time() < end:  # exceptions in callbacks of the collector are lost
                work()
        except Boom:
            armed = False
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        between()

calls = 0

def beside():
    "A second thread that uses the engine all the time."
    global calls
    while True:
        assert (torch.ones(3) + 1).sum().item() == 6
        calls += 1
        time.sleep(1e-4)

def goes_on():
    "Whether the other thread still gets the engine."
    seen, end = calls, time.time() + 10
    while calls == seen:
        assert time.time() < end, f"the other thread waits: {_boundary.lock}"
        time.sleep(1e-4)
"""

STORMS = {
    "hooks": """
x = torch.ones(8, 8, requires_grad=True)

def work():
    x.grad = None
    y = x * x
    y.register_hook(lambda g: g * 1)
    y.register_hook(lambda g: None)
    y.sum().backward()

storm(work, every=1.7e-4)
storm(work)
""",
    "functions": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * 2

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * 2

def well():
    assert torch.is_grad_enabled() and (x * 2).requires_grad

x = torch.ones(8, 8, requires_grad=True)
storm(lambda: Double.apply(x).sum().backward(), well)
""",
    "another thread": """
threading.Thread(target=beside, daemon=True).start()
x, big = torch.ones(8, 8), torch.ones(200, 200)
y = torch.ones(8, 8, requires_grad=True)
SECONDS /= 3
storm(lambda: x + 1, goes_on)
storm(lambda: big @ big, goes_on)
storm(lambda: (y * y).sum().backward(), goes_on)
""",
    "collections": """
def make():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, y=[y]: None)
    return x, y

threading.Thread(target=beside, daemon=True).start()
keep = [make() for _ in range(50)]
storm(gc.collect, goes_on, every=2e-2)
""",
    "training": """
threading.Thread(target=beside, daemon=True).start()
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer, inputs = torch.optim.Adam(model.parameters()), torch.ones(4, 8)

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a.clone()

    @staticmethod
    def backward(ctx, g):
        return g * 1

def work():
    optimizer.zero_grad()
    y = model(inputs)
    y.register_hook(lambda g: g * 1)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        loss = Same.apply(y).pow(2).mean()
    loss.backward()
    optimizer.step()

def well():
    torch.set_grad_enabled(True)  # `no_grad` of an optimizer is Python's, as PyTorch's is
    goes_on()

work()  # the optimizer's state is made piece by piece
storm(work, well)
""",
}

AFTERWARDS = """
torch.set_grad_enabled(True)
x = torch.ones(3, requires_grad=True)
y = x * 2
y.register_hook(lambda g: g * 3)
y.sum().backward()
assert x.grad.tolist() == [6, 6, 6]
assert rings > 20, rings
print("well", rings, flush=True)
os._exit(0)
"""


def run(code: str, *arguments: object) -> str:
    """What a program prints, given these arguments."""
    return python(f"import sys; sys.argv[1:] = {[str(a) for a in arguments]}\n{code}")


@needs_timer
@pytest.mark.parametrize("name", STORMS)
def test_exceptions_of_signal_handlers_at_any_line(name: str) -> None:
    assert run(PRELUDE + STORMS[name] + AFTERWARDS, SECONDS).startswith("well")


def test_handler_that_uses_the_engine_while_a_turn_changes_is_not_waited_for() -> None:
    class Turn:
        def _release_save(self) -> None:
            ownership._turn._release_save()  # type: ignore[attr-defined]
            assert (pygrad.ones(2) + 1).tolist() == [2, 2]  # as a handler would, which comes here

        def _acquire_restore(self, state: tuple[int, int]) -> None:
            assert not ownership.mine()  # who owns it already would wait for ever
            ownership._turn._acquire_restore(state)  # type: ignore[attr-defined]

    ownership.call_with_lock(ownership._give_turn, threading.get_ident(), Turn())
    assert ownership.mine()


@needs_timer
def test_handler_of_a_signal_may_use_the_engine() -> None:
    code = """
import os, random, signal, sys, threading, time, pygrad as torch
handled = 0

def handler(*_):
    global handled
    assert (torch.ones(2) + 1).tolist() == [2, 2]
    handled += 1
    signal.setitimer(signal.ITIMER_REAL, random.choice([1e-4, 1e-3, 3e-3]))

x = torch.ones(3, requires_grad=True)

def work():
    y = torch.ones(3, requires_grad=True) * 2
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    return torch.ones(60, 60) @ torch.ones(60, 60)

def others():
    while True:
        work()

signal.signal(signal.SIGALRM, handler)
for _ in range(2):
    threading.Thread(target=others, daemon=True).start()
last = time.time()

def watch():
    while True:
        time.sleep(0.5)
        if time.time() - last > 10:
            os._exit(1)

threading.Thread(target=watch, daemon=True).start()
signal.setitimer(signal.ITIMER_REAL, 1e-3)
end = time.time() + float(sys.argv[1])
while time.time() < end:
    assert work()[0, 0].item() == 60
    last = time.time()
print("well", handled, flush=True)
os._exit(0)
"""
    assert run(code, SECONDS).startswith("well")


@needs_timer
def test_keyboard_interrupts_are_raised_and_not_lost_in_finalizers() -> None:
    code = """
import random, signal, sys, pygrad as torch
random.seed(0)
lost, fired = 0, False
sys.unraisablehook = id

def handler(*_):
    global fired
    fired = True
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, handler)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
inputs = torch.ones(4, 8)

def step():
    model.zero_grad()
    model(inputs).pow(2).mean().backward()

for _ in range(600):
    try:
        fired = False
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 1e-3))
        while not fired:
            step()
        step()  # it fired, and nothing was raised
        lost += 1
    except KeyboardInterrupt:
        pass
print(lost)
"""
    assert int(python(code)) <= 3  # those that came in a callback of the garbage collector


# ------------------------------------------------------------------ exceptions of control flow


class Halt(BaseException):
    """No Exception."""


def check(f: Callable[[Any], Any], x: Any) -> Any:
    return pygrad.autograd.gradcheck(f, x)


def hessian(f: Callable[[Any], Any], x: Any) -> Any:
    return pygrad.autograd.functional.hessian(f, x)


def vmap(f: Callable[[Any], Any], x: Any) -> Any:
    return pygrad.vmap(f)(x)


def hook(f: Callable[[Any], Any], x: Any) -> Any:
    y = x * 2
    y.register_hook(f)
    y.sum().backward()


def leaf_hook(f: Callable[[Any], Any], x: Any) -> Any:
    x.register_post_accumulate_grad_hook(f)
    (x * 2).sum().backward()


def node_hook(f: Callable[[Any], Any], x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_hook(lambda *_: f(None))
    y.sum().backward()


def pack_hook(f: Callable[[Any], Any], x: Any) -> Any:
    with pygrad.autograd.graph.saved_tensors_hooks(f, f):
        return x * x


def unpack_hook(f: Callable[[Any], Any], x: Any) -> Any:
    with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, f):
        y = x * x
    y.sum().backward()


@pytest.mark.parametrize("kind", [GeneratorExit, StopIteration, KeyboardInterrupt, Halt])
@pytest.mark.parametrize(
    "way", [check, hessian, vmap, hook, leaf_hook, node_hook, pack_hook, unpack_hook]
)
def test_callback_may_raise_anything(way: Callable[..., Any], kind: type[BaseException]) -> None:
    gc.collect()
    before = pygrad.pg_live_count()
    error = kind("of the callback")

    def callback(_: Any) -> Any:
        raise error

    x = pygrad.ones(2, dtype=pygrad.float64, requires_grad=True)
    with pytest.raises(kind) as caught:
        way(callback, x)
    assert caught.value is error
    assert _boundary.lock.held is None
    error.__traceback__ = None
    del x, caught
    gc.collect()
    assert pygrad.pg_live_count() == before


# ------------------------------------------------------------------ what is left behind


def in_thread(function: Callable[[], Any]) -> Any:
    """The result of a function in another thread, which must not wait for ever."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), _boundary.lock
    return results[0]


def work() -> Any:
    return (pygrad.ones(3) * 2).sum().item()


def leave_behind() -> None:
    _boundary.ownership._take(sys._getframe())


@pytest.mark.parametrize("first", [in_thread, lambda function: function()])
def test_engine_that_was_never_given_back_is_free_once_the_taker_has_returned(first: Any) -> None:
    leave_behind()
    assert first(work) == 6
    assert work() == 6
    assert in_thread(work) == 6
    assert _boundary.lock.held is None


def test_engine_is_kept_from_others_as_long_as_the_taker_runs() -> None:
    before = _boundary.ownership._take(sys._getframe())
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert before is not None
    _boundary.ownership._give_back(before)
    thread.join(20)
    assert not thread.is_alive()


def test_thread_that_ended_in_the_middle_of_a_call_leaves_the_engine_to_others() -> None:
    def end() -> None:
        work()
        _boundary.lock.free = None

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert work() == 6


def test_callback_that_could_not_run_is_an_error() -> None:
    """What escapes from the callback's own catching is printed; the engine is told of a failure."""
    code = """
import pygrad
from pygrad import _boundary
x = pygrad.ones(2, requires_grad=True)
y = x * 2
y.register_hook(lambda g: g * 3)
_boundary.host.idle.clear()
try:
    y.sum().backward()
except RuntimeError as error:
    print(error)
x.grad = None
z = x * 2
z.register_hook(lambda g: g * 3)
z.sum().backward()
print(x.grad.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["pygrad: a callback was interrupted", "[6.0, 6.0]"]
    assert "IndexError: pop from empty list" in done.stderr


# ------------------------------------------------------------------ finalizers


def test_tensors_in_cycles_are_freed() -> None:
    gc.collect()
    before = pygrad.pg_live_count()
    for _ in range(10):
        x: Any = pygrad.ones(2)
        x.itself = x
    del x
    gc.collect()
    assert pygrad.pg_live_count() == before
