"""An optimizer whose state is divided: each rank keeps the state of its share of the parameters."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.functions import typename
from ..._tensor.tensor import Tensor
from ...optim.optimizer import Optimizer
from .. import _exchanges, _objects
from .._flat import Flat
from .._group import _get_default_group, get_global_rank, get_rank, get_world_size
from .._module_states import broadcast_all
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]

logger = logging.getLogger(__name__)

Group = dict[str, Any]


class _ZeROJoinHook(JoinHook):
    """On a rank without batches, continues to update its share."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Divides the parameters among ranks. Each rank updates its share by an optimizer of the given
    class, which has state for that share alone, and then sends it to all others.

    Gradients must be the same on all ranks, as DistributedDataParallel leaves them. Parameters are
    assigned in order of size, the largest first, each to the rank with the fewest elements. The
    results equal those of the optimizer alone bit for bit, for any number of ranks, if it updates
    each parameter independently.

    Args:
        params: the parameters or groups of them, of one dtype, the same on all ranks.
        optimizer_class: the class of the optimizer of a share.
        process_group: the ranks; the default group if it is None.
        parameters_as_bucket_view: make the parameters of each rank views of one tensor, which is
            sent without a copy.
        overlap_with_ddp: not supported.
        defaults: arguments of the optimizer.

    Attributes:
        optim: the optimizer of this rank's share.

    Raises:
        TypeError, ValueError: `params` are no parameters, or of several dtypes.
        NotImplementedError: `overlap_with_ddp`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp")
        given = _check_params(params)
        self._shares: list[list[Group]] | None = None
        self.optim: Any = None
        Optimizer.__init__(self, given, defaults)
        Joinable.__init__(self)
        self.process_group = _get_default_group() if process_group is None else process_group
        self.world_size, self.rank = get_world_size(self.process_group), get_rank(process_group)
        self.global_rank = get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._buckets: list[Flat | None] = []
        self._all_state_dicts: list[dict[str, Any]] = []
        self.optim = optimizer_class(self._partition_parameters()[self.rank], **defaults)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._build_buckets()

    # ------------------------------------------------------------ shares

    def _all_params(self) -> list[Tensor]:
        return [each for group in self.param_groups for each in group["params"]]

    def _partition_parameters(
        self, params_per_rank: list[list[Tensor]] | None = None
    ) -> list[list[Group]]:
        """The parameters of each rank, as many groups as the optimizer has, each with a part.

        Args:
            params_per_rank: the share of each rank, instead of the default assignment.

        Raises:
            RuntimeError: shares are given, and there are several groups.
        """
        if params_per_rank is not None:
            if len(self.param_groups) != 1:
                raise RuntimeError(
                    "Specifying `params_per_rank` only supported with a single parameter group"
                )
            self._shares = [[{**self.param_groups[0], "params": part}] for part in params_per_rank]
        if self._shares is None:
            sizes = [0] * self.world_size
            self._shares = [[] for _ in sizes]
            for group in self.param_groups:
                parts: list[list[Tensor]] = [[] for _ in sizes]
                for each in sorted(group["params"], key=lambda t: -t.numel()):
                    least = sizes.index(min(sizes))
                    parts[least].append(each)
                    sizes[least] += each.numel()
                for share, part in zip(self._shares, parts, strict=True):
                    share.append({**group, "params": part})
        return self._shares

    def _params_of(self, rank: int) -> list[Tensor]:
        return [p for group in self._partition_parameters()[rank] for p in group["params"]]

    @property
    def _param_to_rank(self) -> dict[Tensor, int]:
        """The rank that owns each parameter."""
        return {each: rank for rank in range(self.world_size) for each in self._params_of(rank)}

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters and divides them among the ranks.

        Args:
            param_group: ``params`` and options.
        """
        super().add_param_group(param_group)
        self._shares = None
        if self.optim is not None:
            self.optim.add_param_group(self._partition_parameters()[self.rank][-1])
            self._build_buckets()

    def _build_buckets(self) -> None:
        """Makes the trained parameters of each rank views of one tensor."""
        self._trained = [each.requires_grad for each in self._all_params()]
        if not self.parameters_as_bucket_view:
            return
        self._buckets = []
        for rank in range(self.world_size):
            mine = self._params_of(rank)
            trained = [each for each in mine if each.requires_grad]
            for each in mine:
                if not each.requires_grad:
                    each.data = each.detach().clone()
            bucket = Flat(trained) if trained else None
            if bucket is not None:
                with pygrad.no_grad():
                    bucket.gather(trained)
                for each, view in zip(trained, bucket.views, strict=True):
                    each.data = view
            self._buckets.append(bucket)

    # ------------------------------------------------------------ a step

    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> float | None:
        """Updates this rank's share, then sends all shares to all ranks.

        Args:
            closure: see the optimizer; also for `kwargs` and the result.
        """
        Join.notify_join_context(self)
        if self._trained != [each.requires_grad for each in self._all_params()]:
            logger.warning(
                "ZeroRedundancyOptimizer detected that the trainable parameters changed; "
                "rebuilding the parameter buckets if enabled"
            )
            self._build_buckets()
        _copy_options(self.param_groups, self.optim.param_groups)
        given = {} if closure is None else {"closure": closure}
        loss: float | None = self.optim.step(**given, **kwargs)
        _copy_options(self.optim.param_groups, self.param_groups)
        self._sync_params()
        return loss

    def _sync_params(self) -> None:
        if not self.parameters_as_bucket_view:
            for rank in range(self.world_size):
                broadcast_all(self._params_of(rank), self.process_group, rank)
            return
        works = [
            _exchanges.broadcast(
                bucket.tensor, group=self.process_group, group_src=rank, async_op=True
            )
            for rank, bucket in enumerate(self._buckets)
            if bucket is not None
        ]
        for work in works:
            assert work is not None
            work.wait()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Makes the hook for after this rank's last batch, which steps whenever the others do."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self._all_params()[0].device

    @property
    def join_process_group(self) -> Any:
        """The process group."""
        return self.process_group

    # ------------------------------------------------------------ state

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers the state of all ranks on one rank, where `state_dict` can then be called. All
        ranks must call this.

        Args:
            to: the rank that receives the state.
        """
        _copy_options(self.param_groups, self.optim.param_groups)
        found: list[Any] | None = [None] * self.world_size if self.rank == to else None
        _objects.gather_object(
            self.optim.state_dict(), found, group=self.process_group, group_dst=to
        )
        self._all_state_dicts = found or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all ranks, in the form of the optimizer alone.

        Raises:
            RuntimeError: `consolidate_state_dict` did not gather it on this rank.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to "
                "save the global state."
            )
        numbers = {id(each): number for number, each in enumerate(self._all_params())}
        state = {
            numbers[id(each)]: part["state"][place]
            for rank, part in enumerate(self._all_state_dicts)
            for place, each in enumerate(self._params_of(rank))
            if place in part["state"]
        }
        return {**super().state_dict(), "state": dict(sorted(state.items()))}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state of all ranks; keeps this rank's share.

        Args:
            state_dict: a result of `state_dict` for the same parameters, with any number of ranks.
        """
        super().load_state_dict({**state_dict, "state": {}})
        numbers = {id(each): number for number, each in enumerate(self._all_params())}
        mine = {
            place: state_dict["state"][numbers[id(each)]]
            for place, each in enumerate(self._params_of(self.rank))
            if numbers[id(each)] in state_dict["state"]
        }
        self.optim.load_state_dict({**self.optim.state_dict(), "state": copy.deepcopy(mine)})
        _copy_options(self.param_groups, self.optim.param_groups)


def _copy_options(source: Sequence[Group], target: Sequence[Group]) -> None:
    """Copies the options of groups, such as the learning rate, to other groups."""
    for one, other in zip(source, target, strict=True):
        other.update((name, value) for name, value in one.items() if name != "params")


def _check_params(params: Iterable[Any]) -> list[Any]:
    """The parameters or groups as a list."""
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        kind = "Tensors" if isinstance(params, Tensor) else "Tensors or dicts"
        raise TypeError(
            f"`params` argument should be an iterable of {kind}, but got {typename(params)}"
        )
    given = list(params)
    if not given:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    if not (
        all(isinstance(each, Tensor) for each in given)
        or all(isinstance(each, dict) for each in given)
    ):
        raise TypeError("`params` argument should be an iterable of Tensors or dicts")
    if isinstance(given[0], dict):
        if not all("params" in each for each in given):
            raise ValueError(
                "Each parameter group passed-in via `params` must have a 'params' key mapping to "
                "the parameters in the group"
            )
        given = [{**each, "params": _as_list(each["params"])} for each in given]
    tensors = [t for each in given for t in (each["params"] if isinstance(each, dict) else [each])]
    _check_types(tensors)
    return given


def _as_list(params: Any) -> list[Any]:
    return [params] if isinstance(params, Tensor) else list(params)


def _check_types(tensors: Sequence[Tensor]) -> None:
    first = tensors[0].type()
    only = "ZeroRedundancyOptimizer only supports using the same dense type for all parameters"
    if tensors[0].is_sparse:
        raise ValueError(f"{only} but got {first}")
    for each in tensors:
        if each.type() != first:
            raise ValueError(f"{only} but got both {first} and {each.type()}")
