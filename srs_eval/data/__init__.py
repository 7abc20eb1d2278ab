"""Readers of review logs, all behind one validated type."""
