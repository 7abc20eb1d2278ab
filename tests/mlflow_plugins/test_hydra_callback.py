"""Another project's Hydra application, whose jobs become runs by one line of configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

APP = Path(__file__).parents[2] / "examples" / "hydra_callback" / "app.py"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("app")
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    words = [sys.executable, str(APP), "-m", "rate=0.1,0.3,-1", "hydra.sweep.dir=sweep"]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**env, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr  # the third job fails
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("descend")
    assert {e.name for e in client.search_experiments()} == {"Default", "descend"}
    found = client.search_runs([experiment.experiment_id])
    for run in found:
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert (".hydra" in files, "app.log" in files) == (True, True)
        assert ("x.txt" in files) == (run.info.status == "FINISHED")
    assert len(found) == 3
    return {run.data.params["rate"]: run for run in found}


def test_each_job_is_a_run_that_ended_as_the_job_did(runs: dict[str, Run]) -> None:
    ends = {rate: run.info.status for rate, run in runs.items()}
    assert ends == {"0.1": "FINISHED", "0.3": "FINISHED", "-1": "FAILED"}
    assert runs["-1"].data.tags["error"] == "ValueError: rate=-1: expected more than 0"


def test_a_run_has_the_configuration_the_number_and_what_the_job_logged(
    runs: dict[str, Run],
) -> None:
    run = runs["0.1"]
    assert run.data.params == {"start": "10.0", "rate": "0.1", "steps": "5"}
    x = 2 + 8 * 0.8**5
    assert run.data.metrics["x"] == pytest.approx(x)
    assert run.data.metrics["objective"] == pytest.approx((x - 2) ** 2)
    assert run.info.run_name == "app rate=0.1"


def test_the_runs_of_a_sweep_share_its_name(runs: dict[str, Run]) -> None:
    (sweep,) = {run.data.tags["sweep_id"] for run in runs.values()}
    assert sweep.startswith("sweep-")
    assert all("pid" in run.data.tags for run in runs.values())
