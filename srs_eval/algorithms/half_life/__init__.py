"""Half-life models."""
