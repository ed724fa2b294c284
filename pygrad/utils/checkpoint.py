"""Trading time for memory: a checkpointed function's tensors are recomputed instead of kept.

Both of PyTorch's variants: with `use_reentrant` the function is one node of the graph, which runs
its own backward. Without it, saved tensor hooks drop the tensors that the function saves; the whole
function is recomputed when the first of them is needed.
"""

from __future__ import annotations

import contextlib
import enum
import uuid
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .._table import functions as _ops
from .._tensor.tensor import Tensor
from ..amp._state import get_autocast_dtype, is_autocast_cache_enabled, is_autocast_enabled
from ..amp.autocast_mode import autocast
from ..autograd import backward, graph
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..ops import OpOverload, OpOverloadPacket
from ..random import fork_rng, get_rng_state, set_rng_state
from . import _selective
from ._operator_log import OperatorLog, report

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_C = _ops.C
Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """The recomputation differed from the forward."""


# ------------------------------------------------------------------ devices


class DefaultDeviceType:
    """The name of a device whose random state is kept besides the CPU's. pygrad has none."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the device's name, which has no effect."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The name that was set, initially "cpu"."""
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The random states of other devices than the CPU: always empty."""
    return [], []


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Would restore the random states of devices; there are none but the CPU.

    Raises:
        NotImplementedError: for any device.
    """
    if list(devices) and device_type != "meta":
        raise NotImplementedError("set_device_states(): there is no device but the CPU")


