"""Methods of `Tensor` that show it as text."""

from __future__ import annotations

from .._boundary import calls, header
from .._boundary.modes import LEVELS
from .._boundary.modes import get as get_modes
from .._table import functions
from .._transforms.derivatives import show
from .base import TensorBase

_C = functions.C


class PrintingMethods(TensorBase):
    """Methods of `Tensor` that show it as text."""

    __slots__ = ()

    _is_parameter_class = False

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """The text that PyTorch prints; `tensor_contents` replaces the elements."""
        if header.is_batched(self._h) or get_modes() >> (LEVELS + 1):
            return show(self)  # type: ignore[arg-type]
        plain = type(self).__dict__.get("_shown_as")
        text = str(_C["_repr"](self, plain or type(self).__name__, tensor_contents))
        marked = self._is_parameter_class or getattr(self, "_is_param", False)
        return f"Parameter({text})" if marked and not plain else text

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and type(self) is calls._tensor_type and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)} - {*TensorBase.__slots__[2:]})
