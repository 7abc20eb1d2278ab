"""Compare runs by one metric on the same reviews, and the jobs of a sweep that scored them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from srs_eval.comparison.answer import AVERAGES
from srs_eval.comparison.entry import (
    DIGEST,
    SAME,
    SIZE,
    Entry,
    index_of,
    read_entry,
    same_reviews,
    usual_protocol,
    with_own_names,
)
from srs_eval.comparison.standings import Standings
from srs_eval.comparison.words import counted, listed
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError, SrsEvalError
from srs_eval.exports.srs_benchmark import read_published
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import default_panel, full_panel
from srs_eval.metrics.predictions import OPTIONAL_COLUMNS, rows_fingerprint
from srs_eval.runs.folder import SCORES, SUMMARY, job_number, runs_below

_RANKED_BY = "log_loss"
# Inputs of metrics that protocols may count differently; those of one run serve all runs
_FACTS = tuple(name for name in OPTIONAL_COLUMNS if name not in SAME)


@dataclass(frozen=True, slots=True)
class Report:
    """A comparison and its files, the page last; only `problem` where there is none."""

    standings: Standings | None = None
    files: Sequence[Path] = ()
    problem: str = ""


def read_runs(paths: Iterable[Path]) -> tuple[list[Entry], list[str]]:
    """Read all runs at some paths, and return a note for each that scored no user.

    A path is the folder of a run, a folder with runs somewhere below, a file of published scores,
    or a folder of such files. Raise `ConfigError` with every path that holds no runs.
    """
    entries: list[Entry] = []
    problems = []
    for path in paths:
        there = [*map(read_entry, runs_below(path))] or read_published(path)
        entries += there
        if not there:
            what = f"no folder with runs ({SUMMARY}, {SCORES}), nor published scores"
            problems.append(f"{path}: {what}{' here' if path.exists() else ': nothing is there'}")
    if problems:
        raise ConfigError(*problems)
    nothing = [entry for entry in entries if not entry.users]
    notes = [f"{entry.name} scored no user and was left out: {entry.place}" for entry in nothing]
    return [entry for entry in entries if entry.users], notes


def compare(
    runs: Sequence[Entry],
    *,
    metric: str = _RANKED_BY,
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
        raise ConfigError(*notes, "there are no runs to compare")
    runs = with_own_names(runs)
    ranked = directions(runs)
    if metric not in ranked:
        there = ", ".join(sorted(ranked))
        raise ConfigError(f"metric={metric}: no run has it, or none is better; there are {there}")
    for run in runs:
        if np.isinf(run.values(metric, run.users)).any():
            raise ConfigError(f"{run.place}: {metric} of a user is infinite, and no score is")
    base = min(runs, key=_as_baseline) if baseline is None else _called(baseline, runs)
    runs, sizes, restricted = _paired(runs, users, intersect=intersect)
    notes, named = (*notes, *restricted, *_caveats(runs)), {run.name: run for run in runs}
    return Standings(named, sizes, metric, ranked[metric], base.name, notes)


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
            standings = compare_group(group)
            reports.append(Report(standings, standings.save(place, command=command)))
        except (SrsEvalError, OSError) as error:
            reports.append(Report(problem=f"{group[0].name} and others: {error}"))
    return reports


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
    metric = min(directions(ranked), key=lambda name: name != _RANKED_BY)
    return compare(ranked, metric=metric, users=shared_users(ranked), notes=notes)


def _paired(
    runs: Sequence[Entry], users: Iterable[User] | None, *, intersect: bool
) -> tuple[list[Entry], pd.Series, list[str]]:
    """Return runs on the same reviews, their number of each user, and what was left out."""
    own = [run for run in runs if run.run] or runs  # Published ones may have more users
    users = [*(dict.fromkeys(u for run in own for u in run.users) if users is None else users)]
    alike = {*shared_users(runs, users)}
    different = [user for user in users if user not in alike]
    by_all = [user for user in different if all(user in run.scores.index for run in runs)]
    unsaved = [run.name for run in runs if not run.has_predictions]
    restrictable = [] if unsaved else by_all
    differences = [*_differences(runs, different)] if different else []
    if different and not intersect:
        message = "these runs did not score the same reviews, so their scores cannot be compared:"
        hint = "  intersect=true compares them on the reviews that all of them scored"
        lines = [*(f"  - {line}" for line in differences), *[hint] * bool(alike or restrictable)]
        raise ConfigError(message, *lines)
    most = pd.concat([run.scores[SIZE] for run in runs], axis=1).max(axis=1)
    runs, common = _restricted(runs, restrictable)
    alike |= common
    both = [user for user in users if user in alike]
    if not both:
        raise ConfigError("of no user all runs scored the same reviews", *differences)
    sizes = runs[0].scores[SIZE].loc[index_of(both)].astype(np.int64)
    notes = [
        f"Restricted to what all runs scored: {sizes.sum():,} of "
        f"{counted(most[index_of(users)].sum(), 'review')}, "
        f"{len(both):,} of {counted(len(users), 'user')}"
    ] * bool(different)
    notes += [
        f"{listed(unsaved)} kept no predictions: users for whom runs scored different reviews "
        "are left out, although they may have reviews in common"
    ] * bool(unsaved and by_all)
    return runs, sizes, notes


def shared_users(runs: Sequence[Entry], users: Iterable[User] | None = None) -> list[User]:
    """Return the users whose reviews were scored alike by all runs, by default of the first."""
    index = runs[0].scores.index if users is None else index_of(users)
    alike = np.ones(len(index), bool)
    for name, of_runs in ((SIZE, runs), (DIGEST, [run for run in runs if run.has_digests])):
        columns = [run.scores[name].reindex(index) for run in of_runs]
        for column in columns:
            alike &= (column == columns[0]).to_numpy()
    return [*compress(index, alike)]


def _differences(runs: Sequence[Entry], users: Sequence[User]) -> Iterator[str]:
    """Describe how each run differs from the first, or from the first with digests."""
    first = min(runs, key=lambda run: not run.has_digests)
    for run in runs:
        alike, there = {*shared_users([first, run], users)}, run.scores.index
        absent = [user for user in users if user not in there]
        other = [u for u in users if u in there and u in first.scores.index and u not in alike]
        if absent:
            why = ": a fit failed or was skipped" * any(u in run.incomplete for u in absent)
            yield f"{run.name} has no scores of {_users(absent)}{why}"
        if other:
            ours, theirs = (each.scores[SIZE][other[0]] for each in (run, first))
            by = ", by digest" * bool(ours == theirs)
            yield (
                f"{run.name} scored other reviews than {first.name} of {_users(other)}: "
                f"{ours:,} and {theirs:,} of user {other[0]}{by}"
            )


def _restricted(runs: Sequence[Entry], users: Sequence[User]) -> tuple[list[Entry], set[User]]:
    """Score users on the reviews that all runs scored; return the runs, and users that have any."""
    panel, restricted = default_panel(), set[User]()
    runs = [replace(run, scores=run.scores.copy()) for run in runs] if users else [*runs]
    for user, common in zip(users, same_reviews(runs, users), strict=True):
        first, *_ = common.values()
        if not len(first):
            continue
        restricted.add(user)
        # One run's columns by which metrics group reviews, to group those of all runs alike
        facts = {name: getattr(first, name) for name in _FACTS}
        for run in runs:
            own = replace(common[run.name], **facts)
            values: dict[Any, Any] = {SIZE: len(own), DIGEST: rows_fingerprint(own)}
            values |= panel.score(own)
            run.scores.loc[user] = [values.get(name, math.nan) for name in run.scores]
    return runs, restricted


def _caveats(runs: Sequence[Entry]) -> Iterator[str]:
    """Say what is not certain."""
    if published := [run.name for run in runs if not run.has_digests]:
        yield (
            f"Published: {listed(published)}. Users were matched by name and number of reviews; it "
            "is not known which reviews these are, nor which models learned from other users"
        )
    names = sorted({run.facts.protocol for run in runs} - {""})
    if len(names) > 1:
        yield (
            f"Several protocols ({', '.join(names)}), compared on the same reviews; names without "
            f"one: {usual_protocol(runs)}"
        )


def _users(users: Sequence[User]) -> str:
    return f"user{'s' if len(users) > 1 else ''} {listed(users)}"


def directions(runs: Sequence[Entry]) -> dict[str, Better]:
    """Return the metrics of the runs that can be compared, with their better direction."""
    known: dict[str, Better] = {"rmse": "lower", **{m.name: m.better for m in full_panel()}}
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    return {name: known[name] for name in metrics if known.get(name, "neither") != "neither"}


def _as_baseline(run: Entry) -> tuple[int, int]:
    """Return what is lowest of each user's average, or else of the runs that may lead."""
    return run.rank, [*AVERAGES, run.facts.algo].index(run.facts.algo)


def _called(name: str, runs: Sequence[Entry]) -> Entry:
    """Return the only run with a name, an algorithm or a folder."""
    folder = Path(name).expanduser().resolve()
    places = [run.place.resolve() for run in runs]
    names = [(run.name, run.facts.label, run.facts.algo) for run in runs]
    for called in (*zip(*names, strict=True), [each.name for each in places]):
        if called.count(name) == 1:
            return runs[called.index(name)]
    if folder in places:
        return runs[places.index(folder)]
    there = ", ".join(run.name for run in runs)
    raise ConfigError(f"baseline={name}: no unique run with this name; there are {there}")
