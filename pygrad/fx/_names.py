"""PyTorch's names: objects of pygrad.x are printed as torch.x, and generated code finds them
there.
"""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

from .._ground.package import pygrad, submodule
from .._table import functions as _functions
from .._tensor.tensor import Tensor

_ROOT: Final = pygrad.__name__
_PREFIXES: Final = {"linalg": "linalg_", "special": "special_", "fft": "fft_"}
"""Prefixes of the names of PyTorch's own functions of these modules."""


def dialect() -> Any:
    """The module that ``torch`` means in generated code: the dialect, or an engine of the user's
    own.
    """
    return submodule("torch") if _ROOT == "pygrad" else pygrad


def torch_name(module: str) -> str:
    """PyTorch's name of a module of pygrad or of its dialect; any other's own.

    Example:
        >>> from pygrad.fx._names import torch_name
        >>> torch_name("pygrad.nn.functional"), torch_name("pygrad.torch.nn"), torch_name("os.path")
        ('torch.nn.functional', 'torch.nn', 'os.path')
    """
    if module != _ROOT and not module.startswith(_ROOT + "."):
        return module
    rest = module[len(_ROOT) :]
    if rest == ".torch" or rest.startswith(".torch."):
        rest = rest[len(".torch") :]
    return "torch" + rest


def module_of(thing: Any) -> str | None:
    """PyTorch's name of the module in an object's `__module__`."""
    module = getattr(thing, "__module__", None)
    return torch_name(module) if isinstance(module, str) else None


def is_from_torch(obj: Any) -> bool:
    """Whether generated code finds it in ``torch``."""
    module = module_of(obj)
    if module is None or not (module == "torch" or module.startswith("torch.")):
        return False
    name = getattr(obj, "__qualname__", "")
    return "<" not in name and not module.startswith(("torch._dynamo.", "torch._inductor."))


def type_name(thing: Any) -> str:
    """A class or function, or the type of another object, as error messages have it."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    module = module_of(named)
    outer = "" if module in (None, "builtins") else f"{module}."
    return f"{outer}{named.__qualname__}"


def type_repr(obj: Any) -> str:
    """The text of an annotation."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        module = module_of(obj)
        return obj.__qualname__ if module == "builtins" else f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


def is_tensor_method(function: Any) -> bool:
    """Whether this is a method of `Tensor`, or an accessor of one of its properties."""
    name = getattr(function, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        return True
    return bool(name) and _is_same(inspect.getattr_static(Tensor, name, None), function)


def node_name(function: Any) -> str:
    """The name for nodes that call a function: its own name in PyTorch."""
    name: str = function.__name__
    space = (module_of(function) or "").removeprefix("torch.")
    return _PREFIXES.get(space, "") + name


def _is_same(found: Any, function: Any) -> bool:
    return found is function or (isinstance(function, types.MethodType) and found == function)


def resolve_torch_name(name: str) -> Any:
    """The object that generated code finds under a name that begins with ``torch``; None if there
    is none.
    """
    found = dialect()
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except (AttributeError, NotImplementedError, ImportError):
            return None
    return found


def _is_of_nn(name: str) -> bool:
    """Whether the function of `nn.functional` is a builtin in PyTorch."""
    return isinstance(_functions.SPACES["nn"].get(name), types.MethodType)


def _is_of_torch(name: str) -> bool:
    """Whether PyTorch's ``torch`` also has this function of `nn.functional`."""
    return _is_of_nn(name) and hasattr(pygrad, name)


def _places(module: str, name: str) -> Iterator[str]:
    """The names under which PyTorch may have a function of the package, the likeliest first."""
    space = module.removeprefix("torch.")
    if space == "nn.functional" and _is_of_nn(name):
        yield f"torch._C._nn.{name}"
    elif space in _PREFIXES:
        yield f"torch._C._{space}.{_PREFIXES[space]}{name}"
    elif space.startswith("_") or isinstance(
        _functions.SPACES["torch"].get(name), types.FunctionType
    ):
        yield f"torch.functional.{name}"
    if not any(part.startswith("_") for part in module.split(".")):
        yield f"{module}.{name}"
    yield f"torch.{name}"
    yield f"torch.nn.functional.{name}"
    yield f"{module}.{name}"


def qualified_name(func: Callable[..., Any]) -> str:
    """The name under which generated code finds a function; PyTorch's name if PyTorch
    has the function.

    Raises:
        RuntimeError: a lambda without a name to be found.

    Example:
        >>> import operator, pygrad
        >>> from pygrad.fx._names import qualified_name
        >>> qualified_name(pygrad.relu), qualified_name(operator.add), qualified_name(len)
        ('torch.relu', '_operator.add', 'len')
    """
    if module_of(type(func)) in ("torch.ops", "torch._ops"):
        return f"torch.ops.{func}"
    name: str = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if is_tensor_method(func) and not name.startswith("__get"):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:  # the name it was given where it was made
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = module_of(func)
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    if is_from_torch(func):
        if module == "torch.nn.functional" and _is_of_torch(name):
            return f"torch.{name}"
        for place in _places(module, name):
            if _is_same(resolve_torch_name(place), func):
                return place
    return f"{module}.{name}"
