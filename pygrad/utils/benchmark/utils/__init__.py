"""Where PyTorch has the parts of it."""
