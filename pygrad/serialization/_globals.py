"""Names of classes and functions in files: the translation between PyTorch's names and pygrad's,
and the closed list of names that a file of weights may use.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from .._ground.dtypes import ALL, Size, device
from .._ground.package import pygrad, submodule
from .._install.stand_ins import is_stand_in
from .._tensor import rebuild
from .._tensor.float8 import FORMS
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from ..storage import TypedStorage, UntypedStorage, storage_class

TORCH: Final = "torch"
_ENGINE: Final = __package__.rpartition(".")[0]
_ROOTS: Final = (_ENGINE, _ENGINE.partition("@")[0], TORCH)
"""The roots of module names: this instance's own package, the package that all engines share, and
PyTorch's.
"""

_MOVED: Final = {
    name: module
    for module, names in {
        "_C": "Generator",
        "_tensor": "_rebuild_from_type_v2",
        "nn.functional": "linear_cross_entropy multi_head_attention_forward "
        "triplet_margin_with_distance_loss",
        "nn.modules.activation": "MultiheadAttention",
        "nn.modules.batchnorm": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
        "nn.modules.channelshuffle": "ChannelShuffle",
        "nn.modules.container": "ParameterDict ParameterList",
        "nn.modules.conv": "ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d "
        "LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
        "nn.modules.fold": "Fold Unfold",
        "nn.modules.instancenorm": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
        "nn.modules.linear": "LazyLinear",
        "nn.modules.module": "_WrappedHook",
        "nn.modules.pixelshuffle": "PixelShuffle PixelUnshuffle",
        "nn.modules.upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
        "nn.parallel.data_parallel": "DataParallel",
        "optim": "Adafactor",
        "utils.data._utils.collate": "default_collate default_convert",
        "utils.data._utils.worker": "get_worker_info",
    }.items()
    for name in names.split()
}
"""Names that PyTorch has in other modules, which its files use."""
_HOMES: Final = ("nn.functional", "_tensor.rebuild", "random", "special", "linalg", "fft")
"""The modules to search for functions that PyTorch defines in C++."""


# ------------------------------------------------------------------ from name to object


def _modules(path: str) -> Iterator[Any]:
    """The module at a path below the package, if it exists, then its parent modules."""
    while True:
        for name in (path, f"torch.{path}") if path else ("",):  # some exist only in the dialect
            try:
                yield submodule(name) if name else pygrad
            except ImportError:
                pass
        if not path:
            return
        path = path.rpartition(".")[0]


def _attribute(holder: Any, name: str) -> Any:
    for part in name.split("."):
        holder = getattr(holder, part)
    return holder


def find(module: str, name: str) -> Any:
    """The object of pygrad for a global name of PyTorch's.

    Raises:
        AttributeError: pygrad has no such name.
    """
    path = module.removeprefix(TORCH).removeprefix(".")
    if not path and name in FORMS:
        return _float8(name)
    for place in _modules(path):
        try:
            found = _attribute(place, name)
        except AttributeError:
            continue
        if not is_stand_in(found):
            return found
    for home in _HOMES:
        try:
            return _attribute(submodule(home), name)
        except AttributeError:
            continue
    raise AttributeError(f"the file names {module}.{name}, which pygrad does not have")


def is_torch(module: str) -> bool:
    """Whether a module name in a file is one of PyTorch's."""
    return module == TORCH or module.startswith(TORCH + ".")


def _float8(name: str) -> Any:
    """A dtype that pygrad does not support in tensors."""
    return getattr(submodule("torch"), name)


# ------------------------------------------------------------------ from object to name


def torch_name(obj: Any, name: str | None = None) -> tuple[str, str] | None:
    """PyTorch's module and name of a class, function or constant of this package; None for other
    objects.

    Args:
        name: the object's name in its module, if it has no such attribute.

    Example:
        >>> import pygrad
        >>> torch_name(pygrad.nn.MultiheadAttention)
        ('torch.nn.modules.activation', 'MultiheadAttention')
    """
    module = getattr(obj, "__module__", None)
    name = name or getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    root = next((r for r in _ROOTS if module == r or module.startswith(r + ".")), None)
    if root is None:
        return None
    path = module[len(root) + 1 :].removeprefix("torch").removeprefix(".")
    path = _FILES.get(path, path)
    for place in (_MOVED.get(name, _public(path)), path):
        found = f"{TORCH}.{place}" if place else TORCH
        try:
            if find(found, name) is obj:
                return found, name
        except AttributeError:
            continue
    return None


def _public(path: str) -> str:
    """The nearest enclosing module that is public or exists in PyTorch."""
    parts = path.split(".")
    ours = (i for i, part in enumerate(parts) if part.startswith("_") and part not in _SHARED)
    return ".".join(parts[: next(ours, len(parts))])


