"""Published log losses of one real user, under the public protocol."""

import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from srs_eval.algorithms.baselines import Average, Constant
from srs_eval.algorithms.fsrs6 import Fsrs6
from srs_eval.algorithms.hlr import Hlr
from srs_eval.algorithms.moving_average import MovingAverage
from srs_eval.algorithms.sm2 import Sm2
from srs_eval.data.schema import reviews_from_columns
from srs_eval.protocol.srs_benchmark import SrsBenchmark

ROOT = Path(__file__).parents[2]
LOG = ROOT / "../shared/data/py-fsrs-josh/revlogs_benchmark_schema.csv"
GOLDEN = {
    entry["algorithm"]: entry
    for entry in json.loads((ROOT / "tests/golden/training_josh.json").read_text())["algorithms"]
}


@pytest.fixture(scope="module")
def josh():
    if not LOG.exists():
        pytest.skip(f"the log of this user is not here: {LOG.name}")
    table = pd.read_csv(LOG)
    return reviews_from_columns(
        user="josh",
        source=LOG.name,
        card=table["card_id"],
        rating=table["rating"],
        day=table["day_offset"],
        elapsed_days=table["elapsed_days"],
        elapsed_seconds=table["elapsed_seconds"],
        duration_ms=table["duration"],
    )


def log_loss(p, recalled):
    return float(-np.mean(np.log(np.where(recalled, p, 1 - p))))


def evaluated(algorithm, reviews):
    """Predictions and outcomes of each fold."""
    task = SrsBenchmark()(reviews, same_day=algorithm.same_day)
    for fold in task.folds:
        model = algorithm.fit(task.reviews, fold.train, np.random.default_rng(0))
        yield model.predict(task.reviews, fold.test), task.reviews.recalled[fold.test]


@pytest.mark.parametrize(
    ("algorithm", "name", "tolerance"),
    [
        (Average(), "AVG", 1e-6),
        (Constant(), "90%", 1e-6),
        (MovingAverage(), "MOVING-AVG", 1e-6),
        (Sm2(), "SM-2", 1e-6),
        (Fsrs6(), "FSRS-6 default", 1e-5),
    ],
)
def test_what_is_not_trained_equals_the_published_numbers(josh, algorithm, name, tolerance):
    golden = GOLDEN[name]
    folds = list(evaluated(algorithm, josh))
    assert sum(len(p) for p, _ in folds) == golden["pooled"]["n"]
    for (p, recalled), expected in zip(folds, golden["folds"], strict=True):
        assert log_loss(p, recalled) == pytest.approx(expected["LogLoss"], abs=tolerance)
        np.testing.assert_allclose(p[:5], expected["first_predictions"], atol=1e-6)
    pooled = log_loss(*(np.concatenate(parts) for parts in zip(*folds, strict=True)))
    assert pooled == pytest.approx(golden["pooled"]["LogLoss"], abs=tolerance)


def test_trained_half_life_regression_is_near_the_published_number(josh):
    folds = list(evaluated(Hlr(), josh))
    pooled = log_loss(*(np.concatenate(parts) for parts in zip(*folds, strict=True)))
    assert pooled == pytest.approx(GOLDEN["HLR"]["pooled"]["LogLoss"], abs=0.005)


def test_predicting_a_whole_log_takes_milliseconds(josh):
    model = Fsrs6().fit(josh, np.array([], np.int64), np.random.default_rng(0))
    rows = np.arange(len(josh))
    model.predict(josh, rows)
    began = time.process_time()
    model.predict(josh, rows)
    # Some 200 ns a review; the bound only notices a loop over reviews.
    assert (time.process_time() - began) / len(josh) < 5e-6
