"""The autograd side of a tensor: grad, hooks, detach, data, versions, views, layouts."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error, warnings_of

SCRIPTS = Scripts()
script = SCRIPTS.add


def put(tensor: Any, name: str, value: Any) -> Any:
    return result_or_error(lambda: setattr(tensor, name, value))


def plain_text(t: Any, value: Any) -> str:
    """A text without the library's name, and without what PyTorch says of its own sources."""
    return str(value).replace(t.__name__, "torch").split(" (Triggered")[0]


# ------------------------------------------------------------ grad


@script
def assigned_gradients(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), t.ones(2)
    g = t.ones(2, dtype=t.float64)
    x.grad = g
    first = x.grad is g
    (x * x).sum().backward()
    seen = [first, x.grad is g, g]
    x.grad = None
    seen.append(x.grad)
    y.grad = t.zeros(2)
    seen += [y.grad, y.requires_grad]
    x.grad = g
    del x.grad
    return [*seen, x.grad]


@script
def gradients_that_do_not_fit(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    n = t.arange(3)
    f = t.ones(2, dtype=t.float32, requires_grad=True)
    return [
        put(x, "grad", x),
        put(x, "grad", 3.0),
        put(x, "grad", "text"),
        put(x, "grad", [1.0, 2.0]),
        put(x, "grad", t.ones(3, dtype=t.float64)),
        put(x, "grad", t.ones(2, 1, dtype=t.float64)),
        put(x, "grad", t.ones((), dtype=t.float64)),
        put(x, "grad", t.ones(2)),
        put(x, "grad", t.ones(2, dtype=t.int64)),
        put(f, "grad", t.ones(2, dtype=t.float64)),
        put(n, "grad", t.ones(3)),
        put(n, "grad", t.arange(3)),
        x.grad,
        f.grad,
        n.grad,
    ]


@script
def gradient_with_history(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    x.grad = y * 2
    x.grad.sum().backward()
    return x.grad, y.grad, x.grad.requires_grad


@script
def gradient_of_an_inner_tensor(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x * 2
    seen = [warnings_of(lambda: y.grad), y.grad]
    y.grad = t.ones(1, dtype=t.float64)
    seen += [warnings_of(lambda: y.grad), y.grad]
    z = x * 2
    z.retain_grad()
    seen += [
        warnings_of(lambda: z.grad),
        warnings_of(lambda: t.ones(1).grad),
        warnings_of(lambda: x.grad),
    ]
    with t.no_grad():
        w = x * 2
    return [*seen, warnings_of(lambda: w.grad), warnings_of(lambda: y.detach().grad)]


@script
def gradient_of_a_view(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    v = x.view(2, 1)
    w = x.detach().view(2, 1).requires_grad_()
    (w * w).sum().backward()
    return warnings_of(lambda: v.grad), w.grad, w.is_leaf, x.grad


@script
def grad_dtype(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    seen = [
        str(x.grad_dtype),
        result_or_error(lambda: (x * 2).grad_dtype),
        str(t.arange(2).grad_dtype),
    ]
    seen.append(put(x * 2, "grad_dtype", t.float32))
    seen.append(put(t.ones(2), "grad_dtype", t.float64))
    seen.append(put(x, "grad_dtype", "float"))
    y = leaf(t, 1.0, 2.0)
    y.grad_dtype = t.float32
    (y * y).sum().backward()
    seen += [y.grad, put(y, "grad", t.ones(2, dtype=t.float64)), str(y.grad_dtype)]
    seen.append(put(y, "grad_dtype", t.float64))
    z = leaf(t, 1.0, 2.0)
    z.grad_dtype = None
    seen += [put(z, "grad", t.ones(2)), z.grad_dtype]
    return seen


# ------------------------------------------------------------ requires_grad, leaves


@script
def requires_grad(t: Any) -> Any:
    x = t.ones(2)
    seen = [x.requires_grad, x.requires_grad_() is x, x.requires_grad]
    x.requires_grad = False
    seen.append(x.requires_grad)
    seen.append(x.requires_grad_(requires_grad=True).requires_grad)
    y = x * 2
    seen += [
        put(y, "requires_grad", False),
        put(y, "requires_grad", True),
        result_or_error(lambda: y.requires_grad_(False)),
        result_or_error(lambda: t.arange(3).requires_grad_()),
        put(t.arange(3), "requires_grad", True),
        put(t.arange(3), "requires_grad", False),
        put(t.ones(2, dtype=t.bool), "requires_grad", True),
        put(x, "requires_grad", None),
        put(x, "requires_grad", 1),
        put(x, "requires_grad", t.ones(1)),
        result_or_error(lambda: x.requires_grad_("yes")),
        result_or_error(lambda: delattr(x, "requires_grad")),
        result_or_error(lambda: t.tensor([1, 2], requires_grad=True)),
        result_or_error(lambda: t.arange(3, requires_grad=True)),
        result_or_error(lambda: t.arange(3.0, requires_grad=True).requires_grad),
    ]
    return seen


@script
def read_only_attributes(t: Any) -> Any:
    x = leaf(t, 1.0)
    names = "is_leaf grad_fn _version _base output_nr retains_grad shape dtype device layout ndim"
    return [plain_text(t, put(x, name, None)) for name in names.split()]


@script
def leaves(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    with t.no_grad():
        n = x * 2
        m = n.requires_grad_()
    made = [
        t.rand(10, requires_grad=True).is_leaf,
        t.rand(10, requires_grad=True).double().is_leaf,
        t.rand(10).double().is_leaf,
        t.rand(10).double().requires_grad_().is_leaf,
        t.rand(10, requires_grad=True, dtype=t.float64).is_leaf,
    ]
    return made, [
        (v.is_leaf, v.requires_grad, v.output_nr, v.grad_fn is None)
        for v in (x, y, n, m, y.detach(), x.detach(), x.data, y.data, x.clone(), x.view(2, 1), x[0])
    ]


@script
def numbers_of_outputs(t: Any) -> Any:
    x = leaf(t, 3.0, 1.0, 2.0)
    return [
        [p.output_nr for p in x.unbind()],
        [p.output_nr for p in x.split([1, 2])],
        [p.output_nr for p in x.sort()],
        [p.output_nr for p in x.chunk(3)],
        [p.output_nr for p in t.linalg.qr(x.view(1, 3))],
        x.output_nr,
        x.exp().output_nr,
    ]


@script
def functions_of_a_tensor(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x * 2
    return [
        x.grad_fn,
        y.grad_fn is y.grad_fn,
        plain_text(t, type(y.grad_fn).__name__),
        y.grad_fn.name(),
        y.view(1).grad_fn.name(),
        y.grad_fn.next_functions[0][0].variable is x,
    ]


# ------------------------------------------------------------ retain_grad


@script
def retained_gradients(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    seen = [y.retains_grad, x.retains_grad, y.retain_grad(), y.retains_grad]
    y.retain_grad()
    x.retain_grad()
    seen.append(x.retains_grad)
    (y * y).sum().backward(retain_graph=True)
    seen.append(y.grad)
    (y * y).sum().backward()
    seen += [y.grad, x.grad, y.grad is y.grad, y.grad.requires_grad]
    seen.append(result_or_error(lambda: t.ones(1).retain_grad()))
    with t.no_grad():
        seen.append(result_or_error(lambda: (x * 2).retain_grad()))
    return seen


@script
def retained_gradient_of_a_higher_order(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = x * x
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    first = y.grad
    seen = [first, first.requires_grad]
    first.sum().backward()
    x.grad = None
    return [*seen, y.grad]


@script
def retained_gradient_of_a_tensor_written_in_place(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = x * 3
    y.retain_grad()
    y.mul_(5)
    seen = [y.retains_grad]
    (y * 2).sum().backward()
    seen += [y.grad, x.grad]
    z = leaf(t, 2.0) * 1
    v = z.view(1)
    v.retain_grad()
    z.mul_(4)
    (v * 3).sum().backward()
    return [*seen, v.retains_grad, v.grad]


@script
def retained_gradient_of_a_dead_tensor(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = x * 3
    y.retain_grad()
    z = (y * y).sum()
    del y
    gc.collect()
    z.backward()
    return x.grad


@script
def retain_grad_and_hooks(t: Any) -> Any:
    x = leaf(t, 2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return y.grad, x.grad


# ------------------------------------------------------------ hooks


@script
def hooks(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    seen: list[Any] = []
    first = x.register_hook(lambda g: seen.append(g.clone()))
    second = x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    seen.append(x.grad)
    first.remove()
    first.remove()
    (x * 3).sum().backward()
    seen.append(x.grad)
    with second:
        (x * 3).sum().backward()
    (x * 3).sum().backward()
    return *seen, x.grad, isinstance(second, t.utils.hooks.RemovableHandle)


@script
def hooks_that_return_what_they_must_not(t: Any) -> Any:
    def run(result: Any) -> Any:
        x = leaf(t, 1.0, 2.0)
        y = x * 3
        y.register_hook(lambda g: result)
        first = result_or_error(lambda: y.sum().backward())
        z = leaf(t, 1.0, 2.0)

        def hook(g: Any) -> Any:
            return result

        z.register_hook(hook)
        return first, result_or_error(lambda: (z * 3).sum().backward()), z.grad

    d = t.float64
    return [
        run(value)
        for value in (
            3,
            "text",
            [t.ones(2, dtype=d)],
            (t.ones(2, dtype=d),),
            t.ones(3, dtype=d),
            t.ones(2, 1, dtype=d),
            t.ones((), dtype=d),
            t.ones(2, dtype=t.float32),
            t.ones(2, dtype=t.int64),
            False,
        )
    ]


@script
def hooks_that_cannot_be(t: Any) -> Any:
    x = t.ones(2)
    y = leaf(t, 1.0)
    with t.no_grad():
        z = y * 2
    return [
        result_or_error(lambda: x.register_hook(print)),
        result_or_error(lambda: z.register_hook(print)),
        result_or_error(lambda: x.register_post_accumulate_grad_hook(print)),
        result_or_error(lambda: (y * 2).register_post_accumulate_grad_hook(print)),
        result_or_error(lambda: y.register_hook(None) and None),
        result_or_error(lambda: y.sum().backward()),
    ]


@script
def hooks_after_accumulation(t: Any) -> Any:
    x, y = leaf(t, 2.0), leaf(t, 3.0)
    order: list[Any] = []
    x.register_hook(lambda g: order.append("x"))
    x.register_post_accumulate_grad_hook(lambda p: order.append(("x post", p is x, p.grad.item())))
    handle = y.register_post_accumulate_grad_hook(lambda p: order.append("y post"))
    y.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None))
    (x * y).sum().backward()
    order += [x.grad, y.grad]
    handle.remove()
    (x * y).sum().backward()
    t.autograd.grad((x * y).sum(), [x, y])
    (x * y).sum().backward(inputs=[y])
    return order, x.grad


@script
def post_hook_that_returns_or_raises(t: Any) -> Any:
    x = leaf(t, 2.0)
    handle = x.register_post_accumulate_grad_hook(lambda p: t.ones(5))
    first = [result_or_error(lambda: (x * 2).sum().backward())]
    for result in (3, t.ones(1, dtype=t.float64), t.ones(3, dtype=t.float64)):
        handle.remove()
        handle = x.register_post_accumulate_grad_hook(lambda p, result=result: result)
        first.append(result_or_error(lambda: (x * 2).sum().backward()))
    y = leaf(t, 2.0)

    def bad(p: Any) -> None:
        raise ValueError("mine")

    y.register_post_accumulate_grad_hook(bad)
    return first, result_or_error(lambda: (y * 2).sum().backward()), y.grad


@script
def optimizer_in_the_backward(t: Any) -> Any:
    t.manual_seed(0)
    params = [t.nn.Parameter(t.ones(2)), t.nn.Parameter(t.ones(3) * 2)]
    optims = {p: t.optim.SGD([p], lr=0.1) for p in params}

    def step(p: Any) -> None:
        optims[p].step()
        optims[p].zero_grad()

    for p in params:
        p.register_post_accumulate_grad_hook(step)
    for _ in range(3):
        sum((p * p).sum() for p in params).backward()
    return params, [p.grad for p in params]


@script
def hook_while_a_graph_is_walked(t: Any) -> Any:
    x = leaf(t, 2.0)
    seen: list[Any] = []
    y = x * 2
    handles: list[Any] = []

    def once(g: Any) -> None:
        seen.append("once")
        handles[0].remove()
        y.register_hook(lambda g: seen.append("added"))

    handles.append(y.register_hook(once))
    y.register_hook(lambda g: seen.append("second"))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return seen


@script
def hook_on_a_tensor_that_dies(t: Any) -> Any:
    x = leaf(t, 2.0)
    seen: list[Any] = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    z = y * 3
    del y
    gc.collect()
    z.sum().backward()
    return seen


@script
def hooks_on_an_in_place_result(t: Any) -> Any:
    x = leaf(t, 2.0)
    order: list[Any] = []
    y = x.clone()
    y.register_hook(lambda g: order.append(("old", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: order.append(("new", g.item())))
    y.exp_()
    y.sum().backward()
    return order


@script
def hook_on_a_leaf_that_was_written_to(t: Any) -> Any:
    x = leaf(t, 2.0)
    order: list[Any] = []
    x.register_hook(lambda g: order.append(g.item()))
    with t.no_grad():
        x.mul_(3)
    (x * x).sum().backward()
    y = t.zeros(1, dtype=t.float64)
    y.requires_grad_()
    y.register_hook(lambda g: order.append("y"))
    y = y + 0
    y.mul_(x)
    y.sum().backward()
    return order


@script
def hook_keeps_what_the_gradient_was(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    kept: list[Any] = []
    y = x * 2
    y.register_hook(lambda g: kept.append(g))
    x.register_hook(lambda g: kept.append(g))
    (y * 3).sum().backward()
    x.grad.mul_(100)
    return kept


@script
def objects_freed(t: Any) -> Any:
    x = leaf(t, 1.0)

    class Hook:
        def __call__(self, g: Any) -> None:
            pass

    hook, other = Hook(), Hook()
    dead = weakref.ref(hook), weakref.ref(other)
    y = x * 2
    y.register_hook(hook)
    handle = x.register_hook(other)
    del hook, other, y
    gc.collect()
    (x * 1).sum()  # lets go of what died
    first = dead[0]() is None, dead[1]() is None
    handle.remove()
    return first, dead[1]() is None


# ------------------------------------------------------------ detach, data


@script
def detached(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    d = y.detach()
    d.add_(1)
    seen = [y, d, d.requires_grad, d.is_leaf, d._is_view(), d._base is None, y._version, d._version]
    e = x.detach()
    e.requires_grad_()
    (e * e).sum().backward()
    return [*seen, e.grad, x.grad, t.detach(y).requires_grad, e.data_ptr() == x.data_ptr()]


@script
def detached_in_place(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = y * 3
    seen = [y.detach_() is y, y.requires_grad, y.is_leaf, y.grad_fn]
    z.sum().backward()
    seen += [x.grad, y.grad, x.detach_().requires_grad]
    base = leaf(t, 1.0, 2.0) * 1
    view = base.view(2, 1)
    seen.append(result_or_error(lambda: view.detach_()))
    plain = t.ones(2)
    seen.append(result_or_error(lambda: plain.view(2, 1).detach_()))
    base.detach_()
    return [*seen, base.requires_grad, view.requires_grad, t.detach_(plain) is plain]


@script
def data(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * x
    x.data.mul_(10)
    seen = [x, x._version, x.data._version, x.data.requires_grad, x.data is x.data]
    y.sum().backward()
    x.data = t.tensor([5.0, 6.0, 7.0], dtype=t.float64)
    seen += [x.shape, x.requires_grad, x.is_leaf, x._version]
    (x * x).sum()
    v = x.data[0]
    v.fill_(1.0)
    return [*seen, x, v._version]


@script
def data_that_does_not_fit(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    n = t.arange(2)
    seen = [
        put(x, "data", 3.0),
        put(x, "data", None),
        put(x, "data", [1.0]),
        put(x, "data", t.arange(2)),
        put(x, "data", t.ones(2)),
        result_or_error(lambda: delattr(x, "data")),
    ]
    n.data = t.ones(3)
    return [*seen, n.dtype, n, x.dtype, x]


@script
def data_is_shared(t: Any) -> Any:
    x, source = t.zeros(3), t.ones(2, 2).t()
    x.data = source
    x[0, 0] = 7.0
    v = x.view(-1) if x.is_contiguous() else x.t()
    return source, x.stride(), v, x._is_view(), x._version, source._version


@script
def swapped_parameters(t: Any) -> Any:
    p = t.nn.Parameter(t.ones(2))
    (p * 2).sum().backward()
    p.data = p.data * 3
    (p * p).sum().backward()
    return p, p.grad, p.is_leaf


# ------------------------------------------------------------ versions, views


@script
def versions(t: Any) -> Any:
    x = t.ones(4)
    v = x.view(2, 2)
    seen = [x._version]
    x.add_(1)
    seen += [x._version, v._version]
    v[0].mul_(2)
    seen += [x._version, v._version]
    x[1] = 3.0
    seen.append(x._version)
    t.add(x, 1, out=x)
    seen.append(x._version)
    x.detach().zero_()
    seen.append(x._version)
    x.data.zero_()
    seen.append(x._version)
    y = x.clone()
    seen.append(y._version)
    x.copy_(y)
    x.fill_(0).resize_(4).requires_grad_()
    seen.append(x._version)
    with t.no_grad():
        x.add_(1)
    return [*seen, x._version]


@script
def bumped_versions(t: Any) -> Any:
    x, y = t.ones(2), t.ones(2)
    v = x[:1]
    t.autograd.graph.increment_version(v)
    t.autograd.graph.increment_version((x, y))
    t.autograd.graph.increment_version(iter([y]))
    return x._version, y._version, v._version


@script
def bases(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0, 3.0, 4.0)
    y = x * 1
    v = y.view(2, 2)
    w = v.t()
    u = w[0]
    d = y.detach()
    plain = t.ones(4)
    p = plain[1:]
    q = p[1:]
    return [
        x._base,
        y._base,
        v._base is y,
        w._base is y,
        u._base is y,
        d._base,
        d.view(2, 2)._base is d,
        p._base is plain,
        q._base is plain,
        y.expand(2, 4)._base is y,
        y.reshape(2, 2)._base is y,
        y.contiguous() is y,
        [each._is_view() for each in (x, y, v, w, u, d, p, q)],
        x.view(2, 2)._base is x,
    ]


@script
def in_place_on_leaves_and_views_of_leaves(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    v = x.view(2, 1)

    def add_into() -> Any:
        return t.add(t.ones(2), t.ones(2), out=x)

    def index() -> None:
        x[0] = 5.0

    return [
        result_or_error(lambda: x.add_(1)),
        result_or_error(lambda: v.add_(1)),
        result_or_error(lambda: x[0].zero_()),
        result_or_error(index),
        result_or_error(add_into),
        result_or_error(lambda: x.copy_(t.ones(2))),
        result_or_error(lambda: t.nn.functional.relu_(x)),
        result_or_error(lambda: x.expand(2, 2).mul_(2)),
        x,
    ]


# ------------------------------------------------------------ Tensor.backward, copies, text


@script
def copies(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    (x * x).sum().backward()
    y = copy.deepcopy(x)
    y.grad.mul_(2)
    z = copy.copy(x)
    return [
        y,
        y.grad,
        y.requires_grad,
        y.is_leaf,
        x.grad,
        z.requires_grad,
        result_or_error(lambda: copy.deepcopy(x * 2)).split(".")[0],
        pickle.loads(pickle.dumps(x)).requires_grad,
    ]


@script
def texts(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x.view(1).t() * 1
    z = x.clone()
    z[0] = 3.0
    return [
        plain_text(t, v)
        for v in (
            x,
            x * 2,
            x.view(1, 1),
            x.detach(),
            y,
            z,
            x.unbind()[0],
            t.nn.Parameter(t.ones(1)),
        )
    ]


@script
def variable(t: Any) -> Any:
    v = t.autograd.Variable
    x = t.ones(2)
    y = v(x, requires_grad=True)
    (y * y).sum().backward()
    frozen = v(t.ones(2))
    return [
        type(y) is t.Tensor,
        y.requires_grad,
        x.requires_grad,
        y.grad,
        y.data_ptr() == x.data_ptr(),
        isinstance(x, v),
        isinstance(3, v),
        frozen.requires_grad,
        v(leaf(t, 1.0)).requires_grad,
        result_or_error(lambda: v()),
        result_or_error(lambda: v(3.0)),
        result_or_error(lambda: v([1.0])),
        result_or_error(lambda: v(t.arange(2), requires_grad=True)),
        result_or_error(lambda: v(x, True, True)),
        result_or_error(lambda: t.autograd.variable([1.0])),
        t.autograd.Variable is t.autograd.variable.Variable,
    ]


# ------------------------------------------------------------ layouts


def shapes(t: Any) -> list[Any]:
    return [
        t.ones(2, 3),
        t.ones(2, 3).t(),
        t.ones(2, 6)[:, ::2],
        t.ones(2, 3, 4).permute(2, 0, 1),
        t.ones(1, 3).expand(2, 3),
        t.ones(2, 3, 4, 5).contiguous(memory_format=t.channels_last),
        t.ones(2, 1, 3)[:, :, 1:],
        t.ones(()),
        t.ones(0, 3).t(),
        t.ones(6).as_strided((2, 2), (3, 1)),
    ]


@script
def layouts_of_new_gradients(t: Any) -> Any:
    found = []
    for p in shapes(t):
        for create in (False, True):
            for make in (lambda x: x * x, lambda x: x.contiguous() * 2, lambda x: x + 0):
                q = p.detach().requires_grad_()
                make(q).sum().backward(create_graph=create)
                found.append(q.grad.stride() if q.numel() else 0)
                q.grad = None
    return found


@script
def layouts_of_gradients_added_to(t: Any) -> Any:
    found = []
    for p in shapes(t):
        for grad in (t.zeros(p.shape), t.zeros(p.shape[::-1]).permute(*reversed(range(p.ndim)))):
            for create in (False, True):
                q = p.detach().requires_grad_()
                q.grad = grad.clone(memory_format=t.preserve_format)
                first = q.grad
                (q * q).sum().backward(create_graph=create)
                strides = q.grad.stride() if q.numel() else 0
                found.append((strides, q.grad is first, q.grad.requires_grad))
                q.grad = None
    return found


@script
def a_gradient_that_the_caller_keeps(t: Any) -> Any:
    kept = t.ones(2, dtype=t.float64)
    y = leaf(t, 1.0, 2.0)
    y.backward(kept)
    return y.grad.data_ptr() == kept.data_ptr(), y.grad.requires_grad


@script
def accumulation_in_place_and_not(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    version = first._version
    (x * x).sum().backward()
    seen = [x.grad is first, first._version - version, first]
    (x * x).sum().backward(create_graph=True)
    seen += [x.grad is first, first, x.grad, x.grad.requires_grad]
    x.grad = None
    return seen


@script
def tensors_of_one_float(t: Any) -> Any:
    found = []
    for value in (3.14, -0.0, 1e300, 1e-300, math.inf, math.nan):
        for kind in (None, t.float32, t.float64, t.bool):
            x = t.tensor(value, dtype=kind)
            found += [x, str(x.dtype), x.requires_grad, x.shape]
    x = t.tensor(2.5, requires_grad=True)
    return [*found, x.is_leaf, x.requires_grad, 2**40 - x, 3 - x, 2.5 - x, True - x]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])
