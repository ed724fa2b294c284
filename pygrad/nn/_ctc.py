"""Connectionist temporal classification: the loss of a labelling over all its alignments."""

from __future__ import annotations

from typing import Any

from .._package import pygrad
from .._tensor import Tensor

__all__ = ["ctc_loss"]

_NEVER = -1e30
"""The logarithm of what cannot be; finite, so that gradients through it are zeros."""


def _padded(targets: Tensor, lengths: list[int]) -> Tensor:
    """Targets (N, S), of concatenated ones too."""
    if targets.dim() == 2:
        return targets.long()
    rows = targets.long().split(lengths)
    return pygrad.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)


def _shifted(alpha: Tensor, by: int) -> Tensor:
    if alpha.size(1) <= by:
        return pygrad.full_like(alpha, _NEVER)
    return pygrad.cat([pygrad.full_like(alpha[:, :by], _NEVER), alpha[:, :-by]], 1)


def _losses(
    log_probs: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, blank: int
) -> Tensor:
    """The loss of each sample, by the forward recursion over labels with blanks between them."""
    n, longest = targets.shape
    labels = pygrad.full((n, 2 * longest + 1), blank, dtype=pygrad.int64)
    labels[:, 1::2] = targets
    skips = labels != blank
    skips[:, 2:] &= labels[:, 2:] != labels[:, :-2]
    skips[:, :2] = False
    at = log_probs.gather(2, labels.expand(log_probs.size(0), -1, -1))
    alpha = pygrad.full_like(at[0], _NEVER)
    begins = min(2, alpha.size(1))
    alpha = pygrad.cat([at[0][:, :begins], alpha[:, begins:]], 1)
    for step in range(1, log_probs.size(0)):
        skipped = pygrad.where(skips, _shifted(alpha, 2), _NEVER)
        ways = pygrad.stack([alpha, _shifted(alpha, 1), skipped]).logsumexp(0) + at[step]
        alpha = pygrad.where((step < inputs).unsqueeze(1), ways, alpha)
    last = alpha.gather(1, (2 * lengths).unsqueeze(1)).squeeze(1)
    before = alpha.gather(1, (2 * lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    before = pygrad.where(lengths > 0, before, _NEVER)
    found = -pygrad.logaddexp(last, before)
    empty = pygrad.where(lengths > 0, -_NEVER, 0.0).to(found.dtype)  # of inputs without a step
    found = pygrad.where(inputs > 0, found, empty)
    # PyTorch's gradient takes for granted that the input is a log_softmax: this adds what that
    # would take away again, and nothing to the value.
    probs = log_probs.exp()
    steps = pygrad.arange(log_probs.size(0)).unsqueeze(1) < inputs
    extra = ((probs - probs.detach()).sum(2) * steps).sum(0)
    return found + extra


_WHILE = "(while checking arguments for ctc_loss_allocate_outputs)"


def _check_lengths(log_probs: Tensor, labels: Tensor, inputs: Tensor, targets: Tensor) -> None:
    longest, batch = log_probs.size(0), log_probs.size(1)
    named = (("input", inputs), ("target", targets))
    for name, lengths in named:
        if lengths.is_floating_point():
            raise RuntimeError(f"{name}_lengths must be integral")
    if inputs.numel() != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if targets.numel() != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    for name, lengths in named:
        if batch and int(lengths.min()) < 0:
            raise RuntimeError(
                f"Expected {name}_lengths to have value at least 0, but got value "
                f"{int(lengths[lengths < 0][0])} {_WHILE}"
            )
    if int(inputs.max()) > longest:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {longest}, but got value "
            f"{int(inputs.max())} {_WHILE}"
        )
    if labels.dim() == 2 and int(targets.max()) > labels.size(1):
        raise RuntimeError(
            f"Expected tensor to have size at least {int(targets.max())} at dimension 1, but got "
            f"size {labels.size(1)} for argument #2 'targets' {_WHILE}"
        )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of labellings, summed over their alignments.

    Args:
        log_probs: (T, N, C) or (T, C), logarithms of probabilities: a ``log_softmax``.
        targets: (N, S), or all in one row; no blanks.
        input_lengths: (N), at most T.
        target_lengths: (N), at most S.
        blank: the class of no label.
        reduction: "none" (N), "mean" (of each loss over its target's length) or "sum".
        zero_infinity: zero for a target that is too long for its input, not infinity.

    Raises:
        ValueError: an unknown reduction.
        RuntimeError: lengths that do not fit, a blank that is no class.

    Example:
        >>> import pygrad
        >>> even = pygrad.zeros(3, 1, 2).log_softmax(2)
        >>> loss = pygrad.nn.functional.ctc_loss(even, pygrad.tensor([[1]]), [3], [1])
        >>> round(loss.exp().item(), 4)
        1.3333
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    batched = log_probs.dim() == 3
    given = log_probs if batched else log_probs.unsqueeze(1)
    if not 0 <= blank < given.size(2):
        raise RuntimeError("blank must be in label range")
    inputs, lengths = (
        (x if isinstance(x, Tensor) else pygrad.tensor(x)).reshape(-1)
        for x in (input_lengths, target_lengths)
    )
    if not batched and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    _check_lengths(given, targets, inputs, lengths)
    inputs, lengths = inputs.long(), lengths.long()
    found = _losses(given, _padded(targets, lengths.tolist()), inputs, lengths, blank)
    found = found.masked_fill(found.detach() > -_NEVER / 2, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return (found / lengths.clamp(min=1).to(found.dtype)).mean()
    if reduction == "sum":
        return found.sum()
    return found if batched else found.squeeze(0)
