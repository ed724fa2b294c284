"""What gradcheck leaves behind: inputs put back, nothing alive, every mode as before, whichever of
the function's calls fails; and functions that do what functions may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers import leaves_nothing

import pygrad
from pygrad.autograd import forward_ad, gradcheck, gradgradcheck
from pygrad.autograd.gradcheck import GradcheckError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CHECKS: dict[str, Callable[..., Any]] = {
    "full": gradcheck,
    "fast": lambda f, x: gradcheck(f, x, fast_mode=True),
    "forward": lambda f, x: gradcheck(f, x, check_forward_ad=True),
    "fast forward": lambda f, x: gradcheck(f, x, check_forward_ad=True, fast_mode=True),
    "batched": lambda f, x: gradcheck(
        f, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    ),
    "second": gradgradcheck,
    "second forward": lambda f, x: gradgradcheck(f, x, check_fwd_over_rev=True),
}
VALUES = [0.1, 0.7, 1.3]


def leaf(*values: float) -> Any:
    return pygrad.tensor(values, dtype=pygrad.float64, requires_grad=True)


class Mine(Exception):
    """An error that is nobody else's."""


def failing(at: int, error: BaseException | None = None) -> Callable[[Any], Any]:
    """A function of one tensor and a number whose call `at` fails."""
    calls = 0

    def function(x: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise error or Mine(at)
        return x.exp() * x, x.sum()

    return function


def calls_of(check: Callable[..., Any]) -> int:
    count = 0

    def function(x: Any) -> Any:
        nonlocal count
        count += 1
        return x.exp() * x, x.sum()

    assert check(function, leaf(*VALUES))
    return count


@pytest.mark.parametrize("name", CHECKS)
@leaves_nothing
def test_failure_of_any_call_leaves_all_as_it_was(name: str) -> None:
    check = CHECKS[name]
    for at in range(1, calls_of(check) + 1):
        x = leaf(*VALUES)
        with pytest.raises(Mine):
            check(failing(at), x)
        assert x.tolist() == VALUES
        assert x.grad is None
        assert pygrad.is_grad_enabled()
        assert forward_ad.current_level() == -1


@pytest.mark.parametrize("name", CHECKS)
@leaves_nothing
def test_failure_of_any_backward_leaves_all_as_it_was(name: str) -> None:
    check = CHECKS[name]

    def function(limit: int) -> tuple[Callable[[Any], Any], list[int]]:
        count = [0]

        def hook(g: Any) -> None:
            count[0] += 1
            if count[0] == limit:
                raise Mine

        def f(x: Any) -> Any:
            y = x.exp()
            if y.requires_grad:
                y.register_hook(hook)
            return y * x

        return f, count

    f, count = function(-1)
    assert check(f, leaf(*VALUES))
    for at in range(1, count[0] + 1):
        x = leaf(*VALUES)
        with pytest.raises(Mine):
            check(function(at)[0], x)
        assert x.tolist() == VALUES
        assert pygrad.is_grad_enabled()
        assert forward_ad.current_level() == -1


@leaves_nothing
def test_error_of_a_call_is_the_very_object() -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        gradcheck(failing(3, error), leaf(1.0))
    assert caught.value is error


@pytest.mark.parametrize("fast_mode", [False, True])
@leaves_nothing
def test_verdict_leaves_nothing(fast_mode: bool) -> None:
    def wrong(x: Any) -> Any:
        y = x.exp()
        if y.requires_grad:
            y.register_hook(lambda g: None if g is None else g * 3)
        return y

    for options in ({}, {"check_forward_ad": True, "check_backward_ad": False}):
        verdict = gradcheck(
            wrong, leaf(*VALUES), raise_exception=False, fast_mode=fast_mode, **options
        )
        assert verdict == ("check_forward_ad" in options)


@leaves_nothing
def test_elements_of_a_view_are_put_back() -> None:
    base = pygrad.arange(12.0, dtype=pygrad.float64).reshape(3, 4)
    x = base.t()[1:3].requires_grad_()
    assert gradcheck(lambda x: x * x, x)
    assert gradcheck(lambda x: x.sin(), x, fast_mode=True)
    assert base.tolist() == [[4.0 * i + j for j in range(4)] for i in range(3)]


@leaves_nothing
def test_function_may_reach_the_input_by_other_ways() -> None:
    x = leaf(*VALUES)
    assert gradcheck(lambda _: x.exp(), x)
    seen: list[Any] = []
    gradcheck(lambda t: seen.append(t) or t.exp(), x)
    assert all(t is x for t in seen)


@leaves_nothing
def test_function_may_check_gradients_itself() -> None:
    def function(x: Any) -> Any:
        assert gradcheck(
            lambda t: t.sin(), leaf(0.3), check_forward_ad=forward_ad.current_level() < 0
        )
        return x.exp()

    assert gradcheck(function, leaf(0.5), check_forward_ad=True)


@leaves_nothing
def test_function_may_run_backwards_and_return_many_tensors() -> None:
    def function(x: Any) -> Any:
        inner = leaf(2.0)
        (inner * inner).sum().backward()
        assert inner.grad.item() == 4
        return [x * k for k in range(40)]

    assert gradcheck(function, leaf(0.5), check_forward_ad=True, check_undefined_grad=False)


@leaves_nothing
def test_error_of_an_absent_gradient_is_the_cause() -> None:
    class Strict(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:  # type: ignore[override]
            if g is None:
                raise error
            return g * 2

    error: Exception = RuntimeError("mine")
    with pytest.raises(GradcheckError, match="handle undefined output grads") as caught:
        gradcheck(Strict.apply, leaf(1.0))
    assert caught.value.__cause__ is error
    assert gradcheck(Strict.apply, leaf(1.0), raise_exception=False) is False
    error = KeyError("no error of PyTorch's")
    with pytest.raises(KeyError):
        gradcheck(Strict.apply, leaf(1.0), raise_exception=False)
    with pytest.raises(RuntimeError, match="^another$"):
        gradcheck(failing(1, RuntimeError("another")), leaf(1.0))


@leaves_nothing
def test_function_without_gradients_has_none_to_check() -> None:
    assert gradgradcheck(lambda x: x.detach() * 2, leaf(1.0))


@leaves_nothing
def test_number_of_given_gradients_must_be_that_of_outputs() -> None:
    with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
        gradgradcheck(lambda x: x.exp(), leaf(1.0), (leaf(1.0), leaf(2.0)))


@leaves_nothing
def test_without_recording_there_is_no_gradient() -> None:
    with pygrad.no_grad(), pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.exp(), leaf(1.0))
