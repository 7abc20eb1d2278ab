"""Sweeps as a person meets them: from a command to the best configuration, killed or not."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from cases import rest_nightly
from commands import Done, Here, apart, outcome_of, summary_of
from filelock import FileLock
from omegaconf import OmegaConf

from srs_eval.errors import Pruned
from srs_eval.tuning.figures import importances
from srs_eval.tuning.identity import sweep_id
from srs_eval.tuning.progress import RunningTrial, reporting_to

ROOT = Path(__file__).parents[2]
SMALL = ("data.users=2", "data.size_scale=0.02", "data.max_reviews=3000")
BRIEF = (*SMALL, "figures=false", "panel=quick", "curves_per_user=0")
HLR = (*("-m", "algo=hlr", "sweep=optuna_fsrs"), *BRIEF, "hydra.sweep.dir=out")
THREE = (*HLR, "hydra.sweeper.n_trials=3")


def study_in(folder: Path) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder / 'optuna.db'}")


def best_of(folder: Path) -> Any:
    return OmegaConf.load(folder / "experiment" / "best.yaml")


@pytest.mark.slow
def test_a_sweep_ends_with_its_best_configuration_ready_to_use(here: Here) -> None:
    done = here(*THREE, "tracking=none")
    assert done.status == 0, done.err
    out = here.folder / "out"
    trials = study_in(out).trials
    values = [summary_of(out / f"{n}_hlr")["metrics"]["log_loss"]["mean_users"] for n in range(3)]
    assert [trial.value for trial in trials] == values
    best = min(trials, key=lambda trial: trial.value or 9)
    told = f"trial {best.number}: validation log loss, on rows before every test row: "
    assert told + f"{best.value:.4f}" in done.out
    assert "trials   3: 3 complete" in done.out
    for name in ("optimisation_history", "parameter_importance"):
        assert (out / "search_figures" / f"{name}.png").is_file()
    command = (out / "experiment" / "best.yaml").read_text("utf-8").splitlines()[1]
    words = shlex.split(command.removeprefix("# python -m srs_eval "))
    # what is a setting must not be taken for a group because of a folder of that name
    free = ["seed=7", "curves_per_user=0", "resume=false", "notes=x", "name=y"]
    done = here(*words, *free, "tracking=none", "figures=false", "hydra.run.dir=final")
    assert done.status == 0, done.err
    assert "protocol   srs_benchmark," in done.out
    algo = OmegaConf.load(here.folder / "final" / ".hydra" / "config.yaml").algo
    assert algo._target_.endswith("Hlr")
    assert (algo.prior_weight, algo.recency) == (
        best.params["algo.prior_weight"],
        best.params["algo.recency"],
    )


@pytest.mark.slow
def test_trials_are_flat_runs_joined_by_the_sweep_and_the_search_is_a_run_beside_them(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    assert here(*THREE, "hydra.sweeper.n_trials=2").status == 0
    client = MlflowClient(f"sqlite:///{here.folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("srs_eval")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    assert {run.data.tags["sweep_id"] for run in runs} == {sweep_id(here.folder / "out")}
    assert {run.data.tags.get("trial") for run in runs} == {"0", "1", None}
    (search,) = [run for run in runs if run.data.tags.get("kind") == "sweep"]
    kept = {file.path for file in client.list_artifacts(search.info.run_id)}
    assert {"optimisation_history.svg", "parameter_importance.svg", "best"} <= kept
    best = study_in(here.folder / "out").best_value
    assert search.data.metrics["best/log_loss"] == pytest.approx(best, abs=6e-5)
    again = here(*THREE, "hydra.sweeper.n_trials=2")
    assert "2 of 2 trials were done before" in again.out
    assert len(client.search_runs([experiment.experiment_id])) == len(runs)


@pytest.mark.slow
def test_spaces_and_settings_may_be_given_in_words(here: Here) -> None:
    words = ["algo.recency=exponential", "algo.half_life=0.25,0.5", "hydra.sweeper.seed=3"]
    more = ["hydra.sweeper.metric=auc", "hydra.sweeper.direction=maximize", "tracking=none"]
    done = here(*THREE, *words, *more)
    assert done.status == 0, done.err
    study = study_in(here.folder / "out")
    assert set(study.best_params) == {"algo.prior_weight", "algo.half_life"}
    summaries = [summary_of(here.folder / "out" / f"{n}_hlr") for n in range(3)]
    assert study.best_value == max(s["metrics"]["auc"]["mean_users"] for s in summaries)
    assert best_of(here.folder / "out").algo.recency == "exponential"


@pytest.mark.slow
def test_the_configuration_as_it_is_comes_first_where_the_space_holds_it(here: Here) -> None:
    words = ["algo.recency=exponential", "algo.prior_weight=1"]
    words += ["algo.half_life=interval(0.1,0.9)"]
    here(*HLR, *words, "tracking=none", "hydra.sweeper.n_trials=1")
    assert study_in(here.folder / "out").trials[0].params == {"algo.half_life": 0.5}


@pytest.mark.parametrize(
    ("words", "told"),
    rest_nightly(
        [
            (["protocol=srs_benchmark"], "protocol=srs_benchmark: "),
            (
                ["hydra.sweeper.metric=auc"],
                "metric=auc: higher is better; add hydra.sweeper.direction",
            ),
            (
                ["hydra.sweeper.direction=maximize"],
                "log_loss: lower is better; add hydra.sweeper.d",
            ),
            (
                ["hydra.sweeper.metric=mbe", "panel=default"],
                "neither the lowest nor the highest is best",
            ),
            (["hydra.sweeper.metric=logloss"], "hydra.sweeper.metric=logloss: not in panel=quick"),
            (["algo.prior_wait=interval(1,3)"], "did you mean 'algo.prior_weight'?"),
            (["sweep=optuna_lstm"], "of algo=lstm"),
        ],
    ),
)
def test_what_cannot_be_searched_is_refused_with_the_reason(
    here: Here, words: list[str], told: str
) -> None:
    done = here(*THREE, *words, "tracking=none")
    assert done.status == 2
    assert told in done.err
    assert "Traceback" not in done.text
    assert not (here.folder / "out" / "experiment").exists()


@pytest.mark.slow
def test_two_commands_do_not_search_in_one_folder(here: Here) -> None:
    (here.folder / "out").mkdir()
    with FileLock(here.folder / "out" / "optuna.db.lock"):
        done = here(*THREE, "tracking=none")
    assert done.status == 2
    assert "another command is searching in" in done.err


@pytest.mark.slow
def test_a_trial_that_is_not_worth_it_ends_as_pruned(here: Here) -> None:
    from mlflow import MlflowClient

    words = ["hydra.sweeper.n_trials=9", "hydra.sweeper.pruner=median", "data.users=4"]
    done = here(*HLR, *words)
    assert done.status == 0, done.err
    out = here.folder / "out"
    states = [trial.state.name for trial in study_in(out).trials]
    assert states.count("PRUNED") + states.count("COMPLETE") == 9
    assert "PRUNED" in states
    pruned = out / f"{states.index('PRUNED')}_hlr"
    assert outcome_of(pruned)["status"] == "pruned"
    assert {path.name for path in pruned.iterdir()} == {"job.json", ".hydra", ".lock"}
    assert "others were better" in done.out
    # neither finished nor failed in the tracker
    client = MlflowClient(f"sqlite:///{here.folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("srs_eval")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    ends = {run.data.tags.get("outcome", ""): run.info.status for run in runs}
    assert ends == {"": "FINISHED", "pruned": "KILLED"}


AS_TRIAL = "+" + RunningTrial(0, "log_loss").override()
ONE_FIT = ("algo=gru", "protocol=validation", *BRIEF, "data.users=1", "tracking=none")


@pytest.mark.slow
def test_a_job_with_one_user_reports_after_each_epoch_and_can_be_ended_there(here: Here) -> None:
    told: list[tuple[int, float]] = []

    def report(step: int, value: float) -> None:
        told.append((step, value))
        if len(told) == 6:
            raise Pruned("that is enough")

    words = [*ONE_FIT, "algo.epochs=4", AS_TRIAL]
    # workers would not reach the search, and so there are none
    with reporting_to(report):
        assert here(*words, "compute=processes", "hydra.run.dir=whole").status == 0
        pruned = here(*words, "compute=processes", "hydra.run.dir=pruned")
    assert here(*words[:-1], "hydra.run.dir=alone").status == 0
    assert [step for step, _ in told] == [1, 2, 3, 4, 1, 2]
    assert told[4:] == told[:2]
    scores = [summary_of(here.folder / run)["metrics"] for run in ("whole", "alone")]
    assert scores[0] == scores[1]
    assert scores[0]["log_loss"]["mean_users"] == told[3][1]
    assert outcome_of(here.folder / "pruned")["status"] == "pruned"
    assert not (here.folder / "pruned" / "summary.json").exists()
    assert "failed" not in pruned.text


@pytest.mark.slow
def test_a_job_with_two_users_reports_after_each_user(here: Here) -> None:
    told: list[tuple[int, float]] = []
    with reporting_to(lambda step, value: told.append((step, value))):
        words = ["algo=hlr", "protocol=validation", *BRIEF, "tracking=none"]
        done = here(*words, "hydra.run.dir=out", AS_TRIAL)
    assert done.status == 0
    assert [step for step, _ in told] == [1, 2]
    whole = summary_of(here.folder / "out")["metrics"]["log_loss"]["mean_users"]
    assert told[1][1] == pytest.approx(whole, rel=1e-12)


@pytest.mark.nightly
def test_a_search_on_one_user_prunes_within_the_fit_and_changes_no_score(here: Here) -> None:
    space = ["algo.learning_rate=tag(log,interval(0.001,0.3))", "algo.epochs=range(5,9)"]
    words = ["-m", *ONE_FIT, *space, "hydra/sweeper=srs_eval_optuna", "hydra.sweeper.n_trials=8"]
    words += ["hydra.sweeper.metric=log_loss", "hydra.sweeper.sampler=random"]
    studies = {}
    for folder, more in (("none", []), ("median", ["hydra.sweeper.prune_from=3"])):
        choice = [f"hydra.sweeper.pruner={folder}", f"hydra.sweep.dir={folder}", *more]
        done = here(*words, *choice)
        assert done.status == 0, done.err
        studies[folder] = study_in(here.folder / folder).trials
    assert [trial.params for trial in studies["none"]] == [t.params for t in studies["median"]]
    ended_early = 0
    for alone, watched in zip(studies["none"], studies["median"], strict=True):
        epochs, steps = watched.params["algo.epochs"], watched.intermediate_values
        if watched.state.name == "COMPLETE":
            assert watched.value == alone.value == steps[epochs]
            assert sorted(steps) == list(range(1, epochs + 1))
        else:
            assert watched.state.name == "PRUNED"
            assert 3 <= max(steps) <= epochs
            ended_early += max(steps) < epochs
    assert ended_early > 0


@pytest.mark.slow
def test_a_grid_needs_no_optuna(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)  # importing it fails
    words = ["-m", "algo=avg", *BRIEF, "tracking=none", "hydra.sweep.dir=out"]
    assert here(*words, "seed=1,2").status == 0
    refused = here(*THREE, "tracking=none")
    assert refused.status == 2
    assert "pip install 'srs-eval[sweep]'" in refused.err


def test_few_trials_tell_nothing_of_importance() -> None:
    study = optuna.create_study()
    assert importances(study) == {}


# ---- killed


def kill_in_trial(folder: Path, number: int, words: Sequence[str]) -> None:
    """Run a command, and kill it with everything it has started once a trial has begun."""
    with (folder / "killed.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "srs_eval", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        while not list((folder / "out").glob(f"{number}_*/job.json")):
            assert process.poll() is None, (folder / "killed.log").read_text()
            time.sleep(0.005)
        time.sleep(0.02 * (number % 5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# Pruned after users, and within the fit of the one user there is. Trials after the fifth may be
# pruned, and those after the sixth are proposed by what was found.
AFTER_USERS = (*HLR, "algo.recency=choice(none,mild)")
WITHIN_FITS = (
    *("-m", "algo=gru", "hydra/sweeper=srs_eval_optuna", "protocol=validation", *BRIEF),
    *("data.users=1", "algo.epochs=range(1,4)", "hydra.sweep.dir=out"),
    "algo.learning_rate=tag(log,interval(0.001,0.3))",
)


@pytest.mark.nightly
@pytest.mark.parametrize("words", [AFTER_USERS, WITHIN_FITS], ids=["2 users", "1 user"])
def test_a_sweep_that_is_killed_again_and_again_ends_as_if_nothing_had_been(
    here: Here, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]
) -> None:
    tmp_path = here.folder
    words = [*words, "hydra.sweeper.pruner=median", "tracking=none"]
    words += ["hydra.sweeper.n_trials=10", "hydra.sweeper.startup_trials=6"]
    for place in ("killed", "whole"):
        (tmp_path / place).mkdir()
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(tmp_path / "whole")
        whole = here(*words)
    assert whole.status == 0, whole.text
    for number in (6, 9):
        kill_in_trial(tmp_path / "killed", number, words)
    killed = apart(tmp_path / "killed", *words, timeout=600)
    assert killed.status == 0, killed.text
    studies = [study_in(tmp_path / place / "out") for place in ("killed", "whole")]
    for study in studies:
        assert len(study.trials) == 10
        assert all(trial.state.is_finished() for trial in study.trials)
        assert len({str(trial.params) for trial in study.trials}) == 10
    one, other = ([(t.params, t.state, t.value) for t in study.trials] for study in studies)
    assert one == other
    assert best_of(tmp_path / "killed" / "out") == best_of(tmp_path / "whole" / "out")


# ---- by MLflow


@pytest.mark.nightly
def test_mlflow_runs_a_search_whose_first_trial_joins_the_run_it_has_begun(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    overrides = " ".join([*BRIEF, "hydra.sweeper.n_trials=2", f"hydra.sweep.dir={tmp_path}/out"])
    words = ["-P", "algo=hlr", "-P", "sweep=optuna_fsrs", "-P", f"overrides={overrides}"]
    words += ["--env-manager", "local"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    store = f"sqlite:///{tmp_path / 'store.db'}"
    done = subprocess.run(
        [sys.executable, "-m", "mlflow", "run", str(ROOT), "-e", "search", *words],
        cwd=tmp_path,
        env={**env, "MLFLOW_TRACKING_URI": store, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    client = MlflowClient(store)
    runs = client.search_runs([e.experiment_id for e in client.search_experiments()])
    assert sorted(run.data.tags.get("trial", "search") for run in runs) == ["0", "1", "search"]
    assert {run.info.status for run in runs} == {"FINISHED"}


# ---- any app


def run_other_app(folder: Path, *words: str) -> Done:
    app = ROOT / "examples" / "other_app" / "train.py"
    done = subprocess.run(
        [sys.executable, str(app), *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_another_app_is_searched_and_pruned_by_the_same_sweeper(tmp_path: Path) -> None:
    done = run_other_app(tmp_path, "-m", "hydra.sweep.dir=out", "hydra.sweeper.n_trials=12")
    assert done.status == 0, done.err
    study = study_in(tmp_path / "out")
    states = [trial.state.name for trial in study.trials]
    assert len(states) == 12
    assert {"COMPLETE", "PRUNED"} == set(states)
    assert study.best_params["optimizer"] == "quiet"
    assert best_of(tmp_path / "out").defaults == [{"override /optimizer": "quiet"}]
    command = (tmp_path / "out" / "experiment" / "best.yaml").read_text("utf-8").splitlines()[1]
    typed = f"# python {ROOT / 'examples' / 'other_app' / 'train.py'} "
    assert command.startswith(typed)
    words = shlex.split(command.removeprefix(typed))
    assert run_other_app(tmp_path, *words, "hydra.run.dir=final").status == 0
    config = OmegaConf.load(tmp_path / "final" / ".hydra" / "config.yaml")
    assert config.rate == study.best_params["rate"]


@pytest.mark.nightly
def test_an_app_that_fails_ends_the_search_with_its_error(tmp_path: Path) -> None:
    done = run_other_app(tmp_path, "-m", "steps=none", "hydra.sweep.dir=out")
    assert done.status == 1
    assert "Traceback" not in done.err
    assert "TypeError" in done.err
    assert "the last 3 trials failed" in done.err
    assert [t.state.name for t in study_in(tmp_path / "out").trials] == ["FAIL"] * 3


APP = """
import hydra
import numpy as np

