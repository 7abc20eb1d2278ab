"""The file in which Clanki keeps predictions, made after its public specification."""

import numpy as np
import pytest
from anki_files import ROWS, collection, opened, read

from srs_eval.errors import ReviewLogError

FSRS = "search_stats_fsrs_review_retrievability"
RWKV = "search_stats_rwkv_review_retrievability"
COMMON = "review_predictions"
COLUMNS = "revlog_id integer, prediction real, source text, updated_at integer, sample_role text"
IDS = [row[0] for row in ROWS]
LATER = IDS[-1] + 1


@pytest.fixture
def recorded(tmp_path):
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
        return read(collection(tmp_path / "collection.anki2"), predictions=path)

    return reading


def row(review, p, role, *, at=LATER, fold=0, source="a"):
    return (IDS[review], p, source, at, role, fold)


def test_predictions_of_a_final_fit_are_counted_and_not_read_but_of_frozen_weights(recorded):
    log = recorded(
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


def test_of_several_predictions_of_a_review_the_newest_counts(recorded):
    role = "validation_fold"
    rows = [row(0, 0.1, role, at=5), row(0, 0.2, role, at=6), row(1, 0.3, role, at=6, fold=1)]
    rows += [row(1, 0.4, role, at=6), row(2, 0.5, role, source="b"), row(2, 0.6, role)]
    np.testing.assert_array_equal(recorded({FSRS: rows}).recorded[:3, 0], [0.2, 0.3, 0.6])


def test_several_algorithms_of_the_common_table_keep_their_numbers_and_roles(recorded):
    rows = [(*row(0, 0.1, "final_fit"), 1), (*row(1, 0.2, "test_fold"), 2)]
    log = recorded({COMMON: rows})
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
def test_what_clanki_does_not_write_is_refused(recorded, tables, columns, kind):
    with pytest.raises(ReviewLogError) as caught:
        recorded(tables, columns)
    assert [found.kind for found in caught.value.violations] == [kind]
