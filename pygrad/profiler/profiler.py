"""The contents of `pygrad.profiler`, under PyTorch's module name."""

from __future__ import annotations

from . import (
    ProfilerAction,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from . import (
    _default_schedule_fn as _default_schedule_fn,
)

__all__ = [
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
