"""The parts of the package, under PyTorch's names."""
