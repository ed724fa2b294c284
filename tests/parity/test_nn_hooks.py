"""Hooks of modules and helpers on gradients beside PyTorch's: what runs, when, with what."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, assert_equal, torch

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


def modules(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.nn.modules.module")


def hooks(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.hooks")


def linear(t: Any) -> Any:
    layer = t.nn.Linear(2, 3).double()
    with t.no_grad():
        for p in layer.parameters():
            p.copy_(t.arange(1.0, 1 + p.numel(), dtype=t.float64).view(p.shape) / 4)
    return layer


def net(t: Any) -> Any:
    class Scale(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, factor: float = 2.0) -> Any:
            return x * factor

    return t.nn.Sequential(OrderedDict([("first", linear(t)), ("second", Scale())]))


def data(t: Any, grad: bool = True) -> Any:
    return t.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=t.float64, requires_grad=grad)


def result_of(run: Callable[[], Any]) -> list[Any]:
    """The leaves of a result or an error, then the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run()
        except Exception as error:
            result = (type(error).__name__, str(error))
    texts = [f"{w.category.__name__}: {w.message}".partition(" (Triggered")[0] for w in caught]
    texts = [re.sub("0x[0-9a-f]+", "0x", text) for text in texts]
    return [*flat(result), "warnings", *texts]


def flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(leaf for item in value for leaf in flat(item))]
    if isinstance(value, dict):
        return [type(value).__name__, *flat([[k, v] for k, v in value.items()])]
    return [value]


# ------------------------------------------------------------------ forward


@script
def tables_of_global_hooks_are_seen(t: Any) -> Any:
    m = modules(t)
    handles = [
        m.register_module_forward_hook(lambda *_: None, with_kwargs=True, always_call=True),
        m.register_module_forward_pre_hook(lambda *_: None),
        m.register_module_full_backward_pre_hook(lambda *_: None),
        m.register_module_full_backward_hook(lambda *_: None),
        m.register_module_buffer_registration_hook(lambda *_: None),
        m.register_module_module_registration_hook(lambda *_: None),
        m.register_module_parameter_registration_hook(lambda *_: None),
    ]
    names = sorted(name for name in vars(m) if name.startswith("_global_"))
    sizes = [len(table) for name in names if isinstance(table := getattr(m, name), dict)]
    full = m._global_is_full_backward_hook
    for handle in handles:
        handle.remove()
    # PyTorch forgets to remove what it noted of keyword arguments.
    cleared = [n for n in names if not n.endswith(("full_backward_hook", "with_kwargs"))]
    return names, sizes, full, [len(getattr(m, name)) for name in cleared]


@script
def tables_of_global_hooks_are_replaced(t: Any) -> Any:
    seen: list[str] = []
    m = modules(t)
    m.register_module_forward_hook(lambda *_: seen.append("gone"))
    m.register_module_forward_pre_hook(lambda *_: seen.append("gone"))
    m.register_module_full_backward_hook(lambda *_: seen.append("gone"))
    m._global_forward_hooks = OrderedDict({7: lambda *_: seen.append("new")})
    m._global_forward_pre_hooks = OrderedDict()
    m._global_backward_hooks = OrderedDict()
    m._global_is_full_backward_hook = None
    m.register_module_backward_hook(lambda *_: seen.append("older form"))
    linear(t)(data(t)).sum().backward()
    return seen


@script
def order_of_forward_hooks(t: Any) -> Any:
    seen: list[str] = []
    model = net(t)
    m = modules(t)

    def note(name: str) -> Any:
        return lambda module, *rest: seen.append(f"{name} {type(module).__name__} {len(rest)}")

    handles = [
        m.register_module_forward_pre_hook(note("global pre")),
        m.register_module_forward_hook(note("global")),
        m.register_module_forward_hook(note("global kwargs"), with_kwargs=True),
        model.register_forward_pre_hook(note("pre")),
        model.register_forward_pre_hook(note("pre before"), prepend=True),
        model.second.register_forward_pre_hook(note("pre kwargs"), with_kwargs=True),
        model.register_forward_hook(note("after")),
        model.register_forward_hook(note("after before"), prepend=True),
        model.second.register_forward_hook(note("after kwargs"), with_kwargs=True),
        model.second.register_forward_hook(note("always"), always_call=True),
    ]
    model(data(t))
    for handle in handles[::2]:
        handle.remove()
    seen.append("fewer")
    model(data(t))
    for handle in handles:
        handle.remove()
    seen.append("none")
    model(data(t))
    return seen


