"""Saved tensors are snapshots: no later write changes a gradient, and none raises.

The sweep runs every differentiable op, then writes to its inputs, their bases, their views, their
aliases and the output, and compares first- and second-order gradients with those of the same
program without the write. "check" mode is PyTorch's rule instead.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    UNINITIALISED,
    array_of,
    floating,
    leaves,
    leaves_nothing,
    run,
    sweep_entries,
    with_grad,
)
from samples import Entry
from sampling import Call, fill_sample
from test_gradients import (
    NO_DERIVATIVE,
    NOT_BY_DIFFERENCES,
    contract,
    inputs,
)

import pygrad
from pygrad._boundary.header import address_of

pytestmark = pytest.mark.filterwarnings("ignore")

MODIFIED = (
    "one of the variables needed for gradient computation has been modified by an inplace operation"
)


def write(tensor: Any) -> None:
    """Spoils every element, of whatever type, unless elements share memory."""
    if any(n > 1 and step == 0 for n, step in zip(tensor.shape, tensor.stride(), strict=True)):
        return
    if tensor.dtype is pygrad.bool:
        tensor.logical_not_()
    else:
        tensor.mul_(3).add_(1) if tensor.is_floating_point() else tensor.zero_()


def write_itself(base: Any, x: Any) -> None:
    write(x)


def write_base(base: Any, x: Any) -> None:
    write(base)


def write_view(base: Any, x: Any) -> None:
    write(x.reshape(-1)[:1] if x.is_contiguous() else x[..., :1])


def write_sibling(base: Any, x: Any) -> None:
    write(base[0])


def write_detached(base: Any, x: Any) -> None:
    write(x.detach())


def write_data(base: Any, x: Any) -> None:
    write(x.data)


def write_out(base: Any, x: Any) -> None:
    with pygrad.no_grad():
        pygrad.add(x, x, out=x.detach())


def write_copy(base: Any, x: Any) -> None:
    x.detach().copy_(pygrad.zeros(x.shape))


def write_array(base: Any, x: Any) -> None:
    array = x.detach().numpy()
    array[...] = 0


def write_array_exported_before(base: Any, x: Any) -> None:
    base.exported[...] = 0


def memory_of(tensor: Any) -> Any:
    """The bytes of a tensor's storage, found by their address."""
    storage = tensor.untyped_storage()
    return (ctypes.c_uint8 * storage.nbytes()).from_address(storage.data_ptr())


def write_address(base: Any, x: Any) -> None:
    if x.numel():
        ctypes.memset(x.detach().data_ptr(), 0x3F, x.itemsize)


def write_address_known_before(base: Any, x: Any) -> None:
    base.exported[:] = bytes([1]) * len(base.exported)


WRITES = [
    write_itself,
    write_base,
    write_view,
    write_sibling,
    write_detached,
    write_data,
    write_out,
    write_copy,
    write_array,
    write_array_exported_before,
    write_address,
    write_address_known_before,
]


def program(
    entry: Entry, sample: Call, write_: Callable[[Any, Any], None] | None, output: bool = False
) -> tuple[list[Any], list[Any]]:
    """First- and second-order gradients of an op on views, with a write to each input after it."""
    roots = with_grad(sample, inputs(sample))
    bases = [pygrad.stack([t, t]) for t in roots]
    if write_ is write_array_exported_before:
        for base in bases:
            base.exported = base.detach().numpy()
    if write_ is write_address_known_before:
        for base in bases:
            base.exported = memory_of(base)
    xs = [base[0] for base in bases]
    result = run(entry, *fill_sample(sample, xs))
    found = [t for t in floating(result) if t.requires_grad]
    wanted = [t for t in roots if t.requires_grad]
    if not found or not wanted:
        return [], []
    loss = contract(found, 1)
    if write_ is not None:
        for base, x in zip(bases, xs, strict=True):
            write_(base, x)
    if output:
        for tensor in found:
            tensor.detach().zero_()
    grad = pygrad.autograd.grad
    first = grad(loss, wanted, create_graph=True, materialize_grads=True)
    if not any(g.requires_grad for g in first):
        return list(first), []
    return list(first), list(grad(contract(list(first), 2), wanted, materialize_grads=True))


