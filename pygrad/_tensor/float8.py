"""8-bit floats, which files may have and tensors here cannot: read as float32, with the same
numbers, if `utils.serialization.config.load.float8` is set.
"""

from __future__ import annotations

import math
from typing import Any, Final

from .._ground.dtypes import float32, int32
from .._tensor.creation import tensor
from ..utils.serialization import config

FORMS: Final = {
    "float8_e4m3fn": (4, 7),
    "float8_e5m2": (5, 15),
    "float8_e4m3fnuz": (4, 8),
    "float8_e5m2fnuz": (5, 16),
    "float8_e8m0fnu": (8, 127),
}
"""The bits of the exponent and its bias, by the names of PyTorch's dtypes."""


def numbers(name: str) -> list[float]:
    """The numbers that the bytes 0 to 255 denote in a type.

    Example:
        >>> numbers("float8_e4m3fn")[0x3C], numbers("float8_e8m0fnu")[128]
        (1.5, 2.0)
    """
    bits, bias = FORMS[name]
    if bits == 8:
        return [*(2.0 ** (byte - bias) for byte in range(255)), math.nan]
    upper = [_number(byte, 7 - bits, bias) for byte in range(128)]
    if name == "float8_e4m3fn":
        upper[127] = math.nan
    elif name == "float8_e5m2":
        upper[124:] = [math.inf, *[math.nan] * 3]
    lower = [-number for number in upper]
    if name.endswith("fnuz"):
        lower[0] = math.nan
    return upper + lower


def _number(byte: int, fraction: int, bias: int) -> float:
    exponent, rest = divmod(byte, 1 << fraction)
    if not exponent:
        return math.ldexp(rest, 1 - bias - fraction)
    return math.ldexp((1 << fraction) + rest, exponent - bias - fraction)


def decode(raw: Any, name: str, what: str = "a tensor") -> Any:
    """The numbers that bytes denote in such a type.

    Args:
        raw: a tensor of uint8. name: the type's name. what: the tensor's name in errors.

    Raises:
        NotImplementedError: `config.load.float8` is not "float32".
    """
    if config.load.float8 != "float32":
        raise NotImplementedError(
            f"load: {what} has dtype torch.{name}, of which pygrad has no tensors. After "
            'torch.utils.serialization.config.load.float8 = "float32" such tensors are read as '
            "float32, with the same numbers, and the others of the file as they are"
        )
    table = tensor(numbers(name), dtype=float32)
    return table.index_select(0, raw.reshape(-1).to(int32)).reshape(raw.shape)
