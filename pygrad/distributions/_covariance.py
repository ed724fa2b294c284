"""The base class of distributions that are parametrized by a covariance."""

from __future__ import annotations

from .. import linalg
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .utils import lazy_property

# The parameters that can give a covariance, with their constraints.
FORMS = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of P."""
    flipped = linalg.cholesky(P.flip((-2, -1)))
    lower = flipped.flip((-2, -1)).mT
    identity = pygrad.eye(P.size(-1), dtype=P.dtype)
    return linalg.solve_triangular(lower, identity, upper=False)


class Covariance(Distribution):
    """A distribution parametrized by a covariance, its inverse or its Cholesky factor."""

    _unbroadcasted_scale_tril: Tensor

    @staticmethod
    def _only_form(refusal: type[Exception], **forms: Tensor | None) -> tuple[str, Tensor]:
        """Name and matrix of the given form; raises `refusal` unless exactly one is given."""
        found = [(name, matrix) for name, matrix in forms.items() if matrix is not None]
        if len(found) != 1:
            raise refusal(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        return found[0]

    def _keep_factor(self, name: str, matrix: Tensor) -> None:
        """Stores the Cholesky factor, without broadcasting it to the batch shape."""
        if name == "covariance_matrix":
            matrix = linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _expand_to_batch(self, matrix: Tensor) -> Tensor:
        """A matrix expanded to the batch shape."""
        return matrix.expand(self._batch_shape + self._event_shape[-1:] * 2)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._expand_to_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._expand_to_batch(
            self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT
        )
