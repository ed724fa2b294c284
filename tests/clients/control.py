"""Runs a program under torch: `control.py program.py`.

torchvision's wheels are built for CUDA, and its compiled operators do not load beside a torch for
the CPU. They are declared here, so that the rest of it can be imported; nothing calls them.
"""

import runpy
import sys

import torch

_OPS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_library = torch.library.Library("torchvision", "DEF")
for _name, _schema in _OPS.items():
    _library.define(_name + _schema)

if __name__ == "__main__":
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
