"""`pygrad.version` with the version of PyTorch that pygrad follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import version as _original
from .._install.dialect import forward
from .torch_version import __version__ as _version

if TYPE_CHECKING:
    from ..version import *
else:
    __getattr__, __dir__ = forward(__name__)
    __all__ = [*_original.__all__, "git_version"]

__version__ = str(_version)
git_version = "Unknown"
