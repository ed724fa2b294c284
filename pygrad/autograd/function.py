"""Functions with a gradient of the user's own: `Function` and its parts.

The graph is the engine's: custom.c decides an output's history, the errors and the saved values.
Here is the protocol: classes, ctx, the calls of forward and backward.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _boundary
from .._boundary import callbacks, calls, header, long_calls
from .._boundary.arguments import refuse_foreign
from .._boundary.modes import GRAD, NO_FORWARD, get, here, here_now, replace, switch
from .._boundary.overriding import is_overriding
from .._table import functions as _functions
from .._tensor.base import Tensor
from .._tensor.functions import typename
from .._tensor.hooks import RemovableHandle
from .._transforms.vmap import levels
from . import _function_vmap, graph
from .grad_mode import no_grad

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

_C, _new = _functions.C, object.__new__
_lock = _boundary.lock
_begin = long_calls.resumption(calls.ROWS["_custom_begin"])
_end = long_calls.resumption(calls.ROWS["_custom_finish"], handles=True)


class FunctionCtx:
    """Passes values between `forward`, `setup_context`, `backward` and `jvp`."""

    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Saves tensors (or None) for `backward`, which finds them in ``ctx.saved_tensors``.

        The last call counts. Saves snapshots: mutating a tensor afterwards changes no gradient.

        Example:
            >>> import pygrad as torch
            >>> class Square(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.save_for_backward(x)
            ...         return x * x
            ...
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         (x,) = ctx.saved_tensors
            ...         return 2 * x * grad
            >>> x = torch.tensor(3.0, requires_grad=True)
            >>> Square.apply(x).backward()
            >>> x.grad
            tensor(6.)
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Saves tensors (or None) for `jvp`, which finds them in ``ctx.saved_tensors``."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor) and tensor is not None:
                refuse_foreign(tensor)
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Marks inputs that `forward` wrote to; each must also be an output."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Marks outputs without a gradient; `backward` still gets zeros for each."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether a missing gradient reaches `backward` and `jvp` as zeros (the default) or as
        None.
        """
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated, does nothing: PyTorch tracks sharing by itself, and so does the engine."""
        warnings.warn(
            "mark_shared_storage is deprecated. "
            "Tensors with shared storages are automatically tracked. Note "
            "that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


_ContextMethodMixin = FunctionCtx


class _HookMixin:
    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> Any:
        """Adds a hook to a dictionary of hooks, made if it is None; returns it and the handle."""
        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle


class _FunctionBase:
    """The common part of a ctx and a Function: attributes that the engine reads or writes."""

    _address: int
    _materialize = _materialize_constant = True
    _cleared = False
    needs_input_grad: Any = None

    @property
    def materialize_grads(self) -> bool:
        """Whether missing gradients are made zeros."""
        return self._materialize

    @materialize_grads.setter
    def materialize_grads(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got (), but "
                "expected (bool)"
            )
        self._materialize = value

    @property
    def _materialize_non_diff_grads(self) -> bool:
        """Whether missing gradients of non-differentiable outputs are made zeros, too."""
        return self._materialize_constant

    @_materialize_non_diff_grads.setter
    def _materialize_non_diff_grads(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_non_diff_grads received an invalid combination of arguments - got "
                "(), but expected (bool)"
            )
        self._materialize_constant = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors, each time as fresh copy-on-write copies with the history of the
        originals.

        Raises:
            RuntimeError: a backward without ``retain_graph=True`` has freed them.
        """
        forward: Any = self.saved_for_forward  # type: ignore[attr-defined]
        if forward is not None:
            return tuple(forward)
        if not self._address:
            return ()
        clear = self._forward_cls.clear_saved_tensors_on_access  # type: ignore[attr-defined]
        if clear and self._cleared:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                "is set on the autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        found = _C["_custom_saved"](self._address, clear)
        self._cleared = True
        if graph.checked:
            found = [t if t is None else calls.remembered_object(t) for t in found]
        return tuple(found)

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """The saved tensors as `SavedTensor` objects, which take hooks."""
        if not self._address:
            return ()
        return graph._raw_saved_from(self, 0)  # type: ignore[arg-type]

    def maybe_clear_saved_tensors(self) -> None:
        """Frees the saved tensors if the class allows only one access."""
        if self._address and self._forward_cls.clear_saved_tensors_on_access:  # type: ignore[attr-defined]
            _C["_custom_saved"](self._address, True)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors


