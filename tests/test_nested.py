"""Nested tensors: how they are made and what they say of themselves, which ops go over them and
with what results, their gradients, and what is refused.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from helpers import leaves_nothing
from samples import Entry, entries, samples
from sampling import Call, fill_sample, numbers

import pygrad as torch
from pygrad.autograd import gradcheck, gradgradcheck
from pygrad.nested._functions import function_info
from pygrad.nested._internal.nested_tensor import NestedTensor, nested_view_from_values_offsets

F = torch.nn.functional
JAGGED, STRIDED = torch.jagged, torch.strided
both_layouts = pytest.mark.parametrize("layout", [JAGGED, STRIDED], ids=str)


def rows(*lengths: int, width: int = 2) -> list[torch.Tensor]:
    """Tensors (length, width) of numbers that are all different."""
    made, first = [], 1
    for n in lengths:
        made.append(torch.arange(first, first + n * width, dtype=torch.float64).view(n, width))
        first += n * width
    return made


def make_nested(layout: Any, *lengths: int, width: int = 2, requires_grad: bool = False) -> Any:
    return torch.nested.nested_tensor(
        rows(*lengths, width=width), layout=layout, requires_grad=requires_grad
    )


def lists(x: Any) -> Any:
    """The entries as lists of numbers."""
    return [each.tolist() for each in x.unbind()]


# ------------------------------------------------------------------ making


@both_layouts
def test_a_list_of_tensors_is_copied(layout: Any) -> None:
    given = rows(2, 1)
    x = torch.nested.nested_tensor(given, layout=layout)
    given[0].zero_()
    assert lists(x) == [[[1, 2], [3, 4]], [[5, 6]]]
    assert (x.is_nested, x.layout, x.dtype, x.is_leaf) == (True, layout, torch.float64, True)
    assert (x.dim(), x.size(0), x.size(2), x.numel()) == (3, 2, 2, 6)
    assert isinstance(x, torch.Tensor)


def test_plain_tensors_are_not_nested() -> None:
    assert not torch.ones(2).is_nested


@both_layouts
def test_numbers_are_taken_too(layout: Any) -> None:
    x = torch.nested.nested_tensor([[1, 2], [3]], layout=layout, dtype=torch.float32)
    assert (lists(x), x.dtype) == ([[1, 2], [3]], torch.float32)


@both_layouts
def test_as_nested_tensor_keeps_the_history(layout: Any) -> None:
    a, b = (each.requires_grad_() for each in rows(2, 1))
    x = torch.nested.as_nested_tensor([a, b], layout=layout)
    assert x.requires_grad
    assert not x.is_leaf
    x.values().pow(2).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist()) == ([[2, 4], [6, 8]], [[10, 12]])


@both_layouts
def test_one_tensor_is_a_batch_of_its_rows(layout: Any) -> None:
    base = torch.arange(6.0).view(2, 3)
    x = torch.nested.as_nested_tensor(base, layout=layout)
    assert lists(x) == [[0, 1, 2], [3, 4, 5]]
    base.mul_(2)
    assert lists(x) == [[0, 2, 4], [6, 8, 10]]


def test_jagged_is_a_view_of_its_values() -> None:
    values = torch.arange(4.0, requires_grad=True)
    x = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 4]))
    assert x._base is values
    (x * x).values().sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [0, 2, 4, 6]


def test_lengths_may_leave_holes() -> None:
    x = torch.nested.nested_tensor_from_jagged(
        torch.arange(6.0), torch.tensor([0, 3, 6]), torch.tensor([2, 1])
    )
    assert (lists(x), x.numel(), x.is_contiguous()) == ([[0, 1], [3]], 3, False)
    whole = x.contiguous()
    assert (lists(whole), whole.offsets().tolist()) == ([[0, 1], [3]], [0, 2, 3])
    assert x.sum().tolist() == 4  # what is in a hole does not count


def test_lengths_alone_say_the_offsets() -> None:
    x = torch.nested.nested_tensor_from_jagged(torch.arange(3.0), lengths=torch.tensor([1, 2]))
    assert (x.offsets().tolist(), x.lengths()) == ([0, 1, 3], None)


def test_narrow_is_a_view_of_the_jagged_layout() -> None:
    base = torch.arange(8.0).view(2, 4)
    x = torch.nested.narrow(base, 1, torch.tensor([0, 2]), torch.tensor([3, 1]), JAGGED)
    assert lists(x) == [[0, 1, 2], [6]]
    base.zero_()
    assert lists(x) == [[0, 0, 0], [0]]


def test_narrow_is_padded_without_what_is_in_its_holes() -> None:
    base = torch.tensor([[2.0, 4.0], [6.0, 8.0]], requires_grad=True)
    x = torch.nested.narrow(base, 1, torch.tensor([0, 1]), torch.tensor([2, 1]), JAGGED)
    padded = torch.nested.to_padded_tensor(x, -1.0)
    assert padded.tolist() == [[2, 4], [8, -1]]
    assert x.to_padded_tensor(0.0, (2, 3)).tolist() == [[2, 4, 0], [8, 0, 0]]
    (padded * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert base.grad.tolist() == [[1, 2], [0, 3]]


def test_masked_select_keeps_what_the_mask_says() -> None:
    x = torch.nested.masked_select(
        torch.arange(4.0).view(2, 2), torch.tensor([[True, False], [True, True]])
    )
    assert lists(x) == [[0], [2, 3]]


def test_the_ragged_size_is_that_of_the_offsets() -> None:
    x, y = make_nested(JAGGED, 2, 1), make_nested(JAGGED, 2, 1)
    j = x.shape[1]
    assert isinstance(j, torch.SymInt)
    assert (j == (x * 2).shape[1], j == y.shape[1], j == 2, hash(j) == hash(x.shape[1])) == (
        True,
        False,
        False,
        True,
    )
    assert repr(3 * j) == f"3*{j!r}"
    assert (j >= 0, j < 1) == (True, False)
    with pytest.raises(ValueError, match="relation is indeterminate"):
        bool(j > 3)


def test_strided_sizes_are_those_of_each_entry() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    assert x._nested_tensor_size().tolist() == [[2, 3], [4, 3]]
    assert x._nested_tensor_strides().tolist() == [[3, 1], [3, 1]]
    assert x._nested_tensor_storage_offsets().tolist() == [0, 6]
    with pytest.raises(RuntimeError, match="Given dimension 1 is irregular"):
        x.size(1)
    with pytest.raises(RuntimeError, match="doesn't support sizes"):
        _ = x.shape
    with pytest.raises(IndexError, match="but got 3"):
        x.size(3)


def test_texts() -> None:
    x = torch.nested.nested_tensor([[1.0], [2.0, 3.0]], requires_grad=True)
    assert repr(x) == (
        "nested_tensor([\n  tensor([1.], requires_grad=True),\n"
        "  tensor([2., 3.], requires_grad=True)\n], requires_grad=True)"
    )
    assert repr(x * 2).endswith("], grad_fn=<MulBackward0>)")
    y = torch.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=JAGGED)
    j = y.shape[1]
    assert repr(y) == (f"NestedTensor(size=(2, {j}), offsets=tensor([0, 1, 3]), contiguous=True)")


# ------------------------------------------------------------------ elements


@both_layouts
@pytest.mark.parametrize(
    "function",
    [
        torch.sin,
        torch.relu,
        F.gelu,
        F.silu,
        F.softplus,
        torch.Tensor.exp,
        torch.isnan,
        lambda x: x + x,
        lambda x: 2 / x,
        lambda x: -x,
        lambda x: x**2,
        lambda x: x > 3,
        lambda x: torch.where(x > 3, x, x * 2),
        lambda x: x.clamp(2, 4),
        lambda x: x.float(),
        lambda x: x.clone(),
        lambda x: torch.zeros_like(x),
        lambda x: F.dropout(x, 0.5, False),
        lambda x: x + torch.tensor(2.0),
    ],
)
def test_each_element_is_computed_as_in_its_entry(layout: Any, function: Any) -> None:
    x = make_nested(layout, 2, 0, 3)
    y = function(x)
    wanted = [function(each) for each in x.unbind()]
    assert y.is_nested
    assert y.layout is layout
    assert [each.dtype for each in y.unbind()] == [each.dtype for each in wanted]
    assert lists(y) == [each.tolist() for each in wanted]


def draw(sample: Call) -> list[torch.Tensor]:
    """The tensors of a sample."""
    return [
        torch.from_numpy(numbers(what, "float64", salt).copy())
        for salt, what in enumerate(sample.tensors(), 1)
    ]


def fits_nested(sample: Call) -> bool:
    """Whether all tensors of a sample have one shape, of two rows at least."""
    if any(what.kind == "parts" for what in sample.tensors()):
        return False
    shapes = {tuple(each.shape) for each in draw(sample)} - {()}
    return len(shapes) == 1 and min(shapes)[0] > 1


SWEPT = [
    (entry, sample)
    for entry in entries()
    if function_info(entry.function).each and entry.name not in NestedTensor.rules
    if not entry.id.startswith("ops.aten.")  # gradients: the function's own node calls them
    if entry.name not in ("empty_like", "detach_")  # what is there by chance; not of a view
    for sample in filter(fits_nested, samples(entry)[:4])
    if entry.name != "where" or len(sample.args) == 3  # else it tells where
]


@both_layouts
@pytest.mark.parametrize(("entry", "sample"), SWEPT, ids=lambda each: getattr(each, "id", ""))
@leaves_nothing
def test_every_op_of_elements_is_done_to_each_entry(
    layout: Any, entry: Entry, sample: Call
) -> None:
    """The first row is an entry, and the others are one: the results are those of all rows."""
    plain = draw(sample)
    offsets = torch.tensor([0, 1, max(len(each) for each in plain if each.ndim)])

    def divide(x: torch.Tensor) -> Any:
        if not x.ndim:
            return x
        if layout is STRIDED:
            return torch.nested.as_nested_tensor([x[:1], x[1:]])
        return torch.nested.nested_tensor_from_jagged(x.clone(), offsets)

    def result(tensors: list[Any]) -> list[Any]:
        torch.manual_seed(0)
        args, kwargs = fill_sample(sample, tensors)
        found = entry.function(*args, **kwargs)
        return list(found) if isinstance(found, tuple) else [found]

    made = result([divide(each) for each in plain])
    for got, wanted in zip(made, result(plain), strict=True):
        for part, rows_of in zip(got.unbind(), (wanted[:1], wanted[1:]), strict=True):
            assert part.dtype is rows_of.dtype
            assert torch.allclose(part, rows_of, rtol=0, atol=0, equal_nan=True)


def test_which_ops_go_element_by_element_is_said_by_the_table() -> None:
    elementwise = [torch.sin, torch.add, torch.Tensor.add_, torch.Tensor.__pow__, torch.where]
    others = [torch.sum, torch.matmul, torch.cumsum, torch.sort, torch.linalg.norm, torch.cat]
    assert [function_info(each).each for each in elementwise + others] == [True] * 5 + [False] * 6


@both_layouts
def test_getters_of_the_base_class_read_the_nested_tensor(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    for name in ("ndim", "dtype", "grad", "grad_fn", "is_nested", "nbytes", "requires_grad"):
        assert getattr(torch.Tensor, name).__get__(x) == getattr(x, name)


@both_layouts
def test_in_place_is_written_to_the_entries(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    first = x[0]
    assert x.mul_(2) is x
    x += 1
    first.zero_()
    assert lists(x) == [[[0, 0], [0, 0]], [[11, 13]]]


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        ([10.0, 20.0], [[[11, 22], [13, 24]], [[15, 26]]]),
        ([[[10.0]], [[20.0]]], [[[11, 12], [13, 14]], [[25, 26]]]),
        ([[[10.0, 20.0]]], [[[11, 22], [13, 24]], [[15, 26]]]),
        ([[[1.0], [2.0]], [[3.0], [9.0]]], [[[2, 3], [5, 6]], [[8, 9]]]),
    ],
    ids=["a row", "one number an entry", "one row", "padded"],
)
def test_jagged_beside_a_plain_tensor(other: Any, wanted: Any) -> None:
    x = make_nested(JAGGED, 2, 1)
    assert lists(x + torch.tensor(other, dtype=torch.float64)) == wanted
    assert lists(torch.tensor(other, dtype=torch.float64) + x) == wanted


def test_jagged_beside_one_of_another_width() -> None:
    x = make_nested(JAGGED, 2, 1)
    total = x.sum(-1, keepdim=True)
    wanted = [[[3, 6], [21, 28]], [[55, 66]]]
    assert lists(total * x) == lists(x * total) == wanted
    assert lists(total + torch.tensor([0.0, 1.0], dtype=torch.float64)) == [
        [[3, 4], [7, 8]],
        [[11, 12]],
    ]
    with pytest.raises(RuntimeError, match="is being used in an in-place|doesn't match|shape"):
        total.add_(x)


def test_ragged_in_another_dimension_beside_a_plain_tensor() -> None:
    x = make_nested(JAGGED, 2, 1).transpose(1, 2)
    other = torch.tensor([[[10.0], [20.0]], [[30.0], [40.0]]], dtype=torch.float64)
    assert lists(x + other) == [[[11, 13], [22, 24]], [[35], [46]]]


# ------------------------------------------------------------------ reductions


def test_jagged_reductions() -> None:
    x = make_nested(JAGGED, 2, 1)
    assert x.sum().item() == 21
    assert x.sum(1).tolist() == [[4, 6], [5, 6]]
    assert lists(x.sum(2)) == [[3, 7], [11]]
    assert lists(x.sum(-1, keepdim=True)) == [[[3], [7]], [[11]]]
    assert x.sum((0, 1)).tolist() == [9, 12]
    assert x.mean(1).tolist() == [[2, 3], [5, 6]]
    assert x.prod(1).tolist() == [[3, 8], [5, 6]]
    assert x.amax(1).tolist() == [[3, 4], [5, 6]]
    assert (-x).amax(1, keepdim=True).tolist() == [[[-1, -2]], [[-5, -6]]]
    values, places = x.max(1)
    assert (values.tolist(), places.tolist()) == ([[3, 4], [5, 6]], [[1, 1], [0, 0]])
    assert lists(x.max(2).values) == [[2, 4], [6]]
    assert (x > 2).any(1).tolist() == [[True, True], [True, True]]
    assert (x > 2).all(1).tolist() == [[False, False], [True, True]]
    assert torch.max(x, 2 * x).is_nested


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dims", [(1,), (3,), (1, 3)])
def test_reductions_before_and_behind_the_ragged_dimension(dims: Any, keepdim: bool) -> None:
    entries = [torch.arange(n * 6.0).view(n, 3, 2) for n in (2, 4)]
    x = torch.nested.nested_tensor(entries, layout=JAGGED).transpose(1, 2)  # (2, 3, j, 2)
    found = x.sum(dims, keepdim=keepdim)
    wanted = [e.transpose(0, 1).sum([d - 1 for d in dims], keepdim=keepdim) for e in entries]
    assert lists(found) == [each.tolist() for each in wanted]
    assert found._ragged_idx == 2 - (1 in dims and not keepdim)


def test_reductions_of_an_empty_entry() -> None:
    x = make_nested(JAGGED, 0, 1)
    assert x.sum(1).tolist() == [[0, 0], [1, 2]]
    assert x.to_padded_tensor(7.0).tolist() == [[[7, 7]], [[1, 2]]]


@pytest.mark.parametrize(
    ("dim", "words"),
    [
        (0, "reducing along the batch dimension but not the ragged dimension"),
        ((1, 2), "reducing along a ragged and non-batch dimension"),
    ],
)
def test_jagged_reductions_that_are_refused(dim: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        make_nested(JAGGED, 2, 1).sum(dim)


def test_strided_sums_over_the_last_dimension() -> None:
    x = torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert lists(x.sum(-1, keepdim=True)) == [[3], [3]]
    with pytest.raises(RuntimeError, match="always requires keepdim=True"):
        x.sum(-1)
    with pytest.raises(RuntimeError, match="across the last dimension"):
        make_nested(STRIDED, 2, 1).sum(1, keepdim=True)


def test_a_strided_sum_saves_its_input() -> None:
    torch.autograd.graph.set_saved_tensor_mode("check")
    try:
        x = make_nested(STRIDED, 2, 1, requires_grad=True).clone()
        y = x.sum(-1, keepdim=True)
        x.add_(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward(torch.ones_like(y))
    finally:
        torch.autograd.graph.set_saved_tensor_mode("snapshot")


@both_layouts
def test_softmax(layout: Any) -> None:
    x = torch.nested.nested_tensor([torch.zeros(2, 4), torch.zeros(1, 4)], layout=layout)
    assert lists(x.softmax(2)) == [[[0.25] * 4] * 2, [[0.25] * 4]]
    assert lists(F.softmax(x, 1)) == [[[0.5] * 4] * 2, [[1.0] * 4]]


# ------------------------------------------------------------------ sizes

SHAPES: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "transpose": (lambda x: x.transpose(1, 2), [(2, 3), (2, 1)]),
    "mT": (lambda x: x.mT, [(2, 3), (2, 1)]),
    "unsqueeze": (lambda x: x.unsqueeze(1), [(1, 3, 2), (1, 1, 2)]),
    "unsqueeze_last": (lambda x: x.unsqueeze(-1), [(3, 2, 1), (1, 2, 1)]),
    "squeeze": (lambda x: x.unsqueeze(2).squeeze(2), [(3, 2), (1, 2)]),
    "view": (lambda x: x.view(2, -1, 2, 1), [(3, 2, 1), (1, 2, 1)]),
    "reshape": (lambda x: x.reshape(2, -1, 1, 2), [(3, 1, 2), (1, 1, 2)]),
    "select": (lambda x: x.select(2, 1), [(3,), (1,)]),
    "chunk": (lambda x: x.chunk(2, -1)[1], [(3, 1), (1, 1)]),
    "split": (lambda x: x.split([1, 1], -1)[0], [(3, 1), (1, 1)]),
    "cat": (lambda x: torch.cat([x, x], -1), [(3, 4), (1, 4)]),
}


@both_layouts
@pytest.mark.parametrize("name", SHAPES)
def test_sizes_change_in_each_entry(layout: Any, name: str) -> None:
    function, wanted = SHAPES[name]
    x = make_nested(layout, 3, 1)
    y = function(x)
    assert [tuple(each.shape) for each in y.unbind()] == wanted
    for made, entry in zip(y.unbind(), x.unbind(), strict=True):
        alone = function(torch.nested.as_nested_tensor([entry, entry], layout=layout))
        assert torch.equal(made, alone[1])


def test_jagged_sizes() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 2, 3), torch.ones(1, 2, 3)], layout=JAGGED)
    assert x.flatten(2, 3).shape == (2, x.shape[1], 6)
    assert x.flatten(-2).unflatten(-1, [3, 2]).shape == (2, x.shape[1], 3, 2)
    assert x.permute(0, 2, 1, 3).shape == (2, 2, x.shape[1], 3)
    assert x.view(2, x.shape[1], 6).shape == (2, x.shape[1], 6)
    assert torch.stack([x, x], 2).shape == (2, x.shape[1], 2, 2, 3)
    assert x[..., 1:].shape == (2, x.shape[1], 2, 2)
    assert [tuple(each.shape) for each in x.chunk(2)[0].unbind()] == [(2, 2, 3)]
    for wrong in (lambda: x.flatten(), lambda: x.flatten(1, 2), lambda: x.view(-1, 6)):
        with pytest.raises(RuntimeError, match="flatten|cannot view shape"):
            wrong()


@both_layouts
def test_subscripts_name_an_entry(layout: Any) -> None:
    x = make_nested(layout, 3, 1)
    assert x[1].tolist() == [[7, 8]]
    assert x[-2].shape == (3, 2)
    assert x[0, 2, 1].item() == 6
    assert lists(x.select(2, -1)) == lists(x.select(2, 1)) == [[2, 4, 6], [8]]
    with pytest.raises(IndexError, match="out of"):
        x[2]
    with pytest.raises((RuntimeError, NotImplementedError), match="slice"):
        x[1:]


@both_layouts
def test_reflected_operators(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    assert lists(2**x) == [[[2, 4], [8, 16]], [[32, 64]]]
    assert lists(7 // x) == [[[7, 3], [2, 1]], [[1, 1]]]
    assert lists(7 % x) == [[[0, 1], [1, 3]], [[2, 1]]]
    assert lists(1 - x) == [[[0, -1], [-2, -3]], [[-4, -5]]]
    assert lists(~(x > 2)) == [[[True, True], [False, False]], [[False, False]]]
    with pytest.raises(RuntimeError, match="not supported between|got a non-nested self"):
        torch.ones(2, 2, dtype=torch.float64) @ x


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_of_a_batch_have_its_entries_in_order(parts: int) -> None:
    x = make_nested(JAGGED, 3, 1, 2, 4, 1)
    found = x.chunk(parts)
    assert [len(each) for each in found] == [len(c) for c in torch.zeros(5).chunk(parts)]
    assert [entry for each in found for entry in lists(each)] == lists(x)


@pytest.mark.parametrize("at", [-1, 2])
def test_a_place_beyond_its_entry_is_refused(at: int) -> None:
    x = make_nested(JAGGED, 2, 1, 3)
    before = lists(x)
    where = torch.tensor([0]), torch.tensor([at])
    for put in (x.index_put, x.index_put_):
        with pytest.raises(RuntimeError, match="in the ragged dimension are out of bounds"):
            put(where, torch.tensor(9.0, dtype=torch.float64))
    assert lists(x) == before


def test_jagged_places() -> None:
    x = make_nested(JAGGED, 2, 1)
    where = (torch.tensor([0, 1]), torch.tensor([1, 0]))
    assert lists(x.index_put(where, torch.tensor(9.0, dtype=torch.float64))) == [
        [[1, 2], [9, 9]],
        [[9, 9]],
    ]
    assert x.index_put_((*where, torch.tensor([1, 0])), torch.zeros(2, dtype=torch.float64)) is x
    assert lists(x) == [[[1, 2], [3, 0]], [[0, 6]]]
    for wrong in (([1], [1]), ([0], [-1]), ([0], [2])):
        with pytest.raises(RuntimeError, match="ragged dimension are out of bounds"):
            x.index_put(tuple(map(torch.tensor, wrong)), torch.tensor(9.0, dtype=torch.float64))
    flat = x.select(2, 1)
    assert lists(flat.masked_select(flat > 0)) == [[2], [6]]
    with pytest.raises(RuntimeError, match="only support 2-D selections"):
        x.masked_select(x > 0)


def test_embedding_bag_is_of_each_entry() -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    numbers = torch.nested.nested_tensor([[1], [0, 1]], layout=JAGGED)
    assert F.embedding_bag(numbers, table, mode="sum").tolist() == [[3, 4], [4, 6]]
    twice = torch.full_like(numbers, 2, dtype=torch.float32)
    weighted = F.embedding_bag(numbers, table, mode="sum", per_sample_weights=twice)
    assert weighted.tolist() == [[6, 8], [8, 12]]


@both_layouts
def test_an_entry_is_written_to(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    x[1] = 0
    x[0, 1] = torch.tensor([8.0, 9.0], dtype=torch.float64)
    assert lists(x) == [[[1, 2], [8, 9]], [[0, 0]]]
    with pytest.raises(NotImplementedError, match="index_put_"):
        x[:1] = 0


@both_layouts
def test_parts_of_complex_numbers(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    z = x + 2j
    assert lists(z.real) == lists(x)
    assert lists(z.imag) == [[[2, 2], [2, 2]], [[2, 2]]]
    assert lists(z.conj()) == [[[1 - 2j, 2 - 2j], [3 - 2j, 4 - 2j]], [[5 - 2j, 6 - 2j]]]
    assert x.names == (None, None, None)


def test_jagged_tensors_are_compared_by_testing() -> None:
    x = make_nested(JAGGED, 2, 1)
    assert 3.0 in x
    assert 7.0 not in x
    torch.testing.assert_close(x, x + 0.0)
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(x, x + 1)


def test_strided_narrow_shows_some_entries() -> None:
    x = make_nested(STRIDED, 2, 1, 1)
    y = x.narrow(0, 1, 2)
    assert lists(y) == [[[5, 6]], [[7, 8]]]
    assert lists(y * 2) == [[[10, 12]], [[14, 16]]]
    y[0].zero_()
    assert lists(x) == [[[1, 2], [3, 4]], [[0, 0]], [[7, 8]]]
    for refused in (torch.sin, torch.Tensor.zero_):
        with pytest.raises(RuntimeError, match="must be contiguous to get buffer"):
            refused(y)


def test_padding() -> None:
    x = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(2, 1)])
    assert torch.nested.to_padded_tensor(x, 0.0).tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    assert torch.nested.to_padded_tensor(x, -1.0, (2, 2, 3)).tolist() == [
        [[1, 1, -1], [-1, -1, -1]],
        [[1, -1, -1], [1, -1, -1]],
    ]
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        torch.nested.to_padded_tensor(x, 0.0, (2, 1, 2))
    with pytest.raises(RuntimeError, match="Length of output_size does not match"):
        torch.nested.to_padded_tensor(x, 0.0, (2, 2))
    out = torch.empty(0)
    assert torch.nested.to_padded_tensor(x, 0.0, out=out) is out
    assert out.shape == (2, 2, 2)
    y = make_nested(JAGGED, 2, 1).transpose(1, 2)
    assert y.to_padded_tensor(0).tolist() == [[[1, 3], [2, 4]], [[5, 0], [6, 0]]]


# ------------------------------------------------------------------ products


@both_layouts
def test_linear(layout: Any) -> None:
    weight = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    assert lists(F.linear(make_nested(layout, 2, 1), weight)) == [[[3], [7]], [[11]]]
    module = torch.nn.Linear(2, 3).double()
    y = module(make_nested(layout, 2, 1))
    assert [tuple(each.shape) for each in y.unbind()] == [(2, 3), (1, 3)]


def test_jagged_products() -> None:
    x = make_nested(JAGGED, 2, 1)
    eye = torch.eye(2, dtype=torch.float64)
    assert lists(x @ (2 * eye)) == [[[2, 4], [6, 8]], [[10, 12]]]
    assert lists(torch.bmm(x, torch.stack([eye, 3 * eye]))) == [[[1, 2], [3, 4]], [[15, 18]]]
    inner = x.transpose(1, 2) @ x  # over the ragged dimension
    assert inner.tolist() == [[[10, 14], [14, 20]], [[25, 30], [30, 36]]]
    with pytest.raises(RuntimeError, match=r"matmul\(\): not supported between inputs"):
        x @ x.transpose(1, 2)


def test_strided_products() -> None:
    x = make_nested(STRIDED, 2, 1)
    assert lists(x @ x.transpose(1, 2)) == [[[5, 11], [11, 25]], [[61]]]
    with pytest.raises(RuntimeError, match="got a nested self and non-nested other"):
        x @ torch.ones(2, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Nested tensors cannot be matrix multiplied"):
        make_nested(STRIDED, 2) @ torch.nested.nested_tensor(
            [torch.ones(3, 1, dtype=torch.float64)]
        )


@both_layouts
def test_layer_norm_and_embedding(layout: Any) -> None:
    norm = torch.nn.LayerNorm(2).double()
    x = make_nested(layout, 2, 1)
    for got, entry in zip(norm(x).unbind(), x.unbind(), strict=True):
        assert torch.equal(got, norm(entry))
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    numbers = torch.nested.nested_tensor([[1], [0, 1]], layout=layout)
    assert lists(F.embedding(numbers, table)) == [[[3, 4]], [[1, 2], [3, 4]]]


def test_attention_is_within_each_entry() -> None:
    torch.manual_seed(0)
    given = [torch.randn(n, 2, 4) for n in (3, 1, 2)]
    x = torch.nested.nested_tensor(given, layout=JAGGED, requires_grad=True).transpose(1, 2)
    y = F.scaled_dot_product_attention(x, x, x)
    assert y.shape == x.shape
    for got, entry in zip(y.unbind(), given, strict=True):
        heads = entry.transpose(0, 1).unsqueeze(0)
        wanted = F.scaled_dot_product_attention(heads, heads, heads)[0]
        assert torch.allclose(got, wanted)
    z = torch.nested.nested_tensor([each.transpose(0, 1).contiguous() for each in given])
    for a, b in zip(F.scaled_dot_product_attention(z, z, z).unbind(), y.unbind(), strict=True):
        assert torch.allclose(a, b)


# ------------------------------------------------------------------ gradients


@both_layouts
def test_the_gradient_is_nested(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    (x * x).sum().backward()
    assert (x.grad.is_nested, x.grad.layout, lists(x.grad)) == (
        True,
        layout,
        [[[2, 4], [6, 8]], [[10, 12]]],
    )
    assert x.grad is x.grad
    (x * x).sum().backward()
    assert lists(x.grad) == [[[4, 8], [12, 16]], [[20, 24]]]
    x.grad = None
    assert x.grad is None
    (by,) = torch.autograd.grad((x * 3).sum(), x)
    assert by.is_nested
    assert lists(by) == [[[3, 3], [3, 3]], [[3, 3]]]


@both_layouts
def test_a_backward_begins_with_a_nested_gradient(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    y = x * 2
    y.backward(torch.ones_like(y))
    assert lists(x.grad) == [[[2, 2], [2, 2]], [[2, 2]]]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape|Self is nested"):
        (x * 2).backward(torch.ones(2, 2, 2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(make_nested(layout, 1, 1))


@both_layouts
def test_hooks_see_nested_gradients(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    seen = []

    def hook(grad: Any) -> Any:
        seen.append(grad)
        return grad * 10

    y = x * 1
    y.register_hook(hook)
    y.sum().backward()
    assert seen[0].is_nested
    assert lists(seen[0]) == [[[1, 1], [1, 1]], [[1, 1]]]
    assert lists(x.grad) == [[[10, 10], [10, 10]], [[10, 10]]]


DIFFERENTIABLE: dict[str, Callable[[Any], Any]] = {
    "sin": torch.sin,
    "product": lambda x: x * x.sin(),
    "sum": lambda x: x.sum(-1, keepdim=True) * 2,
    "softmax": lambda x: x.softmax(-1),
    "ragged_softmax": lambda x: x.softmax(1),
    "transpose": lambda x: x.transpose(1, 2) * 2,
    "view": lambda x: x.view(2, -1, 1, 2) * 3,
    "select": lambda x: x.select(2, 1) ** 2,
    "chunk": lambda x: x.chunk(2, -1)[1] * 3,
    "cat": lambda x: torch.cat([x, x.sin()], -1),
    "linear": lambda x: F.linear(x, torch.ones(3, 2, dtype=torch.float64)),
    "padded": lambda x: torch.nested.to_padded_tensor(x, 0.0),
    "layer_norm": lambda x: F.layer_norm(
        x,
        (2,),
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.tensor([0.0, 1.0], dtype=torch.float64),
        eps=0.1,
    ),
    "entry": lambda x: x[0] * 2,
    "clone": lambda x: x.clone() * 2,
    "contiguous": lambda x: x.transpose(1, 2).contiguous(),
}
OF_JAGGED: dict[str, Callable[[Any], Any]] = {
    "ragged_sum": lambda x: x.sum(1),
    "ragged_mean": lambda x: x.mean(1),
    "ragged_max": lambda x: x.amax(1),
    "all_ragged": lambda x: x.sum((0, 1)),
    "beside_plain": lambda x: x * torch.tensor([[[2.0]], [[3.0]]], dtype=torch.float64),
    "own_mean": lambda x: x - x.mean(1, keepdim=True),
    "inner": lambda x: x.transpose(1, 2) @ x,
    "unsqueezed": lambda x: x.unsqueeze(1) * 2,
    "attention": lambda x: F.scaled_dot_product_attention(
        *(x.unsqueeze(2).transpose(1, 2) for _ in range(3))
    ),
}
OF_STRIDED: dict[str, Callable[[Any], Any]] = {
    "outer": lambda x: x @ x.transpose(1, 2),
    "narrow": lambda x: x.narrow(0, 1, 1) * 2,
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize(
    ("layout", "name"),
    [(JAGGED, name) for name in DIFFERENTIABLE | OF_JAGGED]
    + [(STRIDED, name) for name in DIFFERENTIABLE | OF_STRIDED],
    ids=str,
)
@leaves_nothing
def test_gradients_are_those_of_differences(layout: Any, name: str) -> None:
    more = OF_JAGGED if layout is JAGGED else OF_STRIDED
    function = (DIFFERENTIABLE | more)[name]

    def run_nested(*given: Any) -> Any:
        y = function(torch.nested.as_nested_tensor(list(given), layout=layout))
        return tuple(y.unbind()) if y.is_nested else y

    torch.manual_seed(0)
    inputs = tuple(torch.randn(n, 2, dtype=torch.float64, requires_grad=True) for n in (3, 1))
    assert gradcheck(run_nested, inputs, check_batched_grad=False)
    assert gradgradcheck(run_nested, inputs, check_batched_grad=False)


class Scaled(torch.autograd.Function):
    seen: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        Scaled.seen += [lists(grad), lists(x)]
        return grad * ctx.factor, None


@both_layouts
@leaves_nothing
def test_custom_functions_see_nested_tensors(layout: Any) -> None:
    x = make_nested(layout, 1, 1, requires_grad=True)
    y = Scaled.apply(x, 3.0)
    assert (y.is_nested, lists(y)) == (True, [[[3, 6]], [[9, 12]]])
    assert y.grad_fn.name() == "ScaledBackward"
    Scaled.seen.clear()
    y.values().sum().backward()
    assert Scaled.seen == [[[[1, 1]], [[1, 1]]], [[[1, 2]], [[3, 4]]]]
    assert lists(x.grad) == [[[3, 3]], [[3, 3]]]


@both_layouts
@leaves_nothing
def test_nothing_is_left_behind(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    y = (x.sin() * 2).softmax(-1)
    y.register_hook(lambda grad: grad)
    y.values().sum().backward()
    assert x.grad is not None
    with pytest.raises((RuntimeError, ValueError)):
        y.transpose(0, 1)


# ------------------------------------------------------------------ modules, copies, files


@both_layouts
def test_modules(layout: Any) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 4), torch.nn.GELU(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 1)
    ).double()
    x = make_nested(layout, 3, 1)
    for got, entry in zip(net(x).unbind(), x.unbind(), strict=True):
        assert torch.allclose(got, net(entry))
    net(x).values().sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@both_layouts
def test_copies_and_files(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    found = [
        copy.copy(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        torch.load(file, weights_only=True)["x"],
    ]
    for y in found:
        assert (type(y), y.layout, y.requires_grad) == (type(x), layout, True)
        assert lists(y) == lists(x)


def test_detach_and_data_share_elements() -> None:
    x = make_nested(JAGGED, 2, 1, requires_grad=True)
    for y in (x.detach(), x.data):
        assert y.is_nested
        assert not y.requires_grad
    x.detach().zero_()
    assert lists(x) == [[[0, 0], [0, 0]], [[0, 0]]]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: [torch.ones(2), torch.ones(3, 2)], RuntimeError, "same dim"),
        (lambda: [torch.ones(2, 3), torch.ones(3, 2)], RuntimeError, "single ragged dimension"),
        (lambda: [torch.ones(2), torch.ones(2).long()], RuntimeError, "same dtype"),
        (list, RuntimeError, "empty tensor list"),
        (lambda: [torch.tensor(1.0)], RuntimeError, "zero-dim tensors"),
    ],
)
@leaves_nothing
def test_jagged_lists_that_do_not_fit(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        torch.nested.nested_tensor(make(), layout=JAGGED)


def test_strided_lists_that_do_not_fit() -> None:
    with pytest.raises(RuntimeError, match="Found dimension 2 for Tensor at index 1"):
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3, 2)])
    with pytest.raises(TypeError, match="Only lists"):
        torch.nested.nested_tensor(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="layout is unsupported"):
        torch.nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
        torch.nested.nested_tensor([[1, 2]], requires_grad=True)
    assert torch.nested.nested_tensor([]).size(0) == 0


LIES = {
    "beyond": torch.tensor([0, 2, 9]),
    "backwards": torch.tensor([0, 4, 3]),
    "negative": torch.tensor([-2, 1, 3]),
    "no integers": torch.tensor([0.0, 1.0, 3.0]),
    "short": torch.tensor([0, 1, 2]),
}


@pytest.mark.parametrize("name", LIES)
@leaves_nothing
def test_offsets_that_lie_are_found(name: str) -> None:
    values = torch.arange(6.0).view(3, 2)
    x = nested_view_from_values_offsets(values, LIES[name])
    assert lists_of_values(x * 2) == [[0, 2], [4, 6], [8, 10]]
    for use in (
        lambda: x.unbind(),
        lambda: x.to_padded_tensor(0.0),
        lambda: x.sum(1),
        lambda: x.softmax(1),
        lambda: x + torch.ones(2, 1, 2),
    ):
        with pytest.raises(RuntimeError, match="split_with_sizes|do not match|integers"):
            use()


def lists_of_values(x: Any) -> Any:
    return x.values().tolist()


def test_lengths_beyond_the_offsets_are_found() -> None:
    values = torch.arange(3.0)
    x = torch.nested.nested_tensor_from_jagged(
        values, torch.tensor([0, 1, 3]), torch.tensor([1, 7])
    )
    with pytest.raises(RuntimeError, match="offsets and lengths do not match"):
        x.unbind()
    with pytest.raises(AssertionError, match="batch sizes must match"):
        torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 3]), torch.tensor([1]))


def test_a_longest_entry_that_lies_is_not_believed() -> None:
    for told in (1, 1 << 60):
        x = torch.nested.nested_tensor_from_jagged(
            torch.arange(3.0), torch.tensor([0, 1, 3]), min_seqlen=5, max_seqlen=told
        )
        assert x.to_padded_tensor(0.0).tolist() == [[0, 0], [1, 2]]
        assert lists(x + torch.tensor([[10.0], [20.0]])) == [[10], [21, 22]]


@pytest.mark.parametrize(
    "told",
    [
        {"values": torch.ones(3), "offsets": [0, 1, 3]},
        {"values": [1.0], "offsets": torch.tensor([0, 1])},
        {"values": torch.ones(3), "offsets": torch.tensor([[0, 3]])},
        {"values": torch.ones(3), "offsets": torch.tensor([0, 3]), "_ragged_idx": 9},
        {"values": torch.ones(3), "offsets": torch.tensor([0, 3]), "lengths": torch.ones(5)},
        {"values": torch.ones(3), "offsets": torch.ones(0)},
        "nothing",
    ],
    ids=str,
)
def test_files_of_jagged_tensors_that_lie_are_refused(told: Any) -> None:
    class File:
        def __reduce__(self) -> Any:
            return torch.nested._internal.nested_tensor._rebuild_njt, (told,)

    file = io.BytesIO()
    torch.save(File(), file)
    file.seek(0)
    with pytest.raises((pickle.UnpicklingError, TypeError, AssertionError, IndexError)):
        torch.load(file, weights_only=True)


def test_offsets_that_change_are_read_again() -> None:
    offsets = torch.tensor([0, 1, 3])
    x = torch.nested.nested_tensor_from_jagged(torch.arange(3.0), offsets)
    assert lists(x) == [[0], [1, 2]]
    offsets[1] = 2
    assert lists(x) == [[0, 1], [2]]


@leaves_nothing
def test_parts_of_a_file_that_lie_are_found() -> None:
    sizes, strides = torch.tensor([[2, 3]]), torch.tensor([[3, 1]])
    for wrong in (
        (torch.ones(5), sizes, strides, torch.tensor([0])),
        (torch.ones(6), sizes, strides, torch.tensor([1])),
        (torch.ones(6), sizes, torch.tensor([[-3, 1]]), torch.tensor([0])),
        (torch.ones(6), sizes, strides, torch.tensor([0, 0])),
        (torch.ones(2, 3), sizes, strides, torch.tensor([0])),
    ):
        with pytest.raises(RuntimeError):
            torch._nested_view_from_buffer(*wrong)


@both_layouts
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.cumsum(1),
        lambda x: x.sort(2),
        lambda x: torch.cov(x),
        lambda x: x.flip(2),
        lambda x: F.cross_entropy(x, x),
        lambda x: torch.linalg.norm(x),
        lambda x: torch.add(x, x, out=x),
    ],
)
@leaves_nothing
def test_other_ops_are_refused_by_name(layout: Any, function: Any) -> None:
    x = make_nested(layout, 2, 1)
    with pytest.raises(NotImplementedError, match=r"aten\.\w+"):
        function(x)


@both_layouts
def test_other_uses_are_refused(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    for use in (x.tolist, x.numpy):
        with pytest.raises((RuntimeError, NotImplementedError)):
            use()


def test_tensors_of_other_offsets_do_not_go_together() -> None:
    x, y = make_nested(JAGGED, 2, 1), make_nested(JAGGED, 2, 1)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add.Tensor"):
        x + y
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        x + torch.ones(3, 1, 2, dtype=torch.float64)
    with pytest.raises(NotImplementedError, match="broadcasting NT with T with larger dim"):
        x + torch.ones(1, 2, 1, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="add does not support broadcasting"):
        make_nested(STRIDED, 2, 1) + make_nested(STRIDED, 1, 1)
    with pytest.raises(RuntimeError, match="got a nested self and non-nested other"):
        make_nested(STRIDED, 2, 1) + torch.ones(2, dtype=torch.float64)
    for join in (torch.cat, torch.concat, torch.stack):
        with pytest.raises(RuntimeError, match="expected all nested tensors to have the same offs"):
            join([x, y], 2)
    assert isinstance(x, NestedTensor)


# ------------------------------------------------------------------ attention modules


def encoder(**more: Any) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **more)
    return torch.nn.TransformerEncoder(layer, 2).eval()


def test_encoder_takes_nested_sequences_where_nothing_is_recorded() -> None:
    net = encoder()
    x = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
    with torch.no_grad():
        y = net(x)
        for got, entry in zip(y.unbind(), x.unbind(), strict=True):
            assert torch.allclose(got, net(entry.unsqueeze(0))[0], atol=1e-6)
        output, weights = net.layers[0].self_attn(x, x, x)
    assert (output.is_nested, weights.shape) == (True, (2, 3, 3))
    assert weights[0, 2].tolist() == weights[0, :, 2].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda net: net.train(), "training is enabled"),
        (lambda net: net.requires_grad_(True), "grad is enabled and at least one of query"),
    ],
)
def test_encoder_refuses_nested_sequences_that_are_recorded(change: Any, words: str) -> None:
    net = encoder().requires_grad_(False)
    change(net)
    with pytest.raises(AssertionError, match=words):
        net(torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)]))


def test_attention_of_nested_tensors_is_to_themselves() -> None:
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval().requires_grad_(False)
    x = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)])
    with pytest.raises(AssertionError, match="non-self attention was used"):
        attention(x, x * 2, x)
    with pytest.raises(AssertionError, match="supplying both"):
        attention(x, x, x, attn_mask=torch.zeros(3, 3))
    y = torch.nested.nested_tensor(list(x.unbind()), layout=JAGGED)
    with pytest.raises(AssertionError, match="has_torch_function"):
        attention(y, y, y)


# ------------------------------------------------------------------ vmap


@both_layouts
def test_vmap_goes_over_entries(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    y = torch.vmap(lambda a: 2 * a)(x)
    assert (y.layout, lists(y)) == (STRIDED, [[[2, 4], [6, 8]], [[10, 12]]])
    factors = torch.tensor([1.0, 10.0], dtype=torch.float64)
    sums, products = torch.vmap(lambda a, f: (a.sum(), a * f))(x, factors)
    assert [each.item() for each in sums.unbind()] == [10, 11]
    assert lists(products) == [[[1, 2], [3, 4]], [[50, 60]]]
    assert lists(torch.vmap(torch.add, (0, None))(x, factors[1])) == [
        [[11, 12], [13, 14]],
        [[15, 16]],
    ]


@both_layouts
def test_vmap_over_entries_is_differentiated(layout: Any) -> None:
    x = make_nested(layout, 2, 1, requires_grad=True)
    torch.vmap(lambda a: a * a)(x).values().sum().backward()
    assert lists(x.grad) == [[[2, 4], [6, 8]], [[10, 12]]]


@both_layouts
@leaves_nothing
def test_vmap_over_nested_tensors_is_over_their_entries_alone(layout: Any) -> None:
    x = make_nested(layout, 2, 1)
    for use, words in (
        (lambda: torch.vmap(torch.sin, 1)(x), "only be vmapped over dim=0, but got dim=1"),
        (lambda: torch.vmap(torch.sin, 0, 1)(x), "only be vmapped over dim=0, but got dim=1"),
        (lambda: torch.vmap(torch.rand_like)(x), "vmap"),
        (lambda: torch.vmap(lambda _: torch.vmap(torch.sin)(x))(torch.ones(2)), "Only one level"),
    ):
        with pytest.raises(RuntimeError, match=words):
            use()
    with pytest.raises(ValueError, match="must only return Tensors"):
        torch.vmap(lambda a: 3)(x)


def test_ops_by_dispatcher_names_are_those_of_nested_tensors() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    assert torch.equal(torch.ops.aten._nested_get_values.default(x), x.values())
    assert torch.equal(torch.ops.aten.mul.Tensor(x, 2).values(), x.values() * 2)


def test_torch_size_takes_the_size_of_a_ragged_dimension() -> None:
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    size = torch.Size(list(x.shape))
    assert size == x.shape
    assert repr(size) == repr(x.shape)
