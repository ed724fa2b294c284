"""The engine's semantics: what backward computes, in which order, and what it refuses."""

from __future__ import annotations

import concurrent.futures
import copy
import gc
import pickle
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import leaves_nothing

import pygrad
from pygrad._boundary import drain
from pygrad.autograd import backward, grad, graph


def leaf(*values: float) -> Any:
    return pygrad.tensor(values, dtype=pygrad.float64, requires_grad=True)


# ------------------------------------------------------------------ backward and grad


def test_backward_adds_to_grad() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_backward_of_a_leaf_gives_ones() -> None:
    x = leaf(3.0)
    x.sum().backward()
    y = pygrad.tensor(2.0, requires_grad=True)
    y.backward()
    assert (x.grad.tolist(), y.grad.item()) == ([1.0], 1.0)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda x: x.mul(2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda x: x.detach().sum().backward(), "element 0 of tensors does not require grad"),
        (
            lambda x: x.sum().backward(pygrad.ones(3)),
            "Mismatch in shape: grad_output[0] has a shape",
        ),
        (lambda x: backward([x.sum(), x.sum()], [None]), "got 2 tensors and 1 gradients"),
        (lambda x: grad(x.sum(), leaf(1.0)), "appears to not have been used in the graph"),
        (lambda x: grad(x.sum(), pygrad.ones(2)), "does not require grad"),
        (lambda x: x.sum().backward(inputs=[]), "cannot be empty"),
    ],
)
def test_backward_refuses(run: Callable[[Any], None], message: str) -> None:
    import re

    with pytest.raises(RuntimeError, match=re.escape(message)):
        run(leaf(1.0, 2.0))


def test_second_backward_needs_the_graph_retained() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_graph_that_saved_nothing_may_be_walked_again() -> None:
    x = leaf(1.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_write_into_a_view_is_walked_once_though_it_saved_nothing() -> None:
    x = leaf(1.0, 2.0)
    y = pygrad.zeros(3)
    y[1:] = x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_saved_tensor_of_a_freed_node_is_gone() -> None:
    y = leaf(1.0).exp().sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        _ = node._saved_result


def test_inputs_limit_what_is_accumulated() -> None:
    a, b = leaf(1.0), leaf(2.0)
    (a * b).sum().backward(inputs=[a])
    assert a.grad.tolist() == [2.0]
    assert b.grad is None


def test_inputs_may_be_inner_tensors() -> None:
    x = leaf(3.0)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [12.0]
    assert x.grad is None


def test_grad_leaves_grad_alone() -> None:
    x = leaf(3.0)
    assert grad((x * x).sum(), x)[0].tolist() == [6.0]
    assert x.grad is None


def test_grad_of_an_unused_input() -> None:
    x, unused = leaf(3.0), leaf(1.0, 1.0)
    assert grad(x.sum(), [x, unused], allow_unused=True)[1] is None
    assert grad(x.sum(), [x, unused], materialize_grads=True)[1].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="allow_unused"):
        grad(x.sum(), [unused], allow_unused=False, materialize_grads=True)


def test_grad_by_the_same_input_twice() -> None:
    x = leaf(3.0)
    first, second = grad((x * x).sum(), [x, x])
    assert first.tolist() == second.tolist() == [6.0]


def test_grad_outputs_weigh_the_roots() -> None:
    x = leaf(1.0, 2.0)
    (got,) = grad([x * x, x.sum()], x, [pygrad.tensor([1.0, 10.0], dtype=pygrad.float64), None])
    assert got.tolist() == [3.0, 41.0]


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_derivative_of_any_order(order: int) -> None:
    x = leaf(2.0)
    y = x**5
    for _ in range(order):
        (y,) = grad(y.sum(), x, create_graph=True)
    factor = [5, 20, 60, 120, 120][order - 1]
    assert y.tolist() == [factor * 2.0 ** (5 - order)]