def saves(entry: Entry) -> bool:
    """Whether the op may save something, and its derivatives exist."""
    return NOT_BY_DIFFERENCES.get(entry.name) != NO_DERIVATIVE and entry.name not in UNINITIALISED


def assert_equal_orders(got: Any, expected: Any) -> None:
    for mine, theirs in zip(got, expected, strict=True):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(array_of(a), array_of(b))


@sweep_entries(saves)
@leaves_nothing
def test_gradients_are_those_without_the_write(entry: Entry, sample: Call) -> None:
    expected = program(entry, sample, None)
    if not expected[0]:
        return
    for write_ in WRITES:
        try:
            got = program(entry, sample, write_)
            assert_equal_orders(got, expected)
        except Exception as error:
            error.add_note(f"write {write_.__name__}")
            raise
    assert_equal_orders(program(entry, sample, None, output=True), expected)


def run_retained(entry: Entry, sample: Call, write_: bool) -> list[Any]:
    """Two backwards through one retained graph, with a write between them."""
    roots = with_grad(sample, inputs(sample))
    xs = [t.clone() for t in roots]
    found = [t for t in floating(run(entry, *fill_sample(sample, xs))) if t.requires_grad]
    wanted = [t for t in roots if t.requires_grad]
    if not found or not wanted:
        return []
    loss = contract(found, 1)
    grad = pygrad.autograd.grad
    first = grad(loss, wanted, retain_graph=True, materialize_grads=True)
    if write_:
        for x in xs:
            write(x)
        for tensor in (*found, *first):
            write(tensor.detach())
    return list(grad(loss, wanted, materialize_grads=True))


@sweep_entries(saves)
@leaves_nothing
def test_second_backward_through_a_retained_graph_ignores_writes(
    entry: Entry, sample: Call
) -> None:
    assert_equal_orders([run_retained(entry, sample, True)], [run_retained(entry, sample, False)])


def saved_fields(node: Any) -> list[str]:
    """The names of a node's saved tensors; none of a leaf's."""
    if node is None:
        return []
    return [name for name in dir(node) if name.startswith("_saved_")]


@sweep_entries(saves)
def test_saved_tensor_handed_out_may_be_written_to(entry: Entry, sample: Call) -> None:
    roots = with_grad(sample, inputs(sample))
    xs = [t.clone() for t in roots]
    found = [t for t in floating(run(entry, *fill_sample(sample, xs))) if t.requires_grad]
    wanted = [t for t in roots if t.requires_grad]
    if not found or not wanted:
        return
    before = [t.detach().clone() for t in (*xs, *found)]
    loss = contract(found, 1)
    first = pygrad.autograd.grad(loss, wanted, retain_graph=True, materialize_grads=True)
    for tensor in found:
        for name in saved_fields(tensor.grad_fn):
            for saved in leaves(getattr(tensor.grad_fn, name)):
                with pygrad.no_grad():
                    write(saved.detach())
    second = pygrad.autograd.grad(loss, wanted, materialize_grads=True)
    assert_equal_orders([second], [first])
    assert_equal_orders([[*xs, *found]], [before])


@sweep_entries(lambda entry: saves(entry) and entry.name not in NOT_BY_DIFFERENCES)
def test_check_mode_raises_if_and_only_if_a_saved_tensor_was_written_to(
    entry: Entry, sample: Call
) -> None:
    """What an op saves is seen from outside: a gradient that needs the values of a written
    tensor.
    """
    roots = with_grad(sample, inputs(sample))
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        xs = [t.clone() for t in roots]
        found = [t for t in floating(run(entry, *fill_sample(sample, xs))) if t.requires_grad]
        wanted = [t for t in roots if t.requires_grad]
        if not found or not wanted or entry.mutates:
            return
        saved = [
            value
            for tensor in found
            for name in saved_fields(tensor.grad_fn)
            for value in leaves(getattr(tensor.grad_fn, name))
        ]
        of_input = [
            k
            for k, x in enumerate(xs)
            if any(isinstance(s, pygrad.Tensor) and address_of(s) == address_of(x) for s in saved)
        ]
        loss = contract(found, 1)
        if not of_input:
            pygrad.autograd.grad(loss, wanted, materialize_grads=True)
            return
        write(xs[of_input[0]].detach())
        with pytest.raises(RuntimeError, match=MODIFIED):
            pygrad.autograd.grad(loss, wanted, materialize_grads=True)


