"""The command line ``python -m pygrad``: runs a program that was written for torch.

    python -m pygrad script.py [args]
    python -m pygrad -m module [args]
    python -m pygrad -c code [args]
    python -m pygrad info | precompile [DIR] | --version

``import torch`` gives the dialect there and in every process that the program starts. The rest is
as in Python: `sys.argv`, `sys.path`, `__main__`, tracebacks and exit codes.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import get_importer
from types import CodeType, TracebackType
from typing import Any, Final

from . import commands
from .way_in import install

_OURS: Final = frozenset(
    {
        __file__,
        str(Path(__file__).parent.with_name("__main__.py")),
        runpy.__file__,
        "<frozen runpy>",
    }
)


def main() -> None:
    """Runs the program that the arguments name, and ends the process as Python would."""
    if sys.argv[1:] and sys.argv[1][:2] in ("-c", "-m"):  # the argument may follow at once
        sys.argv[1:2] = filter(None, (sys.argv[1][:2], sys.argv[1][2:]))
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    what = arguments[0]
    if commands.is_command(what):
        commands.run(what, arguments[1:])
    if what in ("-c", "-m"):
        if len(arguments) < 2:
            print(f"Argument expected for the {what} option", file=sys.stderr)
            sys.exit(2)
        run: Callable[[], None] = _code if what == "-c" else _module
    elif what.startswith("-") and what != "-":
        print(f"unknown option {what}: options of Python come before -m pygrad", file=sys.stderr)
        sys.exit(2)
    else:
        run = _script
    install()
    try:
        run()
    except Exception as error:
        shown = _without_ours(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(shown), shown)
        sys.exit(1)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's own first frame on."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OURS:
        traceback = traceback.tb_next
    return traceback


def _code() -> None:
    code, sys.argv = sys.argv[2], ["-c", *sys.argv[3:]]
    _first_path("")
    _execute(compile(code, "<string>", "exec", dont_inherit=True), None)


def _module() -> None:
    name, sys.argv = sys.argv[2], ["-m", *sys.argv[3:]]
    _first_path(os.getcwd())
    _clear_main()
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # as `python -m` does


def _script() -> None:
    sys.argv = sys.argv[1:]
    name = sys.argv[0]
    if name == "-":
        _first_path("")
        _execute(compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), "<stdin>")
    elif get_importer(name) is not None:  # a folder or an archive, with a __main__ within
        _first_path(os.path.join(os.getcwd(), name))
        _clear_main()
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
    else:
        _first_path(os.path.dirname(os.path.realpath(name)))
        try:
            with io.open_code(name) as script:
                source = script.read()
        except OSError as error:
            problem = f"can't open file {os.path.abspath(name)!r}: [Errno {error.errno}]"
            print(f"{sys.executable}: {problem} {error.strerror}", file=sys.stderr)
            sys.exit(2)
        file = os.path.join(os.getcwd(), name)
        _execute(compile(source, file, "exec", dont_inherit=True), file)


def _first_path(path: str) -> None:
    """Puts a path at the head of `sys.path` as Python does for a program, in place of the entry of
    `-m pygrad`.
    """
    if not sys.flags.safe_path:
        sys.path[0] = path


def _clear_main() -> dict[str, Any]:
    """The names of the main module, which has nothing of pygrad's own any more."""
    names: dict[str, Any] = vars(sys.modules["__main__"])
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None, __loader__=None)
    names.update(__spec__=None, __annotations__={}, __builtins__=builtins)
    return names


def _execute(code: CodeType, file: str | None) -> None:
    """Runs code as the main module."""
    names = _clear_main()
    if file is not None:
        names.update(__file__=file, __cached__=None)
    exec(code, names)
