"""A run that is continued takes over nothing that is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import QUIET, SMALL
from commands import run_here as command

from srs_eval.errors import ConfigError
from srs_eval.results.kept import KeptParts


def test_a_folder_of_somebody_elses_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    theirs = tmp_path / "parts" / "precious.txt"
    theirs.parent.mkdir()
    theirs.write_text("mine", encoding="utf-8")
    kept = KeptParts(theirs.parent, stamp="settings code")
    for resume in (False, True):
        with pytest.raises(ConfigError):
            kept.open(resume=resume, chunk=1)
    kept.remove()
    assert theirs.read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_a_run_into_a_folder_with_figures_of_somebodys_leaves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "out" / "figures" / "precious.png"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"mine")
    stale = theirs.with_name("roc.png")
    stale.write_bytes(b"of an earlier run")
    monkeypatch.chdir(tmp_path)
    assert command(["algo=avg", *SMALL, *QUIET, "hydra.run.dir=out"]) == 0
    assert theirs.read_bytes() == b"mine"
    assert not stale.exists()
