"""Contexts that are decorators too, by PyTorch's name of their module."""

from __future__ import annotations

from .._ground.decorators import _DecoratorContextManager as _DecoratorContextManager
from .._ground.decorators import _NoParamDecoratorContextManager as _NoParamDecoratorContextManager
from .._ground.decorators import context_decorator as context_decorator
