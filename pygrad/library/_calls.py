"""Calls of a library's op, from the top: autocast, vmap, autograd, the op's function."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._boundary import modes
from .._dispatch.handlers import tensors_in
from .._ground.tree import flatten, map_leaves, unflatten
from .._table import functions
from .._table.builtins import builtin
from .._tensor.tensor import Tensor
from ..amp._state import is_autocast_enabled
from ..amp.autocast_mode import _cast, autocast
from ..autograd import Function
from ._arguments import match_arguments, split, split_without_defaults
from ._entry import Entry
from ._kernels import run_below

_is_grad_enabled = functions.SPACES["torch"]["is_grad_enabled"]


class _OfThread(threading.local):
    below = 0


_here = _OfThread()


def call(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls an op of a library."""
    return run(entry, match_arguments(entry.schema, args, kwargs))


def _in_vmap() -> bool:
    return bool(modes.get() >> (modes.LEVELS + 1))


_ABOVE: Final = {"Autograd", "AutogradCPU", "AutogradMeta", "CompositeImplicitAutograd"}
"""The keys of functions that may compute an op with its gradient."""


def _autograd_kernel(entry: Entry, values: list[Any]) -> Callable[..., Any] | None:
    """The function that computes an op with its gradient: one for autograd and the device of the
    arguments; else a composition, if the device has no function of its own; else one for autograd.
    """
    kernels = entry.kernels
    if _ABOVE.isdisjoint(kernels):
        return None
    device = "Meta" if any(each.is_meta for each in tensors_in(values)) else "CPU"
    own = None if _here.below else kernels.get(f"Autograd{device}")
    if own is not None:
        return own
    has_own = kernels.keys() & {device, "CompositeExplicitAutograd"}
    if not (has_own or (device == "Meta" and entry.fake is not None)):
        composed = kernels.get("CompositeImplicitAutograd")
        if composed is not None:
            return composed
    return None if _here.below else kernels.get("Autograd")


def run(entry: Entry, values: list[Any]) -> Any:
    """Calls an op with all its arguments, from the top: vmap, then autograd."""
    if entry.autocast is not None and is_autocast_enabled("cpu"):
        with autocast("cpu", enabled=False):
            return run(entry, [_cast(value, "cpu", entry.autocast) for value in values])
    whole = _autograd_kernel(entry, values)
    if whole is not None:
        args, kwargs = split_without_defaults(entry.schema, values)
        return whole(*args, **kwargs)
    mapped = (entry.vmap is not None or entry.is_custom) and _in_vmap()
    if _here.below or not (mapped or records(values)):
        return run_below(entry, values)
    if entry.autograd is None and entry.vmap is None and not entry.is_custom:
        return _call_unregistered(entry, values)
    return call_recorded(entry, values)


_fallback: Final = ["warn"]
"""The handling of ops without a rule for autograd: "warn" at a backward, or "nothing"."""


@builtin
def fallback_mode() -> str:
    """Whether a backward through an op without a gradient warns: "warn" or "nothing"."""
    return _fallback[0]


@builtin
def set_fallback_mode(mode: str) -> None:
    """Sets `fallback_mode`.

    Raises: RuntimeError: an unknown mode.
    """
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    _fallback[0] = mode


def _call_unregistered(entry: Entry, values: list[Any]) -> Any:
    """Calls an op without a rule for autograd: the ops that its function runs are recorded, and a
    backward through a result warns, even if nothing was recorded.
    """
    made = run_below(entry, values)
    if fallback_mode() == "nothing" or not records(values):
        return made
    given = tensors_in(values)

    def warn(*_: Any) -> None:
        warnings.warn(_NO_AUTOGRAD.format(entry.qualname), stacklevel=2)

    def warn_on_backward(result: Any) -> Any:
        if not isinstance(result, Tensor) or any(result is each for each in given):
            return result
        if not (result.is_floating_point() or result.is_complex()):
            return result
        if not result.requires_grad:
            return _NotImplementedHere.apply(warn, result, *given)
        result.register_hook(warn)
        return result

    return map_leaves(warn_on_backward, made)


class _NotImplementedHere(Function):
    """A result that nothing recorded: a backward to it warns, and ends."""

    @staticmethod
    def forward(ctx: Any, warn: Callable[..., None], result: Tensor, *_: Tensor) -> Tensor:
        ctx.warn, ctx.n = warn, len(_)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.warn()
        return (None,) * (2 + ctx.n)


_NO_AUTOGRAD: Final = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to "
    "backprop through it. This may lead to silently incorrect behavior. This behavior is "
    "deprecated and will be removed in a future version of PyTorch. If your operator is "
    "differentiable, please ensure you have registered an autograd kernel to the correct Autograd "
    "key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is "
    "not differentiable, or to squash this warning and use the previous behavior, please register "
    "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
)


def records(values: Any) -> bool:
    """Whether a call with these arguments is recorded."""
    return _is_grad_enabled() and any(each.requires_grad for each in tensors_in(values))


class below_autograd:
    """While an instance lives, calls skip autograd: `torch._C._AutoDispatchBelowAutograd`."""

    def __init__(self) -> None:
        _here.below += 1
        self._was: int | None = modes.switch(modes.GRAD, False)

    def _end(self) -> None:
        if self._was is not None:
            _here.below -= 1
            modes.put(self._was)
            self._was = None

    def __enter__(self) -> below_autograd:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    __del__ = _end


class _Tree:
    """How arguments and results are nested: no leaf of a tree itself."""

    __slots__ = ("given", "made", "told")

    def __init__(self, given: Any, told: int) -> None:
        self.given: Any = given
        self.told = told
        self.made: Any = None


