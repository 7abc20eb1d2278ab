"""Compare runs by one metric, and the jobs of a sweep that scored the same reviews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from srs_eval.comparison.answer import AVERAGES, terminal
from srs_eval.comparison.entry import Entry, read_entry, with_own_names
from srs_eval.comparison.pairing import pair, shared_users
from srs_eval.comparison.report import write_files
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.words import counted
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import full_panel
from srs_eval.runs.folder import job_number

_RANKED_BY = "log_loss"


@dataclass(frozen=True, slots=True)
class Report:
    """A comparison, as it is shown and logged; only `problem` where there is none."""

    text: str = ""  # For the terminal
    table: pd.DataFrame = field(default_factory=pd.DataFrame)  # The frame
    files: Sequence[Path] = ()  # The page is the last
    # By folder of a job: its mean above that of the baseline, in percent
    against: Mapping[Path, Mapping[str, float]] = field(default_factory=dict)
    problem: str = ""


def compare(
    runs: Sequence[Entry],
    *,
    metric: str = "log_loss",
    baseline: str | None = None,
    intersect: bool = False,
    users: Iterable[User] | None = None,
    notes: Sequence[str] = (),
) -> Standings:
    """Compare runs on the same reviews by one metric, and return the standings.

    Runs of the same name are distinguished by protocol or folder; published ones beside others may
    have more users. `metric` is any with a better direction; runs without it are listed without a
    score. `baseline` is the name, algorithm or folder of the run that the others are compared with;
    by default each user's average, or else the first run.

    With `intersect`, compare on the reviews that all runs scored, instead of raising an error where
    they differ; without saved predictions, on the users for whom all runs scored the same reviews.
    With `users`, compare on these alone. `notes` are remarks on the runs, for every output.
    """
    if not runs:
        raise ConfigError("there are no runs to compare")
    named = with_own_names(runs)
    paired = pair(named, intersect=intersect, users=users, notes=notes)
    ranked = directions(named)
    if metric not in ranked:
        is_there = any(metric in run.metrics for run in named)
        why = "its better direction is unknown" if is_there else "no run has it"
        raise ConfigError(f"metric={metric}: {why}; there are {', '.join(sorted(ranked))}")
    infinite = np.flatnonzero(np.isinf(paired.scores(metric)).any(axis=0))
    if len(infinite):
        place = named[int(infinite[0])].place
        raise ConfigError(f"{place}: {metric} of a user is infinite; scores are finite or NaN")
    number = _usual_baseline(named) if baseline is None else _numbered(named, baseline)
    return Standings(paired, metric, ranked[metric], number)


def compare_jobs(folders: Sequence[Path], folder: Path, *, command: str) -> list[Report]:
    """Compare the jobs of a sweep; files go into its folder, or into one each of several there."""
    try:
        groups = grouped([*map(read_entry, sorted(folders, key=job_number))])
    except SrsEvalError as error:
        return [Report(problem=str(error))]
    reports = []
    for number, group in enumerate(groups, 1):
        place = folder if len(groups) == 1 else folder / f"comparison_{number}"
        try:
            reports.append(report(compare_group(group), place, command=command))
        except (SrsEvalError, OSError) as error:
            reports.append(Report(problem=f"{group[0].name} and others: {error}"))
    return reports


def report(standings: Standings, place: Path, *, command: str) -> Report:
    """Write the files of a comparison into a folder."""
    files = write_files(standings, place, command=command)
    percents, metric = standings.rows.to_baseline_percent.dropna(), standings.metric
    places = {run.name: run.place for run in standings.runs}
    against = {places[str(name)]: {metric: percent} for name, percent in percents.items()}
    return Report(terminal(standings), standings.frame, files, against)


def grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group what is of the same data and protocol and shares users, or has none, and is ranked."""
    groups: list[list[Entry]] = []
    for entry in sorted(entries, key=lambda entry: not entry.users):  # the empty ones last
        for group in groups:
            first, facts = group[0].facts, entry.facts
            if (facts.data, facts.protocol) == (first.data, first.protocol) and (
                not entry.users or shared_users([*group, entry])
            ):
                group.append(entry)
                break
        else:
            groups.append([entry])
    return [group for group in groups if group[0].users and directions(group)]


def compare_group(group: Sequence[Entry]) -> Standings:
    """Compare a group on the users they share, without those of less than half as many users."""
    group = with_own_names(group)
    most = max(len(entry.users) for entry in group)
    ranked = [entry for entry in group if 2 * len(entry.users) >= most]
    notes = [
        f"{entry.name} scored {len(entry.users):,} of {counted(most, 'user')} and is not ranked"
        for entry in group
        if entry not in ranked
    ]
    metrics = directions(ranked)
    metric = _RANKED_BY if _RANKED_BY in metrics else next(iter(metrics))
    return compare(ranked, metric=metric, users=shared_users(ranked), notes=notes)


def directions(runs: Sequence[Entry]) -> dict[str, Better]:
    """Return the metrics of the runs that can be compared, with their better direction."""
    known: dict[str, Better] = {"rmse": "lower", **{m.name: m.better for m in full_panel()}}
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    return {name: known[name] for name in metrics if known.get(name, "neither") != "neither"}


def _usual_baseline(runs: Sequence[Entry]) -> int:
    """Return the number of each user's average, or else of the first run that may lead."""
    order = [(run.rank, [*AVERAGES, run.facts.algo].index(run.facts.algo)) for run in runs]
    return order.index(min(order))


def _numbered(runs: Sequence[Entry], name: str) -> int:
    """Return the number of the only run with a name, an algorithm or a folder."""
    folder = Path(name).expanduser().resolve()
    for wanted, of_runs in (
        (name, [run.name for run in runs]),
        (name, [run.facts.label for run in runs]),
        (name, [run.facts.algo for run in runs]),
        (name, [run.place.resolve().name for run in runs]),
        (str(folder), [str(run.place.resolve()) for run in runs]),
    ):
        if of_runs.count(wanted) == 1:
            return of_runs.index(wanted)
    names = ", ".join(run.name for run in runs)
    raise ConfigError(f"baseline={name}: no unique run with this name; there are {names}")
