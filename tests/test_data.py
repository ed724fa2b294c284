"""Datasets, samplers, the loader, and the digits that ship with the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygrad
from pygrad.datasets import Digits
from pygrad.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split


class Squares(Dataset):
    """The squares below 10."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, k: int) -> tuple[Any, int]:
        return pygrad.tensor([float(k)]), k * k


def test_loader_collates_batches() -> None:
    batches = list(DataLoader(Squares(), batch_size=4))
    assert [x.shape for x, _ in batches] == [(4, 1), (4, 1), (2, 1)]
    assert batches[1][1].tolist() == [16, 25, 36, 49]


def test_last_batch_may_be_dropped() -> None:
    loader = DataLoader(Squares(), batch_size=4, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_shuffling_follows_the_seed() -> None:
    def order() -> list[int]:
        pygrad.manual_seed(3)
        return [v for _, y in DataLoader(Squares(), batch_size=3, shuffle=True) for v in y.tolist()]

    assert order() == order()
    assert sorted(order()) == [k * k for k in range(10)] != order()


def test_tensor_dataset_and_split() -> None:
    data = TensorDataset(pygrad.arange(10), pygrad.arange(10) * 2)
    first, second = random_split(data, [7, 3])
    assert isinstance(first, Subset)
    assert sorted(x.item() for part in (first, second) for x, _ in part) == list(range(10))


def test_workers_are_refused() -> None:
    with pytest.raises((NotImplementedError, ValueError)):
        list(DataLoader(Squares(), num_workers=2))


def test_digits_are_the_ones_of_uci() -> None:
    train, test = Digits(train=True), Digits(train=False)
    assert len(train) + len(test) == 1797
    image, label = train[0]
    assert image.numel() == 64
    assert 0 <= int(label) <= 9
    labels = np.concatenate([train.targets.numpy(), test.targets.numpy()])
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
