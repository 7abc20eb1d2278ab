"""URIs, which `pathlib` would treat as local folders of that name."""

from __future__ import annotations

import re

# A scheme has at least two letters; a single one is a drive of Windows.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def uri_problem(text: str) -> str:
    """Return the reason why files cannot be written to a URI; empty for a local path.

    Examples
    --------
    >>> uri_problem("s3://bucket/runs")
    'is a URI, and files go to local folders only: write to one, then copy it'
    >>> uri_problem("runs/s3")
    ''
    """
    if not _URI.match(text.strip()):
        return ""
    if text.strip().lower().startswith("file:"):
        return "is a URI; write the path alone"
    return "is a URI, and files go to local folders only: write to one, then copy it"
