"""Forward mode beside PyTorch's: the table's tangents, then scripts about levels, dual tensors,
views, writes in place, errors and custom functions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import UNINITIALISED, sweep_entries
from oracle import assert_same_outcome, both, is_tensor, outcome, torch
from oracle import leaves as parts
from samples import Entry
from sampling import Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

SCRIPTS: dict[str, Callable[[Any, Any], Any]] = {}

OTHERWISE_IN_PYTORCH = {
    "scatter_reduce": "it has no tangent for one kind of reduction, and does not say so",
    "linalg.eigh": "the signs of eigenvectors are anybody's choice",
    "svd": "the signs of singular vectors are anybody's choice",
    "svd_lowrank": "svd",
    "pca_lowrank": "svd",
    "triangular_solve": "its tangent is no slope: it counts the triangle that is not read",
    "cholesky_inverse": "its tangent counts the triangle that is not read otherwise",
    "linalg.lstsq": "results that are empty have a tangent",
}


def script(body: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    SCRIPTS[body.__name__] = body
    return body


def forward_ad(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.autograd.forward_ad")


# ------------------------------------------------------------------ the table


def function(entry: Entry, library: Any) -> Any:
    """The op as the library offers it to users; None where it has none of that name."""
    found = None if entry.space == "internal" else library
    for name in entry.id.split("."):
        found = getattr(found, name, None)
    return found


def is_compared(entry: Entry) -> bool:
    known = function(entry, torch) is not None and entry.name not in UNINITIALISED
    return known and entry.id not in OTHERWISE_IN_PYTORCH


def tangents(entry: Entry, library: Any, sample: Call, inplace: bool = False) -> list[Any]:
    """Of each output the tangent, all floating inputs having one."""
    fw = forward_ad(library)
    kinds = sample.tensors()
    count = iter(range(100))

    def make(array: Any) -> Any:
        k = next(count)
        made = library.from_numpy(array.copy())
        if not made.is_floating_point() or kinds[k].constant:
            return made
        way = np.random.default_rng(k).uniform(-1, 1, array.shape)
        if kinds[k].kind == "definite":
            way = way + np.swapaxes(way, -1, -2)
        return fw.make_dual(made, library.from_numpy(np.asarray(way)))

    with fw.dual_level():
        args, kwargs = build(sample, "float64", make, library)
        library.manual_seed(0)
        if entry.mutates or inplace:
            args = [args[0].clone(), *args[1:]]
        if inplace:
            result = getattr(args[0], entry.name + "_")(*args[1:], **kwargs)
            assert result is args[0]
        else:
            result = function(entry, library)(*args, **kwargs)
        found = [t for t in parts(result) if is_tensor(t)]
        return [dense(library, fw.unpack_dual(t).tangent) for t in found]


def dense(library: Any, tangent: Any) -> Any:
    """A tangent with memory: PyTorch has zeros without."""
    without = library is torch and tangent is not None and tangent._is_zerotensor()
    return torch.zeros_like(tangent) if without else tangent


def assert_same_tangents(entry: Entry, sample: Call, inplace: bool) -> None:
    mine = outcome(lambda: tangents(entry, pygrad, sample, inplace))
    theirs = outcome(lambda: tangents(entry, torch, sample, inplace))
    if not theirs.error:
        assert_same_outcome(mine, theirs, rtol=1e-6, atol=1e-8)


@sweep_entries(is_compared)
def test_tangents(entry: Entry, sample: Call) -> None:
    assert_same_tangents(entry, sample, False)


@sweep_entries(lambda entry: is_compared(entry) and "inplace" in entry.words)
def test_tangents_in_place(entry: Entry, sample: Call) -> None:
    assert_same_tangents(entry, sample, True)


# ------------------------------------------------------------------ scripts


def numbers(t: Any) -> tuple[Any, Any]:
    return t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 0.0, 2.0])


def halves(fw: Any, *tensors: Any) -> list[Any]:
    return [part for tensor in tensors for part in fw.unpack_dual(tensor)]


def error_of(body: Callable[[], Any]) -> str:
    """The type and the first line of what a call raises."""
    try:
        return f"fine: {body()}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


@script
def levels(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    said = [error_of(lambda: fw.make_dual(x, v)), fw.unpack_dual(x).tangent]
    said += [error_of(lambda: fw.make_dual(x, v, level=0)), fw.unpack_dual(x, level=0).tangent]
    said += [error_of(fw.exit_dual_level), error_of(lambda: fw.exit_dual_level(level=3))]
    said += [fw.enter_dual_level(), error_of(fw.enter_dual_level)]
    said += [error_of(lambda: fw.exit_dual_level(level=1)), fw.exit_dual_level()]
    with fw.dual_level() as level:
        dual = fw.make_dual(x, v)
        said += [level, fw.unpack_dual(dual).tangent, fw.unpack_dual(dual, level=1).tangent]
    said += halves(fw, dual)
    with fw.dual_level():
        said += halves(fw, dual, dual * 2)
    return said


@script
def level_is_left_after_an_error(t: Any, fw: Any) -> Any:
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        _ = 1 / 0
    with fw.dual_level() as level:
        return level


@script
def level_as_a_decorator(t: Any, fw: Any) -> Any:
    @fw.dual_level()
    def slope(x: Any) -> Any:
        return fw.unpack_dual(fw.make_dual(x, t.ones(())).sin()).tangent

    return slope(t.tensor(0.5)), slope(t.tensor(1.5))


@script
def what_cannot_be_dual(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    whole = t.ones(3, dtype=t.int64)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        return [
            error_of(lambda a=a, b=b: fw.make_dual(a, b))
            for a, b in [
                (x, t.ones(2)),
                (x, t.ones(1)),
                (x, whole),
                (whole, v),
                (d, v),
                (x, d),
                (x, None),
                (1.0, v),
            ]
        ] + [error_of(lambda: fw.make_dual(x, v, level=1))]


@script
def what_a_dual_is(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        primal, tangent = fw.unpack_dual(d)
        said = [d.is_leaf, d.requires_grad, d._is_view(), d._base is x, d.grad_fn, tangent is v]
        said += [primal._is_view(), primal.data_ptr() == x.data_ptr(), str(fw.unpack_dual(d))]
        said += halves(fw, primal, x, primal[1:])
        r = fw.make_dual(x.clone().requires_grad_(), v)
        said += [r.requires_grad, r.is_leaf, r.grad_fn.name()]
        primal = fw.unpack_dual(r).primal
        return [*said, primal.requires_grad, str(d), repr(r), repr(r**3), repr(d.double() * 100)]


@script
def layouts_of_tangents(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        turned = fw.unpack_dual(fw.make_dual(t.ones(2, 3).t(), t.ones(3, 2))).tangent
        part = fw.unpack_dual(fw.make_dual(t.arange(5.0)[1:4], v)).tangent
        said = [turned.stride(), part, part is v, part.storage_offset()]
        expanded = x.expand(2, 3)
        said.append(error_of(lambda: fw.make_dual(expanded, t.ones(2, 3))))
        same = v.expand(2, 3)
        return [*said, fw.unpack_dual(fw.make_dual(expanded, same)).tangent]


@script
def batches_of_tangents(t: Any, fw: Any) -> Any:
    """Many tangents at one point by the older vmap, which maps `make_dual`, written in place."""
    mapped = importlib.import_module(f"{t.__name__}._vmap_internals")._vmap
    x, ways = t.tensor([1.0, 2.0, 3.0, 4.0]), t.arange(12.0).view(3, 4)
    writes = [
        lambda base, d: base.add_(d.sin(), alpha=2),
        lambda base, d: base.mul_(d).add_(d),
        lambda base, d: base.copy_(d.softmax(0)),
        lambda base, d: base.__setitem__(0, d[1]),
        lambda base, d: base.view(2, 2).t().copy_(d.view(2, 2)),
        lambda base, d: base[:2].copy_(d[2:] * d[:2].exp()),
        lambda base, d: base.copy_(d).zero_(),
        lambda base, d: base.copy_(d * d.prod().item() if d.sum() > 0 else d),
    ]

    def push(write: Any, way: Any) -> Any:
        whole = t.ones(6)
        base, after = whole[1:5], whole[3:]
        with fw.dual_level():
            write(base, fw.make_dual(x, way))
            return tuple(fw.unpack_dual(y).tangent for y in (whole, base, after))

    said: list[Any] = [mapped(lambda way, w=write: push(w, way))(ways.clone()) for write in writes]
    base = t.zeros(4)
    said.append(error_of(lambda: mapped(base.mul_)(ways)).split(":")[0])
    return [*said, error_of(lambda: t.vmap(lambda v: v.as_strided((5,), (1,), 0))(ways)), base]


@script
def modes(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        with t.no_grad():
            said = halves(fw, d * 2)
        with t.inference_mode():
            said += halves(fw, d * 2)
        with fw._set_fwd_grad_enabled(False):
            off, made = d * 2, fw.make_dual(x, v)
            said += [*halves(fw, d, off, made), fw._is_fwd_grad_enabled()]
        return [*said, *halves(fw, d, off, made), fw._is_fwd_grad_enabled()]


@script
def what_keeps_a_tangent(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        said = halves(fw, d.detach(), d.data, d.floor(), d == 1, d.argmax(), t.ones_like(d))
        said += halves(fw, t.zeros_like(d), d.long(), d.double(), d.sort().values, t.as_tensor(d))
        y = d.clone()
        y.detach_()
        said += halves(fw, y)
        y = d.clone().requires_grad_()
        said.append(fw.unpack_dual(y).tangent)
        return [*said, d.sum().item(), d.tolist(), *d.numpy()]


@script
def out_is_refused(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        return [
            error_of(lambda: t.add(d, 1, out=t.empty(3))),
            error_of(lambda: t.sin(d, out=t.empty(3))),
            error_of(lambda: t.max(d, 0, out=(t.empty(()), t.empty((), dtype=t.int64)))),
            error_of(lambda: t.add(x, 1, out=fw.make_dual(x.clone(), v))),
            error_of(lambda: t.add(x, 1, out=t.empty(3))),
        ]


@script
def constants_written(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    said = []
    with fw.dual_level():
        for write in (
            lambda y: y.zero_(),
            lambda y: y.fill_(3),
            lambda y: y.copy_(x),
            lambda y: y.normal_() * 0,
            lambda y: y.bernoulli_() * 0,
            lambda y: y[0].fill_(9),
            lambda y: y.__setitem__(0, 5),
            lambda y: y.__setitem__(x > 1, 5),
            lambda y: y.masked_fill_(x > 2, 7),
        ):
            y = fw.make_dual(x.clone(), v.clone()).clone()
            write(y)
            said.append(fw.unpack_dual(y).tangent)
    return said


@script
def duals_written_into_plain_tensors(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        a, b, c, e, f = (x.clone() for _ in range(5))
        before = c[1:]
        a[0] = d[2]
        b.copy_(d)
        c.mul_(d)
        e[1:].mul_(d[1:])
        f.index_put_((t.tensor([0, 2]),), d[:2], accumulate=True)
        whole = t.ones(3, dtype=t.int64)
        return [*halves(fw, a, b, c, before, e, f), error_of(lambda: whole.add_(d))]


@script
def views_share_tangents(t: Any, fw: Any) -> Any:
    x, v = t.arange(12.0).view(3, 4), t.linspace(-1, 1, 12).view(3, 4)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        views = [d[1], d.t(), d.view(4, 3), d.diagonal(), d[:, None], d[..., ::2], d.flatten()]
        views += [
            *d.split(2, 1),
            *d.unbind(1),
            d.expand(2, 3, 4),
            d.unfold(1, 2, 1),
            d.narrow(0, 1, 2),
        ]
        said = [p for w in views for p in halves(fw, w)]
        said += [fw.unpack_dual(w).tangent.stride() for w in views]
        d[1].mul_(2)
        d.t()[0].add_(d[0, 0])
        said += halves(fw, d, views[0], views[1], views[2])
        y = x.clone()
        early = y.view(-1)
        y.view(4, 3)[1].copy_(d.view(4, 3)[1])
        return [*said, *halves(fw, y, early), v]


@script
def geometry_in_place(t: Any, fw: Any) -> Any:
    x, v = t.arange(6.0).view(2, 3), t.linspace(0, 1, 6).view(2, 3)
    said = []
    with fw.dual_level():
        for change in ("t_", "squeeze_", "unsqueeze_", "transpose_", "swapaxes_"):
            y = fw.make_dual(x.clone(), v.clone()).clone()
            args = {"unsqueeze_": (0,), "transpose_": (0, 1), "swapaxes_": (0, 1)}.get(change, ())
            getattr(y, change)(*args)
            said += halves(fw, y, y * 2)
    return said


@script
def writes_reach_the_users_tangent(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        fw.make_dual(x, v).mul_(3)
        leaf = t.ones(3, requires_grad=True)
        return [x, v, error_of(lambda: fw.make_dual(t.ones(3), leaf).mul_(2))]


@script
def leaf_written_in_place(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        leaf = t.ones(3, requires_grad=True)
        said = [error_of(lambda: leaf.mul_(d)), error_of(lambda: leaf[0].mul_(d[0]))]
        with t.no_grad():
            leaf.mul_(d)
        return [*said, leaf, fw.unpack_dual(leaf).tangent]


@script
def forward_over_reverse(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(leaf, v)
        y = (d**3 + d.exp() * d.tanh()).sum()
        (by_leaf,) = t.autograd.grad(y, leaf, retain_graph=True)
        (by_dual,) = t.autograd.grad(y, d, retain_graph=True)
        (graph,) = t.autograd.grad(y, leaf, create_graph=True)
        said = halves(fw, by_leaf, by_dual, graph)
        said += [by_leaf.requires_grad, fw.unpack_dual(by_leaf).tangent.requires_grad]
        said += [fw.unpack_dual(graph).tangent.requires_grad]
        (third,) = t.autograd.grad(fw.unpack_dual(graph).tangent.sum(), leaf)
        y.backward()
        return [*said, third, leaf.grad, fw.unpack_dual(leaf.grad).tangent]


@script
def reverse_over_forward(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    x, v = x.requires_grad_(), v.requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(x, v)
        tangent = fw.unpack_dual((d.sigmoid() * d).cumsum(0)).tangent
    return t.autograd.grad(tangent.prod(), (x, v))


@script
def tangent_through_a_write_and_back(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    x, v = x.requires_grad_(), v.requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(x, v)
        y = d * d
        y[1:].mul_(d[:2])
        y.t().sin_()
        tangent = fw.unpack_dual(y).tangent
    return [tangent, *t.autograd.grad((tangent * tangent).sum(), (x, v))]


@script
def grad_with_a_dual_gradient(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        (g,) = t.autograd.grad(leaf.exp(), leaf, fw.make_dual(x, v))
        return halves(fw, g)


@script
def module_with_dual_parameters(t: Any, fw: Any) -> Any:
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2))
    x = t.linspace(-1, 1, 6).view(2, 3)
    with fw.dual_level():
        for k, layer in enumerate(model):
            for name, p in list(layer.named_parameters()):
                delattr(layer, name)
                setattr(layer, name, fw.make_dual(p, t.full_like(p, 0.1 * (k + 1))))
        y = t.nn.functional.cross_entropy(model(x), t.tensor([0, 1]))
        return [fw.unpack_dual(y).tangent]


# ------------------------------------------------------------------ custom functions


def custom(t: Any, forward: Any, jvp: Any = None) -> Any:
    """A Function of these two methods."""
    members = {"forward": staticmethod(forward), "jvp": jvp and staticmethod(jvp)}
    return type("F", (t.autograd.Function,), {k: m for k, m in members.items() if m})


@script
def custom_jvp(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any, k: Any) -> Any:
        seen.extend([fw.unpack_dual(a).tangent, t.is_grad_enabled(), fw._is_fwd_grad_enabled()])
        ctx.save_for_forward(a, b)
        return a * b, a.long(), b * k

    def jvp(ctx: Any, ta: Any, tb: Any, tk: Any) -> Any:
        a, b = ctx.saved_tensors
        seen.extend([ta, tb, tk, fw.unpack_dual(a).tangent])
        seen.extend([t.is_grad_enabled(), fw._is_fwd_grad_enabled()])
        return ta * b + a * tb, None, tb * 2

    with fw.dual_level():
        made = custom(t, forward, jvp).apply(fw.make_dual(x, v), x, 2.0)
        plain = custom(t, forward, jvp).apply(x, x, 2.0)
        with fw._set_fwd_grad_enabled(False):
            off = custom(t, forward, jvp).apply(fw.make_dual(x, v), x, 2.0)
        return [*halves(fw, *made, *plain, *off), *seen]


@script
def custom_jvp_is_differentiable(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    x, v = x.requires_grad_(), v.requires_grad_()

    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_forward(a)
        return a * a

    def jvp(ctx: Any, ta: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * ta

    with fw.dual_level():
        y = custom(t, forward, jvp).apply(fw.make_dual(x, v))
        tangent = fw.unpack_dual(y).tangent
    return t.autograd.grad((tangent * tangent).sum(), (x, v))


@script
def custom_jvp_in_place(t: Any, fw: Any) -> Any:
    x, v = numbers(t)

    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a.mul_(2)

    said = []
    with fw.dual_level():
        for jvp in (lambda ctx, ta: ta.mul_(2), lambda ctx, ta: ta * 2):
            d = fw.make_dual(x.clone(), v.clone())
            said.append(error_of(lambda jvp=jvp, d=d: custom(t, forward, jvp).apply(d) is d))
            said += halves(fw, d)
    return said


@script
def custom_jvp_that_is_wrong(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    double = lambda ctx, a: a * 2  # noqa: E731
    same = lambda ctx, a: a  # noqa: E731
    view = lambda ctx, a: a.view(3, 1)  # noqa: E731

    def constant(ctx: Any, a: Any) -> Any:
        y = a * 2
        ctx.mark_non_differentiable(y)
        return y

    pairs: list[tuple[Any, Any]] = [
        (double, None),
        (double, lambda ctx, g: (g, g)),
        (double, lambda ctx, g: g.sum()),
        (double, lambda ctx, g: 3),
        (double, lambda ctx, g: g),
        (same, lambda ctx, g: g),
        (same, lambda ctx, g: g.view_as(g)),
        (view, lambda ctx, g: g.view(3, 1)),
        (view, lambda ctx, g: g.view(3, 1).clone()),
        (constant, lambda ctx, g: g),
        (constant, lambda ctx, g: None),
    ]
    with fw.dual_level():
        return [
            error_of(
                lambda f=f, j=j: fw.unpack_dual(custom(t, f, j).apply(fw.make_dual(x, v))).tangent
            )
            for f, j in pairs
        ]


@script
def custom_jvp_of_views(t: Any, fw: Any) -> Any:
    """What a view's tangent must be: a view of the tangent, or of what that is a view of."""
    x, v = numbers(t)
    part = lambda ctx, a: a.narrow(0, 0, 2)  # noqa: E731
    jvps: list[Any] = [
        lambda ctx, g: g.narrow(0, 0, 2),
        lambda ctx, g: g.narrow(0, 0, 2).clone(),
        lambda ctx, g: g.clone().narrow(0, 0, 2),
        lambda ctx, g: (g * 1)[:2],
    ]
    makers: list[Any] = [
        lambda: fw.make_dual(x, v),
        lambda: fw.make_dual(x, v).view_as(x),
        lambda: fw.make_dual(x, v.view_as(v)),
    ]
    with fw.dual_level():
        return [
            error_of(lambda m=m, j=j: fw.unpack_dual(custom(t, part, j).apply(m())).tangent)
            for m in makers
            for j in jvps
        ]


