"""Nodes, edges and their hooks: the same scripts in both libraries."""

from __future__ import annotations

import collections
import contextlib
import gc
import logging
from collections.abc import Callable
from typing import Any

import pytest
from graphs import name, result_or_message
from oracle import Scripts, both, leaf, torch

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add


# ------------------------------------------------------------------ nodes


@script
def what_a_node_is(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    n = x.exp().grad_fn
    acc = n.next_functions[0][0]
    node = t.autograd.graph.Node
    return (
        [type(n).__name__, n.name(), repr(n).partition(" at ")[0], type(n).__module__],
        [type(acc).__name__, acc.name(), repr(acc).partition(" at ")[0], acc.next_functions],
        [
            isinstance(n, node),
            isinstance(acc, node),
            isinstance(3, node),
            issubclass(type(n), node),
        ],
        acc.variable is x,
        acc._sequence_nr() == 2**64 - 1,
        n.requires_grad,
        result_or_message(lambda: type(n)()),
        result_or_message(lambda: n.nothing),
        result_or_message(lambda: setattr(n, "nothing", 1)),
        result_or_message(lambda: n.variable),
    )


@script
def identity_of_nodes(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x * x
    n = y.grad_fn
    return (
        n is y.grad_fn,
        n == y.grad_fn,
        hash(n) == hash(y.grad_fn),
        n.next_functions[0][0] is n.next_functions[1][0],
        n == (x * x).grad_fn,
        len({n, y.grad_fn, n.next_functions[0][0]}),
    )


@script
def order_of_sequence_numbers(t: Any) -> Any:
    x = leaf(t, 1.0)
    a, b = x.exp().grad_fn, x.sin().grad_fn
    step = b._sequence_nr() - a._sequence_nr()
    a._set_sequence_nr(1000)
    return step, a._sequence_nr()


@script
def metadata_lives_with_the_node(t: Any) -> Any:
    y = leaf(t, 1.0).exp()
    empty = dict(y.grad_fn.metadata)
    same = y.grad_fn.metadata is y.grad_fn.metadata
    y.grad_fn.metadata["key"] = [1]
    gc.collect()
    other = leaf(t, 1.0).exp()
    return empty, same, y.grad_fn.metadata, other.grad_fn.metadata


@script
def metadata_in_anomaly_mode(t: Any) -> Any:
    with t.autograd.set_detect_anomaly(True):
        x = leaf(t, 1.0)
        y = x.exp()
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return (
        sorted(y.grad_fn.metadata),
        "x.exp()" in y.grad_fn.metadata["traceback_"][-1],
        name(g.grad_fn.metadata["parent_"]),
    )


@script
def input_metadata(t: Any) -> Any:
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    var, _mean = t.var_mean(x)
    found = []
    for n in (x.exp().grad_fn, x.max(1).values.grad_fn, var.grad_fn, x.sum(1).float().grad_fn):
        found.append(
            [(m.shape, str(m.dtype), str(m.device), m.is_nested_tensor) for m in n._input_metadata]
        )
    acc = x.exp().grad_fn.next_functions[0][0]
    return found, acc._input_metadata[0].shape


@script
def calling_a_node(t: Any) -> Any:
    x, y = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    n, one = (x * y).grad_fn, t.ones(2, dtype=t.float64)
    return (
        n(one),
        n(None),
        x.exp().grad_fn(one),
        result_or_message(lambda: n(one, one)),
        result_or_message(lambda: n()),
        result_or_message(lambda: n(3)),
    )


# ------------------------------------------------------------------ hooks of nodes


def watch(t: Any, order: list[Any]) -> tuple[Any, Any, Any]:
    """x * z with a hook everywhere."""

    def hook(what: str) -> Callable[..., None]:
        def note(*args: Any) -> None:
            shown = [
                [None if g is None else g.tolist() for g in a]
                if isinstance(a, tuple)
                else a.tolist()
                for a in args
            ]
            order.append((what, [type(a).__name__ for a in args], shown, t.is_grad_enabled()))

        return note

    x, z = leaf(t, 1.0, 2.0), leaf(t, 5.0)
    y = x * z
    acc = y.grad_fn.next_functions[0][0]
    y.grad_fn.register_hook(hook("post"))
    y.grad_fn.register_prehook(hook("pre"))
    y.register_hook(hook("tensor"))
    y.retain_grad()
    acc.register_hook(hook("acc post"))
    acc.register_prehook(hook("acc pre"))
    x.register_hook(hook("leaf"))
    x.register_post_accumulate_grad_hook(hook("leaf post"))
    acc.register_prehook(hook("acc pre again"))
    x.register_hook(hook("leaf again"))
    return x, z, y


@script
def order_of_hooks_in_backward(t: Any) -> Any:
    order: list[Any] = []
    x, z, y = watch(t, order)
    y.sum().backward()
    return order, x.grad, z.grad, y.grad


@script
def order_of_hooks_in_grad(t: Any) -> Any:
    order: list[Any] = []
    x, z, y = watch(t, order)
    t.autograd.grad(y.sum(), [x], retain_graph=True)
    order.append("inner")
    t.autograd.grad(y.sum(), [y], retain_graph=True)
    order.append("inputs")
    y.sum().backward(inputs=[x], retain_graph=True)
    order.append("create_graph")
    t.autograd.grad(y.sum(), [x, z], create_graph=True)
    return order


@script
def hooks_of_a_node_with_two_outputs(t: Any) -> Any:
    order: list[Any] = []
    x = leaf(t, 1.0, 2.0, 4.0)
    var, _mean = t.var_mean(x)
    var.grad_fn.register_prehook(lambda g: order.append([v is None for v in g]))
    var.grad_fn.register_hook(lambda gi, go: order.append((gi[0], [v is None for v in go])))
    var.backward(retain_graph=True)
    return (
        order,
        result_or_message(lambda: error_of(var, lambda g: (g[0], t.ones((), dtype=t.float64)))),
        result_or_message(lambda: error_of(var, lambda g: (None, None))),
        x.grad,
    )


def error_of(y: Any, prehook: Callable[..., Any]) -> None:
    with y.grad_fn.register_prehook(prehook):
        y.backward(retain_graph=True)


@script
def hooks_replace_in_turn(t: Any) -> Any:
    x, seen = leaf(t, 1.0, 2.0), []
    n = (y := x * 2).grad_fn
    n.register_prehook(lambda g: (g[0] * 10,))
    n.register_prehook(lambda g: seen.append(g[0]))
    n.register_hook(lambda gi, go: (gi[0] + 1, None))
    n.register_hook(lambda gi, go: seen.append((gi[0], go[0])))
    y.sum().backward()
    return seen, x.grad


@script
def hooks_of_an_accumulator_replace(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    acc.register_prehook(lambda g: (g[0] * 100,))
    (t.autograd.grad(y.sum(), x, retain_graph=True)[0], y.sum().backward())
    return x.grad


@script
def hooks_see_summed_gradients(t: Any) -> Any:
    x, a, seen = leaf(t, 1.0, 2.0), leaf(t, 3.0), []
    y = x * a
    y.grad_fn.register_hook(lambda gi, go: seen.append(gi))
    y.sum().backward(retain_graph=True)
    t.autograd.grad(y.sum(), a)
    return seen


@script
def hook_removed_while_it_runs(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    y = x * 2
    handles: dict[str, Any] = {}

    def once(what: str) -> Callable[..., None]:
        def run(*_: Any) -> None:
            seen.append(what)
            handles[what].remove()

        return run

    handles["post"] = y.grad_fn.register_hook(once("post"))
    handles["pre"] = y.grad_fn.register_prehook(once("pre"))
    handles["leaf"] = x.register_hook(once("leaf"))
    handles["tensor"] = y.register_hook(once("tensor"))
    y.register_hook(lambda g: seen.append("last"))
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    for handle in handles.values():
        handle.remove()
    return seen


@script
def hook_added_while_hooks_run(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    y = x * 2

    def add(*_: Any) -> None:
        seen.append("add")
        y.register_hook(lambda g: seen.append("added"))

    y.register_hook(add)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    return seen


@script
def handle_as_a_scope(t: Any) -> Any:
    x, seen = leaf(t, 1.0), []
    y = x * 2
    with y.grad_fn.register_hook(lambda gi, go: seen.append(1)) as handle:
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    return len(seen), isinstance(handle, t.utils.hooks.RemovableHandle), type(handle.id).__name__


def wrong_results(t: Any) -> list[Any]:
    one = t.ones(2, dtype=t.float64)
    pair = [one[:1], one[:1]]
    return [
        3,
        one,
        [one],
        (),
        (one, one, one, one),
        ("s",),
        (one.float(),),
        (one[:1],),
        (None,),
        *[tuple(pair), False, (one, 3), (None, one[:1])],
    ]


@script
def wrong_results_of_node_hooks(t: Any) -> Any:
    found = []
    for kind in ("register_hook", "register_prehook"):
        for wrong in wrong_results(t):
            x, z = leaf(t, 1.0, 2.0), leaf(t, 5.0)
            y = x * z
            getattr(y.grad_fn, kind)(lambda *_, wrong=wrong: wrong)
            found.append(result_or_message(lambda y=y: y.sum().backward()))
            found.append([x.grad is None, z.grad is None])
    return found


@script
def wrong_results_of_tensor_hooks(t: Any) -> Any:
    class Nameless:
        def __call__(self, g: Any) -> Any:
            return g[:1]

    found = []
    for hook in (lambda g: 3, lambda g: g[:1], lambda g: g.float(), lambda g: (g,), Nameless()):
        y = leaf(t, 1.0, 2.0) * 1
        y.register_hook(hook)
        found.append(result_or_message(lambda y=y: y.sum().backward()))
    return found


@script
def exception_in_a_node_hook(t: Any) -> Any:
    def raises(*_: Any) -> None:
        raise KeyError("mine")

    x = leaf(t, 1.0)
    y = x * 2
    handle = y.grad_fn.register_hook(raises)
    first = result_or_message(lambda: y.sum().backward(retain_graph=True))
    handle.remove()
    y.sum().backward()
    return first, x.grad


# ------------------------------------------------------------------ edges


@script
def edges_as_inputs_and_outputs(t: Any) -> Any:
    edge = t.autograd.graph.get_gradient_edge
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    grad = t.autograd.grad
    keep = {"retain_graph": True}
    return (
        grad(z, [edge(y), edge(x), x], **keep),
        grad(z, edge(y), **keep),
        grad(edge(z), edge(y), **keep),
        grad(edge(z), x, t.tensor(3.0, dtype=t.float64), **keep),
        grad(edge(y), x, t.ones(2), **keep),
        grad(edge(y), x, t.ones(3, 2, dtype=t.float64), is_grads_batched=True, **keep),
        [name(edge(x).node), name(edge(y).node), edge(y).output_nr, edge(y).ownership_token],
        [
            edge(y).node is y.grad_fn,
            edge(x).node is y.grad_fn.next_functions[0][0],
            edge(y)._fields,
        ],
    )


@script
def edges_in_backward(t: Any) -> Any:
    edge = t.autograd.graph.get_gradient_edge
    found = []
    for call in (
        lambda z, y, x: t.autograd.backward(edge(z)),
        lambda z, y, x: t.autograd.backward([edge(z)], [t.tensor(3.0, dtype=t.float64)]),
        lambda z, y, x: t.autograd.backward(z, inputs=edge(x)),
        lambda z, y, x: t.autograd.backward(z, inputs=[edge(y), x]),
        lambda z, y, x: z.backward(inputs=edge(x)),
        lambda z, y, x: t.autograd.backward(z, inputs={"x": x}),
    ):
        x = leaf(t, 1.0, 2.0)
        y = x * 2
        found.append(result_or_message(lambda call=call, y=y, x=x: call((y * y).sum(), y, x)))
        found.append(x.grad)
    return found


@script
def errors_of_edges(t: Any) -> Any:
    graph, grad = t.autograd.graph, t.autograd.grad
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    other = graph.get_gradient_edge(leaf(t, 1.0))
    calls = [
        lambda: graph.get_gradient_edge(t.ones(2)),
        lambda: graph.get_gradient_edge(3),
        lambda: grad(z, other, retain_graph=True),
        lambda: grad(z, other, allow_unused=True, retain_graph=True),
        lambda: grad(z, other, materialize_grads=True, retain_graph=True),
        lambda: grad(graph.get_gradient_edge(y), x, retain_graph=True),
        lambda: grad(graph.get_gradient_edge(y), x, t.ones(3), retain_graph=True),
        lambda: grad(z, graph.GradientEdge(None, 0), retain_graph=True),
        lambda: grad(graph.GradientEdge(None, 0), x, retain_graph=True),
        lambda: grad(graph.GradientEdge(z.grad_fn, 2), x, retain_graph=True),
        lambda: grad(z, [x, None], retain_graph=True),
        lambda: grad(z, {}, retain_graph=True),
        lambda: grad(z, collections.UserDict(x=x), retain_graph=True),
        lambda: sorted(grad(z, {"b": x, "a": y}, retain_graph=True)),
    ]
    return [result_or_message(call) for call in calls]


@script
def edge_keeps_the_graph(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    edge = t.autograd.graph.get_gradient_edge(y)
    del y
    gc.collect()
    return t.autograd.grad(z, edge)


@script
def edge_of_a_view_whose_base_was_written_to(t: Any) -> Any:
    edge = t.autograd.graph.get_gradient_edge
    base = leaf(t, 1.0, 2.0) * 1
    view = base[:1]
    before = edge(view)
    base.mul_(2)
    return before.node.name(), edge(view).node.name()


# ------------------------------------------------------------------ hooks on several tensors


@script
def multi_grad_hooks(t: Any) -> Any:
    graph, seen = t.autograd.graph, []
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    c, d = a * b, a * b
    keep = {"retain_graph": True}
    handle = graph.register_multi_grad_hook((a, b, c, d), lambda gs: seen.append(list(gs)))
    c.sum().backward(**keep)
    c.sum().backward(inputs=(a,), **keep)
    (c + d).sum().backward(**keep)
    t.autograd.grad(c.sum(), c, **keep)
    seen.append(result_or_message(lambda: t.autograd.grad(c.sum(), [a], **keep)))
    handle.remove()
    c.sum().backward(**keep)
    return [[s is None for s in each] if isinstance(each, list) else each for each in seen], seen


@script
def multi_grad_hooks_of_any(t: Any) -> Any:
    graph, seen = t.autograd.graph, []
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    c, d = a * b, a * b
    constant = t.ones(2)
    with graph.register_multi_grad_hook((a, constant, c, d), seen.append, mode="any"):
        c.sum().backward(retain_graph=True)
        (c + d * 2).sum().backward(retain_graph=True)
    c.sum().backward()
    return seen


@script
def order_and_results_of_multi_grad_hooks(t: Any) -> Any:
    graph, order = t.autograd.graph, []
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    c = a * b
    graph.register_multi_grad_hook((a, c), lambda gs: order.append("both"))
    graph.register_multi_grad_hook((c,), lambda gs: gs[0] * 100)
    graph.register_multi_grad_hook((c,), lambda g: g * 100, mode="any")
    c.register_hook(lambda g: order.append("c"))
    a.register_hook(lambda g: order.append("a"))
    c.sum().backward()
    return order, a.grad


@script
def multi_grad_hooks_across_backwards(t: Any) -> Any:
    """A backward within another, one that fails halfway, and a hook that takes itself away."""
    hook, seen = t.autograd.graph.register_multi_grad_hook, []
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    c, d = a * b, b * 2
    keep = {"retain_graph": True}
    for mode in ("all", "any"):
        hook((c, d), lambda gs, mode=mode: seen.append((mode, str(gs))), mode=mode)

    def nested(_: Any) -> None:
        inner.remove()
        (d * 3).sum().backward(**keep)

    inner = c.register_hook(nested)
    (c + d).sum().backward(**keep)
    failing = d.register_hook(lambda g: g[0])
    seen.append(result_or_message(lambda: (c + d).sum().backward(**keep)))
    failing.remove()
    once = hook((c, a), lambda gs: (seen.append(len(gs)), once.remove()))
    for _ in range(2):
        (c + d).sum().backward(**keep)
    return seen, a.grad, b.grad


@script
def errors_of_multi_grad_hooks(t: Any) -> Any:
    def raises(_: Any) -> None:
        raise KeyError("mine")

    hook, a = t.autograd.graph.register_multi_grad_hook, leaf(t, 1.0)
    found = [
        result_or_message(lambda: hook((a,), print, mode="some")),
        result_or_message(lambda: hook((a, t.ones(1)), print)),
        result_or_message(lambda: hook((a,), print, "any")),
    ]
    y = a * 2
    for mode in ("all", "any"):
        with hook((y,), raises, mode=mode):
            found.append(result_or_message(lambda: y.sum().backward(retain_graph=True)))
    y.sum().backward()
    return found, a.grad


@script
def logging_of_the_graph(t: Any) -> Any:
    module, lines = t.autograd.graph, []
    log = logging.getLogger(module.__name__)

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage().partition(" at ")[0] + record.getMessage()[-15:])

    handler, before = Keep(), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        x = leaf(t, 1.0, 2.0)
        (x * x).sum().backward()
        t.autograd.grad((x * 2).sum(), x)
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    unregister = module._register_logging_hooks_on_whole_graph([x * 2])
    unregister()
    return lines


@script
def hooks_that_running_hooks_remove(t: Any) -> Any:
    lines: list[Any] = []
    handles: dict[str, Any] = {}

    def hook(own: str, *removes: str) -> Callable[..., None]:
        def run(*_: Any) -> None:
            lines.append(own)
            for other in removes:
                handles[other].remove()

        return run

    def graph() -> Any:
        x = leaf(t, 1.0, 2.0)
        return x, x * 2

    def twice(y: Any) -> None:
        y.sum().backward(retain_graph=True)
        lines.append("again")
        y.sum().backward()

    x, y = graph()
    for each, removes in {"t1": ("t1", "t2"), "t2": (), "t3": ()}.items():
        handles[each] = y.register_hook(hook(each, *removes))
    twice(y)
    x, y = graph()
    for each, removes in {"l1": ("l1", "l2"), "l2": ()}.items():
        handles[each] = x.register_hook(hook(each, *removes))
    for each, removes in {"p1": ("p1", "p2"), "p2": ()}.items():
        handles[each] = x.register_post_accumulate_grad_hook(hook(each, *removes))
    twice(y)
    x, y = graph()
    for each, removes in {"n1": ("n1", "n2"), "n2": ("q2",)}.items():
        handles[each] = y.grad_fn.register_prehook(hook(each, *removes))
    for each in ("q1", "q2", "q3"):
        handles[each] = y.grad_fn.register_hook(hook(each, "q3"))
    twice(y)
    x, y = graph()
    handles["m1"] = t.autograd.graph.register_multi_grad_hook((x, y), hook("m1"))
    handles["m2"] = y.register_hook(hook("m2", "m1"))
    twice(y)
    return lines


@script
def hooks_of_several_outputs_run_output_by_output(t: Any) -> Any:
    lines: list[str] = []
    a, b = leaf(t, 1.0, 2.0, 3.0, 4.0).split(2)
    b.register_hook(lambda g: lines.append("b1"))
    a.register_hook(lambda g: (lines.append("a1"), late.remove())[0])
    b.register_hook(lambda g: (lines.append("b2"), gone.remove())[0])
    gone = a.register_hook(lambda g: lines.append("gone before the hooks of a"))
    late = a.register_hook(lambda g: lines.append("a2"))
    (a + b).sum().backward()
    return lines


@script
def removing_twice_and_of_a_node_that_is_gone(t: Any) -> Any:
    x = leaf(t, 1.0)
    lines: list[str] = []
    handle = (x * 2).grad_fn.register_prehook(lambda g: lines.append("never"))
    gc.collect()
    handle.remove()
    handle.remove()
    y = x * 3
    handle = y.grad_fn.register_hook(lambda i, o: lines.append("removed"))
    other = y.grad_fn.register_hook(lambda i, o: lines.append("stays"))
    handle.remove()
    handle.remove()
    y.backward(retain_graph=True)
    other.remove()
    y.backward()
    return lines


@script
def leaf_that_is_set_has_a_new_edge(t: Any) -> Any:
    edge = t.autograd.graph.get_gradient_edge
    x = leaf(t, 1.0, 2.0)
    old, y = edge(x), x.clone()
    x.register_hook(lambda g: g * 10)
    with t.no_grad():
        x.set_(t.ones(3, dtype=t.float64))
    said_of_the_leaf = result_or_message(lambda: t.autograd.grad(y.sum(), x, retain_graph=True))
    grads = t.autograd.grad(y.sum(), old, retain_graph=True)
    same = edge(x).node is old.node
    (x * 2).sum().backward()
    return same, said_of_the_leaf, grads, x.grad, edge(x).node.variable is x


@script
def parameter_that_is_set_to_less_between_backwards(t: Any) -> Any:
    p = t.nn.Parameter(t.ones(4, dtype=t.float64))
    grads = []
    for _ in range(3):
        with t.no_grad():
            p.set_(p[1:])
            p.grad = None
        t.cat((p, p * 2)).sum().backward()
        grads.append(p.grad)
    return (*grads, result_or_message(lambda: t.zeros(1).set_(t.zeros(1, dtype=t.float64))))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    both(SCRIPTS[name])


HOLDING = {"hook_added_while_hooks_run", "order_and_results_of_multi_grad_hooks"}
"""Scripts with hooks that hold the tensor they are on, and that nobody removes."""


@pytest.mark.parametrize("name", sorted({*SCRIPTS} - HOLDING - {"logging_of_the_graph"}))
def test_script_leaves_nothing(name: str) -> None:
    before = pygrad.pg_live_count()
    with contextlib.suppress(Exception):
        SCRIPTS[name](pygrad)
    gc.collect()
    assert pygrad.pg_live_count() <= before


def test_every_public_name_of_the_module_is_here_or_known_to_be_absent() -> None:
    absent = {
        "region_activation_memory_budget",  # of torch.compile
        "set_warn_on_accumulate_grad_stream_mismatch",  # of CUDA streams
        "set_override_stale_capture_stream",
    }
    theirs = set(torch.autograd.graph.__all__)
    assert theirs - set(pygrad.autograd.graph.__all__) == absent