# ------------------------------------------------------------------ single cases


def test_allow_mutation_on_saved_tensors_is_true() -> None:
    assert pygrad.autograd.graph.allow_mutation_on_saved_tensors() is True
    assert pygrad.autograd.allow_mutation_on_saved_tensors() is True


@pytest.mark.parametrize("mode", [3, None, "snapshots", b"check"])
def test_modes_of_saved_tensors(mode: Any) -> None:
    with pytest.raises(ValueError, match='the mode is "snapshot" or "check", not'):
        pygrad.autograd.graph.set_saved_tensor_mode(mode)


def test_first_example_of_the_page() -> None:
    """Safe to perform in-place mutations on saved tensors."""
    saved = pygrad.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
    y = (saved.square()).sum()
    if pygrad.autograd.graph.allow_mutation_on_saved_tensors():
        saved.add_(10.0)
    (grad,) = pygrad.autograd.grad(y, y.grad_fn.next_functions[0][0]._saved_self)
    assert grad.tolist() == [2.0, 4.0, 6.0]


def test_check_mode_speaks_as_pytorch() -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        a = pygrad.ones(2, requires_grad=True) * 2
        b = a.exp()
        b.mul_(2)
        with pytest.raises(RuntimeError) as caught:
            b.sum().backward()
    assert str(caught.value) == (
        f"{MODIFIED}: [torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; "
        "expected version 0 instead. Hint: enable anomaly detection to find the operation that "
        "failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )


@pytest.mark.parametrize("name", ["acosh", "asinh", "atanh"])
def test_check_mode_refuses_derivatives_that_pytorch_lacks_in_place(name: str) -> None:
    """A snapshot has the elements that were overwritten; PyTorch has no derivative there."""
    x = pygrad.tensor([1.5, 2.0] if name == "acosh" else [0.25, 0.5], requires_grad=True)
    (wanted,) = pygrad.autograd.grad(getattr(x, name)().sum(), x)
    (found,) = pygrad.autograd.grad(getattr(x * 1, f"{name}_")().sum(), x)
    assert found.tolist() == wanted.tolist()
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        y = getattr(x * 1, f"arc{name[1:]}_")()
        assert y.grad_fn.name() == f"{name.capitalize()}Backward1"
        message = f"the derivative for 'inplace version of {name}' is not implemented."
        for _ in range(2):
            with pytest.raises(NotImplementedError, match=message):
                y.sum().backward()
        assert pygrad.autograd.grad(getattr(x, name)().sum(), x)[0].tolist() == wanted.tolist()


def test_check_mode_ends_with_its_scope() -> None:
    a = pygrad.ones(2, requires_grad=True)
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        pass
    b = a.exp()
    b.mul_(2)
    b.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 * np.exp([1, 1]), rtol=1e-6)


def test_mode_of_saved_tensors_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="snapshot"):
        pygrad.autograd.graph.set_saved_tensor_mode("clone")


def test_many_snapshots_of_one_tensor_share_one_copy() -> None:
    pygrad.pg_live_count()  # what earlier tests let go is gone
    x = pygrad.ones(100_000)
    w = pygrad.ones((), requires_grad=True)
    before = pygrad._C._memory()[0]
    products = [w * x for _ in range(8)]
    losses = [p.sum() for p in products]
    del products
    saved_for_nothing = pygrad._C._memory()[0] - before
    x.zero_()
    after_write = pygrad._C._memory()[0] - before
    x.add_(1)
    after_second = pygrad._C._memory()[0] - before
    assert saved_for_nothing < 100_000
    assert 400_000 <= after_write < 500_000
    assert after_second == after_write
    sum(losses).backward()
    assert w.grad.item() == 800_000


def test_write_without_a_saved_tensor_allocates_nothing() -> None:
    x = pygrad.ones(100_000)
    pygrad._C._reset_peak_memory()
    live = pygrad._C._memory()[0]
    x.mul_(2)
    assert pygrad._C._memory()[1] - live < 10_000


