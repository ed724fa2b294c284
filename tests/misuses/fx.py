"""Misuses of graphs of programs."""

from __future__ import annotations

import collections
import importlib
import operator
from collections.abc import Callable
from typing import Any


def misuses(t: Any) -> dict[str, Callable[[], Any]]:
    """Misuses by a name."""
    fx, nn = t.fx, t.nn

    def module(name: str) -> Any:
        return importlib.import_module(f"{t.__name__}.fx.{name}")

    fold, rewriting = module("experimental.const_fold"), module("subgraph_rewriter")
    optimization, tensors = module("experimental.optimization"), module("experimental.proxy_tensor")
    managing, matching = module("passes.infra.pass_manager"), module("passes.utils.matcher_utils")
    splitting, shapes = module("passes.split_module"), module("passes.shape_prop")
    schemas, tracebacks = module("operator_schemas"), module("traceback")
    proxies, nodes, graphs = module("proxy"), module("node"), module("graph")
    modules, symbolic, trees = module("graph_module"), module("_symbolic_trace"), module("_pytree")

    def graph() -> Any:
        made = fx.Graph()
        x = made.placeholder("x")
        made.output(made.call_function(operator.neg, (x,)))
        return made

    def traced() -> Any:
        return fx.symbolic_trace(lambda x: x.neg())

    def first(made: Any) -> Any:
        return next(iter(made.nodes))

    def second(made: Any) -> Any:
        return list(made.nodes)[1]

    def linted(change: Callable[[Any], Any]) -> Any:
        made = graph()
        change(made)
        made.lint()

    class Held(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout()
            self.number = 3

        def forward(self, x: Any) -> Any:
            return self.drop(x)

    class Drops(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout()

        def forward(self, x: Any) -> Any:
            return self.drop(input=x)

    class Elsewhere(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return nn.Linear(1, 1)(x)

    class Foreign(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x * nn.Parameter(t.ones(1))

    class Expanding(nn.Module):  # type: ignore[misc]
        def forward(*args: Any) -> Any:
            return args

    class Other(fx.Tracer):  # type: ignore[misc]
        traced_func_name = "other"

    class Popping(fx.Tracer):  # type: ignore[misc]
        def is_leaf_module(self, *_: Any) -> bool:
            self.module_stack["other"] = "", None
            return True

    class Mutable(fx.Tracer):  # type: ignore[misc]
        check_mutable_operations = True

    def two_tracers() -> Any:
        one, other = fx.Graph(), fx.Graph()
        pair = [fx.Proxy(g.placeholder("x"), proxies.GraphAppendingTracer(g)) for g in (one, other)]
        return t.add(*pair)

    def matcher(pattern: Any, **options: Any) -> Any:
        return matching.SubgraphMatcher(pattern, **options)

    def of_attribute(value: Any, owned: bool = True) -> Any:
        made = fx.Graph()
        made.output(made.call_function(operator.neg, (made.get_attr("value"),)))
        if not owned:
            return made
        root = nn.Module()
        root.value = value
        return fx.GraphModule(root, made).graph

    def folded() -> Any:
        made = fx.Graph()
        made.output(made.call_function(t.neg, (made.get_attr("w"),)))
        root = nn.Module()
        root.w = nn.Parameter(t.ones(1))
        return fold.split_const_subgraphs(fx.GraphModule(root, made))

    def cycle() -> Any:
        made = traced()
        y = second(made.graph)
        with made.graph.inserting_after(y):
            z = made.graph.call_function(operator.neg, (y,))
            with made.graph.inserting_after(z):
                w = made.graph.call_function(operator.neg, (z,))
        parts = {y: 0, z: 1, w: 0}
        return splitting.split_module(made, nn.Module(), parts.__getitem__)

    def erased(made: Any, which: Any) -> None:
        made.erase_node(which)

    def boxed(values: list[Any]) -> Any:
        return fx.Interpreter(traced()).boxed_run(values)

    def missing_attribute() -> Any:
        made = of_attribute(t.ones(1)).owning_module
        del made.value
        return fx.Interpreter(made).run()

    def unknown_value() -> Any:
        made = traced()
        interpreter = fx.Interpreter(made)
        return interpreter.map_nodes_to_values(first(made.graph), second(made.graph))

    def replaced(pattern: Any, replacement: Any = None, **options: Any) -> Any:
        return rewriting.replace_pattern_with_filters(traced(), pattern, replacement, **options)

    def two(x: Any, y: Any) -> Any:
        return x + y

    class Negated(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x.neg().abs()

    def absent() -> Any:
        class Both(Held):
            def forward(self, x: Any) -> Any:
                return self.drop(x).abs()

        made = fx.symbolic_trace(Both())
        del made.drop
        return fx.replace_pattern(made, lambda x: x.abs(), Negated())

    class Named:
        __name__, __module__ = "f", None  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "<f>"

    def pass_manager(**options: Any) -> Any:
        return managing.PassManager(**options)

    before = managing.this_before_that_pass_constraint
    concrete = symbolic.symbolic_trace

    return {
        # Nodes.
        "kind of node": lambda: fx.Graph().create_node("other", "x"),
        "target of a call": lambda: fx.Graph().create_node("call_function", "x"),
        "target of an input": lambda: fx.Graph().create_node("placeholder", operator.neg),
        "args in a list": lambda: fx.Graph().create_node("call_function", operator.neg, [1]),
        "kwargs in a list": lambda: fx.Graph().create_node("call_function", operator.neg, (), [1]),
        "node moved to another graph": lambda: first(graph()).prepend(first(graph())),
        "argument inserted too far": lambda: second(graph()).insert_arg(3, 1),
        "notes over notes": lambda: (
            g := graph(),
            first(g).meta.update(a=1),
            second(g).replace_all_uses_with(first(g), propagate_meta=True),
        ),
        "map by a number": lambda: nodes.map_arg((1,), 3),
        "purity of a module": lambda: (
            g := graph(),
            g.call_module("f", ()).is_impure(),
        ),
        "list of nodes in another direction": lambda: graphs._node_list(graph(), "_up"),
        "change of an argument": lambda: nodes.map_aggregate([1], lambda x: x).append(2),
        # Graphs.
        "output of no output": lambda: (
            g := fx.Graph(),
            g.placeholder("x"),
            g.output_node(),
        ),
        "calls of no function": lambda: graph().find_nodes(op="call_function"),
        "insertion before a stranger": lambda: graph().inserting_before(first(graph())),
        "insertion after a stranger": lambda: graph().inserting_after(first(graph())),
        "erasure of what is used": lambda: (g := graph(), g.erase_node(first(g))),
        "erasure of a stranger": lambda: (
            g := fx.Graph(),
            graph().erase_node(g.placeholder("y")),
        ),
        "lint of a kind": lambda: linted(lambda g: setattr(second(g), "op", "other")),
        "lint of a stranger": lambda: linted(lambda g: setattr(second(g), "graph", graph())),
        "lint of an argument of a stranger": lambda: linted(
            lambda g: second(g).update_arg(0, first(graph()))
        ),
        "lint of the order": lambda: linted(lambda g: second(g).append(first(g))),
        "lint of a name": lambda: linted(lambda g: setattr(second(g), "_name", "x")),
        "lint of a target": lambda: (
            m := traced(),
            setattr(second(m.graph), "target", operator.neg),
            m.graph.lint(),
        ),
        "lint of an absent attribute": lambda: (
            m := of_attribute(t.ones(1)).owning_module,
            delattr(m, "value"),
            m.graph.lint(),
        ),
        "lint of a module that is a number": lambda: (
            m := fx.symbolic_trace(Held()),
            delattr(m, "drop"),
            setattr(m, "drop", 3),
            m.graph.lint(),
        ),
        "name of a stranger": lambda: graph()._graph_namespace._rename_object(3, "x"),
        "name given twice": lambda: (
            g := graph(),
            g._graph_namespace.associate_name_with_obj("other", first(g)),
        ),
        "code of a kind": lambda: (
            g := graph(),
            setattr(second(g), "op", "root"),
            g.python_code("self"),
        ),
        # Modules.
        "root that is a number": lambda: fx.GraphModule(3, graph()),
        "root without a target": lambda: fx.GraphModule({}, of_attribute(t.ones(1), False)),
        "graph that is a number": lambda: setattr(traced(), "graph", 3),
        "code before there is any": lambda: (
            m := traced(),
            delattr(m, "_code"),
            type(m).code.fget(m),
        ),
        "readable text of no graph": lambda: modules._print_readable(
            type("M", (nn.Module,), {"graph": 3})(), "M"
        ),
        "attribute of None": lambda: modules._get_attr(
            type("M", (nn.Module,), {"a": None})(), "a.b"
        ),
        "hook that is a number": lambda: traced()._register_create_node_hook(3),
        "hook that was a number": lambda: traced()._unregister_create_node_hook(3),
        # Traces.
        "wrap of a number": lambda: fx.wrap(3),
        "wrap within a function": lambda: fx.wrap("len"),
        "value that is not None": lambda: symbolic._assert_is_none(3, "it is not None"),
        "value that does not hold": lambda: (
            proxies.assert_fn(False) if hasattr(proxies, "assert_fn") else None
        ),
        "module of no root": lambda: concrete(Elsewhere()),
        "parameter of no root": lambda: concrete(Foreign()),
        "trace of a class": lambda: fx.Tracer().trace(type("F", (), {"__call__": len})()),
        "stack of modules": lambda: Popping().trace(Held()),
        "expansion of self": lambda: concrete(Expanding()),
        "concrete arguments": lambda: concrete(two, (1, 2, 3)),
        "another function to trace": lambda: Other().trace(nn.Identity()),
        "branch": lambda: concrete(lambda x: 1 if x else 2),
        "loop": lambda: concrete(lambda x: [y for y in x]),  # noqa: C416
        "length": lambda: concrete(lambda x: len(x)),
        "key of a dict": lambda: concrete(lambda x: x.foo({x: 1})),
        "argument of a type": lambda: concrete(lambda x: x.foo(object())),
        "two tracers": two_tracers,
        "parameter that is none": lambda: proxies.ParameterProxy(
            None, first(graph()), "w", t.ones(1)
        ),
        "type on a type": lambda: (
            p := fx.Proxy(fx.Graph().placeholder("x", type_expr=int)),
            module("annotate").annotate(p, float),
        ),
        "function that writes": lambda: Mutable().trace(lambda x: t.relu_(x)),
        "function that writes to out": lambda: Mutable().trace(lambda x: t.neg(x, out=x)),
        "unnamed function": lambda: graphs._get_qualified_name(eval("lambda: 0")),
        "function of no module": lambda: graphs._get_qualified_name(Named()),
        "another structure": lambda: trees.tree_flatten_spec(
            [1, 2], t.utils._pytree.tree_flatten(collections.OrderedDict(a=1))[1]
        ),
        "patch of an absent name": lambda: symbolic._Patcher().patch({}, "absent", lambda: 0),
        # Traces of ops.
        "tensor of no trace": lambda: tensors.get_proxy_slot(t.ones(1), tensors.PythonKeyTracer()),
        "decomposition of no trace": lambda: tensors.decompose({}).__enter__(),
        "mode of a trace": lambda: tensors.make_fx(len, tracing_mode="other"),
        "number that depends on an argument": lambda: tensors.make_fx(lambda x: x.sum().item())(
            t.ones(2)
        ),
        "too few proxies": lambda: tensors.wrap_key(len, (t.ones(1),), None, False)(),
        "failure of generated code": lambda: traced()(3),
        # Runs.
        "inputs that are missing": lambda: boxed([]),
        "inputs that are left": lambda: boxed([1, 2]),
        "input that is missing": lambda: fx.Interpreter(traced()).run(),
        "attribute that is absent": missing_attribute,
        "value that is unknown": unknown_value,
        "absent key": lambda: fx.Interpreter(fx.symbolic_trace(lambda x: x["a"])).run({}),
        # Passes.
        "patterns of nothing": lambda: matcher(fx.Graph()),
        "patterns with dead code": lambda: matcher(
            fx.symbolic_trace(lambda x: (x.neg(), x)[1]).graph
        ),
        "attributes of no module": lambda: matcher(of_attribute(1, False)).match(
            of_attribute(1, False)
        ),
        "attributes that are numbers": lambda: matcher(of_attribute(nn.Identity())).match(
            of_attribute(nn.Identity())
        ),
        "replacement of more inputs": lambda: replaced(lambda x: x.neg(), two),
        "replacement of more results": lambda: replaced(
            lambda x: x.neg(), lambda x: (x.neg(), x.abs())
        ),
        "replacement by nothing": lambda: replaced(lambda x: x.neg()),
        "replacement by what is absent": absent,
        "passes in a circle": lambda: pass_manager(
            passes=[len, abs], constraints=[before(len, abs), before(abs, len)]
        ).solve_constraints(),
        "passes in another order": lambda: pass_manager(
            passes=[len, abs], constraints=[before(abs, len)]
        ).validate_constraints(),
        "check of two arguments": lambda: pass_manager().add_checks(two),
        "pass without a result": lambda: pass_manager(passes=[lambda m: m])(traced()),
        "pass that fails": lambda: pass_manager(passes=[lambda m: 1 / 0])(traced()),
        "parts in a circle": cycle,
        "shapes that do not fit": lambda: shapes.ShapeProp(
            fx.symbolic_trace(lambda x, y: x + y)
        ).propagate(t.ones(2), t.ones(3)),
        "attribute of a part": lambda: splitting._get_attr_from_qualname(nn.Module(), "a.b"),
        "folding twice": lambda: (m := folded(), m.run_folding(), m.run_folding()),
        "replacement of a function's module": lambda: optimization.replace_node_module(
            second(graph()), {}, nn.Identity()
        ),
        "dropout by keyword": lambda: optimization.remove_dropout(Drops()),
        "arguments of an absent module": lambda: schemas.normalize_module(nn.Module(), "a", ()),
        "arguments of what writes": lambda: schemas.check_for_mutable_operation(t.relu_, (1,), {}),
        "source of another action": lambda: tracebacks.NodeSource(None, "p", ["x"]),
        "source of a number": lambda: tracebacks.NodeSource._from_dict(3),
        "pictures": lambda: (
            module("passes.graph_drawer").FxGraphDrawer(traced(), "g")
            if t.__name__ == "pygrad"
            else None
        ),
        "fake shapes": lambda: (
            shapes.ShapeProp(traced(), fake_mode=3) if t.__name__ == "pygrad" else None
        ),
        "mode of fake tensors": lambda: (
            tensors.make_fx(len, tracing_mode="fake") if t.__name__ == "pygrad" else None
        ),
        "trace of modules": lambda: (
            tensors.make_fx(len, pre_dispatch=True) if t.__name__ == "pygrad" else None
        ),
    }
