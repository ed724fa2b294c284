"""A module trained by several processes, which share each batch."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ... import distributed as dist
from ..._package import pygrad
from ..._tensor import Tensor
from ..._tree import flatten, map_leaves
from ...autograd.function import Function
from ...autograd.profiler import record_function
from ...distributed._grad_bucket import GradBucket
from ..modules.module import Module
from ..parameter import UninitializedParameter
from . import _buckets
from ._buffer_means import BufferMeans
from ._module_states import broadcast_all, verify_shapes
from ._reducer import Leaves, Reducer

__all__ = ["DistributedDataParallel"]

_BROADCAST_BUFFERS = (
    "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
    "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you "
    "rely on buffers NOT being synced at init (e.g. rank-local buffers), keep using "
    "`broadcast_buffers=False` until `init_sync_buffers` is available."
)


class DistributedDataParallel(Module):
    """Calls the module that it holds, and averages its gradients over all processes in backward.

    All processes start with the parameters and buffers of rank 0. Each then runs forward and
    backward on its part of the batch. Gradients are collected in buckets; a bucket is averaged as
    soon as it is full, while backward goes on. After `backward` each process has the same
    gradients.

    With ``micro_batches=M`` the batch consists of M micro-batches, whoever computes them, and the
    gradient is the mean of theirs::

        for i in ddp.micro_batches_of_rank():
            loss_of(ddp(inputs[i]), targets[i]).backward()
        optimizer.step()

    The gradients are added in an order that depends on M alone, so they have the same bits for any
    number of processes, one included. What a micro-batch draws at random must depend on its number
    alone: seed the generator for each.

    Args:
        module: what is trained.
        device_ids: None; others are for GPUs.
        output_device: None, likewise.
        dim: of no effect on a CPU.
        broadcast_buffers: deprecated, as `forward_sync_buffers`; False also leaves the buffers
            different at the start.
        init_sync: compare shapes, and give all processes what rank 0 has, at the start.
        process_group: the processes; the default group without it.
        bucket_cap_mb: the size of a bucket in MiB: 25, and 1 for the first, unless told.
        find_unused_parameters: parameters that the outputs do not depend on need no gradient. The
            graph is searched in each forward.
        check_reduction: deprecated, of no effect.
        gradient_as_bucket_view: gradients are views of buckets, which saves copies and memory.
        static_graph: the same parameters are used in each iteration, the same number of times.
        delay_all_reduce_named_params: not supported.
        param_to_hook_all_reduce: not supported.
        mixed_precision: not supported.
        device_mesh: not supported.
        skip_all_reduce_unused_params: not supported.
        bucket_cap_mb_list: the sizes of the first bucket, of the second, and so on.
        batched_grad_copy: of no effect.
        forward_sync_buffers: give all processes the buffers of rank 0 before each forward that is
            followed by an averaging backward. With `micro_batches`, combine the buffers of all
            micro-batches instead: see `micro_batches_of_rank`.
        micro_batches: into how many micro-batches all processes together divide a batch; None: each
            process has one part, and one backward for each step.
        deterministic: add in an order that depends on the number of parts alone; else in a ring.

    Attributes:
        module: the module.
        require_backward_grad_sync: whether backward averages.

    Raises:
        ValueError: there is no process group, or an argument is for GPUs.
        RuntimeError: no parameter requires a gradient, or the ranks have different modules.
        NotImplementedError: an argument is not supported.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
        *,
        micro_batches: int | None = None,
        deterministic: bool = True,
    ) -> None:
        super().__init__()
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce "
                "need to be set at the same time."
            )
        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        _refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            mixed_precision=mixed_precision,
            device_mesh=device_mesh,
            skip_all_reduce_unused_params=skip_all_reduce_unused_params,
        )
        if micro_batches is not None and (not isinstance(micro_batches, int) or micro_batches < 1):
            raise ValueError(f"micro_batches must be a positive integer, but got {micro_batches}")
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. "
                "Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        self.process_group = process_group or _default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._check_module(module, device_ids, output_device)
        self.device_ids = self.output_device = None
        self.is_multi_device_module = False
        self.device_type, self.device = "cpu", pygrad.device("cpu")
        self.dim = dim
        self.module = module
        self._set_buffer_sync(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.batched_grad_copy = batched_grad_copy
        self.mixed_precision = None
        self.static_graph = False
        self.micro_batches, self.deterministic = micro_batches, deterministic
        self._limits = _buckets.limits_of(bucket_cap_mb, bucket_cap_mb_list)
        self._assign_modules_buffers()
        if init_sync:
            verify_shapes([each for _, each in self._reduced_parameters()], self.process_group)
            self._broadcast_states(with_buffers=self._init_sync_buffers)
        self._make_reducer()
        if static_graph:
            self._set_static_graph()

    # ------------------------------------------------------------ construction

    def _check_module(self, module: Module, device_ids: Any, output_device: Any) -> None:
        parameters = [p for n, p in module.named_parameters() if n not in self.parameters_to_ignore]
        if not any(each.requires_grad for each in parameters):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if device_ids or output_device:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}, and module parameters "
                f"{ ({each.device for each in parameters}) }."
            )
        if any(isinstance(each, UninitializedParameter) for each in parameters):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with "
                "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
                "modules"
            )
        for each in module.modules():
            if type(each).__name__ == "SyncBatchNorm":
                raise ValueError("SyncBatchNorm layers only work with GPU modules")
            if getattr(each, "sparse", False) and isinstance(
                each, (pygrad.nn.Embedding, pygrad.nn.EmbeddingBag)
            ):
                raise NotImplementedError("DistributedDataParallel: sparse gradients")

    def _set_buffer_sync(self, older: bool | None, newer: bool | None) -> None:
        if older is not None:
            text = _BROADCAST_BUFFERS
            if newer is not None:
                text = (
                    "Both `broadcast_buffers` and `forward_sync_buffers` were specified. "
                    "`broadcast_buffers` is deprecated and its value is ignored when "
                    "`forward_sync_buffers` is provided."
                )
            warnings.warn(text, FutureWarning, stacklevel=3)
        self._init_sync_buffers = newer is not None or older is not False
        self.forward_sync_buffers = newer if newer is not None else older is not False

    def _reduced_parameters(self) -> list[tuple[str, Tensor]]:
        """Those that require a gradient, each once, by PyTorch's names for them."""
        found: dict[int, tuple[str, Tensor]] = {}
        for prefix, module in self.module.named_modules():
            for name, each in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}"
                if each.requires_grad and full not in self.parameters_to_ignore:
                    found.setdefault(id(each), (full, each))
        return list(found.values())

    def _make_reducer(self) -> None:
        names, parameters = zip(*self._reduced_parameters(), strict=True)
        leaves = Leaves(self.micro_batches, self.deterministic, self.process_group)
        self.reducer = Reducer(
            parameters,
            names,
            _buckets.assign(parameters, self._limits),
            leaves,
            own_step=self.micro_batches is not None,
            find_unused=self.find_unused_parameters,
            as_views=self.gradient_as_bucket_view,
        )
        self._buffer_means: BufferMeans | None = None
        if self.micro_batches is not None and self.forward_sync_buffers and self.modules_buffers:
            self._buffer_means = BufferMeans(
                self._assign_modules_buffers, leaves, lambda: self.reducer.leaf
            )
            self.reducer.combine_buffers(self._buffer_means)

    def _set_static_graph(self) -> None:
        """As the argument `static_graph`."""
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to set it again.", stacklevel=2
            )
            return
        self.static_graph = self.reducer.static = True
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, "
                "`_set_static_graph` will detect unused parameters automatically, so you do not "
                "need to set find_unused_parameters=true, just be sure these unused parameters "
                "will not change during training loop while calling `_set_static_graph`.",
                stacklevel=2,
            )

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not _default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        left_out = {"process_group", "reducer", "_buffer_means"}
        return {name: each for name, each in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _default_group()
        self._make_reducer()
        self.reducer.static = self.static_graph

    # ------------------------------------------------------------ buffers

    @property
    def broadcast_buffers(self) -> bool:
        """The older name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def _assign_modules_buffers(self) -> dict[str, Tensor]:
        """The buffers that there are now: a module may have been given others."""
        self.named_module_buffers = {
            name: each
            for name, each in self.module.named_buffers()
            if name not in self.parameters_to_ignore
        }
        self.modules_buffers = list(self.named_module_buffers.values())
        return self.named_module_buffers

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward broadcasts buffers."""
        return (
            self.micro_batches is None
            and self.require_forward_param_sync
            and self.forward_sync_buffers
            and bool(self.modules_buffers)
        )

    def _sync_buffers(self) -> None:
        self._assign_modules_buffers()
        with pygrad.autograd._unsafe_preserve_version_counter(tuple(self.modules_buffers)):
            broadcast_all(self.modules_buffers, self.process_group)

    def _broadcast_states(self, *, with_buffers: bool) -> None:
        states: list[Tensor] = [
            each
            for name, each in self.module.named_parameters()
            if name not in self.parameters_to_ignore
        ]
        broadcast_all(states + (self.modules_buffers if with_buffers else []), self.process_group)

    # ------------------------------------------------------------ a step

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DistributedDataParallel.forward"):
            averaging = pygrad.is_grad_enabled() and self.require_backward_grad_sync
            if averaging:
                self.reducer.check_finished()
                if self._buffer_means is not None:
                    self._buffer_means.before_forward()
            if self.will_sync_module_buffers():
                self._sync_buffers()
            output = self.module(*inputs, **kwargs)
            self.require_forward_param_sync = averaging
            return self._expect_backward(output) if averaging else output

    def _expect_backward(self, output: Any) -> Any:
        if not self.find_unused_parameters and not self.static_graph:
            self.reducer.expect_backward(())
            return output
        tensors = [each for each in flatten(output)[0] if isinstance(each, Tensor)]
        if not any(each.requires_grad for each in tensors):
            # This rank has a backward all the same: the others wait for its zeros.
            output = map_leaves(_recorded, output)
            tensors = [each for each in flatten(output)[0] if isinstance(each, Tensor)]
        self.reducer.expect_backward(tensors)
        return output

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it, backward accumulates the gradients of this process alone. The first forward
        and backward after it average what has come together.

        Raises:
            RuntimeError: with `micro_batches`, where the last backward of a step averages anyway.
        """
        if self.micro_batches is not None:
            raise RuntimeError("no_sync: with micro_batches the last backward of a step averages")
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def micro_batches_of_rank(self) -> Iterator[int]:
        """The numbers of the micro-batches that this process computes in a step, in order.

        Each is followed by one forward and one backward. After the last backward each process has
        the mean gradient in ``.grad``; until then ``.grad`` is None. Gradients from before the step
        are added to.

        Each micro-batch finds the buffers as they were at the start of the step. In the end a
        floating-point buffer that was changed is the mean over the micro-batches, and an integer
        has counted all of them.

        The iteration must go to its end: a process that has no micro-batch takes part there.

        Raises:
            RuntimeError: there is no `micro_batches`, or a micro-batch had no backward.
        """
        if self.micro_batches is None:
            raise RuntimeError(
                "micro_batches_of_rank: DistributedDataParallel has no micro_batches"
            )
        held = self.reducer.leaves.held
        for done, number in enumerate(held):
            self._check_leaf(done)
            yield number
        self._check_leaf(0)
        if not held:
            self.reducer.take_part()

    def _check_leaf(self, done: int) -> None:
        self.reducer.check_finished()
        if self.reducer.leaf != done:
            raise RuntimeError(
                f"micro_batches_of_rank: expected {done} backward passes before this micro-batch, "
                f"but there were {self.reducer.leaf}"
            )

    # ------------------------------------------------------------ the rest of PyTorch's

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Lets a function reduce the buckets.

        Args:
            state: its first argument.
            hook: called as ``hook(state, bucket)`` with a `torch.distributed.GradBucket` that is
                full of gradients, not divided; returns a future of the tensor to put in its place.

        Raises:
            TypeError: it is no function.
            ValueError: its annotations are others.
            RuntimeError: there is a hook.
            NotImplementedError: with `micro_batches`.
        """
        if self.micro_batches is not None:
            raise NotImplementedError("DistributedDataParallel: micro_batches with a comm hook")
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        signature = inspect.signature(hook, eval_str=True)
        of_bucket = signature.parameters["bucket"].annotation
        if of_bucket not in (inspect.Signature.empty, GradBucket):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        if signature.return_annotation not in (
            inspect.Signature.empty,
            pygrad.futures.Future[Tensor],
        ):
            raise ValueError(
                "Communication hook: return annotation should be "
                "torch.futures.Future[torch.Tensor]."
            )
        self.reducer.set_comm_hook(state, hook)

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """Not supported; give each process the same number of batches.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("DistributedDataParallel.join")

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: list[str]
    ) -> None:
        """Leaves these, by their names, to each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore


class _Recorded(Function):
    """The same tensors, with a backward that goes nowhere."""

    @staticmethod
    def forward(ctx: Any, start: Tensor, given: Tensor) -> Tensor:
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None


def _recorded(each: Any) -> Any:
    if not isinstance(each, Tensor) or not each.is_floating_point():
        return each
    return _Recorded.apply(pygrad.empty(0, requires_grad=True), each)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise NotImplementedError(f"DistributedDataParallel: {name}")


def _default_group() -> Any:
    group = dist.group.WORLD
    if group is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return group
