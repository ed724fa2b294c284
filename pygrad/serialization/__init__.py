"""``save`` and ``load``: PyTorch's files, and safetensors files.

A path that ends in ``.safetensors`` gives a safetensors file: tensors and plain containers of them,
by value. Any other path gives PyTorch's zip file, which PyTorch's ``load`` reads: an object with
its tensors, views and shared storages. `load` distinguishes the two by content, and also reads
PyTorch's files from before 1.6. It runs no code from the file unless ``weights_only=False``.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import re
import shutil
import tempfile
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Iterator
from typing import IO, Any, Final, TypeAlias, TypeGuard

from .._ground.warnings import once
from ..utils.serialization import config
from . import _legacy, _safetensors
from ._archive import MAGIC, ArchiveReader
from ._globals import SAFE, StorageType, add_safe_globals, allowed_globals, clear_safe_globals
from ._globals import get_safe_globals as get_safe_globals
from ._globals import safe_globals as safe_globals
from ._locations import MAP_LOCATION as MAP_LOCATION
from ._locations import (
    default_restore_location,
    location_tag,
    normalize_storage_type,
    register_package,
    restorer,
    storage_to_tensor_type,
    validate_cuda_device,
    validate_hpu_device,
)
from ._options import (
    MAP_SHARED,
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    local,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._reading import read_archive
from ._writing import _get_layout, write_archive

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

Path: TypeAlias = "str | os.PathLike[str]"
FILE_LIKE: TypeAlias = "Path | IO[bytes]"

DEFAULT_PROTOCOL: Final = 2
MAGIC_NUMBER: Final = _legacy.MAGIC_NUMBER
PROTOCOL_VERSION: Final = _legacy.PROTOCOL_VERSION
_SUFFIX: Final = ".safetensors"


class SourceChangeWarning(Warning):
    """PyTorch's warning about changed source of modules in older files. Never issued by pygrad."""


@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A temporary folder that is removed at the end of the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _is_path(name_or_buffer: Any) -> TypeGuard[Path]:
    return isinstance(name_or_buffer, (str, os.PathLike))


def _is_safetensors(f: Any) -> bool:
    return _is_path(f) and os.fspath(f).endswith(_SUFFIX)


# ------------------------------------------------------------------ save


