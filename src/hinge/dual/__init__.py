"""The one dual problem, its five formulations, and what tells how far a point is from its solution."""
