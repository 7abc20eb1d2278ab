"""The trials of a search, saved in a sqlite file so that no kill loses or repeats one.

A proposal is written in one transaction before its job begins. It depends only on the seed, on the
results of earlier batches, and on the proposals before it in its batch. So a resumed search has the
same trials as an uninterrupted one.
"""

from __future__ import annotations

import itertools
import json
import math
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import sqlalchemy
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from srs_eval.errors import Pruned
from srs_eval.tuning.space import SearchOptions, Space, SweepError

FILE = "optuna.db"
_NAME = "search"
_IDENTITY = "identity"
# How often a proposal that was tried before is repeated; small spaces are then enumerated.
_ATTEMPTS = 20
# Seconds to wait for another process that has the file locked.
_PATIENCE = 60
_SMALL = 10_000
_DIGITS = 4
# A search with a trial of these states has a result.
_USEFUL = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass
class Proposal:
    """A trial to be run."""

    trial: Trial
    params: Mapping[str, Any]
    repeated: bool = False  # Whether an interrupted process began it
    pruned: bool = False  # Whether the search has ended it early
    steps: set[int] = field(default_factory=set)  # Steps with an intermediate value

    @property
    def number(self) -> int:
        """Number of the trial, from 0."""
        return self.trial.number

    def report(self, step: int, value: float) -> None:
        """Record an intermediate value; raise `Pruned` if the trial should end."""
        if not math.isfinite(value):
            return
        if step < max(self.steps, default=step):
            return  # a repeated trial reports steps again that did not end it
        try:
            if step not in self.steps:
                self.trial.report(value, step)
                self.steps.add(step)
            prune = self.trial.should_prune()
        except optuna.exceptions.StorageInternalError:
            return  # the result of a trial does not depend on its intermediate reports
        if prune:
            self.pruned = True
            raise Pruned(f"at step {step}, with {value:.4f}, others were better")


class SearchStudy:
    """A search: its trials in one folder, in ``optuna.db``.

    Raise `SweepError` if these are the trials of another search.
    """

    def __init__(self, folder: Path, space: Space, options: SearchOptions) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.space, self.options = folder, space, options
        self.ran = 0  # Trials that this process has ended
        with _quiet():
            storage = _storage(folder / FILE)
            self.study = _opened(storage, options)
            before = self.study.user_attrs.get(_IDENTITY)
            differences = _differences(before, _identity(space, options))
            if differences and any(trial.state in _USEFUL for trial in self.study.trials):
                raise SweepError(
                    f"{folder} has another search, which differs in\n"
                    + "\n".join(f"  {line}" for line in differences)
                    + "\nuse the same settings, or another hydra.sweep.dir"
                )
            if differences:  # it has no result yet
                optuna.delete_study(study_name=_NAME, storage=storage)
                self.study = _opened(storage, options)
            self.study.set_user_attr(_IDENTITY, _identity(space, options))

    @property
    def ended(self) -> list[FrozenTrial]:
        """The trials that have ended: complete, pruned or failed."""
        trials = self.study.get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state.is_finished()]

    @property
    def ranked(self) -> list[FrozenTrial]:
        """The trials with a value, the best first; of equal ones the first."""
        sign = 1 if self.options.direction == "minimize" else -1
        valued = [trial for trial in self.ended if trial.state == TrialState.COMPLETE]
        return sorted(valued, key=lambda trial: (sign * (trial.value or 0.0), trial.number))

    @property
    def best(self) -> FrozenTrial | None:
        """The trial with the best value, if any has one."""
        return next(iter(self.ranked), None)

    @property
    def complaint(self) -> str:
        """Why the search is to end early; empty if it is not."""
        most = self.options.max_failures
        last = self.ended[-most:]
        if self.ran and len(last) == most and all(t.state == TrialState.FAIL for t in last):
            return f"the last {most} trials failed (hydra.sweeper.max_failures={most})"
        return ""

    def propose(self, first: Mapping[str, Any] | None = None) -> list[Proposal]:
        """Propose and save the next batch; it is empty if every point has been tried.

        Trials that an interrupted process left unfinished come first. New ones follow up to the
        next multiple of `SearchOptions.workers`. `first` has the parameters of the first trial.
        """
        with _quiet():
            trials = self.study.get_trials(deepcopy=False)
            batch = [
                Proposal(
                    Trial(self.study, trial._trial_id),
                    trial.params,
                    repeated=True,
                    steps=set(trial.intermediate_values),
                )
                for trial in trials
                if trial.state == TrialState.RUNNING
            ]
            workers, number = self.options.workers, len(trials)
            known = self._known_before(trials, number - number % workers)
            while number < self.options.n_trials and (not batch or number % workers):
                tried = {_point(trial.params) for trial in trials}
                params = first if first and not tried else self._new_params(known, number, tried)
                if params is None:
                    break
                known.add_trial(self._running(params))
                self.study.add_trial(self._running(params))
                trials = self.study.get_trials(deepcopy=False)
                batch.append(Proposal(Trial(self.study, trials[-1]._trial_id), params))
                number += 1
            return batch

    def _running(self, params: Mapping[str, Any]) -> FrozenTrial:
        kinds = dict(self.space.searched)
        return create_trial(state=TrialState.RUNNING, params=dict(params), distributions=kinds)

    def _known_before(self, trials: Sequence[FrozenTrial], begin: int) -> optuna.Study:
        """Return a study in memory of what the proposals of a batch may depend on.

        It has the results of the trials before the batch, and the parameters alone of those in it.
        """
        known = optuna.create_study(direction=self.options.direction)
        known.add_trials(trials[:begin])
        known.add_trials([self._running(trial.params) for trial in trials[begin:]])
        return known

    def end(self, proposal: Proposal, value: float | None) -> None:
        """Record the value of a trial, None if it failed.

        The value of a pruned trial is its last intermediate value.
        """
        state = TrialState.COMPLETE if value is not None else TrialState.FAIL
        if proposal.pruned:
            value, state = None, TrialState.PRUNED
        with _quiet():
            self.study.tell(proposal.number, value, state=state)
        self.ran += 1

    def _new_params(
        self, known: optuna.Study, number: int, tried: set[str]
    ) -> Mapping[str, Any] | None:
        kinds = dict(self.space.searched)
        for attempt in range(_ATTEMPTS):
            known.sampler = _sampler(self.options, number, attempt)
            asked = known.ask(kinds)
            known.tell(asked, state=TrialState.FAIL)
            params = {name: _legible(value, kinds[name]) for name, value in asked.params.items()}
            if _point(params) not in tried:
                return params
        return next((p for p in self._every_point() if _point(p) not in tried), None)

    def _every_point(self) -> Iterator[Mapping[str, Any]]:
        """Enumerate a space with few points, in order; nothing for other spaces."""
        values: list[list[Any]] = []
        for kind in self.space.searched.values():
            if isinstance(kind, CategoricalDistribution):
                values.append(list(kind.choices))
            elif isinstance(kind, FloatDistribution):
                if kind.step is None:
                    return
                steps = round((kind.high - kind.low) / kind.step)
                points = (kind.low + kind.step * step for step in range(steps + 1))
                values.append([_legible(point, kind) for point in points])
            elif isinstance(kind, IntDistribution):
                values.append(list(range(kind.low, kind.high + 1, kind.step)))
        for point in itertools.islice(itertools.product(*values), _SMALL):
            yield dict(zip(self.space.searched, point, strict=True))