class BackwardCFunction(_FunctionBase, FunctionCtx, _HookMixin, graph._Recorded):
    """The node of a custom function in the graph, which is also the ctx of its methods."""

    _forward_cls: Any
    _type = 0

    def __new__(cls) -> BackwardCFunction:
        ctx = object.__new__(cls)
        ctx._address = 0
        return ctx

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def __repr__(self) -> str:
        return object.__repr__(self)

    def name(self) -> str:
        """The node's name: the Function's class name and 'Backward'."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[graph.Node | None, int], ...]:
        """The nodes of forward's tensors; none if nothing was recorded."""
        return graph._Recorded.next_functions.fget(self) if self._address else ()  # type: ignore[attr-defined]

    def _get_user_fn(self) -> Callable[..., Any]:
        """The `backward` or `vjp` of the class."""
        backward: Callable[..., Any] = self._forward_cls.backward
        vjp: Callable[..., Any] = self._forward_cls.vjp
        if vjp is Function.vjp:
            return backward
        if backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return vjp

    def apply(self, *args: Any) -> Any:
        """Computes the gradients of forward's arguments from the gradients of its outputs."""
        kind = self._forward_cls
        if kind.vjp is _NONE and not kind.boxed_grads_call:
            return kind.backward(self, *args)
        if kind.boxed_grads_call:
            return self._get_user_fn()(self, list(args))
        return self._get_user_fn()(self, *args)

    def apply_boxed(self, *args: Any) -> Any:
        """Like `apply`; the gradients come in a list."""
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Computes the tangents of forward's outputs from the tangents of its arguments."""
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type):
    """Gives every Function class its class of nodes."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        members = {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        meta: Any = type(BackwardCFunction)
        cls._backward_cls: Any = meta(name + "Backward", (BackwardCFunction,), members)
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(_FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):
    _address = 0
    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    _backward_cls: Any

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs: ``forward(ctx, *args)``, or ``forward(*args)`` with a
        `setup_context` beside it. Nothing in it is recorded.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Prepares ctx after a forward that takes none."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes a gradient for each argument of forward (None for no gradient) from one for each
        output.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Computes a tangent for each output of forward (None for no tangent) from one for each
        argument.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )


_NONE = _SingleLevelFunction.vjp


class Function(_SingleLevelFunction):
    """Base class of functions with gradients of their own.

    Subclass it, implement `forward` and `backward` as static methods, call ``apply``.

    Example:
        >>> import pygrad as torch
        >>> class Exp(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, i):
        ...         result = i.exp()
        ...         ctx.save_for_backward(result)
        ...         return result
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (result,) = ctx.saved_tensors
        ...         return grad_output * result
        >>> x = torch.zeros(2, requires_grad=True)
        >>> Exp.apply(x)
        tensor([1., 1.], grad_fn=<ExpBackward>)
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{self.__class__} should not be instantiated. Methods on autograd functions "
            "are all static, so you should invoke them on the class itself. "
            "Instantiating an autograd function will raise an "
            "error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method. "
            "(Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function over a batch: ``(output, out_dims)``."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Calls `forward` on these arguments and records the call as one node of the graph.

        Raises:
            RuntimeError: the marks or saved tensors do not fit the outputs.
        """
        separate = cls.setup_context is not _SingleLevelFunction.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if levels.stack or levels.transforms:
            return _function_vmap.apply(Function, _apply, cls, args, kwargs, separate)
        if kwargs:
            args = _in_order(cls.forward, args, kwargs)
        return _apply(cls, args, separate)


def _is_setup_context_defined(fn: Any) -> bool:
    return fn is not _SingleLevelFunction.setup_context


# ------------------------------------------------------------------ apply


def _in_order(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Puts keyword arguments at their places after ctx; defaults do not fill gaps."""
    code = forward.__code__
    names = code.co_varnames[1 : code.co_argcount]
    placed = dict(enumerate(args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if names.index(name) in placed:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
        placed[names.index(name)] = value
    for place in range(max(placed)):
        if place not in placed:
            raise TypeError(
                f"forward() missing required argument: '{names[place]}' (position {place})"
            )
    return tuple(placed[place] for place in range(len(placed)))


def _apply(cls: Any, args: tuple[Any, ...], separate: bool) -> Any:
    """Two crossings around forward: the node first, then its outputs."""
    kind = cls._backward_cls
    ctx = _new(kind)
    ctx._address = 0
    handles = [a._h if isinstance(a, Tensor) else 0 for a in args]
    begun = _begin(ident := next(callbacks._ids), [kind._type or _name_type(kind), *handles])
    ctx._address = address = begun[0]
    ctx.needs_input_grad = tuple(map(bool, begun[2:]))
    ident_here, word, was = here()
    try:
        replace(GRAD, NO_FORWARD)
        if separate:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args)
    finally:  # without a call: see `here`
        if _lock.ident == ident_here:
            here_now[0] = was
        else:
            word[0] = was
    outputs = output if isinstance(output, tuple) else (output,)
    results = _finish(ctx, handles, outputs, separate, begun[1])
    if address:
        if header.references_to(address) > 1:  # something holds the node, which holds its ctx
            callbacks.objects[ident] = ctx
        graph.adopt(ctx)
    return results if isinstance(output, tuple) else results[0]


def _name_type(kind: Any) -> int:
    """Registers a class of nodes with the engine, and returns its type."""
    kind._type = _C["_custom_type"](kind.__name__)
    return kind._type  # type: ignore[no-any-return]


_NOTHING: Sequence[int] = ()


def _take_marked_tensors(ctx: Any, attribute: str, marked: Any) -> tuple[Sequence[int], str]:
    """Removes an attribute of ctx and encodes its tensors for the engine."""
    if not isinstance(marked, tuple):
        raise RuntimeError(
            f"autograd internal error: {attribute} attribute is expected to be a tuple but is "
        )
    delattr(ctx, attribute)
    return callbacks.encode(marked)


def _finish(
    ctx: Any, inputs: list[int], outputs: tuple[Any, ...], separate: bool, dual: int
) -> tuple[Any, ...]:
    """The outputs with their history and, if an argument has a tangent (`dual`), their tangents;
    outputs that are no tensors are unchanged.
    """
    # keeps the tensors alive until the engine holds them
    alive = ctx.to_save, ctx.non_differentiable, ctx.dirty_tensors
    saves = constant = dirty = _NOTHING
    odd = ""
    if alive[0] is not None:
        saves, odd = _take_marked_tensors(ctx, "to_save", alive[0])
        if graph.checked:
            for tensor in filter(_is_tensor, alive[0]):
                calls.remember(tensor)
    if alive[1] is not None:
        constant, _ = _take_marked_tensors(ctx, "non_differentiable", alive[1])
    if alive[2] is not None:
        dirty, _ = _take_marked_tensors(ctx, "dirty_tensors", alive[2])
    given = [o._h if isinstance(o, Tensor) else 0 for o in outputs]
    counts = len(inputs), len(given), len(dirty), len(constant), len(saves)
    flags = separate, 2 if ctx._materialize and not ctx._materialize_constant else ctx._materialize
    words = [*counts, *flags, *inputs, *given, *dirty, *constant, *saves]
    if odd and ctx._address:
        _C["_custom_finish"](ctx._address, words, odd)  # raises
    made = _end(ctx._address, words)
    results = tuple(map(_same_object, outputs, made)) if any(made) else outputs
    if dual:
        _carry(ctx, inputs, words, results)
    plain = calls._tensor_type
    for each in results if alive[0] is None else (*results, *alive[0]):
        if type(each) is not plain and hasattr(type(each), "_adopt_context"):  # a nested tensor
            each._adopt_context(ctx, results, alive[0] or ())
            break
    if ctx.saved_for_forward is not None:
        ctx.saved_for_forward = None
    return results


def _carry(ctx: Any, inputs: list[int], words: list[int], results: tuple[Any, ...]) -> None:
    """Calls jvp with the tangents of the arguments, and attaches its results to the outputs."""
    if ctx.saved_for_forward is None:
        ctx.saved_for_forward = ()
    tangents = _C["_custom_tangents"](inputs, ctx.materialize_grads)
    known = [t if t is None else calls.remember(calls.remembered_object(t)) for t in tangents]
    ident, word, was = here()
    try:
        switch(NO_FORWARD, True)
        made = ctx.apply_jvp(*known)
    finally:
        if _lock.ident == ident:
            here_now[0] = was
        else:
            word[0] = was
    handles = callbacks.encode(results)[0]
    _C["_custom_carry"](
        words, handles, *callbacks.encode(made if isinstance(made, tuple) else (made,))
    )


def _same_object(old: Any, made: int) -> Any:
    """The object that forward returned, unless the engine made another tensor of it."""
    if not made:
        return old
    kind = type(old)
    if is_overriding(old):  # a user's class: keeps the attributes
        new = _new(kind)
        new._h = made
        vars(new).update(vars(old))
    else:
        new = calls.wrap(made)
    new._b = old  # the base of a returned input is the input
    return new


# ------------------------------------------------------------------ once_differentiable


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a `backward` that cannot be differentiated: an attempt raises RuntimeError.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.autograd.function import once_differentiable
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     @once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> x = torch.ones(1, requires_grad=True)
        >>> torch.autograd.grad(Double.apply(x), x)
        (tensor([2.]),)
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args, **kwargs)
        if not get() & GRAD or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        several = outputs if isinstance(outputs, tuple) else (outputs,)
        made = _C["_delayed_error"](several)
        return made if len(made) != 1 else made[0]

    return wrapper


