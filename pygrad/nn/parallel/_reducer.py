"""Gradients averaged over ranks while backward still runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ... import distributed as dist
from ..._package import pygrad
from ..._tensor import Tensor
from ...autograd.variable import Variable
from ...distributed import _tree
from ...distributed._collectives import sum_leaves
from ...distributed._grad_bucket import GradBucket
from ...distributed._progress import poll
from ._flat import Flat
from ._leaf_sums import LeafSums

Hook = Callable[[Any, GradBucket], Any]


class Means(Protocol):
    """What combines buffers."""

    def end_leaf(self) -> None:
        """A leaf of this rank is complete."""

    def finish(self) -> Callable[[], None]:
        """Starts to add up; gives what waits and sets the buffers."""


class Leaves:
    """What is added up in a step, and which part of it this rank has.

    Args:
        total: how many leaves there are on all ranks; None: one a rank.
        deterministic: they are added by the fixed tree, else by a ring.
        group: the ranks.
    """

    def __init__(self, total: int | None, deterministic: bool, group: Any) -> None:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        self.total = ranks if total is None else total
        self.held = _tree.block(rank, ranks, self.total)
        self.ranks = ranks
        self.deterministic = deterministic
        self.group = group
        if deterministic:
            self.nodes = _tree.cover(self.held, self.total)
        else:
            self.nodes = [(self.held.start, self.held.stop)] if self.held else []

    def sum(self, sums: LeafSums) -> tuple[Flat, Any]:
        """Starts to add up: where the sum of all ranks will be, and the work that is under way."""
        out = sums.total()
        if self.ranks == 1:
            return out, None
        if self.deterministic:
            partials = [flat.tensor for flat in sums.sums]
            work = sum_leaves(out.tensor, partials, self.total, self.group, async_op=True)
        else:
            if not sums.sums:
                out.tensor.zero_()
            work = dist.all_reduce(out.tensor, group=self.group, async_op=True, deterministic=False)
        return out, work


class Bucket:
    """Parameters whose gradients are reduced together.

    Attributes:
        numbers: which parameters.
        sums: the gradients of this rank.
        left: how many gradients are still to come in this backward.
        result: where the sum of all ranks is, or will be.
        work: what to wait for before that.
    """

    def __init__(self, numbers: Sequence[int], parameters: Sequence[Tensor], leaves: Leaves):
        self.numbers = numbers
        self.parameters = [parameters[number] for number in numbers]
        self.sums = LeafSums(leaves.nodes, self.parameters)
        self.left = len(numbers)
        self.result: Flat | None = None
        self.work: Any = None


class Reducer:
    """Takes gradients as they come, and gives each parameter the average over all leaves.

    Args:
        parameters: those that require a gradient, the same on all ranks.
        names: their names, for errors.
        buckets: the numbers of the parameters of each bucket, in the order of reduction.
        leaves: what is averaged.
        own_step: a leaf is one backward of several in a step, and gradients are not in ``.grad``
            until the last one; else each rank's leaf is all that is in ``.grad``.
        find_unused: parameters that the outputs do not reach count as ready.
        as_views: ``.grad`` is a view of the bucket.
        static: what fires in the first backward fires in all others.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        buckets: Sequence[Sequence[int]],
        leaves: Leaves,
        *,
        own_step: bool = False,
        find_unused: bool = False,
        as_views: bool = False,
        static: bool = False,
    ) -> None:
        self.parameters, self.names, self.leaves = parameters, names, leaves
        self.own_step, self.find_unused, self.as_views = own_step, find_unused, as_views
        self.static = static
        self.buckets = [Bucket(numbers, parameters, leaves) for numbers in buckets]
        self._place = {
            number: (bucket, place)
            for bucket in self.buckets
            for place, number in enumerate(bucket.numbers)
        }
        self._comm_hook: tuple[Any, Hook] | None = None
        self._means: Means | None = None
        self._fired: list[int] | None = None
        self._told = False
        self.leaf = 0
        """How many leaves of this rank are complete in this step."""
        self._older: dict[int, Tensor] = {}
        self._used = [False] * len(parameters)
        self._expecting = self._begun = False
        self._hooks = []
        for number, each in enumerate(parameters):
            self._hooks.append(each.register_post_accumulate_grad_hook(self._hook_of(number)))
            if own_step:
                self._hooks.append(each.register_hook(self._stash_of(number)))
        self._reset()

    # ------------------------------------------------------------ what the module calls

    def combine_buffers(self, means: Means) -> None:
        """Buffers are combined with the gradients from now on."""
        self._means = means

    def set_comm_hook(self, state: Any, hook: Hook) -> None:
        """A hook reduces buckets from now on.

        Raises:
            RuntimeError: there is one.
        """
        if self._comm_hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self._comm_hook = state, hook

    def check_finished(self) -> None:
        """Raises:
        RuntimeError: a backward has begun and has not brought all gradients.
        """
        if not self._begun:
            return
        if self.static:
            why = (
                "This error indicates that your training graph has changed in this iteration, "
                "e.g., one parameter is used in first iteration, but then got unused in the second "
                "iteration. this is not compatible with static_graph set to True."
            )
        else:
            why = (
                "This error indicates that your module has parameters that were not used in "
                "producing loss. You can enable unused parameter detection by passing the keyword "
                "argument `find_unused_parameters=True` to "
                "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` "
                "function outputs participate in calculating loss. \nIf you already have done the "
                "above, then the distributed data parallel module wasn't able to locate the output "
                "tensors in the return value of your module's `forward` function. Please include "
                "the loss function and the structure of the return value of `forward` of your "
                "module when reporting this issue (e.g. list, dict, iterable)."
            )
        rank = dist.get_rank()
        missing = [number for number in range(len(self.parameters)) if not self._ready[number]]
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. "
            f"{why}\nParameter indices which did not receive grad for rank {rank}: "
            f"{' '.join(map(str, missing))}\nParameters which did not receive grad for rank "
            f"{rank}: {', '.join(self.names[number] for number in missing)}"
        )

    def expect_backward(self, outputs: Iterable[Tensor]) -> None:
        """Gradients that come from now on are reduced.

        Args:
            outputs: of the forward pass, of which some will have a gradient; none: all parameters
                will.
        """
        self.check_finished()
        self._reset()
        self._expecting = True
        self._unused: list[int] = []
        if self.static and self._fired is not None:
            self._unused = [number for number, times in enumerate(self._fired) if not times]
            self._left = list(self._fired)
        elif self.find_unused and not self.static:
            reached = _reached(outputs)
            self._unused = [n for n, each in enumerate(self.parameters) if id(each) not in reached]
            self._tell_if_all_used()
        if self.find_unused or self.static:
            for each in outputs:
                if each.grad_fn is not None:
                    each.register_hook(lambda _: self._begin())

    def take_part(self) -> None:
        """Reduces, on a rank without leaves, what the others have."""
        self._reset()
        for number in range(len(self.parameters)):
            self._stash(number)
        for bucket in self.buckets:
            self._start(bucket)
        self._finish()

    def remove_hooks(self) -> None:
        """The parameters are as they were."""
        for handle in self._hooks:
            handle.remove()

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
        """Takes away what ``.grad`` has from before this step, which is no part of the average."""
        return lambda _: self._stash(number) if self._expecting else None

    def _stash(self, number: int) -> None:
        parameter = self.parameters[number]
        if parameter._has_grad() and not self._touched[number]:
            older = parameter.grad
            assert older is not None
            self._older[number] = older.clone() if self.as_views else older
            parameter.grad = None

    def _gradient_came(self, number: int) -> None:
        self._used[number] = True
        if not self._expecting:
            return
        self._touched[number] = True
        self._begin()
        if self._first_static:
            self._counts[number] += 1
            return
        if self.static and not self._fired[number]:  # type: ignore[index]
            raise RuntimeError(
                "Your training graph has changed in this iteration, e.g., one parameter is unused "
                "in first iteration, but then got used in the second iteration. this is not "
                "compatible with static_graph set to True."
            )
        self._left[number] -= 1
        if self._left[number] <= 0:
            self._mark_ready(number)
        poll()

    def _begin(self) -> None:
        """Once in a backward, before anything else."""
        if self._begun or not self._expecting:
            return
        self._begun = True
        if self._first_static:
            self._counts = [0] * len(self.parameters)
            Variable._execution_engine.queue_callback(self._end_first_static)
            return
        for number in self._unused:
            if self.own_step:
                self._stash(number)
            self._mark_ready(number)

    def _end_first_static(self) -> None:
        """Nothing was started early in the first backward of a static graph."""
        for bucket in self.buckets:
            for number in bucket.numbers:
                self._mark_ready(number, at_end=True)
        self._fired = self._counts
        self._end_leaf()

    def _mark_ready(self, number: int, *, at_end: bool = False) -> None:
        if self._ready[number]:
            raise RuntimeError(self._twice(number))
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
        """Moves a gradient to its place in the bucket."""
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
                pygrad.mul(grad, 1 / self.leaves.total, out=view)

    def _complete(self, bucket: Bucket) -> None:
        with pygrad.no_grad():
            bucket.sums.end()
        if self.leaf + 1 == len(self.leaves.held):
            self._start(bucket)

    def _start(self, bucket: Bucket) -> None:
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
        if not isinstance(bucket.work, pygrad.futures.Future):
            raise RuntimeError(
                "DDP communication hook's callback must return a torch.futures.Future object, but "
                f"got {type(bucket.work).__module__}.{type(bucket.work).__name__}"
            )

    # ------------------------------------------------------------ when it has run

    def _end_leaf(self) -> None:
        self._expecting = self._begun = False
        if self._means is not None:
            self._means.end_leaf()
        self.leaf += 1
        if self.leaf == len(self.leaves.held):
            self._finish()

    def _finish(self) -> None:
        """Waits for all sums, and gives each parameter its gradient."""
        used = self._start_to_count_uses()
        set_buffers = self._means.finish() if self._means else None
        with pygrad.no_grad():
            for bucket in self.buckets:
                self._wait(bucket)
            if used is not None:
                used[1].wait()
            if set_buffers is not None:
                set_buffers()
            for bucket in self.buckets:
                for place, number in enumerate(bucket.numbers):
                    if used is None or used[0][number].item():
                        self._give(bucket, place, number)
                    elif number in self._older:
                        self.parameters[number].grad = self._older[number]
        self.leaf = 0
        self._older.clear()
        self._used = [False] * len(self.parameters)
        for bucket in self.buckets:
            bucket.result = bucket.work = None
            bucket.sums.restart()

    def _start_to_count_uses(self) -> tuple[Tensor, Any] | None:
        if not (self.find_unused or self.static):
            return None
        used = pygrad.tensor(self._used, dtype=pygrad.int32)
        return used, dist.all_reduce(used, group=self.leaves.group, async_op=True)

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

    # ------------------------------------------------------------ texts

    def _tell_if_all_used(self) -> None:
        if not self._unused and not self._told:
            self._told = True
            warnings.warn(
                "find_unused_parameters=True was specified in DDP constructor, but did not find "
                "any unused parameters in the forward pass. This flag results in an extra "
                "traversal of the autograd graph every iteration,  which can adversely affect "
                "performance. If your model indeed never has any unused parameters in the forward "
                "pass, consider turning this flag off. Note that this warning may be a false "
                "positive if your model has flow control causing later iterations to have unused "
                "parameters.",
                UserWarning,
                stacklevel=5,
            )

    def _twice(self, number: int) -> str:
        return (
            "Expected to mark a variable ready only once. This error is caused by one of the "
            "following reasons: 1) Use of a module parameter outside the `forward` function. "
            "Please make sure model parameters are not shared across multiple concurrent "
            "forward-backward passes. or try to use _set_static_graph() as a workaround if this "
            "module graph does not change during training loop.2) Reused parameters in multiple "
            "reentrant backward passes. For example, if you use multiple `checkpoint` functions to "
            "wrap the same part of your model, it would result in the same set of parameters been "
            "used by different reentrant backward passes multiple times, and hence marking a "
            "variable ready multiple times. DDP does not support such use cases in default. You "
            "can try to use _set_static_graph() as a workaround if your module graph does not "
            f"change over iterations.\nParameter at index {number} with name {self.names[number]} "
            "has been marked as ready twice. This means that multiple autograd engine  hooks have "
            "fired for this particular parameter during this iteration."
        )


def _reached(outputs: Iterable[Tensor]) -> set[int]:
    """The ids of the leaves that backward from these outputs would reach."""
    found: set[int] = set()
    seen: set[Any] = set()
    left: list[Any] = []
    for each in outputs:
        if each.grad_fn is not None:
            left.append(each.grad_fn)
        elif each.requires_grad:
            found.add(id(each))
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name().endswith("AccumulateGrad"):
            found.add(id(node.variable))
        left += [following for following, _ in node.next_functions if following is not None]
    return found
