"""Sweeps as a person meets them: from a command to the best configuration, killed or not."""

import os
import shlex
import signal
import subprocess
import sys
import time

import optuna
import pytest
from commands import Done, apart, outcome_of, process, summary_of
from filelock import FileLock
from omegaconf import OmegaConf

from srs_eval.errors import Pruned
from srs_eval.tracking.tracker import sweep_id
from srs_eval.tuning.progress import RunningTrial, reporting_to

SMALL = ("data.users=2", "data.size_scale=0.02", "data.max_reviews=3000")
BRIEF = (*SMALL, "figures=false", "panel=quick", "curves_per_user=0")
HLR = (*("-m", "algo=hlr", "sweep=optuna_fsrs"), *BRIEF, "hydra.sweep.dir=out")
THREE = (*HLR, "hydra.sweeper.n_trials=3")


def study_in(folder):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder / 'optuna.db'}")


def runs_in(folder):
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("srs_eval")
    return client, client.search_runs([experiment.experiment_id])


def best_of(folder):
    return OmegaConf.load(folder / "experiment" / "best.yaml")


@pytest.mark.slow
def test_a_sweep_ends_with_its_best_configuration_and_a_run_beside_those_of_its_trials(
    here, monkeypatch
):
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
def test_spaces_and_settings_may_be_given_in_words(here):
    words = ["algo.recency=exponential", "algo.half_life=interval(0.1,0.9)", "tracking=none"]
    more = ["hydra.sweeper.metric=auc", "hydra.sweeper.direction=maximize", "hydra.sweeper.seed=3"]
    done = here(*THREE, *words, *more, "algo.prior_weight=1")
    assert done.status == 0, done.err
    study = study_in(here.folder / "out")
    # the configuration as it is comes first, because the space holds it
    assert study.trials[0].params == {"algo.half_life": 0.5}
    summaries = [summary_of(here.folder / "out" / f"{n}_hlr") for n in range(3)]
    assert study.best_value == max(s["metrics"]["auc"]["mean_users"] for s in summaries)


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


def test_what_cannot_be_searched_is_refused_before_anything_is_kept(here, golden_text, monkeypatch):
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
    grid = ["-m", "algo=avg", *BRIEF, "tracking=none", "hydra.sweep.dir=grid", "seed=1"]
    assert here(*grid).status == 0  # needs no optuna


@pytest.mark.slow
def test_a_trial_that_is_not_worth_it_ends_as_pruned(here):
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
def test_a_job_with_one_user_reports_after_each_epoch_and_can_be_ended_there(here):
    told = []

    def report(step, value):
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


@pytest.mark.nightly
def test_a_sweep_that_is_killed_ends_as_if_nothing_had_been(here):
    """Trials after the fifth may be pruned, and those after the sixth depend on what was found."""
    words = [*HLR, "algo.recency=choice(none,mild)", "hydra.sweeper.pruner=median", "tracking=none"]
    words += ["hydra.sweeper.n_trials=9", "hydra.sweeper.startup_trials=6"]
    assert here(*words, "hydra.sweep.dir=whole").status == 0
    command = [sys.executable, "-m", "srs_eval", *words]
    with subprocess.Popen(command, cwd=here.folder, start_new_session=True, stdout=-3) as process:
        while not list((here.folder / "out").glob("6_*/job.json")):
            assert process.poll() is None
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGKILL)
    assert apart(here.folder, *words, timeout=600).status == 0
    studies = [study_in(here.folder / place) for place in ("out", "whole")]
    one, other = ([(t.params, t.state, t.value) for t in study.trials] for study in studies)
    assert one == other
    assert len({str(params) for params, *_ in one}) == 9
    assert best_of(here.folder / "out") == best_of(here.folder / "whole")


APP = """
import hydra

@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def app(cfg):
    return {"loss": cfg.x / cfg.by}

if __name__ == "__main__":
    app()
"""
CONFIG = """
defaults: [_self_, override hydra/sweeper: resumable_optuna]
x: 3
by: 1
hydra: {sweeper: {n_trials: 2, max_failures: 2, metric: loss, params: {x: 'range(1,9)'}}}
"""


@pytest.mark.nightly
def test_an_app_is_searched_as_it_was_started_and_ends_with_its_error(tmp_path):
    for name, text in (("my app/app.py", APP), ("my app/conf/config.yaml", CONFIG)):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "here").mkdir()

    def start(*words):
        done = process(
            [sys.executable, *words],
            cwd=tmp_path / "here",
            env={**os.environ, "PYTHONPATH": str(tmp_path / "my app")},
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    done = start("../my app/app.py", "-m")
    assert done.status == 0, done.err
    (use_it,) = [line for line in done.out.splitlines() if line.startswith("use it")]
    typed = shlex.split(use_it.removeprefix("use it"))
    assert typed[:2] == ["python", "../my app/app.py"]
    assert start(*typed[1:]).status == 0
    assert "use it   python -m app --config-dir" in start("-m", "app", "-m").out
    done = start("../my app/app.py", "-m", "by=0", "hydra.sweep.dir=failed")
    assert (done.status, "Traceback" in done.err) == (1, False)
    assert "ZeroDivisionError" in done.err
    states = [trial.state.name for trial in study_in(tmp_path / "here" / "failed").trials]
    assert states == ["FAIL"] * 2
