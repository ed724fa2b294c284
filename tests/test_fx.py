"""`pygrad.fx`: programs traced into graphs, graphs changed, written as Python and run."""

from __future__ import annotations

import copy
import importlib
import math
import operator
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pygrad
import pygrad.torch
from pygrad import fx, nn
from pygrad.fx.experimental.const_fold import split_const_subgraphs
from pygrad.fx.experimental.rewriter import RewritingTracer
from pygrad.fx.immutable_collections import immutable_dict, immutable_list
from pygrad.fx.passes.graph_drawer import FxGraphDrawer
from pygrad.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from pygrad.fx.passes.shape_prop import ShapeProp
from pygrad.fx.passes.split_module import split_module
from pygrad.fx.proxy import GraphAppendingTracer, ParameterProxy, TraceError


class Pair(NamedTuple):
    left: Any
    right: Any


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(pygrad.ones(3))
        self.inner = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        self.register_buffer("shift", pygrad.full((2,), 5.0))

    def forward(self, x):  # type: ignore[no-untyped-def]  # annotations show in the code
        return self.inner(x * self.weight) + self.shift


def scale(x: Any, factor: Any) -> Any:
    if factor > 1:  # which a trace cannot know
        return x * factor
    return x


fx.wrap("scale")
fx.wrap("len")


def code(module: fx.GraphModule) -> list[str]:
    return [line.strip() for line in module.code.strip().split("\n")]


