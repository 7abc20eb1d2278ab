"""Review logs in the result of an SQL query."""

import shutil
import signal
import sqlite3
import time
from contextlib import closing
from functools import partial

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa
from postgresql_server import postgresql_server

from srs_eval.data.table import ReviewTable
from srs_eval.errors import ConfigError, ReviewLogError, SrsEvalError

COLUMNS = {"user": "who", "card": "item", "rating": "grade", "time": "at"}
QUERY = "SELECT * FROM answers WHERE grade <> ':skip'"


def of_query(query, path=None, **options):
    return ReviewTable(path, query=query, **options)


@pytest.fixture
def log(tmp_path):
    """Write the same log as CSV, SQLite and DuckDB; return the path of the CSV file."""
    rng = np.random.default_rng(1)
    at = pd.to_datetime(1_700_000_000 + 7 * rng.permutation(300), unit="s", utc=True)
    table = pd.DataFrame({"item": rng.integers(0, 20, 300), "who": rng.choice(["ben", "ann"], 300)})
    table = table.assign(grade=rng.choice(["pass", "fail"], 300), at=at.strftime("%FT%TZ"))
    table.to_csv(tmp_path / "log.csv", index=False)
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection:
        table.to_sql("answers", connection)
    with closing(duckdb.connect(str(tmp_path / "log.duckdb"))) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE answers AS SELECT * FROM given")
    return tmp_path / "log.csv"


def test_a_query_reads_what_the_file_reads(log, assert_same_logs, monkeypatch):
    monkeypatch.setenv("WAREHOUSE", f"sqlite:///{log.with_suffix('.sqlite')}")
    expected = ReviewTable(log, COLUMNS)
    for source in (
        of_query(QUERY, log.with_suffix(".sqlite"), columns=COLUMNS),
        of_query(f"{QUERY};", log.with_suffix(".duckdb"), columns=COLUMNS),
        of_query(QUERY, url="env:WAREHOUSE", columns=COLUMNS),
        of_query(QUERY, url=f"sqlite:///{log.with_suffix('.sqlite')}", columns=COLUMNS),
        of_query(f"SELECT * FROM '{log}'", columns=COLUMNS),
    ):
        assert source.name in ("sql", "log.sqlite", "log.duckdb")
        assert source.remarks() == expected.remarks()
        assert_same_logs(source, expected)


def test_a_query_can_only_read(log):
    file, files = log.with_name("written.csv"), [log.with_suffix(s) for s in (".sqlite", ".duckdb")]
    other, delete = log.with_name("other.sqlite"), "DELETE FROM answers"
    for query, path in (
        (f"SELECT 1) AS x; COPY (SELECT 1) TO '{file}'; SELECT * FROM (SELECT 1", None),
        (QUERY, other),
        (QUERY, log),
        *((delete, path) for path in files),
        *((f"SELECT 1) AS x; {delete}; SELECT (1", path) for path in files),
    ):
        with pytest.raises(ReviewLogError):
            of_query(query, path, columns=COLUMNS).users()
    assert not file.exists()
    assert not other.exists()
    for path in files:
        assert len(of_query(QUERY, path, columns=COLUMNS).users()) == 2


@pytest.mark.parametrize("name", ["a#b.sqlite", "q?x.sqlite", "p%20c.sqlite"])
def test_a_query_is_run_as_it_is_written_on_a_file_of_any_name(log, name):
    path = shutil.copy(log.with_suffix(".sqlite"), log.with_name(name))
    for query in (
        r"SELECT * FROM answers WHERE length('\d') = 2",
        r"SELECT * FROM answers WHERE '\:a::b' = '\' || ':a' || '::b'",
        f"{QUERY} -- all of them",
    ):
        assert len(of_query(query, path, columns=COLUMNS).users()) == 2


def test_of_rows_with_one_card_and_time_the_same_one_is_kept():
    rows = ["(1, 4, 1700090000)", "(1, 3, 1700000000)", "(1, 1, 1700000000)"]
    for values in (rows, rows[::-1]):
        query = f"SELECT * FROM (VALUES {', '.join(values)}) v(card, rating, time)"
        assert of_query(query, duplicates="drop").read("sql").rating.tolist() == [1, 4]


