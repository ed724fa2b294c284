"""Settings of `pygrad.save` and `pygrad.load`."""

from . import config as config
