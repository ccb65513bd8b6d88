"""Steps of two variables."""