@leaves_nothing
def test_create_graph_makes_a_grad_with_history() -> None:
    x = leaf(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the reference cycle, once a process
        (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    first = x.grad
    x.grad = None
    first.sum().backward()
    assert x.grad.tolist() == [12.0]


def test_backward_under_no_grad_still_accumulates() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    with pygrad.no_grad():
        y.backward()
    assert x.grad.tolist() == [4.0]


# ------------------------------------------------------------------ the graph


def test_nodes_have_the_names_of_pytorch() -> None:
    x = leaf(1.0, 2.0)
    y = (x * 2).exp().sum()
    names = []
    node = y.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == [
        "SumBackward0",
        "ExpBackward0",
        "MulBackward0",
        "torch::autograd::AccumulateGrad",
    ]


def test_leaf_has_no_grad_fn_and_its_node_knows_it() -> None:
    x = leaf(1.0)
    assert x.grad_fn is None
    assert (x * 2).grad_fn.next_functions[0][0].variable is x


def test_grad_fn_is_the_same_object_while_it_lives() -> None:
    y = leaf(1.0) * 2
    node = y.grad_fn
    assert y.grad_fn is node
    assert (y + 1).grad_fn.next_functions[0][0] is node


def test_outputs_of_one_node_are_numbered() -> None:
    parts = leaf(1.0, 2.0, 3.0).unbind()
    assert [p.output_nr for p in parts] == [0, 1, 2]
    assert len({p.grad_fn for p in parts}) == 1


def test_nodes_run_latest_first() -> None:
    order: list[str] = []
    x = leaf(1.0)
    a = x * 2
    b = x * 3
    c = a * 5
    for name, tensor in (("a", a), ("b", b), ("c", c)):
        tensor.register_hook(lambda g, name=name: order.append(name))
    (c + b).sum().backward()
    assert order == ["c", "b", "a"]


@pytest.mark.parametrize("length", [1_000_000])
def test_long_chain_is_built_walked_and_freed(length: int) -> None:
    before = pygrad.pg_live_count()
    x = pygrad.ones((), requires_grad=True)
    y = x
    for _ in range(length):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del x, y
    assert pygrad.pg_live_count() == before


def test_long_chain_is_freed_without_being_walked() -> None:
    before = pygrad.pg_live_count()
    y = pygrad.ones((), requires_grad=True)
    for _ in range(100_000):
        y = y * y
    del y
    assert pygrad.pg_live_count() == before


def test_wide_graph_adds_up() -> None:
    x = leaf(1.0)
    sum((x * k for k in range(2000)), start=pygrad.zeros(1)).sum().backward()
    assert x.grad.tolist() == [1999 * 1000.0]


# ------------------------------------------------------------------ layout of .grad


def noncontiguous(*shape: int) -> Any:
    """A dense leaf whose strides are not those of its shape."""
    return pygrad.ones(*reversed(shape)).permute(*reversed(range(len(shape)))).detach()


def test_first_gradient_takes_the_strides_of_a_dense_parameter() -> None:
    x = noncontiguous(3, 2).requires_grad_(True)
    (x * pygrad.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 3)


def test_first_gradient_of_a_parameter_with_holes_is_contiguous() -> None:
    x = pygrad.ones(3, 4)[:, ::2].detach().requires_grad_(True)
    (x * x).sum().backward()
    assert x.grad.stride() == (2, 1)


def test_accumulation_is_in_place_without_create_graph() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    kept = x.grad
    (x * x).sum().backward()
    assert x.grad is kept
    assert kept.tolist() == [4.0, 8.0]


@pytest.mark.filterwarnings("ignore:Using backward")  # once a process
def test_accumulation_is_out_of_place_under_create_graph() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward(create_graph=True)
    kept = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not kept
    assert (kept.tolist(), x.grad.tolist()) == ([2.0, 4.0], [4.0, 8.0])
    x.grad = None


def test_grad_given_by_the_user_keeps_its_strides() -> None:
    x = pygrad.ones(2, 3, requires_grad=True)
    x.grad = noncontiguous(2, 3)
    (x * x).sum().backward()
    assert x.grad.stride() == (1, 2)


def test_gradient_is_not_an_alias_of_what_the_user_holds() -> None:
    x = leaf(1.0, 2.0)
    seed = pygrad.ones(2, dtype=pygrad.float64)
    (x + 0).backward(seed)
    x.grad.zero_()
    assert seed.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            pygrad.ones(3),
            "attempting to assign a gradient of size '\\[3\\]' to a tensor of size '\\[2\\]'",
        ),
        (
            pygrad.ones(2, dtype=pygrad.float64),
            "attempting to assign a gradient with dtype 'double'",
        ),
    ],
)
def test_grad_refuses_a_tensor_that_does_not_fit(value: Any, message: str) -> None:
    x = pygrad.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        x.grad = value
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1.0


