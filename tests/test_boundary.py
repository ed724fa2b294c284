"""The fast ways into the engine: made from one template, and as short as they were by hand."""

from __future__ import annotations

import dis
import sys
from types import FunctionType
from typing import Any

import pytest
from fronts import fast_ways as written

import pygrad
from pygrad._boundary import calls, constants, shapes
from pygrad._boundary.host import layout
from pygrad._ground.dtypes import BY_CODE

INSTRUCTIONS = {
    "call_binary": 179,
    "call_with_number": 190,
    "call": 205,
    "call_bound": 205,
    "call_indexed": 185,
    "call_subscript": 160,
    "make": 168,
}
"""Of CPython 3.11, as counted when each was written by hand, and a look at the type of the left
operand and of what has an index: subclasses may override these.
"""


def fast_ways() -> dict[str, Any]:
    row = calls.ROWS["add"]
    ways = (
        *shapes._pair(row, constants.METHOD),
        shapes.function(row, 0),
        shapes.function(row, 0, bound=True),
        shapes.indexer(row, lambda *_: None),
        shapes.subscript(row),
        shapes.maker(row),
    )
    return {way.__name__: way for way in ways}


def test_fast_ways_are_what_the_template_says() -> None:
    assert written.FILE.read_text(encoding="utf-8") == written.source()


def test_every_fast_way_is_counted() -> None:
    assert fast_ways().keys() == INSTRUCTIONS.keys()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other instructions")
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_fast_way_has_no_more_instructions_than_by_hand(name: str) -> None:
    assert len(list(dis.get_instructions(fast_ways()[name]))) <= INSTRUCTIONS[name]


def test_operators_are_fast_ways() -> None:
    codes = {way.__code__ for way in fast_ways().values()}
    for name in ("__add__", "__mul__", "__getitem__", "sum"):
        method: Any = getattr(pygrad.Tensor, name)
        assert isinstance(method, FunctionType)
        assert method.__code__ in codes


def test_codes_of_dtypes_are_the_engine_s() -> None:
    """`dtypes` serves all engines, and so cannot read what one binary tells."""
    told = {k.removeprefix("dtype_"): v for k, v in layout.items() if k.startswith("dtype_")}
    assert told == {each.name: code for code, each in enumerate(BY_CODE) if each is not None}
