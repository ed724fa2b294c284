"""vmap beside PyTorch's: values, structures, messages, random numbers, printing."""

from __future__ import annotations

import functools
import random
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both

Script = Callable[[Any], Any]
Pair = namedtuple("Pair", ["a", "b"])


def x(t: Any) -> Any:
    return t.arange(6.0).reshape(2, 3) + 1


def map_rows(function: Callable[..., Any], **options: Any) -> Script:
    """A script that maps function(t, slice) over the rows of `x`."""
    return lambda t: t.vmap(lambda v: function(t, v), **options)(x(t))


def add(a: Any, b: Any) -> Any:
    return a + b


def total(tree: Any) -> Any:
    """A sum over nested inputs."""
    if isinstance(tree, dict):
        return sum(total(v) for v in tree.values())
    return sum(map(total, tree)) if isinstance(tree, (tuple, list)) else tree.sum()


def write(t: Any, v: Any, index: Any) -> Any:
    z = v.clone()
    z[index] = v[0] * 10
    return z


def facts_of(t: Any, v: Any) -> Any:
    return t.tensor(float(len(v.shape) + v.numel() + v.stride(0) * 10 + v.is_leaf + v._version))


# ------------------------------------------------------------------ structures

STRUCTURES: dict[str, Script] = {
    "in_dims_one": lambda t: t.vmap(lambda v: v * 2, in_dims=1)(x(t)),
    "in_dims_negative": lambda t: t.vmap(lambda v: v * 2, in_dims=-1, out_dims=-1)(x(t)),
    "in_dims_mixed": lambda t: t.vmap(add, in_dims=(0, 1))(x(t), x(t).t()),
    "in_dims_none": lambda t: t.vmap(add, in_dims=(0, None))(x(t), t.ones(3)),
    "numbers": lambda t: t.vmap(add, in_dims=(0, None))(x(t), 3),
    "keywords": lambda t: t.vmap(lambda a, b: a + b)(x(t), b=t.ones(3)),
    "tuple": lambda t: t.vmap(total)((x(t), [x(t), {"k": x(t)}])),
    "dict_dims": lambda t: t.vmap(total, in_dims=({"a": 0, "b": None},))({"a": x(t), "b": x(t)}),
    "prefix": lambda t: t.vmap(lambda a, b: total(a) + total(b), in_dims=((0, None), 1))(
        (x(t), x(t)), [x(t).t(), x(t).t()]
    ),
    "namedtuple": lambda t: t.vmap(lambda p: Pair(p.a + 1, p.b))(Pair(x(t), x(t))),
    "ordered": lambda t: t.vmap(lambda d: OrderedDict(z=d["a"], y=d["a"] * 2))(OrderedDict(a=x(t))),
    "outputs": map_rows(lambda t, v: {"a": v * 2, "b": [v, (v.sum(),)]}),
    "out_dims_tuple": map_rows(lambda t, v: (v, v * 2), out_dims=(0, 1)),
    "out_dims_dict": map_rows(lambda t, v: {"a": v, "b": v}, out_dims={"a": 0, "b": 1}),
    "out_dims_single": map_rows(lambda t, v: v, out_dims=(1,)),
    "unbatched_output": map_rows(lambda t, v: (v, t.ones(2)), out_dims=(0, None)),
    "unbatched_expanded": map_rows(lambda t, v: t.ones(2), out_dims=1),
    "identity": lambda t: [a := x(t), t.vmap(lambda v: v)(a) is a][1],
    "partial": lambda t: t.vmap(functools.partial(add, b=2))(x(t)),
    "named_results": map_rows(lambda t, v: v.max(0)),
    "chunks": lambda t: t.vmap(t.sin, chunk_size=2)(t.arange(10.0).view(5, 2)),
    "chunks_of_trees": lambda t: t.vmap(
        lambda a, b: (a + b, {"k": a}), in_dims=(0, None), out_dims=(1, {"k": 0}), chunk_size=3
    )(t.arange(10.0).view(5, 2), t.ones(2)),
    "func": lambda t: t.func.vmap(t.dot)(x(t), x(t)),
    "empty_batch": lambda t: t.vmap(lambda v: (v * 2).sum(0))(t.zeros(0, 3)),
    "inner_sees": map_rows(facts_of),
    "inner_requires_grad": lambda t: t.vmap(
        lambda v: t.tensor([v.requires_grad, v.grad_fn is None, (v * 2).requires_grad])
    )(x(t).requires_grad_()),
    "name": lambda t: t.vmap(add).__name__,
    "module": lambda t: [m := t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Tanh()), t.vmap(m)(x(t))][1],
}
STRUCTURE_ERRORS: dict[str, Script] = {
    "in_dims_text": lambda t: t.vmap(add, in_dims="a")(x(t), x(t)),
    "in_dims_list": lambda t: t.vmap(add, in_dims=[0, 0])(x(t), x(t)),
    "in_dims_short": lambda t: t.vmap(add, in_dims=(0,))(x(t), x(t)),
    "in_dims_high": lambda t: t.vmap(add, in_dims=(0, 3))(x(t), x(t)),
    "in_dims_for_number": lambda t: t.vmap(add, in_dims=(0, 0))(x(t), 3),
    "in_dims_all_none": lambda t: t.vmap(add, in_dims=(None, None))(x(t), 3),
    "in_dims_not_int": lambda t: t.vmap(add, in_dims=(0, "a"))(x(t), 3),
    "in_dims_list_for_tuple": lambda t: t.vmap(add, in_dims=(0, [0, 0]))(x(t), (x(t), x(t))),
    "in_dims_other_keys": lambda t: t.vmap(add, in_dims=(0, {"a": 0}))(x(t), {"b": x(t)}),
    "sizes": lambda t: t.vmap(add, in_dims=(0, 1))(x(t), x(t)),
    "no_inputs": lambda t: t.vmap(add)(),
    "partial": lambda t: t.vmap(functools.partial(add, b=2))(),
    "scalar": lambda t: t.vmap(lambda v: v)(t.tensor(1.0)),
    "returns_none": map_rows(lambda t, v: None),
    "returns_number": map_rows(lambda t, v: (v, 3)),
    "batched_for_none": map_rows(lambda t, v: (v, v), out_dims=(0, None)),
    "out_dims_high": map_rows(lambda t, v: v, out_dims=5),
    "out_dims_text": map_rows(lambda t, v: v, out_dims="a"),
    "out_dims_structure": map_rows(lambda t, v: v, out_dims=(0, 0)),
    "out_dims_short": map_rows(lambda t, v: (v, v, v), out_dims=(0, 0)),
    "randomness": map_rows(lambda t, v: v, randomness="foo"),
    "chunk_size": map_rows(lambda t, v: v, chunk_size=0),
}


