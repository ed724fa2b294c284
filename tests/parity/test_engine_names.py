"""What the engine tells of itself by the names of PyTorch's C++ part, in both libraries."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest
from oracle import Scripts, both, leaf, result_or_error, torch

import pygrad

scripts = Scripts()


def queue(t: Any, callback: Any) -> None:
    """What libraries call: `callback` at the end of the backward that is running."""
    t.autograd.Variable._execution_engine.queue_callback(callback)


def state(t: Any) -> tuple[Any, ...]:
    c = t._C
    return t.is_grad_enabled(), c._current_graph_task_id() >= 0, c._current_autograd_node() is None


# ------------------------------------------------------------------ callbacks at the end


@scripts.add
def callbacks_run_at_the_end_in_their_order(t: Any) -> Any:
    x, seen = leaf(t, 1.0, 2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append("accumulated"))
    y = (x * 2).exp()
    y.register_hook(lambda g: queue(t, lambda: seen.append(("first", *state(t), x.grad.tolist()))))
    y.register_hook(lambda g: queue(t, lambda: seen.append("second")))
    y.sum().backward()
    return seen


@scripts.add
def callbacks_queue_callbacks(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []

    def again(n: int) -> None:
        seen.append(n)
        if n < 5:
            queue(t, lambda: again(n + 1))

    y = x * 2
    y.register_hook(lambda g: queue(t, lambda: again(0)))
    y.backward()
    y = x * 2
    y.register_hook(lambda g: again(9))
    y.backward()
    return seen


@scripts.add
def callbacks_of_grad_come_before_its_results(t: Any) -> Any:
    x, seen = leaf(t, 3.0), []
    y = x * x
    y.register_hook(lambda g: queue(t, lambda: seen.append(state(t))))
    for create in (False, True):
        seen.append(t.autograd.grad(y, x, create_graph=create, retain_graph=True)[0].item())
    with t.no_grad():
        t.autograd.grad(y, x)
    return seen


@scripts.add
def error_in_a_callback_ends_backward(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    error = KeyError("stop")

    def fail() -> None:
        raise error

    def backward() -> Any:
        y = x * 2
        y.register_hook(lambda g: queue(t, lambda: seen.append("before")))
        y.register_hook(lambda g: queue(t, fail))
        y.register_hook(lambda g: queue(t, lambda: seen.append("after")))
        try:
            y.backward()
        except KeyError as caught:
            return caught is error
        return "no error"

    return backward(), backward(), seen, x.grad, state(t)


@scripts.add
def callbacks_go_with_a_backward_that_fails(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    y = x * 2
    y.register_hook(lambda g: queue(t, lambda: seen.append("callback")))

    def fail(g: Any) -> None:
        raise ValueError("no")

    x.register_hook(fail)
    return result_or_error(y.backward), seen, result_or_error((leaf(t, 1.0) * 2).backward), seen


def nest(t: Any, depths: list[int]) -> Any:
    """A backward inside of one, with callbacks at some of the two depths."""
    seen: list[str] = []

    class Inner(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if 1 in depths:
                queue(t, lambda: seen.append("inner"))
            return g

    class Outer(t.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if 0 in depths:
                queue(t, lambda: seen.append("outer"))
            with t.enable_grad():
                inner = leaf(t, 1.0)
                Inner.apply(inner * 2).sum().backward()
            seen.append("inner is done")
            return g * inner.grad

    x = leaf(t, 3.0)
    Outer.apply(x * 5).sum().backward()
    return seen, x.grad


for depths in ([0], [1], [0, 1]):
    scripts[f"callbacks_at_depths_{depths}"] = lambda t, depths=depths: nest(t, depths)  # type: ignore[misc]


@scripts.add
def callback_that_walks_another_graph(t: Any) -> Any:
    x, other, seen = leaf(t, 1.0), leaf(t, 2.0), []

    def walk() -> None:
        with t.enable_grad():
            y = other * other
            y.register_hook(lambda g: queue(t, lambda: seen.append("of the inner one")))
        y.backward()
        seen.append(other.grad.item())

    y = x * 2
    y.register_hook(lambda g: queue(t, walk))
    y.backward()
    return seen, x.grad


@scripts.add
def callbacks_of_many_backwards(t: Any) -> Any:
    seen: list[Any] = []
    for i in range(40):
        y = leaf(t, 1.0) * 2
        y.register_hook(lambda g, i=i: queue(t, lambda: seen.append(i)))
        y.backward()
    return seen


@scripts.add
def callbacks_are_refused_outside_of_backward(t: Any) -> Any:
    return result_or_error(lambda: queue(t, lambda: None))


@scripts.add
def callback_that_cannot_be_called(t: Any) -> Any:
    y = leaf(t, 1.0) * 2
    y.register_hook(lambda g: queue(t, 5))
    return result_or_error(y.backward)


# ------------------------------------------------------------------ the backward that is running


@scripts.add
def numbers_of_backwards(t: Any) -> Any:
    ids: list[int] = []
    y = leaf(t, 1.0).exp()
    y.register_hook(lambda g: ids.append(t._C._current_graph_task_id()))
    for _ in range(3):
        y.backward(retain_graph=True)
    return [i - ids[0] for i in ids], t._C._current_graph_task_id()


@scripts.add
def node_that_runs(t: Any) -> Any:
    names: list[str] = []
    x = leaf(t, 1.0)
    y = (x * 2).sin()

    def note(*_: Any) -> None:
        names.append(t._C._current_autograd_node().name())

    for each in (x, y):
        each.register_hook(note)
    y.grad_fn.next_functions[0][0].register_prehook(note)
    y.backward()
    return names, t._C._current_autograd_node()


@scripts.add
def nodes_in_the_order_in_which_they_run(t: Any) -> Any:
    found: list[Any] = []

    def order(g: Any) -> None:
        nodes = t._C._current_graph_task_execution_order()
        found.append([node.name().rpartition(":")[2] for node in nodes])

    def graph() -> Any:
        a = leaf(t, 1.0)
        b = a.exp()
        c = (b * a).sin()
        d = a.cos()
        e = t.stack([c, d, b.tan()]).sum()
        e.register_hook(order)
        return a, b, c, d, e

    with t.autograd.set_multithreading_enabled(False):
        *_, e = graph()
        e.backward()
        for k in range(4):
            made = graph()
            t.autograd.grad(made[4], made[k])
            made = graph()
            made[4].backward(inputs=[made[k]])
        _, _, c, d, e = graph()
        e.grad_fn._set_sequence_nr(0)
        d.grad_fn._set_sequence_nr(c.grad_fn._sequence_nr() - 1)
        e.backward()
    return found


@scripts.add
def order_is_refused_outside_and_with_threads(t: Any) -> Any:
    found: list[Any] = []
    y = leaf(t, 1.0).exp()
    y.register_hook(
        lambda g: found.append(result_or_error(t._C._current_graph_task_execution_order))
    )
    y.backward()
    return found, result_or_error(t._C._current_graph_task_execution_order)


@scripts.add
def nodes_that_will_run(t: Any) -> Any:
    found: list[Any] = []
    a, b = leaf(t, 1.0), leaf(t, 2.0)
    c = a * b
    d = c.exp()
    e = c.sin()
    (d + e).backward(retain_graph=True)
    nodes = [c.grad_fn, d.grad_fn, e.grad_fn, c.grad_fn.next_functions[0][0]]
    d.register_hook(lambda g: found.append([t._C._will_engine_execute_node(n) for n in nodes]))
    (d + 1).backward(retain_graph=True)
    (d + 1).backward(inputs=[b], retain_graph=True)
    t.autograd.grad(d + 1, c, retain_graph=True)
    outside = result_or_error(lambda: t._C._will_engine_execute_node(nodes[0]))
    return found, outside, result_or_error(lambda: t._C._will_engine_execute_node(1))


@scripts.add
def whether_the_graph_is_kept(t: Any) -> Any:
    keeps = t._C._autograd._get_current_graph_task_keep_graph
    found = [keeps()]
    y = leaf(t, 1.0).exp()
    y.register_hook(lambda g: found.append(keeps()))
    y.backward(retain_graph=True)
    y.backward()
    return found


@scripts.add
def modes_by_their_inner_names(t: Any) -> Any:
    c, found = t._C, []
    c._set_grad_enabled(False)
    found += [c.is_grad_enabled(), t.is_grad_enabled()]
    c._set_grad_enabled(True)
    found.append(c.is_grad_enabled())
    with t.autograd.set_multithreading_enabled(False):
        found.append(t.autograd.is_multithreading_enabled())
    found.append(t.autograd.is_multithreading_enabled())
    with t.inference_mode():
        found.append(t.autograd.is_multithreading_enabled())
    return found, c._get_tracing_state(), c._log_api_usage_once("here"), c.has_lapack


@scripts.add
def engine_by_its_inner_name(t: Any) -> Any:
    engine = t.autograd.Variable._execution_engine
    x = leaf(t, 1.0, 2.0)
    ones = t.ones(2, dtype=t.float64)
    found = engine.run_backward((x * x,), (ones,), False, False, (x,), allow_unreachable=True)
    engine.run_backward(
        (x * 3,), (ones,), False, False, (), allow_unreachable=True, accumulate_grad=True
    )
    twice = t.autograd.graph._engine_run_backward(
        (x * 5,), (ones,), False, False, (x,), allow_unreachable=True
    )
    return found, x.grad, twice, engine.is_checkpoint_valid(), type(engine).__name__


# ------------------------------------------------------------------ classes of nodes


@scripts.add
def classes_of_nodes_by_name(t: Any) -> Any:
    functions, node = t._C._functions, t.autograd.graph.Node
    never_seen = functions.AddmvBackward0
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = t.addmv(x, t.ones(2, 2, dtype=t.float64), x)
    leaf_node = y.grad_fn.next_functions[0][0]
    return (
        type(y.grad_fn) is functions.MulBackward0,
        type(z.grad_fn) is never_seen,
        type(leaf_node) is functions.AccumulateGrad,
        isinstance(y.grad_fn, functions.AddBackward0),
        [k.__name__ for k in type(y.grad_fn).mro()[:1]],
        [issubclass(k, node) for k in (functions.AccumulateGrad, functions.DelayedError, int)],
        issubclass(t.autograd.function.BackwardCFunction, node),
        [isinstance(each, node) for each in (y.grad_fn, leaf_node, node, None, 1)],
        node in type(y.grad_fn).mro(),
        issubclass(node, node),
        result_or_error(lambda: issubclass(1, node)),  # type: ignore[arg-type]
        result_or_error(lambda: functions.nothing),
        result_or_error(functions.MulBackward0),
        result_or_error(node),
        hasattr(y.grad_fn, "_saved_self"),
        hasattr(t.zeros(2, requires_grad=True).exp().grad_fn, "_saved_self"),
    )


@scripts.add
def subclass_of_node(t: Any) -> Any:
    class Mine(t.autograd.graph.Node):  # type: ignore[misc,name-defined]
        pass

    y = leaf(t, 1.0) * 2
    return (
        isinstance(y.grad_fn, Mine),
        issubclass(Mine, t.autograd.graph.Node),
        result_or_error(Mine),
    )


@scripts.add
def delayed_errors(t: Any) -> Any:
    make = t._C._functions.DelayedError
    x, constant = leaf(t, 1.0, 2.0), t.ones(2)
    y = make("Boom!", 1)(x)
    z, w, none = make("é" * 300, 3)(x, constant, None)
    both_of_them = (y + x).sum()
    return (
        y,
        (type(y.grad_fn).__name__, y.grad_fn.name(), y.is_leaf),
        result_or_error(y.sum().backward),
        result_or_error(y.sum().backward),
        result_or_error(z.sum().backward),
        t.autograd.grad(both_of_them, y),
        result_or_error(lambda: t.autograd.grad((y + x).sum(), x)),
        y.grad_fn.next_functions[0][1],
        none,
        w,
        result_or_error(lambda: make("a")),
        result_or_error(lambda: make("a", 1)()),
        result_or_error(lambda: make("a", 1)(1)),
        make("a", 1).name(),
        x.grad,
    )


@scripts.add
def undefined_gradients(t: Any) -> Any:
    make, x = t._C._functions.UndefinedGrad, leaf(t, 1.0, 2.0)
    y = make()(x)
    (y * 2).sum().backward()
    name = type(y.grad_fn).__name__
    return (
        y,
        name,
        x.grad,
        result_or_error(lambda: make(1)),
        result_or_error(lambda: make()(x, x)),
        make().name(),
    )


# ------------------------------------------------------------------ saved tensors, versions


@scripts.add
def saved_tensors_are_not_made(t: Any) -> Any:
    y = leaf(t, 1.0).exp()
    kind = t.autograd.SavedTensor
    return (
        isinstance(y.grad_fn._raw_saved_result, kind),
        kind is t._C._autograd.SavedTensor,
        result_or_error(kind),
    )


@scripts.add
def hooks_that_are_disabled(t: Any) -> Any:
    inner, graph, found = t._C._autograd, t.autograd.graph, []

    def now() -> None:
        found.append(inner._saved_tensors_hooks_is_enabled())
        found.append(inner._saved_tensors_hooks_get_disabled_error_message())

    now()
    with graph.disable_saved_tensors_hooks("outer"):
        now()
        with graph.disable_saved_tensors_hooks("inner"):
            now()
        now()
    now()
    inner._saved_tensors_hooks_disable("by hand")
    found.append(result_or_error(graph.save_on_cpu().__enter__))
    inner._saved_tensors_hooks_enable()
    now()
    inner._push_saved_tensors_default_hooks(lambda x: x * 2, lambda x: x)
    y = leaf(t, 1.0) ** 2
    inner._pop_saved_tensors_default_hooks()
    y.backward()
    return found, y.grad_fn.next_functions[0][0].variable.grad


@scripts.add
def numbers_of_nodes(t: Any) -> Any:
    x = leaf(t, 1.0)
    first = t.autograd._get_sequence_nr()
    y = x * 2
    return y.grad_fn._sequence_nr() - first, t.autograd._get_sequence_nr() - first


@scripts.add
def versions_are_set(t: Any) -> Any:
    put, keep = (
        t._C._autograd._unsafe_set_version_counter,
        t.autograd._unsafe_preserve_version_counter,
    )
    x, y = t.ones(3), t.ones(2)
    view = x[1:]
    found: list[Any] = []
    put((view, y), (7, 2))
    found += [x._version, view._version, y._version]
    with keep(x):
        x.add_(1)
        found.append(x._version)
    found.append(view._version)
    with keep((x, y)):
        x.add_(1)
        y.add_(1)
    found += [x._version, y._version, x, y]
    with t.inference_mode():
        z = t.ones(1)
    found.append(result_or_error(lambda: put((x,), (-3,))))
    found.append(result_or_error(lambda: put((x, x), (3,))))
    found.append(result_or_error(lambda: put((z,), (3,))))
    found.append(result_or_error(lambda: keep(3)))
    found.append(result_or_error(lambda: keep(z)))
    found.append(x._version)
    return found


@scripts.add
def write_whose_version_is_kept_is_not_seen(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    a = x * 1
    y = a * a
    with t.autograd._unsafe_preserve_version_counter(a), t.no_grad():
        a.mul_(1)
    y.sum().backward()
    return x.grad


# ------------------------------------------------------------------ attributes and `new`


@pytest.mark.parametrize(
    "name",
    "grad data requires_grad _grad_fn grad_fn is_leaf shape dtype _version _base retains_grad "
    "_backward_hooks device T mT H output_nr itemsize nbytes layout ndim _cdata name "
    "nothing".split(),
)
def test_attribute_is_deleted(name: str) -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 1.0, 2.0)
        x.sum().backward()
        return result_or_error(lambda: delattr(x, name)), x.grad

    both(script)


@scripts.add
def history_is_dropped(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    view = (x * 2)[0:1]
    wrong = result_or_error(lambda: setattr(y, "_grad_fn", 3))
    y._grad_fn = None
    seen = result_or_error(lambda: setattr(view, "_grad_fn", None))
    return wrong, y, y.requires_grad, seen, y.name


NEW: dict[str, Any] = {
    "nothing": lambda t, new, x: new(),
    "sizes": lambda t, new, x: new(2, 3).shape,
    "size": lambda t, new, x: new(x.shape).shape,
    "sizes of a size": lambda t, new, x: new(*x.shape).shape,
    "size by name": lambda t, new, x: new(size=(2, 3)).shape,
    "a tensor as a size": lambda t, new, x: new(2, t.tensor(3)).shape,
    "a number of numpy": lambda t, new, x: new(t.ones(2).numpy().size).shape,
    "a list": lambda t, new, x: new([1, 2]),
    "a tuple": lambda t, new, x: new((2, 3)),
    "data by name": lambda t, new, x: new(data=[1, 2]),
    "nested lists": lambda t, new, x: new([[1.5, 2]]),
    "a range": lambda t, new, x: new(range(3)),
    "an array": lambda t, new, x: new(t.ones(2, dtype=t.int64).numpy()),
    "a tensor": lambda t, new, x: new(x),
    "a storage": lambda t, new, x: new(x.storage()),
    "a tensor by name": lambda t, new, x: new(other=x),
    "another dtype": lambda t, new, x: new(t.ones(2, dtype=t.int16)),
    "the cpu": lambda t, new, x: new(2, device="cpu").shape,
    "another device": lambda t, new, x: new(2, device="cuda"),
    "a float": lambda t, new, x: new(1.5),
    "a bool": lambda t, new, x: new(True),
    "a text": lambda t, new, x: new("a"),
    "None": lambda t, new, x: new(None),
    "a dict": lambda t, new, x: new({}),
    "a text as a size": lambda t, new, x: new(2, "a"),
    "a float as a size": lambda t, new, x: new(3, 2.5),
    "two lists": lambda t, new, x: new([1], [2]),
    "two tensors": lambda t, new, x: new(x, x),
    "a dtype": lambda t, new, x: new(2, dtype=t.float32),
    "a negative size": lambda t, new, x: new(-1),
}


@pytest.mark.parametrize("kind", ["float64", "int64", "bool"])
@pytest.mark.parametrize("how", NEW)
def test_new(how: str, kind: str) -> None:
    def script(t: Any) -> Any:
        x = t.ones(2, 3, dtype=getattr(t, kind))
        return NEW[how](t, x.new, x)

    both(script)


@pytest.mark.parametrize("name", ["Tensor", "FloatTensor", "LongTensor"])
@pytest.mark.parametrize("how", NEW)
def test_legacy_constructors(how: str, name: str) -> None:
    both(lambda t: NEW[how](t, getattr(t, name), t.ones(2, 3, dtype=t.float64)))


@scripts.add
def new_of_a_tensor_is_an_alias(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    found = []
    for y in (x.new(x), t.Tensor(x), t.DoubleTensor(x)):
        found += [y.requires_grad, y.data_ptr() == x.data_ptr(), y is x, y._is_view()]
        y.sum().backward()
    parameter = t.nn.Parameter(t.ones(2))
    made = parameter.new(3).zero_(), parameter.new([1.0])
    return found, x.grad, made, type(made[0]) is t.Tensor


# ------------------------------------------------------------------ tensors of the engine


@scripts.add
def weak_reference_expires_with_the_last_reference(t: Any) -> Any:
    x = t.ones(2)
    ref, other = t._C._WeakTensorRef(x), t._C._WeakTensorRef(x)
    seen = [ref.expired()]
    again = x
    del x
    seen.append(ref.expired())
    del again
    following = t.ones(2)  # in the place of the first
    return seen, ref.expired(), other.expired(), t._C._WeakTensorRef(following).expired()


@scripts.add
def weak_reference_knows_what_the_engine_has(t: Any) -> Any:
    c, seen = t._C, []
    base = t.ones(2)
    view, ref = base.view(1, 2), t._C._WeakTensorRef(base)
    base = None
    seen.append(ref.expired())
    view = view.detach()
    seen.append(ref.expired())
    x = leaf(t, 1.0, 2.0)
    x.sum().backward()
    ref = c._WeakTensorRef(x.grad)
    seen.append(ref.expired())
    x.grad = None
    seen.append(ref.expired())
    with t.autograd.forward_ad.dual_level():
        tangent = t.ones(2)
        ref, dual = c._WeakTensorRef(tangent), t.autograd.forward_ad.make_dual(view[0], tangent)
        del tangent
        seen.append(ref.expired())
        del dual
        seen.append(ref.expired())
    return seen


@scripts.add
def weak_reference_survives_an_object_with_attributes(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    x.sum().backward()
    x.grad.mark = ref = t._C._WeakTensorRef(x.grad)
    seen = [ref.expired(), hasattr(x.grad, "mark")]
    x.grad = None
    return seen, ref.expired()


@scripts.add
def cached_tensors_are_known_while_that_is_on(t: Any) -> Any:
    c, x, seen = t._C, t.ones(2), []

    def look() -> None:
        seen.append((c._is_cached_tensor(x), c._is_cached_tensor(x.view(2, 1))))

    def error_of(step: Any) -> str:
        try:
            step(x)
        except RuntimeError:
            return "refused"
        return ""

    steps = c._add_cached_tensor, c._add_cached_tensor, c._remove_cached_tensor
    for on in (False, True, False, True):
        c._set_cached_tensors_enabled(on)
        try:
            for step in (*steps, c._remove_cached_tensor, c._add_cached_tensor):
                seen.append(error_of(step))
                look()
        finally:
            c._set_cached_tensors_enabled(False)
    look()
    return seen


@scripts.add
def cached_gradient_is_kept_though_the_cache_has_it(t: Any) -> Any:
    cache: list[Any] = []
    adds: list[str] = []

    class Cached(t.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            cache.append(grad * 3)
            if adds:
                t._C._add_cached_tensor(cache[-1])
            return cache[-1]

    seen = []
    for kind in ("passed on", "cached"):
        adds += [kind] * (kind == "cached")
        t._C._set_cached_tensors_enabled(True)
        try:
            x = leaf(t, 1.0, 2.0)
            Cached.apply(x).sum().backward()
            same = x.grad.data_ptr() == cache[-1].data_ptr()
            seen.append((x.grad, same, x.grad is cache[-1]))
        finally:
            t._C._set_cached_tensors_enabled(False)
    return seen


@scripts.add
def hooks_of_a_tensor_are_shown_and_replaced(t: Any) -> Any:
    def times(by: float) -> Any:
        return lambda g: g * by

    seen: list[Any] = []
    first, second = times(3), times(5)
    for made in (lambda x: x, lambda x: x * 2):
        y = made(leaf(t, 1.0, 2.0))
        seen.append(y._backward_hooks)
        y.register_hook(first)
        y.register_hook(second)
        seen.append(list(y._backward_hooks.values()) == [first, second])
        seen.append(result_or_error(lambda y=y: delattr(y, "_backward_hooks")))
    x = leaf(t, 1.0, 2.0)
    x.register_hook(first)
    for hooks in (OrderedDict([(0, times(7))]), {}, {1: first, 2: second}, None):
        x._backward_hooks = hooks
        x.grad = None
        x.sum().backward()
        seen += [x.grad.clone(), len(x._backward_hooks or ())]
    constant, hooks = t.ones(2), OrderedDict()
    constant._backward_hooks = hooks
    constant._backward_hooks["one"] = first
    x._backward_hooks = hooks
    x._backward_hooks["other"] = second  # after it was set
    x.grad = None
    (x * constant).sum().backward()
    seen += [constant._backward_hooks is hooks, list(x._backward_hooks), x.grad]
    return seen, t.ones(2)._backward_hooks


@pytest.mark.parametrize("name", scripts)
def test_script(name: str) -> None:
    both(scripts[name])


def test_engine_keeps_nothing_of_callbacks() -> None:
    def one(fails: bool) -> None:
        x = leaf(pygrad, 1.0)
        y = x * 2

        def callback() -> None:
            assert not fails

        y.register_hook(lambda g: queue(pygrad, callback))
        y.register_hook(lambda g: queue(pygrad, callback))
        if fails:
            with pytest.raises(AssertionError):
                y.backward()
        else:
            y.backward()

    one(False)
    one(True)
    before = pygrad.pg_live_count(), len(pygrad._boundary.callbacks.objects)
    for fails in (False, True):
        one(fails)
    assert (pygrad.pg_live_count(), len(pygrad._boundary.callbacks.objects)) == before
    assert torch.__version__.startswith("2.13")
