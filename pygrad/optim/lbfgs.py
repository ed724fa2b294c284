"""L-BFGS: steps by an estimate of the curvature from past gradients, with a line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from .optimizer import Optimizer, Params

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS. A step calls the closure several times.

    Args:
        params: parameters, as one group.
        lr: the length of a step, or the first length of the line search.
        max_iter: the maximal number of updates per step.
        max_eval: the maximal number of closure calls per step; by default 5/4 of `max_iter`.
        tolerance_grad: stop if no gradient is larger.
        tolerance_change: stop if parameters or loss change by less.
        history_size: the number of past updates for the curvature.
        line_search_fn: None or "strong_wolfe".

    Raises:
        ValueError: several groups, or a negative learning rate.
        RuntimeError: an unknown line search.

    Example:
        >>> import pygrad
        >>> x = pygrad.zeros(2, requires_grad=True)
        >>> optimizer = pygrad.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - pygrad.tensor([1.0, 2.0])) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> [round(number, 4) for number in x.tolist()]
        [1.0, 2.0]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """All gradients in one row, with zeros for missing ones."""
        parts = [
            _numbers(p.new_zeros(p.shape) if p.grad is None else p.grad).reshape(-1)
            for p in self._params
        ]
        return pygrad.cat(parts)

    def _move(self, length: Any, along: Tensor) -> None:
        start = 0
        for p in map(_numbers, self._params):
            p.add_(along[start : start + p.numel()].view_as(p), alpha=float(length))
            start += p.numel()

    def _evaluate(
        self, closure: Callable[[], Any], origin: list[Tensor], along: Tensor, length: Any
    ) -> _Point:
        """Loss and gradient at a length along a direction; restores the parameters."""
        self._move(length, along)
        loss = float(closure())
        gradient = self._gradient()
        for p, value in zip(self._params, origin, strict=True):
            p.copy_(value)
        return _Point(length, loss, gradient, gradient.dot(along))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimise the loss for some iterations.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.

        Returns:
            The loss before the first iteration.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with pygrad.no_grad():
            return self._minimise(pygrad.enable_grad()(closure))

    def _minimise(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, search = group["lr"], group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(first)
        calls = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            along = self._direction(state, gradient, group["history_size"])
            state["prev_flat_grad"] = gradient.clone()
            state["prev_loss"] = before = loss
            length = lr
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / gradient.abs().sum()) * lr
            state["t"] = length
            slope = gradient.dot(along)
            if slope > -group["tolerance_change"]:
                break
            made = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                here = _Point(0, loss, gradient.clone(), slope)
                most = group["max_eval"] - calls
                found, made = self._search_along(closure, here, along, length, most)
                loss, gradient, length = found.loss, found.gradient, found.length
                self._move(length, along)
            else:
                self._move(length, along)
                if iteration != group["max_iter"]:
                    loss, made = float(closure()), 1
                    gradient = self._gradient()
            state["t"] = length
            calls += made
            state["func_evals"] += made
            if (
                calls >= group["max_eval"]
                or gradient.abs().max() <= group["tolerance_grad"]
                or along.mul(length).abs().max() <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first

    def _search_along(
        self, closure: Callable[[], Any], here: _Point, along: Tensor, length: Any, most: int
    ) -> tuple[_Point, int]:
        """The point of a strong Wolfe search of at most `most` turns, and the number of closure
        calls.
        """
        origin = [p.clone() for p in self._params]

        def evaluate(length: Any) -> _Point:
            return self._evaluate(closure, origin, along, length)

        return _search(evaluate, here, length, along.abs().max(), most)

    def _direction(self, state: dict[str, Any], gradient: Tensor, size: int) -> Tensor:
        """The direction of descent by the two-loop recursion of L-BFGS."""
        if state["n_iter"] == 1:
            state.update(d=gradient.neg(), old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return state["d"]  # type: ignore[no-any-return]
        ys, ss, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = gradient.sub(state["prev_flat_grad"]), state["d"].mul(float(state["t"]))
        curvature = y.dot(s)
        if curvature > 1e-10:
            if len(ys) == size:
                for past in (ys, ss, ro):
                    past.pop(0)
            ys.append(y)
            ss.append(s)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / y.dot(y)
        weights: list[Any] = [None] * len(ys)
        q = gradient.neg()
        for i in reversed(range(len(ys))):
            weights[i] = ss[i].dot(q) * ro[i]
            q.add_(ys[i], alpha=-weights[i].item())
        q = q.mul(state["H_diag"])
        for i in range(len(ys)):
            q.add_(ss[i], alpha=(weights[i] - ys[i].dot(q) * ro[i]).item())
        state["d"], state["al"] = q, weights
        return q


def _numbers(tensor: Tensor) -> Tensor:
    """The real numbers of a tensor; complex numbers are pairs."""
    return pygrad.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


# ------------------------------------------------------------------ the line search


class _Point(NamedTuple):
    """A length along the direction, with the loss, gradient and slope at it."""

    length: Any
    loss: float
    gradient: Tensor
    slope: Any


class _Conditions(NamedTuple):
    """The strong Wolfe conditions of a point, and the least length of a bracket."""

    enough: float = 1e-4
    flat: float = 0.9
    least: float = 1e-9

    def too_high(self, point: _Point, here: _Point) -> bool:
        return bool(point.loss > here.loss + self.enough * point.length * here.slope)

    def flat_enough(self, point: _Point, here: _Point) -> bool:
        return bool(abs(point.slope) <= -self.flat * here.slope)


_WOLFE = _Conditions()


def _cubic(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """The minimum of the cubic through two points with their slopes, within bounds."""
    low, high = bounds or (min(a.length, b.length), max(a.length, b.length))
    left, right = (a, b) if a.length <= b.length else (b, a)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    d2 = square.sqrt() if isinstance(square, Tensor) else square**0.5
    share = (right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2)
    found = right.length - (right.length - left.length) * share
    return min(max(found, low), high)


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """The minimum of the cubic through two points with values f and slopes g, within bounds.

    Example:
        >>> _cubic_interpolate(0.0, 1.0, -2.0, 2.0, 1.0, 2.0)
        1.0
    """
    a, b = _Point(x1, f1, _NOTHING, g1), _Point(x2, f2, _NOTHING, g2)
    return _cubic(a, b, bounds)


_NOTHING: Any = None


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Tensor], tuple[Any, Tensor]],
    x: Any,
    t: Any,
    d: Tensor,
    f: Any,
    g: Tensor,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Any, Tensor, Any, int]:
    """The line search of `LBFGS`, for programs with their own objective.

    Args:
        obj_func: returns value and gradient for (x, length, direction).
        x: passed on to it.
        t: the first length to try.
        d: the direction.
        f, g, gtd: value, gradient and slope along the direction at the start.
        c1, c2: the constants of the Wolfe conditions.
        tolerance_change: the least length of a bracket, as a change of x.
        max_ls: the maximal number of turns.

    Returns:
        Value and gradient at the point found, its length, and the number of calls of `obj_func`.
    """

    def evaluate(length: Any) -> _Point:
        value, gradient = obj_func(x, length, d)
        return _Point(length, value, gradient.clone(), gradient.dot(d))

    here = _Point(0, f, g.clone(), gtd)
    wolfe = _Conditions(c1, c2, tolerance_change)
    found, looked = _search(evaluate, here, t, d.abs().max(), max_ls, wolfe)
    return found.loss, found.gradient, found.length, looked


def _search(
    evaluate: Callable[[Any], _Point],
    here: _Point,
    length: Any,
    largest: Tensor,
    most: int,
    wolfe: _Conditions = _WOLFE,
) -> tuple[_Point, int]:
    """A point that meets the conditions, and the number of points tried (Nocedal and Wright)."""
    last, new = here, evaluate(length)
    looked, turns = 1, 0
    bracket: list[_Point] = []
    while turns < most:
        if wolfe.too_high(new, here) or (turns > 1 and new.loss >= last.loss):
            bracket = [last, new]
            break
        if wolfe.flat_enough(new, here):
            return new, looked
        if new.slope >= 0:
            bracket = [last, new]
            break
        least = new.length + 0.01 * (new.length - last.length)
        last, new = new, evaluate(_cubic(last, new, (least, new.length * 10)))
        looked += 1
        turns += 1
    else:
        bracket = [here, new]
    best, more = _zoom(evaluate, here, bracket, largest, most - turns, wolfe)
    return best, looked + more


def _next_length(bracket: list[_Point], stuck: bool) -> tuple[Any, bool]:
    """The next step length to try, and whether it is close to an end of the bracket.

    If the last one was close too (`stuck`), the length is moved away from the end.
    """
    length = _cubic(bracket[0], bracket[1])
    lengths = [point.length for point in bracket]
    top, bottom = max(lengths), min(lengths)
    margin = 0.1 * (top - bottom)
    close = min(top - length, length - bottom) < margin
    if close and (stuck or length >= top or length <= bottom):
        nearer_top = abs(length - top) < abs(length - bottom)
        return top - margin if nearer_top else bottom + margin, False
    return length, bool(close)


def _zoom(
    evaluate: Callable[[Any], _Point],
    here: _Point,
    bracket: list[_Point],
    largest: Tensor,
    most: int,
    wolfe: _Conditions,
) -> tuple[_Point, int]:
    """Narrows a bracket to a point that meets the conditions; else its end of lower loss."""
    looked = 0
    stuck = done = False
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    while not done and looked < most:
        if abs(bracket[1].length - bracket[0].length) * largest < wolfe.least:
            break
        length, stuck = _next_length(bracket, stuck)
        new = evaluate(length)
        looked += 1
        if wolfe.too_high(new, here) or new.loss >= bracket[low].loss:
            bracket[1 - low] = new
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if wolfe.flat_enough(new, here):
            done = True
        elif new.slope * (bracket[1 - low].length - bracket[low].length) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = new
    return bracket[low], looked
