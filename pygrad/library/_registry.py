"""The ops of libraries, and how one is called: vmap, autograd, modes and classes, its function."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import _dispatch, _ops, ops
from .._boundary import modes
from .._builtins import builtin
from .._C._dispatch_keys import DEVICES
from .._dtypes import BY_CODE, contiguous_format, strided
from .._function_schema import (
    Argument,
    FunctionSchema,
    check_types,
    native_lines,
    native_schema,
    parse_schema,
)
from .._tensor import Tensor
from .._tree import flatten, map_leaves, unflatten
from .._warnings import once
from ..amp._state import is_autocast_enabled
from ..amp.autocast_mode import _cast, autocast
from ..autograd import Function
from ..autograd.graph import increment_version

_is_grad_enabled = _ops.SPACES["torch"]["is_grad_enabled"]


class Entry:
    """One overload of an op of a library.

    Attributes:
        kernels: what it runs, by PyTorch's keys. autograd: backward and setup_context. fake, vmap,
            autocast: what else was added. by_class: what classes with __torch_dispatch__ do.
        called: the name of a custom op's function. refusal: what to say without a function.
    """

    def __init__(self, ns: str, schema: FunctionSchema, tags: Sequence[Any]) -> None:
        self.ns, self.schema, self.tags = ns, schema, list(tags)
        self.name, self.overload = schema.name.partition("::")[2], schema.overload_name or "default"
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.autograd: tuple[Callable[..., Any], Callable[..., Any] | None] | None = None
        self.fake: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.autocast: Any = None
        self.by_class: dict[Any, Callable[..., Any]] = {}
        self.is_custom, self.called = False, ""
        self.function: Any = None
        self.disabled: set[str] = set()
        self.refusal: Callable[[str], str] | None = None

    @property
    def qualname(self) -> str:
        """'mine::scale', with the overload if it has a name."""
        full = f"{self.ns}::{self.name}"
        return full if self.overload == "default" else f"{full}.{self.overload}"

    @property
    def op(self) -> Any:
        """The OpOverload."""
        return getattr(_packets[self.ns, self.name], self.overload)


class _Packet(ops.OpOverloadPacket):
    """An op of a library."""

    _in_python = True

    def __init__(self, ns: str, name: str) -> None:
        super().__init__(name)
        self.namespace = ns

    def _entries(self) -> dict[str, Entry]:
        return _entries.get((self.namespace, self.__name__), {})

    def overloads(self) -> list[str]:
        return list(self._entries())

    def _has(self, overload: str) -> bool:
        return overload in self._entries()

    def _schema_of(self, overload: str) -> FunctionSchema:
        return self._entries()[overload].schema

    def _letters_of(self, overload: str) -> str:
        found = self._entries()[overload].kernels
        return "c" if set(found) == {"CompositeImplicitAutograd"} else ""

    def _has_kernel(self, overload: str, key: str) -> bool:
        entry = self._entries()[overload]
        if entry.is_custom and key in ("Autograd", "Meta"):
            return True
        if key == "Autograd" and entry.autograd is not None:
            return True
        return key in entry.kernels or (key == "Meta" and entry.fake is not None)

    def _tags_of(self, overload: str) -> list[Any]:
        return self._entries()[overload].tags

    def _run(self, overload: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(self._entries()[overload._overloadname], args, kwargs)

    def _run_any(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        first: Exception | None = None
        for entry in self._entries().values():
            try:
                values = bound(entry, args, kwargs)
            except RuntimeError as error:
                first = first or error
                continue
            return run(entry, values)
        raise first or RuntimeError(f"{self} has no overload")


_ABSENT: Final = object()


def put(entry: Entry, lib: Any, rule: str, value: Any, key: Any = None) -> None:
    """Sets a rule of an op, by a key where it has several; what it was comes back when the library,
    if one is given, goes.
    """
    if key is None:
        put_rule(vars(entry), rule, value, lib)
    else:
        put_rule(getattr(entry, rule), key, value, lib)


def put_rule(rules: dict[str, Any], name: str, value: Any, lib: Any) -> None:
    """Sets one of these, until the library, if one is given, goes."""
    was = rules.get(name, _ABSENT)

    def put_back() -> None:
        if was is _ABSENT:
            rules.pop(name, None)
        else:
            rules[name] = was

    rules[name] = value
    if lib is not None:
        lib._undo.append(put_back)


_early: Final[dict[str, dict[str, Callable[..., Any]]]] = {}
"""What ops that are not made yet will run."""
_entries: Final[dict[tuple[str, str], dict[str, Entry]]] = {}
_packets: Final[dict[tuple[str, str], _Packet]] = {}


def make_entry(ns: str, schema: str, tags: Any = ()) -> Entry:
    """The op of a schema without a namespace.

    Raises: RuntimeError: there is such an op, or a type that no op has.
    """
    parsed = parse_schema(schema)
    check_types(parsed, schema)
    name = parsed.name.partition("::")[2] or parsed.name
    parsed.name = f"{ns}::{name}"
    entry = Entry(ns, parsed, list(tags) if isinstance(tags, (list, tuple, set)) else [tags])
    found = _entries.setdefault((ns, name), {})
    if entry.overload in found:
        raise RuntimeError(
            f"Tried to register an operator ({parsed}) with the same name and overload name "
            "multiple times. Each overload's schema should only be registered with a single call "
            "to def()."
        )
    early = _early.pop(entry.qualname, None)
    if early is not None:
        entry.kernels = early
    found[entry.overload] = entry
    _packets.setdefault((ns, name), _Packet(ns, name))
    return entry


def forget(entry: Entry) -> None:
    """Takes an op away."""
    found = _entries.get((entry.ns, entry.name), {})
    if found.get(entry.overload) is entry:
        del found[entry.overload]
        packet = _packets[entry.ns, entry.name]
        packet.__dict__.pop(entry.overload, None)
        if not found:
            _packets.pop((entry.ns, entry.name), None)


def entry_of(name: str) -> Entry:
    """The op of a name such as 'mine::scale' or 'mine::scale.out'.

    Raises: RuntimeError: there is none.
    """
    ns, short, overload = ops.names_in(name)
    found = _entries.get((ns, short), {}).get(overload)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def kernels_of(name: str) -> dict[str, Callable[..., Any]]:
    """What an op runs, by PyTorch's keys, also of one that is not made yet."""
    ns, short, overload = ops.names_in(name)
    found = _entries.get((ns, short), {}).get(overload)
    return _early.setdefault(name, {}) if found is None else found.kernels


