"""The op table of the binary, and the functions and schemas that are made from it."""
