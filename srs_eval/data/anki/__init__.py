"""Anki collections and packages."""