@pytest.mark.parametrize("case", STRUCTURES)
def test_structures(case: str) -> None:
    both(STRUCTURES[case])


@pytest.mark.parametrize("case", STRUCTURE_ERRORS)
def test_structures_that_do_not_fit(case: str) -> None:
    both(STRUCTURE_ERRORS[case])


# ------------------------------------------------------------------ inside the function


def zeros_then(name: str, *others: Any) -> Callable[..., Any]:
    """Writes a slice to an unbatched tensor by a method."""
    return lambda t, v: getattr(t.zeros(3), name)(*[v if o is None else o for o in others])


INSIDE: dict[str, Callable[..., Any]] = {
    "item": lambda t, v: t.tensor(v[0].item()),
    "float": lambda t, v: t.tensor(float(v[0])),
    "int": lambda t, v: t.tensor(int(v[0])),
    "bool": lambda t, v: v if v[0] > 0 else -v,
    "is_nonzero": lambda t, v: t.is_nonzero(v[0]),
    "index": lambda t, v: [1, 2, 3][v[0].long()],
    "list_of_numbers": lambda t, v: t.tensor([v[0], v[1]]),
    "tolist": lambda t, v: v.tolist(),
    "numpy": lambda t, v: v.numpy(),
    "storage": lambda t, v: v.untyped_storage().nbytes(),
    "data_ptr": lambda t, v: v.data_ptr(),
    "data": lambda t, v: v.data,
    "alpha": lambda t, v: t.add(v, v, alpha=v[0]),
    "size": lambda t, v: v.view(v[0].long()),
    "nonzero": lambda t, v: v.nonzero(),
    "where": lambda t, v: t.where(v > 1),
    "argwhere": lambda t, v: t.argwhere(v > 2),
    "masked_select": lambda t, v: v.masked_select(v > 1),
    "masked_select_same": lambda t, v: v.masked_select(t.tensor([True, False, True])),
    "mask_index": lambda t, v: v[v > 1],
    "unique": lambda t, v: v.unique(),
    "unique_consecutive": lambda t, v: t.unique_consecutive(v),
    "bincount": lambda t, v: t.bincount(v.long()),
    "allclose": lambda t, v: t.allclose(v, v),
    "equal": lambda t, v: t.equal(v, v),
    "one_hot": lambda t, v: t.nn.functional.one_hot(v.long()),
    "one_hot_classes": lambda t, v: t.nn.functional.one_hot(v.long(), 9),
    "out": lambda t, v: t.add(v, v, out=t.zeros(3)),
    "out_batched": lambda t, v: t.add(v, v, out=t.zeros_like(v)),
    "requires_grad_": lambda t, v: v.requires_grad_(),
    "requires_grad_off": lambda t, v: v.requires_grad_(False),
    "requires_grad_unbatched": lambda t, v: v * t.ones(3).requires_grad_(),
    "backward": lambda t, v: (v**2).sum().backward(),
    "retain_grad": lambda t, v: v.retain_grad(),
    "register_hook": lambda t, v: v.register_hook(print),
    "dim_too_high": lambda t, v: v.sum(3),
    "softmax_dim": lambda t, v: v.softmax(1),
    "transpose_dim": lambda t, v: v.transpose(0, 1),
    "unsqueeze_dim": lambda t, v: v.unsqueeze(3),
    "index_too_high": lambda t, v: v[3],
    "too_many_indices": lambda t, v: v[0, 1],
    "shapes": lambda t, v: v + t.ones(4),
    "product_shapes": lambda t, v: v @ t.ones(4, 2),
    "view_shape": lambda t, v: v.view(2, 2),
    "expand_shape": lambda t, v: v.expand(4),
    "raises": lambda t, v: [][0],
    "add_to_unbatched": zeros_then("add_", None),
    "mul_to_unbatched": zeros_then("mul_", None),
    "copy_to_unbatched": zeros_then("copy_", None),
    "pow_to_unbatched": zeros_then("pow_", None),
    "lerp_to_unbatched": zeros_then("lerp_", None, None),
    "atan2_to_unbatched": zeros_then("atan2_", None),
    "fill_unbatched": lambda t, v: t.zeros(3).fill_(v[0]),
    "set_item_unbatched": lambda t, v: t.zeros(3).__setitem__(0, v[0]),
    "set_slice_unbatched": lambda t, v: t.zeros(3).__setitem__(slice(0, 2), v[:2]),
    "set_indices_unbatched": lambda t, v: t.zeros(3).__setitem__(t.tensor([0, 1]), v[:2]),
    "index_add_unbatched": lambda t, v: t.zeros(3).index_add_(0, t.tensor([0, 1, 2]), v),
    "set_item": lambda t, v: write(t, v, 1),
    "set_slice": lambda t, v: write(t, v, slice(0, 2)),
    "set_indices": lambda t, v: write(t, v, t.tensor([0, 2])),
    "set_at_batched": lambda t, v: write(t, v, v[:2].long() - 1 - 3 * (v[:2] > 3).long()),
    "set_mask": lambda t, v: write(t, v, v > 2),
    "in_place": lambda t, v: v.clone().add_(v).mul_(2).clamp_(max=7),
    "view_in_place": lambda t, v: [c := v.clone(), c[1:].mul_(3), c.view(3, 1).add_(1), c][3],
    "transposed_in_place": lambda t, v: v.outer(v).t_().add_(v),
    "unsqueeze_in_place": lambda t, v: v.clone().unsqueeze_(0),
    "new_zeros": lambda t, v: v.new_zeros(3).add_(v),
    "length": lambda t, v: t.tensor(float(len(v))),
    "iteration": lambda t, v: sum(e * e for e in v),
    "unpack": lambda t, v: t.stack([*v], 0),
    "promotion": lambda t, v: v[0].double() * v,
    "promotion_unbatched": lambda t, v: v[0] * t.tensor(2.0, dtype=t.float64),
    "table": lambda t, v: t.arange(10.0)[v.long()],
    "ellipsis": lambda t, v: v.outer(v)[..., 1, None],
    "ties": lambda t, v: (v * 0).max() + v.min(),
    "as_strided": lambda t, v: v.as_strided((2, 2), (1, 1)),
    "expand_as": lambda t, v: v[:1].expand_as(v),
    "squeeze": lambda t, v: v[:1].squeeze(),
    "batch_norm": lambda t, v: t.nn.functional.batch_norm(
        v.outer(v), t.zeros(3), t.ones(3), training=True
    ),
    "batch_norm_same": lambda t, v: t.nn.functional.batch_norm(v.outer(v), t.zeros(3), t.ones(3)),
    "batch_norm_batched": lambda t, v: [
        m := t.zeros_like(v),
        t.nn.functional.batch_norm(v.outer(v), m, t.ones_like(v), training=True) + m,
    ][1],
    "instance_norm": lambda t, v: t.nn.functional.instance_norm(
        v.outer(v)[None], t.zeros(3), t.ones(3)
    ),
    "convolution": lambda t, v: t.nn.functional.conv1d(v[None, None], t.ones(2, 1, 2)),
    "cross_entropy": lambda t, v: t.nn.functional.cross_entropy(v[None], t.tensor([1])),
    "parameter": lambda t, v: t.nn.Parameter(t.ones(3)) * v,
    "leaf_made": lambda t, v: t.tensor([1.0, 2.0, 3.0], requires_grad=True) * v,
    "flag_set": lambda t, v: [setattr(v, "requires_grad", True), v * 2][1],
    "no_grad": lambda t, v: [m := t.no_grad(), m.__enter__(), v * 2, m.__exit__(None, None, None)][
        2
    ],
    "repr": lambda t, v: repr(v),
}


