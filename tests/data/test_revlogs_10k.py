"""The layout of the data set of 10,000 users, its download, and the public logs in it."""

from functools import partial

import pandas as pd
import pytest

from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.errors import ReviewLogError

LOG = pd.DataFrame(
    {
        "card_id": [5, 5, 6, 5, 5],
        "day_offset": [0, 0, 1, 3, 7],
        "rating": [3, 1, 4, 2, 3],
        "state": [0, 1, 0, 2, 2],
        "duration": [900, 800, 700, 600, 500],
        "elapsed_days": [-1, 0, -1, 3, 4],
        "elapsed_seconds": [-1, 60, -1, 259_200, 345_600],
    }
)


@pytest.fixture
def folder(tmp_path):
    """Three users in the layout of the data set."""
    for user in (1, 2, 10):
        write(tmp_path / "anki" / f"revlogs/user_id={user}/data.parquet", LOG.iloc[: user + 1])
    return tmp_path / "anki"


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(path)
    return path


def test_users_are_named_by_number(folder, monkeypatch):
    for path in (folder, folder / "revlogs"):
        source = RevlogsFolder(path)
        assert source.users() == (1, 2, 10)
        assert (source.name, source.location) == ("anki", str(path))
    assert RevlogsFolder(folder, [10, 1]).users() == (10, 1)
    log = source.read(10)
    assert (log.user, log.left_out, log.deck, log.preset) == (10, {}, None, None)
    for name in LOG:
        noun = {"card_id": "card", "day_offset": "day", "duration": "duration_ms"}.get(name, name)
        assert getattr(log, noun).tolist() == LOG[name].tolist()
    monkeypatch.chdir(folder / "revlogs")  # it is known from inside
    assert len(RevlogsFolder(".").read(10)) == len(log)


@pytest.mark.parametrize(
    ("rating", "days", "seconds", "left_out"),
    [
        ([3, 0, 4, 2, 7], [-1, -1, 3], [-1, -1, 259_260], 2),
        # A first row that is no answer makes the next one the first.
        ([0, 1, 4, 2, 3], [-1, -1, 3, 4], [-1, -1, 259_200, 345_600], 1),
    ],
)
def test_rows_that_are_no_answers_are_counted_and_their_intervals_joined(
    tmp_path, rating, days, seconds, left_out
):
    table = LOG.assign(rating=rating, deck_id=7, preset_id=[1, 1, 2, 1, 1])
    got = RevlogsFolder(write(tmp_path / "log.parquet", table)).read("log")
    assert got.elapsed_days.tolist() == days
    assert got.elapsed.tolist() == [max(day, 0) for day in days]
    assert got.elapsed_seconds.tolist() == seconds
    assert got.row.tolist() == list(range(len(days)))
    assert got.deck.tolist() == [7] * len(days)
    assert sorted(got.preset.tolist()) == [*[1] * (len(days) - 1), 2]
    assert got.left_out == {"rating outside 1 to 4": left_out}


def test_a_file_of_several_users_is_read_and_bad_rows_are_told_by_file_row_and_column(tmp_path):
    bad = LOG.assign(duration=[900, 800, 700, -600, 500], user_id=3)
    table = pd.concat([LOG.assign(user_id=8), bad])
    table.to_csv(tmp_path / "log.csv", index=False)
    write(tmp_path / "log.parquet", table.astype({"card_id": str}))
    for file in (tmp_path / "log.csv", tmp_path / "log.parquet"):
        source = RevlogsFolder(file)
        assert source.users() == (8, 3)
        assert len(source.read(8)) == 5
        with pytest.raises(ReviewLogError) as caught:
            source.read(3)
        assert str(file) in caught.value.source
        (found,) = caught.value.violations
        assert (found.kind, found.column, found.rows) == ("out_of_range", "duration", ("row 9",))
        assert RevlogsFolder(file, 3).users() == (3,)


def test_missing_users_paths_and_columns_are_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    write(folder / "revlogs/user_id=1/data.parquet", LOG.rename(columns={"rating": "ratng"}))
    write(folder / "cards/user_id=2/data.parquet", pd.DataFrame({"card_id": [5]}))
    refused = {
        "ankii: no such": RevlogsFolder(tmp_path / "ankii").users,
        "no users in": RevlogsFolder(tmp_path / "empty").users,
        "no user 3, 4": RevlogsFolder(folder, "1-10").users,
        "no user 7": partial(RevlogsFolder(folder).read, 7),
        "no column 'rating'": partial(RevlogsFolder(folder).read, 1),
        "no column 'deck_id'": partial(RevlogsFolder(folder).read, 2),
    }
    for said, call in refused.items():
        with pytest.raises(ReviewLogError, match=said):
            call()


def test_decks_and_presets_are_looked_up_where_they_are_told(folder):
    cards = pd.DataFrame({"card_id": [5, 9], "note_id": [1, 2], "deck_id": [30, 40]})
    write(folder / "cards/user_id=10/data.parquet", cards)
    log = RevlogsFolder(folder / "revlogs").read(10)
    assert log.deck.tolist() == [30, 30, -1, 30, 30]
    assert log.note.tolist() == [1, 1, -1, 1, 1]
    assert log.preset is None
    decks = pd.DataFrame({"deck_id": [30, 40], "parent_id": [0, 0], "preset_id": [2, 3]})
    write(folder / "decks/user_id=10/data.parquet", decks)
    log = RevlogsFolder(folder).read(10)
    assert log.preset.tolist() == [2, 2, -1, 2, 2]
    assert RevlogsFolder(folder).read(2).deck is None
    write(folder / "cards/user_id=10/data.parquet", cards.drop(columns="note_id"))
    assert RevlogsFolder(folder).read(10).note is None
