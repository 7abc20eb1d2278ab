"""The callback that makes jobs of any Hydra application runs in MLflow."""

import sys
from pathlib import Path

import pytest
from commands import process
from mlflow import MlflowClient
from sessions import runs_in, store_of

APP = Path(__file__).parents[2] / "examples" / "hydra_callback" / "app.py"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow's own
def test_jobs_that_change_their_folder_are_runs_of_one_store_and_end_as_they_do(tmp_path):
    words = ["-m", "rate=0.1,-1", "hydra.sweep.dir=sweep", "hydra.job.chdir=true"]
    done = process([sys.executable, str(APP), *words], cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # the second fails
    assert [path.relative_to(tmp_path).name for path in tmp_path.rglob("*.db")] == ["mlflow.db"]
    by_rate = {run.data.params["rate"]: run for run in runs_in(store_of(tmp_path))}
    assert [by_rate[rate].info.status for rate in ("0.1", "-1")] == ["FINISHED", "FAILED"]
    x = 2 + 8 * 0.8**5
    run = by_rate["0.1"]
    assert run.data.metrics == pytest.approx({"x": x, "objective": (x - 2) ** 2})
    assert run.data.tags["overrides"] == "rate=0.1"
    files = MlflowClient(store_of(tmp_path)).list_artifacts(run.info.run_id)
    assert {"x.txt", ".hydra"} <= {file.path for file in files}