SAID_OF_ONE_LEVEL = {"one_hot_classes", "set_at_batched", "bincount", "argwhere"}
"""Scripts with numbers for one level, or messages that name where PyTorch's inner loop stops."""


@pytest.mark.parametrize("case", INSIDE)
def test_inside(case: str) -> None:
    both(map_rows(INSIDE[case]))


@pytest.mark.parametrize("case", [c for c in INSIDE if c not in SAID_OF_ONE_LEVEL])
def test_inside_two_levels(case: str) -> None:
    function = INSIDE[case]
    both(lambda t: t.vmap(t.vmap(lambda v: function(t, v)))(t.stack([x(t), x(t) + 6])))


def test_printing() -> None:
    def script(t: Any) -> Any:
        texts: list[str] = []
        t.vmap(lambda v: texts.append(repr(v)) or v)(x(t))
        t.vmap(lambda v: texts.append(str(v * 2)) or v)(x(t).requires_grad_())
        t.vmap(t.vmap(lambda v: texts.append(repr(v)) or v))(x(t))
        t.vmap(lambda v: texts.append(repr(v)) or v, in_dims=1)(x(t))
        return texts

    both(script)


def test_escaped() -> None:
    def script(t: Any) -> Any:
        kept: list[Any] = []
        t.vmap(lambda v: kept.append(v) or v)(x(t))
        again = t.vmap(lambda v: v + kept[0])(x(t))
        return again, repr(kept[0]), kept[0] + 1

    both(script)


