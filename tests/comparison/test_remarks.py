"""What is said of scores that could mislead, and from which on."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.remarks import warnings
from srs_eval.comparison.standings import mean_of
from srs_eval.metrics.means import MetricSummary
from srs_eval.runs.summary import Summary

NAN = math.nan


def entry_with(name="ours", reviews=200, **scores):
    users = range(len(next(iter(scores.values()))))
    return Entry(
        name=name,
        place=Path("nowhere"),
        rows=dict.fromkeys(users, "digest"),
        reviews=dict.fromkeys(users, reviews),
        scores={key: np.array(values, np.float64) for key, values in scores.items()},
        facts=Summary(name, forgotten=40),
    )


CHEAT = entry_with("cheat", auc=[1.0])


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"auc": [0.98], "normalized_entropy": [0.11]}, []),
        ({"auc": [0.99], "normalized_entropy": [0.11]}, ["auc 0.9900, too good"]),
        ({"auc": [0.9], "normalized_entropy": [0.1]}, ["normalized_entropy 0.1000, too good"]),
        ({"log_loss": [0.3, NAN], "log_loss_certain_wrong": [0, NAN]}, []),
        ({"log_loss": [3.0, 3.0], "log_loss_certain_wrong": [1, 1]}, []),
        ({"log_loss": [1.0, 1.0], "log_loss_certain_wrong": [1, 1]}, ["2 certain", "18 % of its"]),
    ],
)
def test_scores_are_not_what_they_seem_from_a_limit_on(scores, said):
    entry = entry_with(**scores)
    text = "\n".join(warnings(entry, [*entry.rows]))
    assert all(part in text for part in said)
    assert bool(text) == bool(said)


def test_a_model_that_reads_the_outcome_is_asked_whether_it_does():
    assert warnings(replace(CHEAT, facts=replace(CHEAT.facts, sees_truth=True)), [0]) == []
    for forgotten, is_said in ((9, False), (10, True), (0, True)):
        facts = Summary("cheat", forgotten=forgotten)
        assert bool(warnings(replace(CHEAT, facts=facts), [0])) == is_said
    for reviews, is_said in ((99, False), (100, True)):
        assert bool(warnings(replace(CHEAT, reviews={0: reviews}), [0])) == is_said


def test_of_a_single_user_the_interval_of_the_run_counts_if_it_is_of_these_reviews():
    metrics = {"normalized_entropy": MetricSummary(1.2, NAN, NAN, 1.1, 1.3, 1, NAN)}
    for value, lo in ((1.2, 1.1), (1.25, NAN)):
        entry = entry_with(normalized_entropy=[value])
        found = mean_of(replace(entry, facts=Summary("ours", metrics=metrics)), *metrics, [0])
        assert found.lo == pytest.approx(lo, nan_ok=True)
