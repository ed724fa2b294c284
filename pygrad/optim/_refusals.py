"""What optimizers refuse beside options out of range, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .._tensor.tensor import Tensor
from .optimizer import Group

_REFUSALS: Final[dict[str, tuple[Callable[[Tensor, Tensor], bool], str]]] = {
    "sparse": (lambda p, grad: grad.is_sparse, "{} does not support sparse gradients"),
    "dense": (
        lambda p, grad: not grad.is_sparse,
        "{} does not support dense gradients, please consider Adam instead",
    ),
    "complex": (lambda p, grad: p.is_complex(), "{} does not support complex parameters"),
}


def refuse_parameter(kinds: tuple[str, ...], name: str, parameter: Tensor) -> None:
    """Raise PyTorch's error for a parameter of these kinds: before its first step, as the engine
    does at later ones.
    """
    grad = parameter.grad
    if grad is None:
        return
    for kind in kinds:
        is_refused, message = _REFUSALS[kind]
        if is_refused(parameter, grad):
            raise RuntimeError(message.format(name))


def refuse_unsupported(options: dict[str, Any]) -> None:
    """Raise ``NotImplementedError`` for an unsupported option."""
    for name in ("capturable", "differentiable"):
        if options.get(name):
            raise NotImplementedError(f"optimizers do not support {name}=True")


_FUSED = "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone']"


def check_fused(group: Group, params: list[Tensor]) -> None:
    """Raise PyTorch's error if ``fused`` is set for parameters that are not floating point."""
    for p in params if group.get("fused") else ():
        if not p.is_floating_point() and p.grad is not None:
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported "
                f"devices: {_FUSED} but {p.dtype} and {p.device.type}"
            )


def check_choice(options: Group) -> None:
    """Raise PyTorch's errors for implementations that exclude each other."""
    if options.get("fused"):
        if options.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if options.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
