"""`torch._C._autograd`: the holders of saved tensors, and the state of hooks on them."""

from __future__ import annotations

from collections.abc import Sequence

from ..._table import functions
from ..._tensor.tensor import Tensor
from ...autograd import graph
from ...autograd._saved_tensors import pop_default_hooks, push_default_hooks
from ...autograd.graph import SavedTensor, _InputMetadata

__all__ = ["SavedTensor", "_InputMetadata"]

_C = functions.C
_push_saved_tensors_default_hooks = push_default_hooks
_pop_saved_tensors_default_hooks = pop_default_hooks
_get_sequence_nr = graph._get_sequence_nr


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The error of an attempt to use hooks while they are disabled; None while they are allowed."""
    message: str | None = _C["_saved_hooks_disable"](None)
    if message is not None:
        _C["_saved_hooks_disable"](message)  # restores it
    return message


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks on saved tensors may be used.

    Example:
        >>> import pygrad
        >>> with pygrad.autograd.graph.disable_saved_tensors_hooks("not now"):
        ...     pygrad._C._autograd._saved_tensors_hooks_is_enabled()
        False
    """
    return _saved_tensors_hooks_get_disabled_error_message() is None


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Refuses hooks with this message until they are enabled; raises at once if there are some."""
    if not fail_if_non_empty:
        raise NotImplementedError("_saved_tensors_hooks_disable: fail_if_non_empty=False")
    _C["_saved_hooks_disable"](error_message)


def _saved_tensors_hooks_enable() -> None:
    """Allows hooks again."""
    _C["_saved_hooks_disable"](None)


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the running backward retains its graph; True outside a backward."""
    return bool(_C["_task_retains"]())


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Sets the versions of tensors, which need not have been written to.

    Raises:
        RuntimeError: an inference tensor; a version below 0; not one version a tensor.
    """
    if len(tensors) != len(versions):
        raise RuntimeError(f"tensors_len={len(tensors)}, versions_len={len(versions)}")
    for tensor, version in zip(tensors, versions, strict=True):
        if tensor.is_inference():
            raise RuntimeError(
                "Tried to call torch.autograd._unsafe_set_version() on a tensor that does not have "
                "a version counter. Was it created in inference mode?"
            )
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        _C["_set_version"](tensor, version)


def _get_data_attr(tensor: Tensor) -> Tensor:
    return tensor.data
