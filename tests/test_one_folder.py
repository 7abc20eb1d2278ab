"""One command at a time in a folder, and a folder that goes while a command runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from commands import QUIET, Here, summary_of
from filelock import FileLock

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.results.kept import KeptParts
from srs_eval.tracking.nothing import NoTracker

SMALL = ("data.users=2", "data.size_scale=0.02", "data.max_reviews=600", "panel=quick")
RUN = ["algo=avg", *SMALL, *QUIET]


def used(folder: Path) -> FileLock:
    """Return what another command holds while it uses a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / ".lock")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


SWEEP = pytest.param("sweep", marks=pytest.mark.slow)


@pytest.mark.parametrize("kind", ["run", SWEEP])
def test_a_second_command_in_a_folder_is_refused_and_changes_nothing(here: Here, kind: str) -> None:
    words = [f"hydra.{kind}.dir=out", *(["-m"] if kind == "sweep" else [])]
    assert here(*RUN, *words).status == 0
    with used(here.folder / "out"):
        before = contents(here.folder)
        refused = here(*RUN, *words, "name=another")
        assert refused.status == 1
        assert "out is in use by another command" in refused.err
        assert contents(here.folder) == before


@pytest.mark.slow
def test_a_job_of_a_sweep_whose_folder_is_in_use_is_left_out(here: Here) -> None:
    job = here.folder / "out" / "1_avg"
    job.mkdir(parents=True)
    with used(job):
        assert here(*RUN, "-m", "hydra.sweep.dir=out", "seed=1,2,3").status == 1
        assert {path.name for path in job.iterdir()} <= {".lock", ".hydra"}
    assert summary_of(here.folder / "out" / "2_avg")["users"] == 2


@pytest.mark.parametrize("kind", ["run", SWEEP])
def test_commands_begun_in_the_same_second_get_folders_of_their_own(here: Here, kind: str) -> None:
    job = "0_avg" if kind == "sweep" else ""
    words = [*RUN, f"hydra.{kind}.dir=same_${{now:%Y}}", *(["-m"] if job else [])]
    assert here(*words).status == 0
    (folder,) = here.folder.iterdir()
    with used(folder):
        before = contents(folder)
        assert here(*words).status == 0
        assert contents(folder) == before
    assert summary_of(folder.with_name(f"{folder.name}_2") / job)["users"] == 2


@pytest.mark.parametrize("moment", ["keep", "end"])
def test_a_folder_that_goes_during_the_run_is_a_failure(
    here: Here, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(KeptParts, moment, lambda *_: shutil.rmtree(here.folder / "out"))
    done = here(*RUN, "hydra.run.dir=out")
    assert done.status == 1
    assert "out: it was removed or renamed during the run" in done.err


def test_figures_of_an_earlier_run_go_those_of_users_stay_and_a_failed_tracker_costs_no_result(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TrackingError("gone")

    def results() -> dict[str, bytes]:
        found = contents(here.folder / "out").items()
        return {name: text for name, text in found if "job.json" not in name and "/." not in name}

    theirs = here.folder / "out" / "figures" / "precious.png"
    theirs.parent.mkdir(parents=True)
    for file in (theirs, theirs.with_name("roc.png")):
        file.write_bytes(b"of an earlier run or of somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(NoTracker, "finish", fail)
        failed = here(*RUN, "hydra.run.dir=out")
    assert failed.status == 1
    assert "gone\nThe results are in" in failed.err
    assert [file.name for file in theirs.parent.iterdir()] == ["precious.png"]
    before = results()
    assert here(*RUN, "hydra.run.dir=out", "resume=true", "seed=7").status == 2
    assert before == results()
    done = here(*RUN, "hydra.run.dir=out", "resume=true")
    assert (done.status, "2 of 2 users were done before" in done.out) == (0, True)
    assert results() == {name: text for name, text in before.items() if "/parts/" not in name}


def test_files_that_are_not_of_a_run_are_refused_and_stay(tmp_path: Path) -> None:
    kept = KeptParts(tmp_path / "parts", "stamp")
    kept.folder.mkdir()
    (kept.folder / "mine.txt").write_text("mine", encoding="utf-8")
    for resume in (True, False):
        with pytest.raises(ConfigError):
            kept.open(resume=resume, chunk=1)
    kept.remove()
    assert (kept.folder / "mine.txt").read_text(encoding="utf-8") == "mine"
