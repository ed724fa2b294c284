"""The results of `make bench` as text for the terminal and as a table of Markdown."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BEGIN, END = "<!-- make bench -->\n", "<!-- end of make bench -->\n"


@dataclass
class Row:
    """A workload: seconds (or bytes) a unit of pygrad's and of torch's."""

    group: str
    name: str
    wanted: float
    mine: float
    theirs: float | None = None

    @property
    def ratio(self) -> float | None:
        """Above 1 is faster (or smaller) than torch."""
        return None if self.theirs is None else self.theirs / self.mine


def format_seconds(seconds: float) -> str:
    """With the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def amount(row: Row, quantity: float) -> str:
    """Seconds or bytes."""
    return f"{quantity / 1e6:.0f} MB" if "memory" in row.name else format_seconds(quantity)


def line(row: Row) -> str:
    """For the terminal."""
    text = f"{row.name:24}{amount(row, row.mine):>10}"
    if row.theirs is not None and row.ratio is not None:
        below = "" if row.ratio >= row.wanted else "  below"
        text += f"{amount(row, row.theirs):>10}{row.ratio:8.2f}{row.wanted:8.2g}{below}"
    return text


def processor() -> str:
    """The machine's own name for its processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [text.partition(":")[2].strip() for text in lines if text.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else platform.machine()


def markdown(rows: Iterable[Row], versions: str) -> str:
    """A table of Markdown: a line a group, the ratio of each workload with its target."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        assert row.ratio is not None
        mark = f"**{row.ratio:.2g}**" if row.ratio >= row.wanted else f"{row.ratio:.2g}"
        groups.setdefault(row.group, []).append(f"`{row.name}` {mark} ({row.wanted:g})")
    lines = [f"| {group} | {', '.join(cells)} |" for group, cells in groups.items()]
    return "\n".join(
        [
            f"{versions}; {processor()}.",
            "",
            "| group | ratio (target) |",
            "|---|---|",
            *lines,
            "",
        ]
    )


def write_into(document: Path, text: str) -> None:
    """Between the two marks."""
    head, _, rest = document.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    document.write_text(f"{head}{BEGIN}{text}{END}{tail}")
