"""The optimizers with ``foreach=True``, under the names that older programs use."""

from __future__ import annotations

import functools
from typing import Any

from .. import ASGD as _ASGD
from .. import SGD as _SGD
from .. import Adadelta as _Adadelta
from .. import Adagrad as _Adagrad
from .. import Adam as _Adam
from .. import Adamax as _Adamax
from .. import AdamW as _AdamW
from .. import NAdam as _NAdam
from .. import RAdam as _RAdam
from .. import RMSprop as _RMSprop
from .. import Rprop as _Rprop

__all__: list[str] = []


def partialclass(cls: type[Any], *args: Any, **kwargs: Any) -> type[Any]:
    """A subclass with preset arguments of the constructor.

    Example:
        >>> from pygrad.optim._multi_tensor import partialclass
        >>> partialclass(list, "ab")()
        ['a', 'b']
    """
    body = {"__init__": functools.partialmethod(cls.__init__, *args, **kwargs)}
    return type(cls.__name__, (cls,), body)


Adam = partialclass(_Adam, foreach=True)
AdamW = partialclass(_AdamW, foreach=True)
NAdam = partialclass(_NAdam, foreach=True)
SGD = partialclass(_SGD, foreach=True)
RAdam = partialclass(_RAdam, foreach=True)
RMSprop = partialclass(_RMSprop, foreach=True)
Rprop = partialclass(_Rprop, foreach=True)
ASGD = partialclass(_ASGD, foreach=True)
Adamax = partialclass(_Adamax, foreach=True)
Adadelta = partialclass(_Adadelta, foreach=True)
Adagrad = partialclass(_Adagrad, foreach=True)
