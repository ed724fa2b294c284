"""Logs for TensorBoard, written by the package tensorboard (``pip install tensorboard``).

Importing this module without that package raises ModuleNotFoundError, as in PyTorch.

Example:
    >>> import tempfile
    >>> from pygrad.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (1 + step), step)
"""

from __future__ import annotations

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
