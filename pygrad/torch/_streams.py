"""torch.Stream and torch.Event: queues of a device's work. A CPU has none: work is done when it is
requested, and nothing waits.
"""

from __future__ import annotations

from typing import Any, Self

from .._ground.dtypes import device as as_device
from .._ground.package import PACKAGE as _PACKAGE

_KINDS = {"cpu": 0, "meta": 14}


def _device_of(device: Any) -> Any:
    found = as_device("cpu" if device is None else device)
    if found.type not in ("cpu", "meta"):
        raise RuntimeError(f"PyTorch is not linked with support for {found.type} devices")
    return found


def _unavailable(device: Any) -> RuntimeError:
    return RuntimeError(f"{device.type} backend doesn't support events.")


class Stream:
    """A queue of a device's work, done in order.

    Args:
        device: "cpu" unless given.
        priority: ignored.

    Raises:
        RuntimeError: a device that pygrad lacks, or an event recorded: a CPU has no events.

    Example:
        >>> import pygrad
        >>> pygrad.Stream().query()
        True
    """

    device_index = -1
    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = _device_of(device)

    @property
    def device_type(self) -> int:
        """PyTorch's number of the kind of device."""
        return _KINDS[self.device.type]

    def query(self) -> bool:
        """Whether all is done: it is."""
        return True

    def synchronize(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Event) -> None:
        """Does nothing."""

    def wait_stream(self, stream: Stream) -> None:
        """Raises: it would record an event."""
        raise _unavailable(self.device)

    def record_event(self, event: Event | None = None) -> Event:
        """Raises: a CPU has no events."""
        raise _unavailable(self.device)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'torch.Stream' object")

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )


class Event:
    """A point in a device's work.

    Args:
        device: "cpu" unless given.
        enable_timing: whether :meth:`elapsed_time` is to be asked for.

    Raises:
        RuntimeError: a device that pygrad lacks; a recording, which a CPU does not make.

    Example:
        >>> import pygrad
        >>> pygrad.Event().query()
        True
    """

    event_id = 0

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device = _device_of(device)
        self._flag = int(enable_timing)

    def query(self) -> bool:
        """Whether it came: nothing is waited for."""
        return True

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Stream | None = None) -> None:
        """Does nothing."""

    def record(self, stream: Stream | None = None) -> None:
        """Raises: a CPU has no events."""
        raise _unavailable(self.device)

    def elapsed_time(self, end_event: Event) -> float:
        """Raises: neither was recorded."""
        if not (self._flag and end_event._flag):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError(
            "Both events must be recorded before calculating elapsed time: a CPU records none."
        )

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle 'torch.Event' object")

    def __repr__(self) -> str:
        return (
            f"torch.Event device_type={self.device.type}, device_index=-1, "
            f"event_flag={self._flag}, event_id={self.event_id}"
        )


Stream.__module__ = Event.__module__ = _PACKAGE  # where users know them
