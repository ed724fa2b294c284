"""The log of operators of a checkpointed function, with stacks, for ``checkpoint(debug=True)``."""

from __future__ import annotations

from typing import Any

from ..autograd import profiler
from ..autograd.profiler_util import FunctionEvent


class OperatorLog:
    """A scope that records its operators with a profile. A new entry discards the former record.

    Nothing is recorded while the caller's own profile is running.
    """

    def __init__(self) -> None:
        self._profile: profiler.profile | None = None
        self._events: list[FunctionEvent] | None = None

    def __enter__(self) -> OperatorLog:
        self._profile = self._events = None
        if profiler._running is None:
            self._profile = profiler.profile(record_shapes=True, with_stack=True)
            self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._profile is not None:
            self._profile.__exit__(*error)
            found = self._profile.function_events
            self._events = [each for each in found if each.name.startswith("aten::")]

    def _operators(self) -> list[str]:
        return [
            f"aten.{each.name[6:]}({', '.join(str(shape) for shape in each.input_shapes)})"
            for each in self._events or []
        ]

    def format_operators(self) -> str:
        """A line for each operator: its name and the shapes of its arguments."""
        if self._events is None:
            return "(not recorded: a profile was running)"
        return "\n".join(self._operators())

    def format_stacks(self, when: str) -> str:
        """The names and shapes of the operators, each followed by the stack of its call."""
        if self._events is None:
            return self.format_operators()
        names = self._operators()
        return "\n\n".join(
            f"{name}   ({at} of {len(names)} in {when})\n\n" + "\n".join(event.stack)
            for at, (name, event) in enumerate(zip(names, self._events, strict=True), 1)
        )


_RULE = "+" + "-" * 78 + "+"


def _part(title: str) -> str:
    return f"{_RULE}\n|{title:^78}|\n{_RULE}"


_TRACES = "Stack traces of the operators that ran"
_LOG = "3. Log of operators in the original forward and recomputation"


def report(first: OperatorLog, again: OperatorLog) -> str:
    """The message of an error: both logs, then instructions."""
    return f"""An error happened while unpacking tensors; these are the logs of the latest
computation, because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`. What to do
with them is said at the end.

{_part(f"1. {_TRACES} in the original forward")}

{first.format_stacks("original")}

{_part(f"2. {_TRACES} during recomputation")}

{again.format_stacks("recompute")}

{_part(_LOG)}

Operations executed during the original forward:

{first.format_operators()}

Operations executed during recomputation:

{again.format_operators()}

{_RULE}
 ERROR: Detected non-determinism while running activation checkpointing

 The tensors that the original forward saved differ from those that its recomputation saved; most
 likely different operators ran. Compare the operators of both, which stand above in the order in
 which they ran, and look up where those that differ were called:

 1. {_TRACES} in the original forward
 2. {_TRACES} during recomputation
 {_LOG}
 4. Error message                                             <--- You are here
{"-" * 80}
"""
