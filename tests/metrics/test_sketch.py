from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from srs_eval.metrics.sketch import (
    Sketch,
    SketchMetric,
    bare_predictions,
)
from srs_eval.metrics.tally import Tally, tally


@dataclass(frozen=True, slots=True)
class Recalls(SketchMetric):
    """As short as a metric of one's own can be."""

    name: ClassVar[str] = "recalls"
    better: ClassVar[str] = "neither"
    section: ClassVar[str] = "test"

    def of(self, sketch):
        return sketch.tally.n_recalled


def test_what_is_derived_from_a_tally_is_shared():
    sketch = Sketch({}, lambda: tally(np.array([0.5, 0.7]), np.array([True, False])))
    asked = []

    def length(counted: Tally) -> int:
        asked.append(1)
        return len(counted)

    assert [sketch.derived(length), sketch.derived(length)] == [2, 2]
    assert len(asked) == 1
    assert sketch.derived(len) == 2


def test_a_metric_of_ones_own_needs_a_name_and_one_method(one_user):
    predictions = one_user()
    assert Recalls()(predictions) == predictions.recalled.sum()
    assert Recalls().has_interval
    assert Recalls().needs == ()


def test_it_scores_nothing_as_undefined():
    nobody = bare_predictions(np.empty(0), np.empty(0, bool))
    assert math.isnan(Recalls()(nobody))
    assert math.isnan(Recalls().of_outcomes([], []))
