"""Muon: momentum with orthogonalized updates, for the matrices of hidden layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer, parameters_with_gradients
from .optimizer import Group, ParamsT

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5
Coefficients = tuple[float, float, float]


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: Coefficients, ns_steps: int, eps: float
) -> Tensor:
    """An approximation of U V^T for a matrix U S V^T, in bfloat16: some steps of x <- a x + (b m +
    c m^2) x with m = x x^T, which move all singular values close to one.

    Raises:
        ValueError: too many steps, not a matrix, or not three coefficients.
    """
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.bfloat16()
    if tall:
        x = x.T
    x.div_(x.norm().clamp(min=eps))
    for _ in range(ns_steps):
        squares = x @ x.T
        x = pygrad.addmm(x, pygrad.addmm(squares, squares, squares, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: float, adjust_lr_fn: str | None, param_shape: Sequence[int]) -> float:
    """The step length for a matrix of this shape."""
    rows, columns = param_shape[:2]
    if adjust_lr_fn is None or adjust_lr_fn == "original":
        return lr * math.sqrt(max(1, rows / columns))
    if adjust_lr_fn == "match_rms_adamw":
        return lr * (0.2 * math.sqrt(max(rows, columns)))
    return lr


class Muon(BuiltinOptimizer):
    """Muon (Jordan, 2024).

    With g the gradient, b = momentum * b + (1 - momentum) * g, and u = b or with Nesterov's form
    momentum * b + (1 - momentum) * g: p = p * (1 - lr * weight_decay), then p = p - r * O(u),
    where O makes a matrix approximately orthogonal and r is `lr` adjusted to the shape.

    Args:
        params: matrices, or groups of them. Other parameters need another optimizer.
        lr: the step length, a number or a tensor of one element.
        weight_decay: pulls the parameters towards zero.
        momentum: the weight of the past.
        nesterov: Nesterov's momentum.
        ns_coefficients, ns_steps: coefficients and steps of the orthogonalization.
        eps: the least norm by which an update is divided.
        adjust_lr_fn: how r depends on the shape: "original" (also None) or "match_rms_adamw".

    Raises:
        ValueError: a number is out of range, or a parameter is no matrix.
        RuntimeError: in a step, a parameter is complex.

    Example:
        >>> import pygrad
        >>> w = pygrad.zeros(2, 2, requires_grad=True)
        >>> optimizer = pygrad.optim.Muon([w], lr=0.5)
        >>> w.grad = pygrad.eye(2)
        >>> optimizer.step()
        >>> bool(w[0, 0] < -0.25)
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Coefficients = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        for name, value in (("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{parameter.size()}"
                    )

    def _update(self, group: Group) -> None:
        params, grads = parameters_with_gradients(group)
        if any(parameter.is_complex() for parameter in params):
            raise RuntimeError("Muon does not support complex parameters")
        buffers = []
        for parameter, grad in zip(params, grads, strict=True):
            own = self.state[parameter]
            if "momentum_buffer" not in own:
                own["momentum_buffer"] = pygrad.zeros_like(grad)
            buffers.append(own["momentum_buffer"])
        options = {key: value for key, value in group.items() if key in self.defaults}
        muon(params, grads, buffers, has_complex=False, **options)


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: Coefficients,
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """The step of `Muon` with the state in lists.

    Raises:
        RuntimeError: ``foreach=True``.
        ValueError: a gradient is no matrix, or complex.
    """
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    length = float(lr)
    for parameter, grad, mean in zip(params, grads, muon_momentum_bufs, strict=True):
        if grad.dim() != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        mean.lerp_(grad, 1 - momentum)
        update = grad.lerp(mean, momentum) if nesterov else mean
        update = _zeropower_via_newtonschulz(update, ns_coefficients, ns_steps, eps)
        parameter.mul_(1 - length * weight_decay)
        parameter.add_(update, alpha=-_adjust_lr(length, adjust_lr_fn, parameter.shape))


_single_tensor_muon = muon
