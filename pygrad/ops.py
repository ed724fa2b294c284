"""PyTorch's dispatcher names of the ops: ``torch.ops.aten.mm.default``.

Policies of selective checkpointing receive and list them. A call from Python counts as one op: the
one that PyTorch's dispatcher sees, or, if it sees several, the one that does the work (``linear``
is addmm or mm, ``matmul`` mm, mv, dot or bmm); an op that PyTorch composes of many has its own
name. Aliases and reshapes have the name of the op to which they come.

Example:
    >>> import pygrad as torch
    >>> torch.ops.aten.mm.default
    <OpOverload(op='aten.mm', overload='default')>
    >>> torch.ops.aten.add.Tensor(torch.ones(2), 1)
    tensor([2., 2.])
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from . import _boundary
from ._boundary import calls as _calls
from ._boundary import overriding
from ._dispatch import handlers
from ._dispatch.handlers import lift_fresh
from ._ground.dtypes import bool_, complex128, float64, int64
from ._table import functions as _functions
from ._table.function_schema import FunctionSchema, native_lines, native_schema, parse_schema
from ._tensor.tensor import Tensor
from .autograd import profiler as _profiler
from .autograd._views import slice_inverse

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "profiler"]


_TENSORS: Final = {Tensor}
"""The class of plain tensors."""


class OpOverload:
    """An op for arguments of certain kinds: the ``Tensor`` of ``aten.add.Tensor``.

    Attributes:
        overloadpacket: the op. namespace: the library, "aten" of PyTorch's own. _schema: its
            arguments and results. py_kernels: the functions given to `py_impl`, by key.
    """

    __slots__ = ("__dict__", "__weakref__", "_overloadname", "overloadpacket")

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket, self._overloadname = packet, overload
        self.__module__ = f"torch._ops.{packet.namespace}"
        self.__qualname__ = str(self)

    @property
    def namespace(self) -> str:
        """The library that the op belongs to."""
        return self.overloadpacket.namespace

    @property
    def __name__(self) -> str:
        return f"{self.overloadpacket.__name__}.{self._overloadname}"

    _name = property(lambda self: self.name())
    _opname = property(lambda self: self.overloadpacket.__name__)
    _defined_in_python = property(lambda self: self.overloadpacket._in_python)
    _overloadpacket = property(lambda self: self.overloadpacket)

    def name(self) -> str:
        """The name in schemas, such as 'aten::mm'."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self.overloadpacket.__name__}{suffix}"

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        found: FunctionSchema = self.overloadpacket._schema_of(self._overloadname)
        return found

    @functools.cached_property
    def tags(self) -> list[Any]:
        """PyTorch's tags of the op: `pygrad.Tag.pointwise`, `core`, ..."""
        return self.overloadpacket._tags_of(self._overloadname)

    @property
    def is_view(self) -> bool:
        """Whether the result is a view of an argument."""
        return self._schema._is_view_op() and not self._schema.is_mutable

    @functools.cached_property
    def py_kernels(self) -> dict[Any, Callable[..., Any]]:
        """The functions given to `py_impl`, by key."""
        return {}

    def py_impl(self, key: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Stores a function for a key of the dispatcher, which pygrad does not use."""

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            self.py_kernels[key] = function
            return function

        return keep

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether the op has an own function for a key."""
        text = str(key).rpartition(".")[2]
        return key in self.py_kernels or self.overloadpacket._has_kernel(self._overloadname, text)

    has_kernel_for_any_dispatch_key = lambda self, keys: any(  # noqa: E731
        map(self.has_kernel_for_dispatch_key, keys)
    )

    def _can_decompose(self) -> bool:
        return bool(self.overloadpacket._is_composite(self._overloadname))

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op as the ops that autograd sees; NotImplemented for an op that is no
        composite.
        """
        if not self._can_decompose():
            return NotImplemented
        return self.overloadpacket._run(self, args, kwargs)

    def redispatch(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the op."""
        return self(*args, **kwargs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and _TENSORS.issuperset(map(type, args)) and not overriding.modes_anywhere:
            row = self._row
            if row is not None:
                return _calls.invoke(*row, args, kwargs)
        told, found = overriding.asks(args, kwargs)
        if told:
            return overriding.call(self, args, kwargs, found)
        return self.overloadpacket._run(self, args, kwargs)

    @functools.cached_property
    def _row(self) -> tuple[int, int] | None:
        """The row, and how it is called, if the op is that row for any tensors."""
        return self.overloadpacket._row_of()

    _op = op = property(lambda self: self)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        packet = f"{self.namespace}.{self.overloadpacket.__name__}"
        return f"<OpOverload(op='{packet}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        packet = self.overloadpacket
        return _find_overload, (packet.namespace, packet.__name__, self._overloadname)


def _find_overload(namespace: str, name: str, overload: str) -> OpOverload:
    packet = getattr(_namespace(namespace), name)
    found: OpOverload = getattr(packet, overload)
    return found


_found = _find_overload  # the name in pickles of earlier versions


class OpOverloadPacket:
    """An op with all its overloads as attributes."""

    namespace = "aten"
    _in_python = False

    def __init__(self, name: str) -> None:
        self.__name__ = name

    @property
    def _qualified_op_name(self) -> str:
        return f"{self.namespace}::{self.__name__}"

    def overloads(self) -> list[str]:
        """The names of the overloads: 'default' where PyTorch has no name."""
        native = native_lines().get(self.__name__)
        return list(native) if native else ["default"]

    def _schema_of(self, overload: str) -> FunctionSchema:
        return schema_of(self.__name__, overload)

    def _words_of(self, overload: str) -> frozenset[str]:
        return native_lines().get(self.__name__, {}).get(overload, (frozenset[str](), ""))[0]

    def _is_composite(self, overload: str) -> bool:
        return "composite" in self._words_of(overload)

    def _has_kernel(self, overload: str, key: str) -> bool:
        composite = self._is_composite(overload)
        return key in (("CompositeImplicitAutograd",) if composite else ("CPU", "Meta", "Autograd"))

    def _tags_of(self, overload: str) -> list[Any]:
        return _tags_of(self._words_of(overload))

    @property
    def _schemas(self) -> dict[str, FunctionSchema]:
        pairs = [(name, self._schema_of(name)) for name in self.overloads()]
        return {"" if name == "default" else name: schema for name, schema in pairs}

    def _has(self, overload: str) -> bool:
        return overload in native_lines().get(self.__name__, ("default",))

    def __getattr__(self, name: str) -> OpOverload:
        if not name.startswith("__") and self._has(name):
            made = OpOverload(self, name)
            setattr(self, name, made)
            return made
        text = (
            f"The underlying op of '{self}' has no overload name '{name}'"
            if not name.startswith("__")
            else f"'{type(self).__name__}' object has no attribute '{name}'"
        )
        raise AttributeError(text, name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def _row_of(self) -> tuple[int, int] | None:
        name = self.__name__
        if name in _COMPOSED or f"{name}.default" in _BY_OVERLOAD or name in _BY_OVERLOAD:
            return None
        base = name.removesuffix("_")
        found = [op for op in _functions.TABLE if op.name in (name, base)]
        if len(found) != 1 or not found[0].words & {"torch", "method"} or "nn" in found[0].words:
            return None
        (op,) = found
        in_place = _boundary.INPLACE if name != op.name else 0
        if in_place and "inplace" not in op.words:
            return None
        return op.row, in_place | (0 if "torch" in op.words else _boundary.METHOD)

    def _run(self, overload: OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        name, schema = self.__name__, native_lines().get(self.__name__)
        if schema and kwargs:
            args, kwargs = _order_arguments(overload._schema, args, kwargs)
        if schema:
            args = _numbers_to_tensors(name, overload._schema, args)
        special = _BY_OVERLOAD.get(overload.name().partition("::")[2])
        if special is not None:
            return special(*args, **kwargs)
        if schema and name in _functions.SPACES["nn"] and name not in _COMPOSED:
            reduced = _with_reduction(overload._schema, args, kwargs)
            if reduced is not None:
                return _functions.SPACES["nn"][name](*reduced[0], **reduced[1])
        return _function_of(name)(*args, **kwargs)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        told, found = overriding.asks(args, kwargs)
        if told:
            return overriding.call(self, args, kwargs, found)
        return self._run_any(args, kwargs)

    def _run_any(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Runs the overload that takes these arguments."""
        return _function_of(self.__name__)(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


overriding.adopt_ops(OpOverload, OpOverloadPacket)


class Tag:
    """A tag of PyTorch's for ops: `pygrad.Tag.pointwise`."""

    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"<Tag.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"Tag.{self.name}"

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __reduce__(self) -> Any:
        return getattr, (Tag, self.name)


_TAGS: Final = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"
).split()
"""All tags in order."""
for _value, _name in enumerate(_TAGS):
    setattr(Tag, _name, Tag(_name, _value))


def _tags_of(words: frozenset[str]) -> list[Any]:
    """The tags of an op of PyTorch, from its words: see `native_lines`. Almost all ops have the tag
    pt2_compliant_tag, so its absence is a word.
    """
    usual = "pt2_compliant_tag"
    has = words if f"not_{usual}" in words else words | {usual}
    return [getattr(Tag, name) for name in _TAGS if name in has]


@functools.cache
def schema_of(name: str, overload: str) -> FunctionSchema:
    """The schema of an overload; the row's own for an op that PyTorch's dispatcher lacks."""
    if overload in native_lines().get(name, ()):
        return native_schema(name, overload)
    return parse_schema(f"aten::{name}(...) -> Tensor".replace("(...)", "(Tensor self)"))


def names_in(name: str) -> tuple[str, str, str]:
    """The namespace, the op and the overload that 'aten::add.Tensor' names."""
    ns, _, rest = name.partition("::")
    short, _, overload_name = rest.partition(".")
    return ns, short, overload_name or "default"


def overload(name: str, overload_name: str) -> OpOverload:
    """The single object of an overload of aten."""
    found: OpOverload = getattr(getattr(aten, name), overload_name)
    return found


def _order_arguments(
    schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Moves keywords of positional arguments into their places, as rows may name them otherwise."""
    placed, rest = list(args), dict(kwargs)
    for argument in [each for each in schema.arguments if not each.kwarg_only][len(placed) :]:
        if argument.name in rest:
            placed.append(rest.pop(argument.name))
        elif any(a.name in rest for a in schema.arguments if not a.kwarg_only):
            if not argument.has_default_value():
                raise RuntimeError(
                    f"{schema.name}() is missing value for argument '{argument.name}'. "
                    f"Declaration: {schema}"
                )
            placed.append(argument.default_value)
        else:
            break
    return placed, rest


@functools.cache
def _takes_numbers(name: str, at: int) -> bool:
    """Whether a function takes a number where the dispatcher has a tensor."""
    schemas = [text for op in _functions.TABLE if op.name == name for text in op.schemas]
    parts = [text.partition("(")[2].split(", ") for text in schemas]
    return not parts or any(len(part) > at and "Scalar" in part[at] for part in parts)


def _numbers_to_tensors(name: str, schema: FunctionSchema, args: Sequence[Any]) -> Sequence[Any]:
    """Converts numbers to tensors where the op's function takes only tensors."""
    return [
        _functions.SPACES["torch"]["scalar_tensor"](each, dtype=_DTYPES[type(each)])
        if type(each) in _DTYPES
        and argument.type.name == "Tensor"
        and not _takes_numbers(name.removesuffix("_"), at)
        else each
        for at, (each, argument) in enumerate(zip(args, schema.arguments, strict=False))
    ] + list(args[len(schema.arguments) :])


_DTYPES: Final = {bool: bool_, int: int64, float: float64, complex: complex128}
"""The dtypes of numbers that become tensors."""


def _with_reduction(
    schema: FunctionSchema, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Sequence[Any], dict[str, Any]] | None:
    """Arguments of a loss for its function, to which a reduction is a name."""
    names = [argument.name for argument in schema.arguments]
    if "reduction" not in names:
        return None
    named = dict(zip(names[2:], args[2:], strict=False)) | kwargs
    if isinstance(named.get("reduction"), int):
        named["reduction"] = ("none", "mean", "sum")[named["reduction"]]
    return args[:2], named


@functools.cache
def _function_of(name: str) -> Callable[..., Any]:
    """The function that a call of the op runs."""
    if name in _COMPOSED:
        return _COMPOSED[name]
    for word in _OFFERED:
        space, short = _functions.SPACES[word], name
        if word in _PREFIX:
            short = name.removeprefix(_PREFIX[word])
        if short in space and (word not in _PREFIX or name != short or word == "special"):
            return space[short]
    for word in _OFFERED:
        short = name.removeprefix(_PREFIX.get(word, ""))
        if short in _functions.SPACES[word]:
            return _functions.SPACES[word][short]
    if name in _functions.C:
        return _functions.C[name]

    def _absent(*args: Any, **kwargs: Any) -> Any:
        text = f"aten.{name}: call the function of torch that it belongs to"
        raise NotImplementedError(text)

    return _absent


def is_callable(name: str) -> bool:
    """Whether there is a function for an op of aten's."""
    return _function_of(name).__name__ != "_absent"


def _index_some(self: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return self[tuple(slice(None) if each is None else each for each in indices)]


def _cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    return _functions.SPACES["nn"]["cross_entropy"](
        self,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=("none", "mean", "sum")[reduction],
        label_smoothing=label_smoothing,
    )


def _batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *args: Any) -> Any:
    """native_batch_norm; the two running statistics may be left out."""
    statistics = (None, None) if len(args) == 3 else ()
    return _functions.SPACES["torch"]["native_batch_norm"](input, weight, bias, *statistics, *args)


def _new_zeros_with_same_feature_meta(
    self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0
) -> Tensor:
    """Zeros as `other` is, in memory too, for each place in the first dimensions of `self`."""
    batch = list(self.shape[:self_num_batch_dims])
    apart = other.untyped_storage().nbytes() // other.itemsize
    steps = [apart * math.prod(batch[i + 1 :]) for i in range(len(batch))]
    flat: Tensor = other.new_zeros(math.prod(batch) * apart)
    return flat.as_strided(
        [*batch, *other.shape], [*steps, *other.stride()], other.storage_offset()
    )


def _elu(self: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    if scale == input_scale == 1:
        return _functions.SPACES["nn"]["elu"](self, alpha)
    below = (self * input_scale).expm1() * (alpha * scale)
    return (self * scale).where(self > 0, below)


def _with_indices(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, output_size: function(self, output_size, return_indices=True)


def _fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    fft = _functions.SPACES["fft"]
    if forward:
        return fft["fftn"](self, dim=dim, norm=_FORWARD[normalization])
    return fft["ifftn"](self, dim=dim, norm=_BACKWARD[normalization])


def _fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    function = _functions.SPACES["fft"]["rfftn" if onesided else "fftn"]
    return function(self, dim=dim, norm=_FORWARD[normalization])


def _fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    sizes = [self.shape[d] for d in dim[:-1]] + [last_dim_size]
    return _functions.SPACES["fft"]["irfftn"](self, sizes, dim, norm=_BACKWARD[normalization])


_FORWARD: Final = ("backward", "ortho", "forward")
_BACKWARD: Final = ("forward", "ortho", "backward")
"""Names of `norm` that scales by nothing, by the root of n, and by n."""


_COMPOSED: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: _functions.C[name]
        for name in (
            "slice",
            "_batch_norm_with_update",
            "_upsample_bilinear2d_aa",
            "_upsample_bicubic2d_aa",
        )
    },
    "index": _index_some,
    "elu": _elu,
    "_conj": lambda self: self.conj(),
    "slice_inverse": slice_inverse,
    "_nested_get_values": lambda self: self.values(),
    "_prelu_kernel": lambda self, weight: self.where(self > 0, self * weight),
    "_fft_c2c": _fft_c2c,
    "_fft_r2c": _fft_r2c,
    "_fft_c2r": _fft_c2r,
    "block_diag": lambda tensors: _functions.SPACES["torch"]["block_diag"](*tensors),
    **{
        name: _with_indices(_functions.SPACES["nn"][name])
        for name in ("adaptive_max_pool2d", "adaptive_max_pool3d")
    },
    "_unsafe_view": lambda self, size: self.view(size),
    "is_nonzero": lambda self: bool(self),
    "lift_fresh": lift_fresh,
    "lift": lambda self: self,
    "cross_entropy_loss": _cross_entropy_loss,
    "alias": lambda self: self.view_as(self),
    "_to_copy": lambda self, **options: self.to(**{"dtype": self.dtype} | options, copy=True),
    "_adaptive_avg_pool2d": _functions.SPACES["nn"]["adaptive_avg_pool2d"],
    "unique_dim": lambda self, dim, sorted=True, return_inverse=False, return_counts=False: (
        _functions.SPACES["torch"]["unique"](
            self, sorted, return_inverse=True, return_counts=True, dim=dim
        )
    ),
    "_new_zeros_with_same_feature_meta": _new_zeros_with_same_feature_meta,
    "_native_batch_norm_legit": _batch_norm_legit,
}
"""Ops without a row: composed in Python, or only in the dispatcher."""


_ELSEWHERE: Final = (
    "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_cudnn_attention _efficient_attention_forward _flash_attention_forward"
)
"""Ops of other devices, which a policy may list, and never meets."""

_PREFIX: Final = {"special": "special_", "linalg": "linalg_", "fft": "fft_"}
_OFFERED: Final = ("only_aten", "torch", "method", "nn", *_PREFIX)


_BY_OVERLOAD: Final[dict[str, Callable[..., Any]]] = {
    "sum_to_size": lambda self, size: self.sum_to_size(size),
    "_local_scalar_dense": lambda self: self.item(),
    "lift_fresh": lift_fresh,
    "lift_fresh_copy": lambda self: self.clone(),
    "zero_": lambda self: self.zero_(),
    "expand": lambda self, size, *, implicit=False: self.expand(list(size)),
}
"""Overloads that no function of the same arguments computes."""


@functools.cache
def _known_names() -> frozenset[str]:
    names = {_PREFIX.get(k, "") + name for k in _OFFERED for name in _functions.SPACES[k]}
    return frozenset(names | native_lines().keys() | _COMPOSED.keys() | set(_ELSEWHERE.split()))


class _Namespace:
    """The ops of one library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        packet = None
        if self.name == "aten":
            packet = OpOverloadPacket(name) if name in _known_names() else None
        else:
            packet = packets.get((self.name, name))
        if packet is None:
            text = f"'_OpNamespace' '{self.name}' object has no attribute '{name}'"
            raise AttributeError(text, name=name, obj=self)
        if self.name == "aten":
            setattr(self, name, packet)
        return packet

    def __repr__(self) -> str:
        return f"<_OpNamespace '{self.name}'>"


packets: Final[dict[tuple[str, str], OpOverloadPacket]] = {}
"""The ops of libraries, by namespace and name."""
aten: Final = _Namespace("aten")
handlers.namespaces["aten"] = aten


@functools.cache
def _namespace(name: str) -> Any:
    return aten if name == "aten" else _Namespace(name)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _namespace(name)


def name_in_aten(op: _functions.Op | str) -> str:
    """The name in aten of an op of `linalg`, `special` or `fft`; a name given as text means
    theirs.
    """
    if isinstance(op, str):
        return next((_PREFIX[k] + op for k in _PREFIX if op in _functions.SPACES[k]), op)
    if op.words & {"torch", "method", "nn"}:
        return op.name
    return next((_PREFIX[k] for k in _PREFIX if k in op.words), "") + op.name


loaded_libraries: Final[set[str]] = set()
"""The paths of compiled libraries of ops: always none."""
refused_libraries: Final[set[str]] = set()
"""The paths of compiled libraries that a program tried to load."""


def load_library(path: Any) -> None:
    """A compiled library of ops cannot be loaded: it is made for PyTorch's own engine.

    Raises:
        OSError: always, as PyTorch's for a file that is no such library.
    """
    refused_libraries.add(str(path))
    text = (
        f"Could not load this library: {path}: pygrad cannot run machine code; "
        "write the op as a torch.autograd.Function or by torch.library"
    )
    raise OSError(text)


class _Ranges:
    """Ranges of a profile without a scope: `torch.ops.profiler` in old programs."""

    @staticmethod
    def _record_function_enter_new(name: str, args: str | None = None) -> Any:
        """Begins a range; the result ends it."""
        return _profiler.record_function(name, args).__enter__()

    @staticmethod
    def _record_function_enter(name: str, args: str | None = None) -> Any:
        return _Ranges._record_function_enter_new(name, args)

    @staticmethod
    def _record_function_exit(handle: Any) -> None:
        handle.__exit__(None, None, None)


for _each in vars(_Ranges).values():
    if isinstance(_each, staticmethod):
        _each.__func__.__module__ = f"{__name__}.profiler"  # where code of torch.fx looks for it
profiler: Final = _Ranges()
