"""Stores: their addresses, their view, under `mlflow run`, and what a tracker refuses."""

import base64
import json
import os
import sqlite3
import subprocess
import sys
import time
import zlib
from contextlib import closing
from types import SimpleNamespace

import pytest
from cases import refusal, values_in
from commands import write
from mlflow import MlflowClient
from mlflow.store.db import utils as mlflow_tables
from mlflow_store import RUN, keep
from postgresql_server import free_port

from srs_eval.errors import ConfigError, TrackingError
from srs_eval.tracking.address import store_address, ui_command
from srs_eval.tracking.items import Param, Value
from srs_eval.tracking.json_lines import JsonLines
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
from srs_eval.tracking.view import VIEW_TAG, encode_view, view_state

ONE_RUN = """
from srs_eval.tracking.items import Value
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo
tracker = MlflowTracker()
tracker.start(RunInfo("parallel"))
tracker.log([Value(f"test/m{n}", n) for n in range(50)])
tracker.finish("finished")
"""


@pytest.mark.slow
def test_four_processes_may_start_at_once_on_a_fresh_store(tmp_path):
    words = [sys.executable, "-W", "error", "-c", ONE_RUN]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    processes = [subprocess.Popen(words, cwd=tmp_path, text=True, **pipes) for _ in range(4)]
    assert [process.communicate(timeout=120)[0] for process in processes] == [""] * 4
    assert [process.returncode for process in processes] == [0] * 4
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    (experiment,) = client.search_experiments(filter_string="name = 'srs_eval'")
    runs = client.search_runs([experiment.experiment_id])
    assert [len(run.data.metrics) for run in runs] == [50] * 4
    assert len({run.data.tags["mlflow.runColor"] for run in runs}) == 1
    assert experiment.artifact_location == (tmp_path / "mlartifacts" / "srs_eval").as_uri()
    assert not (tmp_path / "mlruns").exists()


