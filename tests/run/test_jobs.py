"""What runs and sweeps say, how their jobs end, and where their parts are."""

import json
import re

import numpy as np
import offenders
import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL
from filelock import FileLock
from object_store import object_store
from same import assert_same
from saved import result_from

from srs_eval.errors import (
    ConfigError,
    Pruned,
    ShardsMissingError,
    SrsEvalError,
)
from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fit
from srs_eval.place import Place
from srs_eval.results import load
from srs_eval.results.fit_counts import failures_in_words, reason_of
from srs_eval.run import jobs
from srs_eval.run.jobs import JobOutcome, attempt
from srs_eval.run.report import result_text

RAISED = {
    "pruned": Pruned("others were better"),
    "option": ConfigError("algo=x: no such option"),
    "error": SrsEvalError("no log could be read"),
    "shards": ShardsMissingError("shard=1/2 is missing"),
    "full disk": OSError(28, "No space left on device", "scores.parquet"),
    "nameless": OSError(28, "No space left on device"),
    "defect": RuntimeError("postgresql://me:secret-word@host/runs"),
    "stopped": KeyboardInterrupt(),
    "alone": SrsEvalError("no log could be read"),
    "alone, with a finished user": SrsEvalError("no log could be read"),
}


def test_how_a_job_ended_is_kept_and_how_to_go_on_is_said(
    tmp_path, capsys, golden_text, monkeypatch
):
    monkeypatch.setenv("STORE", str(RAISED["defect"]))
    text = ""
    for name, error in RAISED.items():
        folder, is_alone = tmp_path / name, name.startswith("alone")
        (folder / "parts" / "users").mkdir(parents=True)
        if name != "alone":
            (folder / "parts" / "users" / "part-1.parquet").touch()
        if not is_alone:
            (folder / "summary.json").touch()

        def run(error=error):
            raise error

        sweep = None if is_alone else tmp_path
        try:
            ended = attempt(
                lambda run=run: ("avg", run), label="?", folder=folder, sweep_folder=sweep
            )
        except KeyboardInterrupt:
            ended = "KeyboardInterrupt"
        kept = json.loads((folder / "job.json").read_text())
        assert kept.pop("seconds") > 0
        said = [line for line in capsys.readouterr().err.splitlines() if line[:2] != "  "]
        text += "\n".join([f"== {name}: {ended}", json.dumps(kept), *said, ""])
    golden_text("jobs_ended", text)
    with FileLock(tmp_path / ".lock"):  # as another command holds it
        assert attempt(lambda: ("avg", run), label="?", folder=tmp_path)[1] == 1
    assert not (tmp_path / "job.json").exists()


SIMULATED = (
    *("data.users=2", "data.size_scale=0.02", "data.max_reviews=400"),
    *("panel=quick", "tracking=none", "figures=false", "curves_per_user=0"),
)
CSV = ("data=csv", "data.columns.user=user", *SIMULATED[4:])
ROWS = "card,user,rating,time\n" + "".join(
    f"{n % 3},{user},{3 - 2 * (n % 7 == 0)},{1614600000 + 86400 * n}\n"
    for user in ("ann", "ben")
    for n in range(40)
)
COMMANDS = {
    "runs_told": (
        "algo=avg hydra.run.dir=one",
        "algo=moving_avg hydra.run.dir=two baseline=one",
        "algo=avg hydra.run.dir=three baseline=one data.seed=9",
        "algo=moving_avg hydra.run.dir=one baseline=one",
        "algo=avg hydra.run.dir=one resume=true",
        "algo=avg hydra.run.dir=one resume=true seed=3",
        "algo=avg data.path=bad.csv hydra.run.dir=bad",
        "algo=fsrs6 algo.fit=default data.path=good.csv protocol=srs_benchmark_secs",
        "algo=fsrs6 algo.fit=default data.path=good.csv",
    ),
    "sweeps_told": (
        "-m algo=avg,moving_avg,avg hydra.sweep.dir=many",
        "-m algo=avg data.path=good.csv,bad.csv,none.csv,bad.csv hydra.sweep.dir=logs",
        "-m algo=avg data.path=few.csv hydra.sweep.dir=skipped",
    ),
}


