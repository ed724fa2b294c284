"""Small data sets that come with the package.

`Digits` is real handwriting, small enough to be learned in seconds; see `digits.LICENSE.txt` beside
this file for where it is from and under which licence.
"""

from __future__ import annotations

from importlib import resources

import numpy as np
from numpy.typing import NDArray

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..utils.data import TensorDataset

__all__ = ["Digits"]


class Digits(TensorDataset):
    """The UCI handwritten digits: 1,797 grey images of 8x8 pixels, each labelled 0 to 9.

    Of each digit's images, in the order of the original file, every fifth is a test image: 355 to
    test with, 1,442 to train with, all ten digits alike in both. The split is the same everywhere.

    Shape: `data` is (N, 64), or (N, 1, 8, 8) with `flat=False`; `targets` is (N,). A sample is
    one image, (64,) or (1, 8, 8), and its label, ().
    Dtypes: images are float32 in 0..1, labels int64.

    >>> test = Digits(train=False)
    >>> len(test), test.data.shape, test.targets[:4].tolist()
    (355, torch.Size([355, 64]), [5, 0, 9, 8])
    """

    data: Tensor
    targets: Tensor
    classes = tuple("0123456789")

    def __init__(self, train: bool = True, *, flat: bool = True) -> None:
        images, labels = _read()
        chosen = _is_test(labels) != train
        pixels = images[chosen].astype(np.float32) / np.float32(16)
        self.train = train
        self.data = pygrad.tensor(pixels.reshape((-1, 64) if flat else (-1, 1, 8, 8)))
        self.targets = pygrad.tensor(labels[chosen].astype(np.int64))
        super().__init__(self.data, self.targets)


def _read() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (1797, 8, 8) of 0..16 and labels (1797,), both uint8.

    The file has the images digit by digit and pixel by pixel, (64, 1797), which is smaller.
    """
    with resources.files(__name__).joinpath("digits.npz").open("rb") as file:
        arrays = np.load(file)
        by_digit, labels = arrays["images"], arrays["labels"]
    images = np.empty((len(labels), 64), dtype=np.uint8)
    images[np.argsort(labels, kind="stable")] = by_digit.T
    return images.reshape(-1, 8, 8), labels


def _is_test(labels: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """A mask of the test images: the fifth, tenth, ... of each digit."""
    test = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        test[np.flatnonzero(labels == digit)[4::5]] = True
    return test
