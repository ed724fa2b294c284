"""Where PyTorch keeps the parts of `torch.library`, of which libraries import some."""

from __future__ import annotations

from . import custom_ops, infer_schema, simple_registry, utils

__all__ = ["custom_ops", "infer_schema", "simple_registry", "utils"]
