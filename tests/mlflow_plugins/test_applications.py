"""Applications that are not ours: their jobs as runs, MLflow used beside, and plug-ins found."""

import json
import os
import socket
import subprocess
from pathlib import Path

import numpy as np
import optuna
import pytest
from hydra.conf import HydraConf
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus
from hydra.types import RunMode
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow_store import runs_in, started
from omegaconf import OmegaConf
from optuna.trial import TrialState

from srs_eval.errors import Pruned
from srs_eval.mlflow_plugins.active_run import ActiveRun
from srs_eval.mlflow_plugins.hydra_callback import MlflowRuns
from srs_eval.tracking import run_facts
from srs_eval.tracking.items import Tag
from srs_eval.tracking.mlflow_tracker import MlflowTracker
from srs_eval.tracking.tracker import RunInfo

pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow's own
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
    client, (run, *_) = runs_in(global_uri, "hydra jobs")
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
    found = {run.data.params["rate"]: run for run in runs_in(tmp_path, "descend")[1]}
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
    found = {run.data.tags["trial"]: run for run in runs_in(tmp_path, "other_app")[1]}
    assert found.keys() == trials.keys()
    for number, run in found.items():
        state = trials[number].state
        assert (run.info.status, run.data.tags.get("outcome")) == ENDS[state]
        assert run.data.params["rate"] == str(trials[number].params["rate"])
    best = OmegaConf.load(tmp_path / "out" / "experiment" / "best.yaml")
    assert best.defaults == [{"override /optimizer": study.best_params["optimizer"]}]


NAMES = ("MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME")


@pytest.fixture
def ours(uri):
    """A tracker with an open run, in another experiment than the one MLflow was told."""
    tracker = MlflowTracker(uri=uri, experiment="ours")
    tracker.start(RunInfo("ours"))
    return tracker


def test_what_a_job_logs_goes_to_its_run_whatever_was_chosen_before(
    global_uri, ours, tmp_path, monkeypatch
):
    import mlflow

    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "elsewhere")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'another.db'}")
    before = {name: os.environ.get(name) for name in NAMES}
    active = ActiveRun(ours.environment())
    mlflow.log_metric("loss", 0.5)
    mlflow.end_run()
    with mlflow.start_run(run_name="besides") as besides:
        pass
    mlflow.set_experiment("elsewhere")  # with nothing left to go on with, the job may
    active.restore()
    assert {name: os.environ.get(name) for name in NAMES} == before
    assert mlflow.get_tracking_uri() == f"sqlite:///{tmp_path / 'another.db'}"
    run_id = ours.finish("finished").run_id
    client = MlflowClient(global_uri)
    run = client.get_run(run_id)
    assert (run.data.metrics, run.info.status) == ({"loss": 0.5}, "FINISHED")
    assert besides.info.experiment_id == run.info.experiment_id
    mlflow.set_tracking_uri(global_uri)
    elsewhere = client.get_experiment_by_name("elsewhere").experiment_id
    with mlflow.start_run() as after:
        assert after.info.experiment_id == elsewhere


def test_a_run_left_open_is_closed_and_another_store_in_a_job_is_mlflows_refusal(
    global_uri, ours, tmp_path
):
    import mlflow

    before = {name: os.environ.get(name) for name in NAMES}
    ActiveRun(ours.environment()).restore()  # of a job that does not use MLflow
    assert {name: os.environ.get(name) for name in NAMES} == before
    active = ActiveRun(ours.environment())
    mlflow.set_experiment("elsewhere")
    with pytest.raises(MlflowException, match="does not match environment run ID"):
        mlflow.start_run()
    active.restore()
    active = ActiveRun(ours.environment())
    mlflow.log_metric("loss", 0.5)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'another.db'}")
    active.restore()
    assert mlflow.active_run() is None
    assert mlflow.get_tracking_uri() == global_uri
    ours.finish("finished")


def test_runs_of_others_are_told_only_while_one_of_ours_is_open(global_uri):
    import mlflow

    with mlflow.start_run() as before:
        pass
    tracker = MlflowTracker(uri=global_uri)
    tracker.start(RunInfo("ours", tags={"protocol": "srs_benchmark", "label": "fsrs6"}))
    tracker.log([Tag("data_fingerprint", "abc"), Tag("note", "x")])
    following = MlflowTracker(uri=global_uri)  # the next job of a sweep begins before this one ends
    following.start(RunInfo("next", tags={"protocol": "validation"}))
    tracker.log([Tag("rows_fingerprint", "def")])
    following.finish("finished")
    with mlflow.start_run() as meanwhile:
        pass
    ours = tracker.finish("finished").run_id
    with mlflow.start_run() as after:
        pass
    client = MlflowClient()
    for run in (before, after):
        tags = client.get_run(run.info.run_id).data.tags
        assert {name for name in tags if not name.startswith("mlflow.")} == set()
    tags = client.get_run(meanwhile.info.run_id).data.tags
    assert (tags["protocol"], tags["data_fingerprint"]) == ("srs_benchmark", "abc")
    assert tags["rows_fingerprint"] == "def"
    assert (tags["host"], tags["pid"]) == (socket.gethostname(), str(os.getpid()))
    assert tags["version.mlflow"]
    assert not {"label", "note"} & set(tags)
    tags = client.get_run(ours).data.tags
    assert (tags["label"], tags["pid"]) == ("fsrs6", str(os.getpid()))
    assert not [name for name in tags if name.startswith("version.")]
    kept = json.loads(Path(client.download_artifacts(ours, "environment.json")).read_text())
    assert kept["version.srs-eval"] == run_facts.process_facts()["version.srs-eval"]


def test_code_that_was_changed_since_its_commit_is_dirty(tmp_path):
    def git(*words):
        own = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    def is_dirty():
        run_facts.is_dirty.cache_clear()
        return run_facts.is_dirty(tmp_path)

    assert is_dirty() is None
    git("init")
    (tmp_path / "code.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    assert is_dirty() is False
    (tmp_path / "output.txt").write_text("not under version control\n")
    assert is_dirty() is False
    (tmp_path / "code.py").write_text("2\n")
    assert is_dirty() is True
    run_facts.is_dirty.cache_clear()


PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    {first}
    from mlflow.data.dataset_source_registry import _dataset_source_registry
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
    from mlflow.tracking.context.registry import _run_context_provider_registry
assert not [w for w in told if "register" in str(w.message)], [str(w.message) for w in told]
sources = [source.__name__ for source in _dataset_source_registry.sources]
contexts = [type(provider).__name__ for provider in _run_context_provider_registry]
assert sources.count("ReviewLogSource") == 1, sources
assert contexts.count("SrsRunContext") == 1, contexts
assert _model_evaluation_registry.is_registered("srs_eval")
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import mlflow", "import srs_eval.mlflow_plugins.evaluation"])
def test_mlflow_registers_each_whatever_is_imported_first(first, tmp_path):
    started(tmp_path, "-c", PROGRAM.format(first=first))
