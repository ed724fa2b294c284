"""The same scripts in both libraries: values, messages, the order of hooks."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error

SCRIPTS = Scripts()
script = SCRIPTS.add


@script
def order_of_hooks(t: Any) -> Any:
    order: list[str] = []
    x = leaf(t, 1.0, 2.0)
    a, b = x * 2, x.exp()
    c = a * b
    d = a + b
    e = c.sum() + d.sum()
    for name, tensor in zip("xabcde", (x, a, b, c, d, e), strict=True):
        tensor.register_hook(lambda g, name=name: order.append(name))
    x.register_post_accumulate_grad_hook(lambda p: order.append("post"))
    e.backward()
    return order


@script
def hooks_on_one_tensor_run_in_turn(t: Any) -> Any:
    x = leaf(t, 1.0)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g + 10)
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.item()))
    y.sum().backward()
    return seen, y.grad, x.grad


@script
def hook_of_a_tensor_written_in_place(t: Any) -> Any:
    x = leaf(t, 3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    y.sum().backward()
    return [s for pair in seen for s in pair], x.grad


@script
def views_and_writes(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    v = y.view(2, 2)
    w = v.t()[0]
    w.mul_(3)
    y[1:3].add_(v[0])
    (v * v).sum().backward()
    return y, v, w, x.grad, y.grad_fn.name(), v.grad_fn.name(), w.grad_fn.name()


@script
def write_to_a_detached_alias(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    y.detach().mul_(2)
    (y + 0).sum().backward()
    return y, y._version, x.grad


@script
def no_grad_view_then_write(t: Any) -> Any:
    y = leaf(t, 1.0, 2.0) * 1
    with t.no_grad():
        v = y[:1]
    v.mul_(2)
    return v


@script
def view_made_under_no_grad_of_a_leaf(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with t.no_grad():
        v = x[:1]
        v.mul_(3)
    return x, v, v.requires_grad, x._version


@script
def output_of_unbind_written(t: Any) -> Any:
    y = leaf(t, 1.0, 2.0) * 1
    y.unbind()[0].mul_(2)


@script
def write_to_an_expanded_tensor(t: Any) -> Any:
    t.ones(1, dtype=t.float64).expand(3).mul_(2)


@script
def overlapping_copy(t: Any) -> Any:
    x = t.arange(5.0)
    x[1:].copy_(x[:-1])
    return x


@script
def backward_twice(t: Any) -> Any:
    y = leaf(t, 1.0).exp().sum()
    y.backward()
    y.backward()


@script
def backward_twice_through_a_write_that_saved_nothing(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = t.zeros(3, dtype=t.float64)
    y[1:] = x
    first, second = y.sum(), y[1:].sum()
    first.backward(retain_graph=True)
    second.backward()
    second.backward(t.zeros((), dtype=t.float64))


@script
def gradient_by_a_view_that_was_not_recorded(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 1
    with t.no_grad():
        views = y.view(-1), x.view(2, 1), y[0]
    unused = [t.autograd.grad(y.sum(), v, allow_unused=True, retain_graph=True) for v in views]
    y.sum().backward(inputs=list(views), retain_graph=True)
    return unused, [v.grad for v in views], t.autograd.grad(y.sum(), views[0])


@script
def inputs_of_backward_have_their_own_nodes_run(t: Any) -> Any:
    seen = []

    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(("backward", g.tolist()))
            return g * 2

    x = leaf(t, 1.0, 2.0)
    y, z = Double.apply(x), x.exp()
    for made in (y, z):
        made.grad_fn.register_hook(lambda gi, go: seen.append([g.tolist() for g in gi]))
    (y * z).sum().backward(inputs=[y, z], retain_graph=True)
    seen.append([x.grad, y.grad, z.grad])
    t.autograd.grad((y * z).sum(), [y, z], retain_graph=True)
    z.sum().backward(inputs=[z])
    seen.append(z.grad)
    seen.append(result_or_error(lambda: z.sum().backward(inputs=[z])))
    return seen


@script
def writes_to_views_of_views_that_were_not_recorded(t: Any) -> Any:
    said = []
    for mode in (t.no_grad, t.inference_mode):
        y = t.ones(2, 3, requires_grad=True) * 1
        with mode():
            v = y.view(-1)
        said.append(result_or_error(lambda v=v: v.mul_(2)))
        said.append(result_or_error(lambda v=v: v[0:2].mul_(2)))
        w = v[0:2]
        said.append(result_or_error(lambda y=y, w=w: (y.mul_(2), w.grad_fn)))
        with mode():
            u = y.unbind(0)[0][0:2]
        said.append(result_or_error(lambda u=u: u.mul_(2)))
    return said


@script
def scans_of_a_number_give_the_number(t: Any) -> Any:
    found = []
    for scan in (t.prod, lambda x: t.cumprod(x, 0), lambda x: t.logcumsumexp(x, 0)):
        x = t.tensor(3.0, requires_grad=True)
        (g,) = t.autograd.grad(scan(x), x, create_graph=True)
        found += [g, g.requires_grad]
    return found


@script
def backward_of_a_vector(t: Any) -> Any:
    leaf(t, 1.0, 2.0).exp().backward()


@script
def backward_without_history(t: Any) -> Any:
    t.ones(1).backward()


@script
def gradient_of_the_wrong_shape(t: Any) -> Any:
    leaf(t, 1.0, 2.0).exp().backward(t.ones(3, dtype=t.float64))


@script
def gradient_of_the_wrong_dtype(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    x.exp().backward(t.ones(2))
    return x.grad


@script
def grad_of_an_integer(t: Any) -> Any:
    t.ones(2, dtype=t.int64, requires_grad=True)


@script
def unused_input(t: Any) -> Any:
    t.autograd.grad(leaf(t, 1.0).sum(), leaf(t, 2.0))


@script
def input_without_requires_grad(t: Any) -> Any:
    t.autograd.grad(leaf(t, 1.0).sum(), t.ones(1))


@script
def materialized(t: Any) -> Any:
    x, y = leaf(t, 1.0), leaf(t, 2.0, 3.0)
    return t.autograd.grad(x.sum(), [x, y], materialize_grads=True)


@script
def inputs_argument(t: Any) -> Any:
    x, y = leaf(t, 2.0), leaf(t, 3.0)
    z = x * y
    z.retain_grad()
    (z * x).sum().backward(inputs=[x, z])
    return x.grad, z.grad, y.grad is None


@script
def accumulation(t: Any) -> Any:
    x = leaf(t, 2.0)
    (x**2).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward()
    return first, x.grad, first is x.grad, x.grad.requires_grad


@script
def layouts_of_grad(t: Any) -> Any:
    found = []
    for p in (
        t.ones(2, 3).t(),
        t.ones(2, 6)[:, ::2],
        t.ones(2, 3, 4).permute(2, 0, 1),
        t.ones(1, 3).expand(2, 3),
    ):
        p = p.detach().requires_grad_(True)
        (p * p).sum().backward()
        found.append(p.grad.stride())
        (p * p).sum().backward()
        found.append(p.grad.stride())
    return found


@script
def third_derivative(t: Any) -> Any:
    x = leaf(t, 0.5, 1.5)
    y = (x.sin() * x.exp()).sum()
    results = []
    for _ in range(3):
        (g,) = t.autograd.grad(y, x, create_graph=True)
        results.append(g)
        y = (g * g).sum()
    return results


@script
def gradient_penalty(t: Any) -> Any:
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 1)).double()
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    (g,) = t.autograd.grad(net(x).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).sum().backward()
    return [p.grad for p in net.parameters()]


@script
def saved_tensors_of_nodes(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    a, b, c = x * x, x.exp(), x.sum(0)
    return a.grad_fn._saved_self, a.grad_fn._saved_other, b.grad_fn._saved_result, c.grad_fn.name()


@script
def saved_tensor_after_backward(t: Any) -> Any:
    y = leaf(t, 1.0).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@script
def next_functions(t: Any) -> Any:
    x, c = leaf(t, 1.0), t.ones(1, dtype=t.float64)
    y = x * c + x
    return [
        (n.name() if n is not None else None, k)
        for f in (y.grad_fn, y.grad_fn.next_functions[0][0])
        for n, k in f.next_functions
    ]


@script
def leaf_rules(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x * 2
    d = y.detach()
    with t.no_grad():
        n = x * 2
    z = t.zeros(1, dtype=t.float64)
    z.add_(x)
    return [(v.is_leaf, v.requires_grad, v.output_nr) for v in (x, y, d, n, z, x.data)]


@script
def requires_grad_off_inside(t: Any) -> Any:
    (leaf(t, 1.0) * 2).requires_grad_(False)


@script
def retain_grad_of_a_leaf_and_a_constant(t: Any) -> Any:
    leaf(t, 1.0).retain_grad()
    t.ones(1).retain_grad()


@script
def hook_that_changes_the_shape(t: Any) -> Any:
    y = leaf(t, 1.0, 2.0) * 2
    y.register_hook(lambda g: g[:1])
    y.sum().backward()


@script
def hook_that_returns_a_number(t: Any) -> Any:
    y = leaf(t, 1.0, 2.0) * 2
    y.register_hook(lambda g: 3)
    y.sum().backward()


@script
def post_hook_on_an_inner_tensor(t: Any) -> Any:
    (leaf(t, 1.0) * 2).register_post_accumulate_grad_hook(lambda p: None)


@script
def out_that_requires_grad(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    t.add(t.ones(2), t.ones(2), out=x)


@script
def numpy_of_a_tensor_that_requires_grad(t: Any) -> Any:
    t.ones(2, requires_grad=True).numpy()


@script
def item_assignment_by_mask(t: Any) -> Any:
    x = leaf(t, -1.0, 2.0, -3.0)
    y = x * 1
    y[y < 0] = 0.0
    (y * x).sum().backward()
    return y, x.grad


@script
def advanced_assignment_that_accumulates(t: Any) -> Any:
    x, v = leaf(t, 1.0, 2.0, 3.0), leaf(t, 10.0, 20.0)
    y = x * 1
    y[t.tensor([0, 2])] = v
    y.index_put_((t.tensor([1, 1]),), v, accumulate=True)
    (y * y).sum().backward()
    return y, x.grad, v.grad


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])