def save(
    obj: Any,
    f: FILE_LIKE,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object: tensors, a state dict, a module, or any other object that can be pickled.

    A path that ends in ``.safetensors`` gives a safetensors file, which holds tensors and plain
    containers of them by value, and which other programs read. Any other path gives PyTorch's zip
    file: tensors that share a storage share it when loaded, and a view keeps its strides. Equal
    objects give equal files.

    Args:
        obj: for safetensors: tensors, ``None``, bools, ints, floats, strings, dtypes, and dicts,
            lists and tuples of them.
        f: a path, or a file open for writing bytes.
        pickle_module, pickle_protocol: the pickler of objects other than tensors. PyTorch's
            ``load`` reads files written with the defaults.

    Raises:
        TypeError: ``obj`` contains a value that the file cannot hold.
        RuntimeError: two tensors view one storage as different types; or the folder does not exist.
        OSError: the file cannot be written; it is opened only after everything is pickled.

    Example:
        >>> import io, pygrad
        >>> file = io.BytesIO()
        >>> pygrad.save({"epoch": 3, "weights": [pygrad.ones(2)]}, file)
        >>> _ = file.seek(0)
        >>> pygrad.load(file)["weights"][0].tolist()
        [1.0, 1.0]
    """
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    _check_dill(pickle_module)
    if _is_safetensors(f):
        _write(f, _safetensors.encode(obj))
    elif not _use_new_zipfile_serialization:
        if local.skip_data:
            raise RuntimeError(
                "Cannot use skip_data=True with _use_new_zipfile_serialization=False"
            )
        _write(f, _legacy.encode(obj, pickle_module, pickle_protocol))
    else:
        with contextlib.ExitStack() as opened:
            write_archive(
                obj,
                lambda: opened.enter_context(_open_to_write(f)).write,
                _folder(f),
                pickle_module,
                pickle_protocol,
                not _disable_byteorder_record,
            )


def _write(f: FILE_LIKE, data: bytes) -> None:
    with _open_to_write(f) as file:
        file.write(data)


@contextlib.contextmanager
def _open_to_write(f: FILE_LIKE) -> Iterator[IO[bytes]]:
    if _is_path(f):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        with open(f, "wb") as file:
            yield file
    else:
        yield f  # type: ignore[misc]
        if hasattr(f, "flush"):
            f.flush()


def _folder(f: FILE_LIKE) -> str:
    """PyTorch's name for the folder in an archive."""
    name = os.path.basename(os.fspath(f)) if _is_path(f) else ""
    stem, dot, _ = name.rpartition(".")
    found = stem if dot else name
    return found if found and found.isascii() else "archive"


# ------------------------------------------------------------------ load

_UNSAFE: Final = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` "
    "from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will "
    "likely succeed, but it can result in arbitrary code execution. Do it only if you got the file "
    "from a trusted source."
)
_SEE: Final = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
    "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)


def load(
    f: FILE_LIKE,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a file of `save` or of PyTorch's ``save``, or a safetensors file as a dict of tensors.

    By default no code from the file runs: it may contain only tensors, dtypes, plain containers,
    numbers, and the globals given to `serialization.add_safe_globals`.

    Args:
        f: a path, or a file open for reading bytes that can seek.
        map_location: the destination of storages: a device, a dict from the file's locations to
            others, or a function of a storage and its location. The only device is the CPU.
        pickle_module: the module whose ``Unpickler`` to use; None for Python's.
        weights_only: False: unpickle, which may run any code; only for files from a trusted source.
            The default is True unless there is a `pickle_module`.
        mmap: accepted for paths of PyTorch's zip files. The file is still read, since the engine's
            memory cannot map a file.
        pickle_load_args: arguments of the unpickler, such as ``encoding`` for files of Python 2.

    Raises:
        pickle.UnpicklingError: the file contains more than weights; the message names it.
        RuntimeError: the file is damaged, or needs a device that does not exist.
        EOFError: the file is empty, or its pickle is truncated.
        NotImplementedError: a dtype or the format of the file is not supported; or ``mmap`` should
            write to the file.

    Example:
        >>> import io, pygrad
        >>> file = io.BytesIO()
        >>> model = pygrad.nn.Linear(2, 1)
        >>> pygrad.save(model.state_dict(), file)
        >>> _ = file.seek(0)
        >>> model.load_state_dict(pygrad.load(file))
        <All keys matched successfully>
    """
    safely = _decide(weights_only, pickle_module)
    if safely and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_load_args and safely:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    _check_dill(pickle_module)
    mapped = config.load.mmap if mmap is None else mmap
    module = None if safely else (pickle_module or pickle)
    options = {"encoding": "utf-8", **pickle_load_args}
    with _open_to_read(f) as file:
        start = _peek(file, 9)
        if _is_safetensors(f) or _safetensors.looks_like_one(start):
            _refuse_other_places(map_location)
            return _safetensors.decode(file.read())
        if not safely and once("unpickling"):
            warnings.warn(
                "load(weights_only=False) runs whatever code the file names. Do so only with files "
                "whose writer you trust.",
                stacklevel=2,
            )
        is_zip = start.startswith(MAGIC)
        _check_mapping(f, mapped, is_zip)
        try:
            if not is_zip:
                return _legacy.read(file, map_location, module, options)
            archive = ArchiveReader(file)
            _refuse_script(archive, safely)
            return read_archive(archive, map_location, module, options)
        except pickle.UnpicklingError as error:
            if module is not None:
                raise
            raise pickle.UnpicklingError(_explain_failure(str(error))) from None


def _decide(weights_only: bool | None, pickle_module: Any) -> bool:
    """Whether to read without running code, by the argument or the environment."""
    wanted = pickle_module is None if weights_only is None else bool(weights_only)
    force, free = (
        os.environ.get(f"TORCH_FORCE_{name}", "0").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY_LOAD", "NO_WEIGHTS_ONLY_LOAD")
    )
    if force and free:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if free and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.",
            stacklevel=3,
        )
        return False
    return wanted or force


@contextlib.contextmanager
def _open_to_read(f: FILE_LIKE) -> Iterator[IO[bytes]]:
    if _is_path(f):
        with open(f, "rb") as file:
            yield file
        return
    try:
        f.seek(f.tell())  # type: ignore[union-attr]
    except (io.UnsupportedOperation, AttributeError) as error:
        if "seek" not in str(error) and "tell" not in str(error):
            raise
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the "
            "data into a buffer like io.BytesIO and try to load from it instead."
        ) from None
    yield f  # type: ignore[misc]


def _peek(file: IO[bytes], count: int) -> bytes:
    at = file.tell()
    start = file.read(count)
    file.seek(at)
    return start


def _check_mapping(f: FILE_LIKE, mapped: bool, is_zip: bool) -> None:
    if not mapped:
        return
    if not is_zip:
        name = f"{f}, " if isinstance(f, str) else ""
        raise RuntimeError(
            "mmap can only be used with files saved with "
            f"`torch.save({name}_use_new_zipfile_serialization=True), please torch.save your "
            "checkpoint with this option in order to use mmap."
        )
    if not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if config.load.mmap_flags == MAP_SHARED:
        raise NotImplementedError(
            "load: mmap=True with MAP_SHARED is not supported: the engine's memory cannot be a file"
        )


