"""PyTorch's dialect: ``import pygrad.torch as torch``.

All of `pygrad` under PyTorch's names, submodules included: ``from pygrad.torch.autograd import
Function``, ``import pygrad.torch.nn.functional as F``. Nothing is listed here: a name is looked up
in `pygrad`, and a submodule is the module of `pygrad` with that name, unless this folder has a file
for it. One thing is different: `autograd.graph.allow_mutation_on_saved_tensors`, in pygrad a
function that returns True, is PyTorch's context manager. Queries about the library are answered as
in PyTorch: `__name__` is "torch", and `__version__` the version of PyTorch that pygrad follows.

Example:
    >>> import pygrad.torch as torch
    >>> from pygrad.torch.autograd import grad
    >>> import pygrad.torch.nn.functional as F
    >>> x = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> grad(F.relu(x).sum(), x)
    (tensor([1., 0.]),)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._ground.package import pygrad as _original
from .._install.dialect import DIALECT as _DIALECT
from .._install.dialect import find_modules as _find_modules
from .._install.dialect import forward as _forward

if TYPE_CHECKING:
    from .. import *
elif __name__ == _DIALECT:
    _find_modules()
    __getattr__, __dir__ = _forward(__name__)
    __all__ = list(getattr(_original, "__all__", ()))
else:  # of another engine, for the modules that lie here

    def __getattr__(name):
        return getattr(_original, name)


from .._ground import wanted as _wanted

has_cuda = has_cudnn = has_mkldnn = has_mps = False  # whether PyTorch was built with them

from .torch_version import __version__ as __version__

if _wanted.TRACES:
    _wanted.watch(_original.Tensor, "torch.Tensor")
