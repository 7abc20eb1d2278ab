"""What is said of scores that could mislead, and from which score on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.score import score
from srs_eval.results.remarks import (
    at_retention,
    mean_of,
    sentences,
    those_worse_than_a_constant,
    warnings,
    worse_than_a_constant,
)
from srs_eval.results.run import Run


def run_with(name="ours", reviews=(200, 200), **scores):
    users = range(len(reviews))
    return Run(
        name=name,
        place=Path("nowhere"),
        rows=dict.fromkeys(users, "digest"),
        reviews=dict(zip(users, reviews, strict=True)),
        scores={key: np.array(values, np.float64) for key, values in scores.items()},
        summary={"forgotten": 40},
    )


def scored(name, *users):
    """Score predictions and outcomes of each user with the default panel."""
    found = [score(p, recalled, resamples=0) for p, recalled in users]
    columns = {metric: [row[metric] for row in found] for metric in default_panel().names}
    return run_with(name, [len(recalled) for _, recalled in users], **columns)


def one_certain(p, *, wrong=1, reviews=100):
    """Return predictions: `p`, and certainty where the last ones are forgotten."""
    recalled = np.arange(reviews) % 10 > 0
    recalled[-wrong:] = False
    predicted = np.full(reviews, p)
    predicted[-wrong:] = 1 - 1e-17
    return predicted, recalled


def test_certain_and_wrong_predictions_are_counted_with_their_share_of_the_mean():
    users = [one_certain(0.9), one_certain(0.8, wrong=2, reviews=300)]
    run = scored("avg", *users)
    mean = sum(-np.log(np.where(r, p, np.maximum(1 - p, 2**-52))).mean() for p, r in users) / 2
    certain = (1 / 100 + 2 / 300) * 52 * math.log(2) / 2
    (said,) = warnings(run)
    assert said.startswith("avg: 3 certain predictions ")
    assert f"{100 * certain / mean:.0f} %" in said
    assert "36.04" in said
    assert warnings(run, [0]) != warnings(run, [1])
    assert warnings(run, [0])[0].startswith("avg: 1 ")


@pytest.mark.parametrize(("share", "said"), [(0.101, True), (0.099, False), (0.0, False)])
def test_they_are_named_from_a_tenth_of_the_loss_on(share, said):
    cost = 52 * math.log(2) / 200
    loss = cost / share if share else 0.0
    run = run_with(log_loss=[loss] * 2, log_loss_certain_wrong=[1.0 if share else 0.0] * 2)
    assert bool(warnings(run)) == said


def test_without_the_count_nothing_is_said_of_it():
    assert warnings(run_with(log_loss=[9.0, 9.0])) == []
    run = run_with(log_loss=[9.0, math.nan], log_loss_certain_wrong=[math.nan, 3.0])
    assert warnings(run) == []


def test_a_model_that_reads_the_outcome_is_asked_whether_it_does():
    recalled = np.arange(200) % 5 > 0
    cheat = scored("cheat", (np.where(recalled, 0.97, 0.5), recalled))
    (said,) = warnings(cheat)
    assert "auc 1.0000" in said
    assert "check_algorithm" in said
    assert warnings(replace(cheat, summary={**cheat.summary, "sees_truth": True})) == []
    assert warnings(replace(cheat, summary={"forgotten": 9})) == []
    assert warnings(replace(cheat, summary={})) == [said]
    assert warnings(scored("few", (np.where(recalled[:99], 0.97, 0.5), recalled[:99]))) == []


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"auc": [0.99, 0.99]}, True),
        ({"auc": [1.0, 0.97]}, False),
        ({"normalized_entropy": [0.05, 0.15]}, True),
        ({"normalized_entropy": [0.05, 0.16]}, False),
        ({"auc": [math.nan, math.nan]}, False),
    ],
)
def test_how_good_is_too_good(scores, said):
    assert bool(warnings(run_with(**scores))) == said


def test_runs_that_a_constant_beats_are_named_with_their_ratio():
    good, bad, worse = (
        run_with(name, normalized_entropy=ratios)
        for name, ratios in [
            ("good", [0.9, 0.9]),
            ("bad", [1.5, 0.7]),
            ("worse", [2.0, 3.34]),
        ]
    )
    (said,) = those_worse_than_a_constant([good, bad, worse], [0, 1])
    assert "good" not in said
    assert "bad (110 % of its log loss, not significantly)" in said
    assert "worse (267 % of its log loss, not significantly)" in said
    clauses = [worse_than_a_constant(run, [0, 1]) for run in (good, bad, worse)]
    assert [bool(clause) for clause in clauses] == [False, True, True]
    assert all("known only afterwards" in clause for clause in clauses[1:])
    assert all("not significantly" in clause for clause in clauses[1:])
    of_one = run_with("of_one", normalized_entropy=[1.5, math.nan])
    assert "not significantly" in worse_than_a_constant(of_one, [0, 1])
    (said,) = those_worse_than_a_constant([of_one], [0, 1])
    assert "of_one (150 % of its log loss, over 1 of 2 users" in said
    assert said.endswith("not significantly)")
    sure = run_with(normalized_entropy=[1.5, 1.500001])
    assert "significantly" not in worse_than_a_constant(sure, [0, 1])
    assert not worse_than_a_constant(bad, [1])
    assert those_worse_than_a_constant([good], [0, 1]) == []
    assert those_worse_than_a_constant([run_with(brier=[0.1, 0.1])], [0, 1]) == []


@pytest.mark.parametrize(
    ("ratios", "percent", "verdict"),
    [
        ([0.90, 0.91, 0.92, 0.91], "91 %", ": significantly better"),
        ([1.004, 1.004, 1.004, 1.0041], "100.4 %", ": significantly worse"),
        ([0.5, 2.0, 0.6, 2.1], "130 %", ": not significantly different"),
        ([1.3], "130 %", ""),
    ],
)
def test_a_run_is_set_against_the_share_of_recalls(ratios, percent, verdict):
    (said,) = sentences(run_with(reviews=[100] * len(ratios), normalized_entropy=ratios))
    assert f"has {percent} of the log loss" in said
    assert said.endswith(verdict or "afterwards")
    assert ("each user's" in said) == (len(ratios) > 1)


def test_users_without_the_ratio_are_counted():
    run = run_with(reviews=[100] * 3, normalized_entropy=[1.5, math.nan, 1.7])
    said = [*sentences(run), *those_worse_than_a_constant([run], range(3))]
    said.append(worse_than_a_constant(run, range(3)))
    assert all("over 2 of 3 users" in each for each in said)
    assert all("mean normalized_entropy" in each for each in said[1:])
    assert "mean" not in worse_than_a_constant(run, [0])


def test_of_a_single_user_the_interval_of_the_run_counts():
    run = run_with(reviews=[300], normalized_entropy=[1.2])
    known = {"normalized_entropy": {"mean_users": 1.2, "lo": 1.1, "hi": 1.3}}
    run = replace(run, summary={"metrics": known})
    assert sentences(run)[0].endswith("significantly worse")
    assert mean_of(run, "normalized_entropy", [0]).lo == 1.1
    restricted = replace(run, scores={"normalized_entropy": np.array([1.25])})
    assert math.isnan(mean_of(restricted, "normalized_entropy", [0]).lo)


def test_the_bias_at_the_retention_has_its_users():
    biases = [0.014, 0.02, math.nan, 0.017]
    run = run_with(reviews=[100] * 4, threshold_bias_at_0_9=biases, threshold_bias_at_0_7=[0.5] * 4)
    (said,) = at_retention(run, range(4))
    assert "88 to 92 %" in said
    assert "1.7 percentage points more than are recalled" in said
    assert "3 of 4 users; the others" in said
    assert "others" not in at_retention(run, [0, 1])[0]
    assert "less" in at_retention(run_with(threshold_bias_at_0_9=[-0.1, -0.2]), range(2))[0]
    (alone,) = at_retention(run, [0])
    assert "users" not in alone
    assert alone.endswith("without an interval")


def test_a_bias_that_is_not_defined_is_explained():
    (said,) = at_retention(run_with(threshold_bias_at_0_95=[math.nan] * 2), range(2))
    assert "predicts 93 to 97 % for no review" in said
    assert at_retention(run_with(log_loss=[0.3, 0.3]), range(2)) == []
    assert at_retention(run_with(threshold_bias_at_noon=[0.3, 0.3]), range(2)) == []
