"""What must hold for any predictions and outcomes, and forgetting curves, for every metric."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_functions import one_user, predicted

from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.predictions import Curves
from srs_eval.metrics.temporal import reviews_of_curves, sample_elapsed, temporal_rates

# All there is, at one threshold: the others are the same code.
PANEL = full_panel(thresholds=[0.9])
TEMPORAL = Panel([metric for metric in PANEL if metric.name.startswith("temporal_")])
# What is another number when every review is there twice: counts, levels of chance, and those
# with a lattice or a window of a whole number of reviews.
DEPENDS_ON_N = {"log_loss_certain_wrong", "smece_floor", "rmse_bins_floor", "smece", "ici"}

probabilities = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.9]), st.integers(0, 20).map(lambda k: k / 20)
)
facts = st.tuples(
    probabilities, st.booleans(), st.integers(0, 400), st.integers(1, 9), st.integers(0, 3)
)


def scores_of(histories, **changed):
    p, recalled, days, nth, lapses = map(np.array, zip(*histories, strict=True))
    columns = {"elapsed_days": days.astype(float), "nth_review": nth, "lapses": lapses}
    return PANEL.score(replace(predicted(p, recalled, **columns), **changed))


@settings(max_examples=12, deadline=None)
@given(st.lists(facts, min_size=1, max_size=40), st.randoms())
def test_scores_are_within_their_bounds_and_neither_order_nor_doubling_matters(histories, random):
    n, once = len(histories), scores_of(histories)
    shuffled = scores_of(random.sample(histories, n))
    doubled = {**scores_of(histories * 2), **{name: once[name] for name in DEPENDS_ON_N}}
    for other in (shuffled, doubled):  # the exact error is solved by iteration
        assert other == pytest.approx(once, rel=1e-8, abs=1e-8, nan_ok=True)
    single = np.array([p for p, *_ in histories], np.float32)
    alike = [{"recalled": np.full(n, outcome)} for outcome in (True, False)]
    alike += [{"p": np.full(n, p)} for p in (0.0, 1.0, 0.9)]
    some = [scores_of(histories, **changed) for changed in (*alike, {"p": single})]
    for scores in (once, *some, scores_of(histories[:1])):
        for metric in PANEL:
            value, (lowest, highest) = scores[metric.name], metric.bounds
            assert isinstance(value, float)
            assert math.isnan(value) or lowest - 1e-12 <= value <= highest + 1e-12, metric.name


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(arrays(np.float64, 7, elements=st.floats(0, 1, width=32)), min_size=1, max_size=3),
    st.lists(st.integers(1, 50), min_size=7, max_size=7).map(np.array),
    st.integers(0, 5),
)
def test_every_score_of_a_curve_is_that_of_a_plain_loop(some, counts, missing):
    """Times that are missing, at the end, do not count."""
    last = 7 - missing
    weight = np.where(np.arange(7) < last, counts, 0) / counts[:last].sum()
    p, times = (np.where(weight > 0, column, np.nan) for column in (some, np.arange(7.0)))
    for row, found in enumerate(temporal_rates(curves(p, times, weight)).T):
        pairs = [
            (weight[i] * weight[j], p[row, j] - p[row, i]) for j in range(last) for i in range(j)
        ]
        total = sum(mass for mass, _ in pairs)
        rises = sum(mass for mass, rise in pairs if rise > 1e-9)
        stays = sum(mass for mass, rise in pairs if abs(rise) <= 1e-9)
        assert found == pytest.approx([rises / total, stays / total], abs=1e-12)


def test_noise_of_single_precision_is_flat_and_without_two_times_there_is_no_number():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy))[1, 0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)))[1, 0] == 0
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    for some in (single, None, curves(np.empty((0, 4)))):
        scores = TEMPORAL.score(replace(one_user(), curves=some))
        assert np.isnan([*scores.values()]).all()


def test_times_are_intervals_that_occur_with_the_shares_they_stand_for():
    for given_days, days, counts in (
        ([5, 1, 1, 1, 30], [1, 5, 30], [3, 1, 1]),
        ([-1, np.nan, 4, 0], [0, 4], [1, 1]),
        ([], [], []),
        ([1, 1, 1, 2, 3, 4, 5, 9], [1, 3, 5], [1, 1, 1]),
    ):
        times, weights = sample_elapsed(given_days, k=3)
        assert times.tolist() == days
        assert weights * sum(counts) == pytest.approx(counts)


def test_a_curve_belongs_to_the_review_of_its_user_fold_and_row():
    names = {
        "user": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        "fold": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "row": np.array([3, 7, 3, 7, 3, 7, 3, 7]),
    }
    reviews, one = np.array([5, 2, 7, 2]), one_user(n=8, curves=4)
    keys = {name: column[reviews] for name, column in names.items()}
    predictions = replace(one, **names, curves=replace(one.curves, **keys))
    assert reviews_of_curves(predictions).tolist() == reviews.tolist()
