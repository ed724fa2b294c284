"""`GradScaler`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any

from .._ground.dtypes import float16
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor

__all__ = ["GradScaler"]


class GradScaler:
    """Scales losses up so that small gradients survive, and skips steps that overflow.

    Args:
        device: "cpu"; for "cuda", which pygrad does not have, the scaler is off.
        init_scale: the first scale.
        growth_factor: the factor of growth after `growth_interval` steps without an overflow.
        backoff_factor: the factor after an overflow.
        growth_interval: the number of steps.
        enabled: False makes a scaler that does nothing.

    Raises:
        AssertionError: a factor is out of range.
        RuntimeError: methods are called in the wrong order.

    Example:
        >>> import pygrad
        >>> w = pygrad.ones(1, requires_grad=True)
        >>> optimizer = pygrad.optim.SGD([w], lr=0.5)
        >>> scaler = pygrad.amp.GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(w.sum()).backward()
        >>> w.grad
        tensor([8.])
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> w.data
        tensor([0.5000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and device == "cuda":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if not enabled:
            return
        if not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Tensor | None = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._overflowed: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def _require_scale(self, what: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """Multiplies a tensor, or nested lists and tuples of tensors, by the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = pygrad.full((), self._init_scale, dtype=pygrad.float32)
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = map(self.scale, outputs)
        if isinstance(outputs, tuple) and hasattr(outputs, "_fields"):
            return type(outputs)(*scaled)
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, e.g. to clip them."""
        if not self._enabled:
            return
        scale = self._require_scale("unscale_")
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._overflowed:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        overflowed = False
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = [p.grad for p in parameters if p.grad is not None]
        if any(g.dtype is float16 for g in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        with pygrad.no_grad():
            for gradient in gradients:
                overflowed |= not bool(gradient.isfinite().all())
                gradient.mul_(1.0 / scale.item())
        self._overflowed[id(optimizer)] = overflowed

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with unscaled gradients; skipped if one of them is not finite.

        Returns:
            The result of the optimizer's step, or None.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._require_scale("step")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._overflowed:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        if self._overflowed[id(optimizer)]:
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Shrink the scale after an overflow; grow it after enough steps without one."""
        if not self._enabled:
            return
        scale = self._require_scale("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        elif not self._overflowed:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._overflowed.values()):
            scale.mul_(self._backoff_factor)
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                if math.isfinite(scale.item() * self._growth_factor):
                    scale.mul_(self._growth_factor)
                self._growth_tracker = 0
        self._overflowed, self._stepped = {}, set()

    def get_scale(self) -> float:
        """The scale; 1 if the scaler is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps without an overflow after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps after which the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counts; empty if the scaler is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load scale, factors and counts.

        Raises:
            RuntimeError: the state dict is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
