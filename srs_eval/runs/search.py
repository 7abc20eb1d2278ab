"""Searches: trials proposed by Optuna, each a job; what is killed goes on in its folder."""

from __future__ import annotations

import json
import math
import shlex
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep, Override, RangeSweep, Transformer
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, Pruned
from srs_eval.evaluation.scoring import ScoredUser
from srs_eval.runs.compute import available_cores
from srs_eval.runs.config import option, resolved
from srs_eval.runs.folder import JOB, Run
from srs_eval.runs.job import BEST, published
from srs_eval.runs.words import complain

_DIRECTIONS: Any = {"lower": "minimize", "higher": "maximize"}
_OF_ROWS = ("protocol", "data", "panel")
# What the command for the best trial does without: it scores the rows of the protocol inside
_OF_THE_SEARCH = ("protocol=", "protocol.base", "protocol.share=")
_USUAL = "srs_eval.protocol.srs_benchmark.SrsBenchmark"


class Search:
    """A search in the folder of a sweep; its options are those of ``hydra.sweeper``.

    Raise `ConfigError` if there is nothing to search, or if the folder has another search.
    """

    def __init__(self, config: DictConfig, loader: Any, words: Sequence[str]) -> None:
        if not getattr(get_object(config.protocol._target_), "is_validation", False):
            raise ConfigError(
                f"protocol={config.hydra.runtime.choices.protocol} scores test rows, and a search "
                "chooses by what it scores: protocol=validation has rows before them"
            )
        self._config, self._options = config, config.hydra.sweeper
        self._folder = Path(config.hydra.sweep.dir)
        parsed = OverridesParser.create(loader).parse_overrides([*words])
        last = {each.get_key_element(): each for each in parsed}
        self._space = {
            key: _distribution(each) for key, each in last.items() if each.is_sweep_override()
        }
        self._fixed = {key: str(o.input_line) for key, o in last.items() if key not in self._space}
        if not self._space:
            raise ConfigError("nothing to search: add a space, such as algo.KEY=interval(0.1,10)")
        if rows := [key for key in self._space if key.lstrip("~+").startswith(_OF_ROWS)]:
            raise ConfigError(f"{', '.join(rows)}: trials on other rows cannot be compared")
        self._study = self._opened({key: str(last[key].input_line) for key in self._space})

    def run(self, launch: Callable[..., Sequence[Any]]) -> None:
        """Run the trials that are left, in batches, and write which is the best."""
        while batch := self._batch():
            words = [[*self._fixed.values(), *_words(trial)] for trial in batch]
            jobs = launch(words, initial_job_idx=batch[0].number)
            published()  # a trial that Optuna knows is not run again
            for trial, job in zip(batch, jobs, strict=True):
                state, value, message = self._outcome(job)
                self._study.tell(trial.number, value, state)
                if message:
                    complain(f"trial {trial.number} {message}")
        if trials := self._study.get_trials(states=(TrialState.COMPLETE,)):
            self._write(next(each for each in trials if each.value == self._study.best_value))
            _draw(self._study, self._options.metric, self._folder)

    def _opened(self, space: dict[str, str]) -> optuna.Study:
        """Open the study in the folder, or begin one."""
        metric = self._options.metric
        panel = option("panel", resolved(self._config.panel))
        direction = {each.name: _DIRECTIONS.get(each.better) for each in panel}.get(metric)
        if direction is None:
            expected = ", ".join(each.name for each in panel)
            raise ConfigError(f"hydra.sweeper.metric={metric}: expected one of {expected}")
        place = _place(self._folder)
        study = optuna.create_study(**place, direction=direction, load_if_exists=True)
        search = {"space": space, "options": self._fixed, "metric": metric}
        before = study.user_attrs.get("search", search)
        if differ := [key for key in search if before[key] != search[key]]:
            raise ConfigError(f"{self._folder} has a search with other {', '.join(differ)}")
        study.set_user_attr("search", search)
        return study

    def _batch(self) -> list[FrozenTrial]:
        """Return a trial that a kill has left, or the next ones; none at the end."""
        trials = [t for t in self._study.get_trials() if set(t.params) == set(self._space)]
        if left := [trial for trial in trials if trial.state == TrialState.RUNNING]:
            return left[:1]
        size = self._options.n_jobs if self._options.n_jobs > 0 else available_cores()
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
        if content["status"] == "pruned":
            return TrialState.PRUNED, None, "pruned"
        if content["status"] != "ok":
            return TrialState.FAIL, None, f"failed: {content['message'] or content['status']}"
        value = Run.read(folder).facts.metrics[self._options.metric].mean_users
        if math.isnan(value):
            return TrialState.FAIL, None, f"failed: it has no {self._options.metric}"
        return TrialState.COMPLETE, value, ""

    def _write(self, best: FrozenTrial) -> None:
        """Write the best trial, with the command that scores it on test rows."""
        sources = self._config.hydra.runtime.config_sources
        own = [f"--config-dir={each.path}" for each in sources if each.provider == "command-line"]
        fixed = [  # an option of `sweep` but this one may have settings of trials
            word
            for word in self._fixed.values()
            if word != "sweep=optuna" and not word.lstrip("+").startswith(_OF_THE_SEARCH)
        ]
        inside = dict(self._config.protocol.get("base", {}))  # Of what a validation prepares for
        if (target := inside.pop("_target_", _USUAL)) != _USUAL:
            fixed.append(f"protocol._target_={target}")
        fixed += [f"++protocol.{key}={value}" for key, value in inside.items()]
        words = [*own, *fixed, "protocol=srs_benchmark", *_words(best)]
        result = {
            "name": "optuna",
            "best_evaluated_params": best.params,
            "best_evaluated_value": best.value,
            "trial": best.number,
            "metric": self._options.metric,
            "command": shlex.join(["python", "-m", "srs_eval", *words]),
        }
        OmegaConf.save(OmegaConf.create(result), self._folder / BEST)


