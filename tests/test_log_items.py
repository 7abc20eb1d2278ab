"""What a run tells its tracker."""

import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.errors import FitError
from srs_eval.experiment.description import targets
from srs_eval.experiment.evaluate import evaluate
from srs_eval.experiment.log_items import (
    _from_anywhere,
    facts_after,
)
from srs_eval.experiment.plan import make_plan
from srs_eval.metrics.panel import default_panel
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.results.remarks import sentences
from srs_eval.results.run import run_of
from srs_eval.text.escapes import for_markdown
from srs_eval.tracking.items import (
    ArtifactFile,
    DatasetInfo,
    Description,
    FigureFiles,
    TableRows,
    Value,
)
from srs_eval.tracking.nothing import NoTracker

CONTENT = {
    "algo": {"_target_": "x", "rate": 0.1},
    "data": {"users": [1, 2]},
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


class FailsForUser2(Average):
    def fit(self, reviews, rows, rng):
        if reviews.user == 2:
            raise FitError("no")
        return Average.fit(self, reviews, rows, rng)


@pytest.fixture
def run(tmp_path, logs_of):
    """Plan and evaluate; return the result and what is logged afterwards."""

    def build(algorithm, *users, figures=None):
        source = logs_of(*users)
        built = {
            "algo": algorithm,
            "data": source,
            "protocol": SrsBenchmark(),
            "panel": default_panel(),
            "tracking": NoTracker(),
            "compute": None,
        }
        choices = dict.fromkeys(built, "chosen")
        plan = make_plan(built, CONTENT, choices, usual={}, folder=tmp_path, sweep_folder=None)
        result = evaluate(plan.experiment)
        return result, list(facts_after(plan, result, figures or {}))

    return build


def of_kind(kind, items):
    return [item for item in items if isinstance(item, kind)]


def values(items):
    return {item.name: item.value for item in of_kind(Value, items)}


def test_only_users_without_a_failure_are_counted_as_scored(run):
    result, after = run(FailsForUser2(), 1, 2, 3)
    found = values(after)
    assert (found["users/n"], found["users/failed"]) == (2, 5)
    assert found["users/reviews"] == result.facts.reviews
    (dataset,) = of_kind(DatasetInfo, after)
    assert (dataset.users, dataset.reviews) == (2, result.facts.reviews)
    (text,) = of_kind(Description, after)
    assert "Fits: 10 ok, 5 failed" in text.markdown
    assert f"Rests on 2 of 3 users and {result.facts.reviews:,} of " in text.markdown
    assert f"**{result.facts.coverage.caution}**" in text.markdown
    remarks = sentences(run_of(result))
    assert len(remarks) == 3
    assert all(f"\n- {for_markdown(remark)}" in text.markdown for remark in remarks)
    tables = {item.name: item.columns for item in of_kind(TableRows, after)}
    assert set(tables) == {"metrics", "thresholds", "users", "fits"}
    for columns in tables.values():
        assert len({len(column) for column in columns.values()}) == 1
    assert tables["users"]["user"] == ["1", "2", "3"]


@pytest.mark.slow
def test_results_and_figures_are_kept_with_the_run(run, tmp_path):
    for name in ("scores.parquet", "summary.json", "notes.txt"):
        (tmp_path / name).write_text("{}")
    drawn = {"roc": [tmp_path / "roc.svg", tmp_path / "roc.png"]}
    _, after = run(Average(), 1, figures=drawn)
    kept = {item.path.name for item in of_kind(ArtifactFile, after)}
    assert {"scores.parquet", "summary.json"} <= kept
    assert "notes.txt" not in kept
    (figure,) = of_kind(FigureFiles, after)
    assert figure == FigureFiles("roc", tmp_path / "roc.png", tmp_path / "roc.svg")


def test_where_nothing_was_scored_the_run_says_so_too(run, make_log):
    _, after = run(Average(), make_log(cards=1))
    found = values(after)
    assert (found["users/n"], found["users/reviews"], found["users/skipped"]) == (0, 0, 1)
    (text,) = of_kind(Description, after)
    assert "Rests on 0 of 1 user and 0 of " in text.markdown
    assert "Fits: 1 skipped" in text.markdown
    assert "90 %" not in text.markdown


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
