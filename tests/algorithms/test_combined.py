"""The mixture of three algorithms: the columns that each sees, its declarations and its record."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import expit, logit
from trial import FOLD, REVIEWS, fitted

from srs_eval.algorithms.algorithm import Learned, has_curve
from srs_eval.algorithms.baselines import Average, Constant, FlatModel, Oracle
from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.half_life import Hlr
from srs_eval.algorithms.online import MovingAverage
from srs_eval.algorithms.sessions.session_filter import Mixture
from srs_eval.errors import FitSkipped
from srs_eval.protocol.srs_benchmark import SrsBenchmark

EARLY = FOLD.train[: len(FOLD.train) * 3 // 4]


@pytest.mark.parametrize("same_day", [False, True])
def test_a_member_sees_what_the_protocol_would_show_it(make_log, same_day):
    log = make_log(cards=80)
    log = replace(log, truth=np.full(len(log), 0.5))
    wide, own = SrsBenchmark()(log, same_day=True), SrsBenchmark()(log, same_day=same_day)
    seen = {}

    @dataclass(frozen=True)
    class Spy(Constant):
        def fit(self, reviews, rows, rng):
            seen["reviews"], seen["rows"] = reviews, rows
            assert reviews.truth is None  # which is shown to those alone that say so
            return Constant().fit(reviews, rows, rng)

    Spy.same_day = same_day
    fitted(Mixture(Spy(), Oracle(), Hlr()), wide.reviews, wide.folds[0].train)
    np.testing.assert_array_equal(seen["rows"], own.folds[0].train)
    for column in ("card", "rating", "elapsed", "row"):
        expected = getattr(own.reviews, column)
        np.testing.assert_array_equal(getattr(seen["reviews"], column), expected)


@pytest.mark.parametrize(
    ("algorithm", "same_day", "when", "sees_truth"),
    [
        (Mixture(Hlr(), Average(), Hlr()), False, "previous_review", False),
        (Mixture(Hlr(), Fsrs6(), Hlr()), True, "previous_review", False),
        (Mixture(Hlr(), MovingAverage(), Hlr()), False, "at_review", False),
        (Mixture(Hlr(), Hlr(), Oracle()), False, "at_review", True),
    ],
)
def test_declarations_and_curves_follow_from_the_others(algorithm, same_day, when, sees_truth):
    assert (algorithm.same_day, algorithm.when, algorithm.sees_truth) == (
        *(same_day, when, sees_truth),
    )
    model = fitted(algorithm)
    parts = model.made_of()
    assert has_curve(model) == all(has_curve(part) for part in parts)
    if has_curve(model):
        now = REVIEWS.elapsed[FOLD.test][:, None]
        curve = model.predict_at(REVIEWS, FOLD.test, np.hstack([now, 3 * now]))
        p = model.predict(REVIEWS, FOLD.test)
        np.testing.assert_allclose(curve[:, 0], p, rtol=1e-12)
        assert (curve[:, 1] <= curve[:, 0]).all()


def test_its_log_odds_are_the_weighted_mean_of_the_others():
    algorithms = (Fsrs6(), Fsrs6(fit="default"), Fsrs6(fit="s0"))
    z = [logit(fitted(each).predict(REVIEWS, FOLD.test)) for each in algorithms]
    p = fitted(Mixture(*algorithms)).predict(REVIEWS, FOLD.test)
    np.testing.assert_allclose(p, expit(0.5 * z[0] + 0.25 * z[1] + 0.25 * z[2]), rtol=1e-9)
    with pytest.raises(FitSkipped):
        fitted(Mixture(), rows=np.array([], np.int64))


def test_fits_and_records_of_members_are_those_of_the_mixture():
    seen = []

    class Noted(FlatModel):
        learned = Learned(note="so it is", fallback=True, converged=False)

    class Talkative(Constant):
        same_day: ClassVar[bool] = True

        def fit(self, reviews, rows, rng):
            return Noted(0.5)

        def refit(self, reviews, rows, rng, previous):
            seen.append(previous)
            return self.fit(reviews, rows, rng)

    mixture = Mixture(Talkative(), Hlr(), Average())
    before = fitted(mixture, rows=EARLY)
    after = mixture.refit(REVIEWS, FOLD.train, np.random.default_rng(0), before)
    assert seen == [before.models[0]]
    learned = after.learned
    assert (learned.note, learned.fallback, learned.converged) == ("fsrs7: so it is", True, False)
    assert [(part.name, part.n_train) for part in learned.parts] == [
        (name, len(FOLD.train)) for name in ("fsrs7", "logistic", "sbd")
    ]
