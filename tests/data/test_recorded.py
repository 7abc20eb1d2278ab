"""Predictions that were stored before the answers: as columns of tables, and by Clanki."""

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


@pytest.mark.parametrize("others", [{"p": ["p", "p"]}, {"p": None}, {"day": "day"}])
def test_columns_that_do_not_go_together_are_refused(others):
    with pytest.raises(ConfigError):
        Columns(**{"p": "p", "recorded_at": "stored", **others})


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
FSRS = "search_stats_fsrs_review_retrievability"
RWKV = "search_stats_rwkv_review_retrievability"
COMMON = "review_predictions"
COLUMNS = "revlog_id integer, prediction real, source text, updated_at integer, sample_role text"
IDS = [row[0] for row in ROWS]
LATER = IDS[-1] + 1


@pytest.fixture
def clanki(tmp_path):
    """Read a collection beside a file with such rows."""

    def reading(tables, columns=COLUMNS):
        path = tmp_path / "collection.retrievability-cache.sqlite"
        with opened(path) as database:
            for table, rows in tables.items():
                more = ", algorithm integer" if table == COMMON else ""
                database.execute(f"create table {table} ({columns}, fold_index integer{more})")
                for row in rows:
                    marks = ", ".join("?" * len(row))
                    database.execute(f"insert into {table} values ({marks})", row)
        return read_collection(collection(tmp_path / "collection.anki2"), predictions=path)

    return reading


def row(review, p, role, *, at=LATER, fold=0, source="a"):
    return (IDS[review], p, source, at, role, fold)


def test_predictions_of_a_final_fit_are_counted_and_not_read_but_of_frozen_weights(clanki):
    log = clanki(
        {
            FSRS: [
                row(0, 0.1, "final_fit"),
                row(1, 0.2, "validation_fold"),
                row(2, 0.3, "post_optimization", at=1),
                row(2, 0.9, "final_fit"),
            ],
            RWKV: [row(0, 0.5, "final_fit"), row(1, 0.6, "test_fold")],
            COMMON: [(*row(3, 0.7, "final_fit"), 1), (9, 0.7, "a", 1, "final_fit", 0, 1)],
        }
    )
    assert log.recorded_names == ("fsrs7", "rwkv_instant", "rwkv_curve")
    nan = np.nan
    expected = [[nan, 0.2, 0.3, nan], [0.5, 0.6, nan, nan], [nan, nan, nan, 0.7]]
    np.testing.assert_array_equal(log.recorded.T, expected)
    fsrs, _, curve = (note for note in log.notes if "recorded predictions" in note)
    assert "2 of 4 reviews" in fsrs
    assert "(1 computed later than the answer)" in fsrs
    assert "2 of a final fit" in fsrs
    assert "1 of reviews that are not in the log" in curve


def test_of_several_predictions_of_a_review_the_newest_counts(clanki):
    role = "validation_fold"
    rows = [row(0, 0.1, role, at=5), row(0, 0.2, role, at=6), row(1, 0.3, role, at=6, fold=1)]
    rows += [row(1, 0.4, role, at=6), row(2, 0.5, role, source="b"), row(2, 0.6, role)]
    np.testing.assert_array_equal(clanki({FSRS: rows}).recorded[:3, 0], [0.2, 0.3, 0.6])


def test_several_algorithms_of_the_common_table_keep_their_numbers_and_roles(clanki):
    rows = [(*row(0, 0.1, "final_fit"), 1), (*row(1, 0.2, "test_fold"), 2)]
    log = clanki({COMMON: rows})
    assert log.recorded_names == ("algorithm_1", "algorithm_2")
    np.testing.assert_array_equal(np.isfinite(log.recorded).sum(axis=0), [0, 1])


@pytest.mark.parametrize(
    ("tables", "columns", "kind"),
    [
        ({FSRS: [row(0, 1.5, "validation_fold")]}, COLUMNS, "out_of_range"),
        ({FSRS: [row(0, None, "validation_fold")]}, COLUMNS, "out_of_range"),
        ({FSRS: [row(0, "high", "validation_fold")]}, COLUMNS, "out_of_range"),
        ({FSRS: []}, COLUMNS, "empty"),
        ({"cards": []}, COLUMNS, "empty"),
        ({FSRS: []}, "revlog_id integer", "missing"),
    ],
)
def test_what_clanki_does_not_write_is_refused(clanki, tables, columns, kind):
    with pytest.raises(ReviewLogError) as caught:
        clanki(tables, columns)
    assert [found.kind for found in caught.value.violations] == [kind]
