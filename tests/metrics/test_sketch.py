from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from srs_eval.errors import ScoreError
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.proper import Brier, LogLoss, NormalizedEntropy
from srs_eval.metrics.sketch import (
    ReviewMean,
    ReviewMeanSums,
    Sketch,
    SketchMetric,
    bare_predictions,
    exact_sketch,
    sums_of,
)
from srs_eval.metrics.sums import add_up
from srs_eval.metrics.tally import Tally, tally


@dataclass(frozen=True, slots=True)
class Recalls(SketchMetric):
    """As short as a metric of one's own can be."""

    name: ClassVar[str] = "recalls"
    better: ClassVar[str] = "neither"
    section: ClassVar[str] = "test"

    def of(self, sketch):
        return sketch.tally.n_recalled


def test_the_tally_is_made_once_and_only_if_it_is_asked_for():
    made = []

    def count():
        made.append(1)
        return tally(np.array([0.5]), np.array([True]))

    sketch = Sketch({}, count)
    assert not made
    assert sketch.tally is sketch.tally
    assert len(made) == 1


def test_what_is_derived_from_a_tally_is_shared():
    sketch = Sketch({}, lambda: tally(np.array([0.5, 0.7]), np.array([True, False])))
    asked = []

    def length(counted: Tally) -> int:
        asked.append(1)
        return len(counted)

    assert [sketch.derived(length), sketch.derived(length)] == [2, 2]
    assert len(asked) == 1
    assert sketch.derived(len) == 2


def test_metrics_that_name_equal_sums_share_them():
    sums = sums_of([LogLoss(), Brier(), NormalizedEntropy(), "no metric"])
    assert len(sums) == 1
    assert len(sums_of(default_panel())) < len(default_panel().names) / 3


def test_a_metric_of_ones_own_needs_a_name_and_one_method(one_user):
    predictions = one_user()
    assert Recalls()(predictions) == predictions.recalled.sum()
    assert Recalls().has_interval
    assert Recalls().needs == ()


def test_it_scores_nothing_as_undefined():
    nobody = bare_predictions(np.empty(0), np.empty(0, bool))
    assert math.isnan(Recalls()(nobody))
    assert math.isnan(Recalls().of_outcomes([], []))


def test_what_is_no_prediction_is_refused():
    with pytest.raises(ScoreError, match="outside"):
        Recalls().of_outcomes([1.5], [True])


def test_sketches_look_up_their_sums(one_user):
    predictions = one_user()
    sketch = exact_sketch(predictions, [LogLoss()])
    (total,) = add_up(LogLoss().needs, predictions)
    assert np.array_equal(sketch[LogLoss().needs[0]], total.values[0])
    assert sketch.tally.n == len(predictions)


def test_means_over_reviews_know_themselves():
    assert isinstance(LogLoss(), ReviewMean)
    assert not isinstance(NormalizedEntropy(), ReviewMean)
    assert ReviewMeanSums(LogLoss()) == ReviewMeanSums(LogLoss())
