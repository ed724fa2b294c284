"""Training with different numbers of batches on ranks: a rank without further batches takes part in
the collectives of the others until all have ended.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from ..._tensor import namespace as pygrad
from .._group import get_rank
from .._progress import Work
from .._reductions import all_reduce

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000
"""The number of batches by which a rank may lag before a warning."""


class JoinHook:
    """The actions of a rank after its last batch. Subclasses override the methods."""

    def main_hook(self) -> None:
        """Called for each further batch of other ranks. Takes part in the collectives that they run
        for the batch.
        """

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when all ranks have ended.

        Args:
            is_last_joiner: whether this rank was among the last to end.
        """


class _JoinConfig(NamedTuple):
    """The settings of the `Join` in which a `Joinable` is used."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """The settings of an object outside of any `Join`."""
        return _JoinConfig()


class Joinable(ABC):
    """An object that supports `Join`. It calls `Join.notify_join_context` before the collectives of
    each batch.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Makes the hook for the time after this rank's last batch.

        Args:
            kwargs: the extra keyword arguments of `Join`.
        """

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that `Join` exchanges."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The process group."""


class Join:
    """A context in which ranks may have different numbers of batches::

        with Join([ddp, optimizer]):
            for x in batches:
                ddp(x).sum().backward()
                optimizer.step()

    Args:
        joinables: the objects that run collectives for each batch; their hooks are called in order.
        enable: False: do nothing, since all ranks have the same number of batches.
        throw_on_early_termination: raise on all ranks as soon as one has ended.
        kwargs: handed to each `Joinable.join_hook`.

    Raises:
        ValueError: there are no joinables, or they belong to different groups.
        RuntimeError: from within, a rank has ended and `throw_on_early_termination`.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        for each in joinables:
            is_first = each is joinables[0]
            each._join_config = _JoinConfig(enable, throw_on_early_termination, is_first)
        self._process_group = joinables[0].join_process_group
        if any(each.join_process_group != self._process_group for each in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._device = joinables[0].join_device
        self._rank = get_rank(self._process_group)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._enable or kind is not None:
            return
        behind = 0
        while self._count(0):
            if self._throw_on_early_termination:
                self._count(1)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            if behind == _MANY + 1:
                self._warn()
            for hook in self._join_hooks:
                hook.main_hook()
            behind += 1
        for hook in self._join_hooks:
            hook.post_hook(behind == 0)

    def _count(self, mine: int) -> float:
        """The sum over ranks of each rank's number."""
        number = pygrad.full((1,), float(mine), device=self._device)
        all_reduce(number, group=self._process_group)
        return float(number.item())

    def _warn(self) -> None:
        warnings.warn(
            f"Detected uneven input skew of greater than {_MANY}. This means that rank "
            f"{self._rank} has at least {_MANY} fewer inputs than other currently-active ranks. "
            "This level of skew could lead to performance degradation during training.",
            stacklevel=3,
        )

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tells ranks that have ended that this one has not. Called before the collectives of each
        batch; only the first of several joinables sends.

        Returns:
            Work whose result is the number of ranks that have not ended; None if nothing is sent.

        Raises:
            RuntimeError: a rank has ended and `throw_on_early_termination`.
        """
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = all_reduce(pygrad.ones(1, device=device), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = pygrad.zeros(1, device=device)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
