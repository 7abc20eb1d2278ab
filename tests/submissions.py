"""Submissions that tests change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

# What a run does not know.
WRITTEN = {
    "authors": ["A. Author"],
    "licence": "MIT",
    "tuned_on": "none",
    "description": "The mean outcome.",
}


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of ``submission.yaml``."""
    file = folder / "submission.yaml"
    content = yaml.safe_load(file.read_text("utf-8"))
    change(content)
    file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")


def retable(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the columns of ``results.parquet``, which are lists of values or Arrow arrays."""
    file = folder / "results.parquet"
    table = pq.read_table(file)
    columns = {
        name: table.column(name).combine_chunks()
        if name.startswith("sums.")
        else table.column(name).to_pylist()
        for name in table.column_names
    }
    change(columns)
    pq.write_table(pa.table(columns), file)


def resum(columns: dict[str, Any], begin: str, change: Callable[[Any], object]) -> None:
    """Change sums [users, numbers] of which the name begins so."""
    (name,) = (name for name in columns if name.startswith(f"sums.{begin}"))
    size = columns[name].type.list_size
    wide = columns[name].flatten().to_numpy().copy().reshape(-1, size)
    change(wide)
    columns[name] = pa.FixedSizeListArray.from_arrays(wide.ravel(), size)
