"""Nested tensors: what is said of them, their copies, and rules that differ between layouts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import pygrad.torch as torch
from pygrad.torch.nested._internal.nested_tensor import (
    buffer_from_jagged,
    get_tensor_symint,
)

F = torch.nn.functional
JAGGED, STRIDED = torch.jagged, torch.strided
both_layouts = pytest.mark.parametrize("layout", [JAGGED, STRIDED], ids=str)


def rows(*lengths: int, width: int = 2) -> list[Any]:
    """Tensors (length, width) of numbers that are all different."""
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths))]
    return [
        torch.arange((end - n) * width, end * width).float().view(n, width)
        for n, end in zip(lengths, ends, strict=True)
    ]


def nested(layout: Any, *lengths: int, width: int = 2, **options: Any) -> Any:
    return torch.nested.nested_tensor(rows(*lengths, width=width), layout=layout, **options)


def lists(x: Any) -> Any:
    """The entries as lists of numbers."""
    return [each.tolist() for each in x.unbind()]


# ------------------------------------------------------------------ what is said of them


@both_layouts
def test_questions_have_the_answers_of_the_entries(layout: Any) -> None:
    x = nested(layout, 1, 3)
    assert (x.ndim, x.dim(), x.numel(), torch.numel(x)) == (3, 3, 8, 8)
    assert (x.size(0), x.size(2), x.is_contiguous()) == (2, 2, True)
    assert [each.tolist() for each in x] == lists(x)
    assert torch.is_same_size(x, x.clone())
    assert x.contiguous() is x
    assert x.cpu() is x
    assert lists(x.clone(memory_format=torch.contiguous_format)) == lists(x)
    assert x.real is x


def test_strides_of_a_jagged_tensor_are_those_of_its_values() -> None:
    x = nested(JAGGED, 1, 3)
    assert x.stride()[1:] == (2, 1)
    assert x.stride(-1) == 1
    assert (x._strides, x._is_contiguous_or_false()) == (x.stride(), True)
    assert "j" in str(x.stride(0))


def test_a_jagged_tensor_knows_its_longest_and_shortest_entry() -> None:
    x = torch.nested.nested_tensor_from_jagged(torch.ones(4, 2), torch.tensor([0, 1, 4]))
    assert (x._maybe_max_seqlen, x._maybe_min_seqlen) == (None, None)
    assert (x._max_seqlen, x._min_seqlen) == (3, 1)
    assert (x._maybe_max_seqlen, x._maybe_min_seqlen) == (3, 1)


def test_parts_of_a_jagged_tensor_have_functions() -> None:
    x = nested(JAGGED, 1, 3)
    assert torch._nested_get_values(x).tolist() == x.values().tolist()
    assert torch._nested_get_offsets(x).tolist() == [0, 1, 4]
    assert torch._nested_get_lengths(x) is None
    assert torch._nested_get_ragged_idx(x) == 1
    assert buffer_from_jagged(x).tolist() == x.values().tolist()
    assert get_tensor_symint(x.offsets()) == x.size(1)


def test_ragged_sizes_are_compared_as_far_as_they_are_known() -> None:
    j = nested(JAGGED, 1, 3).size(1)
    assert j * 2 >= j
    assert j >= 1
    assert j <= j * 2
    assert not j <= 1
    with pytest.raises(ValueError, match="relation is indeterminate"):
        assert j >= 5


def test_the_text_names_the_history() -> None:
    x = nested(JAGGED, 1, 3, requires_grad=True)
    assert "grad_fn=<" in repr(x * 2)


# ------------------------------------------------------------------ copies


@both_layouts
def test_a_deep_copy_has_its_own_gradient(layout: Any) -> None:
    x = nested(layout, 1, 3, requires_grad=True)
    (x * x).sum().backward() if layout is JAGGED else torch.nested.to_padded_tensor(
        x * x, 0.0
    ).sum().backward()
    made, again = copy.deepcopy([x, x])
    assert made is again
    assert lists(made.grad) == lists(x.grad)
    assert made.grad is not x.grad
    del made.grad
    assert made.grad is None
    assert x.grad is not None


@both_layouts
def test_entries_are_copied_to_a_tensor_of_the_same_sizes(layout: Any) -> None:
    x, y = nested(layout, 1, 3), nested(layout, 1, 3)
    y.zero_()
    source = x if layout is STRIDED else x * 1
    assert lists(y.copy_(source)) == lists(x)


def test_numbers_and_numbers_of_one_element() -> None:
    one = torch.nested.nested_tensor([torch.full((1, 1), 3.0)], layout=JAGGED)
    assert one.item() == 3.0
    assert lists(nested(STRIDED, 1, 2).fill_(torch.tensor(2.0))) == [
        [[2.0, 2.0]],
        [[2.0, 2.0], [2.0, 2.0]],
    ]


@both_layouts
def test_as_nested_tensor_takes_a_nested_tensor(layout: Any) -> None:
    x = nested(layout, 1, 3)
    made = torch.nested.as_nested_tensor(x, dtype=torch.float64, layout=layout)
    assert (made.dtype, lists(made)) == (torch.float64, lists(x))


# ------------------------------------------------------------------ how they are made


def test_a_mask_says_how_much_of_each_row_is_an_entry() -> None:
    x = torch.arange(12.0).view(2, 3, 2)
    mask = torch.tensor([[True, False, False], [True, True, False]])
    assert torch._nested_tensor_from_mask_left_aligned(x, mask)
    assert not torch._nested_tensor_from_mask_left_aligned(x, mask.flip(1))
    made = torch._nested_tensor_from_mask(x, mask)
    assert lists(made) == [[[0.0, 1.0]], [[6.0, 7.0], [8.0, 9.0]]]


def test_padded_tensors_are_cut_to_sizes() -> None:
    padded, sizes = torch.arange(12.0).view(2, 3, 2), torch.tensor([[1, 2], [3, 1]])
    made = torch._nested_from_padded(padded, sizes)
    assert lists(made) == [[[0.0, 1.0]], [[6.0], [8.0], [10.0]]]
    again = torch._nested_from_padded_and_nested_example(padded, made)
    assert lists(again) == lists(made)
    heads = torch.arange(24.0).view(2, 2, 3, 2)
    rows_of_heads = torch._nested_from_padded(heads, torch.tensor([[1, 4], [2, 4]]), True)
    assert lists(rows_of_heads) == [
        [[0.0, 1.0, 6.0, 7.0]],
        [[12.0, 13.0, 18.0, 19.0], [14.0, 15.0, 20.0, 21.0]],
    ]


def test_strides_and_offsets_of_sizes() -> None:
    sizes = torch.tensor([[1, 2], [3, 2]])
    strides, offsets = torch._nested_compute_contiguous_strides_offsets(sizes)
    assert (strides.tolist(), offsets.tolist()) == ([[2, 1], [2, 1]], [0, 2])


def test_narrow_of_the_strided_layout_takes_entries() -> None:
    x = torch.nested.narrow(torch.arange(6.0).view(3, 2), 0, 1, 2, layout=STRIDED)
    assert lists(x) == [[2.0, 3.0], [4.0, 5.0]]


# ------------------------------------------------------------------ rules


def test_a_plain_tensor_is_expanded_to_a_ragged_size() -> None:
    x = nested(JAGGED, 1, 3)
    assert lists(torch.ones(2, 1, 1).expand_as(x)) == lists(torch.ones_like(x))


def test_subscripts_may_add_dimensions() -> None:
    x = nested(JAGGED, 1, 3)
    assert tuple(x[..., None].shape)[-2:] == (2, 1)


def test_products_with_a_ragged_last_dimension() -> None:
    x = nested(JAGGED, 1, 3)
    turned = x.transpose(1, 2)
    left = torch.arange(6.0).view(3, 2)
    assert lists(left @ turned) == [(left @ each.t()).tolist() for each in x.unbind()]
    batch = torch.arange(8.0).view(2, 2, 2)
    expected = [(a @ each.t()).tolist() for a, each in zip(batch, x.unbind(), strict=True)]
    assert lists(batch @ turned) == expected


def test_products_of_matrices_in_ragged_dimensions() -> None:
    x = torch.nested.nested_tensor([torch.ones(n, 2, 2) for n in (1, 3)], layout=JAGGED)
    assert lists(x @ x) == [(each @ each).tolist() for each in x.unbind()]


def test_rows_and_one_hot_vectors_of_numbers() -> None:
    x = torch.nested.nested_tensor([torch.tensor([1]), torch.tensor([0, 2])], layout=JAGGED)
    assert lists(F.one_hot(x, 3)) == [[[0, 1, 0]], [[1, 0, 0], [0, 0, 1]]]
    weight = torch.arange(6.0).view(3, 2)
    expected = [[[2.0, 3.0]], [[0.0, 1.0], [4.0, 5.0]]]
    assert lists(torch.embedding(weight, x)) == expected
    strided = torch.nested.nested_tensor([torch.tensor([1]), torch.tensor([0, 2])])
    assert lists(torch.embedding(weight, strided)) == expected


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.float32])
@pytest.mark.parametrize("name", ["amin", "amax"])
def test_extremes_over_the_ragged_dimension_have_the_dtype(dtype: Any, name: str) -> None:
    x = nested(JAGGED, 1, 3).to(dtype)
    found = getattr(x, name)(1)
    assert found.dtype is dtype
    assert found.tolist() == [getattr(each, name)(0).tolist() for each in x.unbind()]


def test_a_place_may_be_named_by_its_entry_alone() -> None:
    x = nested(JAGGED, 1, 3)
    x.index_put_((torch.tensor([1]),), torch.tensor(0.0))
    assert lists(x) == [[[0.0, 1.0]], [[0.0, 0.0]] * 3]


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_strided_sums_may_have_another_dtype(dtype: Any) -> None:
    x = nested(STRIDED, 1, 3)
    found = x.sum(-1, keepdim=True, dtype=dtype)
    assert found.dtype is (dtype or torch.float32)
    assert lists(found) == [each.sum(-1, keepdim=True).tolist() for each in x.unbind()]


def test_strided_all_is_of_everything_or_along_a_dimension() -> None:
    x = nested(STRIDED, 1, 3) > 0
    assert x.all().item() is False
    assert lists(x.all(2)) == [each.all(1).tolist() for each in x.unbind()]


def test_strided_products_with_rows() -> None:
    x, y = nested(STRIDED, 2, 2), torch.arange(8.0).view(2, 2, 2)
    expected = [(a @ b).tolist() for a, b in zip(x.unbind(), y, strict=True)]
    assert lists(torch.bmm(x, y)) == expected


def test_strided_dimensions_of_size_one_are_dropped() -> None:
    x = torch.nested.nested_tensor([torch.ones(n, 1, 2) for n in (1, 3)])
    assert [each.shape for each in x.squeeze(2).unbind()] == [(1, 2), (3, 2)]
    assert [each.shape for each in x.squeeze(1).unbind()] == [(1, 1, 2), (3, 1, 2)]


def test_strided_entries_are_joined_one_after_the_other() -> None:
    x, y = nested(STRIDED, 1, 3), nested(STRIDED, 2)
    assert lists(torch.cat([x, y])) == lists(x) + lists(y)
    none = torch.nested.nested_tensor([])
    assert len(torch.cat([none, none]).unbind()) == 0
    assert len(none.softmax(-1).unbind()) == 0


def test_entries_that_lie_otherwise_are_computed_in_order() -> None:
    x = torch.nested.nested_tensor([torch.arange(4.0).view(2, 2), torch.ones(2, 2)])
    y, turned = torch.ones_like(x), x.transpose(1, 2)
    assert lists(turned + y) == [(each.t() + 1).tolist() for each in x.unbind()]
    assert lists(y + turned) == lists(turned + y)


def test_padding_of_numbers_and_of_nothing() -> None:
    numbers = torch.nested.nested_tensor([torch.tensor(1.0), torch.tensor(2.0)])
    assert torch.nested.to_padded_tensor(numbers, 0.0, (3,)).tolist() == [1.0, 2.0, 0.0]
    none = torch.nested.nested_tensor([])
    assert torch.nested.to_padded_tensor(none, 0.0).numel() == 0


@pytest.mark.parametrize("randomness", ["same", "different"])
@both_layouts
def test_numbers_that_are_drawn_in_vmap_are_the_same_or_not(layout: Any, randomness: str) -> None:
    x = nested(layout, 2, 2)
    found = torch.func.vmap(lambda each: torch.rand(3), randomness=randomness)(x)
    first, second = lists(found)
    assert (first == second) is (randomness == "same")


@both_layouts
def test_a_result_of_vmap_may_be_no_batch(layout: Any) -> None:
    x = nested(layout, 2, 2)
    found = torch.func.vmap(lambda each: torch.ones(1), out_dims=None)(x)
    assert found.tolist() == [1.0]
