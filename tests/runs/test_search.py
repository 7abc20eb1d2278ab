"""Searches: they choose by rows before the test rows, and end with a command for the best trial."""

import shlex
from pathlib import Path

import optuna
import pyarrow.parquet as pq
import pytest
from commands import QUIET, SMALL, outcome_of, summary_of, write
from mlflow import MlflowClient
from omegaconf import OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

BRIEF = (*SMALL, "panel=quick", "curves_per_user=0", "data.max_reviews=1500")
SPACE = "algo.prior_weight=tag(log,interval(0.1,10))"
SEARCH = ("-m", "algo=hlr", "sweep=optuna", SPACE, *BRIEF, *QUIET, "hydra.sweep.dir=out")


def trials_in(folder):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{folder / 'optuna.db'}"
    return optuna.load_study(study_name="search", storage=storage).trials


# A sweep of one's own over an algorithm and what is inside it.
OPTION = """# @package _global_
defaults:
  - override /hydra/sweeper: optuna
  - override /protocol: validation
algo:
  group: deck
"""
SPACES = {
    "algo.base.prior_weight": "tag(log,interval(0.1,10))",
    "algo.base.recency": "choice(none,mild)",
    "algo.fewest": "range(100,900,300)",
    "seed": "int(interval(1,5))",
}
EQUALISED = "srs_eval.protocol.fractional_days.SrsBenchmarkEqualised"
BASE = (f"protocol.base._target_={EQUALISED}", "+protocol.base.refits=6")


@pytest.mark.slow
def test_a_search_ends_with_a_command_for_its_best_trial_and_shows_how_it_was_found(here):
    write(here.folder, {"own/sweep/optuna_mine.yaml": OPTION})
    store = f"sqlite:///{here.folder}/m.db"  # MLflow keeps one open for each address
    words = ["--config-dir=own", "-m", "algo=per_group", "algo@algo.base=hlr", "sweep=optuna_mine"]
    words += [*BASE, *BRIEF, *(f"{key}={space}" for key, space in SPACES.items())]
    words += [f"tracking.uri={store}", "figures=false", "hydra.sweeper.n_trials=3"]
    words.append("hydra.sweep.dir=out")
    done = here(*words)
    assert done.status == 0, done.err
    out = here.folder / "out"
    trials = trials_in(out)
    assert trials[0].distributions == {
        "algo.base.prior_weight": FloatDistribution(0.1, 10, log=True),
        "algo.base.recency": CategoricalDistribution(["none", "mild"]),
        "algo.fewest": IntDistribution(100, 700, step=300),
        "seed": IntDistribution(1, 5),
    }
    summaries = [summary_of(out / f"{n}_per_group") for n in range(3)]
    losses = [summary["metrics"]["log_loss"]["mean_users"] for summary in summaries]
    assert [trial.value for trial in trials] == losses
    assert all(summary["is_validation"] for summary in summaries)
    best = min(trials, key=lambda trial: trial.value)
    result = OmegaConf.load(out / "optimization_results.yaml")
    assert (result.best_evaluated_value, result.best_evaluated_params) == (best.value, best.params)
    assert f"trial {best.number}: validation log_loss {best.value:.4f}" in done.out
    assert result.command in done.out
    client = MlflowClient(store)
    runs = client.search_runs([client.get_experiment_by_name("srs_eval").experiment_id])
    (parent,) = (each for each in runs if each.data.tags.get("kind") == "sweep")
    assert parent.info.status == "FINISHED"
    assert result.command in parent.data.tags["mlflow.note.content"]
    files = [file.path for file in client.list_artifacts(parent.info.run_id, "figures")]
    assert files == [f"figures/optimization_{name}.png" for name in ("history", "importances")]
    jobs = [each for each in runs if each is not parent]
    assert {each.data.tags["mlflow.parentRunId"] for each in jobs} == {parent.info.run_id}
    for each in jobs:
        value = losses[int(Path(each.data.tags["output"]).name.partition("_")[0])]
        percent = each.data.metrics["vs_baseline/log_loss_percent"]
        assert percent == pytest.approx(100 * (value / losses[0] - 1))
    final = here(*shlex.split(result.command)[3:], "hydra.run.dir=final")
    assert final.status == 0, final.err
    config = OmegaConf.load(here.folder / "final" / ".hydra" / "config.yaml")
    assert {key: OmegaConf.select(config, key) for key in best.params} == best.params
    assert config.algo.group == "deck"
    assert summary_of(here.folder / "final")["protocol"] == "srs_benchmark_equalised_refit6"
    other = here(*words, "algo.base.prior_weight=interval(1,2)")
    assert (other.status, "has a search with other space" in other.err) == (1, True)
    assert len(trials_in(out)) == 3


@pytest.mark.slow
def test_trials_that_are_worse_on_the_first_users_are_ended_and_failed_ones_are_told(here):
    pruner = "hydra.sweeper.pruner={_target_:optuna.pruners.MedianPruner,n_startup_trials:1}"
    words = ("algo=constant", "algo.p=choice(7,0.1,0.6,0.9)", "data.users=3", pruner)
    trials = ("hydra.sweeper.n_trials=7", "hydra.sweeper.n_jobs=2")
    search = ("-m", "sweep=optuna", *BRIEF, *QUIET, *words, *trials)
    for _ in range(2):  # the second has nothing left to do
        done = here(*search, "hydra.sweep.dir=out")
        assert done.status == 1, done.err
        trials = trials_in(here.folder / "out")
        assert {trial.state.name for trial in trials} == {"COMPLETE", "PRUNED", "FAIL"}
        assert len(trials) == 7
    statuses = {"COMPLETE": "ok", "PRUNED": "pruned", "FAIL": "failed"}
    values = {}
    for trial in trials:
        folder, state = here.folder / "out" / f"{trial.number}_constant", trial.state.name
        assert outcome_of(folder)["status"] == statuses[state]
        assert (folder / "summary.json").is_file() == (state == "COMPLETE")
        if state == "PRUNED":
            step, value = max(trial.intermediate_values.items())
            assert value > sorted(values[step])[(len(values[step]) - 1) // 2]
        elif state == "COMPLETE":
            losses = pq.read_table(folder / "scores.parquet")["log_loss"].to_pylist()
            means = {n: sum(losses[:n]) / n for n in range(1, 4)}
            assert trial.intermediate_values == pytest.approx(means)
            for n, mean in means.items():
                values.setdefault(n, []).append(mean)


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
