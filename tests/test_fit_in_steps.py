"""Optional methods: fits that start from the fit before, fits in steps, and how they are found."""

import zlib

import numpy as np
import pytest
from invented import Told
from offenders import Learns

from srs_eval.algorithms.algorithm import Learned, WarmStarting
from srs_eval.algorithms.baselines import Average
from srs_eval.algorithms.recurrent.lstm import Lstm, LstmPublished
from srs_eval.errors import FitError, FitSkipped
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

WARM = SrsBenchmark(refits=8)


class Continues(WarmStarting):
    """Notes how its models are learned; the fits of some numbers end in something odd."""

    def __init__(self, odd=None, *, at=()):
        self.odd, self.at, self.calls = odd, at, []

    def fit(self, reviews, rows, rng, previous=None):
        assert previous is None or previous is self.model
        self.calls.append(("refit" if previous else "fit", len(reviews), len(rows), rng.random()))
        is_odd = len(self.calls) - 1 in self.at
        if is_odd and isinstance(self.odd, Exception):
            raise self.odd
        self.model = self.odd if is_odd else Told(parameters=(0.0,) * len(self.calls))
        return self.model

    refit = fit

    @property
    def ways(self):
        return [how for how, *_ in self.calls]


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
    assert [len(fit.parameters) for fit in fits] == [*range(9, 17)]
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
    assert algorithm.ways == ["fit", "fit", "refit", "refit"] * 2


def test_the_loss_on_test_rows_is_noted_after_each_step_unless_it_starts_from_others(logs_of):
    algorithm = Learns()
    result = evaluated(logs_of(7), algorithm)
    p, recalled = result.predictions.p, result.predictions.recalled
    (fit,) = result.fits
    assert (len(fit.test_log_loss), 0 <= fit.seconds < 60) == (2, True)
    assert fit.test_log_loss[-1] == pytest.approx(-np.log(np.where(recalled, p, 1 - p)).mean())
    algorithm.pretrained = True
    assert evaluated(logs_of(1), algorithm).fits[0].test_log_loss == ()


@pytest.mark.parametrize("algorithm", [Lstm(hidden=2, steps=4), LstmPublished(hidden=2, epochs=2)])
def test_that_a_network_is_asked_for_the_loss_on_test_rows_changes_nothing(logs_of, algorithm):
    class Unseen(Average):
        same_day = algorithm.same_day

        def fit(self, reviews, rows, rng):
            return algorithm.fit(reviews, rows, rng)

    open_to_view, hidden = (evaluated(logs_of(1), each) for each in (algorithm, Unseen()))
    np.testing.assert_array_equal(open_to_view.predictions.p, hidden.predictions.p)
    (one,), (other,) = open_to_view.fits, hidden.fits
    assert (one.parameters, one.training_loss) == (other.parameters, other.training_loss)
    assert len(one.test_log_loss) == len(one.training_loss) > 1
    assert other.test_log_loss == ()
