"""Custom functions: the same programs in both libraries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


def make(t: Any, forward: Any, backward: Any = None, **members: Any) -> Any:
    """A Function of these static methods, named N."""
    if backward is not None:
        members["backward"] = backward
    members = {k: staticmethod(v) if callable(v) else v for k, v in members.items()}
    return type("N", (t.autograd.Function,), {"forward": staticmethod(forward), **members})


def plain(value: Any) -> Any:
    return value


def double(ctx: Any, x: Any, *_: Any) -> Any:
    return x * 2


def returning(result: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A script whose backward returns `result(torch, gradient)` for the arguments x, 2, z."""

    def run(t: Any) -> Any:
        x = leaf(t, 1.0, 2.0)
        y = make(t, lambda ctx, a, n, z: a * n, lambda ctx, g: result(t, g)).apply(
            x, 2, t.ones(2, dtype=t.float64)
        )
        return t.autograd.grad(y.sum(), x)

    return run


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "too_few": lambda t, g: g,
    "two": lambda t, g: (g, None),
    "more_nones": lambda t, g: (g, None, None, None, None),
    "too_many": lambda t, g: (g, None, None, g),
    "for_a_number": lambda t, g: (g, g, None),
    "for_a_constant": lambda t, g: (g, None, g),
    "a_number": lambda t, g: (3, None, None),
    "a_list": lambda t, g: ([1], None, None),
    "in_a_list": lambda t, g: [g, None, None],
    "text": lambda t, g: ("grad", None, None),
    "no_tuple_of_it": lambda t, g: None,
    "wrong_shape": lambda t, g: (t.ones(3), None, None),
    "wrong_rank": lambda t, g: (t.ones(2, 3), None, None),
    "float32": lambda t, g: (t.ones(2), None, None),
    "integers": lambda t, g: (t.ones(2, dtype=t.int64), None, None),
    "none": lambda t, g: (None, None, None),
    "wider": lambda t, g: (t.ones(1, 2, dtype=t.float64), None, None),
    "summed": lambda t, g: (t.ones(3, 2, dtype=t.float64), None, None),
}
for _name, _result in GRADIENTS.items():
    SCRIPTS[f"gradients_{_name}"] = returning(_result)


@script
def both_styles(t: Any) -> Any:
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)

    def forward(ctx: Any, a: Any, b: Any, n: int) -> Any:
        ctx.save_for_backward(a, b)
        ctx.n = n
        return a * b * n

    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * b * ctx.n, g * a * ctx.n, None

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        assert isinstance(inputs, tuple)
        assert isinstance(output, t.Tensor)
        ctx.save_for_backward(*inputs[:2])
        ctx.n = inputs[2]

    one = make(t, forward, backward)
    two = make(t, lambda a, b, n: a * b * n, None, vjp=backward, setup_context=setup)
    results = []
    for f in (one, two):
        y = f.apply(x, w, 3)
        results += [y, *t.autograd.grad(y.sum(), (x, w))]
    return results


@script
def double_backward(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a, y := a.exp())
        return y

    def backward(ctx: Any, g: Any) -> Any:
        a, y = ctx.saved_tensors
        return g * y * a.cos()

    x = leaf(t, 0.3, 2.0)
    y = make(t, forward, backward).apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    return y, g, h, *t.autograd.grad(h.sum(), x)


