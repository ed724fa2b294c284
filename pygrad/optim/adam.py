"""Adam: descent by running means of the gradient and its square. One engine call per group."""

from __future__ import annotations

from operator import itemgetter

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import State, check_choice, check_not_negative, decayed_direction, new_step
from ._forms import forms, step_from_op
from ._fused import Form, FusedOptimizer, Lists, Numbers, Options, Plan, Rows
from .optimizer import Group, Params

__all__ = ["Adam", "adam"]


class Adam(FusedOptimizer):
    """Adam (Kingma and Ba, 2014).

    With g the gradient (negated to maximize) plus weight_decay * p, at step t:
    m = beta1 * m + (1 - beta1) * g;  v = beta2 * v + (1 - beta2) * g^2;
    p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps),
    where ``amsgrad`` uses the maximum of all v so far. Decoupled decay leaves g unchanged and first
    sets p = p * (1 - lr * weight_decay).

    Args:
        params: parameters, or groups of them.
        lr: the step length, a number or a tensor of one element.
        betas: beta1 and beta2, two numbers or two tensors of one element.
        eps: added to the denominator.
        weight_decay: pulls the parameters towards zero.
        amsgrad: the variant of "On the Convergence of Adam and Beyond".
        maximize: ascend instead.
        foreach, fused: accepted; there is one implementation.
        capturable, differentiable: only ``False``.
        decoupled_weight_decay: see :class:`AdamW`.

    State of a parameter: ``step`` (float32, no dimensions), ``exp_avg``, ``exp_avg_sq`` and with
    amsgrad ``max_exp_avg_sq`` (its own shape and dtype).

    Raises:
        ValueError: a number is out of range.
        NotImplementedError: ``capturable=True`` or ``differentiable=True``.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(2, requires_grad=True)
        >>> optimizer = pygrad.optim.Adam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> [round(x, 4) for x in w.tolist()]
        [0.5, 0.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor):
            if foreach and not capturable:
                raise ValueError(
                    "lr as a Tensor is not supported for capturable=False and foreach=True"
                )
            if lr.numel() != 1:
                raise ValueError("Tensor lr must be 1-element")
        check_not_negative("learning rate", lr)
        check_not_negative("epsilon value", eps)
        _check_betas(betas, foreach=bool(foreach) and not capturable)
        check_not_negative("weight_decay value", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        check_choice(defaults)
        super().__init__(params, defaults)

    _options = itemgetter(
        "lr", "betas", "weight_decay", "eps", "maximize", "amsgrad", "decoupled_weight_decay"
    )
    _names = ("lr", "beta1", "beta2", "weight_decay", "eps", "maximize", "amsgrad")

    def _read(self, options: Options) -> tuple[Form, Numbers]:
        lr, (beta1, beta2), decay, eps, maximize, amsgrad, decoupled = options
        numbers = (float(lr), float(beta1), float(beta2), float(decay), float(eps))
        op = "_fused_adamw_" if decoupled else "_fused_adam_"
        return (op, bool(amsgrad)), (*numbers, bool(maximize), bool(amsgrad))

    def _begin(self, own: State, group: Group, parameter: Tensor, grad: Tensor) -> None:
        for name in ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ())):
            own[name] = pygrad.zeros_like(parameter)

    def _update(self, group: Group) -> None:
        beta1, beta2 = (float(beta) for beta in group["betas"])
        for parameter, grad, own in self._stepping(group):
            step, grad = own["step"].item(), decayed_direction(group, parameter, grad)
            mean, square = own["exp_avg"], own["exp_avg_sq"]
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            if group["amsgrad"]:
                greatest = own["max_exp_avg_sq"]
                square = greatest.copy_(greatest.maximum(square))
            root = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(float(group["eps"]))
            parameter.addcdiv_(mean, root, value=-float(group["lr"]) / (1 - beta1**step))

    def _is_current(self, plan: Plan, params: list[Tensor]) -> bool:
        rows, state_of = plan.rows, self.state.get
        if len(params) != len(rows):
            return False
        try:
            for p, (handle, step, mean, square, greatest) in zip(params, rows):  # noqa: B905
                own = state_of(p)
                if own:
                    if (
                        p._h != handle
                        or own["step"]._h != step
                        or own["exp_avg"]._h != mean
                        or own["exp_avg_sq"]._h != square
                        or (greatest and own["max_exp_avg_sq"]._h != greatest)
                    ):
                        return False
                elif p._h != handle or step or p._has_grad():
                    return False
        except KeyError:
            return False  # an incomplete state
        return True

    def _lists(self, params: list[Tensor], form: Form, numbers: Numbers) -> tuple[Rows, Lists]:
        _, amsgrad = form
        rows = [self._row(p, amsgrad) for p in params]
        taking = [row for row in rows if row[1] > 0]
        handles, steps, means, squares, greatest = zip(*taking, strict=True) if taking else [()] * 5
        return rows, [handles, (), means, squares, greatest if amsgrad else (), steps]

    def _row(self, p: Tensor, amsgrad: bool) -> tuple[int, ...]:
        """The handles of a parameter and its state. The state begins with the first gradient;
        before that, the handles are 0. -1 marks a state that is incomplete while there is no
        gradient.
        """
        names = ("step", "exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if amsgrad else ()))
        own = self.state.get(p)
        if not p._has_grad() and not (own and all(name in own for name in names)):
            return p._h, -1 if own else 0, 0, 0, 0
        if not own:
            begun = {"step": new_step(), **{name: pygrad.zeros_like(p) for name in names[1:]}}
            own = self.state[p]
            own.update(begun)  # all at once, so that an interrupt leaves no partial state
        handles = [own[name]._h for name in names]
        return p._h, *handles, *(() if amsgrad else (0,))


def _check_betas(betas: tuple[float | Tensor, float | Tensor], foreach: bool) -> None:
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
    if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if foreach:
            raise ValueError(
                f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element")


STEP = step_from_op(
    lambda options: "_fused_adamw_" if options["decoupled_weight_decay"] else "_fused_adam_",
    "lr beta1 beta2 weight_decay eps maximize amsgrad",
)
LISTS = "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps"
OPTIONS = "amsgrad beta1 beta2 lr weight_decay eps maximize"
FLAGS = "foreach capturable differentiable fused grad_scale found_inf has_complex"

adam, _single_tensor_adam, _multi_tensor_adam = forms(
    STEP, LISTS, OPTIONS, FLAGS + " decoupled_weight_decay", "adam"
)
_fused_adam = _single_tensor_adam
