"""Parametrized tensors: ``module.weight`` is computed from other tensors at each access.

A parametrized module gets a new class, derived from its former one, with a property for each
parametrized name. ``module.parametrizations[name]`` holds the functions and, as ``original`` or
``original0``, ``original1``, ..., the tensors that an optimizer changes.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_UNLESS = "unless the `unsafe` flag is enabled"


class _Cache:
    """The values computed since the outermost :func:`cached` was entered."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """A scope in which each parametrized tensor is computed once, at its first access.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations, parametrize
        >>> layer = parametrizations.weight_norm(pygrad.nn.Linear(2, 2))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
        >>> layer.weight is layer.weight
        False
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The functions of one parametrized tensor, applied in order, and the original tensors.

    Args:
        modules: the functions. Functions with a ``right_inverse`` compute the originals from the
            tensor.
        original: the tensor or parameter, which becomes the original if there is only one.
        unsafe: do not check that the result keeps the dtype and the shape of ``original``.

    Raises:
        ValueError: no functions; ``right_inverse`` returns other objects than tensors, or another
            dtype; the result has another dtype or shape.
    """

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        inverse = self._invert_what_can_be(original)
        self.is_tensor = isinstance(inverse, Tensor)
        self.ntensors = 1 if self.is_tensor else len(inverse)
        if self.is_tensor:
            self._keep_one(original, inverse)
        else:
            self._keep_several(original, inverse)
        if not unsafe:
            self._check_result(shape, dtype)

    def _invert_what_can_be(self, value: Any) -> Any:
        with pygrad.no_grad():
            for function in reversed(list(self)):
                if hasattr(function, "right_inverse"):
                    try:
                        value = function.right_inverse(value)
                    except NotImplementedError:
                        pass
        if isinstance(value, (Tensor, Sequence)):
            return value
        raise ValueError(
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
            f"Got {type(value).__name__}"
        )

    def _keep_one(self, original: Tensor, value: Tensor) -> None:
        for what in ("dtype", "device"):
            had, has = getattr(original, what), getattr(value, what)
            if had != has:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {had}\nright_inverse(original).{what}: {has}"
                )
        _overwrite(original, value)
        _register(self, "original", original)

    def _keep_several(self, original: Tensor, values: Sequence[Any]) -> None:
        for i, value in enumerate(values):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {i} of the sequence with type "
                    f"{type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", value)

    def _check_result(self, shape: Any, dtype: Any) -> None:
        result = self()
        _require_tensor(result)
        for what, had in (("dtype", dtype), ("shape", shape)):
            has = getattr(result, what)
            if has != had:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    "unless `unsafe` flag is enabled.\n"
                    f"unparametrized {what}: {had}\nparametrized {what}: {has}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the result becomes ``value``, as an assignment does.

        Raises:
            RuntimeError: a function has no ``right_inverse``.
            ValueError: the results of ``right_inverse`` do not match the originals.
        """
        given: Any = value
        with pygrad.no_grad():
            for function in reversed(list(self)):
                if not hasattr(function, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(function).__name__} does not implement "
                        "right_inverse."
                    )
                given = function.right_inverse(given)
            if self.is_tensor:
                self._assign_one(given)
            else:
                self._assign_several(given)

    def _assign_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                f"while `original` has dtype {self.original.dtype}"
            )
        _overwrite(self.original, value)

    def _assign_several(self, values: Any) -> None:
        must = "'right_inverse' must return a sequence of tensors"
        if not isinstance(values, Sequence):
            raise ValueError(f"{must}. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"{must} of length {self.ntensors}. Got a sequence of length {len(values)}."
            )
        for i, value in enumerate(values):
            original = getattr(self, f"original{i}")
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"{must} or reference-type opaques. "
                    f"Got element {i} of type {type(value).__name__}."
                )
            if value.dtype != original.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {value.dtype} "
                    f"while `original{i}` has dtype {original.dtype}"
                )
            _overwrite(original, value)

    def forward(self) -> Any:
        """The parametrized tensor."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        first, *others = self
        value = first(*[getattr(self, name) for name in names])
        for function in others:
            value = function(value)
        return value


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _overwrite(target: Tensor, value: Tensor) -> None:
    """Give the target the value's storage and shape; the target stays the same object."""
    with pygrad.no_grad():
        target.set_(value)


def _require_tensor(value: object) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")


# ------------------------------------------------------------------ classes with properties


