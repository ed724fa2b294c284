"""Images sampled at places of a grid, and grids of affine maps: spatial transformers."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence

from .._builtins import builtin
from .._package import pygrad
from .._tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where each position of an image comes from under affine maps, for :func:`grid_sample`.

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes.
        size: (N, C, H, W) or (N, C, D, H, W) of the output.
        align_corners: -1 and 1 are the centres of the outermost pixels, not their outer edges.

    Returns:
        (N, H, W, 2) or (N, D, H, W, 3), coordinates from -1 to 1, that of the width first.

    Raises:
        ValueError: a theta of integers, or of a shape that does not fit.
        NotImplementedError: a size of another length.

    Example:
        >>> import pygrad
        >>> identity = pygrad.eye(2, 3).unsqueeze(0)
        >>> grid = pygrad.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=True)
        >>> grid[0, 0, :, 0]
        tensor([-1.,  1.])
    """
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    axes = []
    for count in size[2:]:
        axis = pygrad.linspace(-1, 1, count, dtype=theta.dtype)
        if count <= 1:
            axis = pygrad.zeros(count, dtype=theta.dtype)
        axes.append(axis if aligned or count <= 1 else axis * (count - 1) / count)
    places = pygrad.meshgrid(*axes, indexing="ij")
    points = pygrad.stack([*reversed(places), pygrad.ones_like(places[0])], -1)
    flat = points.reshape(1, -1, n + 1).expand(size[0], -1, -1)
    grid: Tensor = flat.bmm(theta.transpose(1, 2)).reshape(size[0], *size[2:], n)
    return grid


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    """Folds a coordinate back into the range between halves of two bounds."""
    if low == high:
        return pygrad.zeros_like(x)
    least, span = low / 2, (high - low) / 2
    distance = (x - least).abs()
    rest, folds = distance.fmod(span), (distance.detach() / span).floor()
    return pygrad.where(folds % 2 == 0, rest + least, span - rest + least)


def _pixel(x: Tensor, size: int, aligned: bool) -> Tensor:
    """A coordinate from -1 to 1 as a place among the pixels of one dimension."""
    return (x + 1) / 2 * (size - 1) if aligned else ((x + 1) * size - 1) / 2


def _padded(place: Tensor, size: int, padding_mode: str, aligned: bool) -> Tensor:
    """The place whose pixel counts, of one that may be outside."""
    if padding_mode == "reflection":
        ends = (0.0, 2.0 * (size - 1)) if aligned else (-1.0, 2.0 * size - 1)
        place = _reflected(place, *ends)
    return place if padding_mode == "zeros" else place.clamp(0, size - 1)


_A = -0.75
"""The slope of the cubics where they meet the next pixel."""


def _near(x: Tensor) -> Tensor:
    return ((_A + 2) * x - (_A + 3)) * x * x + 1


def _far(x: Tensor) -> Tensor:
    return ((_A * x - 5 * _A) * x + 8 * _A) * x - 4 * _A


_WEIGHTS: dict[str, list[Callable[[Tensor], Tensor]]] = {
    "bilinear": [lambda x: 1 - x, lambda x: x],
    "bicubic": [
        lambda x: _far(x + 1),
        _near,
        lambda x: _near(1 - x),
        lambda x: _far(2 - x),
    ],
}
"""Of the pixels around a place in one dimension, given how far it is from the last one before."""