_FILES: Final = {"_tensor.rebuild": "_utils"}
"""Modules with other names in PyTorch."""
_SHARED: Final = ("_C", "_utils")
"""Private modules that exist in PyTorch too."""


# ------------------------------------------------------------------ the closed list


class StorageType:
    """Stands for a legacy class of storages in files of weights; only holds its dtype.

    Raises:
        KeyError: there is no such class.
    """

    def __init__(self, name: str) -> None:
        self._dtype = next((d for d in ALL if d.legacy + "Storage" == name), None)
        if self._dtype is None or storage_class(self._dtype) is None:
            raise KeyError(name)

    @property
    def dtype(self) -> Any:
        """The dtype of the storage's elements."""
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def _layout(name: str) -> Any:
    """The layout with this printed form."""
    found = getattr(pygrad, name.removeprefix("torch."), None)
    if type(found) is not pygrad.layout:
        raise NotImplementedError(f"the layout {name:.50} is not supported")
    return found


def _numbers(*values: Any) -> complex:
    if not all(type(value) in (int, float) for value in values):
        raise TypeError("complex() takes numbers")
    return complex(*values)


def _encode(text: str, encoding: str) -> bytes:
    """Encodes bytes of protocol 2. Other encodings are refused, since a file could make them
    costly.
    """
    if encoding not in ("latin1", "latin-1"):
        raise TypeError(f"bytes are encoded as latin1, not {encoding}")
    return text.encode("latin1")


def _bytearray(*args: Any) -> bytearray:
    if args and not isinstance(args[0], (bytes, str)):  # a number would be a size
        raise TypeError("bytearray() takes bytes")
    return bytearray(*args)


_MOST_PARTS: Final = 1000
_MOST_ALIKE: Final = 100


def check_key(key: Any) -> int:
    """The number of parts of a dict's key or a set's element, counted as a tree.

    Raises:
        ValueError: it has too many parts, whose hash would take too long, or whose depth would
            exhaust the stack.
    """
    parts, left = 1, [key]
    while left:
        part = left.pop()
        if isinstance(part, tuple):
            parts += len(part)
            if parts > _MOST_PARTS:
                raise ValueError("a key has too many parts")
            left.extend(part)
    return parts


class Keys:
    """The keys of some containers. A new key is compared with all keys of equal hash, so their
    number is limited: a crafted file could have very many.
    """

    def __init__(self) -> None:
        self._of: dict[int, list[Any]] = {}

    def check(self, key: Any) -> int:
        """The number of parts of a key.

        Raises:
            ValueError: too many parts, or too many keys of equal hash. TypeError: the key has no
                hash.
        """
        parts = check_key(key)
        alike = self._of.setdefault(hash(key), [])
        if key not in alike:
            if len(alike) == _MOST_ALIKE:
                raise ValueError("too many keys have the same hash")
            alike.append(key)
        return parts


def weight(value: Any, most: int) -> int:
    """The number of steps of a walk through a value, as a tree of lists, tuples and dicts, plus the
    lengths of strings. The walk stops at the first number above `most`.
    """
    steps, left = 0, [value]
    while left and steps <= most:
        part = left.pop()
        steps += 1
        if isinstance(part, (tuple, list, dict, set, str, bytes, bytearray)):
            steps += len(part)
        if steps <= most and isinstance(part, (tuple, list, dict)):
            left.extend(part.values() if isinstance(part, dict) else part)
    return steps


def tensors_among(args: Any) -> Iterator[Tensor]:
    """The tensors among arguments, with repetitions."""
    left = [args]
    while left:
        part = left.pop()
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (tuple, list)):
            left.extend(part)
        elif isinstance(part, dict):
            left.extend(part.values())


def _set(elements: Any = ()) -> set[Any]:
    keys = Keys()
    for element in elements:
        keys.check(element)
    return set(elements)


def _counter(counts: Any = ()) -> Counter[Any]:
    if counts and type(counts) is not dict:
        raise TypeError("Counter() takes a dict")
    return Counter(counts or {})


def _make_ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    keys = Keys()
    for key, value in pairs:
        keys.check(key)
        made[key] = value
    return made


def _parameter(data: Any = None, requires_grad: bool = True) -> Parameter:
    if data is not None and not isinstance(data, Tensor):
        raise TypeError("Parameter() takes a tensor")
    return Parameter(data, requires_grad)


def _empty_constructor(kind: Any) -> Callable[[], Any]:
    """A constructor without arguments, since files need not choose sizes or data."""
    return lambda: kind()


