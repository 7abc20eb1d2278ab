from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from metric_functions import brier, log_loss
from pairs import columns, counted, quick, reviews

from srs_eval.metrics.corp import (
    CorpPart,
    corp,
    corp_consistency_band,
)
from srs_eval.metrics.tally import tally

PARTS = ("miscalibration", "discrimination", "uncertainty")


@quick
@given(reviews)
def test_the_parts_make_up_both_scores(pairs):
    p, recalled = columns(pairs)
    found = corp(counted(p, recalled))
    for parts, score in ((found.brier, brier), (found.log, log_loss)):
        assert parts.score == pytest.approx(score(p, recalled), abs=1e-12)
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert total == pytest.approx(parts.score, abs=1e-12)
        assert min(getattr(parts, name) for name in PARTS) >= 0
        assert math.isfinite(parts.miscalibration)


@quick
@given(reviews)
def test_a_rising_change_of_predictions_changes_miscalibration_only(pairs):
    p, recalled = columns(pairs)
    p = p.round(3)
    here, there = corp(counted(p, recalled)), corp(counted(0.2 + p**2 / 2, recalled))
    assert there.recalibrated == pytest.approx(here.recalibrated)
    for one, other in ((here.brier, there.brier), (here.log, there.log)):
        assert other.discrimination == pytest.approx(one.discrimination, abs=1e-12)
        assert other.uncertainty == pytest.approx(one.uncertainty, abs=1e-12)


def test_the_golden_case(cases):
    inputs, expected = cases["C23"]["inputs"], cases["C23"]["expected"]
    found = corp(counted(inputs["p"], inputs["y"]))
    heights = found.recalibrated[np.searchsorted(found.p, inputs["p"])]
    assert heights == pytest.approx(expected["recalibrated"], abs=1e-12)
    for parts, wanted in (
        (found.brier, expected["brier_parts"]),
        (found.log, expected["log_parts"]),
    ):
        values = [getattr(parts, name) for name in PARTS]
        assert values == pytest.approx([wanted[k] for k in ("MCB", "DSC", "UNC")], abs=1e-12)


@pytest.mark.parametrize("decimals", [16, 2, 1])
def test_it_agrees_with_model_diagnostics(weyl, decimals):
    from model_diagnostics.scoring import LogLoss, SquaredError, decompose

    p, recalled = weyl(3000, 0.05)
    p = np.clip(p.round(decimals), 0.01, 0.99)
    found = corp(counted(p, recalled))
    for parts, function in ((found.brier, SquaredError()), (found.log, LogLoss())):
        row = decompose(recalled.astype(float), p, scoring_function=function).to_dicts()[0]
        assert [getattr(parts, name) for name in (*PARTS, "score")] == pytest.approx(
            [row[name] for name in (*PARTS, "score")], abs=1e-12
        )


@pytest.mark.parametrize("outcome", [True, False])
def test_one_outcome_leaves_nothing_uncertain(outcome):
    found = corp(counted([0.2, 1.0, 0.7], [outcome] * 3))
    for parts in (found.brier, found.log):
        assert (parts.discrimination, parts.uncertainty) == (0, 0)
        assert parts.miscalibration == pytest.approx(parts.score)


def test_the_band_holds_the_curve_of_true_predictions_and_not_of_others():
    rng = np.random.default_rng(0)
    p = rng.beta(9, 1.2, 20_000)
    inside = []
    for truth in (p, p - 0.1 * (p > 0.6)):
        joined = tally(p, rng.random(len(p)) < truth)
        band, curve = corp_consistency_band(joined, resamples=100), corp(joined)
        heights = np.interp(band.p, curve.p, curve.recalibrated)
        weight = joined.at_most(2**10).count
        inside.append(weight @ ((band.lo <= heights) & (heights <= band.hi)) / weight.sum())
    assert inside[0] > 0.85
    assert inside[1] < 0.1


def test_the_band_is_drawn_anew_only_with_another_seed():
    joined = tally(np.linspace(0, 1, 50), np.arange(50) % 3 > 0)
    one, same, other = (corp_consistency_band(joined, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.lo, same.lo)
    assert (one.lo != other.lo).any()
    assert (one.lo <= one.hi).all()
    assert len(corp_consistency_band(tally(np.empty(0), np.empty(0, bool))).p) == 0


def test_the_metrics_are_the_parts(one_user):
    predictions = one_user()
    found = corp(counted(predictions.p, predictions.recalled))
    for part in PARTS:
        for score in ("brier", "log"):
            metric = CorpPart(part, score)
            assert metric.name == f"corp_{part}_{score}"
            expected = getattr(getattr(found, score), part)
            assert metric(predictions) == pytest.approx(expected)
            low, high = metric.bounds
            assert low <= metric(predictions) <= high
    assert [CorpPart(part).better for part in PARTS] == ["lower", "higher", "neither"]