# ------------------------------------------------------------------ in place, views


def test_inplace_on_an_inner_tensor_is_recorded() -> None:
    x = leaf(2.0)
    y = x * 3
    y.mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [36.0]


def test_inplace_on_a_view_changes_the_history_of_the_base() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].mul_(10)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]


def test_view_turned_in_place_is_not_recorded_as_it_was_made() -> None:
    x = pygrad.arange(4.0).view(2, 2).requires_grad_()
    base = x.clone()
    with pygrad.autograd._force_original_view_tracking(True):
        v = base.view(2, 2)
    v.t_()
    base.mul_(pygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    (v * pygrad.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert v.tolist() == [[0.0, 6.0], [2.0, 12.0]]
    assert x.grad.tolist() == [[1.0, 200.0], [30.0, 4000.0]]


def test_inplace_on_the_base_changes_the_history_of_its_views() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[:1]
    y.mul_(5)
    view.sum().backward()
    assert x.grad.tolist() == [5.0, 0.0]


def test_assignment_to_a_part_takes_the_gradient_away_there() -> None:
    x, v = leaf(1.0, 2.0), leaf(7.0)
    y = x * 1
    y[0] = v[0]
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 4.0]
    assert v.grad.tolist() == [14.0]


def test_copy_into_a_tensor_without_history_gives_it_one() -> None:
    x = leaf(1.0, 2.0)
    target = pygrad.zeros(2, 2, dtype=pygrad.float64)
    target[1] = x
    target.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_view_of_a_view_is_a_view_of_the_base() -> None:
    x = pygrad.ones(2, 3)
    view = x[0][1:]
    assert view._is_view()
    assert view._base is x
    assert x._base is None


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda x: x.add_(1),
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ),
        (
            lambda x: x[0].add_(1),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ),
        (
            lambda x: x.unbind()[0].add_(1),
            "Output 0 of Unbind is a view and is being modified inplace. This view is the output "
            "of a function that returns multiple views. Such functions do not allow the output "
            "views to be modified inplace. You should replace the inplace operation by an "
            "out-of-place one.",
        ),
        (
            lambda x: pygrad.add(x, x, out=pygrad.zeros(2, dtype=pygrad.float64)),
            "add(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad.",
        ),
    ],
)
def test_write_to_a_leaf_is_refused_and_leaves_it_as_it_was(
    write: Callable[[Any], Any], message: str
) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError) as caught:
        write(x)
    assert str(caught.value) == message
    assert (x.tolist(), x._version) == ([1.0, 2.0], 0)


def test_write_to_a_leaf_under_no_grad_keeps_it_a_leaf() -> None:
    x = leaf(1.0)
    with pygrad.no_grad():
        x.mul_(3)
    assert (x.is_leaf, x.requires_grad, x.tolist(), x._version) == (True, True, [3.0], 1)


def test_requires_grad_of_an_inner_tensor_cannot_be_turned_off() -> None:
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False


def test_requires_grad_is_for_floating_tensors() -> None:
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        pygrad.ones(2, dtype=pygrad.int64).requires_grad_()


