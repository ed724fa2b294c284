"""The base class of the optimizers of this package: a step over groups, and argument checks.

``foreach`` and ``fused`` choose among PyTorch's implementations of one formula. Here there is one
implementation, so any value of them is accepted. ``capturable`` and ``differentiable`` are not
supported and raise an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from .optimizer import Closure, Group, Optimizer

State: TypeAlias = dict[str, Any]


class BuiltinOptimizer(Optimizer):
    """An optimizer that updates each group by ``_update``, without recording gradients."""

    _takes_sparse = False
    """Whether gradients may be sparse."""

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters that have a gradient, once.

        Args:
            closure: recomputes the loss and its gradients; called first.

        Returns:
            The result of ``closure``, or ``None``.
        """
        loss = None
        if closure is not None:
            with pygrad.enable_grad():
                loss = closure()
        self._update_all()
        return loss

    def _update_all(self) -> None:
        with pygrad.no_grad():
            for group in self.param_groups:
                self._update(group)

    def _update(self, group: Group) -> None:
        raise NotImplementedError

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        """Fills the state of a parameter at its first step."""

    def _stepping(self, group: Group) -> Iterator[tuple[Tensor, Tensor, State]]:
        """Each parameter that has a gradient, the gradient, and the state with an incremented step.
        Complex parameters are views as pairs of real numbers, which are updated independently.
        """
        for parameter, grad in zip(*parameters_with_gradients(group), strict=True):
            if grad.is_sparse and not self._takes_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
            own = self.state[parameter]
            if not own:
                begun = {"step": new_step()}
                self._begin(begun, group, parameter, grad)
                own.update(begun)  # all at once, so that an interrupt leaves no partial state
            own["step"].add_(1)
            if parameter.is_complex():
                grad = pygrad.view_as_real(grad.resolve_conj())
                parameter = pygrad.view_as_real(parameter)
                own = {key: _as_real(value) for key, value in own.items()}
            yield parameter, grad, own

    def add_param_group(self, param_group: Group) -> None:
        if isinstance(param_group, dict):
            refuse_unsupported({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            # Options that are newer than the saved state get their defaults.
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            refuse_unsupported(group)
            for parameter in group["params"]:
                own = self.state.get(parameter)
                if own and "step" in own and not isinstance(own["step"], Tensor):
                    own["step"] = new_step(float(own["step"]))


def _as_real(value: Any) -> Any:
    pairs = isinstance(value, Tensor) and value.is_complex()
    return pygrad.view_as_real(value) if pairs else value


def like_sparse(grad: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor with the indices of a coalesced gradient and other values."""
    return pygrad.sparse_coo_tensor(grad._indices(), values, grad.shape, is_coalesced=True)


def number_for(parameter: Tensor, value: float) -> complex:
    """The value, or the complex number with the value as both parts."""
    return complex(value, value) if parameter.is_complex() else value


def refuse_unsupported(options: Group) -> None:
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


def check_learning_rate(lr: float | Tensor) -> None:
    """Raise ``ValueError`` unless it is a single number that is not negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_not_negative("learning rate", lr)


def check_not_negative(name: str, value: float | Tensor) -> None:
    """Raise PyTorch's ``ValueError`` if the value is negative or NaN."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def parameters_with_gradients(group: Group) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters of a group that have a gradient, and their gradients."""
    if "grads" in group:  # set by a functional form
        return group["params"], group["grads"]
    params = []
    grads = []
    for parameter in group["params"]:
        grad = parameter.grad
        if grad is not None:
            params.append(parameter)
            grads.append(grad)
    return params, grads


def new_step(value: float = 0.0) -> Tensor:
    """A counter of steps: a float32 tensor without dimensions, as in PyTorch's state dicts."""
    return pygrad.tensor(value, dtype=pygrad.float32)


def direction(group: Group, parameter: Tensor, grad: Tensor) -> Tensor:
    """The gradient to descend along: negated to maximize, plus the weight decay."""
    if group["maximize"]:
        grad = -grad
    if group["weight_decay"] != 0:
        grad = grad.add(parameter, alpha=float(group["weight_decay"]))
    return grad


def decayed_direction(group: Group, parameter: Tensor, grad: Tensor) -> Tensor:
    """Same as `direction`, except that a decoupled decay is applied to the parameter itself."""
    if not group["decoupled_weight_decay"]:
        return direction(group, parameter, grad)
    parameter.mul_(1 - float(group["lr"]) * float(group["weight_decay"]))
    return -grad if group["maximize"] else grad


def check_adaptive(
    lr: float | Tensor, betas: tuple[float, float], eps: float, weight_decay: float
) -> None:
    """Check the arguments of Adam and its variants; raise PyTorch's ``ValueError``."""
    check_learning_rate(lr)
    check_not_negative("epsilon value", eps)
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
    check_not_negative("weight_decay value", weight_decay)
