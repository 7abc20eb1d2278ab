"""Rows for choosing options: none that the final score is of, nor anything after them."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from timed import timed

from srs_eval.algorithms.baselines import Average
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


EACH_BASE = pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)


@EACH_BASE
@pytest.mark.parametrize("same_day", [False, True])
def test_no_scored_row_is_ever_among_the_rows_seen(make_log, base, same_day):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=same_day)
    scored = np.concatenate([of_base.log_row[fold.test] for fold in of_base.folds])
    task = Validation(base)(log, same_day=same_day)
    assert np.intersect1d(task.log_row, scored).size == 0
    assert task.log_row.max() < scored.min()
    assert all(len(column) == len(task.reviews) for column in (task.nth_review, task.lapses))


@dataclass(frozen=True)
class Watched(Average):
    """Remembers how much it was given."""

    lengths: list = field(default_factory=list)
    same_day = True

    def fit(self, reviews, rows, rng):
        self.lengths.append(len(reviews))
        return WatchedModel(super().fit(reviews, rows, rng), self.lengths)


class WatchedModel:
    parameters = ()

    def __init__(self, model, lengths):
        self.model, self.lengths = model, lengths

    def predict(self, reviews, rows):
        self.lengths.append(len(reviews))
        return self.model.predict(reviews, rows)


@EACH_BASE
def test_what_an_algorithm_is_handed_ends_before_the_first_scored_row(make_log, logs_of, base):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=True)
    first_scored = min(fold.test[0] for fold in of_base.folds)
    watched = Watched()
    evaluation = EvaluateUser(logs_of(log), watched, Validation(base), seed=1, curves=0)(log.user)
    assert [fit.reason for fit in evaluation.fits] == [""]
    assert 0 < max(watched.lengths) <= first_scored
    assert set(evaluation.predictions.row) <= set(of_base.log_row[of_base.folds[0].train])


@EACH_BASE
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_first_part_in_time_is_learned_from_and_the_rest_scored(make_log, base, share):
    log = timed(make_log(cards=80))
    before = base(log, same_day=True).folds[0].train
    (fold,) = Validation(base, share=share)(log, same_day=True).folds
    np.testing.assert_array_equal([*fold.train, *fold.test], before)
    assert len(fold.train) == round(share * len(before))
