"""What functions that Python composes share: ``out=``, and names of dtypes in their messages. Those
of the op table have theirs from the engine.
"""

from __future__ import annotations

from typing import Any

from . import _ops
from ._tensor import Tensor


def into(name: str, result: Any, out: Any) -> Any:
    """The result; if `out` is given, that with the result in it. Several results and as many places
    are tuples.

    Raises:
        RuntimeError: the result has a history, or a dtype that `out` cannot take.
    """
    if out is None:
        return result
    if not isinstance(result, Tensor):
        found = tuple(into(name, *pair) for pair in zip(result, out, strict=True))
        return found if type(result) is tuple else type(result)(found)
    if result.requires_grad:
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )
    return _ops.SPACES["torch"]["conj_physical"](result, out=out)


def legacy_name(x: Tensor) -> str:
    """The dtype as in the tensor's legacy type: Float of torch.FloatTensor."""
    return str(x.type()).rpartition(".")[2].removesuffix("Tensor")
