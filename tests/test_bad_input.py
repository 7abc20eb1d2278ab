"""Files, folders and servers that are not as they should be: a clear word, and nothing lost."""

from __future__ import annotations

import errno
import math
import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from cases import rest_nightly
from commands import QUIET, SMALL, Done, Here, columns_of, outcome_of, summary_of

from srs_eval.errors import TrackingError
from srs_eval.tracking.mlflow_tracker import MlflowTracker

HEAD = "card,rating,day\n"
TO_OUT = [*QUIET, "hydra.run.dir=out"]
CSV = ["data=csv", "data.columns.day=day", "data.columns.time=null"]


@pytest.fixture(autouse=True)
def _no_settings_of_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)


def invented(rating: Callable[[random.Random], int], cards: int = 40) -> str:
    rng = random.Random(1)
    rows = []
    for card in range(cards):
        day = rng.randint(0, 20)
        for _ in range(12):
            rows.append((day, card, rating(rng)))
            day += rng.randint(1, 4)
    return HEAD + "".join(f"{card},{given},{day}\n" for day, card, given in sorted(rows))


def evaluated(here: Here, text: str, *words: str) -> Done:
    """Evaluate HLR on a CSV file, which must still be as it was afterwards."""
    file = here.folder / "log.csv"
    file.write_text(text, encoding="utf-8")
    done = here("algo=hlr", "panel=quick", *CSV, "data.path=log.csv", *TO_OUT, *words)
    assert "Traceback" not in done.text
    assert file.read_text(encoding="utf-8") == text
    assert [path.name for path in here.folder.iterdir() if path.name != "out"] == ["log.csv"]
    return done


def test_a_log_too_small_to_split_is_skipped_with_the_numbers(here: Here) -> None:
    for rows, status in {
        "": "failed",
        "1,3,0\n": "skipped",
        "".join(f"1,3,{day}\n" for day in range(5)): "skipped",
        "".join(f"{card},3,0\n" for card in range(100)): "skipped",
        "".join(f"1,{1 if day % 5 == 0 else 3},{day}\n" for day in range(300)): "skipped",
    }.items():
        done = evaluated(here, HEAD + rows)
        assert outcome_of(here.folder / "out")["status"] == status
        assert done.status == int(status == "failed")
        if status == "skipped":
            assert "reviews can be scored, 6 are needed for 5 folds" in done.out
            assert "Rests on 0 of 1 user and 0 of " in done.out
            summary = summary_of(here.folder / "out")
            assert (summary["users"], summary["failed"], summary["skipped"]) == (0, 0, 1)
    assert "log.csv: there are no reviews in it" in evaluated(here, HEAD).text


@pytest.mark.slow
@pytest.mark.parametrize("rating", rest_nightly([3, 1]))
def test_outcomes_that_are_all_the_same_leave_some_metrics_undefined(
    here: Here, rating: int
) -> None:
    done = evaluated(here, invented(lambda _: rating, cards=20), "panel=default")
    assert done.status == 0, done.text
    metrics = summary_of(here.folder / "out")["metrics"]
    assert metrics["auc"]["mean_users"] is None
    assert metrics["normalized_entropy"]["n_users"] == 0
    assert 0 <= metrics["log_loss"]["mean_users"] < 0.1
    row = next(line for line in done.out.splitlines() if line.startswith("auc "))
    assert row.split()[2:] == ["-", "-"]
    assert "nan" not in done.out


@pytest.mark.slow
def test_one_bad_log_of_many_takes_no_other_with_it(here: Here) -> None:
    folder = here.folder / "logs"
    folder.mkdir()
    good = invented(lambda rng: 3 if rng.random() < 0.8 else 1)
    for name, text in (("ann", good), ("ben", HEAD + "1,9,0\n"), ("cat", HEAD + "1,3,0\n")):
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    done = here("algo=avg", "panel=quick", *CSV, "data.path=logs", *TO_OUT)
    assert done.status == 1
    assert "Rests on 1 of 3 users and " in done.out
    assert "fits: 5 ok, 1 skipped" in done.out
    assert f"not evaluated: {Path('logs', 'ben.csv')}: " in done.out
    assert "Skipped: 1 user with 1 review: user cat: " in done.out
    scores = columns_of(here.folder / "out" / "scores.parquet")
    assert scores["user"] == ["ann", "ben"]
    assert math.isnan(scores["log_loss"][1])
    assert summary_of(here.folder / "out")["users"] == 1


