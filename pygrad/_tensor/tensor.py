"""The class Tensor, put together of its parts: each has the methods of one subject, and lies beside
what these need. `base.py` is below all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from .._boundary import attributes, calls, overriding
from .._boundary.callbacks import adopt_tensor
from .._ground.package import PACKAGE
from .._table import functions
from ..autograd._methods import AutogradMethods
from .base import TensorBase, move_to_class
from .creation import tensor_from_data
from .functions import lu as matrix_lu
from .host_data import HostMethods
from .index import IndexMethods
from .legacy import dtype_named, legacy_name, legacy_tensor
from .memory import StorageMethods
from .operators import OperatorMethods
from .printing import PrintingMethods
from .subclassing import (
    SubclassMethods,
    _check_not_taken,
    _mark_if_handles_ops,
)


class Tensor(
    AutogradMethods,
    IndexMethods,
    OperatorMethods,
    HostMethods,
    StorageMethods,
    PrintingMethods,
    SubclassMethods,
):
    """A multi-dimensional array that records the operations on it.

    Made by `pygrad.tensor`, `pygrad.zeros` and the other creation functions, and by every op.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    __slots__ = ()

    _shown_as = "tensor"  # of the class itself; subclasses are shown by their names

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        made = legacy_tensor(*args, **kwargs)
        if cls is Tensor:
            return made
        if args and isinstance(args[0], Tensor):
            _check_not_taken(cls, args[0])
        out = move_to_class(cls, made)
        out._b = getattr(made, "_b", None)
        return _mark_if_handles_ops(out)  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The work is done in __new__, as for PyTorch's legacy constructor."""

    def new(self, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of this one's dtype, from sizes (uninitialised) or data, as the legacy
        constructor `Tensor` makes it.

        Example:
            >>> import pygrad
            >>> pygrad.ones(1, dtype=pygrad.int64).new([1, 2])
            tensor([1, 2])
        """
        return legacy_tensor(*args, kind=self.dtype, layout=self.layout, **kwargs)

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **_: Any,
    ) -> Tensor:
        """A tensor from Python data with this one's dtype."""
        return tensor_from_data(
            data, dtype or self.dtype, device, requires_grad, "tensor.new_tensor"
        )

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """The value that `Module.load_state_dict` swaps in for this parameter or buffer, given an
        entry `other`, if ``torch.__future__`` selects swapping. Detached: a different object than
        both.
        """
        return (other if assign else self.copy_(other)).detach()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The legacy name of the type, such as 'torch.FloatTensor', or a cast to a type."""
        return legacy_name(self) if dtype is None else self.to(dtype_named(dtype))

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """`pygrad.lu` of this matrix, or of each of a batch."""
        return matrix_lu(self, pivot, get_infos)


calls.adopt_tensor(Tensor)
adopt_tensor(Tensor)


# ------------------------------------------------------------------ the methods of all parts


def _refuse(name: str) -> Callable[..., None]:
    """A setter or deleter that raises PyTorch's error for a read-only attribute."""

    def refuse(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return refuse


def _yes(self: Tensor) -> bool:
    return True


def _no(self: Tensor) -> bool:
    return False


def _twin(function: Any, name: str) -> FunctionType:
    """A copy of a function as a separate method, in front of which a gate may be put."""
    own = FunctionType(function.__code__, function.__globals__, name)
    own.__doc__, own.__annotations__ = function.__doc__, function.__annotations__
    own.__qualname__, own.__module__ = f"Tensor.{name}", __name__
    return own


def _install(part: type) -> None:
    """Replaces methods of a part that call the engine by ones that read its memory, and lets
    attributes refuse to be set as PyTorch's do. All methods have the name that users know.
    """
    own = vars(part)
    for name, quick in attributes.QUICK.items():
        if name in own:
            found = own[name]
            if isinstance(found, property):
                setattr(part, name, property(quick, found.fset, found.fdel, found.__doc__))
            else:
                setattr(part, name, _twin(quick, name))
    for name, found in list(own.items()):
        if type(found) is bool:
            found = property(_yes if found else _no)
            setattr(part, name, found)
        if isinstance(found, property) and found.fdel is None:
            refuse = _refuse(name)
            put = found.fset or refuse
            setattr(part, name, property(found.fget, put, refuse, doc=found.__doc__))
        function = getattr(found, "__func__", found)
        if isinstance(function, FunctionType) and function.__module__ != PACKAGE:
            function.__qualname__, function.__module__ = f"Tensor.{function.__name__}", __name__


PARTS: Final = Tensor.__mro__[:-1]
"""The classes that have the methods, Tensor itself first."""
for _part in PARTS:
    _install(_part)
TensorBase.ndimension = _twin(Tensor.dim, "ndimension")
TensorBase.nelement = _twin(Tensor.numel, "nelement")
overriding.NAMES[Tensor.nelement] = "numel"
for _name, _get in functions.SPACES["property"].items():
    if not hasattr(Tensor, _name):
        _set = _refuse(_name)
        setattr(TensorBase, _name, property(_get, _set, _set, doc=_get.__doc__))


_ASKED_BY_NONE: Final = frozenset(
    "__class_getitem__ __copy__ __del__ __delattr__ __getattribute__ __hash__ __init__ "
    "__init_subclass__ __iter__ __new__ __setattr__ __setstate__ __subclasshook__ "
    "__delitem__ __array_wrap__ as_subclass".split()
)

_NAMED_BY_OTHERS: Final = frozenset("__neg__ __pos__ __abs__ __str__".split())
"""Methods that overriding types see as another method, which they call."""
_ASKED_PRIVATE: Final = frozenset("_base _grad _grad_fn _cdata _version _typed_storage".split())


def is_asked(name: str) -> bool:
    """Whether subclasses override a method or attribute written in Python: a name of PyTorch if
    they do there.
    """
    private = name.startswith("_") and not name.endswith("__")
    return name in _ASKED_PRIVATE if private else name not in _ASKED_BY_NONE


def _module_of(function: Any) -> str:
    return str(getattr(function, "__globals__", {}).get("__name__"))


def _put_gates() -> None:
    """Lets methods written in Python ask overriding types, as the table's methods do. Methods that
    a program has set on the class do not ask.
    """
    inside, of_table = f"{PACKAGE}.", f"{PACKAGE}._boundary.shapes"
    done = set()
    for part, name, found in [(p, *item) for p in PARTS for item in vars(p).items()]:
        if not is_asked(name) or name in _NAMED_BY_OTHERS:
            continue
        if isinstance(found, property):
            if _module_of(found.fget).startswith(inside):
                overriding.put_gates_on(part, name, found)
        elif isinstance(found, FunctionType):
            module = _module_of(found)
            if module.startswith(inside) and module != of_table and found not in done:
                overriding.put_gate(found)
                done.add(found)


overriding.run_when_armed(_put_gates)
