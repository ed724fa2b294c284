"""autograd.backward, autograd.grad and Tensor.backward with every argument."""

from __future__ import annotations

import types
from collections import OrderedDict
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error, warnings_of

SCRIPTS = Scripts()
script = SCRIPTS.add


def ones(t: Any, *shape: int) -> Any:
    return t.ones(shape, dtype=t.float64)


FLAGS: dict[str, Any] = {
    "a text": lambda t: "a",
    "one": lambda t: 1,
    "zero": lambda t: 0,
    "a float": lambda t: 1.5,
    "None": lambda t: None,
    "a list": lambda t: [],
    "a tensor": lambda t: t.tensor(True),
}
GRAD_FLAGS = ("retain_graph", "create_graph", "allow_unused", "materialize_grads")


@pytest.mark.parametrize("flag", FLAGS)
def test_flags_that_are_no_flags(flag: str) -> None:
    def script(t: Any) -> Any:
        x, value = leaf(t, 1.0, 2.0), FLAGS[flag](t)

        def y() -> Any:
            return (x * 2).sum()

        found = []
        for name in GRAD_FLAGS:
            found.append(result_or_error(lambda: t.autograd.grad(y(), x, **{name: value})))  # noqa: B023
        for name in ("retain_graph", "create_graph"):
            found.append(result_or_error(lambda: t.autograd.backward(y(), **{name: value})))  # noqa: B023
            found.append(result_or_error(lambda: y().backward(**{name: value})))  # noqa: B023
        found.append(result_or_error(lambda: y().backward(ones(t), retain_graph=value)))
        return found, x.grad

    both(script)


# ------------------------------------------------------------ backward


