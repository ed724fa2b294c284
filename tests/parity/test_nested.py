"""Nested tensors beside PyTorch's: how they are made and described, ops of both layouts with their
results, gradients and errors, and files.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error

import pygrad
import pygrad.nested

Op = Callable[[Any, Any], Any]


def numbers(t: Any, *size: int, first: float = -0.5) -> Any:
    """Numbers that are all different, some of them below zero."""
    return (t.arange(math.prod(size), dtype=t.float64) / 7 + first).reshape(size)


def example(t: Any, layout: str, rank: int = 2, requires_grad: bool = False) -> Any:
    """Three entries of 2, 4 and 1 rows."""
    inner = (3,) if rank == 2 else (2, 3)
    entries = [numbers(t, n, *inner, first=i - 0.5) for i, n in enumerate((2, 4, 1))]
    kind = getattr(t, layout)
    return t.nested.nested_tensor(entries, layout=kind, requires_grad=requires_grad)


def summary(x: Any) -> Any:
    """What is to be the same of a result."""
    if type(x).__name__ == "dtype":
        return str(x)
    if isinstance(x, (tuple, list)):
        return [summary(each) for each in x]
    if not getattr(x, "is_nested", False):
        return plain_text(x) if isinstance(x, str) or type(x).__name__ == "SymInt" else x
    return [str(x.layout), str(x.dtype), x.dim(), x.requires_grad, x.is_contiguous(), *x.unbind()]


def plain_text(x: Any) -> str:
    """A text in which ragged sizes have one name, and nodes no address."""
    return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\bj\d+\b", "j", str(x)))


def first_line(text: Any) -> Any:
    return plain_text(text.split("\n")[0]) if isinstance(text, str) else text


# ------------------------------------------------------------------ making

MADE: dict[str, Callable[[Any], Any]] = {
    "jagged": lambda t: example(t, "jagged"),
    "strided": lambda t: example(t, "strided"),
    "repr_jagged": lambda t: repr(example(t, "jagged", requires_grad=True)),
    "repr_strided": lambda t: repr(example(t, "strided", requires_grad=True)),
    "repr_history": lambda t: repr(example(t, "strided", requires_grad=True) * 2),
    "repr_empty": lambda t: str(t.nested.nested_tensor([])),
    "repr_holes": lambda t: repr(
        t.nested.narrow(numbers(t, 2, 3), 1, 0, t.tensor([1, 2]), layout=t.jagged)
    ),
    "empty_jagged": lambda t: t.nested.nested_tensor([], layout=t.jagged),
    "ranks": lambda t: t.nested.nested_tensor([t.ones(2), t.ones(3, 2)]),
    "ranks_jagged": lambda t: t.nested.nested_tensor([t.ones(2), t.ones(3, 2)], layout=t.jagged),
    "two_ragged": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 2)], layout=t.jagged),
    "last_ragged": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(2, 4)], layout=t.jagged),
    "types": lambda t: t.nested.nested_tensor([t.ones(2), t.ones(3).long()]),
    "types_jagged": lambda t: t.nested.nested_tensor(
        [t.ones(2), t.ones(3).long()], layout=t.jagged
    ),
    "numbers": lambda t: t.nested.nested_tensor([[1, 2], [3.5]]),
    "numbers_jagged": lambda t: t.nested.nested_tensor([[1, 2], [3]], layout=t.jagged),
    "scalars": lambda t: t.nested.nested_tensor([t.tensor(1.0), t.tensor(2.0)]),
    "scalars_jagged": lambda t: t.nested.nested_tensor([t.tensor(1.0)], layout=t.jagged),
    "dtype": lambda t: t.nested.nested_tensor([[1, 2], [3]], dtype=t.float32),
    "no_list": lambda t: t.nested.nested_tensor(t.ones(2, 3)),
    "a_tensor_jagged": lambda t: t.nested.nested_tensor(t.ones(2, 3), layout=t.jagged),
    "another_layout": lambda t: t.nested.nested_tensor([t.ones(2)], layout=t.sparse_coo),
    "integers_with_grad": lambda t: t.nested.nested_tensor([[1]], requires_grad=True),
    "no_rows": lambda t: t.nested.nested_tensor([t.ones(0, 3), t.ones(2, 3)], layout=t.jagged),
    "as_no_tensors": lambda t: t.nested.as_nested_tensor([[1, 2]]),
    "as_tuple": lambda t: t.nested.as_nested_tensor((t.ones(2), t.ones(3)), dtype=t.float64),
    "as_one": lambda t: t.nested.as_nested_tensor(t.ones(2, 3)),
    "as_one_jagged": lambda t: t.nested.as_nested_tensor(t.ones(2, 3), layout=t.jagged),
    "as_vector": lambda t: t.nested.as_nested_tensor(t.ones(2)),
    "as_nested": lambda t: t.nested.as_nested_tensor(example(t, "jagged"), layout=t.jagged),
    "as_other_layout": lambda t: t.nested.as_nested_tensor(example(t, "jagged")),
    "offsets": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6, 2), t.tensor([0, 2, 3, 6])
    ),
    "offsets_lengths": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6, 2), t.tensor([0, 2, 3, 6]), t.tensor([1, 1, 2])
    ),
    "lengths": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6, 2), lengths=t.tensor([1, 1, 4])
    ),
    "short_lengths": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6, 2), lengths=t.tensor([1, 1, 2])
    ).unbind(),
    "neither": lambda t: t.nested.nested_tensor_from_jagged(numbers(t, 6, 2)),
    "offsets_of_rank_2": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6), t.tensor([[0, 6]])
    ),
    "offsets_in_a_list": lambda t: t.nested.nested_tensor_from_jagged(numbers(t, 6), [0, 6]),
    "too_few_lengths": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 6), t.tensor([0, 2, 6]), t.tensor([1])
    ),
    "another_dim": lambda t: t.nested.nested_tensor_from_jagged(
        numbers(t, 2, 6), t.tensor([0, 2, 3, 6]), jagged_dim=2
    ),
    "of_nested": lambda t: t.nested.nested_tensor_from_jagged(
        example(t, "jagged"), t.tensor([0, 2])
    ),
    "narrow": lambda t: t.nested.narrow(
        numbers(t, 3, 5, 2), 1, t.tensor([0, 1, 2]), t.tensor([3, 2, 1]), layout=t.jagged
    ),
    "narrow_numbers": lambda t: t.nested.narrow(numbers(t, 3, 5), 1, 1, 2, layout=t.jagged),
    "narrow_strided": lambda t: t.nested.narrow(numbers(t, 3, 5), 1, 1, 2),
    "narrow_strided_0": lambda t: t.nested.narrow(numbers(t, 3, 5), 0, 1, 2).unbind(),
    "narrow_another_dim": lambda t: t.nested.narrow(numbers(t, 3, 5), 0, 1, 2, layout=t.jagged),
    "narrow_tensors": lambda t: t.nested.narrow(numbers(t, 3, 5), 1, t.tensor([0, 1, 2]), 2),
    "narrow_too_far": lambda t: t.nested.narrow(
        numbers(t, 2, 5), 1, t.tensor([0, 1]), t.tensor([3, 9]), layout=t.jagged
    ).unbind(),
    "masked": lambda t: t.nested.masked_select(numbers(t, 3, 4), numbers(t, 3, 4) > 0.3),
    "masked_row": lambda t: t.nested.masked_select(
        numbers(t, 3, 4), t.tensor([True, False, True, True])
    ),
    "masked_by_numbers": lambda t: t.nested.masked_select(numbers(t, 3, 4), numbers(t, 3, 4)),
    "masked_nested": lambda t: t.nested.masked_select(
        example(t, "jagged"), example(t, "jagged") > 0
    ),
    "from_mask": lambda t: t._nested_tensor_from_mask(
        numbers(t, 2, 3, 2), t.tensor([[True, True, False], [True, False, False]])
    ),
    "from_mask_with_gaps": lambda t: t._nested_tensor_from_mask(
        numbers(t, 2, 3, 2), t.tensor([[True, False, True], [True, False, False]])
    ),
    "from_padded": lambda t: t._nested_from_padded(numbers(t, 2, 3, 2), t.tensor([[3, 2], [1, 2]])),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name: str) -> None:
    both(lambda t: first_line(result_or_error(lambda: summary(MADE[name](t)))))


DESCRIBED: dict[str, Callable[[Any], Any]] = {
    "dim": lambda x: x.dim(),
    "numel": lambda x: x.numel(),
    "size_0": lambda x: x.size(0),
    "size_1": lambda x: x.size(1),
    "size_last": lambda x: x.size(-1),
    "size_4": lambda x: x.size(4),
    "sizes": lambda x: x.size(),
    "stride": lambda x: x.stride(),
    "shape": lambda x: x.shape,
    "len": len,
    "iter": list,
    "dtype": lambda x: x.dtype,
    "is_leaf": lambda x: x.is_leaf,
    "layout": lambda x: str(x.layout),
    "storage_offset": lambda x: x.storage_offset(),
    "element_size": lambda x: x.element_size(),
    "values": lambda x: x.values(),
    "type": lambda x: x.type(),
    "contiguous": lambda x: x.contiguous() is x,
    "to": lambda x: x.to(x.dtype) is x,
    "unbind": lambda x: x.unbind(1),
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "requires_grad_": lambda x: x.requires_grad_().requires_grad,
    "view": lambda x: x.values()._is_view(),
    "bool": bool,
}


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", DESCRIBED)
def test_described(name: str, layout: str) -> None:
    both(
        lambda t: first_line(result_or_error(lambda: summary(DESCRIBED[name](example(t, layout)))))
    )


STRIDED_SIZES: dict[str, Callable[[Any], Any]] = {
    "sizes": lambda x: x._nested_tensor_size(),
    "strides": lambda x: x._nested_tensor_strides(),
    "offsets": lambda x: x._nested_tensor_storage_offsets(),
}


@pytest.mark.parametrize("name", STRIDED_SIZES)
def test_tables_of_strided_sizes(name: str) -> None:
    both(lambda t: STRIDED_SIZES[name](example(t, "strided").transpose(1, 2)))


# ------------------------------------------------------------------ ops of both layouts

ELEMENTS: dict[str, Op] = {
    "sin": lambda t, x: x.sin(),
    "cos": lambda t, x: x.cos(),
    "abs": lambda t, x: x.abs(),
    "neg": lambda t, x: -x,
    "tanh": lambda t, x: x.tanh(),
    "relu": lambda t, x: t.nn.functional.relu(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "silu": lambda t, x: t.nn.functional.silu(x),
    "add": lambda t, x: x + x,
    "sub": lambda t, x: x - 2 * x,
    "mul": lambda t, x: x * x,
    "div": lambda t, x: x / 3,
    "number": lambda t, x: x + t.tensor(2.0),
    "dropout": lambda t, x: t.nn.functional.dropout(x, 0.5, training=False),
    "all_dropped": lambda t, x: t.nn.functional.dropout(x, 1.0),
    "clone": lambda t, x: x.clone(),
    "float": lambda t, x: x.float(),
}
SHAPES: dict[str, Op] = {
    "transpose": lambda t, x: x.transpose(1, 2),
    "back": lambda t, x: x.transpose(1, 2).transpose(-1, -2),
    "contiguous": lambda t, x: x.transpose(1, 2).contiguous(),
    "unsqueeze": lambda t, x: x.unsqueeze(-1),
    "view": lambda t, x: x.view(3, -1, 3, 1),
    "reshape": lambda t, x: x.reshape(3, -1, 1, 3),
    "squeeze": lambda t, x: x.unsqueeze(2).squeeze(2),
    "select": lambda t, x: x.select(2, 0),
    "entry": lambda t, x: x[1],
    "row": lambda t, x: x[1, 2],
    "last": lambda t, x: x[-1],
    "chunk": lambda t, x: x.chunk(3, -1),
    "split": lambda t, x: x.split([1, 2], -1),
    "cat": lambda t, x: t.cat([x, x], -1),
    "padded": lambda t, x: t.nested.to_padded_tensor(x, -1.0),
    "padded_to": lambda t, x: t.nested.to_padded_tensor(x, -1.0, (3, 6, 3)),
}
COMPUTED: dict[str, Op] = {
    "linear": lambda t, x: t.nn.functional.linear(x, numbers(t, 5, 3)),
    "linear_bias": lambda t, x: t.nn.functional.linear(x, numbers(t, 5, 3), numbers(t, 5)),
    "bmm": lambda t, x: t.bmm(x, numbers(t, 3, 3, 5)),
    "softmax": lambda t, x: x.softmax(2),
    "softmax_ragged": lambda t, x: x.softmax(1),
    "softmax_functional": lambda t, x: t.nn.functional.softmax(x, -1),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,), numbers(t, 3), numbers(t, 3)),
    "embedding": lambda t, x: t.nn.functional.embedding(
        t.nested.nested_tensor([t.tensor([1, 2]), t.tensor([0])], layout=x.layout),
        numbers(t, 4, 5),
    ),
    "sum": lambda t, x: x.sum(-1, keepdim=True),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "ones_like": lambda t, x: t.ones_like(x, dtype=t.float32),
    "greater": lambda t, x: x > 0,
    "masked_fill": lambda t, x: x.masked_fill(x > 0, 5.0),
    "zero_": lambda t, x: x.zero_(),
    "fill_": lambda t, x: x.fill_(2),
    "add_": lambda t, x: x.add_(1),
    "mul_": lambda t, x: x.mul_(x),
    "copy_": lambda t, x: x.copy_(2 * x),
    "same_size": lambda t, x: x.is_same_size(2 * x),
    "module": lambda t, x: t.nn.Sequential(t.nn.ReLU(), t.nn.GELU())(x),
}
BOTH_REFUSE: dict[str, Op] = {
    "transpose_batch": lambda t, x: x.transpose(0, 1),
    "softmax_batch": lambda t, x: x.softmax(0),
    "select_too_far": lambda t, x: x[3],
    "unsqueeze_batch": lambda t, x: x.unsqueeze(0),
    "view_others": lambda t, x: x.view(3, 4, 3) if x.layout is t.jagged else x.view(3, -1),
    "reshape_batch": lambda t, x: x.reshape(-1, 3),
    "chunk_ragged": lambda t, x: x.chunk(2, 1),
    "narrow_ragged": lambda t, x: x.narrow(1, 0, 2),
    "sum_batch": lambda t, x: x.sum(0),
    "sum_several": lambda t, x: x.sum((1, 2)),
    "other_sizes": lambda t, x: x + x.transpose(1, 2),
    "padded_of_plain": lambda t, x: result_or_error(
        lambda: t.nested.to_padded_tensor(t.ones(2, 2), 0.0)
    )[:19],
    "a_leaf_in_place": lambda t, x: x.layout is t.strided and x.requires_grad_().add_(1),
    "sort": lambda t, x: result_or_error(lambda: x.sort(2))[:19],
    "cumsum": lambda t, x: result_or_error(lambda: x.cumsum(2))[:19],
    "layer_norm_without": lambda t, x: (
        x.layout is t.strided and t.nn.functional.layer_norm(x, (3,))
    ),
}


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", ELEMENTS | SHAPES | COMPUTED)
def test_results(name: str, layout: str) -> None:
    op = (ELEMENTS | SHAPES | COMPUTED)[name]
    both(lambda t: summary(op(t, example(t, layout))), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", BOTH_REFUSE)
def test_refused(name: str, layout: str) -> None:
    both(
        lambda t: first_line(
            result_or_error(lambda: summary(BOTH_REFUSE[name](t, example(t, layout))))
        )
    )


# ------------------------------------------------------------------ ops of one

JAGGED: dict[str, Op] = {
    "exp": lambda t, x: x.exp(),
    "softplus": lambda t, x: t.nn.functional.softplus(x),
    "square": lambda t, x: x**2,
    "inverse": lambda t, x: 2 / x,
    "clamp": lambda t, x: x.clamp(0, 1),
    "where": lambda t, x: t.where(x > 0, x, 2 * x),
    "maximum": lambda t, x: t.maximum(x, -x),
    "row": lambda t, x: x + numbers(t, 3),
    "one_row": lambda t, x: x + numbers(t, 1, 1, 3),
    "a_row_each": lambda t, x: x + numbers(t, 3, 1, 3),
    "a_number_each": lambda t, x: x * numbers(t, 3, 1, 1),
    "reflected": lambda t, x: numbers(t, 3, 1, 3) - x,
    "padded": lambda t, x: x + numbers(t, 3, 4, 3),
    "turned": lambda t, x: x.transpose(1, 2) + numbers(t, 3, 3, 1),
    "too_wide": lambda t, x: x + numbers(t, 3, 2, 3),
    "another_batch": lambda t, x: x + numbers(t, 2, 1, 3),
    "another_rank": lambda t, x: x + numbers(t, 2, 3, 1, 3),
    "other_offsets": lambda t, x: x + example(t, "jagged"),
    "sum": lambda t, x: x.sum(),
    "sum_ragged": lambda t, x: x.sum(1),
    "sum_ragged_kept": lambda t, x: x.sum(1, keepdim=True),
    "sum_inner": lambda t, x: x.sum(2),
    "sum_both": lambda t, x: x.sum((0, 1)),
    "sum_both_kept": lambda t, x: x.sum((0, 1), keepdim=True),
    "sum_all": lambda t, x: x.sum((0, 1, 2)),
    "sum_batch_inner": lambda t, x: x.sum((0, 2)),
    "sum_dtype": lambda t, x: x.sum(1, dtype=t.float32),
    "mean": lambda t, x: x.mean(),
    "mean_ragged": lambda t, x: x.mean(1),
    "mean_inner": lambda t, x: x.mean(2),
    "mean_both": lambda t, x: x.mean((0, 1)),
    "mean_refused": lambda t, x: x.mean((1, 2)),
    "prod": lambda t, x: x.prod(1),
    "prod_inner": lambda t, x: x.prod(2),
    "amax": lambda t, x: x.amax(1),
    "amin_inner": lambda t, x: x.amin(2),
    "max": lambda t, x: x.max(),
    "max_ragged": lambda t, x: tuple(x.max(1)),
    "max_inner": lambda t, x: tuple(x.max(2)),
    "min_kept": lambda t, x: tuple(x.min(1, keepdim=True)),
    "argmax": lambda t, x: x.argmax(1),
    "argmin_inner": lambda t, x: x.argmin(2),
    "any": lambda t, x: (x > 0).any(1),
    "all_inner": lambda t, x: (x > 0).all(2),
    "any_of_all": lambda t, x: (x > 0).any(),
    "log_softmax": lambda t, x: x.log_softmax(2),
    "log_softmax_ragged": lambda t, x: x.log_softmax(1),
    "rms_norm": lambda t, x: t.nn.functional.rms_norm(x, (3,)),
    "product": lambda t, x: x @ numbers(t, 3, 5),
    "product_each": lambda t, x: x @ numbers(t, 3, 3, 5),
    "inner_product": lambda t, x: x.transpose(1, 2) @ x,
    "outer_product": lambda t, x: x @ x.transpose(1, 2),
    "one_hot": lambda t, x: t.nn.functional.one_hot((x > 0).long()),
    "unsqueeze_1": lambda t, x: x.unsqueeze(1),
    "squeeze_ragged": lambda t, x: x.squeeze(1),
    "flatten": lambda t, x: x.flatten(),
    "flatten_ragged": lambda t, x: x.flatten(1, 2),
    "unflatten": lambda t, x: x.unflatten(-1, [3, 1]),
    "view_named": lambda t, x: x.view(x.size(0), x.size(1), 3, 1),
    "expand": lambda t, x: x.unsqueeze(-1).expand(3, x.size(1), 3, 2),
    "chunk_batch": lambda t, x: x.chunk(2, 0),
    "split_number": lambda t, x: x.split(1, -1),
    "split_ragged": lambda t, x: x.split(1, 1),
    "narrow": lambda t, x: x.narrow(2, 0, 2),
    "select_ragged": lambda t, x: x.select(1, 0),
    "ellipsis": lambda t, x: x[..., 1:],
    "ellipsis_number": lambda t, x: x[..., 0],
    "slice_batch": lambda t, x: x[1:],
    "cat_batch": lambda t, x: t.cat([x, x], 0),
    "cat_ragged": lambda t, x: t.cat([x, x], 1),
    "stack": lambda t, x: t.stack([x, x], 2),
    "stack_batch": lambda t, x: t.stack([x, x], 0),
    "mT": lambda t, x: x.mT,
    "movedim": lambda t, x: x.movedim(1, 2),
    "shape_of_another": lambda t, x: (x.shape == (2 * x).shape, x.shape[1] == 4),
    "twice": lambda t, x: x.shape[1] * 2,
    "compare": lambda t, x: x.shape[1] > 3,
    "copy_other_offsets": lambda t, x: x.copy_(example(t, "jagged") + 1),
    "padded_truncated": lambda t, x: t.nested.to_padded_tensor(x, 0.0, (3, 2, 3)),
    "new": lambda t, x: x.new_zeros(2),
    "own_sum": lambda t, x: x + x.sum(1, keepdim=True),
}
JAGGED_4: dict[str, Op] = {
    "flatten": lambda t, x: x.flatten(2, 3),
    "permute": lambda t, x: x.permute(0, 2, 1, 3),
    "permute_last": lambda t, x: x.permute(0, 3, 2, 1),
    "permute_batch": lambda t, x: x.permute(1, 0, 2, 3),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x.flatten(-2), (6,)),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2),) * 3
    ),
    "attention_scaled": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2),) * 3, scale=2.0
    ),
    "attention_masked": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2),) * 3, attn_mask=numbers(t, 2, 2)
    ),
    "attention_of_3": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.flatten(-2),) * 3
    ),
}
STRIDED: dict[str, Op] = {
    "outer_product": lambda t, x: x @ x.transpose(1, 2),
    "inner_product": lambda t, x: t.bmm(x.transpose(1, 2), x),
    "by_plain": lambda t, x: x @ numbers(t, 3, 5),
    "from_plain": lambda t, x: numbers(t, 5, 3) @ x,
    "misfit": lambda t, x: t.bmm(x, x),
    "beside_plain": lambda t, x: x + numbers(t, 3),
    "plain_beside": lambda t, x: numbers(t, 3, 1, 3) - x,
    "narrow": lambda t, x: x.narrow(0, 1, 2),
    "cat_batch": lambda t, x: t.cat([x, x], 0),
    "squeeze": lambda t, x: x.squeeze(1),
    "squeeze_all": lambda t, x: x.squeeze(),
    "sum_of_1": lambda t, x: x.sum(1, keepdim=True),
    "sum_not_kept": lambda t, x: x.sum(2),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x),
    "attention_turned": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2),) * 3
    ),
    "attention_masked": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        x, x, x, attn_mask=numbers(t, 2, 2)
    ),
    "all": lambda t, x: (x > 0).all(2),
    "chunk_uneven": lambda t, x: x.chunk(2, -1),
    "linear_misfit": lambda t, x: t.nn.functional.linear(x, numbers(t, 5, 4)),
    "padded_too_small": lambda t, x: t.nested.to_padded_tensor(x, 0.0, (3, 2, 3)),
    "padded_rank": lambda t, x: t.nested.to_padded_tensor(x, 0.0, (3, 4)),
}


def results(ops: dict[str, Op], name: str, layout: str, rank: int) -> None:
    def script(t: Any) -> Any:
        return first_line(result_or_error(lambda: summary(ops[name](t, example(t, layout, rank)))))

    both(script, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", JAGGED)
def test_jagged(name: str) -> None:
    results(JAGGED, name, "jagged", 2)


@pytest.mark.parametrize("name", JAGGED_4)
def test_jagged_of_rank_4(name: str) -> None:
    results(JAGGED_4, name, "jagged", 3)


@pytest.mark.parametrize("name", STRIDED)
def test_strided(name: str) -> None:
    results(STRIDED, name, "strided", 2)


# ------------------------------------------------------------------ gradients

# PyTorch has no gradient of most jagged reductions, and that of a ragged softmax is not one.
GRADIENTS = [
    *(name for name in ELEMENTS if name not in ("float", "all_dropped", "tanh")),
    "transpose back contiguous unsqueeze view reshape entry row last padded padded_to linear "
    "linear_bias bmm layer_norm",
]


def gradient(t: Any, op: Op, layout: str) -> Any:
    """Of the sum of squares of what an op gives, weighted by entries."""
    x = example(t, layout, requires_grad=True)
    y = op(t, x)
    parts = y.unbind() if y.is_nested else [y]
    sum((i + 1) * (each * each).sum() for i, each in enumerate(parts)).backward()
    return [str(x.grad.layout), *x.grad.unbind()]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", " ".join(GRADIENTS).split())
def test_gradients(name: str, layout: str) -> None:
    op = (ELEMENTS | SHAPES | COMPUTED)[name]
    both(lambda t: gradient(t, op, layout), rtol=1e-10, atol=1e-12)


BACKWARD: dict[str, Op] = {
    "no_gradient": lambda t, x: (2 * x).backward(),
    "plain_gradient": lambda t, x: (2 * x).backward(t.ones(3, 4, 3, dtype=t.float64)),
    "ones": lambda t, x: ((2 * x).backward(t.ones_like(x)), summary(x.grad))[1],
    "of_gradient": lambda t, x: summary(t.autograd.grad(2 * x, x, t.ones_like(x))),
    "hook": lambda t, x: (
        x.register_hook(lambda grad: 2 * grad),
        t.nested.to_padded_tensor(x, 0.0).sum().backward(),
        summary(x.grad),
    )[2],
    "leaf": lambda t, x: (x.is_leaf, (2 * x).is_leaf, x.grad_fn, (2 * x).grad_fn.name()),
    "retained": lambda t, x: _retain(t, 2 * x),
}


def _retain(t: Any, y: Any) -> Any:
    y.retain_grad()
    t.nested.to_padded_tensor(y, 0.0).sum().backward()
    return summary(y.grad)


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("name", BACKWARD)
def test_backward(name: str, layout: str) -> None:
    if (name, layout) == ("hook", "strided"):
        pytest.skip("PyTorch asks such a gradient for its sizes")

    def script(t: Any) -> Any:
        x = example(t, layout, requires_grad=True)
        return first_line(result_or_error(lambda: BACKWARD[name](t, x)))

    both(script)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("to_torch", [True, False])
def test_files_are_read_by_the_other(layout: str, to_torch: bool) -> None:
    import torch._dynamo  # without which PyTorch refuses files of jagged tensors

    writer, reader = (pygrad, torch) if to_torch else (torch, pygrad)
    x = example(writer, layout, requires_grad=True)
    file = io.BytesIO()
    writer.save({"x": x}, file)
    file.seek(0)
    y = reader.load(file, weights_only=True)["x"]
    assert str(y.layout) == f"torch.{layout}"
    assert y.requires_grad
    found = [each.tolist() for each in y.unbind()]
    assert found == [each.tolist() for each in x.unbind()]
