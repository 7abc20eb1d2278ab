"""A board as its pages show it: which submissions are ranked, on which users, and their means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.comparison.compare import directions
from srs_eval.comparison.pairing import Paired, pair
from srs_eval.comparison.verdict import BESIDE, Verdict
from srs_eval.errors import ConfigError
from srs_eval.metrics.summary import clipped
from srs_eval.nouns import Better, FloatArray
from srs_eval.results.run import TIMES, Run, with_own_names
from srs_eval.stats.estimate import mean_of_users
from srs_eval.stats.paired import Weighting, user_weights
from srs_eval.submit.registrations import Registration
from srs_eval.submit.submission import Board, Submission
from srs_eval.text.console import counted, listed

WEIGHTINGS: tuple[Weighting, ...] = ("users", "reviews")
_MODELS_OF_SRS_EVAL = "srs_eval.algorithms."


@dataclass(frozen=True, slots=True)
class Model:
    """A submission on its board."""

    submission: Submission
    title: str  # Name of the model, unlike that of any other on the board
    column: int  # Number of its scores
    # Name of an earlier submission with the same predictions, which stands for both; "" if there is
    # none
    twin: str = ""

    @property
    def run(self) -> Run:
        """The scores."""
        return self.submission.run

    @property
    def family(self) -> str:
        """Folder of the algorithm among those of srs_eval, or the package it comes from."""
        algorithm = self.submission.about.get("algorithm")
        target = str(algorithm.get("_target_", "")) if isinstance(algorithm, Mapping) else ""
        return target.removeprefix(_MODELS_OF_SRS_EVAL).partition(".")[0] or "other"

    def number(self, key: str) -> float | None:
        """Return a number that the submission states, or None."""
        value = self.submission.about.get(key)
        return value if isinstance(value, (int, float)) and np.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Means:
    """Means of one metric with their intervals, for each weighting of users."""

    better: Better
    n_users: int  # Users with a score of every model that has any
    # [models, 3]: Mean, lower and upper bound of its 99 % interval
    values: Mapping[Weighting, FloatArray]


@dataclass(frozen=True)
class View:
    """A board whose submissions are paired."""

    board: Board
    # In the order of their names; submissions that are not ranked are left out
    models: tuple[Model, ...]
    paired: Paired  # Their scores; those of a `Model` are in its column
    means: Mapping[str, Means]  # log_loss and the other usual metrics come first
    notes: tuple[str, ...]  # What a reader has to know beside the numbers
    # The pre-registrations that are judged on this board or could be, and their verdicts
    registered: tuple[Registration, ...] = ()

    @property
    def times(self) -> list[str]:
        """When the models predict, earliest first."""
        return [when for when in TIMES if any(model.run.when == when for model in self.models)]


def view(board: Board, registered: Sequence[Registration] = ()) -> View:
    """Pair the submissions of a board, and compute the means of every metric.

    Rows of other projects have no digests of their reviews: they are ranked if they have every user
    of the board with the same number of reviews. Raise `ConfigError` if the submissions have no
    user in common, or none has a metric with a better direction.
    """
    given = [one for one in board.submissions if one.run.rows]
    named = with_own_names([replace(one.run, place=one.folder) for one in given])
    own = [run for run in named if run.has_digests] or named
    paired = pair(own, intersect=True)
    others = [run for run in named if not any(run is each for each in own)]
    yardsticks = [run for run in others if _scored_all(run, paired)]
    if yardsticks:
        paired = pair(own, yardsticks, intersect=True, users=paired.users)
    metrics = _metrics(paired)
    if not metrics:
        raise ConfigError(f"{board.name}: no submission has a metric that models are compared by")
    submissions = {run.name: one for run, one in zip(named, given, strict=True)}
    return View(
        board,
        tuple(_models(paired, submissions)),
        paired,
        {name: _means(paired, name, better) for name, better in metrics},
        (
            *_rests_on(paired, *metrics[0]),
            *paired.notes,
            *_left_out(board, others, yardsticks),
            *_not_accepted(board),
        ),
        tuple(one for one in registered if _is_of_board(one, board)),
    )


def _rests_on(paired: Paired, metric: str, better: Better) -> Iterator[str]:
    """Yield what the board rests on, if its submissions say what they have read."""
    coverage = Verdict(paired, metric, better).coverage
    if coverage is not None:
        yield from filter(None, (coverage.caution, *coverage.sentences()))


def _is_of_board(one: Registration, board: Board) -> bool:
    if one.board or one.prereg is None:
        return one.board == board.name
    return (one.prereg.data, one.prereg.protocol) == (board.data, board.protocol)


def _scored_all(run: Run, paired: Paired) -> bool:
    sizes = zip(paired.users, paired.reviews.tolist(), strict=True)
    return all(run.reviews.get(user) == reviews for user, reviews in sizes)


def _left_out(board: Board, others: list[Run], yardsticks: list[Run]) -> Iterator[str]:
    for run in others:
        if not any(run is each for each in yardsticks):
            yield f"{run.name} did not score every user of the board and is not ranked"
    for one in board.submissions:
        if not one.run.rows:
            yield f"{one.run.name} scored no user and is not ranked"


def _not_accepted(board: Board) -> Iterator[str]:
    """Yield that marks are those of the files where no maintainer has given one."""
    new = [one.run.name for one in board.submissions if not one.history]
    if new:
        count = f"{len(new):,} of {counted(len(board.submissions), 'submission')}"
        yield (
            "Not accepted by the maintainers yet, with the mark that the files allow: "
            f"{listed(new)} ({count})"
        )


def _models(paired: Paired, submissions: Mapping[str, Submission]) -> list[Model]:
    column = {run.name: number for number, run in enumerate(paired.runs)}
    twins = {one.run.name: one.twin.name for one in paired.duplicates}
    found = [
        Model(
            submissions[run.name],
            run.name,
            column[twins.get(run.name, run.name)],
            submissions[twins[run.name]].name if run.name in twins else "",
        )
        for run in paired.every_run
    ]
    return sorted(found, key=lambda model: model.submission.name)


def _metrics(paired: Paired) -> list[tuple[str, Better]]:
    known = directions(paired.runs)
    usual = [name for name in BESIDE if name in known]
    return [(name, known[name]) for name in (*usual, *(n for n in known if n not in usual))]


def _means(paired: Paired, metric: str, better: Better) -> Means:
    verdict = Verdict(paired, metric, better)
    values = {}
    for weighting in WEIGHTINGS:
        weights = user_weights(verdict.reviews, weighting)
        found = [mean_of_users(column, weights) for column in verdict.scores.T]
        values[weighting] = np.array(
            [(each.mean, *clipped(each.interval(), verdict.bounds)) for each in found]
        ).reshape(-1, 3)
    return Means(better, len(verdict.users), values)
