"""Passes: what is done with graphs, each a module of its own."""

from . import (
    graph_drawer,
    infra,
    shape_prop,
    split_module,
    utils,
)

__all__ = [
    "graph_drawer",
    "infra",
    "shape_prop",
    "split_module",
    "utils",
]
