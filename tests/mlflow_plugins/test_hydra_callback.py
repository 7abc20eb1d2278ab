"""Another project's Hydra application, whose jobs become runs by one line of configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from mlflow import MlflowClient
from mlflow.entities import Run
from optuna.trial import TrialState

pytestmark = pytest.mark.slow  # starts applications that keep runs in MLflow
ENDS = {
    TrialState.COMPLETE: ("FINISHED", None),
    TrialState.PRUNED: ("KILLED", "pruned"),
    TrialState.FAIL: ("FAILED", None),
}
EXAMPLES = Path(__file__).parents[2] / "examples"


def start(folder: Path, app: str, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / app), *words],
        cwd=folder,
        env={**env, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run two jobs, each in a working directory of its own: the runs must not be scattered."""
    folder = tmp_path_factory.mktemp("app")
    words = ["-m", "rate=0.1,-1", "hydra.sweep.dir=sweep", "hydra.job.chdir=true"]
    done = start(folder, "hydra_callback/app.py", *words)
    assert done.returncode == 1, done.stderr  # the second job fails
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*.db")] == ["mlflow.db"]
    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("descend")
    assert {e.name for e in client.search_experiments()} == {"Default", "descend"}
    found = client.search_runs([experiment.experiment_id])
    for run in found:
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert (".hydra" in files, "app.log" in files) == (True, True)
        assert ("x.txt" in files) == (run.info.status == "FINISHED")
    assert len(found) == 2
    return {run.data.params["rate"]: run for run in found}


def test_each_job_is_a_run_of_the_sweep_that_ended_as_the_job_did(runs: dict[str, Run]) -> None:
    run, failed = runs["0.1"], runs["-1"]
    assert (run.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert failed.data.tags["error"] == "ValueError: rate=-1: expected more than 0"
    assert run.data.params == {"start": "10.0", "rate": "0.1", "steps": "5"}
    x = 2 + 8 * 0.8**5
    assert run.data.metrics == pytest.approx({"x": x, "objective": (x - 2) ** 2})
    assert run.info.run_name == "app rate=0.1"
    assert (run.data.tags["trial"], failed.data.tags["trial"]) == ("0", "1")
    assert run.data.tags["sweep_id"] == failed.data.tags["sweep_id"]
    assert all("pid" in run.data.tags for run in runs.values())


def test_callback_and_sweeper_serve_one_application_that_is_not_ours(tmp_path: Path) -> None:
    words = ["hydra/callbacks=mlflow", "hydra.sweep.dir=out", "hydra.sweeper.n_trials=16"]
    # a number of steps that is none makes a job fail
    words += ["steps=choice(20,none)", "hydra.sweeper.max_failures=16"]
    done = start(tmp_path, "other_app/train.py", "-m", *words)
    assert done.returncode == 0, done.stderr
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{tmp_path}/out/optuna.db")
    trials = {str(trial.number): trial for trial in study.trials}
    assert {trial.state for trial in study.trials} == set(ENDS)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("other_app")
    assert {e.name for e in client.search_experiments()} == {"Default", "other_app"}
    found = {run.data.tags["trial"]: run for run in client.search_runs([experiment.experiment_id])}
    assert found.keys() == trials.keys()
    assert len({run.data.tags["sweep_id"] for run in found.values()}) == 1
    for number, run in found.items():
        state = trials[number].state
        assert (run.info.status, run.data.tags.get("outcome")) == ENDS[state]
        assert ("error" in run.data.tags) == (state == TrialState.FAIL)
        assert run.data.metrics.get("objective") == (
            trials[number].value if state == TrialState.COMPLETE else None
        )
        assert run.data.params["rate"] == str(trials[number].params["rate"])
