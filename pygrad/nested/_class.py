"""Nested tensors of both layouts: a tensor of the engine that has the elements of all entries, the
*packed* tensor, and a record in Python of where each entry lies.

The engine records, differentiates and counts versions of the packed tensor, and an element-wise op
is one call on it. Other ops are rules of a layout (`rule`): functions of PyTorch's arguments, by
the name of the op. Every function of the package asks the class of its arguments first, by
``__torch_function__``; nothing else knows nested tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeVar

from .. import ops
from .._boundary import attributes, calls, overriding
from .._boundary.overriding import DisableTorchFunctionSubclass
from .._ground.dtypes import layout as _layout
from .._tensor.base import move_to_class
from .._tensor.tensor import Tensor
from ..autograd.graph import nested_outputs
from . import _functions
from ._custom import adopt_context

F = TypeVar("F", bound=Callable[..., Any])
Rules = dict[str, Callable[..., Any]]


class Nested(Tensor):
    """The base of nested tensors of both layouts."""

    __slots__ = ()

    rules: ClassVar[Rules] = {}
    kind: ClassVar[Any] = None
    _parts: Any

    # ------------------------------------------------------------ for layouts to define

    def _fit(self, name: str, value: Any, is_self: bool = False) -> Any:
        """Another operand of an element-wise op, the first or a later one, in the form that fits
        beside this tensor's packed one.
        """
        raise NotImplementedError

    def _operand(self, name: str, others: Sequence[Any], alone: bool) -> Nested:
        """This tensor in the form whose packed tensor fits beside those of `others`; `alone`: there
        is no other operand.
        """
        return self

    def _fits_shape(self, shape: Sequence[int]) -> bool:
        """Whether a packed tensor of the same entries may have this shape."""
        return shape == attributes.shape(self)

    def _entries(self, op: str) -> list[Tensor]:
        """The entries, each a view."""
        raise NotImplementedError

    def _packed_wrapper(self) -> Callable[[Any], Any]:
        """A function that wraps a packed tensor as nested with these entries."""
        return functools.partial(_wrap_packed, type(self), self._parts)

    def _view_with_entries(self, tensor: Tensor) -> Any:
        """A view of another packed tensor with this tensor's entries."""
        return view_as_nested(type(self), tensor, self._parts)

    # ------------------------------------------------------------ description

    is_nested = property(lambda self: True)

    @property
    def layout(self) -> _layout:
        """`torch.jagged` or `torch.strided`."""
        return self.kind  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of dimensions, including the batch."""
        return self.dim()

    ndimension = property(lambda self: self.dim)
    nelement = property(lambda self: self.numel)

    def unbind(self, dim: int = 0) -> Any:
        """The entries of the batch, each a view."""
        return self.rules["unbind"](self, dim)

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def _adopt_context(self, ctx: Any, outputs: Sequence[Any], saved: Sequence[Any]) -> None:
        """Prepares the backward of a custom function, of which this is an output or saved tensor,
        for nested ones.
        """
        adopt_context(ctx, outputs, saved)

    def _map_entries(self, call: Any, size: int, leaves: Sequence[Any]) -> Any:
        """Calls the function of a vmap, with inputs of which this is one, for each entry."""
        return self.rules["vmap"](call, size, leaves)

    # ------------------------------------------------------------ gradients

    @property
    def grad(self) -> Any:
        """The gradient, nested like the tensor; the same object each time."""
        with DisableTorchFunctionSubclass():
            found: Any = Tensor.grad.__get__(self)
        if type(found) is not Tensor:
            return found
        self._g = made = twin(found, self)
        return calls.remember(made)

    @grad.setter
    def grad(self, value: Any) -> None:
        if isinstance(value, Tensor) and not fits(value, self):
            raise RuntimeError(
                "assigned grad has data of a different size: nested tensors have nested gradients"
            )
        with DisableTorchFunctionSubclass():
            Tensor.grad.__set__(self, value)  # type: ignore[attr-defined]

    @grad.deleter
    def grad(self) -> None:
        with DisableTorchFunctionSubclass():
            Tensor.grad.__delete__(self)  # type: ignore[attr-defined]

    @property
    def grad_fn(self) -> Any:
        """The node that made it."""
        with DisableTorchFunctionSubclass():
            node = Tensor.grad_fn.__get__(self)
        if node is not None:
            known = nested_outputs.setdefault(node, {})
            known[self.output_nr] = functools.partial(self._describe, self._parts)
        return node

    @classmethod
    def _describe(cls, parts: Any, metadata: Any) -> None:
        """Marks a gradient's metadata as nested, with these parts."""
        metadata.is_nested_tensor = True

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Calls ``hook(grad)`` with the nested gradient when it is complete."""
        parts, kind = self._parts, type(self)

        def call_hook(grad: Any) -> Any:
            return hook(view_as_nested(kind, grad, parts) if type(grad) is Tensor else grad)

        with DisableTorchFunctionSubclass():
            return Tensor.register_hook(self, call_hook)

    # ------------------------------------------------------------ the path of every op

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an op on nested tensors: by a rule, or on the packed tensor."""
        kwargs = kwargs or {}
        if isinstance(func, ops.OpOverload):  # handled as the function that it runs
            return func.overloadpacket._run(func, args, kwargs)
        what = _functions.function_info(func)
        self = first_nested(args, kwargs)
        found = self.rules.get(what.name)
        if found is not None:
            return found(*args, **kwargs)
        if what.each:
            return each_element(self, what.name, func, args, kwargs)
        if what.getter and getattr(cls, what.name) is not func.__self__:
            return getattr(self, what.name)
        if what.itself or what.getter:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if what.native or what.name in _REFUSED or type(func) is overriding.WRAPPER:
            raise not_there(what.name, self)
        ungated = overriding.ungated_function(func)
        if ungated is None:
            raise not_there(what.name, self)
        return ungated(*args, **kwargs)


