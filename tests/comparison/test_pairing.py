"""Runs are read, named, and compared on identical reviews only; identical ones count once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from srs_eval.comparison.identical import find_duplicates
from srs_eval.comparison.inputs import read_runs
from srs_eval.results.run import Run, load_run, with_own_names


@pytest.mark.parametrize("other", [{}, {"users": [2, 1, *range(3, 13)]}, {"failed": [2]}])
def test_only_runs_of_the_same_reviews_in_the_same_order_share_them_in_memory(make_run, other):
    first, second = make_run("a"), make_run("b", **other)
    alone = load_run(second)
    [one, shared], _ = read_runs([first, second])
    assert (shared.rows is one.rows) == (not other)
    assert [*shared.rows.items()] == [*alone.rows.items()]
    assert shared.reviews == alone.reviews


def test_runs_carry_their_protocol_or_folder_where_their_names_do_not_tell(make_run):
    plain = load_run(make_run("a", folder="first"))
    refit = load_run(make_run("b", protocol="srs_benchmark_refit50"))
    again = load_run(make_run("a", folder="second"))
    published = replace(plain, name="c", summary={})
    for runs, names in (
        ([plain, refit, published], ["a", "b (srs_benchmark_refit50)", "c"]),
        ([plain, published], ["a", "c"]),
        ([plain, again], ["a (first)", "a (second)"]),
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


def test_equal_scores_of_other_predictions_are_not_identical(make_run):
    first, second, moved = (
        load_run(make_run(name, shift=shift))
        for name, shift in (("aa", 0), ("bb", 0), ("cc", 1e-9))
    )
    users = list(first.rows)
    assert [one.twin.name for one in find_duplicates([first, second], users)] == ["aa"]
    forged = replace(moved, scores={name: first.scores[name] for name in moved.scores})
    assert find_duplicates([first, forged], users) == []
    later = replace(second, summary={**second.summary, "when": "at_review"})
    assert find_duplicates([first, later], users) == []


LOSSES, AREAS, NOWHERE = [0.1, 0.2, 0.3], [0.7, np.nan, 0.6], [np.nan] * 3


@pytest.mark.parametrize(
    ("scores", "other", "is_twin"),
    [
        ({"log_loss": LOSSES, "auc": AREAS}, {}, True),
        ({"log_loss": LOSSES, "auc": AREAS, "mbe": NOWHERE}, {}, True),
        ({"log_loss": LOSSES}, {}, False),
        ({"log_loss": LOSSES, "mbe": NOWHERE}, {}, False),
        ({"log_loss": LOSSES, "auc": AREAS}, {"auc": [0.7, np.nan, 0.61]}, False),
        ({"log_loss": LOSSES, "auc": AREAS}, {"auc": [0.71, np.nan, 0.6]}, False),
    ],
)
def test_published_scores_are_identical_only_in_several_metrics(tmp_path, scores, other, is_twin):
    first, second = (
        Run(name, tmp_path, dict.fromkeys(range(3), ""), dict.fromkeys(range(3), 9), columns)
        for name, columns in (
            ("a", {metric: np.array(values) for metric, values in scores.items()}),
            ("b", {metric: np.array(values) for metric, values in {**scores, **other}.items()}),
        )
    )
    found = find_duplicates([first, second], range(3))
    assert [(one.run.name, one.by_predictions) for one in found] == [("b", False)] * is_twin
