"""What runs and sweeps say, to people and to trackers, how jobs end, and where parts are."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import offenders
import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL, to_end, write
from filelock import FileLock
from invented import Ends
from object_store import object_store
from saved import assert_same, result_from

from srs_eval.algorithms.baselines import Average
from srs_eval.comparison.baseline import in_percent
from srs_eval.compute.processes import Processes
from srs_eval.config.building import Input, Inputs
from srs_eval.errors import (
    ConfigError,
    FitError,
    Pruned,
    ShardsMissingError,
    SrsEvalError,
)
from srs_eval.evaluation.evaluate import ReviewLog, UserEvaluation
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import Fit
from srs_eval.place import Place
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results import load
from srs_eval.results.fit_counts import failures_in_words, reason_of
from srs_eval.results.run import run_of
from srs_eval.run import jobs
from srs_eval.run.description import RunDescription, targets
from srs_eval.run.evaluate import evaluate
from srs_eval.run.jobs import JobOutcome, attempt
from srs_eval.run.log_items import _from_anywhere, facts_after, facts_before
from srs_eval.run.plan import make_job
from srs_eval.run.report import result_text
from srs_eval.tracking.items import Description, TableRows
from srs_eval.tracking.tracker import NoTracker

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
            ended = to_end(
                attempt(lambda run=run: ("avg", run), label="?", folder=folder, sweep_folder=sweep)
            )
        except KeyboardInterrupt:
            ended = "KeyboardInterrupt"
        kept = json.loads((folder / "job.json").read_text())
        assert kept.pop("seconds") > 0
        said = [line for line in capsys.readouterr().err.splitlines() if line[:2] != "  "]
        text += "\n".join([f"== {name}: {ended}", json.dumps(kept), *said, ""])
    golden_text("jobs_ended", text)
    with FileLock(tmp_path / ".lock"):  # as another command holds it
        assert to_end(attempt(lambda: ("avg", run), label="?", folder=tmp_path))[1] == 1
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


def ended(folder):
    lines = []
    for file in sorted(folder.rglob("job.json")):
        content = json.loads(file.read_text("utf-8"))
        del content["seconds"]
        lines.append(f"{file.relative_to(folder).as_posix()}: {json.dumps(content)}\n")
    return "".join(lines)


@pytest.mark.parametrize("name", ["runs_told", "sweeps_told"])
def test_what_is_said_of_runs_and_sweeps(here, transcript, name):
    few, bad = ROWS[:100].rpartition("\n")[0], ROWS.replace("ben,3", "ben,9")
    write(here.folder, {"good.csv": ROWS, "bad.csv": bad, "few.csv": few})

    def told_by(*words):
        if words == ("job.json",):
            return ended(here.folder)
        logs = CSV if "csv" in " ".join(words) else SIMULATED
        done = here(*logs, *words)
        out = re.sub(r"(runs on .*?)\n\n.*\n(results )", r"\1 …\n\n\2", done.out, flags=re.DOTALL)
        told = f"exit status {done.status}\n{out}{done.err}"
        told = re.sub(r"(status +time\n.* )-+\n", r"\1------\n", told)  # wider from 10 s on
        return re.sub(r"\b\d+\.\d s\b", "TIME", told)

    transcript(name, told_by)


PANEL = Panel([LogLoss()])


def fit_of(word):
    """Read ``USER/FOLD/STATUS/REASON``; a dot in the middle stands for a blank."""
    user, fold, status, *reason = word.replace("·", " ").replace("\\n", "\n").split("/", 3)
    return Fit(int(user) if user.isdigit() else user, int(fold), status, *reason)


def of_fits(*fits):
    users = dict.fromkeys(fit.user for fit in fits)
    evaluations = [
        UserEvaluation(user, tuple(fit for fit in fits if fit.user == user), None, ReviewLog())
        for user in users
    ]
    return result_from(evaluations, PANEL)


def test_what_is_said_of_fits_and_jobs(transcript):
    before = set()  # by the jobs of a sweep

    def told_by(what, *words):
        if what == "table":
            return jobs._jobs_table([JobOutcome(*word.split("/")) for word in words]) + "\n"
        fits = [fit_of(word) for word in words]
        if what == "reason":
            return reason_of(fits[0]) + "\n"
        if what == "job":
            return result_text(of_fits(*fits), PANEL, brief=True, said=before) + "\n"
        return f"{result_text(of_fits(*fits), PANEL)}\n{failures_in_words(fits)}\n"

    transcript("report_of_fits", told_by)


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


def test_places_where_parts_cannot_be_are_refused(here):
    for parts in ("hf://datasets/me/parts", ".", "ftp://host/parts"):
        assert here(*RUN, "tracking=none", f"parts={parts}").status == 2
        assert not (here.folder / "out" / "parts").exists()


@pytest.mark.slow
def test_cards_learned_in_a_job_are_unknown_in_the_next(here, monkeypatch):
    """Jobs of a sweep share no state: what one learned from its test rows helps no other."""
    # The run outside a sweep is in this process, where other tests may have filled the table.
    monkeypatch.setattr(offenders, "_EASINESS", {})
    write(here.folder, {"own/algo/cards.yaml": "_target_: offenders.KeepsTheLatestTable\n"})
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


CONTENT = {
    "algo": {"_target_": "x", "rate": 0.1},
    "data": {"users": [1, 2], "path": "s3://logs"},
    "seed": 1,
    "name": None,
    "curves_per_user": 5,
    "figures": True,
    "resume": False,
    "shard": None,
    "fail_fast": True,
    "check_lookahead": True,
    "fit_timeout": None,
    "parts_above": 1000,
    "notes": "a note",
    "tags": {"paper": "1"},
}


def planned(folder, algorithm, source, compute=None, **content):
    built = {"algo": algorithm, "data": source, "protocol": SrsBenchmark(), "compute": compute}
    built |= {"panel": Panel([LogLoss(), Auc()]), "tracking": NoTracker()}
    groups = {name: Input(each, "chosen", CONTENT.get(name, {})) for name, each in built.items()}
    settings = {key: CONTENT[key] for key in CONTENT if key not in built}
    return make_job(Inputs(groups, settings | content), folder)


class MyProcesses(Processes):
    """A way to evaluate users of somebody else."""


def test_a_time_limit_needs_processes_of_ours_or_derived_from_them(tmp_path, logs_of, make_log):
    source = logs_of(make_log())
    assert planned(tmp_path, Average(), source, MyProcesses(1), fit_timeout=5).limits.timeout == 5
    with pytest.raises(ConfigError, match="fit_timeout"):
        planned(tmp_path, Average(), source, object(), fit_timeout=5)


def told(item):
    """Return an item as lines of text, without what differs between machines and versions."""
    text = item.markdown if isinstance(item, Description) else ""
    if not text:
        fields = dict(item.columns) if isinstance(item, TableRows) else asdict(item)
        fields.pop("seconds", None)
        shown = {n: str(c) if isinstance(c, Path) else repr(c) for n, c in fields.items()}
        text = "; ".join(f"{name}={content}" for name, content in shown.items())
    name = f" {item.name}" if isinstance(item, TableRows) else ""
    return f"{type(item).__name__}{name}: {text}"


def test_what_is_logged_of_a_run(tmp_path, logs_of, make_log, golden_text):
    text = ""
    drawn = {"roc": [tmp_path / "roc.svg", tmp_path / "roc.png"]}
    for name in ("scores.parquet", "summary.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    cases = {
        "one of three users failed": (Ends(FitError("no"), users=[2]), logs_of(1, 2, 3)),
        "nothing was scored": (Average(), logs_of(make_log(cards=1))),
    }
    for case, (algorithm, source) in cases.items():
        plan = planned(tmp_path, algorithm, source)
        about = RunDescription("chosen", "logs", "avg", tags={"config_hash": "c"})
        result = evaluate(plan.experiment, about=about)
        baseline = replace(run_of(result), name="before")
        after = facts_after(plan, result, drawn, in_percent(run_of(result), baseline))
        shown = [told(item) for item in after if getattr(item, "name", "") != "cost/fit_seconds"]
        text += "\n".join([f"== {case}", *shown, ""])
    before = [told(item) for item in facts_before(plan.about) if "hash" not in told(item)]
    text += "\n".join(["== before", *before, ""])
    golden_text("logged_items", re.sub(r"\d\.\d{5,}", lambda n: f"{float(n[0]):.4f}", text))


def test_the_class_of_every_part_is_named_in_lists_too():
    options = {
        "algo": {"_target_": "a.A", "parts": [{"_target_": "b.B", "of": [[{"_target_": "c.C"}]]}]},
        "panel": {"metrics": {"one": {"_target_": "d.D"}}},
        "data": {"users": [1, 2], "path": "e.E"},
    }
    assert sorted(targets(options)) == ["a.A", "b.B", "c.C", "d.D"]


def test_paths_of_logs_are_written_in_full_and_other_texts_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a[1].csv").write_text("")
    for given in ("logs", "logs/a[1].csv", "logs/*.csv", "l*/*.csv"):
        assert _from_anywhere(given) == str(tmp_path / given)
    for given in ("~/logs", str(tmp_path / "logs")):
        assert _from_anywhere(given) == str(tmp_path / "logs")
    others = ("", "made up", "hub/name", "s3://x/y", "8 simulated users, seed 1", "~nobody/x")
    for other in (*others, "a**b", "x" * 5000, "\0"):
        assert _from_anywhere(other) == other
