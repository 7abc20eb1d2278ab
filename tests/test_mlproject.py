"""`mlflow run`: the entry points of MLproject join the run that MLflow has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mlflow import MlflowClient

ROOT = Path(__file__).parents[1]
SMALL = "data.users=2 data.size_scale=0.02 figures=false"


def mlflow_run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    return subprocess.run(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), "--env-manager", "local", *words],
        cwd=folder,
        env={
            **env,
            "PATH": programs,
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'store.db'}",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("entry", ["main", "sweep"])
def test_every_entry_point_has_defaults_so_that_nothing_must_be_given(entry: str) -> None:
    project = yaml.safe_load((ROOT / "MLproject").read_text(encoding="utf-8"))
    parameters = project["entry_points"][entry]["parameters"]
    assert all("default" in parameter for parameter in parameters.values())
    environment = ROOT / project["python_env"]
    assert yaml.safe_load(environment.read_text(encoding="utf-8"))["python"]


@pytest.mark.slow
def test_mlflow_run_fills_the_run_it_has_begun(tmp_path: Path) -> None:
    overrides = f"{SMALL} hydra.run.dir={tmp_path / 'out'}"
    done = mlflow_run(tmp_path, "-P", "algo=avg", "-P", f"overrides={overrides}")
    assert done.returncode == 0, done.stderr + done.stdout
    client = MlflowClient(f"sqlite:///{tmp_path / 'store.db'}")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    (run,) = client.search_runs(experiments)
    assert run.info.status == "FINISHED"
    assert run.data.metrics["test/log_loss"] > 0
    assert run.data.params["data.users"] == "2"
    assert run.data.tags["mlflow.project.entryPoint"] == "main"
    assert (tmp_path / "out" / "summary.json").is_file()


@pytest.mark.slow
def test_a_sweep_has_an_entry_point_of_its_own(tmp_path: Path) -> None:
    overrides = f"{SMALL} hydra.sweep.dir={tmp_path / 'out'}"
    words = ["-e", "sweep", "-P", "algos=avg,sm2", "-P", f"overrides={overrides}"]
    done = mlflow_run(tmp_path, *words)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Means over users" in done.stdout


@pytest.mark.slow
def test_overrides_may_be_left_empty(tmp_path: Path) -> None:
    done = mlflow_run(tmp_path, "-P", "algo=lsmt")
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if line.startswith("srs_eval: ")]
    assert "did you mean 'lstm'?" in told[0]
    assert told[1:] == ["srs_eval: python -m srs_eval --help lists the options"]