_REFUSED: Final = frozenset(
    "__dlpack__ __dlpack_device__ _typed_storage apply_ dim_order lu map2_ map_ set_ share_memory_ "
    "storage".split()
)
"""Methods written in Python that would read the packed tensor as a plain one."""


def first_nested(args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The first nested tensor among arguments, also in lists; there must be one."""
    for each in (*args, *kwargs.values()):
        if isinstance(each, Nested):
            return each
        if isinstance(each, (list, tuple)):
            for one in each:
                if isinstance(one, Nested):
                    return one
    raise AssertionError("no nested tensor among the arguments")


def not_there(name: str, like: Nested) -> NotImplementedError:
    """The error of an op that nested tensors of a layout have not."""
    return NotImplementedError(
        f"aten.{name}: not implemented for nested tensors of the layout {like.kind}"
    )


def rule(table: Rules, names: str) -> Callable[[F], F]:
    """A decorator: a function of an op's arguments that does it for nested tensors of a layout."""

    def put(function: F) -> F:
        for name in names.split():
            table[name] = function
        return function

    return put


# ------------------------------------------------------------------ packed tensors


def packed_tensor(x: Nested) -> Tensor:
    """The packed tensor as a plain one: a view, with the history."""
    with DisableTorchFunctionSubclass():
        return x.as_subclass(Tensor)


def view_as_nested(kind: type[Any], tensor: Tensor, parts: Any) -> Any:
    """A nested tensor over another owner's tensor: a view of it."""
    with DisableTorchFunctionSubclass():
        made: Any = tensor.as_subclass(kind)
    made._parts = parts
    return made


def wrap_as_nested(kind: type[Any], tensor: Tensor, parts: Any) -> Any:
    """A nested tensor that takes over a new packed tensor."""
    out = move_to_class(kind, tensor)
    out._b = getattr(tensor, "_b", None)
    out._parts = parts
    return out


def twin(tensor: Tensor, like: Nested) -> Any:
    """A second, nested object for the same tensor of the engine."""
    out: Any = object.__new__(type(like))
    calls.retain((tensor._h,))
    out._h, out._b, out._parts = tensor._h, None, like._parts
    return out


def _wrap_packed(kind: type[Any], parts: Any, tensor: Any) -> Any:
    """Wraps a packed tensor from the engine as nested; returns None and others unchanged."""
    return wrap_as_nested(kind, tensor, parts) if type(tensor) is Tensor else tensor


def fits(value: Tensor, like: Nested) -> bool:
    """Whether it is nested with the same sizes."""
    return type(value) is type(like) and value._parts.same(like._parts)


def each_element(
    self: Nested, name: str, func: Callable[..., Any], args: Sequence[Any], kwargs: Any
) -> Any:
    """Runs an element-wise op on the packed tensors."""
    if isinstance(kwargs.get("out"), Tensor):
        raise NotImplementedError(f"aten.{name}: out= is not implemented for nested tensors")
    others = [each for each in args if isinstance(each, Tensor)]
    values = [v for v in (*args, *kwargs.values()) if isinstance(v, (Tensor, int, float, complex))]
    alone = sum(type(v) is not bool for v in values) == 1
    mine = self._operand(name, others, alone)
    given = [mine if v is self else mine._fit(name, v, i == 0) for i, v in enumerate(args)]
    named = {key: mine if v is self else mine._fit(name, v) for key, v in kwargs.items()}
    with DisableTorchFunctionSubclass():
        found = func(*given, **named)
    if args and found is given[0]:
        return args[0] if found is mine else found
    return _rewrap(found, mine, name)


def _rewrap(found: Any, like: Nested, name: str) -> Any:
    """Wraps an op's packed results as nested tensors like `like`."""
    if isinstance(found, tuple):
        return type(found)([_rewrap(each, like, name) for each in found])
    if type(found) is not Tensor:
        return found
    if not like._fits_shape(found.shape):
        raise not_there(name, like)
    if found.is_meta:
        raise NotImplementedError("pygrad: nested tensors are not made on the device meta")
    return wrap_as_nested(type(like), found, like._parts)
