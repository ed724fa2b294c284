"""safetensors files: tensors by name, and the outline of the object that contains them.

A flat dict of tensors is a plain safetensors file, which ``safetensors.torch.load_file`` reads;
files written by that library are read too. Other objects (nested containers, numbers, strings) have
their outline as JSON in the file's header, under ``__metadata__``, and their tensors under dotted
names. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final

from .._ground.dtypes import (
    bfloat16,
    bool_,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .._tensor import namespace as pygrad
from .._tensor.creation import from_buffer
from .._tensor.float8 import decode as decode_float8
from .._tensor.host_data import to_bytes
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from ._globals import Keys

_METADATA = "__metadata__"
_OUTLINE = "pygrad"
_FORMAT = 1
_LENGTH_BYTES = 8
# The limit of the safetensors library: the header is read before it is validated.
_MAX_HEADER_BYTES = 100_000_000


def encode(obj: Any) -> bytes:
    """Serializes an object as a safetensors file.

    Raises:
        TypeError: the object contains more than tensors and plain data.
    """
    writer = _Writer()
    outline = writer.outline(obj)
    text = json.dumps({"version": _FORMAT, "object": outline}, separators=(",", ":"))
    return _encode(writer.tensors, {"format": "pt", _OUTLINE: text})


def decode(data: bytes) -> Any:
    """Reads the object in a safetensors file.

    Raises:
        RuntimeError: the file is damaged, or of another format. EOFError: it is empty.
        NotImplementedError: a dtype is not supported.
    """
    header = _read_header(data)
    tensors = _decode(data, header)
    metadata = header.get(_METADATA)
    text = metadata.get(_OUTLINE) if isinstance(metadata, dict) else None
    return tensors if text is None else _Reader(tensors).read(text)


def looks_like_one(start: bytes) -> bool:
    """Whether a file with this beginning appears to be a safetensors file."""
    length = int.from_bytes(start[:_LENGTH_BYTES], "little")
    return length <= _MAX_HEADER_BYTES and start[_LENGTH_BYTES:].startswith(b"{")


# --- the safetensors file ---


def _read_header(data: bytes) -> dict[str, Any]:
    """Reads the header of a safetensors file; raises clear errors for other files."""
    if not data:
        raise EOFError("Ran out of input")
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    text = data[_LENGTH_BYTES : _LENGTH_BYTES + length]
    if length > _MAX_HEADER_BYTES or len(text) != length or not text.startswith(b"{"):
        raise _not_safetensors("it has no safetensors header")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_safetensors(f"its header is damaged: {error}") from None
    return found if isinstance(found, dict) else {}


def _encode(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """Makes a safetensors file. As in its library, the widest elements come first, then the order
    is by name. The header's keys are sorted, so that equal states give equal bytes.
    """
    places = {dtype: k for k, dtype in enumerate(_NAMES.values())}
    header: dict[str, Any] = {_METADATA: metadata}
    parts: list[bytes] = []
    end = 0
    for name in sorted(tensors, key=lambda name: (places[tensors[name].dtype], name)):
        tensor = tensors[name]
        begin, end = end, end + tensor.nbytes
        parts.append(to_bytes(tensor))
        header[name] = {
            "data_offsets": [begin, end],
            "dtype": _SPELLINGS[tensor.dtype],
            "shape": list(tensor.shape),
        }
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)
    return b"".join([len(text).to_bytes(_LENGTH_BYTES, "little"), text, *parts])


def _not_safetensors(reason: str) -> RuntimeError:
    return RuntimeError(f"load: this is no safetensors file: {reason}")


def _decode(data: bytes, header: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors of a safetensors file in the order of their offsets, as in `load_file`. The
    library checks all offsets, but its own order varies.
    """
    from safetensors import SafetensorError, deserialize

    try:
        entries: list[tuple[str, dict[str, Any]]] = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise _not_safetensors(f"it is damaged: {error}") from None
    parts = dict(entries)
    names = sorted(
        (name for name in header if name in parts), key=lambda name: header[name]["data_offsets"]
    )
    return {name: _to_tensor(name, parts[name]) for name in names}


def _to_tensor(name: str, entry: dict[str, Any]) -> Tensor:
    dtype = _NAMES.get(entry["dtype"])
    if entry["dtype"] in _FLOAT8:
        raw = from_buffer(entry["data"], entry["shape"], uint8)
        return decode_float8(raw, _FLOAT8[entry["dtype"]], f"tensor '{name}'")  # type: ignore[no-any-return]
    if dtype is None:
        raise NotImplementedError(f"load: tensor '{name}' has unsupported dtype {entry['dtype']}")
    return from_buffer(entry["data"], entry["shape"], dtype)


_NAMES: Final = {
    "U64": uint64,
    "I64": int64,
    "F64": float64,
    "C64": complex64,
    "F32": float32,
    "U32": uint32,
    "I32": int32,
    "BF16": bfloat16,
    "F16": float16,
    "U16": uint16,
    "I16": int16,
    "I8": int8,
    "U8": uint8,
    "BOOL": bool_,
}
"""dtypes by their names in safetensors files, in the order of their tensors in a file."""
_FLOAT8: Final = {
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
_SPELLINGS: Final = {dtype: name for name, dtype in _NAMES.items()}


# --- the outline of an object ---
#
# JSON for one value is: a number that is finite, a string, true, false or null, for itself; else
# a list whose first entry names a kind. ["tensor", name, flags] stands for a tensor, with "g" in
# flags if it requires grad, "p" if it is a parameter, and "c" if it is complex of a type that such
# files have no name for: its parts stand there, in one more dimension.

_SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "set": set}
_MAPPINGS: dict[str, type] = {"dict": dict, "odict": OrderedDict, "counter": Counter}


