"""Passes over graphs, each in its own module."""

from . import (
    dialect,
    graph_drawer,
    infra,
    shape_prop,
    split_module,
    utils,
)

__all__ = [
    "dialect",
    "graph_drawer",
    "infra",
    "shape_prop",
    "split_module",
    "utils",
]
