"""What makes batches, by the name that programs import it by."""

from ..._collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]
