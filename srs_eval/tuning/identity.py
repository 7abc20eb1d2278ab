"""The name that joins the runs of a sweep."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


def sweep_id(folder: Path) -> str:
    """Name of a sweep: its folder's, and a digest that tells equal names apart."""
    text = json.dumps({"folder": str(folder)})
    return f"{folder.name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