_REBUILDS: Final = (
    "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_parameter "
    "_rebuild_parameter_with_state _rebuild_sparse_tensor _rebuild_qtensor _rebuild_nested_tensor "
    "_rebuild_meta_tensor_no_storage _rebuild_wrapper_subclass "
    "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy"
)


def _make_allow_list() -> tuple[dict[str, Any], dict[int, Callable[..., Any]]]:
    """The globals that files of weights may name, and a function to call for each callable one.

    These functions check their arguments, so that a file cannot demand more memory or work than its
    size justifies.
    """
    names: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _layout,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": device,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch.storage.TypedStorage": TypedStorage,
        "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        "torch.nested._internal.nested_tensor._rebuild_njt": rebuild._rebuild_njt,
        "torch.nested._internal.nested_tensor.NestedTensor": Tensor,
        "torch._dynamo.decorators._DimRange": rebuild._DimRange,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
    }
    calls: dict[int, Callable[..., Any]] = {
        id(OrderedDict): _make_ordered_dict,
        id(Counter): _counter,
        id(Parameter): _parameter,
        id(_layout): _layout,
        id(Size): Size,
        id(Tensor): _empty_constructor(Tensor),
        id(rebuild._rebuild_njt): rebuild._rebuild_njt,
        id(rebuild._DimRange): rebuild._DimRange,
        id(device): device,
        id(_encode): _encode,
        id(bytearray): _bytearray,
        id(set): _set,
        id(complex): _numbers,
    }
    for kind in ALL:
        names[f"torch.{kind.name}"] = kind
        if storage_class(kind) is not None:
            names[f"torch.{kind.legacy}Storage"] = StorageType(f"{kind.legacy}Storage")
        legacy = getattr(pygrad, f"{kind.legacy}Tensor", None)
        if legacy is not None:
            names[f"torch.{kind.legacy}Tensor"] = legacy
            calls[id(legacy)] = _empty_constructor(legacy)
    for name in _REBUILDS.split():
        function = names[f"torch._utils.{name}"] = getattr(rebuild, name)
        calls[id(function)] = function
    return names, calls


SAFE, CALLS = _make_allow_list()
TAKING_TENSORS: Final = {
    id(Parameter),
    *(
        id(getattr(rebuild, f"_rebuild_{name}"))
        for name in "parameter parameter_with_state".split()
    ),
}
"""The functions that only store their tensor arguments."""
READING: Final = {
    id(getattr(rebuild, f"_rebuild_{name}"))
    for name in "sparse_tensor nested_tensor njt device_tensor_from_cpu_tensor "
    "device_tensor_from_numpy".split()
}
"""The functions that read every element of a tensor, which may be more than its storage has."""


# ------------------------------------------------------------------ the user's additions

_safe: list[Any] = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows `load` to use these classes and functions for files of weights from now on.

    Args:
        safe_globals: classes and functions, or pairs (class or function, its name in files).

    Example:
        >>> import pygrad
        >>> from pygrad.serialization import add_safe_globals, clear_safe_globals
        >>> add_safe_globals([pygrad.nn.Linear])
        >>> clear_safe_globals()
    """
    _safe.extend(each for each in safe_globals if each not in _safe)


def get_safe_globals() -> list[Any]:
    """The list of globals that `add_safe_globals` has collected."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Clears the list of `add_safe_globals`."""
    _safe.clear()


class safe_globals:
    """A scope in which `load` may also use these classes for files of weights.

    Example:
        >>> from pygrad.serialization import get_safe_globals, safe_globals
        >>> with safe_globals([complex]):
        ...     get_safe_globals()
        [<class 'complex'>]
        >>> get_safe_globals()
        []
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._added = safe_globals

    def __enter__(self) -> None:
        self._before = get_safe_globals()
        add_safe_globals(self._added)

    def __exit__(self, *_: object) -> None:
        _safe[:] = self._before


def allowed_globals() -> dict[str, Any]:
    """The globals that the user has allowed, by their names in files.

    Raises:
        ValueError: a tuple that is no pair. TypeError: a name that is no string.
    """
    names: dict[str, Any] = {}
    for each in _safe:
        if not isinstance(each, tuple):
            mine = f"{each.__module__}.{each.__qualname__}"
            theirs = torch_name(each)
            names.update({mine: each} if theirs is None else {mine: each, ".".join(theirs): each})
            continue
        if len(each) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple of "
                f"length: {len(each)}"
            )
        if type(each[1]) is not str:
            raise TypeError(
                "Expected second item in tuple to be str of callable full path, but got: "
                f"{type(each[1])}"
            )
        names[each[1]] = each[0]
    return names