def put_native(lib: Any, name: str, key: str, fn: Callable[..., Any]) -> None:
    """Puts a function in the place of an op of PyTorch's, for tensors of a device.

    Raises: NotImplementedError: the key is no device, or the op is made of others.
    """
    if key not in DEVICES:
        raise NotImplementedError(
            f"Library.impl: {name} is one of PyTorch's own operators, for which pygrad takes "
            f"functions for CPU and Meta, and not for {key}"
        )
    _, short, overload = ops.names_in(name)
    if "c" in native_lines()[short][overload][0]:
        raise NotImplementedError(
            f"Library.impl: {name} is made of other operators: pygrad takes functions for those"
        )
    if key not in ("CPU", "Meta"):
        return  # there are no such tensors
    if once("overriding"):
        warnings.warn(
            "Warning only once for all operators,  other operators may also be overridden.\n"
            "  Overriding a previously registered kernel for the same operator and the same "
            f"dispatch key\n  operator: {native_schema(short, overload)}\n"
            f"  dispatch key: {key}",
            stacklevel=3,
        )
    lib._undo.append(_dispatch.put_kernel(name, key.lower(), fn))


@builtin
def has_kernel(name: str, key: str) -> bool:
    """Whether an op has a function of its own for a key.

    Raises: RuntimeError: there is no such op.
    """
    op = ops.overload(*ops.names_in(name)[1:]) if is_native(name) else entry_of(name).op
    return bool(op.has_kernel_for_dispatch_key(key))


@builtin
def computes(name: str, key: str) -> bool:
    """Whether an op runs something for a device, be it a function for all devices."""
    return any(has_kernel(name, each) for each in (key, *COMPOSITES))