class _Surroundings:
    """The state besides the arguments that a region depends on: autocast and the generator."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self._random = get_rng_state() if preserve_rng_state else None
        self._autocast = (
            is_autocast_enabled("cpu"),
            get_autocast_dtype("cpu"),
            is_autocast_cache_enabled(),
        )

    @contextlib.contextmanager
    def restore(self) -> Iterator[None]:
        """Restores the recorded state within the block."""
        enabled, dtype, cached = self._autocast
        with (
            autocast("cpu", dtype, enabled, cached),
            fork_rng(devices=[], enabled=self._random is not None),
        ):
            if self._random is not None:
                set_rng_state(self._random)
            yield


# ------------------------------------------------------------------ settings

_debug_for_all: bool | None = None
_early_stop_for_all: bool | None = None


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Within the scope, overrides the `debug` argument of `checkpoint`, unless it is None."""
    global _debug_for_all
    before, _debug_for_all = _debug_for_all, enabled
    try:
        yield
    finally:
        _debug_for_all = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Within the scope, overrides the `early_stop` argument of `checkpoint`.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.utils.checkpoint import checkpoint, set_checkpoint_early_stop
        >>> x = torch.ones(1, requires_grad=True)
        >>> with set_checkpoint_early_stop(False):
        ...     y = checkpoint(torch.exp, x, use_reentrant=False)
        >>> y.backward()
    """
    global _early_stop_for_all
    before, _early_stop_for_all = _early_stop_for_all, enable
    try:
        yield
    finally:
        _early_stop_for_all = before


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class GraphExecGroup:
    """Within the scope, a checkpointed function is recomputed at most once for all backwards. They
    must not need the same saved tensor.
    """

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._current is not None:
            raise RuntimeError(
                "GraphExecGroup contexts cannot be nested. Already inside group "
                f"{GraphExecGroup._current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *args: object) -> None:
        GraphExecGroup._current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return GraphExecGroup._current


# ------------------------------------------------------------------ with reentrant backward


def detach_variable(inputs: Any) -> tuple[Any, ...]:
    """The arguments with all tensors detached. Each keeps its `requires_grad`."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each
        for each in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if none of the tensors requires grad."""
    if not any(each.requires_grad for each in inputs if isinstance(each, Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class CheckpointFunction(Function):
    """A function as one node. Its backward runs the function again and walks that graph."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Runs the function without recording."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(each, Tensor) else each for each in args]
        ctx.places = [place for place, each in enumerate(args) if isinstance(each, Tensor)]
        ctx.save_for_backward(*[args[place] for place in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Runs the function with recording and its graph backward.

        Raises:
            RuntimeError: called by ``grad()`` or with `inputs`, or no output requires grad.
        """
        if not _C["_is_checkpoint_valid"]():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        with ctx.surroundings.restore():
            detached = detach_variable(tuple(inputs))
            with enable_grad():
                outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        kept = [
            (output, args[place])
            for place, output in enumerate(outputs)
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not kept:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in kept], [grad for _, grad in kept])
        return None, None, *[each.grad if isinstance(each, Tensor) else None for each in detached]


# ------------------------------------------------------------------ without reentrant backward


class _Enough(Exception):
    """Everything that is needed has been recomputed."""


def _describe(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _describe, "none": lambda _: None}

_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\u2011debug mode globally.
"""


class _Place:
    """The placeholder in the graph for a saved tensor. Holds the recomputed tensor of each
    backward; None after its use.
    """

    __slots__ = ("__weakref__", "tensors")

    def __init__(self) -> None:
        self.tensors: dict[Any, Tensor | None] = {}


class _Kept:
    """A tensor saved as by a node: a snapshot with its history, packed by the active hooks."""

    __slots__ = ("_node",)

    def __init__(self, tensor: Tensor) -> None:
        self._node = graph._wrap(_C["_save_tensor"](tensor))

    @classmethod
    def without_hooks(cls, tensor: Tensor) -> _Kept:
        """Saves a tensor without any pack hooks."""
        _C["_saved_hooks_push"](0)
        try:
            return cls(tensor)
        finally:
            _C["_saved_hooks_pop"]()

    def get(self) -> Any:
        """The saved tensor; in "check" mode the same object."""
        assert self._node is not None
        found = _C["_node_saved"](self._node._address, 0)
        return graph._itself(found) if graph.checked else found


@contextlib.contextmanager
def _use_hooks(pack: Callable[[Tensor], Any], unpack: Callable[[Any], Tensor]) -> Iterator[None]:
    """Sets hooks on saved tensors, and makes the pack hook known to selective checkpointing."""
    _selective.packers.append(pack)
    try:
        with graph.saved_tensors_hooks(pack, unpack):
            yield
    finally:
        _selective.packers.pop()


class _Region:
    """One call of a checkpointed function: its arguments and saved tensors."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        early_stop: bool,
        check: Callable[[Tensor], Any],
    ) -> None:
        self.function, self.early_stop, self.check = function, early_stop, check
        self.args = [_Kept(each) if isinstance(each, Tensor) else each for each in args]
        self.places: list[weakref.ref[_Place]] = []
        self.seen: list[Any] = []
        self.counts: dict[Any, int] = defaultdict(int)
        self.done: set[Any] = set()
        self.complete = False
        self.lenient = False

    def pack(self, tensor: Tensor) -> _Place:
        """Returns a placeholder for the tensor."""
        _selective.note(tensor)
        place = _Place()
        self.places.append(weakref.ref(place))
        with no_grad():
            self.seen.append(self.check(tensor))
        return place

    def unpack(self, place: _Place) -> Tensor:
        """The tensor of a placeholder, once a backward. The first runs the function again."""
        run: Any = GraphExecGroup._current
        if run is None:
            run = _C["_task_id"]()
            if run == -1:
                run = uuid.uuid4()
        if run not in self.done:
            self._run_again(run)
        tensor = place.tensors[run]
        if tensor is None:
            group = (
                "Performing two backward calls that overlap (i.e. require the same saved "
                "activation in order to compute gradients) is not allowed while under the "
                "torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                f"unpacked once. {group if GraphExecGroup._current is not None else ''}If you are "
                "calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                "please open an issue with details on your use case."
            )
        place.tensors[run] = None
        return tensor

    def _run_again(self, run: Any) -> None:
        args = [each.get() if isinstance(each, _Kept) else each for each in self.args]
        try:
            with _use_hooks(lambda t: self._store_recomputed(run, t), lambda t: t), enable_grad():
                self.function(*args)
        except _Enough:
            pass
        self.done.add(run)
        self._compare(run)

    def _store_recomputed(self, run: Any, tensor: Tensor) -> Tensor:
        """Stores a recomputed tensor in the placeholder of the original one."""
        tensor = tensor.detach() if tensor.requires_grad else tensor
        at = self.counts[run]
        self.counts[run] += 1
        if at >= len(self.places):
            if self.complete:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                    f"during the original forward pass.\n{_TIP}"
                )
            self.lenient = True  # the function itself runs a backward
            return tensor
        place = self.places[at]()
        if place is not None:
            place.tensors[run] = tensor
        if self.early_stop and at + 1 == len(self.places):
            raise _Enough
        return tensor

    def _compare(self, run: Any) -> None:
        if self.lenient:
            return
        if len(self.places) != self.counts[run]:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\n"
                f"Number of tensors saved during recomputation: {self.counts[run]}.\n{_TIP}"
            )
        different = ""
        for at, ref in enumerate(self.places):
            place = ref()
            tensor = None if place is None else place.tensors[run]
            if tensor is None or self.seen[at] == self.check(tensor):
                continue
            different += (
                f"tensor at position {at}:\n"
                f"saved metadata: {self.seen[at]}\n"
                f"recomputed metadata: {self.check(tensor)}\n"
            )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{different}.\n{_TIP}"
            )


def _checkpoint_without_reentrance(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    surroundings: _Surroundings,
    contexts: Contexts,
    early_stop: bool,
    check: Callable[[Tensor], Any],
    explain: Callable[[], str] | None = None,
) -> Any:
    first, again = contexts

    def recompute(*args: Any) -> None:
        with surroundings.restore(), again:
            function(*args, **kwargs)

    if not _recording():
        return function(*args, **kwargs)
    region = _Region(recompute, args, early_stop, check)

    def unpack(place: _Place) -> Tensor:
        try:
            return region.unpack(place)
        except CheckpointError as error:
            if explain is None:
                raise
            raise CheckpointError(explain()) from error

    with _use_hooks(region.pack, unpack), first:
        result = function(*args, **kwargs)
        region.complete = True
    if not region.complete:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
            "exception raised during the checkpointed forward. This is not supported because "
            "checkpoint cannot return a value for a failed forward."
        )
    return result


def _recording() -> bool:
    return bool(_ops.SPACES["torch"]["is_grad_enabled"]())


# ------------------------------------------------------------------ the two entry points


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Calls ``function(*args, **kwargs)``, keeping its arguments instead of the tensors it saves.

    Args:
        function: the function, called now, and again in backward.
        use_reentrant: whether the function is one node that runs its own backward. False is better,
            but PyTorch's default is True, with a warning.
        context_fn: returns two contexts, for the call and for the calls in backward.
        determinism_check: "default" compares shape, dtype and device of recomputed tensors with
            those of the original ones, "none" does not.
        debug: log the operators, so that an error in backward shows those of both calls with their
            stacks. The log is empty while a profile of the caller is running.
        early_stop: stop the recomputation once all needed tensors are there.
        kwargs: ``preserve_rng_state`` (default True: the recomputation draws the same random
            numbers); all others are passed to the function.

    Raises:
        ValueError: incompatible arguments.
        CheckpointError: in backward, if the function saves other tensors than before.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.utils.checkpoint import checkpoint
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = checkpoint(lambda x: (x * x).exp(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> x.grad
        tensor([  5.4366, 218.3926])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    logs = (OperatorLog(), OperatorLog())
    explain = None
    if debug if _debug_for_all is None else _debug_for_all:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn, explain = (lambda: logs), (lambda: report(*logs))
    if determinism_check not in _CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}"
        )
    return _checkpoint_without_reentrance(
        function,
        args,
        kwargs,
        _Surroundings(preserve),
        context_fn(),
        early_stop if _early_stop_for_all is None else _early_stop_for_all,
        _CHECKS[determinism_check],
        explain,
    )


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Calls functions one after the other, with all segments but the last checkpointed.

    Args:
        functions: a Sequential or a list of functions.
        segments: the number of segments.
        input: the argument of the first function.
        use_reentrant: see `checkpoint`.
        kwargs: ``preserve_rng_state`` only.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.utils.checkpoint import checkpoint_sequential
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = checkpoint_sequential([torch.exp, torch.sin], 2, x, use_reentrant=False)
        >>> torch.allclose(y, x.exp().sin())
        True
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from ..nn import Sequential

    chain = list(functions.children()) if isinstance(functions, Sequential) else functions
    size = len(chain) // segments

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for at in range(start, end):
                value = chain[at](value)
            return value

        return run

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            part(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
    return part(end, len(chain))(input)


# ------------------------------------------------------------------ by operator


class CheckpointPolicy(enum.Enum):
    """The policies of selective checkpointing for an operator's output."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy function: whether this is a recomputation; the output."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


_SAVING = {CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE}


class _CachingTorchDispatchMode(_selective.Caching):
    """The mode of the first call: keeps results in `storage`, by op and index of its call."""

    def __init__(self, policy_fn: Any, storage: Any, ac_graph_id: Any = None) -> None:
        super().__init__(
            policy_fn, storage, (SelectiveCheckpointContext, _SAVING), _Kept.without_hooks
        )
        self.ac_graph_id = ac_graph_id


class _CachedTorchDispatchMode(_selective.Cached):
    """The mode of the calls in backward: returns results from `storage`; ignores the policy."""

    def __init__(
        self, policy_fn: Any, storage: Any, allow_cache_entry_mutation: bool = False
    ) -> None:
        super().__init__(storage, allow_cache_entry_mutation)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> Contexts:
    """Makes the two contexts for `checkpoint`'s `context_fn`. A policy selects the ops whose
    results are kept, so that backward does not compute them again.

    Args:
        policy_fn_or_list: called after each op with a `SelectiveCheckpointContext`, the op (such as
            ``torch.ops.aten.mm.default``; see `pygrad.ops`) and its arguments; returns a
            `CheckpointPolicy`, or whether to keep the result. Or a list of the ops to keep.
        allow_cache_entry_mutation: in "check" mode, do not raise if a kept result was written to.
            (In the default mode all saved tensors are snapshots.)

    Raises:
        ValueError: an element of the list is no op with its overload.
        TypeError: neither a list nor a function.
        RuntimeError: in backward, if the function does not call the ops that it called, or if the
            backward is a second one.

    Example:
        >>> import functools, pygrad as torch
        >>> from pygrad.utils import checkpoint as cp
        >>> keep = [torch.ops.aten.mm.default]
        >>> x = torch.ones(2, 2, requires_grad=True)
        >>> y = cp.checkpoint(
        ...     lambda x: (x @ x).sigmoid(),
        ...     x,
        ...     use_reentrant=False,
        ...     context_fn=functools.partial(cp.create_selective_checkpoint_contexts, keep),
        ... )
        >>> y.sum().backward()
        >>> x.grad
        tensor([[0.4200, 0.4200],
                [0.4200, 0.4200]])
    """
    policy = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload):
                extra = (
                    "Please update the OpOverloadPacket to a specific OpOverload.For example, if "
                    "you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                    if isinstance(op, OpOverloadPacket)
                    else ""
                )
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type "
                    f"{type(op)}. {extra}"
                )

        def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *_: Any, **__: Any) -> bool:
            return op in policy_fn_or_list

    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[OpOverload, dict[int, Any]] = defaultdict(dict)
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation),
    )
