"""Custom ops in the API of older programs: an op first, then each of its functions.

PyTorch deprecates this API: `pygrad.library.custom_op` does the same in one step. An op made here
refuses to record until it has both the function that saves for backward and the gradient.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from ... import library, ops
from ..._ground.tree import flatten, unflatten
from ..._table.function_schema import FunctionSchema, SchemaType, parse_schema
from ..._tensor.tensor import Tensor
from ...library import get_ctx, infer_schema
from ...library._arguments import match_arguments
from ...library._calls import call_recorded, records
from ...library._entry import put
from ...library._kernels import run_below
from ...library._registry import computes, entry_of, has_kernel

__all__ = ["CustomOp", "custom_op", "get_ctx"]

SUPPORTED_DEVICE_TYPE_TO_KEY: Final = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS: Final = {"prim", "prims", "aten", "at", "torch", "pytorch"}
_FIXED: Final = vars(ops.Tag)["needs_fixed_stride_order"]
global_registry: Final[dict[str, CustomOp]] = {}
"""All ops of this form, by name; they live until they are destroyed."""


def custom_op(qualname: str, manual_schema: str | None = None) -> Any:
    """Makes an op of a function's name and annotations; its methods register what the op runs.

    Raises: ValueError: the name, the function or its schema is not allowed for such an op.

    Example:
        >>> import warnings
        >>> import pygrad as torch
        >>> from pygrad._custom_op.impl import custom_op
        >>> with warnings.catch_warnings(action="ignore"):
        ...     @custom_op("older::twice")
        ...     def twice(x: torch.Tensor) -> torch.Tensor: ...
        >>> @twice.impl("cpu")
        ... def twice_cpu(x):
        ...     return x * 2
        >>> torch.ops.older.twice(torch.ones(2))
        tensor([2., 2.])
    """
    _warn()

    def make(func: Callable[..., Any]) -> CustomOp:
        schema = _schema_of(qualname, func, manual_schema)
        if manual_schema is not None:
            _check_signature(parse_schema(f"f{schema}"), func)
        made = _make(qualname, schema)
        made.__name__, made.__module__, made.__doc__ = func.__name__, func.__module__, func.__doc__
        return made

    return make


def _warn() -> None:
    warnings.warn(
        "torch._custom_op is deprecated and will be removed in PyTorch 2.6, please use the "
        "equivalent torch.library API instead.",
        DeprecationWarning,
        stacklevel=3,
    )


def _schema_of(qualname: str, func: Any, schema: str | None = None) -> str:
    """The schema of a function that is to become the op of a name."""
    if not inspect.isfunction(func):
        raise ValueError(
            f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}"
        )
    ns, name = parse_qualname(qualname)
    validate_namespace(ns)
    if func.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' "
            f"but got '{func.__name__}'. Please either change the name of `func` or the qualname "
            "that is passed to `custom_op`"
        )
    return infer_schema(func, mutates_args=()) if schema is None else schema


def _custom_op_with_schema(
    qualname: str, schema: str, needs_fixed_stride_order: bool = True
) -> ops.OpOverload:
    """Makes an op of a schema."""
    _make(qualname, schema, [_FIXED] if needs_fixed_stride_order else [])
    return get_op(qualname)


def _make(qualname: str, schema: str, tags: Sequence[Any] = ()) -> CustomOp:
    ns, name = parse_qualname(qualname)
    try:
        parsed = parse_schema(name + schema)
    except RuntimeError as error:
        raise AssertionError(f"Invalid function schema: {name}{schema}") from error
    validate_schema(parsed)
    lib = library.Library(ns, "FRAGMENT")
    lib.define(name + schema, tags=tags)
    entry = entry_of(qualname)
    made = CustomOp(lib, ns, entry.schema, name, entry.op, _private_access=True)
    entry.refusal = made._refusal
    made._take_autograd()
    return made


class _Function(NamedTuple):
    func: Callable[..., Any]
    location: str


class CustomOp:
    """An op of the older custom-op API, with its registered functions.

    Raises: RuntimeError: it is made directly instead of by `custom_op`.
    """

    __name__: str

    def __init__(
        self,
        lib: Any,
        cpp_ns: str,
        schema: FunctionSchema,
        operator_name: str,
        ophandle: Any,
        *,
        _private_access: bool = False,
    ) -> None:
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. Please use "
                "custom_op(...) to create a CustomOp object"
            )
        self._lib, self._cpp_ns, self._schema = lib, cpp_ns, schema
        self._opname, self._qualname = operator_name, f"{cpp_ns}::{operator_name}"
        self._ophandle = ophandle
        self._impls: dict[str, _Function] = {}
        self._has_autograd = False
        self._output_differentiability: list[bool] | None = None
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def _destroy(self) -> None:
        """Removes the op and its registered functions."""
        self._lib._destroy()
        del global_registry[self._qualname]

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _get_impl(self, kind: str) -> _Function:
        return self._impls[kind]

    def _register_impl(self, kind: str, func: Callable[..., Any], stacklevel: int = 2) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already "
                f"has a {kind} impl registered from Python at {self._impls[kind].location}. This "
                "is not supported."
            )
        frame = sys._getframe(stacklevel)
        self._impls[kind] = _Function(func, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    # -------------------------------------------------------------- functions for devices

    def impl(self, device_types: str | Iterable[str], _stacklevel: int = 2) -> Any:
        """Adds the function that the op runs on "cpu" or "cuda".

        Raises:
            ValueError: another device. RuntimeError: there is a function for it.
        """
        devices = [device_types] if isinstance(device_types, str) else list(device_types)
        for each in devices:
            validate_device_type(each)

        def add(func: Callable[..., Any]) -> Callable[..., Any]:
            for each in set(devices):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[each]
                if not self._has_impl(each) and computes(self._qualname, key):
                    raise RuntimeError(
                        f"impl(..., device_types={each}): the operator {self._qualname} already "
                        "has an implementation for this device type via a pre-existing "
                        "torch.library or TORCH_LIBRARY registration."
                    )
                self._register_impl(each, func, _stacklevel)
                self._lib.impl(self._opname, func, key)
            return func

        return add

    def impl_factory(self) -> Any:
        """Adds the op's function, for an op without tensor arguments."""

        def add(func: Callable[..., Any]) -> Callable[..., Any]:
            self._register_impl("factory", func)
            self._lib.impl(self._opname, func, "BackendSelect")
            return func

        return add

    def impl_abstract(self, _stacklevel: int = 2) -> Any:
        """Adds the op's function for tensors without elements.

        Raises: RuntimeError: there is such a function, or the op is a composition of others.
        """

        def add(func: Callable[..., Any]) -> Callable[..., Any]:
            if not self._has_impl("abstract"):
                self._check_needs_abstract()
            self._register_impl("abstract", func, _stacklevel)
            self._lib.impl(self._opname, func, "Meta")
            return func

        return add

    def _check_needs_abstract(self) -> None:
        has = {
            key: has_kernel(self._qualname, key)
            for key in ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
        }
        if has["CompositeExplicitAutograd"] and not has["Meta"]:
            return
        if has["CompositeImplicitAutograd"]:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has an implementation "
                "for this device type via a pre-existing registration to "
                "DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not "
                "need an abstract impl; instead, the operator will decompose into its constituents "
                "and those can have abstract impls defined on them."
            )
        if has["Meta"]:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has a "
                "DispatchKey::Meta implementation via a pre-existing torch.library or "
                "TORCH_LIBRARY registration. Please either remove that registration or don't call "
                "impl_abstract."
            )

    def _refusal(self, key: str) -> str:
        """The error where the op has no function for a key."""
        if key == "Undefined":
            return (
                f"{self}: There were no Tensor inputs to this operator (e.g. you passed an empty "
                "list of Tensors). If your operator is a factory function (that is, it takes no "
                "Tensors and constructs a new one), then please use CustomOp.impl_factory to "
                "register an implementation for it"
            )
        device = key.lower()
        return (
            f"{self}: when running with device='{device}' tensors: there is no {device} impl "
            "registered for this CustomOp. Please register one via "
            f"CustomOp.impl(device_type='{device}')"
        )

    # -------------------------------------------------------------- autograd

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Any:
        """Adds the function that returns the values to save for backward: ``func(inputs, output)``,
        where `inputs` has the arguments by name.

        Raises: RuntimeError: an op of this schema, or with a gradient of its own, takes none.
        """

        def add(func: Callable[..., Any]) -> None:
            self._begin_autograd()
            self._register_impl("save_for_backward", func, _stacklevel)

        return add

    def impl_backward(
        self, output_differentiability: list[bool] | None = None, _stacklevel: int = 2
    ) -> Any:
        """Adds the gradient: ``func(ctx, saved, *grads)`` returns the arguments' gradients by name.

        Args:
            output_differentiability: which of the results have gradients; all, if None.

        Raises: RuntimeError: as `impl_save_for_backward`; or the list is not as long as the
            results.
        """
        told = output_differentiability
        if told is not None and not (
            isinstance(told, list)
            and all(isinstance(each, bool) for each in told)
            and len(told) == len(self._schema.returns)
        ):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be "
                "a list of bools with length equal to the number of outputs of this CustomOp got: "
                f"{told}"
            )

        def add(func: Callable[..., Any]) -> None:
            self._begin_autograd()
            self._register_impl("backward", func, _stacklevel)
            self._output_differentiability = told

        return add

    def _begin_autograd(self) -> None:
        self._check_schema()
        if not self._has_autograd:
            self._check_no_autograd()
            self._take_autograd()

    def _check_schema(self) -> None:
        schema = self._schema

        def refuse(what: str) -> NoReturn:
            raise RuntimeError(
                "Cannot use torch._custom_ops APIs to register backward formula for "
                f"{what}. Got operator {self._qualname} with schema: {schema}"
            )

        if schema.is_mutable:
            refuse("non-functional operator")
        if not schema.returns:
            refuse("operator with no returns")
        if any(each.alias_info is not None for each in schema.returns):
            refuse("operator that returns views")
        for each in schema.returns:
            if each.type.notation() not in _RETURNS:
                refuse(f"operator with return not in {list(_RETURNS.values())} (got {each.type})")

    def _check_no_autograd(self) -> None:
        if has_kernel(self._qualname, "CompositeImplicitAutograd"):
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has "
                "an implementation for this device type via a pre-existing registration to "
                "DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd operators do not "
                "need an autograd formula; instead, the operator will decompose into its "
                "constituents and those can have autograd formulas defined on them."
            )
        for key in ("Autograd", "AutogradCPU", "AutogradCUDA"):
            if has_kernel(self._qualname, key):
                raise RuntimeError(
                    f"impl_backward/impl_save_for_backward: the operator {self._qualname} already "
                    f"has an Autograd kernel registered to DispatchKey::{key} vi a pre-existing "
                    "torch.library or TORCH_LIBRARY registration. Please either remove those "
                    "registrations or don't use the torch._custom_ops APIs"
                )

    def _take_autograd(self) -> None:
        entry = entry_of(self._qualname)
        self._lib.impl(self._opname, self._call_recorded, "Autograd")
        put(entry, self._lib, "autograd", (self._go_back, self._set_up))
        self._has_autograd = True

    def _call_recorded(self, *args: Any, **kwargs: Any) -> Any:
        """The op with its gradient."""
        entry = entry_of(self._qualname)
        values = match_arguments(entry.schema, args, kwargs)
        given = [kind for kind in ("save_for_backward", "backward") if self._has_impl(kind)]
        if len(given) == 2:
            return call_recorded(entry, values)
        if given:
            found = given[0]
            missing = "backward" if found == "save_for_backward" else "save_for_backward"
            raise RuntimeError(
                f"We found a '{found}' registration for {self} at {self._impls[found].location} "
                f"but were unable to find a '{missing}' registration. To use the CustomOp API to "
                "register a backward formula, please provide us both a backward function and a "
                "'save for backward' function via `impl_backward` and `impl_save_for_backward` "
                "respectively."
            )
        if records(values):
            raise RuntimeError("Autograd has not been implemented for operator")
        return run_below(entry, values)

    def _set_up(
        self, ctx: Any, inputs: Sequence[Any], output: Any, keyword_only_inputs: Any = None
    ) -> None:
        names = [argument.name for argument in self._schema.arguments]
        given: Any = namedtuple("arguments", names)(*inputs, **(keyword_only_inputs or {}))
        saved = self._impls["save_for_backward"].func(given, output)
        leaves, spec = flatten(saved)
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        ctx.save_for_backward(*(leaves[i] for i in places))
        others = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        ctx._older = spec, places, others, [_types_of(each) for each in given]
        self._mark(ctx, output)

    def _mark(self, ctx: Any, output: Any) -> None:
        told = self._output_differentiability
        if told is None:
            return
        results = output if isinstance(output, tuple) else (output,)
        unmarked: list[Tensor] = []
        for i, (has_gradient, result) in enumerate(zip(told, results, strict=True)):
            if isinstance(result, (Tensor, list)):
                if not has_gradient:
                    unmarked += result if isinstance(result, list) else [result]
            elif has_gradient:
                raise RuntimeError(
                    f"With output_differentiability={told}. At idx {i}, we received an object of "
                    f"type {type(result)} that is not a Tensor, so it cannot have be marked as "
                    "differentiable in output_differentiability."
                )
        if unmarked:
            ctx.mark_non_differentiable(*unmarked)

    def _go_back(self, ctx: Any, *grads: Any) -> Any:
        spec, places, others, types = ctx._older
        leaves = list(others)
        for place, tensor in zip(places, ctx.saved_tensors, strict=True):
            leaves[place] = tensor
        found = self._impls["backward"].func(object(), unflatten(leaves, spec), *grads)
        self._check_grads(found, types)
        return tuple(
            found.get(each.name, [None] * len(kinds) if isinstance(kinds, list) else None)
            for each, kinds in zip(self._schema.arguments, types, strict=True)
            if not each.kwarg_only
        )

    def _check_grads(self, found: Any, types: Sequence[Any]) -> None:
        """Raises PyTorch's errors for gradients that do not fit the arguments."""
        location = self._impls["backward"].location

        def refuse(what: str) -> NoReturn:
            raise RuntimeError(
                f"In the backward function defined for {self} at {location} using the CustomOp "
                f"API, {what}"
            )

        if not isinstance(found, dict):
            refuse(
                f"expected the output of the backward function to be a dict but got {type(found)}"
            )
        wanted = {each.name for each in self._schema.arguments if _holds_tensors(each.type)}
        if wanted != found.keys():
            refuse(
                f"expected the returned grad_input dict to have keys {wanted} but got "
                f"{found.keys()}. The backward function must return a gradient (can be None) for "
                "each arg to the CustomOp that may be a Tensor or Sequence[Tensor]. Args declared "
                "to be non-Tensor-like types should not appear in the grad_input dict"
            )
        names = [each.name for each in self._schema.arguments]
        for name, kinds in zip(names, types, strict=True):
            grad = found.get(name)
            if name not in found:
                continue
            if isinstance(kinds, list):
                _check_list(name, grad, kinds, refuse)
            elif grad is not None and not isinstance(grad, Tensor):
                refuse(
                    f"got object of type {type(grad)} as the gradient for input '{name}', but "
                    "expected the gradient to be either None or a Tensor"
                )
            elif grad is not None and not issubclass(kinds, Tensor):
                refuse(
                    f"got a Tensor as the gradient for input '{name}' but expected None as the "
                    f"gradient because input '{name}' was not a Tensor (it was type {kinds})."
                )


