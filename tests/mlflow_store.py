"""Fixtures of tests that keep runs in one MLflow store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from commands import revision_known

from srs_eval.tracking.items import Item
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo, RunLinks

RUN = RunInfo("run")


def keep(uri: str, *items: Item, run: RunInfo = RUN, **options: Any) -> RunLinks:
    """Log a finished run."""
    tracker = MlflowTracker(uri=uri, **options)
    tracker.start(run)
    tracker.log(items)
    return tracker.finish("finished")


def started(folder: Path, *words: str, status: int = 0) -> str:
    """Run Python in a folder, without settings of MLflow; return what it prints."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    path = os.pathsep.join([str(folder), *filter(None, [env.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**env, "PYTHONPATH": path, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One sqlite store for all tests that only add runs to it.

    Made before any test, so that what MLflow's table definitions warn about when they
    are first used is not blamed on a test that reads runs back.
    """
    database = tmp_path_factory.mktemp("store") / "mlflow.db"
    with chdir(database.parent):  # MLflow keeps files beside it
        keep(f"sqlite:///{database}", run=RunInfo("first"))
    with revision_known():
        yield database


@pytest.fixture
def uri(store: Path) -> str:
    return f"sqlite:///{store}"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
