import hashlib
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from object_store import object_store
from saved import assert_same

from srs_eval.data import prepare as preparing
from srs_eval.data.prepare import prepare
from srs_eval.data.table import INCOMPLETE, ReviewTable
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import Place
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

COLUMNS = {"user": "who", "deck": "deck", "duration_ms": "ms"}
READ = {"deck": "deck", "duration_ms": "ms"}
DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
ODD = ["ana", "7", "Ána", "ユーザー", 'o\'brien, "x"', "a/b", "..", "007", " b ", "1e3"]


def reviews(users=ODD, rows=400, seed=1):
    """A table in no order of users, in which times are the same for several rows."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": rng.choice(users, rows),
            "card": rng.integers(0, 30, rows).astype(str),
            "rating": rng.integers(1, 5, rows),
            "time": 1_500_000_000 + rng.integers(0, 400, rows) * 43_200,
            "deck": rng.choice(["", "1", "02"], rows),
            "ms": rng.choice([1500.25, 3000.1], rows),
            "other": "x",
        }
    )


def written(table, place):
    if place.suffix == ".parquet":
        table.to_parquet(place, index=False, row_group_size=37)
    else:
        table.to_csv(place, index=False)
    return place


def same_logs(one, other):
    """Compare all that two sources hold, whose users may be in another order."""
    assert {*one.users()} == {*other.users()}
    for user in one.users():
        assert_same(one.read(user), other.read(user))


@pytest.fixture
def small(monkeypatch):
    """Few rows in memory, so that users have several files."""
    monkeypatch.setattr(preparing, "_ROWS_IN_MEMORY", 70)


def late(data):
    """Make columns text in their last row only."""
    columns = {"deck": ["7", "07", "x"], "ms": [1, 2, 2.5], "who": [1, 2, "x"]}
    return data.assign(
        **{
            name: np.repeat(np.array(values, object), [200, 199, 1])
            for name, values in columns.items()
        }
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [("log.csv", reviews()), ("log.parquet", reviews()), ("late.csv", late(reviews()))],
)
def test_prepared_logs_are_those_of_the_table(tmp_path, small, name, data):
    path = written(data, tmp_path / name)
    table = ReviewTable(path, COLUMNS, duplicates="drop", time_zone="Asia/Tokyo")
    assert prepare(table, Place.of(tmp_path / "logs")) == (len(table.users()), 400)
    of = {"columns": READ, "duplicates": "drop", "time_zone": "Asia/Tokyo"}
    logs, user = ReviewTable(tmp_path / "logs", **of), table.users()[0]
    same_logs(logs, table)
    later = ReviewTable(tmp_path / "logs", **of, day_start_hour=12).read(user)
    assert not np.array_equal(later.day, logs.read(user).day)
    sample = ReviewTable(tmp_path / "logs", **of, sample=3)
    assert {*sample.users()} == {*ReviewTable(path, COLUMNS, sample=3).users()}
    assert "3 of" in sample.remarks()[0]


def test_the_files_of_a_folder_are_users_that_the_command_prepares(tmp_path, here):
    data, out = reviews(), f"out={tmp_path / 'logs'}"
    (tmp_path / "files").mkdir()
    for user in ("ana", "7", "Ána"):
        written(data[data["who"] == user], tmp_path / "files" / f"{user}.csv")
    words = ["data=csv", f"data.path={tmp_path / 'files'}"]
    # The second time it is not empty.
    for more, expected in (([out], 0), ([out], 1), (["data.first=1", "out=x"], 1)):
        assert status(*COMMANDS["prepare"], [*words, *more]) == expected
    assert status(*COMMANDS["prepare"], ["data=synthetic", "out=x"]) == 1
    logs = ReviewTable(tmp_path / "logs", duplicates="drop")
    assert [*logs.users()] == [7, "ana", "Ána"]
    table = ReviewTable(tmp_path / "files", duplicates="drop")
    one, other = table.read("ana"), logs.read("ana")
    np.testing.assert_array_equal(one.elapsed_seconds, other.elapsed_seconds)


def test_a_folder_that_is_not_whole_or_no_such_folder_is_refused(tmp_path):
    table = ReviewTable(written(reviews(), tmp_path / "log.csv"), COLUMNS, duplicates="drop")
    logs = tmp_path / "logs"
    prepare(table, Place.of(logs))
    (logs / INCOMPLETE).touch()
    for path in (logs, tmp_path / "nothing"):
        with pytest.raises(ReviewLogError):
            ReviewTable(path, READ).users()
    (logs / INCOMPLETE).unlink()
    with pytest.raises(ReviewLogError) as caught:
        ReviewTable(logs, {"rating": "grade"}).users()
    assert [(each.kind, each.column) for each in caught.value.violations] == [("missing", "grade")]
    (logs / "user=7").rename(logs / "user=__HIVE_DEFAULT_PARTITION__")
    with pytest.raises(ReviewLogError, match="expected a user"):
        ReviewTable(logs, READ).users()


def test_what_cannot_be_prepared_is_refused(tmp_path):
    out, path = Place.of(tmp_path / "logs"), tmp_path / "log.csv"
    for change in ({"who": [None]}, {"who": ["x" * 300]}, {"card": []}):
        data = {"who": ["a"], "card": [1], "rating": [3], "time": [1.5e9], **change}
        data = pd.DataFrame({name: values for name, values in data.items() if values})
        with pytest.raises(ReviewLogError):
            prepare(ReviewTable(written(data, path), {"user": "who"}), out)
    for table in (
        ReviewTable(path, {"user": "who", "deck": "user"}),
        ReviewTable(query=f"SELECT * FROM '{path}'"),
        ReviewTable(reviews()),
    ):
        with pytest.raises(ConfigError):
            prepare(table, out)
    assert not out.kind()


def test_the_statement_of_the_docs_writes_what_is_read(tmp_path, monkeypatch):
    sql = DOCS.read_text().partition("```sql duckdb\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    data = reviews([user for user in ODD if user == user.strip()], rows=2000)
    data["time"] = pd.to_datetime(data["time"] + data.index, unit="s", utc=True)
    with closing(duckdb.connect()) as connection:
        connection.register("given", data)
        connection.execute(
            "CREATE TABLE reviews AS SELECT who AS user_id, card AS card_id, rating, "
            "time AS reviewed_at FROM given"
        )
        connection.execute(sql)
    data.to_parquet("log.parquet", index=False)
    table, logs = ReviewTable("log.parquet", {"user": "who"}), ReviewTable("logs")
    assert len(logs.users()) == len(table.users())
    for user in table.users():
        digest = hashlib.sha256(f"a long secret{user}".encode()).hexdigest()[:32]
        one, other = table.read(user), logs.read(digest)
        for name in ("rating", "elapsed_days", "elapsed_seconds"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


def test_a_sorted_parquet_table_is_read_by_row_group(tmp_path, assert_same_logs):
    for data in (reviews(), reviews().sort_values("who", kind="stable")):
        data.to_parquet(tmp_path / "whole.parquet", index=False)
        data.to_parquet(tmp_path / "groups.parquet", index=False, row_group_size=37)
        whole, groups = (
            ReviewTable(tmp_path / f"{name}.parquet", COLUMNS, duplicates="drop")
            for name in ("whole", "groups")
        )
        assert_same_logs(groups, whole)
        data.loc[data.index[-1], "rating"] = 9
        data.to_parquet(tmp_path / "groups.parquet", index=False, row_group_size=37)
        with pytest.raises(ReviewLogError, match="row 400 has 9"):
            groups.read(data["who"].iloc[-1])


@pytest.mark.nightly
def test_addresses_have_the_logs_that_paths_have(tmp_path, assert_same_logs, small, monkeypatch):
    data = reviews()
    (tmp_path / "files").mkdir()
    for user in ("ana", "7"):
        own = data[data["who"] == user].drop_duplicates(["card", "time"])
        written(own, tmp_path / "files" / f"{user}.parquet")
    for name in ("log.csv", "log.parquet"):
        written(data, tmp_path / name)
    of = {"columns": COLUMNS, "duplicates": "drop"}
    with object_store(monkeypatch, "bucket") as store:
        for path in sorted(tmp_path.rglob("*.*")):
            with Place.of(f"s3://bucket/{path.relative_to(tmp_path).as_posix()}").writing() as file:
                file.write(path.read_bytes())
        store.failing = lambda number: "" if number % 10 else "503 Slow Down"
        table = ReviewTable(tmp_path / "log.parquet", **of)
        assert_same_logs(ReviewTable("s3://bucket/log.parquet", **of), table)
        assert_same_logs(ReviewTable("s3://bucket/files"), ReviewTable(tmp_path / "files"))
        csv = ReviewTable("s3://bucket/log.csv", **of)
        prepare(csv, Place.of("s3://bucket/logs"))
        logs = ReviewTable("s3://bucket/logs", READ, duplicates="drop")
        same_logs(logs, csv)
        for failure, source in (
            ("403 Access Denied", logs),
            ("", ReviewTable("s3://bucket/nothing")),
            ("", ReviewTable("s3://nobody/logs")),
        ):
            store.failing = lambda number, failure=failure: failure
            with pytest.raises(ReviewLogError):
                source.users()
