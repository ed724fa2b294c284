"""`torch.ops`: overloads and packets by name, the keys of the dispatcher, and ops as policies see
them.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pygrad.torch as torch
import pygrad.torch.nn.functional as F
from pygrad.torch.utils._python_dispatch import TorchDispatchMode
from pygrad.torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

aten = torch.ops.aten

# ------------------------------------------------------------------ names


def test_ops_have_names() -> None:
    assert repr(torch.ops.aten.add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert repr(torch.ops.aten.add) == "<OpOverloadPacket(op='aten.add')>"
    assert "aten" in repr(torch.ops.aten)
    assert {"Tensor", "out"} <= {*aten.add} & {*dir(aten.add)}
    assert str(aten.neg._schemas[""]) == "aten::neg(Tensor self) -> Tensor"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda op: pickle.loads(pickle.dumps(op))])
def test_copies_of_an_op_are_the_op(copied: Callable[[Any], Any]) -> None:
    assert copied(aten.add.Tensor) is aten.add.Tensor


def test_copies_of_a_packet_are_the_packet() -> None:
    assert copy.deepcopy(aten.add) is aten.add


def test_tags_have_names() -> None:
    core = torch.Tag.core
    assert core in aten.add.Tensor.tags
    assert (core.name, int(core), repr(core)) == ("core", core.value, f"<Tag.core: {core.value}>")
    assert pickle.loads(pickle.dumps(core)) == core


def test_an_op_keeps_functions_for_keys() -> None:
    key = torch._C.DispatchKey.CPU
    try:
        assert aten.neg.default.py_impl(key)(len) is len
        assert aten.neg.default.py_kernels[key] is len
    finally:
        aten.neg.default.py_kernels.pop(key)


def test_a_composite_op_runs_as_the_ops_of_which_it_is_made() -> None:
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    assert aten.linear.default._can_decompose()
    assert aten.linear.default.decompose(x, w).tolist() == [[3.0] * 4] * 2
    assert aten.neg.default.decompose(x) is NotImplemented


def test_an_op_is_called_again_below_some_keys() -> None:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    assert aten.neg.default.redispatch(keys, torch.ones(2)).tolist() == [-1.0, -1.0]


def test_arguments_may_be_given_by_name() -> None:
    x = torch.ones(2, 2)
    assert aten.clamp.default(x, max=0.5).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert aten.add.Tensor(self=x, other=x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match=r"is missing value for argument 'self'"):
        aten.add.Tensor(other=x)


def test_functions_that_only_the_dispatcher_has() -> None:
    x = torch.tensor([[-torch.inf, -torch.inf], [0.0, 0.0]])
    assert aten._safe_softmax(x, 1).tolist() == [[0.0, 0.0], [0.5, 0.5]]
    with pytest.raises(RuntimeError, match="half to float conversion is not supported on CPU"):
        aten._softmax(x, 1, True)
    target = torch.tensor([0, 1])
    loss = aten.cross_entropy_loss(x + 1, target, None, 0)
    assert loss[1].item() == pytest.approx(0.6931472)
    weight, bias = torch.ones(2), torch.zeros(2)
    y, mean, _ = aten._native_batch_norm_legit.no_stats(torch.eye(2), weight, bias, True, 0.1, 1e-5)
    assert (y.shape, mean.tolist()) == ((2, 2), [0.5, 0.5])


def test_ranges_are_begun_and_ended() -> None:
    with torch.autograd.profiler.profile() as profile:
        torch.ops.profiler._record_function_exit(
            torch.ops.profiler._record_function_enter_new("new")
        )
        torch.ops.profiler._record_function_exit(torch.ops.profiler._record_function_enter("old"))
    assert {"new", "old"} <= {event.name for event in profile.function_events}


# ------------------------------------------------------------------ keys


def test_keys_form_sets() -> None:
    key, keys = torch._C.DispatchKey, torch._C.DispatchKeySet
    cpu, both = keys(key.CPU), keys(key.CPU) | keys(key.Meta)
    assert [both.has(each) for each in (key.CPU, key.Meta, key.CUDA)] == [True, True, False]
    assert both & cpu == cpu
    assert both - cpu == keys(key.Meta) == both.remove(key.CPU)
    assert cpu.add(key.Meta) == both
    assert cpu != both
    assert "CPU" in repr(cpu)


@pytest.mark.parametrize("guard", ["_ExcludeDispatchKeyGuard", "_IncludeDispatchKeyGuard"])
def test_all_is_as_before_after_a_scope_of_keys(guard: str) -> None:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    x = torch.ones(2, requires_grad=True)
    with getattr(torch._C, guard)(keys):
        pass
    assert (x * 2).requires_grad


# ------------------------------------------------------------------ answers


class Giving(TorchDispatchMode):
    """Answers all with one value."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "call", "words"),
    [
        (3, lambda x: x.sort(), "Object of type 'int' is not an instance of 'sequence'"),
        (3, lambda x: x.split(1), "Unable to cast"),
        ([3], lambda x: x.split(1), "Unable to cast"),
        ([], lambda x: x[0].item(), "Unable to cast"),
    ],
)
def test_an_answer_of_another_type_is_refused(answer: Any, call: Any, words: str) -> None:
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=words), Giving(answer):
        call(x)
    assert call(x) is not None