# ------------------------------------------------------------------ gradients and levels


def test_gradients() -> None:
    def script(t: Any) -> Any:
        w = t.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=t.float64, requires_grad=True)
        a = x(t).double().requires_grad_()
        y = t.vmap(lambda v: t.tanh(w @ v).sum() * v.prod() + v.max())(a)
        first = t.autograd.grad(y.sum(), [w, a], create_graph=True)
        return y, first, t.autograd.grad(first[1].pow(2).sum(), [w, a])

    both(script)


@pytest.mark.parametrize("name", ["max", "min", "amax", "median", "std", "prod"])
def test_gradients_of_ties(name: str) -> None:
    def script(t: Any) -> Any:
        a = t.ones(2, 2, 3, dtype=t.float64, requires_grad=True)
        y = t.vmap(lambda v: getattr(v, name)())(a)
        return t.autograd.grad(y.sum(), a)

    both(script)


def test_gradients_through_writes() -> None:
    def script(t: Any) -> Any:
        a = x(t).requires_grad_()

        def f(v: Any) -> Any:
            c = v * 1
            c[0] = v[1] * v[2]
            c[1:].mul_(v[0])
            return c.cumsum(0)

        y = t.vmap(f)(a)
        return y, t.autograd.grad(y.pow(2).sum(), a)

    both(script)


def jacobian_of(t: Any, **options: Any) -> Any:
    """Rows of a Jacobian by one backward each, and what is recorded of them."""
    a, unused = t.tensor([1.0, 2.0, 3.0], requires_grad=True), t.ones(2, requires_grad=True)
    y = t.stack([a.prod(), (a**2).sum()])
    rows = t.vmap(lambda v: t.autograd.grad(y, [a, unused], v, **options))(t.eye(2))
    return rows, [row.requires_grad for row in rows]