def ops(graph: fx.Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def doubling() -> fx.Graph:
    graph = fx.Graph()
    graph.output(graph.call_function(operator.mul, (graph.placeholder("x"), 2)))
    return graph


# --- tracing ---


def test_a_module_is_traced_into_a_module_that_computes_the_same() -> None:
    module, x = Small(), pygrad.randn(4, 3)
    traced = fx.symbolic_trace(module)
    assert code(traced) == [
        "def forward(self, x):",
        "weight = self.weight",
        "mul = x * weight;  x = weight = None",
        'inner_0 = getattr(self.inner, "0")(mul);  mul = None',
        'inner_1 = getattr(self.inner, "1")(inner_0);  inner_0 = None',
        "shift = self.shift",
        "add = inner_1 + shift;  inner_1 = shift = None",
        "return add",
    ]
    assert pygrad.equal(traced(x), module(x))
    assert traced.weight is module.weight
    assert sorted(traced.state_dict()) == sorted(module.state_dict())


def test_gradients_pass_through_a_traced_module() -> None:
    module, x = Small(), pygrad.randn(4, 3)
    traced = fx.symbolic_trace(module)
    (wanted,) = pygrad.autograd.grad(module(x).sum(), module.weight)
    (found,) = pygrad.autograd.grad(traced(x).sum(), traced.weight)
    assert pygrad.equal(found, wanted)


def test_a_trace_leaves_modules_as_they_were() -> None:
    before = nn.Module.__call__, nn.Module.__getattr__, dict(vars(nn.Module))
    fx.symbolic_trace(Small())
    with pytest.raises(TraceError):
        fx.symbolic_trace(lambda x: bool(x))
    assert (nn.Module.__call__, nn.Module.__getattr__, dict(vars(nn.Module))) == before
    assert not fx._symbolic_trace.is_fx_tracing()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: 1 if x > 0 else 2, "cannot be used as inputs to control flow"),
        (lambda x: [each for each in x], "Proxy object cannot be iterated"),  # noqa: C416
        (lambda x: max(*x), "Proxy object cannot be iterated"),
    ],
)
def test_what_a_trace_cannot_know_raises(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        fx.symbolic_trace(program)


def test_a_value_is_taken_apart_into_as_many_as_there_are_names() -> None:
    def program(x: Any) -> Any:
        a, (b, c) = x
        return a + b + c

    assert fx.symbolic_trace(program)((1, (2, 3))) == 6


def test_every_operator_of_python_is_noted_from_either_side() -> None:
    def trace(function: Any, left: Callable[[Any], tuple[Any, ...]]) -> fx.GraphModule:
        return fx.symbolic_trace(lambda x: function(*left(x)))

    for name in "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split():
        function = getattr(operator, name)
        for traced in (trace(function, lambda x: (x, 3)), trace(function, lambda x: (3, x))):
            targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
            assert targets == [function]
    for name in "eq ne lt gt le ge".split():
        function = getattr(operator, name)
        assert trace(function, lambda x: (x, 2))(7) == function(7, 2)
    for name in "neg pos invert abs".split():
        function = getattr(operator, name)
        assert trace(function, lambda x: (x,))(7) == function(7)


def test_starred_parameters_and_defaults_are_inputs_as_they_were() -> None:
    def program(x: Any, y: Any = 3, *rest: Any, **named: Any) -> Any:
        return x + y, rest, named["z"]

    traced = fx.symbolic_trace(program)
    assert traced(1, z=5) == (4, (), 5)
    assert traced(1, 2, 7, 8, z=5) == (3, (7, 8), 5)


def test_concrete_arguments_are_no_inputs_but_are_checked() -> None:
    def program(x: Any, flag: Any) -> Any:
        return x + 1 if flag else x - 1

    graph = fx.symbolic_trace(program, concrete_args={"flag": True}).graph
    assert [n.target for n in graph.nodes if n.op == "placeholder"] == ["x", "flag_1"]
    assert operator.add in [n.target for n in graph.nodes]


def test_containers_of_placeholders_are_taken_apart_and_put_together() -> None:
    def program(x: Any) -> Any:
        return {"sum": x["a"] + x["b"][0], "rest": x["b"][1]}

    traced = fx.symbolic_trace(program, concrete_args={"x": {"a": fx.PH, "b": (fx.PH, fx.PH)}})
    assert traced({"a": 1, "b": (2, 3)}) == {"sum": 3, "rest": 3}
    assert fx.Interpreter(traced).run({"a": 1, "b": (2, 3)}) == {"sum": 3, "rest": 3}


def test_wrapped_functions_are_noted_whole_and_are_themselves_again() -> None:
    before = scale, len
    traced = fx.symbolic_trace(lambda x, y: scale(x, y) + len(x))
    assert (scale, len) == before
    assert traced(pygrad.ones(2), 3).tolist() == [5.0, 5.0]
    assert traced(pygrad.ones(2), 1).tolist() == [3.0, 3.0]
    again = fx.symbolic_trace(traced)
    assert again(pygrad.ones(2), 3).tolist() == [5.0, 5.0]
    with pytest.raises(NotImplementedError, match="top level of a module"):
        fx.wrap("scale")


def test_functions_of_wrapped_modules_are_noted() -> None:
    traced = fx.symbolic_trace(lambda x: math.sqrt(x))
    assert traced(9) == 3
    assert math.sqrt in [node.target for node in traced.graph.nodes]


def test_a_tracer_says_which_modules_are_leaves() -> None:
    class Everything(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return isinstance(m, nn.Sequential)

    graph = Everything().trace(Small())
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["inner"]
    stack = next(n for n in graph.nodes if n.op == "call_module").meta["nn_module_stack"]
    assert stack == {"inner": ("inner", nn.Sequential)}


def test_constants_of_a_program_become_attributes() -> None:
    constant = pygrad.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x + constant)
    assert traced._tensor_constant0 is constant
    assert traced(pygrad.zeros(2)).tolist() == [1.0, 2.0]
    with pytest.raises(NameError, match="parameter is not a member of this module"):
        fx.symbolic_trace(lambda x: x + nn.Parameter(constant))
    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(lambda x: x + object())


def test_shapes_of_parameters_may_be_known() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(pygrad.ones(2, 3))

        def forward(self, x: Any) -> Any:
            w = self.weight
            return x + w if w.shape[0] == 2 and w.dim() == w.ndim == 2 else x

    with pytest.raises(TraceError):
        fx.symbolic_trace(Branching())
    graph = fx.Tracer(param_shapes_constant=True).trace(Branching())
    assert operator.add in [node.target for node in graph.nodes]
    assert ParameterProxy.__mro__[1] is fx.Proxy


def test_the_class_of_an_object_may_be_noted() -> None:
    class Box(metaclass=fx.ProxyableClassMeta):
        def __init__(self, value: Any) -> None:
            self.value = value

    traced = fx.symbolic_trace(lambda x: Box(x).value)
    assert traced(3) == 3
    assert Box in [node.target for node in traced.graph.nodes]
    assert Box(1).value == 1


def test_asserts_are_noted_by_a_tracer_that_is_told_to() -> None:
    class Asserting(fx.Tracer):
        trace_asserts = True

    names: dict[str, Any] = {}  # a program that no test runner has rewritten
    exec("def program(x):\n    assert x == 1\n    return x + 1", names)
    module = fx.GraphModule({}, Asserting().trace(names["program"]))
    assert module(1) == 2
    with pytest.raises(AssertionError):
        module(2)


def test_asserts_are_rewritten_before_a_trace() -> None:
    tracer = RewritingTracer()
    graph = tracer.trace(asserting)
    module = fx.GraphModule(tracer.root, graph)
    assert module(2) == 3
    with pytest.raises(AssertionError, match="not positive"):
        module(-1)


def asserting(x: Any) -> Any:
    assert x > 0, "not positive"
    return x + 1


def test_proxies_append_to_a_graph_without_a_trace() -> None:
    graph = fx.Graph()
    tracer = GraphAppendingTracer(graph)
    x, y = (fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
    graph.output((x.flatten() @ y).node)
    module = fx.GraphModule({}, graph)
    assert module(pygrad.ones(2), pygrad.ones(2)).item() == 2
    other = fx.Proxy(fx.Graph().placeholder("z"))
    assert isinstance(other.tracer, GraphAppendingTracer)
    assert repr(other) == "Proxy(z)"
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing"):
        other.__len__()


def test_where_a_node_is_from_can_be_recorded() -> None:
    class Recording(fx.Tracer):
        record_stack_traces = True

    graph = Recording().trace(Small())
    trace = next(n for n in graph.nodes if n.op == "call_function").stack_trace
    assert trace is not None
    assert Path(__file__).name in trace
    assert "self.inner(x * self.weight)" in trace
    text = fx.GraphModule(Small(), graph).print_readable(print_output=False)
    assert "code: return self.inner(x * self.weight) + self.shift" in text


# --- nodes ---


def test_users_follow_the_arguments() -> None:
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    node = graph.call_function(max, (a, [b, {"k": (a, slice(b, None))}]), {"key": None})
    assert node.all_input_nodes == [a, b]
    assert list(a.users) == list(b.users) == [node]
    node.args = (a,)
    assert not b.users
    node.insert_arg(0, b)
    assert node.args == (b, a)
    node.update_arg(1, 5)
    node.update_kwarg("key", a)
    assert node.args == (b, 5)
    assert node.kwargs == {"key": a}
    assert node.all_input_nodes == [b, a]
    node.replace_input_with(b, a)
    assert node.args == (a, 5)
    assert not b.users


def test_all_uses_are_replaced_but_those_that_are_not_meant() -> None:
    graph = fx.Graph()
    a = graph.placeholder("a")
    b, c = graph.call_function(abs, (a,)), graph.call_function(abs, (a,))
    other = graph.placeholder("other")
    assert a.replace_all_uses_with(other, lambda user: user is b) == [b]
    assert (b.args, c.args) == ((other,), (a,))
    a.meta["k"] = 1
    assert a.replace_all_uses_with(other, propagate_meta=True) == [c]
    assert other.meta == {"k": 1}
    with pytest.raises(AssertionError, match="already has .meta keys"):
        a.replace_all_uses_with(other, propagate_meta=True)


def test_arguments_are_frozen() -> None:
    graph = fx.Graph()
    node = graph.call_function(max, ([1, 2], {"a": 1}))
    items, table = node.args
    assert (type(items), type(table)) == (immutable_list, immutable_dict)
    for change in (lambda: items.append(3), lambda: table.update(b=2), items.sort):
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    with pytest.raises(TypeError):
        items[0] = 5
    assert hash(items) == hash((1, 2))
    assert pickle.loads(pickle.dumps((items, table))) == ([1, 2], {"a": 1})


def test_nodes_are_ordered_as_in_the_graph() -> None:
    graph = fx.Graph()
    nodes = [graph.placeholder(name) for name in "abcd"]
    assert sorted([nodes[2], *nodes[:2], nodes[3]]) == nodes
    nodes[0].prepend(nodes[3])
    nodes[2].append(nodes[1])
    assert [n.name for n in graph.nodes] == ["d", "a", "c", "b"]
    assert [n.name for n in reversed(graph.nodes)] == ["b", "c", "a", "d"]
    assert nodes[3] < nodes[0] < nodes[2] <= nodes[2] < nodes[1]
    assert nodes[0].prev is nodes[3]
    assert nodes[0].next is nodes[2]
    with pytest.raises(AssertionError, match="different Graph"):
        nodes[0].prepend(fx.Graph().placeholder("x"))


@pytest.mark.parametrize(
    ("op", "target", "error", "message"),
    [
        ("call_function", "add", ValueError, "has type str but a Callable is expected"),
        ("call_method", abs, ValueError, "has type abs but a str is expected"),
        ("nonsense", "x", AssertionError, "op 'nonsense' is not in _legal_ops"),
    ],
)
def test_a_node_of_another_kind_raises(op: str, target: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        fx.Graph().create_node(op, target, name="n")


def test_map_arg_finds_nodes_in_all_containers() -> None:
    graph = fx.Graph()
    a = graph.placeholder("a")
    tree = (a, [a, {"k": a}], slice(a, None), Pair(a, 1), "text")
    mapped = fx.map_arg(tree, lambda node: node.name.upper())
    assert mapped == ("A", ["A", {"k": "A"}], slice("A", None), Pair("A", 1), "text")
    assert type(mapped[3]) is Pair


def test_a_deep_chain_of_nodes_needs_no_deep_stack() -> None:
    graph = fx.Graph()
    node = graph.placeholder("x")
    for _ in range(5000):
        node = graph.call_function(operator.neg, (node,))
    graph.output(node)
    graph.lint()
    module = copy.deepcopy(fx.GraphModule({}, graph))
    assert fx.Interpreter(module).run(3) == 3
    assert module(3) == 3
    assert not module.graph.eliminate_dead_code()


# --- graphs ---


def test_names_are_valid_and_given_once() -> None:
    graph = fx.Graph()
    names = ["x", "x", "len", "a.b", "2", "x_5", "x", "class", "", "inf", "torch"]
    found = [graph.create_node("call_method", "f", name=name).name for name in names]
    assert found == [
        *("x", "x_1", "len_1", "a_b", "_2", "x_5", "x_6", "class_1", "_unnamed"),
        *("inf_1", "torch_1"),
    ]


def test_nodes_are_inserted_where_the_graph_is_told() -> None:
    graph = doubling()
    x, mul, output = graph.nodes
    with graph.inserting_before(mul):
        graph.call_function(abs, (x,), name="one")
        graph.call_function(abs, (x,), name="two")
    with graph.inserting_after(mul):
        graph.call_function(abs, (x,), name="three")
    with graph.inserting_before():
        graph.placeholder("first")
    names = [n.name for n in graph.nodes]
    assert names == ["first", "x", "one", "two", "mul", "three", "output"]
    graph.inserting_before(output)
    assert graph.call_method("neg", (mul,)).next is output
    with pytest.raises(AssertionError, match="is not in graph"):
        graph.inserting_after(doubling().output_node())


def test_a_scope_of_insertion_ends_with_it() -> None:
    graph = doubling()
    x, _, output = graph.nodes
    with graph.inserting_before(output):
        with graph.inserting_after(x):
            graph.call_function(abs, (x,), name="inner")
        graph.call_function(abs, (x,), name="outer")
    graph.call_function(abs, (x,), name="last")
    names = [n.name for n in graph.nodes]
    assert names == ["x", "inner", "mul", "outer", "output", "last"]


def test_nodes_with_users_are_not_erased() -> None:
    graph = doubling()
    x, mul, output = graph.nodes
    with pytest.raises(RuntimeError, match=r"Tried to erase Node x but it still had 1 users"):
        graph.erase_node(x)
    with pytest.raises(RuntimeError, match="from wrong graph"):
        doubling().erase_node(output)
    for node in reversed(graph.nodes):  # while one goes through them
        graph.erase_node(node)
    assert not list(graph.nodes)
    assert not mul.users
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(x)


def test_lint_finds_what_is_wrong() -> None:
    graph = doubling()
    graph.lint()
    x, mul, _ = graph.nodes
    x.prepend(mul)
    with pytest.raises(RuntimeError, match="Argument 'x' of Node 'mul' was used before"):
        graph.lint()
    mul.args = (mul,)
    with pytest.raises(RuntimeError, match="Argument 'mul' of Node 'mul' was used before"):
        graph.lint()
    mul.args = (fx.Graph().placeholder("y"),)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        graph.lint()
    module = fx.symbolic_trace(Small())
    next(n for n in module.graph.nodes if n.op == "call_module").target = "gone.0"
    with pytest.raises(RuntimeError, match="references nonexistent attribute gone of"):
        module.graph.lint()


def test_dead_code_is_eliminated_but_what_has_an_effect() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.placeholder("unused")
    dead = graph.call_function(abs, (x,))
    graph.call_method("neg", (dead,))
    graph.call_function(operator.setitem, (x, 0, 1))
    graph.call_function(pygrad.rand, (1,))
    graph.output(x)
    assert graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "unused", "setitem", "rand", "output"]
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert len(graph.nodes) == 3


def test_functions_can_be_said_to_have_an_effect() -> None:
    @fx.has_side_effect
    def noted(x: Any) -> None: ...

    graph = fx.Graph()
    graph.call_function(noted, (graph.placeholder("x"),))
    graph.output(None)
    assert not graph.eliminate_dead_code()


def test_copies_of_nodes_have_notes_of_their_own() -> None:
    graph = doubling()
    mul = next(n for n in graph.nodes if n.op == "call_function")
    mul.meta["noted"] = 1
    for made in (copy.deepcopy(graph), fx.Graph()):
        if not made.nodes:
            made.graph_copy(graph, {})
        (copied,) = made.find_nodes(op="call_function", target=operator.mul)
        assert copied.meta == {"noted": 1}
        copied.meta["noted"] = 2
    assert mul.meta == {"noted": 1}


def test_graphs_are_copied_into_graphs() -> None:
    graph, source = fx.Graph(), doubling()
    y = graph.placeholder("y")
    (x, mul, _) = source.nodes
    mul.meta["note"] = 1
    result = graph.graph_copy(source, {x: y})
    assert result.args == (y, 2)
    assert result.meta == {"note": 1}
    graph.output(result)
    graph.lint()
    copied = copy.deepcopy(graph)
    assert str(copied) == str(graph)
    assert copied.nodes is not graph.nodes


def test_nodes_are_found_by_what_they_do() -> None:
    graph = fx.symbolic_trace(lambda x: (x + 1 + 2).neg().neg()).graph
    assert [n.name for n in graph.find_nodes(op="call_function", target=operator.add)] == [
        "add",
        "add_1",
    ]
    assert len(graph.find_nodes(op="call_method")) == 2
    assert graph.find_nodes(op="call_method", target="abs") == []
    assert graph.output_node().op == "output"


def test_lines_of_the_code_can_be_changed() -> None:
    module = fx.GraphModule({}, doubling())
    seen: list[Any] = []

    def noted(lines: list[str]) -> list[str]:
        seen.extend(lines)
        return ["x = x + 1\n", *lines]

    with module.graph.on_generate_code(lambda before: noted):
        module.recompile()
    assert module(1) == 4
    assert any("x * 2" in line for line in seen)
    module.recompile()
    assert module(1) == 2


def test_a_codegen_may_change_the_signature() -> None:
    class ListCodeGen(fx.CodeGen):
        def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:  # type: ignore[override]
            return f"def forward(self, args):\n    {', '.join(free_vars)}, = args"

        def process_inputs(self, *inputs: Any) -> Any:
            (given,) = inputs
            return given

    graph = doubling()
    graph.set_codegen(ListCodeGen())
    module = fx.GraphModule({}, graph)
    assert module([4]) == 8
    assert fx.Interpreter(module).run([4]) == 8


# --- code ---


def test_torch_in_generated_code_is_the_dialect() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(pygrad.nn.functional.softmax, (x,), {"dim": 0}))
    module = fx.GraphModule({}, graph)
    assert "torch.nn.functional.softmax(x, dim = 0)" in module.code
    assert module.forward.__globals__["torch"] is pygrad.torch
    assert module(pygrad.zeros(2)).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("space", ["", "nn.functional", "linalg", "special", "fft"])
def test_every_function_is_named_so_that_generated_code_finds_it(space: str) -> None:
    module = importlib.import_module("pygrad" + ("." + space if space else ""))
    public = getattr(module, "__all__", None) or dir(module)
    for name in public:
        function = getattr(module, name)
        named = getattr(function, "__name__", None)
        if callable(function) and not isinstance(function, type) and named == name:
            found = fx.node._get_qualified_name(function)
            if found.startswith("torch."):
                there = fx._names.resolve_torch_name(found)
                same = found == f"torch.{name}" and there.__name__ == name  # PyTorch has one
                assert there == function or same, found


def test_annotations_are_written() -> None:
    def program(x: list[pygrad.Tensor], y: int | None = None) -> tuple[pygrad.Tensor, ...]:
        return (x[0], y)

    program.__annotations__ = {
        "x": list[pygrad.Tensor],
        "y": int | None,
        "return": tuple[pygrad.Tensor, ...],
    }
    first = code(fx.symbolic_trace(program))[0]
    assert first == (
        "def forward(self, x : list[torch.Tensor], y : int|NoneType = None) -> "
        "tuple[torch.Tensor,_]:"
    )


def test_values_that_have_no_literal_are_globals() -> None:
    graph = fx.Graph()
    graph.output((float("inf"), float("nan"), pygrad.float32, pygrad.device("cpu"), Pair(1, 2)))
    found = fx.GraphModule({}, graph)()
    assert (found[0], found[2], found[3], found[4]) == (
        math.inf,
        pygrad.float32,
        pygrad.device("cpu"),
        Pair(1, 2),
    )
    assert math.isnan(found[1])


def test_values_are_let_go_after_their_last_use() -> None:
    made = code(fx.symbolic_trace(lambda x, y: (x + y) * x))
    assert made[1:3] == ["add = x + y;  y = None", "mul = add * x;  add = x = None"]


def test_what_fails_in_generated_code_shows_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, "text")))
    with pytest.raises(TypeError):
        fx.GraphModule({}, graph)(1)
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated" in shown
    assert "add = x + 'text';  x = None" in shown
    assert "~~~ <--- HERE" in shown


