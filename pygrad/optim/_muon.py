"""Muon: momentum with orthogonalized updates, for the matrices of hidden layers."""

from __future__ import annotations

from .._table import functions
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer
from ._description import ONE_LR
from .optimizer import Params

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5
Coefficients = tuple[float, float, float]


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

    _row = "_muon_"
    _order = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
    _checks = (
        ONE_LR,
        ("lr >= 0.0", "Learning rate should be >= 0 but is: {lr}"),
        ("momentum >= 0.0", "momentum should be >= 0 but is: {momentum}"),
        ("weight_decay >= 0.0", "weight decay should be >= 0 but is: {weight_decay}"),
        (
            "adjust_lr_fn in (None, 'original', 'match_rms_adamw')",
            "Adjust learning rate function {adjust_lr_fn} is not supported",
        ),
    )
    _checks_of_parameters = (
        (
            "parameter.dim() == 2",
            "Muon only supports 2D parameters whereas we found a parameter with size: "
            "{parameter.shape}",
        ),
    )
    _state = "momentum_buffer: zeros"
    _refuses = ("complex", "sparse")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: Coefficients = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, locals())


def _zeropower_via_newtonschulz(
    grad: Tensor, ns_coefficients: Coefficients, ns_steps: int, eps: float
) -> Tensor:
    """An approximation of U V^T for a matrix U S V^T, in bfloat16.

    Raises:
        ValueError: too many steps, not a matrix, or not three coefficients.
    """
    made: Tensor = functions.C["_newton_schulz"](grad, ns_coefficients, ns_steps, eps)
    return made


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
    numbers = {
        "lr": float(lr),
        "weight_decay": weight_decay,
        "momentum": momentum,
        "nesterov": nesterov,
        "ns_coefficients": ns_coefficients,
        "ns_steps": ns_steps,
        "eps": eps,
        "adjust_lr_fn": adjust_lr_fn,
    }
    functions.C["_muon_"](params, grads, muon_momentum_bufs, **numbers)


_single_tensor_muon = muon
