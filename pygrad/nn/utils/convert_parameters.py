"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..modules.utils import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters in order, as one differentiable vector.

    Example:
        >>> import pygrad
        >>> parameters_to_vector([pygrad.zeros(2), pygrad.ones(1, 1)]).tolist()
        [0.0, 0.0, 1.0]
    """
    return pygrad.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the data of the parameters to slices of a vector, in order; storage is shared.

    Raises:
        TypeError: ``vec`` is no tensor.
        RuntimeError: it has too few elements.

    Example:
        >>> import pygrad
        >>> p = pygrad.nn.Parameter(pygrad.zeros(1, 2))
        >>> vector_to_parameters(pygrad.tensor([1.0, 2.0]), [p])
        >>> p.tolist()
        [[1.0, 2.0]]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
