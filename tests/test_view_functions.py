"""Views made once more, of another base: `_view_func`, `_view_func_unsafe` and
`_rev_view_func_unsafe`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers import leaves_nothing

import pygrad as torch

VIEWS: dict[str, Callable[[Any], Any]] = {
    "alias": lambda x: x[...],
    "select": lambda x: x.select(1, 2),
    "slice": lambda x: x[:, 1:3:2],
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(2, 0, 1),
    "view": lambda x: x.view(12, -1),
    "expand": lambda x: x[:, :1].expand(3, 4, 5),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "chunk": lambda x: x.chunk(2, 1)[1],
    "split": lambda x: x.split([1, 2], 0)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "as_strided": lambda x: x.as_strided((2,), (3,), 1),
    "t": lambda x: x[0].t(),
    "chain": lambda x: x.chunk(2, -1)[0].transpose(0, 1).unsqueeze(-1),
}


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", VIEWS)
@leaves_nothing
def test_a_view_is_made_of_another_base(name: str, tracked: bool) -> None:
    base = torch.arange(60.0).view(3, 4, 5).clone()
    with torch.autograd._force_original_view_tracking(tracked):
        view = VIEWS[name](base)
    other = base * 2
    made = view._view_func(other)
    assert torch.equal(made, VIEWS[name](other))
    assert (made.stride(), made.storage_offset()) == (view.stride(), view.storage_offset())
    assert made._base is other
    detached = view.detach()
    back = view._rev_view_func_unsafe(detached)
    assert torch.equal(back, base)
    assert back._base is detached


@pytest.mark.parametrize(
    "function", [torch.view_as_real, torch.view_as_complex], ids=lambda f: f.__name__
)
def test_complex_views(function: Any) -> None:
    base = torch.arange(6.0).view(3, 2)
    base = torch.view_as_complex(base).clone() if function is torch.view_as_real else base.clone()
    view = function(base)
    assert torch.equal(view._view_func(base * 2), view * 2)
    assert torch.equal(view._rev_view_func_unsafe(view.detach()), base)


def test_what_is_no_view_has_none() -> None:
    x = torch.ones(2)
    assert x._view_func(x) is x._view_func_unsafe(x) is x._rev_view_func_unsafe(x) is None


def test_a_base_of_other_sizes_is_for_the_unsafe_one() -> None:
    with torch.autograd._force_original_view_tracking(True):
        view = torch.ones(3, 4).select(1, 2)
    other = torch.arange(10.0).view(2, 5)
    assert view._view_func(other) is None
    assert view._view_func_unsafe(other).tolist() == [2, 7]
    with pytest.raises(TypeError, match="argument 'new_base' .* must be Tensor, not int"):
        view._view_func(3)  # type: ignore[arg-type]


def test_visitors_change_what_the_ops_are_told() -> None:
    with torch.autograd._force_original_view_tracking(True):
        view = torch.ones(3, 4).select(1, 2)
    other = torch.arange(12.0).view(3, 4)
    seen = []

    def next_one(n: int) -> int:
        seen.append(n)
        return n + 1

    assert view._view_func(other, symint_visitor_fn=next_one).tolist() == [3, 7, 11]
    assert seen == [2]
    assert view._view_func(other).tolist() == [2, 6, 10]


def test_slice_inverse_keeps_its_source() -> None:
    base = torch.arange(12.0).view(3, 4).clone()
    part = base[:, 1:2].detach()
    whole = torch.ops.aten.slice_inverse(part, base, 1, 1, 2, 1)
    assert torch.equal(whole, base)
    smaller = whole._view_func(part, tensor_visitor_fn=lambda _: torch.ones(1, 2))
    assert smaller.tolist() == [[0, 1]]


def test_views_of_nested_tensors() -> None:
    values, offsets = torch.arange(5.0), torch.tensor([0, 2, 5])
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    other = values * 2
    y = x._view_func(other)
    assert (y.shape, y._base is other) == (x.shape, True)
    assert [each.tolist() for each in y.unbind()] == [[0, 2], [4, 6, 8]]
    nested = x.clone().detach()
    made = nested.values()._view_func_unsafe(nested * 3)
    assert made.tolist() == [0, 3, 6, 9, 12]
    assert nested.values()._rev_view_func_unsafe(values).shape == nested.shape