def _check_list(
    name: str, grads: Any, kinds: Sequence[type], refuse: Callable[[str], NoReturn]
) -> None:
    start = f"for input '{name}' expected the grad_input dict to hold a list of "
    if not isinstance(grads, (tuple, list)):
        refuse(f"{start}gradients but got object of type {type(grads)}.")
    if len(grads) != len(kinds):
        refuse(f"{start}{len(kinds)} gradients but got {len(grads)}")
    for i, (grad, kind) in enumerate(zip(grads, kinds, strict=True)):
        if grad is not None and not isinstance(grad, Tensor):
            refuse(f"{start}None or Tensor gradients but got object of {type(grad)} at index {i}")
        if grad is not None and not issubclass(kind, Tensor):
            refuse(
                f"for input '{name}', got a Tensor as the gradient for the {i}-th value but "
                f"expected None because the {i}-th value was not a Tensor (it was type {kinds}"
            )


_RETURNS: Final = {
    "int": "int",
    "SymInt": "SymInt",
    "bool": "bool",
    "float": "float",
    "Tensor": "Tensor",
    "Tensor[]": "List[Tensor]",
}
"""Types of results that an op with a gradient may have, and how messages call them."""


def _holds_tensors(kind: SchemaType) -> bool:
    return kind.name == "Tensor" if kind.element is None else _holds_tensors(kind.element)