def test_detach_shares_data_and_version_but_no_history() -> None:
    x = leaf(1.0, 2.0)
    d = (x * 1).detach()
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)
    y = x.detach()
    y.zero_()
    assert x.tolist() == [0.0, 0.0]
    assert x._version == y._version == 1


def test_data_shares_data_but_not_the_version() -> None:
    x = leaf(1.0, 2.0)
    x.data.zero_()
    assert (x.tolist(), x._version) == ([0.0, 0.0], 0)


def test_detach_inplace_cuts_the_history() -> None:
    y = leaf(1.0) * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.is_leaf) == (False, True)


# ------------------------------------------------------------------ modes


def test_no_grad_records_nothing() -> None:
    x = leaf(1.0)
    with pygrad.no_grad():
        assert not (x * 2).requires_grad
        with pygrad.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_mode_is_restored_after_an_exception() -> None:
    with pytest.raises(KeyError), pygrad.no_grad():
        raise KeyError
    assert pygrad.is_grad_enabled()


def test_mode_is_restored_after_an_error_of_the_engine() -> None:
    for bad in (lambda: pygrad.ones(2).matmul(pygrad.ones(3)), lambda: pygrad.ones(2).sum(7)):
        with pytest.raises((RuntimeError, IndexError)):
            bad()
        assert pygrad.is_grad_enabled()


def test_set_grad_enabled_lasts_or_ends_with_its_scope() -> None:
    x = leaf(1.0)
    pygrad.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        pygrad.set_grad_enabled(True)
    with pygrad.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize(
    "decorator",
    [pygrad.no_grad, lambda: pygrad.no_grad, lambda: pygrad.set_grad_enabled(False)],
)
def test_mode_as_a_decorator(decorator: Any) -> None:
    @decorator()
    def double(x: Any) -> Any:
        """Twice."""
        return x * 2

    assert not double(leaf(1.0)).requires_grad
    assert pygrad.is_grad_enabled()
    assert (double.__name__, double.__doc__) == ("double", "Twice.")


def test_mode_as_a_decorator_of_a_generator_holds_only_inside() -> None:
    @pygrad.no_grad()
    def modes() -> Iterator[bool]:
        yield pygrad.is_grad_enabled()
        yield pygrad.is_grad_enabled()

    for inside in modes():
        assert not inside
        assert pygrad.is_grad_enabled()


# ------------------------------------------------------------------ hooks


def test_hook_sees_and_replaces_the_gradient() -> None:
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert seen == [[1.0, 1.0]]
    assert x.grad.tolist() == [30.0, 30.0]


def test_hook_of_a_leaf_runs_before_accumulation_and_post_hook_after() -> None:
    x = leaf(1.0)
    order = []
    x.register_hook(lambda g: order.append(("pre", x.grad)))
    x.register_post_accumulate_grad_hook(lambda t: order.append(("post", t.grad.tolist(), t is x)))
    x.sum().backward()
    assert order == [("pre", None), ("post", [1.0], True)]


def test_copies_of_a_handle() -> None:
    x = pygrad.ones(1, requires_grad=True)
    handle = x.register_hook(lambda g: g * 100)
    for copied in (copy.deepcopy(handle), pickle.loads(pickle.dumps(handle))):
        copied.remove()
    x.sum().backward()
    assert x.grad.tolist() == [100]
    copy.copy(handle).remove()
    x.sum().backward()
    assert x.grad.tolist() == [101]


