"""PowerSGD: gradients sent as products of two narrow matrices (Vogels, Karimireddy and Jaggi,
2019).

A matrix M becomes P Q^T. One step of a power iteration, P = M Q, then Q = M^T P with orthonormal
columns of P, is enough, since the error is added to the gradient of the next step.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from .... import linalg, nn
from ...._tensor import namespace as pygrad
from ...._tensor.tensor import Tensor
from ....futures import Future
from ... import _reductions
from ..._flat import Flat
from ..._grad_bucket import GradBucket
from ..._group import _get_default_group, get_world_size
from . import debugging_hooks
from . import default_hooks as default

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """The state of `powerSGD_hook` and `batched_powerSGD_hook`.

    Args:
        process_group: the ranks; the default group if it is None.
        matrix_approximation_rank: the number of columns of P and Q.
        start_powerSGD_iter: the number of first steps, in which gradients are sent unchanged.
        min_compression_rate: a matrix is sent unchanged unless it is more than this factor larger
            than P and Q.
        use_error_feedback: add the error of a step to the gradients of the next one.
        warm_start: start with Q of the step before; else draw it at random.
        orthogonalization_epsilon: added to norms, so that none is zero.
        random_seed: the seed of random draws.
        compression_stats_logging_frequency: steps between reports to the logger.
        batch_tensors_with_same_shape: ignored.

    Raises:
        ValueError: `start_powerSGD_iter` is too small.
    """

    __slots__ = [
        "batch_tensors_with_same_shape",
        "compression_stats_logging_frequency",
        "error_dict",
        "iter",
        "matrix_approximation_rank",
        "min_compression_rate",
        "next_stats_report",
        "orthogonalization_epsilon",
        "p_memory_dict",
        "process_group",
        "q_memory_dict",
        "rng",
        "start_powerSGD_iter",
        "total_numel_after_compression",
        "total_numel_before_compression",
        "use_error_feedback",
        "warm_start",
    ]

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = random.Random(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.p_memory_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        logger.warning("NOTE: Process group is not serializable and excluded from a saved state.")
        return {name: getattr(self, name) for name in self.__slots__ if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        logger.warning(
            "NOTE: Process group will be set to a default group (i.e. the world size)."
            "                If a different group is desired, please set `self.process_group` "
            "after PowerSGD state is loaded."
        )
        self.process_group = _get_default_group()
        for name, value in state.items():
            setattr(self, name, value)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts steps by their last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_powerSGD_iter:
            logger.info("Start to apply PowerSGD after %s iterations.", self.iter)

    def compression_stats(self) -> tuple[float, int, int]:
        """The compression rate, the number of elements, and the number of sent elements."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def _report(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            logger.info(
                "Compression stats: iter %s, total before compression %s, total after compression "
                "%s, rate %s",
                self.iter,
                before,
                after,
                rate,
            )
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency

    def _rank_of(self, matrix: Tensor) -> int:
        return int(min(*matrix.shape, self.matrix_approximation_rank))

    def _is_worth_it(self, matrix: Tensor) -> bool:
        """Whether to send a matrix as P and Q. Counts the elements sent."""
        sent = sum(matrix.shape) * self._rank_of(matrix)
        is_worth_it = sent * self.min_compression_rate < matrix.numel()
        self.total_numel_before_compression += matrix.numel()
        self.total_numel_after_compression += sent if is_worth_it else matrix.numel()
        return is_worth_it


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients by PowerSGD, each matrix by itself.

    Args:
        state: the state of the hook.
        bucket: the gradients.
    """
    return _compress_bucket(state, bucket, _approximate_each)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients by PowerSGD, a whole bucket as one square matrix: less exact.

    Args:
        state: the state of the hook.
        bucket: the gradients.
    """
    return _compress_bucket(state, bucket, _approximate_whole)


def _compress_bucket(
    state: PowerSGDState,
    bucket: GradBucket,
    approximate: Callable[[PowerSGDState, GradBucket], None],
) -> Future[Tensor]:
    """Averages gradients unchanged in the first steps, later approximately, with error feedback."""
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(state.process_group, bucket.buffer())
    flat = bucket.buffer()
    wanted = _add_last_error(state, bucket.index(), flat)
    approximate(state, bucket)
    _keep_error(state, bucket.index(), wanted, flat)
    state.maybe_increase_iter(bucket)
    return debugging_hooks.noop_hook(None, bucket)


