"""Where PyTorch has its class of jagged tensors: programs name it for ``isinstance``."""
