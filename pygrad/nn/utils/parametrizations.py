"""Parametrizations of weights: orthogonality, length and direction, spectral norm 1."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ... import linalg
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from ..modules.conv_transpose import _ConvTransposeNd
from ..modules.module import Module
from .parametrize import register_parametrization
from .weight_norm import _lengths

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# ------------------------------------------------------------------ orthogonal


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _reflections(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The QR decomposition of tall matrices in LAPACK's form: R above the diagonal; below it the
    vectors v without their leading 1; and the factors tau of the reflections I - tau v v^T.
    """
    found = matrix.clone()
    n = found.size(-1)
    taus = found.new_zeros((*found.shape[:-2], n))
    for k in range(n):
        column = found[..., k:, k]
        head, tail = column[..., :1].clone(), column[..., 1:]
        rest = tail.norm(dim=-1, keepdim=True)
        idle = rest == 0  # nothing to reflect in this column
        beta = -pygrad.copysign(pygrad.hypot(head, rest), head)
        beta = pygrad.where(idle, head, beta)
        tau = pygrad.where(idle, 0.0, (beta - head) / pygrad.where(idle, 1.0, beta))
        v = tail / pygrad.where(idle, 1.0, head - beta)
        taus[..., k] = tau[..., 0]
        full = pygrad.cat([pygrad.ones_like(head), v], dim=-1).unsqueeze(-1)
        right = found[..., k:, k + 1 :]
        right -= tau.unsqueeze(-1) * (full @ (full.mT @ right))
        found[..., k, k] = beta[..., 0]
        found[..., k + 1 :, k] = v
    return found, taus


def _orthogonalize(matrix: Tensor) -> Tensor:
    """The Q of a QR decomposition in which R has a positive diagonal."""
    q, r = linalg.qr(matrix)
    signs: Tensor = r.diagonal(dim1=-2, dim2=-1).sgn()
    made: Tensor = q * signs.unsqueeze(-2)
    return made


def _is_orthogonal(Q: Tensor, eps: float | None = None) -> bool:
    height, width = Q.shape[-2:]
    identity = pygrad.eye(width, dtype=Q.dtype, device=Q.device)
    near = 10.0 * height * pygrad.finfo(Q.dtype).eps if eps is None else eps
    return pygrad.allclose(Q.mH @ Q, identity, atol=near)


