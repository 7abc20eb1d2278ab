"""Texts on the terminal."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print a text at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Print a text on standard error."""
    sys.stderr.write(f"srs_eval: {text.rstrip()}\n")
    sys.stderr.flush()
