"""From data and labels to a model."""