@pytest.mark.parametrize(
    ("cls", "options", "error", "words"),
    [
        (3, {}, TypeError, "cls must be a type"),
        (torch.Tensor, {"layout": 3}, TypeError, "argument 'layout' must be torch.layout, not int"),
    ],
)
def test_a_wrapper_is_made_of_what_fits(cls: Any, options: Any, error: Any, words: str) -> None:
    class Made(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, *_: Any) -> Any:
            return NotImplemented

    kind = Made if cls is torch.Tensor else cls
    with pytest.raises(error, match=words):
        torch.Tensor._make_wrapper_subclass(kind, (2,), **options)


class Listing(TorchDispatchMode):
    """Lists the names of ops, which run as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (
            "native_batch_norm_backward",
            lambda x: F.batch_norm(x, torch.zeros(4), torch.full((4,), 2.0)),
        ),
        ("gelu_backward", lambda x: F.gelu(x, approximate="tanh")),
        ("nll_loss_backward", lambda x: F.nll_loss(x, torch.arange(4) % 4, reduction="none")),
    ],
)
def test_gradients_in_a_mode_are_those_outside(name: str, function: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 4, requires_grad=True)

    def gradient() -> Any:
        y = function(x)
        return torch.autograd.grad((y * torch.linspace(-1, 1, y.numel()).view_as(y)).sum(), x)[0]

    alone = gradient()
    with Listing() as mode:
        watched = gradient()
    assert f"aten.{name}.default" in mode.names
    torch.testing.assert_close(watched, alone)


@pytest.mark.parametrize("value", [2.0, torch.tensor(2.0, dtype=torch.float64)])
def test_a_number_is_put_into_places_in_their_dtype(value: Any) -> None:
    x = torch.zeros(3)
    with Listing() as mode:
        x[torch.tensor([0, 2])] = value
    assert x.tolist() == [2.0, 0.0, 2.0]
    assert any("index_put" in name for name in mode.names)


def test_answers_that_are_no_numbers_are_refused() -> None:
    x = torch.ones(())
    with pytest.raises(RuntimeError, match="[Cc]ast"), Giving("text"):
        x.item()
    assert x.item() == 1.0


def table() -> Any:
    return torch.arange(6.0).view(3, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda: F.conv2d(table()[None], table().view(1, 1, 3, 2), padding="same"),
        lambda: F.embedding(torch.tensor([1, 2]), table(), max_norm=1.0),
        lambda: torch.cat(torch.ones(0, 2).chunk(2)),
        lambda: F.nll_loss(table(), torch.tensor([0, 1, 0]), size_average=False),
        lambda: F.nll_loss(table()[None], torch.tensor([[0, 1]])),
    ],
)
@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_a_mode_changes_no_result(function: Any) -> None:
    alone = function()
    with Listing() as mode:
        watched = function()
    assert mode.names
    assert torch.equal(watched, alone)


def test_a_sparse_gradient_is_the_same_in_a_mode() -> None:
    weight = table().requires_grad_()

    def gradient() -> Any:
        y = F.embedding(torch.tensor([1, 1]), weight, sparse=True)
        return torch.autograd.grad(y.sum(), weight)[0]

    alone = gradient()
    with Listing():
        watched = gradient()
    assert watched.is_sparse
    assert watched.to_dense().tolist() == alone.to_dense().tolist() == [[0, 0], [2, 2], [0, 0]]


@pytest.mark.filterwarnings("ignore:Warning only once")
def test_a_kernel_of_a_library_can_be_asked_for() -> None:
    with torch.library._scoped_library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: x * 0 + 7, "CPU")
        assert torch.ones(1).neg().tolist() == [7.0]
        kernel = torch.library.get_kernel("aten::neg", "CPU")
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        assert kernel.call_boxed(keys, torch.ones(1)).tolist() == [7.0]
    assert torch.ones(1).neg().tolist() == [-1.0]


# ------------------------------------------------------------------ policies


@pytest.mark.parametrize(
    ("called", "function"),
    [
        ("mm.default", lambda x: x @ x),
        ("mv.default", lambda x: x @ x[0]),
        ("dot.default", lambda x: x[0] @ x[1]),
        ("bmm.default", lambda x: x.expand(2, 3, 3) @ x.expand(2, 3, 3)),
        ("mm.default", lambda x: F.linear(x, x)),
        ("addmm.default", lambda x: F.linear(x, x, x[0])),
        ("pow.Tensor_Scalar", lambda x: x**2),
        ("pow.Tensor_Tensor", lambda x: x**x),
        ("pow.Scalar", lambda x: 2**x),
        ("select.int", lambda x: x[0]),
        ("slice.Tensor", lambda x: x[1:]),
        ("unsqueeze.default", lambda x: x[None]),
        ("index.Tensor", lambda x: x[torch.tensor([0, 1])]),
        ("alias.default", lambda x: x[...]),
        ("sum.default", lambda x: x.sum()),
        ("sum.dim_IntList", lambda x: x.sum(1)),
        ("add.Tensor", lambda x: x + x),
        ("max.default", lambda x: x.max()),
        ("max.dim", lambda x: x.max(1)[0]),
        ("exp.default", lambda x: x.exp()),
        ("mul_.Tensor", lambda x: x.clone().mul_(2)),
    ],
)
def test_a_policy_is_asked_of_ops_by_name(called: str, function: Any) -> None:
    asked = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(str(op))
        return torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE

    x = (torch.rand(3, 3) + 1).requires_grad_()
    y = checkpoint(
        function,
        x,
        use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    )
    (found,) = torch.autograd.grad(y.sum(), x)
    (alone,) = torch.autograd.grad(function(x).sum(), x)
    assert f"aten.{called}" in asked
    torch.testing.assert_close(found, alone)