class Watch:
    """Tell the search the mean over the users so far, in their order; end a trial that it prunes.

    `config` is that of Hydra for the job, `names` are the metrics of each user.
    """

    def __init__(self, config: DictConfig, users: Sequence[User], names: Sequence[str]) -> None:
        self._users, self._column = users, names.index(config.sweeper.metric)
        pruner = instantiate(config.sweeper.pruner)
        study = optuna.load_study(**_place(Path(config.sweep.dir)), pruner=pruner)
        trial_id = study.get_trials()[config.job.num]._trial_id
        self._trial = optuna.trial.Trial(study, trial_id)
        self._values: dict[User, float] = {}
        self._step = 0

    def __call__(self, scored: ScoredUser) -> None:
        """Take the score of a user; raise `Pruned` if the trial is to end."""
        self._values[scored.user] = scored.values[self._column]
        while self._step < len(self._users) and self._users[self._step] in self._values:
            self._step += 1
            scores = [self._values[each] for each in self._users[: self._step]]
            if np.isnan(scores).all():
                continue
            self._trial.report(float(np.nanmean(scores)), self._step)
            if self._step < len(self._users) and self._trial.should_prune():
                raise Pruned


def _draw(study: optuna.Study, metric: str, folder: Path) -> None:
    """Draw the history of a search, and how much each option matters."""
    import matplotlib.pyplot as plt
    from optuna.visualization import matplotlib as figures

    with warnings.catch_warnings(), plt.rc_context():
        warnings.simplefilter("ignore")  # figures are new in Optuna, and trials can be few
        plt.switch_backend("agg")
        figures.plot_optimization_history(study, target_name=metric)
        figures.plot_param_importances(study)
        for number, name in zip(plt.get_fignums(), ("history", "importances"), strict=True):
            figure = plt.figure(number)
            figure.savefig(folder / f"optimization_{name}.png", dpi=150, bbox_inches="tight")
            plt.close(figure)


def _place(folder: Path) -> dict[str, Any]:
    """Return where the study of a search is, for Optuna, which keeps quiet."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return {"storage": f"sqlite:///{folder.resolve() / 'optuna.db'}", "study_name": "search"}


def _words(trial: FrozenTrial) -> list[str]:
    return [f"{key}={value}" for key, value in trial.params.items()]


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
            is_whole = all(isinstance(point, int) for point in points)
            kind = IntDistribution if is_whole else FloatDistribution
            return kind(min(points), max(points), log=log, step=abs(value.step))
    except (ValueError, IndexError) as error:
        raise ConfigError(f"{override.input_line}: {error}") from error
    choices: list[Any] = list(override.sweep_iterator(Transformer.encode))
    return CategoricalDistribution(choices)
