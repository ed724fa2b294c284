"""Where PyTorch has what makes batches."""

from pygrad.utils.data._utils import collate

__all__ = ["collate"]
