"""Searches: they choose by rows before the test rows, and go on where they were killed."""

import os
import shlex
import signal
import subprocess
import sys
import time

import optuna
import pytest
from commands import QUIET, SMALL, outcome_of, summary_of
from omegaconf import OmegaConf

BRIEF = (*SMALL, *QUIET, "panel=quick", "curves_per_user=0", "data.max_reviews=1500")
SPACE = "algo.prior_weight=tag(log,interval(0.1,10))"
SEARCH = ("-m", "algo=hlr", "sweep=optuna", SPACE, *BRIEF, "hydra.sweep.dir=out")
THREE = (*SEARCH, "hydra.sweeper.n_trials=3")


def trials_in(folder):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{folder / 'optuna.db'}"
    return optuna.load_study(study_name="search", storage=storage).trials


@pytest.mark.slow
def test_a_search_ends_with_a_command_for_its_best_trial(here):
    done = here(*THREE)
    assert done.status == 0, done.err
    out = here.folder / "out"
    trials = trials_in(out)
    losses = [summary_of(out / f"{n}_hlr")["metrics"]["log_loss"]["mean_users"] for n in range(3)]
    assert [trial.value for trial in trials] == losses
    assert all(summary_of(out / f"{n}_hlr")["is_validation"] for n in range(3))
    best = min(trials, key=lambda trial: trial.value)
    result = OmegaConf.load(out / "optimization_results.yaml")
    assert result.best_evaluated_value == best.value
    assert dict(result.best_evaluated_params) == best.params
    assert f"trial {best.number}: validation log_loss {best.value:.4f}" in done.out
    (command,) = (line for line in done.out.splitlines() if line.startswith("use it "))
    final = here(*shlex.split(command)[5:], "hydra.run.dir=final")
    assert final.status == 0, final.err
    config = OmegaConf.load(here.folder / "final" / ".hydra" / "config.yaml")
    assert config.algo.prior_weight == best.params["algo.prior_weight"]
    assert not summary_of(here.folder / "final")["is_validation"]
    times = [(out / f"{n}_hlr" / "summary.json").stat().st_mtime_ns for n in range(3)]
    again = here(*THREE)  # nothing is left to do
    assert (again.status, trials_in(out)[-1].number) == (0, 2)
    assert times == [(out / f"{n}_hlr" / "summary.json").stat().st_mtime_ns for n in range(3)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["protocol=srs_benchmark"], "protocol=srs_benchmark scores test rows"),
        (["hydra.sweeper.metric=loss"], "hydra.sweeper.metric=loss: expected one of log_loss"),
        (["seed=choice(1)", "algo.prior_weight=interval(3,1)"], "algo.prior_weight"),
        (["protocol.share=interval(0.5,0.9)"], "trials on other rows cannot be compared"),
        (["algo.prior_weight=1"], "nothing to search"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_line(here, words, said):
    done = here(*SEARCH, *words)
    assert (done.status, said in done.err, "Traceback" in done.err) == (1, True, False), done.err
    assert not (here.folder / "out" / "0_hlr").exists()


@pytest.mark.slow
def test_another_search_in_the_folder_is_refused(here):
    assert here(*SEARCH, "hydra.sweeper.n_trials=1").status == 0
    done = here(*THREE, "algo.prior_weight=interval(1,2)")
    assert (done.status, "has a search with other space" in done.err) == (1, True)
    assert len(trials_in(here.folder / "out")) == 1


@pytest.mark.slow
def test_failed_trials_are_told_and_end_the_search(here):
    words = ("algo.prior_weight=choice(-1,-2,-3,-4)", "hydra.sweeper.max_failures=2")
    done = here(*SEARCH, *words)
    assert done.status == 1
    assert "2 trials in a row have failed" in done.err
    assert [t.state.name for t in trials_in(here.folder / "out")] == ["FAIL", "FAIL"]


@pytest.mark.slow
def test_a_killed_search_goes_on_with_the_trial_that_was_under_way(here):
    assert here(*THREE[:-2], "hydra.sweep.dir=whole", THREE[-1]).status == 0
    command = [sys.executable, "-m", "srs_eval", *THREE]
    with subprocess.Popen(command, cwd=here.folder, start_new_session=True) as search:
        while not (here.folder / "out" / "1_hlr" / "job.json").is_file():
            assert search.poll() is None
            time.sleep(0.02)
        os.killpg(search.pid, signal.SIGKILL)
    kept = (here.folder / "out" / "0_hlr" / "summary.json").stat().st_mtime_ns
    assert here(*THREE).status == 0
    assert kept == (here.folder / "out" / "0_hlr" / "summary.json").stat().st_mtime_ns
    whole, parts = (trials_in(here.folder / name) for name in ("whole", "out"))
    assert [(t.number, t.params, t.value) for t in parts] == [
        (t.number, t.params, t.value) for t in whole
    ]
    assert {outcome_of(here.folder / "out" / f"{n}_hlr")["status"] for n in range(3)} == {"ok"}


@pytest.mark.nightly
def test_a_launcher_evaluates_several_trials_at_once(here):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    words = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweeper.n_trials=4")
    done = here(*SEARCH[:-1], f"hydra.sweep.dir={here.folder / 'out'}", *words)
    assert done.status == 0, done.err
    assert [t.state.name for t in trials_in(here.folder / "out")] == ["COMPLETE"] * 4
