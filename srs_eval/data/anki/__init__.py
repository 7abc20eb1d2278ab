"""Anki collections and packages."""

from srs_eval.data.anki.collection import AnkiCollection

__all__ = ["AnkiCollection"]
