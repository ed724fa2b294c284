"""The functions of torch as objects: what they are called, where they are found, what copies and
pickles of them are. Which of them bind: parity/test_builtins.py.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import pygrad
from pygrad._table import functions
from pygrad._table.schema import arguments, python_name

SPACES: dict[str, Any] = {
    "torch": pygrad,
    "nn": pygrad.nn.functional,
    "linalg": pygrad.linalg,
    "special": pygrad.special,
}


def table_functions() -> Iterator[tuple[Any, str, functions.Op, str]]:
    for op in functions.TABLE:
        for word, space in SPACES.items():
            for name in op.names(word):
                if getattr(space, name) is functions.SPACES[word][name]:
                    yield space, name, op, word


def composed_functions() -> Iterator[tuple[Any, str]]:
    yield pygrad, "tensor"


ALL = [*((space, name) for space, name, _, _ in table_functions()), *composed_functions()]


@pytest.mark.parametrize(("space", "name"), ALL, ids=[f"{m.__name__}.{n}" for m, n in ALL])
def test_function_has_a_name_and_is_found_by_it(space: Any, name: str) -> None:
    function = getattr(space, name)
    assert (function.__name__, function.__qualname__) == (name, name)
    assert function.__doc__
    assert name in repr(function)
    assert inspect.isroutine(function)
    home = importlib.import_module(function.__module__)
    assert getattr(home, name) is function
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(function, protocol)) is function
    assert copy.copy(function) is function
    again = copy.deepcopy(function)
    assert (again, hash(again)) == (function, hash(function))


def test_signature_is_that_of_the_schema() -> None:
    for space, name, op, word in table_functions():
        found = inspect.signature(getattr(space, name))
        offered = op.rows_in(word)
        if len(offered) > 1:
            assert str(found) == "(*args: 'Any', **kwargs: 'Any') -> 'Any'"
            continue
        words, schema = offered[0]
        wanted = [python_name(each.name, False) for each in arguments(schema)]
        wanted += ["out"] * ("out" in words and name == op.name)
        assert list(found.parameters) == wanted, name


def test_functions_print_where_they_belong() -> None:
    assert repr(pygrad.conv2d) == "<bound method conv2d of pygrad>"
    assert repr(pygrad.linalg.det) == "<bound method det of pygrad.linalg>"
    assert repr(pygrad.tensor) == "<built-in method tensor of pygrad._tensor.creation>"


def test_a_copied_module_calls_the_function_that_it_held() -> None:
    layer = pygrad.nn.Module()
    layer.activation = pygrad.tanh
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert again.activation == pygrad.tanh
        assert again.activation(pygrad.zeros(1)).item() == 0.0


def test_methods_of_tensors_bind() -> None:
    x = pygrad.tensor([[3.0, 4.0]])
    assert x.renorm(2, 0, 1.0).tolist() == pygrad.renorm(x, 2, 0, 1.0).tolist()
    assert x.add(1).tolist() == [[4.0, 5.0]]
    assert pygrad.Tensor.add(x, 1).tolist() == [[4.0, 5.0]]
