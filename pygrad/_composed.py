"""Functions of the torch namespace composed of the table's ops: differences, histograms, copies of
views.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _ops
from ._builtins import builtin
from ._dtypes import contiguous_format, int64, uint8
from ._out import into, legacy_name
from ._tensor import Tensor
from ._vmap import levels

__all__ = [
    "alias_copy",
    "gradient",
    "histogram",
    "histogramdd",
    "native_group_norm",
    "renorm",
    "unravel_index",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
]

_F = _ops.SPACES["torch"]
_Histogram = _ops.named_result("histogram", ("hist", "bin_edges"))
_Histogramdd = _ops.named_result("histogramdd", ("hist", "bin_edges"))

# ---------------------------------------------------------------- places


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The places that indices into a flattened tensor of a shape stand for.

    Args:
        indices: of an integer dtype.
        shape: an int or a sequence of ints, none of them negative.

    Returns:
        A tensor of the shape of `indices` for each dimension.

    Raises:
        TypeError: `shape` is none. ValueError: it is negative, or an index lies beyond it.

    Example:
        >>> import pygrad
        >>> pygrad.unravel_index(pygrad.tensor(5), (2, 3))
        (tensor(1), tensor(2))
    """
    if not isinstance(shape, (int, Sequence)) or isinstance(shape, bool):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {_type(shape)}")
    for each in shape if isinstance(shape, Sequence) else ():
        if not isinstance(each, int):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {_type(each)}"
            )
    found: tuple[Tensor, ...] = _F["unravel_index"](indices, shape)
    return found


def _type(value: Any) -> str:
    """The class of a value, under its name in PyTorch."""
    return "<class 'torch.Tensor'>" if isinstance(value, Tensor) else str(type(value))


# ---------------------------------------------------------------- differences and norms


def _spacings(n: int, spacing: Any, dims: Sequence[int] | None) -> list[Any]:
    """The spacing of each of n dimensions."""
    if spacing is None or isinstance(spacing, (int, float)):
        return [1 if spacing is None else spacing] * n
    if isinstance(spacing, Tensor):
        if spacing.dim():
            raise TypeError("gradient(): spacing must be a number or a list, not a Tensor")
        return [spacing.item()] * n
    if len(spacing) != n:
        if dims is None:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                f"equal to 'self.dim() = {n}', since dim argument was not given, but got a list of "
                f"length {len(spacing)}"
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            "arguments to have the same length, but got a spacing argument of length "
            f"{len(spacing)} and a dim argument of length {n}."
        )
    for each in spacing:
        if isinstance(each, Tensor) and each.dim() != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an "
                f"element with {each.dim()} dimensions!"
            )
    return list(spacing)


def _slope(f: Sequence[Tensor], left: Any, right: Any, at: int) -> Tensor:
    """The slope, at the first, second or third of three neighbours, of the parabola through
    them."""
    first, second = (f[1] - f[0]) / left, (f[2] - f[1]) / right
    bend = (second - first) / (left + right)
    slopes: list[Tensor] = [first - bend * left, first + bend * left, second + bend * right]
    return slopes[at]


