"""Searches: trials proposed by Optuna, each a job; what is killed goes on in its folder."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import optuna
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from srs_eval.errors import ConfigError
from srs_eval.runs.compute import available_cores
from srs_eval.runs.config import option
from srs_eval.runs.console import complain, say
from srs_eval.runs.folder import JOB, Run

STUDY = "optuna.db"
RESULTS = "optimization_results.yaml"
_STATES = {"ok": TrialState.COMPLETE, "pruned": TrialState.PRUNED}


class Search:
    """A search in the folder of a sweep; its options are those of ``hydra.sweeper``.

    Raise `ConfigError` if there is nothing to search, or if the folder has another search.
    """

    def __init__(self, config: DictConfig, loader: Any, words: Sequence[str]) -> None:
        self._config, self._options = config, config.hydra.sweeper
        self._folder = Path(config.hydra.sweep.dir)
        parsed = OverridesParser.create(loader).parse_overrides([*words])
        last = {each.get_key_element(): each for each in parsed}
        self._space = {
            key: _distribution(each) for key, each in last.items() if each.is_sweep_override()
        }
        self._fixed = {key: str(o.input_line) for key, o in last.items() if key not in self._space}
        if not self._space:
            raise ConfigError(
                "nothing to search: give a space, such as 'algo.KEY=interval(0.1,10)'"
            )
        if rows := [key for key in self._space if _group(key) in ("protocol", "data", "panel")]:
            raise ConfigError(f"{', '.join(rows)}: trials on other rows cannot be compared")
        self._study = self._opened({key: str(last[key].input_line) for key in self._space})

    def run(self, launch: Callable[..., Sequence[Any]]) -> None:
        """Run the trials that are left, in batches, and tell which is the best."""
        failures = 0
        while batch := self._batch():
            words = [[*self._fixed.values(), *_words(trial)] for trial in batch]
            jobs = launch(words, initial_job_idx=batch[0].number)
            for trial, job in zip(batch, jobs, strict=True):
                state, value, message = self._outcome(job)
                self._study.tell(trial.number, value, state)
                failures = failures + 1 if state == TrialState.FAIL else 0
                if state == TrialState.FAIL:
                    complain(f"trial {trial.number} failed: {message}")
            if failures >= self._options.max_failures:
                complain(f"the search ends: {failures} trials in a row have failed")
                break
        self._end()

    def _opened(self, space: dict[str, str]) -> optuna.Study:
        """Open the study in the folder, or begin one."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        metric = self._options.metric
        study = optuna.create_study(
            storage=f"sqlite:///{self._folder.resolve() / STUDY}",
            study_name="search",
            load_if_exists=True,
            direction=_direction(self._config, metric),
        )
        search = {"space": space, "options": self._fixed, "metric": metric}
        before = study.user_attrs.get("search", search)
        if differ := [key for key in search if before[key] != search[key]]:
            raise ConfigError(f"{self._folder} has a search with other {', '.join(differ)}")
        study.set_user_attr("search", search)
        return study

    def _batch(self) -> list[FrozenTrial]:
        """Return a trial that a kill has left, or the next ones; none at the end."""
        trials = [t for t in self._study.get_trials() if set(t.params) == set(self._space)]
        for trial in trials:
            if trial.state == TrialState.RUNNING:
                return [trial]
        jobs = self._options.n_jobs
        size = jobs if jobs > 0 else available_cores()
        numbers = []
        for known in range(len(trials), min(len(trials) + size, self._options.n_trials)):
            seed = self._options.seed + known  # as if it had never been interrupted
            self._study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=size > 1)
            numbers.append(self._study.ask(self._space).number)
        return [self._study.get_trials()[number] for number in numbers]

    def _outcome(self, job: Any) -> tuple[TrialState, float | None, str]:
        """Read from the folder of a job how it ended, with its value."""
        folder = Path(job.hydra_cfg.hydra.runtime.output_dir)
        content = json.loads((folder / JOB).read_bytes())
        state = _STATES.get(content["status"], TrialState.FAIL)
        if state != TrialState.COMPLETE:
            return state, None, content["message"] or content["status"]
        value = Run.read(folder).facts.metrics[self._options.metric].mean_users
        if math.isnan(value):
            return TrialState.FAIL, None, f"it has no {self._options.metric}"
        return state, value, ""

    def _end(self) -> None:
        """Write and print the best trial, with the command that scores it on test rows."""
        trials = self._study.get_trials(states=(TrialState.COMPLETE,))
        if not trials:
            return
        best = next(trial for trial in trials if trial.value == self._study.best_value)
        result = {
            "name": "optuna",
            "best_evaluated_params": best.params,
            "best_evaluated_value": best.value,
        }
        OmegaConf.save(OmegaConf.create(result), self._folder / RESULTS)
        sources = self._config.hydra.runtime.config_sources
        own = [f"--config-dir={each.path}" for each in sources if each.provider == "command-line"]
        words = [word for key, word in self._fixed.items() if key not in ("sweep", "protocol")]
        command = shlex.join(["python", "-m", "srs_eval", *own, *words, *_words(best)])
        say(f"\nbest     trial {best.number}: validation {self._options.metric} {best.value:.4f}")
        say(f"use it   {command}")


def _words(trial: FrozenTrial) -> list[str]:
    return [f"{key}={value}" for key, value in trial.params.items()]


def _direction(config: DictConfig, metric: str) -> Literal["minimize", "maximize"]:
    content: Any = OmegaConf.to_container(config.panel, resolve=True)
    better = {each.name: each.better for each in option("panel", content)}
    if better.get(metric) not in ("lower", "higher"):
        raise ConfigError(f"hydra.sweeper.metric={metric}: expected one of {', '.join(better)}")
    return "minimize" if better[metric] == "lower" else "maximize"


def _distribution(override: Override) -> Any:
    """Turn a sweep of Hydra's grammar into a distribution of Optuna."""
    value: Any = override.value()
    log = "log" in getattr(value, "tags", ())
    try:
        if isinstance(value, IntervalSweep):
            kind: Any = IntDistribution if isinstance(value.start, int) else FloatDistribution
            return kind(value.start, value.end, log=log)
        if isinstance(value, RangeSweep):
            points = list(value.range())
            kind = IntDistribution if isinstance(points[0], int) else FloatDistribution
            step = None if log and kind is FloatDistribution else 1 if log else abs(value.step)
            return kind(min(points), max(points), log=log, step=step)
    except (ValueError, IndexError) as error:
        raise ConfigError(f"{override.input_line}: {error}") from error
    choices: list[Any] = list(override.sweep_iterator(Transformer.encode))
    return CategoricalDistribution(choices)


def _group(key: str) -> str:
    return key.lstrip("~+").partition("@")[0].partition(".")[0]
