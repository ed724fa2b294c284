"""Branches, loops and scans as calls: what they make, their gradients, what they refuse."""

from __future__ import annotations

import pytest

import pygrad
import pygrad.torch as torch
from pygrad.torch._higher_order_ops import map as map_slices
from pygrad.torch._higher_order_ops import scan
from pygrad.torch._higher_order_ops.associative_scan import associative_scan
from pygrad.torch._higher_order_ops.cond import cond
from pygrad.torch._higher_order_ops.while_loop import while_loop


def test_torch_shows_the_functions_under_its_names() -> None:
    assert torch.cond is cond is pygrad.cond
    assert torch.while_loop is while_loop
    assert torch._higher_order_ops.associative_scan is associative_scan


@pytest.mark.parametrize("kind", [pygrad.tensor, bool, float])
@pytest.mark.parametrize("holds", [1.0, 0.0])
def test_condition_chooses_what_runs_and_is_differentiated(kind: type, holds: float) -> None:
    x = pygrad.tensor([2.0], requires_grad=True)
    y = cond(kind(holds), lambda x: x * 3, lambda x: x * x * x, (x,))
    y.backward()
    assert y.item() == (6 if holds else 8)
    assert x.grad.item() == (3 if holds else 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((pygrad.ones(2), abs, abs, ()), "single-element tensor"),
        (("yes", abs, abs, ()), "Expected pred to be bool or tensor, but got yes"),
        ((pygrad.tensor(True), 3, abs, ()), "both branches to be callable"),
        ((pygrad.tensor(True), abs, abs, [3]), "only consists of tensor leaves"),
        ((pygrad.tensor(True), abs, abs, pygrad.ones(2)), "only consists of tensor leaves"),
    ],
)
def test_condition_refuses_what_torch_refuses(arguments: tuple, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        cond(*arguments)


def test_loop_carries_its_values() -> None:
    x = pygrad.tensor(2.0, requires_grad=True)
    n, y = while_loop(lambda n, _: n < 3, lambda n, y: (n + 1, y * x), (pygrad.tensor(0), x))
    y.backward()
    assert (n.item(), y.item(), x.grad.item()) == (3, 16, 32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scan_that_adds_is_a_cumulative_sum(dim: int, reverse: bool) -> None:
    x = pygrad.arange(6.0).reshape(3, 2).requires_grad_()
    found = associative_scan(pygrad.add, x, dim, reverse=reverse, combine_mode="generic")
    wanted = x.flip(dim).cumsum(dim).flip(dim) if reverse else x.cumsum(dim)
    assert pygrad.equal(found, wanted)
    weights = pygrad.arange(6.0).reshape(3, 2)
    got, want = (pygrad.autograd.grad((y * weights).sum(), x)[0] for y in (found, wanted))
    assert pygrad.equal(got, want)
    zeros = pygrad.zeros_like(x.select(dim, 0))
    carry, sums = scan(lambda c, x: (c + x, c + x), zeros, x, dim=dim, reverse=reverse)
    assert pygrad.equal(sums.movedim(0, dim), wanted)
    assert pygrad.equal(carry, x.sum(dim))


def test_scan_takes_trees_as_a_linear_recurrence_does() -> None:
    a, b = pygrad.rand(5, 3), pygrad.rand(5, 3)

    def combine(left: tuple, right: tuple) -> tuple:
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, found = associative_scan(combine, (a, b), 0, combine_mode="generic")
    state = pygrad.zeros(3)
    for i in range(5):
        state = a[i] * state + b[i]
        assert pygrad.allclose(found[i], state)


def test_scan_refuses_what_torch_refuses() -> None:
    x = pygrad.ones(3)
    with pytest.raises(ValueError, match="CUDA or XPU"):
        associative_scan(pygrad.add, x, 0)
    with pytest.raises(ValueError, match="must be a callable"):
        associative_scan(3, x, 0, combine_mode="generic")
    with pytest.raises(ValueError, match="'pointwise' or 'generic'"):
        associative_scan(pygrad.add, x, 0, combine_mode="other")
    with pytest.raises(IndexError):
        associative_scan(pygrad.add, x, 3, combine_mode="generic")
    with pytest.raises(RuntimeError, match="requires init leaves"):
        scan(lambda c, x: (c, x), [], x)
    with pytest.raises(RuntimeError, match="requires xs leaves"):
        scan(lambda c, x: (c, x), x, [])


def test_function_of_each_slice_is_stacked() -> None:
    x = pygrad.arange(6.0).reshape(3, 2)
    found = map_slices(lambda part, k: {"sum": part["x"].sum() * k}, {"x": x}, 2)
    assert pygrad.equal(found["sum"], x.sum(1) * 2)
    with pytest.raises(RuntimeError, match="must be consistent"):
        map_slices(lambda x: x, [x, x[:2]])
    with pytest.raises(RuntimeError, match="only consist of tensors"):
        map_slices(lambda x: x, 3)


def test_assertion_of_a_tensor_refuses_zero_in_the_words_it_is_given() -> None:
    torch._assert_async(pygrad.tensor([[0.5]]))
    torch._assert_async(pygrad.zeros((), device="meta"))
    with pytest.raises(RuntimeError, match=r"^Expected Tensor with single nonzero value"):
        torch._assert_async(pygrad.tensor(0))
    with pytest.raises(RuntimeError, match=r"^not so$"):
        torch._assert_async(pygrad.tensor(False), "not so")
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch._assert_async(pygrad.ones(2))


def test_transforms_tell_that_they_are_active() -> None:
    active = torch._C._are_functorch_transforms_active
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(active())
        return x.sum()

    torch.func.vmap(function)(pygrad.ones(2, 2))
    torch.func.grad(function)(pygrad.ones(2))
    torch.func.vjp(function, pygrad.ones(2))
    torch.func.jvp(function, (pygrad.ones(2),), (pygrad.ones(2),))
    torch.autograd.functional.jacobian(function, pygrad.ones(2))
    assert seen == [True, True, True, True, False]
    assert not active()
