"""What is said of scores that could mislead, and from which on."""

import math

import pytest
from saved import entry_with

from srs_eval.comparison.answer import warnings
from srs_eval.comparison.standings import mean_of
from srs_eval.metrics.means import MetricSummary

NAN = math.nan


def model(scores, reviews=200, **facts):
    users = range(len(next(iter(scores.values()))))
    return entry_with("ours", dict.fromkeys(users, reviews), scores, **{"forgotten": 40, **facts})


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
    text = "\n".join(warnings(model(scores), range(len(next(iter(scores.values()))))))
    assert all(part in text for part in said)
    assert bool(text) == bool(said)


@pytest.mark.parametrize(
    ("about", "is_said"),
    [
        ({"sees_truth": True}, False),
        ({"forgotten": 9}, False),
        ({"forgotten": 10}, True),
        ({"forgotten": 0}, True),  # not known
        ({"reviews": 99}, False),
        ({"reviews": 100}, True),
    ],
)
def test_a_model_that_reads_the_outcome_is_asked_whether_it_does(about, is_said):
    assert bool([*warnings(model({"auc": [1.0]}, **about), [0])]) == is_said


def test_of_a_single_user_the_interval_of_the_run_counts_if_it_is_of_these_reviews():
    metrics = {"normalized_entropy": MetricSummary(1.2, NAN, NAN, 1.1, 1.3, 1, NAN)}
    for value, lo in ((1.2, 1.1), (1.25, NAN)):
        found = mean_of(model({"normalized_entropy": [value]}, metrics=metrics), *metrics, [0])
        assert found.lo == pytest.approx(lo, nan_ok=True)
