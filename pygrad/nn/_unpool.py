"""What max_pool took away, put back at the places it came from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .._out import legacy_name
from .._package import pygrad
from .._tensor import Tensor

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


_SIDES = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def _many(value: int | Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


def _output_size(
    n: int,
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    wanted: Sequence[int] | None,
) -> list[int]:
    """The n lengths that max_pool shortens to those of the input, or the wanted ones among them."""
    kernel, step, pad = (_many(each, n) for each in (kernel_size, stride or kernel_size, padding))
    if (given := len(kernel)) < n:
        raise RuntimeError(
            f"There should be exactly {_SIDES[n]} in output_size, but got {given} elements."
        )
    default = [(input.shape[d - n] - 1) * step[d] + kernel[d] - 2 * pad[d] for d in range(n)]
    if wanted is None:
        return default
    if len(wanted) == n + 2:
        wanted = wanted[2:]
    if len(wanted) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a "
            f"length of '{len(wanted)}'"
        )
    for d in range(n):
        low, high = default[d] - step[d], default[d] + step[d]
        if not low < wanted[d] < high:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})'
            )
    return list(wanted)


def _check(input: Tensor, indices: Tensor, size: Sequence[int]) -> None:
    n = len(size)
    if indices.dtype is not pygrad.int64:
        got = f" but got: {legacy_name(indices)}" if n == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor "
            f"with {input.dim()} dimensions."
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(input.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    if not input.is_floating_point():
        raise NotImplementedError(f"\"max_unpool{n}d\" not implemented for '{legacy_name(input)}'")
    bad = indices[(indices < 0) | (indices >= math.prod(size))]
    if bad.numel():
        raise RuntimeError(
            f"Found an invalid max index: {bad[-1].item()} (output volumes are of size "
            f"{'x'.join(map(str, size))})"
        )


def _unpooled(input: Tensor, indices: Tensor, size: Sequence[int]) -> Tensor:
    _check(input, indices, size)
    n = len(size)
    flat = input.new_zeros((*input.shape[:-n], math.prod(size)))
    flat = flat.scatter(-1, indices.flatten(-n), input.flatten(-n))
    return flat.reshape(*input.shape[:-n], *size)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """The input's elements at the places that `max_pool1d` returned beside them, zeros between.

    Args:
        input: (N, C, L) or (C, L).
        indices: of the input's shape, int64: the places in an output of one channel.
        kernel_size: of the pooling.
        stride: of the pooling, by default `kernel_size`.
        padding: of the pooling.
        output_size: of the several lengths that are pooled to L, which one.

    Returns:
        (N, C, L_out) or (C, L_out), L_out = (L - 1) * stride - 2 * padding + kernel_size.

    Raises:
        ValueError: an `output_size` that is not pooled to the input's.
        RuntimeError: shapes that do not fit, indices outside of the output.

    Example:
        >>> import pygrad
        >>> F = pygrad.nn.functional
        >>> x = pygrad.tensor([[1.0, 3.0, 2.0, 0.0]])
        >>> F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)
        tensor([[0., 3., 2., 0.]])
    """
    (length,) = _output_size(1, input, kernel_size, stride, padding, output_size)
    column = _unpooled(input.unsqueeze(-1), indices.unsqueeze(-1), [length, 1])
    return column.squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """:func:`max_unpool1d` of images: (N, C, H, W) or (C, H, W), each size an int or a pair.

    Returns:
        (N, C, H_out, W_out) or (C, H_out, W_out).

    Example:
        >>> import pygrad
        >>> places = pygrad.zeros(1, 1, 2, 2, dtype=pygrad.int64)
        >>> pygrad.nn.functional.max_unpool2d(pygrad.ones(1, 1, 2, 2), places, 2).shape
        torch.Size([1, 1, 4, 4])
    """
    size = _output_size(2, input, kernel_size, stride, padding, output_size)
    return _unpooled(input, indices, size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """:func:`max_unpool1d` of volumes: (N, C, D, H, W) or (C, D, H, W), each size an int or three.

    Returns:
        (N, C, D_out, H_out, W_out) or (C, D_out, H_out, W_out).

    Example:
        >>> import pygrad
        >>> places = pygrad.zeros(1, 1, 1, 2, 2, dtype=pygrad.int64)
        >>> pygrad.nn.functional.max_unpool3d(pygrad.ones(1, 1, 1, 2, 2), places, 2).shape
        torch.Size([1, 1, 2, 4, 4])
    """
    size = _output_size(3, input, kernel_size, stride, padding, output_size)
    return _unpooled(input, indices, size)