def _refuse_other_places(map_location: Any) -> None:
    """Raises unless tensors go to the CPU, the only location for safetensors files."""
    from ..storage import UntypedStorage

    place = restorer(map_location)(UntypedStorage(0), "cpu")
    if place.device.type != "cpu":
        raise NotImplementedError(f"load: map_location={map_location!r} is not supported")


def _refuse_script(archive: ArchiveReader, safely: bool) -> None:
    if "constants.pkl" not in archive:
        return
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to "
        "'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)",
        stacklevel=3,
    )
    if safely:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
            + _UNSAFE
        )
    raise NotImplementedError("load: TorchScript archives are not supported: save a state_dict()")


def _explain_failure(message: str) -> str:
    """PyTorch's error text for a failed load of weights, around the message."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        text = (
            "Weights only load failed. This file can still be loaded, to do so you have two "
            "options, \033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please "
            "check the recommended steps in the following error message.\n\tWeightsUnpickler "
            f"error: {message}"
        )
        return text + _SEE
    text = f"Weights only load failed. {_UNSAFE}\n"
    if not re.search(r"whose module (\S+) is blocked", message):
        text += (
            "Please file an issue with the following so that we can make `weights_only=True` "
            "compatible with your use case: WeightsUnpickler error: "
        )
    return f"{text}\n\n{message}{_SEE}"


# ------------------------------------------------------------------ inspection without loading


def get_unsafe_globals_in_checkpoint(f: FILE_LIKE) -> list[str]:
    """The globals in a PyTorch file that `load` refuses by default, as ``module.name``.

    Raises:
        ValueError: the file is no zip file of PyTorch's, or holds TorchScript.
    """
    with _open_to_read(f) as file:
        if not _peek(file, len(MAGIC)).startswith(MAGIC):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = ArchiveReader(file)
        if "constants.pkl" in archive:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript "
                "checkpoint"
            )
        text = archive.read("data.pkl")
    named: dict[str, None] = {}
    try:
        for code, value, _ in pickletools.genops(text):
            if code.name == "GLOBAL":
                module, _, name = str(value).partition(" ")
                if (module, name) in NAME_MAPPING:
                    module, name = NAME_MAPPING[module, name]
                named[f"{IMPORT_MAPPING.get(module, module)}.{name}"] = None
    except ValueError as error:
        raise pickle.UnpicklingError(f"the pickle is damaged: {error}") from None
    safe = {*SAFE, *allowed_globals()}
    return [name for name in named if name not in safe]


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least the version given as a tuple.

    Raises:
        RuntimeError: the version cannot be parsed; without `error_if_malformed` only a warning is
            issued, and the result is True.
    """
    try:
        parts = module.__version__.split(".")
        found = tuple(type(part)(parts[i]) for i, part in enumerate(req_version_tuple))
        return bool(found >= req_version_tuple)
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            f"cannot be compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def _check_dill(pickle_module: Any) -> None:
    if pickle_module is None or pickle_module.__name__ != "dill":
        return
    if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
        raise ValueError(
            "'torch' supports dill >= (0, 3, 1), but you have dill "
            f"{pickle_module.__version__}. Please upgrade dill or switch to 'pickle'"
        )


_get_layout.__module__ = __name__  # files refer to it here
