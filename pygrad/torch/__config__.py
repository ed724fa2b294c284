"""How pygrad was built, and on how many threads it runs."""

from __future__ import annotations

from pathlib import Path

from .._ground.package import pygrad
from .torch_version import __version__


def _record() -> dict[str, str]:
    """The record of the build, by the first word of each line."""
    lines = Path(pygrad.__file__).with_name("core.build.txt").read_text().splitlines()
    return {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in lines}


def show() -> str:
    """A readable text about the build, line by line.

    Example:
        >>> import pygrad.torch as torch
        >>> print(torch.__config__.show().splitlines()[0])
        PyTorch built with:
    """
    record = _record()
    lines = [
        f"pygrad {pygrad.__version__}, one WebAssembly binary of {record['bytes']} bytes",
        f"emscripten {record['emcc']}, {record['clang']}",
        "CPU capability usage: SIMD of 128 bits",
        f"Build settings: CXX_FLAGS={record['compile']}, "
        f"TORCH_VERSION={__version__.partition('+')[0]}, USE_CUDA=0, USE_CUDNN=OFF, USE_MKL=OFF, "
        "USE_MKLDNN=OFF, USE_MPI=OFF, USE_NCCL=OFF, USE_OPENMP=OFF, USE_ROCM=OFF, ",
    ]
    return "PyTorch built with:\n" + "".join(f"  - {line}\n" for line in lines)


def parallel_info() -> str:
    """A readable text about threads, line by line."""
    return (
        "ATen/Parallel:\n"
        f"\tat::get_num_threads() : {pygrad.get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {pygrad.get_num_interop_threads()}\n"
        "ATen parallel backend: none\n"
    )


def _cxx_flags() -> str:
    """The flags of the compiler."""
    return _record()["compile"]
