"""A run as comparisons see it: a name, and scores of the users without a missing fold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from srs_eval.errors import ConfigError
from srs_eval.nouns import FloatArray, User
from srs_eval.nouns.when import UNKNOWN, WHEN
from srs_eval.results.files import SUMMARY
from srs_eval.results.fit_counts import MARK
from srs_eval.results.folder import is_run, load
from srs_eval.results.predicted import Predicted
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary
from srs_eval.text.plain import one_line

# What sets a model apart from one that is fitted to earlier reviews of the same user and then
# left as it is: a key of the summary, the mark of its name, and what the mark means.
TRAITS = {
    "pretrained": ("°", "has learned from other users"),
    "sees_truth": ("†", "knows the truth of simulated users: a bound, not a model"),
    "in_sample": ("‡", "may have been fitted to the very reviews that it is scored on"),
}
# Models with one of these are not eligible for best.
INELIGIBLE = ("sees_truth", "in_sample")
# When predictions can have been made, in the order of tables.
TIMES = (*WHEN, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Run:
    """The scores of one model."""

    name: str  # Name in tables
    place: Path  # Folder or file it was read from
    # Digest of the scored reviews of each user without a missing fold; "" if unknown
    rows: Mapping[User, str]
    reviews: Mapping[User, int]  # Number of these reviews
    # By metric, [len(rows)]: of the same users in the same order; NaN where not defined
    scores: Mapping[str, FloatArray]
    incomplete: tuple[User, ...] = ()  # Users with a missing fold; they have no scores
    facts: Summary = field(
        default_factory=Summary
    )  # The run's ``summary.json``, as far as it is known
    # Predictions that the scores were computed from
    predicted: Predicted | None = field(default=None, compare=False)

    @property
    def protocol(self) -> str:
        """Name of the evaluation protocol."""
        return self.facts.protocol

    @property
    def when(self) -> str:
        """When predictions were made: one of `WHEN`, or ``unknown``."""
        return self.facts.when

    @property
    def traits(self) -> tuple[str, ...]:
        """Traits of the model: keys of `TRAITS`."""
        return tuple(trait for trait in TRAITS if getattr(self.facts, trait))

    @property
    def is_eligible(self) -> bool:
        """Whether the model may be called the best."""
        return not set(self.traits) & set(INELIGIBLE)

    @property
    def marked(self) -> str:
        """The name, with marks for traits of the model and for irregular fits."""
        marks = "".join(TRAITS[trait][0] for trait in self.traits)
        marks += MARK if self.facts.fit_counts.has_exceptions else ""
        return f"{self.name} {marks}" if marks else self.name

    @property
    def has_digests(self) -> bool:
        """Whether it is known which reviews were scored."""
        return all(self.rows.values())

    def values(self, metric: str, users: Sequence[User]) -> FloatArray:
        """Scores of the users, in their order; NaN where the run has none."""
        column = self.scores.get(metric)
        if column is None:
            return np.full(len(users), math.nan)
        if [*users] == [*self.rows]:
            return column
        position = {user: number for number, user in enumerate(self.rows)}
        at = np.array([position.get(user, -1) for user in users], np.int64)
        found: FloatArray = np.append(column, math.nan)[at]
        return found


def load_run(folder: Path, like: Run | None = None) -> Run:
    """Read the scores of a finished run.

    If another run, `like`, scored the same reviews, both share the list of them in memory.
    """
    run = run_of(load(folder))
    if like is None or (run.rows, run.reviews) != (like.rows, like.reviews):
        return run
    in_order = [*run.rows] == [*like.rows]
    return replace(run, rows=like.rows, reviews=like.reviews) if in_order else run


def run_of(result: Result) -> Run:
    """Return the scores of a result under its label."""
    scores = result.by_user
    whole = np.array([rows != "" for rows in scores.rows], np.bool_)
    kept = {user: rows for user, rows in zip(scores.users, scores.rows, strict=True) if rows}
    return Run(
        name=result.facts.label,
        place=result.folder or Path(),
        rows=kept,
        reviews=dict(zip(kept, scores.reviews[whole].tolist(), strict=True)),
        scores=dict(zip(scores.names, scores.values[whole].T, strict=True)),
        incomplete=tuple(user for user in scores.users if user not in kept),
        facts=result.facts,
        predicted=result.predicted,
    )


def runs_below(folder: Path) -> list[Path]:
    """Return the folders of all finished runs in a folder, in the order of their job numbers."""
    found = {path.parent for path in folder.rglob(SUMMARY) if is_run(path.parent)}
    return sorted(found, key=lambda path: (path.parent, job_number(path)))


def protocols(runs: Iterable[Run]) -> list[str]:
    """Return the names of the protocols of runs, sorted."""
    return sorted({run.protocol for run in runs} - {""})


def usual_protocol(runs: Iterable[Run]) -> str:
    """Return the protocol of most runs; of equally frequent ones, the first."""
    named = [run.protocol for run in runs if run.protocol]
    return max(named, key=named.count, default="")


def with_own_names(runs: Iterable[Run]) -> list[Run]:
    """Return the runs under names that differ.

    Runs under another protocol than most have it in their name; names that are still equal get
    their folder added. Raise `ConfigError` if the same run is there twice.
    """
    runs = list(runs)
    usual = usual_protocol(runs)
    runs = [_told_apart(run, run.protocol) if run.protocol != usual else run for run in runs]
    for where in (lambda run: run.place.name, lambda run: str(run.place)):
        places: dict[str, set[str]] = {}
        for run in runs:
            places.setdefault(run.name, set()).add(where(run))
        runs = [_told_apart(run, where(run)) if len(places[run.name]) > 1 else run for run in runs]
    names = [run.name for run in runs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"the same run is given more than once: {', '.join(twice)}")
    return runs


def _told_apart(run: Run, by: str) -> Run:
    return replace(run, name=one_line(f"{run.name} ({by})")) if by else run


def job_number(folder: Path) -> tuple[int, str]:
    """Return the key that sorts the folders of a sweep's jobs by their numbers."""
    number = folder.name.partition("_")[0]
    return (int(number) if number.isdigit() else -1, folder.name)
