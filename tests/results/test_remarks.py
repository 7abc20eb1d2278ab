"""What is said of scores that could mislead, and from which score on."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.score import score
from srs_eval.metrics.summary import MetricSummary
from srs_eval.results.remarks import at_retention, mean_of, sentences, too_few, warnings
from srs_eval.results.remarks import those_worse_than_a_constant as worse_runs
from srs_eval.results.remarks import worse_than_a_constant as worse
from srs_eval.results.run import Run
from srs_eval.results.summary import Summary

NAN = math.nan
COST = 52 * math.log(2) / 200  # of one certain and wrong prediction of 200


def run_with(name="ours", reviews=200, **scores):
    users = range(len(next(iter(scores.values()))))
    return Run(
        name=name,
        place=Path("nowhere"),
        rows=dict.fromkeys(users, "digest"),
        reviews=dict.fromkeys(users, reviews),
        scores={key: np.array(values, np.float64) for key, values in scores.items()},
        facts=Summary(forgotten=40),
    )


def scored(name, *users):
    """Score predictions and outcomes of each user with the default panel."""
    found = [score(p, recalled, resamples=0) for p, recalled in users]
    columns = {metric: [row[metric] for row in found] for metric in default_panel().names}
    reviews = dict(enumerate(len(recalled) for _, recalled in users))
    return replace(run_with(name, **columns), reviews=reviews)


def one_certain(p, *, wrong, reviews):
    """Return predictions: `p`, and certainty where the last ones are forgotten."""
    recalled = np.arange(reviews) % 10 > 0
    recalled[-wrong:] = False
    predicted = np.full(reviews, p)
    predicted[-wrong:] = 1 - 1e-17
    return predicted, recalled


def against_a_constant(ratios, name="ours"):
    """Return all that is said of a run with these ratios to a constant's log loss."""
    run = run_with(name, normalized_entropy=ratios)
    users = range(len(ratios))
    said = [*sentences(run), worse(run, users)]
    return [*said, *worse_runs([run], users)]


def biased(*biases, at="0_9", users=None):
    run = run_with(**{f"threshold_bias_at_{at}": biases, "threshold_bias_at_0_7": [0.5] * 4})
    return at_retention(run, range(len(biases)) if users is None else users)


RECALLED = np.arange(200) % 5 > 0
CHEAT = scored("cheat", (np.where(RECALLED, 0.97, 0.5), RECALLED))
CERTAIN = scored(
    "avg", one_certain(0.9, wrong=1, reviews=100), one_certain(0.8, wrong=2, reviews=300)
)
METRIC = MetricSummary(1.2, NAN, NAN, 1.1, 1.3, 1, NAN)
OF_ONE = replace(
    run_with(reviews=300, normalized_entropy=[1.2]),
    facts=Summary(metrics={"normalized_entropy": METRIC}),
)
SEVERAL = [
    run_with(name, normalized_entropy=ratios)
    for name, ratios in [("good", [0.9, 0.9]), ("bad", [1.5, 0.7]), ("worse", [2.0, 3.34])]
]
SAID = {
    "certain and wrong, of two users": lambda: warnings(CERTAIN),
    "certain and wrong, of one of them": lambda: warnings(CERTAIN, [0]),
    "reads the outcome": lambda: warnings(CHEAT),
    "better than a constant": lambda: against_a_constant([0.90, 0.91, 0.92, 0.91]),
    "worse, by less than a percent": lambda: against_a_constant([1.004, 1.004, 1.004, 1.0041]),
    "worse, not significantly": lambda: against_a_constant([0.5, 2.0, 0.6, 2.1]),
    "worse, of some users": lambda: against_a_constant([1.5, NAN, 1.7]),
    "worse, of one of two users": lambda: against_a_constant([1.5, NAN]),
    "worse, of one user": lambda: against_a_constant([1.3]),
    "worse, of one user with an interval": lambda: sentences(OF_ONE),
    "equal": lambda: against_a_constant([1.0, 1.0]),
    "several runs": lambda: worse_runs(SEVERAL, [0, 1]),
    "one user of several runs": lambda: worse_runs(SEVERAL, [1]),
    "no ratio": lambda: worse_runs([run_with(brier=[0.1, 0.1])], [0, 1]),
    "calibration": lambda: sentences(run_with(smece=[0.03, 0.05], smece_floor=[0.01, 0.02])),
    "bias of some users": lambda: biased(0.014, 0.02, NAN, 0.017),
    "bias of users that all have one": lambda: biased(0.014, 0.02, NAN, 0.017, users=[0, 1]),
    "bias of one user": lambda: biased(0.014, 0.02, NAN, 0.017, users=[0]),
    "bias to less": lambda: biased(-0.1, -0.1001, -0.1, -0.1),
    "bias to either side": lambda: biased(-0.1, 0.1, 0.2, -0.3),
    "bias that is not defined": lambda: biased(NAN, NAN, NAN, NAN, at="0_95"),
    "no bias": lambda: at_retention(run_with(log_loss=[0.3, 0.3]), range(2)),
    "bias at no retention": lambda: at_retention(
        run_with(threshold_bias_at_noon=[0.3, 0.3]), range(2)
    ),
}


def test_what_is_said(golden_text):
    lines = [line for name, said in SAID.items() for line in (f"{name}:", *said(), "")]
    golden_text("remarks", "\n".join(lines))


@pytest.mark.parametrize(
    ("is_said", "scores"),
    [
        (True, {"log_loss": [COST / 0.101] * 2, "log_loss_certain_wrong": [1, 1]}),
        (False, {"log_loss": [COST / 0.099] * 2, "log_loss_certain_wrong": [1, 1]}),
        (False, {"log_loss": [0.0, 0.0], "log_loss_certain_wrong": [0, 0]}),
        (False, {"log_loss": [9.0, 9.0]}),
        (False, {"log_loss": [9.0, NAN], "log_loss_certain_wrong": [NAN, 3]}),
        (True, {"auc": [0.99, 0.99]}),
        (False, {"auc": [1.0, 0.97]}),
        (True, {"normalized_entropy": [0.05, 0.15]}),
        (False, {"normalized_entropy": [0.05, 0.16]}),
        (False, {"auc": [NAN, NAN]}),
    ],
)
def test_from_which_score_on_it_is_said(is_said, scores):
    assert bool(warnings(run_with(**scores))) == is_said


def test_a_model_that_reads_the_outcome_is_asked_whether_it_does():
    assert warnings(replace(CHEAT, facts=replace(CHEAT.facts, sees_truth=True))) == []
    for forgotten, is_said in ((9, False), (10, True), (0, True)):
        assert bool(warnings(replace(CHEAT, facts=Summary(forgotten=forgotten)))) == is_said
    for reviews, is_said in ((99, False), (100, True)):
        assert bool(warnings(replace(CHEAT, reviews={0: reviews}))) == is_said


def test_scores_of_a_handful_of_reviews_come_with_a_warning():
    counts = [(100, 10), (100, 90), (99, 50), (500, 9), (500, 491)]
    assert [too_few(*each) == [] for each in counts] == [True, True, False, False, False]


def test_of_a_single_user_the_interval_of_the_run_counts_if_it_is_of_these_reviews():
    assert mean_of(OF_ONE, "normalized_entropy", [0]).lo == 1.1
    restricted = replace(OF_ONE, scores={"normalized_entropy": np.array([1.25])})
    assert math.isnan(mean_of(restricted, "normalized_entropy", [0]).lo)