@script
def several_roots(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    a, b = x * y, (x.exp() * y).sum()
    t.autograd.backward([a, b], [ones(t, 2) * 3, None], retain_graph=True)
    first = x.grad.clone(), y.grad.clone()
    t.autograd.backward((b, a), (None, ones(t, 2)), retain_graph=True)
    t.autograd.backward(iter([a, b]), iter([ones(t, 2), None]), retain_graph=True)
    t.autograd.backward([b, b])
    return first, x.grad, y.grad


@script
def roots_that_depend_on_each_other(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    a = x * 2
    b = a.exp()
    a.retain_grad()
    t.autograd.backward([a, b, x], [ones(t, 2), ones(t, 2), ones(t, 2) * 100])
    return x.grad, a.grad


@script
def roots_and_gradients_of_the_wrong_kind(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    run = t.autograd.backward
    return [
        result_or_error(lambda: run([])),
        result_or_error(lambda: run(None)),
        result_or_error(lambda: run(3)),
        result_or_error(lambda: run([3])),
        result_or_error(lambda: run([y, None], [ones(t, 2), None])),
        result_or_error(lambda: run(y)),
        result_or_error(lambda: run(y, 3.0)),
        result_or_error(lambda: run(y, [3.0])),
        result_or_error(lambda: run(y, "no")),
        result_or_error(lambda: run(y, ones(t, 3))),
        result_or_error(lambda: run(y, ones(t, 2, 2))),
        result_or_error(lambda: run([y, y], [ones(t, 2)])),
        result_or_error(lambda: run([y], [ones(t, 2), ones(t, 2)], retain_graph=True)),
        result_or_error(lambda: run([y, y], [ones(t, 2, 1), ones(t, 2)])),
        result_or_error(lambda: run(t.ones(1))),
        result_or_error(lambda: run([y.sum(), t.ones(2)])),
        result_or_error(lambda: run(t.ones(2))),
        result_or_error(lambda: run(t.ones(2), t.ones(2))),
        result_or_error(lambda: run(t.arange(3))),
        result_or_error(lambda: y.backward("no")),
        result_or_error(lambda: y.backward([ones(t, 2)])),
        result_or_error(lambda: y.backward(1.0)),
        result_or_error(lambda: y.backward(ones(t, 1))),
        result_or_error(lambda: y.backward(gradient=None)),
        result_or_error(lambda: t.ones(()).backward()),
        result_or_error(lambda: y.backward(t.ones(2))),
        x.grad,
    ]


@script
def gradients_of_other_dtypes(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.backward(t.ones(2, dtype=t.float32), retain_graph=True)
    first = x.grad.clone()
    y.backward(t.ones(2, dtype=t.int64), retain_graph=True)
    t.autograd.backward(y, t.ones(2, dtype=t.bool))
    return first, x.grad, t.autograd.grad(x * 2, x, t.ones(2, dtype=t.float32))


@script
def old_name_of_grad_tensors(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    seen = warnings_of(lambda: t.autograd.backward(x * 2, grad_variables=ones(t, 2)))
    clash = result_or_error(
        lambda: t.autograd.backward(x * 2, ones(t, 2), grad_variables=ones(t, 2))
    )
    return seen, clash, x.grad


@script
def positional_arguments(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = (x**3).sum()
    t.autograd.backward(y, None, True, True, None, x)
    first = x.grad
    x.grad = None
    y.backward(None, True, False, [x])
    return first, x.grad


@script
def graph_kept_or_not(t: Any) -> Any:
    x = leaf(t, 2.0)

    def tries(**options: Any) -> Any:
        y = (x**3).sum()
        t.autograd.backward(y, **options)
        return result_or_error(lambda: t.autograd.grad(y, x)[0])

    return [
        tries(),
        tries(retain_graph=True),
        tries(retain_graph=False),
        tries(create_graph=True),
        tries(create_graph=True, retain_graph=False),
        tries(create_graph=False, retain_graph=True),
    ]


@script
def a_graph_that_saved_nothing_is_not_freed(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@script
def warning_of_create_graph(t: Any) -> Any:
    x = leaf(t, 2.0)
    t.set_warn_always(True)
    try:
        return [
            warnings_of(lambda: (x * x).sum().backward(create_graph=True)),
            warnings_of(lambda: t.autograd.backward((x * x).sum(), create_graph=True)),
            warnings_of(lambda: t.autograd.backward((x * x).sum(), create_graph=True, inputs=x)),
            warnings_of(lambda: t.autograd.grad((x * x).sum(), x, create_graph=True)),
            warnings_of(lambda: (x * x).sum().backward()),
            t.is_warn_always_enabled(),
        ]
    finally:
        t.set_warn_always(False)
        x.grad = None


@script
def chosen_inputs(t: Any) -> Any:
    x, y, z = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    a = x * y
    b = a * z
    t.autograd.backward(b, inputs=[x, a], retain_graph=True)
    seen = [x.grad, y.grad, z.grad, a.grad, a.retains_grad]
    b.backward(inputs=z, retain_graph=True)
    t.autograd.backward(b, inputs={"first": y, "second": z}, retain_graph=True)
    b.backward(inputs=(v for v in (x, b)), retain_graph=True)
    return *seen, x.grad, y.grad, z.grad, b.grad


@script
def inputs_of_the_wrong_kind(t: Any) -> Any:
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    b = (x * x).sum()
    b.backward(inputs=y, retain_graph=True)
    return [
        y.grad,
        result_or_error(lambda: b.backward(inputs=[])),
        result_or_error(lambda: b.backward(inputs={})),
        result_or_error(lambda: b.backward(inputs=types.MappingProxyType({"x": x}))),
        result_or_error(lambda: b.backward(inputs=OrderedDict(x=x))),
        result_or_error(lambda: b.backward(inputs=t.ones(1))),
        result_or_error(lambda: b.backward(inputs=[3])),
        result_or_error(lambda: b.backward(inputs=[None])),
        result_or_error(lambda: b.backward(inputs=3)),
        x.grad,
    ]


@script
def an_inner_input_twice(t: Any) -> Any:
    x = leaf(t, 3.0)
    a = x * 2
    for _ in range(2):
        (a * a).sum().backward(inputs=a, retain_graph=True)
    kept = a.grad
    a.retain_grad()
    (a * a).sum().backward(inputs=[a])
    return kept, a.grad, x.grad


@script
def an_input_given_twice(t: Any) -> Any:
    x = leaf(t, 3.0)
    (x * x).sum().backward(inputs=[x, x])
    return x.grad, t.autograd.grad((x * x).sum(), [x, x])


@script
def in_place_change_of_an_input(t: Any) -> Any:
    x = leaf(t, 3.0)
    a = x * 2
    b = a * 1
    a.mul_(5)
    return result_or_error(lambda: t.autograd.grad(b.sum(), a)), t.autograd.grad((a * 2).sum(), a)


@script
def backward_of_a_leaf(t: Any) -> Any:
    x, y = leaf(t, 3.0), leaf(t, 1.0, 2.0)
    x.backward()
    x.backward()
    y.backward(ones(t, 2) * 4)
    return x.grad, y.grad, t.autograd.grad(x, x), t.autograd.grad(y, y, ones(t, 2))


@script
def gradient_is_not_shared(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    g = ones(t, 2)
    x.backward(g)
    x.grad.mul_(5)
    y = leaf(t, 1.0, 2.0)
    (y + 0).backward(g)
    y.grad.mul_(7)
    a, b = leaf(t, 1.0), leaf(t, 2.0)
    (a + b).sum().backward()
    a.grad.mul_(3)
    return g, x.grad, y.grad, a.grad, b.grad


@script
def grad_mode_does_not_matter(t: Any) -> Any:
    x = leaf(t, 3.0)
    y = (x * x).sum()
    with t.no_grad():
        y.backward(create_graph=True)
        (g,) = t.autograd.grad(y, x, create_graph=True)
    return x.grad.requires_grad, g.requires_grad, t.is_grad_enabled()


# ------------------------------------------------------------ grad


@script
def what_grad_returns(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    out = (x * y).sum()
    run = t.autograd.grad
    results = [
        run(out, x, retain_graph=True),
        run([out], [x, y], retain_graph=True),
        run((out, out * 2), (y,), retain_graph=True),
        run(out, (v for v in (x, y)), retain_graph=True),
    ]
    named = run(out, {"b": y, "a": x})
    return results, [type(r).__name__ for r in results], list(named), named, x.grad


@script
def grad_of_the_wrong_kind(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0)
    out = (x * x).sum()
    run = t.autograd.grad
    return [
        result_or_error(lambda: run(out, [])),
        result_or_error(lambda: run(out, {})),
        result_or_error(lambda: run(out, types.MappingProxyType({"x": x}))),
        result_or_error(lambda: run(out, t.ones(1))),
        result_or_error(lambda: run(out, [3])),
        result_or_error(lambda: run(out, [None])),
        result_or_error(lambda: run([], x)),
        result_or_error(lambda: run(3, x)),
        result_or_error(lambda: run([None], x)),
        result_or_error(lambda: run(t.ones(1), x)),
        result_or_error(lambda: run([out, t.ones(1)], x)),
        result_or_error(lambda: run(x * x, x)),
        result_or_error(lambda: run(x * x, x, ones(t, 3))),
        result_or_error(lambda: run(x * x, x, [ones(t, 2), "ignored"])),
        result_or_error(lambda: run([x * x, out], x, [ones(t, 2)])),
        result_or_error(lambda: run(x * x, x, 2.0)),
        result_or_error(lambda: run(out, y)),
        result_or_error(lambda: run(out, [x, y])),
        result_or_error(lambda: run(out, y, allow_unused=False)),
        result_or_error(lambda: run(out, [x, y], allow_unused=True, retain_graph=True)),
        result_or_error(lambda: run(out, [x, y], materialize_grads=True, retain_graph=True)),
        result_or_error(lambda: run(out, y, allow_unused=False, materialize_grads=True)),
        result_or_error(
            lambda: run(out, y, allow_unused=True, materialize_grads=True, retain_graph=True)
        ),
    ]


@script
def materialized_zeros(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = t.ones(2, 3, dtype=t.float32).t().requires_grad_()
    for create in (False, True):
        z, w = t.autograd.grad((x * x).sum(), [y, x], materialize_grads=True, create_graph=create)
        yield_ = z, z.requires_grad, z.is_leaf, z.stride(), w
    return yield_


@script
def only_inputs(t: Any) -> Any:
    x = leaf(t, 2.0)
    return warnings_of(lambda: t.autograd.grad((x * x).sum(), x, only_inputs=False)), x.grad


@script
def grad_does_not_accumulate(t: Any) -> Any:
    x, y = leaf(t, 2.0), leaf(t, 3.0)
    a = x * y
    a.retain_grad()
    g = t.autograd.grad((a * a).sum(), [a, x])
    return g, x.grad, y.grad, a.grad


@script
def higher_orders(t: Any) -> Any:
    x = leaf(t, 1.5)
    y, found = (x**5).sum(), []
    for k in range(5):
        (g,) = t.autograd.grad(y, x, create_graph=k < 4)
        found.append(g)
        y = g.sum()
    return found, result_or_error(lambda: t.autograd.grad(y, x))


@script
def grad_outputs_that_require_grad(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    v = ones(t, 2).requires_grad_()
    (g,) = t.autograd.grad(x * x, x, v, create_graph=True)
    return t.autograd.grad(g, v, ones(t, 2) * 10, retain_graph=True), g.requires_grad


@script
def integer_outputs(t: Any) -> Any:
    x = leaf(t, 3.0, 1.0)
    _, order = x.sort()
    return result_or_error(lambda: t.autograd.grad(order.sum(), x)), order.requires_grad


@script
def batched(t: Any) -> Any:
    x, y, z = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), leaf(t, 5.0)
    eye = t.eye(2, dtype=t.float64)

    def run(wanted: Any, grads: Any = eye, **options: Any) -> Any:
        out = x * y.exp()
        return t.autograd.grad(out, wanted, grads, is_grads_batched=True, **options)

    again = run({"x": x}, create_graph=True)["x"]
    return [
        run([x, y]),
        t.autograd.grad([x * y, (x * x).sum()], [x, y], [eye, ones(t, 2)], is_grads_batched=True),
        run([x, z], (eye,), allow_unused=True),
        run([z], materialize_grads=True),
        again,
        t.autograd.grad(again.sum(), y),
        result_or_error(lambda: run([x, z])),
        result_or_error(lambda: run(x, ones(t, 3, 3))),
        result_or_error(lambda: run(x, ones(t, 2))),
        result_or_error(lambda: run(x, ones(t, 1, 2))),
    ]


# ------------------------------------------------------------ hooks and errors inside


@script
def an_error_in_a_hook_leaves_all_as_it_was(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = x * x

    def bad(g: Any) -> None:
        raise KeyError("mine")

    handle = y.register_hook(bad)
    first = result_or_error(lambda: y.sum().backward(retain_graph=True)), x.grad
    handle.remove()
    y.sum().backward()
    return first, x.grad


@script
def backward_inside_a_hook(t: Any) -> Any:
    x, w = leaf(t, 2.0), leaf(t, 5.0)
    y = x * x

    def again(g: Any) -> None:
        (w * w).sum().backward()
        (x * 10).sum().backward()

    y.register_hook(again)
    y.sum().backward()
    return x.grad, w.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])
