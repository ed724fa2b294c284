"""Pictures of graphs, for which pygrad lacks the program."""

from __future__ import annotations

from typing import Any


class FxGraphDrawer:
    """PyTorch draws graphs by the package ``pydot``; pygrad does not.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, graph_module: Any, name: str, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "FxGraphDrawer: pygrad draws no graphs; print(module.graph) or "
            "module.print_readable() shows one"
        )


__all__ = ["FxGraphDrawer"]
