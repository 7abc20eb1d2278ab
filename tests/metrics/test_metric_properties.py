"""What must hold for any predictions and outcomes, and forgetting curves, for every metric."""

import math
from dataclasses import replace

import numpy as np
import pairs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from metric_functions import METRIC, scored
from pairs import probabilities

from srs_eval.metrics.bootstrap import PooledSums, pool
from srs_eval.metrics.panel import Panel, full_panel
from srs_eval.metrics.predictions import Curves, concatenate, select
from srs_eval.metrics.temporal import reviews_of_curves, sample_elapsed, temporal_rates

# All there is, at one threshold: the others are the same code.
WHOLE = full_panel(thresholds=[0.9])
PANEL = Panel([metric for metric in WHOLE if not metric.name.startswith("temporal_")])
# What is another number when every review is there twice: counts, levels of chance, and those
# with a lattice or a window of a whole number of reviews.
DEPENDS_ON_N = {"log_loss_certain_wrong", "smece_floor", "rmse_bins_floor", "smece", "ici"}
# Solved by iteration rather than written down: equal to fewer digits.
ITERATED = {"smece_exact": 1e-8}

facts = st.tuples(
    probabilities, st.booleans(), st.integers(0, 400), st.integers(1, 9), st.integers(0, 3)
)
histories = st.lists(facts, min_size=1, max_size=40)
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
    once = scored(metric, predicted(histories))
    assert same(
        once, scored(metric, predicted(random.sample(histories, len(histories)))), tolerance
    )
    if metric.name not in DEPENDS_ON_N:
        assert same(once, scored(metric, predicted(histories * 2)), tolerance)


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
        value = scored(metric, predictions)
        assert isinstance(value, float)
        assert not math.isinf(value)
        assert math.isnan(value) or lowest - 1e-12 <= value <= highest + 1e-12


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_users_of_spread_predictions_pool_to_the_panel_of_all_rows(dtype):
    each = [spread(700, seed, user=str(seed)) for seed in range(4)]
    each = [replace(user, p=user.p.astype(dtype)) for user in each]
    pooled = pool(PooledSums(PANEL, each)).scores
    whole = PANEL.score(concatenate(each))
    assert not any(math.isnan(score) for score in whole.values())
    for name in PANEL.names:
        assert pooled[name] == pytest.approx(whole[name], abs=1e-6, rel=1e-6)


CURVE_METRICS = [metric for name, metric in METRIC.items() if name.startswith("temporal_")]


def curves(p, times=None, weight=None):
    p = np.atleast_2d(p)
    n, k = p.shape
    times = np.arange(1.0, k + 1) if times is None else np.asarray(times)
    weight = np.full(k, 1 / k) if weight is None else np.asarray(weight)
    each = np.arange(n)
    rows = (np.broadcast_to(column, p.shape) for column in (times, weight))
    return Curves(each * 0, each * 0, each, *rows, p)


def by_loop(weight, p):
    """Score one curve pair by pair."""
    k = range(len(p))
    pairs = [(weight[i] * weight[j], p[j] - p[i]) for i in k for j in k if i < j]
    total = sum(mass for mass, _ in pairs)

    def share(is_one):
        return sum(mass for mass, rise in pairs if is_one(rise)) / total

    return {
        "violation": share(lambda rise: rise >= -1e-9),
        "strict": share(lambda rise: rise > 1e-9),
        "flat": share(lambda rise: abs(rise) <= 1e-9),
    }


@settings(max_examples=40, deadline=None)
@given(
    st.lists(arrays(np.float64, 7, elements=st.floats(0, 1, width=32)), min_size=1, max_size=3),
    st.lists(st.integers(1, 50), min_size=7, max_size=7).map(np.array),
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 40.0]), min_size=7, max_size=7),
    st.integers(0, 5),
)
def test_every_score_of_a_curve_is_that_of_a_plain_loop(some, counts, gaps, missing):
    """Times that are missing, at the end, do not count."""
    times = np.cumsum(np.array(gaps) + 0.01)
    last = len(times) - missing
    weight = np.where(np.arange(7) < last, counts, 0) / counts[:last].sum()
    p = np.where(weight > 0, some, np.nan)
    given_curves = curves(p, np.where(weight > 0, times, np.nan), weight)
    for row in range(len(p)):
        expected = by_loop(weight[:last], p[row, :last])
        found = temporal_rates(given_curves)[:, row]
        assert found == pytest.approx([expected["strict"], expected["flat"]], abs=1e-12)
        assert found.sum() == pytest.approx(expected["violation"], abs=1e-12)


def test_single_precision_noise_counts_as_flat():
    noisy = np.array([0.9, 0.9000003, 0.8999999], np.float32)
    assert temporal_rates(curves(noisy))[1, 0] == 1
    assert temporal_rates(curves(noisy.astype(np.float64)))[1, 0] == 0


def test_curves_at_one_time_and_models_without_curves_have_no_number(one_user):
    single = curves([[0.9, np.nan], [0.8, np.nan]], [1, np.nan], [1, 0])
    assert np.isnan(temporal_rates(single)).all()
    for metric in CURVE_METRICS:
        for some in (single, None, curves(np.empty((0, 4)))):
            assert math.isnan(scored(metric, replace(one_user(), curves=some)))


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


def test_a_curve_is_scored_with_its_own_review_known_by_user_fold_and_row(one_user):
    predictions = one_user(n=300, curves=30)
    shuffled = select(predictions, np.random.default_rng(2).permutation(300))
    for metric in CURVE_METRICS:
        assert scored(metric, shuffled) == pytest.approx(scored(metric, predictions), abs=1e-12)
    one = one_user(n=8, curves=4)
    names = {
        "user": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
        "fold": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "row": np.array([3, 7, 3, 7, 3, 7, 3, 7]),
    }
    wanted = np.array([5, 2, 7, 2])
    keys = {name: column[wanted] for name, column in names.items()}
    predictions = replace(one, **names, curves=replace(one.curves, **keys))
    assert reviews_of_curves(predictions).tolist() == wanted.tolist()