def _types_of(value: Any) -> Any:
    """The type of an argument, or the types of a list's entries."""
    return [type(each) for each in value] if isinstance(value, (list, tuple)) else type(value)


# ------------------------------------------------------------------ refusals


def parse_qualname(qualname: str) -> tuple[str, str]:
    """The namespace and the name of 'mine::scale'.

    Raises: ValueError: there is no namespace, or an overload.
    """
    ns, found, name = qualname.partition("::")
    if not found:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look "
            "something like ns::foo"
        )
    if "." in name:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in "
            f"them. Please name your operator something like ns::foo. Got: {qualname}"
        )
    return ns, name


def validate_namespace(ns: str) -> None:
    """Raises ValueError for a namespace that no op of a program may have."""
    if "." in ns:
        raise ValueError(
            f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid '
            "variable name)"
        )
    if ns in RESERVED_NS:
        raise ValueError(
            f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something "
            "else. "
        )


def validate_schema(schema: FunctionSchema) -> None:
    """Raises ValueError for the schema of an op that writes, returns a view, or nothing."""
    aliased = any(each.alias_info is not None for each in schema.returns)
    if schema.is_mutable or aliased or not schema.returns:
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do "
            "not return views of the inputs, and has at least one return). Got the following "
            f"non-functional schema: {schema}"
        )
    if any(each.name == "self" for each in schema.arguments):
        raise ValueError(
            "custom_op does not support arguments named 'self'. Please rename your argument. Got: "
            f"{schema}"
        )