@script
def pre_hook_changes_arguments(t: Any) -> Any:
    layer = linear(t)
    results = []
    for change in (
        lambda module, args: args[0] * 2,
        lambda module, args: (args[0] * 3,),
        lambda module, args: [args[0] * 3],
        lambda module, args: None,
    ):
        with layer.register_forward_pre_hook(change):
            results.append(result_of(lambda: layer(data(t))))
    return results


@script
def pre_hook_with_kwargs_changes_both(t: Any) -> Any:
    scale = net(t).second
    results = []
    for change in (
        lambda module, args, kwargs: ((args[0] + 1,), {"factor": 5.0}),
        lambda module, args, kwargs: (args, {}),
        lambda module, args, kwargs: args[0],
        lambda module, args, kwargs: [args, kwargs],
        lambda module, args, kwargs: (args, kwargs, 1),
        lambda module, args, kwargs: None,
    ):
        with scale.register_forward_pre_hook(change, with_kwargs=True):
            results.append(
                [v for v in result_of(lambda: scale(data(t), factor=3.0)) if not is_long(v)]
            )
    return results


def is_long(value: Any) -> bool:
    return isinstance(value, str) and "tensor(" in value


@script
def forward_hook_changes_the_output(t: Any) -> Any:
    layer = linear(t)
    layer.register_forward_hook(lambda module, args, output: output * 2)
    layer.register_forward_hook(lambda module, args, kwargs, output: output + 1, with_kwargs=True)
    layer.register_forward_hook(lambda module, args, output: None)
    return layer(data(t))


@script
def always_called_hooks_of_a_failing_forward(t: Any) -> Any:
    seen: list[str] = []

    class Broken(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise ValueError("broken")

    def always(name: str, fail: bool = False) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            seen.append(f"{name} {output}")
            if fail:
                raise RuntimeError(f"{name} too")

        return hook

    broken = Broken()
    m = modules(t)
    handles = [
        m.register_module_forward_hook(always("global always"), always_call=True),
        m.register_module_forward_hook(always("global always fails", True), always_call=True),
        m.register_module_forward_hook(always("global")),
        broken.register_forward_hook(always("always"), always_call=True),
        broken.register_forward_hook(always("always fails", True), always_call=True),
        broken.register_forward_hook(always("plain")),
    ]
    outcome = result_of(lambda: broken(data(t)))
    for handle in handles:
        handle.remove()
    return outcome, seen


@script
def always_called_hooks_after_a_failing_hook(t: Any) -> Any:
    seen: list[str] = []
    layer = linear(t)

    def fail(*_: Any) -> None:
        raise ValueError("hook")

    layer.register_forward_hook(lambda *_: seen.append("ran before"), always_call=True)
    layer.register_forward_hook(fail)
    layer.register_forward_hook(lambda *_: seen.append("ran after"), always_call=True)
    layer.register_forward_hook(lambda *_: seen.append("plain after"))
    return result_of(lambda: layer(data(t))), seen


# ------------------------------------------------------------------ backward


def noting(seen: list[Any], name: str, result: Any = None) -> Callable[..., Any]:
    def hook(module: Any, *grads: Any) -> Any:
        seen.append([name, grads])
        return result(*grads) if result is not None else None

    return hook


@script
def order_of_backward_hooks(t: Any) -> Any:
    seen: list[Any] = []
    model = net(t)
    m = modules(t)
    handles = [
        m.register_module_full_backward_pre_hook(noting(seen, "global pre")),
        m.register_module_full_backward_hook(noting(seen, "global")),
        model.register_full_backward_pre_hook(noting(seen, "pre")),
        model.register_full_backward_pre_hook(noting(seen, "pre before"), prepend=True),
        model.register_full_backward_hook(noting(seen, "after")),
        model.register_full_backward_hook(noting(seen, "after before"), prepend=True),
        model.first.register_full_backward_hook(noting(seen, "first")),
    ]
    x = data(t)
    x.register_hook(lambda g: seen.append("x"))
    model(x).sum().backward()
    for handle in handles:
        handle.remove()
    return seen, x.grad


@script
def backward_hooks_change_gradients(t: Any) -> Any:
    model = net(t)
    model.first.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    model.first.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    model.first.register_full_backward_pre_hook(lambda m, go: [go[0] + 1])
    x = data(t)
    model(x).sum().backward()
    return x.grad, model.first.weight.grad


@script
def backward_hook_returns_a_tensor(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda m, gi, go: gi[0] * 10)
    x = data(t)
    layer(x).sum().backward()
    return x.grad


@script
def backward_hook_returns_too_many(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    layer(data(t)).sum().backward()


@script
def backward_pre_hook_returns_too_many(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0], go[0]))
    layer(data(t)).sum().backward()


