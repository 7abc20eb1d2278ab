"""Runs are named and paired, and judged: no verdict, interval or p-value contradicts another."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from saved import entry_with, load_predictions

from srs_eval.comparison.compare import compare, report
from srs_eval.comparison.entry import read_entry, read_runs, with_own_names
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
            assert (1 - row.to_best_level, row.to_best_verdict) == (
                pytest.approx(0.01 / factor),
                verdict,
            )
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
        is_leader = rows.to_best_verdict[name] in ("leads", "best")
        assert is_leader == (name == leader)
        assert (rows.to_best_verdict[name] == "unknown") == (leader == " ")


def test_means_are_cut_off_at_the_bounds_of_their_metric_and_differences_are_not():
    rows = rows_of({"a": [0.9, 0.1, 0.8], "b": [0.01, 0.02, 0.3]}, metric="auc")
    assert (rows.lo["b"], rows.hi["a"]) == (0, 1)
    assert rows.to_best_lo["b"] < -1
    assert rows.to_best_hi["b"] > 0
    assert rows_of({"a": [0.9, 0.1, 9]}).hi["a"] > 1


def test_runs_carry_their_protocol_or_folder_where_their_names_do_not_tell(make_run):
    plain = read_entry(make_run("a", folder="first"))
    refit = read_entry(make_run("b", protocol="srs_benchmark_refit50"))
    again = read_entry(make_run("a", folder="second"))
    published = replace(plain, name="c", facts=Summary("c"))
    for runs, names in (
        ([plain, refit, published], ["a", "b (srs_benchmark_refit50)", "c"]),
        ([plain, again], ["a (first)", "a (second)"]),
        (
            [plain, replace(again, place=Path("elsewhere/first"))],
            [f"a ({plain.place})", f"a ({Path('elsewhere/first')})"],
        ),
    ):
        assert [run.name for run in with_own_names(runs)] == names


def test_a_folder_stands_for_all_runs_below_that_scored_users_in_the_order_of_jobs(
    make_run, tmp_path
):
    for number in (0, 1, 2, 10):
        make_run(f"run{number}", folder=f"sweep/{number}_run")
    make_run("nothing", failed=range(1, 13))
    runs, (note,) = read_runs([tmp_path])
    assert [run.name for run in runs] == ["run0", "run1", "run2", "run10"]
    assert "nothing scored no user" in note


def judged(*folders, **options):
    return compare([read_entry(folder) for folder in folders], **options)


@pytest.fixture
def three(make_run):
    return make_run("sharp"), make_run("blurred", blur=1.0), make_run("shifted", shift=-1.5)


def test_one_user_is_compared_review_by_review(make_run):
    known = {"log_loss": {"lo": 0.1, "hi": 0.9}}
    folders = [make_run("a", [7], metrics=known), make_run("b", [7], shift=-4.0)]
    verdict = judged(*folders)
    mine, other = map(load_predictions, folders)
    gaps = log_losses(other.p, other.recalled) - log_losses(mine.p, mine.recalled)
    expected = clustered_mean(gaps, mine.card, mine.day)
    (pair,) = verdict.pairs.itertuples()
    numbers = expected.mean, *expected.interval(), expected.p_value
    assert (pair.difference, pair.lo, pair.hi, pair.p) == pytest.approx(numbers)
    assert verdict.frame.to_best_verdict.tolist() == ["best", "worse"]
    assert verdict.strata.over == "cards"


def test_a_baseline_is_found_by_its_label_or_any_path_to_its_folder(
    three, make_run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    relative = [folder.relative_to(tmp_path) for folder in three]
    asked = f"{three[1]}", f"{relative[1]}/", f"./{relative[1]}", f"{three[1]}/../1_blurred"
    for folders in (three, relative):
        assert {judged(*folders, baseline=name).baseline for name in asked} == {1}
    assert judged(*three, baseline="2_shifted").baseline == 2
    refitted = make_run("refitted", shift=0.1, protocol="srs_benchmark_refit", algo="x")
    for name in ("refitted", "x", "refitted (srs_benchmark_refit)"):
        assert judged(*three, refitted, baseline=name).baseline == 3


def test_percentages_are_those_of_the_means(make_run, tmp_path, page_without_images):
    mine, avg = read_entry(make_run("mine")), read_entry(make_run("avg", blur=1))
    mine.scores.loc[4, "log_loss"] = np.nan
    users = [user for user in range(1, 13) if user != 4]
    ours, theirs = (one.values("log_loss", users).mean() for one in (mine, avg))
    found = report(compare([avg, mine]), tmp_path / "out", command="")
    percent = pytest.approx(100 * (ours / theirs - 1))
    assert found.against == {avg.place: {"log_loss": 0}, mine.place: {"log_loss": percent}}
    zero = replace(avg, scores=avg.scores.assign(log_loss=0.0))
    assert np.isnan(compare([mine, zero]).rows.to_baseline_percent).all()
    assert np.isnan(compare([avg, mine], metric="auc").rows.to_baseline_percent).all()


def test_the_usual_baseline_is_avg_and_no_model_that_knows_the_truth(make_run):
    runs = (
        make_run(name, shift=0.1 * n, sees_truth=name == "oracle")
        for n, name in enumerate(("oracle", "hlr", "avg"))
    )
    oracle, hlr, avg = map(read_entry, runs)
    for runs, expected in (([oracle, hlr, avg], 2), ([oracle, hlr], 1), ([oracle], 0), ([hlr], 0)):
        assert compare(runs).baseline == expected
    assert compare([oracle, hlr, avg], baseline="oracle").baseline == 0


@pytest.mark.parametrize(
    ("about", "marks"),
    [
        *(({status: 1}, " §") for status in ("failed", "fallback", "not_converged")),
        ({"skipped": 1, "sees_truth": True, "pretrained": True}, " °†"),
    ],
)
def test_traits_and_irregular_fits_mark_a_model(about, marks):
    assert entry_with("a", {1: 9}, {"log_loss": [0.3]}, **about).marks == marks


def test_a_hundred_reviews_are_enough_to_be_compared():
    runs = [entry_with("a", {1: size}, {"log_loss": [0.3]}) for size in (99, 100)]
    assert [bool(compare([run]).too_few) for run in runs] == [True, False]
