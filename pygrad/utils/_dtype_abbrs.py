"""Short names of dtypes, as PyTorch's tracers write them: "f32", "bf16", "c64", "b8"."""

from __future__ import annotations

import re

from .._ground.dtypes import BY_NAME, dtype


def _short(name: str) -> str:
    letter, bits = re.fullmatch(r"(bf|[bcfiu])\D*(\d*)", name).groups()  # type: ignore[union-attr]
    return letter + (bits or "8")


dtype_abbrs: dict[dtype, str] = {BY_NAME[name]: _short(name) for name in sorted(BY_NAME)}
