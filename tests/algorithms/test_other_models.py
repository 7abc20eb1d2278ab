"""Models without recurrent equations: derivatives, beliefs and the truth."""

from dataclasses import replace

import numpy as np
import pytest
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms import history
from srs_eval.algorithms.baselines import Oracle
from srs_eval.algorithms.features.log_odds import ActR, Dash, DashActR, DashMcm
from srs_eval.algorithms.features.logistic import Logistic
from srs_eval.algorithms.half_life import updated
from srs_eval.algorithms.history import history_of
from srs_eval.errors import FitSkipped
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs

SECONDS = SrsBenchmarkSecs()(REVIEWS, same_day=True).reviews
KINDS = (ActR, Logistic, Dash, DashMcm, DashActR)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reviews", [REVIEWS, SECONDS], ids=["days", "seconds"])
def test_log_odds_have_the_derivatives_they_say_however_many_are_held(monkeypatch, reviews, kind):
    log_odds = fitted(kind(fit="default")).log_odds
    w = np.array(log_odds.parameters.defaults)
    rows = np.flatnonzero(reviews.elapsed_days > 0)[::-13]
    at = log_odds.at(history_of(reviews), rows, reviews.elapsed[rows])
    z, slopes = at(w)
    for number, step in enumerate(1e-6 * np.eye(len(w))):
        expected = (at(w + step)[0] - at(w - step)[0]) / 2e-6
        np.testing.assert_allclose(slopes[:, number], expected, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(history, "HELD", 25)
    few = log_odds.at(history_of(reviews), rows, reviews.elapsed[rows])(w)
    np.testing.assert_allclose(few[0], z, rtol=1e-12)


def test_an_outcome_that_cannot_be_computed_with_leaves_the_belief_as_it_was():
    # A review at once is not later than now, in 64 bits, of such a half-life.
    almost_certain = np.array([[0.02], [0.02], [1e20]])
    belief = updated(almost_certain, np.zeros(1), np.array([False]))
    np.testing.assert_array_equal(belief, almost_certain)


def test_the_oracle_knows_what_the_outcomes_were_drawn_from_and_skips_real_users():
    p = fitted(Oracle()).predict(REVIEWS, FOLD.test)
    np.testing.assert_array_equal(p, REVIEWS.truth[FOLD.test])
    with pytest.raises(FitSkipped):
        fitted(Oracle(), replace(REVIEWS, truth=None))
