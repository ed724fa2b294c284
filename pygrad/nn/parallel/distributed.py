"""A module trained by several processes, which share each batch."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import distributed as dist
from ..._package import pygrad
from ..._tensor import Tensor
from ...autograd.profiler import record_function
from ...distributed import _buckets
from ...distributed._group import _get_default_group
from ...distributed._module_states import MOST_AT_ONCE, broadcast_all, verify_shapes
from ...distributed.algorithms.ddp_comm_hooks import default_hooks
from ...distributed.algorithms.join import Join, Joinable
from ..modules.module import Module
from . import _ddp_checks
from ._buffer_means import BufferMeans
from ._joined import _DDPJoinHook, greatest
from ._leaves import Leaves
from ._outputs import tensors_of, with_begin
from ._reducer import Reducer
from ._statistics import Statistics
from ._statistics import _dump_DDP_relevant_env_vars as _dump_DDP_relevant_env_vars

__all__ = ["DistributedDataParallel"]


class _BufferCommHookLocation(enum.Enum):
    """When a hook of buffers is called."""

    PRE_FORWARD = 1
    POST_FORWARD = 2


class DistributedDataParallel(Module, Joinable):
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
        skip_all_reduce_unused_params: with `find_unused_parameters`, buckets that no rank uses are
            not reduced.
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
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce "
                "need to be set at the same time."
            )
        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        _ddp_checks.refuse(
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            mixed_precision=mixed_precision,
            device_mesh=device_mesh,
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
        self.process_group = process_group or _get_default_group()
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        _ddp_checks.check_module(module, self.parameters_to_ignore, device_ids, output_device)
        self.device_ids = self.output_device = None
        self.is_multi_device_module = False
        self.device_type, self.device = "cpu", pygrad.device("cpu")
        self.dim = dim
        self.module = module
        self._init_sync_buffers, self.forward_sync_buffers = _ddp_checks.buffer_sync(
            broadcast_buffers, forward_sync_buffers
        )
        self.find_unused_parameters = find_unused_parameters
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.batched_grad_copy = batched_grad_copy
        self.mixed_precision = None
        self.static_graph = False
        self.micro_batches, self.deterministic = micro_batches, deterministic
        self._limits = _buckets.limits_of(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = max(self._limits)
        self.bucket_bytes_cap_list = self._limits if bucket_cap_mb_list else []
        self.broadcast_bucket_size = MOST_AT_ONCE
        self._divide_by_initial_world_size = self._ddp_sink_clone = True
        self._authoritative_rank = 0
        self._buffer_hook: tuple[Any, Callable[..., Any], _BufferCommHookLocation] | None = None
        self._assign_modules_buffers()
        if init_sync:
            verify_shapes([each for _, each in self._reduced_parameters()], self.process_group)
            self._broadcast_states(with_buffers=self._init_sync_buffers)
        self._make_reducer()
        if static_graph:
            self._set_static_graph()

    # ------------------------------------------------------------ construction

    def _reduced_parameters(self) -> list[tuple[str, Tensor]]:
        """The distinct parameters that require a gradient, with PyTorch's names."""
        found: dict[int, tuple[str, Tensor]] = {}
        for prefix, module in self.module.named_modules():
            for name, each in module.named_parameters(recurse=False):
                full = f"{prefix}.{name}"
                if each.requires_grad and full not in self.parameters_to_ignore:
                    found.setdefault(id(each), (full, each))
        return list(found.values())

    def _build_params_for_reducer(self) -> tuple[list[Tensor], list[bool]]:
        """The parameters whose gradients are reduced, and whether each gradient is sparse."""
        found = [each for _, each in self._reduced_parameters()]
        return found, [False] * len(found)

    def _build_debug_param_to_name_mapping(self, parameters: Sequence[Tensor]) -> dict[int, str]:
        """The names of parameters, by their index in the argument."""
        numbers = {id(each): number for number, each in enumerate(parameters)}
        names = {}
        for name, each in self._reduced_parameters():
            if id(each) not in numbers:
                raise ValueError(
                    f"Param with name {name} found in module parameters, but not DDP parameters."
                )
            names[numbers[id(each)]] = name
        if len(names) != len(numbers):
            raise ValueError(
                "Expected param to name mapping to cover all parameters, but got conflicting "
                f"lengths: {len(numbers)} vs {len(names)}."
            )
        return names

    def _facts(self) -> dict[str, Any]:
        return {
            "module_name": type(self.module).__name__,
            "world_size": dist.get_world_size(self.process_group),
            "rank": dist.get_rank(self.process_group),
            "backend_name": self.process_group.name(),
            "device_ids": "",
            "output_device": -1,
            "is_multi_device_module": 0,
            "has_sync_bn": 0,
            "broadcast_buffers": int(self.forward_sync_buffers),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
        }

    def _make_reducer(self) -> None:
        names, parameters = zip(*self._reduced_parameters(), strict=True)
        leaves = Leaves(self.micro_batches, self.deterministic, self.process_group)
        buckets = _buckets.at_first(parameters, self._limits, self.find_unused_parameters)
        self.logger = Statistics(self._facts(), parameters, buckets)
        self.reducer = Reducer(
            parameters,
            names,
            buckets,
            self._limits,
            leaves,
            self.logger,
            own_step=self.micro_batches is not None,
            find_unused=self.find_unused_parameters,
            skip_unused=self.skip_all_reduce_unused_params,
            as_views=self.gradient_as_bucket_view,
        )
        self._buffer_means: BufferMeans | None = None
        if self.micro_batches is not None and self.forward_sync_buffers and self.modules_buffers:
            self._buffer_means = BufferMeans(
                self._assign_modules_buffers, leaves, lambda: self.reducer.leaf
            )
            self.reducer.combine_buffers(self._buffer_means)

    def _set_static_graph(self) -> None:
        """Does what the argument `static_graph` does."""
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to set it again.", stacklevel=2
            )
            return
        self.reducer.make_static()
        self.static_graph = True
        if self.find_unused_parameters:
            warnings.warn(
                "You passed find_unused_parameters=true to DistributedDataParallel, "
                "`_set_static_graph` will detect unused parameters automatically, so you do not "
                "need to set find_unused_parameters=true, just be sure these unused parameters "
                "will not change during training loop while calling `_set_static_graph`.",
                stacklevel=2,
            )

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not _get_default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        left_out = {"process_group", "reducer", "logger", "_buffer_means"}
        return {name: each for name, each in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _get_default_group()
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

    def _sync_buffers(self, *, is_joined: bool = False) -> None:
        source = 0
        if self._join_config.enable:
            rank = dist.get_rank(self.process_group)
            source = greatest(-1 if is_joined else rank, self.process_group)
        named = self._assign_modules_buffers()
        with pygrad.autograd._unsafe_preserve_version_counter(tuple(self.modules_buffers)):
            if self._buffer_hook is None:
                self._default_broadcast_coalesced(authoritative_rank=source)
                return
            state, hook, _ = self._buffer_hook
            futures = hook(state, named)
            if futures is not None:
                self.reducer.wait_at_end(futures)

    def _is_time_to_sync_buffers(self, location: _BufferCommHookLocation) -> bool:
        there = _BufferCommHookLocation.PRE_FORWARD
        if self._buffer_hook is not None:
            there = self._buffer_hook[2]
        return there is location and self.will_sync_module_buffers()

    def _default_broadcast_coalesced(
        self, bufs: Any = None, bucket_size: int | None = None, authoritative_rank: int = 0
    ) -> None:
        """Gives all ranks the buffers of one; all buffers, if none are given."""
        tensors = self.modules_buffers if bufs is None else bufs
        broadcast_all(tensors, self.process_group, authoritative_rank)

    def _broadcast_states(self, *, with_buffers: bool, source: int = 0) -> None:
        states: list[Tensor] = [
            each
            for name, each in self.module.named_parameters()
            if name not in self.parameters_to_ignore
        ]
        states += self.modules_buffers if with_buffers else []
        broadcast_all(states, self.process_group, source)

    # ------------------------------------------------------------ a step

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DistributedDataParallel.forward"):
            averaging = pygrad.is_grad_enabled() and self.require_backward_grad_sync
            if averaging:
                self.reducer.check_finished()
                self.reducer.begin_forward()
                if self._buffer_means is not None:
                    self._buffer_means.before_forward()
            active = Join.notify_join_context(self)
            self.reducer.divide_by(None if self._divide_by_initial_world_size else active)
            if self._join_config.enable:
                self._is_averaged_anywhere(averaging)
            if self._is_time_to_sync_buffers(_BufferCommHookLocation.PRE_FORWARD):
                self._sync_buffers()
            output = self.module(*inputs, **kwargs)
            if self._is_time_to_sync_buffers(_BufferCommHookLocation.POST_FORWARD):
                self._sync_buffers()
            self.require_forward_param_sync = averaging
            return self._expect_backward(output) if averaging else output

    def _expect_backward(self, output: Any) -> Any:
        if self.find_unused_parameters or self.static_graph:
            output = with_begin(output, self.reducer.begin, self._ddp_sink_clone)
        self.reducer.expect_backward(tensors_of(output) if self.find_unused_parameters else ())
        return output

    def _is_averaged_anywhere(self, here: bool) -> bool:
        """Whether backward averages on any rank that has batches."""
        return bool(greatest(int(here), self.process_group))

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
        try:
            _ddp_checks.check_hook(hook)
        except (TypeError, ValueError) as error:
            self.logger.error = f"{type(error)}: {error}"
            raise
        self.reducer.set_comm_hook(state, hook)
        self.logger.hooked(hook.__qualname__)

    def _register_builtin_comm_hook(self, comm_hook_type: dist.BuiltinCommHookType) -> None:
        """Lets a hook that PyTorch has built in reduce the buckets."""
        hooks = {
            dist.BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            dist.BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.reducer.set_comm_hook(self.process_group, hooks[comm_hook_type])
        self.logger.hooked(str(comm_hook_type))

    def _register_buffer_comm_hook(
        self,
        state: Any,
        hook: Callable[..., Any],
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:
        """Lets a function make buffers the same, where they would be broadcast.

        Args:
            state: its first argument.
            hook: called as ``hook(state, named_buffers)``; returns futures that backward waits for,
                or None.
            comm_hook_location: before forward or after it.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self._buffer_hook = state, hook, comm_hook_location

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """A context in which processes may have different numbers of batches. One that has no more
        takes part in the averages of the others with zeros; in the end all have the same model.

        Args:
            divide_by_initial_world_size: gradients are divided by the number of all processes; else
                by the number of those that still have batches.
            enable: False: the context does nothing.
            throw_on_early_termination: all processes raise as soon as one has no more batches.

        Raises:
            NotImplementedError: with `micro_batches`.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> _DDPJoinHook:
        """Makes the hook for the time after this process's last batch.

        Args:
            kwargs: `divide_by_initial_world_size`, see `join`.
        """
        if self.micro_batches is not None:
            raise NotImplementedError("DistributedDataParallel: micro_batches with join")
        return _DDPJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The process group."""
        return self.process_group

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """The settings, and the times of the parts of an iteration in nanoseconds."""
        return self.logger.data()

    def _set_ddp_runtime_logging_sample_rate(self, sample_rate: int) -> None:
        """After the first iterations, every so many of them are recorded."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.logger.sample_rate = sample_rate

    def _set_ddp_sink_clone(self, val: bool) -> None:
        """Whether outputs are copied where unused parameters are searched for."""
        self._ddp_sink_clone = val

    def _remove_autograd_hooks(self) -> None:
        """Averages no more."""
        self.reducer.remove_hooks()

    @staticmethod
    def _get_data_parallel_params(module: Module, named_params: bool = False) -> Iterator[Any]:
        """The parameters of a module whose gradients would be reduced."""
        held = module.module if isinstance(module, DistributedDataParallel) else module
        ignored = getattr(held, "_ddp_params_and_buffers_to_ignore", ())
        for name, each in held.named_parameters():
            if name not in ignored:
                yield (name, each) if named_params else each

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: list[str]
    ) -> None:
        """Leaves these, by their names, to each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
