"""Optional methods: fits that start from the fit before, fits in steps, and how they are found."""

import zlib

import numpy as np
import pytest
from invented import Told

from srs_eval.algorithms.algorithm import FittingInSteps, Learned, WarmStarting
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.recurrent.lstm import Lstm, LstmPublished
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.checks import CheckFailed, check_repetition
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

WARM = SrsBenchmark(refits=8)
STEPS = 4


class Continues(WarmStarting):
    """Notes how each of its models was learned; the given fits end in something odd."""

    def __init__(self, odd=None, *, at=()):
        self.odd, self.at, self.calls = odd, at, []

    def fit(self, reviews, rows, rng):
        return self.noted(("fit", len(reviews), len(rows), rng.random()))

    def refit(self, reviews, rows, rng, previous):
        assert previous is self.model
        return self.noted(("refit", len(reviews), len(rows), rng.random()))

    def noted(self, call):
        self.calls.append(call)
        is_odd = len(self.calls) - 1 in self.at
        if is_odd and isinstance(self.odd, Exception):
            raise self.odd
        self.model = self.odd if is_odd else Told(parameters=(0.0,) * len(self.calls))
        return self.model

    @property
    def ways(self):
        return [how for how, *_ in self.calls]


class Walks(FittingInSteps):
    """Goes towards the mean of the training rows, and errs a little; steps and fit may be others.

    `change` makes other steps of its own, and `fitted` is what `fit` returns.
    """

    def __init__(self, change=lambda steps: steps, fitted=None):
        self.taken, self.change, self.fitted = 0, change, fitted

    def fit(self, reviews, rows, rng):
        return self.fitted or list(self.walked(reviews, rows, rng))[-1]

    def fit_in_steps(self, reviews, rows, rng):
        yield from self.change(self.walked(reviews, rows, rng))

    def walked(self, reviews, rows, rng):
        mean, p = (reviews.recalled[rows].mean() if len(rows) else 0.9), 0.5
        for _ in range(STEPS):
            self.taken += 1
            p = 0.05 + 0.9 * ((p + mean) / 2 + 0.01 * rng.random())
            yield Told(p, (p,))


def evaluated(source, algorithm, *, protocol=None):
    work = EvaluateUser(source, algorithm, protocol or Validation(SrsBenchmark()), 0, 0)
    return [work(user) for user in source.users()][-1]


def test_each_fit_starts_from_the_one_before_where_the_protocol_refits_often(logs_of):
    source, algorithm = logs_of(1, 2), Continues()
    fits = evaluated(source, algorithm, protocol=WARM).fits
    drawn = [np.random.default_rng([0, zlib.crc32(b"1"), number]).random() for number in range(8)]
    assert algorithm.calls[:8] == [
        ("refit" if fold.number else "fit", fold.train[-1] + 1, len(fold.train), number)
        for fold, number in zip(WARM(source.read(1), same_day=False).folds, drawn, strict=True)
    ]
    assert algorithm.ways[8:] == algorithm.ways[:8]  # each user starts from nothing
    assert [len(fit.parameters) for fit in fits] == [9, 10, 11, 12, 13, 14, 15, 16]
    for protocol in (SrsBenchmark(refits=8, warm_start=False), SrsBenchmark()):
        algorithm = Continues()
        evaluated(logs_of(1), algorithm, protocol=protocol)
        assert algorithm.ways == ["fit"] * protocol.folds


@pytest.mark.parametrize(
    "odd",
    [
        *(FitSkipped("too few"), FitError("no"), ZeroDivisionError()),
        *(Told(np.nan), Told(learned=Learned(fallback=True))),
    ],
)
def test_after_a_fit_that_did_not_work_the_next_starts_from_nothing(logs_of, odd):
    algorithm = Continues(odd, at=(0, 3, 4))
    fits = evaluated(logs_of(1), algorithm, protocol=WARM).fits
    assert [fit.status == "ok" for fit in fits] == [n not in (0, 3, 4) for n in range(8)]
    how = ["fit", "fit", "refit", "refit", "fit", "fit", "refit", "refit"]
    assert algorithm.ways == how


def test_the_loss_on_test_rows_is_noted_after_each_step_unless_it_starts_from_others(logs_of):
    fits = evaluated(logs_of(1), Walks()).fits
    assert [len(fit.test_log_loss) for fit in fits] == [STEPS] * len(fits)
    p, recalled = (
        getattr(evaluated(logs_of(1), Walks()).predictions, n) for n in ("p", "recalled")
    )
    loss = -np.log(np.where(recalled, p, 1 - p)).mean()
    assert fits[0].test_log_loss[-1] == pytest.approx(loss)
    begun = Walks(fitted=Told(0.8, (0.8,)))
    begun.pretrained = True
    (fit, *_) = evaluated(logs_of(1), begun).fits
    assert (begun.taken, fit.parameters, fit.test_log_loss) == (0, (0.8,), ())


class Unseen:
    """An algorithm of which no step is seen."""

    def __init__(self, algorithm):
        self.algorithm, self.same_day = algorithm, algorithm.same_day

    def fit(self, reviews, rows, rng):
        return self.algorithm.fit(reviews, rows, rng)


@pytest.mark.parametrize(
    "algorithm",
    [Lstm(hidden=2, steps=4), LstmPublished(hidden=2, epochs=2)],
    ids=lambda algorithm: algorithm.name,
)
def test_that_a_network_is_asked_for_the_loss_on_test_rows_changes_nothing(logs_of, algorithm):
    source = logs_of(1)
    seen, unseen = (evaluated(source, each) for each in (algorithm, Unseen(algorithm)))
    np.testing.assert_array_equal(seen.predictions.p, unseen.predictions.p)
    for shown, hidden in zip(seen.fits, unseen.fits, strict=True):
        assert shown.parameters == hidden.parameters
        assert shown.training_loss == hidden.training_loss
        assert len(shown.test_log_loss) == len(shown.training_loss) > 1
        assert hidden.test_log_loss == ()


def test_steps_that_do_not_work_or_lead_elsewhere_than_the_fit_are_told(logs_of):
    for steps, reason in (
        ([], "yields no model"),
        ([Told(0.5), Told(1.5)], "3 of 3 predictions are no probabilities"),
        ([Told(0.5), None], "has no attribute 'predict'"),
    ):
        done = evaluated(logs_of(1), Walks(lambda _, to=steps: to))
        assert (done.predictions, done.fits[0].status) == (None, "failed")
        assert reason in done.fits[0].reason
    others = {
        "learned differs .* last step": lambda steps: [Told(step.p) for step in steps],
        "prediction .* after the last step": lambda steps: list(steps)[:-1],
        "raises RuntimeError": lambda steps: [],
    }
    for reason, change in others.items():
        with pytest.raises(CheckFailed, match=reason):
            check_repetition(Walks(change))
    for honest in (Walks(), Average()):
        check_repetition(honest)
