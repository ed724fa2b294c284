"""The older form of ops of a program's own, before `pygrad.library`: see `impl`."""
