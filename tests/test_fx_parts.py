"""`pygrad.fx`, part by part: signatures, types, notes, written code, patterns, passes."""

from __future__ import annotations

import collections
import copy
import math
import numbers
import operator
import pickle
import sys
import typing
import warnings
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pygrad.torch as torch
from pygrad.torch import fx, nn
from pygrad.torch.fx import traceback as notes
from pygrad.torch.fx._pytree import register_pytree_flatten_spec, tree_flatten_spec
from pygrad.torch.fx.annotate import annotate
from pygrad.torch.fx.experimental import const_fold, optimization
from pygrad.torch.fx.experimental.rewriter import RewritingTracer
from pygrad.torch.fx.graph import CodeGen
from pygrad.torch.fx.immutable_collections import immutable_list
from pygrad.torch.fx.operator_schemas import (
    check_for_mutable_operation,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)
from pygrad.torch.fx.passes.infra.pass_base import PassResult
from pygrad.torch.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from pygrad.torch.fx.passes.split_module import Partition, split_module
from pygrad.torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from pygrad.torch.fx.proxy import GraphAppendingTracer, ParameterProxy
from pygrad.torch.fx.subgraph_rewriter import replace_pattern_with_filters
from pygrad.torch.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise


class Pair(NamedTuple):
    left: Any
    right: Any


class Colour(Enum):
    RED = 1


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.drop = nn.Dropout()

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.drop(self.linear(x))


def code(module: Any) -> list[str]:
    """The lines of a module's code, without what lets values go."""
    return [line.partition(";")[0].strip() for line in module.code.strip().split("\n")]


def targets(graph: Any) -> list[str]:
    return [node.op if isinstance(node.target, str) else node.name for node in graph.nodes]


def chain() -> Any:
    """A graph of three calls, and its module."""
    return fx.symbolic_trace(lambda x: x.neg().abs().relu())


# --- signatures ---


@pytest.mark.parametrize(
    ("wanted", "given", "matches"),
    [
        (int, int, True),
        (typing.Union[int, str], str, True),  # noqa: UP007
        (typing.Union[int, str], float, False),  # noqa: UP007
        (list[int], int, True),
        (list[int], float, False),
        (list[int], list[int], True),
        (list[int], tuple[int, ...], True),
        (list[int], list[str], False),
        (numbers.Number, float, True),
        (object, int, True),
        (int, "int", False),
    ],
)
def test_types_of_arguments_match_those_of_signatures(
    wanted: Any, given: Any, matches: Any
) -> None:
    assert type_matches(wanted, given) is matches


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (3, 3),
        ([], list[Any]),
        ((), tuple[Any, ...]),
        ([int, bool], list[int]),
        ((bool, int), tuple[int, ...]),
        ([int, str], list[Any]),
        ((int, str), tuple[Any, ...]),
    ],
)
def test_lists_of_types_are_types_of_lists(given: Any, kind: Any) -> None:
    assert str(create_type_hint(given)).replace("typing.List", "list").replace(
        "typing.Tuple", "tuple"
    ) == str(kind)


def test_arguments_are_put_in_the_order_of_a_signature() -> None:
    x = torch.ones(2)
    found = normalize_function(nn.functional.relu, (x,), {"inplace": True})
    assert found is not None
    assert found.args == (x,)
    assert found.kwargs == {"inplace": True}
    by_name = normalize_function(nn.functional.relu, (x,), normalize_to_only_use_kwargs=True)
    assert by_name is not None
    assert (by_name.args, by_name.kwargs) == ((), {"input": x, "inplace": False})
    assert get_signature_for_torch_op(3) is None
    assert get_signature_for_torch_op(3, return_schemas=True) == (None, None)


def test_arguments_without_an_order_have_none() -> None:
    def several(*args: Any) -> None: ...

    assert normalize_function(several, (1,)) is None


def test_arguments_of_modules_are_those_of_forward() -> None:
    found = normalize_module(Model(), "linear", (), {"input": 3})
    assert found is not None
    assert (found.args, found.kwargs) == ((), {"input": 3})


def test_arguments_of_nodes_are_normalized_by_what_they_call() -> None:
    module = fx.symbolic_trace(Model())
    x, linear, *_ = module.graph.nodes
    with module.graph.inserting_after(linear):
        relu = module.graph.call_function(nn.functional.relu, (linear,))
    pairs = [n.normalized_arguments(module, None, None, True) for n in (x, linear, relu)]
    assert pairs[0] is None
    assert [p.kwargs for p in pairs[1:] if p] == [
        {"input": x},
        {"input": linear, "inplace": False},
    ]


@pytest.mark.parametrize("function", [len, torch.neg])
def test_functions_that_write_nothing_are_taken(function: Any) -> None:
    check_for_mutable_operation(function, (torch.ones(2),), {})


# --- types ---


