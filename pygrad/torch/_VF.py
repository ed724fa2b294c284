"""`torch._VF`: functions of PyTorch's C++ part; `torch` has some of them in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._table import functions
from ..nn import _recurrent
from .functional import unique_dim as unique_dim

globals().update({name: getattr(_recurrent, name) for name in _recurrent.NAMES})
_FUNCTIONS = functions.SPACES["torch"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:

    def __getattr__(name: str) -> Any:
        try:
            return _FUNCTIONS[name]
        except KeyError:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}", name=name
            ) from None
