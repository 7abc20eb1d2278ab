"""Running the command in tests: in this process for speed, in one of its own where it matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from srs_eval.commands.run import command
from srs_eval.data.synthetic import SyntheticUsers

# Two simulated users with some hundred scored reviews each: half a second.
SMALL = (
    *("data=synthetic", "data.version=1"),
    *("data.users=2", "data.size_scale=0.02", "data.max_reviews=3000"),
)
QUIET = ("tracking=none", "figures=false")

# A small log takes longer to simulate than to evaluate, and most tests evaluate the same two.
_simulated = lru_cache(maxsize=32)(SyntheticUsers.read)


def run_here(words: Sequence[str]) -> int:
    """Run a command in this process, each log simulated once in all of them."""
    with patch.object(SyntheticUsers, "read", lambda source, user: _simulated(source, user)):
        return command(list(words))


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Here:
    """Run commands in this process, in a folder of their own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *words: str) -> Done:
        self._capsys.readouterr()
        status = run_here(words)
        captured = self._capsys.readouterr()
        return Done(status, captured.out, captured.err)


def apart(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, timeout: float = 120
) -> Done:
    """Run the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "srs_eval", *words],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def summary_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return content


def outcome_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    return content


def columns_of(file: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pq.read_table(file).to_pydict()
    return columns