BACKWARDS: dict[str, Script] = {
    "retained": lambda t: jacobian_of(t, retain_graph=True, materialize_grads=True),
    "recorded": lambda t: jacobian_of(t, create_graph=True, materialize_grads=True),
    "unused": lambda t: jacobian_of(t),
    "twice": lambda t: [
        a := t.ones(3, requires_grad=True),
        y := a * a,
        f := t.vmap(lambda v: t.autograd.grad(y, a, v)[0]),
        f(t.eye(3)),
        f(t.eye(3)),
    ],
    "two_levels": lambda t: [
        a := t.tensor([1.0, 2.0, 3.0], requires_grad=True),
        y := a.outer(a),
        t.vmap(t.vmap(lambda v: t.autograd.grad(y, a, v, retain_graph=True)[0]))(
            t.eye(9).view(3, 3, 3, 3)
        ),
    ][2],
    "shape": lambda t: [
        a := t.ones(3, requires_grad=True),
        t.vmap(lambda v: t.autograd.grad(a * a, a, v)[0])(t.eye(2)),
    ],
    "of_a_slice": lambda t: [
        a := x(t).requires_grad_(),
        t.vmap(lambda v: t.autograd.grad((v * a).sum(), a)[0])(a),
    ],
    "batched_flag": lambda t: [
        a := t.tensor([1.0, 2.0, 3.0], requires_grad=True),
        t.autograd.grad(a.exp() * a.sum(), a, t.eye(3), is_grads_batched=True),
    ][1],
}


@pytest.mark.parametrize("case", BACKWARDS)
def test_a_backward_for_each_slice(case: str) -> None:
    both(BACKWARDS[case])


LEVELS: dict[str, Script] = {
    "outer_product": lambda t: t.vmap(lambda a: t.vmap(lambda b: a @ b)(x(t)))(x(t)),
    "captured": lambda t: t.vmap(lambda a: t.vmap(lambda b: b + a.sum(), in_dims=1)(x(t)))(x(t)),
    "dims": lambda t: t.vmap(t.vmap(t.sum, in_dims=1, out_dims=0), in_dims=2, out_dims=1)(
        t.arange(24.0).view(2, 3, 4)
    ),
    "linear": lambda t: t.vmap(lambda w: t.vmap(lambda v: t.nn.functional.linear(v, w))(x(t)))(
        t.arange(12.0).view(2, 2, 3)
    ),
    "write_to_outer": lambda t: t.vmap(lambda a: t.vmap(lambda b: a.clone().add_(b))(x(t)))(x(t)),
    "after_an_error": lambda t: [caught(lambda: t.vmap(lambda v: v.nonzero())(x(t))), x(t) * 2],
}


