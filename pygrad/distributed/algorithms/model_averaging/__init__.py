"""Parameters averaged over ranks now and then, instead of gradients in each step."""
