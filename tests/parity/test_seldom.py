"""What the longer programs have no use for: the same in both libraries."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


@script
def parts_of_a_module_by_path(t: Any) -> Any:
    net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3))
    finders = (net.get_parameter, net.get_buffer, net.get_submodule)
    found = [net.get_parameter("0.weight"), net.get_buffer("1.running_mean")]
    net.set_submodule("0", t.nn.Linear(2, 4, bias=False))
    net.register_module("last", t.nn.ReLU())
    missing = [
        str(result_or_error(lambda f=f, p=p: f(p))) for f in finders for p in ("0.none", "9.x", "")
    ]
    return *found, repr(net), [name for name, _ in net.named_parameters()], missing


@script
def empty_module(t: Any) -> Any:
    return t.nn.Linear(2, 3).to_empty(device="cpu").weight.shape, t.nn.Module.dump_patches


@script
def clone_of_a_generator(t: Any) -> Any:
    generator = t.Generator().manual_seed(5)
    t.rand(3, generator=generator)
    clone = generator.clone_state()
    refused = [
        result_or_error(generator.get_offset),
        result_or_error(lambda: generator.set_offset(3)),
    ]
    return t.rand(2, generator=generator), t.rand(2, generator=clone), refused


@script
def hooks_around_steps(t: Any) -> Any:
    seen: list[Any] = []
    w = leaf(t, 1.0, 2.0)
    optimizer = t.optim.SGD([w], lr=0.5)
    before = optimizer.register_step_pre_hook(lambda _, *given: seen.append(("before", given)))
    after = optimizer.register_step_post_hook(lambda _, *given: seen.append(("after", given)))
    w.sum().backward()
    for handle in (before, after, before):
        optimizer.step()
        handle.remove()
    return seen, w


@script
def settings_of_a_scaler(t: Any) -> Any:
    scaler = t.amp.GradScaler("cpu", init_scale=8.0)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    factors = scaler.get_growth_factor(), scaler.get_backoff_factor()
    return *factors, scaler.get_growth_interval(), scaler.state_dict()


@script
def perplexity(t: Any) -> Any:
    d = t.distributions
    return d.Normal(0.0, 2.0).perplexity(), d.Categorical(t.tensor([0.2, 0.8])).perplexity()


@script
def what_a_tensor_is(t: Any) -> Any:
    x = t.ones(2, 3)
    kinds = [x.is_sparse, x.is_quantized, x.is_meta, x.is_nested, x.is_cpu, x.is_conj(), x.is_neg()]
    return x.ndimension(), x.nelement(), x.element_size(), *kinds, x[t.newaxis].shape


@script
def nested_containers(t: Any) -> Any:
    from collections import OrderedDict

    import torch.utils._pytree

    import pygrad.utils._pytree

    p = (pygrad if t is pygrad else torch).utils._pytree
    tree = {"a": [1, (2, None)], "b": OrderedDict(x=4)}
    leaves, spec = p.tree_flatten(tree)
    uneven = [([1], [1, 2]), ([1], (1,)), ({"a": 1}, {"b": 1}), ([[1]], [1])]
    uneven += [({"a": 1}, {"a": 1, "b": 2}), ({"a": 1}, OrderedDict(a=2)), ([1], None)]
    return (
        leaves,
        repr(spec),
        spec.num_leaves,
        p.tree_structure(tree) == spec,
        p.tree_unflatten([5, 6, 7, 8], spec),
        p.tree_map(lambda a, b: (a, b), [1, {"a": 2, "b": 3}], [3, {"b": (4,), "a": 5}]),
        p.tree_map_only(int, lambda n: n + 1, [1, 2.0, "a"]),
        p.tree_map_only((int, float), lambda n: n + 1, [1, 2.0, "a"]),
        p.tree_map_only(lambda n: n == 1, lambda n: n + 1, [1, 2.0]),
        p.tree_leaves([1, [2]], is_leaf=lambda each: each == [2]),
        p.tree_all(bool, [1, (0,)]),
        p.tree_any(bool, [1, (0,)]),
        result_or_error(lambda: p.tree_unflatten([1], spec)),
        [result_or_error(lambda pair=pair: p.tree_map(lambda a, b: a, *pair)) for pair in uneven],
    )


@script
def functions_made_for_autocast(t: Any) -> Any:
    class Double(t.autograd.Function):
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu", cast_inputs=t.float32)
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = leaf(t, 1, 2)
    y = Double.apply(x)
    y.sum().backward()
    wrong = [
        result_or_error(lambda f=f: f(device_type=1)) for f in (t.amp.custom_fwd, t.amp.custom_bwd)
    ]
    return y, x.grad, wrong


@script
def questions_to_the_library(t: Any) -> Any:
    x = t.ones(2)
    storages = [t.is_storage(each) for each in (x, x.untyped_storage(), [1])]
    wrong = [result_or_error(lambda n=n: t.set_num_interop_threads(n)) for n in (0, -1, "a")]
    known = t.serialization.get_safe_globals
    t.serialization.clear_safe_globals()
    t.serialization.add_safe_globals([complex])
    with t.serialization.safe_globals([range]):
        inside = range in known(), len(known())
    after = known()
    t.serialization.clear_safe_globals()
    kinds = [type(getattr(t.backends, n).is_available()) for n in ("mkl", "mkldnn", "openmp")]
    return storages, wrong, inside, after, known(), kinds


@script
def numbers_before_tensors(t: Any) -> Any:
    x, whole = leaf(t, 1.0, 2.0), t.tensor([1, 2])
    names = "add sub subtract mul multiply div divide true_divide floor_divide".split()
    found = [getattr(t, n)(a, b) for n in names for a, b in ((2.5, whole), (2, x), (2, 3))]
    t.sub(1, x, alpha=2).sum().backward()
    strange = [
        result_or_error(lambda n=n: getattr(t, n)("x", whole)) for n in ("add", "sub", "mul")
    ]
    return *found, x.grad, strange


@script
def sums_of_truth(t: Any) -> Any:
    rows = t.tensor([[-1, 1, 0], [0, 0, 0], [256, 0, 0]])
    return rows.sum(1, dtype=t.bool), rows.T.sum(0, dtype=t.bool), rows[0].sum(dtype=t.bool)


@script
def all_dimensions_as_none(t: Any) -> Any:
    x = leaf(t, 1.0, 3.0, 2.0, 3.0)
    square = x.reshape(2, 2)
    found = t.amax(square, None), square.amin(dim=None, keepdim=True), square.roll(1, None)
    found[0].backward()
    return *found, x.grad, result_or_error(lambda: square.roll((1, 2), None))


@script
def noise_for_columns(t: Any) -> Any:
    return t.nn.functional.gumbel_softmax(t.zeros(3, 2).t(), dim=0)


@script
def rows_after_the_last_bag(t: Any) -> Any:
    table, rows = t.arange(8.0).reshape(4, 2), t.tensor([1, 2, 3])
    bags = functools.partial(t.nn.functional.embedding_bag, rows, table, mode="sum")
    return [bags(t.tensor(ends), include_last_offset=True) for ends in ([0, 1], [0, 2], [0, 1, 1])]


@script
def last_offset_of_bags_that_are_read_one_by_one(t: Any) -> Any:
    table, rows = t.arange(12.0).reshape(4, 3), t.tensor([0, 1, 2, 3])
    return [
        t.nn.functional.embedding_bag(
            rows, table, t.tensor(ends), mode=mode, padding_idx=pad, include_last_offset=True
        )
        for ends in ([0, 3, 3], [0, 2, 3], [0, 3, 4])
        for mode, pad in (("sum", 2), ("mean", 2), ("max", None), ("max", 2))
    ]


@script
def misuse_of_bags(t: Any) -> Any:
    table = t.arange(12.0).reshape(4, 3)
    bag = t.nn.functional.embedding_bag
    rows, start = t.tensor([0, 1]), t.tensor([0])
    return [
        result_or_error(lambda: bag(t.tensor([0, -1]), table, start, mode="max")),
        result_or_error(lambda: bag(t.tensor([0, 4]), table, start, padding_idx=0)),
        result_or_error(lambda: bag(rows, table, start, padding_idx=4)),
        result_or_error(lambda: bag(rows, table, start, padding_idx=-5)),
        result_or_error(
            lambda: bag(rows, table, start, None, mode="sum", per_sample_weights=t.ones(2).double())
        ),
    ]


@script
def sparse_gradients_through_clones_and_of_half_types(t: Any) -> Any:
    w = t.arange(12.0).reshape(4, 3).requires_grad_()
    rows = t.tensor([[0, 1], [1, 2]])
    for table in (w.clone(), w.clone().clone()):
        t.nn.functional.embedding(rows, table, sparse=True).sum().backward()
    half = t.ones(4, 3, dtype=t.bfloat16, requires_grad=True)
    t.nn.functional.embedding_bag(rows, half, mode="sum", sparse=True).sum().backward()
    return w.grad.to_dense(), half.grad.to_dense().float(), str(half.grad.layout)


@script
def copies_keep_what_shares_a_gradient(t: Any) -> Any:
    x = t.zeros(3)
    x.grad = t.ones(3)
    after, before = copy.deepcopy([x, x.grad]), copy.deepcopy([x.grad, x])
    loose = copy.deepcopy(x)
    return [
        after[0].grad is after[1],
        before[1].grad is before[0],
        loose.grad,
        loose.grad is x.grad,
    ]


@script
def sizes_of_storages(t: Any) -> Any:
    kinds = (lambda x: x.storage(), lambda x: x.untyped_storage())
    return [of(t.ones(10)).__sizeof__() - of(t.ones(0)).__sizeof__() for of in kinds]


@script
def ranges_between_complex_numbers(t: Any) -> Any:
    return [
        t.linspace(1, 2j, 3),
        t.logspace(1, 1j, 3),
        t.linspace(t.tensor(1j), 2, 4),
        result_or_error(lambda: t.linspace(1j, 2, 3, dtype=t.float32)),
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_does_the_same(name: str) -> None:
    both(SCRIPTS[name])
