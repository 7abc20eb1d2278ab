import shutil
from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from object_store import object_store

from srs_eval.commands.prepare import command
from srs_eval.data import preparing
from srs_eval.data.partitioned import INDEX, PartitionedLogs
from srs_eval.data.preparing import prepare
from srs_eval.data.selection import name_digest
from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError, PlaceError, ReviewLogError
from srs_eval.place import Place

COLUMNS = {"user": "who", "deck": "deck", "duration_ms": "ms"}
DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
ODD = ["ana", "7", "Ána", "ANA", "ユーザー", 'o\'brien, "x"', "a/b", "..", "007", " b ", "1e3"]


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


@pytest.fixture
def small(monkeypatch):
    """Parts and row groups of a few rows."""
    monkeypatch.setattr(preparing, "_CHUNK_ROWS", 70)
    monkeypatch.setattr(preparing, "_GROUP_ROWS", 60)
    monkeypatch.setattr(preparing, "_PART_ROWS", 150)


def late(data):
    """Make columns text in their last row only."""
    columns = {"deck": ["7", "07", "x"], "ms": [1, 2, 2.5], "who": [1, 2, "x"]}
    late = {name: [one] * 200 + [two] * 199 + [end] for name, (one, two, end) in columns.items()}
    return data.assign(**late)


@pytest.mark.parametrize(
    ("name", "data"),
    [("log.csv", reviews()), ("log.parquet", reviews()), ("late.csv", late(reviews()))],
)
def test_prepared_logs_are_those_of_the_table(tmp_path, assert_same_logs, small, name, data):
    path = written(data, tmp_path / name)
    table = ReviewTable(path, COLUMNS, duplicates="drop", time_zone="Asia/Tokyo")
    made = prepare(table, Place.of(tmp_path / "logs"))
    assert (made.users, made.rows) == (len(table.users()), 400)
    assert made.parts > 2
    logs, user = PartitionedLogs(tmp_path / "logs"), table.users()[0]
    assert_same_logs(logs, table)
    later = PartitionedLogs(tmp_path / "logs", day_start_hour=12).read(user)
    assert not np.array_equal(later.day, logs.read(user).day)
    sample = PartitionedLogs(tmp_path / "logs", sample=3)
    assert sample.users() == ReviewTable(table.path, COLUMNS, sample=3).users()
    assert "3 of" in sample.remarks()[0]


def test_chosen_users_of_a_folder_are_prepared(tmp_path, small):
    data = reviews()
    (tmp_path / "files").mkdir()
    for user in ("ana", "7", "Ána"):
        written(data[data["who"] == user], tmp_path / "files" / f"{user}.csv")
    table = ReviewTable(tmp_path / "files", users=["7", "ana"], duplicates="drop")
    prepare(table, Place.of(tmp_path / "chosen"))
    logs = PartitionedLogs(tmp_path / "chosen")
    assert list(map(str, logs.users())) == ["7", "ana"]
    one, other = table.read("ana"), logs.read("ana")
    np.testing.assert_array_equal(one.elapsed_seconds, other.elapsed_seconds)


def test_names_are_replaced_by_digests(tmp_path, small, monkeypatch):
    path = written(reviews(), tmp_path / "log.csv")
    words = [f"data.path={path}", "data=csv", "data.columns.user=who", "data.duplicates=drop"]
    monkeypatch.setenv("SRS_EVAL_SALT", "pepper")
    for out, names in (("plain", "digest"), ("salted", "salted")):
        assert command([*words, f"out={tmp_path / out}", f"names={names}"]) == 0
    plain, salted = (PartitionedLogs(tmp_path / name) for name in ("plain", "salted"))
    assert name_digest("ana") in plain.users()
    assert set(plain.users()).isdisjoint(salted.users())
    table = ReviewTable(path, {"user": "who"}, duplicates="drop")
    found = salted.read(name_digest("ana", b"pepper"))
    np.testing.assert_array_equal(found.day, table.read("ana").day)
    everything = b"".join(file.read_bytes() for file in tmp_path.glob("plain/**/*.parquet"))
    assert "ユーザー".encode() not in everything
    assert command([*words, f"out={tmp_path / 'plain'}"]) == 1  # it has an index
    assert command([*words, "names=salty", "out=x"]) == 2
    assert command(["data=synthetic", "out=x"]) == 2
    monkeypatch.delenv("SRS_EVAL_SALT")
    assert command([*words, "names=salted", "out=x"]) == 2