def test_types_of_tensors_have_sizes_that_may_be_unknown() -> None:
    known, partly = TensorType((1, 2)), TensorType((1, Dyn))
    assert str(partly) == "TensorType[(1, Dyn)]"
    assert TensorType[1, 2] == known
    assert TensorType[1] == TensorType((1,))
    assert known != partly
    assert [is_consistent(*pair) for pair in ((known, partly), (known, Dyn), (1, 2))] == [
        True,
        True,
        False,
    ]
    assert not is_consistent(known, TensorType((1, 2, 3)))
    assert [is_more_precise(*pair) for pair in ((known, partly), (known, Dyn), (1, 2))] == [
        True,
        True,
        False,
    ]
    assert not is_more_precise(partly, known)


def test_values_are_annotated_once() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    assert annotate(3, int) == 3
    assert annotate(x, TensorType((1, Dyn))) is x
    graph.output(x.node)
    kind = "torch.fx.tensor_type.TensorType[_1,torch.fx.tensor_type._DynType]"
    assert f"x : {kind}" in graph.python_code("self").src


def test_annotated_assignments_are_rewritten() -> None:
    def function(x):  # type: ignore[no-untyped-def]
        y: int = x + 1
        z: str  # noqa: F842
        return y

    graph = RewritingTracer().trace(function)
    assert [n.type for n in graph.nodes if n.name == "add"] == [int]


class Asserting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.most = 3

    def forward(self, x):  # type: ignore[no-untyped-def]
        assert x.sum() < self.most, "too much"
        return x


def test_modules_are_rewritten_with_their_attributes() -> None:
    graph = RewritingTracer().trace(Asserting())
    assert "_assert" in [node.name for node in graph.nodes]


# --- notes of nodes ---


@pytest.fixture(autouse=True)
def _no_notes() -> typing.Iterator[None]:
    notes.current_meta.clear()
    yield
    assert not notes.has_preserved_node_meta()
    assert notes.get_current_meta() == {}


def test_a_source_tells_the_node_and_its_sources() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = notes.NodeSource(x, "first", notes.NodeSourceAction.CREATE)
    x.meta["from_node"] = [first]
    action = [notes.NodeSourceAction.REPLACE, notes.NodeSourceAction.CREATE]
    second = notes.NodeSource(x, "second", action)
    told = second.to_dict()
    assert (told["name"], told["target"], told["graph_id"]) == ("x", "x", id(graph))
    assert (told["action"], told["from_node"]) == ("replace+create", [first.to_dict()])
    lines = second.print_readable().splitlines()
    assert [line.partition("graph_id")[0] for line in lines] == [
        "(name=x, pass_name=second, action=replace+create, ",
        "    (name=x, pass_name=first, action=create, ",
    ]
    assert second.print_readable(indent=10) == ""
    again = notes.NodeSource._from_dict(told)
    assert again == second
    assert hash(again) == hash(second)
    assert again != first
    assert notes.NodeSource._from_dict(None) is None


def test_a_source_of_nothing_has_no_name() -> None:
    empty = notes.NodeSource(None)
    assert (empty.name, empty.target, empty.graph_id) == ("", "", -1)
    assert notes.NodeSource._from_dict({"pass_name": "p"}).name == ""


def test_notes_are_kept_in_a_scope() -> None:
    notes.set_stack_trace(["outside"])
    assert notes.get_current_meta() == {}
    assert "test_notes_are_kept_in_a_scope" in "".join(notes.format_stack())
    with notes.preserve_node_meta():
        notes.set_stack_trace(["a", "b"])
        assert notes.format_stack() == ["ab"]
        notes.set_stack_trace([])
        assert notes.format_stack() == [""]


def test_annotations_of_an_outer_scope_come_back() -> None:
    custom = []

    @notes.annotate_fn({"b": 2})
    def function() -> None:
        custom.append(notes.get_current_meta()["custom"])

    with notes.annotate({"a": 1}):
        function()
        custom.append(notes.get_current_meta()["custom"])
    function()
    assert custom == [{"a": 1, "b": 2}, {"a": 1}, {"b": 2}]


def test_new_nodes_take_over_notes_of_the_node_that_is_run() -> None:
    module = chain()
    neg = list(module.graph.nodes)[1]
    neg.meta = {"custom": {"a": 1}, "stack_trace": "where", "other": 3}
    with notes.preserve_node_meta():
        made = fx.Transformer(module).transform()
    neg = list(made.graph.nodes)[1]
    assert neg.meta["custom"] == {"a": 1}
    assert neg.stack_trace == "where"
    assert "other" not in neg.meta
    assert [s.pass_name for s in neg.meta["from_node"]] == ["Interpreter_Transformer"]


# --- nodes ---


def test_nodes_are_compared_by_their_places() -> None:
    _, y, z, *_ = chain().graph.nodes
    assert y < z
    assert z > y
    assert y <= y
    assert z >= y
    y.prepend(y)
    assert y.next is z


def test_arguments_are_changed_one_by_one() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    call = graph.call_function(slice, (x,))
    call.insert_arg(1, y)
    call.update_kwarg("step", [x, {"a": (y, slice(x, None, 2))}])
    assert call.args == (x, y)
    assert call.kwargs["step"] == [x, {"a": (y, slice(x, None, 2))}]
    assert list(y.users) == [call]
    call.update_arg(1, 3)
    call.update_kwarg("step", None)
    assert not y.users
    with pytest.raises(TypeError, match="does not support mutation"):
        immutable_list([1]).append(2)
    assert hash(immutable_list([1])) == hash(immutable_list([1]))


