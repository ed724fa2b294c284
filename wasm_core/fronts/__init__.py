"""Writers of the parts of the fronts that follow from the binary: ``make stubs``."""