PART = "bucket=0001/part.parquet"


def change(place, column, *values):
    """Replace the last values of a column of a parquet file."""
    rows = pq.read_table(place)
    number, field = rows.schema.get_field_index(column), rows.schema.field(column)
    changed = [*rows[column].to_pylist()[: len(rows) - len(values)], *values]
    pq.write_table(rows.set_column(number, field, pa.array(changed, field.type)), place)


# What is done to prepared logs, given others of the same users; some users are refused.
DAMAGED = [
    lambda logs, others: change(logs / INDEX, "user", *sorted(PartitionedLogs(logs).users())),
    lambda logs, others: (logs / PART).write_bytes((logs / PART).read_bytes()[:-100]),
    lambda logs, others: (logs / PART).unlink(),
    lambda logs, others: shutil.copy(others / PART, logs / PART),
    lambda logs, others: change(logs / PART, "rating", "1", "1", "1"),  # which changes the size
]
# The same, after which there is no index.
WITHOUT_INDEX = [
    lambda logs, others: pq.write_table(pa.table({"user": [1]}), logs / INDEX),
    lambda logs, others: (logs / INDEX).unlink(),
    lambda logs, others: shutil.rmtree(logs),
]
FORGED = {
    "file": [f"../others/{PART}", f"bucket=0001/../../others/{PART}", f"/etc/{PART}"],
    **{"row_group": [-1], "offset": [-1], "rows": [-1], "user": [None]},
}


def test_users_whose_rows_are_not_where_they_should_be_and_forged_indices_are_refused(
    tmp_path, small
):
    logs, others, copy = (tmp_path / name for name in ("logs", "others", "copy"))
    for seed, folder in enumerate((logs, others)):
        data = reviews([f"u{number}" for number in range(20)], seed=seed)
        path = written(data, tmp_path / f"{seed}.csv")
        prepare(ReviewTable(path, {"user": "who"}, duplicates="drop"), Place.of(folder))
    for damage in DAMAGED:
        damage(shutil.copytree(logs, copy), others)
        refused = 0
        for user in PartitionedLogs(copy).users():
            try:
                PartitionedLogs(copy).read(user)
            except ReviewLogError:
                refused += 1
        assert refused > 1
        shutil.rmtree(copy)
    forged = [(column, value) for column, values in FORGED.items() for value in values]
    for damage in (*WITHOUT_INDEX, *forged):
        shutil.copytree(logs, copy, dirs_exist_ok=True)
        if callable(damage):
            damage(copy, others)
        else:
            change(copy / INDEX, *damage)
        with pytest.raises(ReviewLogError):
            PartitionedLogs(copy).users()
    with pytest.raises(ReviewLogError):
        PartitionedLogs(logs / PART).users()


def test_an_interrupted_call_leaves_nothing_that_looks_whole_and_can_be_repeated(
    tmp_path, assert_same_logs, small, monkeypatch
):
    table = ReviewTable(written(reviews(), tmp_path / "log.csv"), COLUMNS, duplicates="drop")
    out = Place.of(tmp_path / "logs")
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "write_index", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare(table, out)
    assert out.files(recursive=True)
    with pytest.raises(ReviewLogError):
        PartitionedLogs(out.address).users()
    prepare(table, out)
    assert_same_logs(PartitionedLogs(out.address), table)
    (out / "bucket=0000" / "other.txt").write(b"")
    with pytest.raises(ReviewLogError):
        prepare(table, out)