class Shown:
    def _custom_fx_repr_fn(self) -> str:
        return "<shown>"


def test_nodes_are_shown_with_their_arguments() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", int, 3)
    w = graph.get_attr("w")
    call = graph.call_function(len, ([x], {"a": w}, (x,), Shown()), {"k": slice(x)})
    method = graph.call_method("foo", (call,))
    out = graph.output(method, int)
    assert [n.format_node() for n in graph.nodes] == [
        "%x : int [num_users=1] = placeholder[target=x](default=3)",
        "%w : [num_users=1] = get_attr[target=w]",
        "%len_1 : [num_users=1] = call_function[target=builtins.len]"
        "(args = ([%x], {a: %w}, (%x,), <shown>), kwargs = {k: slice(None, x, None)})",
        "%foo : [num_users=1] = call_method[target=foo](args = (%len_1,), kwargs = {})",
        "return foo",
    ]
    names, kinds = ["self"], [""]
    assert x.format_node(names) is None
    out.format_node(None, kinds)
    assert (names[1:], kinds) == (["xx: int"], [" -> int"])


def test_values_of_nodes_are_shown_with_their_sizes() -> None:
    call = list(chain().graph.nodes)[1]
    call.meta["val"] = torch.ones(2, 3)
    assert call.format_node(include_tensor_metadata=True).startswith(
        '%neg : Tensor "f32[2, 3][3, 1]cpu"[num_users=1] = call_method'
    )


def test_new_names_and_users_are_told_to_hooks() -> None:
    module, told = chain(), []
    with module._set_replace_hook(lambda old, new, user: told.append((str(old), new, str(user)))):
        x, neg, *_ = module.graph.nodes
        x._rename("y")
        with module.graph.inserting_before(neg):
            other = module.graph.call_function(operator.pos, (x,))
        x.meta["a"] = 1
        x.replace_all_uses_with(other, lambda user: user is neg, propagate_meta=True)
    x._rename("z")
    assert told[0] == ("x", "y", "neg")
    assert told[-1] == ("y", "pos", "neg")
    assert other.meta == {"a": 1}
    assert neg.args == (other,)


@pytest.mark.parametrize("random", [True, False])
def test_what_draws_numbers_is_impure_if_that_is_asked(random: bool) -> None:
    graph = fx.Graph()
    op = graph.call_function(torch.ops.aten.bernoulli.default, ())
    packet = graph.call_function(torch.ops.aten.relu_, ())
    assert op.is_impure(random) is random
    assert packet.is_impure(random)
    assert graph.call_function(torch.ops.aten._assert_async.msg, ()).is_impure(random)
    assert not graph.call_function(immutable_list.__repr__, ()).is_impure(random)


def test_modules_may_be_impure() -> None:
    model = Model()
    model.linear._is_impure = True
    module = fx.symbolic_trace(model)
    assert [n.is_impure() for n in module.graph.nodes] == [True, True, False, True]
    assert not module.graph.get_attr("linear").is_impure()


# --- graphs ---


def test_lists_of_nodes_go_both_ways() -> None:
    graph = chain().graph
    assert [n.name for n in reversed(graph.nodes)] == ["output", "relu", "abs_1", "neg", "x"]
    assert [n.name for n in reversed(type(graph.nodes)(graph, "_prev"))] == [
        "x",
        "neg",
        "abs_1",
        "relu",
        "output",
    ]


def test_copies_into_another_graph_may_give_its_output_too() -> None:
    graph, made = chain().graph, fx.Graph()
    known: dict[Any, Any] = {}
    result, output = made.graph_copy(graph, known, return_output_node=True)
    assert (result.name, output) == ("relu", graph.output_node())
    assert made.graph_copy(fx.Graph(), {}) is None
    assert len(copy.deepcopy(fx.Graph()).nodes) == 0


def test_insertion_without_a_node_is_at_an_end() -> None:
    graph = chain().graph
    with graph.inserting_before():
        graph.placeholder("first")
    graph.erase_node(graph.output_node())
    with graph.inserting_after():
        graph.placeholder("last")
    names = [n.name for n in graph.nodes]
    assert (names[0], names[-1]) == ("first", "last")


def test_an_erased_node_is_not_erased_again() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.erase_node(x)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(x)


def test_dead_code_of_graphs_that_are_read_is_eliminated_too() -> None:
    inner = fx.symbolic_trace(lambda x: (x.neg(), x.abs())[1])
    root = nn.Module()
    root.inner = inner
    graph = fx.Graph()
    graph.output(graph.call_function(map, (graph.get_attr("inner"), graph.placeholder("x"))))
    module = fx.GraphModule(root, graph)
    assert module.graph.eliminate_dead_code()
    assert "neg" not in module.inner.code
    assert not module.graph.eliminate_dead_code(lambda node: True)


