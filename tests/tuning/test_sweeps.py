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
from commands import Done, Here, apart, outcome_of, summary_of
from filelock import FileLock
from omegaconf import OmegaConf

from srs_eval.errors import Pruned
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


def runs_in(folder: Path) -> Any:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("srs_eval")
    assert experiment is not None
    return client, client.search_runs([experiment.experiment_id])


def best_of(folder: Path) -> Any:
    return OmegaConf.load(folder / "experiment" / "best.yaml")


@pytest.mark.slow
def test_a_sweep_ends_with_its_best_configuration_and_a_run_beside_those_of_its_trials(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
        monkeypatch.delenv(name)
    done = here(*THREE)
    assert done.status == 0, done.err
    out = here.folder / "out"
    trials = study_in(out).trials
    values = [summary_of(out / f"{n}_hlr")["metrics"]["log_loss"]["mean_users"] for n in range(3)]
    assert [trial.value for trial in trials] == values
    best = min(trials, key=lambda trial: trial.value or 9)
    told = f"trial {best.number}: validation log loss, on rows before every test row: "
    assert told + f"{best.value:.4f}" in done.out
    assert "trials   3: 3 complete" in done.out
    command = (out / "experiment" / "best.yaml").read_text("utf-8").splitlines()[1]
    words = shlex.split(command.removeprefix("# python -m srs_eval "))
    # what is a setting must not be taken for a group because of a folder of that name
    free = ["seed=7", "curves_per_user=0", "resume=false", "notes=x", "name=y"]
    final = here(*words, *free, "tracking=none", "figures=false", "hydra.run.dir=final")
    assert final.status == 0, final.err
    assert "protocol   srs_benchmark," in final.out
    algo = OmegaConf.load(here.folder / "final" / ".hydra" / "config.yaml").algo
    chosen = {"algo.prior_weight": algo.prior_weight, "algo.recency": algo.recency}
    assert (algo._target_.endswith("Hlr"), chosen) == (True, best.params)

    client, runs = runs_in(here.folder)
    assert {run.data.tags["sweep_id"] for run in runs} == {sweep_id(out)}
    assert {run.data.tags.get("trial") for run in runs} == {"0", "1", "2", None}
    (search,) = [run for run in runs if run.data.tags.get("kind") == "sweep"]
    kept = {file.path for file in client.list_artifacts(search.info.run_id)}
    figures = ("optimisation_history", "parameter_importance")
    assert {f"{name}.svg" for name in figures} | {"best"} <= kept
    assert all((out / "search_figures" / f"{name}.png").is_file() for name in figures)
    assert search.data.metrics["best/log_loss"] == pytest.approx(best.value, abs=6e-5)
    assert search.data.metrics["best/trial"] == best.number
    assert "3 of 3 trials were done before" in here(*THREE).out
    assert len(runs_in(here.folder)[1]) == len(runs)


@pytest.mark.slow
def test_spaces_and_settings_may_be_given_in_words(here: Here) -> None:
    words = ["algo.recency=exponential", "algo.half_life=interval(0.1,0.9)", "tracking=none"]
    more = ["hydra.sweeper.metric=auc", "hydra.sweeper.direction=maximize", "hydra.sweeper.seed=3"]
    done = here(*THREE, *words, *more, "algo.prior_weight=1")
    assert done.status == 0, done.err
    study = study_in(here.folder / "out")
    # the configuration as it is comes first, because the space holds it
    assert study.trials[0].params == {"algo.half_life": 0.5}
    summaries = [summary_of(here.folder / "out" / f"{n}_hlr") for n in range(3)]
    assert study.best_value == max(s["metrics"]["auc"]["mean_users"] for s in summaries)
    assert best_of(here.folder / "out").algo.recency == "exponential"


NOT_SEARCHED = (
    "protocol=srs_benchmark",
    "hydra.sweeper.metric=auc",
    "hydra.sweeper.direction=maximize",
    "hydra.sweeper.metric=mbe",
    "hydra.sweeper.metric=logloss",
    "algo.prior_wait=interval(1,3)",
    "sweep=optuna_lstm",
    "hydra.sweeper.pruner=median hydra/launcher=joblib",
)


def test_what_cannot_be_searched_is_refused_before_anything_is_kept(
    here: Here, golden_text: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "hydra-joblib-launcher is needed"
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason=reason)
    text = ""
    for words in NOT_SEARCHED:
        done = here(*THREE, *words.split(), "tracking=none", "hydra.sweeper.max_failures=1")
        assert done.status == 2, words
        text += f"{words}\n{done.err}\n"
        assert not (here.folder / "out" / "experiment").exists()
    with FileLock(here.folder / "out" / "optuna.db.lock"):
        text += f"searched by another\n{here(*THREE, 'tracking=none').err}\n"
    monkeypatch.setitem(sys.modules, "optuna", None)  # importing it fails
    text += f"without optuna\n{here(*THREE, 'tracking=none').err}"
    golden_text("not_searched", text.replace(str(here.folder), "FOLDER"))
    grid = ["-m", "algo=avg", *BRIEF, "tracking=none", "hydra.sweep.dir=grid", "seed=1,2"]
    assert here(*grid).status == 0  # needs no optuna


@pytest.mark.slow
def test_a_trial_that_is_not_worth_it_ends_as_pruned(here: Here) -> None:
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
    _, runs = runs_in(here.folder)
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


# ---- any app


def app(folder: Path, *words: str, path: Path | None = None) -> Done:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path or folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


OTHER = str(ROOT / "examples" / "other_app" / "train.py")


@pytest.mark.slow
def test_another_app_is_searched_and_pruned_by_the_same_sweeper(tmp_path: Path) -> None:
    done = app(tmp_path, OTHER, "-m", "hydra.sweep.dir=out", "hydra.sweeper.n_trials=12")
    assert done.status == 0, done.err
    study = study_in(tmp_path / "out")
    states = [trial.state.name for trial in study.trials]
    assert (len(states), set(states)) == (12, {"COMPLETE", "PRUNED"})
    assert study.best_params["optimizer"] == "quiet"
    assert best_of(tmp_path / "out").defaults == [{"override /optimizer": "quiet"}]
    command = (tmp_path / "out" / "experiment" / "best.yaml").read_text("utf-8").splitlines()[1]
    typed = f"# python {OTHER} "
    assert command.startswith(typed)
    words = shlex.split(command.removeprefix(typed))
    assert app(tmp_path, OTHER, *words, "hydra.run.dir=final").status == 0
    config = OmegaConf.load(tmp_path / "final" / ".hydra" / "config.yaml")
    assert config.rate == study.best_params["rate"]


@pytest.mark.nightly
def test_an_app_that_fails_ends_the_search_with_its_error(tmp_path: Path) -> None:
    done = app(tmp_path, OTHER, "-m", "steps=none", "hydra.sweep.dir=out")
    assert (done.status, "Traceback" in done.err) == (1, False)
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


@pytest.mark.nightly
def test_an_app_is_searched_by_any_number_that_it_returns_and_as_it_was_started(
    tmp_path: Path,
) -> None:
    for name, text in (("my app/app.py", APP), ("my app/conf/config.yaml", CONFIG)):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "here").mkdir()

    def start(*words: str) -> Done:
        return app(tmp_path / "here", *words, path=tmp_path / "my app")

    def search(kind: str, *words: str) -> Done:
        words = (f"kind={kind}", f"hydra.sweep.dir={kind}", *words)
        return start("../my app/app.py", "-m", *words)

    for kind, words in (
        ("float32", ()),
        ("int64", ()),
        ("named", ("hydra.sweeper.metric=loss",)),
    ):
        done = search(kind, *words)
        assert done.status == 0, done.err
        (use_it,) = [line for line in done.out.splitlines() if line.startswith("use it")]
        typed = shlex.split(use_it.removeprefix("use it"))
        assert typed[:2] == ["python", "../my app/app.py"]
        assert start(*typed[1:]).status == 0
    assert "use it   python -m app --config-dir" in start("-m", "app", "-m").out
    for kind, words, told in (
        ("named", ("hydra.sweep.dir=x",), "trial 0: the job returned loss, but no objective"),
        ("bool", (), "expected a number"),
        ("text", (), "expected a number"),
        ("int64", ("x=interval(3,1)",), "x=interval(3,1): "),
        ("int64", ("hydra.sweep.dir=named", "hydra.sweeper.seed=1"), "another search"),
    ):
        done = search(kind, *words)
        assert (done.status, "Traceback" in done.text) == (1, False)
        assert told in done.err