def _differences(f: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The gradient along one dimension."""
    n = f.size(dim)
    gaps: Any = spacing
    if isinstance(spacing, Tensor):
        gaps = spacing.diff().reshape(-1, *(1,) * (f.dim() - 1 - dim % f.dim()))

    def gap(start: int, length: int) -> Any:
        return gaps[start : start + length] if isinstance(gaps, Tensor) else gaps

    def three(start: int, length: int) -> list[Tensor]:
        return [f.narrow(dim, start + k, length) for k in range(3)]

    def edge(start: int) -> Tensor:
        if edge_order == 2:
            begin = min(start, n - 3)
            return _slope(three(begin, 1), gap(begin, 1), gap(begin + 1, 1), 2 if start else 0)
        slope: Tensor = (f.narrow(dim, start + 1, 1) - f.narrow(dim, start, 1)) / gap(start, 1)
        return slope

    if isinstance(gaps, Tensor):
        middle = _slope(three(0, n - 2), gap(0, n - 2), gap(1, n - 2), 1)
    else:
        middle = (f.narrow(dim, 2, n - 2) - f.narrow(dim, 0, n - 2)) / gaps / 2
    found: Tensor = _F["cat"]([edge(0), middle, edge(n - 2)], dim)
    return found


@builtin
def gradient(
    input: Tensor,
    *,
    spacing: Any = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The slopes of sampled values along each dimension, by differences of neighbours.

    Args:
        input: the values.
        spacing: how far neighbours are apart: a number, or for each dimension a number or the
            coordinates of its places (a vector). Default 1.
        dim: which dimensions; all by default.
        edge_order: 1: slopes at the ends by two values, 2: by three.

    Returns:
        A tensor of the shape of `input` for each dimension.

    Raises:
        RuntimeError: bytes, another order, lists that do not fit, dimensions that are too short.

    Example:
        >>> import pygrad
        >>> pygrad.gradient(pygrad.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims = (dim,) if isinstance(dim, int) else range(input.dim()) if dim is None else tuple(dim)
    spacings = _spacings(len(dims), spacing, None if dim is None else dims)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    wrapped = [each % input.dim() if input.size(each) >= 0 else 0 for each in dims]
    for k, each in enumerate(wrapped):
        if each in wrapped[:k]:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
        if input.size(each) < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    pairs = zip(wrapped, spacings, strict=True)
    return tuple(_differences(input, *pair, edge_order) for pair in pairs)


@builtin
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Any = None) -> Tensor:
    """Each part of the tensor along a dimension, shortened to a norm of at most `maxnorm`.

    Args:
        input: of two dimensions or more.
        p: the order of the norm.
        dim: of which each place is a part.
        maxnorm: the largest norm that is let be.
        out: where to put the result.

    Raises:
        RuntimeError: fewer dimensions, a `p` that is not positive, a negative `maxnorm`, integers.

    Example:
        >>> import pygrad
        >>> pygrad.renorm(pygrad.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.dim() < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions"
        )
    input.size(dim)  # raises for a dim that is not there
    others = [k for k in range(input.dim()) if k != dim % input.dim()]
    norm = _ops.SPACES["linalg"]["vector_norm"](input, p, others, keepdim=True)
    factor = _F["where"](norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    found: Tensor = into("renorm", input * factor, out)
    return found


@builtin
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """:func:`renorm`, in place.

    Example:
        >>> import pygrad
        >>> pygrad.tensor([[0.0, 4.0]]).renorm_(2, 0, 1.0)
        tensor([[0., 1.]])
    """
    return input.copy_(renorm(input, p, dim, maxnorm))


# ---------------------------------------------------------------- histograms


def _range_of(values: Tensor, d: int) -> tuple[float, float]:
    """The least and the largest of values, with some room where they are one."""
    low, high = (0.0, 1.0) if not values.numel() else (values.min().item(), values.max().item())
    _check_range(low, high, d)
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _check_range(low: float, high: float, d: int) -> None:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            "torch.histogramdd: min should not exceed max, but got min "
            f"{low:g} max {high:g} for dimension {d}"
        )


def _edges(points: Tensor, bins: Sequence[Any], range_: Sequence[float] | None) -> list[Tensor]:
    """The edges of the bins of each column, which `bins` counts or has."""
    n = points.size(-1)
    if range_ is not None and len(range_) != 2 * n:
        raise RuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} "
            f"elements, but got {len(range_)}"
        )
    found = []
    for d, count in enumerate(bins):
        if not isinstance(count, Tensor):
            _check_count(count, d)
            if range_ is None:
                low, high = _range_of(points[:, d], d)
            else:
                low, high = range_[2 * d : 2 * d + 2]
                _check_range(low, high, d)
                low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
            found.append(_F["linspace"](low, high, count + 1, dtype=points.dtype))
            continue
        if count.dim() != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {count.dim()} "
                f"dimensions in the bins tensor for dimension {d}"
            )
        if count.dtype is not points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {_short(points)} and bins for dimension {d} with dtype "
                f"{_short(count)}"
            )
        if not count.numel():
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                f"in the bins tensor for dimension {d}"
            )
        _check_count(count.numel() - 1, d)
        found.append(count.detach().clone())
    return found


