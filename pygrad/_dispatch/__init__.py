"""Ops below autograd: which function or mode of a program answers for one."""