@script
def node(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = make(t, double, lambda ctx, g: g * 2).apply(x, 3, x * 1)
    fn = y.grad_fn
    return (
        fn.name(),
        isinstance(fn, t.autograd.graph.Node),
        fn is y.grad_fn,
        [(f and f.name(), k) for f, k in fn.next_functions],
        fn.needs_input_grad,
        fn.saved_tensors,
        (fn.to_save, fn.dirty_tensors, fn.non_differentiable, fn.saved_for_forward),
        repr(fn).split(" object")[0],
        type(fn).__name__,
        type(fn).__module__,
        repr(y).split("grad_fn")[1],
        isinstance(fn, t.autograd.function.FunctionCtx),
        isinstance(fn, t.autograd.function.BackwardCFunction),
        fn.apply(t.ones(1)),
    )


@script
def node_outlives_its_output(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = make(t, double).apply(x)
    fn = y.grad_fn
    del y
    return fn.name(), fn.next_functions[0][0].variable is x, fn.saved_tensors


@script
def ctx_in_forward(t: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, n: int, b: Any) -> Any:
        seen.append((ctx.needs_input_grad, ctx.name(), ctx.saved_tensors, t.is_grad_enabled()))
        seen.append((len(ctx.next_functions), a.requires_grad))
        return a * n

    f = make(t, forward, lambda ctx, g: (g, None, None))
    f.apply(leaf(t, 1.0), 2, t.ones(1))
    with t.no_grad():
        y = f.apply(leaf(t, 1.0), 2, t.ones(1))
    return seen, y, y.grad_fn


@script
def needs_input_grad_of_a_pruned_backward(t: Any) -> Any:
    x, w, seen = leaf(t, 1.0), leaf(t, 1.0), []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return g, g

    y = make(t, lambda ctx, a, b: a * b, backward).apply(x, w)
    y.sum().backward(inputs=[x], retain_graph=True)
    return seen, x.grad, w.grad, t.autograd.grad(y.sum(), w), seen


@script
def missing_gradients(t: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, *g: Any) -> Any:
        seen.append(g)
        return g[0]

    for materialize in (True, False):

        def forward(ctx: Any, a: Any, m: bool = materialize) -> Any:
            ctx.set_materialize_grads(m)
            return a * 1, a.long(), 3, a * 2, None

        x = leaf(t, 1.0, 2.0)
        y = make(t, forward, backward).apply(x)
        y[0].sum().backward()
        seen += [y, x.grad]
    return seen


@script
def non_differentiable(t: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, a: Any) -> Any:
        values, places = a.sort()
        z = a * 1
        ctx.mark_non_differentiable(places, z)
        return values, places, z

    def backward(ctx: Any, *g: Any) -> Any:
        seen.append(g)
        return g[0]

    x = leaf(t, 3.0, 2.0)
    y = make(t, forward, backward).apply(x)
    y[0].sum().backward()
    return seen, [each.requires_grad for each in y], [each.grad_fn is None for each in y]


@script
def all_outputs_unused_but_integers(t: Any) -> Any:
    x = leaf(t, 3.0, 2.0)
    y = make(t, lambda ctx, a: a.long()).apply(x)
    return y, y.requires_grad


@script
def save_none_and_output(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a, None, y := a * 2)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        a, none, y = ctx.saved_tensors
        assert none is None
        return g * a * y

    x = leaf(t, 3.0, 2.0)
    y = make(t, forward, backward).apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    saved = y.grad_fn.saved_tensors
    return y, g, t.autograd.grad(g.sum(), x), [s is not None and s.requires_grad for s in saved]


@script
def save_a_number(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a, 3)
        return a * 1

    f = make(t, forward)
    with t.no_grad():
        f.apply(leaf(t, 1.0))
    f.apply(leaf(t, 1.0))


@script
def save_for_forward_a_number(t: Any) -> Any:
    make(t, lambda ctx, a: (ctx.save_for_forward(3), a * 1)[1]).apply(leaf(t, 1.0))


@script
def save_twice(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        ctx.save_for_backward(a, a * 3)
        return a * 1

    x = leaf(t, 2.0)
    y = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[1]).apply(x)
    return t.autograd.grad(y.sum(), x)


def add_freed(name: str, save: bool, access: Callable[[Any], Any]) -> None:
    def run(t: Any) -> Any:
        def forward(ctx: Any, a: Any) -> Any:
            if save:
                ctx.save_for_backward(a)
            return a * 1

        x = leaf(t, 2.0)
        y = make(t, forward, lambda ctx, g: (access(ctx), g)[1]).apply(x)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y.sum().backward()
        return x.grad

    SCRIPTS[name] = run


add_freed("freed_saved_tensors", True, lambda ctx: ctx.saved_tensors)
add_freed("freed_saved_variables", True, lambda ctx: ctx.saved_variables)
add_freed("freed_without_any", False, lambda ctx: ctx.saved_tensors)
add_freed("freed_but_not_looked_at", True, lambda ctx: None)


@script
def saved_of_a_freed_node(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = make(t, double, lambda ctx, g: g).apply(x)
    y.sum().backward()
    return y.grad_fn.saved_tensors


def add_marked(name: str, forward: Callable[[Any, Any], Any], is_leaf: bool = False) -> None:
    def run(t: Any) -> Any:
        x = leaf(t, 1.0, 2.0)
        b = x if is_leaf else x * 1
        y = make(t, forward, lambda ctx, *g: g[0] * 10).apply(b)
        first = y[0] if isinstance(y, tuple) else y
        grads = t.autograd.grad(first.sum(), x)
        return y, first is b, b._version, first.grad_fn.name(), first.output_nr, grads

    SCRIPTS[name] = run


add_marked("dirty", lambda ctx, x: (ctx.mark_dirty(x), x.add_(1))[1])
add_marked("dirty_of_two", lambda ctx, x: (ctx.mark_dirty(x), x.add_(1), x * 2)[1:])
add_marked("dirty_second", lambda ctx, x: (ctx.mark_dirty(x), x * 2, x.add_(1))[1:])
add_marked("dirty_leaf", lambda ctx, x: (ctx.mark_dirty(x), x.add_(1))[1], True)
add_marked("dirty_leaf_not_written", lambda ctx, x: (ctx.mark_dirty(x), x)[1], True)
add_marked("dirty_not_returned", lambda ctx, x: (ctx.mark_dirty(x), x.add_(1) * 2)[1])
add_marked("dirty_no_input", lambda ctx, x: (z := x * 1, ctx.mark_dirty(z), z)[2])
add_marked("dirty_number", lambda ctx, x: (ctx.mark_dirty(3), x * 1)[1])
add_marked("constant_number", lambda ctx, x: (ctx.mark_non_differentiable(3), x * 1)[1])
add_marked("constant_not_returned", lambda ctx, x: (ctx.mark_non_differentiable(x * 1), x * 2)[1])
add_marked("to_save_no_tuple", lambda ctx, x: (setattr(ctx, "to_save", 3), x * 1)[1])
add_marked("dirty_no_tuple", lambda ctx, x: (setattr(ctx, "dirty_tensors", 3), x * 1)[1])
add_marked("materialize_no_bool", lambda ctx, x: (ctx.set_materialize_grads(3), x * 1)[1])
add_marked("materialize_none", lambda ctx, x: (ctx.set_materialize_grads(None), x * 1)[1])
add_marked("no_static_method", lambda self, x: x * 1)


@script
def dirty_no_input_warns(t: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make(t, lambda ctx, x: (z := x * 1, ctx.mark_dirty(z), z)[2]).apply(leaf(t, 1.0))
    return [str(w.message).split(" (Triggered")[0] for w in caught]


@script
def dirty_view(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    b = x * 1
    v = b[:1]
    f = make(t, lambda ctx, a: (ctx.mark_dirty(a), a.add_(1))[1], lambda ctx, g: g * 10)
    y = f.apply(v)
    grads = t.autograd.grad((b * leaf(t, 3.0, 5.0)).sum(), x, retain_graph=True)
    return y is v, y, b, v._version, v.grad_fn.name(), b.grad_fn.name(), grads


@script
def gradient_through_a_dirty_view(t: Any) -> Any:
    found = []
    for take in (lambda b: b[1:], lambda b: b.flip(0).view(3), lambda b: b.view(3, 1)):
        x = leaf(t, 1.0, 2.0, 3.0)
        b = x * 1
        v = take(b)
        f = make(t, lambda ctx, a: (ctx.mark_dirty(a), a.mul_(2))[1], lambda ctx, g: g * 10)
        y = f.apply(v)
        found += [*t.autograd.grad(y.exp().sum(), x, retain_graph=True), v.grad_fn.name()]
        found += t.autograd.grad((b * b).sum() + (v * v).sum(), x)
    return found


@script
def dirty_view_of_a_leaf(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    f = make(t, lambda ctx, a: (ctx.mark_dirty(a), a.add_(1))[1], lambda ctx, g: g * 10)
    error = result_or_error(lambda: f.apply(x[:1]))
    (x * 3).sum().backward()
    return error, x.is_leaf, x.grad_fn, x.grad


@script
def dirty_view_and_another(t: Any) -> Any:
    x, w = leaf(t, 1.0, 2.0, 3.0), leaf(t, 4.0)
    b = x * 1

    def backward(ctx: Any, g: Any) -> Any:
        (other,) = ctx.saved_tensors
        return g, (g * other).sum(0, keepdim=True) * 7

    def forward(ctx: Any, a: Any, c: Any) -> Any:
        ctx.mark_dirty(a)
        ctx.save_for_backward(c)
        return a.mul_(c)

    make(t, forward, backward).apply(b[1:], w)
    return b, t.autograd.grad((b * b).sum(), (x, w))


@script
def dirty_view_of_two(t: Any) -> Any:
    b = leaf(t, 1.0, 2.0) * 1
    make(t, lambda ctx, a: (ctx.mark_dirty(a), a.add_(1), a * 2)[1:]).apply(b[:1])


@script
def input_returned(t: Any) -> Any:
    x, z = leaf(t, 1.0, 2.0), t.ones(2)
    f = make(t, lambda ctx, a: a, lambda ctx, g: g * 3)
    y, u = f.apply(x), f.apply(z)
    with t.no_grad():
        v = f.apply(x)
    u.add_(1)
    return (
        [(y, y is x, y._base is x, y.is_leaf, y.grad_fn.name(), y._is_view())],
        [(u, u is z, u._base is z, u.is_leaf, u._is_view(), z)],
        [(v, v is x, v._base is x, v.is_leaf, v._is_view(), v.requires_grad)],
        t.autograd.grad(y.sum(), x),
    )


@script
def input_returned_then_modified(t: Any) -> Any:
    make(t, lambda ctx, a: a).apply(leaf(t, 1.0) * 1).add_(1)


@script
def view_returned_then_modified(t: Any) -> Any:
    make(t, lambda ctx, a: a.view(-1)).apply(leaf(t, 1.0) * 1).add_(1)


@script
def one_of_two_views_modified(t: Any) -> Any:
    f = make(t, lambda ctx, a: (a.view(-1), a * 1), lambda ctx, g, h: g + h)
    x = leaf(t, 1.0)
    y, z = f.apply(x * 1)
    z.add_(1)
    t.autograd.grad(z.sum(), x)
    y.add_(1)


@script
def same_output_twice(t: Any) -> Any:
    x = leaf(t, 1.0)
    y, z = make(t, lambda ctx, a: (b := a * 2, b), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    return y is z, y.output_nr, t.autograd.grad(z.sum(), x)


@script
def output_is_the_very_object(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.y = a * 2
        ctx.y.mark = "mine"
        return ctx.y

    y = make(t, forward).apply(leaf(t, 1.0))
    return y.grad_fn.y is y, y.mark


@script
def recorded_inside_forward(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        with t.enable_grad():
            return a * 3

    x = leaf(t, 1.0)
    y = make(t, forward, lambda ctx, g: g * 7).apply(x)
    return y, y.grad_fn.name(), t.autograd.grad(y.sum(), x)


@script
def constant_recorded_inside_forward(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        with t.enable_grad():
            b = a * 3
        ctx.mark_non_differentiable(b)
        return b, a * 1

    y, z = make(t, forward, lambda ctx, g, h: h).apply(leaf(t, 1.0))
    return y.requires_grad, y.grad_fn is None, z.requires_grad


@script
def results_of_other_kinds(t: Any) -> Any:
    x = leaf(t, 1.0)
    a = make(t, lambda ctx, x: [x * 1]).apply(x)
    b = make(t, lambda ctx, x: (x * 1, 3, None, "a", [x * 2])).apply(x)
    c = make(t, lambda ctx, x: None).apply(x)
    d = make(t, lambda ctx, x: ()).apply(x)
    e = make(t, lambda ctx, some: some[0] * 2).apply([x])
    return a, a[0].requires_grad, b, b[0].requires_grad, c, d, e, e.requires_grad


def named(name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """A script that calls `forward` with keywords; the value `leaf` stands for a leaf."""

    def run(t: Any) -> Any:
        x, seen = leaf(t, 1.0, 2.0), []

        def backward(ctx: Any, g: Any) -> Any:
            seen.append((ctx.needs_input_grad, len(ctx.next_functions)))
            return (g, *[None] * (len(ctx.needs_input_grad) - 1))

        positional = [x if a is leaf else a for a in args]
        by_name = {k: x if v is leaf else v for k, v in kwargs.items()}
        y = make(t, forward, backward).apply(*positional, **by_name)
        return y, t.autograd.grad(y.sum(), x), seen

    SCRIPTS[f"arguments_{name}"] = run


named("by_name", lambda ctx, a, k=2: a * k, leaf, k=3)
named("all_by_name", lambda ctx, a, k=2: a * k, k=3, a=leaf)
named("tensor_by_name", lambda ctx, n, a: a * n, 3.0, a=leaf)
named("last_omitted", lambda ctx, a, b=3, k=2: a * k * b, leaf, b=4)
named("one_omitted_between", lambda ctx, a, b=3, k=2: a * k, leaf, k=5)
named("none", lambda ctx, a, b=3: a * 2, leaf, b=None)
named("twice", lambda ctx, a, b=3: a * 2, leaf, a=3)
named("unknown", lambda ctx, a, b=3: a * 2, leaf, zz=3)
named("unknown_and_missing", lambda ctx, a, b: a * 2, leaf, zz=3)
named("into_many", lambda ctx, a, b, **more: a * 2, leaf, 2, zz=3)
named("keyword_only", lambda ctx, a, *, k=2: a * k, leaf, k=3)
named("beside_many", lambda ctx, a, *b: a * 2, leaf, b=3)
named("ctx", lambda ctx, a: a * 2, leaf, ctx=3)


@script
def arguments_by_name_with_setup(t: Any) -> Any:
    seen: list[Any] = []
    f = make(
        t,
        lambda a, b=3: a * b,
        lambda ctx, g: (g, None),
        setup_context=lambda ctx, inputs, output: seen.append((inputs, output)),
    )
    x = leaf(t, 1.0)
    return f.apply(x), f.apply(x, b=4), seen, t.autograd.grad(f.apply(x).sum(), x)


@script
def keyword_only_with_setup(t: Any) -> Any:
    def forward(a: Any, *, k: int = 2) -> Any:
        return a * k

    make(t, forward, setup_context=lambda ctx, i, o: None).apply(leaf(t, 1.0), k=3)


@script
def too_many_arguments_with_setup(t: Any) -> Any:
    make(t, lambda a: a, setup_context=lambda ctx, i, o: None).apply(leaf(t, 1.0), 2)


@script
def too_few_arguments(t: Any) -> Any:
    make(t, double).apply()


@script
def setup_saves_a_returned_input(t: Any) -> Any:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    make(t, lambda a: a, lambda ctx, g: g, setup_context=setup).apply(leaf(t, 1.0))


@script
def setup_saves_a_dirty_input(t: Any) -> Any:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(output)

    x = leaf(t, 3.0)
    b = x * 1
    f = make(t, lambda a: a.mul_(2), lambda ctx, g: g * ctx.saved_tensors[0], setup_context=setup)
    y = f.apply(b)
    return y is b, y._version, t.autograd.grad(y.sum(), x)


def kinds(name: str, call: Callable[[Any], Any]) -> None:
    SCRIPTS[name] = call


kinds("no_backward", lambda t: make(t, double).apply(leaf(t, 1.0)).sum().backward())
kinds(
    "backward_and_vjp",
    lambda t: make(t, double, lambda c, g: g, vjp=lambda c, g: g).apply(leaf(t, 1.0)).backward(),
)
kinds("no_forward", lambda t: type("N", (t.autograd.Function,), {}).apply(leaf(t, 1.0)))
kinds("called", lambda t: make(t, double)()(leaf(t, 1.0)))
kinds("called_node", lambda t: make(t, double).apply(leaf(t, 1.0)).grad_fn(1))
kinds("unknown_attribute", lambda t: make(t, double).apply(leaf(t, 1.0)).grad_fn.nothing)
kinds("base_vmap", lambda t: t.autograd.Function.vmap(1, 2, 3))
kinds("base_jvp", lambda t: t.autograd.Function.jvp(1, 2))
kinds("base_setup", lambda t: t.autograd.Function.setup_context(1, 2, 3))
kinds("base_forward", lambda t: t.autograd.Function.forward(1))
kinds("base_backward", lambda t: t.autograd.Function.vjp(1))


@script
def classes(t: Any) -> Any:
    f, m = t.autograd.Function, t.autograd.function
    n = make(t, double)
    return (
        type(f).__name__,
        type(n) is m.FunctionMeta,
        f._backward_cls.__name__,
        n._backward_cls.__name__,
        n._backward_cls._forward_cls is n,
        (f.generate_vmap_rule, f.clear_saved_tensors_on_access, f.boxed_grads_call),
        [c.__name__ for c in m.InplaceFunction.__mro__],
        [c.__name__ for c in m.NestedIOFunction.__mro__],
        sorted(name for name in m.__all__),
        issubclass(n._backward_cls, t.autograd.graph.Node),
        issubclass(n, t.autograd.graph.Node),
    )


@script
def instances_warn(t: Any) -> Any:
    class Old(t.autograd.function.InplaceFunction):  # type: ignore[misc,name-defined]
        forward = staticmethod(double)
        backward = staticmethod(lambda ctx, g: g * 2)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = Old(True)
    x = leaf(t, 1.0)
    text = str(caught[0].message)
    return old.inplace, text[text.index("should") :], caught[0].category, Old.apply(x)


@script
def nested_function_is_gone(t: Any) -> Any:
    class Old(t.autograd.function.NestedIOFunction):  # type: ignore[misc,name-defined]
        def forward_extended(self, *input: Any) -> Any:
            return input

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Old()(leaf(t, 1.0))


@script
def nested_helpers(t: Any) -> Any:
    m, x = t.autograd.function, leaf(t, 1.0)
    nest = (x, [x * 2, None], {"a": x * 3})
    return (
        list(m._iter_tensors(nest)),
        m._map_tensor_data(nest),
        m._unflatten([1, 2], (0, [0, None])),
        list(m._iter_tensors_permissive(nest + (5,))),
    )


@script
def nested_helpers_refuse(t: Any) -> Any:
    list(t.autograd.function._iter_tensors((3,)))


@script
def boxed_gradients(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    f = make(
        t,
        lambda ctx, a: (a * 1, a * 2),
        lambda ctx, grads: (seen.append(type(grads).__name__), grads.pop())[1],
        boxed_grads_call=True,
    )
    y, z = f.apply(x)
    return t.autograd.grad((y + z * 3).sum(), x), seen


@script
def once(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        return a * a

    @t.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * g

    x, v = leaf(t, 3.0), leaf(t, 1.0)
    f = make(t, forward, backward)
    (g,) = t.autograd.grad(f.apply(x), x, v, create_graph=True)
    (h,) = t.autograd.grad(f.apply(x), x, t.ones(1, dtype=t.float64), create_graph=True)
    (k,) = t.autograd.grad(f.apply(x), x)
    names = g.grad_fn.name(), [(n.name(), i) for n, i in g.grad_fn.next_functions]
    return g, names, h, h.requires_grad, k


@script
def once_twice(t: Any) -> Any:
    once_differentiable = t.autograd.function.once_differentiable
    f = make(t, double, once_differentiable(lambda ctx, g: g * 2))
    x, v = leaf(t, 3.0), leaf(t, 1.0)
    (g,) = t.autograd.grad(f.apply(x), x, v, create_graph=True)
    g.sum().backward()


@script
def error_in_forward(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        raise LookupError("mine")

    try:
        make(t, forward).apply(leaf(t, 1.0))
    except LookupError:
        assert t.is_grad_enabled()
        raise


@script
def error_in_backward(t: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        raise LookupError("mine")

    x = leaf(t, 1.0)
    y = make(t, double, backward).apply(x)
    try:
        (y * x).sum().backward(retain_graph=True)
    except LookupError as error:
        assert t.is_grad_enabled()
        return str(error), x.grad


@script
def recording_in_backward(t: Any) -> Any:
    seen: list[Any] = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append((t.is_grad_enabled(), g.requires_grad))
        return g * 2

    x, v = leaf(t, 1.0), leaf(t, 1.0)
    y = make(t, double, backward).apply(x)
    t.autograd.grad(y, x, v, retain_graph=True)
    (g,) = t.autograd.grad(y, x, v, create_graph=True)
    return seen, t.is_grad_enabled(), g.requires_grad


@script
def order_of_nodes(t: Any) -> Any:
    order: list[str] = []

    def named(name: str) -> Any:
        return make(t, double, lambda ctx, g: (order.append(name), g * 2)[1])

    x = leaf(t, 1.0)
    a, b = named("a").apply(x), named("b").apply(x)
    c = named("c").apply(a + b)
    (c + named("d").apply(a) * b).sum().backward()
    return order, x.grad


@script
def hooks_of_a_custom_node(t: Any) -> Any:
    order: list[Any] = []
    x = leaf(t, 1.0, 2.0)
    y = make(t, double, lambda ctx, g: (order.append(("backward", g)), g * 2)[1]).apply(x)
    y.register_hook(lambda g: order.append(("tensor", g)))
    y.register_hook(lambda g: g * 3)
    y.retain_grad()
    y.sum().backward()
    return order, x.grad, y.grad


@script
def node_hooks_of_a_custom_node(t: Any) -> Any:
    order: list[Any] = []
    x = leaf(t, 1.0, 2.0)

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        order.append(("backward", g, h))
        return g * 2 + h

    y, z = make(t, lambda ctx, a: (a * 2, a * 3), backward).apply(x)
    fn = y.grad_fn
    fn.register_prehook(lambda go: (order.append(("pre", go)), (go[0] * 3, go[1]))[1])
    fn.register_hook(lambda gi, go: order.append(("post", gi, go)))
    removed = fn.register_hook(lambda gi, go: (gi[0] * 100,))
    fn.register_hook(lambda gi, go: (gi[0] * 10,))
    removed.remove()
    z.register_hook(lambda g: order.append(("tensor", g)))
    y.sum().backward()
    return order, x.grad


@script
def node_hook_of_the_wrong_length(t: Any) -> Any:
    y = make(t, double, lambda ctx, g: g).apply(leaf(t, 1.0))
    y.grad_fn.register_hook(lambda gi, go: (gi[0], gi[0]))
    y.sum().backward()


@script
def saved_tensors_hooks(t: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, a: Any, b: Any) -> Any:
        y = a * b
        ctx.save_for_backward(a, None, b, y)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        a, _, b, y = ctx.saved_tensors
        return g * b, g * a + y * 0

    def pack(tensor: Any) -> Any:
        seen.append(("pack", tensor.detach().clone(), tensor.requires_grad))
        return len(seen) - 1

    def unpack(place: Any) -> Any:
        seen.append(("unpack", place))
        return seen[place][1]

    x, w = leaf(t, 2.0), leaf(t, 3.0)
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = make(t, forward, backward).apply(x, w * 2)
    y.sum().backward()
    return y, x.grad, w.grad, seen


@script
def raw_saved_tensors(t: Any) -> Any:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.save_for_backward(a)
        return a * a

    x = leaf(t, 2.0)
    y = make(t, forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0]).apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda a: a.tolist(), lambda a: t.tensor(a, dtype=t.float64) * 10)
    y.sum().backward()
    fn = y.grad_fn
    try:
        fn._raw_saved_tensors  # noqa: B018
    except RuntimeError as error:
        return type(raw).__name__, x.grad, str(error)


def once_only(name: str, script_: Callable[[Any, Any], Any]) -> None:
    def run(t: Any) -> Any:
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a, None)
            return a * a

        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

        f = make(t, forward, backward, clear_saved_tensors_on_access=True)
        return script_(t, f.apply(leaf(t, 2.0)))

    SCRIPTS[f"cleared_on_access_{name}"] = run


once_only("once", lambda t, y: y.sum().backward())
once_only("twice", lambda t, y: (y.sum().backward(retain_graph=True), y.sum().backward()))
once_only("outside", lambda t, y: (len(y.grad_fn.saved_tensors), y.grad_fn.saved_tensors))


@script
def backward_inside_backward(t: Any) -> Any:
    x, w = leaf(t, 2.0), leaf(t, 3.0)

    def forward(ctx: Any, a: Any) -> Any:
        with t.enable_grad():
            ctx.a = a.detach().requires_grad_()
            ctx.y = ctx.a * w
        return ctx.y.detach()

    def backward(ctx: Any, g: Any) -> Any:
        with t.enable_grad():
            ctx.y.backward(g)
        return ctx.a.grad

    y = make(t, forward, backward).apply(x)
    (y * x).sum().backward()
    return y, x.grad, w.grad


@script
def deep(t: Any) -> Any:
    count = [0]

    class Deep(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with t.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            count[0] += 1
            if ctx.x < 0:
                return g
            with t.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return g

    v = t.tensor(2000.0, requires_grad=True)
    Deep.apply(v).sum().backward()
    w = t.tensor(200.0, requires_grad=True)
    Deep.apply(w).sum().backward()
    return v.grad, w.grad, count


@script
def error_in_the_depth(t: Any) -> Any:
    class Deep(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            ctx.n = n
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.n == 0:
                raise LookupError("deep down")
            with t.enable_grad():
                Deep.apply(leaf(t, 1.0), ctx.n - 1).sum().backward()
            return g, None

    Deep.apply(leaf(t, 1.0), 150).sum().backward()


@script
def accumulated_from_many(t: Any) -> Any:
    f = make(t, lambda ctx, *a: sum(a), lambda ctx, g: tuple(g * k for k in range(20)))
    x = leaf(t, 1.0, 2.0)
    f.apply(*[x] * 20).sum().backward()
    g = make(t, lambda ctx, a: tuple(a * k for k in range(20)), lambda ctx, *g: sum(g))
    outputs = g.apply(x)
    return x.grad, t.autograd.grad(sum(o.sum() * k for k, o in enumerate(outputs)), x)


@script
def gradients_of_outputs_without_one(t: Any) -> Any:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any, zeros: Any, constant_too: Any) -> Any:
        ctx.set_materialize_grads(zeros)
        ctx._materialize_non_diff_grads = constant_too
        constant = x.clone()
        ctx.mark_non_differentiable(constant)
        return x * 2, constant, x * 3, x.long()

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[0], None, None

    f = make(t, forward, backward)
    for zeros in (True, False):
        for constant_too in (True, False):
            f.apply(leaf(t, 1.0), zeros, constant_too)[0].backward()
    return (*seen, result_or_error(lambda: f.apply(leaf(t, 1.0), True, 3)))


@script
def object_of_a_class_returned_as_it_is(t: Any) -> Any:
    class Known(t.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_function__(cls, f: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(f, _, args, kwargs)  # type: ignore[misc]

    f = make(t, lambda ctx, x: x, lambda ctx, g: g * 2)
    x = Known(t.ones(2, dtype=t.float64))
    y = f.apply(x)
    z = f.apply(t.nn.Parameter(t.ones(1)))
    return type(y).__name__, y is x, y.tolist(), type(z).__name__


@script
def no_gradient_for_a_slice_written_to(t: Any) -> Any:
    def forward(ctx: Any, x: Any, some: bool) -> Any:
        ctx.some = some
        ctx.mark_dirty(x)
        return x.mul_(2)

    f = make(t, forward, lambda ctx, g: (g * 2 if ctx.some else None, None))
    grads = []
    for some in (False, True):
        x = leaf(t, 1.0, 2.0, 3.0)
        y = x * 1
        z = y * 3
        f.apply(y[1:], some)
        y.sum().backward(retain_graph=True)
        grads.append(x.grad if x.grad is None else x.grad.clone())
        (y.sum() + z.sum()).backward()
        grads.append(x.grad)
    return grads


@script
def gradient_that_nobody_else_has_is_taken(t: Any) -> Any:
    """By the last of the leaves that it goes to; the values of all stay their own."""
    addresses: list[int] = []

    def backward(ctx: Any, g: Any) -> Any:
        made = g * 2 if ctx.kept is None else ctx.kept
        addresses.append(made.data_ptr())
        return made, made, None

    def forward(ctx: Any, x: Any, y: Any, kept: Any) -> Any:
        ctx.kept = kept
        return x + y

    f, said = make(t, forward, backward), []
    for kept in (None, t.ones(2, dtype=t.float64)):
        x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
        z = f.apply(x, y, kept)
        z.sum().backward(retain_graph=True)
        taken = [leaf.grad.data_ptr() == addresses[-1] for leaf in (x, y)]
        said.append((taken, x.grad.data_ptr() == y.grad.data_ptr()))
        z.sum().backward()
        said.append((x.grad.tolist(), y.grad.tolist(), kept))
    return said


@script
def gradient_that_requires_grad_itself(t: Any) -> Any:
    f = make(t, double, lambda ctx, g: g.clone().requires_grad_())
    x = leaf(t, 1.0, 2.0)
    f.apply(x).sum().backward()
    return x.grad, x.grad.requires_grad, x.grad.is_leaf


@script
def custom_in_a_hook(t: Any) -> Any:
    f = make(t, double, lambda ctx, g: g * 2)
    x, w = leaf(t, 1.0), leaf(t, 5.0)
    y = x * 3

    def hook(g: Any) -> Any:
        with t.enable_grad():
            f.apply(w * 1).sum().backward()
        return g * 2

    y.register_hook(hook)
    y.sum().backward()
    return x.grad, w.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_same_in_both(name: str) -> None:
    both(SCRIPTS[name])
