"""Polls: a long call asks the host every few milliseconds of its work whether to go on. An
exception there, such as that of Ctrl-C, ends the call like any error: nothing leaks, operands are
as before, and the same call then gives the same result.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import (
    PROPER_ERRORS,
    RANDOM,
    UNINITIALISED,
    assert_same,
    leaves,
    leaves_nothing,
    run,
    sweep_entries,
)
from samples import Entry
from sampling import Call, build

import pygrad as torch
from pygrad._boundary import hosting

pytestmark = pytest.mark.filterwarnings("ignore")


class Stop(BaseException):
    """Raised by a poll."""


class Polls:
    """Counts polls, and raises at one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0
        self.error = Stop()

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.last:
            raise self.error

    def stop(self, function: Callable[[], Any], at: int) -> bool:
        """Whether poll number `at` ended a call."""
        self.count, self.last = 0, at
        try:
            function()
        except Stop as error:
            assert error is self.error
            return True
        finally:
            self.last, self.error = 0, Stop()
        return False


@pytest.fixture
def polls(monkeypatch: Any) -> Iterator[Polls]:
    """Every look at the work polls, and loops look often."""
    counter = Polls()
    monkeypatch.setattr(hosting, "on_poll", counter)
    usual = torch._C._poll_every(0)
    yield counter
    torch._C._poll_every(usual)


def gradients(results: list[Any], inputs: list[Any]) -> list[Any]:
    roots = [each for each in results if each.requires_grad and each.dtype.is_floating_point]
    if not roots or not inputs:
        return []
    ones = [torch.ones_like(each) for each in roots]
    found = torch.autograd.grad(roots, inputs, ones, allow_unused=True)
    return [each for each in found if each is not None]


def outcome(entry: Entry, sample: Call) -> list[Any]:
    """The results of an op and its gradients, or []: an op may refuse to be differentiated."""
    torch.manual_seed(0)
    args, kwargs = build(sample)
    inputs = [each for each in leaves([args, kwargs]) if each.is_floating_point()]
    try:
        for each in inputs:
            each.requires_grad_()
        results = leaves(run(entry, args, kwargs))
        return [*results, *gradients(results, inputs)]
    except PROPER_ERRORS:
        return []


