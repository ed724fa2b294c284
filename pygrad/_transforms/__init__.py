"""Transforms of functions: derivatives as functions, and vmap."""
