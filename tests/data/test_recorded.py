"""Predictions that were stored before the answers: as columns of tables, and by Clanki."""

import json

import numpy as np
import pandas as pd
import pytest
from anki_files import ROWS, collection, opened
from anki_files import read as read_collection

from srs_eval.algorithms.baselines import Average, Recorded
from srs_eval.data.frame import ReviewFrame
from srs_eval.data.table_options import Columns, Reading
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.protocol.recorded import RecordedRows
from srs_eval.protocol.srs_benchmark import SrsBenchmark


@pytest.fixture(scope="module")
def frame():
    rng, rows = np.random.default_rng(7), 3000
    times = pd.date_range("2024-01-01", periods=rows, freq="10min", tz="UTC")
    ours = np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(0.5, 1, rows))
    return pd.DataFrame(
        {
            "card": np.arange(rows) % 300,
            "rating": rng.integers(1, 5, rows),
            "time": times,
            "ours": ours,
            "theirs": np.r_[np.full(rows // 2, np.nan), rng.uniform(0.5, 1, rows - rows // 2)],
        }
    )


def evaluated(frame, algorithm, protocol, p=("ours", "theirs")):
    source = ReviewFrame(frame, Columns(p=p), reading=Reading())
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
    with pytest.raises(ConfigError):
        Recorded(made="tomorrow")


# The file in which Clanki keeps predictions, made after its public specification.
TABLES = {
    "fsrs": "search_stats_fsrs_review_retrievability",
    "rwkv": "search_stats_rwkv_review_retrievability",
    "common": "review_predictions",
}
COLUMNS = "revlog_id integer, prediction real, source text, updated_at integer, sample_role text"
IDS = [row[0] for row in ROWS]


def test_predictions_of_clanki_are_read_by_their_role_the_newest_of_each_review(
    tmp_path, transcript
):
    """Those of a final fit are not, but of frozen weights; words are ``TABLE:REVIEW,P,ROLE,…``."""
    path = tmp_path / "collection.retrievability-cache.sqlite"
    log_file = collection(tmp_path / "collection.anki2")

    def told_by(*words):
        path.unlink(missing_ok=True)
        with opened(path) as database:
            for word in words:
                name, _, given = word.partition(":")
                columns = f"{COLUMNS}, fold_index integer, algorithm integer"
                columns = "revlog_id integer" if given == "bare" else columns
                database.execute(f"create table if not exists {TABLES.get(name, name)} ({columns})")
                if given in ("", "bare"):
                    continue
                review, p, role, *others = given.split(",")
                values = {"source": "a", "updated_at": IDS[-1] + 1, "fold_index": 0}
                values |= {"revlog_id": [*IDS, 9][int(review)], "prediction": json.loads(p)}
                values |= {"sample_role": role, **dict(other.split("=") for other in others)}
                marks = ", ".join("?" * len(values))
                insert = f"insert into {TABLES[name]} ({', '.join(values)}) values ({marks})"
                database.execute(insert, [*values.values()])
        try:
            log = read_collection(log_file, predictions=path)
        except ReviewLogError as error:
            return "".join(f"{found.kind}: {found}\n" for found in error.violations)
        lines = [
            f"{name}: {column.tolist()}"
            for name, column in zip(log.recorded_names, log.recorded.T, strict=True)
        ]
        notes = [note for note in log.notes if "recorded predictions" in note]
        return "\n".join([*lines, *notes, ""]).replace(str(tmp_path), "…")

    transcript("predictions_of_clanki", told_by)