def _taps(
    x: Tensor, size: int, mode: str, padding_mode: str, aligned: bool
) -> list[tuple[Tensor, Tensor]]:
    """The pixels, and their weights, of coordinates of one dimension."""
    place = _pixel(x, size, aligned)
    if mode != "bicubic":
        place = _padded(place, size, padding_mode, aligned)
    if mode == "nearest":
        pixels, weights = [place.detach().round()], [pygrad.ones_like(place)]
    else:
        first = place.detach().floor()
        weights = [weight(place - first) for weight in _WEIGHTS[mode]]
        pixels = [first + k + 1 - len(weights) // 2 for k in range(len(weights))]
    if mode == "bicubic":
        pixels = [_padded(each, size, padding_mode, aligned) for each in pixels]
    return [
        (at.nan_to_num(0.0).clamp(0, size - 1).long(), weight * ((at >= 0) & (at <= size - 1)))
        for at, weight in zip(pixels, weights, strict=True)
    ]


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    rank = input.dim()
    if input.size(0) != grid.size(0):
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.size(-1) != rank - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {rank - 2} in last dimension, but got "
            f"grid with sizes {list(grid.shape)}"
        )
    if rank not in (4, 5) or grid.dim() != rank:
        raise RuntimeError(
            f"grid_sampler(): expected {4 if rank == 4 else 5}D input and grid with same number of "
            f"dimensions, but got input with sizes {list(input.shape)} and grid with sizes "
            f"{list(grid.shape)}"
        )
    if mode == "bicubic" and rank != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images, or volumes, at the places of a grid.

    Args:
        input: (N, C, H, W) or (N, C, D, H, W).
        grid: (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3), coordinates from -1 to 1, that
            of the width first.
        mode: "bilinear" (of volumes trilinear), "nearest" or, of images, "bicubic".
        padding_mode: what is outside: "zeros", the "border", or the "reflection".
        align_corners: -1 and 1 are the centres of the outermost pixels, not their outer edges.

    Returns:
        (N, C, H_out, W_out) or (N, C, D_out, H_out, W_out).

    Raises:
        ValueError: another mode.
        RuntimeError: shapes that do not fit; "bicubic" of volumes.

    Example:
        >>> import pygrad
        >>> image = pygrad.arange(4.0).reshape(1, 1, 2, 2)
        >>> middle = pygrad.zeros(1, 1, 1, 2)
        >>> pygrad.nn.functional.grid_sample(image, middle, align_corners=True).item()
        1.5
    """
    aligned = _aligned(align_corners)
    _check(input, grid, mode, padding_mode)
    sizes = input.shape[2:]
    flat = input.flatten(2)
    points = grid.flatten(1, -2)
    taps = [
        _taps(points[..., len(sizes) - 1 - k], size, mode, padding_mode, aligned)
        for k, size in enumerate(sizes)
    ]
    total = flat.new_zeros((*flat.shape[:2], points.size(1))) + 0 * points.sum(-1).unsqueeze(1)
    for chosen in itertools.product(*taps):
        index = pygrad.zeros(points.shape[:2], dtype=pygrad.int64)
        weight = pygrad.ones(points.shape[:2], dtype=input.dtype)
        for (at, share), size in zip(chosen, sizes, strict=True):
            index = index * size + at
            weight = weight * share
        found = flat.gather(2, index.unsqueeze(1).expand(-1, flat.size(1), -1))
        total = total + found * weight.unsqueeze(1)
    result: Tensor = total.reshape(*flat.shape[:2], *grid.shape[1:-1])
    return result


_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


@builtin
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """:func:`grid_sample`, whose modes are numbers: their places in its lists of them.

    Example:
        >>> import pygrad
        >>> image = pygrad.arange(4.0).reshape(1, 1, 2, 2)
        >>> pygrad.grid_sampler(image, pygrad.zeros(1, 1, 1, 2), 0, 0, True).item()
        1.5
    """
    mode, padding = _MODES[interpolation_mode], _PADDINGS[padding_mode]
    return grid_sample(input, grid, mode, padding, align_corners)


def _sampler_of_rank(n: int) -> Callable[[Tensor, Tensor, int, int, bool], Tensor]:
    def function(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        if not input.dim() == grid.dim() == n + 2:
            raise RuntimeError(
                f"grid_sampler(): expected {n + 2}D input and grid with same number of dimensions, "
                f"but got input with sizes {list(input.shape)} and grid with sizes "
                f"{list(grid.shape)}"
            )
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    function.__name__ = function.__qualname__ = f"grid_sampler_{n}d"
    function.__doc__ = f"`grid_sampler` of {'images' if n == 2 else 'volumes'} alone."
    return builtin(function)


grid_sampler_2d, grid_sampler_3d = _sampler_of_rank(2), _sampler_of_rank(3)
