from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import counted
from scipy.special import expit, logit

from srs_eval.metrics.sketch import Sketch
from srs_eval.metrics.slope import (
    STEPS,
    CalibrationInTheLarge,
    line_of,
)
from srs_eval.metrics.tally import Tally, tally

in_the_large = CalibrationInTheLarge().of_outcomes

reviews = st.lists(
    st.tuples(
        st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5]), st.floats(0.9, 0.9 + 1e-9)),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def by_statsmodels(p, recalled):
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    x, y = logit(p), recalled.astype(float)
    line = GLM(y, np.column_stack([np.ones(len(x)), x]), family=Binomial()).fit(tol=1e-14)
    large = GLM(y, np.ones(len(x)), family=Binomial(), offset=x).fit(tol=1e-14)
    return float(line.params[1]), float(line.params[0]), float(large.params[0])


def beta(rng, n, decimals):
    return np.clip(rng.beta(9, 1.2, n).round(decimals), 0.01, 1 - 1e-9)


# Forgetting so rare that the log odds need digits of 1 - p.
MANY = {"near 1": lambda far: 1 - far, "near 0": lambda far: far}
GIVEN = {
    **{f"{n}, {k}": partial(beta, n=n, decimals=k) for n in (40, 1000, 20_000) for k in (15, 2)},
    **{
        name: lambda rng, of=of: of(10 ** rng.uniform(-6, -0.1, 4 * STEPS))
        for name, of in MANY.items()
    },
}


@pytest.mark.parametrize("name", GIVEN)
def test_it_agrees_with_statsmodels(name):
    rng = np.random.default_rng(1)
    p = GIVEN[name](rng)
    recalled = rng.random(len(p)) < expit(0.3 + 0.7 * logit(p))
    slope, intercept, large = by_statsmodels(p, recalled)
    assert line_of(counted(p, recalled)) == pytest.approx((slope, intercept), abs=1e-8)
    assert in_the_large(p, recalled) == pytest.approx(large, abs=1e-8)


@settings(max_examples=25, deadline=None)
@given(reviews)
def test_any_line_makes_the_likelihood_level(pairs):
    p, recalled = (np.array(column) for column in zip(*pairs, strict=True))
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


@pytest.mark.parametrize(
    ("p", "recalled"),
    [
        ([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1]),
        ([0.2, 0.4, 0.6, 0.8], [1, 1, 0, 0]),
        # They touch at one prediction: the likelihood still grows for ever.
        ([0.2, 0.5, 0.5, 0.8], [0, 0, 1, 1]),
        ([0.2, 0.5, 0.5, 0.8], [1, 1, 0, 0]),
    ],
)
def test_separated_outcomes_have_no_finite_slope(p, recalled):
    assert np.isnan(line_of(counted(p, recalled))).all()
    assert in_the_large(p, recalled) == pytest.approx(0, abs=1e-9)


def test_certain_predictions_are_clipped():
    p, recalled = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], [1, 0, 0, 1, 1, 0]
    line = line_of(counted(p, recalled))
    assert line.slope == pytest.approx(math.log(2) / math.log(2**52 - 1), rel=1e-9)
    assert abs(line.intercept) < 1e-9
    assert in_the_large([1.0, 1.0], [1, 0]) == pytest.approx(-math.log(2**52 - 1))


@pytest.mark.slow
def test_outcomes_that_overlap_within_one_joined_prediction_only_are_fitted_in_full():
    p = np.linspace(0.1, 0.9, 3 * STEPS)
    recalled = p > 0.5
    middle = len(p) // 2
    recalled[middle - 1 : middle + 1] = [True, False]
    line = line_of(counted(p, recalled))
    assert line.slope > 1000
    x = logit(p)
    missed = recalled - expit(line.intercept + line.slope * x)
    assert abs(missed.sum()) < 1e-5
    assert abs(missed @ x) < 1e-5


def test_weights_count_as_reviews():
    rng = np.random.default_rng(0)
    p = rng.random(300).round(2)
    once = tally(p, rng.random(300) < p)
    halved = Tally(once.p, once.forgotten / 2, once.recalled / 2)
    assert line_of(halved) == pytest.approx(line_of(once), abs=1e-9)
    shifts = [
        CalibrationInTheLarge().of(Sketch({}, lambda: None).with_tally(one))
        for one in (halved, once)
    ]
    assert shifts[0] == pytest.approx(shifts[1], abs=1e-9)