def test_every_live_alias_sees_the_write() -> None:
    x = pygrad.arange(6.0).reshape(2, 3)
    view, data, w = x[0], x.data, pygrad.ones(2, 3, requires_grad=True)
    y = (w * x).sum()
    x.zero_()
    assert view.tolist() == [0, 0, 0]
    assert data.tolist() == [[0, 0, 0], [0, 0, 0]]
    y.backward()
    assert w.grad.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_new_data_after_the_forward_changes_nothing() -> None:
    """PyTorch would use the new values here."""
    x = pygrad.tensor([1.0], requires_grad=True)
    y = x * x
    x.data = pygrad.tensor([5.0])
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_optimizer_step_between_forward_and_backward_changes_nothing() -> None:
    def gradient(step: bool) -> list[float]:
        pygrad.manual_seed(0)
        model = pygrad.nn.Sequential(
            pygrad.nn.Linear(3, 4), pygrad.nn.Tanh(), pygrad.nn.Linear(4, 1)
        )
        optimizer = pygrad.optim.SGD(model.parameters(), lr=0.1)
        x = pygrad.ones(2, 3, requires_grad=True)
        loss = model(x).sum()
        for p in model.parameters():
            p.grad = pygrad.ones_like(p)
        if step:
            optimizer.step()
        return pygrad.autograd.grad(loss, x)[0].flatten().tolist()

    assert gradient(True) == gradient(False)


def test_saved_output_makes_no_cycle() -> None:
    before = pygrad.pg_live_count()
    y = pygrad.ones(2, requires_grad=True).exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    del y
    assert pygrad.pg_live_count() == before


def test_saved_tensor_keeps_its_edge() -> None:
    """Double backward through a snapshot loses no term, although the tensor has another history
    now.
    """
    x = pygrad.tensor(2.0, dtype=pygrad.float64, requires_grad=True)
    a = x * x
    y = a.exp()
    z = a * y
    a.mul_(5)
    (first,) = pygrad.autograd.grad(z, x, create_graph=True)
    (second,) = pygrad.autograd.grad(first, x)
    e = np.exp(4.0)  # z = x^2 exp(x^2)
    np.testing.assert_allclose(first.item(), (2 * 2 + 2 * 8) * e, rtol=1e-12)
    np.testing.assert_allclose(second.item(), (2 + 10 * 4 + 4 * 16) * e, rtol=1e-12)


@pytest.mark.parametrize("error", PROPER_ERRORS[:1])
def test_write_to_a_leaf_that_requires_grad_still_raises(error: type[Exception]) -> None:
    x = pygrad.ones(2, requires_grad=True)
    with pytest.raises(
        error, match="a leaf Variable that requires grad is being used in an in-place"
    ):
        x.mul_(2)


def in_use() -> int:
    pygrad.pg_live_count()
    return int(pygrad._C._memory()[0])


@pytest.mark.parametrize("dim", [0, 1])
def test_buffer_written_step_by_step_takes_no_more_than_its_steps(dim: int) -> None:
    """A write beside what was saved copies nothing, be it a row or a column of the buffer."""

    def used_bytes(steps: int) -> int:
        w = pygrad.eye(16).requires_grad_()
        shape = [8, 16]
        shape.insert(dim, steps + 1)
        states = pygrad.ones(shape)
        before = in_use()
        for t in range(steps):
            states.select(dim, t + 1).copy_(pygrad.tanh(states.select(dim, t) @ w))
        used = in_use() - before
        states.sum().backward()
        assert w.grad.abs().sum() > 0
        return used

    assert used_bytes(200) < 2.2 * used_bytes(100)


@pytest.mark.parametrize("dim", [0, 1])
def test_write_into_what_was_saved_moves_its_extent_alone(dim: int) -> None:
    x, w = pygrad.ones(100, 100, 100), pygrad.ones(100, requires_grad=True)
    loss = (x[7, 3] * w).sum()
    before = in_use()
    x[7].zero_()
    x.mul_(2)
    x.zero_()
    assert in_use() - before < 10_000
    loss.backward()
    assert w.grad.tolist() == [1] * 100


def test_weight_whose_address_was_compared_is_saved_without_a_copy() -> None:
    """Savers of checkpoints compare addresses to find tensors that share memory."""
    w = pygrad.nn.Parameter(pygrad.ones(300, 300))
    assert len({w.data_ptr(), w.detach().untyped_storage().data_ptr()}) == 1
    x = pygrad.ones(1, 300, requires_grad=True)
    before = in_use()
    y = x @ w
    assert in_use() - before < 10_000
    assert y.grad_fn is not None