# --- modules of graphs ---


def test_a_module_of_a_graph_needs_what_the_graph_refers_to() -> None:
    graph = fx.Graph()
    x = graph.call_module("a.b", (graph.placeholder("x"),))
    graph.output(graph.call_function(operator.add, (x, graph.get_attr("a.w"))))
    with pytest.raises(RuntimeError, match="referenced target a.b but that target was not"):
        fx.GraphModule({}, graph)
    module = fx.GraphModule({"a.b": nn.ReLU(), "a.w": pygrad.ones(1)}, graph)
    assert module(pygrad.tensor([-1.0])).item() == 1
    assert "a.w" in dict(module.named_buffers())
    with pytest.raises(RuntimeError, match="Unsupported type 3 passed for root!"):
        fx.GraphModule(3, graph)  # type: ignore[arg-type]


def test_submodules_are_added_and_taken_out() -> None:
    module = fx.symbolic_trace(Small())
    assert module.add_submodule("deep.er", nn.ReLU())
    assert isinstance(module.get_submodule("deep.er"), nn.ReLU)
    assert not module.add_submodule("weight.x", nn.ReLU())
    assert not module.delete_submodule("nowhere.at.all")
    module.delete_all_unused_submodules()
    assert sorted(name for name, _ in module.named_modules()) == ["", "inner", "inner.0", "inner.1"]
    assert module.delete_submodule("inner")


