"""Hooks of DistributedDataParallel that reduce buckets of gradients."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

from . import debugging_hooks as debugging
from . import default_hooks as default
from . import powerSGD_hook as powerSGD
from . import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(hook: default.Hook, model: Any, state: Any) -> None:
    model.register_comm_hook(state, hook)


def _register_powerSGD(hook: Any, rank: int, model: Any, state: Any) -> None:
    model.register_comm_hook(powerSGD.PowerSGDState(state, rank), hook)


class DDPCommHookType(enum.Enum):
    """Hooks by name, for `register_ddp_comm_hook`. Each value is a function of a model and a state
    that registers the hook.
    """

    ALLREDUCE = enum.member(partial(_register, default.allreduce_hook))
    FP16_COMPRESS = enum.member(partial(_register, default.fp16_compress_hook))
    BF16_COMPRESS = enum.member(partial(_register, default.bf16_compress_hook))
    QUANTIZE_PER_TENSOR = enum.member(partial(_register, quantization.quantization_pertensor_hook))
    QUANTIZE_PER_CHANNEL = enum.member(
        partial(_register, quantization.quantization_perchannel_hook)
    )
    POWER_SGD = enum.member(partial(_register_powerSGD, powerSGD.powerSGD_hook, 1))
    POWER_SGD_RANK2 = enum.member(partial(_register_powerSGD, powerSGD.powerSGD_hook, 2))
    BATCHED_POWER_SGD = enum.member(partial(_register_powerSGD, powerSGD.batched_powerSGD_hook, 1))
    BATCHED_POWER_SGD_RANK2 = enum.member(
        partial(_register_powerSGD, powerSGD.batched_powerSGD_hook, 2)
    )
    NOOP = enum.member(partial(_register, debugging.noop_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers a hook by its name.

    Args:
        comm_hook_type: the name.
        model: a DistributedDataParallel.
        state: the process group; the default group if it is None.
    """
    comm_hook_type.value(model=model, state=state)
