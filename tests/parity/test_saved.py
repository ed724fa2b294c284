"""What nodes save, the hooks on it, and SavedVariable's rules: the same scripts in both libraries.

`check(t)` is the scope in which pygrad treats a mutated saved tensor as PyTorch always does.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import pytest
from graphs import Pair, check, name, result_or_message
from oracle import Scripts, both, leaf

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


# ------------------------------------------------------------------ what nodes saved


@script
def saved_attributes(t: Any) -> Any:
    x, c = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    exp, mul, half, two = x.exp().grad_fn, (x * c).grad_fn, (x * 2).grad_fn, (x * x).grad_fn
    return (
        exp._saved_result,
        exp._saved_result.grad_fn is exp,
        mul._saved_self,
        mul._saved_other,
        mul._saved_other.requires_grad,
        half._saved_self,
        half._saved_other,
        two._saved_self,
        [two._saved_self.requires_grad, two._saved_self.is_leaf],
        [a for a in dir(exp) if a.startswith(("_saved", "_raw"))],
        result_or_message(lambda: exp._saved_self),
        result_or_message(lambda: exp._raw_saved_self),
    )


@script
def backwards_within_hooks(t: Any) -> Any:
    seen: list[int] = []

    def deeper(n: int) -> None:
        with t.enable_grad():
            x = leaf(t, float(n))
            y = x * 2
            y.register_hook(lambda grad: deeper(n - 1) if n else None)
            total = y.sum()
        total.backward()
        seen.append(n + int(x.grad[0]))

    deeper(60)
    return seen


@script
def an_error_of_a_hook_keeps_its_cause(t: Any) -> Any:
    def hook(grad: Any) -> Any:
        try:
            raise LookupError("first")
        except LookupError as error:
            raise ValueError("then") from error

    y = leaf(t, 1.0).exp()
    y.register_hook(hook)
    try:
        y.sum().backward()
    except ValueError as error:
        return repr(error), repr(error.__cause__), repr(error.__context__)


@script
def saved_leaf_stands_for_the_leaf(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * x
    saved = y.grad_fn._saved_self
    first = t.autograd.grad(y.sum(), saved, create_graph=True)
    (saved * 3).sum().backward()
    return first, x.grad


@script
def saved_tensor_object(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    n = x.exp().grad_fn
    raw = n._raw_saved_result
    mul = (x * 2).grad_fn
    return (
        type(raw).__name__,
        raw is n._raw_saved_result,
        raw.data,
        raw.unpack_hook,
        mul._raw_saved_self.data,
        mul._raw_saved_self.unpack_hook,
        result_or_message(lambda: type(raw)()),
    )


@script
def errors_of_register_hooks(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    raw = y.grad_fn._raw_saved_result
    found = [
        result_or_message(lambda: raw.register_hooks(1, 2)),
        result_or_message(lambda: raw.register_hooks(id, 2)),
    ]
    raw.register_hooks(lambda v: v, lambda v: v)
    found.append(result_or_message(lambda: raw.register_hooks(lambda v: v, lambda v: v)))
    freed = x.exp()
    late = freed.grad_fn._raw_saved_result
    freed.sum().backward()
    found.append(result_or_message(lambda: late.register_hooks(lambda v: v, lambda v: v)))
    found.append(late.data)
    none = (x * 2).grad_fn._raw_saved_self
    found.append(result_or_message(lambda: none.register_hooks(lambda v: v, lambda v: v)))
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
        hooked = x * x
    found.append(
        result_or_message(
            lambda: hooked.grad_fn._raw_saved_self.register_hooks(lambda v: v, lambda v: v)
        )
    )
    return found


@script
def hooks_registered_on_a_saved_tensor(t: Any) -> Any:
    x, found = leaf(t, 1.0, 2.0), []
    for make, field in (
        (lambda: x.exp(), "result"),
        (lambda: x * x, "self"),
        (lambda: (x * 1).sin(), "self"),
    ):
        pair = Pair(t)
        y = make()
        raw = getattr(y.grad_fn, "_raw_saved_" + field)
        raw.register_hooks(pair.pack, pair.unpack)
        found.append(raw.data[0])
        found.append(raw.unpack_hook == pair.unpack)
        saved = getattr(y.grad_fn, "_saved_" + field)
        found.append([saved, saved.requires_grad, name(saved.grad_fn)])
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        found.append([g, t.autograd.grad(g.sum(), x)])
        found.append(pair.log)
    return found


@script
def pack_hook_of_register_hooks_that_mutates(t: Any) -> Any:
    y = leaf(t, 1.0).exp()
    return result_or_message(
        lambda: y.grad_fn._raw_saved_result.register_hooks(lambda v: v.add_(1), id)
    )


@script
def freed_saved_tensors(t: Any) -> Any:
    x, z = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    y = x * z
    n = y.grad_fn
    t.autograd.grad(y.sum(), x)
    found = [
        result_or_message(lambda: n._saved_self),
        result_or_message(lambda: t.autograd.grad(y.sum(), z)),
    ]
    s = x + z
    t.autograd.grad(s.sum(), x)
    found.append(t.autograd.grad(s.sum(), z))
    e = x.exp()
    kept = t.autograd.grad(e.sum(), x, retain_graph=True)
    found += [
        kept,
        t.autograd.grad(e.sum(), x),
        result_or_message(lambda: t.autograd.grad(e.sum(), x)),
    ]
    return found


# ------------------------------------------------------------------ default hooks


@script
def default_hooks_see_what_is_saved(t: Any) -> Any:
    x, c = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64)
    pair = Pair(t)
    with pair.scope():
        a = x * 1
        y = a * a
        z = y.sin()
        w = (z * 2).sum()
        x * c
        c * 3
    pair.log.append(("backward",))
    w.backward()
    return pair.log, x.grad


@script
def default_hooks_and_saved_attributes(t: Any) -> Any:
    x, pair = leaf(t, 1.0, 2.0), Pair(t)
    with pair.scope():
        y, z = x.exp(), x * x
    raw = y.grad_fn._raw_saved_result
    return (
        [y.grad_fn._saved_result, y.grad_fn._saved_result.grad_fn is y.grad_fn],
        [z.grad_fn._saved_self, z.grad_fn._saved_self.requires_grad, z.grad_fn._saved_self.is_leaf],
        [raw.data, raw.unpack_hook == pair.unpack],
        pair.log,
    )


@script
def order_of_packing_and_unpacking(t: Any) -> Any:
    x, y, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), leaf(t, 7.0, 8.0)
    found = []
    for make in (
        lambda: x * y,
        lambda: x / y,
        lambda: t.pow(x, y),
        lambda: t.addcmul(w, x, y),
        lambda: t.addcdiv(w, x, y),
        lambda: t.lerp(x, y, w),
        lambda: t.atan2(x, y),
        lambda: x.softmax(0),
        lambda: x.logsumexp(0),
        lambda: x.std(),
        lambda: t.where(x > 1, x, y),
        lambda: t.outer(x, y).mv(w),
    ):
        pair = Pair(t)
        with pair.scope():
            out = make()
        found.append(pair.log[:])
        pair.log.clear()
        t.autograd.grad(out.sum(), x, retain_graph=True)
        found.append(pair.log)
    return found


@script
def double_backward_through_hooks(t: Any) -> Any:
    x, found = leaf(t, 0.5, 2.0), []
    for pack, unpack in (
        (lambda v: v, lambda v: v),
        (lambda v: v.detach(), lambda v: v),
        (lambda v: v.numpy().copy(), t.from_numpy),
        (lambda v: v.clone(), lambda v: v * 1),
    ):
        with t.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * x).exp() * x
            (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        found += [g, t.autograd.grad((g * g).sum(), x)]
    return found


@script
def hooks_that_change_the_value(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v * 4, lambda v: v / 2):
        y = x * x
    return t.autograd.grad(y.sum(), x), y.grad_fn._saved_self


@script
def innermost_hooks_count(t: Any) -> Any:
    x, outer, inner = leaf(t, 1.0), Pair(t), Pair(t)
    with outer.scope():
        x.exp()
        with inner.scope():
            x.sin()
        x.cos()
    x.tan()
    return outer.log, inner.log


@script
def hooks_of_in_place_operations(t: Any) -> Any:
    x, z = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    pair = Pair(t)
    with pair.scope():
        y = x * 1
        y.mul_(z)
        y.exp_()
    y.sum().backward()
    return pair.log, x.grad, z.grad


@script
def pack_hook_that_mutates(t: Any) -> Any:
    def mutates(v: Any) -> Any:
        return v.add_(1)

    x, c, found = leaf(t, 1.0, 2.0), t.ones(2, dtype=t.float64), []
    for make in (lambda: x * c, lambda: x.exp(), lambda: x * x):
        with t.autograd.graph.saved_tensors_hooks(mutates, lambda v: v):
            found.append(result_or_message(make))
    return found


@script
def unpack_hook_that_returns_no_tensor(t: Any) -> Any:
    x, found = leaf(t, 1.0), []
    for wrong in (3, None, [1.0], "text"):
        with t.autograd.graph.saved_tensors_hooks(
            lambda v: v.detach(), lambda v, wrong=wrong: wrong
        ):
            y = x.exp()
        found.append(result_or_message(lambda y=y: y.sum().backward()))
        found.append(result_or_message(lambda y=y: y.grad_fn._saved_result))
    return found, x.grad


@script
def exceptions_in_hooks(t: Any) -> Any:
    def raises(*_: Any) -> Any:
        raise KeyError("mine")

    x = leaf(t, 1.0)
    with t.autograd.graph.saved_tensors_hooks(raises, lambda v: v):
        packing = result_or_message(lambda: x.exp())
    with t.autograd.graph.saved_tensors_hooks(lambda v: v.detach(), raises):
        y = x.exp()
    found = [
        packing,
        result_or_message(lambda: y.sum().backward()),
        result_or_message(lambda: y.grad_fn._saved_result),
    ]
    x.exp().sum().backward()
    return found, x.grad


@script
def wrong_hooks(t: Any) -> Any:
    x, hooks = leaf(t, 1.0), t.autograd.graph.saved_tensors_hooks
    found = [result_or_message(lambda: hooks(1, 2).__enter__()), x.exp()]
    with hooks(lambda: 1, lambda v: v):
        found.append(result_or_message(lambda: x.exp()).replace("wrong_hooks.<locals>.", ""))
    with hooks(lambda v: t.ones(3, dtype=t.float64), lambda v: v):
        y = leaf(t, 1.0, 2.0).exp()
    found.append(result_or_message(lambda: y.sum().backward()))
    return found


@script
def hooks_of_an_operation_with_lists(t: Any) -> Any:
    """The lists of a call stay whole while a hook makes calls of its own."""
    x = t.arange(24, dtype=t.float64).reshape(2, 3, 4).requires_grad_()
    work = lambda v: v.permute(2, 0, 1).sum((0, 1)).reshape(1, 3) * 0 + 1  # noqa: E731
    with t.autograd.graph.saved_tensors_hooks(lambda v: (work(v), v)[1], lambda v: (work(v), v)[1]):
        y = (
            x.logsumexp((0, 2)).sum()
            + t.nn.functional.layer_norm(x, (3, 4)).pow(2).sum((1, 2)).prod()
        )
    return y, t.autograd.grad(y, x)


@script
def backward_in_an_unpack_hook(t: Any) -> Any:
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0)

    def unpack(v: Any) -> Any:
        (w * w).sum().backward()
        return v

    with t.autograd.graph.saved_tensors_hooks(lambda v: v.detach(), unpack):
        y = x * x
    y.sum().backward()
    return x.grad, w.grad


@script
def disabling_hooks(t: Any) -> Any:
    graph, x, pair = t.autograd.graph, leaf(t, 1.0), Pair(t)

    def inside() -> None:
        with graph.disable_saved_tensors_hooks("first"), pair.scope():
            pass

    def enter_both() -> None:
        with pair.scope(), graph.disable_saved_tensors_hooks("second"):
            pass

    def nest() -> list[Any]:
        with graph.disable_saved_tensors_hooks("outer"):
            with graph.disable_saved_tensors_hooks("inner"):
                first = result_or_message(lambda: pair.scope().__enter__())
            return [first, result_or_message(lambda: pair.scope().__enter__())]

    def raising() -> None:
        with graph.disable_saved_tensors_hooks("third"):
            raise ValueError("mine")

    def register() -> Any:
        with graph.disable_saved_tensors_hooks("fourth"):
            y = x.exp()
            y.grad_fn._raw_saved_result.register_hooks(pair.pack, pair.unpack)
            return y.grad_fn._saved_result

    found = [result_or_message(call) for call in (inside, enter_both, nest, raising, register)]
    found.append(result_or_message(lambda: graph.disable_saved_tensors_hooks(3).__enter__()))
    with pair.scope():
        x.sin()
    return found, pair.log


@script
def disabling_hooks_as_a_decorator(t: Any) -> Any:
    pair = Pair(t)

    @t.autograd.graph.disable_saved_tensors_hooks("not here")
    def recurse(depth: int) -> Any:
        if depth:
            recurse(depth - 1)
        return result_or_message(lambda: pair.scope().__enter__())

    found = [recurse(2), recurse(0)]
    with pair.scope():
        leaf(t, 1.0).sin()
    return found, pair.log


@script
def saving_on_the_cpu(t: Any) -> Any:
    graph, x = t.autograd.graph, t.rand(3, 4, dtype=t.float64)
    x.requires_grad_()
    found = []
    for scope in (
        graph.save_on_cpu(),
        graph.save_on_cpu(pin_memory=True),
        graph.save_on_cpu(True, "xla"),
    ):
        with scope:
            mask = x > 0.5
            y = (x.t().exp() * x.t()[:, :1]).masked_fill(mask.t(), 0)[t.tensor([0, 2])]
        found.append(isinstance(scope, graph.saved_tensors_hooks))
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        found += [g, t.autograd.grad(g.sum(), x)]
    return found


# ------------------------------------------------------------------ SavedVariable's rules


@script
def messages_of_modified_tensors(t: Any) -> Any:
    def write_after(
        write: Callable[[Any], Any], make: Callable[[Any], Any], view: bool = False
    ) -> Any:
        with check(t):
            x = leaf(t, 1.0, 2.0)
            a = x * 1
            s = a[:1] if view else a
            y = make(s)
            write(a)
            return [
                result_or_message(lambda: y.sum().backward()),
                result_or_message(lambda: y.grad_fn.name()),
            ]

    c = t.ones(2, dtype=t.float64)
    index = t.tensor([0, 1])

    def quietly(a: Any) -> None:
        with t.no_grad():
            a.add_(1)

    return (
        write_after(lambda a: a.add_(1), lambda s: s * s),
        write_after(lambda a: a.add_(1).mul_(2), lambda s: s.sin()),
        write_after(lambda a: a.exp_(), lambda s: s * s),
        write_after(quietly, lambda s: s * s),
        write_after(lambda a: a[:1].mul_(2), lambda s: s * s),
        write_after(lambda a: a.mul_(2), lambda s: s * s, view=True),
        write_after(lambda a: c.add_(1), lambda s: s * c),
        write_after(lambda a: index.add_(0), lambda s: s[index]),
        write_after(lambda a: a.detach().zero_(), lambda s: s * s),
        write_after(lambda a: t.autograd.graph.increment_version(a), lambda s: s * s),
        write_after(lambda a: a.add_(1), lambda s: s + s),
        write_after(lambda a: a.index_put_((index,), c), lambda s: s * s),
    )


@script
def messages_of_modified_outputs(t: Any) -> Any:
    found = []
    with check(t):
        for op in ("exp", "tanh", "sigmoid", "sqrt"):
            y = getattr(leaf(t, 1.0, 2.0), op)()
            y.mul_(2)
            found.append(result_or_message(lambda y=y: y.sum().backward()))
            found.append(
                result_or_message(lambda y=y: y.grad_fn.next_functions[0][0]._saved_result)
            )
        mean = t.var_mean(leaf(t, 1.0, 2.0))[1]
        y = mean * mean
        with t.no_grad():
            mean.add_(1)
        found.append(result_or_message(lambda: y.backward()))
    return found


@script
def message_of_a_modified_leaf(t: Any) -> Any:
    with check(t):
        x = leaf(t, 1.0, 2.0)
        y = x * x
        with t.no_grad():
            x.add_(1)
        return result_or_message(lambda: y.sum().backward()), result_or_message(
            lambda: y.grad_fn._saved_self
        )


@script
def hint_in_anomaly_mode(t: Any) -> Any:
    with check(t), t.autograd.set_detect_anomaly(True):
        y = leaf(t, 1.0, 2.0).exp()
        y.mul_(2)
        found = result_or_message(lambda: y.sum().backward())
    return found.partition(" It was saved by")[0]


@script
def in_place_operations_may_save_what_they_write_to(t: Any) -> Any:
    with check(t):
        x, z = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
        y = x * 1
        y.mul_(z)
        y.exp_()
        y.div_(z)
        y.sum().backward()
    return x.grad, z.grad


@script
def detached_in_place_after_saving(t: Any) -> Any:
    with check(t):
        x = leaf(t, 1.0, 2.0)
        a = x * 1
        y = a * a
        a.detach_()
        b = x.exp()
        n = b.grad_fn
        b.detach_()
        return (
            result_or_message(lambda: y.sum().backward()),
            [y.grad_fn._saved_self, y.grad_fn._saved_self.requires_grad],
            n._saved_result,
        )


@script
def hooks_are_not_checked_for_versions(t: Any) -> Any:
    with check(t):
        x = leaf(t, 1.0, 2.0)
        a = x * 1
        with t.autograd.graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v):
            y = a * a
        a.add_(1)
        y.sum().backward()
        return x.grad


@script
def versions_in_double_backward(t: Any) -> Any:
    with check(t):
        x = leaf(t, 1.0, 2.0)
        a = x * 1
        (g,) = t.autograd.grad((a * a * a).sum(), x, create_graph=True)
        a.add_(1)
        return result_or_message(lambda: t.autograd.grad(g.sum(), x))


@script
def inference_tensors_are_not_saved(t: Any) -> Any:
    with t.inference_mode():
        i = t.ones(2, dtype=t.float64)
    x = leaf(t, 1.0, 2.0)
    return (
        result_or_message(lambda: x * i),
        result_or_message(lambda: x.sin() * i),
        x + i,
        i._version if False else None,
    )


@script
def incrementing_versions(t: Any) -> Any:
    increment, x, y = t.autograd.graph.increment_version, t.ones(2), t.ones(2)
    increment(x)
    increment([x, x, y])
    increment(v for v in (x, y))
    with t.inference_mode():
        i = t.ones(2)
    calls = [
        lambda: increment(3),
        lambda: increment(None),
        lambda: increment([3]),
        lambda: increment([x, 3]),
        lambda: increment(i),
        lambda: increment(()),
    ]
    return [result_or_message(call) for call in calls], x._version, y._version, x[:1]._version


@script
def views_of_what_was_written_to(t: Any) -> Any:
    found = []
    for under_no_grad in (False, True):
        for pick in (lambda b: b.unbind()[0], lambda b: b[:1]):
            base = leaf(t, 1.0, 2.0) * 1
            with t.set_grad_enabled(not under_no_grad):
                view = pick(base)
            base.mul_(2)
            found.append(result_or_message(lambda view=view: name(view.grad_fn)))
            found.append(result_or_message(lambda view=view: view * 2))
            found.append(result_or_message(lambda view=view: view.is_leaf))
            found.append([view.requires_grad, str(view)])
    return found


@script
def inputs_are_shown_themselves_in_check_mode(t: Any) -> Any:
    class Keeps(t.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, *others: Any) -> Any:
            ctx.save_for_backward(x, *others)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append([a is b for a, b in zip(ctx.saved_tensors, given, strict=True)])
            return grad, None, None, None

    seen: list[Any] = []
    with check(t):
        x = leaf(t, 1.0, 2.0)
        plain = t.ones(2, dtype=t.float64)
        a = x * plain
        b = a * x
        y = x.exp()
        pair = t.stack([a, x])
        index = a[t.tensor([0, 0])]
        given = a, plain, None, x
        out = Keeps.apply(*given)
    seen.append(a.grad_fn._saved_other is plain)
    seen.append(b.grad_fn._saved_self is a)
    seen.append(b.grad_fn._saved_other is x)
    seen.append(b.grad_fn._raw_saved_self.unpack() is a)
    seen.append(y.grad_fn._saved_result is y)
    plain.mark = 1
    seen.append(a.grad_fn._saved_other.mark)
    out.sum().backward()
    b.sum().backward()
    seen.append(result_or_message(lambda: b.grad_fn._saved_self))
    return seen, x.grad, len(pair), index.shape


@script
def default_hooks_are_after_a_backward_what_they_were_before(t: Any) -> Any:
    graph = t.autograd.graph

    def pair(name: str) -> Any:
        return graph.saved_tensors_hooks(lambda x: (calls.append(name), x)[1], lambda x: x)

    @t.enable_grad()  # type: ignore[untyped-decorator]
    def ran(hook: Callable[[Any], Any]) -> list[Any]:
        """Whose hooks pack after a backward with this hook."""
        y = leaf(t, 1.0, 2.0).sin()
        y.register_hook(lambda grad: hook(grad) and None)
        y.sum().backward()
        calls.clear()
        leaf(t, 1.0).cos()
        return [*calls]

    calls: list[str] = []
    inner, other = pair("inner"), pair("other")
    seen = [ran(lambda g: inner.__enter__())]
    with pair("outer"):
        seen.append(ran(lambda g: inner.__enter__()))
        seen.append(ran(lambda g: inner.__exit__()))
        seen.append(ran(lambda g: (inner.__exit__(), other.__enter__())))
        seen.append(ran(lambda g: (ran(lambda g: inner.__exit__()), inner.__enter__())))
        with pair("within"):
            seen.append(ran(lambda g: (inner.__exit__(), inner.__exit__())))
        seen.append(ran(lambda g: None))

    disabled = graph.disable_saved_tensors_hooks("not now")

    def disables(_: Any) -> None:
        disabled.__enter__()
        seen.append(result_or_message(other.__enter__))

    seen.append(ran(disables))
    with other:
        seen.append(ran(lambda g: None))
    return seen


@script
def hooks_of_a_saved_tensor_come_in_pairs(t: Any) -> Any:
    y = leaf(t, 1.0).exp()
    saved = y.grad_fn._raw_saved_result
    return [
        result_or_message(lambda given=given: saved.register_hooks(*given))
        for given in ((), (abs,), (1, 1), (abs, abs, abs), (abs, abs))
    ]


@script
def a_number_of_a_node_has_the_type_of_its_parameter(t: Any) -> Any:
    logit, pdist = (
        t.logit(leaf(t, 0.5), 1.0).grad_fn,
        t.pdist(leaf(t, 1.0, 2.0)[:, None], 1).grad_fn,
    )
    return [repr(logit._saved_eps), repr(pdist._saved_p), t.logit(leaf(t, 0.5)).grad_fn._saved_eps]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_leaves_nothing(name: str) -> None:
    before = pygrad.pg_live_count()
    with contextlib.suppress(Exception):
        SCRIPTS[name](pygrad)
    gc.collect()
    assert pygrad.pg_live_count() <= before


# ------------------------------------------------------------------ what only pygrad promises


def test_saving_on_the_cpu_frees_the_engines_memory() -> None:
    x = pygrad.ones(250_000, requires_grad=True)
    before = pygrad._C._memory()[0]
    with pygrad.autograd.graph.save_on_cpu():
        y = x.exp().exp().exp().sum()
    pygrad.pg_live_count()
    assert pygrad._C._memory()[0] - before < 1_000_000
    y.backward()
    z = x.exp().exp().exp().sum()
    assert pygrad._C._memory()[0] - before > 3_000_000
    del z


def test_snapshots_are_never_the_tensors_themselves() -> None:
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        pass
    x = leaf(pygrad, 1.0, 2.0)
    y = x * x
    assert y.grad_fn._saved_self is not x
    y.grad_fn._saved_self.detach().zero_()
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_disabling_without_a_message_bypasses() -> None:
    graph, x = pygrad.autograd.graph, pygrad.ones(1, requires_grad=True)
    seen: list[Any] = []
    with graph.saved_tensors_hooks(lambda v: seen.append(v) or v, lambda v: v):
        with graph.disable_saved_tensors_hooks():
            x.exp()
        assert not seen
        x.sin()
    assert len(seen) == 1
