"""CUDA's back end, which pygrad lacks: its switches can be set, and have no effect."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from .._ground.absent import answers
from .._tensor.tensor import Tensor

matmul: Final = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
)
_KINDS: Final = "flash mem_efficient math cudnn".split()

_ANSWERS: dict[str, Any] = {
    "is_built": False,
    **{f"{kind}_sdp_enabled": True for kind in _KINDS},
    **{f"enable_{kind}_sdp": None for kind in _KINDS},
    **{f"can_use_{kind}_attention": False for kind in ("flash", "efficient", "cudnn")},
}
globals().update(answers(__name__, _ANSWERS))


@contextlib.contextmanager
def _kernels(chosen: list[str]) -> Iterator[dict[Any, Any]]:
    from ..nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel([getattr(SDPBackend, name) for name in chosen]) as given:
        yield given


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> contextlib.AbstractContextManager[dict[Any, Any]]:
    """`nn.attention.sdpa_kernel` in its older form; warns that it is.

    Example:
        >>> import pygrad, warnings
        >>> x = pygrad.ones(1, 1, 1)
        >>> with warnings.catch_warnings(action="ignore"), sdp_kernel(enable_flash=False):
        ...     pygrad.nn.functional.scaled_dot_product_attention(x, x, x)
        tensor([[[1.]]])
    """
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    wanted = {
        "FLASH_ATTENTION": enable_flash,
        "EFFICIENT_ATTENTION": enable_mem_efficient,
        "MATH": enable_math,
        "CUDNN_ATTENTION": enable_cudnn,
    }
    return _kernels([name for name, enabled in wanted.items() if enabled])


@dataclass(frozen=True, eq=False)
class SDPAParams:
    """The arguments of an attention, for ``can_use_flash_attention`` and its like.

    Example:
        >>> import pygrad
        >>> from pygrad.backends.cuda import SDPAParams, can_use_flash_attention
        >>> x = pygrad.ones(1, 2, 3, 4)
        >>> can_use_flash_attention(SDPAParams(x, x, x, None, 0.0, False, False))
        False
    """

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool
