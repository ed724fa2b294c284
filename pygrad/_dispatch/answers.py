"""Answers the engine's questions about ops below autograd: ``__torch_dispatch__``.

The engine asks at the door of each op (wasm_core/ops/dispatch.c) while a mode is active, or for a
tensor whose class handles ops. The op is passed in the form of PyTorch's dispatcher: an
`OpOverload` of `pygrad.ops`, and arguments in the order of its schema.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .._boundary import asked, callbacks, overriding
from .._table.function_schema import FunctionSchema
from .._table.schema import arguments
from .._tensor.tensor import Tensor
from .choice import requested_call
from .handlers import adopt_tensor, dispatch_call, here, kernels
from .row_calls import schema_of_row


def _wrong(value: Any, wanted: str) -> RuntimeError:
    if wanted == "at::Tensor" and value is not None:
        return RuntimeError(f"Unable to cast {value!s:.200} to Tensor")
    if wanted == "std::tuple":
        return RuntimeError(
            f"Object of type {type(value).__name__!r} is not an instance of 'sequence'"
        )
    return RuntimeError(
        f"Unable to cast Python instance of type {type(value)} to C++ type '{wanted}'"
    )


def _handles(values: Sequence[Any]) -> list[int]:
    for each in values:
        if each is not None and not isinstance(each, Tensor):
            raise _wrong(each, "at::Tensor")
    return asked.handles_of(values)


def _answer(schema: FunctionSchema, result: Any) -> list[int]:
    """A result as words for the engine.

    Raises: RuntimeError: it does not fit the schema.
    """
    returns = schema.returns
    if not returns:
        return [asked.NOTHING]
    if len(returns) > 1:
        if not isinstance(result, (tuple, list)):
            raise _wrong(result, "std::tuple")
        if len(result) != len(returns):
            raise RuntimeError(
                f"{schema.name} was to return {len(returns)} values, and {len(result)} came"
            )
        result = [
            each for one in result for each in (one if isinstance(one, (list, tuple)) else [one])
        ]
        return [asked.TENSORS, len(result), *_handles(result)]
    kind = returns[0].type
    if kind.kind_ == "ListType":
        if not isinstance(result, (tuple, list)):
            raise _wrong(result, "std::vector<at::Tensor>")
        return [asked.TENSORS, len(result), *_handles(result)]
    if isinstance(result, Tensor):
        return [asked.TENSOR, *asked.handles_of([result])]
    if kind.name == "Tensor":
        return [asked.TENSOR, *_handles([result])]
    if isinstance(result, (bool, int, float)):
        return asked.number_words(result)
    raise _wrong(result, "c10::Scalar")


def _encode_composed(found: Any) -> list[int]:
    if isinstance(found, (tuple, list)):
        return [asked.TENSORS, len(found), *_handles(found)]
    return [asked.TENSOR, *_handles([found])]


def answer(ident: int, words: list[int], _: int) -> list[int]:
    """Answers a question of the engine."""
    if here.disabled and not kernels:
        return [asked.LATER, 1]
    row, how = words[0], words[2]
    before, overriding.state.recorded = overriding.state.recorded, bool(how & asked.RECORDED)
    try:
        called = requested_call(row, how, words)
        if called is None:
            return [asked.LATER]
        if not isinstance(called, tuple):
            return _encode_composed(called())
        func, args, kwargs = called
        result = dispatch_call(func, args, kwargs)
        if result is NotImplemented:  # there is no class to ask
            return [asked.LATER, 1]
        schema = func._schema
        if len(schema.returns) > 1 and _gives_one(words):
            return _encode_first(result)
        place = _place_of_grad(row)
        if place >= 0 and asked.wants_grad(words, place) and isinstance(result, Tensor):
            result._mark(True)
        return _answer(schema, result)
    finally:
        overriding.state.recorded = before


def _encode_first(result: Any) -> list[int]:
    """Answers with several results where the op here returns one: its node keeps the others."""
    if isinstance(result, (tuple, list)) and all(isinstance(each, Tensor) for each in result):
        return [asked.FIRST, len(result), *_handles(result)]
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    return [asked.TENSOR, *_handles([first])]


def _gives_one(words: Sequence[int]) -> bool:
    """Whether the op returns one result here."""
    return not asked.has_places(words) if words[0] < 0 else _row_gives_one(words[0])


@functools.cache
def _row_gives_one(row: int) -> bool:
    return not schema_of_row(row).rpartition("->")[2].strip().startswith("(Tensor")


@functools.cache
def _place_of_grad(row: int) -> int:
    """The index of a row's argument `requires_grad`, or -1."""
    names = [each.name for each in arguments(schema_of_row(row))] if row >= 0 else []
    return names.index("requires_grad") if "requires_grad" in names else -1


adopt_tensor(Tensor)
callbacks.runners[asked.ASKED] = answer
