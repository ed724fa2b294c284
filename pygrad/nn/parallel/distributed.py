"""Training of a module by several processes, which divide each batch."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import autograd
from ... import distributed as dist
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
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
    """The time at which a hook of buffers is called."""

    PRE_FORWARD = 1
    POST_FORWARD = 2


class DistributedDataParallel(Module, Joinable):
    """Calls a module, and averages its gradients over all processes in backward.

    All processes start with the parameters and buffers of rank 0. Each then runs forward and
    backward on its part of the batch. Gradients are collected in buckets; a full bucket is averaged
    at once, while backward continues. After `backward` all processes have the same gradients.

    With ``micro_batches=M`` the batch consists of M micro-batches, divided among the processes, and
    the gradient is the mean over them::

        for i in ddp.micro_batches_of_rank():
            loss_of(ddp(inputs[i]), targets[i]).backward()
        optimizer.step()

    The order of additions depends only on M, so the gradients have the same bits for any number of
    processes, including one. Random numbers of a micro-batch must depend only on its index: seed
    the generator for each.

    Args:
        module: the module to train.
        device_ids: must be None; other values are for GPUs.
        output_device: must be None.
        dim: ignored on a CPU.
        broadcast_buffers: deprecated name of `forward_sync_buffers`; False also skips the
            synchronization of buffers at the start.
        init_sync: at the start, compare shapes, and copy the tensors of rank 0 to all processes.
        process_group: the processes; by default the default group.
        bucket_cap_mb: the size of a bucket in MiB; by default 25, and 1 for the first.
        find_unused_parameters: allow parameters that the outputs do not depend on. Each forward
            searches the graph.
        check_reduction: deprecated and ignored.
        gradient_as_bucket_view: make gradients views of buckets, which saves copies and memory.
        static_graph: declares that each iteration uses the same parameters the same number of
            times.
        delay_all_reduce_named_params: not supported.
        param_to_hook_all_reduce: not supported.
        mixed_precision: not supported.
        device_mesh: not supported.
        skip_all_reduce_unused_params: with `find_unused_parameters`, do not reduce buckets that no
            rank uses.
        bucket_cap_mb_list: the sizes of the first bucket, the second, and so on.
        batched_grad_copy: ignored.
        forward_sync_buffers: copy the buffers of rank 0 to all processes before each forward whose
            backward averages. With `micro_batches`, combine the buffers of all micro-batches
            instead: see `micro_batches_of_rank`.
        micro_batches: the number of micro-batches into which all processes together divide a batch;
            None: each process has one part, and one backward per step.
        deterministic: add in an order that depends only on the number of parts; else in a ring.

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
        buckets = _buckets.initial_buckets(parameters, self._limits, self.find_unused_parameters)
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
        """Finds the current buffers, since a module may have been given new ones."""
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
        with autograd._unsafe_preserve_version_counter(tuple(self.modules_buffers)):
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
        """Copies one rank's buffers (by default all) to all ranks."""
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
        """Whether backward averages on any rank with batches."""
        return bool(greatest(int(here), self.process_group))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A block in which backward accumulates only this process's gradients. The first forward
        and backward after it average the accumulated gradients.

        Raises:
            RuntimeError: with `micro_batches`, where only the last backward of a step averages
                anyway.
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
        """The indices of this process's micro-batches of a step, in order.

        Each must be followed by one forward and one backward. After the last backward ``.grad`` has
        the mean gradient on each process; until then it is None. Earlier gradients are kept and
        added to.

        Each micro-batch starts with the buffers of the start of the step. At the end a changed
        floating-point buffer is the mean over the micro-batches, and an integer buffer has counted
        all of them.

        The iteration must be exhausted: a process without micro-batches takes part at its end.

        Raises:
            RuntimeError: `micro_batches` is not set, or a micro-batch had no backward.
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

    # ------------------------------------------------------------ other methods of PyTorch

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Registers a function that reduces the buckets.

        Args:
            state: the first argument of the hook.
            hook: called as ``hook(state, bucket)`` with a `torch.distributed.GradBucket` of
                gradients that are not divided; returns a future of the tensor that replaces them.

        Raises:
            TypeError: the hook is no function.
            ValueError: its annotations are wrong.
            RuntimeError: there is a hook already.
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
        self.logger.record_hook(hook.__qualname__)

    def _register_builtin_comm_hook(self, comm_hook_type: dist.BuiltinCommHookType) -> None:
        """Registers one of PyTorch's built-in hooks to reduce the buckets."""
        hooks = {
            dist.BuiltinCommHookType.ALLREDUCE: default_hooks.allreduce_hook,
            dist.BuiltinCommHookType.FP16_COMPRESS: default_hooks.fp16_compress_hook,
        }
        self.reducer.set_comm_hook(self.process_group, hooks[comm_hook_type])
        self.logger.record_hook(str(comm_hook_type))

    def _register_buffer_comm_hook(
        self,
        state: Any,
        hook: Callable[..., Any],
        comm_hook_location: _BufferCommHookLocation = _BufferCommHookLocation.POST_FORWARD,
    ) -> None:
        """Registers a function that synchronizes buffers, instead of a broadcast.

        Args:
            state: the first argument of the hook.
            hook: called as ``hook(state, named_buffers)``; returns futures for which backward
                waits, or None.
            comm_hook_location: whether to call it before or after forward.
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
        """A context in which processes may have different numbers of batches. A process without
        further batches takes part in the averages of the others with zeros; at the end all have the
        same model.

        Args:
            divide_by_initial_world_size: divide gradients by the number of all processes; else by
                the number of processes that still have batches.
            enable: False: the context does nothing.
            throw_on_early_termination: raise on all processes as soon as one has no more batches.

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
        """Sets the interval at which iterations after the first ones are recorded."""
        if sample_rate < 1:
            raise ValueError("DDP runtime logging sample rate should be equal or greater than 1")
        self.logger.sample_rate = sample_rate

    def _set_ddp_sink_clone(self, val: bool) -> None:
        """Sets whether outputs are copied when unused parameters are searched for."""
        self._ddp_sink_clone = val

    def _remove_autograd_hooks(self) -> None:
        """Removes the hooks, so that backward does not average any more."""
        self.reducer.remove_hooks()

    @staticmethod
    def _get_data_parallel_params(module: Module, named_params: bool = False) -> Iterator[Any]:
        """The parameters of a module whose gradients are reduced."""
        held = module.module if isinstance(module, DistributedDataParallel) else module
        ignored = getattr(held, "_ddp_params_and_buffers_to_ignore", ())
        for name, each in held.named_parameters():
            if name not in ignored:
                yield (name, each) if named_params else each

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: list[str]
    ) -> None:
        """Excludes parameters and buffers from synchronization, by name."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