class _Writer:
    """Makes the outline of an object, and collects its tensors by name."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._open: set[int] = set()

    def outline(self, value: Any, path: str = "") -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, Tensor):
            return ["tensor", self._add(value, path), _flags(value)]
        if isinstance(value, int):
            # JavaScript loses digits beyond 53 bits.
            return int(value) if abs(value) < 2**53 else ["int", str(value)]
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else ["float", repr(float(value))]
        if isinstance(value, pygrad.dtype):
            return ["dtype", str(value).rpartition(".")[2]]
        return self._container(value, path)

    def _container(self, value: Any, path: str) -> Any:
        if id(value) in self._open:
            raise TypeError(f"save: the container at '{path}' contains itself")
        self._open.add(id(value))
        try:
            if isinstance(value, dict):
                return self._mapping(value, path)
            plain = tuple if isinstance(value, pygrad.Size) else type(value)
            for kind, cls in _SEQUENCES.items():
                if plain is cls:
                    parts = [self.outline(v, _join(path, i)) for i, v in enumerate(value)]
                    return [kind, sorted(parts, key=json.dumps) if cls is set else parts]
        finally:
            self._open.discard(id(value))
        hint = "; save its state_dict() instead" if hasattr(value, "state_dict") else ""
        where = f" at '{path}'" if path else ""
        raise TypeError(
            f"save: cannot store an object of type {type(value).__name__}{where}{hint}. Tensors, "
            "numbers, strings, dtypes, None, and dicts, lists and tuples of them can be stored"
        )

    def _mapping(self, value: dict[Any, Any], path: str) -> Any:
        kind = "dict"
        if isinstance(value, (OrderedDict, Counter)):
            kind = "odict" if isinstance(value, OrderedDict) else "counter"
        elif type(value) not in (dict, defaultdict):
            raise TypeError(f"save: cannot store a dict of type {type(value).__name__}")
        pairs = [[self.outline(k), self.outline(v, _join(path, k))] for k, v in value.items()]
        outline = [kind, pairs]
        metadata = getattr(value, "_metadata", None)
        if metadata is not None:
            outline.append(self.outline(metadata, _join(path, _METADATA)))
        return outline

    def _add(self, tensor: Tensor, path: str) -> str:
        """Stores a tensor's elements under its path, or under a similar name if that is taken."""
        name = path or "tensor"
        while name in self.tensors or name == _METADATA:
            name += "_"
        plain = tensor.detach().resolve_conj().resolve_neg()
        self.tensors[name] = plain if _is_named(plain) else pygrad.view_as_real(plain)
        return name


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _flags(tensor: Tensor) -> str:
    flags = ("g" if tensor.requires_grad else "") + ("p" if isinstance(tensor, Parameter) else "")
    return flags if _is_named(tensor) else flags + "c"


def _is_named(tensor: Tensor) -> bool:
    """Whether safetensors files support the dtype: not complex32 and complex128."""
    return tensor.dtype in _SPELLINGS


class _Reader:
    """Makes an object from its outline; every error is a ``RuntimeError`` about the file."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors = tensors
        self._keys = Keys()
        self._kinds: dict[str, Callable[..., Any]] = {
            "tensor": self._tensor,
            "int": int,
            "float": float,
            "dtype": _dtype,
            **{kind: self._sequence_of(cls) for kind, cls in _SEQUENCES.items()},
            "set": lambda elements: {self._key(element) for element in elements},
            **{kind: self._mapping_of(cls) for kind, cls in _MAPPINGS.items()},
        }

    def read(self, text: str) -> Any:
        try:
            outline = json.loads(text)
            if outline["version"] > _FORMAT:
                raise RuntimeError(
                    f"this file was written by a newer pygrad (format {outline['version']})"
                )
            return self._value(outline["object"])
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            reason = f"its outline is damaged: {type(error).__name__}: {error}"
            raise _not_safetensors(reason) from None

    def _value(self, outline: Any) -> Any:
        if isinstance(outline, list):
            kind, *rest = outline
            return self._kinds[kind](*rest)
        return outline

    def _key(self, outline: Any) -> Any:
        key = self._value(outline)
        self._keys.check(key)
        return key

    def _tensor(self, name: str, flags: str) -> Tensor:
        tensor = self.tensors[name]
        if "c" in flags:
            tensor = pygrad.view_as_complex(tensor)
        if "p" in flags:
            return Parameter(tensor, requires_grad="g" in flags)
        return tensor.requires_grad_() if "g" in flags else tensor

    def _sequence_of(self, cls: Callable[[Iterable[Any]], Any]) -> Callable[..., Any]:
        return lambda entries: cls([self._value(entry) for entry in entries])

    def _mapping_of(self, cls: Callable[[dict[Any, Any]], Any]) -> Callable[..., Any]:
        def read(pairs: list[Any], metadata: Any = None) -> Any:
            mapping = cls({self._key(key): self._value(value) for key, value in pairs})
            if metadata is not None:
                mapping._metadata = self._value(metadata)
            return mapping

        return read


def _dtype(name: str) -> pygrad.dtype:
    found = getattr(pygrad, name, None)
    if not isinstance(found, pygrad.dtype):
        raise ValueError(f"unknown dtype {name}")
    return found
