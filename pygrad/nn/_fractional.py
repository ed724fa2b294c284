"""Pooling by windows at random steps, of which a fraction of the places is left (Graham, 2014)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._out import legacy_name
from .._package import pygrad
from .._tensor import Tensor

__all__ = ["fractional_max_pool2d", "fractional_max_pool2d_with_indices"]

Size = int | Sequence[int]
Ratio = float | Sequence[float]


def _pair(value: Any) -> tuple[Any, Any]:
    first, second = value if isinstance(value, Iterable) else (value, value)
    return first, second


def _output_size(input: Tensor, size: Size | None, ratio: Ratio | None) -> tuple[int, int]:
    if size is not None:
        return _pair(size)
    if ratio is None:
        raise ValueError(
            "fractional_max_pool2d requires specifying either an output_size or an output_ratio"
        )
    if isinstance(ratio, Sequence) and len(ratio) != 2:
        raise ValueError(
            "fractional_max_pool2d requires output_ratio to either be a single Int or tuple of "
            "Ints."
        )
    rows, columns = _pair(ratio)
    return int(input.size(-2) * rows), int(input.size(-1) * columns)


def _check(input: Tensor, kernel: Sequence[int], size: Sequence[int]) -> None:
    if not input.is_floating_point():
        name = "fractional_max_pool2d_out_frame"
        raise NotImplementedError(f"\"{name}\" not implemented for '{legacy_name(input)}'")
    for dim in range(-3, 0):
        if input.size(dim) == 0:
            raise RuntimeError(
                "fractional_max_pool2d(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got{list(input.shape)} with dimension {input.dim() + dim} "
                "being empty."
            )
    sides = zip(("height", "width"), kernel, size, input.shape[-2:], strict=True)
    for name, k, wanted, length in sides:
        if wanted + k - 1 > length:
            raise RuntimeError(
                f"fractional_max_pool2d(): pool {name} {k} too large relative to input {name} "
                f"{length}"
            )


def _check_samples(samples: Tensor, input: Tensor) -> None:
    wanted = "Expect _random_samples"
    if samples.dtype is not input.dtype:
        raise RuntimeError(f"{wanted} to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"{wanted} to have 3 dimensions, got {samples.dim()}")
    if samples.size(0) < (input.size(0) if input.dim() == 4 else 1):
        raise RuntimeError(f"{wanted}.size(0) no less then input batch size.")
    if samples.size(1) != input.size(-3):
        raise RuntimeError(f"{wanted}.size(1) equals to input channel size.")
    if samples.size(2) != 2:
        raise RuntimeError(f"{wanted}.size(2) equals to 2; got {samples.size(2)}.")


def _places(sample: Tensor, length: int, kernel: int, wanted: int) -> Tensor:
    """Where the windows lie along a dimension: (N, C) samples to (N, C, wanted, kernel) places."""
    begin = pygrad.full((*sample.shape, min(wanted, 1)), length - kernel)
    if wanted > 1:
        step = (length - kernel) / (wanted - 1)
        steps = pygrad.arange(wanted - 1, dtype=sample.dtype) + sample[..., None]
        random = (steps * step).long() - (sample * step).long()[..., None]
        begin = pygrad.cat([random, begin], -1)
    return begin[..., None] + pygrad.arange(kernel)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d` and the places of the maxima, whatever `return_indices`."""
    kernel, wanted = _pair(kernel_size), _output_size(input, output_size, output_ratio)
    planes = (input.size(0) if input.dim() == 4 else 1, input.size(-3))
    samples = _random_samples
    if samples is None:
        samples = pygrad.rand(*planes, 2, dtype=input.dtype)
    _check_samples(samples, input)
    _check(input, kernel, wanted)
    height, width = input.shape[-2:]
    samples = samples[: planes[0]]
    rows = _places(samples[..., 1], height, kernel[0], wanted[0])
    columns = _places(samples[..., 0], width, kernel[1], wanted[1])
    windows = rows[:, :, :, None, :, None] * width + columns[:, :, None, :, None, :]
    windows = windows.flatten(-2)
    flat = input.reshape(*planes, height * width)
    taken = flat.gather(-1, windows.flatten(2)).reshape(windows.shape)
    values, best = taken.max(-1)
    places = windows.gather(-1, best[..., None]).squeeze(-1)
    return (values, places) if input.dim() == 4 else (values[0], places[0])


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of windows that begin at random steps.

    Args:
        input: (N, C, H, W) or (C, H, W).
        kernel_size: of the windows, an int or a pair.
        output_size: how many windows along each dimension; or
        output_ratio: which share of the input's places.
        return_indices: return the places of the maxima, too.
        _random_samples: (N, C, 2), from 0 to 1: what else is drawn.

    Raises:
        ValueError: neither a size nor a ratio.
        RuntimeError: windows that are too large, samples that do not fit.
        NotImplementedError: integers.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, 1, 4, 4)
        >>> pygrad.nn.functional.fractional_max_pool2d(x, 2, output_size=2).shape
        torch.Size([1, 1, 2, 2])
    """
    values, places = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return (values, places) if return_indices else values
