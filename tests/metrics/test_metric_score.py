"""Scores of predictions in any container, what cannot be scored, and panels of metrics."""

import json
import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from metric_functions import one_user, predicted

from srs_eval.errors import ConfigError, ScoreError
from srs_eval.metrics.bootstrap import PooledSums, cluster_intervals
from srs_eval.metrics.means import user_weights
from srs_eval.metrics.metric import metric
from srs_eval.metrics.panel import Panel, bias_at_retention, default_panel, full_panel
from srs_eval.metrics.predictions import select
from srs_eval.metrics.score import PanelResult, score
from srs_eval.metrics.scores import brier
from srs_eval.metrics.tally import Tally
from srs_eval.runs.config import named_option

P = [0.9, 0.8, 0.3, 0.6]
RECALLED = [1, 1, 0, 0]
BRIER = Panel([brier])
CONTAINERS = {
    "tuple": (tuple, list),
    "pandas": (lambda p: pd.Series(p, index=[9, 8, 7, 6]), pd.Series),
    "pandas with NA": (lambda p: pd.Series(p, dtype="Float64"), lambda y: pd.array(y, "Int64")),
    "polars": (polars.Series, lambda y: polars.Series(y, dtype=polars.Boolean, strict=False)),
    "objects": (lambda p: np.array(p, object), lambda y: np.array(y, float)),
    "tensors": (lambda p: torch.tensor(np.array(p, float)), torch.tensor),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_numbers_and_may_miss_some(container):
    of_p, of_recalled = CONTAINERS[container]
    expected = score(np.array(P), np.array(RECALLED, bool))
    assert dict(score(of_p(P), of_recalled(RECALLED))) == pytest.approx(expected, nan_ok=True)
    missed = of_p([0.9, None, 0.3, 0.6]), of_recalled(RECALLED)
    with pytest.raises(ScoreError, match="p is NaN at position 1"):
        score(*missed)
    rest = {"nth_review": [2, 2, None, 2], "user": ["a", "b", "a", "b"], "nan_policy": "omit"}
    omitted = score(*missed, elapsed_days=[1, 2, 3, 4], lapses=[0] * 4, **rest)
    assert (omitted["n"], omitted["n_dropped"]) == (2, 2)
    assert omitted["brier"] == pytest.approx((0.1**2 + 0.6**2) / 2)
    assert score(P, RECALLED, user=["a", None, "b", "b"], nan_policy="omit")["n_dropped"] == 1


def masked(values):
    return np.ma.array(values, mask=[False, True, False, False])


DAYS = np.array([1, 2, 3, 4], "m8[D]")
FACTS = {"elapsed_days": [1, 2, 3, 9], "nth_review": [2] * 4, "lapses": [0] * 4}
# Arguments of `score`, and words of the error.
REFUSED = (
    ({name: [] for name in ("p", "recalled", *FACTS)}, "no reviews"),
    ({"p": [math.nan, 1.5, -0.5, 1]}, r"p is NaN at position 0\n.* at position 1 and 1 more: 1.5"),
    ({"p": masked(P)}, "p is NaN at position 1"),
    ({"p": torch.tensor(P, requires_grad=True)}, "p cannot be read as numbers.*grad"),
    ({"recalled": [1, 0, 7, 1]}, "recalled is neither 0 nor 1 at position 2: 7"),
    ({"recalled": [1, 1]}, r"recalled has shape \(2,\)"),
    ({"p": 0.5, "recalled": 1}, "one dimension"),
    ({"p": DAYS}, "p cannot be read as numbers: it is timedelta64"),
    ({"elapsed_days": [1, math.inf, 1, 1]}, "elapsed_days must be less than 1e.09"),
    ({"elapsed_days": [1, -1, 1, 1]}, "elapsed_days must be at least 0 everywhere, found -1"),
    ({"nth_review": [1, 0, 1, 1]}, "nth_review must be at least 1"),
    ({"lapses": [1, 1_000_000_000, 1, 1]}, "lapses must be less than 1e.09"),
    ({"level": 2, "resamples": -1}, "resamples is -1.* level is 2"),
    ({"user": ["a", None, "b", "b"]}, "user has missing values"),
    ({"day": masked([1, 2, 3, 3])}, "day has missing values"),
    ({"card": pd.Series(["a", None, "b", "b"], dtype="category")}, "card has missing values"),
)


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_cannot_be_scored_is_refused_with_its_column_position_and_value(options, words):
    with pytest.raises(ScoreError, match=f"(?s){words}"):
        score(**{"p": P, "recalled": RECALLED, **FACTS, **options})


def test_predictions_that_are_pooled_or_have_curves_of_other_reviews_are_checked():
    outside = replace(predicted([0.5], [True]), p=np.array([1.5]))
    with pytest.raises(ScoreError, match="p is outside"):
        PooledSums(default_panel(), [outside])
    whole = one_user(n=600, curves=20)
    for strays, stranger in ((1, 600), (20, 600), (1, -1)):
        row = np.where(np.arange(20) < strays, stranger, whole.curves.row)
        predictions = replace(whole, curves=replace(whole.curves, row=row))
        with pytest.raises(ScoreError, match=rf"curve 0 \(and {strays - 1} more\)"):
            cluster_intervals(default_panel(), predictions, resamples=2)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Panel([]), "no metric"),
        (lambda: Panel([brier, brier]), "'brier' is there twice"),
        (lambda: Panel({"RMSE(bins)": brier}), "RMSE.bins.* characters"),
        (lambda: Panel({"brier": 0.1}), "brier: 0.1 is not a function"),
        (lambda: Panel({"brier": partial(brier, bins=3)}), "brier.* 'bins'"),
        (lambda: Panel([brier], thresholds=[90]), r"threshold 90 is not in \[0, 1\]"),
        (lambda: metric("up"), "'up', expected one of lower, higher"),
        (lambda: user_weights([1, 2], "log"), "'log' is not one of users, reviews"),
    ],
)
def test_options_that_make_no_metric_are_refused(build, words):
    with pytest.raises(ConfigError, match=words):
        build()


