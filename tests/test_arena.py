"""From nothing to a site: five algorithms, as experiments/arena/seed.py submits all of them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from srs_eval.commands.compare import command as compare
from srs_eval.results.files import read_json
from srs_eval.submit.reading import read_leaderboard
from srs_eval.submit.record import read_record

SEED = Path(__file__).parents[1] / "experiments" / "arena" / "seed.py"
ALGORITHMS = ["avg", "constant", "fsrs6", "hlr", "sm2"]


def seed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder."""
    command = [sys.executable, str(SEED), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_five_algorithms_become_a_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["out=arena", f"algo={','.join(ALGORITHMS)}", "users=3", "max_reviews=400"]
    done = seed(tmp_path, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    leaderboard = tmp_path / "arena" / "leaderboard"
    (board,) = read_leaderboard(leaderboard)
    assert [one.name for one in board.submissions] == ALGORITHMS
    assert {one.mark for one in board.submissions} == {"reported"}
    monkeypatch.chdir(tmp_path)
    assert compare(["arena/runs", "tracking=none", "out=compared"]) == 0
    compared = read_json(tmp_path / "compared" / "comparison.json")
    means = {row["run"]: row["mean"] for row in compared["leaderboard"][: len(ALGORITHMS)]}
    for one in board.submissions:
        assert one.run.scores["log_loss"].mean() == pytest.approx(means[one.run.name], abs=1e-12)
    assert len(list((tmp_path / "arena" / "site").rglob("*.html"))) > 5
    record = read_record(leaderboard)
    again = seed(tmp_path, *words)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "fsrs6 was finished before" in again.stdout
    assert read_record(leaderboard) == record


def test_mistakes_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(SEED.parent)
    program = importlib.import_module("seed")
    for words, said in (
        ([], "out= is missing"),
        (["out=a", "users=many"], "users=many"),
        (["out=a", "algo=fsrs66"], "did you mean 'fsrs6'?"),
        (["out=a", "userss=3"], "did you mean users=?"),
    ):
        assert program.command(words) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
