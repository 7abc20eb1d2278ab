"""Odd command lines end with a clear error or a run, soon, and leave nothing elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cases import rest_nightly
from command_lines import attempt, command_line, prepare


@pytest.mark.slow
@pytest.mark.parametrize("seed", rest_nightly(range(25), 5))
def test_a_random_command_line_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    ended = attempt(command_line(random.Random(seed)))
    assert ended.kind in ("accepted", "clear error"), (ended.words, ended.text)
    assert not (tmp_path / "PWNED").exists()
    assert not any(path.name.endswith(":") for path in tmp_path.iterdir())
