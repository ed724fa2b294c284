"""Groups tensors by device and dtype, as optimizers do before they use ``_foreach`` ops."""

from __future__ import annotations

from typing import TypeAlias

from .._ground.dtypes import bfloat16, float32, float64
from .._ground.dtypes import device as Device
from .._ground.dtypes import dtype as Dtype
from .._tensor.tensor import Tensor

__all__: list[str] = []

TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_foreach_supported_types: list[type] = [Tensor]

_FOREACH = ["cuda", "xpu", "mtia", "privateuseone"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices on which PyTorch's optimizers use the implementation with lists by default."""
    return list(_FOREACH)


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices on which they have a fused implementation."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Device, Dtype], tuple[TensorListList, Indices]]:
    """Groups the rows of some lists by the device and dtype of their element in the first list.

    Args:
        tensorlistlist: lists of equal length, or empty lists; all but the first may contain None.
        with_indices: whether to return the index of each row.

    Raises:
        RuntimeError: the lists differ in length, or a tensor's dtype differs from the first list's.

    Example:
        >>> import pygrad
        >>> from pygrad.utils._foreach_utils import _group_tensors_by_device_and_dtype
        >>> x, n = pygrad.ones(1), pygrad.ones(1, dtype=pygrad.int64)
        >>> groups = _group_tensors_by_device_and_dtype([[x, n, x]], with_indices=True)
        >>> [(str(dtype), places) for (_, dtype), (_, places) in groups.items()]
        [('torch.float32', [0, 2]), ('torch.int64', [1])]
    """
    if not tensorlistlist:
        raise _condition_error("!nested_tensorlist.empty()")
    first = tensorlistlist[0]
    if not first:
        raise _condition_error("!nested_tensorlist[0].empty()")
    if any(each and len(each) != len(first) for each in tensorlistlist):
        raise _condition_error(
            "std::all_of( nested_tensorlist.cbegin(), nested_tensorlist.cend(), [&](const auto& "
            "tensorlist) -> bool { return tensorlist.size() == num_tensors || tensorlist.size() "
            "== 0; })"
        )
    groups: dict[tuple[Device, Dtype], tuple[TensorListList, Indices]] = {}
    for place, tensor in enumerate(first):
        assert tensor is not None
        row = [each[place] if each else None for each in tensorlistlist]
        if not all(_goes_with(tensor, other) for other in row):
            raise RuntimeError(
                "Tensors of the same index must be on the same device and the same dtype except "
                "`step` tensors that can be CPU and float32/64, and optimizer states that can be "
                "bfloat16 for mixed-precision training"
            )
        key = tensor.device, tensor.dtype
        lists, places = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for mine, each, value in zip(lists, tensorlistlist, row, strict=True):
            if each:
                mine.append(value)
        if with_indices:
            places.append(place)
    return groups


def _goes_with(tensor: Tensor, other: Tensor | None) -> bool:
    if other is None or (other.dtype, other.device) == (tensor.dtype, tensor.device):
        return True
    is_step = other.dim() == 0 and other.dtype in (float32, float64)
    return is_step or other.dtype is bfloat16


def _condition_error(condition: str) -> RuntimeError:
    return RuntimeError(
        f"Expected {condition} to be true, but got false.  (Could this error message be improved?  "
        "If so, please report an enhancement request to PyTorch.)"
    )


def _device_has_foreach_support(device: Device) -> bool:
    """Whether list ops support a device."""
    return device.type in (*_FOREACH, "cpu")


def _has_foreach_support(tensors: list[Tensor | None], device: Device) -> bool:
    """Whether these tensors can be computed with as a list: none may be of a derived class."""
    return _device_has_foreach_support(device) and all(
        each is None or type(each) in _foreach_supported_types for each in tensors
    )
