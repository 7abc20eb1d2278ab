"""Runs are named and paired, and judged: no verdict, interval or p-value contradicts another."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from saved import entry_with, load_predictions
from scipy.stats import binomtest

from srs_eval.comparison.compare import compare, read_runs
from srs_eval.comparison.entry import read_entry
from srs_eval.comparison.leaderboard import NOISE
from srs_eval.metrics.means import clustered_mean
from srs_eval.metrics.tally import log_losses
from srs_eval.runs.summary import Summary

U = np.arange(12)
BASE = 0.3 + 0.02 * np.sin(U)
TABLE = {
    "A": BASE,
    "B": BASE + 0.010 + 0.004 * np.cos(U),
    "C": BASE + 0.012 + 0.030 * np.cos(2 * U),
    "D": BASE + 0.2 + 0.1 * np.cos(3 * U) ** 2,
}
# Factor, adjusted p, adjusted interval, verdict: computed by another program
ORACLES = {
    "B": (1, 1.6767501e-7, (0.0072171367, 0.012599116), "worse"),
    "C": (1, 0.099019861, (-0.0086797152, 0.032700756), NOISE),
    "D": (3, 1.1248253e-9, (0.20898127, 0.29160658), "worse"),
}


def rows_of(table, about=None, **options):
    """Compare columns of scores, and return the rows in which each user counts once."""
    reviews = dict.fromkeys(range(len(next(iter(table.values())))), 100)
    facts = {"when": "previous_review", "fits": 9}
    metric = options.get("metric", "log_loss")
    runs = [
        entry_with(name, reviews, {metric: column}, **{**facts, **(about or {}).get(name, {})})
        for name, column in table.items()
    ]
    return compare(runs, **options).rows


def test_verdicts_are_those_computed_elsewhere_in_any_order_of_columns():
    for table in (TABLE, dict(reversed(TABLE.items()))):
        rows = rows_of(table)
        assert rows.to_best_verdict["A"] == "leads"
        for name, (factor, p, interval, verdict) in ORACLES.items():
            row = rows.loc[name]
            assert row.to_best_verdict == verdict
            assert 1 - row.to_best_level == pytest.approx(0.01 / factor)
            numbers = row.to_best_p, row.to_best_lo, row.to_best_hi
            assert numbers == pytest.approx([p, *interval], rel=1e-7)


def test_twins_change_nothing():
    names = ("A", "B", "C", "A again", "C again")
    twice = rows_of({name: TABLE[name[0]] for name in names})
    columns = [name for name in twice if name.startswith("to_best")]
    for twin, name in (("B", "B"), ("C", "C"), ("C again", "C")):
        assert twice.loc[twin, columns].tolist() == rows_of(TABLE).loc[name, columns].tolist()
    assert twice.to_best_verdict["A again"] == "identical"


BOUND, FAILED = {"sees_truth": True}, {"failed": 1}
LATE = {"when": "at_review"}


@pytest.mark.parametrize(
    ("about", "leaders"),
    [
        ({}, "AAAA"),
        ({"A": FAILED}, "BBBB"),
        ({"A": FAILED, "B": {"in_sample": True}, "C": FAILED, "D": BOUND}, "AAAA"),
        (dict.fromkeys("ABCD", BOUND), "AAAA"),
        (dict.fromkeys("ABC", BOUND), "DDDD"),
        ({"A": {**BOUND, **LATE}, "D": {**BOUND, "when": "day_before"}}, "BBBB"),
        ({"B": LATE, "C": LATE}, "ABBA"),
        ({"A": BOUND, "B": LATE, "C": LATE, "D": LATE}, " BBB"),
    ],
)
def test_leaders_by_time_have_not_seen_the_answers_nor_failed_where_others_can_lead(about, leaders):
    rows = rows_of(TABLE, about)
    assert "".join(rows.leader[[*"ABCD"]].replace("", " ")) == leaders
    for name, leader in zip("ABCD", leaders, strict=True):
        verdict = rows.to_best_verdict[name]
        assert (verdict == "bound") == (about.get(name, {}).get("sees_truth", False))
        if verdict != "bound":
            assert (verdict in ("leads", "best")) == (name == leader)


def test_fits_that_are_not_what_the_name_says_are_marked():
    for irregular in (["failed", "fallback"], ["fallback", "not_converged"], ["skipped"]):
        run = entry_with("a", {1: 9}, {}, **dict.fromkeys(irregular, 1))
        assert (run.marks, run.rank) == (
            " §" * (irregular != ["skipped"]),
            int(irregular[0] == "failed"),
        )


def test_means_are_cut_off_at_the_bounds_of_their_metric_and_differences_are_not():
    rows = rows_of({"a": [0.9, 0.1, 0.8], "b": [0.01, 0.02, 0.3]}, metric="auc")
    assert (rows.lo["b"], rows.hi["a"]) == (0, 1)
    assert rows.to_best_lo["b"] < -1
    assert rows.to_best_hi["b"] > 0
    assert rows_of({"a": [0.9, 0.1, 9]}).hi["a"] > 1
    assert rows_of({"a": [0, 0, 0], "b": [0.1, 0.2, 0.1]}).to_baseline_percent.isna().all()


@pytest.mark.parametrize("better", [0, 3, 8])
def test_users_are_counted_by_the_exact_sign_test(better):
    rows = rows_of({"A": np.full(12, 0.3), "B": np.where(better > U, 0.29, 0.31 + U)})
    assert rows.to_best_users_p["B"] == pytest.approx(binomtest(better, 12).pvalue)


def test_runs_carry_their_protocol_or_folder_where_their_names_do_not_tell(make_run):
    plain = read_entry(make_run("a", folder="first"))
    refit = read_entry(make_run("b", protocol="srs_benchmark_refit50"))
    again = read_entry(make_run("a", folder="second"))
    other = replace(again, place=Path("elsewhere/first"))
    published = replace(plain, name="c", facts=Summary("c"))
    names = {"a": plain, "b (srs_benchmark_refit50)": refit, "c": published}
    assert [*compare([*names.values()]).runs] == [*names]
    assert [*compare([plain, again]).runs] == ["a (first)", "a (second)"]
    assert [*compare([plain, other]).runs] == [f"a ({each.place})" for each in (plain, other)]


def test_a_folder_stands_for_runs_below_that_scored_users_in_the_order_of_jobs(make_run, tmp_path):
    for number in (0, 1, 2, 10):
        make_run(f"run{number}", folder=f"sweep/{number}_run")
    make_run("nothing", failed=range(1, 13))
    runs, (note,) = read_runs([tmp_path])
    assert [run.name for run in runs] == ["run0", "run1", "run2", "run10"]
    assert "nothing scored no user" in note


def test_one_user_is_compared_review_by_review(make_run):
    folders = make_run("a", [7]), make_run("b", [7], shift=-4.0)
    standings = compare([*map(read_entry, folders)])
    mine, other = map(load_predictions, folders)
    gaps = log_losses(other.p, other.recalled) - log_losses(mine.p, mine.recalled)
    expected = clustered_mean(gaps, mine.card, mine.day)
    (pair,) = standings.pairs.itertuples()
    numbers = expected.mean, *expected.interval(), expected.p_value
    assert (pair.difference, pair.lo, pair.hi, pair.p) == pytest.approx(numbers)
    assert standings.frame.to_best_verdict.tolist() == ["best", "worse"]
    assert standings.strata.over == "cards"
    (folders[1] / "predictions.parquet").unlink()
    (pair,) = compare([*map(read_entry, folders)]).pairs.itertuples()
    assert (pair.difference, pair.p) == pytest.approx((expected.mean, math.nan), nan_ok=True)


def test_a_baseline_is_found_by_its_label_or_any_path_to_it(make_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = make_run("sharp"), make_run("blurred", blur=1.0)
    folders += (make_run("refitted", shift=0.1, protocol="srs_benchmark_refit", algo="x"),)
    path, name = folders[1].name, "refitted (srs_benchmark_refit)"
    words = (path, f"{tmp_path}/{path}", f"{path}/", f"./{path}", f"{path}/../{path}", "refitted")
    for word in (*words, "x", name):
        runs = [*map(read_entry, folders)]
        assert compare(runs, baseline=word).baseline == ("blurred" if path in word else name)


@pytest.mark.parametrize(
    ("names", "baseline"),
    [("oracle hlr avg", "avg"), ("oracle hlr", "hlr"), ("oracle", "oracle"), ("hlr", "hlr")],
)
def test_the_usual_baseline_is_avg_and_no_model_that_knows_the_truth(names, baseline):
    runs = [
        entry_with(name, {1: 200}, {"log_loss": [0.3]}, algo=name, sees_truth=name == "oracle")
        for name in names.split()
    ]
    assert compare(runs).baseline == baseline
