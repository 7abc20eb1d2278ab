"""An MLflow store for tests, and what is in one."""

import os
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from commands import process, revision_known

from srs_eval.runs.tracking import Mlflow


def runs_in(store, experiment="srs_eval"):
    """Return a client of a store, which may be a file or the folder of one, and its runs."""
    from mlflow import MlflowClient

    place = store / "mlflow.db" if isinstance(store, Path) and store.is_dir() else store
    client = MlflowClient(place if isinstance(place, str) else f"sqlite:///{place}")
    experiment_id = client.get_experiment_by_name(experiment).experiment_id
    return client, list(client.search_runs([experiment_id]))


def started(folder, *words, status=0):
    """Run Python in a folder, without settings of MLflow; return what it prints."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = process([sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session", autouse=True)
def store(tmp_path_factory):
    """One sqlite store for all tests that only add runs to it.

    Made before any test, so that what MLflow's table definitions warn about when they
    are first used is not blamed on a test that reads runs back.
    """
    database = tmp_path_factory.mktemp("store") / "mlflow.db"
    with chdir(database.parent):  # MLflow keeps files beside it
        Mlflow(uri=f"sqlite:///{database}").has("0" * 32)
    with revision_known():
        yield database


@pytest.fixture
def uri(store):
    return f"sqlite:///{store}"
