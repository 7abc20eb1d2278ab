"""Searches: they choose by rows before the test rows, and end with a command for the best trial."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from commands import QUIET, SMALL, outcome_of, summary_of, write
from hydra import compose, initialize_config_dir
from mlflow import MlflowClient
from omegaconf import OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from srs_eval.errors import ConfigError, Pruned
from srs_eval.runs import search
from srs_eval.runs.options import conf_folder
from srs_eval.runs.search import Search, Watch

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
PRUNER = "hydra.sweeper.pruner={_target_:optuna.pruners.MedianPruner,n_startup_trials:%s}"
BASE = (f"protocol.base._target_={EQUALISED}", "+protocol.base.refits=6")


class Trials:
    """A search in which nothing is evaluated: losses are minus `algo.fewest`, some trials end."""

    ends = {1: (), 2: (0.7, 0.1, 0.1), 3: (np.nan, 0.1, 9.0), 4: (np.nan,) * 3}  # Scores of users

    def __init__(self, folder, killed_at=None):
        folder.mkdir(exist_ok=True)
        self.folder, self.killed_at, self.batches = folder, killed_at, []
        typed = ["sweep=optuna", "algo=per_group", "algo@algo.base=hlr", *BASE]
        words = [*typed, PRUNER % 1, f"hydra.sweep.dir={folder}"]
        words += ["hydra.sweeper.n_trials=6", "hydra.sweeper.n_jobs=2"]
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            self.config = compose("config", overrides=words, return_hydra_config=True)
        spaces = (f"{key}={space}" for key, space in SPACES.items())
        Search(self.config, None, [*typed, *spaces]).run(self.launch)

    def launch(self, batch, initial_job_idx):
        numbers = range(initial_job_idx, initial_job_idx + len(batch))
        self.batches.append([*numbers])
        return [self.job(number, words) for number, words in zip(numbers, batch, strict=True)]

    def job(self, number, words):
        if number == self.killed_at:
            raise KeyboardInterrupt
        out, scores = self.folder / str(number), self.ends.get(number, (0.5, 0.5, 0.5))
        hydra = OmegaConf.merge(self.config.hydra, {"job": {"num": number}})
        watch, status = Watch(hydra, (7, 8, 9), ("brier", "log_loss")), "ok" if scores else "failed"
        try:
            for user in (8, 7, 9) if scores else ():
                watch(SimpleNamespace(user=user, values=(0.0, scores[user - 7])))
        except Pruned:
            status = "pruned"
        fewest = int(dict(word.split("=") for word in words)["algo.fewest"])
        told = {"status": status, "message": "", "loss": np.nan if number == 4 else -fewest}
        write(out, {"job.json": json.dumps(told)})
        content = {"hydra": {"runtime": {"output_dir": str(out)}}}
        return SimpleNamespace(hydra_cfg=OmegaConf.create(content))

    @staticmethod
    def read(folder):
        loss = SimpleNamespace(mean_users=outcome_of(folder)["loss"])
        return SimpleNamespace(facts=SimpleNamespace(metrics={"log_loss": loss}))


def test_a_search_tells_how_trials_end_and_goes_on_with_those_that_are_left(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "_draw", lambda *_: None)
    monkeypatch.setattr(search, "Run", Trials)
    out = tmp_path / "whole"
    assert Trials(out).batches == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(KeyboardInterrupt):
        Trials(tmp_path / "cut", killed_at=2)
    assert Trials(tmp_path / "cut").batches == [[2], [3], [4, 5]]
    trials, others = trials_in(out), trials_in(tmp_path / "cut")
    assert [trial.params for trial in trials] == [trial.params for trial in others]
    assert len({trial.params["algo.base.prior_weight"] for trial in trials}) == 6
    assert trials[0].distributions == {
        "algo.base.prior_weight": FloatDistribution(0.1, 10, log=True),
        "algo.base.recency": CategoricalDistribution(["none", "mild"]),
        "algo.fewest": IntDistribution(100, 700, step=300),
        "seed": IntDistribution(1, 5),
    }
    ends = [trial.state.name for trial in trials]
    assert ends == ["COMPLETE", "FAIL", "PRUNED", "COMPLETE", "FAIL", "PRUNED"]
    assert [trial.intermediate_values for trial in trials] == [
        *({1: 0.5, 2: 0.5, 3: 0.5}, {}, {1: 0.7}, {2: 0.1, 3: 4.55}, {}, {1: 0.5, 2: 0.5}),
    ]
    result, best = OmegaConf.load(out / "optimization_results.yaml"), trials[3]
    assert (result.trial, result.best_evaluated_value) == (3, -best.params["algo.fewest"])
    assert shlex.split(result.command)[3:] == [
        *("algo=per_group", "algo@algo.base=hlr", f"protocol._target_={EQUALISED}"),
        *("++protocol.refits=6", "protocol=srs_benchmark"),
        *(f"{key}={value}" for key, value in best.params.items()),
    ]
    monkeypatch.setitem(SPACES, "seed", "interval(1,5)")
    with pytest.raises(ConfigError, match="other space"):
        Trials(out)


@pytest.mark.slow
def test_a_search_ends_with_a_command_for_its_best_trial_and_shows_how_it_was_found(here):
    write(here.folder, {"own/sweep/optuna_mine.yaml": OPTION})
    store = f"sqlite:///{here.folder}/m.db"  # MLflow keeps one open for each address
    words = ["--config-dir=own", "-m", "algo=per_group", "algo@algo.base=hlr", "sweep=optuna_mine"]
    words += [*BASE, *BRIEF, *(f"{key}={space}" for key, space in SPACES.items())]
    words += [f"tracking.uri={store}", "figures=false", "hydra.sweeper.n_trials=3"]
    words += [PRUNER % 5, "hydra.sweep.dir=out"]
    done = here(*words)
    assert done.status == 0, done.err
    out = here.folder / "out"
    trials = trials_in(out)
    summaries = [summary_of(out / f"{n}_per_group") for n in range(3)]
    losses = [summary["metrics"]["log_loss"]["mean_users"] for summary in summaries]
    assert [trial.value for trial in trials] == losses
    assert losses == [pytest.approx(trial.intermediate_values[2]) for trial in trials]
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


@pytest.mark.slow
def test_the_job_of_a_trial_that_is_worse_on_its_first_users_is_ended(here):
    words = ("algo=constant", "algo.p=choice(7,0.1,0.6,0.9)", "data.users=3", PRUNER % 1)
    trials = ("hydra.sweeper.n_trials=7", "hydra.sweeper.n_jobs=2", "hydra.sweep.dir=out")
    assert here("-m", "sweep=optuna", *BRIEF, *QUIET, *words, *trials).status == 1
    statuses = {"COMPLETE": "ok", "PRUNED": "pruned", "FAIL": "failed"}
    trials = trials_in(here.folder / "out")
    assert {trial.state.name for trial in trials} == {*statuses}
    for trial in trials:
        folder = here.folder / "out" / f"{trial.number}_constant"
        assert outcome_of(folder)["status"] == statuses[trial.state.name]
        assert (folder / "summary.json").is_file() == (trial.state.name == "COMPLETE")


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