def test_nodes_that_refer_to_nothing_are_warned_of() -> None:
    graph = fx.symbolic_trace(Model()).graph
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
        graph.get_attr("absent")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        graph.get_attr("absent.weight")
    assert str(told[0].message) == "Failed to fetch module absent!"


def test_the_name_of_a_node_may_be_another_in_code() -> None:
    graph = chain().graph
    assert "def forward(self, x):" in graph.python_code("self").src
    x = next(iter(graph.nodes))
    x.target = "*args"
    assert "x = args" in graph.python_code("self").src


def test_a_table_of_nodes_needs_tabulate(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    printed = []
    fake = type(sys)("tabulate")
    fake.tabulate = lambda rows, headers: printed.append((headers, rows))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tabulate", fake)
    chain().graph.print_tabular()
    assert printed[0][0] == ["opcode", "name", "target", "args", "kwargs"]
    assert printed[0][1][1][:3] == ["call_method", "neg", "neg"]
    monkeypatch.setitem(sys.modules, "tabulate", None)
    with pytest.raises(ImportError):
        chain().graph.print_tabular()
    assert "pip install tabulate" in capsys.readouterr().out


# --- code ---


class Own(CodeGen):
    """Adds a name to the globals, and its value to the input."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:  # type: ignore[override]
        return super().gen_fn_def(free_vars, maybe_return_annotation) + "\n    x = x + added"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("added", 10)]


def test_a_codegen_may_add_globals() -> None:
    module = fx.symbolic_trace(lambda x: x.neg())
    module.graph.set_codegen(Own())
    module.recompile()
    assert module(torch.ones(1)).tolist() == [-11.0]


def test_a_codegen_converts_inputs_and_outputs() -> None:
    graph = chain().graph
    assert graph.process_inputs(1, 2) == (1, 2)
    assert graph.process_outputs(3) == 3


def test_readable_code_has_types_origins_and_annotations(capsys: Any) -> None:
    module = chain()
    _, neg, absolute, relu, _ = module.graph.nodes
    neg.meta["val"] = torch.ones(2, 3)
    neg.stack_trace = '  File "a.py", line 3, in f\n    y = x.neg()'
    absolute.meta["custom"] = {"a": "b" * 50}
    relu.meta["seen"] = 1
    text = module.print_readable(include_stride=True, include_device=True, additional_meta=["seen"])
    assert capsys.readouterr().out.strip() == text.strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert "# File: a.py:3 in f, code: y = x.neg()" in lines
    assert 'neg: "f32[2, 3][3, 1]cpu" = x.neg();  x = None' in lines
    assert (
        f"# Annotation: {{'a': '{'b' * 40}...'}} No stacktrace found for following nodes" in lines
    )
    assert "# seen: 1 # No stacktrace found for following nodes" in [
        line.replace("  ", " ") for line in lines
    ]
    coloured = module.print_readable(print_output=False, colored=True)
    assert "\033[31mf32\033[0m" in coloured


def test_readable_code_shows_modules_within_it() -> None:
    root = nn.Module()
    root.inner = chain()
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    text = fx.GraphModule(root, graph).print_readable(print_output=False)
    assert "class inner(torch.nn.Module):" in text


def test_parameters_are_written_a_line_each() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    x.meta["desc"] = "the first"
    graph.output((x, y)).meta["desc"] = ["one", "two"]
    lines = graph.python_code("self", expanded_def=True).src.splitlines()
    assert "    x,  # the first" in lines
    assert "        x,  # one" in lines


def test_literals_are_written_as_python_reads_them() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    args = (Pair(1, 2), Colour.RED, (x,), [x, 1], slice(x, 2), 1e400, torch.float32, ...)
    graph.output(graph.call_function(repr, (args,)))
    source = graph.python_code("self")
    text = source.src
    for part in ("Pair(1, 2)", "Colour.RED", "(x,)", "[x, 1]", "slice(x, 2, None)", "inf"):
        assert part in text, text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int | None, "int|None"),
        (list[int], "list[int]"),
        (typing.List[int], "typing_List[int]"),  # noqa: UP006
        (typing.Dict[str, int], "typing_Dict[str,int]"),  # noqa: UP006
        (tuple[()], "tuple"),
        (torch.Tensor, "torch.Tensor"),
        (typing.Any, "typing_Any"),
    ],
)
def test_annotations_are_written_as_types(kind: Any, text: str) -> None:
    graph = fx.Graph()
    graph.output(graph.placeholder("x", kind))
    assert f"x : {text}):" in graph.python_code("self").src.replace(" | ", "|").replace(
        "NoneType", "None"
    )


def test_attributes_whose_names_are_no_identifiers_are_read() -> None:
    root = nn.Module()
    root.add_module("0", nn.Identity())
    graph = fx.Graph()
    x = graph.placeholder("x")
    read = graph.call_function(getattr, (x, "a b"))
    graph.output((graph.call_module("0", (x,)), read, graph.call_function(getattr, (x, "shape"))))
    text = "\n".join(code(fx.GraphModule(root, graph)))
    assert 'getattr(self, "0")(x)' in text
    assert "getattr(x, 'a b')" in text
    assert "x.shape" in text


def test_in_place_operators_are_written_as_statements() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.iadd, (x, 1)))
    assert "x += 1" in graph.python_code("self").src


def test_wrapped_functions_are_wrapped_again_in_the_code() -> None:
    graph = fx.Graph()
    call = graph.call_function(len, (graph.placeholder("x"),))
    call.meta["is_wrapped"] = True
    graph.output(call)
    assert 'torch.fx._symbolic_trace.wrap("len")' in graph.python_code("self").src


# --- containers ---


def test_containers_of_other_classes_are_taken_apart_as_registered() -> None:
    class Box:
        def __init__(self, *items: Any) -> None:
            self.items = items

    spec = torch.utils._pytree.tree_flatten
    torch.utils._pytree.register_pytree_node(
        Box, lambda b: (list(b.items), None), lambda items, _: Box(*items)
    )
    register_pytree_flatten_spec(Box, lambda b, _: list(b.items))
    _, found = spec(Box(1, Box(2, 3)))
    assert tree_flatten_spec(Box(4, Box(5, 6)), found) == [4, 5, 6]
    _, ordered = spec(collections.OrderedDict(a=1))
    assert tree_flatten_spec(collections.OrderedDict(a=2), ordered) == [2]
    assert tree_flatten_spec((1, [2]), spec((3, [4]))[1]) == [1, 2]


def test_a_trace_of_containers_gives_a_container_of_results() -> None:
    def function(x: Any, y: Any) -> Any:
        return {"sum": x["a"] + x["b"][0], "y": y}

    tracer = fx.Tracer()
    graph = tracer.trace(function, {"x": {"a": fx.PH, "b": [fx.PH]}})
    module = fx.GraphModule(tracer.root, graph)
    one = torch.ones(1)
    assert module({"a": one, "b": [one]}, 3)["sum"].tolist() == [2.0]
    again = pickle.loads(pickle.dumps(module))
    assert again({"a": one, "b": [one]}, 3)["y"] == 3
    assert graph.process_inputs({"a": 1, "b": [2]}, 3) == [1, 2, 3]


# --- traces ---


class Keyed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.ones(1))
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x, *rest, mode=None, **more):  # type: ignore[no-untyped-def]
        return x + self.shift + rest[0] + self.weight


def test_buffers_may_be_proxies() -> None:
    class Proxying(fx.Tracer):
        proxy_buffer_attributes = True

    graph = Proxying().trace(Keyed())
    assert [n.target for n in graph.nodes if n.op == "get_attr"] == ["shift", "weight"]
    inputs = [n.target for n in graph.nodes if n.op == "placeholder"]
    assert inputs == ["x", "mode", "*rest", "**more"]


def test_a_tracer_is_copied_without_the_modules_that_it_searches() -> None:
    tracer = fx.Tracer(autowrap_modules=(math,))
    made = copy.deepcopy(tracer)
    assert made._autowrap_search == [math]
    assert made._autowrap_search is not tracer._autowrap_search


def test_places_among_arguments_give_their_attributes_to_nodes() -> None:
    assert repr(fx.PH) == "PH"
    given = fx._symbolic_trace.PHWithMeta(ph_key="key")
    graph = fx.Tracer().trace(lambda x: x, {"x": given})
    assert next(iter(graph.nodes)).ph_key == "key"

    class Starred(nn.Module):
        def forward(self, *args: Any) -> Any:
            return args[0] + args[1]

    graph = fx.Tracer().trace(Starred(), (fx.PH, given))
    assert [n.target for n in graph.nodes][:2] == ["input_0", "input_1"]


def test_arguments_of_other_types_are_fixed_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        graph = fx.Tracer().trace(lambda x, y: x, {"y": object})
    assert [n.op for n in graph.nodes] == ["placeholder", "placeholder", "output"]
    module = fx.symbolic_trace(lambda x, y, z: x if y is None else z, {"y": None})
    assert module(1, None, 2) == 1
    with pytest.raises(AssertionError, match="y has been specialized to have value None"):
        module(1, 3, 2)


def test_modules_and_pairs_are_arguments_of_nodes() -> None:
    class Passing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return scaled(x, self.inner), x.foo(Pair(x, 1))

    graph = fx.Tracer().trace(Passing())
    assert ("get_attr", "inner") in [(n.op, n.target) for n in graph.nodes]
    assert Pair in [n.target for n in graph.nodes]


def scaled(x: Any, factor: Any) -> Any:
    return x


fx.wrap("scaled")


def test_a_module_is_called_a_second_time_under_a_number() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.inner(self.inner(x))

    graph = fx.Tracer().trace(Twice())
    assert [list(n.meta["nn_module_stack"]) for n in graph.nodes if n.op == "call_module"] == [
        ["inner"],
        ["inner@1"],
    ]


def test_methods_may_be_wrapped() -> None:
    @dataclass
    class Box:
        def get(self, x: Any) -> Any:
            return x + 1

    wrapped = fx._symbolic_trace._wrapped_methods_to_patch
    wrapped.append((Box, "get"))
    try:
        graph = fx.Tracer().trace(lambda x: Box().get(x))
        assert [n.target for n in graph.nodes if n.op == "call_method"] == ["get"]
        assert Box().get(1) == 2
        assert fx.symbolic_trace(lambda x: x + Box().get(1))(1) == 3
    finally:
        wrapped.remove((Box, "get"))


def test_names_mean_what_they_were_where_a_trace_is_put_aside() -> None:
    from pygrad.torch.fx._symbolic_trace import _maybe_revert_all_patches

    seen = []

    def function(x: Any) -> Any:
        with _maybe_revert_all_patches():
            seen.append(nn.Module.__call__)
        seen.append(nn.Module.__call__)
        return x

    fx.symbolic_trace(function)
    with _maybe_revert_all_patches():
        seen.append(nn.Module.__call__)
    assert seen[0] is seen[2]
    assert seen[0] is not seen[1]


# --- proxies ---


def test_shapes_of_a_parameter_are_known() -> None:
    graph = fx.Graph()
    weight = nn.Parameter(torch.ones(2, 3))
    proxy = ParameterProxy(GraphAppendingTracer(graph), graph.get_attr("w"), "w", weight)
    assert (proxy.shape, proxy.size(), proxy.dim(), proxy.ndim) == ((2, 3), (2, 3), 2, 2)
    assert (proxy.numel(), proxy.nelement(), repr(proxy)) == (6, 6, "ParameterProxy(w)")


def test_proxies_are_called_copied_and_taken_by_functions() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    assert repr(x) == "Proxy(x)"
    x(1), abs(x), x.keys(), x.attr + 1
    assert targets(graph) == [
        "placeholder",
        "call_method",
        "abs_1",
        "call_method",
        "getattr_1",
        "add",
    ]
    assert x.__getstate__() == x.__dict__
    made = copy.deepcopy(x)
    assert (made.node.name, made.node is x.node) == ("x", False)


class Held:
    """Makes its own argument of a node."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __fx_create_arg__(self, tracer: Any) -> Any:
        return tracer.create_arg(self.value)


def test_values_become_arguments_of_nodes() -> None:
    @dataclass
    class Point:
        x: Any

    graph = fx.Graph()
    tracer = GraphAppendingTracer(graph)
    x = fx.Proxy(graph.placeholder("x"), tracer)
    op = torch.ops.aten.neg.default
    given = [Held(x), (x,), Pair(x, 1), [x], {"a": x, 1: 2}, slice(x, 1), range(3), op, ..., None]
    assert tracer.create_arg(given) == [
        x.node,
        (x.node,),
        Pair(x.node, 1),
        [x.node],
        {"a": x.node, 1: 2},
        slice(x.node, 1),
        range(3),
        op,
        ...,
        None,
    ]
    made = tracer.create_arg(Point(x))
    assert (made.target, made.kwargs) == (Point, {"x": x.node})


def test_only_frames_of_forward_are_recorded_if_asked() -> None:
    class Recording(fx.Tracer):
        record_stack_traces = True
        _record_forward_stack_traces_only = True

    call = list(Recording().trace(Model()).nodes)[1]
    assert "in forward" in (call.stack_trace or "")
    assert "test_only_frames" not in (call.stack_trace or "")


# --- modules ---


def test_modules_are_made_of_dicts_of_targets() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    called = graph.call_module("a.b", (x,))
    graph.output(graph.call_function(operator.mul, (called, graph.get_attr("a.c"))))
    module = fx.GraphModule({"a.b": nn.Identity(), "a.c": torch.full((1,), 2.0)}, graph)
    assert module(torch.ones(1)).tolist() == [2.0]
    assert [name for name, _ in module.named_buffers()] == ["a.c"]


def test_submodules_are_not_put_into_numbers() -> None:
    module = fx.symbolic_trace(Model())
    module.number = 3
    assert not module.add_submodule("number.a", nn.Identity())
    assert not module.delete_submodule("number.a")
    assert not module.delete_submodule("absent")
    module.add_submodule("linear.a", nn.Identity())
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "linear", "linear.a", "drop"]
    del module.drop
    module.graph.erase_node(module.graph.output_node())
    module.graph.erase_node(list(module.graph.nodes)[-1])
    module.graph.get_attr("linear.weight")
    module.delete_all_unused_submodules()
    assert [name for name, _ in module.named_modules()] == ["", "linear", "linear.a"]


