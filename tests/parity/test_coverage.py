"""Every public name of torch.autograd and its submodules is here, or absent for a reason.

Run as a script, it writes the table of web/docs/names.md.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import pygrad

DOCUMENT = Path(__file__).parents[2] / "web" / "docs" / "names.md"
BEGIN, END = "<!-- written by tests/parity/test_coverage.py -->\n", "<!-- end -->"

_CUDA, _KINETO = "CUDA streams", "PyTorch's native profiler"
_COMPILED, _PLUMBING = "torch.compile", "the profiler's own plumbing"
_CTX = "of a ctx, which has it; not of the class itself"
ABSENT = {
    "graph.region_activation_memory_budget": _COMPILED,
    "graph.set_override_stale_capture_stream": _CUDA,
    "graph.set_warn_on_accumulate_grad_stream_mismatch": _CUDA,
    "profiler.EnforceUnique": _PLUMBING,
    "profiler.KinetoStepTracker": _KINETO,
    "profiler.MemRecordsAcc": _PLUMBING,
    "profiler.parse_nvprof_trace": "load_nvprof raises: there is no nvprof",
    "profiler_legacy": "deprecated for years",
    "profiler_util.EventMetadata": _KINETO,
    "profiler_util.FormattedTimesMixin": _PLUMBING,
    "profiler_util.Kernel": "CUDA kernels",
    "profiler_util.MemRecordsAcc": _PLUMBING,
    "profiler_util.StringTable": _PLUMBING,
}
"""Why a name is not here; without its leading torch.autograd."""

ABSENT_MEMBERS = {
    "Function": (
        "maybe_clear_saved_tensors metadata name next_functions register_hook register_prehook "
        "requires_grad",
        _CTX,
    ),
    "BackwardCFunction": ("maybe_clear_saved_tensors", _PLUMBING),
    "FunctionEvent": (
        "append_kernel cuda_time cuda_time_total device_time_str device_time_total_str "
        "metadata_json self_cuda_memory_usage self_cuda_time_total self_device_time_total_str "
        "set_cpu_parent",
        "times of a GPU, and plumbing",
    ),
    "FunctionEventAvg": (
        "cuda_time device_time_str device_time_total_str self_device_time_total_str",
        "times of a GPU",
    ),
    "EventList": ("supported_export_stacks_metrics", _PLUMBING),
    "profile": ("config create_trace_id default_trace_id", _KINETO),
}


def modules() -> list[str]:
    """torch.autograd and its public submodules."""
    below = pkgutil.iter_modules(torch.autograd.__path__, "torch.autograd.")
    found = (m.name for m in below if not m.name.rpartition(".")[2].startswith("_"))
    return ["torch.autograd", *found]


def module_of(name: str, library: str) -> ModuleType | None:
    """A module of torch by its name, or the one of pygrad in its place."""
    name = library + name.removeprefix("torch")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return None
    return sys.modules[name]


def public(module: Any) -> list[str]:
    """The names that a module offers."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def survey() -> dict[str, tuple[list[str], list[str]]]:
    """Module -> (names present, names absent)."""
    found = {}
    for name in modules():
        theirs, mine = module_of(name, "torch"), module_of(name, "pygrad")
        names = public(theirs)
        found[name] = (
            [each for each in names if hasattr(mine, each)],
            [each for each in names if not hasattr(mine, each)],
        )
    return found


def reason(module: str, name: str) -> str:
    short = module.removeprefix("torch.autograd").lstrip(".")
    path = f"{short}.{name}".lstrip(".")
    return ABSENT.get(path) or ABSENT[short]


def table() -> str:
    """The table of the document."""
    lines = ["| module | present | absent, and why |", "|---|---|---|"]
    for module, (present, absent) in survey().items():
        why: dict[str, list[str]] = {}
        for name in absent:
            why.setdefault(reason(module, name), []).append(f"`{name}`")
        missing = "; ".join(f"{', '.join(names)} ({text})" for text, names in why.items())
        lines.append(f"| `{module}` | {', '.join(present) or 'none'} | {missing} |")
    return "\n".join(lines) + "\n"


def test_readme_has_the_table() -> None:
    text = DOCUMENT.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table()


def test_reasons_are_for_what_is_absent() -> None:
    absent = {
        f"{module.removeprefix('torch.autograd')}.{name}".lstrip(".")
        for module, (_, names) in survey().items()
        for name in names
    }
    modules_absent = {path.partition(".")[0] for path in absent}
    listed = {path for path in ABSENT if path.count(".") < 2}
    assert {path for path in listed if "." in path} <= absent
    assert {path for path in listed if "." not in path} <= modules_absent


def test_classes_have_the_members_of_pytorchs() -> None:
    for module, (present, _) in survey().items():
        theirs, mine = module_of(module, "torch"), module_of(module, "pygrad")
        for name in present:
            kind = getattr(theirs, name)
            if not inspect.isclass(kind):
                continue
            known = next((k for k in kind.__mro__ if k.__name__ in ABSENT_MEMBERS), None)
            excused = ABSENT_MEMBERS[known.__name__][0].split() if known else []
            members = {m for m in dir(kind) if not m.startswith("_")}
            missing = {m for m in members if not hasattr(getattr(mine, name), m)}
            assert missing <= {*excused}, (module, name, missing - {*excused})


def test_signatures_take_pytorchs_arguments() -> None:
    for module, (present, _) in survey().items():
        theirs, mine = module_of(module, "torch"), module_of(module, "pygrad")
        for name in present:
            if not inspect.isfunction(getattr(theirs, name)):
                continue
            wanted = inspect.signature(getattr(theirs, name)).parameters
            offered = inspect.signature(getattr(mine, name)).parameters
            assert list(wanted) == list(offered), (module, name)


def test_tensor_has_autograds_attributes() -> None:
    for name in dir(torch.Tensor):
        if ("grad" in name and "hooks" not in name) or name in (
            "is_leaf",
            "is_inference",
            "output_nr",
            "_version",
            "_base",
        ):
            assert hasattr(pygrad.Tensor, name), name


if __name__ == "__main__":
    written = DOCUMENT.read_text()
    head, rest = written.split(BEGIN)
    DOCUMENT.write_text(head + BEGIN + table() + END + rest.split(END, 1)[1])
