"""Tangents through custom functions: what happens around the `jvp` of a Function."""

from __future__ import annotations

from typing import Any

from .. import _call, _ops
from .._tensor import Tensor
from . import forward_ad
from ._walk import encode

_C = _ops.C


class _Dual:
    """One call of a Function while forward mode is on: its forward runs with forward mode off, its
    jvp after that, with the tangents of the arguments.
    """

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.tensors = tensors = [a if isinstance(a, Tensor) else None for a in args]
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
        outputs = zip(self.outputs, results, strict=True)
        places = [word for raw, result in outputs for word in self._place(raw, result)]
        _, grads, odd = encode(made)
        _C["_custom_tangents"](places, grads, odd)

    def _argument(self, tensor: Any, tangent: Any, ctx: Any) -> Any:
        """What jvp gets for an argument of forward."""
        if tangent is not None:
            return _call.remember(_call.known(tangent))
        wanted = tensor is not None and ctx.materialize_grads and tensor.is_floating_point()
        return _ops.SPACES["f"]["zeros_like"](tensor) if wanted else None

    def _place(self, raw: Any, result: Any) -> list[int]:
        """What the engine has to know of an output, which forward returned as `raw`: see Carried
        in wasm_core/custom.c.
        """
        if not isinstance(raw, Tensor) or raw._h in self.constant:
            return [0, 0, 0, 0]
        dirty = raw._h in self.dirty
        at = [k for k, t in enumerate(self.tensors) if dirty and t is not None and t._h == raw._h]
        if at and self.tangents[at[0]] is not None:
            return [result._h, 1, self.tangents[at[0]]._h, self.versions[at[0]]]
        return [result._h, int(dirty), 0, 0]


def suspend(args: tuple[Any, ...]) -> _Dual | None:
    """Prepares the call of a Function with these arguments; None where forward mode is off."""
    return _Dual(args) if forward_ad._is_fwd_grad_enabled() else None
