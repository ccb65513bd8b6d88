"""Benchmarks: Hinge against its peers, every answer verified. ``python -m benchmarks --help`` explains."""