def caught(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", LEVELS)
def test_levels(case: str) -> None:
    both(LEVELS[case])


# ------------------------------------------------------------------ wrong arguments


def ones_in(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "") -> Script:
    """A script that maps function(t, ...) over ones of these shapes, the last of a dtype."""

    def script(t: Any) -> Any:
        given = [t.ones(*shape) for shape in shapes]
        given[-1] = given[-1].to(getattr(t, dtype or "float32"))
        return t.vmap(functools.partial(function, t))(*given)

    return script


def ctc(lengths: list[int], targets: list[int], **options: Any) -> Callable[..., Any]:
    return lambda t, x, y: t.nn.functional.ctc_loss(
        x.log_softmax(-1), y, lengths, targets, **options
    )


LOGITS, LABELS = (5, 8, 3, 4), (5, 3, 3)
WRONG: dict[str, Script] = {
    "channels": ones_in(
        lambda t, v: t.nn.functional.conv2d(v, t.ones(6, 3, 3, 3)), (5, 2, 4, 5, 5)
    ),
    "rank": ones_in(lambda t, v: t.nn.functional.conv2d(v, t.ones(6, 3, 3, 3)), (5, 1, 2, 3, 5, 5)),
    "pool": ones_in(lambda t, v: t.nn.functional.max_pool2d(v, 4), (5, 2, 3, 2, 2)),
    "unpool_shapes": ones_in(
        lambda t, v, i: t.nn.functional.max_unpool2d(v, i, 2),
        (5, 2, 3, 2, 2),
        (5, 2, 3, 2, 1),
        dtype="int64",
    ),
    "grid": ones_in(
        lambda t, v, g: t.nn.functional.grid_sample(v, g, align_corners=False),
        (5, 2, 3, 4, 4),
        (5, 2, 3, 3, 3),
    ),
    "affine": ones_in(
        lambda t, v: t.nn.functional.affine_grid(v, [2, 3, 4, 4], align_corners=False), (5, 2, 3, 3)
    ),
    "one_value_a_group": ones_in(lambda t, v: t.nn.functional.group_norm(v, 2), (5, 1, 2)),
    "groups": ones_in(lambda t, v: t.nn.functional.group_norm(v, 2), (5, 2, 3, 3)),
    "reflected": ones_in(lambda t, v: t.nn.functional.pad(v, (5, 5), mode="reflect"), (5, 2, 3, 4)),
    "too_many_pads": ones_in(lambda t, v: t.nn.functional.pad(v, (1,) * 6), (5, 3, 4)),
    "ctc_batch": ones_in(ctc([8, 8], [3, 3]), LOGITS, LABELS, dtype="int64"),
    "ctc_inputs": ones_in(ctc([9, 8, 8], [3, 3, 3]), LOGITS, LABELS, dtype="int64"),
    "ctc_targets": ones_in(ctc([8, 8, 8], [4, 3, 3]), LOGITS, LABELS, dtype="int64"),
    "ctc_reduction": ones_in(ctc([8] * 3, [3] * 3, reduction="x"), LOGITS, LABELS, dtype="int64"),
    "sides": ones_in(lambda t, a, b: t.linalg.solve(a, b), (5, 2, 2), (5, 3, 3)),
    "reflections": ones_in(lambda t, a, b: t.linalg.householder_product(a, b), (5, 4, 2), (5, 3)),
    "inverse": ones_in(lambda t, v: t.linalg.tensorinv(v, ind=1), (5, 4, 2, 3)),
    "slopes_twice": ones_in(lambda t, v: t.gradient(v, dim=(0, 0)), (5, 4, 3)),
    "slopes_dim": ones_in(lambda t, v: t.gradient(v, dim=3), (5, 4, 3)),
    "slopes_spacing": ones_in(lambda t, v: t.gradient(v, spacing=[1.0, 2.0, 3.0]), (5, 4, 3)),
    "renorm": ones_in(lambda t, v: t.renorm(v, 1, 2, 1.0), (5, 4, 3)),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls_of_what_has_a_batch_of_its_own(case: str) -> None:
    both(WRONG[case])


# ------------------------------------------------------------------ random numbers

RANDOM: dict[str, Callable[..., Any]] = {
    "rand": lambda t, v: t.rand(2),
    "randn": lambda t, v: t.randn(20),
    "randint": lambda t, v: t.randint(0, 10, (2,)),
    "randperm": lambda t, v: t.randperm(4),
    "rand_like": lambda t, v: t.rand_like(v),
    "rand_like_unbatched": lambda t, v: t.rand_like(t.ones(2)),
    "randint_like": lambda t, v: t.randint_like(v, 10),
    "bernoulli": lambda t, v: t.bernoulli(v / 10),
    "bernoulli_unbatched": lambda t, v: t.bernoulli(t.ones(3) / 2),
    "multinomial": lambda t, v: t.multinomial(v, 2),
    "multinomial_unbatched": lambda t, v: t.multinomial(t.ones(4), 2),
    "poisson": lambda t, v: t.poisson(v),
    "gamma": lambda t, v: t._standard_gamma(v),
    "gamma_unbatched": lambda t, v: t._standard_gamma(t.ones(3)),
    "dirichlet": lambda t, v: t._sample_dirichlet(v),
    "gamma_distribution": lambda t, v: t.distributions.Gamma(v, 2.0).rsample((2,)),
    "normal": lambda t, v: t.normal(v, 1.0),
    "normal_both": lambda t, v: t.normal(v, v),
    "normal_sizes": lambda t, v: t.normal(0.0, 1.0, (2,)),
    "normal_": lambda t, v: v.clone().normal_(),
    "normal_unbatched": lambda t, v: t.zeros(3).normal_(),
    "uniform_": lambda t, v: v.clone().uniform_(),
    "exponential_": lambda t, v: v.clone().exponential_(),
    "random_": lambda t, v: v.clone().random_(10),
    "bernoulli_": lambda t, v: v.clone().bernoulli_(0.5),
    "bernoulli_each": lambda t, v: v.clone().bernoulli_(t.ones(3) / 2),
    "bernoulli_each_batched": lambda t, v: v.clone().bernoulli_(v / 10),
    "dropout": lambda t, v: t.nn.functional.dropout(v),
    "dropout_unbatched": lambda t, v: t.nn.functional.dropout(t.ones(4)),
    "dropout_off": lambda t, v: t.nn.functional.dropout(v, training=False),
    "dropout_in_place": lambda t, v: t.nn.functional.dropout(v.clone(), inplace=True),
    "dropout1d": lambda t, v: t.nn.functional.dropout1d(v[:, None] * t.ones(4)),
    "alpha_dropout": lambda t, v: t.nn.functional.alpha_dropout(v, training=True),
    "fractional_max_pool2d": lambda t, v: t.nn.functional.fractional_max_pool2d(
        v[None, :, None] * t.arange(1.0, 26).view(1, 5, 5).sin(), 2, output_size=2
    ),
    "gumbel_softmax": lambda t, v: t.nn.functional.gumbel_softmax(v[:, None] * t.ones(2), dim=0),
    "attention": lambda t, v: t.nn.functional.scaled_dot_product_attention(
        v.view(1, 3, 1), v.view(1, 3, 1), v.view(1, 3, 1)
    ),
    "attention_dropout": lambda t, v: t.nn.functional.scaled_dot_product_attention(
        v.view(1, 3, 1), v.view(1, 3, 1), v.view(1, 3, 1), dropout_p=0.5
    ),
    "twice": lambda t, v: v.clone().uniform_() + t.rand(3),
    "seeded": lambda t, v: [t.manual_seed(3), t.zeros_like(v).uniform_()][1],
}


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
@pytest.mark.parametrize("case", RANDOM)
def test_random_numbers(case: str, randomness: str) -> None:
    both(map_rows(RANDOM[case], randomness=randomness))


@pytest.mark.parametrize("inner", ["different", "same", "error"])
@pytest.mark.parametrize("outer", ["different", "same", "error"])
def test_random_numbers_at_two_levels(outer: str, inner: str) -> None:
    both(
        lambda t: t.vmap(t.vmap(lambda v: t.rand(2), randomness=inner), randomness=outer)(x(t)),
    )


def test_same_numbers_for_all_chunks() -> None:
    both(lambda t: t.vmap(lambda v: v + t.rand(2), randomness="same", chunk_size=2)(t.zeros(5, 2)))


# ------------------------------------------------------------------ random programs

STEPS: list[Callable[..., Any]] = [
    lambda t, v, u: v + u,
    lambda t, v, u: v * u.sum(),
    lambda t, v, u: v - u.mean(),
    lambda t, v, u: v.reshape(-1)[: u.numel()].sum() * u,
    lambda t, v, u: v.transpose(0, -1),
    lambda t, v, u: v.flip([0]),
    lambda t, v, u: v.cumsum(0),
    lambda t, v, u: v.softmax(-1),
    lambda t, v, u: v.max() - u,
    lambda t, v, u: v.amax(-1, keepdim=True) * v,
    lambda t, v, u: v @ u.t() if v.ndim == u.ndim == 2 else v * 2,
    lambda t, v, u: t.where(v > 0, v, u) if v.shape == u.shape else v,
    lambda t, v, u: t.stack([v, v * 2], -1).sum(-1),
    lambda t, v, u: t.cat([v, v], -1)[..., : v.shape[-1]],
    lambda t, v, u: v.unsqueeze(0).squeeze(0),
    lambda t, v, u: v.clone().mul_(2),
    lambda t, v, u: v.var(0, unbiased=False) + v,
    lambda t, v, u: v.sort(-1)[0],
    lambda t, v, u: v.gather(0, t.zeros_like(v).long()),
    lambda t, v, u: v.roll(1, 0),
    lambda t, v, u: v.logsumexp(0) + v,
    lambda t, v, u: v.expand(2, *v.shape).sum(0),
    lambda t, v, u: v.index_select(0, t.tensor([0, 0])).sum(0) + v,
    lambda t, v, u: t.outer(v.flatten(), u.flatten()).sum() + v,
    lambda t, v, u: v.repeat(*[2] * v.ndim).mean() + v,
    lambda t, v, u: v.median() + v,
    lambda t, v, u: t.nn.functional.layer_norm(v, v.shape[-1:]),
    lambda t, v, u: t.nn.functional.linear(v, u) if u.ndim == 2 else v,
    lambda t, v, u: v.chunk(2, 0)[0].sum() + v,
    lambda t, v, u: v.masked_fill(v > 0.5, 0.25),
    lambda t, v, u: v.topk(1, -1)[0] + v,
]
SHAPES = [((2, 3), (2, 3)), ((3,), (3,)), ((3, 3), (3, 3)), ((2, 3), (3,)), ((2, 2), (2, 2))]
DIMS = [(0, 0), (0, None), (None, 0), (-1, 0), (1, 0)]


@pytest.mark.parametrize("seed", range(80))
def test_random_programs(seed: int) -> None:
    """Two tensors go through random steps at one level or two; outputs and gradients agree."""
    rng = random.Random(seed)
    steps = [(rng.choice(STEPS), rng.random() < 0.5) for _ in range(rng.randint(2, 6))]
    shapes, dims, nested = rng.choice(SHAPES), rng.choice(DIMS), rng.random() < 0.3
    size = rng.choice([1, 2, 3])

    def program(t: Any, v: Any, u: Any) -> Any:
        for step, first in steps:
            if first:
                v = step(t, v, u)
            else:
                u = step(t, u, v)
        return v, u

    def leaf(t: Any, shape: tuple[int, ...], dim: int | None, salt: int) -> Any:
        sizes = list(shape)
        if dim is not None:
            sizes.insert(dim % (len(shape) + 1), size)
        values = np.random.default_rng([seed, salt]).normal(size=sizes)
        return t.tensor(values.tolist(), dtype=t.float64, requires_grad=True)

    def script(t: Any) -> Any:
        a, b = leaf(t, shapes[0], dims[0], 1), leaf(t, shapes[1], dims[1], 2)
        factors = t.tensor([0.5, 2.0], dtype=t.float64)

        def inner(s: Any) -> Any:
            return t.vmap(lambda v, u: program(t, v * s, u), in_dims=dims)(a, b)

        y = t.vmap(inner)(factors) if nested else inner(1.0)
        total = sum(out.sin().sum() for out in y)
        return y, t.autograd.grad(total, [a, b], allow_unused=True)

    both(script)


def test_views_know_the_tensor_they_are_of() -> None:
    def run(t: Any) -> Any:
        x = t.arange(24.0).reshape(2, 3, 4).clone()
        made = t.vmap(lambda v: (v.t(), v[1:], v + 1, v), 1)(x)
        part = x[1]
        of_part = t.vmap(lambda v: v[1:])(part)
        return [each._base is x for each in (*made, of_part)], [of_part._base is part, made[3] is x]

    both(run)


VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "T": lambda t, v: v.T,
    "hsplit": lambda t, v: v.hsplit(1)[0],
    "vsplit": lambda t, v: v.vsplit(2)[1],
    "dsplit": lambda t, v: v.dsplit(3)[1],
    "atleast_1d": lambda t, v: t.atleast_1d(v[0, 0, 0]),
    "atleast_2d": lambda t, v: t.atleast_2d(v[0, 1]),
    "atleast_3d": lambda t, v: t.atleast_3d(v[1]),
    "broadcast_tensors": lambda t, v: t.broadcast_tensors(v, t.ones(1))[0],
    "ravel": lambda t, v: v.ravel(),
    "squeeze": lambda t, v: v[:1].squeeze(),
    "expand_as": lambda t, v: v[:, :1, 0].expand_as(v[:, :1, 0] + 1),
    "reshape_as": lambda t, v: v[:, 0].reshape_as(v[:, 0].t() + 1),
    "view_as": lambda t, v: v[:1, :1].view_as(v[0, :1] + 1),
    "type_as": lambda t, v: v[0].type_as(v),
    "squeeze_number": lambda t, v: v[1, 0, 0].squeeze(),
    "transpose_number": lambda t, v: v[1, 0, 0].transpose(0, 0),
    "flatten_number": lambda t, v: v[1, 0, 0].flatten(),
    "unfold_number": lambda t, v: v[1, 0, 0].unfold(0, 1, 1),
}


@pytest.mark.parametrize("dim", [0, 2])
@pytest.mark.parametrize("name", VIEWS)
def test_what_is_written_to_views_is_written(name: str, dim: int) -> None:
    """A view of a slice is a view in a mapped function, too, and its gradient goes through."""

    def run(t: Any) -> Any:
        make = VIEWS[name]
        whole = t.arange(48.0).reshape(2, 4, 2, 3).movedim(0, dim).clone()
        kept = whole.clone().requires_grad_()
        t.vmap(lambda v: (make(t, v).mul_(-2), v.sum())[1], dim)(whole)
        y = t.vmap(lambda v: make(t, v).sin(), dim)(kept)
        tangent = t.vmap(lambda v: t.func.jvp(lambda u: make(t, u) * 3, (v,), (v,))[1], dim)(
            kept.detach()
        )
        twice = t.vmap(t.vmap(lambda v: make(t, v)))(t.stack([whole.movedim(dim, 0)] * 2))
        return whole, y, t.autograd.grad((y * y).sum(), kept), tangent, twice

    both(run)


@pytest.mark.parametrize("randomness", ["error", "same"])
def test_draws_by_batched_probabilities_in_place(randomness: str) -> None:
    def run(t: Any) -> Any:
        p = t.tensor([0.0, 1.0])
        return t.vmap(lambda q: t.ones(3).bernoulli_(q), randomness=randomness)(p)

    both(run)