def test_removed_hook_does_not_run() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_exception_of_a_hook_is_raised_itself_and_the_engine_goes_on() -> None:
    class Stop(Exception):
        pass

    stop = Stop("here")

    def refuse(_: Any) -> None:
        raise stop

    x = leaf(1.0)
    y = x * 2
    y.register_hook(refuse)
    with pytest.raises(Stop) as caught:
        y.sum().backward()
    assert caught.value is stop
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_hook_may_use_the_engine() -> None:
    x = leaf(2.0)
    y = x * x

    def nest(g: Any) -> Any:
        z = leaf(3.0)
        with pygrad.enable_grad():
            (z * z).sum().backward()
        return g * z.grad

    y.register_hook(nest)
    y.sum().backward()
    assert x.grad.tolist() == [24.0]


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (lambda g: 3, TypeError),
        (lambda g: g.float(), RuntimeError),
        (lambda g: g[:1], RuntimeError),
    ],
)
def test_hook_must_return_a_fitting_gradient(result: Any, error: type[Exception]) -> None:
    y = leaf(1.0, 2.0) * 2
    y.register_hook(result)
    with pytest.raises(error):
        y.sum().backward()


def test_hook_is_refused_without_requires_grad() -> None:
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        pygrad.ones(2).register_hook(lambda g: g)


def test_retain_grad_keeps_the_gradient_of_an_inner_tensor() -> None:
    x = leaf(2.0)
    y = x * 3
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]


def test_retain_grad_sees_what_hooks_made() -> None:
    y = leaf(2.0) * 3
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert y.grad.tolist() == [2.0]


def test_grad_of_an_inner_tensor_warns() -> None:
    y = leaf(2.0) * 3
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


@pytest.mark.parametrize("leaf", [True, False])
def test_hook_on_several_is_called_once_a_backward(leaf: bool) -> None:
    """With all gradients that it computes; or in mode "any" with the first."""
    a, b = (pygrad.ones(1, requires_grad=True) for _ in range(2))
    if not leaf:
        a, b = a * 1, b * 1
    every: list[list[float | None]] = []
    first: list[float] = []
    handles = (
        graph.register_multi_grad_hook(
            (a, b), lambda grads: every.append([g if g is None else g.item() for g in grads])
        ),
        graph.register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any"),
    )
    (a * 2 + b * 3).sum().backward(retain_graph=True)
    (a * 5).sum().backward(retain_graph=True)
    (b * 7 + a * 6).sum().backward(retain_graph=True)
    for handle in handles:
        handle.remove()
    (a * 2 + b * 3).sum().backward()
    assert every == [[2, 3], [5, None], [6, 7]]
    assert first == [
        3,
        5,
        6 if leaf else 7,
    ]  # leaves in the order of the graph, others newest first


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("removed", [True, False])
def test_hook_on_several_is_let_go_with_its_tensors(mode: Any, removed: bool) -> None:
    class Function:
        def __call__(self, grads: Any) -> None:
            pass

    function = Function()
    alive = weakref.ref(function)
    a, b = (pygrad.ones(1, requires_grad=True) for _ in range(2))
    handle = graph.register_multi_grad_hook((a, b), function, mode=mode)
    del function
    if removed:
        handle.remove()
    else:
        del handle
        gc.collect()
        drain()
        assert alive() is not None
        del a, b
    gc.collect()
    drain()
    assert alive() is None


HOOKED: dict[str, Callable[[Any, Any], Callable[[Any], Any]]] = {
    "a leaf": lambda x, y: x.register_hook,
    "an inner tensor": lambda x, y: y.register_hook,
    "a leaf, afterwards": lambda x, y: x.register_post_accumulate_grad_hook,
    "a node": lambda x, y: y.grad_fn.register_hook,
    "a node, before": lambda x, y: y.grad_fn.register_prehook,
}


@pytest.mark.parametrize("place", HOOKED)
def test_hook_removed_while_hooks_run_has_its_last_turn(place: str) -> None:
    x = pygrad.ones(1, requires_grad=True)
    y = x * 2
    register, told, handles = HOOKED[place](x, y), [], []

    def first(*_: Any) -> None:
        told.append("first")
        handles[0].remove()

    register(first)
    handles.append(register(lambda *_: told.append("second")))
    register(lambda *_: told.append("third"))
    y.backward(retain_graph=True)
    y.backward()
    assert told == ["first", "second", "third", "first", "third"]