def test_each_module_has_a_class_and_a_forward_of_its_own() -> None:
    one, other = fx.GraphModule({}, doubling()), fx.GraphModule({}, doubling(), "Named")
    assert type(one) is not type(other)
    assert (type(one).__name__, type(other).__name__) == ("GraphModule", "Named")
    one.graph.find_nodes(op="call_function", target=operator.mul)[0].target = operator.add
    one.recompile()
    assert (one(5), other(5)) == (7, 10)


def test_copies_share_nothing() -> None:
    module = fx.symbolic_trace(Small())
    module.meta["note"] = [1]
    copied = copy.deepcopy(module)
    assert copied.code == module.code
    assert copied.weight is not module.weight
    assert copied.meta == {"note": [1]}
    assert copied.meta["note"] is not module.meta["note"]
    x = pygrad.randn(2, 3)
    assert pygrad.equal(copied(x), module(x))
    assert copy.copy(module).weight is module.weight


def test_modules_are_pickled_as_their_code() -> None:
    module, x = fx.symbolic_trace(Small()), pygrad.randn(2, 3)
    again = pickle.loads(pickle.dumps(module))
    assert again.code == module.code
    assert pygrad.equal(again(x), module(x))


def test_a_pickled_module_is_read_by_another_process(tmp_path: Path) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(operator.neg, (x,)), pygrad.float32, math.inf))
    (tmp_path / "module").write_bytes(pickle.dumps(fx.GraphModule({}, graph)))
    program = "import pathlib, pickle; module = pickle.loads(pathlib.Path('module').read_bytes())"
    run = [sys.executable, "-W", "error", "-c", f"{program}; print(module(3))"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "(-3, torch.float32, inf)"


def test_a_class_of_ones_own_keeps_what_it_adds() -> None:
    class Own(fx.GraphModule):
        def extra(self) -> int:
            return 7

    module = Own(nn.Module(), doubling())
    assert (module.extra(), module(2)) == (7, 4)
    assert isinstance(copy.deepcopy(module), Own)


def test_hooks_hear_of_changes() -> None:
    module = fx.GraphModule({}, doubling())
    made: list[Any] = []
    module._register_create_node_hook(lambda node: made.append(("new", node.name)))  # type: ignore[attr-defined]
    module._register_erase_node_hook(lambda node: made.append(("gone", node.name)))  # type: ignore[attr-defined]
    x, mul, _ = module.graph.nodes
    with module.graph.inserting_after(x):
        new = module.graph.call_method("neg", (x,))
    with module._set_replace_hook(lambda old, new, user: made.append((old.name, new, user.name))):
        mul.replace_input_with(x, new)
    mul.replace_input_with(new, x)
    module.graph.erase_node(new)
    assert made == [("new", "neg"), ("x", "neg", "mul"), ("gone", "neg")]


# --- running ---


def test_an_interpreter_runs_what_is_overridden() -> None:
    class Swapped(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(operator.sub, args, kwargs)

    module = fx.GraphModule({}, doubling())
    assert fx.Interpreter(module).run(5) == 10
    assert Swapped(module).run(5) == 3
    given = [5]
    assert fx.Interpreter(module).boxed_run(given) == 10
    assert given == []
    with pytest.raises(RuntimeError, match=r"expected 1 arguments .* received 0 \(missing"):
        fx.Interpreter(module).boxed_run([])


def test_an_interpreter_starts_from_values_that_are_known() -> None:
    module = fx.GraphModule({}, doubling())
    mul = next(n for n in module.graph.nodes if n.op == "call_function")
    assert fx.Interpreter(module).run(5, initial_env={mul: 100}) == 100


@pytest.mark.parametrize("garbage_collect_values", [True, False])
def test_an_interpreter_lets_values_go_after_their_last_use(garbage_collect_values: bool) -> None:
    held: list[list[str]] = []

    class Noting(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            held.append([node.name for node in self.env])
            return super().run_node(n)

    module = fx.symbolic_trace(lambda x: (x.neg() * x).abs())
    Noting(module, garbage_collect_values).run(pygrad.ones(1))
    names = [["x"], ["x", "neg"], ["mul"], ["abs_1"]]
    if not garbage_collect_values:
        names = [["x", "neg", "mul", "abs_1"][:n] for n in (1, 2, 3, 4)]
    assert held == [[], *names]


def test_an_interpreter_says_which_node_failed() -> None:
    module = fx.GraphModule({}, doubling())
    with pytest.raises(TypeError, match=r"While executing %mul : .*operator.mul"):
        fx.Interpreter(module).run(None)
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(module).run()


def test_a_transformer_makes_a_new_graph() -> None:
    class Negating(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return -super().call_function(target, args, kwargs)

    module = fx.symbolic_trace(Small())
    x = pygrad.randn(2, 3)
    assert pygrad.equal(fx.Transformer(module).transform()(x), module(x))
    assert Negating(fx.GraphModule({}, doubling())).transform()(3) == -6


# --- passes ---


def test_patterns_are_replaced_where_they_are_alone() -> None:
    module = fx.symbolic_trace(lambda x: x.neg().abs() + x.neg().abs())
    places = fx.replace_pattern(module, lambda x: x.neg().abs(), lambda x: x.relu())
    assert len(places) == 2
    assert all(place.anchor.target == "abs" for place in places)
    assert [n.target for n in module.graph.nodes if n.op == "call_method"] == ["relu", "relu"]
    assert module(pygrad.tensor([2.0, -1.0])).tolist() == [4.0, 0.0]
    used = fx.symbolic_trace(lambda x: (x.neg().abs(), x.neg()))
    shared = fx.symbolic_trace(lambda x: [(y := x.neg()).abs(), y])
    assert len(fx.replace_pattern(used, lambda x: x.neg().abs(), lambda x: x)) == 1
    assert not fx.replace_pattern(shared, lambda x: x.neg().abs(), lambda x: x)


def test_a_replacement_stands_before_all_that_use_it() -> None:
    def program(x: Any) -> Any:
        y = x.neg()
        return y.sin() + y

    module = fx.symbolic_trace(program)
    fx.replace_pattern(module, lambda x: x.neg(), lambda x: x.abs().cos())
    module.graph.lint()
    names = [n.name for n in module.graph.nodes if n.op == "call_method"]
    assert names == ["abs_1", "cos", "sin"]


def test_each_node_of_a_pattern_matches_one_of_its_own() -> None:
    pattern = lambda x: x.neg() + x.neg()  # noqa: E731

    def once(x: Any) -> Any:
        y = x.neg()
        return y + y

    assert not fx.replace_pattern(fx.symbolic_trace(once), pattern, lambda x: x)
    assert len(fx.replace_pattern(fx.symbolic_trace(pattern), pattern, lambda x: x)) == 1


def test_matches_that_overlap_are_replaced_once() -> None:
    module = fx.symbolic_trace(lambda x: x.neg().neg().neg())
    assert len(fx.replace_pattern(module, lambda x: x.neg().neg(), lambda x: x)) == 1
    assert module(pygrad.ones(1)).item() == -1


def test_matches_may_be_chosen() -> None:
    module = fx.symbolic_trace(lambda x: (x + 1) * 2 + (x + 3) * 2)
    done = fx.subgraph_rewriter.replace_pattern_with_filters(
        module,
        lambda x: x + 1,
        lambda x: x - 1,
        [lambda match, graph, pattern: match.anchors[0].args[1] == 1],
        ignore_literals=True,
    )
    assert len(done) == 3
    assert [len(place.replacements) for place in done] == [1, 1, 1] or len(done) == 1


def test_shapes_are_noted_on_all_nodes() -> None:
    module = fx.symbolic_trace(Small())
    ShapeProp(module).propagate(pygrad.ones(4, 3))
    shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in module.graph.nodes}
    assert shapes == {
        "x": (4, 3),
        "weight": (3,),
        "mul": (4, 3),
        "inner_0": (4, 2),
        "inner_1": (4, 2),
        "shift": (2,),
        "add": (4, 2),
        "output": (4, 2),
    }
    assert '"f32[4, 3]"' in module.print_readable(print_output=False)
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%mul"):
        ShapeProp(module).propagate(pygrad.ones(4, 5))


def test_a_graph_is_cut_into_submodules_that_compute_the_same() -> None:
    module, x = fx.symbolic_trace(Small()), pygrad.randn(2, 3)
    names: dict[str, str] = {}
    parts = split_module(module, module, lambda n: 0 if n.name in ("mul", "inner_0") else 1, names)
    assert [n.target for n in parts.graph.nodes if n.op == "call_module"] == [
        "submod_0",
        "submod_1",
    ]
    assert names == {"submod_0.inner_0": "inner.0", "submod_1.inner_1": "inner.1"}
    assert pygrad.equal(parts(x), module(x))
    parts.graph.lint()
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        split_module(module, module, lambda n: 0 if n.name in ("mul", "add") else 1)


def test_what_depends_on_no_input_is_computed_once() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(pygrad.ones(2))

        def forward(self, x: Any) -> Any:
            return x + (self.weight * 2).neg()

    folded = split_const_subgraphs(Constant())
    assert folded(pygrad.zeros(2)).tolist() == [-2.0, -2.0]
    assert ops(folded.graph) == ["placeholder", "get_attr", "call_function", "output"]


def test_passes_run_in_an_order_that_constraints_allow() -> None:
    ran = []

    def first(module: Any) -> None:
        ran.append("first")

    def second(module: Any) -> None:
        ran.append("second")

    a, b = pass_result_wrapper(first), pass_result_wrapper(second)
    manager = PassManager([b, a], [this_before_that_pass_constraint(a, b)])
    assert manager(fx.GraphModule({}, doubling())).modified
    assert ran == ["first", "second"]
    manager.add_constraint(this_before_that_pass_constraint(b, a))
    with pytest.raises(RuntimeError, match="Circular dependency detected"):
        manager(fx.GraphModule({}, doubling()))


def test_pictures_are_refused_in_one_sentence() -> None:
    with pytest.raises(NotImplementedError, match="FxGraphDrawer: pygrad draws no graphs"):
        FxGraphDrawer(fx.GraphModule({}, doubling()), "name")


def test_a_second_engine_traces_for_itself() -> None:
    engine: Any = pygrad.Engine()
    module = engine.fx.symbolic_trace(lambda x: x.neg())
    assert module(engine.ones(1)).item() == -1
    assert not isinstance(module, fx.GraphModule)
    assert module.forward.__globals__["torch"].Tensor is engine.Tensor


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    program = (
        "import sys, pygrad; assert 'pygrad.fx' not in sys.modules; pygrad.fx;"
        "assert 'pygrad.fx' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_ops_of_the_dispatcher_are_recorded_as_they_are_called() -> None:
    def f(a: Any, b: Any) -> Any:
        y = pygrad.ops.aten.view(pygrad.ops.aten.add.Tensor(a, b), [4])
        pygrad.ops.aten.add_.Tensor(y, 1)
        return pygrad.ops.aten.cat([y, y])

    graph = fx.symbolic_trace(f)
    aten = pygrad.ops.aten
    assert [node.target for node in graph.graph.nodes if node.op == "call_function"] == [
        aten.add.Tensor,
        aten.view,
        aten.add_.Tensor,
        aten.cat,
    ]
    graph.graph.eliminate_dead_code()  # keeps what writes
    assert aten.add_.Tensor in [node.target for node in graph.graph.nodes]
    ones = pygrad.ones(2, 2)
    assert graph(ones, ones).tolist() == [3.0] * 8


@pytest.mark.parametrize(
    ("target", "impure"),
    [
        (pygrad.ops.aten.add.out, True),
        (pygrad.ops.aten.add_.Tensor, True),
        (pygrad.ops.aten.sin_, True),  # as its default overload
        (pygrad.ops.aten.sin, False),
        (pygrad.ops.aten.bernoulli, True),
        (pygrad.ops.aten.rand.default, True),
        (pygrad.ops.aten._assert_async.msg, True),
        (pygrad.ops.profiler._record_function_enter_new, True),
        (pygrad.add, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_dead_code_is_kept_where_it_does_more_than_give_a_value(target: Any, impure: bool) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(target, (x,))
    graph.output(x)
    assert node.is_impure() is impure
    graph.eliminate_dead_code()
    assert (node in graph.nodes) is impure


def test_a_call_that_generated_code_made_wrongly_shows_its_line(capsys: Any) -> None:
    class Dot(nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return pygrad.torch.dot(x, x).relu()

    module = fx.symbolic_trace(Dot())
    with pytest.raises(TypeError):
        module(5)
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated" in shown
    assert "dot = torch.dot(x, x)" in shown


def test_the_condition_of_a_branch_is_a_number_or_a_tensor() -> None:
    def function(x, y):  # type: ignore[no-untyped-def]
        return pygrad.cond(x[0] == 0, pygrad.add, pygrad.sub, [x, y])

    with pytest.raises(RuntimeError, match=r"Expected pred to be bool or tensor, but got Proxy"):
        fx.symbolic_trace(function)
    assert pygrad.cond(True, lambda n: n + 1, None, [3]) == 4  # type: ignore[arg-type]
