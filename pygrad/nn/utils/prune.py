"""Pruning of weights: a mask sets some elements to zero.

A pruned parameter ``weight`` becomes ``weight_orig``, with a buffer ``weight_mask``. Before each
call of the layer ``weight`` is recomputed as their product.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, TypeVar

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..modules.module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

T = TypeVar("T", bound=Module)


def _hook_on(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """The key and the hook that prunes a parameter of the module."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


class BasePruningMethod:
    """The base class of pruning hooks. Subclasses define ``compute_mask``.

    Attributes:
        PRUNING_TYPE: "unstructured" for elements, "structured" for slices along ``dim``, "global"
            for methods that also see pruned elements.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import prune
        >>> class EverySecond(prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask.view(-1)[::2] = 0
        ...         return mask
        >>> layer = pygrad.nn.Linear(2, 1)
        >>> _ = EverySecond.apply(layer, "weight")
        >>> layer.weight_mask
        tensor([[0., 1.]])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The new mask, from scores `t` and the mask so far."""
        raise NotImplementedError

    def apply_mask(self, module: Module) -> Tensor:
        """The product of the parameter and its mask."""
        name = self._tensor_name
        original = getattr(module, name + "_orig")
        masked: Tensor = getattr(module, name + "_mask").to(dtype=original.dtype) * original
        return masked

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter, or prune it further; returns the hook."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        found = _hook_on(module, name)
        whole = getattr(module, name)
        scores = whole if importance_scores is None else importance_scores
        if scores.shape != whole.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if found is None:
            mask = method.compute_mask(scores, pygrad.ones_like(whole))
            del module._parameters[name]
            module.register_parameter(name + "_orig", whole)
        else:
            key, old = found
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, getattr(module, name + "_mask").detach().clone())
            del module._forward_pre_hooks[key]
            method = container
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Prunes a tensor without a layer: returns it with elements set to zero."""
        scores = t if importance_scores is None else importance_scores
        mask = pygrad.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Module) -> None:
        """Make the pruned value a parameter again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        original: Any = module._parameters.pop(name + "_orig")
        original.data = weight.data
        delattr(module, name)
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods for one parameter, applied in order.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import prune
        >>> layer = prune.l1_unstructured(pygrad.nn.Linear(4, 1), "weight", amount=1)
        >>> method = prune.L1Unstructured.apply(layer, "weight", amount=1)
        >>> len(method), layer.weight_mask.sum()
        (2, tensor(2.))
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a method for the same parameter."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method, applied only to elements that are not pruned yet."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        left: Any
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = getattr(method, "dim") % t.dim()  # noqa: B009
            others = [k for k in range(t.dim()) if k != dim]
            left = (slice(None),) * dim + (default_mask.sum(others) != 0,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask[left] = method.compute_mask(t[left], default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but adds a mask.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.Identity().prune(pygrad.ones(2))
        tensor([1., 1.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.CustomFromMask(pygrad.tensor([0, 1])).prune(pygrad.ones(2))
        tensor([0., 1.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask * self.mask.to(dtype=default_mask.dtype)


class _ByAmount(BasePruningMethod):
    """The base class of methods that prune a number or a fraction of elements or slices.

    Raises:
        TypeError: the amount is no number. ValueError: it is out of range.
    """

    def __init__(self, amount: Any) -> None:
        self.amount = amount
        if not isinstance(amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        self._whole = isinstance(amount, Integral)
        if self.amount < 0 or (not self._whole and self.amount > 1):
            raise ValueError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
                "integer"
            )

    def _count(self, n: int) -> int:
        """The number of n elements to prune."""
        if not self._whole:
            return round(float(self.amount) * n)
        if self.amount > n:
            raise ValueError(
                f"amount={self.amount} should be smaller than the number of parameters to prune={n}"
            )
        return int(self.amount)


class _OfElements(_ByAmount):
    """The base class of methods that prune the first elements in some order."""

    PRUNING_TYPE = "unstructured"

    def _first(self, t: Tensor, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.nelement())
        mask = default_mask.clone(memory_format=pygrad.contiguous_format)
        if count:
            mask.view(-1)[self._first(t, count)] = 0
        return mask


class RandomUnstructured(_OfElements):
    """Prunes random elements.

    Args:
        amount: the number of elements, or a fraction if it is a float.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.RandomUnstructured(0.5).prune(pygrad.ones(4)).sum()
        tensor(2.)
    """

    def _first(self, t: Tensor, count: int) -> Tensor:
        return pygrad.rand_like(t).view(-1).topk(count).indices


class L1Unstructured(_OfElements):
    """Prunes the elements of smallest absolute value.

    Args:
        amount: the number of elements, or a fraction if it is a float.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.L1Unstructured(1).prune(pygrad.tensor([3.0, -1.0, 2.0]))
        tensor([3., -0., 2.])
    """

    def _first(self, t: Tensor, count: int) -> Tensor:
        return t.abs().view(-1).topk(count, largest=False).indices


class _OfSlices(_ByAmount):
    """The base class of methods that prune slices along a dimension."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _select_slices(self, t: Tensor, n: int, count: int) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask.

        Raises:
            ValueError: the tensor is a vector. IndexError: it has no such dimension.
        """
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        n = t.shape[self.dim]
        count = self._count(n)
        if not count:
            return default_mask
        mask = pygrad.zeros_like(t)
        mask[(slice(None),) * (self.dim % t.dim()) + (self._select_slices(t, n, count),)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_OfSlices):
    """Prunes random slices along a dimension.

    Args:
        amount: the number of slices, or a fraction if it is a float.
        dim: the dimension.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.RandomStructured(1).prune(pygrad.ones(2, 3)).sum()
        tensor(4.)
    """

    def _select_slices(self, t: Tensor, n: int, count: int) -> Tensor:
        drawn = pygrad.rand(n)
        return drawn > drawn.kthvalue(k=count).values


class LnStructured(_OfSlices):
    """Prunes the slices of least norm along a dimension.

    Args:
        amount: the number of slices, or a fraction if it is a float.
        n: the order of the norm, see :func:`pygrad.norm`.
        dim: the dimension.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.LnStructured(1, 2, 0).prune(pygrad.tensor([[1.0], [2.0]]))
        tensor([[0.],
                [2.]])
    """

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _select_slices(self, t: Tensor, n: int, count: int) -> Tensor:
        others = [k for k in range(t.dim()) if k != self.dim % t.dim()]
        return pygrad.norm(t, p=self.n, dim=others).topk(k=n - count).indices


def identity(module: T, name: str) -> T:
    """Give a parameter a mask that prunes nothing; returns the layer."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: T, name: str, amount: Any) -> T:
    """Prune a number or a fraction of a parameter's elements at random; returns the layer."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(
    module: T, name: str, amount: Any, importance_scores: Tensor | None = None
) -> T:
    """Prune the elements of a parameter with the least absolute values or scores; returns the
    layer.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: T, name: str, amount: Any, dim: int) -> T:
    """Prune slices of a parameter along a dimension at random; returns the layer."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: T,
    name: str,
    amount: Any,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> T:
    """Prune the slices of a parameter with the least norm along a dimension; returns the layer."""
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def custom_from_mask(module: T, name: str, mask: Tensor) -> T:
    """Prune the elements of a parameter where a mask is 0; returns the layer."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune the parameters of several layers as a single one.

    Args:
        parameters: pairs of a layer and a parameter name.
        pruning_method: a class of type "unstructured".
        importance_scores: a dict from (layer, name) to scores; by default the values are the
            scores.
        kwargs: arguments of that class.

    Raises:
        TypeError: a class of another type.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import prune
        >>> a, b = pygrad.nn.Linear(2, 2), pygrad.nn.Linear(2, 1)
        >>> pairs = [(a, "weight"), (b, "weight")]
        >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=3)
        >>> a.weight_mask.sum() + b.weight_mask.sum()
        tensor(3.)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    scores, pairs = importance_scores or {}, list(parameters)
    wholes = [getattr(module, name) for module, name in pairs]
    masks = [
        getattr(module, name + "_mask", pygrad.ones_like(whole))
        for (module, name), whole in zip(pairs, wholes, strict=True)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    important = [
        scores.get(pair, whole).flatten() for pair, whole in zip(pairs, wholes, strict=True)
    ]
    flat = PruningContainer(method).compute_mask(
        pygrad.cat(important), pygrad.cat([mask.flatten() for mask in masks])
    )
    parts = flat.split([whole.numel() for whole in wholes])
    for (module, name), whole, part in zip(pairs, wholes, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(whole))


def remove(module: T, name: str) -> T:
    """Make the pruned value a parameter again.

    Raises:
        ValueError: the parameter is not pruned.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import prune
        >>> layer = prune.l1_unstructured(pygrad.nn.Linear(2, 1), "weight", amount=1)
        >>> sorted(prune.remove(layer, "weight").state_dict())
        ['bias', 'weight']
    """
    found = _hook_on(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    key, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[key]
    return module


def is_pruned(module: Module) -> bool:
    """Whether any parameter of the module or of a submodule is pruned.

    Example:
        >>> import pygrad
        >>> pygrad.nn.utils.prune.is_pruned(pygrad.nn.Linear(2, 1))
        False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )
