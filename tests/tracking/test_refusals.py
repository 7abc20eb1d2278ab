"""What a tracker refuses, told in one text."""

import sqlite3
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
from mlflow import MlflowClient
from mlflow.store.db import utils as mlflow_tables
from mlflow_store import RUN
from postgresql_server import free_port

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking.address import store_address
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

TABLES_OF_ANOTHER_MLFLOW = {
    "older": "UPDATE alembic_version SET version_num = '451aebb31d03'",
    "newer": "UPDATE alembic_version SET version_num = 'fedcba987654'",
    "half made": "UPDATE alembic_version SET version_num = '451aebb31d03'; DROP TABLE runs",
    "half upgraded": "DELETE FROM alembic_version; DROP TABLE webhooks",
}


def told(call):
    with pytest.raises((ConfigError, TrackingError, RuntimeError)) as refused:
        call()
    return f"{type(refused.value).__name__}: {refused.value}"


def test_options_and_uses_that_mean_nothing_are_refused(tmp_path, uri, golden_text):
    def address(text):
        return lambda: store_address(text, folder=tmp_path, environment={})

    client = MlflowClient(tracking_uri=uri)
    deleted = client.create_experiment("deleted")
    client.delete_experiment(deleted)
    (tmp_path / "file").write_text("")
    (tmp_path / "runs").write_text("not a database\n" * 100)
    broken = MlflowTracker(uri=f"sqlite:///{tmp_path}/runs")
    below = MlflowTracker(uri=f"sqlite:///{tmp_path}/file/mlflow.db")
    cases = {
        **{name: address(name) for name in ("mlruns", "file:///tmp/mlruns", "localhost:5000")},
        **{name: address(name) for name in ("s3://bucket/x", "sqlite:///s3://bucket/x.db")},
        # Shells and Python run files of these names.
        **{name: address(name) for name in ("sqlite:///.zshenv", "sqlite+pysqlite:///x.pth")},
        "timeout": lambda: store_address(None, timeout=-1.0),
        "digits": lambda: MlflowTracker(digits=0),
        "not started": lambda: MlflowTracker(uri=uri).finish("finished"),
        "experiment": lambda: MlflowTracker(uri=uri, experiment="deleted").start(RUN),
        "no database": lambda: broken.start(RUN),
        "no folder": lambda: below.start(RUN),
        **{
            f"lines in {name}": lambda name=name: JsonLines(file=name)
            for name in ("/home/me/.bashrc", "../items.jsonl", ".zshenv", "s3://bucket/x.jsonl")
        },
        "lines, not started": lambda: JsonLines().log([]),
        "lines, no folder": lambda: JsonLines().start(RunInfo("x", folder=tmp_path / "file" / "x")),
    }
    known = store_address("sqlite:///runs", folder=tmp_path).database
    assert known == tmp_path / "runs"  # without an ending, but it is there
    text = "".join(f"{name}\n  {told(call)}\n\n" for name, call in cases.items())
    text = text.replace(str(tmp_path), "FOLDER").replace(uri, "STORE")
    golden_text("tracking_refusals", text.replace(f"-x {deleted}'", "-x ID'"))


def test_a_store_of_another_program_or_another_mlflow_is_not_touched(store, tmp_path, golden_text):
    database, said = tmp_path / "mlflow.db", ""
    for name, statements in TABLES_OF_ANOTHER_MLFLOW.items():
        with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(database)) as copy:
            source.backup(copy)
            copy.executescript(statements)
        said += refused_untouched(name, database)
    with closing(sqlite3.connect(tmp_path / "anki.db")) as connection, connection:
        connection.execute("CREATE TABLE revlog (id INTEGER)")
    (tmp_path / "empty.db").touch()
    for name in ("anki.db", "empty.db"):
        said += refused_untouched(name, tmp_path / name)
    newest = mlflow_tables._get_latest_schema_revision()
    golden_text("tracking_stores", said.replace(str(tmp_path), "FOLDER").replace(newest, "NEWEST"))


def refused_untouched(name, database):
    before = database.read_bytes()
    said = told(lambda: MlflowTracker(uri=f"sqlite:///{database}").start(RUN))
    assert database.read_bytes() == before
    names = {path.name for path in database.parent.iterdir()}
    assert {file for file in names if file.startswith(database.name)} <= {
        *(database.name, f"{database.name}.lock")
    }
    return f"{name}\n  {said}\n\n"


def test_a_database_or_server_that_is_not_there_is_told_at_once(monkeypatch):
    waits = []
    monkeypatch.setattr(mlflow_tables, "time", SimpleNamespace(sleep=waits.append))
    tracker = MlflowTracker(uri="postgresql+psycopg://me:hidden-word@127.0.0.1:1/runs")
    assert "hidden-word" not in told(lambda: tracker.start(RUN))
    server, before = f"http://127.0.0.1:{free_port()}", time.monotonic()
    assert server in told(lambda: MlflowTracker(uri=server).start(RUN))
    assert time.monotonic() - before < 15
    assert waits == []


def test_the_use_of_the_machine_needs_psutil(uri, monkeypatch):
    from srs_eval.tracking import mlflow_session

    monkeypatch.setattr(mlflow_session, "find_spec", lambda name: None)
    tracker = MlflowTracker(uri=uri, system_metrics=True, experiment="measured")
    assert "psutil" in told(lambda: tracker.start(RUN))
    assert MlflowClient(tracking_uri=uri).get_experiment_by_name("measured") is None