@script
def backward_hook_returns_none_inside(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda m, gi, go: (None,))
    x = data(t)
    layer(x).sum().backward()
    return x.grad


@script
def backward_hook_without_inputs_that_need_gradients(t: Any) -> Any:
    seen: list[Any] = []
    layer = linear(t)
    layer.register_full_backward_hook(noting(seen, "after"))
    layer.register_full_backward_pre_hook(noting(seen, "pre", lambda go: (go[0] * 2,)))
    layer(data(t, grad=False)).sum().backward()
    return seen, layer.weight.grad


@script
def backward_hook_that_invents_input_gradients(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda m, gi, go: (go[0],))
    layer(data(t, grad=False)).sum().backward()


def many(t: Any) -> Any:
    class Many(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, k: int, y: Any, z: Any) -> Any:
            return x * y, z * k, x + 1, "text"

    return Many()


@script
def backward_hooks_of_several_inputs_and_outputs(t: Any) -> Any:
    seen: list[Any] = []
    module = many(t)
    module.register_full_backward_hook(noting(seen, "after"))
    module.register_full_backward_pre_hook(noting(seen, "pre"))
    x, y, z = data(t), data(t), data(t, grad=False)
    a, b, _, d = module(x, 3, y, z)
    (a * 2 + b).sum().backward()
    return seen, x.grad, y.grad, d


@script
def backward_hooks_of_an_unused_input(t: Any) -> Any:
    seen: list[Any] = []

    class First(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, y: Any) -> Any:
            return x * 2

    module = First()
    module.register_full_backward_hook(noting(seen, "after"))
    x, y = data(t), data(t)
    module(x, y).sum().backward()
    return seen, x.grad, y.grad