def test_copies_keep_notes_and_shallow_copies_share_the_graph() -> None:
    module = chain()
    module.meta["_user_preserved_attributes"] = {"kept": 3}
    made = copy.deepcopy(module)
    assert made.kept == 3
    shallow = copy.copy(module)
    assert shallow.graph is module.graph
    assert module._replicate_for_data_parallel()._is_replica


def test_a_module_is_written_as_a_package(tmp_path: Path, monkeypatch: Any) -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.stack = nn.Sequential(nn.ReLU())
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.stack(self.linear(x)) * self.weight + self.shift

    class Whole(fx.Tracer):
        def is_leaf_module(self, *_: Any) -> bool:
            return True

    model = Several()
    module = fx.GraphModule(model, Whole().trace(model))
    with pytest.warns(UserWarning, match=r"saved as pickled files instead: \['stack'\]"):
        module.to_folder(tmp_path / "made", "Made")
    text = (tmp_path / "made" / "module.py").read_text()
    assert "class Made(torch.nn.Module):" in text
    assert "self.register_buffer('shift', torch.empty([2], dtype=torch.float32))" in text
    assert (tmp_path / "made" / "stack.pt").exists()
    names: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name in ("nn", "fx"):
        monkeypatch.setitem(sys.modules, f"torch.{name}", getattr(torch, name))
    exec(text, names)
    x = torch.ones(1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one of its files is a pickle
        assert names["Made"]()(x).tolist() == model(x).tolist()


def test_text_of_a_module_has_its_code() -> None:
    text = str(chain())
    assert "neg = x.neg()" in text
    assert text.endswith("please use `graph_module.print_readable()`")


# --- runs ---


def test_a_run_takes_a_list_and_empties_it() -> None:
    given = [torch.ones(1)]
    assert fx.Interpreter(chain()).boxed_run(given).tolist() == [1.0]
    assert given == []


def test_a_run_of_a_graph_without_output_gives_none() -> None:
    graph = fx.Graph()
    graph.placeholder("x")
    assert fx.Interpreter(nn.Module(), graph=graph).run(1) is None


def test_starred_inputs_take_what_is_left() -> None:
    module = fx.symbolic_trace(lambda x, *rest: rest)
    assert fx.Interpreter(module).run(1, 2, 3) == [2, 3]


# --- patterns ---


def test_patterns_need_equal_literals_unless_they_are_ignored() -> None:
    module = fx.symbolic_trace(lambda x: torch.add(x, 1))
    pattern = fx.symbolic_trace(lambda x: torch.add(x, 2)).graph
    assert SubgraphMatcher(pattern).match(module.graph) == []
    assert len(SubgraphMatcher(pattern, ignore_literals=True).match(module.graph)) == 1


def test_patterns_may_match_by_names() -> None:
    module = fx.symbolic_trace(lambda x: torch.add(x, 1))
    pattern = fx.symbolic_trace(lambda x: torch.sub(x, 1)).graph
    assert len(SubgraphMatcher(pattern).match(module.graph, node_name_match="add")) == 1


@pytest.mark.parametrize(
    ("program", "matches"),
    [
        (lambda x: torch.ops.aten.add.Tensor(x, 1, alpha=1), 1),
        (lambda x: torch.ops.aten.add.Tensor(x, 1, alpha=2), 0),
        (lambda x: torch.cat([x, x]), 0),
    ],
)
def test_patterns_of_ops_match_with_defaults(program: Any, matches: int) -> None:
    pattern = fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(x, 1)).graph
    graph = fx.symbolic_trace(program).graph
    assert len(SubgraphMatcher(pattern).match(graph)) == matches


