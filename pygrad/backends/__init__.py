"""Queries and settings of back ends that pygrad lacks, for PyTorch scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import cuda as cuda
from . import cudnn as cudnn
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import openmp as openmp
from . import opt_einsum as opt_einsum

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


@contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """A block in which switches may be set; they may anywhere."""
    yield


def flags_frozen() -> bool:
    """Always False: switches may be set anywhere."""
    return False