def written(value: float | None) -> str:
    """Format a value with four significant digits."""
    if value is None:
        return "-"
    return f"{value:.4f}" if 0.01 <= abs(value) < 1000 else f"{value:.4g}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's messages, and raise a `SweepError` if its file cannot be used."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    except optuna.exceptions.StorageInternalError as error:
        reason = getattr(error.__cause__, "orig", error)  # without the SQL statement
        raise SweepError(
            f"cannot use the trials of this search: {reason}; saved trials are not lost: repeat "
            "the command to resume"
        ) from error
    finally:
        optuna.logging.set_verbosity(before)


def _storage(file: Path) -> optuna.storages.RDBStorage:
    """Open or create the file, without a sync to disk at every step, which would be slow."""
    waits = {"connect_args": {"timeout": _PATIENCE}}
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}", engine_kwargs=waits)

    def log_ahead(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    sqlalchemy.event.listen(storage.engine, "connect", log_ahead)
    storage.engine.dispose()
    return storage


def _opened(storage: optuna.storages.RDBStorage, options: SearchOptions) -> optuna.Study:
    try:
        return optuna.create_study(
            storage=storage,
            study_name=_NAME,
            direction=options.direction,
            load_if_exists=True,
            pruner=_pruner(options),
        )
    except optuna.exceptions.StorageInternalError as error:
        raise SweepError(f"cannot read the saved trials: {error}") from error


def _sampler(options: SearchOptions, number: int, attempt: int) -> BaseSampler:
    """Return a sampler seeded for one proposal, so that resuming gives the same proposals."""
    sequence = np.random.SeedSequence([options.seed, number, attempt])
    seed = int(sequence.generate_state(1)[0])
    if options.sampler == "random":
        return RandomSampler(seed=seed)
    # Trials of the same batch count as bad, so that proposals differ from each other.
    return TPESampler(
        n_startup_trials=options.startup_trials, seed=seed, constant_liar=options.workers > 1
    )


def _pruner(options: SearchOptions) -> BasePruner:
    if options.pruner == "median":
        return MedianPruner(n_startup_trials=5, n_warmup_steps=options.prune_from)
    if options.pruner == "hyperband":
        return HyperbandPruner(min_resource=max(options.prune_from, 1))
    return NopPruner()


def _legible(value: Any, kind: BaseDistribution) -> Any:
    """Round a number to a few digits, so that it is easy to type."""
    if isinstance(kind, FloatDistribution):
        digits = _DIGITS if kind.step is None else 10
        return min(max(float(f"{value:.{digits}g}"), kind.low), kind.high)
    return value


def _point(params: Mapping[str, Any]) -> str:
    return json.dumps(dict(params), sort_keys=True)


def _identity(space: Space, options: SearchOptions) -> dict[str, dict[str, str]]:
    names = ("metric", "direction", "seed", "sampler", "startup_trials", "pruner")
    fixed = {
        name: word
        for name, word in space.fixed.items()
        if name.split(".")[0] not in options.may_change
    }
    settings = {name: str(getattr(options, name)) for name in names}
    if options.pruner != "none" and options.prune_from:
        settings["prune_from"] = str(options.prune_from)
    if options.workers > 1:
        settings["workers"] = str(options.workers)
    return {"space": space.described(), "settings": settings, "jobs": fixed}


def _differences(
    before: Mapping[str, Mapping[str, str]] | None, now: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the differences between the identities of two searches."""
    if before is None:
        return ["its beginning"]
    return [
        f"{name}: it was {before[part].get(name, 'not given')}, "
        f"and is {now[part].get(name, 'not given')}"
        for part in now
        for name in {**before[part], **now[part]}
        if before[part].get(name) != now[part].get(name)
    ]
