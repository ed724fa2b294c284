"""CUDA's back end, which is not here: its switches can be set, and have nothing to switch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from .._absent import answers

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
}
globals().update(answers(__name__, _ANSWERS))
