"""The private package of PyTorch's function transforms, of which libraries import `vmap`."""
