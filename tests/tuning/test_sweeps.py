"""Sweeps as a person meets them: to the best configuration, killed or not, in any launcher."""

import shlex
import sys
from contextlib import nullcontext

import optuna
import pytest
from cases import rest_nightly
from commands import SMALL, outcome_of, summary_of, write
from filelock import FileLock
from mlflow_store import runs_in
from omegaconf import OmegaConf

from srs_eval.tracking.tracker import sweep_id

BRIEF = (*SMALL, "figures=false", "panel=quick", "curves_per_user=0")
HLR = (*("-m", "algo=hlr", "sweep=optuna_fsrs"), *BRIEF, "hydra.sweep.dir=out")
THREE = (*HLR, "hydra.sweeper.n_trials=3")


def study_in(folder):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.load_study(study_name="search", storage=f"sqlite:///{folder / 'optuna.db'}")


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


def test_what_cannot_be_searched_is_refused_before_anything_is_kept(here, transcript, monkeypatch):
    reason = "hydra-joblib-launcher is needed"
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason=reason)
    out = here.folder / "out"

    def told_by(*words):
        if words[0] == "without_optuna":
            monkeypatch.setitem(sys.modules, "optuna", None)  # importing it fails
        with FileLock(out / "optuna.db.lock") if words[0] == "locked" else nullcontext():
            given = [word for word in words if "=" in word]
            done = here(*THREE, *given, "tracking=none", "hydra.sweeper.max_failures=1")
        assert (done.status, (out / "experiment").exists()) == (2, False), words
        return done.err

    transcript("not_searched", told_by)
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


LAUNCHERS = ("joblib", "submitit_local")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", rest_nightly(LAUNCHERS))
def test_a_grid_of_another_launcher_has_the_runs_of_one_sweep(here, launcher):
    for name in ("joblib", "submitit"):
        pytest.importorskip(f"hydra_plugins.hydra_{name}_launcher", reason=f"needs hydra-{name}")
    mine = "_target_: srs_eval.algorithms.combined.per_group.PerGroup\nbase: half_life\n"
    half_life = "_target_: srs_eval.algorithms.half_life.hlr.Hlr\nprior_weight: 2.0\n"
    write(here.folder, {"own/algo/mine.yaml": mine, "own/algo/half_life.yaml": half_life})
    before, store = here.folder / "before", f"sqlite:///{here.folder / 'runs.db'}"
    baseline = here("algo=avg", *BRIEF, "tracking=none", f"hydra.run.dir={before}")
    assert baseline.status == 0, baseline.err
    words = ["-m", "--config-dir", "own", "algo=mine,avg", *BRIEF, f"baseline={before}"]
    # an absolute folder: a reused worker has the one of another test
    words += [f"hydra/launcher={launcher}", f"hydra.sweep.dir={here.folder / 'out'}"]
    done = here(*words, f"tracking.uri={store}")
    assert done.status == 0, done.err
    mine, avg = (here.folder / "out" / job for job in ("0_mine", "1_avg"))
    # the arguments of an option of one's own are known, and so not part of its label
    labels = [outcome_of(folder)["label"] for folder in (mine, avg)]
    assert labels == ["mine[Hlr(prior_weight=2.0)]", "avg"]
    assert summary_of(avg)["metrics"] == summary_of(before)["metrics"]
    _, runs = runs_in(store)
    assert len({run.data.tags["sweep_id"] for run in runs}) == 1
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert {run.data.tags["baseline"] for run in runs} == {"avg"}
