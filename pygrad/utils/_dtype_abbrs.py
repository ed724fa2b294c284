"""Short names of dtypes, as PyTorch's tracers write them: "f32", "bf16", "c64", "b8"."""

from __future__ import annotations

import re
from typing import Final

from .._ground.dtypes import dtype
from .._tensor import namespace as pygrad

_NAMES: Final = (
    "bfloat16 bool complex128 complex32 complex64 float16 float32 float64 int16 int32 int64 int8 "
    "uint16 uint32 uint64 uint8"
).split()


def _short(name: str) -> str:
    letter, bits = re.fullmatch(r"(bf|[bcfiu])\D*(\d*)", name).groups()  # type: ignore[union-attr]
    return letter + (bits or "8")


dtype_abbrs: dict[dtype, str] = {getattr(pygrad, name): _short(name) for name in _NAMES}