@script
def backward_hooks_of_a_list_output(t: Any) -> Any:
    class Listing(t.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return [x * 2]

    module = Listing()
    seen: list[Any] = []
    module.register_full_backward_hook(noting(seen, "after"))
    x = data(t)
    module(x)[0].sum().backward()
    return seen, x.grad


@script
def backward_hooks_under_no_grad(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda *_: None)
    with t.no_grad():
        y = layer(data(t))
    return y.requires_grad, y


@script
def backward_hooks_of_two_calls(t: Any) -> Any:
    seen: list[Any] = []
    layer = t.nn.Linear(2, 2).double()
    with t.no_grad():
        for p in layer.parameters():
            p.fill_(0.5)
    layer.register_full_backward_hook(noting(seen, "after"))
    x = data(t)
    layer(layer(x)).sum().backward()
    return seen, x.grad


@script
def backward_hooks_in_double_backward(t: Any) -> Any:
    seen: list[Any] = []
    module = net(t).second
    module.register_full_backward_hook(noting(seen, "after"))
    x = data(t)
    (g,) = t.autograd.grad((module(x) ** 3).sum(), x, create_graph=True)
    (g**2).sum().backward()
    return len(seen), x.grad


@script
def backward_hook_that_raises(t: Any) -> Any:
    def fail(*_: Any) -> None:
        raise ValueError("from the hook")

    layer = linear(t)
    layer.register_full_backward_hook(fail)
    layer(data(t)).sum().backward()


@script
def output_written_in_place(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda *_: None)
    y = layer(data(t))
    y.add_(1)


@script
def input_written_in_place(t: Any) -> Any:
    module = t.nn.ReLU(inplace=True)
    module.register_full_backward_hook(lambda *_: None)
    module(data(t) * 1)


@script
def names_of_the_gates(t: Any) -> Any:
    layer = linear(t)
    layer.register_full_backward_hook(lambda *_: None)
    y = layer(data(t))
    return y.grad_fn.name(), type(y.grad_fn).__name__, y._is_view()


@script
def node_hooks_see_all_that_a_custom_function_returns(t: Any) -> Any:
    seen: list[Any] = []

    class Pair(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g * 5

    def run(x: Any, y: Any) -> Any:
        z = Pair.apply(x, y)
        z.grad_fn.register_hook(lambda gi, go: seen.append((gi, go)))
        return z.sum()

    x, y = data(t), data(t)
    grads = t.autograd.grad(run(x, y), x)
    run(x, data(t, grad=False)).backward()
    return seen, grads, x.grad


@script
def names_in_messages(t: Any) -> Any:
    results = []
    for name in ("BackwardX", "XBackwardBackward", "XBackwardY", "XBackward1"):
        members = {
            "forward": staticmethod(lambda ctx, x: x.view_as(x)),
            "backward": staticmethod(lambda ctx, g: g),
        }
        y = type(name, (t.autograd.Function,), members).apply(data(t))
        results.append(result_of(lambda y=y: y.add_(1)))
    return results


@script
def old_backward_hooks(t: Any) -> Any:
    seen: list[Any] = []
    layer = t.nn.ReLU()
    layer.register_backward_hook(noting(seen, "old"))
    x = data(t)
    layer(x).sum().backward()
    return seen, x.grad


@script
def old_backward_hooks_that_miss_something(t: Any) -> Any:
    def module_of(forward: Callable[..., Any]) -> Any:
        module = t.nn.Module()
        module.forward = forward
        module.register_backward_hook(lambda *_: None)
        return module

    x, y = data(t), data(t)
    return [
        module_of(lambda x: [x * 2])(x),
        module_of(lambda x: {"k": 1, "x": x * 2})(x),
        module_of(lambda x, k: x * k)(x * 1, 3),
        module_of(lambda x: (x * 2).exp())(x * 1),
        module_of(lambda x, y: (x * 2, y * 2))(x * 1, y * 1),
        module_of(lambda x: x * 2)(x),
        module_of(lambda x: x * 2)(x * 1),
        module_of(lambda x: x.detach() * 2)(x),
        module_of(lambda x: (x * 2).unbind())(x * 1),
    ]


@script
def old_backward_hook_that_changes_gradients(t: Any) -> Any:
    layer = t.nn.ReLU()
    layer.register_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = data(t)
    layer(x * 1).sum().backward()
    return x.grad


@script
def old_backward_hook_for_all_modules(t: Any) -> Any:
    seen: list[Any] = []
    m = modules(t)
    with m.register_module_backward_hook(noting(seen, "old")):
        conflict = result_of(lambda: m.register_module_full_backward_hook(lambda *_: None))
        x = data(t)
        t.nn.ReLU()(x * 1).sum().backward()
    return seen, conflict, x.grad


@script
def old_and_full_backward_hooks(t: Any) -> Any:
    results = []
    for first, second in (
        ("register_backward_hook", "register_full_backward_hook"),
        ("register_full_backward_hook", "register_backward_hook"),
    ):
        layer = linear(t)
        getattr(layer, first)(lambda *_: None)
        results.append(result_of(lambda: getattr(layer, second)(lambda *_: None)))  # noqa: B023
    return results


# ------------------------------------------------------------------ state dict


@script
def state_dict_hooks(t: Any) -> Any:
    seen: list[Any] = []
    model = net(t)
    model.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(("pre", prefix, keep)))
    model.first.register_state_dict_pre_hook(
        lambda m, prefix, keep: seen.append(("pre", prefix, keep))
    )
    model.first.register_state_dict_post_hook(
        lambda m, state, prefix, meta: seen.append(("post", sorted(state), prefix, meta))
    )
    model._register_state_dict_hook(
        lambda m, state, prefix, meta: OrderedDict(renamed=state["first.weight"])
    )
    state = model.state_dict(prefix="p.", keep_vars=True) if False else model.state_dict()
    return seen, list(state)


@script
def state_dict_post_hook_that_returns(t: Any) -> Any:
    layer = linear(t)
    layer.register_state_dict_post_hook(lambda m, state, prefix, meta: state)
    layer.state_dict()


@script
def state_dict_hook_registered_twice(t: Any) -> Any:
    def hook(*_: Any) -> None:
        return None

    layer = linear(t)
    layer.register_state_dict_post_hook(hook)
    layer._register_state_dict_hook(hook)


@script
def load_state_dict_hooks(t: Any) -> Any:
    seen: list[Any] = []
    model = net(t)

    def pre(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        seen.append(("pre", type(module).__name__, prefix, [type(r).__name__ for r in rest]))

    def old_pre(state: Any, prefix: str, *rest: Any) -> None:
        seen.append(("old pre", prefix, [type(r).__name__ for r in rest]))
        state["first.weight"] = state.pop("old.weight", state.get("first.weight"))

    def post(module: Any, keys: Any) -> None:
        seen.append(("post", type(module).__name__, keys.missing_keys, keys.unexpected_keys))
        keys.unexpected_keys.clear()

    model.register_load_state_dict_pre_hook(pre)
    model._register_load_state_dict_pre_hook(old_pre)
    model.register_load_state_dict_post_hook(post)
    model.first.register_load_state_dict_post_hook(post)
    state = model.state_dict()
    state["extra"] = t.ones(1)
    found = model.load_state_dict(state)
    return seen, found.missing_keys, found.unexpected_keys, str(found)


@script
def load_state_dict_post_hook_that_returns(t: Any) -> Any:
    layer = linear(t)
    layer.register_load_state_dict_post_hook(lambda m, keys: keys)
    layer.load_state_dict(layer.state_dict())


# ------------------------------------------------------------------ registration hooks, handles


@script
def registration_hooks(t: Any) -> Any:
    seen: list[Any] = []
    m = modules(t)
    handles = [
        m.register_module_parameter_registration_hook(
            lambda module, name, p: seen.append(("parameter", name, p is None))
        ),
        m.register_module_buffer_registration_hook(
            lambda module, name, b: seen.append(("buffer", name, b is None))
        ),
        m.register_module_module_registration_hook(
            lambda module, name, sub: seen.append(("module", name, sub is None))
        ),
    ]
    layer = t.nn.Linear(2, 3, bias=False)
    layer.extra = t.nn.Parameter(t.ones(1))
    layer.register_buffer("kept", t.ones(1))
    layer.register_buffer("absent", None)
    layer.child = t.nn.ReLU()
    layer.add_module("gone", None)
    t.nn.BatchNorm1d(2)
    for handle in handles:
        handle.remove()
    t.nn.Linear(1, 1)
    return seen


@script
def registration_hook_that_replaces(t: Any) -> Any:
    m = modules(t)
    t.manual_seed(0)
    with m.register_module_parameter_registration_hook(
        lambda module, name, p: t.nn.Parameter(t.zeros(1)) if name == "bias" else None
    ):
        layer = t.nn.Linear(2, 3)
    return layer.bias.shape, layer.bias


@script
def handles_of_hooks(t: Any) -> Any:
    table: Any = OrderedDict()
    extra: Any = OrderedDict()
    handle = hooks(t).RemovableHandle(table, extra_dict=extra)
    table[handle.id] = extra[handle.id] = "hook"
    other = hooks(t).RemovableHandle(table, extra_dict=[extra, table])
    seen = [other.id - handle.id, len(table), len(extra)]
    handle.remove()
    handle.remove()
    seen += [len(table), len(extra)]
    with other as entered:
        seen.append(entered is other)
        table[other.id] = 1
    seen.append(len(table))
    state = handle.__getstate__()
    seen += [len(state), state[0] is table, len(state[2])]
    del table
    other.remove()
    return seen


@script
def handle_survives_pickling(t: Any) -> Any:
    table: Any = OrderedDict()
    handle = hooks(t).RemovableHandle(table)
    again = pickle.loads(pickle.dumps(handle))
    return again.id == handle.id, again.hooks_dict_ref() is None or len(again.hooks_dict_ref())


@script
def copies_of_a_module_keep_its_hooks(t: Any) -> Any:
    layer = linear(t)
    layer.register_forward_hook(double)
    return copy.deepcopy(layer)(data(t)), pickle.loads(pickle.dumps(layer))(data(t))


def double(module: Any, args: Any, output: Any) -> Any:
    return output * 2


@script
def handle_of_a_copy(t: Any) -> Any:
    layer = linear(t)
    handle = layer.register_forward_hook(double)
    again = copy.deepcopy(layer)
    handle.remove()
    return layer(data(t)), again(data(t))


@script
def backward_hook_object(t: Any) -> Any:
    seen: list[Any] = []
    layer = linear(t)
    hook = hooks(t).BackwardHook(
        layer,
        [lambda m, gi, go: seen.append(("hook", m is layer, gi, go))],
        [lambda m, go: seen.append(("pre", m is layer, go))],
    )
    x = data(t)
    args = hook.setup_input_hook((x, 3))
    y = hook.setup_output_hook(layer(args[0]))
    y.sum().backward()
    return seen, x.grad, args[1], type(args).__name__


@script
def warning_of_a_hook(t: Any) -> Any:
    m = hooks(t)

    def plain(*_: Any) -> None:
        return None

    @m.unserializable_hook
    def marked(*_: Any) -> None:
        return None

    m.warn_if_has_hooks(t.ones(1))
    x = t.ones(1, requires_grad=True)
    x._backward_hooks = OrderedDict({1: plain, 2: marked})
    m.warn_if_has_hooks(x)


# ------------------------------------------------------------------ nn.utils


def parameters(t: Any, *values: Any) -> list[Any]:
    """Parameters with these gradients; None: without."""
    found = []
    for value in values:
        p = t.nn.Parameter(t.zeros(2 if value is None else len(value), dtype=t.float64))
        if value is not None:
            p.grad = t.tensor(value, dtype=t.float64)
        found.append(p)
    return found


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("norm_type", [2.0, 1, 0, 3, 0.5, float("inf"), float("-inf"), "inf"])
def test_clip_grad_norm(norm_type: Any, foreach: bool | None) -> None:
    def run(t: Any) -> Any:
        ps = parameters(t, [3.0, -4.0], None, [12.0])
        clip = t.nn.utils.clip_grad_norm_
        total = clip(ps, 2.0, norm_type=norm_type, foreach=foreach)
        again = clip(ps, 100.0, norm_type=norm_type, foreach=foreach)
        return [total, again, *(p.grad for p in ps)]

    compare(run)


@script
def clip_of_one_tensor(t: Any) -> Any:
    (p,) = parameters(t, [3.0, 4.0])
    return t.nn.utils.clip_grad_norm_(p, 1), p.grad


@script
def clip_of_nothing(t: Any) -> Any:
    utils = t.nn.utils
    (p,) = parameters(t, None)
    return [
        utils.clip_grad_norm_([], 1.0),
        utils.clip_grad_norm_([p], 1.0),
        utils.get_total_norm([]),
        utils.clip_grad_norm_((q for q in ()), 1.0),
        utils.clip_grads_with_norm_([p], 1.0, t.tensor(2.0)),
    ]


@script
def clip_of_nonfinite_gradients(t: Any) -> Any:
    results = []
    for bad in (float("inf"), float("nan")):
        for strict in (True, False):
            ps = parameters(t, [3.0, bad], [1.0])
            results.append(
                result_of(
                    lambda ps=ps, strict=strict: t.nn.utils.clip_grad_norm_(
                        ps, 1.0, error_if_nonfinite=strict
                    )
                )
            )
            results.append([p.grad for p in ps])
    return results


@script
def clip_by_value(t: Any) -> Any:
    results = []
    for foreach in (None, False, True):
        ps = parameters(t, [3.0, -4.0], None, [0.5])
        t.nn.utils.clip_grad_value_(ps, 1.5, foreach=foreach)
        results.append([p.grad for p in ps])
    (p,) = parameters(t, [3.0])
    t.nn.utils.clip_grad_value_(p, clip_value=2)
    return results, p.grad


@script
def clip_with_a_norm(t: Any) -> Any:
    ps = parameters(t, [3.0, -4.0], None, [0.5])
    t.nn.utils.clip_grads_with_norm_(ps, 1.0, t.tensor(10.0))
    first = [p.grad.clone() for p in ps if p.grad is not None]
    t.nn.utils.clip_grads_with_norm_(ps[0], 100.0, t.tensor(10.0))
    return first, ps[0].grad


@script
def total_norm(t: Any) -> Any:
    norm = t.nn.utils.get_total_norm
    a, b = t.tensor([3.0, 4.0]), t.tensor([[12.0]])
    return [
        norm([a, b]),
        norm(a),
        norm((a, b), 1.0),
        norm([a, b], norm_type=float("inf"), foreach=True),
        norm(iter([a, b])),
        result_of(lambda: norm([a, b / 0], error_if_nonfinite=True)),
    ]


@script
def clip_of_mixed_dtypes(t: Any) -> Any:
    p = t.nn.Parameter(t.zeros(1))
    p.grad = t.tensor([3.0])
    q = t.nn.Parameter(t.zeros(1, dtype=t.float64))
    q.grad = t.tensor([4.0], dtype=t.float64)
    return t.nn.utils.clip_grad_norm_([p, q], 1.0), p.grad, q.grad


@script
def old_name_of_clip(t: Any) -> Any:
    (p,) = parameters(t, [3.0, 4.0])
    return t.nn.utils.clip_grad_norm(p, 1.0), p.grad


@script
def clip_leaves_no_history(t: Any) -> Any:
    x = t.tensor([3.0], requires_grad=True)
    x.grad = x * 2
    total = t.nn.utils.clip_grad_norm_(x, 1.0)
    return total.requires_grad, x.grad.requires_grad, x.grad


@script
def parameters_as_a_vector(t: Any) -> Any:
    layer = linear(t)
    utils = t.nn.utils
    vector = utils.parameters_to_vector(layer.parameters())
    vector.sum().backward()
    utils.vector_to_parameters(t.arange(9.0, dtype=t.float64), layer.parameters())
    return vector, vector.requires_grad, layer.weight.grad, layer.weight, layer.bias


@script
def vector_that_is_none(t: Any) -> Any:
    t.nn.utils.vector_to_parameters([1.0], linear(t).parameters())


@script
def vector_that_is_short(t: Any) -> Any:
    t.nn.utils.vector_to_parameters(t.ones(3), linear(t).parameters())


@script
def vector_of_nothing(t: Any) -> Any:
    t.nn.utils.parameters_to_vector([])


def compare(run: Callable[[Any], Any]) -> None:
    mine, theirs = (result_of(lambda t=t: run(t)) for t in (pygrad, torch))
    assert len(mine) == len(theirs), (mine, theirs)
    for a, b in zip(mine, theirs, strict=True):
        assert_equal(a, b)


@pytest.fixture(autouse=True)
def no_global_hooks() -> Any:
    yield
    for t in (pygrad, torch):
        m = modules(t)
        for name in vars(m):
            if name.startswith("_global_") and isinstance(getattr(m, name), dict):
                getattr(m, name).clear()
        m._global_is_full_backward_hook = None


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    compare(SCRIPTS[name])
