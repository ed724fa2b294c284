"""The base of passes: a pass takes a module, and returns it with whether it changed."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ....nn import Module
from ...graph_module import GraphModule


class PassResult(NamedTuple):
    """The module, and whether it is another than before."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass; derive and define `call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """The pass between its checks."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Checks before it; raises if it cannot run."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Checks after it."""


__all__ = ["PassBase", "PassResult"]
