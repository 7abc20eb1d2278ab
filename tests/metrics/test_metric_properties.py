"""What must hold for any predictions and outcomes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from srs_eval.metrics.bins import rmse_bins_by_p
from srs_eval.metrics.calibration import ece, mbe
from srs_eval.metrics.discrimination import auc
from srs_eval.metrics.ici import ici
from srs_eval.metrics.proper import brier, brier_skill, log_loss, normalized_entropy
from srs_eval.metrics.smece import smece, smece_exact
from srs_eval.metrics.threshold import STATISTICS, confusion_counts

METRICS = (
    log_loss,
    normalized_entropy,
    brier,
    brier_skill,
    smece,
    smece_exact,
    ece,
    mbe,
    auc,
    rmse_bins_by_p,
    ici,
)
IN_UNIT = (brier, smece, smece_exact, ece, auc, rmse_bins_by_p)

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.9]), st.integers(0, 20).map(lambda k: k / 20)
)
reviews = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=40)
quick = settings(max_examples=40, deadline=None)


def columns(pairs):
    p, recalled = zip(*pairs, strict=True)
    return np.array(p), np.array(recalled)


def same(one, other, tolerance=1e-9):
    return one == pytest.approx(other, abs=tolerance, rel=1e-9, nan_ok=True)


@quick
@given(reviews, st.randoms())
def test_order_does_not_matter(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    for metric in METRICS:
        assert same(metric(*columns(pairs)), metric(*columns(shuffled)))


@quick
@given(reviews)
def test_having_everything_twice_changes_nothing(pairs):
    # The window of a local regression is a whole number of reviews, so it may change.
    for metric in set(METRICS) - {ici}:
        # The number others print has a floor that shrinks with the number of reviews.
        tolerance = 2e-3 if metric is smece else 1e-9
        assert same(metric(*columns(pairs)), metric(*columns(pairs * 2)), tolerance)


@quick
@given(reviews)
def test_numbers_stay_in_their_range(pairs):
    p, recalled = columns(pairs)
    for metric in IN_UNIT:
        value = metric(p, recalled)
        assert math.isnan(value) or -1e-12 <= value <= 1 + 1e-12
    assert 0 <= log_loss(p, recalled) < 36.05
    assert -1 <= mbe(p, recalled) <= 1
    for metric in METRICS:
        assert not math.isinf(metric(p, recalled))


@quick
@given(reviews)
def test_no_calibration_error_is_below_the_bias(pairs):
    p, recalled = columns(pairs)
    bias = abs(mbe(p, recalled))
    for metric in (smece_exact, ece, rmse_bins_by_p):
        assert metric(p, recalled) >= bias - 1e-9


@quick
@given(reviews)
def test_reversing_predictions_reverses_discrimination(pairs):
    p, recalled = columns(pairs)
    p = p.round(6)
    reversed_auc = auc((1 - p).round(6), recalled)
    assert same(auc(p, recalled) + reversed_auc, 1.0 if 0 < recalled.mean() < 1 else math.nan)


@quick
@given(reviews)
def test_swapping_outcomes_with_their_predictions_changes_no_proper_score(pairs):
    p, recalled = columns(pairs)
    p = p.round(3)
    for metric in (log_loss, brier, normalized_entropy, brier_skill):
        assert same(metric(p, recalled), metric(1 - p, ~recalled))


@quick
@given(st.floats(0.01, 0.99), st.floats(0, 1))
def test_the_truth_has_the_best_expected_score(truth, belief):
    outcomes = (np.array([True]), np.array([False]))
    for metric in (log_loss, brier):
        honest, other = (
            truth * metric([p], outcomes[0]) + (1 - truth) * metric([p], outcomes[1])
            for p in (truth, belief)
        )
        assert honest <= other + 1e-12


@quick
@given(reviews)
def test_the_precision_of_the_container_does_not_matter(pairs):
    p, recalled = columns(pairs)
    single = p.astype(np.float32)
    for metric in METRICS:
        # Equal numbers in another precision: the same result, to the last digits.
        assert same(metric(single, recalled), metric(single.astype(np.float64), recalled))


@quick
@given(reviews, st.sampled_from([0.7, 0.8, 0.9, 0.95]))
def test_confusion_counts_everything_once(pairs, threshold):
    p, recalled = columns(pairs)
    counts = confusion_counts(p, recalled, threshold)
    assert counts.true_positive + counts.false_negative == recalled.sum()
    assert counts.false_positive + counts.true_negative == (~recalled).sum()
    for statistic in STATISTICS:
        rate = counts.rate(statistic)
        assert math.isnan(rate) or 0 <= rate <= 1


@quick
@given(reviews)
def test_the_base_rate_is_the_yardstick_of_the_skill_scores(pairs):
    _, recalled = columns(pairs)
    assume(0 < recalled.mean() < 1)
    p = np.full(len(recalled), recalled.mean())
    assert normalized_entropy(p, recalled) == pytest.approx(1)
    assert brier_skill(p, recalled) == pytest.approx(0, abs=1e-12)
    assert smece_exact(p, recalled) == pytest.approx(0, abs=1e-9)
