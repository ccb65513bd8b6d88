"""Kernel values: the functions, their precision, the Gram matrix and what rounding does to it."""
