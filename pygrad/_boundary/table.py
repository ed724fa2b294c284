"""The op table as the binary describes it, with the names of errors and keywords."""

from __future__ import annotations

from typing import Final

from .frame import DATA
from .host import intern_name, memory, scalar_export, text_at
from .ownership import call_with_lock

_ask_row, _ask_status_name = scalar_export("pg_describe"), scalar_export("pg_status_name")


def intern(name: str) -> int:
    """The engine's id for a keyword. The engine reads 256 bytes, more than any keyword of the table
    has.
    """
    return int(call_with_lock(_intern, name[:256].encode() + b"\0"))


def _intern(raw: bytes) -> int:
    memory[DATA : DATA + len(raw)] = raw
    return int(intern_name())


def describe() -> list[tuple[frozenset[str], str]]:
    """The op table: (words, schema) of each row. wasm_core/call/row.h lists the words."""
    rows: list[tuple[frozenset[str], str]] = []
    while address := _ask_row(len(rows)):
        words, _, schema = text_at(address).partition(" ")
        rows.append((frozenset(words.split("|")), schema))
    return rows


status_names: Final[list[str]] = []
while _address := _ask_status_name(len(status_names) or 1):
    if not status_names:
        status_names.append("OK")
    status_names.append(text_at(_address))

rows: Final = describe()
"""The op table: (words, schema) of each row."""