# ------------------------------------------------------------------ the old kinds


class InplaceFunction(Function):
    """Kept for old programs: a Function whose instances have `inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def _cannot_nest(value: Any, accepted: str | None) -> ValueError:
    text = f"Auto nesting doesn't know how to process an input object of type {typename(value)}"
    return ValueError(
        text + (f". Accepted types: {accepted}, or lists/tuples of them" if accepted else "")
    )


def _nested_map(
    condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None
) -> Callable[[Any], Any]:
    """A function that applies `fn` to the objects that fulfil a condition, in lists, tuples and
    dicts too.
    """

    def map_nested(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            items = [map_nested(item) for item in obj]
            return type(obj)(*items) if hasattr(obj, "_fields") else type(obj)(items)
        if isinstance(obj, dict):
            return {key: map_nested(item) for key, item in obj.items()}
        raise _cannot_nest(obj, condition_msg)

    return map_nested


def _iter_filter(
    condition: Callable[[Any], bool],
    allow_unknown: bool = False,
    condition_msg: str | None = None,
    conversion: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Iterator[Any]]:
    """A function that iterates over the objects that fulfil the condition, inside lists, tuples and
    dicts.
    """

    def iterate(obj: Any) -> Iterator[Any]:
        if conversion is not None:
            obj = conversion(obj)
        if condition(obj):
            yield obj
        elif isinstance(obj, (list, tuple)):
            for item in obj:
                yield from iterate(item)
        elif isinstance(obj, dict):
            for item in obj.values():
                yield from iterate(item)
        elif obj is not None:
            if not allow_unknown:
                raise _cannot_nest(obj, condition_msg)
            yield obj

    return iterate


def _unflatten(input: Any, proto: Any) -> Any:
    """The items of a sequence, in the structure of `proto`."""
    rest = iter(input)

    def fill(part: Any) -> Any:
        if not isinstance(part, (list, tuple)):
            return next(rest)
        return type(part)([None if item is None else fill(item) for item in part])

    return fill(proto)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


_iter_tensors = _iter_filter(_is_tensor, condition_msg="Tensors")
_iter_tensors_permissive = _iter_filter(_is_tensor, True, "Tensors (permissive)")
_iter_None_tensors = _iter_filter(
    lambda v: v is None or _is_tensor(v), condition_msg="Tensors or None"
)
_map_tensor_data = _nested_map(_is_tensor, lambda tensor: tensor.data, "Tensors")


class NestedIOFunction(Function):
    """Kept for old programs, as in PyTorch: a Function over nested tuples of tensors.

    Calling one needs the legacy protocol that PyTorch has taken away, and raises AttributeError
    as it does there.
    """

    def _do_forward(self, *input: Any) -> Any:
        self._nested_input = input
        flat_output = super()._do_forward(*_iter_tensors(input))  # type: ignore[misc]
        return _unflatten(flat_output, self._nested_output)

    def _do_backward(self, gradients: Any, retain_variables: bool) -> Any:
        self.retain_variables = retain_variables
        result = super()._do_backward(gradients, retain_variables)  # type: ignore[misc]
        if not retain_variables:
            del self._nested_output
            del self._to_save_nested
        return result

    def backward(self, *gradients: Any) -> Any:  # type: ignore[override]
        """Calls `backward_extended` with the gradients in the structure of the outputs."""
        result = self.backward_extended(*_unflatten(gradients, self._nested_output))  # type: ignore[func-returns-value]
        return tuple(_iter_None_tensors(result))

    __call__ = _do_forward

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        """Calls `forward_extended` with the inputs in their structure."""
        result = self.forward_extended(*_map_tensor_data(self._nested_input))  # type: ignore[func-returns-value]
        del self._nested_input
        self._nested_output: Any = result
        return tuple(_iter_tensors(result))

    def save_for_backward(self, *args: Any) -> None:
        """Saves nested tensors."""
        self.to_save = tuple(_iter_tensors(args))
        self._to_save_nested = args

    @property
    def saved_tensors(self) -> Any:
        """The saved tensors, in their structure."""
        return _unflatten(super().saved_tensors, self._to_save_nested)

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """Marks nested tensors as written to."""
        self.dirty_tensors = tuple(_iter_tensors((args, kwargs)))

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """Marks nested tensors as having no gradient."""
        self.non_differentiable = tuple(_iter_tensors((args, kwargs)))

    def forward_extended(self, *input: Any) -> None:
        """Defined by the user."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """Defined by the user."""
        raise NotImplementedError