def _deepcopy_with_class(self: Any, memo: dict[int, Any]) -> Any:
    """A deep copy of the same class; the default one would call ``__getstate__``."""
    if id(self) in memo:
        return memo[id(self)]
    made = memo[id(self)] = object.__new__(type(self))
    made.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(made, slot, deepcopy(getattr(self, slot), memo))
    return made


def _refuse_state(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _give_own_class(module: Module) -> None:
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_state}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy_with_class
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _give_property(module: Module, name: str) -> None:
    def compute(self: Any) -> Any:
        functions = self.parametrizations[name]
        if not _cache.depth:
            return functions()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = functions()
        return _cache.values[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(compute, assign))


# ------------------------------------------------------------------ the public functions


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by a function, which is itself a module.

    Args:
        module: the owner of the tensor. It is modified, including its class, and returned.
        tensor_name: the attribute, which may be parametrized already; the functions are then
            applied in order.
        parametrization: its ``forward`` maps the original to the tensor; its ``right_inverse``, if
            any, maps a tensor to the original, or to several.
        unsafe: allow changes of dtype and shape.

    Raises:
        ValueError: there is no such tensor, or the function changes dtype or shape.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrize
        >>> class Symmetric(pygrad.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = pygrad.nn.Linear(3, 3)
        >>> _ = parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> pygrad.equal(layer.weight, layer.weight.mT)
        True
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        functions: Any = module.parametrizations[tensor_name]
        functions.append(parametrization)
        functions.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # Before the module is modified, since this may raise.
        functions = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _give_property(module, tensor_name)
        module.parametrizations[tensor_name] = functions
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a "
            f"parametrized element with name '{tensor_name}'"
        )
    return module


def _check_further(module: Module, name: str, function: Any) -> None:
    """Raises unless a further function, and its inverse, preserve the tensor's dtype and shape."""
    present = getattr(module, name)
    result = function(present)
    _require_tensor(result)
    for what in ("dtype", "shape"):
        had, has = getattr(present, what), getattr(result, what)
        if had != has:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, "
                f"{_UNLESS}.\nmodule.{name}.{what}: {had}\n"
                f"parametrization(module.{name}).{what}: {has}"
            )
    if not hasattr(function, "right_inverse"):
        return
    try:
        inverse = function.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(
            "parametrization.right_inverse must return a tensor. Got: " + type(inverse).__name__
        )
    for what in ("dtype", "shape"):
        had, has = getattr(present, what), getattr(inverse, what)
        if had != has:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same "
                f"{what} as module.{name}, {_UNLESS}.\n"
                f"module.{name}.{what}: {had}\nreturned {what}: {has}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has any parametrized tensor, or the named one.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations, parametrize
        >>> layer = parametrizations.weight_norm(pygrad.nn.Linear(2, 2))
        >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    functions = getattr(module, "parametrizations", None)
    if not isinstance(functions, ModuleDict):
        return False
    return len(functions) > 0 if tensor_name is None else tensor_name in functions


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Turn a parametrized tensor into a parameter or buffer again.

    Args:
        module: the owner, which is modified and returned. After the last removal it has its class
            back.
        tensor_name: the name of the tensor.
        leave_parametrized: keep the current value; otherwise the original's.

    Raises:
        ValueError: the tensor is not parametrized, or it has several originals and
            ``leave_parametrized`` is False.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations, parametrize
        >>> layer = parametrizations.weight_norm(pygrad.nn.Linear(2, 2))
        >>> parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=2, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    functions: Any = module.parametrizations[tensor_name]
    if functions.is_tensor:
        tensor = functions.original
        if leave_parametrized:
            with pygrad.no_grad():
                value = getattr(module, tensor_name)
            _overwrite(tensor, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor "
            "that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module before any parametrization.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations, parametrize
        >>> layer = parametrizations.weight_norm(pygrad.nn.Linear(2, 2))
        >>> type(layer).__name__, parametrize.type_before_parametrizations(layer).__name__
        ('ParametrizedLinear', 'Linear')
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize a module like another one, with its functions and originals.

    Args:
        from_module: the other module; if it is not parametrized, nothing happens.
        to_module: the module to modify and return; missing tensors are made.
        tensor_name: the only tensor to transfer; by default all.
    """
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    names: Iterable[str] = source if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for function in source[name]:
            register_parametrization(to_module, name, function)
        target: Any = to_module.parametrizations[name]
        for key in [*source[name]._parameters, *source[name]._buffers]:
            setattr(target, key, getattr(source[name], key))
    return to_module
