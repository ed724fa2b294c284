"""``python -m pygrad``: see `_install.run`. `__main__` itself becomes the program's module."""

from ._install.run import main

if __name__ == "__main__":
    main()
