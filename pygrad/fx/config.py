"""Switches of PyTorch that have nothing to switch here."""

disable_progress = True
verbose_progress = False
do_not_emit_stack_traces = False