def is_native(name: str) -> bool:
    """Whether an op is one of PyTorch's own."""
    ns, short, overload = ops.names_in(name)
    return ns == "aten" and overload in native_lines().get(short, ())


def entry_to_add_to(name: str) -> Entry:
    """The op of a name, for a rule of it. After a compiled library was refused, whose ops Python
    adds rules to, one that does not exist is taken for one of it: the rule is kept by nobody.

    Raises:
        NotImplementedError: it is one of PyTorch's. RuntimeError: there is no such op, and no
            library was refused.
    """
    try:
        return entry_of(name)
    except RuntimeError:
        ns, _, short = name.partition("::")
        if ns == "aten" and hasattr(ops.aten, short.partition(".")[0]):
            raise NotImplementedError(
                f"pygrad adds no functions to PyTorch's own operators, such as {name}: a "
                "TorchDispatchMode can answer in its place"
            ) from None
        if not ops.refused_libraries or ns == "aten":
            raise
        return Entry(ns, parse_schema(f"{ns}::{short}() -> ()"), ())


def _find(ns: str, name: str) -> Any:
    return _packets.get((ns, name)) if _entries.get((ns, name)) else None


ops.finder = _find


# ------------------------------------------------------------------ calls


class FakeContext:
    """What a fake function may ask for."""

    def __init__(self, more: int = 0) -> None:
        self.more = more

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """A size that depends on data: there are no symbols here, so the smallest.

        Raises: ValueError: the smallest is less than 0.
        """
        if min < 0:
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal "
                "to 0: this API can only create non-negative sizes."
            )
        return min + self.more

    create_unbacked_symint = new_dynamic_size


class _OfThread(threading.local):
    below = 0
    fake: FakeContext | None = None


_here = _OfThread()


def current_context() -> FakeContext:
    """See `get_ctx`."""
    if _here.fake is None:
        raise RuntimeError("get_ctx() may only be called from a fake impl")
    return _here.fake


def run_fake(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any], more: int = 0) -> Any:
    """What the op's fake function gives; one that writes, and returns nothing, needs none. Sizes
    that depend on data are as small as may be, and by `more` larger.

    Raises: RuntimeError, NotImplementedError: it has none.
    """
    if entry.fake is None:
        if entry.schema.is_mutable and not entry.schema.returns:
            return None
        if entry.is_custom:
            raise RuntimeError(
                f"There was no fake impl registered for <CustomOpDef({entry.qualname})>. This is "
                "necessary for torch.compile/export/fx tracing to work. Please use "
                f"`{entry.called}.register_fake` to add an fake impl."
            )
        raise NotImplementedError(
            f"{entry.qualname}: attempted to run this operator with Meta tensors, but there was no "
            "fake impl or Meta kernel registered. You may have run into this message while using "
            "an operator with PT2 compilation APIs (torch.compile/torch.export); in order to use "
            "this operator with those APIs you'll need to add a fake impl. Please see the "
            "following for next steps:  "
            "https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html"
        )
    was, _here.fake = _here.fake, FakeContext(more)
    try:
        return entry.fake(*args, **kwargs)
    finally:
        _here.fake = was


_COLLECTIONS: Final = (list, tuple, dict, set, type(None))
_STRANGE: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "IntType": ("int", (str, float, complex, *_COLLECTIONS)),
    "FloatType": ("float", (str, complex, *_COLLECTIONS)),
    "BoolType": ("bool", (str, float, complex, *_COLLECTIONS)),
    "StringType": ("str", (int, float, complex, Tensor, *_COLLECTIONS)),
    "ListType": ("List", (str, dict, set, type(None))),
}
"""How PyTorch calls a type of arguments, and what is none."""


