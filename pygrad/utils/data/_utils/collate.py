"""What makes batches, by the name that programs import it by."""

from pygrad.utils._collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]
