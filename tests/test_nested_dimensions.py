"""The place of the ragged dimension: every rule of the jagged layout that names a dimension does to
each entry what the op does to it alone, wherever the ragged dimension lies.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

import pygrad as torch
from pygrad.nested._internal.nested_tensor import RULES

F = torch.nn.functional
SIZES = (3, 1, 2)
"""The sizes of an entry's regular dimensions, in order."""
LENGTHS = (2, 4)
INNER = range(-len(SIZES) - 1, 0)
"""An entry's dimensions, counted from the end, as in the tensor with the batch."""
PAIRS = [*permutations(INNER, 2)]


def make_jagged(place: int) -> tuple[Any, list[torch.Tensor]]:
    """A tensor whose dimension `place`, counted from the end, is ragged, and its entries."""
    at = place + len(SIZES) + 1
    entries = [
        torch.randn(*SIZES[:at], n, *SIZES[at:], dtype=torch.float64).clamp(-1, 1) for n in LENGTHS
    ]
    starts = torch.tensor([0, *LENGTHS]).cumsum(0)
    values = torch.cat(entries, at)
    return torch.nested.nested_tensor_from_jagged(values, starts, jagged_dim=at + 1), entries


def with_one(x: Any, d: int, one: Any, rest: Any) -> list[Any]:
    """`rest` for each dimension, but `one` for one of them."""
    found = [rest] * x.dim()
    found[d] = one
    return found


def put_last(x: Any, *dims: int) -> list[int]:
    """The dimensions in this order, behind the batch's if there is one."""
    return [*range(x.dim() - len(dims)), *dims]


def new_shape(x: Any, d: int) -> list[Any]:
    """The sizes with one more dimension."""
    shape = [*x.shape]
    return [*shape[:d], 1, *shape[d:]]


OF_ONE: dict[str, Callable[[Any, int], Any]] = {
    "__getitem__": lambda x, d: x[(..., 0, *[slice(None)] * (-d - 1))],
    "_getitem": lambda x, d: x[(..., slice(0, 1), *[slice(None)] * (-d - 1))],
    "cat": lambda x, d: torch.cat([x, 2 * x], d),
    "chunk": lambda x, d: x.chunk(2, d),
    "concat": lambda x, d: torch.concat([x, x], d),
    "concatenate": lambda x, d: torch.concatenate([x, x], d),
    "expand": lambda x, d: x.expand(with_one(x, d, 5, -1)),
    "broadcast_to": lambda x, d: x.broadcast_to(with_one(x, d, 5, -1)),
    "flatten": lambda x, d: x.flatten(d, min(d + 1, -1)),
    "layer_norm": lambda x, d: F.layer_norm(x, x.shape[d:]),
    "log_softmax": lambda x, d: x.log_softmax(d),
    "narrow": lambda x, d: x.narrow(d, 0, 1),
    "reshape": lambda x, d: x.reshape(new_shape(x, d)),
    "rms_norm": lambda x, d: F.rms_norm(x, x.shape[d:]),
    "select": lambda x, d: x.select(d, -1),
    "size": lambda x, d: x.expand(with_one(x, d, x.size(d), -1)),
    "softmax": lambda x, d: x.softmax(d),
    "split": lambda x, d: x.split(1, d),
    "split_with_sizes": lambda x, d: x.split_with_sizes([1, x.shape[d] - 1], d),
    "squeeze": lambda x, d: x.squeeze(d),
    "stack": lambda x, d: torch.stack([x, -x], d),
    "unflatten": lambda x, d: x.unflatten(d, (1, -1, 1)),
    "unsqueeze": lambda x, d: x.unsqueeze(d),
    "view": lambda x, d: x.view(new_shape(x, d)),
}
TO_THE_LAST = ("__getitem__", "_getitem", "layer_norm", "rms_norm")
"""Ops of `OF_ONE` that take all dimensions from one to the last."""
OF_TWO: dict[str, Callable[[Any, int, int], Any]] = {
    "transpose": lambda x, a, b: x.transpose(a, b),
    "swapaxes": lambda x, a, b: x.swapaxes(a, b),
    "swapdims": lambda x, a, b: x.swapdims(a, b),
    "movedim": lambda x, a, b: x.movedim(a, b),
    "moveaxis": lambda x, a, b: x.moveaxis(a, b),
    "permute": lambda x, a, b: x.permute(put_last(x, a, b, *(d for d in INNER if d not in (a, b)))),
}
REDUCTIONS = "all amax amin any argmax argmin max mean min prod sum".split()
NAME_NO_DIMENSION = frozenset(
    "T __array__ __matmul__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ "
    "__setitem__ _setitem adjoint autograd.backward autograd.grad backward bmm clone complex "
    "contiguous conv1d copy_ cpu data dim embedding embedding_bag equal expand_as imag index_put "
    "index_put_ is_contiguous is_same_size item linear mH mT masked_select matmul names nelement "
    "new_empty new_full new_ones new_zeros numel numpy numpy_T one_hot real requires_grad_ "
    "reshape_as scaled_dot_product_attention stride tolist unbind view_as vmap".split()
)
REFUSED = (RuntimeError, ValueError, NotImplementedError, AssertionError, TypeError)


def test_every_rule_that_names_a_dimension_is_among_these() -> None:
    assert {*OF_ONE, *OF_TWO, *REDUCTIONS} | NAME_NO_DIMENSION == RULES.keys()
    assert not {*OF_ONE, *OF_TWO, *REDUCTIONS} & NAME_NO_DIMENSION


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_is_of_each_entry(function: Callable[[Any], Any], place: int, may_refuse: bool) -> None:
    """A function of a jagged tensor gives what it gives of its entries, or says that it does not
    go along the ragged dimension.
    """
    x, entries = make_jagged(place)
    try:
        wanted = [parts(function(entry)) for entry in entries]
    except (RuntimeError, IndexError):
        with pytest.raises((*REFUSED, IndexError)):
            function(x)
        return
    try:
        found = parts(function(x))
    except REFUSED:
        assert may_refuse
        return
    for result, *alone in zip(found, *wanted, strict=True):
        assert result.dim() == alone[0].dim() + 1
        for mine, theirs in zip(result.unbind(), alone, strict=True):
            torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("place", INNER)
@pytest.mark.parametrize("name", OF_ONE)
def test_a_dimension_is_that_of_each_entry(name: str, place: int) -> None:
    for d in INNER:
        last = -1 if name in TO_THE_LAST else d + (name == "flatten")
        along = d <= place <= last
        assert_is_of_each_entry(lambda x, d=d: OF_ONE[name](x, d), place, along)


@pytest.mark.parametrize("place", INNER)
@pytest.mark.parametrize("name", OF_TWO)
def test_dimensions_change_their_order_in_each_entry(name: str, place: int) -> None:
    for a, b in PAIRS:
        assert_is_of_each_entry(lambda x, a=a, b=b: OF_TWO[name](x, a, b), place, False)


@pytest.mark.parametrize("place", INNER)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_those_of_each_entry(name: str, place: int) -> None:
    for d in INNER:
        for keepdim in (False, True):

            def reduce(x: Any, d: int = d, keepdim: bool = keepdim) -> Any:
                x = x > 0 if name in ("any", "all") else x
                return getattr(x, name)(d, keepdim=keepdim)

            assert_is_of_each_entry(reduce, place, False)
