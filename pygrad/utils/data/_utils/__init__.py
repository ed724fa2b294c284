"""Where PyTorch has what makes batches."""

from . import collate

__all__ = ["collate"]
