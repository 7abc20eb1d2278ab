"""One command at a time in a folder, and a folder that goes while a command runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import QUIET, SMALL, Here, summary_of

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.results.kept import KeptParts
from srs_eval.tracking.nothing import NoTracker

RUN = ["algo=avg", *SMALL, *QUIET]
USING = """
import sys
from pathlib import Path
from srs_eval.results.claim import claim
with claim(Path(sys.argv[1])):
    print("claimed", flush=True)
    sys.stdin.read()
"""


@contextmanager
def used_by_another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", USING, str(folder)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "claimed\n"
        yield process
        process.kill()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["hydra.run.dir=out"], ["-m", "hydra.sweep.dir=out", "seed=1,2"]],
    ids=["one run", "a sweep"],
)
def test_a_second_command_in_a_folder_is_refused_and_changes_nothing(
    here: Here, words: list[str]
) -> None:
    assert here(*RUN, *words).status == 0
    with used_by_another(here.folder / "out"):
        before = contents(here.folder)
        refused = here(*RUN, *words, "name=another")
        assert refused.status == 1
        assert "out is in use by another command" in refused.err
        assert contents(here.folder) == before
    assert here(*RUN, *words).status == 0  # its process was killed


@pytest.mark.slow
def test_a_job_of_a_sweep_whose_folder_is_in_use_is_left_out(here: Here) -> None:
    with used_by_another(here.folder / "out" / "1_avg"):
        done = here(*RUN, "-m", "hydra.sweep.dir=out", "seed=1,2,3")
        assert done.status == 1
        assert {path.name for path in (here.folder / "out" / "1_avg").iterdir()} <= {
            ".lock",
            ".hydra",
        }
    assert summary_of(here.folder / "out" / "2_avg")["users"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "job"), [("run", ""), ("sweep", "0_avg")])
def test_commands_begun_in_the_same_second_get_folders_of_their_own(
    here: Here, kind: str, job: str
) -> None:
    words = [*RUN, f"hydra.{kind}.dir=same_${{now:%Y}}", *(["-m"] if job else [])]
    assert here(*words).status == 0
    (folder,) = here.folder.iterdir()
    with used_by_another(folder):
        before = contents(folder)
        assert here(*words).status == 0
        assert contents(folder) == before
    assert summary_of(folder.with_name(f"{folder.name}_2") / job)["users"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["keep", "end"])
def test_a_folder_that_goes_during_the_run_is_a_failure(
    here: Here, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(KeptParts, moment, lambda *_: shutil.rmtree(here.folder / "out"))
    done = here(*RUN, "hydra.run.dir=out")
    assert done.status == 1
    assert "out: it was removed or renamed during the run" in done.err


@pytest.mark.slow
def test_a_finished_run_keeps_its_results_whatever_is_left_of_users_or_refused(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise TrackingError("gone")

    def results() -> dict[str, bytes]:
        found = contents(here.folder / "out").items()
        return {
            Path(name).relative_to(here.folder).as_posix(): text
            for name, text in found
            if "job.json" not in name and ".hydra" not in name
        }

    theirs = here.folder / "out" / "figures" / "precious.png"
    theirs.parent.mkdir(parents=True)
    for file in (theirs, theirs.with_name("roc.png")):
        file.write_bytes(b"of an earlier run or of somebody's")
    with monkeypatch.context() as patch:
        patch.setattr(NoTracker, "finish", fail)
        assert here(*RUN, "hydra.run.dir=out").status == 1
    assert [file.name for file in theirs.parent.iterdir()] == ["precious.png"]
    before = {name: text for name, text in results().items() if not name.startswith("out/parts")}
    assert here(*RUN, "hydra.run.dir=out", "resume=true", "seed=7").status == 2
    assert before.items() <= results().items()
    assert here(*RUN, "hydra.run.dir=out", "resume=true").status == 0
    assert results() == before
    left = here.folder / "out" / "parts" / "users" / "part-1.parquet"  # as of a kill
    left.parent.mkdir(parents=True)
    left.write_text("{}", encoding="utf-8")
    assert here(*RUN, "hydra.run.dir=out", "resume=true", "seed=7").status == 2
    done = here(*RUN, "hydra.run.dir=out", "resume=true")
    assert (done.status, "finished before" in done.out) == (0, True)
    assert before.items() <= results().items()


def test_a_run_killed_as_it_began_can_be_begun(tmp_path: Path) -> None:
    kept = KeptParts(tmp_path / "parts", "stamp")
    kept.folder.mkdir()
    (kept.folder / ".stamp.json.7.partial").write_text("{", encoding="utf-8")
    for resume in (True, False):
        kept.open(resume=resume, chunk=1)
        assert kept.is_begun
    (tmp_path / "parts" / "stamp.json").unlink()
    theirs = tmp_path / "parts" / "mine.txt"
    theirs.write_text("mine", encoding="utf-8")
    for resume in (True, False):
        with pytest.raises(ConfigError):
            kept.open(resume=resume, chunk=1)
    kept.remove()
    assert theirs.read_text(encoding="utf-8") == "mine"
