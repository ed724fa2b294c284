"""Type stubs, TypeScript declarations and signatures of functions say what the op table says, and
those of the JavaScript front's layers what the classes here say.
"""

from __future__ import annotations

import ast
import inspect

import pytest
from fronts import (
    declarations,
    dispatcher,
    enumerations,
    layer_types,
    layers,
    optimizers,
    signatures,
    stubs,
)

import pygrad
from pygrad._table import functions
from pygrad.nn import functional


@pytest.mark.parametrize("space", stubs.FILES)
def test_stub_is_what_the_table_gives(space: str) -> None:
    committed = (stubs.FOLDER / stubs.FILES[space]).read_text(encoding="utf-8")
    assert committed == stubs.stub(space), "run make stubs"


def test_gates_of_classes_that_override_leave_the_stub_as_it_is() -> None:
    class Asked(pygrad.Tensor):
        @classmethod
        def __torch_function__(cls, func: object, *_: object) -> object:
            return func

    assert pygrad.Tensor.T.__get__ == pygrad.ones(1).as_subclass(Asked).T  # type: ignore[attr-defined]
    test_stub_is_what_the_table_gives("method")


@pytest.mark.parametrize("space", stubs.FILES)
def test_stub_names_every_function_of_its_namespace(space: str) -> None:
    tree = ast.parse(stubs.stub(space))
    scopes = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    defined = {n.name for scope in scopes for n in scope.body if isinstance(n, ast.FunctionDef)}
    offered = {name for name in functions.SPACES[space] if stubs.is_the_tables(name, space)}
    assert offered <= defined


def test_typescript_declarations_are_what_the_table_gives() -> None:
    committed = declarations.FILE.read_text(encoding="utf-8")
    assert committed == declarations.declarations(), "run make stubs"


def test_numbers_of_the_javascript_front_are_the_engine_s() -> None:
    committed = enumerations.FILE.read_text(encoding="utf-8")
    assert committed == enumerations.enumerations(), "run make stubs"


def test_calls_of_the_dispatcher_are_those_of_rows_and_schemas() -> None:
    committed = dispatcher.FILE.read_text(encoding="utf-8")
    assert committed == dispatcher.text(), "run make stubs"


def test_a_row_that_names_no_op_of_pytorch_is_refused() -> None:
    op = next(op for op in functions.TABLE if op.name == "narrow")
    schema = op.schemas[0]
    assert dispatcher.calls(op, frozenset({"aten:slice.Tensor"}), schema, "-")
    for wrong in ("aten:slyce", "aten:slice.Tensors", "aten:mul(self,~start)"):
        with pytest.raises(dispatcher.Misnamed):
            dispatcher.calls(op, frozenset({wrong}), schema, "-")


@pytest.mark.parametrize("space", declarations.INTERFACES)
def test_typescript_declares_every_function_of_a_namespace(space: str) -> None:
    interface = f"export interface {declarations.INTERFACES[space]} {{"
    body = declarations.declarations().partition(interface)[2].partition("\n}")[0]
    declared = {line.strip().partition("(")[0] for line in body.splitlines() if line}
    assert declared == set(functions.SPACES[space])


def test_typescript_divides_arguments_between_positions_and_options() -> None:
    lines = declarations.declarations().splitlines()
    assert [line.strip() for line in lines if line.startswith("  softmax(dim")] == [
        "softmax(dim: number, dtype?: DType | null): Tensor;",
        "softmax(dim: number, options: { dtype?: DType | null }): Tensor;",
    ]


def test_javascript_signatures_are_those_of_the_classes() -> None:
    committed = signatures.FILE.read_text(encoding="utf-8")
    assert committed == signatures.signatures(), "run make stubs"


def test_descriptions_of_optimizers_are_those_of_the_classes() -> None:
    committed = optimizers.FILE.read_text(encoding="utf-8")
    assert committed == optimizers.table(), "run make stubs"


def test_javascript_layers_and_their_types_are_those_of_the_classes() -> None:
    assert layers.FILE.read_text(encoding="utf-8") == layers.definitions(), "run make stubs"
    assert layer_types.FILE.read_text(encoding="utf-8") == layer_types.layer_types()


def test_javascript_signature_has_order_types_defaults_and_names() -> None:
    lines = signatures.signatures().splitlines()
    (linear,) = (line.strip() for line in lines if line.startswith("  Linear:"))
    assert linear == (
        "Linear: { in_features: ['int'], out_features: ['int'], bias: ['bool', true], "
        "device: ['Device?', null], dtype: ['ScalarType?', null] },"
    )
    (sgd,) = (line for line in lines if line.startswith("  SGD:"))
    assert "nesterov: ['bool', false], maximize: ['bool', false, 'named']" in sgd


def test_signature_of_a_function_method_and_bound_method() -> None:
    shown = "(input: 'Tensor', dim: 'int', *, dtype: 'ScalarType?' = None, out: 'Tensor?' = None)"
    assert str(inspect.signature(pygrad.cumsum)) == f"{shown} -> 'Tensor'"
    method = "dim: 'int', *, dtype: 'ScalarType?' = None) -> 'Tensor'"
    assert str(inspect.signature(pygrad.Tensor.cumsum)) == f"(self: 'Tensor', {method}"
    assert str(inspect.signature(pygrad.ones(2).cumsum)) == f"({method}"


def test_signature_binds_like_the_function() -> None:
    bound = inspect.signature(functional.dropout1d).bind(pygrad.ones(1, 2, 3), training=False)
    bound.apply_defaults()
    assert bound.arguments["p"] == 0.5
    with pytest.raises(TypeError):
        inspect.signature(pygrad.cumsum).bind(pygrad.ones(2))


def test_docstring_lists_the_overloads() -> None:
    doc = inspect.getdoc(pygrad.max)
    assert doc is not None
    assert doc.startswith("As torch.max in PyTorch.")
    assert "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)" in doc


def test_every_table_function_has_a_readable_signature() -> None:
    for space in functions.SPACES.values():
        for function in space.values():
            assert str(inspect.signature(function)).startswith("(")
