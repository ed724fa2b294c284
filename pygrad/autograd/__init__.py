"""Differentiation: backward, grad, the modes, the graph."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .._ground.dtypes import strided
from .._table import functions as _functions
from .._tensor.base import Tensor
from . import _cycles as _cycles
from . import anomaly_mode as anomaly_mode
from . import forward_ad as forward_ad
from . import function as function
from . import functional as functional
from . import grad_mode as grad_mode
from . import graph as graph
from . import profiler as profiler
from ._gradients import backward, grad
from .anomaly_mode import detect_anomaly, is_anomaly_detection_enabled, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import (
    _force_original_view_tracking as _force_original_view_tracking,
)
from .grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .grad_mode import is_multithreading_enabled as is_multithreading_enabled
from .grad_mode import is_view_replay_enabled as is_view_replay_enabled
from .gradcheck import gradcheck, gradgradcheck
from .graph import GradientEdge, allow_mutation_on_saved_tensors
from .graph import SavedTensor as SavedTensor
from .graph import _engine_run_backward as _engine_run_backward
from .graph import _get_sequence_nr as _get_sequence_nr
from .profiler import DeviceType as DeviceType
from .profiler import ProfilerActivity as ProfilerActivity
from .profiler import _profiler_enabled as _profiler_enabled
from .profiler import (
    _record_function_with_args_enter as _record_function_with_args_enter,
)
from .profiler import (
    _record_function_with_args_exit as _record_function_with_args_exit,
)
from .profiler import _supported_activities as _supported_activities
from .profiler import kineto_available as kineto_available
from .variable import Variable
from .variable import _is_checkpoint_valid as _is_checkpoint_valid

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "allow_mutation_on_saved_tensors",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_detection_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """The package, which programs find here by the name that it has in PyTorch."""
        if name == "torch":
            return sys.modules[__name__.rpartition(".")[0]]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


is_grad_enabled = _functions.SPACES["torch"]["is_grad_enabled"]
is_inference_mode_enabled = _functions.SPACES["torch"]["is_inference_mode_enabled"]


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raises RuntimeError: use `pygrad.tensor`."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # type: ignore[attr-defined]


def _calculate_shape(
    output: Tensor | GradientEdge, grad: Tensor, is_grads_batched: bool
) -> tuple[Any, Any]:
    """The sizes of an output and of its gradient, the latter without a batch dimension.

    Raises:
        RuntimeError: a batch of gradients of an edge.
    """
    if isinstance(output, GradientEdge):
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        return output.node._input_metadata[output.output_nr].shape, grad.shape
    if output.is_nested and output.layout is strided:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()  # type: ignore[attr-defined]
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """A tuple of `length` times None, of one tensor, or of a sequence's tensors."""
    if tensors is None:
        return (None,) * length
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
