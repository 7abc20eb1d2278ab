"""The identifier of a sweep, shared by its runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def sweep_id(folder: Path) -> str:
    """Return the identifier of a sweep: the name of its folder and a digest of its path."""
    text = json.dumps({"folder": str(folder)})
    return f"{folder.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
