"""Transforms from unconstrained numbers to values that satisfy a constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from . import constraints
from . import transforms as tr
from .constraints import Constraint
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Rule = Callable[[Any], Transform]


class ConstraintRegistry:
    """A map from constraints to transforms from unconstrained numbers, which programs can extend.

    Example:
        >>> import pygrad
        >>> from pygrad.distributions import constraints, transform_to
        >>> transform_to(constraints.unit_interval)(pygrad.zeros(1))
        tensor([0.5000])
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Rule] = {}

    def register(self, constraint: Any, factory: Rule | None = None) -> Any:
        """Registers the function that makes the transform to constraints of a class."""
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform to a constraint.

        Raises:
            NotImplementedError: no transform is registered.
        """
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            kind = type(constraint).__name__
            raise NotImplementedError(f"Cannot transform {kind} constraints") from None
        return factory(constraint)


biject_to: Final = ConstraintRegistry()
transform_to: Final = ConstraintRegistry()


def _transform_to_greater_than(constraint: Any) -> Transform:
    return tr.ComposeTransform([tr.ExpTransform(), tr.AffineTransform(constraint.lower_bound, 1)])


def _transform_to_less_than(constraint: Any) -> Transform:
    return tr.ComposeTransform([tr.ExpTransform(), tr.AffineTransform(constraint.upper_bound, -1)])


def _transform_to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return tr.SigmoidTransform()
    return tr.ComposeTransform([tr.SigmoidTransform(), tr.AffineTransform(low, high - low)])


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda _: tr.identity_transform)
    _registry.register(constraints.greater_than, _transform_to_greater_than)
    _registry.register(constraints.greater_than_eq, _transform_to_greater_than)
    _registry.register(constraints.less_than, _transform_to_less_than)
    _registry.register(constraints.interval, _transform_to_interval)
    _registry.register(constraints.half_open_interval, _transform_to_interval)
    _registry.register(constraints.corr_cholesky, lambda _: tr.CorrCholeskyTransform())


@biject_to.register(constraints.independent)  # type: ignore[untyped-decorator]
def _biject_to_independent(constraint: Any) -> Transform:
    base = biject_to(constraint.base_constraint)
    return tr.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)  # type: ignore[untyped-decorator]
def _transform_to_independent(constraint: Any) -> Transform:
    base = transform_to(constraint.base_constraint)
    return tr.IndependentTransform(base, constraint.reinterpreted_batch_ndims)


biject_to.register(constraints.simplex, lambda _: tr.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: tr.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: tr.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda _: tr.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda _: tr.PositiveDefiniteTransform())


def _register_cat_and_stack(registry: ConstraintRegistry) -> None:
    """Registers the transforms of `cat` and `stack`, which apply one transform to each part."""

    def to_cat(constraint: Any) -> Transform:
        parts = [registry(c) for c in constraint.cseq]
        return tr.CatTransform(parts, constraint.dim, constraint.lengths)

    def to_stack(constraint: Any) -> Transform:
        return tr.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    registry.register(constraints.cat, to_cat)
    registry.register(constraints.stack, to_stack)


_register_cat_and_stack(biject_to)
_register_cat_and_stack(transform_to)