def call_recorded(entry: Entry, values: list[Any]) -> Any:
    """Calls an op with all its arguments as a function of autograd."""
    leaves, spec = flatten(values)
    tree = _Tree(spec, len(split_without_defaults(entry.schema, values)[0]))
    found = _function_for(entry).apply(tree, *leaves)
    return unflatten(list(found) if isinstance(found, tuple) else [found], tree.made)


def _function_for(entry: Entry) -> Any:
    """The autograd function of an op, as its rules are now."""
    rules = entry.autograd, entry.vmap
    if entry.function is None or entry.function[0] != rules:
        entry.function = rules, _make_function(entry, *rules)
    return entry.function[1]


def _make_function(entry: Entry, autograd: Any, vmap: Any) -> Any:
    backward, setup = autograd or (None, None)

    def run_forward(tree: _Tree, *leaves: Any) -> Any:
        made, tree.made = flatten(run_below(entry, unflatten(list(leaves), tree.given)))
        return tuple(made) if len(made) != 1 else made[0]

    def set_up(ctx: Any, inputs: Any, output: Any) -> None:
        tree, *leaves = inputs
        ctx._library = tree, len(leaves)
        if setup is None:
            return
        result = unflatten(list(output) if isinstance(output, tuple) else [output], tree.made)
        args, kwargs = split(entry.schema, unflatten(leaves, tree.given))
        options = {"keyword_only_inputs": kwargs} if kwargs else {}
        setup(ctx=ctx, inputs=tuple(args), output=result, **options)

    def go_back(ctx: Any, *grads: Any) -> Any:
        if backward is None:
            raise RuntimeError(
                f"Trying to backward through {entry.dotted_name} but no "
                "autograd formula was registered. Please use register_autograd to add one."
            )
        tree, n = ctx._library
        shaped = unflatten(list(grads), tree.made)
        found = backward(ctx, *(shaped if len(entry.schema.returns) > 1 else (shaped,)))
        return None, *_flatten_gradients(entry, found, tree, n)

    def map_over(info: Any, in_dims: Any, tree: _Tree, *leaves: Any) -> Any:
        args, kwargs = split_without_defaults(entry.schema, unflatten(list(leaves), tree.given))
        places, _ = split(entry.schema, unflatten(list(in_dims[1:]), tree.given))
        found, out_dims = vmap(info, tuple(places[: len(args)]), *args, **kwargs)
        made, tree.made = flatten(found)
        if len(made) == 1:
            return made[0], flatten(out_dims)[0][0]
        dims = flatten(out_dims)[0] if isinstance(out_dims, (tuple, list)) else [out_dims]
        return tuple(made), tuple(dims * (len(made) if len(dims) == 1 else 1))

    def one_by_one(info: Any, in_dims: Any, tree: _Tree, *leaves: Any) -> Any:
        rows = []
        for i in range(info.batch_size):
            each = [
                leaf if dim is None else leaf.select(dim, i)
                for leaf, dim in zip(leaves, in_dims[1:], strict=True)
            ]
            made, tree.made = flatten(run(entry, unflatten(each, tree.given)))
            rows.append(made)
        stack = functions.SPACES["torch"]["stack"]
        found = [
            stack(list(same)) if isinstance(same[0], Tensor) else same[0]
            for same in zip(*rows, strict=True)
        ]
        dims = [0 if isinstance(each, Tensor) else None for each in found]
        return (found[0], dims[0]) if len(found) == 1 else (tuple(found), tuple(dims))

    members: dict[str, Any] = {"forward": run_forward, "setup_context": set_up, "backward": go_back}
    members["vmap"] = one_by_one if vmap is None else map_over
    return type(
        _node_name(entry), (Function,), {key: staticmethod(value) for key, value in members.items()}
    )


def _node_name(entry: Entry) -> str:
    return f"GeneratedBackwardFor_{entry.ns}_{entry.name}_{entry.overload}Backward"


def _flatten_gradients(entry: Entry, found: Any, tree: _Tree, n_leaves: int) -> list[Any]:
    """Gradients of arguments, spread over the leaves of the arguments' tree. Arguments at their
    schema's default need none.
    """
    n = sum(not argument.kwarg_only for argument in entry.schema.arguments)
    lists = [argument.type.kind_ == "ListType" for argument in entry.schema.arguments]
    one = n == 1 and lists[0] and not isinstance(found, tuple)
    grads = list(found) if isinstance(found, (tuple, list)) and not one else [found]
    returned = f"function {_node_name(entry)} returned"
    if len(grads) < tree.told:
        raise RuntimeError(
            f"{returned} an incorrect number of gradients (expected {n + 1}, got {len(grads) + 1})"
        )
    if any(grad is not None for grad in grads[n:]):
        raise RuntimeError(
            f"{returned} a gradient different than None at position {n + 1}, but the corresponding "
            "forward input was not a Variable"
        )
    grads = grads[:n]
    grads += [None] * (len(entry.schema.arguments) - len(grads))
    shape = unflatten(list(range(n_leaves)), tree.given)
    flat: list[Any] = [None] * n_leaves
    for grad, places in zip(grads, shape, strict=True):
        if isinstance(places, (list, tuple)):
            if grad is not None and (
                not isinstance(grad, (list, tuple)) or len(grad) != len(places)
            ):
                raise RuntimeError(
                    "Expected the return from backward to be of the same structure as the inputs. "
                    f"Got: {type(grad).__name__} (return from backward), a list of {len(places)} "
                    "(inputs)"
                )
            for each, place in zip(grad or [None] * len(places), places, strict=True):
                flat[place] = each
        elif isinstance(places, int):
            flat[places] = grad
    return flat
