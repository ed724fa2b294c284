"""Automatic mixed precision: ops that compute in 16 bits, and scaling of losses for them.

Example:
    >>> import pygrad
    >>> with pygrad.autocast("cpu"):
    ...     print((pygrad.ones(1, 1) @ pygrad.ones(1, 1)).dtype)
    torch.bfloat16
"""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