def test_patterns_of_lists_match_lists_of_as_many() -> None:
    pattern = fx.symbolic_trace(lambda x, y: torch.cat([x, y])).graph
    for program, matches in ((lambda x, y: torch.cat([x, y]), 1), (lambda x: torch.cat([x]), 0)):
        graph = fx.symbolic_trace(program).graph
        assert len(SubgraphMatcher(pattern).match(graph)) == matches


@pytest.mark.parametrize(("value", "matches"), [(torch.ones(1), 1), (nn.Identity(), 0)])
def test_patterns_of_attributes_match_attributes_of_their_type(value: Any, matches: int) -> None:
    def reading(attribute: Any) -> Any:
        graph, root = fx.Graph(), nn.Module()
        root.value = attribute
        graph.output(graph.call_function(torch.neg, (graph.get_attr("value"),)))
        return fx.GraphModule(root, graph).graph

    found = SubgraphMatcher(reading(torch.zeros(1))).match(reading(value))
    assert len(found) == matches


def test_replacements_may_be_made_for_each_place() -> None:
    module = fx.symbolic_trace(lambda x: torch.add(x, 1) + torch.add(x, 2))

    def make(match: Any, *_: Any) -> Any:
        literal = next(n for n in match.nodes_map.values() if getattr(n, "name", "")).args[1]
        return fx.symbolic_trace(lambda x: torch.sub(x, literal)).graph

    places = replace_pattern_with_filters(
        module,
        lambda x: torch.add(x, 1),
        ignore_literals=True,
        replacement_callback=make,
        match_filters=[lambda match, *_: True],
    )
    assert len(places) == 2
    assert module(torch.ones(1)).tolist() == [-1.0]