class _Orthogonal(Module):
    """Maps a matrix X to an orthogonal one (a complex X to a unitary one). The image of minus the
    identity is ``base``.
    """

    base: Tensor

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        tall: Tensor = X.mT if wide else X
        q = self._householder_product(tall) if self._is_householder() else self._rotation(tall)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _is_householder(self) -> bool:
        return self.orthogonal_map is _OrthMaps.householder

    def _rotation(self, x: Tensor) -> Tensor:
        """exp(A), or its Cayley transform, of A = L - L^H, where L is x below its diagonal."""
        n, k = x.shape[-2:]
        lower = x.tril()
        if n != k:
            nothing = x.new_zeros(()).expand((*x.shape[:-1], n - k))
            lower = pygrad.cat([lower, nothing], dim=-1)
        skew = lower - lower.mH
        q: Tensor
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = pygrad.matrix_exp(skew)
        else:
            identity = pygrad.eye(n, dtype=x.dtype, device=x.device)
            half = skew / 2
            q = linalg.solve(identity - half, identity + half)
        return q[..., :k] if n != k else q

    def _householder_product(self, x: Tensor) -> Tensor:
        """The product of reflections along the columns below the diagonal, times its signs."""
        vectors = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
        q = linalg.householder_product(vectors, tau)
        signs = x.diagonal(dim1=-2, dim2=-1).int()  # constants: no gradient reaches them
        made: Tensor = q * signs.unsqueeze(-2)
        return made

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """A preimage of Q; of an orthogonal matrix near Q if Q is not orthogonal."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall: Tensor = Q.mT if wide else Q
        if not hasattr(self, "base"):
            found = self._inverse_of_reflections(tall)
            return found.mT if wide else found
        n, k = tall.shape[-2:]
        if n != k:
            more = pygrad.randn((*tall.shape[:-2], n, n - k), dtype=Q.dtype, device=Q.device)
            self.base = _orthogonalize(pygrad.cat([tall, more], dim=-1))
        else:
            self.base = tall.clone() if _is_orthogonal(tall) else _orthogonalize(tall)
        origin = pygrad.zeros_like(Q)
        origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return origin

    def _inverse_of_reflections(self, tall: Tensor) -> Tensor:
        if not self._is_householder():
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        found, tau = _reflections(tall)
        diagonal = found.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        # No reflection has tau 0 if tau is 2 / (1 + |v|^2). With v = 0 the reflection flips the
        # sign, which the diagonal flips back.
        diagonal[tau == 0] *= -1
        return found


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keep a matrix, or a batch of them, orthogonal.

    Args:
        module: the layer, which is modified and returned.
        name: the parameter. Wide matrices get orthonormal rows, others orthonormal columns.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square
            matrices, the last for others.
        use_trivialization: map around the last assigned matrix, which makes training easier but
            needs memory for another n x n matrix.

    Raises:
        ValueError: no such tensor, fewer than two dimensions, or an unknown map.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations
        >>> q = parametrizations.orthogonal(pygrad.nn.Linear(4, 2)).weight
        >>> pygrad.allclose(q @ q.mT, pygrad.eye(2), atol=1e-6)
        True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        rotates = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if rotates else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    function = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return register_parametrization(module, name, function, unsafe=True)


def _tensor_of(module: Module, name: str) -> Tensor:
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return found


# ------------------------------------------------------------------ length and direction


class _WeightNorm(Module):
    """The weight from its lengths g and directions v."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def _lengths(self, v: Tensor) -> Tensor:
        return _lengths(v, None if self.dim == -1 else self.dim)

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        made: Tensor = weight_v * (weight_g / self._lengths(weight_v))
        return made

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths, and the weight itself."""
        return self._lengths(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Compute a weight from its lengths, ``original0``, and its directions, ``original1``.

    State dicts with the names of the older ``nn.utils.weight_norm`` can be loaded.

    Args:
        module: the layer, which is modified and returned.
        name: the parameter.
        dim: one length for each slice along this dimension; None: one for all.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations
        >>> layer = parametrizations.weight_norm(pygrad.nn.Linear(20, 40))
        >>> tuple(layer.parametrizations.weight.original0.shape)
        (40, 1)
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *_: Any) -> None:
        older = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in older):
            for i, key in enumerate(older):
                newer = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[newer] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ------------------------------------------------------------------ spectral norm


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, estimated by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:  # a vector has its length as the only singular value
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight.detach())
            height, width = matrix.shape
            for key, size in (("_u", height), ("_v", width)):
                start = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(key, self._normalize(start))
            self._iterate(matrix, 15)

    def _normalize(self, vector: Tensor) -> Tensor:
        return F.normalize(vector, dim=0, eps=self.eps)

    def _as_matrix(self, weight: Tensor) -> Tensor:
        made: Tensor = weight.movedim(self.dim, 0).flatten(1)
        return made

    @no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        """Update the two vectors in place, since copies of the module may share them."""
        for _ in range(times):
            self._u.copy_(self._normalize(matrix.mv(self._v)))
            self._v.copy_(self._normalize(matrix.mH.mv(self._u)))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return self._normalize(weight)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies, since the next call changes the vectors, and this call's graph keeps them.
        u, v = self._u.clone(), self._v.clone()
        made: Tensor = weight / u.vdot(matrix.mv(v))
        return made

    def right_inverse(self, value: Tensor) -> Tensor:
        """Returns the value unchanged."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value.

    Args:
        module: the layer, which is modified and returned.
        name: the parameter.
        n_power_iterations: the number of power iterations at each computation of the weight in
            training.
        eps: the least length to divide by.
        dim: the dimension whose slices are the rows of a matrix; by default 0, for transposed
            convolutions 1.

    Raises:
        ValueError: there is no such tensor, or no power iterations.
        IndexError: the tensor has no such dimension.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils import parametrizations
        >>> layer = parametrizations.spectral_norm(pygrad.nn.Linear(20, 40))
        >>> 0.9 < pygrad.linalg.matrix_norm(layer.weight, 2).item() < 1.3
        True
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    function = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, function)