def test_what_cannot_be_prepared_or_indexed_is_refused_and_leaves_nothing(tmp_path):
    out, path = Place.of(tmp_path / "logs"), tmp_path / "log.csv"
    for change in ({"who": [None]}, {"who": ["x" * 300]}, {"card_id": [1]}):
        data = pd.DataFrame({"who": ["a"], "card": [1], "rating": [3], "time": [1.5e9], **change})
        data = data.drop(columns="card") if "card_id" in change else data
        with pytest.raises(ReviewLogError):
            prepare(ReviewTable(written(data, path), {"user": "who"}), out)
    with pytest.raises(ConfigError):
        prepare(ReviewTable(path, {"user": "who"}), out, memory="much")
    assert not out.exists()
    by_user = reviews().sort_values("who", kind="stable")
    for name, data, columns in (
        ("no user column", by_user, {}),
        ("no card", by_user.drop(columns="card"), {"user": "who"}),
        ("not sorted", reviews(), {"user": "who"}),
        ("no tables", None, {"user": "who"}),
    ):
        (tmp_path / name).mkdir()
        if data is not None:
            written(data, tmp_path / name / "a.parquet")
        with pytest.raises(ReviewLogError if columns else ConfigError):
            prepare(ReviewTable(tmp_path / name, columns), Place.of(tmp_path / name))
        assert not (tmp_path / name / INDEX).exists()


def test_a_sorted_parquet_table_is_read_by_row_group(tmp_path, assert_same_logs):
    for is_sorted, data in (
        (False, reviews()),
        (True, reviews().sort_values("who", kind="stable")),
    ):
        whole = ReviewTable(tmp_path / "whole.parquet", COLUMNS, duplicates="drop")
        data.to_parquet(whole.path, index=False)
        data.to_parquet(tmp_path / "groups.parquet", index=False, row_group_size=37)
        groups = ReviewTable(tmp_path / "groups.parquet", COLUMNS, duplicates="drop")
        assert groups.find().rows.of.__module__.endswith(".partitioned") == is_sorted
        assert_same_logs(groups, whole)


def test_the_statement_of_the_docs_exports_what_can_be_indexed(tmp_path, monkeypatch):
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
    assert len(list(tmp_path.glob("logs/bucket=*/*.parquet"))) > 3
    assert command(["data=csv", "data.path=logs", "data.columns.user=user", "out=logs"]) == 0
    data.to_parquet("log.parquet", index=False)
    table, logs = ReviewTable("log.parquet", {"user": "who"}), PartitionedLogs("logs")
    assert len(logs.users()) == len(table.users())
    for user in table.users():
        one, other = table.read(user), logs.read(name_digest(user, b"a long secret"))
        for name in ("rating", "elapsed_days", "elapsed_seconds"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)


@pytest.mark.nightly
def test_addresses_have_the_logs_that_paths_have(tmp_path, assert_same_logs, small, monkeypatch):
    data = reviews()
    (tmp_path / "files").mkdir()
    for user in ("ana", "7"):
        own = data[data["who"] == user].drop_duplicates(["card", "time"])
        written(own, tmp_path / "files" / f"{user}.parquet")
    written(data, tmp_path / "log.csv")
    table = ReviewTable(written(data, tmp_path / "log.parquet"), COLUMNS, duplicates="drop")
    with object_store(monkeypatch, "bucket") as store:
        for path in sorted(tmp_path.rglob("*.*")):
            below = path.relative_to(tmp_path).as_posix()
            Place.of(f"s3://bucket/{below}").write(path.read_bytes())
        store.failing = lambda number: "" if number % 10 else "503 Slow Down"
        remote = ReviewTable("s3://bucket/log.parquet", COLUMNS, duplicates="drop")
        assert_same_logs(remote, table)
        for pattern in ("files", "files/a*.parquet", "files/[!b]*.parquet"):
            found = ReviewTable(f"s3://bucket/{pattern}")
            assert_same_logs(found, ReviewTable(tmp_path / pattern))
        csv = ReviewTable("s3://bucket/log.csv", COLUMNS, duplicates="drop")
        prepare(csv, Place.of("s3://bucket/logs"))
        logs = PartitionedLogs("s3://bucket/logs")
        assert_same_logs(logs, csv)
        store.failing = lambda number: "403 Access Denied"
        with pytest.raises(PlaceError):
            logs.users()
        store.failing = lambda number: ""
        for absent in ("s3://bucket/nothing", "s3://nobody/logs"):
            with pytest.raises((ReviewLogError, PlaceError)):
                PartitionedLogs(absent).users()