def validate_device_type(device_type: str) -> None:
    """Raises ValueError for a device that `CustomOp.impl` does not know."""
    if device_type not in SUPPORTED_DEVICE_TYPE_TO_KEY:
        raise ValueError(
            f"CustomOp.impl(device_types=[{device_type}, ...]): we only support device_type in "
            f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
        )


def _check_signature(schema: FunctionSchema, func: Callable[..., Any]) -> None:
    """Raises ValueError for a function that is not of the schema that was given with it."""
    signature = inspect.signature(func)
    parameters = list(signature.parameters.values())
    begin, got = "custom_op(..., manual_schema)(func): ", f"`func` with signature: {signature}"
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    if any(each.kind not in kinds for each in parameters):
        raise ValueError(
            f"{begin}positional-only args, varargs, and kwargs are not supported. Please rewrite "
            f"`func` to not have them. Got {got}"
        )
    empty = inspect.Signature.empty
    if any(each.annotation is not empty for each in parameters) or (
        signature.return_annotation is not empty
    ):
        raise ValueError(
            f"{begin}When passing in a manual schema, we expect `func` to have no type annotations "
            f"to avoid ambiguity. Got {got}"
        )
    shown = f"func's signature: {signature}, manual_schema: {schema}"
    for kind in kinds:
        ours = [each for each in parameters if each.kind is kind]
        theirs = [each for each in schema.arguments if each.kwarg_only == (kind is kinds[1])]
        if [each.name for each in ours] != [each.name for each in theirs]:
            raise ValueError(
                f"{begin}When passing in a manual schema, we expect `func`'s signature to match "
                f"`manual_schema` (aside from type annotations). {shown}"
            )
        if any(each.default is not empty for each in ours) or any(
            each.has_default_value() for each in theirs
        ):
            raise ValueError(
                f"{begin}neither func nor manual_schema should have default arguments. Got {shown}"
            )


# ------------------------------------------------------------------ finding them


def get_op(qualname: str) -> ops.OpOverload:
    """The op with a name such as 'mine::scale'.

    Raises: ValueError: there is no such op.
    """
    ns, name = parse_qualname(qualname)
    found: ops.OpOverload | None = getattr(getattr(getattr(ops, ns), name, None), "default", None)
    if found is None:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered "
            "the operator and (if registered from C++) loaded it via torch.ops.load_library."
        )
    return found


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(
            f'Could not find custom op "{qualname}". Did you register it via the '
            "torch._custom_ops API?"
        )
    return custom_op_from_existing(get_op(qualname))


def custom_op_from_existing(op: ops.OpOverload) -> CustomOp:
    """Wraps an op of `pygrad.library` in this older API."""
    lib = library.Library(op.namespace, "FRAGMENT")
    name = op.name().partition("::")[2]
    return CustomOp(lib, op.namespace, op._schema, name, op, _private_access=True)


def get_abstract_impl(qualname: str) -> Callable[..., Any] | None:
    """The function of an op of this API for tensors without elements, or None."""
    found = global_registry.get(qualname)
    return found._impls["abstract"].func if found and found._has_impl("abstract") else None
