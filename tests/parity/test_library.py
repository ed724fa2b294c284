"""Schemas and names of ops against PyTorch's own."""

from __future__ import annotations

import pytest
import torch

from pygrad._function_schema import native_lines, parse_schema

from . import native_schemas


def test_the_file_of_schemas_is_what_the_installed_torch_says() -> None:
    assert native_schemas.PLACE.read_text().splitlines() == native_schemas.lines()


def test_schemas_are_read_as_torch_reads_them() -> None:
    for name, overloads in native_lines().items():
        for _, text in overloads.values():
            ours, theirs = parse_schema(f"aten::{text}"), torch._C.parse_schema(f"aten::{text}")
            for one, other in zip(ours.arguments, theirs.arguments, strict=True):
                assert one.name == other.name
                assert one.kwarg_only == other.kwarg_only
                assert one.has_default_value() == other.has_default_value(), text
                if one.type.kind_ != "StreamType" and "Stream" not in str(one.type):
                    assert str(one.type) == str(other.type), (name, one.name)
                assert one.default_value == other.default_value, text
                write = other.alias_info is not None and other.alias_info.is_write
                assert one.is_write == write
            assert ours.is_mutable == theirs.is_mutable


@pytest.mark.parametrize("name", ["add.Tensor", "sum.dim_IntList", "view.default", "mm.default"])
def test_overloads_show_as_those_of_torch(name: str) -> None:
    import pygrad

    packet, overload = name.split(".")
    ours = getattr(getattr(pygrad.ops.aten, packet), overload)
    theirs = getattr(getattr(torch.ops.aten, packet), overload)
    for show in (str, repr, lambda op: op.name(), lambda op: op.__name__, lambda op: op.namespace):
        assert show(ours) == show(theirs)
    assert str(ours._schema) == str(theirs._schema)
    assert ours.is_view == theirs.is_view
    assert ours.__module__ == theirs.__module__


def test_every_op_of_the_dispatcher_can_be_looked_up() -> None:
    import pygrad

    for line in native_schemas.lines():
        called = line.partition(" ")[2].partition("(")[0]
        name, _, overload = called.partition(".")
        op = getattr(getattr(pygrad.ops.aten, name), overload or "default")
        assert op.name() == f"aten::{called}"


def test_an_op_that_is_only_a_name_is_refused_when_called() -> None:
    import pygrad

    with pytest.raises(NotImplementedError, match="aten._pin_memory"):
        pygrad.ops.aten._pin_memory.default(pygrad.ones(2))
