"""Schemas and names of ops against PyTorch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from oracle import both

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


# ------------------------------------------------------------------ ops of the dispatcher alone


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dims", [1, 2])
def test_gradients_of_a_convolution(dims: int, transposed: bool) -> None:
    def script(t: Any) -> Any:
        x = t.arange(2 * 4 * 7**dims, dtype=t.float64).reshape(2, 4, *[7] * dims).sin()
        w = t.arange(4 * 2 * 3**dims, dtype=t.float64).reshape(4, 2, *[3] * dims).cos()
        how = [2] * dims, [1] * dims, [1] * dims, transposed, [int(transposed)] * dims, 2
        y = t.ops.aten.convolution.default(x, w, None, *how)
        g = (y.detach() * 0.1).requires_grad_()
        w.requires_grad_()
        backward = t.ops.aten.convolution_backward
        found = []
        for mask in ((True, True, True), (False, True, False), (True, False, False)):
            found.append(backward(g, x, w, [y.shape[1]], *how, mask))
        with t.no_grad():
            found.append(backward.default(g, x, w, None, *how, (True, True, False)))
        second = t.autograd.grad(sum(each.square().sum() for each in found[0]), (g, w))
        return found, second, found[-1][0].requires_grad

    both(script)


def test_zeros_with_the_strides_of_another() -> None:
    def script(t: Any) -> Any:
        zeros = t.ops.aten._new_zeros_with_same_feature_meta
        like = t.ones(2, 3, 4, dtype=t.float64)
        found = []
        for self in (t.ones(5, 2), t.ones(3, 0, 2)):
            for other in (like, like.transpose(0, 2), like[:, 1:], like[1, 1, 1], like[:0]):
                for n in range(self.dim() + 1):
                    z = zeros(self, other, self_num_batch_dims=n)
                    size = z.untyped_storage().nbytes()
                    found.append((z, z.stride(), z.storage_offset(), size))
        return found

    both(script)
