"""Arrangement of images and videos for summaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def figure_to_image(figures: Any, close: bool = True) -> Array:
    """A matplotlib figure as a uint8 array [3, H, W], or a list of N figures as [N, 3, H, W].

    Args:
        figures: one figure, or a list of figures of one size.
        close: close the figures in pyplot afterwards.
    """
    from matplotlib import pyplot
    from matplotlib.backends import backend_agg

    def render(figure: Any) -> Array:
        canvas = backend_agg.FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
        if close:
            pyplot.close(figure)
        return np.moveaxis(pixels, 2, 0)

    if isinstance(figures, list):
        return np.stack([render(figure) for figure in figures])
    return render(figures)


def make_grid(I: Array, ncols: int = 8) -> Array:  # noqa: E741
    """Images [N, C, H, W] side by side in one image [3, rows * H, columns * W].

    Args:
        I: images with three channels, or with one channel, which is repeated.
        ncols: the greatest number of images in a row.
    """
    if not (isinstance(I, np.ndarray) and I.ndim == 4 and I.shape[1] in (1, 3)):
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    images = np.broadcast_to(I, (len(I), 3, *I.shape[2:]))
    n_images, _, height, width = images.shape
    columns = min(n_images, ncols)
    grid = np.zeros((3, height * math.ceil(n_images / columns), width * columns), dtype=I.dtype)
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        y, x = row * height, column * width
        grid[:, y : y + height, x : x + width] = image
    return grid


def convert_to_HWC(tensor: Array, input_format: str) -> Array:
    """An image, or a batch of images as a grid, with its dimensions in the order H, W, C.

    Args:
        tensor: 2 to 4 dimensions. An image without channels, or with one, becomes gray with three.
        input_format: a letter for each dimension, of N, C, H and W.
    """
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            "You can not use the same dimension shorthand twice. "
            f"            input_format: {input_format}"
        )
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different. "
            f"        tensor shape: {tensor.shape}, input_format: {input_format}"
        )
    given = input_format.upper()

    def transpose_to(letters: str) -> Array:
        return tensor.transpose([given.find(letter) for letter in letters])

    if len(given) == 4:
        return make_grid(transpose_to("NCHW")).transpose(1, 2, 0)
    if len(given) == 3:
        image = transpose_to("HWC")
        return np.concatenate([image] * 3, 2) if image.shape[2] == 1 else image
    return np.stack([transpose_to("HW")] * 3, 2)


def _prepare_video(V: Array) -> Array:
    """Videos [N, T, C, H, W] side by side in one [T, rows * H, columns * W, C].

    uint8 becomes float32 between 0 and 1. The grid has the next power of two of places.
    """
    n_videos, n_frames, channels, height, width = V.shape
    if V.dtype == np.uint8:
        V = V.astype(np.float32) / 255.0
    places = 1 << (n_videos - 1).bit_length()
    if places > n_videos:
        V = np.concatenate([V, np.zeros((places - n_videos, *V.shape[1:]), V.dtype)])
    rows = 1 << (n_videos.bit_length() - 1) // 2
    columns = places // rows
    grid = V.reshape(rows, columns, n_frames, channels, height, width)
    grid = grid.transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(n_frames, rows * height, columns * width, channels)
