"""Passes: what is done with graphs, each a module of its own."""

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
