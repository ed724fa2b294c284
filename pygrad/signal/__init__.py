"""torch.signal: the windows of spectral analysis.

Example:
    >>> from pygrad import signal
    >>> signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from . import windows

__all__ = ["windows"]
