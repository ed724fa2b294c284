"""Functions that libraries put in the place of PyTorch's own ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._boundary import asked, modes
from .handlers import ask, here, keep_arguments, kernels, put_over


def put_kernel(name: str, device: str, function: Callable[..., Any]) -> Callable[[], None]:
    """Lets an op of PyTorch, 'aten::div.Tensor', run this function on tensors of a device from now
    on, in all threads. Returns a function that undoes this.
    """
    mine = kernels.setdefault(name, {})
    undo = put_over(mine, device, function)
    modes.switch_on_everywhere(asked.MODE)
    keep_arguments()

    def take_away() -> None:
        undo()
        if not mine and kernels.get(name) is mine:
            del kernels[name]
        if not kernels:
            # existing threads drop the mode at their next change of modes
            modes.clear_for_new_threads(asked.MODE)
            ask(here.modes)
            keep_arguments()

    return take_away
