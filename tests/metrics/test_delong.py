from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srs_eval.errors import ConfigError
from srs_eval.metrics.delong import (
    AucDelongHigh,
    AucDelongLow,
    auc_interval,
    auc_of,
    delong_of,
    interval_of,
)
from srs_eval.metrics.tally import Tally, tally
from srs_eval.nouns import Predictions

reviews = st.lists(
    st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.booleans()), min_size=1, max_size=30
)
quick = settings(max_examples=60, deadline=None)


def by_definition(p, recalled):
    """Every recalled review against every forgotten one, ties half."""
    wins = (np.sign(np.subtract.outer(p[recalled], p[~recalled])) + 1) / 2
    area, (recalls, lapses) = wins.mean(), wins.shape
    if min(recalls, lapses) < 2:
        return area, math.nan
    variance = wins.mean(axis=1).var(ddof=1) / recalls + wins.mean(axis=0).var(ddof=1) / lapses
    return area, math.sqrt(variance)


def columns(pairs):
    p, recalled = zip(*pairs, strict=True)
    return np.array(p), np.array(recalled)


@quick
@given(reviews)
def test_it_is_what_its_definition_says(pairs):
    p, recalled = columns(pairs)
    if recalled.all() or not recalled.any():
        assert np.isnan(delong_of(tally(p, recalled))).all()
    else:
        expected = by_definition(p, recalled)
        assert delong_of(tally(p, recalled)) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_the_area_is_that_of_scikit_learn(weyl):
    from sklearn.metrics import roc_auc_score

    p, recalled = weyl(5000, 0.05)
    for decimals in (16, 2, 1):
        rounded = p.round(decimals)
        found = auc_of(tally(rounded, recalled))
        assert found == pytest.approx(roc_auc_score(recalled, rounded), abs=1e-14)


def test_the_golden_case_with_ties(cases):
    inputs, expected = cases["C06"]["inputs"], cases["C06"]["expected"]
    found = auc_interval(inputs["p"], inputs["y"])
    assert found.auc == pytest.approx(expected["auc"], abs=1e-15)
    assert found.se == pytest.approx(expected["se"], abs=1e-12)
    assert found.se**2 == pytest.approx(expected["var"], abs=1e-12)
    assert (found.lo, found.hi) == pytest.approx(expected["ci95_logit"], abs=1e-9)
    wald = auc_interval(inputs["p"], inputs["y"], wald=True)
    assert (wald.lo, wald.hi) == pytest.approx(expected["ci95_wald"], abs=1e-9)


def test_the_golden_case_of_a_million_reviews(cases, weyl):
    inputs, expected = cases["C30a"]["inputs"], cases["C30a"]["expected"]
    area, error = delong_of(tally(*weyl(inputs["n"], inputs["shift"])))
    assert area == pytest.approx(expected["auc"], abs=1e-10)
    assert error == pytest.approx(expected["delong_se"], abs=1e-10)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    # Chance that one exponential of mean 3 exceeds one of mean 1.
    truth, covered = 0.75, 0
    for _ in range(400):
        strength = np.r_[rng.exponential(3, 60), rng.exponential(1, 40)]
        found = auc_interval(1 - np.exp(-strength), np.arange(100) < 60)
        covered += found.lo <= truth <= found.hi
    assert 0.92 <= covered / 400 <= 0.98


@pytest.mark.parametrize(("p", "area"), [([0.1, 0.2, 0.8, 0.9], 1.0), ([0.9, 0.8, 0.2, 0.1], 0.0)])
def test_perfect_order_has_no_interval_because_its_variance_says_nothing(p, area):
    found = auc_interval(p, [0, 0, 1, 1])
    assert (found.auc, found.se, found.separated) == (area, 0, True)
    assert math.isnan(found.lo)
    assert math.isnan(found.hi)


def test_one_review_of_an_outcome_has_an_area_but_no_variance():
    found = auc_interval([0.2, 0.7, 0.9, 0.1], [0, 1, 1, 1])
    assert found.auc == pytest.approx(2 / 3)
    assert not found.separated
    assert np.isnan([found.se, found.lo, found.hi]).all()


def test_equal_predictions_have_one_half_for_sure():
    found = auc_interval([0.9] * 6, [1, 0, 1, 0, 1, 1])
    assert (found.auc, found.se, found.lo, found.hi) == (0.5, 0, 0.5, 0.5)


def test_weights_that_are_not_whole_stay_in_range():
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(50))
    for _ in range(20):
        found = interval_of(Tally(p, rng.random(50) * 3, rng.random(50) * 3))
        assert 0 <= found.lo <= found.auc <= found.hi <= 1
    apart = Tally(p, np.r_[rng.random(20), np.zeros(30)] / 3, np.r_[np.zeros(20), rng.random(30)])
    assert interval_of(apart).separated


def test_a_level_must_be_a_share():
    with pytest.raises(ConfigError, match=r"between 0 and 1, not 95"):
        auc_interval([0.5], [1], level=95)
    with pytest.raises(ConfigError, match=r"between 0 and 1"):
        AucDelongLow(level=1.0)


def test_the_metrics_are_the_ends_of_the_interval(one_user):
    predictions = one_user()
    found = auc_interval(predictions.p, predictions.recalled)
    assert AucDelongLow()(predictions) == pytest.approx(found.lo)
    assert AucDelongHigh()(predictions) == pytest.approx(found.hi)
    names = [AucDelongLow().name, AucDelongHigh().name, AucDelongLow(level=0.995).name]
    assert names == ["auc_delong_low", "auc_delong_high", "auc_delong_low_99_5"]
    wider = AucDelongLow(level=0.99)(predictions), AucDelongHigh(level=0.99)(predictions)
    assert wider[0] < found.lo < found.hi < wider[1]


def test_nothing_is_nan():
    none = np.zeros(0, np.int64)
    nothing = Predictions((), none, none, none, none, np.empty(0), none.astype(bool))
    assert math.isnan(AucDelongLow()(nothing))
    assert math.isnan(auc_interval([], []).auc)