def test_an_address_comes_from_the_environment_and_its_secret_is_not_repeated(monkeypatch):
    with pytest.raises(ConfigError, match="env:") as caught:
        of_query(QUERY, url="postgresql://me:secret@localhost/x")
    assert "secret" not in str(caught.value)
    source = of_query(QUERY, url="env:WAREHOUSE", columns=COLUMNS)
    for address in ("nothing://me:secret@localhost:1/x", "secret", ""):
        monkeypatch.setenv("WAREHOUSE", address)
        with pytest.raises(SrsEvalError) as refused:
            source.users()
        assert "secret" not in f"{refused.value} {source} {source.location}"


def test_rows_of_several_users_of_a_database_are_refused_in_one_error(log):
    query = "SELECT *, CASE WHEN grade = 'pass' THEN 9 ELSE grade END AS bad FROM answers"
    source = of_query(query, log.with_suffix(".sqlite"), columns={**COLUMNS, "rating": "bad"})
    with pytest.raises(ReviewLogError, match="of 300 rows, of 2 of 2 users"):
        source.users()


def make(path, *statements):
    """Create a database of SQLite or DuckDB."""
    module = sqlite3 if path.suffix == ".sqlite" else duckdb
    with closing(module.connect(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


@pytest.mark.parametrize("suffix", [".sqlite", ".duckdb"])
def test_a_view_of_a_file_is_read_but_reaches_no_other_file(tmp_path, csv, suffix):
    table = "CREATE TABLE answers (card INT, rating INT, time INT)"
    rows = "INSERT INTO answers VALUES (1, 1, 1700000000), (1, 3, 1700090000)"
    view = "CREATE VIEW late AS SELECT * FROM answers WHERE time > 1700000000"
    source = of_query("SELECT * FROM late", make(tmp_path / f"own{suffix}", table, rows, view))
    assert source.read("own").rating.tolist() == [3]
    other = csv("card,rating,time", "1,3,1700000000", name="other.csv")
    evil = make(tmp_path / "evil.duckdb", f"CREATE VIEW late AS SELECT * FROM '{other}'")
    with pytest.raises(ReviewLogError):
        of_query("SELECT * FROM late", evil).users()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("suffix", [".sqlite", ".duckdb"])
def test_a_signal_ends_a_query_at_once(tmp_path, suffix):
    path = make(tmp_path / f"own{suffix}", "CREATE TABLE t (a INTEGER)")
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS a FROM r"
    query = f"SELECT count(*) AS card, 1 AS rating, 2 AS time FROM ({endless})"
    before, began = signal.signal(signal.SIGALRM, signal.default_int_handler), time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            of_query(query, path).read("own")
        assert time.monotonic() - began < 2.3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_logs_are_read_from_postgresql_and_never_written(log, assert_same_logs, monkeypatch):
    with postgresql_server("postgresql+psycopg") as uri:
        engine = sa.create_engine(uri, poolclass=sa.pool.NullPool)
        # a name that PostgreSQL has in quotes alone
        table = pd.read_csv(log, parse_dates=["at"]).assign(Day=1)
        kinds = {"at": sa.DateTime(timezone=True), "item": sa.BigInteger()}
        table.to_sql("answers", engine, index=False, dtype=kinds)
        monkeypatch.setenv("WAREHOUSE", uri)
        read = partial(of_query, url="env:WAREHOUSE", columns=COLUMNS)
        for query in (QUERY, 'SELECT *, "Day" AS d FROM answers'):
            assert_same_logs(read(query), ReviewTable(log, COLUMNS))
        for query in (
            "DELETE FROM answers RETURNING *",
            "WITH gone AS (DELETE FROM answers RETURNING *) SELECT * FROM gone",
            "SELECT 1) AS x; DELETE FROM answers; SELECT * FROM (SELECT 1",
        ):
            with pytest.raises(ReviewLogError):
                read(query).users()
        assert len(pd.read_sql("SELECT * FROM answers", engine)) == len(table)
