"""The papers' experiments: their numbers, the runs that repeat them, and the report of both."""
