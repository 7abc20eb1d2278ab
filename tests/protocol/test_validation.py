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


@dataclass(frozen=True)
class Watched(Average):
    """Remembers how much it was given."""

    lengths: list = field(default_factory=list)
    same_day = True

    def fit(self, reviews, rows, rng):
        self.lengths.append(len(reviews))
        model = super().fit(reviews, rows, rng)
        return WatchedModel(model, self.lengths)


@dataclass
class WatchedModel:
    model: object
    lengths: list
    parameters = ()

    def predict(self, reviews, rows):
        self.lengths.append(len(reviews))
        return self.model.predict(reviews, rows)


@pytest.mark.parametrize("same_day", [False, True])
@pytest.mark.parametrize("base", BASES, ids=lambda base: base.name)
def test_the_rows_before_the_first_scored_one_are_divided_in_time_and_no_other_is_seen(
    make_log, logs_of, base, same_day
):
    log = timed(make_log(cards=80))
    of_base = base(log, same_day=same_day)
    first_scored = min(fold.test[0] for fold in of_base.folds)
    before = of_base.folds[0].train
    for share in (0.5, 0.8):
        task = Validation(base, share=share)(log, same_day=same_day)
        (fold,) = task.folds
        np.testing.assert_array_equal([*fold.train, *fold.test], before)
        assert len(fold.train) == round(share * len(before))
        for column in ("log_row", "nth_review", "lapses", "last_rating"):
            of_log = getattr(of_base, column)[:first_scored]
            np.testing.assert_array_equal(getattr(task, column), of_log)
        assert len(task.reviews) == first_scored
    watched = Watched()
    evaluation = EvaluateUser(logs_of(log), watched, Validation(base), seed=1, curves=0)(log.user)
    assert [fit.reason for fit in evaluation.fits] == [""]
    with_same_day = base(log, same_day=True)
    assert 0 < max(watched.lengths) <= with_same_day.folds[0].test[0]
    assert set(evaluation.predictions.row) <= set(of_base.log_row[before])
