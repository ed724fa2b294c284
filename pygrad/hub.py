"""Models of repositories that describe themselves in a ``hubconf.py``; weights by their address.

A repository is a folder of this machine, or one of GitHub's, which is fetched once. Its code runs,
so whether it may is asked for, unless the answer is given.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ._ground.package import submodule

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
VAR_DEPENDENCY = "dependencies"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder for downloads: set by `set_dir`, or ``$TORCH_HOME/hub``; ``$TORCH_HOME`` is by
    default ``$XDG_CACHE_HOME/torch`` or ``~/.cache/torch``.
    """
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder for downloads.

    Example:
        >>> import pygrad
        >>> before = pygrad.hub.get_dir()
        >>> pygrad.hub.set_dir("models")
        >>> pygrad.hub.get_dir()
        'models'
        >>> pygrad.hub.set_dir(before)
    """
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ------------------------------------------------------------------ repositories


@contextlib.contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AssertionError(f"failed to load spec from {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hubconf(
    repo_or_dir: str | os.PathLike[str],
    source: str,
    trust_repo: Any,
    force_reload: bool,
    verbose: bool,
) -> tuple[str, Any]:
    """The folder of a repository, and its description, run."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = str(repo_or_dir)
    if source == "github":
        folder = _get_cache_or_reload(folder, force_reload, trust_repo, verbose)
    with _add_to_sys_path(folder):
        return folder, _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))