def test_an_output_folder_that_cannot_be_written_is_told(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here.folder / "file").write_text("mine", encoding="utf-8")
    for words in (["hydra.run.dir=file/out"], ["-m", "hydra.sweep.dir=file/out"]):
        done = here("algo=avg", *SMALL, *QUIET, *words)
        assert done.status == 1
        assert "cannot write the output folder: Not a directory" in done.err
        assert "Traceback" not in done.text
    assert (here.folder / "file").read_text(encoding="utf-8") == "mine"
    write = Path.write_text

    def full(self: Path, data: str, **options: str) -> int:
        if self.name.startswith("job.json"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return write(self, data, **options)

    monkeypatch.setattr(Path, "write_text", full)
    done = here("algo=avg", *SMALL, *TO_OUT)
    assert done.status == 1
    assert "cannot write the output folder: No space left on device" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("file", ["predictions.parquet", "scores.parquet"])
def test_a_disk_that_fills_up_loses_no_finished_user(
    here: Here, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    def full(write: Callable[..., object]) -> Callable[..., object]:
        def until_full(*args: object, **options: object) -> object:
            for where in (Path(arg) for arg in args if isinstance(arg, str | Path)):
                if where.name.startswith(file) and where.parent.name == "out":
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(where))
            return write(*args, **options)

        return until_full

    words = ["algo=avg", "panel=quick", *SMALL, *TO_OUT]
    with monkeypatch.context() as patched:
        for name in ("write_table", "ParquetWriter"):
            patched.setattr(pq, name, full(getattr(pq, name)))
        done = here(*words)
    assert done.status == 1
    assert "No space left on device" in done.err
    assert "resume=true hydra.run.dir=" in done.err
    assert "Traceback" not in done.text
    assert outcome_of(here.folder / "out")["status"] == "failed"
    done = here(*words, "resume=true")
    assert done.status == 0, done.err
    assert "2 of 2 users were done before" in done.out


@pytest.mark.slow
def test_a_tracking_server_that_is_down_is_told_within_seconds_and_before_any_fit(
    here: Here,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        uri = f"http://127.0.0.1:{probe.getsockname()[1]}"
    began = time.monotonic()
    done = here("algo=avg", *SMALL, f"tracking.uri={uri}", "hydra.run.dir=out")
    assert time.monotonic() - began < 60  # MLflow alone tries for minutes
    assert done.status == 1
    assert uri in done.err
    assert "Start that server or correct tracking.uri" in done.err
    assert "Traceback" not in done.text
    assert not (here.folder / "out" / "parts").exists()


@pytest.mark.slow
def test_a_tracking_store_that_fails_half_way_loses_nothing(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, calls = MlflowTracker.log, []

    def fails(self: MlflowTracker, items: object) -> None:
        calls.append(items)
        if len(calls) > 1:
            raise TrackingError("MLflow could not keep the results")
        log(self, items)  # type: ignore[arg-type]

    words = ["algo=avg", *SMALL, "figures=false", "hydra.run.dir=out"]
    with monkeypatch.context() as patched:
        patched.setattr(MlflowTracker, "log", fails)
        done = here(*words)
    out = here.folder / "out"
    assert done.status == 1
    assert f"The results are in {out}." in done.err
    assert "resume=true hydra.run.dir=" in done.err
    assert "Traceback" not in done.text
    assert "log_loss" in done.out
    assert outcome_of(out)["status"] == "failed"
    for name in ("summary.json", "scores.parquet", "predictions.parquet", "fits.parquet"):
        assert (out / name).is_file()
    assert "MLflow could not keep the results" in done.err
    done = here(*words, "resume=true")
    assert done.status == 0, done.err
    assert "2 of 2 users were done before" in done.out
    assert "mlflow ui" in done.out
