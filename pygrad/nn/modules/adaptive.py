"""A softmax over very many classes, few of which are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import DeviceLike, DTypeLike
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes by frequency: frequent classes, and clusters of the others.

    The head has the frequent classes and one more class for each cluster. A cluster's own layers,
    narrower for rarer classes, are computed only for targets in the cluster.

    Args:
        in_features: length of the last dimension of the input.
        n_classes: the number of classes; class 0 is the most frequent.
        cutoffs: the first class of each cluster.
        div_value: the factor by which each cluster's layers are narrower than the previous one's.
        head_bias: whether the head has a bias.

    Shape: (N, in_features) and (N,), or (in_features,) and () -> (N,) or (), and ().

    Raises:
        ValueError: cutoffs that are not increasing, or not below ``n_classes``.
        RuntimeError: (at the call) incompatible shapes, or a target that is no class.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.AdaptiveLogSoftmaxWithLoss(16, 20, [4, 10])
        >>> result = layer(pygrad.zeros(3, 16), pygrad.tensor([0, 5, 19]))
        >>> tuple(result.output.shape), tuple(result.loss.shape)
        ((3,), ())
        >>> tuple(layer.log_prob(pygrad.zeros(3, 16)).shape)
        (3, 20)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = all(a < b for a, b in pairwise([0, *cutoffs, n_classes]))
        if not increasing or any(int(cutoff) != cutoff for cutoff in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        factory: Any = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i, (begin, end) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**i)
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **factory),
                    Linear(width, end - begin, bias=False, **factory),
                )
            )

    def reset_parameters(self) -> None:
        """Redraw all weights."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check(input_, target_)
        alone = target_.dim() == 0
        input, target = (input_[None], target_[None]) if alone else (input_, target_)
        # For each row: the class in the head, and the log-probability within a cluster.
        classes = target.new_empty(target.size(0))
        within = input.new_zeros(target.size(0))
        found = 0
        for i, (begin, end) in enumerate(pairwise([0, *self.cutoffs])):
            rows = ((target >= begin) & (target < end)).nonzero().squeeze(1)
            found += rows.numel()
            if not rows.numel():
                continue
            own = target.index_select(0, rows) - begin
            if i == 0:
                classes.index_copy_(0, rows, own)
                continue
            classes.index_fill_(0, rows, self.shortlist_size + i - 1)
            scores = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            within = within.index_copy(0, rows, scores.gather(1, own[:, None]).squeeze(1))
        if found != target.size(0):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = within + head.gather(1, classes[:, None]).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if alone else output, loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        rank = target.dim()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 1 and input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.dim() != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, "
                f"but found inputs with size {input.size()}"
            )

    def _all_classes(self, input: Tensor, scores: Tensor) -> Tensor:
        head = F.log_softmax(scores, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            reached = head[:, self.shortlist_size + i, None]
            parts.append(F.log_softmax(cluster(input), dim=1) + reached)
        return pygrad.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes.

        Shape: (N, in_features) -> (N, n_classes).
        """
        return self._all_classes(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely classes: the same as ``log_prob(input).argmax(dim=1)``, but faster.

        Clusters are evaluated only for rows whose most likely class in the head is a cluster.

        Shape: (N, in_features) -> (N,).
        """
        scores = self.head(input)
        output: Tensor = scores.argmax(dim=1)
        rare = output >= self.shortlist_size
        if rare.any():
            output[rare] = self._all_classes(input[rare], scores[rare]).argmax(dim=1)
        return output
