"""Averages of parameters over ranks in some steps, instead of gradients in each step."""