@leaves_nothing
def test_hooks_and_their_tensors_are_freed() -> None:
    x = leaf(2.0)
    y = x * 3
    y.register_hook(lambda g, y=None: g * 2)
    x.register_post_accumulate_grad_hook(lambda t: None)
    y.sum().backward()
    del x, y
    gc.collect()


# ------------------------------------------------------------------ many backwards in one call


class _Picky(pygrad.autograd.Function):
    """Twice its input; no gradient for what starts from the last element."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None if g[-1] else g * 2


def _mix(x: Any, seen: list[Any]) -> Any:
    """A function with a hook, a custom function and a broadcast."""
    y = (x.exp() * x.sum()).reshape(3, 1) * pygrad.tensor([[1.0, 0.3]], dtype=x.dtype)
    y.register_hook(lambda g: seen.append(g.tolist()))
    return y.tanh().reshape(6) + _Picky.apply(x.cos().repeat(2))


@pytest.mark.parametrize("create_graph", [False, True])
def test_rows_are_what_calls_one_by_one_give(create_graph: bool) -> None:
    together: list[Any] = []
    apart: list[Any] = []
    x = leaf(0.3, -0.7, 1.1)
    mine = pygrad.autograd.functional.jacobian(
        lambda x: _mix(x, together), x, create_graph=create_graph
    )
    y = _mix(x, apart)
    rows = [grad(e, x, retain_graph=True, create_graph=create_graph)[0] for e in y.unbind(0)]
    assert mine.tolist() == pygrad.stack(rows).tolist()
    assert together == apart
    assert len(apart) == 6
    if create_graph:
        (first,), (second,) = (
            grad(mine.square().sum(), x),
            grad(pygrad.stack(rows).square().sum(), x),
        )
        assert first.tolist() == second.tolist()


def test_products_nest_in_custom_functions_as_deep_as_python_can() -> None:
    class Within(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, left: int) -> Any:
            ctx.save_for_backward(x)
            ctx.left = left
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,), left = ctx.saved_tensors, ctx.left
            if not left:
                return g * 2, None
            vjp = pygrad.autograd.functional.vjp
            return vjp(lambda x: Within.apply(x, left - 1), x, g)[1], None

    x = leaf(1.0)
    _, product = pygrad.autograd.functional.vjp(lambda x: Within.apply(x, 250), x)
    assert product.tolist() == [2.0]


def test_threads_may_compute_inside_a_product() -> None:
    class InThread(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                return pool.submit(lambda: g * 2).result(timeout=60)

    x = leaf(1.0, 2.0)
    found = pygrad.autograd.functional.jacobian(InThread.apply, x)
    assert found.tolist() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
@leaves_nothing
def test_functional_leaves_nothing_behind_a_backward_that_fails(name: str) -> None:
    class Fails(pygrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("mine")

    entry = getattr(pygrad.autograd.functional, name)
    args = () if name in ("jacobian", "hessian") else (leaf(1.0),)
    with pytest.raises(ValueError, match="mine"):
        entry(Fails.apply, leaf(1.0), *args)
    assert pygrad.is_grad_enabled()


def test_the_last_row_frees_the_graph() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    (found,) = grad(y, x, pygrad.eye(2, dtype=x.dtype), is_grads_batched=True)
    assert found.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        grad(y, x, pygrad.ones(2, dtype=x.dtype))


@leaves_nothing
def test_a_hook_that_raises_in_a_row_leaves_nothing() -> None:
    x, calls = leaf(1.0, 2.0), []

    def third(g: Any) -> None:
        calls.append(g)
        if len(calls) == 2:
            raise ValueError("enough")

    def run(x: Any) -> Any:
        y = x * x
        y.register_hook(third)
        return y

    with pytest.raises(ValueError, match="enough"):
        pygrad.autograd.functional.jacobian(run, x)
    assert len(calls) == 2
    calls.clear()