@pytest.fixture(scope="module")
def of_users():
    """Predictions for 400 reviews by 40 users, who differ much among each other."""
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(40), 10)
    logit = 1.5 + rng.normal(0, 1.5, 40)[user] + rng.normal(0, 0.5, 400)
    p = 1 / (1 + np.exp(-logit))
    return p, rng.random(400) < p, user


def test_cards_and_days_are_resampled_where_there_is_one_user(of_users):
    p, recalled, _ = of_users
    labels = {"card": np.arange(400) // 2, "day": np.arange(400) // 20}
    by_both = score(p, recalled, **labels, panel=BRIER)
    alone = score(p, recalled, user=["someone"] * 400, **labels, panel=BRIER)
    assert (alone.interval_over, alone.intervals) == ("cards and days", by_both.intervals)
    widths = [
        np.ptp(score(p, recalled, **{name: of}, panel=BRIER).intervals["brier"])
        for name, of in labels.items()
    ]
    assert np.ptp(by_both.intervals["brier"]) == pytest.approx(np.hypot(*widths))
    for options in ({"user": [1] * 400}, {**labels, "resamples": 0}):
        nothing = score(p, recalled, **options, panel=BRIER)
        assert (nothing.intervals, nothing.interval_over) == ({}, "")


def test_scores_are_a_dictionary_a_frame_and_a_table_of_what_a_run_prints(of_users):
    p, recalled, user = of_users
    result = score(p, recalled, user=[f"user {number}" for number in user], resamples=20)
    assert tuple(result) == ("n", "n_dropped", *default_panel().names)
    np.testing.assert_equal(json.loads(json.dumps(result)), dict(result))
    again = pickle.loads(pickle.dumps(result))
    assert (type(again), repr(again)) == (PanelResult, str(result))
    auc, (lo, hi) = result["auc"], result.intervals["auc"]
    frame = result.to_frame()
    assert list(frame.index) == list(result)
    assert tuple(frame.loc["auc", ["score", "lo", "hi", "better"]]) == (auc, lo, hi, "higher")
    (row,) = [row.split() for row in str(result).splitlines() if row.startswith("auc ")]
    assert f"\n{len(frame) - 2 - len(result.shown)} more" in str(result)
    assert row[1:5] == [f"{auc:.4f}", f"{lo:.4f}", "…", f"{hi:.4f}"]


def test_options_are_the_panels_of_the_library_and_can_be_changed():
    predictions = one_user()
    for option, panel in (("default", default_panel()), ("full", full_panel())):
        assert named_option("panel", option, {}).score(predictions) == panel.score(predictions)
        assert set(default_panel().names) <= set(panel.names)
    assert bias_at_retention(default_panel().names) == ("threshold_bias_at_0_9", 0.9)
    ece = {"_target_": "srs_eval.metrics.scores.ece", "_partial_": True, "bins": 5}
    changed = {"thresholds": [0.85], "metrics": {"ece_5": ece}}
    scores = named_option("panel", "default", changed).score(predictions)
    assert "confusion_tpr_at_0_85" in scores
    assert "confusion_tpr_at_0_9" not in scores
    assert scores["ece_5"] != scores["ece"]
    for each in (named_option("panel", "quick", {}), full_panel()):
        assert np.isfinite([*each.score(predictions).values()]).all()


@metric("higher", bounds=(0, 0.5))
def sharpness(tally: Tally) -> float:
    """A metric of a tally, which is declared."""
    mean = tally.p @ tally.count / tally.n
    return math.sqrt((tally.p - mean) ** 2 @ tally.count / tally.n)


def largest(predictions):
    """A metric as a plug-in would write it, without any of ours, which sorts what it is given."""
    predictions.p.sort()
    return predictions.p[-1]


def test_metrics_are_functions_of_a_tally_or_of_predictions_which_they_cannot_change_for_others():
    predictions = one_user()
    metrics = {"width": sharpness, "largest": largest, "first": lambda each: each.p[0]}
    panel = Panel({**metrics, "infinite": lambda _: math.inf}, [0.9])
    assert len(panel.names) == 13
    assert [(m.better, m.bounds, m.of_tally) for m in panel][:2] == [
        ("higher", (0, 0.5), True),
        ("neither", (-math.inf, math.inf), False),
    ]
    p = predictions.p.copy()
    scores = panel.score(predictions)
    assert scores["width"] == pytest.approx(p.std())
    assert (scores["largest"], scores["first"]) == (p.max(), p[0])
    assert math.isnan(scores["infinite"])
    assert np.isfinite(cluster_intervals(panel, predictions)["width"]).all()
    with pytest.raises(ValueError, match="read-only"):
        Tally.of(predictions).p.sort()
    assert predictions.p.tolist() == p.tolist()
    empty = select(replace(predictions, curves=None), slice(0, 0))
    assert all(math.isnan(value) for value in default_panel().score(empty).values())
