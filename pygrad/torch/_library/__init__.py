"""Parts of `torch.library` under PyTorch's private names, some of which libraries import."""

from __future__ import annotations

from . import custom_ops, infer_schema, simple_registry, utils

__all__ = ["custom_ops", "infer_schema", "simple_registry", "utils"]
