"""Tell paths of local files from URIs, which `pathlib` would take for folders of that name."""

from __future__ import annotations

import re

# A scheme has two letters at least: one is a drive of Windows.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def uri_problem(text: str) -> str:
    """Say why files cannot be written to a place, if it is a URI; else return an empty text.

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
