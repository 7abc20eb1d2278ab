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
        done = here("algo=avg", *SMALL, *QUIET, *words)
        assert done.status == 1
        assert "cannot write the output folder: Not a directory" in done.err
        assert "Traceback" not in done.text
    assert (here.folder / "file").read_text(encoding="utf-8") == "mine"
    write = Path.write_text

    def full(self, data, **options):
        if self.name.startswith("job.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return write(self, data, **options)

    monkeypatch.setattr(Path, "write_text", full)
    done = here("algo=avg", *SMALL, *TO_OUT)
    assert done.status == 1
    assert "cannot write the output folder: No space left on device" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predictions.parquet", "scores.parquet"])
def test_a_full_disk_half_way_loses_no_finished_user(here, monkeypatch, name):
    words = ["algo=avg", *SMALL, "panel=quick", *TO_OUT]

    def full(write):
        def until_full(*args, **options):
            for where in (Path(arg) for arg in args if isinstance(arg, str | Path)):
                if where.name.startswith(name) and where.parent.name == "out":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(where))
            return write(*args, **options)

        return until_full

    with monkeypatch.context() as patched:
        for writes in ("write_table", "ParquetWriter"):
            patched.setattr(pq, writes, full(getattr(pq, writes)))
        done = here(*words)
    assert (done.status, "No space left on device" in done.err) == (1, True)
    assert "resume=true hydra.run.dir=" in done.err
    assert "Traceback" not in done.text
    assert outcome_of(here.folder / "out")["status"] == "failed"
    done = here(*words, "resume=true")
    assert done.status == 0, done.err
    assert "2 of 2 users were done before" in done.out


SECRET = "S3CRETpw"
QUICK = ("algo=avg", "data.users=1", "data.size_scale=0.02", "figures=false", "panel=quick")


def test_a_password_in_an_option_is_refused_before_anything_is_saved(here, monkeypatch, transcript):
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("ADDRESS", f"http://bob:{SECRET}@127.0.0.1:1")

    def told_by(*words):
        typed = [" ".join(words)]
        if words[0] == "file":
            text = f"# @package _global_\n{' '.join(words[1:])}\n"
            write(here.folder, {"c/experiment/x.yaml": text})
            typed = ["--config-dir", "c", "experiment=x"]
        done = here(*QUICK, *typed, "hydra.run.dir=out")
        assert (done.status, SECRET in done.text) == (2, False)
        assert not (here.folder / "out").exists()
        return done.err

    transcript("secrets", told_by)


@pytest.mark.parametrize("user", [f"bob:{SECRET}", SECRET, f"bob:{SECRET}/b", f"bob:a@{SECRET}"])
@pytest.mark.slow
def test_a_password_in_the_environment_is_neither_printed_nor_saved(here, user, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{user}@127.0.0.1:1")
    done = here(*QUICK, "tracking.timeout=2", "hydra.run.dir=out")
    assert done.status == 1
    assert "***" in done.err
    assert SECRET not in done.text
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
