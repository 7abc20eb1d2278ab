"""URIs, which `pathlib` would treat as local folders of that name."""

from __future__ import annotations

from srs_eval.place import is_uri, scheme_of


def uri_problem(text: str) -> str:
    """Return the reason why files cannot be written to a URI; empty for a local path.

    >>> uri_problem("s3://bucket/runs")
    'is a URI, and files go to local folders only: write to one, then copy it'
    >>> uri_problem("runs/s3")
    ''
    """
    if not is_uri(text):
        return ""
    if scheme_of(text) == "file":
        return "is a URI; write the path alone"
    return "is a URI, and files go to local folders only: write to one, then copy it"