def test_the_store_of_the_environment_is_used_and_nothing_is_left_in_it(uri, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    artifacts = str(tmp_path / "files")
    run_id = keep(None, experiment="of/an other", artifacts=artifacts).run_id
    kept = MlflowClient(tracking_uri=uri).get_experiment_by_name("of/an other")
    assert kept.artifact_location == (tmp_path / "files" / "of_an_other").as_uri()
    assert dict(os.environ) == before
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
    assert MlflowClient(tracking_uri=uri).get_run(run_id).info.status == "FINISHED"


def test_a_run_of_mlflow_run_is_joined_once_and_its_params_are_respected(uri, monkeypatch):
    client = MlflowClient(tracking_uri=uri)
    opened = client.create_run(client.create_experiment("project"))
    client.log_param(opened.info.run_id, "algo", "lstm")
    client.log_param(opened.info.run_id, "data", "josh")
    monkeypatch.setenv("MLFLOW_RUN_ID", opened.info.run_id)
    items = [Param("algo", "lstm"), Param("data", "py_fsrs"), Value("test/log_loss", 0.5)]
    lstm = RunInfo("lstm", tags={"sweep_id": "s"})
    assert keep(uri, *items, run=lstm, experiment="another").run_id == opened.info.run_id
    run = client.get_run(opened.info.run_id)
    assert run.data.params == {"algo": "lstm", "data": "josh", "srs_eval.data": "py_fsrs"}
    assert (run.info.run_name, run.info.status) == ("lstm", "FINISHED")
    assert run.data.tags["sweep_id"] == "s"
    assert client.get_experiment_by_name("another") is None
    second = keep(uri, run=RunInfo("second"), experiment="project")
    assert second.run_id != opened.info.run_id


def test_the_written_view_decodes(uri, golden_text):
    experiment = MlflowClient(tracking_uri=uri).get_experiment_by_name("srs_eval")
    tag = experiment.tags[VIEW_TAG]
    assert len(tag) < 20_000
    packed = json.loads(tag)["state"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert state == view_state()
    golden_text("view", json.dumps(state, indent=1) + "\n")
    sections = {section["uuid"] for section in state["compareRunSections"]}
    assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= sections
    note = experiment.tags["mlflow.note.content"]
    assert f"#/experiments/{experiment.experiment_id}/runs" in note


def test_a_view_and_a_note_that_a_person_changed_stay(uri):
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.create_experiment("changed")
    kept = {VIEW_TAG: encode_view({"searchFilter": "mine"}, 0), "mlflow.note.content": "mine"}
    for name, text in kept.items():
        client.set_experiment_tag(experiment_id, name, text)
    keep(uri, experiment="changed")
    assert kept.items() <= client.get_experiment(experiment_id).tags.items()


def test_there_is_no_link_without_a_view(uri):
    links = keep(uri, view=False, experiment="plain")
    assert (links.view_url, f"/runs/{links.run_id}" in str(links.run_url)) == (None, True)


def test_a_store_is_where_the_option_the_environment_or_the_folder_says(tmp_path, transcript):
    """And its UI starts few processes; a server shows its own pages; no password is shown."""

    def told_by(*words):
        given = {"uri": None, "artifacts": None, **values_in(words)}
        environment = {"MLFLOW_TRACKING_URI": given["env"]} if "env" in given else {}
        address = store_address(
            given["uri"], given["artifacts"], folder=tmp_path, environment=environment
        )
        facts = (address.uri, address.shown, address.artifacts, address.database, address.pages)
        shown = f"{ui_command(address)}".replace(sys.executable, "python")
        return "\n".join([*map(str, facts), f"{shown}\n"])

    transcript("store_addresses", told_by)


TABLES_OF_ANOTHER_MLFLOW = {
    "older": "UPDATE alembic_version SET version_num = '451aebb31d03'",
    "newer": "UPDATE alembic_version SET version_num = 'fedcba987654'",
    "half made": "UPDATE alembic_version SET version_num = '451aebb31d03'; DROP TABLE runs",
    "half upgraded": "DELETE FROM alembic_version; DROP TABLE webhooks",
}


KINDS = (ConfigError, TrackingError, RuntimeError)


def test_options_and_uses_that_mean_nothing_are_refused(tmp_path, uri, refusals):
    def address(text):
        return lambda: store_address(text, folder=tmp_path, environment={})

    client = MlflowClient(tracking_uri=uri)
    deleted = client.create_experiment("deleted")
    client.delete_experiment(deleted)
    write(tmp_path, {"file": "", "runs": "not a database\n" * 100})
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
    numbered = {"-x ID'": f"-x {deleted}'"}
    refusals("tracking_refusals", cases, kinds=KINDS, STORE=uri, **numbered)


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
    said = refusal(lambda: MlflowTracker(uri=f"sqlite:///{database}").start(RUN), KINDS)
    assert database.read_bytes() == before
    names = {path.name for path in database.parent.iterdir()}
    assert {file for file in names if file.startswith(database.name)} <= {
        *(database.name, f"{database.name}.lock")
    }
    return f"{name}\n  {said}\n"


def test_a_database_or_server_that_is_not_there_is_told_at_once(monkeypatch):
    waits = []
    monkeypatch.setattr(mlflow_tables, "time", SimpleNamespace(sleep=waits.append))
    tracker = MlflowTracker(uri="postgresql+psycopg://me:hidden-word@127.0.0.1:1/runs")
    assert "hidden-word" not in refusal(lambda: tracker.start(RUN))
    server, before = f"http://127.0.0.1:{free_port()}", time.monotonic()
    assert server in refusal(lambda: MlflowTracker(uri=server).start(RUN))
    assert time.monotonic() - before < 15
    assert waits == []


def test_the_use_of_the_machine_needs_psutil(uri, monkeypatch):
    from srs_eval.tracking import mlflow_session

    monkeypatch.setattr(mlflow_session, "find_spec", lambda name: None)
    tracker = MlflowTracker(uri=uri, system_metrics=True, experiment="measured")
    assert "psutil" in refusal(lambda: tracker.start(RUN))
    assert MlflowClient(tracking_uri=uri).get_experiment_by_name("measured") is None