def _check_count(count: int, d: int) -> None:
    if count <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}"
        )


def _short(x: Tensor) -> str:
    return legacy_name(x).lower()


def _counted(
    points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    """How many rows of points, or what weight of them, fall into each bin."""
    place = _F["zeros"](points.size(0), dtype=int64)
    inside = place == 0
    for column, edge in zip(points.unbind(-1), edges, strict=True):
        size = edge.numel() - 1
        at = (_F["searchsorted"](edge, column.contiguous(), right=True) - 1).clamp(0, size - 1)
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        place = place * size + at
    shape = [edge.numel() - 1 for edge in edges]
    weights = points.new_ones(points.size(0)) if weight is None else weight
    found: Tensor = points.new_zeros(math.prod(shape))
    found = found.index_add(0, place[inside], weights[inside]).reshape(shape)
    if density:
        found = found / found.sum()
        for d, edge in enumerate(edges):
            found = found / edge.diff().reshape(-1, *(1,) * (len(shape) - 1 - d))
    return found


@builtin
def histogramdd(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points fall into each box of a grid.

    Args:
        input: (*, n), a point a row.
        bins: for each of the n dimensions the edges of its bins, or how many there are; one number
            for all.
        range: the least and the largest edge of each dimension; by default those of the input.
        weight: (*), what each point counts; 1 by default.
        density: the share of a box by its volume.

    Returns:
        hist, of n dimensions, and bin_edges, n vectors. Neither has a gradient.

    Raises:
        RuntimeError: shapes or dtypes that do not fit, a range that is empty or infinite.
        NotImplementedError: points that are integers.

    Example:
        >>> import pygrad
        >>> points = pygrad.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
        >>> pygrad.histogramdd(points, 2).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    n = input.size(-1)
    counts = [bins] * n if isinstance(bins, int) else list(bins)
    if len(counts) != n:
        raise RuntimeError(
            f"torch.histogramdd: expected {n} sequences of bin edges for a {n}-dimensional "
            f"histogram but got {len(counts)}"
            if counts and isinstance(counts[0], Tensor)
            else "histogramdd: The size of bins must be equal to the innermost dimension of the "
            "input."
        )
    if weight is not None:
        _check_weight(input, weight)
    if not input.is_floating_point():
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{legacy_name(input)}'")
    points = input.detach().reshape(math.prod(input.shape[:-1]), n)
    edges = _edges(points, counts, range)
    weights = None if weight is None else weight.detach().reshape(-1)
    return _Histogramdd((_counted(points, edges, weights, density), tuple(edges)))


def _check_weight(input: Tensor, weight: Tensor) -> None:
    if weight.shape != input.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got input with shape "
            f"{list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({_short(input)}), and "
            f"weight({_short(weight)})"
        )


@builtin
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """How many elements fall into each bin: each but the last has its left edge, not its right one.

    Args:
        input: of any shape.
        bins: how many, or their edges in order.
        range: the first and the last edge; by default the least and the largest element.
        weight: of the shape of `input`, what each element counts; 1 by default.
        density: the share of a bin by its width.
        out: where to put the two results.

    Returns:
        hist and bin_edges, vectors without a gradient.

    Raises:
        RuntimeError: as :func:`histogramdd`.
        NotImplementedError: integers.

    Example:
        >>> import pygrad
        >>> pygrad.histogram(pygrad.tensor([1.0, 2.0, 1.0]), 4, range=(0.0, 3.0)).hist
        tensor([0., 2., 1., 0.])
    """
    if not isinstance(bins, (int, Tensor)):
        raise TypeError(
            "histogram(): argument 'bins' (position 2) must be int or Tensor, not "
            f"{type(bins).__name__}"
        )
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = histogramdd(
        input.reshape(-1, 1), [bins], range=range, weight=weights, density=density
    )
    return into("histogram", _Histogram((hist, edges[0])), out)


# ---------------------------------------------------------------- copies of views


def slice_of(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A view of every `step`-th place of a dimension from `start` up to `end`.

    Example:
        >>> import pygrad
        >>> pygrad.ops.aten.slice(pygrad.arange(6), 0, 1, 5, 2)
        tensor([1, 3])
    """
    if not self.dim():
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    self.size(dim)  # raises for a dim that is not there
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


def _copy_of(name: str, view: Callable[..., Any]) -> Callable[..., Any]:
    """The op that copies what a view shows."""

    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        shown = view(input, *args, **kwargs)
        if isinstance(shown, Tensor):
            return into(name, shown.clone(memory_format=contiguous_format), out)
        copies = tuple(each.clone(memory_format=contiguous_format) for each in shown)
        return into(name, copies, out)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "pygrad"
    function.__doc__ = f"What {name.removesuffix('_copy')} shows, copied: no view of `input`."
    return builtin(function)


_VIEWS = (
    "as_strided diagonal expand narrow permute select split split_with_sizes squeeze t transpose "
    "unbind unfold unsqueeze view"
)
COPIES: dict[str, Callable[..., Any]] = {
    f"{name}_copy": _copy_of(f"{name}_copy", view)
    for name, view in [
        ("slice", slice_of),
        *((name, _ops.SPACES["method"][name]) for name in _VIEWS.split()),
    ]
}
"""The ops of PyTorch that copy what a view shows."""


@builtin
def alias_copy(input: Tensor, *, out: Any = None) -> Tensor:
    """A copy of the whole tensor.

    Example:
        >>> import pygrad
        >>> pygrad.alias_copy(pygrad.ones(2))
        tensor([1., 1.])
    """
    copy: Tensor = into("alias_copy", input.clone(memory_format=contiguous_format), out)
    return copy


def _apart(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Views that autograd takes for no views: they have histories and versions of their own."""
    for part in parts if not levels.stack else ():
        _ops.C["_set_apart"](part)
    return parts


@builtin
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """`split_with_sizes`, whose parts may each be written to in place.

    Example:
        >>> import pygrad
        >>> pygrad.unsafe_split_with_sizes(pygrad.arange(3), [1, 2])
        (tensor([0]), tensor([1, 2]))
    """
    return _apart(input.split_with_sizes(split_sizes, dim))


@builtin
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`, whose parts may each be written to in place.

    Example:
        >>> import pygrad
        >>> pygrad.unsafe_split(pygrad.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
    """
    return _apart(input.split(split_size, dim))


@builtin
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, whose parts may each be written to in place.

    Example:
        >>> import pygrad
        >>> pygrad.unsafe_chunk(pygrad.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3]))
    """
    return _apart(input.chunk(chunks, dim))


# ---------------------------------------------------------------- parts of layers


@builtin
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`group_norm`, and the means and one over the deviations by which it norms, (N, group) each.

    Args:
        input: of N samples, C channels and HxW places.
        weight: (C,), by which the channels are scaled.
        bias: (C,), added to them.
        group: of how many groups the channels are.
        eps: added to the variances.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([[1.0, 3.0]])
        >>> pygrad.native_group_norm(x, None, None, 1, 2, 1, 1, 0.0)[:2]
        (tensor([[-1.,  1.]]), tensor([[2.]]))
    """
    normed = _F["group_norm"](input, group, weight, bias, eps)
    groups = input.reshape(N, group, C // group * HxW)
    var, mean = _F["var_mean"](groups, -1, correction=0)
    return normed, mean, (var + eps).rsqrt()
