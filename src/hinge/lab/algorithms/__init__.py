"""The papers' algorithms, one file for each or for a family."""
