"""Anki collections and packages."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srs_eval.data.anki.collection import AnkiCollection

__all__ = ["AnkiCollection"]


def __getattr__(name: str) -> Any:
    """Load the reader where it is used: simulated users only need Anki's fuzz."""
    if name != "AnkiCollection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from srs_eval.data.anki.collection import AnkiCollection

    return AnkiCollection
