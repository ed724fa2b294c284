"""Translation of functions from Python to JavaScript, for the layers that both languages have.

The forms that are translated are few, and mean the same in both languages: assignments, conditions,
loops over short sequences, errors, warnings, and calls of the library. An expression whose meaning
depends on types that nothing says is refused, and so is any other form: nothing is guessed.
"""

from __future__ import annotations

from .statements import Translation as Translation
