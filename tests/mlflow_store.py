"""Fixtures of tests that keep runs in one MLflow store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import revision_known, stores_from_template

from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo


@pytest.fixture(scope="session", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One sqlite store for all tests that only add runs to it: migrations take seconds.

    Made before any test, so that what MLflow's table definitions warn about when they
    are first used is not blamed on a test that reads runs back.
    """
    database = tmp_path_factory.mktemp("store") / "mlflow.db"
    tracker = MlflowTracker(uri=f"sqlite:///{database}")
    import srs_eval.tracking.sqlite_file  # noqa: F401 - what the template is for

    with stores_from_template():
        tracker.start(RunInfo("first"))
        tracker.finish("finished")
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