def _entry(described: Any, model: Any) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needs = getattr(described, VAR_DEPENDENCY, None) or []
    missing = [name for name in needs if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    function = getattr(described, model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a function of a repository's ``hubconf.py``, which as a rule returns a model.

    Args:
        repo_or_dir: a folder; or "owner/name" or "owner/name:ref" of GitHub.
        model: the name of the function.
        args, kwargs: its arguments.
        source: "github" or "local".
        trust_repo: whether the code may run: True, False (ask), "check" (ask once).
        force_reload: fetch it again.
        verbose: report that a cached copy is used.
        skip_validation: no effect.

    Raises:
        ValueError: another source.
        RuntimeError: there is no such function, or a dependency is missing.
    """
    folder, described = _hubconf(repo_or_dir, source, trust_repo, force_reload, verbose)
    with _add_to_sys_path(folder):
        return _entry(described, model)(*args, **kwargs)


def _load_local(hubconf_dir: str | os.PathLike[str], model: str, *args: Any, **kwargs: Any) -> Any:
    return load(hubconf_dir, model, *args, source="local", **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    *,
    source: str = "github",
) -> Any:
    """The names of the functions that a repository offers; arguments as of `load`."""
    _, described = _hubconf(github, source, trust_repo, force_reload, verbose)
    return [n for n in dir(described) if callable(getattr(described, n)) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    *,
    source: str = "github",
) -> Any:
    """The docstring of a function of a repository's ``hubconf.py``."""
    _, described = _hubconf(github, source, trust_repo, force_reload, True)
    return _entry(described, model).__doc__


# ------------------------------------------------------------------ GitHub


def _get_cache_or_reload(
    github: str,
    force_reload: bool,
    trust_repo: Any,
    verbose: bool = True,
    skip_validation: bool = False,
) -> str:
    """The folder where a repository of GitHub's was put."""
    repository, _, ref = github.partition(":")
    owner, _, name = repository.partition("/")
    if not (owner and name):
        raise ValueError(f"expected owner/name or owner/name:ref, but got {github}")
    ref = ref or "main"
    place = "_".join([owner, name, ref.replace("/", "_")])
    folder = os.path.join(get_dir(), place)
    os.makedirs(get_dir(), exist_ok=True)
    _check_trust(owner, name, place, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    with tempfile.TemporaryDirectory(dir=get_dir()) as between:
        archive = os.path.join(between, "archive.zip")
        url = f"https://github.com/{owner}/{name}/zipball/{ref}"
        sys.stderr.write(f'Downloading: "{url}" to {archive}\n')
        download_url_to_file(url, archive, progress=False)
        with zipfile.ZipFile(archive) as file:
            top = file.infolist()[0].filename.split("/")[0]
            _safe_extract_zip(file, between)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(between, top), folder)
    return folder


def _safe_extract_zip(zip_file: zipfile.ZipFile, extract_to: str | os.PathLike[str]) -> None:
    """Unpacks an archive; no entry of it may lie elsewhere.

    Raises:
        ValueError: one would.
    """
    root = Path(extract_to).resolve()
    for entry in zip_file.infolist():
        name = entry.filename.replace("\\", "/")
        if name.startswith("/") or re.match(r"[A-Za-z]:", name):
            raise ValueError(f"Archive entry has absolute path: {entry.filename}")
        if ".." in name.split("/"):
            raise ValueError(f"Archive entry contains directory traversal: {entry.filename}")
        if not (root / name).resolve().is_relative_to(root):
            raise ValueError(f"Archive entry escapes target directory: {entry.filename}")
        zip_file.extract(entry, root)


def _check_trust(owner: str, name: str, place: str, trust_repo: Any) -> None:
    """Asks whether a repository's code may run, and remembers the answer.

    Raises:
        ValueError: the answer, or the argument, is invalid.
        Exception: the code may not run.
    """
    if trust_repo not in (None, True, False, "check"):
        raise ValueError(f"trust_repo should be True, False or 'check', but got {trust_repo}")
    path = os.path.join(get_dir(), "trusted_list")
    known = Path(path).read_text().split() if os.path.exists(path) else []
    both = f"{owner}_{name}"
    trusted = (
        both in known
        or owner in _TRUSTED_REPO_OWNERS
        or os.path.exists(os.path.join(get_dir(), place))
    )
    if trust_repo is False or (trust_repo in (None, "check") and not trusted):
        answer = input(
            f"The repository {owner}_{name} does not belong to the list of trusted repositories "
            "and as such cannot be downloaded. Do you trust this repository and wish to add it to "
            "the trusted list of repositories (y/N)?"
        )
        if answer.lower() in ("", "n", "no"):
            raise Exception("Untrusted repository.")
        if answer.lower() not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if both not in known:
        with open(path, "a") as file:
            file.write(both + "\n")


# ------------------------------------------------------------------ files


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetches a file; it gets its name when it is complete.

    Args:
        url: where it is; "file:" works too.
        dst: its name here.
        hash_prefix: the beginning of the hexadecimal SHA-256 of its bytes.
        progress: tell how many there are.

    Raises:
        RuntimeError: it has another hash.
    """
    dst = os.path.expanduser(dst)
    partial = dst + "." + os.urandom(8).hex() + ".partial"
    digest = hashlib.sha256()
    try:
        request = Request(url, headers={"User-Agent": "pygrad.hub"})
        with urlopen(request) as source, open(partial, "wb") as file:
            while chunk := source.read(READ_DATA_CHUNK):
                file.write(chunk)
                digest.update(chunk)
        if progress:
            sys.stderr.write(f"{os.path.getsize(partial)} bytes\n")
        found = digest.hexdigest()
        if hash_prefix is not None and found[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        shutil.move(partial, dst)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Downloads a file once, and loads it with `load`.

    Args:
        url: the file's address.
        model_dir: the folder for the file; by default "checkpoints" of `get_dir`.
        map_location: as for `load`.
        progress: report the number of bytes received.
        check_hash: check the beginning of the file's hash, which follows ``-`` in its name.
        file_name: the local name, if it differs from the remote one.
        weights_only: as for `load`.

    Raises:
        RuntimeError: it has another hash.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        match = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, match.group(1) if match else None, progress)
    read = submodule("serialization").load
    return read(path, map_location=map_location, weights_only=weights_only)
