"""Averages gradients over ranks while backward is running."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from ... import distributed as dist
from ... import futures as _futures
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...autograd.profiler import record_function
from ...autograd.variable import Variable
from ...distributed import _buckets
from ...distributed._flat import Flat
from ...distributed._grad_bucket import GradBucket
from ...distributed._progress import Work, poll
from . import _reducer_errors
from ._leaf_sums import LeafSums
from ._leaves import Leaves
from ._outputs import reachable_leaves
from ._statistics import Statistics

Hook = Callable[[Any, GradBucket], Any]


class Means(Protocol):
    """Combines buffers over the leaves of a step."""

    def end_leaf(self) -> None:
        """Records that a leaf of this rank is complete."""

    def finish(self) -> Callable[[], None]:
        """Starts the reduction; returns a function that waits for it and sets the buffers."""


class Bucket:
    """Parameters whose gradients are reduced together.

    Attributes:
        numbers: the indices of the parameters.
        sums: the gradients of this rank.
        left: the number of gradients still to come in this backward.
        skipped: whether no rank has a gradient for the bucket in this iteration.
        result: the destination of the sum over all ranks.
        work: the work that fills `result`.
    """

    def __init__(self, numbers: Sequence[int], parameters: Sequence[Tensor], leaves: Leaves):
        self.numbers = numbers
        self.parameters = [parameters[number] for number in numbers]
        self.sums = LeafSums(leaves.nodes, self.parameters)
        self.left = len(numbers)
        self.skipped = False
        self.result: Flat | None = None
        self.work: Any = None


class Reducer:
    """Collects gradients as they arrive, and gives each parameter the average over all leaves.

    Args:
        parameters: the parameters that require a gradient, the same on all ranks.
        names: their names, for errors.
        buckets: the indices of each bucket's parameters, in the order of reduction.
        limits: limits of buckets in the order in which gradients arrive, see `_buckets`.
        leaves: the leaves of the average.
        statistics: records events with their times.
        own_step: whether a leaf is one of several backwards in a step, and ``.grad`` gets gradients
            only after the last one; else each rank's leaf is the content of ``.grad``.
        find_unused: treat parameters that the outputs do not reach as ready.
        skip_unused: do not reduce buckets that no rank uses.
        as_views: make ``.grad`` a view of the bucket.
        static: each backward has the same gradients as the first.

    Attributes:
        leaf: the number of complete leaves of this rank in this step.
        iterations: the number of forward passes whose backward averages.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        buckets: Sequence[Sequence[int]],
        limits: Sequence[int],
        leaves: Leaves,
        statistics: Statistics,
        *,
        own_step: bool = False,
        find_unused: bool = False,
        skip_unused: bool = False,
        as_views: bool = False,
        static: bool = False,
    ) -> None:
        self.parameters, self.names, self.leaves = parameters, names, leaves
        self.own_step, self.find_unused, self.as_views = own_step, find_unused, as_views
        self.skip_unused, self.static = skip_unused, static
        self.statistics = statistics
        self._limits = limits
        self._make_buckets(buckets)
        self._comm_hook: tuple[Any, Hook] | None = None
        self._means: Means | None = None
        self._fired: list[int] | None = None
        self._told = False
        self.leaf = self.iterations = self._reductions = 0
        self._order: dict[int, None] = {}
        self._unused: list[int] = []
        self._is_unchanged, self._is_rebuilt = True, False
        self._active: Work | None = None
        self._older: dict[int, Tensor] = {}
        self._used = [False] * len(parameters)
        self._uses = pygrad.zeros(len(parameters), dtype=pygrad.int32)
        self._later: list[Any] = []
        self._expecting = self._begun = False
        self._hooks = []
        for number, each in enumerate(parameters):
            self._hooks.append(each.register_post_accumulate_grad_hook(self._hook_of(number)))
            if own_step:
                self._hooks.append(each.register_hook(self._stash_of(number)))
        self._reset()

    def _make_buckets(self, buckets: Sequence[Sequence[int]]) -> None:
        self.buckets = [Bucket(numbers, self.parameters, self.leaves) for numbers in buckets]
        self._place = {
            number: (bucket, place)
            for bucket in self.buckets
            for place, number in enumerate(bucket.numbers)
        }

    # ------------------------------------------------------------ interface of the module

    def combine_buffers(self, means: Means) -> None:
        """Sets the object that combines buffers together with the gradients."""
        self._means = means

    def set_comm_hook(self, state: Any, hook: Hook) -> None:
        """Sets the hook that reduces buckets.

        Raises:
            RuntimeError: there is a hook already.
        """
        if self._comm_hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._comm_hook = state, hook

    def check_finished(self) -> None:
        """Raises:
        RuntimeError: a backward has begun, and gradients are still missing.
        """
        if not self._begun:
            return
        missing = [number for number in range(len(self.parameters)) if not self._ready[number]]
        self._fail(
            _reducer_errors.unfinished_message(missing, self.names, self.static, self.find_unused)
        )

    def make_static(self) -> None:
        """Declares that each backward has the same gradients as the first.

        Raises:
            RuntimeError: a forward has already run.
        """
        if self.iterations:
            self._fail(_reducer_errors.TOO_LATE)
        self.static = True

    def divide_by(self, active: Work | None) -> None:
        """Sets the divisor of this iteration's gradients to the result of a work; None: to the
        number of leaves.
        """
        self._active = active

    def begin_forward(self) -> None:
        """Begins a forward whose backward will average gradients."""
        self.statistics.begin_forward(self.iterations, self._unused, self._order)

    def wait_at_end(self, futures: Sequence[Any]) -> None:
        """Makes the next backward wait for these futures."""
        self._later += futures

    def expect_backward(self, outputs: Sequence[Tensor]) -> None:
        """Begins the reduction of the gradients of the next backward.

        Args:
            outputs: the outputs of the forward pass, some of which will have a gradient.
        """
        self.check_finished()
        self._rebuild_buckets()
        self._reset()
        self.iterations += 1
        self._expecting = True
        before, self._unused = self._unused, []
        if self.static and self._fired is not None:
            self._unused = [number for number, times in enumerate(self._fired) if not times]
            self._left = list(self._fired)
        elif self.find_unused and not self.static:
            with record_function("torch.distributed.ddp.reducer::search_unused_parameters"):
                found = reachable_leaves(outputs)
            self._unused = [n for n, each in enumerate(self.parameters) if id(each) not in found]
            self._tell_if_all_used()
        if self.iterations > 1 and before != self._unused:
            self._is_unchanged = False
        self._skip_unused()

    def begin(self) -> None:
        """Called at the begin of backward, and again by the first gradient."""
        if self._begun or not self._expecting:
            return
        self._begun = True
        self.statistics.mark("backward_compute_time_start")
        if self._first_static:
            self._counts = [0] * len(self.parameters)
            Variable._execution_engine.queue_callback(self._end_first_static)
            return
        for number in self._unused:
            if self.own_step:
                self._stash(number)
            self._mark_ready(number)

    def stand_in(self) -> None:
        """Takes part in an iteration of the other ranks with zeros. This rank still gets the
        gradients, since its optimizer may have a share of the parameters.
        """
        self._rebuild_buckets()
        self._used = [False] * len(self.parameters)
        self._skip_unused(everything=True)
        for bucket in self.buckets:
            flat, _ = bucket.sums.begin()
            flat.tensor.zero_()
            bucket.sums.end()
            self._start(bucket)
        self._finish()

    def take_part(self) -> None:
        """Takes part in a reduction as a rank without leaves."""
        self._reset()
        for number in range(len(self.parameters)):
            self._stash(number)
        for bucket in self.buckets:
            self._start(bucket)
        self._finish()

    def remove_hooks(self) -> None:
        """Removes the hooks from the parameters."""
        for handle in self._hooks:
            handle.remove()

    def _get_local_used_map(self) -> Tensor:
        """The number of ranks that had a gradient for each parameter in the last iteration."""
        return self._uses

    def _ddp_graph_static(self) -> bool:
        """Whether all iterations left the same parameters unused."""
        return self._is_unchanged

    # ------------------------------------------------------------ before backward

    def _fail(self, text: str) -> NoReturn:
        self.statistics.error = text
        raise RuntimeError(text)

    def _rebuild_buckets(self) -> None:
        """After the first reduction, refills buckets in the order in which gradients arrived on the
        first rank of the group.
        """
        if self._is_rebuilt or self._reductions != 1:
            return
        if self.own_step or (self.find_unused and not self.static):
            return
        self._is_rebuilt = True
        order = pygrad.tensor(list({**self._order, **dict.fromkeys(self._place)}))
        if self.leaves.ranks > 1:
            dist.broadcast(order, group=self.leaves.group, group_src=0)
        buckets = _buckets.assign(self.parameters, self._limits, order.tolist())
        if buckets != [list(each.numbers) for each in self.buckets]:
            self._make_buckets(buckets)
        self.statistics.rebuilt(buckets)

    def _skip_unused(self, *, everything: bool = False) -> None:
        """Finds the buckets without a gradient on any rank."""
        if not self.skip_unused or not self.find_unused or self.static:
            return
        absent = set(range(len(self.parameters)) if everything else self._unused)
        mine = [used or n not in absent for n, used in enumerate(self._used)]
        wanted = pygrad.tensor(mine, dtype=pygrad.int32)
        dist.all_reduce(wanted, group=self.leaves.group)
        uses = wanted.tolist()
        for bucket in self.buckets:
            bucket.skipped = not any(uses[number] for number in bucket.numbers)

    # ------------------------------------------------------------ while backward runs

    def _reset(self) -> None:
        self._begun = False
        self._ready = [False] * len(self.parameters)
        self._touched = [False] * len(self.parameters)
        self._left = [1] * len(self.parameters)
        self._next = 0
        for bucket in self.buckets:
            bucket.left = len(bucket.numbers)

    @property
    def _first_static(self) -> bool:
        return self.static and self._fired is None

    def _hook_of(self, number: int) -> Callable[[Tensor], None]:
        return lambda _: self._gradient_came(number)

    def _stash_of(self, number: int) -> Callable[[Tensor], None]:
        """Makes a hook that sets earlier gradients in ``.grad`` aside, which are not part of the
        average.
        """
        return lambda _: self._stash(number) if self._expecting else None

    def _stash(self, number: int) -> None:
        parameter = self.parameters[number]
        if parameter._has_grad() and not self._touched[number]:
            older = parameter.grad
            assert older is not None
            self._older[number] = older.clone() if self.as_views else older
            parameter.grad = None

    def _gradient_came(self, number: int) -> None:
        if self.parameters[number]._has_grad():
            self._used[number] = True
        if not self._expecting:
            return
        self._touched[number] = True
        self.begin()
        if self._reductions == 0:
            self._order.setdefault(number)
        if self._first_static:
            self._counts[number] += 1
            return
        if self.static and not self._fired[number]:  # type: ignore[index]
            self._fail(_reducer_errors.CHANGED)
        self._left[number] -= 1
        if self._left[number] <= 0:
            self._mark_ready(number)
        poll()

    def _end_first_static(self) -> None:
        """Ends the first backward of a static graph, in which no bucket was started early."""
        for bucket in self.buckets:
            for number in bucket.numbers:
                self._mark_ready(number, at_end=True)
        self._fired = self._counts
        self._end_leaf()

    def _mark_ready(self, number: int, *, at_end: bool = False) -> None:
        if self._ready[number]:
            self._fail(_reducer_errors.twice(number, self.names[number]))
        self._ready[number] = True
        bucket, place = self._place[number]
        self._take(bucket, place)
        bucket.left -= 1
        if bucket.left:
            return
        while self._next < len(self.buckets) and not self.buckets[self._next].left:
            self._complete(self.buckets[self._next])
            self._next += 1
        if self._next == len(self.buckets) and not at_end:
            Variable._execution_engine.queue_callback(self._end_leaf)

    def _take(self, bucket: Bucket, place: int) -> None:
        """Moves a gradient to its view of the bucket."""
        parameter = bucket.parameters[place]
        grad = parameter.grad
        flat, added = bucket.sums.begin()
        view = flat.views[place]
        if grad is None:
            if not added:
                view.zero_()
            return
        if grad.is_sparse:
            raise NotImplementedError("DistributedDataParallel: sparse gradients")
        with pygrad.no_grad():
            if self.own_step:
                pygrad.add(view, grad, out=view) if added else view.copy_(grad)
                parameter.grad = None
            elif self._comm_hook is not None or self.leaves.ranks == 1:
                if grad is not view:
                    view.copy_(grad)
            else:
                pygrad.mul(grad, 1 / self._divisor(), out=view)

    def _divisor(self) -> float:
        if self._active is None:
            return self.leaves.total
        self._active.wait()
        return float(self._active.result()[0].item())

    def _complete(self, bucket: Bucket) -> None:
        with pygrad.no_grad():
            bucket.sums.end()
        if self.leaf + 1 == len(self.leaves.held):
            self._start(bucket)

    def _start(self, bucket: Bucket) -> None:
        if bucket is self.buckets[0]:
            self.statistics.mark("backward_comm_time_start")
        if bucket.skipped:
            bucket.result = bucket.sums.total()
            return
        if self._comm_hook is None:
            with pygrad.no_grad():
                bucket.result, bucket.work = self.leaves.sum(bucket.sums)
            return
        state, hook = self._comm_hook
        flat = bucket.result = bucket.sums.total()
        last = bucket is self.buckets[-1]
        place = self.buckets.index(bucket)
        shown = GradBucket(place, flat.tensor, flat.views, bucket.parameters, last)
        bucket.work = hook(state, shown)
        if not isinstance(bucket.work, _futures.Future):
            raise RuntimeError(
                "DDP communication hook's callback must return a torch.futures.Future object, but "
                f"got {type(bucket.work).__module__}.{type(bucket.work).__name__}"
            )

    # ------------------------------------------------------------ after backward

    def _end_leaf(self) -> None:
        self._expecting = self._begun = False
        if self._means is not None:
            self._means.end_leaf()
        self.leaf += 1
        if self.leaf == len(self.leaves.held):
            self._finish()

    def _finish(self) -> None:
        """Waits for all sums, and sets the gradient of each parameter."""
        self.statistics.mark("backward_compute_time_end")
        counting = self._start_to_count_uses()
        set_buffers = self._means.finish() if self._means else None
        with pygrad.no_grad():
            for bucket in self.buckets:
                self._wait(bucket)
            if counting is not None:
                counting.wait()
            if set_buffers is not None:
                set_buffers()
            self._give_all(None if counting is None else self._uses.tolist())
        for each in self._later:
            each.wait()
        self.statistics.record_reduction(sum(not bucket.skipped for bucket in self.buckets))
        self.leaf = 0
        self._reductions += 1
        self._active = None
        self._later.clear()
        self._older.clear()
        self._used = [False] * len(self.parameters)
        for bucket in self.buckets:
            bucket.result = bucket.work = None
            bucket.skipped = False
            bucket.sums.restart()

    def _give_all(self, uses: Sequence[int] | None) -> None:
        for bucket in self.buckets:
            for place, number in enumerate(bucket.numbers):
                if uses is None or uses[number]:
                    self._give(bucket, place, number)
                elif number in self._older:
                    self.parameters[number].grad = self._older[number]

    def _start_to_count_uses(self) -> Any:
        if not (self.find_unused or self.static):
            return None
        self._uses = pygrad.tensor(self._used, dtype=pygrad.int32)
        return dist.all_reduce(self._uses, group=self.leaves.group, async_op=True)

    def _wait(self, bucket: Bucket) -> None:
        assert bucket.result is not None
        if bucket.work is None:
            pass
        elif self._comm_hook is None:
            bucket.work.wait()
        else:
            found = bucket.work.wait()
            found = found[0] if isinstance(found, (list, tuple)) else found
            if not isinstance(found, Tensor):
                raise RuntimeError(f"Unable to cast {found} to Tensor")
            if found.data_ptr() != bucket.result.tensor.data_ptr():
                bucket.result.tensor.copy_(found.reshape(-1))
        if self.own_step and self.as_views:
            bucket.result.tensor.div_(self.leaves.total)

    def _give(self, bucket: Bucket, place: int, number: int) -> None:
        assert bucket.result is not None
        parameter, view = bucket.parameters[place], bucket.result.views[place]
        if self.as_views:
            older = self._older.get(number)
            if older is not None:
                view.add_(older)
            if parameter.grad is not view:
                parameter.grad = view
        elif self.own_step:
            mean = pygrad.div(view, self.leaves.total)
            older = self._older.get(number)
            parameter.grad = mean if older is None else older.add_(mean)
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)

    def _tell_if_all_used(self) -> None:
        if not self._unused and not self._told:
            self._told = True
            warnings.warn(_reducer_errors.ALL_USED, UserWarning, stacklevel=5)