def _approximate_each(state: PowerSGDState, bucket: GradBucket) -> None:
    matrices: list[Tensor] = []
    others: list[Tensor] = []
    for each in bucket.gradients():
        matrix = each.view(each.shape[0], -1) if each.dim() > 1 else each[None]
        is_matrix = each.dim() > 1 and state._is_worth_it(matrix)
        (matrices if is_matrix else others).append(matrix)
    state._report(bucket)
    if others:
        as_is = Flat(others)
        as_is.gather(others)
        _mean(as_is.tensor, state)
        as_is.scatter(others)
    _approximate(state, bucket.index(), matrices)


def _approximate_whole(state: PowerSGDState, bucket: GradBucket) -> None:
    flat = bucket.buffer()
    side = math.ceil(math.sqrt(flat.numel()))
    square = nn.functional.pad(flat, (0, side * side - flat.numel())).view(side, side)
    state.total_numel_before_compression += flat.numel()
    state.total_numel_after_compression += 2 * side * state._rank_of(square)
    state._report(bucket)
    _approximate(state, bucket.index(), [square])
    flat.copy_(square.view(-1)[: flat.numel()])


def _add_last_error(state: PowerSGDState, number: int, flat: Tensor) -> Tensor | None:
    """Adds the error of the step before; returns a copy of the sum, to compute the new error."""
    if not state.use_error_feedback:
        return None
    if number in state.error_dict:
        flat.add_(state.error_dict[number])
    return flat.clone()


def _keep_error(state: PowerSGDState, number: int, wanted: Tensor | None, found: Tensor) -> None:
    if wanted is not None:
        state.error_dict[number] = wanted - found


def _sum(tensor: Tensor, state: PowerSGDState) -> Tensor:
    """The sum over ranks. It is synchronous, so that all ranks send their messages in one order."""
    _reductions.all_reduce(tensor, group=state.process_group)
    return tensor


def _mean(tensor: Tensor, state: PowerSGDState) -> Tensor:
    return _sum(tensor.div_(get_world_size(state.process_group)), state)


def _approximate(state: PowerSGDState, number: int, matrices: Sequence[Tensor]) -> None:
    """Replaces each matrix by an approximation of its mean over ranks."""
    if not matrices:
        return
    narrow = [(each, state._rank_of(each)) for each in matrices]
    left = Flat([pygrad.empty(each.shape[0], rank, dtype=each.dtype) for each, rank in narrow])
    right = Flat([pygrad.empty(each.shape[1], rank, dtype=each.dtype) for each, rank in narrow])
    if state.warm_start and number in state.q_memory_dict:
        right.tensor.copy_(state.q_memory_dict[number])
    else:
        generator = pygrad.Generator().manual_seed(state.rng.randrange(1_000_000_000))
        right.tensor.normal_(generator=generator)
    for each, p, q in zip(matrices, left.views, right.views, strict=True):
        _orthogonalize(q, state.orthogonalization_epsilon)
        p.copy_(each @ q)
    _sum(left.tensor, state)
    for each, p, q in zip(matrices, left.views, right.views, strict=True):
        _orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(each.t() @ p)
    _mean(right.tensor, state)
    for each, p, q in zip(matrices, left.views, right.views, strict=True):
        each.copy_(p @ q.t())
    if state.warm_start:
        state.p_memory_dict[number], state.q_memory_dict[number] = left.tensor, right.tensor


def _orthogonalize(matrices: Tensor, epsilon: float = 0) -> None:
    """Makes the columns of a matrix orthonormal, in place."""
    columns = matrices.shape[1]
    if columns > 2 and matrices.dtype in (pygrad.float32, pygrad.float64):
        matrices.copy_(linalg.qr(matrices)[0])
        return
    for place in range(columns):
        column, rest = matrices[:, place : place + 1], matrices[:, place + 1 :]
        column /= column.norm() + epsilon
        if place + 1 < columns:
            rest -= (column * rest).sum(dim=0, keepdim=True) * column
