"""Replays of views on another base: `Tensor._view_func` and its kin.

A tracked view (`_force_original_view_tracking`) knows the ops that made it; any other view is
replayed by its sizes, strides and offset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._table import functions
from .._tensor.base import Tensor
from .graph import _wrap

_C, _F = functions.C, functions.SPACES["torch"]
_Visit = Callable[[Any], Any] | None
_SOURCE: Final = "_slice_source"
"""The attribute in which a view of `slice_inverse` keeps its arguments."""


def view_func(
    view: Any,
    new_base: Any,
    symint_visitor_fn: _Visit = None,
    tensor_visitor_fn: _Visit = None,
    *,
    unsafe: bool,
) -> Any:
    """See `Tensor._view_func`."""
    name = "_view_func_unsafe" if unsafe else "_view_func"
    if not isinstance(new_base, Tensor):
        raise TypeError(
            f"{name}(): argument 'new_base' (position 1) must be Tensor, not "
            f"{type(new_base).__name__}"
        )
    base = view._base
    if base is None or not (unsafe or _geometry(base) == _geometry(new_base)):
        return None
    made = _again(view, _plain(new_base), symint_visitor_fn, tensor_visitor_fn)
    return view._view_with_entries(made) if view.is_nested else made


def rev_view_func(view: Any, new_view: Any) -> Any:
    """See `Tensor._rev_view_func_unsafe`."""
    if not isinstance(new_view, Tensor):
        raise TypeError(
            "_rev_view_func_unsafe(): argument 'new_view' (position 1) must be Tensor, not "
            f"{type(new_view).__name__}"
        )
    base = view._base
    if base is None:
        return None
    like = _plain(base)
    made = _restride_like(_view_as_type(_plain(new_view), like), like)
    return base._view_with_entries(made) if base.is_nested else made


def _plain(x: Any) -> Any:
    return x.values() if x.is_nested else x


def _geometry(x: Any) -> Any:
    x = _plain(x)
    return x.shape, x.stride(), x.storage_offset(), x.is_complex()


def _restride_like(x: Tensor, like: Tensor) -> Tensor:
    """A view of x with another tensor's sizes, strides and offset."""
    return x.as_strided(like.shape, like.stride(), like.storage_offset())


def _view_as_type(x: Tensor, like: Tensor) -> Tensor:
    """A view of the whole storage as complex numbers, or as their parts, whichever `like` has."""
    if x.is_complex() == like.is_complex():
        return x
    if x.is_complex():
        return _F["view_as_real"](x)  # type: ignore[no-any-return]
    n, at = (like.untyped_storage().nbytes() // like.itemsize, x.storage_offset() % 2)
    return _F["view_as_complex"](x.as_strided((n, 2), (2, 1), at))  # type: ignore[no-any-return]


# ------------------------------------------------------------------ op by op


def _to_signed(n: int) -> int:
    """Converts a number that is shown unsigned to its signed value."""
    return n - (1 << 64) if n >> 63 else n


class _Step:
    """One op that made a view, read from its node."""

    def __init__(self, node: Any, visit: _Visit) -> None:
        self._node = node
        self._visit = visit or (lambda n: n)

    def number(self, name: str) -> int:
        """The number that the node saved under a name."""
        return _to_signed(getattr(self._node, f"_saved_{name}"))

    def numbers(self, name: str) -> list[int]:
        return [_to_signed(n) for n in getattr(self._node, f"_saved_{name}")]

    def symbolic(self, name: str) -> Any:
        """Like `number`, where PyTorch has a symbolic number, which a visitor may change."""
        return self._visit(self.number(name))

    def sizes(self) -> list[Any]:
        """The sizes of the result."""
        return [self._visit(n) for n in self._node._input_metadata[0].shape]


def _replay_as_strided(x: Tensor, s: _Step) -> Tensor:
    sizes, strides = ([s._visit(n) for n in s.numbers(name)] for name in ("size", "stride"))
    offset = s._node._saved_storage_offset
    return x.as_strided(sizes, strides, None if offset is None else s._visit(_to_signed(offset)))


_STEPS: Final[dict[str, Callable[[Tensor, _Step], Any]]] = {
    "SelectBackward0": lambda x, s: x.select(s.number("dim"), s.symbolic("index")),
    "SliceBackward0": lambda x, s: _replay_slice(x, s),
    "PermuteBackward0": lambda x, s: x.permute(s.numbers("dims")),
    "TransposeBackward0": lambda x, s: x.transpose(s.number("dim0"), s.number("dim1")),
    "TBackward0": lambda x, s: x.t(),
    "ExpandBackward0": lambda x, s: x.expand(s.sizes()),
    "ViewBackward0": lambda x, s: x.view(s.sizes()),
    "AliasBackward0": lambda x, s: x[...],
    "SqueezeBackward0": lambda x, s: x.squeeze(),
    "SqueezeBackward1": lambda x, s: x.squeeze(s.number("dim")),
    "SqueezeBackward2": lambda x, s: x.squeeze(tuple(s.numbers("dim"))),
    "UnsqueezeBackward0": lambda x, s: x.unsqueeze(s.number("dim")),
    "DiagonalBackward0": lambda x, s: x.diagonal(*map(s.number, ("offset", "dim1", "dim2"))),
    "UnfoldBackward0": lambda x, s: x.unfold(*map(s.number, ("dimension", "size", "step"))),
    "AsStridedBackward0": _replay_as_strided,
    "ViewAsRealBackward0": lambda x, s: _F["view_as_real"](x),
    "ViewAsComplexBackward0": lambda x, s: _F["view_as_complex"](x),
}
"""Replays of ops by the names of their nodes."""


def _replay_slice(x: Tensor, s: _Step) -> Any:
    dim = s.number("dim") % max(x.dim(), 1)
    part = slice(s.symbolic("start"), s.symbolic("end"), s.symbolic("step"))
    return x[(*(slice(None),) * dim, part)]


def _has_arguments(node: Any) -> bool:
    """Whether a node has its op's arguments."""
    name = node.name()
    return name in _STEPS and (
        name != "AsStridedBackward0" or getattr(node, "_saved_size", None) is not None
    )


def _again(view: Any, base: Tensor, visit: _Visit, visit_tensor: _Visit) -> Tensor:
    """The view of another base."""
    told = getattr(view, "__dict__", {}).get(_SOURCE)
    if told is not None:
        source = visit_tensor(told[0]) if visit_tensor else told[0]
        return slice_inverse(base, source, *told[1:])
    chain, node = [], _wrap(_C["_made_by"](view))
    while node is not None:
        chain.append(node)
        node = node.next_functions[0][0]
    like = _plain(view)
    if not chain or not all(map(_has_arguments, chain)):
        return _restride_like(_view_as_type(base, like), like)
    x: Any = base
    for each in reversed(chain):
        x = _STEPS[each.name()](x, _Step(each, visit))
    return x  # type: ignore[no-any-return]


def slice_inverse(
    self: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """Inverse of a slice: a view of `src` with the sizes, strides and offset of `self`."""
    made = _restride_like(self, src)
    made.__dict__[_SOURCE] = (src, dim, start, end, step)
    return made
