"""What the scripts about graphs share: leaves, errors as text, hooks that note their calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pygrad


def check(t: Any) -> Any:
    mode = getattr(t.autograd.graph, "set_saved_tensor_mode", None)
    return contextlib.nullcontext() if mode is None else mode("check")


def result_or_message(call: Callable[[], Any]) -> Any:
    """What a call returns, or the type and words of its error."""
    try:
        return call()
    except pygrad.EngineError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}".partition("\n")[0]


def name(node: Any) -> Any:
    return None if node is None else node.name()


class Pair:
    """A pack and an unpack hook that write down how they are called."""

    def __init__(self, t: Any) -> None:
        self.t, self.log = t, []  # type: ignore[var-annotated]

    def note(self, what: str, tensor: Any) -> None:
        self.log.append(
            (
                what,
                [round(float(v), 9) for v in tensor.detach().reshape(-1)],
                tensor.requires_grad,
                tensor.is_leaf,
                name(tensor.grad_fn),
                self.t.is_grad_enabled(),
            )
        )

    def pack(self, tensor: Any) -> Any:
        self.note("pack", tensor)
        return ("packed", tensor)

    def unpack(self, packed: Any) -> Any:
        self.note("unpack", packed[1])
        return packed[1]

    def scope(self) -> Any:
        return self.t.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
