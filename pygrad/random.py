"""Generators of random numbers: PyTorch's CPU stream, number for number.

After the same seed every random function here draws the numbers that PyTorch draws on the CPU, and
a state saved by one library continues in the other. A function without a ``generator`` draws from
`default_generator`.

Example:
    >>> import pygrad as torch
    >>> torch.manual_seed(0) is torch.default_generator
    True
    >>> torch.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ._boundary.arguments import GeneratorArgument, refuse_foreign
from ._ground.dtypes import device as _device
from ._table import functions as _functions
from ._tensor.base import Tensor

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]

_C: Final = _functions.C
_U64: Final = (1 << 64) - 1
_unowned: Final[list[int]] = []
"""Ids of dead Generators, freed when the next one is made, because finalisers also run amid
calls.
"""


def _entropy() -> int:
    return int.from_bytes(os.urandom(8), "little")


class Generator(GeneratorArgument):
    """A stream of random numbers of its own, for the ``generator`` argument of random functions.

    Copies, deep copies and pickles carry the state.

    Args:
        device: only the CPU.

    Raises:
        RuntimeError: for any other device.

    Example:
        >>> import pygrad
        >>> g = pygrad.Generator().manual_seed(0)
        >>> pygrad.randint(10, (4,), generator=g)
        tensor([4, 9, 3, 0])
    """

    __slots__ = ("__weakref__", "_id")

    def __new__(cls, device: Any = "cpu") -> Generator:
        _check_device(device)
        while _unowned:
            _C["_generator_free"](_unowned.pop())
        self = super().__new__(cls)
        self._id = _C["_generator_new"]()
        return self

    def __init__(self, device: Any = "cpu") -> None:
        """The work is done in __new__."""

    def __del__(self) -> None:
        try:
            if self._id:
                _unowned.append(self._id)
        except AttributeError:
            pass  # it never got an id, or the interpreter is going away

    @property
    def device(self) -> _device:
        """Always the CPU."""
        return _device("cpu")

    def manual_seed(self, seed: int, /) -> Generator:
        """Restarts the stream from a seed in [-2**63, 2**64), and returns self.

        A negative seed counts from 2**64 down.
        """
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed <= _U64:
            raise ValueError("Overflow when unpacking long long")
        _C["_generator_seed"](self, seed - (1 << 64) if seed >> 63 > 0 else seed)
        return self

    def initial_seed(self) -> int:
        """The seed that the stream started from, in [0, 2**64)."""
        return int(_C["_generator_initial_seed"](self)) & _U64

    def seed(self) -> int:
        """Restarts the stream from a seed of the operating system's, and returns that seed."""
        fresh = _entropy()
        self.manual_seed(fresh)
        return fresh

    def get_state(self) -> Tensor:
        """A copy of the state: a uint8 tensor of 5056 elements, laid out as PyTorch's."""
        return _C["_generator_state"](self)  # type: ignore[no-any-return]

    def set_state(self, new_state: Tensor, /) -> Generator:
        """Continues from a state of `get_state`, from here or PyTorch, and returns self.

        Raises:
            TypeError: not a tensor of uint8.
            RuntimeError: not contiguous, not of 5056 elements, or not a state.
        """
        if not isinstance(new_state, Tensor):
            refuse_foreign(new_state)
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        _C["_generator_set_state"](self, new_state)
        return self

    def clone_state(self) -> Generator:
        """A new generator that will draw the same numbers."""
        return Generator().set_state(self.get_state())

    def get_offset(self) -> int:
        """Raises RuntimeError: generators of the CPU have no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int, /) -> Generator:
        """Raises RuntimeError: generators of the CPU have no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> Generator:
        """Raises NotImplementedError, as PyTorch's generators of the CPU do."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator, /) -> Generator:
        """Raises NotImplementedError, as PyTorch's generators of the CPU do."""
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Tensor]) -> None:
        self.set_state(state[2])


def _check_device(device: Any) -> None:
    if device is None:
        return
    if isinstance(device, int) and not isinstance(device, bool):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not isinstance(device, (str, _device)):
        name = type(device).__name__
        raise TypeError(
            f"Generator(): argument 'device' (position 1) must be torch.device, not {name}"
        )
    kind = _device(device).type
    if kind != "cpu":
        raise RuntimeError(
            f"Device type {kind.upper()} is not supported for torch.Generator() api."
        )


def _make_default() -> Generator:
    """The generator that the engine has from the start, seeded by the operating system."""
    generator = object.__new__(Generator)
    generator._id = 0
    generator.seed()
    return generator


default_generator: Final = _make_default()
"""The generator of every random function that is not given another."""


def manual_seed(seed: Any) -> Generator:
    """Restarts the default stream from a seed, and returns `default_generator`.

    Args:
        seed: anything that ``int`` takes, in [-2**63, 2**64).

    Raises:
        ValueError: out of that range.

    Example:
        >>> import pygrad
        >>> _ = pygrad.manual_seed(-1)
        >>> pygrad.initial_seed() == 2**64 - 1
        True
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Restarts the default stream from a seed of the operating system's, and returns that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default stream started from, in [0, 2**64)."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """A copy of the default generator's state: a uint8 tensor of 5056 elements.

    Example:
        >>> import pygrad
        >>> state = pygrad.get_rng_state()
        >>> a = pygrad.rand(2)
        >>> pygrad.set_rng_state(state)
        >>> bool((pygrad.rand(2) == a).all())
        True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continues the default stream from a state; raises as `Generator.set_state` does."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A context that leaves the default generator as it was before.

    Args:
        devices: other devices to fork as well: there are none, so only an empty list.
        enabled: False makes the context do nothing.
        device_type: of `devices`; "meta" makes the context do nothing.

    Raises:
        NotImplementedError: for any device.

    Example:
        >>> import pygrad
        >>> with pygrad.random.fork_rng():
        ...     a = pygrad.rand(2)
        >>> bool((pygrad.rand(2) == a).all())
        True
    """
    if not enabled or device_type == "meta":
        yield
        return
    if devices is not None and list(devices):
        raise NotImplementedError(
            f"{_caller}(): {_devices_kw} must be empty, there is no device but the CPU"
        )
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


def thread_safe_generator() -> Generator | None:
    """The generator of the loader's worker thread that this runs in: None, workers are
    processes."""
    return None
