"""Rows for choosing options: none that the final score is of, nor anything after them."""

import numpy as np
import pytest
from timed import timed

from srs_eval.algorithms.half_life.hlr import Hlr
from srs_eval.errors import ConfigError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.prequential import Prequential
from srs_eval.protocol.refit import SrsBenchmarkRefit
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.validation import Validation

BASES = [
    SrsBenchmark(),
    SrsBenchmarkRefit(20),
    Prequential(first=30, every=10),
    SrsBenchmarkSecs(),
    SrsBenchmarkEqualised(),
]


def each_base(function):
    return pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)(function)


@each_base
@pytest.mark.parametrize("same_day", [False, True])
def test_no_scored_row_is_ever_among_the_rows_seen(make_log, base, same_day):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=same_day)
    scored = np.concatenate([of_base.log_row[fold.test] for fold in of_base.folds])
    task = Validation(base)(log, same_day=same_day)
    assert np.intersect1d(task.log_row, scored).size == 0
    assert task.log_row.max() < scored.min()
    assert all(len(column) == len(task.reviews) for column in (task.nth_review, task.lapses))


class Watched:
    """Remembers what it was given, and how it was asked."""

    same_day = True
    when = "previous_review"
    sees_truth = False

    def __init__(self):
        self.longest = 0

    def fit(self, reviews, rows, rng):
        self.longest = max(self.longest, len(reviews))
        return WatchedModel(self, Hlr(fit="default").fit(reviews, rows, rng))


class WatchedModel:
    parameters = ()

    def __init__(self, watched, model):
        self.watched, self.model = watched, model

    def predict(self, reviews, rows):
        self.watched.longest = max(self.watched.longest, len(reviews))
        return self.model.predict(reviews, rows)


@each_base
def test_what_an_algorithm_is_handed_ends_before_the_first_scored_row(make_log, logs_of, base):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=True)
    first_scored = min(fold.test[0] for fold in of_base.folds)
    watched = Watched()
    evaluation = EvaluateUser(logs_of(log), watched, Validation(base), seed=1, curves=0)(log.user)
    assert {fit.status for fit in evaluation.fits} == {"ok"}
    assert 0 < watched.longest <= first_scored
    assert set(evaluation.predictions.row) <= set(of_base.log_row[of_base.folds[0].train])


@each_base
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_first_part_in_time_is_learned_from_and_the_rest_scored(make_log, base, share):
    log = timed(make_log(cards=80))
    before = base(log, same_day=True).folds[0].train
    (fold,) = Validation(base, share=share)(log, same_day=True).folds
    np.testing.assert_array_equal([*fold.train, *fold.test], before)
    assert len(fold.train) == round(share * len(before))


def test_the_name_tells_the_share_and_the_base():
    made = Validation(SrsBenchmarkRefit(20), share=0.75)
    assert made.name == "validation75_of_srs_benchmark_refit20"
    assert made.version == "1 of 1"
    assert Validation().is_validation
    assert not hasattr(SrsBenchmark(), "is_validation")


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1, "most", True])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(ConfigError, match="expected a number between 0 and 1"):
        Validation(share=share)


def test_a_validation_of_a_validation_is_refused():
    with pytest.raises(ConfigError, match="base is a validation itself"):
        Validation(Validation())
