"""FSRS, every version."""
