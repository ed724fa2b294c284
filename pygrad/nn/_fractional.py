"""Pooling by windows at random steps, of which a fraction of the places is left (Graham, 2014)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pygrad
from pygrad._out import legacy_name
from pygrad._tensor import Tensor

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]

Size = int | Sequence[int]
Ratio = float | Sequence[float]


def _many(value: Any, n: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def _output_size(n: int, input: Tensor, size: Size | None, ratio: Ratio | None) -> tuple[int, ...]:
    if size is not None:
        return _many(size, n)
    if ratio is None:
        raise ValueError(
            f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio"
        )
    shares = _many(ratio, n)
    return tuple(int(input.size(d - n) * shares[d]) for d in range(n))


def _check(n: int, input: Tensor, kernel: Sequence[int], size: Sequence[int]) -> None:
    if not input.is_floating_point():
        name = f"fractional_max_pool{n}d_out_frame"
        raise NotImplementedError(f"\"{name}\" not implemented for '{legacy_name(input)}'")
    names = ("time", "height", "width")[3 - n :]
    for name, k, wanted, length in zip(names, kernel, size, input.shape[-n:], strict=True):
        if wanted + k - 1 > length - (n == 3):  # so it is in PyTorch
            raise RuntimeError(
                f"fractional_max_pool{n}d{'_out' if n == 3 else ''}(): pool {name} {k} too large "
                f"relative to input {name} {length}"
            )


def _check_samples(samples: Tensor, input: Tensor, n: int) -> None:
    wanted = "Expect _random_samples"
    if samples.dtype is not input.dtype:
        raise RuntimeError(f"{wanted} to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"{wanted} to have 3 dimensions, got {samples.dim()}")
    if samples.size(0) < (input.size(0) if input.dim() == n + 2 else 1):
        raise RuntimeError(f"{wanted}.size(0) no less then input batch size.")
    if samples.size(1) != input.size(-n - 1):
        raise RuntimeError(f"{wanted}.size(1) equals to input channel size.")
    if samples.size(2) != n:
        raise RuntimeError(f"{wanted}.size(2) equals to {n}; got {samples.size(2)}.")


def _starts(sample: Tensor, length: int, kernel: int, wanted: int) -> Tensor:
    """Where the windows begin along a dimension: (N, C) samples to (N, C, wanted) places."""
    last = pygrad.full((*sample.shape, 1), length - kernel)
    if wanted <= 1:
        return last
    step = (length - kernel) / (wanted - 1)
    steps = pygrad.arange(wanted - 1, dtype=sample.dtype)
    random = ((steps + sample[..., None]) * step).long() - (sample * step).long()[..., None]
    return pygrad.cat([random, last], -1)


def _pooled(
    n: int,
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None,
    output_ratio: Ratio | None,
    samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    kernel = _many(kernel_size, n)
    wanted = _output_size(n, input, output_size, output_ratio)
    planes = (input.size(0) if input.dim() == n + 2 else 1, input.size(-n - 1))
    if samples is None:
        samples = pygrad.rand(*planes, n, dtype=input.dtype)
    _check_samples(samples, input, n)
    _check(n, input, kernel, wanted)
    samples = samples[: planes[0]]
    index = pygrad.zeros((*planes, *(1,) * 2 * n), dtype=pygrad.int64)
    for d in range(n):
        drawn = samples[..., n - 1 - d if n == 2 else d]
        length = input.size(d - n)
        begin = _starts(drawn, length, kernel[d], wanted[d])[..., None] + pygrad.arange(kernel[d])
        shape = [1] * 2 * n
        shape[d], shape[n + d] = wanted[d], kernel[d]
        index = index * length + begin.reshape(*planes, *shape)
    index = index.flatten(-n)
    taken = input.reshape(*planes, -1).gather(-1, index.flatten(2)).reshape(index.shape)
    values, best = taken.max(-1)
    places = index.gather(-1, best[..., None]).squeeze(-1)
    return (values, places) if input.dim() == n + 2 else (values[0], places[0])


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool2d` and the places of the maxima, whatever `return_indices`."""
    return _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)


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
    found = _pooled(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`fractional_max_pool3d` and the places of the maxima, whatever `return_indices`."""
    return _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Size | None = None,
    output_ratio: Ratio | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """The maxima of windows that begin at random steps.

    The arguments are those of :func:`fractional_max_pool2d`, each size an int or three.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, 1, 2, 4, 4)
        >>> pygrad.nn.functional.fractional_max_pool3d(x, (1, 2, 2), output_size=(1, 2, 2)).shape
        torch.Size([1, 1, 1, 2, 2])
    """
    found = _pooled(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]