def bound(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments in the order of the schema.

    Raises: RuntimeError: they do not fit, in PyTorch's words.
    """
    schema, rest, values = entry.schema, dict(kwargs), []
    open_ = [each for each in schema.arguments if not each.kwarg_only]
    if len(args) > len(open_):
        raise RuntimeError(
            f"{schema.name}() expected at most {len(open_)} argument(s) but received {len(args)} "
            f"argument(s). Declaration: {schema}"
        )
    for i, argument in enumerate(schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            if argument.name in rest:
                raise RuntimeError(
                    f"{schema.name}() got multiple values for argument '{argument.name}'"
                )
            value = args[i]
        elif argument.name in rest:
            value = rest.pop(argument.name)
        elif argument.has_default_value():
            value = _default_of(argument)
        else:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: "
                f"{schema}"
            )
        if argument.type.kind_ == "TensorType" and not isinstance(value, Tensor):
            raise RuntimeError(
                f"{schema.name}() Expected a value of type 'Tensor' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'."
            )
        wanted, strange = _STRANGE.get(argument.type.kind_, ("", ()))
        if isinstance(value, strange):
            raise RuntimeError(
                f"{schema.name}() Expected a value of type '{wanted}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                f"Position: {i}\nValue: {value!r:.200}\nDeclaration: {schema}"
            )
        values.append(value)
    if rest:
        raise RuntimeError(
            f"Unknown keyword argument '{next(iter(rest))}' for operator '{schema.name}'. Schema: "
            f"{schema}"
        )
    return values


def call(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls an op of a library."""
    return run(entry, bound(entry, args, kwargs))


def split(entry: Entry, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Values in the schema's order as arguments in order, and those by keyword."""
    pairs = list(zip(entry.schema.arguments, values, strict=True))
    return (
        [value for argument, value in pairs if not argument.kwarg_only],
        {argument.name: value for argument, value in pairs if argument.kwarg_only},
    )


def _default_of(argument: Argument) -> Any:
    """The default of an argument, as the functions of an op get it."""
    value, kind = argument.default_value, argument.type
    named = _OF_NUMBERS.get((kind.element or kind).name) if type(value) is int else None
    return value if named is None else named[value]


_OF_NUMBERS: Final[dict[str, Any]] = {
    "ScalarType": BY_CODE,
    "Layout": {0: strided},
    "MemoryFormat": {0: contiguous_format},
}
"""What schemas have as numbers and functions as objects."""


def as_told(entry: Entry, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """The same without what the schema has as a default, from the last argument back: the functions
    of an op may have defaults of their own, as PyTorch's.
    """
    args, kwargs = split(entry, values)
    open_ = [each for each in entry.schema.arguments if not each.kwarg_only]
    while args and _is_default(open_[len(args) - 1], args[-1]):
        args.pop()
    for argument in entry.schema.arguments:
        if argument.kwarg_only and _is_default(argument, kwargs[argument.name]):
            del kwargs[argument.name]
    return args, kwargs


def _is_default(argument: Argument, value: Any) -> bool:
    if not argument.has_default_value():
        return False
    default = _default_of(argument)
    return value is default or (type(value) is type(default) and bool(value == default))


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in flatten(values)[0] if isinstance(each, Tensor)]


def _in_vmap() -> bool:
    return bool(modes.get() >> (modes.LEVELS + 1))


def _above_autograd(kernels: dict[str, Callable[..., Any]]) -> Callable[..., Any] | None:
    """What does an op with its gradient: a function for autograd, or a composition."""
    own = kernels.get("Autograd") or kernels.get("AutogradCPU")
    if own is not None:
        return None if _here.below else own
    if kernels.keys() & {"CPU", "CompositeExplicitAutograd"}:
        return None
    return kernels.get("CompositeImplicitAutograd")


def run(entry: Entry, values: list[Any]) -> Any:
    """Calls an op with all its arguments, from the top: vmap, then autograd."""
    if entry.autocast is not None and is_autocast_enabled("cpu"):
        with autocast("cpu", enabled=False):
            return run(entry, [_cast(value, "cpu", entry.autocast) for value in values])
    whole = _above_autograd(entry.kernels)
    if whole is not None:
        args, kwargs = as_told(entry, values)
        return whole(*args, **kwargs)
    mapped = (entry.vmap is not None or entry.is_custom) and _in_vmap()
    if _here.below or not (mapped or records(values)):
        return run_below(entry, values)
    if entry.autograd is None and entry.vmap is None and not entry.is_custom:
        return _unregistered(entry, values)
    return call_recorded(entry, values)


_fallback: Final = ["warn"]
"""What to make of an op without a rule for autograd: "warn" at a backward, or "nothing"."""


@builtin
def fallback_mode() -> str:
    """Whether a backward through an op without a gradient warns: "warn" or "nothing"."""
    return _fallback[0]


@builtin
def set_fallback_mode(mode: str) -> None:
    """Sets `fallback_mode`.

    Raises: RuntimeError: it is none of the two.
    """
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _fallback[0] = mode


def _unregistered(entry: Entry, values: list[Any]) -> Any:
    """An op without a rule for autograd: what its function runs is recorded, and a backward through
    a result warns, also where nothing was.
    """
    made = run_below(entry, values)
    if fallback_mode() == "nothing" or not records(values):
        return made
    given = _tensors(values)

    def warn(*_: Any) -> None:
        warnings.warn(_NO_AUTOGRAD.format(entry.qualname), stacklevel=2)

    def watched(result: Any) -> Any:
        if not isinstance(result, Tensor) or any(result is each for each in given):
            return result
        if not (result.is_floating_point() or result.is_complex()):
            return result
        if not result.requires_grad:
            return _NotImplementedHere.apply(warn, result, *given)
        result.register_hook(warn)
        return result

    return map_leaves(watched, made)


class _NotImplementedHere(Function):
    """A result that nothing recorded: a backward to it warns, and ends."""

    @staticmethod
    def forward(ctx: Any, warn: Callable[..., None], result: Tensor, *_: Tensor) -> Tensor:
        ctx.warn, ctx.n = warn, len(_)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.warn()
        return (None,) * (2 + ctx.n)


_NO_AUTOGRAD: Final = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
    "backprop through it. This may lead to silently incorrect behavior. This behavior is "
    "deprecated and will be removed in a future version of PyTorch. If your operator is "
    "differentiable, please ensure you have registered an autograd kernel to the correct Autograd "
    "key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is "
    "not differentiable, or to squash this warning and use the previous behavior, please register "
    "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
)


def records(values: Any) -> bool:
    """Whether a call with these arguments is recorded."""
    return _is_grad_enabled() and any(each.requires_grad for each in _tensors(values))


class below_autograd:
    """Calls go past autograd while it is there: `torch._C._AutoDispatchBelowAutograd`."""

    def __init__(self) -> None:
        _here.below += 1
        self._was: int | None = modes.switch(modes.GRAD, False)

    def _end(self) -> None:
        if self._was is not None:
            _here.below -= 1
            modes.put(self._was)
            self._was = None

    def __enter__(self) -> below_autograd:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    __del__ = _end


watchers: Final[list[Callable[..., Any]]] = []
"""Who sees the ops of libraries before modes do, innermost last: called with the op, its arguments
and what runs it."""


def run_below(entry: Entry, values: Sequence[Any]) -> Any:
    """Modes and tensors' classes are asked, else the op's function runs."""
    args, kwargs = as_told(entry, values)
    if watchers:
        return watchers[-1](entry.op, args, kwargs, lambda: _run_below(entry, args, kwargs))
    return _run_below(entry, args, kwargs)


def _run_below(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    found = _dispatch.handled_by_rule(entry.op, args, kwargs, entry.by_class)
    return run_kernel(entry, args, kwargs) if found is NotImplemented else found


def run_kernel(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Runs the op's function for the device of its arguments.

    Raises: NotImplementedError: it has none for it.
    """
    kernels = entry.kernels
    if "BackendSelect" in kernels:
        return kernels["BackendSelect"](*args, **kwargs)
    tensors = _tensors([*args, *kwargs.values()])
    if any(each.is_meta for each in tensors):
        return _run_on_meta(entry, args, kwargs)
    for key in _RUNS:
        if key in kernels and key not in entry.disabled:
            return _checked(entry, kernels[key], tensors, args, kwargs)
    if entry.refusal is not None:
        raise NotImplementedError(entry.refusal("CPU" if tensors else "Undefined"))
    raise NotImplementedError(
        f"Could not run '{entry.qualname}' with arguments from the 'CPU' backend. This could be "
        "because the operator doesn't exist for this backend. "
        f"'{entry.qualname}' is only available for these backends: {sorted(kernels)}."
    )


def _run_on_meta(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if "Meta" in entry.kernels:
        return entry.kernels["Meta"](*args, **kwargs)
    if entry.fake is None and not entry.is_custom:
        for key in COMPOSITES:
            if key in entry.kernels:
                return entry.kernels[key](*args, **kwargs)
    return run_fake(entry, args, kwargs)


COMPOSITES: Final = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The keys of what runs on any device, the first that there is."""
_RUNS: Final = ("CPU", *COMPOSITES)
"""Those of what runs on tensors with elements."""


def _checked(
    entry: Entry,
    kernel: Callable[..., Any],
    tensors: Sequence[Tensor],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    result = kernel(*args, **kwargs)
    if entry.is_custom:
        if entry.schema.is_mutable:
            _count_writes(entry, args, kwargs)
        _check_result(entry, result)
        held = [each.untyped_storage()._cdata for each in tensors]
        for made in _tensors(result):
            if made.untyped_storage()._cdata in held:
                module = getattr(kernel, "__module__", "?")
                raise RuntimeError(
                    f"{entry.qualname} (with implementation in {module}): The output of this "
                    "custom operator (1) must not also be an input to this custom operator and "
                    "(2) may not alias any inputs to this custom operator or other returns. The "
                    "most common way to trigger this error is if we have y = custom_op(x) and y "
                    "and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to "
                    "not return y."
                )
            held.append(made.untyped_storage()._cdata)
    return result


def _count_writes(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Tells that arguments were written to, also where NumPy did it."""
    given = dict(zip((each.name for each in entry.schema.arguments), args, strict=False)) | kwargs
    written = [given.get(each.name) for each in entry.schema.arguments if each.is_write]
    increment_version(_tensors(written))


def _check_result(entry: Entry, result: Any) -> None:
    """Raises PyTorch's errors for a result that is none of the schema's."""
    kinds = [each.type.kind_ for each in entry.schema.returns]
    if len(kinds) == 1:
        result = (result,)
    elif kinds and not isinstance(result, (tuple, list)):
        raise TypeError(
            f"Object of type {type(result).__name__!r} is not an instance of 'sequence'"
        )
    for kind, each in zip(kinds, result or (), strict=False):
        if kind == "TensorType" and not isinstance(each, (Tensor, type(None))):
            raise RuntimeError(f"Unable to cast {each!s:.200} to Tensor")
        if kind == "ListType" and not isinstance(each, (tuple, list)):
            raise TypeError(
                f"Object of type {type(each).__name__!r} is not an instance of 'sequence'"
            )


# ------------------------------------------------------------------ autograd


class _Tree:
    """How arguments and results are nested: no leaf of a tree itself."""

    __slots__ = ("given", "made", "told")

    def __init__(self, given: Any, told: int) -> None:
        self.given: Any = given
        self.told = told
        self.made: Any = None


def call_recorded(entry: Entry, values: list[Any]) -> Any:
    """Calls an op with all its arguments as a function of autograd."""
    leaves, spec = flatten(values)
    tree = _Tree(spec, len(as_told(entry, values)[0]))
    found = _function_for(entry).apply(tree, *leaves)
    return unflatten(list(found) if isinstance(found, tuple) else [found], tree.made)


def _function_for(entry: Entry) -> Any:
    """The autograd function of an op, as its rules are now."""
    rules = entry.autograd, entry.vmap
    if entry.function is None or entry.function[0] != rules:
        entry.function = rules, _make_function(entry, *rules)
    return entry.function[1]


def _make_function(entry: Entry, autograd: Any, vmap: Any) -> Any:
    backward, setup = autograd or (None, None)

    def run_forward(tree: _Tree, *leaves: Any) -> Any:
        made, tree.made = flatten(run_below(entry, unflatten(list(leaves), tree.given)))
        return tuple(made) if len(made) != 1 else made[0]

    def set_up(ctx: Any, inputs: Any, output: Any) -> None:
        tree, *leaves = inputs
        ctx._library = tree, len(leaves)
        if setup is None:
            return
        result = unflatten(list(output) if isinstance(output, tuple) else [output], tree.made)
        args, kwargs = split(entry, unflatten(leaves, tree.given))
        options = {"keyword_only_inputs": kwargs} if kwargs else {}
        setup(ctx=ctx, inputs=tuple(args), output=result, **options)

    def go_back(ctx: Any, *grads: Any) -> Any:
        if backward is None:
            raise RuntimeError(
                f"Trying to backward through {entry.qualname}.{entry.overload} but no autograd "
                "formula was registered. Please use register_autograd to add one."
            )
        tree, n = ctx._library
        shaped = unflatten(list(grads), tree.made)
        found = backward(ctx, *(shaped if len(entry.schema.returns) > 1 else (shaped,)))
        return None, *_fitted(entry, found, tree, n)

    def map_over(info: Any, in_dims: Any, tree: _Tree, *leaves: Any) -> Any:
        args, kwargs = as_told(entry, unflatten(list(leaves), tree.given))
        places, _ = split(entry, unflatten(list(in_dims[1:]), tree.given))
        found, out_dims = vmap(info, tuple(places[: len(args)]), *args, **kwargs)
        made, tree.made = flatten(found)
        if len(made) == 1:
            return made[0], flatten(out_dims)[0][0]
        dims = flatten(out_dims)[0] if isinstance(out_dims, (tuple, list)) else [out_dims]
        return tuple(made), tuple(dims * (len(made) if len(dims) == 1 else 1))

    def one_by_one(info: Any, in_dims: Any, tree: _Tree, *leaves: Any) -> Any:
        rows = []
        for i in range(info.batch_size):
            each = [
                leaf if dim is None else leaf.select(dim, i)
                for leaf, dim in zip(leaves, in_dims[1:], strict=True)
            ]
            made, tree.made = flatten(run(entry, unflatten(each, tree.given)))
            rows.append(made)
        stack = _ops.SPACES["torch"]["stack"]
        found = [
            stack(list(same)) if isinstance(same[0], Tensor) else same[0]
            for same in zip(*rows, strict=True)
        ]
        dims = [0 if isinstance(each, Tensor) else None for each in found]
        return (found[0], dims[0]) if len(found) == 1 else (tuple(found), tuple(dims))

    members: dict[str, Any] = {"forward": run_forward, "setup_context": set_up, "backward": go_back}
    members["vmap"] = one_by_one if vmap is None else map_over
    name = f"GeneratedBackwardFor_{entry.ns}_{entry.name}_{entry.overload}"
    return type(name, (Function,), {key: staticmethod(value) for key, value in members.items()})


def _fitted(entry: Entry, found: Any, tree: _Tree, n_leaves: int) -> list[Any]:
    """Gradients of arguments as those of the leaves of their tree; arguments that are as the schema
    has them by default need none.
    """
    n = sum(not argument.kwarg_only for argument in entry.schema.arguments)
    lists = [argument.type.kind_ == "ListType" for argument in entry.schema.arguments]
    one = n == 1 and lists[0] and not isinstance(found, tuple)
    grads = list(found) if isinstance(found, (tuple, list)) and not one else [found]
    if not tree.told <= len(grads) <= n:
        raise RuntimeError(
            f"{entry.qualname}: Expected {n} gradients from backward, but got {len(grads)}"
        )
    grads += [None] * (len(entry.schema.arguments) - len(grads))
    shape = unflatten(list(range(n_leaves)), tree.given)
    flat: list[Any] = [None] * n_leaves
    for grad, places in zip(grads, shape, strict=True):
        if isinstance(places, (list, tuple)):
            if grad is not None and (
                not isinstance(grad, (list, tuple)) or len(grad) != len(places)
            ):
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs. "
                    f"Got: {type(grad).__name__} (return from backward), a list of {len(places)} "
                    "(inputs)"
                )
            for each, place in zip(grad or [None] * len(places), places, strict=True):
                flat[place] = each
        elif isinstance(places, int):
            flat[places] = grad
    return flat
