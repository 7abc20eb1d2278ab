import hashlib
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from object_store import object_store
from saved import assert_same

from srs_eval.data import table as tables
from srs_eval.data.table import INCOMPLETE, ReviewTable, prepare
from srs_eval.errors import ConfigError, ReviewLogError
from srs_eval.places import Place
from srs_eval.runs.commands import COMMANDS
from srs_eval.runs.words import status

COLUMNS = {"user": "who", "deck": "deck", "duration_ms": "ms"}
READ = {"deck": "deck", "duration_ms": "ms"}
DROP = {"duplicates": "drop"}
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
    monkeypatch.setattr(tables, "_ROWS_IN_MEMORY", 70)


def late(data):
    """Make columns text in their last row only."""
    odd = {"deck": ["7", "07", "x"], "ms": [1, 2, 2.5], "who": [1, 2, "x"]}
    return data.assign(**{n: np.repeat(np.array(v, object), [200, 199, 1]) for n, v in odd.items()})


@pytest.mark.parametrize(
    ("name", "data"),
    [("log.csv", reviews()), ("log.parquet", reviews()), ("late.csv", late(reviews()))],
)
def test_prepared_logs_are_those_of_the_table(tmp_path, small, name, data):
    table = ReviewTable(written(data, tmp_path / name), COLUMNS, **DROP, time_zone="Asia/Tokyo")
    assert prepare(table, Place.of(tmp_path / "logs")) == (len(table.users()), 400)
    of = {"columns": READ, **DROP, "time_zone": "Asia/Tokyo"}
    logs, user = ReviewTable(tmp_path / "logs", **of), table.users()[0]
    same_logs(logs, table)
    later = ReviewTable(tmp_path / "logs", **of, day_start_hour=12).read(user)
    assert not np.array_equal(later.day, logs.read(user).day)
    sample = ReviewTable(tmp_path / "logs", **of, sample=3)
    assert {*sample.users()} == {*ReviewTable(tmp_path / name, COLUMNS, sample=3).users()}
    assert "3 of" in sample.remarks()[0]


def test_the_files_of_a_folder_are_users_that_the_command_prepares(tmp_path, here):
    data, folder, logs = reviews(), tmp_path / "files", tmp_path / "logs"
    folder.mkdir()
    for user in ("ana", "7", "Ána"):
        written(data[data["who"] == user], folder / f"{user}.csv")
    words = ["data=csv", f"data.path={folder}"]
    # The second time it is not empty.
    for more, expected in ((f"out={logs}", 0), (f"out={logs}", 1), ("data.first=1 out=x", 1)):
        assert status(*COMMANDS["prepare"], [*words, *more.split()]) == expected
    assert status(*COMMANDS["prepare"], ["data=synthetic", "out=x"]) == 1
    assert [*ReviewTable(logs).users()] == [7, "ana", "Ána"]
    one, other = (ReviewTable(path, **DROP).read("ana") for path in (folder, logs))
    np.testing.assert_array_equal(one.elapsed_seconds, other.elapsed_seconds)


def test_a_folder_that_is_not_whole_or_no_such_folder_is_refused(tmp_path):
    logs = tmp_path / "logs"
    prepare(ReviewTable(written(reviews(), tmp_path / "log.csv"), COLUMNS), Place.of(logs))
    assert len(ReviewTable(logs, READ).users()) == len({name.strip() for name in ODD})
    for path, columns in ((logs / "user=7", "x"), (logs, "grade"), (tmp_path / "no", "rating")):
        with pytest.raises(ReviewLogError):
            ReviewTable(path, {"rating": columns}).users()
    for name in (INCOMPLETE, "user=__HIVE_DEFAULT_PARTITION__", "user=%37", "who=9"):
        (logs / name).mkdir()
        with pytest.raises(ReviewLogError):
            ReviewTable(logs, READ).users()
        (logs / name).rmdir()


def test_what_cannot_be_prepared_is_refused(tmp_path):
    out, path = Place.of(tmp_path / "logs"), tmp_path / "log.csv"
    good = pd.DataFrame({"who": ["a"], "card": [1], "rating": [3], "time": [1.5e9]})
    for wrong in (good.assign(who=None), good.assign(who="x" * 300), good.drop(columns="card")):
        with pytest.raises(ReviewLogError):
            prepare(ReviewTable(written(wrong, path), {"user": "who"}), out)
    for table in (ReviewTable(query=f"SELECT * FROM '{path}'"), ReviewTable(good)):
        with pytest.raises(ConfigError):
            prepare(table, out)
    assert not out.kind()


def test_the_statement_of_the_docs_writes_what_is_read(tmp_path, monkeypatch):
    sql = DOCS.read_text().partition("```sql duckdb\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    data = reviews([user for user in ODD if user == user.strip()], rows=2000)
    data["time"] = pd.to_datetime(data["time"] + data.index, unit="s", utc=True)
    names = {"who": "user_id", "card": "card_id", "time": "reviewed_at"}
    with closing(duckdb.connect()) as connection:
        connection.register("reviews", data.rename(columns=names))
        connection.execute(sql)
    table, logs = ReviewTable(data, {"user": "who"}), ReviewTable("logs")
    assert len(logs.users()) == len(table.users())
    for user in table.users():
        digest = hashlib.sha256(f"a long secret{user}".encode()).hexdigest()[:32]
        one, other = table.read(user), logs.read(digest)
        for name in ("rating", "elapsed_days", "elapsed_seconds"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.nightly
def test_addresses_have_the_logs_that_paths_have(tmp_path, assert_same_logs, small, monkeypatch):
    data, of = reviews(), {"columns": COLUMNS, "duplicates": "drop"}
    (tmp_path / "files").mkdir()
    for user in ("ana", "7"):
        own = data[data["who"] == user].drop_duplicates(["card", "time"])
        written(own, tmp_path / "files" / f"{user}.parquet")
    written(data, tmp_path / "log.csv")
    with object_store(monkeypatch, "bucket") as store:
        for path in sorted(tmp_path.rglob("*.*")):
            with Place.of(f"s3://bucket/{path.relative_to(tmp_path).as_posix()}").writing() as file:
                file.write(path.read_bytes())
        store.failing = lambda number: "" if number % 10 else "503 Slow Down"
        csv = ReviewTable("s3://bucket/log.csv", **of)
        assert_same_logs(csv, ReviewTable(tmp_path / "log.csv", **of))
        assert_same_logs(ReviewTable("s3://bucket/files"), ReviewTable(tmp_path / "files"))
        prepare(csv, Place.of("s3://bucket/logs"))
        logs = ReviewTable("s3://bucket/logs", READ, duplicates="drop")
        same_logs(logs, csv)
        for failure, path in (("403 Access Denied", "bucket/logs"), ("", "nobody/logs")):
            store.failing = lambda number, failure=failure: failure
            with pytest.raises(ReviewLogError):
                ReviewTable(f"s3://{path}").users()
