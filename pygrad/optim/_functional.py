"""All optimizers as functions of lists, and the function of `SparseAdam`."""

from __future__ import annotations

from typing import Any

from .._tensor.tensor import Tensor
from .adadelta import adadelta as adadelta
from .adagrad import _make_sparse as _make_sparse
from .adagrad import adagrad as adagrad
from .adam import adam as adam
from .adamax import adamax as adamax
from .adamw import adamw as adamw
from .asgd import asgd as asgd
from .nadam import nadam as nadam
from .radam import radam as radam
from .rmsprop import rmsprop as rmsprop
from .rprop import rprop as rprop
from .sgd import sgd as sgd

__all__: list[str] = []


def sparse_adam(
    params: list[Tensor],
    grads: list[Any],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    maximize: bool,
) -> None:
    """Adam's step for the rows of sparse gradients; all other rows stay unchanged.

    Args:
        params, exp_avgs, exp_avg_sqs: dense; changed in place.
        grads: sparse, with the sizes of the parameters.
        state_steps: the number of steps of each parameter, including this one.
        eps, beta1, beta2, lr, maximize: see `SparseAdam`.
    """
    for place, parameter in enumerate(params):
        grad = (-grads[place] if maximize else grads[place]).coalesce()
        where, values = tuple(grad._indices()), grad._values()
        if values.numel() == 0:
            continue
        mean, square, step = exp_avgs[place], exp_avg_sqs[place], state_steps[place]
        old_mean, old_square = mean[where], square[where]
        to_mean = values.sub(old_mean).mul_(1 - beta1)
        to_square = values.pow(2).sub_(old_square).mul_(1 - beta2)
        mean.index_put_(where, to_mean, accumulate=True)
        square.index_put_(where, to_square, accumulate=True)
        scale = to_square.add_(old_square).sqrt_().add_(eps)
        rate = float(lr) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        update = to_mean.add_(old_mean).mul_(-rate).div_(scale)
        parameter.index_put_(where, update, accumulate=True)
