"""What must hold for any predictions and outcomes, for every metric that follows from a sketch."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pairs
import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
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
    smece,
    smece_exact,
)
from pairs import columns, probabilities, reviews

from srs_eval.metrics.calibration import Ece
from srs_eval.metrics.cluster_sums import ClusterSums, needed
from srs_eval.metrics.corp import CorpPart
from srs_eval.metrics.discrimination import Auc
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.pooled import pool
from srs_eval.metrics.prediction_cells import PredictionCells
from srs_eval.metrics.proper import BrierSkill, LogLoss, NormalizedEntropy, NormalizedEntropyTrain
from srs_eval.metrics.sketch import SketchMetric
from srs_eval.metrics.sums import add_up
from srs_eval.metrics.tally import tally
from srs_eval.nouns.predictions import concatenate, select

CONF = Path(__file__).parents[2] / "conf"


def full_panel() -> Panel:
    """Everything there is, at one threshold: the others are the same code."""
    one = [f"panel.metrics.{name}.thresholds=[0.9]" for name in ("confusion", "threshold_bias")]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=["+panel=full", *one])
    whole = instantiate(config.panel, _convert_="all")
    return Panel([metric for metric in whole if isinstance(metric, SketchMetric)])


PANEL = full_panel()
BY_NAME = {metric.name: metric for metric in PANEL}
# What is not the same number when every review is there twice, and why.
DEPENDS_ON_N = {
    "log_loss_clipped": "counts reviews",
    "log_loss_certain_wrong": "counts reviews",
    "smece_floor": "the level of chance falls with the number of reviews",
    "rmse_bins_floor": "the level of chance falls with the number of reviews",
    "rmse_bins_debiased": "the level of chance is taken off",
    "spiegelhalter_z": "a test statistic grows with the root of the number of reviews",
    "smece": "the number others print has a bandwidth on a lattice, and a floor of its density",
    "ici": "the window of the local regression is a whole number of reviews",
    "e50": "the window of the local regression is a whole number of reviews",
    "e90": "the window of the local regression is a whole number of reviews",
}
# Solved by iteration rather than written down: equal to fewer digits.
ITERATED = {"calibration_slope": 1e-6, "calibration_intercept": 1e-6, "smece_exact": 1e-8}

facts = st.tuples(
    probabilities, st.booleans(), st.integers(0, 400), st.integers(1, 9), st.integers(0, 3)
)
histories = st.lists(facts, min_size=1, max_size=40)
of_eighths = st.integers(0, 8).map(lambda k: k / 8)
histories_of_few_levels = st.lists(
    st.tuples(of_eighths, st.booleans(), st.integers(0, 400), st.integers(1, 9), st.integers(0, 3)),
    min_size=1,
    max_size=40,
)
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
def test_order_does_not_matter(metric, histories, random):
    shuffled = random.sample(histories, len(histories))
    tolerance = ITERATED.get(metric.name, 1e-9)
    assert same(metric(predicted(histories)), metric(predicted(shuffled)), tolerance)


@pytest.mark.parametrize("name", [name for name in PANEL.names if name not in DEPENDS_ON_N])
@few
@given(histories)
def test_having_every_review_twice_changes_nothing(name, histories):
    metric = BY_NAME[name]
    once, twice = metric(predicted(histories)), metric(predicted(histories * 2))
    assert same(once, twice, ITERATED.get(metric.name, 1e-9))


@pytest.mark.parametrize("name", sorted(set(DEPENDS_ON_N) - {"smece", "ici", "e50", "e90"}))
def test_what_depends_on_the_number_of_reviews_says_so(name):
    once = spread(40, 1)
    once.p[:2], once.recalled[:2] = [0, 1], [True, True]
    twice = select(once, np.tile(np.arange(40), 2))
    metric = BY_NAME[name]
    assert metric(once) != pytest.approx(metric(twice), rel=1e-3)


@quick
@given(reviews)
def test_the_lattice_and_the_window_hide_little_of_having_every_review_twice(pairs):
    assert same(smece(*columns(pairs)), smece(*columns(pairs * 2)), 2e-3)


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


@quick
@given(histories, st.integers(0, 2**32 - 1))
def test_sums_of_any_parts_add_up_to_those_of_the_whole(histories, seed):
    whole = predicted(histories)
    part = np.random.default_rng(seed).integers(0, 3, len(whole))
    cells = PredictionCells.for_predictions(tally(whole.p, whole.recalled))
    together, _ = ClusterSums.of(PANEL, whole, part, 3, cells).together()
    sums = needed(PANEL)
    for each, total in zip(sums, add_up(sums, whole), strict=True):
        assert together[each] == pytest.approx(total.values[0], abs=1e-12, rel=1e-12)


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


@pytest.mark.slow
def test_hundreds_of_thousands_of_reviews_in_cells_lose_less_than_a_millionth():
    rng = np.random.default_rng(0)
    smooth = [LogLoss(), Auc(), Ece(), CorpPart("discrimination", "log")]
    panel = Panel([*smooth, BY_NAME["smece_exact"], BY_NAME["calibration_slope"]])
    p = rng.beta(9, 1.2, 200_000)
    ones = np.ones(len(p), np.int64)
    whole = predictions_of(p, rng.random(len(p)) < p, ones, ones, ones)
    halves = [select(whole, slice(None, 70_000)), select(whole, slice(70_000, None))]
    pooled, exact = pool(panel, lambda: halves).scores, panel.score(whole)
    for name in panel.names:
        assert pooled[name] == pytest.approx(exact[name], abs=1e-6)


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
def test_seeing_recalls_as_lapses_changes_no_score_of_both(pairs):
    p, recalled = columns(pairs)
    p = p.round(3)
    for metric in (log_loss, brier, normalized_entropy, brier_skill, smece_exact, auc):
        tolerance = 1e-8 if metric is smece_exact else 1e-9
        turned = (1 - p).round(3), ~recalled
        assert same(metric(p, recalled), metric(*turned), tolerance)


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
