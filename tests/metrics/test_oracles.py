"""What other libraries, definitions in a few lines, and simulations say of metrics."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from metric_functions import METRIC, log_loss, of_outcomes, predicted, scored, smece_exact
from sklearn import metrics as sklearn
from sklearn.calibration import calibration_curve
from statsmodels.nonparametric.smoothers_lowess import lowess
from statsmodels.stats.proportion import proportion_confint

from srs_eval.metrics.reliability import ICI_CELLS as CELLS
from srs_eval.metrics.reliability import reliability_of
from srs_eval.metrics.scores import log_bins, um_plus
from srs_eval.metrics.smooth_ece import NODES, absolute_integral, cosine_series, onto_grid
from srs_eval.metrics.tally import COMPACT, tally
from srs_eval.metrics.threshold import RATES, roc_of, threshold_rows


def drawn(n, decimals=16, shape=(9, 1.2)):
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n).round(decimals)
    return p, rng.random(n) < p


@pytest.fixture(scope="module", params=[1, 2, 16], ids="{} decimals".format)
def data(request):
    return drawn(3000, request.param)


def error_in_groups(gap, *keys):
    """Root mean square, over reviews, of the mean gap of their group."""
    return math.sqrt((pd.Series(gap).groupby([*keys]).transform("mean") ** 2).mean())


def test_scores_are_those_of_scikit_learn_and_model_diagnostics(data):
    from model_diagnostics import scoring

    p, recalled = np.clip(data[0], 0.01, 0.99), data[1]
    above = p + 1e-9  # predictions on an edge lie above it here, and below it there
    share, mean = calibration_curve(recalled, above, n_bins=10)
    size = np.histogram(above, 10, (0, 1))[0]
    expected = {
        "log_loss": sklearn.log_loss(recalled, p),
        "normalized_entropy": 1 - sklearn.d2_log_loss_score(recalled, p),
        "brier": sklearn.brier_score_loss(recalled, p),
        "brier_skill": sklearn.r2_score(recalled, p),
        "auc": sklearn.roc_auc_score(recalled, p),
        "mbe": p.mean() - recalled.mean(),
        "ece": (size[size > 0] * np.abs(share - mean + 1e-9)).sum() / len(p),
        "rmse_bins_by_p": error_in_groups(p - recalled, np.floor(21**p)),
    }
    parts = scoring.decompose(recalled * 1.0, p, scoring_function=scoring.LogLoss()).to_dicts()[0]
    for part in ("miscalibration", "discrimination"):
        expected[f"corp_{part}_log"] = parts[part]
    found = {name: of_outcomes(name, p, recalled) for name in expected}
    assert found == pytest.approx(expected, abs=1e-12)


def test_certain_predictions_are_clipped_counted_and_in_the_last_bin():
    for p, recalled, loss, wrong in (
        ([1, 0], [1, 0], 2.0**-52, 0),
        ([1, 0], [0, 1], 52 * math.log(2), 2),
        ([1, 0, 1, 0.5], [1, 0, 0, 1], 53 * math.log(2) / 4, 1),
    ):
        for dtype in (np.float32, np.float64):
            assert log_loss(np.array(p, dtype), recalled) == pytest.approx(loss, abs=1e-12)
        assert of_outcomes("log_loss_certain_wrong", p, recalled) == wrong
    assert of_outcomes("brier", [1, 0], [0, 1]) == 1
    assert of_outcomes("auc", [0.5, 0.5], [1, 0]) == 0.5
    assert of_outcomes("ece", [1.0, 0.95, 0.85, 0.85], [1, 0, 1, 1]) == pytest.approx(
        (0.95 + 0.3) / 4
    )
    edges = [0, 0.2276, 0.2277, 0.949, 0.95, 0.9839, 0.984, 1]
    assert log_bins(edges).tolist() == [0, 0, 1, 16, 17, 18, 19, 19]
    for name in ("normalized_entropy", "brier_skill", "auc"):
        assert math.isnan(of_outcomes(name, [0.9, 0.8], [1, 1]))


def test_um_plus_is_the_error_in_groups_of_differences(data):
    p, recalled = data
    other = np.clip(p + np.random.default_rng(1).uniform(-0.1, 0.1, 3000), 0, 1)
    for one, two in ((p, other), (other, p)):
        expected = error_in_groups(one - recalled, np.rint(20 * (one - two)))
        assert um_plus(one, two, recalled) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(um_plus(p[:0], p[:0], recalled[:0]))


# Factors, bases and decimals of intervals, reviews and lapses, as published.
PUBLISHED = {
    "rmse_bins": ((2.48, 3.62, 2), (1.99, 1.89, 0), (1.65, 1.73, 0)),
    "rmse_bins_wiki": ((2.48, 2.57, 2), (1.52, 1.58, 0), (1.4, 1.48, 0)),
}
FACTS = ("elapsed_days", "nth_review", "lapses")


@pytest.mark.parametrize("alone", [*FACTS, None])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint32])
@pytest.mark.parametrize("largest", [100, 2**16, 9.9e8])
def test_rmse_bins_is_the_error_in_groups_of_published_formulas(largest, dtype, alone, monkeypatch):
    """Also with each fact alone, up to just below what is refused, and in blocks."""
    monkeypatch.setattr("srs_eval.metrics.bins.BLOCK", 2000 if alone else 900)
    rng = np.random.default_rng(1)
    p, recalled = drawn(2000)
    facts = {name: np.floor(largest ** rng.permutation(np.linspace(0, 1, 2000))) for name in FACTS}
    facts = {name: column.astype(dtype) for name, column in facts.items()}
    facts["elapsed_days"][:9] = facts["lapses"][:800] = 0
    if np.dtype(dtype).kind == "f":
        facts["elapsed_days"][9:99] *= rng.random(90)
    facts |= {name: np.ones(2000, dtype) for name in FACTS if alone not in (name, None)}
    reviews = predicted(p, recalled, **facts)
    for metric, constants in PUBLISHED.items():
        keys = []
        for column, (factor, base, decimals) in zip(facts.values(), constants, strict=True):
            power = np.floor(np.log(np.maximum(column, 1e-6)) / math.log(base))
            keys.append(np.round(factor * base**power, decimals))
        keys[2] *= facts["lapses"] > 0
        expected = error_in_groups(p - recalled, *keys)
        assert scored(METRIC[metric], reviews) == pytest.approx(expected)
        assert math.isnan(scored(METRIC[metric], replace(reviews, **{alone or FACTS[0]: None})))
        if metric == "rmse_bins":  # expected of outcomes drawn from the predictions
            groups = pd.Series(p * (1 - p)).groupby(keys)
            floor = math.sqrt((groups.sum() / groups.size()).sum() / 2000)
            assert scored(METRIC["rmse_bins_floor"], reviews) == pytest.approx(floor)


def test_confusion_is_that_of_scikit_learn_with_intervals_of_statsmodels(data):
    p, recalled = data
    for threshold in (0.5, 0.7, 0.8, 0.9, 0.95):
        (row,) = threshold_rows(tally(p, recalled), [threshold])
        ((tn, fp), (fn, tp)) = sklearn.confusion_matrix(recalled, p >= threshold)
        assert [row[name] for name in ("tn", "fp", "fn", "tp")] == [tn, fp, fn, tp]
        of_which = {"tpr": (tp, fn), "fpr": (fp, tn), "ppv": (tp, fp), "npv": (tn, fn)}
        of_which |= {"fnr": (fn, tp), "tnr": (tn, fp), "fdr": (fp, tp), "for": (fn, tn)}
        assert set(of_which) == set(RATES)
        for statistic, (hits, others) in of_which.items():
            assert row[statistic] == pytest.approx(hits / (hits + others))
            interval = row[f"{statistic}_low"], row[f"{statistic}_high"]
            expected = proportion_confint(hits, hits + others, 0.01, "wilson")
            assert interval == pytest.approx(expected, abs=1e-12)


def test_the_roc_curve_is_that_of_scikit_learn_thinned_where_it_is_long():
    p, recalled = drawn(3000, 2)
    fpr, tpr, _ = sklearn.roc_curve(recalled, p, drop_intermediate=False)
    whole, few = (roc_of(tally(p, recalled), thresholds=(0.7, 0.9), points=n) for n in (2001, 21))
    assert (whole.fpr, whole.tpr) == (pytest.approx(fpr), pytest.approx(tpr))
    complete, thinned = ([*zip(each.fpr, each.tpr, strict=True)] for each in (whole, few))
    assert {*thinned} < {*complete}
    assert (len(thinned) <= 21, thinned[0], thinned[-1]) == (True, (0, 0), (1, 1))
    assert np.trapezoid(few.tpr, few.fpr) == pytest.approx(few.auc, abs=0.02)
    expected = [(t, (p[~recalled] >= t).mean(), (p[recalled] >= t).mean()) for t in (0.7, 0.9)]
    for curve in (whole, few):
        assert np.ravel(curve.at) == pytest.approx(np.ravel(expected))
    alike = roc_of(tally([0.95, 0.5], [1, 1]), thresholds=[0.9])
    assert (len(alike.fpr), len(alike.tpr)) == (0, 0)
    assert (alike.auc, *alike.at[0]) == pytest.approx((math.nan, 0.9, math.nan, 0.5), nan_ok=True)


@pytest.mark.parametrize(
    ("n", "decimals", "shape", "alike"),
    [
        *((30, 2, (9, 1.2), 0), (30, 1, (15, 1.5), 0), (300, 16, (1, 1), 0)),
        *((3000, 1, (1, 1), 0), (2 * CELLS, 16, (9, 1.2), 0), (300, 16, (9, 1.2), 200)),
    ],
)
def test_the_distance_from_a_local_regression_is_that_of_statsmodels(n, decimals, shape, alike):
    """Over all reviews, where one prediction is that of most of them."""
    p, recalled = drawn(n, decimals, shape)
    p[:alike] = 0.8
    shared = pd.Series(recalled * 1.0).groupby(p).transform("mean")  # equal ones share an outcome
    with warnings.catch_warnings():
        # Where a window has no width it divides by 0, before it takes the mean.
        warnings.simplefilter("ignore")
        options = {"frac": 1 if alike else 2 / 3, "it": 0, "delta": 0.01 * np.ptp(p)}
        fitted = lowess(shared, p, return_sorted=False, **options)
    expected = np.abs(fitted - p).mean()
    tolerance = 1e-5 if n > CELLS else 1e-6
    assert of_outcomes("ici", p, recalled) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("n", "exponent", "shape"),
    [
        *((1, 1, (9, 1.2)), (2, 0.3, (9, 1.2)), (1000, 0.3, (9, 1.2)), (20_000, 1.2, (0.5, 0.5))),
        *((2 * COMPACT, 1.0, (9, 1.2)), (20_000, 1.0, (3000, 1))),
    ],
)
def test_smece_is_that_of_relplot_and_the_exact_one_near_it(n, exponent, shape):
    with warnings.catch_warnings():  # of plotting libraries that use what pandas deprecates
        warnings.simplefilter("ignore")
        from relplot.metrics import smECE
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n)
    recalled = rng.random(n) < p**exponent
    expected = smECE(p, recalled * 1.0)
    assert of_outcomes("smece", p, recalled) == pytest.approx(expected, abs=1e-13)
    if n >= 20_000:
        assert smece_exact(p, recalled) == pytest.approx(expected, abs=3e-4)


def too_high(n, shift):
    """Predictions from 0.5 on that are too high, by `shift`, above 0.9."""
    rng = np.random.default_rng(n)
    p = rng.uniform(0.5, 1, n)
    return p, rng.random(n) < p - shift * (p > 0.9)


def test_the_smooth_calibration_error_is_its_own_bandwidth():
    p, recalled = too_high(60, 0.2)
    p[:2] = 0, 1
    value = smece_exact(p, recalled)
    series = cosine_series(onto_grid(p, (p - recalled) / len(p), NODES + 1))
    assert absolute_integral(series, value) == pytest.approx(value, abs=1e-9)
    p, recalled = [0.0, 0.0, 1.0, 5e-324], [0, 0, 0, 1]  # the smallest bandwidth there is
    assert smece_exact(p, recalled) == pytest.approx(smece_exact([0, 0, 1, 0], recalled))


def smece_floor(p):
    return of_outcomes("smece_floor", p, np.ones(len(p), bool))


@pytest.mark.parametrize("shape", [(9, 1.2), (1, 1), (30, 0.5)])
@pytest.mark.parametrize("n", [50, 1000])
def test_the_smooth_floor_solves_its_definition_and_is_the_mean_over_simulated_outcomes(shape, n):
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n)
    sigma, t = smece_floor(p), np.linspace(0, 1, 2001)[:, None]
    images = (sign * p + 2 * k for sign in (1, -1) for k in range(-2, 3))  # behind the walls
    kernel = sum(np.exp(-0.5 * ((t - at) / sigma) ** 2) for at in images)
    kernel /= sigma * math.sqrt(2 * math.pi)
    size = np.sqrt(2 / math.pi * (kernel**2 @ (p * (1 - p)))) / n
    assert np.trapezoid(size, t[:, 0]) == pytest.approx(sigma, rel=1e-3)
    single = {p: smece_floor(np.array([p])) for p in (1e-10, 0.3, 0.5)}
    assert single == pytest.approx({p: math.sqrt(2 / math.pi * p * (1 - p)) for p in single})
    levels = [smece_exact(p, rng.random(n) < p) for _ in range(60)]
    error = np.std(levels) / math.sqrt(60)
    assert sigma == pytest.approx(np.mean(levels), abs=3 * error, rel=0.05)


def test_a_curve_is_the_kernel_regression_of_outcomes_with_its_error_and_floor():
    """Without mirror images: at 0.8 none of them are near."""
    p, recalled = too_high(3000, 0.1)
    curve = reliability_of(tally(p, recalled), resamples=40, points=1001)
    assert (curve.smece, curve.n) == (pytest.approx(smece_exact(p, recalled)), 3000)
    assert (curve.sigma, curve.smece_floor) == (curve.smece, pytest.approx(smece_floor(p)))
    at = np.searchsorted(curve.p_grid, 0.8)
    kernel = np.exp(-0.5 * ((p - curve.p_grid[at]) / curve.sigma) ** 2)
    assert curve.observed[at] == pytest.approx((kernel @ recalled) / kernel.sum(), abs=1e-3)
    height = kernel.sum() / len(p) / (curve.sigma * math.sqrt(2 * math.pi))
    assert curve.density[at] == pytest.approx(height, rel=1e-3)
    defined = ~np.isnan(curve.observed)
    nearby = np.exp(-0.5 * ((p[:, None] - curve.p_grid) / curve.sigma) ** 2).sum(axis=0)
    assert (defined == (nearby >= 0.5)).all()
    for low, high in ((curve.lo, curve.hi), (curve.null_lo, curve.null_hi)):
        assert (np.isnan(low) == ~defined).all()
        assert 0 <= low[defined].min() <= high[defined].max() <= 1
    error = np.sqrt(kernel**2 @ (p * (1 - p))) / kernel.sum()
    for low, high in ((curve.lo, curve.hi), (curve.null_lo, curve.null_hi)):
        assert high[at] - low[at] == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert curve.lo[at] < curve.observed[at] < curve.hi[at]
    assert 0.1 * curve.smece < curve.half_width < curve.smece
    assert (curve.observed < curve.null_lo)[curve.p_grid > 0.95].all()
    once = reliability_of(tally(p, recalled), resamples=1)
    np.testing.assert_array_equal(once.lo, once.hi)
