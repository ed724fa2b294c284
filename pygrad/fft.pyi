"""Made by `make stubs` from the op table. Do not edit."""

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, overload

from pygrad._dtypes import device, dtype, layout, memory_format
from pygrad._tensor import Tensor
from pygrad.random import Generator

Number: TypeAlias = builtins.int | builtins.float | builtins.bool

def fftfreq(n: builtins.int, d: builtins.float = ..., *, dtype: dtype | None = ..., layout: layout | None = ..., device: device | builtins.str | builtins.int | None = ..., pin_memory: builtins.bool | None = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: ...
def fftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor: ...
def ifftshift(input: Tensor, dim: builtins.int | Sequence[builtins.int] | None = ...) -> Tensor: ...
def rfftfreq(n: builtins.int, d: builtins.float = ..., *, dtype: dtype | None = ..., layout: layout | None = ..., device: device | builtins.str | builtins.int | None = ..., pin_memory: builtins.bool | None = ..., requires_grad: builtins.bool = ..., out: Tensor | None = ...) -> Tensor: ...