class Scaling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.factor = nn.Parameter(torch.full((1,), 3.0))

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.inner(x) * self.factor


@pytest.mark.parametrize("traced", [True, False])
def test_a_replacement_brings_its_modules_and_parameters(traced: bool) -> None:
    module = fx.symbolic_trace(lambda x: x.neg())
    replacement = fx.symbolic_trace(Scaling()) if traced else Scaling()
    fx.replace_pattern(module, lambda x: x.neg(), replacement)
    assert module(torch.ones(1)).tolist() == [3.0]
    assert [name for name, _ in module.named_children()] == ["inner"]


def test_a_replacement_of_results_that_nobody_uses_stands_behind_them() -> None:
    module = fx.symbolic_trace(lambda x: (x.neg(), x)[1])
    fx.replace_pattern(module, lambda x: x.neg(), lambda x: x.abs())
    assert "abs" in module.code


# --- passes ---


def test_passes_run_until_nothing_changes() -> None:
    calls = []

    def changing(module: Any) -> Any:
        calls.append("changing")
        return PassResult(module, len(calls) < 3)

    class Callable:
        def __call__(self, module: Any) -> None:
            calls.append("callable")

    manager = PassManager(steps=5)
    manager.add_pass(changing)
    result = manager(chain())
    assert (calls, result.modified) == (["changing"] * 3, True)
    wrapped = pass_result_wrapper(Callable())
    assert wrapped.__name__ == "Callable"
    assert wrapped(chain()).modified
    assert pass_result_wrapper(None) is None


