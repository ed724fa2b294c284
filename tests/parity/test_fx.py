"""`torch.fx`: the same programs in both libraries print the same graphs and the same code."""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.fx

import pygrad.torch

TEXTS: dict[str, Callable[[Any], Any]] = {}
"""Programs that give texts, numbers and lists of them, given the library."""


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    TEXTS[function.__name__] = function
    return function


def texts(value: Any, t: Any) -> Any:
    """A result as what can be compared."""
    if isinstance(value, (list, tuple)):
        return [texts(each, t) for each in value]
    if isinstance(value, t.fx.GraphModule):
        return [str(value.graph), value.code, str(value), value.print_readable(print_output=False)]
    if isinstance(value, t.Tensor):
        return value.tolist()
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def error_of(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def model(t: Any) -> Any:
    class Model(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = t.nn.Parameter(t.ones(3))
            self.inner = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.ReLU())
            self.register_buffer("shift", t.full((2,), 5.0))
            self.plain = 7

        def forward(self, x, y=3, *args, **kwargs):  # type: ignore[no-untyped-def]
            a, b = x.split(2)
            z = self.inner(x * self.weight) + self.shift - y * self.plain
            z = z[:, None, 1:2] @ (2**x) // 3 % 2
            z.shape[0].foo(1, key="value")
            return {"z": [z, abs(x), -y, ~x], "all": (a, b, kwargs["k"], args)}

    return Model()


@program
def a_module_with_all_kinds_of_nodes(t: Any) -> Any:
    traced = t.fx.symbolic_trace(model(t))
    before = texts(traced, t)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    nodes = [
        [n.name, n.op, str(n.all_input_nodes), str(list(n.users)), n.is_impure()]
        for n in traced.graph.nodes
    ]
    return before, traced, nodes, traced._lineno_map, traced._prologue_start


@program
def operators(t: Any) -> Any:
    def trace(function: Any, make: Callable[[Any], Any]) -> Any:
        return t.fx.symbolic_trace(lambda x: function(*make(x)))

    names = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul eq ne lt le"
    both = [getattr(operator, name) for name in names.split()]
    return [
        [trace(f, lambda x: (x, 3)) for f in both],
        [trace(f, lambda x: (3, x)) for f in both],
        [trace(f, lambda x: (x,)) for f in (operator.neg, operator.pos, abs)],
    ]


@program
def operators_in_place(t: Any) -> Any:
    graph = t.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    names = "iadd iand ifloordiv ilshift imod imul imatmul ior ipow irshift isub itruediv ixor"
    for name in names.split():
        x = graph.call_function(getattr(operator, name), (x, y))
    graph.call_function(operator.setitem, (x, 0, y))
    graph.output(x)
    return t.fx.GraphModule({}, graph)


@program
def names(t: Any) -> Any:
    graph = t.fx.Graph()
    wanted = "x x x_1 x_1_2 len a.b 2 x_5 x class inf torch device nan NoneType self None".split()
    made = [graph.create_node("call_method", "f", (), name=n).name for n in [*wanted, "", "é", "_"]]
    targets = ["BatchNorm2d", "ALL_CAPS", "__add__", "layer1.0.conv", "aB_cD"]
    return made, [graph.create_node("call_method", target, ()).name for target in targets]


@program
def arguments_of_all_kinds(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x", type_expr=int)
    y = graph.placeholder("y", default_value=None)
    args = (x, [y, (x,)], {"k": x, 3: [x]}, slice(x, None, 2), 1.5, math.inf, math.nan, 1j)
    more = (t.float32, t.device("cpu"), t.contiguous_format, "text", None, True, ..., range(3))
    node = graph.call_function(max, args, {"key": more})
    graph.output([node], type_expr=t.Tensor)
    readable = [n.format_node() for n in graph.nodes]
    return str(graph), graph.python_code("self").src, readable


@program
def annotations(t: Any) -> Any:
    kinds = [
        t.Tensor,
        list[t.Tensor],
        tuple[t.Tensor, ...],
        dict[str, int],
        int | None,
        list[int | None],
        Any,
        tuple[()],
        Iterator[int],
        t.nn.Linear,
        "text",
    ]
    graph = t.fx.Graph()
    for at, kind in enumerate(kinds):
        graph.placeholder(f"x{at}", type_expr=kind)
    graph.output(None, type_expr=list[t.Tensor])
    return graph.python_code("self").src


@program
def graphs_made_by_hand(t: Any) -> Any:
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("a.w")
    y = graph.call_module("a.0.b", (x,), {"k": w})
    z = graph.call_method("relu", (y,))
    with graph.inserting_before(z):
        late = graph.call_function(operator.add, (x, w))
    with graph.inserting_after(x):
        first = graph.call_function(getattr, (x, "shape"))
        graph.call_function(getattr, (x, "not an identifier"))
        graph.call_function(getattr, (x, "shape", None))
    graph.output((z, late, first))
    copied = t.fx.Graph()
    copied.output(copied.graph_copy(graph, {}))
    z.replace_all_uses_with(late)
    graph.erase_node(z)
    return str(graph), graph.python_code("root").src, str(copied), [n.name for n in graph.nodes]


@program
def concrete_arguments(t: Any) -> Any:
    def tree(x, flag, y):  # type: ignore[no-untyped-def]
        return {"sum": x["a"] + x["b"][0], "rest": [x["b"][1], flag, y]}

    place = t.fx.PH
    made = t.fx.symbolic_trace(tree, concrete_args={"x": {"a": place, "b": (place, place)}})
    result = made({"a": 1, "b": (2, 3)}, True, 4)
    run = t.fx.Interpreter(made).run({"a": 1, "b": (2, 3)}, True, 4)
    return made.graph, made.code, result, run


@program
def errors(t: Any) -> Any:
    def graph() -> Any:
        made = t.fx.Graph()
        made.output(made.call_function(operator.mul, (made.placeholder("x"), 2)))
        return made

    x, mul, output = graph().nodes
    late = graph()
    first, second, _ = late.nodes
    first.prepend(second)
    frozen = t.fx.immutable_collections.immutable_list([1])
    trace = t.fx.symbolic_trace
    return [
        error_of(lambda: x.graph.erase_node(x)),
        error_of(lambda: graph().erase_node(output)),
        error_of(late.lint),
        error_of(lambda: x.prepend(first)),
        error_of(lambda: x.graph.inserting_before(first)),
        error_of(lambda: mul.insert_arg(7, 1)),
        error_of(lambda: x.graph.create_node("call_function", "text", name="n")),
        error_of(lambda: x.graph.create_node("call_method", 3, name="n")),
        error_of(lambda: x.graph.create_node("nothing", "x", name="n")),
        error_of(lambda: x.graph.create_node("call_method", "x", [1])),
        error_of(lambda: t.fx.map_arg((), 3)),
        error_of(lambda: frozen.append(2)),
        error_of(lambda: t.fx.immutable_collections.immutable_dict(a=1).update(b=1)),
        error_of(lambda: t.fx.GraphModule(3, graph())),
        error_of(lambda: t.fx.wrap("max")),
        error_of(lambda: t.fx.wrap(3)),
        error_of(lambda: trace(lambda x: 1 if x else 2)),
        error_of(lambda: trace(lambda x: [*x])),
        error_of(lambda: trace(lambda x: max(*x))),
        error_of(lambda: trace(lambda x: t.nn.Linear(2, 2)(x))),
        error_of(lambda: trace(lambda x: x + t.nn.Parameter(t.ones(1)))),
        error_of(lambda: trace(lambda x: x + {1})),
        error_of(lambda: trace(lambda x: x.get({x: 1}))),
        error_of(lambda: trace(lambda *x: x, concrete_args=())),
        error_of(lambda: trace(lambda x, y: x, concrete_args=(1,))),
        error_of(lambda: t.fx.Interpreter(t.fx.GraphModule({}, graph())).run()),
        error_of(lambda: t.fx.Interpreter(t.fx.GraphModule({}, graph())).run(None)),
        error_of(lambda: t.fx.Interpreter(t.fx.GraphModule({}, graph())).boxed_run([1, 2])),
        error_of(lambda: t.fx.Graph().find_nodes(op="call_function")),
        error_of(lambda: t.fx.Graph(x).output_node()),
    ]


@program
def patterns(t: Any) -> Any:
    found = []
    cases = [
        (lambda x: x.neg().abs() + x.neg().abs(), lambda x: x.neg().abs(), lambda x: x.relu()),
        (lambda x: x.neg().neg().neg(), lambda x: x.neg().neg(), lambda x: x),
        (lambda x: [(y := x.neg()).abs(), y], lambda x: x.neg().abs(), lambda x: x + 1),
        (lambda x, y: x * y + x, lambda a, b: a * b, lambda a, b: b - a),
        (lambda x: x.sum(dim=1) + 1, lambda x: x.sum(dim=1), lambda x: x.mean(dim=1)),
        (lambda x: x.split(2)[0] + 1, lambda x: x[0] + 1, lambda x: (x + 2) * 3),
        (lambda x: (x + 1) * (x + 1), lambda x: x + 1, lambda x: x - 1),
        (lambda x: x.a(3).b(x), lambda x, y: y.a(3).b(x), lambda x, y: y.c(x)),
    ]
    for source, pattern, replacement in cases:
        module = t.fx.symbolic_trace(source)
        places = t.fx.replace_pattern(module, pattern, replacement)
        nodes = [[str(p.anchor), {str(k): str(v) for k, v in p.nodes_map.items()}] for p in places]
        found.append([module.code, str(nodes)])
    return found


@program
def transformers_and_interpreters(t: Any) -> Any:
    class Swapped(t.fx.Transformer):  # type: ignore[misc,name-defined]
        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            return -super().call_method("neg", args, kwargs)

    def source(x, y=2):  # type: ignore[no-untyped-def]
        return {"a": [x.abs() * y, y]}

    traced = t.fx.symbolic_trace(source)
    made = Swapped(traced).transform()
    return made, made(t.ones(2))["a"], t.fx.Interpreter(traced).run(t.ones(2), 5)["a"]


@program
def shapes(t: Any) -> Any:
    module = t.nn.Sequential(t.nn.Conv2d(3, 4, 3), t.nn.ReLU(), t.nn.Flatten())
    traced = t.fx.symbolic_trace(module)
    prop = importlib.import_module(f"{t.fx.__name__}.passes.shape_prop").ShapeProp
    prop(traced).propagate(t.ones(2, 3, 8, 8))
    metas = [str(n.meta["tensor_meta"]) for n in traced.graph.nodes]
    plain = traced.print_readable(print_output=False)
    return metas, plain, traced.print_readable(print_output=False, colored=True)


@program
def parts(t: Any) -> Any:
    split = importlib.import_module(f"{t.fx.__name__}.passes.split_module").split_module

    def source(x, y):  # type: ignore[no-untyped-def]
        a = x + y
        b = a * 2
        c = b - x
        return c, a.neg()

    traced = t.fx.symbolic_trace(source)
    number = {"add": 0, "mul": 0, "sub": 1, "neg": 2}
    found = []
    for options in (
        {},
        {"keep_original_order": True},
        {"keep_original_node_name": True, "partition_affix": "p"},
        {"keep_original_input_name": False, "tuple_return": True},
    ):
        made = split(traced, traced, lambda n: number[n.name], **options)
        found.append([made, *(m for _, m in made.named_children())])
    return found


@program
def wrapped_functions(t: Any) -> Any:
    names: dict[str, Any] = {"fx": t.fx, "len": len}
    exec("fx.wrap('len')\ndef f(x):\n    return len(x) + 1", names)
    traced = t.fx.symbolic_trace(names["f"])
    again = t.fx.symbolic_trace(traced)
    return traced, again, again([1, 2]), t.fx.symbolic_trace(lambda x: math.sqrt(x))


@program
def functions_of_torch(t: Any) -> Any:
    F = t.nn.functional

    def source(x, y):  # type: ignore[no-untyped-def]
        a = t.relu(x) + F.relu(y) + F.gelu(x)
        b = F.linear(a, y) + t.cat([a, y], dim=1) + t.stack((x, y))
        c = t.conv2d(b, y) + F.conv2d(b, y) + F.max_pool2d(b, 2) + F.dropout(b, 0.5, False)
        d = t.linalg.inv(c) + t.special.erf(c) + t.add(1, c, alpha=2)
        e = t.ones(3) + d - t.ones(3).add(d) + t.arange(3) @ d
        f = t.where(e > d, e, 0.0)
        g = F.softmax(f, dim=-1) + F.cross_entropy(f, y) + F.one_hot(f) + F.pad(f, (1, 1))
        h = t.max(g, dim=0)[0] + t.zeros_like(g) + t.einsum("ij,jk", [g, e]) + F.normalize(g)
        i = F.embedding(x, y) + F.scaled_dot_product_attention(x, y, h) + F.batch_norm(h, x, y)
        t._assert(i, "text")
        j = t.sum(h, dim=1), t.flatten(i, 1), t.isfinite(i), i.to(t.float32), t.topk(h, 3)
        return j, t.is_tensor(i), t.is_floating_point(i), h.T, i.shape, i.float().numpy()

    return t.fx.symbolic_trace(source)


@program
def meeting_tensors_and_layers(t: Any) -> Any:
    class Attention(t.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.qkv = t.nn.Linear(4, 12)
            self.norm = t.nn.LayerNorm(4)
            self.scale = t.tensor(0.5)

        def forward(self, x):  # type: ignore[no-untyped-def]
            q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
            w = t.softmax(q @ k.transpose(-2, -1) * self.scale, dim=-1)
            return t.matmul(w, v).sum(dim=1, keepdim=True).relu_()

    t.manual_seed(0)
    module, x = Attention(), t.arange(24.0).reshape(2, 3, 4)
    traced = t.fx.symbolic_trace(module)
    again = t.fx.symbolic_trace(t.fx.Transformer(traced).transform())
    difference = (again(x) - module(x)).abs().max().item()
    return traced, again, difference, t.fx.Interpreter(traced).run(x).shape


@pytest.mark.parametrize("name", TEXTS)
def test_both_print_the_same(name: str) -> None:
    wanted, found = (texts(TEXTS[name](t), t) for t in (torch, pygrad.torch))
    assert found == wanted


SPACES = ("", "nn.functional", "linalg", "special")
HOMES = "torch torch.functional torch.nn.functional torch._C._nn torch._C._linalg torch._C._special"
"""Where PyTorch has functions, but for a few of ``torch`` that are in private modules."""
OTHERWISE = {
    "_threshold": "the wrapped one, of which there is no other here",
    "_sobol_engine_initialize_state_": "quasirandom",
    "from_file": "storage",
    "logsigmoid": "it is log_sigmoid there",
    "segment_reduce": "it is _segment_reduce there",
    "threshold": "it is _threshold there",
}


@pytest.mark.parametrize("space", SPACES)
def test_functions_are_named_as_in_pytorch(space: str) -> None:
    here, there = pygrad.torch, torch
    for part in filter(None, space.split(".")):
        here, there = getattr(here, part), getattr(there, part)
    compared = 0
    for name in dir(there):
        theirs, ours = getattr(there, name), getattr(here, name, None)
        known = callable(theirs) and not isinstance(theirs, type) and hasattr(theirs, "__name__")
        known = known and hasattr(ours, "__name__")
        if name.startswith("__") or not known or name in OTHERWISE:
            continue
        wanted = torch.fx.node._get_qualified_name(theirs)
        if wanted.rpartition(".")[0] in HOMES.split():
            assert pygrad.torch.fx.node._get_qualified_name(ours) == wanted
            compared += 1
    assert compared > 30
