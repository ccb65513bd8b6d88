"""Linear algebra on the free variables."""