@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def app(cfg):
    loss = {"float32": np.float32, "int64": np.int64, "bool": np.bool_, "text": str}
    return {"loss": cfg.x} if cfg.kind == "named" else loss[cfg.kind](cfg.x)

if __name__ == "__main__":
    app()
"""
CONFIG = """
defaults: [_self_, override hydra/sweeper: resumable_optuna]
x: 3
kind: float32
hydra: {sweeper: {n_trials: 2, max_failures: 1, params: {x: 'range(1,9)'}}}
"""


@pytest.fixture
def app_below(tmp_path: Path) -> Callable[..., Done]:
    """Start an application from a folder beside it."""
    for name, text in (("my app/app.py", APP), ("my app/conf/config.yaml", CONFIG)):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "here").mkdir()

    def started(*words: str) -> Done:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path / "here",
            env={**os.environ, "PYTHONPATH": str(tmp_path / "my app")},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return started


@pytest.mark.nightly
def test_numbers_of_numpy_are_numbers_and_the_command_is_as_it_was_typed(
    app_below: Callable[..., Done],
) -> None:
    for kind in ("float32", "int64"):
        done = app_below("../my app/app.py", "-m", f"kind={kind}", f"hydra.sweep.dir={kind}")
        assert done.status == 0, done.err
        assert "best     trial" in done.out
    (use_it,) = [line for line in done.out.splitlines() if line.startswith("use it")]
    typed = shlex.split(use_it.removeprefix("use it"))
    assert typed[:2] == ["python", "../my app/app.py"]
    assert app_below(*typed[1:]).status == 0
    done = app_below("-m", "app", "-m", "hydra.sweep.dir=module")
    assert "use it   python -m app --config-dir" in done.out


@pytest.mark.nightly
def test_an_app_is_told_in_a_line_what_its_search_cannot_use(
    app_below: Callable[..., Done],
) -> None:
    app = "../my app/app.py"
    done = app_below(app, "-m", "kind=named", "hydra.sweep.dir=named")
    assert "trial 0: the job returned loss, but no objective" in done.err
    named = ["kind=named", "hydra.sweeper.metric=loss", "hydra.sweep.dir=loss"]
    assert app_below(app, "-m", *named).status == 0
    for kind in ("bool", "text"):
        done = app_below(app, "-m", f"kind={kind}", f"hydra.sweep.dir={kind}")
        assert done.status == 1
        assert "expected a number" in done.err
    for words, told in (
        (["x=interval(3,1)"], "x=interval(3,1): "),
        (["kind=int64", "hydra.sweep.dir=loss"], "another search"),
    ):
        done = app_below(app, "-m", *words)
        assert done.status == 1
        assert told in done.err
        assert "Traceback" not in done.text
