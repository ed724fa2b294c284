"""`torch._VF`: functions of PyTorch's C++ part, of which `torch` has some in another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _ops
from .functional import unique_dim as unique_dim
from .nn._recurrent import gru as gru
from .nn._recurrent import gru_cell as gru_cell
from .nn._recurrent import lstm as lstm
from .nn._recurrent import lstm_cell as lstm_cell
from .nn._recurrent import rnn_relu as rnn_relu
from .nn._recurrent import rnn_relu_cell as rnn_relu_cell
from .nn._recurrent import rnn_tanh as rnn_tanh
from .nn._recurrent import rnn_tanh_cell as rnn_tanh_cell

_FUNCTIONS = _ops.SPACES["torch"]

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
