"""Predictions that were stored before the answers, as columns of tables."""

import numpy as np
import pandas as pd
import pytest

import srs_eval as se
from srs_eval.algorithms.baselines import Average, Recorded
from srs_eval.data.options import Columns
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.recorded import RecordedRows
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@pytest.fixture(scope="module")
def frame():
    rng, rows = np.random.default_rng(7), 3000
    ours, theirs = rng.uniform(0.5, 1, (2, rows))
    ours[rng.random(rows) < 0.2] = theirs[: rows // 2] = np.nan
    ours[:2] = 0, 1
    table = {"card": np.arange(rows) % 300, "rating": rng.integers(1, 5, rows)}
    times = pd.date_range("2024-01-01", periods=rows, freq="10min", tz="UTC")
    return pd.DataFrame({**table, "time": times, "ours": ours, "theirs": theirs})


def evaluated(frame, algorithm, protocol, p=("ours", "theirs")):
    source = ReviewTable(frame, Columns(p=p))
    return EvaluateUser(source, algorithm, protocol, seed=1, curves=0)("frame")


def test_recorded_predictions_are_scored_as_they_are_and_others_on_the_same_rows(frame):
    runs = [
        evaluated(frame, algorithm, RecordedRows())
        for algorithm in (Recorded("ours"), Recorded("theirs", "previous_review"), Average())
    ]
    ours, theirs, average = (run.predictions for run in runs)
    np.testing.assert_array_equal(ours.p, frame["ours"].to_numpy()[ours.row])
    np.testing.assert_array_equal(theirs.p, frame["theirs"].to_numpy()[theirs.row])
    everything = evaluated(frame, Average(), SrsBenchmark()).predictions
    has = frame[["ours", "theirs"]].notna().all(axis=1).to_numpy()[everything.row]
    for one, run in zip((ours, theirs, average), runs, strict=True):
        np.testing.assert_array_equal(one.row, everything.row[has])
        assert run.log.dropped["without a recorded prediction"] == np.count_nonzero(~has)
    # those that are not scored are learned from all the same
    np.testing.assert_array_equal(average.p, everything.p[has])


@pytest.mark.parametrize(
    ("algorithm", "protocol", "p", "status"),
    [
        (Recorded("ours"), SrsBenchmark(), ("ours",), "failed"),  # some are missing
        (Recorded(), RecordedRows(), ("ours", "theirs"), "failed"),  # which one?
        (Recorded("other"), RecordedRows(), ("ours",), "failed"),
        (Recorded(), RecordedRows(columns="other"), ("ours",), "failed"),
        (Recorded(), RecordedRows(), (), "skipped"),
        (Recorded(), SrsBenchmark(), (), "skipped"),
        (Recorded(), RecordedRows(columns="ours"), ("ours",), "ok"),
    ],
)
def test_a_run_without_the_predictions_it_needs_says_so(frame, algorithm, protocol, p, status):
    assert {fit.status for fit in evaluated(frame, algorithm, protocol, p).fits} == {status}


def test_no_algorithm_but_the_recorded_one_sees_recorded_predictions(frame):
    seen = []

    class Spy(Average):
        def fit(self, reviews, rows, rng):
            seen.append(reviews.recorded)
            return super().fit(reviews, rows, rng)

    evaluated(frame, Spy(), RecordedRows())
    assert seen
    assert set(map(type, seen)) == {type(None)}
    with pytest.raises(ConfigError, match="made='tomorrow'"):
        se.algorithm("recorded", made="tomorrow")
