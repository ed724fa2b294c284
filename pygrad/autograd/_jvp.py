"""Tangents through custom functions: what happens around the `jvp` of a Function."""

from __future__ import annotations

from typing import Any

from .. import _call, _ops
from .._tensor import Tensor
from . import forward_ad

_C = _ops.C


class _Dual:
    """One call of a Function while forward mode is on: its forward runs with forward mode off, its
    jvp after that, with the tangents of the arguments.
    """

    def __init__(self, tensors: list[Any]) -> None:
        self.tensors = tensors
        self.tangents: list[Any] = [t if t is None else _C["_fw_grad"](t) for t in tensors]
        self.versions = [t if t is None else t._version for t in self.tangents]
        self.any = any(t is not None for t in self.tangents)
        _C["_set_fwd_grad_enabled"](False)

    def resume(self) -> None:
        """Switches forward mode on again."""
        _C["_set_fwd_grad_enabled"](True)

    def note(self, ctx: Any, outputs: tuple[Any, ...]) -> None:
        """Remembers what ctx will have forgotten when jvp is called."""
        self.outputs = outputs
        self.saved = ctx.saved_for_forward
        self.constant = [t._h for t in getattr(ctx, "non_differentiable", None) or ()]
        self.dirty = [t._h for t in getattr(ctx, "dirty_tensors", None) or ()]

    def carry(self, ctx: Any, results: tuple[Any, ...]) -> None:
        """Calls jvp if an argument has a tangent, and gives its results to those of forward."""
        if not self.any:
            return
        given = list(map(self._argument, self.tensors, self.tangents, [ctx] * len(self.tensors)))
        ctx.saved_for_forward = self.saved
        _C["_set_fwd_grad_enabled"](False)
        try:
            made = ctx.apply_jvp(*given)
        finally:
            self.resume()
            ctx.saved_for_forward = None
        grads = made if isinstance(made, tuple) else (made,)
        for place, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(grad).__name__}) for grad output "
                    f"{place}."
                )
        if len(grads) != len(results):
            raise RuntimeError(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(results)} but got {len(grads)})"
            )
        for place, grad in enumerate(grads):
            self._give(place, results[place], grad)

    def _argument(self, tensor: Any, tangent: Any, ctx: Any) -> Any:
        """What jvp gets for an argument of forward."""
        if tangent is not None:
            return _call.remember(_call.known(tangent))
        wanted = tensor is not None and ctx.materialize_grads and tensor.is_floating_point()
        return _ops.SPACES["f"]["zeros_like"](tensor) if wanted else None

    def _give(self, place: int, result: Any, grad: Any) -> None:
        """Sets the tangent of an output, which forward returned as `raw`."""
        raw = self.outputs[place]
        differentiable = isinstance(raw, Tensor) and raw.is_floating_point()
        if not differentiable or raw._h in self.constant:
            if grad is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {place}, but  the "
                    "corresponding forward output is not a differentiable Tensor.You should return "
                    "None at that position instead."
                )
            return
        if raw._h in self.dirty and self._is_written(raw, grad):
            return
        if grad is None:
            raise RuntimeError(
                "Expected both tensor and its forward grad to be floating point or complex"
            )
        if result._is_view() and raw._h not in self.dirty and not grad._is_view():
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp "
                "is not returning a view."
            )
        _C["_set_fw_grad"](result, grad)

    def _is_written(self, raw: Any, grad: Any) -> bool:
        """Whether forward wrote to an input with a tangent, which jvp has to write to then."""
        at = [k for k, t in enumerate(self.tensors) if t is not None and t._h == raw._h]
        if not at or self.tangents[at[0]] is None:
            return False
        tangent = self.tangents[at[0]]
        if tangent._version == self.versions[at[0]]:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. "
                "If the forward is modifying an input inplace, then the jvp function must modify "
                "the corresponding gradient inplace."
            )
        if grad is None or grad._h != tangent._h:
            raise RuntimeError(
                "An inplace custom Function is not returning the forward mode gradients as-is. If "
                "the forward is modifying an input inplace, then the jvp function must modify the "
                "gradient inplace and return it as-is."
            )
        return True


def suspend(tensors: list[Any]) -> _Dual | None:
    """Prepares the call of a Function with these arguments (None: no tensor); None where forward
    mode is off.
    """
    if forward_ad._current_level < 0 or not forward_ad._is_fwd_grad_enabled():
        return None
    return _Dual(tensors)
