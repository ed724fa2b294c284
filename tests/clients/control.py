"""Runs a program under torch: `control.py program.py`.

torchvision's wheels are built for CUDA, and its compiled operators do not load beside a torch for
the CPU. They are declared here then, so that the rest of it can be imported; nothing calls them.
"""

import importlib.util
import runpy
import sys
from pathlib import Path

import torch

_OPS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def _load() -> None:
    """Loads the compiled operators of torchvision, if it is here and they fit."""
    found = importlib.util.find_spec("torchvision")
    for place in (found and found.submodule_search_locations) or []:
        for library in Path(place).glob("_C*"):
            torch.ops.load_library(str(library))


try:
    _load()
except (ImportError, OSError):
    _library = torch.library.Library("torchvision", "DEF")
    for _name, _schema in _OPS.items():
        _library.define(_name + _schema)

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
