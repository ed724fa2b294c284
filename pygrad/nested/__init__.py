"""torch.nested: batches of tensors of different sizes, without padding.

A nested tensor has its entries one behind the other in one tensor. Of the layout `torch.jagged` one
dimension is ragged, and ops go over the values; of `torch.strided` any may be.

Example:
    >>> import pygrad as torch
    >>> x = torch.nested.nested_tensor(
    ...     [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged, requires_grad=True)
    >>> y = (x * 2).sum(dim=1)
    >>> y
    tensor([[4., 4., 4.],
            [8., 8., 8.]], grad_fn=<SumBackward1>)
    >>> y.sum().backward()
    >>> x.grad.offsets(), x.grad.values().sum()
    (tensor([0, 2, 6]), tensor(36.))
"""

from __future__ import annotations

from . import (  # noqa: F401  the rules of ops
    _attention,
    _common,
    _jagged_places,
    _jagged_products,
    _jagged_reductions,
    _jagged_shapes,
    _mapped,
    _strided_ops,
    _strided_shapes,
)
from ._make import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
)
from ._padded import to_padded_tensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
