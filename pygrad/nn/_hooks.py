"""Backward hooks of modules.

A module's backward hook wants all gradients of the module's outputs, or inputs, at one moment.
Autograd offers hooks on single tensors, so the tensors are led through one edge of the graph (a
gate) whose hook sees every gradient at once. A gate is an identity: it changes no value, and the
order in which gates fire is the engine's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pygrad
from pygrad._tensor import Tensor

if TYPE_CHECKING:
    from pygrad.nn.modules.module import Module

__all__ = ["ModuleBackwardHooks"]

Grads: TypeAlias = tuple[Tensor | None, ...]
GateHook: TypeAlias = Callable[[Grads], Grads | None]


def _gate(tensors: Sequence[Tensor], hook: GateHook, *, zeros_for_absent: bool) -> list[Tensor]:
    """Return the tensors again, behind an edge whose ``hook`` gets all their gradients at once.

    The gradient of a tensor that backward does not reach is zero for what lies before the gate,
    and for the hook zero or ``None``, as asked. A ``None`` in the hook's result counts as zero.
    """
    arrived: set[int] = set()

    def run(grads: Sequence[Tensor]) -> list[Tensor] | None:
        seen = tuple(g if zeros_for_absent or i in arrived else None for i, g in enumerate(grads))
        arrived.clear()
        changed = hook(seen)
        if changed is None:
            return None
        return [
            pygrad.zeros_like(g) if new is None else new
            for g, new in zip(grads, changed, strict=True)
        ]

    if len(tensors) == 1:
        only = tensors[0].view_as(tensors[0])

        def on_only(grad: Tensor) -> Tensor | None:
            arrived.add(0)
            changed = run([grad])
            return None if changed is None else changed[0]

        only.register_hook(on_only)
        return [only]
    return _wide_gate(tensors, run, arrived.add)


def _wide_gate(
    tensors: Sequence[Tensor],
    run: Callable[[Sequence[Tensor]], list[Tensor] | None],
    note_arrival: Callable[[int], None],
) -> list[Tensor]:
    """A gate for several tensors: one flat tensor carries them all, and its gradient theirs.

    Where dtypes differ the flat one has the promoted dtype, which holds each value exactly.
    """
    shapes = [tuple(t.shape) for t in tensors]
    dtypes = [t.dtype for t in tensors]
    sizes = [t.numel() for t in tensors]

    def cut(flat: Tensor) -> list[Tensor]:
        pieces = flat.split(sizes)
        return [p.reshape(s).to(d) for p, s, d in zip(pieces, shapes, dtypes, strict=True)]

    def on_flat(grad: Tensor) -> Tensor | None:
        changed = run(cut(grad))
        return None if changed is None else pygrad.cat([g.reshape(-1) for g in changed])

    flat = pygrad.cat([t.reshape(-1) for t in tensors])
    flat.register_hook(on_flat)
    pieces = cut(flat)
    for index, piece in enumerate(pieces):
        piece.register_hook(_arrival_hook(index, note_arrival))
    return pieces


def _arrival_hook(index: int, note_arrival: Callable[[int], None]) -> Callable[[Tensor], None]:
    def on_piece(_grad: Tensor) -> None:
        note_arrival(index)

    return on_piece


class ModuleBackwardHooks:
    """One call of a module that has full backward hooks or backward pre-hooks.

    ``watch_inputs`` and ``watch_outputs`` put a gate around the forward pass. During backward the
    outer gate runs the pre-hooks and remembers the gradients of the outputs; the inner one runs
    the hooks with them. For the hooks, the gradient of an argument that needs none is zero, of
    one that is no tensor ``None``, and of an output that needs none ``None``.
    """

    def __init__(
        self,
        module: Module,
        hooks: Sequence[Callable[..., Any]],
        pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self._grad_outputs: Grads | None = None
        self._input_places: list[int] | None = None
        self._n_inputs = 0
        self._idle_inputs: list[tuple[int, tuple[int, ...], Any]] = []

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._n_inputs = len(args)
        gated, self._input_places = self._watch(args, self._on_grad_inputs, True)
        for place, arg in enumerate(args):
            if isinstance(arg, Tensor) and not arg.requires_grad:
                self._idle_inputs.append((place, tuple(arg.shape), arg.dtype))
        return gated

    def watch_outputs(self, result: Any) -> Any:
        is_tuple = isinstance(result, tuple)
        outputs: tuple[Any, ...] = result if is_tuple else (result,)
        places: list[int] = []

        def on_grads(grads: Grads) -> Grads | None:
            changed = self._on_grad_outputs(_spread(grads, places, len(outputs)))
            return None if changed is None else tuple(changed[i] for i in places)

        gated, found = self._watch(outputs, on_grads, False)
        places.extend(found or ())
        return gated if is_tuple else gated[0]

    @staticmethod
    def _watch(
        args: tuple[Any, ...], hook: GateHook, zeros_for_absent: bool
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        if not places or not pygrad.is_grad_enabled():
            return args, None
        gated = list(args)
        tensors = _gate([args[i] for i in places], hook, zeros_for_absent=zeros_for_absent)
        for place, tensor in zip(places, tensors, strict=True):
            gated[place] = tensor
        if type(args) is tuple:
            return tuple(gated), places
        return type(args)(*gated), places

    def _on_grad_outputs(self, grads: Grads) -> Grads | None:
        self._grad_outputs = grads
        for pre_hook in self.pre_hooks:
            changed = pre_hook(self.module, self._grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(changed)}, but expected {len(grads)}"
                )
            self._grad_outputs = changed
        passed_on = self._grad_outputs
        if self._input_places is None:
            self._run_without_inputs()
        return None if passed_on is grads else passed_on

    def _run_without_inputs(self) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=5,
        )
        nothing: Grads = (None,) * self._n_inputs
        for hook in self.hooks:
            changed = hook(self.module, nothing, self._grad_outputs)
            if changed is None or (isinstance(changed, tuple) and _all_none(changed)):
                continue
            raise RuntimeError(
                "Backward hook for Modules where no input requires gradient should always "
                "return None or None for all gradients."
            )
        self._grad_outputs = None

    def _on_grad_inputs(self, grads: Grads) -> Grads | None:
        if self._grad_outputs is None or self._input_places is None:
            return None
        spread = list(_spread(grads, self._input_places, self._n_inputs))
        for place, shape, dtype in self._idle_inputs:
            spread[place] = pygrad.zeros(shape, dtype=dtype)
        current = first = tuple(spread)
        for hook in self.hooks:
            changed = hook(self.module, current, self._grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(current):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(changed)}, but expected {len(current)}"
                )
            current = changed
        self._grad_outputs = None
        if current is first:
            return None
        return tuple(current[i] for i in self._input_places)


def _spread(grads: Grads, places: Sequence[int], size: int) -> Grads:
    """Put the gradients at their arguments' places among ``size``, ``None`` elsewhere."""
    spread: list[Tensor | None] = [None] * size
    for place, grad in zip(places, grads, strict=True):
        spread[place] = grad
    return tuple(spread)


def _all_none(values: tuple[Any, ...]) -> bool:
    return all(value is None for value in values)
