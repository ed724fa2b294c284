"""Locations of storages: the tags in files, and `load`'s ``map_location``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from .._ground.dtypes import device as _device
from .._ground.package import submodule
from .._tensor.functions import typename
from ..storage import TypedStorage, UntypedStorage
from ._globals import find, torch_name

Storage: TypeAlias = "TypedStorage | UntypedStorage"
MAP_LOCATION: TypeAlias = (
    "Callable[[Storage, str], Storage | None] | _device | str | dict[str, str] | None"
)
Tagger: TypeAlias = "Callable[[Any], str | None]"
Deserializer: TypeAlias = "Callable[[Any, str], Any]"

_ADVICE: Final = (
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)
_taggers: list[tuple[int, Tagger, Deserializer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Registers a kind of locations of storages.

    Args:
        priority: the order in which kinds are tried, lowest first; PyTorch's have 10 to 26.
        tagger: returns the tag of a storage at such a location, or None.
        deserializer: moves a loaded storage to the location of a tag; returns None for other tags.

    Example:
        >>> from pygrad.serialization import register_package
        >>> register_package(
        ...     50, lambda storage: None, lambda storage, tag: storage if tag == "disk" else None
        ... )
    """
    _taggers.append((priority, tagger, deserializer))
    _taggers.sort(key=lambda entry: entry[0])


def location_tag(storage: Storage) -> str:
    """The tag of a storage's location.

    Raises:
        RuntimeError: the location belongs to no kind.
    """
    for _, tagger, _ in _taggers:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {typename(storage)}")


def default_restore_location(storage: Storage, location: str) -> Any:
    """Moves the storage to the location of a tag.

    Raises:
        RuntimeError: the tag belongs to no kind, or the device does not exist.
    """
    for _, _, deserializer in _taggers:
        found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(
        f"don't know how to restore data location of {_typename(storage)} (tagged with {location})"
    )


def _typename(storage: Any) -> str:
    return ".".join(torch_name(type(storage)) or ("", typename(storage))).lstrip(".")


def _tagger(name: str) -> Tagger:
    def tag(storage: Any) -> str | None:
        return str(storage.device) if storage.device.type == name else None

    return tag


def _validate(location: str, name: str) -> _device:
    """The device of a tag.

    Raises:
        RuntimeError: the device does not exist.
    """
    try:
        module = submodule(name)
    except ImportError:
        raise RuntimeError(
            f"The {name.upper()} device module is not registered. {_ADVICE}"
        ) from None
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {name.upper()} device but "
            f"torch.{name}.is_available() is False. {_ADVICE}"
        )
    return _device(location)


def validate_cuda_device(location: str) -> Any:
    """The index of a CUDA device.

    Raises:
        RuntimeError: the device does not exist.
    """
    return _validate(location, "cuda").index


def validate_hpu_device(location: str) -> Any:
    """The index of an HPU device.

    Raises:
        RuntimeError: the device does not exist.
    """
    return _validate(location, "hpu").index


def _on_accelerator(name: str) -> Deserializer:
    def restore(storage: Any, location: str) -> Any:
        if re.match(f"{name}($|:|[0-9]+)", location):
            return storage.to(device=_validate(location, name))
        return None

    return restore


def _on_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _on_meta(storage: Any, location: str) -> Any:
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def is_meta(map_location: Any) -> bool:
    """Whether storages are on the meta device, so that none is read."""
    return isinstance(map_location, (str, _device)) and str(map_location) == "meta"


for _priority, _name, _restore in (
    (10, "cpu", _on_cpu),
    (20, "cuda", _on_accelerator("cuda")),
    (21, "mps", _on_accelerator("mps")),
    (22, "meta", _on_meta),
    (24, "hpu", _on_accelerator("hpu")),
    (25, "xpu", _on_accelerator("xpu")),
    (26, "mtia", _on_accelerator("mtia")),
):
    register_package(_priority, _tagger(_name), _restore)


def restorer(map_location: Any) -> Deserializer:
    """The function that moves storages for `load`, by its argument."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, (str, bytes, _device)):
        place = map_location if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, tag: default_restore_location(storage, place)  # type: ignore[arg-type]

    def restore(storage: Any, tag: str) -> Any:
        found = map_location(storage, tag)
        return default_restore_location(storage, tag) if found is None else found

    return restore


def normalize_storage_type(storage_type: type) -> Any:
    """The class of storages of this name."""
    return find("torch", storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The legacy class of tensors of a legacy storage's type."""
    return find("torch", type(storage).__name__.replace("Storage", "Tensor"))
