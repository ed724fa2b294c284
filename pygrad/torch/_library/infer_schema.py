"""Schemas made of annotations: see `pygrad.library.infer_schema`."""

from __future__ import annotations

from ...library._infer import (
    SUPPORTED_PARAM_TYPES,
    SUPPORTED_RETURN_TYPES,
    infer_schema,
    tuple_to_list,
)

__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "infer_schema", "tuple_to_list"]