def test_checks_run_before_and_after_passes() -> None:
    seen = []
    manager = PassManager([pass_result_wrapper(lambda m: None)], run_checks_after_each_pass=True)
    manager.add_checks(lambda module: seen.append(module))
    manager(chain())
    assert len(seen) == 2


def test_constraints_put_passes_in_order() -> None:
    def a(module: Any) -> Any: ...
    def b(module: Any) -> Any: ...

    manager = PassManager([a, b])
    manager.add_constraint(this_before_that_pass_constraint(b, a))
    manager.solve_constraints()
    assert manager.passes == [b, a]
    manager.validate_constraints()


def test_parts_tell_what_they_depend_on() -> None:
    part = Partition("p")
    assert repr(part).startswith("name: p,\n nodes: [],\n inputs: {}")


def test_parts_take_submodules_that_they_read() -> None:
    class Reading(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return scaled(x, self.inner) + 1

    model = Reading()
    module = fx.symbolic_trace(model)
    made = split_module(module, model, lambda node: int(node.name == "add"))
    assert made(1) == 2


def test_constants_of_several_results_are_folded() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))
            self.register_buffer("b", torch.full((2,), 2.0))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * self.w.neg() + self.b.abs()

    module = const_fold.split_const_subgraphs(Constant())
    assert module(torch.ones(2)).tolist() == [1.0, 1.0]
    assert module.has_folding_been_run
    assert const_fold.get_unique_attr_name_in_module(module, "0 b") == "_0_b"
    module._0_b = module._0_b_1 = 3
    assert const_fold.get_unique_attr_name_in_module(module, "0 b") == "_0_b_2"
    plain = const_fold.split_const_subgraphs(fx.symbolic_trace(lambda x: x + 1))
    assert plain(1) == 2
    skipped = const_fold.split_const_subgraphs(Constant(), lambda node: True)
    assert skipped.const_subgraph_module is None


def layers(first: Any, second: Any, width: int = 2) -> Any:
    norm = second(width)
    norm.running_mean.fill_(0.5)
    return nn.Sequential(first, norm).eval()


@pytest.mark.parametrize(
    ("first", "second", "shape"),
    [
        (nn.Conv1d(1, 2, 1), nn.BatchNorm1d, (1, 1, 3)),
        (nn.Conv2d(1, 2, 1), nn.BatchNorm2d, (1, 1, 3, 3)),
        (nn.Conv3d(1, 2, 1), nn.BatchNorm3d, (1, 1, 2, 2, 2)),
        (nn.Linear(3, 2), nn.BatchNorm1d, (4, 3)),
    ],
)
def test_a_normalization_becomes_part_of_the_layer_before(
    first: Any, second: Any, shape: Any
) -> None:
    model, x = layers(first, second), torch.randn(*shape)
    fused = optimization.fuse(model)
    assert len(list(fused.children())) == 1
    assert torch.allclose(fused(x), model(x), atol=1e-6)
    again = optimization.fuse(fx.symbolic_trace(model), inplace=True, no_trace=True)
    assert torch.allclose(again(x), fused(x), atol=1e-6)


def test_a_layer_with_other_users_stays() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm = nn.Linear(2, 2), nn.BatchNorm1d(2)

        def forward(self, x):  # type: ignore[no-untyped-def]
            y = self.first(x)
            return self.norm(y) + y

    assert len(list(optimization.fuse(Both().eval()).children())) == 2


def test_dropouts_are_left_out() -> None:
    module = optimization.remove_dropout(Model())
    assert [n.target for n in module.graph.nodes if n.op == "call_module"] == ["linear"]


def test_some_nodes_become_a_module() -> None:
    module = chain()
    x, neg, absolute, *_ = module.graph.nodes
    made = optimization.extract_subgraph(module, [neg, absolute], [x], [absolute])
    assert [y.tolist() for y in made(torch.full((1,), -2.0))] == [[2.0]]
