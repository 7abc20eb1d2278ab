"""Files, servers and passwords not where they should be: a clear word, and nothing lost."""

import errno
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL, outcome_of, write

TO_OUT = [*QUIET, "hydra.run.dir=out"]


def test_an_output_folder_that_cannot_be_written_is_told(here, monkeypatch):
    (here.folder / "file").write_text("mine", encoding="utf-8")
    for words in (["hydra.run.dir=file/out"], ["-m", "hydra.sweep.dir=file/out"]):
        done = here(*words, "algo=avg", *SMALL, *QUIET)
        assert done.status == 1
        assert "Not a directory: 'file/out" in done.err
        assert "Traceback" not in done.text
    assert (here.folder / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predictions.parquet", "scores.parquet"])
def test_a_full_disk_half_way_loses_no_finished_user(here, monkeypatch, name):
    words = ["algo=avg", *SMALL, "panel=quick", *TO_OUT]

    def full(write):
        def until_full(*args, **options):
            for where in (Path(arg) for arg in args if isinstance(arg, str | Path)):
                if name in where.name and where.parent.name == "out":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(where))
            return write(*args, **options)

        return until_full

    with monkeypatch.context() as patched:
        for writes in ("write_table", "ParquetWriter"):
            patched.setattr(pq, writes, full(getattr(pq, writes)))
        done = here(*words)
    assert (done.status, "No space left on device" in done.err) == (1, True)
    assert "Traceback" not in done.text
    assert outcome_of(here.folder / "out")["status"] == "failed"
    done = here(*words)
    assert done.status == 0, done.err
    assert "evaluates 0 of 2 users" in done.out


SECRET = "S3CRETpw"
QUICK = ("algo=avg", "data.users=1", "data.size_scale=0.02", "figures=false", "panel=quick")


def test_a_password_in_a_file_of_options_is_refused_before_anything_is_saved(here):
    text = f"# @package _global_\ntracking: {{uri: 'http://bob:{SECRET}@127.0.0.1:1'}}\n"
    write(here.folder, {"c/experiment/x.yaml": text})
    for flags in ([], ["-m"]):
        words = ("--config-dir=c", *QUICK, "experiment=x")
        done = here(*flags, *words, "hydra.run.dir=out", "hydra.sweep.dir=out")
        assert (done.status, SECRET in done.text) == (1, False)
        assert not (here.folder / "out").exists()


@pytest.mark.parametrize("user", [f"bob:{SECRET}", SECRET, f"bob:{SECRET}/b", f"bob:a@{SECRET}"])
@pytest.mark.slow
def test_a_password_in_the_environment_is_neither_printed_nor_saved(here, user, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{user}@127.0.0.1:1")
    done = here(*QUICK, "hydra.run.dir=out")
    assert done.status == 1
    assert SECRET not in done.text
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
