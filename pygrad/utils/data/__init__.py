"""Datasets, samplers and the loader that turns them into batches, as in `torch.utils.data`.

The modules keep Python lists of indices; the engine draws, gathers and stacks numbers. The loader
draws from a generator in PyTorch's order (first the seed for workers, then the sampler's), so that
one `manual_seed` shuffles alike in both. Batches are loaded in the calling process, or by
`num_workers` processes with their own engines.
"""

from __future__ import annotations

from . import dataloader as dataloader
from . import dataset as dataset
from . import sampler as sampler
from .dataloader import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
