"""``python -m pygrad``: see `_run`, a separate module because `__main__` becomes the program's."""

from ._run import main

if __name__ == "__main__":
    main()
