"""What must hold for any predictions and outcomes, for every metric that follows from a sketch."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pairs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_functions import (
    auc,
    brier,
    brier_skill,
    ece,
    log_loss,
    mbe,
    normalized_entropy,
    rmse_bins_by_p,
    smece_exact,
)
from pairs import columns, probabilities, reviews

from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.proper import BrierSkill, LogLoss, NormalizedEntropy, NormalizedEntropyTrain
from srs_eval.metrics.sketch import SketchMetric
from srs_eval.nouns.predictions import concatenate

# All there is, at one threshold: the others are the same code.
WHOLE = full_panel(thresholds=[0.9])
PANEL = Panel([metric for metric in WHOLE if isinstance(metric, SketchMetric)])
# What is another number when every review is there twice: counts, levels of chance, a test
# statistic, and those with a lattice or a window of a whole number of reviews.
DEPENDS_ON_N = {
    *("log_loss_clipped", "log_loss_certain_wrong", "smece_floor", "rmse_bins_floor"),
    *("rmse_bins_debiased", "spiegelhalter_z", "smece", "ici", "e50", "e90"),
}
# Solved by iteration rather than written down: equal to fewer digits.
ITERATED = {"calibration_slope": 1e-6, "calibration_intercept": 1e-6, "smece_exact": 1e-8}

facts = st.tuples(
    probabilities, st.booleans(), st.integers(0, 400), st.integers(1, 9), st.integers(0, 3)
)
histories = st.lists(facts, min_size=1, max_size=40)
of_eighths = st.tuples(st.integers(0, 8).map(lambda k: k / 8), facts).map(
    lambda drawn: (drawn[0], *drawn[1][1:])
)
histories_of_few_levels = st.lists(of_eighths, min_size=1, max_size=40)
quick = settings(max_examples=12, deadline=None)
few = settings(max_examples=4, deadline=None)  # of each metric: most of their code is shared
every_metric = pytest.mark.parametrize("metric", list(PANEL), ids=PANEL.names)


def predicted(histories, user="someone"):
    p, recalled, days, nth, lapses = map(np.array, zip(*histories, strict=True))
    return predictions_of(p, recalled, days, nth, lapses, user=user)


def predictions_of(p, recalled, days, nth, lapses, user="someone"):
    return pairs.predicted(
        p,
        recalled,
        users=(user,),
        elapsed_days=days.astype(float),
        nth_review=nth,
        lapses=lapses,
        train_rate=np.full(len(p), 0.85),
    )


def spread(n, seed, user="someone"):
    """Reviews whose predictions all differ by more than the cells they are counted in."""
    rng = np.random.default_rng(seed)
    p = (rng.choice(2**16, n, replace=False) + 0.37) / 2**16
    facts = rng.integers(0, 400, n), rng.integers(1, 20, n), rng.integers(0, 4, n)
    return predictions_of(p, rng.random(n) < p, *facts, user=user)


def same(one, other, tolerance=1e-9):
    return one == pytest.approx(other, abs=tolerance, rel=max(tolerance, 1e-9), nan_ok=True)


@every_metric
@few
@given(histories, st.randoms())
def test_neither_order_nor_having_every_review_twice_matters(metric, histories, random):
    tolerance = ITERATED.get(metric.name, 1e-9)
    once = metric(predicted(histories))
    assert same(once, metric(predicted(random.sample(histories, len(histories)))), tolerance)
    if metric.name not in DEPENDS_ON_N:
        assert same(once, metric(predicted(histories * 2)), tolerance)


@every_metric
@few
@given(histories, st.randoms())
def test_any_list_has_a_number_within_the_bounds_or_none(metric, histories, random):
    everything = predicted(histories)
    one = random.randrange(len(histories))
    lists = [everything, predicted(histories[one : one + 1])]
    lists += [replace(everything, recalled=np.full(len(everything), o)) for o in (True, False)]
    lists += [replace(everything, p=np.full(len(everything), p)) for p in (0.0, 1.0, 0.9)]
    lists += [replace(everything, p=everything.p.astype(np.float32))]
    lowest, highest = metric.bounds
    for predictions in lists:
        value = metric(predictions)
        assert isinstance(value, float)
        assert not math.isinf(value)
        assert math.isnan(value) or lowest - 1e-12 <= value <= highest + 1e-12


@every_metric
@few
@given(histories)
def test_equal_numbers_in_single_precision_score_the_same(metric, histories):
    single = predicted(histories)
    single = replace(single, p=single.p.astype(np.float32))
    if metric.section == "threshold":  # a threshold is rounded as the predictions are
        near = np.isin(single.p, [np.float32(0.9), np.float32(0.88), np.float32(0.92)])
        single = replace(single, p=np.where(near, np.float32(0.75), single.p))
    double = replace(single, p=single.p.astype(np.float64))
    tolerance = max(1e-7 if metric.section == "threshold" else 0, ITERATED.get(metric.name, 1e-9))
    assert same(metric(single), metric(double), tolerance)


@few
@given(st.lists(histories_of_few_levels, min_size=1, max_size=4))
def test_users_of_few_levels_pool_to_the_panel_of_all_rows(users):
    each = [predicted(histories, user=str(k)) for k, histories in enumerate(users)]
    pooled = pool(PANEL, lambda: each).scores
    whole = PANEL.score(concatenate(each))
    for name in PANEL.names:
        tolerance = max(ITERATED.get(name, 0), 1e-12)
        assert pooled[name] == pytest.approx(whole[name], abs=tolerance, rel=tolerance, nan_ok=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_users_of_spread_predictions_pool_to_the_panel_of_all_rows(dtype):
    each = [spread(700, seed, user=str(seed)) for seed in range(4)]
    each = [replace(user, p=user.p.astype(dtype)) for user in each]
    pooled = pool(PANEL, lambda: each).scores
    whole = PANEL.score(concatenate(each))
    assert not any(math.isnan(score) for score in whole.values())
    for name in PANEL.names:
        assert pooled[name] == pytest.approx(whole[name], abs=1e-6, rel=1e-6)


@quick
@given(reviews)
def test_seeing_recalls_as_lapses_changes_no_score_and_no_error_is_below_the_bias(pairs):
    p, recalled = columns(pairs)
    p = p.round(3)
    for metric in (log_loss, brier, normalized_entropy, brier_skill, smece_exact, auc):
        turned = (1 - p).round(3), ~recalled
        assert same(metric(p, recalled), metric(*turned), 1e-8)
    for metric in (smece_exact, ece, rmse_bins_by_p):
        assert metric(p, recalled) >= abs(mbe(p, recalled)) - 1e-9


@quick
@given(st.lists(st.integers(1, 19), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_proper_scores_of_a_panel_are_best_for_the_truth(truths, seed):
    """Of 20 reviews with a chance of k / 20, k are recalled."""
    p = np.repeat(np.array(truths) / 20, 20)
    recalled = np.tile(np.arange(20), len(truths)) < np.repeat(truths, 20)
    ones = np.ones(len(p), np.int64)
    honest = predictions_of(p, recalled, ones, ones, ones)
    beliefs = np.repeat(np.random.default_rng(seed).uniform(0.01, 0.99, len(truths)), 20)
    other = replace(honest, p=beliefs)
    for metric in PANEL:
        if isinstance(metric, LogLoss | NormalizedEntropy | NormalizedEntropyTrain):
            assert metric(honest) <= metric(other) + 1e-12
        elif isinstance(metric, BrierSkill) or metric.name == "corp_discrimination_log":
            assert metric(honest) >= metric(other) - 1e-12
        elif metric.name in {"brier", "corp_miscalibration_log", "corp_miscalibration_brier"}:
            assert metric(honest) <= metric(other) + 1e-12
