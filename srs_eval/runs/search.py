"""Searches: trials proposed by Optuna, each a job; what is killed goes on in its folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from srs_eval.errors import ConfigError
from srs_eval.runs.config import option
from srs_eval.runs.console import complain, say
from srs_eval.runs.folder import JOB, Run

STUDY = "optuna.db"
RESULTS = "optimization_results.yaml"
# What may differ when a search goes on, and what is left out of the command that uses its result.
_MAY_CHANGE = {"tracking", "compute", "figures", "name", "notes", "tags", "baseline", "resume"}
_OF_SEARCH = {"sweep", "protocol"}
_STATES = {"ok": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
_ENDED = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)


@dataclass(frozen=True)
class Options:
    """Options of a search; ``conf/hydra/sweeper/optuna.yaml`` describes them."""

    n_trials: int = 30
    metric: str = "log_loss"
    seed: int = 2026
    n_jobs: int | None = None
    max_failures: int = 3


class Search:
    """A search in the folder of a sweep.

    Raise `ConfigError` if there is nothing to search, or if the folder has another search.
    """

    def __init__(self, options: Options, config: DictConfig, loader: Any, words: Sequence[str]):
        self._options, self._config = options, config
        self._folder = Path(str(config.hydra.sweep.dir))
        parsed = {
            o.get_key_element(): o for o in OverridesParser.create(loader).parse_overrides([*words])
        }
        swept = {key: each for key, each in parsed.items() if each.is_sweep_override()}
        if not swept:
            raise ConfigError(
                "nothing to search: give a space, such as 'algo.KEY=interval(0.1,10)'"
            )
        self._space = {key: _distribution(each) for key, each in swept.items()}
        self._fixed = {key: str(o.input_line) for key, o in parsed.items() if key not in swept}
        if rows := [key for key in swept if _group(key) in ("protocol", "data", "panel")]:
            raise ConfigError(f"{', '.join(rows)}: trials on other rows cannot be compared")
        self._study = self._opened({key: str(each.input_line) for key, each in swept.items()})

    def run(self, launch: Callable[..., Sequence[Any]]) -> dict[str, Any] | None:
        """Run the trials that are left, in batches; return what the best one has."""
        failures = 0
        while batch := self._batch():
            jobs = [self._words(trial) for trial in batch]
            for trial, job in zip(batch, self._launched(launch, batch, jobs), strict=True):
                state, value, message = self._outcome(job)
                self._study.tell(trial.number, value, state)
                failures = failures + 1 if state == TrialState.FAIL else 0
                if state == TrialState.FAIL:
                    complain(f"trial {trial.number} failed: {message}")
            if failures >= self._options.max_failures:
                complain(f"the search ends: {failures} trials in a row have failed")
                break
        return self._ended()

    def _opened(self, space: dict[str, str]) -> optuna.Study:
        """Open the study in the folder, or begin one."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._folder.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            storage=f"sqlite:///{self._folder.resolve() / STUDY}",
            study_name="search",
            load_if_exists=True,
            direction=_direction(self._config, self._options.metric),
        )
        same = {key: word for key, word in self._fixed.items() if _group(key) not in _MAY_CHANGE}
        options = asdict(self._options)
        search = {"space": space, "fixed": same, **{k: options[k] for k in ("metric", "seed")}}
        before = study.user_attrs.setdefault("search", search)
        if before != search:
            differ = [key for key in search if before[key] != search[key]]
            raise ConfigError(f"{self._folder} has a search with other {', '.join(differ)}")
        study.set_user_attr("search", search)
        return study

    def _batch(self) -> list[FrozenTrial]:
        """Return the trials that a kill has left, or the next ones; none at the end."""
        trials = [t for t in self._study.get_trials() if set(t.params) == set(self._space)]
        size = self._options.n_jobs or _at_once(self._config)
        if left := [trial for trial in trials if trial.state == TrialState.RUNNING]:
            return left[:size]
        values = {str(t.params): t.value for t in trials if t.state == TrialState.COMPLETE}
        batch: list[FrozenTrial] = []
        number = len(trials)
        while number < self._options.n_trials and len(batch) < size:
            seed = self._options.seed + number
            self._study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=size > 1)
            trial = self._study.ask(self._space)
            number += 1
            if str(trial.params) in values:  # proposed again: its job would be the same
                self._study.tell(trial, values[str(trial.params)])
            else:
                batch.append(self._study.get_trials()[trial.number])
        return batch

    def _words(self, trial: FrozenTrial) -> list[str]:
        return [*self._fixed.values(), *(f"{key}={value}" for key, value in trial.params.items())]

    def _launched(
        self,
        launch: Callable[..., Sequence[Any]],
        batch: Sequence[FrozenTrial],
        jobs: Sequence[Sequence[str]],
    ) -> list[Any]:
        """Launch jobs, which are numbered as their trials: together if the numbers follow."""
        first = batch[0].number
        if [trial.number for trial in batch] == list(range(first, first + len(batch))):
            return list(launch(jobs, initial_job_idx=first))
        each = zip(batch, jobs, strict=True)
        return [launch([job], initial_job_idx=trial.number)[0] for trial, job in each]

    def _outcome(self, job: Any) -> tuple[TrialState, float | None, str]:
        """Read from the folder of a job how it ended, with its value."""
        folder = Path(job.hydra_cfg.hydra.runtime.output_dir)
        if not (folder / JOB).is_file():
            return TrialState.FAIL, None, f"{folder} has no {JOB}"
        content = json.loads((folder / JOB).read_bytes())
        state = _STATES.get(content["status"], TrialState.FAIL)
        if state != TrialState.COMPLETE:
            return state, None, content["message"] or content["status"]
        value = Run.read(folder).facts.metrics.get(self._options.metric)
        if value is None or value.mean_users is None:
            return TrialState.FAIL, None, f"it has no {self._options.metric}"
        return state, float(value.mean_users), ""

    def _ended(self) -> dict[str, Any] | None:
        """Write and print the best trial."""
        trials = self._study.get_trials(states=_ENDED)
        states = [trial.state.name.lower() for trial in trials]
        counts = ", ".join(f"{states.count(name)} {name}" for name in dict.fromkeys(states))
        say(f"\ntrials   {len(trials)}: {counts}")
        if "complete" not in states:
            return None
        ended = self._study.get_trials(states=(TrialState.COMPLETE,))
        best = next(trial for trial in ended if trial.value == self._study.best_value)
        params = {key: _plain(value) for key, value in best.params.items()}
        result = {"name": "optuna", "best_evaluated_params": params}
        result["best_evaluated_value"] = best.value
        OmegaConf.save(OmegaConf.create(result), self._folder / RESULTS)
        say(f"best     trial {best.number}: validation {self._options.metric} {best.value:.4f}")
        say(f"use it   {self._command(best)}")
        return result

    def _command(self, best: FrozenTrial) -> str:
        """Return the command that scores the best trial on test rows."""
        sources = self._config.hydra.runtime.config_sources
        own = [each.path for each in sources if each.provider == "command-line"]
        flags = [part for path in own for part in ("--config-dir", path)]
        words = [word for key, word in self._fixed.items() if _group(key) not in _OF_SEARCH]
        words += [f"{key}={value}" for key, value in best.params.items()]
        return shlex.join(["python", "-m", "srs_eval", *flags, *words])


def _direction(config: DictConfig, metric: str) -> str:
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
    return CategoricalDistribution(list(override.sweep_iterator(Transformer.encode)))


def _at_once(config: DictConfig) -> int:
    """Return how many trials the launcher can run beside each other."""
    jobs = int(config.hydra.launcher.get("n_jobs") or 1)
    if jobs > 0:
        return jobs
    from srs_eval.runs.compute import available_cores

    return available_cores()


def _plain(value: Any) -> Any:
    """Return a choice as YAML reads it: choices are texts."""
    return OmegaConf.create(f"value: {value}").value if isinstance(value, str) else value


def _group(key: str) -> str:
    return key.lstrip("~+").partition("@")[0].partition(".")[0]