@script
def custom_view_of_what_has_no_tangent(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    both_of = lambda ctx, a, b: (b * 2, a[:2])  # noqa: E731
    with fw.dual_level():
        plain = x.clone()
        f = custom(t, both_of, lambda ctx, ta, tb: (tb * 2, ta[:2] + 1))
        made = f.apply(plain, fw.make_dual(x, v))
        return halves(fw, *made, plain, plain[1:])


@script
def tangent_is_a_view_where_the_value_is(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        tangents = [fw.unpack_dual(y).tangent for y in (d.view_as(d), d[1:], d.view(3, 1).t())]
        return [tangent._base is v for tangent in tangents]


@script
def custom_jvp_sees_what_is_saved_for_it(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, kept: bool) -> Any:
        ctx.save_for_backward(a, a * 2)
        if kept:
            ctx.save_for_forward(a)
        return a * 3

    def jvp(ctx: Any, ta: Any, _: Any) -> Any:
        seen.append(len(ctx.saved_tensors))
        return ta * 3

    f = custom(t, forward, jvp)
    f.backward = staticmethod(lambda ctx, g: (g * len(ctx.saved_tensors), None))
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        for kept in (False, True):
            f.apply(fw.make_dual(leaf, v), kept).sum().backward()
    return [*seen, leaf.grad]


@script
def tangents_that_are_kept_as_they_are(t: Any, fw: Any) -> Any:
    """Where the layouts agree: strides count where there is more than one element."""
    z = t.zeros
    pairs = [
        (z(5)[:4], z(4)),
        (z(4), z(5)[:4]),
        (z(5)[:4], z(5)[:4]),
        (z(5)[1:], z(5)[:4]),
        (z(5)[5:], z(5)[:0]),
        (z(5)[5:], z(0)),
        (z(4, 1), z(4, 1).as_strided((4, 1), (1, 7))),
        (z(2, 3).t(), z(3, 2)),
        (z(2), z(2).double()),
        (z(3)[0], z(3)[1]),
        (z(3)[1], z(3)[1]),
    ]
    said = []
    for primal, tangent in pairs:
        with fw.dual_level():
            found = fw.unpack_dual(fw.make_dual(primal, tangent)).tangent
            said.append((found is tangent, found.stride(), found.storage_offset()))
    return said


@script
def dual_tensors_keep_their_size(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v)
        said = [error_of(lambda y=y: y.resize_(2)) for y in (d, d[:], d * 2, d.detach())]
        said += [error_of(lambda: d.resize_as_(x)), fw.unpack_dual(d).primal._base is x]
    return [*said, error_of(lambda: d.resize_(3))]


@script
def the_level_that_is_entered(t: Any, fw: Any) -> Any:
    seen = [fw._current_level]
    with fw.dual_level():
        seen.append(fw._current_level)
    return [*seen, fw._current_level, error_of(lambda: fw._no_such_name)]


def square(t: Any) -> Any:
    """A Function that saves an input."""

    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        ctx.save_for_forward(a)
        return a * a

    f = custom(t, forward, lambda ctx, g: 2 * ctx.saved_tensors[0] * g)
    f.backward = staticmethod(lambda ctx, g: g * 2 * ctx.saved_tensors[0])
    return f


def exponential(t: Any) -> Any:
    """A Function that saves its output."""

    def forward(ctx: Any, a: Any) -> Any:
        y = a.exp()
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)
        return y

    f = custom(t, forward, lambda ctx, g: ctx.saved_tensors[0] * g)
    f.backward = staticmethod(lambda ctx, g: g * ctx.saved_tensors[0])
    return f


def doubled_in_place(t: Any) -> Any:
    """A Function that saves what it has written to, and squares it."""

    def forward(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a.pow_(2))
        ctx.root = a.sqrt()
        ctx.save_for_backward(a)
        return a

    f = custom(t, forward, lambda ctx, g: g.mul_(2 * ctx.root))
    f.backward = staticmethod(lambda ctx, g: g * ctx.saved_tensors[0])
    return f


def two_outputs(t: Any) -> Any:
    """A Function that saves both outputs, in another order."""

    def forward(ctx: Any, a: Any) -> Any:
        y, z = a * 2, a * 3
        ctx.save_for_backward(z, None, y)
        return y, z

    f = custom(t, forward, lambda ctx, g: (g * 2, g * 3))

    def backward(ctx: Any, gy: Any, gz: Any) -> Any:
        z, _, y = ctx.saved_tensors
        return gy * y + gz * z * 5

    f.backward = staticmethod(backward)
    return f


@script
def forward_over_the_backward_of_custom_functions(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    leaf = x.clone().requires_grad_()
    found: list[Any] = []
    with fw.dual_level():
        for make in (square, exponential, doubled_in_place, two_outputs):
            for create_graph in (False, True):
                outputs = make(t).apply(fw.make_dual(leaf, v) * 1)
                total = sum((y * (k + 1)).sum() for k, y in enumerate(parts([outputs])))
                (g,) = t.autograd.grad(total, leaf, create_graph=create_graph)
                found += halves(fw, g.clone())
        y = exponential(t).apply(fw.make_dual(leaf, v))
        found += halves(fw, *t.autograd.grad(fw.unpack_dual(y).tangent.sum(), leaf))
    return found


@script
def second_derivatives_of_custom_functions(t: Any, fw: Any) -> Any:
    x, _ = numbers(t)

    class Product(t.autograd.Function):  # type: ignore[misc,name-defined]
        generate_vmap_rule = True

        @staticmethod
        def forward(a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*reversed(inputs))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, g * a

        @staticmethod
        def jvp(ctx: Any, ta: Any, tb: Any) -> Any:
            b, a = ctx.saved_tensors
            return ta * b + a * tb

    def cube(a: Any) -> Any:
        return Product.apply(Product.apply(a, a), a).sum()

    functional = t.autograd.functional
    return [
        t.func.hessian(cube)(x),
        t.func.jacfwd(t.func.grad(cube))(x),
        functional.hessian(cube, x, vectorize=True, outer_jacobian_strategy="forward-mode"),
        functional.jacobian(square(t).apply, x, vectorize=True, strategy="forward-mode"),
        functional.jacobian(exponential(t).apply, x, vectorize=True),
    ]


@script
def overlapping_views_are_zeroed(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    with fw.dual_level():
        d = fw.make_dual(x, v).clone()
        d.expand(2, 3).zero_()
        return halves(fw, d)


@script
def gradients_through_a_slice_written_to(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        d = fw.make_dual(leaf, v) * 1
        d[1:].sigmoid_()
        tangent = fw.unpack_dual(d).tangent
        (g,) = t.autograd.grad(d.sum(), leaf, retain_graph=True)
        (both_ways,) = t.autograd.grad(d.sum() + (tangent * tangent).sum(), leaf)
        return [*halves(fw, g), both_ways]


@script
def hooks_on_saved_tensors_are_not_asked_for_tangents(t: Any, fw: Any) -> Any:
    x, v = numbers(t)
    seen: list[str] = []

    def pack(saved: Any) -> Any:
        seen.append("pack")
        return saved

    def unpack(saved: Any) -> Any:
        seen.append("unpack")
        return saved

    leaf = x.clone().requires_grad_()
    with fw.dual_level(), t.autograd.graph.saved_tensors_hooks(pack, unpack):
        said = halves(fw, fw.make_dual(x, v).exp())
        y = fw.make_dual(leaf, v).sin()
        return [*said, fw.unpack_dual(y).tangent.detach(), "unpack" in seen]


@script
def tangents_of_gradients_that_saved_conjugates(t: Any, fw: Any) -> Any:
    z = t.tensor([0.5 + 1j, 2 - 1j], dtype=t.complex128, requires_grad=True)
    g = t.tensor([1 + 1j, 2 + 0j], dtype=t.complex128, requires_grad=True)
    w = t.tensor([1 - 2j, 3 + 1j, 5 - 4j, 7j], dtype=t.complex128)
    tangent = t.tensor([1, 2, 3j, 4], dtype=t.complex128)
    found = []
    with fw.dual_level():
        w = fw.make_dual(w, tangent).requires_grad_()
        for y in (
            z * w[::2].conj(),
            z * w.view(2, 2).t()[0].conj(),
            z.exp() * w[::2].conj().imag,
            z.abs() * w[:2].conj(),
        ):
            found += t.autograd.grad(y, z, g, create_graph=True)
        found += t.autograd.grad((z * w[::2].conj().sin()).abs().sum(), w, create_graph=True)
        return [fw.unpack_dual(each) for each in found]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(lambda library: SCRIPTS[name](library, forward_ad(library)))


# ------------------------------------------------------------------ random programs


def program(seed: int, t: Any, fw: Any) -> list[Any]:
    """Views, writes and plain ops on dual and other tensors: values, tangents, gradients."""
    draw = np.random.default_rng(seed)
    recorded = bool(draw.integers(2))
    made, roots = [], []
    for _ in range(3):
        x, v = (t.from_numpy(draw.uniform(0.5, 1.5, (2, 3))) for _ in range(2))
        x.requires_grad_(recorded)
        roots.append(x)
        made.append(fw.make_dual(x, v).clone() if draw.integers(3) else x.clone())
    steps: list[Callable[[Any, Any], Any]] = [
        lambda x, y: x * y,
        lambda x, y: x.sin() + y,
        lambda x, y: x[0],
        lambda x, y: x[..., 1:],
        lambda x, y: x.t(),
        lambda x, y: x.reshape(-1),
        lambda x, y: x.detach(),
        lambda x, y: x.sum(0, keepdim=True),
        lambda x, y: x.mul_(y.clone()),
        lambda x, y: x.add_(y.clone(), alpha=2),
        lambda x, y: x.copy_(y.clone()),
        lambda x, y: x.zero_(),
        lambda x, y: x.sigmoid_(),
        lambda x, y: x.__setitem__(0, y[0].clone()),
    ]
    for _ in range(8):
        x, y = made[draw.integers(len(made))], made[draw.integers(len(made))]
        step = steps[draw.integers(len(steps))]
        if x.dim() < 2 or y.dim() < 2 or x.shape != y.shape:
            y = x
        if x.dim() < 2 and step in steps[2:8]:
            continue
        result = step(x, y)
        if result is not None and result is not x:
            made.append(result)
    said = halves(fw, *made)
    kept = [m.sum() for m in made if m.requires_grad]
    if kept:
        grads = t.autograd.grad(sum(kept[1:], kept[0]), roots, allow_unused=True)
        said += halves(fw, *[g for g in grads if g is not None])
    return said


@pytest.mark.parametrize("seed", range(80))
def test_random_program(seed: int) -> None:
    def run(library: Any) -> Any:
        fw = forward_ad(library)
        with fw.dual_level():
            return program(seed, library, fw)

    mine, theirs = outcome(lambda: run(pygrad)), outcome(lambda: run(torch))
    if theirs.error:  # what pygrad's snapshots allow, PyTorch refuses
        return
    assert not mine.error, mine.message
    for a, b in zip(mine.values, theirs.values, strict=True):
        if (a is None) != (b is None):  # a tangent that is zero may be left out
            assert not (a if b is None else b).any()
        elif a is not None:
            np.testing.assert_allclose(
                a.detach().numpy(), b.detach().numpy(), rtol=1e-8, atol=1e-10
            )
