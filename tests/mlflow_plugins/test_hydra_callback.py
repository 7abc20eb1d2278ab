"""Another project's Hydra application, whose jobs become runs by one line of configuration."""

from pathlib import Path

import numpy as np
import optuna
import pytest
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import RunMode
from mlflow import MlflowClient
from mlflow_store import started
from omegaconf import OmegaConf
from optuna.trial import TrialState

from srs_eval.errors import Pruned
from srs_eval.mlflow_plugins.hydra_callback import MlflowRuns

EXAMPLES = Path(__file__).parents[2] / "examples"
ENDS = {
    TrialState.COMPLETE: ("FINISHED", None),
    TrialState.PRUNED: ("KILLED", "pruned"),
    TrialState.FAIL: ("FAILED", None),
}


@pytest.fixture
def config(tmp_path):
    """The configuration of a job of a sweep, as Hydra has it while the job runs."""
    own = {"start": 10.0, "model": {"units": [8, 4]}, "missing": "???"}
    found = OmegaConf.create({"hydra": OmegaConf.structured(HydraConf), **own})
    hydra = found.hydra
    hydra.mode, hydra.sweep.dir, hydra.overrides.task = RunMode.MULTIRUN, "sweep", ["start=10.0"]
    hydra.job.name, hydra.job.num = "app", 3
    hydra.runtime.cwd, hydra.runtime.output_dir = str(tmp_path), str(tmp_path / "sweep" / "3")
    hydra.runtime.choices = {"optimizer": "quiet", "hydra/launcher": "basic"}
    (tmp_path / "sweep" / "3" / ".hydra").mkdir(parents=True)
    for name in ("x.txt", ".hydra/config.yaml", "left.out"):
        (tmp_path / "sweep" / "3" / name).write_text("")
    HydraConfig.instance().set_config(found)
    yield found
    HydraConfig.instance().cfg = None


@pytest.mark.filterwarnings("ignore")  # of MLflow's own
@pytest.mark.parametrize(
    ("returned", "status", "metrics", "tags"),
    [
        (np.float32(0.5), "FINISHED", {"objective": 0.5}, {}),
        ({"x": 2, "is": True, "loss": 1.0}, "FINISHED", {"x": 2.0, "loss": 1.0}, {}),
        ((1, 2.5), "FINISHED", {"objective_0": 1.0, "objective_1": 2.5}, {}),
        ("text", "FINISHED", {}, {}),
        (ValueError("no"), "FAILED", {}, {"error": "ValueError: no"}),
        (Pruned("no"), "KILLED", {}, {"outcome": "pruned"}),
        (optuna.TrialPruned("no"), "KILLED", {}, {"outcome": "pruned"}),
    ],
)
def test_a_job_is_a_run_of_the_sweep_that_ends_as_the_job_does(
    global_uri, config, tmp_path, returned, status, metrics, tags
):
    import mlflow

    callback = MlflowRuns(uri=global_uri, experiment="hydra jobs", files=["*.txt", ".hydra/*"])
    is_done = not isinstance(returned, Exception)
    job = JobReturn(status=JobStatus.COMPLETED if is_done else JobStatus.FAILED)
    job.return_value = returned
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'theirs.db'}")
    callback.on_job_start(config)
    mlflow.log_metric("of the job", 1)
    callback.on_job_end(config, job)
    assert mlflow.get_tracking_uri() == f"sqlite:///{tmp_path / 'theirs.db'}"
    client = MlflowClient(global_uri)
    experiment = client.get_experiment_by_name("hydra jobs")
    run = client.search_runs([experiment.experiment_id], max_results=1)[0]
    assert (run.info.status, run.data.metrics) == (status, {"of the job": 1.0, **metrics})
    expected = {"start": "10.0", "model.units": "[8, 4]", "missing": "???"}
    assert run.data.params == expected
    expected = {"trial": "3", "optimizer": "quiet", "overrides": "start=10.0", **tags}
    assert expected.items() <= run.data.tags.items()
    assert not {"error", "outcome", "hydra/launcher"} - set(tags) & set(run.data.tags)
    assert run.data.tags["sweep_id"].startswith("sweep-")
    assert str(run.info.run_name).startswith("app start=10.0")
    root = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert root == {"x.txt", ".hydra", "environment.json"}


@pytest.mark.slow
def test_runs_of_jobs_that_change_their_folder_are_in_one_store(tmp_path):
    words = ["-m", "rate=0.1,-1", "hydra.sweep.dir=sweep", "hydra.job.chdir=true"]
    started(tmp_path, str(EXAMPLES / "hydra_callback/app.py"), *words, status=1)  # the second fails
    assert [path.relative_to(tmp_path).name for path in tmp_path.rglob("*.db")] == ["mlflow.db"]
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("descend").experiment_id])
    found = {run.data.params["rate"]: run for run in runs}
    assert [found[rate].info.status for rate in ("0.1", "-1")] == ["FINISHED", "FAILED"]
    x = 2 + 8 * 0.8**5
    expected = {"x": x, "objective": (x - 2) ** 2}
    assert found["0.1"].data.metrics == pytest.approx(expected)


@pytest.mark.slow
def test_callback_and_sweeper_serve_one_application_that_is_not_ours(tmp_path):
    words = ["hydra/callbacks=mlflow", "hydra.sweep.dir=out", "hydra.sweeper.n_trials=16"]
    # a number of steps that is none makes a job fail
    words += ["steps=choice(20,none)", "hydra.sweeper.max_failures=16"]
    started(tmp_path, str(EXAMPLES / "other_app/train.py"), "-m", *words)
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{tmp_path}/out/optuna.db")
    trials = {str(trial.number): trial for trial in study.trials}
    assert {trial.state for trial in study.trials} == set(ENDS)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("other_app")
    found = {run.data.tags["trial"]: run for run in client.search_runs([experiment.experiment_id])}
    assert found.keys() == trials.keys()
    for number, run in found.items():
        state = trials[number].state
        assert (run.info.status, run.data.tags.get("outcome")) == ENDS[state]
        assert run.data.params["rate"] == str(trials[number].params["rate"])
    best = OmegaConf.load(tmp_path / "out" / "experiment" / "best.yaml")
    assert best.defaults == [{"override /optimizer": study.best_params["optimizer"]}]
