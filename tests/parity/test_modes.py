"""no_grad, enable_grad, set_grad_enabled, inference_mode: as scopes, switches and decorators."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


def state(t: Any) -> tuple[bool, bool]:
    return t.is_grad_enabled(), t.is_inference_mode_enabled()


def flags(*tensors: Any) -> list[Any]:
    return [(x.requires_grad, x.is_leaf, x.is_inference(), x.grad_fn is None) for x in tensors]


def warnings_of(call: Callable[[], Any]) -> list[tuple[str, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message)) for w in caught]


# ------------------------------------------------------------ scopes


@script
def nesting(t: Any) -> Any:
    seen = [state(t)]
    with t.no_grad():
        seen.append(state(t))
        with t.enable_grad():
            seen.append(state(t))
            with t.set_grad_enabled(False):
                seen.append(state(t))
            with t.inference_mode():
                seen.append(state(t))
                with t.inference_mode(False):
                    seen.append(state(t))
                with t.enable_grad():
                    seen.append(state(t))
                seen.append(state(t))
            seen.append(state(t))
        seen.append(state(t))
    return [*seen, state(t)]


@script
def an_exception_restores(t: Any) -> Any:
    seen = []
    for mode in (t.no_grad, t.inference_mode, lambda: t.set_grad_enabled(False)):
        try:
            with mode():
                raise KeyError
        except KeyError:
            seen.append(state(t))
    return seen


@script
def one_object_twice(t: Any) -> Any:
    seen = []
    mode = t.no_grad()
    with mode:
        seen.append(state(t))
    with mode:
        seen.append(state(t))
    both_ = t.no_grad()
    with t.enable_grad(), both_, both_:
        seen.append(state(t))
    seen.append(state(t))
    t.set_grad_enabled(True)
    return seen


@script
def set_grad_enabled_as_a_switch(t: Any) -> Any:
    seen = []
    x = leaf(t, 1.0)
    try:
        off = t.set_grad_enabled(False)
        seen += [state(t), (x * 2).requires_grad, off.mode, off.prev]
        with t.set_grad_enabled(True) as nothing:
            seen += [state(t), nothing]
        seen.append(state(t))
        with t.no_grad():
            t.set_grad_enabled(True)
            seen.append(state(t))
        seen.append(state(t))
    finally:
        t.set_grad_enabled(True)
    return seen


@script
def what_scopes_give(t: Any) -> Any:
    with t.no_grad() as a, t.enable_grad() as b, t.inference_mode() as c:
        return a, b, c, t.no_grad().prev, t.inference_mode().mode


@script
def arguments_of_the_wrong_type(t: Any) -> Any:
    return [
        result_or_error(lambda: t.set_grad_enabled(1)),
        result_or_error(lambda: t.set_grad_enabled("yes")),
        result_or_error(lambda: t.set_grad_enabled()).startswith("TypeError"),
        result_or_error(lambda: t.inference_mode(1)()),
        result_or_error(lambda: t.autograd.set_multithreading_enabled(None)),
        result_or_error(lambda: t.no_grad(3)()),
        state(t),
    ]


@script
def texts(t: Any) -> Any:
    mode = t.set_grad_enabled(True)
    return repr(mode), str(mode)


@script
def places(t: Any) -> Any:
    a = t.autograd
    return [
        a.no_grad is t.no_grad is a.grad_mode.no_grad,
        a.enable_grad is t.enable_grad is a.grad_mode.enable_grad,
        a.set_grad_enabled is t.set_grad_enabled is a.grad_mode.set_grad_enabled,
        a.inference_mode is t.inference_mode is a.grad_mode.inference_mode,
        a.set_multithreading_enabled is a.grad_mode.set_multithreading_enabled,
        a.enforce_grad_layout_policy is a.grad_mode.enforce_grad_layout_policy,
        *(m.__module__ for m in (t.no_grad, t.inference_mode, t.set_grad_enabled)),
    ]


# ------------------------------------------------------------ decorators


@script
def decorated_functions(t: Any) -> Any:
    x = leaf(t, 2.0)

    @t.no_grad()
    def first(y: Any, *, k: int = 1) -> Any:
        "Its words."
        return state(t), (y * k).requires_grad

    @t.no_grad
    def second() -> Any:
        return state(t)

    @t.enable_grad()
    def third() -> Any:
        return state(t)

    @t.inference_mode()
    def fourth() -> Any:
        return state(t)

    @t.inference_mode
    def fifth() -> Any:
        return state(t)

    @t.inference_mode(mode=False)
    def sixth() -> Any:
        return state(t)

    @t.enable_grad
    def seventh() -> Any:
        return state(t)

    with t.no_grad():
        inside = third(), sixth(), seventh()
    names = first.__name__, first.__doc__, first.__wrapped__.__name__
    return first(x, k=2), second(), fourth(), fifth(), inside, state(t), names


@script
def decorating_with_a_switch(t: Any) -> Any:
    seen = []

    @t.set_grad_enabled(False)
    def function() -> Any:
        return state(t)

    seen += [state(t), function(), state(t)]

    @t.autograd.set_multithreading_enabled(True)
    def run_other() -> Any:
        return state(t)

    return [*seen, run_other()]


@script
def recursion_of_a_decorated_function(t: Any) -> Any:
    seen = []

    @t.no_grad()
    def descend(n: int) -> None:
        seen.append(state(t))
        if n:
            with t.enable_grad():
                descend(n - 1)
                seen.append(state(t))

    descend(3)
    return seen


@script
def decorated_generators(t: Any) -> Any:
    seen: list[Any] = []

    @t.no_grad()
    def numbers() -> Any:
        try:
            seen.append(("start", state(t)))
            got = yield 1
            seen.append((got, state(t)))
            try:
                yield 2
            except ValueError:
                seen.append(("thrown", state(t)))
            with t.enable_grad():
                yield 3
                seen.append(("own scope", state(t)))
        finally:
            seen.append(("end", state(t)))
        return "value"

    def outer() -> Any:
        seen.append((yield from numbers()))

    steps = outer()
    seen.append((next(steps), state(t)))
    seen.append((steps.send("hello"), state(t)))
    seen.append((steps.throw(ValueError), state(t)))
    seen.append((list(steps), state(t)))
    closed = numbers()
    next(closed)
    closed.close()
    seen.append(state(t))
    abandoned = numbers()
    next(abandoned)
    del abandoned
    failing = numbers()
    next(failing)
    seen.append(result_or_error(lambda: failing.throw(KeyError, "not caught")))
    return seen


@script
def decorated_coroutines(t: Any) -> Any:
    @t.no_grad()
    async def work() -> Any:
        await asyncio.sleep(0)
        return state(t)

    @t.no_grad()
    async def steps() -> Any:
        yield state(t)

    async def run() -> Any:
        return await work(), [s async for s in steps()]

    return asyncio.run(run())


@script
def decorated_classes(t: Any) -> Any:
    seen: list[Any] = []

    def decorate() -> None:
        @t.no_grad()
        class Thing:
            kind = "class"

            def __init__(self) -> None:
                seen.append(state(t))

            def method(self) -> Any:
                return state(t)

        seen.extend([Thing().method(), isinstance(Thing, type), hasattr(Thing, "kind")])

    return warnings_of(decorate), seen, warnings_of(lambda: t.inference_mode()(dict))


@script
def context_decorator(t: Any) -> Any:
    from importlib import import_module

    tools = import_module(f"{t.__name__}.utils._contextlib")

    @tools._NoParamDecoratorContextManager
    class Unfinished:
        pass

    class Scope(tools._DecoratorContextManager):
        def __enter__(self) -> None:
            seen.append("in")

        def __exit__(self, *_: Any) -> None:
            seen.append("out")

    class Plain:
        def __enter__(self) -> None:
            seen.append("enter")

        def __exit__(self, *_: Any) -> None:
            seen.append("exit")

    seen: list[Any] = []
    Scope()(lambda: seen.append("call"))()
    tools.context_decorator(Plain(), lambda: seen.append("plain"))()
    tools.context_decorator(Plain, lambda: seen.append("made"))()
    return [
        *seen,
        result_or_error(lambda: tools.context_decorator(Scope(), print)).split("<")[0],
        result_or_error(lambda: tools.context_decorator(Plain, Plain)),
    ]


# ------------------------------------------------------------ threads


def in_a_thread(call: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(result_or_error(call)))
    thread.start()
    thread.join()
    return results[0]


@script
def a_new_thread_records(t: Any) -> Any:
    x = leaf(t, 1.0)
    seen = []
    with t.no_grad():
        seen += [in_a_thread(lambda: state(t)), in_a_thread(lambda: (x * 2).requires_grad)]
        seen.append((x * 2).requires_grad)
    with t.inference_mode():
        seen += [in_a_thread(lambda: flags(x * 2)), flags(x * 2)]
    return seen


@script
def a_thread_leaves_nothing_behind(t: Any) -> Any:
    x = leaf(t, 1.0)
    seen = []

    def work() -> Any:
        before = (x * 2).requires_grad
        t.set_grad_enabled(False)
        return before, (x * 2).requires_grad, state(t)

    for _ in range(4):
        seen.append(in_a_thread(work))
    seen.append((x * 2).requires_grad)
    for _ in range(2):
        seen += [in_a_thread(work), (x * 2).requires_grad]
    return seen


@script
def threads_in_turn(t: Any) -> Any:
    x = leaf(t, 1.0)
    turns = [threading.Barrier(2) for _ in range(8)]
    seen: list[Any] = []

    def run_other() -> None:
        with t.no_grad():
            for turn in turns:
                turn.wait()
                seen.append((x * 2).requires_grad)
                turn.wait()

    thread = threading.Thread(target=run_other)
    thread.start()
    mine = []
    for turn in turns:
        mine.append((x * 2).requires_grad)
        turn.wait()
        turn.wait()
        mine.append((t.exp(x) + 1).requires_grad)
        mine.append(x[0].requires_grad)
    thread.join()
    return seen, mine


@script
def hooks_for_saved_tensors_of_a_thread(t: Any) -> Any:
    x = leaf(t, 2.0)
    hooks, seen = t.autograd.graph.saved_tensors_hooks, []

    def pair(name: str) -> Any:
        return hooks(lambda value: (seen.append(f"{name} packs"), value)[1], lambda value: value)

    def work() -> Any:
        (x * x).sum().backward()
        seen.append("none")
        with pair("inner"):
            x.exp()

    with pair("outer"):
        in_a_thread(work)
        x.exp()
        in_a_thread(work)
    return seen, x.grad


@script
def disabled_hooks_of_a_thread(t: Any) -> Any:
    graph = t.autograd.graph
    seen = []

    def use() -> Any:
        with graph.saved_tensors_hooks(lambda value: value, lambda value: value):
            return "used"

    with graph.disable_saved_tensors_hooks("none here"):
        seen += [in_a_thread(lambda: use()), result_or_error(use)]

        def otherwise() -> Any:
            with graph.disable_saved_tensors_hooks("nor there"):
                return result_or_error(use)

        seen += [in_a_thread(otherwise), result_or_error(use)]
    return seen, result_or_error(use)


@script
def hooks_of_threads_in_turn(t: Any) -> Any:
    x = leaf(t, 2.0)
    turns = [threading.Barrier(2) for _ in range(4)]
    seen: list[Any] = []

    def pair(name: str) -> Any:
        return t.autograd.graph.saved_tensors_hooks(
            lambda value: (seen.append(name), value)[1], lambda value: value
        )

    def run_other() -> None:
        for turn in turns:
            with pair("other"):
                turn.wait()
                x.exp()
                turn.wait()

    thread = threading.Thread(target=run_other)
    thread.start()
    with pair("mine"):
        for turn in turns:
            turn.wait()
            turn.wait()
            x.exp()
    thread.join()
    return seen


@script
def forward_mode_of_a_thread(t: Any) -> Any:
    fw = t.autograd.forward_ad
    seen = []
    with fw.dual_level():
        x = fw.make_dual(t.ones(1), t.ones(1))

        def tangent() -> Any:
            return fw.unpack_dual(x * 2).tangent is not None

        with fw._set_fwd_grad_enabled(False):
            seen += [in_a_thread(tangent), result_or_error(tangent)]
        seen.append(result_or_error(tangent))
    return seen


@script
def a_profile_of_a_thread(t: Any) -> Any:
    x = leaf(t, 2.0)
    profiler = t.autograd.profiler

    def work() -> None:
        with profiler.record_function("there"):
            x.sin()

    with profiler.profile() as prof:
        x.exp()
        in_a_thread(work)
        x.cos()
        prof.toggle_collection_dynamic(False, [profiler.ProfilerActivity.CPU])
        x.tan()
        prof.toggle_collection_dynamic(True, [profiler.ProfilerActivity.CPU])
        x.tanh()
    return [event.name for event in prof.function_events]


@script
def a_backward_of_another_thread(t: Any) -> Any:
    x = leaf(t, 3.0)
    with t.no_grad():
        in_a_thread(lambda: (x * x).sum().backward())
    return x.grad


@script
def a_hook_sees_whether_backward_is_recorded(t: Any) -> Any:
    seen: list[Any] = []
    x = leaf(t, 3.0)
    for create in (False, True):
        y = x * x
        y.register_hook(lambda g: seen.append(state(t)))
        with t.no_grad():
            y.sum().backward(create_graph=create)
            seen.append(state(t))
        y = x * x
        y.register_hook(lambda g: t.set_grad_enabled(not t.is_grad_enabled()) and None)
        t.autograd.grad(y.sum(), x, create_graph=create)
        seen.append(state(t))
    return seen


# ------------------------------------------------------------ inference


@script
def tensors_of_inference_mode(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with t.inference_mode():
        made = [
            t.ones(2),
            x * 2,
            x.view(2, 1),
            x[0],
            x.detach(),
            x.data,
            x.clone(),
            t.ones(2).view(2, 1),
            t.ones(2, requires_grad=True),
            x.contiguous(),
            x.expand(3, 2),
            x.to(t.float32),
            x.reshape(1, 2),
        ]
        with t.enable_grad():
            made += [x * 2, x.view(2, 1)]
        with t.inference_mode(False):
            made += [x * 2, t.ones(2)]
    n = made[0]
    made += [n.view(2, 1), n * 2, n + 1, n.detach(), n.data, n.clone(), n[0], x]
    return flags(*made)


@script
def versions_of_inference_tensors(t: Any) -> Any:
    with t.inference_mode():
        n = t.ones(2)
        inside = result_or_error(lambda: n._version), result_or_error(lambda: n.add_(1)._version)
        x = t.ones(2)
    y = t.ones(2)
    with t.inference_mode():
        y.add_(1)
        v = y.view(2, 1)
        v.mul_(2)
    return [
        inside,
        result_or_error(lambda: n._version),
        result_or_error(lambda: (n * 2)._version),
        y._version,
        v,
        x,
    ]


@script
def an_inference_tensor_cannot_be_saved(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with t.inference_mode():
        n = t.ones(2, dtype=t.float64)
        z = x * 3
    (x + n).sum().backward()
    return [
        x.grad,
        result_or_error(lambda: x * n),
        result_or_error(lambda: x * z),
        result_or_error(lambda: (x * n.clone()).requires_grad),
        result_or_error(lambda: t.nn.functional.linear(n, x)),
        result_or_error(lambda: t.mul(n, n).is_inference()),
        result_or_error(lambda: x.exp() * n),
    ]


@script
def an_inference_tensor_is_not_written_outside(t: Any) -> Any:
    with t.inference_mode():
        n = t.ones(2)
        v = n[:1]
        n.add_(1)
    return [
        result_or_error(lambda: n.add_(1)),
        result_or_error(lambda: v.mul_(2)),
        result_or_error(lambda: n.__setitem__(0, 5.0)),
        result_or_error(lambda: t.add(t.ones(2), 1, out=n)),
        result_or_error(lambda: n.view(2, 1).zero_()),
        result_or_error(lambda: n.copy_(t.ones(2))),
    ]


@script
def an_inference_tensor_requires_no_grad_outside(t: Any) -> Any:
    with t.inference_mode():
        n, inside = t.ones(2), t.ones(2)
        inside.requires_grad_()
        y = inside * 2
    return [
        result_or_error(lambda: n.requires_grad_()),
        result_or_error(lambda: setattr(n, "requires_grad", True)),
        result_or_error(lambda: n.requires_grad_(False).requires_grad),
        flags(inside, y),
        result_or_error(lambda: inside.exp().requires_grad),
        result_or_error(lambda: inside.sum().backward()),
        result_or_error(lambda: (leaf(t, 1.0, 2.0).sum() + inside).sum().backward()),
        inside.grad,
    ]


@script
def normal_tensors_in_inference_mode(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    a = x * 1
    with t.inference_mode():
        a.add_(1)
        x.mul_(3)
        v = a[:1]
        w = a.view(2, 1)
        a.requires_grad_()
    (a * 2).sum().backward()
    return [
        x,
        a,
        x.grad,
        a._version,
        x._version,
        flags(v, w),
        result_or_error(lambda: v.mul_(2)),
        result_or_error(lambda: (v * 2).requires_grad),
        v._is_view(),
        v._base is a,
    ]


@script
def backward_in_inference_mode(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = (x * x).sum()
    with t.inference_mode():
        first = result_or_error(lambda: y.backward())
        g = x.grad
    z = (x * x).sum()
    with t.inference_mode():
        second = result_or_error(lambda: (x * x).sum().backward())
        third = result_or_error(
            lambda: [g.requires_grad for g in t.autograd.grad(z, x, create_graph=True)]
        )
    return first, g, g is not None and g.is_inference(), second, third


@script
def a_module_in_inference_mode(t: Any) -> Any:
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.ReLU(), t.nn.Linear(3, 1))
    with t.inference_mode():
        y = net(t.ones(4, 2))
        n = t.ones(4, 2)
    net(t.ones(4, 2)).sum().backward()
    return y, flags(y), [p.grad for p in net.parameters()], result_or_error(lambda: net(n))


@script
def detach_in_place_and_data_of_inference_tensors(t: Any) -> Any:
    with t.inference_mode():
        n = t.ones(2)
    a = t.zeros(2)
    return [
        result_or_error(lambda: n.detach_().is_inference()),
        result_or_error(lambda: setattr(a, "data", n)),
        result_or_error(lambda: setattr(n, "data", t.zeros(2))),
        result_or_error(lambda: n.numpy().tolist()),
        result_or_error(lambda: n.tolist()),
        n.is_inference(),
        a.is_inference(),
    ]


# ------------------------------------------------------------ layouts


@script
def layout_policy(t: Any) -> Any:
    found = []
    for enable in (True, False):
        p = t.ones(2, 3, 4).permute(2, 0, 1).detach().requires_grad_()
        with t.autograd.enforce_grad_layout_policy(enable):
            p.contiguous().mul(t.ones(4, 2, 3)).sum().backward()
        found.append(p.grad.stride())
        q = t.ones(2, 3, 4).permute(2, 0, 1).detach().requires_grad_()
        with t.autograd.enforce_grad_layout_policy(enable):
            (q * 2).sum().backward()
        found.append(q.grad.stride())
    policy = t.autograd.enforce_grad_layout_policy(True)
    return found, policy.mode, policy.prev


# ------------------------------------------------------------ views that are made again


def history(x: Any) -> list[str]:
    """The nodes from a tensor to its leaf."""
    names, node = [], x.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def tracking(t: Any, on: bool) -> Any:
    return t.autograd._force_original_view_tracking(on)


VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda t, x: x.transpose(0, 1),
    "permute": lambda t, x: x.permute(2, 0, 1),
    "select": lambda t, x: x[1],
    "slice": lambda t, x: x[:, 1:],
    "narrow": lambda t, x: x.narrow(2, 1, 2),
    "view": lambda t, x: x.view(6, 4),
    "expand": lambda t, x: x.expand(2, 2, 3, 4)[0],
    "unsqueeze": lambda t, x: x.unsqueeze(0).squeeze(0),
    "squeeze": lambda t, x: x.unsqueeze(0).squeeze(),
    "diagonal": lambda t, x: x.diagonal(0, 0, 1),
    "unfold": lambda t, x: x.unfold(2, 2, 2),
    "t": lambda t, x: x[0].t(),
    "as_strided": lambda t, x: x.as_strided((2, 3), (3, 1), 1),
    "three": lambda t, x: x.view(2, 12)[1].view(3, 4),
    "complex": lambda t, x: t.view_as_complex(x.view(2, 6, 2)).conj(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_recorded_as_they_were_made(name: str) -> None:
    def run(t: Any) -> Any:
        found: list[Any] = []
        for on in (True, False):
            x = (t.arange(24.0).view(2, 3, 4) / 5).requires_grad_()
            base = x.clone()
            with tracking(t, on):
                v = VIEWS[name](t, base)
            base.sin_()
            found += [history(v) if on else None, v]
            (v.abs() ** 2).sum().backward()
            found.append(x.grad)
        return found

    both(run)


@script
def only_some_views_know_how_they_were_made(t: Any) -> Any:
    found = []
    for first in (True, False):
        for second in (True, False):
            base = t.arange(12.0).requires_grad_().clone()
            with tracking(t, first):
                v = base.view(3, 4)
            with tracking(t, second):
                w = v.t()[1:]
            w.mul_(2)
            found += [history(w), history(v), history(base)]
    return found


@script
def a_base_that_gets_its_history_later(t: Any) -> Any:
    x, base = t.ones(3, 2, requires_grad=True), t.arange(6.0).view(2, 3).clone()
    with tracking(t, True):
        v = base.t()[1:]
    base.mul_(x.t())
    (v * v).sum().backward()
    return history(v), x.grad


@script
def tracking_as_switch_scope_and_decorator(t: Any) -> Any:
    is_on = t.autograd.is_view_replay_enabled
    found = [is_on()]
    with tracking(t, True) as scope:
        found += [scope, is_on()]
        with tracking(t, False):
            found.append(is_on())
        found.append(is_on())
        tracking(t, False)
        found.append(is_on())
    found.append(is_on())
    found += [tracking(t, True)(is_on)(), is_on()]
    switch = tracking(t, True)
    found += [switch.mode, switch.prev, is_on(), t._C._is_view_replay_enabled()]
    t._C._set_view_replay_enabled(False)
    thread = threading.Thread(target=lambda: found.append(is_on()))
    with tracking(t, True):
        thread.start()
        thread.join()
    return [*found, is_on(), result_or_error(lambda: tracking(t, 1))]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])
