"""What a run tells its tracker."""

import re
from dataclasses import asdict, replace
from pathlib import Path

from invented import Ends

from srs_eval.algorithms.baselines import Average
from srs_eval.comparison.baseline import in_percent
from srs_eval.errors import FitError
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.run import run_of
from srs_eval.run.description import RunDescription, targets
from srs_eval.run.evaluate import evaluate
from srs_eval.run.log_items import _from_anywhere, facts_after, facts_before
from srs_eval.run.plan import make_job
from srs_eval.tracking.items import Description, TableRows
from srs_eval.tracking.nothing import NoTracker

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


def planned(folder, algorithm, source):
    built = {"algo": algorithm, "data": source, "protocol": SrsBenchmark(), "compute": None}
    built |= {"panel": Panel([LogLoss(), Auc()]), "tracking": NoTracker()}
    choices = dict.fromkeys(built, "chosen")
    return make_job(built, CONTENT, choices, usual={}, folder=folder, sweep_folder=None)


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
