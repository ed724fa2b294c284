"""Traversal of a module's tree of submodules, and conversions of its tensors.

Traversals yield each module, parameter or buffer once, in order of registration, under dotted
names. Conversions replace the data of a parameter and keep the object, so that optimizers that hold
it still work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ... import utils
from ..._table.functions import C
from ..._tensor import namespace as pygrad
from ..._tensor.base import drop_grads
from ..._tensor.parse_to import parse_to
from ..._tensor.tensor import Tensor
from .._types import DeviceLike
from ..parameter import Parameter
from . import _conversions
from ._attributes import ModuleAttributes

if TYPE_CHECKING:
    from .module import Module

_T = TypeVar("_T")


class ModuleTree(ModuleAttributes):
    """The base class of `Module` that accesses submodules."""

    # --- names to objects ---

    def get_submodule(self, target: str) -> Module:
        """The submodule with a dotted name; the module itself for ``""``.

        Raises:
            AttributeError: a part of the name is missing, or is no module.

        Example:
            >>> from pygrad import nn
            >>> net = nn.Sequential(nn.Sequential(nn.Linear(2, 3)))
            >>> net.get_submodule("0.0")
            Linear(in_features=2, out_features=3, bias=True)
        """
        module: Any = self
        for name in target.split(".") if target else ():
            owner, module = module, getattr(module, name, _ABSENT)
            if module is _ABSENT:
                raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
            if not isinstance(module, ModuleTree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the submodule with a dotted name; with ``strict``, only replace an existing one.

        Raises:
            ValueError: the name is empty, or ``module`` is no module.
            AttributeError: the owner is missing, or the existing attribute is no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleTree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        present = getattr(owner, name, _ABSENT)
        if strict and present is _ABSENT:
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if present is not _ABSENT and not isinstance(present, ModuleTree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(owner, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with a dotted name; ``AttributeError`` if it is missing or no parameter."""
        found = self._get_attribute(target)[2]
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with a dotted name; ``AttributeError`` if it is missing or no buffer."""
        owner, name, found = self._get_attribute(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found  # type: ignore[no-any-return]

    def _get_attribute(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    # --- walks ---

    def children(self) -> Iterator[Module]:
        """The distinct direct submodules."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The distinct direct submodules with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all its descendants, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all its descendants with dotted names, parents first.

        Args:
            memo: modules to skip; with ``remove_duplicate`` the traversal adds to it.
            prefix: the start of the names.
            remove_duplicate: yield a module with several names only once.

        Example:
            >>> from pygrad import nn
            >>> [name for name, _ in nn.Sequential(nn.ReLU(), nn.ReLU()).named_modules()]
            ['', '0', '1']
        """
        memo = set() if memo is None else memo
        itself: Any = self
        if itself in memo:
            return
        if remove_duplicate:
            memo.add(itself)
        yield prefix, itself
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, _T | None]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, _T]]:
        """The members that `get_members_fn` returns for each module, with dotted names."""
        itself: Any = self
        owners: Iterable[tuple[str, Module]] = [(prefix, itself)]
        if recurse:
            owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        seen: set[_T] = set()
        for path, owner in owners:
            for name, member in get_members_fn(owner):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The distinct parameters, for example for an optimizer."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their dotted names.

        Example:
            >>> from pygrad import nn
            >>> [name for name, _ in nn.Sequential(nn.Linear(2, 3)).named_parameters()]
            ['0.weight', '0.bias']
        """
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The distinct buffers, persistent or not."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their dotted names."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    # --- modes ---

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn`` with every submodule, children first, and then with this module."""
        for module in self.children():
            module.apply(fn)
        itself: Any = self
        fn(itself)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and its descendants. Dropout and batch norm depend on
        it.

        Raises:
            ValueError: ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode for this module and its descendants: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of every parameter; ``False`` freezes them."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete every parameter's gradient, or fill it with zeros."""
        zero_grads_of(self.parameters(), set_to_none)

    # --- conversions ---

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Apply ``fn`` to the data of each parameter, gradient and buffer."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            grad = parameter.grad
            with pygrad.no_grad():
                converted = fn(parameter)
                converted_grad = None if grad is None else fn(grad)
            if _conversions.get_swap_module_params_on_conversion():
                self._swap(name, parameter, converted, converted_grad)
                continue
            overwrite = _conversions.get_overwrite_module_params_on_conversion()
            if overwrite or converted.device != parameter.device:
                self._parameters[name] = moved = Parameter(converted, parameter.requires_grad)
                if grad is not None and converted_grad is not None:
                    moved.grad = converted_grad.requires_grad_(grad.requires_grad)
                continue
            # A gradient must have the dtype of its tensor, so it is removed during the change.
            parameter.grad = None
            parameter.data = converted
            if grad is not None and converted_grad is not None:
                grad.data = converted_grad
                parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap(
        self, name: str, parameter: Parameter, converted: Tensor, converted_grad: Tensor | None
    ) -> None:
        """Swap a parameter and its gradient with their converted tensors, which may be of other
        classes.
        """
        grad, parameter.grad = parameter.grad, None
        try:
            made = Parameter(converted, requires_grad=parameter.requires_grad)
            utils.swap_tensors(parameter, made)
        except Exception as error:
            parameter.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if grad is None or converted_grad is None:
            return
        converted_grad.requires_grad_(grad.requires_grad)
        try:
            utils.swap_tensors(grad, converted_grad)
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}.grad") from error
        parameter.grad = grad

    def cpu(self) -> Self:
        """Move all tensors to the CPU, where they already are."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: DeviceLike = None) -> Self:
        """Would move all tensors to a CUDA device; each tensor raises, since there is none."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: pygrad.dtype | str) -> Self:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Replace every parameter and buffer by an uninitialised one on ``device``."""
        return self._apply(lambda t: pygrad.empty_like(t, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert dtype and device of floating point parameters and buffers, in place.

        Forms: ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype, non_blocking)``,
        ``to(tensor, non_blocking)`` and ``to(memory_format=...)``.

        Raises:
            TypeError: the dtype is not floating point, or the arguments match no form.

        Example:
            >>> import pygrad
            >>> pygrad.nn.Linear(2, 2).to(pygrad.float64).weight.dtype == pygrad.float64
            True
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, "
                f"but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors "
                "as parameters or buffers. Please file an issue at "
                "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                "if a complex module does not work as expected.",
                stacklevel=2,
            )

        def convert(tensor: Tensor) -> Tensor:
            takes_dtype = tensor.is_floating_point() or tensor.is_complex()
            wanted = {"device": device, "dtype": dtype if takes_dtype else None}
            if memory_format is not None and tensor.dim() in (4, 5):
                wanted["memory_format"] = memory_format
            given = {name: value for name, value in wanted.items() if value is not None}
            if tensor.is_meta and device is not None and pygrad.device(device).type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use "
                    "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                    "module from meta to a different device."
                )
            return tensor.to(**given, non_blocking=non_blocking) if given else tensor

        return self._apply(convert)

    def share_memory(self) -> Self:
        """Not supported: each tensor raises, since storages in the engine cannot be shared."""
        return self._apply(lambda t: t.share_memory_())

    # --- implemented by Module ---

    def _get_name(self) -> str:
        return type(self).__name__


_ABSENT = object()


def zero_grads_of(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Delete the gradients of tensors, or zero and detach them, in at most one crossing."""
    if set_to_none:
        drop_grads(tensors)
        return
    having = [tensor for tensor in tensors if tensor._has_grad()]
    if having:
        C["_zero_grads"](having, False)