def ended(folder):
    lines = []
    for file in sorted(folder.rglob("job.json")):
        content = json.loads(file.read_text("utf-8"))
        del content["seconds"]
        lines.append(f"{file.relative_to(folder).as_posix()}: {json.dumps(content)}\n")
    return "".join(lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_said_of_runs_and_sweeps(here, golden_text, name):
    (here.folder / "good.csv").write_text(ROWS)
    (here.folder / "bad.csv").write_text(ROWS.replace("ben,3", "ben,9"))
    (here.folder / "few.csv").write_text(ROWS[:100].rpartition("\n")[0])
    text = ""
    for number, command in enumerate(COMMANDS[name]):
        place = () if "hydra" in command else (f"hydra.run.dir={number}",)
        done = here(*(CSV if "csv" in command else SIMULATED), *command.split(), *place)
        out = re.sub(r"(runs on .*?)\n\n.*\n(results )", r"\1 …\n\n\2", done.out, flags=re.DOTALL)
        text += f"$ {command}\nexit status {done.status}\n{out}{done.err}\n"
    golden_text(name, re.sub(r"\b\d+\.\d s\b", "TIME", text + ended(here.folder)))


PANEL = Panel([LogLoss()])
NO = Fit(2, -1, "failed", "no")
FITS = {
    "each status once": [
        *(Fit(1, fold, status) for fold, status in enumerate(["ok", "fallback", "failed"])),
        Fit(2, -1, "skipped"),
    ],
    "the worst first, and each reason once": [
        Fit(3, 0, "ok", "did not converge"),
        *(Fit(1, fold, "fallback", "no second reviews") for fold in range(4)),
        Fit(4, -1, "skipped", "user 4: only 3 of 9 reviews"),
        *(Fit(2, fold, "failed", f"user 2, fold {fold}: it diverged") for fold in (1, 3)),
    ],
    "some of many reasons": [
        Fit(user, -1, "failed", f"user {user}: row {user}") for user in range(9)
    ],
    "a log that could not be read": [*(Fit(1, fold, "ok") for fold in range(5)), NO],
    "no log that could be read": [NO],
    "a failed fit": [Fit(1, 0, "ok"), Fit(1, 1, "failed", "no")],
    "failed fits, and users without a fit": [
        Fit(1, 0, "failed", "no"),
        *(Fit(user, -1, "failed", "x") for user in (2, 3)),
    ],
}
TABLE = "log.csv, user ann: time: row 3 is empty"
PACKAGE = "logs/ann.colpkg: there are no reviews in it"
REASONS = [
    *(Fit(3, 2, "failed", reason) for reason in ("user 3, fold 2: no", "no", "user 3: no", "")),
    *(Fit(3, -1, "skipped", reason) for reason in ("user 3: no", "user 33: no")),
    *(Fit(user, -1, "failed", PACKAGE) for user in ("ann", "ben")),
    Fit("ann", -1, "failed", "ann.colpkg:\n  - one\n  - two"),
    *(Fit(user, -1, "failed", TABLE) for user in ("ann", "an")),
    Fit("ann", 2, "failed", TABLE),
]


def of_fits(*fits):
    users = dict.fromkeys(fit.user for fit in fits)
    evaluations = [
        UserEvaluation(user, tuple(fit for fit in fits if fit.user == user), None, ReviewLog())
        for user in users
    ]
    return result_from(evaluations, PANEL)


def test_what_is_said_of_fits_and_jobs(golden_text):
    lines = []
    for name, fits in FITS.items():
        lines += [f"== {name}", result_text(of_fits(*fits), PANEL), failures_in_words(fits), ""]
    before = set()
    slow, short = Fit(1, 0, "failed", "it\n  diverged"), Fit(2, -1, "skipped", "only 3 of 9")
    for fits in ((slow,), (slow,), (slow, short)):
        lines += ["== job", result_text(of_fits(*fits), PANEL, brief=True, said=before), ""]
    outcomes = [JobOutcome("avg", "failed", reason, 1) for reason in ("no", "no", "other", "no")]
    lines += ["== jobs", jobs._jobs_table([*outcomes, JobOutcome("hlr", "ok")]), "", "== reasons"]
    lines += [f"{fit.user}, {fit.fold}, {fit.reason!r}: {reason_of(fit)}" for fit in REASONS]
    golden_text("report_of_fits", "\n".join(lines) + "\n")


RUN = (
    *("algo=avg", "data.users=2", "data.size_scale=0.02", "data.max_reviews=600"),
    *("panel=quick", "figures=false", "hydra.run.dir=out"),
)


@pytest.mark.slow
def test_large_results_and_artefacts_of_mlflow_stay_in_an_object_store(here, monkeypatch):
    words = (*RUN, "parts=s3://bucket/parts", "parts_above=0")
    artefacts = "tracking.artifacts=s3://bucket/mlflow"
    assert here(*RUN, "tracking=none", "hydra.run.dir=one").status == 0
    with object_store(monkeypatch, "bucket"):
        assert here(*words, artefacts).status == 0
        logged = Place.of("s3://bucket/mlflow").files(recursive=True)
        names = {entry.place.name for entry in logged}
        assert {"scores.parquet", "summary.json", "metrics.json"} <= names
        one, out = (load(here.folder / name) for name in ("one", "out"))
        for found, expected in zip(out.predicted, one.predicted, strict=True):
            assert_same(found, expected)
        (here.folder / "out").rename(here.folder / "lost")
        for said in ("2 of 2 users were done before", "finished before"):
            again = here(*words, "tracking=none", "resume=true")
            assert (again.status, said in again.out) == (0, True)
        assert len(load(here.folder / "out").predicted.users) == 2
        assert "predictions" in Place.of("s3://bucket/parts").names()


@pytest.mark.slow
def test_a_bucket_that_cannot_be_used_is_told_before_a_user_is_evaluated(here, monkeypatch):
    monkeypatch.setattr("srs_eval.run.job.Evaluation", None)
    for bucket, failure, what in (
        ("nobody", "", "no such bucket"),
        ("bucket", "403 Access Denied", "permission is denied"),
    ):
        with object_store(monkeypatch, "bucket") as store:
            store.failing = lambda number, failure=failure: failure
            done = here(*RUN, "tracking=none", f"parts=s3://{bucket}/run")
        assert (done.status, "Traceback" in done.err) == (1, False)
        assert f"s3://{bucket}/run" in done.err
        assert what in done.err


def test_places_where_parts_cannot_be_are_refused(here):
    for parts in ("hf://datasets/me/parts", ".", "ftp://host/parts"):
        assert here(*RUN, "tracking=none", f"parts={parts}").status == 2
        assert not (here.folder / "out" / "parts").exists()


@pytest.mark.slow
def test_cards_learned_in_a_job_are_unknown_in_the_next(here, monkeypatch):
    """Jobs of a sweep share no state: what one learned from its test rows helps no other."""
    # The run outside a sweep is in this process, where other tests may have filled the table.
    monkeypatch.setattr(offenders, "_EASINESS", {})
    (here.folder / "own/algo").mkdir(parents=True)
    text = "_target_: offenders.KeepsTheLatestTable\n"
    (here.folder / "own/algo/cards.yaml").write_text(text, encoding="utf-8")
    # The check of a class fits it once, and this one keeps what it learned there, too.
    words = ("--config-dir=own", "algo=cards", "check_lookahead=false", *SMALL, *QUIET)
    alone = here(*words, "hydra.run.dir=alone")
    sweep = here("-m", *words, "seed=0,1", "hydra.sweep.dir=out")
    assert (alone.status, sweep.status) == (0, 0), alone.text + sweep.text
    folders = [here.folder / "alone", *sorted((here.folder / "out").glob("*_cards"))]
    assert len(folders) == 3
    p = [pq.read_table(folder / "predictions.parquet")["p"].to_numpy() for folder in folders]
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_array_equal(p[1], p[2])
