"""What holds of measures of calibration beyond what other libraries say of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from metric_functions import brier, log_loss, smece_exact
from pairs import columns, counted, quick, reviews
from scipy.special import expit, logit

from srs_eval.metrics.calibration_tests import SpiegelhalterZ, cumulative_of
from srs_eval.metrics.corp import CorpPart, corp, corp_consistency_band
from srs_eval.metrics.ici import Ici, IciQuantile
from srs_eval.metrics.slope import CalibrationInTheLarge, line_of
from srs_eval.metrics.smece import residual_field
from srs_eval.metrics.tally import Tally, tally

PARTS = ("miscalibration", "discrimination", "uncertainty")
in_the_large = CalibrationInTheLarge().of_outcomes
z_of = SpiegelhalterZ().of_outcomes


@quick
@given(reviews)
def test_seeing_recalls_as_lapses_changes_none_but_the_order(pairs):
    p, recalled = columns(pairs)
    p = (p * 64).round() / 64
    here, there = cumulative_of(counted(p, recalled)), cumulative_of(counted(1 - p, ~recalled))
    assert there.kuiper == pytest.approx(here.kuiper, abs=1e-12)
    assert math.isnan(z_of([0.0, 0.5, 0.5, 1.0], [0, 1, 0, 1]))  # a certain Brier score
    assert z_of(1 - p, ~recalled) == pytest.approx(z_of(p, recalled), abs=1e-9, nan_ok=True)


def by_mirror_images(p, recalled, sigma):
    """Sum the kernel over mirror images of every prediction, on a fine grid."""
    t = np.linspace(0, 1, 4001)
    residual = np.zeros_like(t)
    for image in range(-6, 7):
        for mirrored in (2 * image + p, 2 * image - p):
            distance = (t[:, None] - mirrored) / sigma
            residual += np.exp(-0.5 * distance**2) @ (p - recalled)
    residual /= len(p) * sigma * math.sqrt(2 * math.pi)
    return np.trapezoid(np.abs(residual), t)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5, 1.0])
def test_the_smooth_calibration_error_is_an_integral_and_its_own_bandwidth(weyl, sigma):
    p, recalled = weyl(60, 0.2)
    p[:2] = 0, 1
    error = residual_field(counted(p, recalled)).absolute_integral
    assert error(sigma) == pytest.approx(by_mirror_images(p, recalled, sigma), abs=3e-6)
    value = smece_exact(p, recalled)
    assert error(value) == pytest.approx(value, abs=1e-9)
    p, recalled = [0.0, 0.0, 1.0, 5e-324], [0, 0, 0, 1]  # the smallest bandwidth there is
    assert smece_exact(p, recalled) == pytest.approx(smece_exact([0, 0, 1, 0], recalled))


@pytest.mark.parametrize("share", [0.5, 0.61, 0.8, 0.95])
def test_calibrated_predictions_have_a_small_distance_however_many_are_equal(share):
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = np.where(rng.random(1000) < share, 0.9, rng.beta(8, 2, 1000))
        found.append(Ici().of_outcomes(p, rng.random(1000) < p))
    # Statsmodels' lowess has means of 0.02 to 0.09 from 0.61 on, and up to 0.65
    assert np.mean(found) < 0.018
    assert np.max(found) < 0.04
    assert [IciQuantile(of).name for of in (0.5, 0.9, 0.975)] == ["e50", "e90", "e97_5"]


@quick
@given(reviews)
def test_any_line_makes_the_likelihood_level(pairs):
    p, recalled = columns(pairs)
    line, large = line_of(counted(p, recalled)), in_the_large(p, recalled)
    x = logit(np.clip(p, 2.0**-52, 1 - 2.0**-52))
    if 0 < recalled.mean() < 1:
        assert float((recalled - expit(large + x)).sum()) == pytest.approx(0, abs=1e-6)
    else:
        assert math.isnan(large)
    assert math.isnan(line.slope) == math.isnan(line.intercept)
    if not math.isnan(line.slope):
        missed = recalled - expit(line.intercept + line.slope * x)
        # As far as rounding of a steep line's intercept lets one see.
        blur = 1e-6 + 1e-14 * (abs(line.intercept) + abs(line.slope)) * len(p)
        assert abs(missed.sum()) < blur
        assert abs(missed @ x) < 40 * blur


@pytest.mark.parametrize("p", [[0.2, 0.4, 0.6, 0.8], [0.2, 0.5, 0.5, 0.8]])
@pytest.mark.parametrize("recalled", [[0, 0, 1, 1], [1, 1, 0, 0]])
def test_separated_outcomes_have_no_finite_slope(p, recalled):
    """Even where they touch at one prediction the likelihood still grows for ever."""
    assert np.isnan(line_of(counted(p, recalled))).all()
    assert in_the_large(p, recalled) == pytest.approx(0, abs=1e-9)


def test_lines_of_certain_predictions_are_clipped_and_weights_count_as_reviews():
    p, recalled = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [1, 0, 0, 1, 1, 0]
    line = line_of(counted(p, recalled))
    assert line.slope == pytest.approx(math.log(2) / math.log(2**52 - 1), rel=1e-9)
    assert abs(line.intercept) < 1e-9
    assert in_the_large([1.0, 1.0], [1, 0]) == pytest.approx(-math.log(2**52 - 1))
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    once = tally(p, rng.random(300) < p)
    halved = Tally(once.p, once.forgotten / 2, once.recalled / 2)
    assert line_of(halved) == pytest.approx(line_of(once), abs=1e-9)


@quick
@given(reviews)
def test_parts_make_up_both_scores_and_bending_predictions_changes_one_of_them(pairs):
    p, recalled = columns(pairs)
    p = p.round(3)
    here, there = corp(counted(p, recalled)), corp(counted(0.2 + p**2 / 2, recalled))
    assert there.recalibrated == pytest.approx(here.recalibrated)
    for name, score in (("brier", brier), ("log", log_loss)):
        one, other = getattr(here, name), getattr(there, name)
        assert one.score == pytest.approx(score(p, recalled), abs=1e-12)
        total = one.miscalibration - one.discrimination + one.uncertainty
        assert total == pytest.approx(one.score, abs=1e-12)
        assert min(getattr(one, part) for part in PARTS) >= 0
        assert other.discrimination == pytest.approx(one.discrimination, abs=1e-12)
        assert other.uncertainty == pytest.approx(one.uncertainty, abs=1e-12)
        for part in PARTS:
            metric = CorpPart(part, name)
            assert metric.name == f"corp_{part}_{name}"
            assert metric.of_outcomes(p, recalled) == pytest.approx(getattr(one, part), abs=1e-12)
    assert [CorpPart(part).better for part in PARTS] == ["lower", "higher", "neither"]


def test_the_band_of_a_curve_holds_that_of_true_predictions_and_not_of_others():
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
    few = tally(np.linspace(0, 1, 50), np.arange(50) % 3 > 0)
    one, same, other = (corp_consistency_band(few, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.lo, same.lo)
    assert (one.lo != other.lo).any()
    assert (one.lo <= one.hi).all()
    assert len(corp_consistency_band(tally(np.empty(0), np.empty(0, bool))).p) == 0
