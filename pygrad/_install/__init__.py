"""The package in the place of torch: its dialect, its command line, and more engines."""
