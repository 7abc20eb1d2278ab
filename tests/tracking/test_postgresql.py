"""Runs in PostgreSQL, and in whatever else they may be kept: several processes at once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import SMALL, summary_of
from mlflow import MlflowClient
from mlflow_server import serving
from postgresql_server import postgresql_server

from srs_eval.tracking.quiet import quiet_mlflow

pytestmark = pytest.mark.nightly
# A file is locked as a whole: there one more stands in line.
PROCESSES = {"sqlite": 3, "server": 2, "postgresql": 2}


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with postgresql_server() as uri:
        yield uri


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'fresh.db'}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with serving(f"sqlite:///{tmp_path / 'served.db'}", tmp_path) as (_, address):
        yield address


@pytest.mark.parametrize("kind", ["sqlite", "server", "postgresql"])
def test_processes_log_at_once_and_every_run_is_whole(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    uri: str = request.getfixturevalue(kind)
    seeds = range(PROCESSES[kind])
    jobs = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "srs_eval", "algo=hlr", "panel=quick", *SMALL),
                *(f"seed={seed}", f"tracking.uri={uri}", f"hydra.run.dir={seed}"),
                f"name=run {seed}",
                *([] if kind == "server" else [f"tracking.artifacts={tmp_path / 'files'}"]),
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in seeds
    ]
    told = [job.communicate(timeout=300)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0 for _ in seeds], "\n".join(told)
    with quiet_mlflow():
        client = MlflowClient(tracking_uri=uri)
        (experiment,) = client.search_experiments(filter_string="name = 'srs_eval'")
        runs = client.search_runs([experiment.experiment_id])
        assert Counter(run.info.run_name for run in runs) == {f"run {seed}": 1 for seed in seeds}
        assert {run.info.status for run in runs} == {"FINISHED"}
        for run in runs:
            summary = summary_of(tmp_path / run.data.params["seed"])
            log_loss = summary["metrics"]["log_loss"]["mean_users"]
            assert run.data.metrics["test/log_loss"] == round(log_loss, 4)
            kept = {file.path for file in client.list_artifacts(run.info.run_id)}
            assert {"calibration.svg", "results", "tables", "images"} <= kept
            assert len(client.list_artifacts(run.info.run_id, "tables")) == 3
        assert len({len(run.data.metrics) for run in runs}) == 1
        assert len({len(run.data.params) for run in runs}) == 1
