"""A search, from its overrides to the files in its folder.

Its loop proposes a batch of trials, runs their jobs and records the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import OmegaConf

from srs_eval.text.console import complain, say, shell
from srs_eval.tuning import figures
from srs_eval.tuning.ending import Ending, counts, told, write_best
from srs_eval.tuning.progress import RunningTrial, reporting_to
from srs_eval.tuning.space import SearchOptions, Space, SweepError, read_options, read_space
from srs_eval.tuning.study import FILE, Proposal, SearchStudy, written

if TYPE_CHECKING:
    from hydra_plugins.srs_eval_optuna.optuna_sweeper import OptunaSweeper

# Runs jobs from their overrides and the number of the first; a RuntimeError if one is lost.
Launch = Callable[[Sequence[Sequence[str]], int], Sequence[JobReturn]]


def run_search(asking: OptunaSweeper, arguments: Sequence[str]) -> Ending | None:
    """Search, and write the best configuration and figures into the folder of the sweep."""
    words = [*(f"{key}={value}" for key, value in asking.params.items()), *arguments]
    space = read_space(words, asking.loader)
    options = read_options({**asking.options, "may_change": tuple(asking.options["may_change"])})
    if options.pruner != "none" and not asking.shares_process:
        raise SweepError(
            f"hydra.sweeper.pruner={options.pruner}: jobs of this launcher run in other processes "
            "and cannot report to the search; use hydra/launcher=basic or hydra.sweeper.pruner=none"
        )
    # Unknown keys and options are reported now rather than in every trial.
    any_point = {
        name: kind.choices[0] if hasattr(kind, "choices") else getattr(kind, "low", None)
        for name, kind in space.searched.items()
    }
    asking.composed(space.words(any_point))
    first = _as_configured(space, asking) if options.start_from_config else None
    asking.save_config()
    found = search(asking.folder, space, options, asking.launch, first)
    if found.complaint:
        complain(found.complaint)
    if found.best is None:
        complain(f"no trial has a value; trials {counts(found)}")
        return None
    meaning = asking.meaning.format(metric=options.metric.replace("_", " "))
    config = asking.composed(space.words(found.best.params))
    command = write_best(asking, found, found.best, config, meaning)
    drawn = figures.draw(found, meaning.partition(",")[0])
    ending = Ending(found, meaning, found.best, config, command, drawn)
    say(told(ending))
    say()
    return ending


def _as_configured(space: Space, asking: OptunaSweeper) -> dict[str, Any] | None:
    """Return the configuration without the search as a point, if the space contains it."""
    config = asking.composed(list(space.fixed.values()))
    point: dict[str, Any] = {}
    for name, kind in space.searched.items():
        choices = config.hydra.runtime.choices
        value = choices[name] if name in choices else OmegaConf.select(config, name)
        if hasattr(kind, "choices"):
            value = str(value)
            is_inside = value in kind.choices
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            is_inside = is_number and kind._contains(kind.to_internal_repr(value))
        if not is_inside:
            return None
        point[name] = value
    return point


def search(
    folder: Path,
    space: Space,
    options: SearchOptions,
    launch: Launch,
    first: Mapping[str, Any] | None = None,
) -> SearchStudy:
    """Run trials until there are `options.n_trials`.

    An interrupted search in the folder is resumed. `first` has the parameters of the first trial.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / f"{FILE}.lock", timeout=0):
            trials = SearchStudy(folder, space, options)
            _search(trials, launch, first)
    except Timeout as taken:
        raise SweepError(f"another command is searching in {folder}") from taken
    return trials


def _search(trials: SearchStudy, launch: Launch, first: Mapping[str, Any] | None) -> None:
    total = trials.options.n_trials
    if done := len(trials.ended):
        say(f"{done} of {total} trials were done before")
    try:
        while len(trials.ended) < total and not trials.complaint:
            batch = trials.propose(first)
            if not batch:
                say("every point of the space has been tried")
                break
            for proposal, job in _run(trials, launch, batch):
                value = _value(trials.options, proposal, job)
                trials.end(proposal, value)
                say(_line(trials, proposal, value))
    except KeyboardInterrupt:
        complain(
            f"{len(trials.ended)} of {total} trials are done; to resume, repeat "
            f"the command with {shell([f'hydra.sweep.dir={trials.folder}'])}"
        )
        raise


def _run(
    search: SearchStudy, launch: Launch, batch: Sequence[Proposal]
) -> Iterator[tuple[Proposal, JobReturn]]:
    """Run the jobs of a batch: together, or one by one where they report to the search.

    If the launcher loses a job, those launched with it are run again, one by one.
    """
    options = search.options
    prunes = options.pruner != "none"
    for together in [[one] for one in batch] if prunes else _consecutive(batch):
        trials = [
            RunningTrial(one.number, options.metric, one.repeated, options.direction)
            for one in together
        ]
        words = [
            [*search.space.words(one.params), trial.override()]
            for one, trial in zip(together, trials, strict=True)
        ]
        try:
            with reporting_to(together[0].report if prunes else None):
                ended = launch(words, together[0].number)
        except RuntimeError as error:
            if len(together) > 1:
                for one in together:
                    yield from _run(search, launch, [replace(one, repeated=True)])
                continue
            ended = [JobReturn(status=JobStatus.FAILED)]
            ended[0].return_value = error
        yield from zip(together, ended, strict=True)


def _consecutive(batch: Sequence[Proposal]) -> list[list[Proposal]]:
    """Divide a batch where numbers are missing, as a launcher counts on from the first."""
    parts = groupby(enumerate(batch), key=lambda each: each[1].number - each[0])
    return [[proposal for _, proposal in part] for _, part in parts]


def _value(options: SearchOptions, proposal: Proposal, ended: JobReturn) -> float | None:
    """Return the value of a trial, None if it has none."""
    if proposal.pruned:
        return None
    if ended.status != JobStatus.COMPLETED:
        error = ended._return_value  # its property would raise it
        told = str(error).strip().partition("\n")[0]
        complain(f"trial {proposal.number}: {type(error).__name__}: {told}")
        return None
    returned = ended.return_value
    if isinstance(returned, Mapping):
        if options.metric not in returned:
            named = ", ".join(map(str, returned)) or "nothing"
            complain(
                f"trial {proposal.number}: the job returned {named}, but no {options.metric}; "
                "choose one with hydra.sweeper.metric=…"
            )
            return None
        returned = returned[options.metric]
    # NumPy has its own types of numbers, and bool is a type of number
    if isinstance(returned, bool) or not isinstance(returned, Real):
        complain(f"trial {proposal.number}: the job returned {returned!r}, expected a number")
        return None
    return float(returned) if math.isfinite(returned) else None


def _line(trials: SearchStudy, proposal: Proposal, value: float | None) -> str:
    """Format the result of a trial on one line."""
    came = "pruned" if proposal.pruned else "failed" if value is None else written(value)
    best = trials.best
    so_far = "" if best is None else f"; best {written(best.value)}, trial {best.number}"
    total = trials.options.n_trials
    words = " ".join(trials.space.searched_words(proposal.params).values())
    return f"trial {proposal.number} of {total}: {came}  {words}{so_far}\n"