@sweep_entries(lambda entry: entry.name not in UNINITIALISED)
@leaves_nothing
def test_op_ends_at_a_poll_that_raises_and_gives_the_same_afterwards(
    entry: Entry, sample: Call, polls: Polls
) -> None:
    polls.count = 0
    expected = outcome(entry, sample)
    count = polls.count
    for at in sorted({1, 2, count // 2, count} & set(range(1, count + 1))):
        stopped = polls.stop(lambda: outcome(entry, sample), at)
        assert stopped or entry.name in RANDOM
    if count and entry.name not in RANDOM:
        assert_same(outcome(entry, sample), expected)


LONG: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x @ x,
    "element-wise": lambda x: x.tanh(),
    "in place": lambda x: x.add_(1),
    "broadcast": lambda x: x[:, None] * x,
    "reduction": lambda x: x.sum(),
    "sort": lambda x: x.flatten().sort(),
    "cumsum": lambda x: x.cumsum(0),
    "svd": lambda x: torch.linalg.svd(x),
    "eigh": lambda x: torch.linalg.eigh(x),
    "eig": lambda x: torch.linalg.eig(x),
    "cholesky": lambda x: torch.linalg.cholesky(x @ x.mT + 99 * torch.eye(99)),
    "solve": lambda x: torch.linalg.solve(x, x),
    "qr": lambda x: torch.linalg.qr(x),
    "convolution": lambda x: torch.nn.functional.conv2d(x[None, None], torch.ones(9, 1, 5, 5)),
    "pooling": lambda x: torch.nn.functional.max_pool2d(x[None], 3),
    "normalisation": lambda x: torch.nn.functional.layer_norm(x, (99,)),
    "softmax": lambda x: x.softmax(1),
    "distances": lambda x: torch.cdist(x, x),
    "fft": lambda x: torch.fft.fft(x),
    "random numbers": lambda x: torch.randn(99, 99),
    "lookup": lambda x: x[torch.randint(99, (999,))],
    "copy": lambda x: x.clone(memory_format=torch.contiguous_format).mT.contiguous(),
    "cast": lambda x: x.double(),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_work_of_every_kind_polls(kind: str, polls: Polls) -> None:
    x = torch.rand(99, 99)
    polls.count = 0
    LONG[kind](x)
    assert polls.count


@leaves_nothing
def test_backward_ends_at_a_poll_that_raises(polls: Polls) -> None:
    x = torch.rand(64, 64, requires_grad=True)
    y = (x @ x).tanh().sum()
    polls.count = 0
    y.backward(retain_graph=True)
    count, expected = polls.count, x.grad
    for at in (1, count // 2, count):
        x.grad = None
        assert polls.stop(lambda: y.backward(retain_graph=True), at)
    x.grad = None
    y.backward()
    assert torch.equal(x.grad, expected)


@leaves_nothing
def test_handler_within_a_call_may_use_tensors(polls: Polls, monkeypatch: Any) -> None:
    """Its calls do not disturb the call around it, whatever they free or write."""
    x, seen = torch.rand(64, 64), []
    expected = x @ x

    def handler() -> None:
        monkeypatch.setattr(hosting, "on_poll", polls)
        other = torch.rand(32, 32, requires_grad=True)
        with torch.enable_grad():
            (other @ other).sum().backward()
        seen.append((other.grad.shape, torch.is_grad_enabled()))

    monkeypatch.setattr(hosting, "on_poll", handler)
    with torch.no_grad():
        got = x @ x
    assert torch.equal(got, expected)
    assert seen == [((32, 32), False)]


def test_memory_that_a_handler_frees_lasts_until_the_call_ends(
    polls: Polls, monkeypatch: Any
) -> None:
    x, y = torch.ones(64, 64), torch.ones(64, 64)

    def handler() -> None:
        monkeypatch.setattr(hosting, "on_poll", polls)
        x.set_(torch.zeros(1))
        torch.full((64, 64), 7.0)

    monkeypatch.setattr(hosting, "on_poll", handler)
    product = x @ y
    assert x.shape == (1,)
    assert torch.equal(product, torch.full((64, 64), 64.0))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_ctrl_c_ends_a_call(polls: Polls, monkeypatch: Any) -> None:
    """The handlers of signals run where the function of polls begins."""

    x = torch.rand(64, 64)

    def interrupt() -> None:
        if not polls.count:
            os.kill(os.getpid(), signal.SIGINT)
        polls.count += 1

    polls.count = 0
    monkeypatch.setattr(hosting, "on_poll", interrupt)
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            x @ x
    finally:
        signal.signal(signal.SIGINT, usual)
    monkeypatch.setattr(hosting, "on_poll", polls)
    assert polls.count < 4
    assert (torch.ones(3) + 1).sum() == 6


@leaves_nothing
def test_backward_of_many_small_nodes_polls_between_them(polls: Polls) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(99):
        y = -y
    polls.count = 0
    assert polls.stop(lambda: y.backward(retain_graph=True), 50)
    assert x.grad is None
    y.backward()
    assert x.grad == -1


def test_printing_polls(polls: Polls) -> None:
    x = torch.arange(99.0)
    expected, count = repr(x), polls.count
    for at in (count // 3, count):
        assert polls.stop(lambda: repr(x), at)
    assert repr(x) == expected


@leaves_nothing
def test_gradcheck_puts_its_inputs_back_when_polls_raise(polls: Polls, monkeypatch: Any) -> None:
    """All polls from one on raise, as those of an exceeded limit."""
    x = torch.rand(9, 9, dtype=torch.float64).t().requires_grad_()
    before = x.detach().clone()

    def check() -> None:
        torch.autograd.gradcheck(lambda x: (x.tanh() * x).sum(), (x,))

    polls.count = 0
    check()
    count = polls.count

    def refuse() -> None:
        polls.count -= 1
        if polls.count < 0:
            raise Stop

    for at in range(1, count, count // 40 + 1):
        polls.count = at
        monkeypatch.setattr(hosting, "on_poll", refuse)
        with pytest.raises(Stop):
            check()
        monkeypatch.setattr(hosting, "on_poll", lambda: None)
        assert torch.equal(x.detach(), before)
