"""The private package of PyTorch's function transforms, from which libraries import `vmap`."""
