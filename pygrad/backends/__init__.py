"""What PyTorch scripts ask and tell of back ends that are not here."""

from __future__ import annotations

from . import cuda as cuda
from . import cudnn as cudnn
from . import mps as mps

__all__ = ["cuda", "cudnn", "mps"]
