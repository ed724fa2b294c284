"""PyTorch's module of the class of jagged tensors: programs name it for ``isinstance``."""
