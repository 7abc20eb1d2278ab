"""Fits with a callback after each step: the same scores, and an early end on request."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from srs_eval.algorithms.baselines import Average
from srs_eval.checks import check_last_step_is_the_fit
from srs_eval.checks.assertions import CheckFailed
from srs_eval.errors import Pruned
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.nouns import FittingInSteps
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

STEPS = 4


@dataclass(frozen=True)
class Rate:
    """A model that predicts one probability for all reviews."""

    p: float

    @property
    def parameters(self):
        return (self.p,)

    def predict(self, reviews, rows):
        return np.full(len(rows), self.p)


class Walks(FittingInSteps):
    """An honest algorithm that goes towards the mean of the training rows, and errs a little."""

    def __init__(self):
        self.taken = 0

    def fit(self, reviews, rows, rng):
        *_, last = self.fit_in_steps(reviews, rows, rng)
        return last

    def fit_in_steps(self, reviews, rows, rng):
        mean, p = (reviews.recalled[rows].mean() if len(rows) else 0.9), 0.5
        for _ in range(STEPS):
            self.taken += 1
            p = 0.05 + 0.9 * ((p + mean) / 2 + 0.01 * rng.random())
            yield Rate(p)


class Stop(Pruned):
    """What a watch raises."""


def evaluated(source, algorithm, *, watch=None, protocol=None):
    work = EvaluateUser(source, algorithm, protocol or Validation(SrsBenchmark()), 0, 0, watch)
    return work(source.users()[0])


def test_being_watched_changes_nothing_that_comes_of_a_user(logs_of):
    source, seen = logs_of(1), []
    alone = evaluated(source, Walks())
    watched = evaluated(source, Walks(), watch=lambda step, p: seen.append((step, p)))
    assert [step for step, _ in seen] == [1, 2, 3, 4]
    assert len({float(predictions.p[0]) for _, predictions in seen}) == STEPS
    for field in ("p", "row", "recalled", "train_rate"):
        expected = getattr(alone.predictions, field)
        np.testing.assert_array_equal(getattr(watched.predictions, field), expected)
        if field != "p":
            np.testing.assert_array_equal(getattr(seen[0][1], field), expected)
    np.testing.assert_array_equal(seen[-1][1].p, alone.predictions.p)
    for one, other in zip(alone.fits, watched.fits, strict=True):
        assert replace(one, seconds=0.0) == replace(other, seconds=0.0)


def test_what_a_watch_raises_ends_the_training_and_is_no_failed_fit(logs_of):
    algorithm = Walks()

    def watch(step, predictions):
        if step == 2:
            raise Stop

    with pytest.raises(Stop):
        evaluated(logs_of(1), algorithm, watch=watch)
    assert algorithm.taken == 2


def test_nothing_is_done_in_steps_where_nobody_watches(logs_of):
    class OnlyFits(Walks):
        def fit(self, reviews, rows, rng):
            return Rate(0.8)

    assert evaluated(logs_of(1), OnlyFits()).fits[0].parameters == (0.8,)


def test_a_fit_without_steps_shows_none(logs_of):
    class GoesOn(Walks):
        def refit(self, reviews, rows, rng, previous):
            return previous

    seen = []
    watch = lambda step, p: seen.append(step)  # noqa: E731
    assert evaluated(logs_of(1), Average(), watch=watch).predictions is not None
    assert seen == []
    evaluated(logs_of(1), GoesOn(), watch=watch, protocol=SrsBenchmarkRefit(refits=6))
    assert seen == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], "user 1, fold 0: fit_in_steps yields no model"),
        ([Rate(0.5), Rate(1.5)], "are no probabilities"),
        ([Rate(0.5), None], "AttributeError"),
    ],
)
def test_steps_that_do_not_work_are_a_failed_fit(logs_of, steps, told):
    class Fails(Walks):
        def fit_in_steps(self, reviews, rows, rng):
            yield from steps

    done = evaluated(logs_of(1), Fails(), watch=lambda step, p: None)
    assert done.predictions is None
    assert done.fits[0].status == "failed"
    assert told in done.fits[0].reason


# ---- planted


class EndsOneStepEarly(Walks):
    def fit(self, reviews, rows, rng):
        return list(self.fit_in_steps(reviews, rows, rng))[-2]


class YieldsNothing(Walks):
    def fit(self, reviews, rows, rng):
        return Rate(0.9)

    def fit_in_steps(self, reviews, rows, rng):
        return iter(())


class YieldsOneModelAgainAndAgain(Walks):
    def fit_in_steps(self, reviews, rows, rng):
        model = Rate(0.5)
        for step in super().fit_in_steps(reviews, rows, rng):
            object.__setattr__(model, "p", step.p)
            yield model


class ForgetsAParameter(Walks):
    def fit(self, reviews, rows, rng):
        return list(Walks().fit_in_steps(reviews, rows, rng))[-1]

    def fit_in_steps(self, reviews, rows, rng):
        class Silent(Rate):
            parameters = ()

        for step in super().fit_in_steps(reviews, rows, rng):
            yield Silent(step.p)


@pytest.mark.parametrize(
    ("offender", "lesson"),
    [
        (YieldsOneModelAgainAndAgain, "Give each model a copy"),
        (ForgetsAParameter, "parameters differ after the last step"),
        (EndsOneStepEarly, "end at the same step"),
        (YieldsNothing, "yields nothing"),
    ],
)
def test_steps_that_lead_elsewhere_than_the_fit_are_caught(offender, lesson):
    with pytest.raises(CheckFailed) as caught:
        check_last_step_is_the_fit(offender())
    assert str(caught.value).startswith(f"{offender.__name__}: ")
    assert lesson in str(caught.value)


@pytest.mark.parametrize("algorithm", [Walks(), Average()])
def test_honest_steps_and_none_pass(algorithm):
    check_last_step_is_the_fit(algorithm)
