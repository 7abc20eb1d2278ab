"""A board as its pages show it: which submissions are ranked, on which users, and their means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from srs_eval.comparison.compare import directions
from srs_eval.comparison.judging import Judgement
from srs_eval.comparison.pairing import Paired, pair
from srs_eval.comparison.verdict import BESIDE, Verdict
from srs_eval.errors import ConfigError
from srs_eval.results.run import TIMES, TRAITS, Run, with_own_names
from srs_eval.submit.registrations import Registration
from srs_eval.submit.submission import Board, Submission
from srs_eval.text.console import counted, listed

MEANINGS = {
    "reported": "scores as their author states them, within bounds; the model was not run again",
    "verified": "run again by a maintainer, with equal scores",
    "published": "scores that another project has published",
}
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
    judgements: tuple[Judgement, ...] = ()  # Verdicts on the pre-registrations about it

    @property
    def run(self) -> Run:
        """The scores."""
        return self.submission.run

    @property
    def family(self) -> str:
        """Folder of the algorithm among those of srs_eval, or the package it comes from."""
        algorithm = self.submission.about.get("algorithm") or {}
        target = str(algorithm.get("_target_", ""))
        return target.removeprefix(_MODELS_OF_SRS_EVAL).partition(".")[0] or "other"

    @property
    def traits(self) -> list[tuple[str, str]]:
        """Traits in a word, each with its meaning."""
        return [
            ("oracle" if trait == "sees_truth" else trait, meaning)
            for trait, (_, meaning) in TRAITS.items()
            if trait in self.run.traits
        ]

    @property
    def badges(self) -> list[tuple[str, str]]:
        """What is worth a badge beside the mark in a word or two, each with its meaning."""
        found = self.traits
        found += [(f"hypothesis {one.in_short}", one.sentence) for one in self.judgements]
        if self.run.facts.fit_counts.has_exceptions:
            found.append(("irregular fits", self.run.facts.fit_counts.in_words))
        if self.run.incomplete:
            count = f"{len(self.run.incomplete):,} users failed"
            found.append((count, "a fold of these users has failed"))
        return found

    def number(self, key: str) -> float | None:
        """Return a number that the submission states, or None."""
        value = self.submission.about.get(key)
        return value if isinstance(value, (int, float)) and np.isfinite(value) else None


@dataclass(frozen=True)
class View:
    """A board whose submissions are paired."""

    board: Board
    # In the order of their names; submissions that are not ranked are left out
    models: tuple[Model, ...]
    paired: Paired  # Their scores; those of a `Model` are in its column
    verdicts: Mapping[str, Verdict]  # By metric; log_loss and the other usual ones come first
    notes: tuple[str, ...]  # What a reader has to know beside the numbers
    # The pre-registrations that are judged on this board or could be, and their verdicts
    registered: tuple[Registration, ...] = ()

    @property
    def times(self) -> list[str]:
        """When the models predict, earliest first."""
        return [when for when in TIMES if any(model.run.when == when for model in self.models)]

    @property
    def users(self) -> int:
        """Number of users."""
        return len(self.paired.users)

    @property
    def reviews(self) -> int:
        """Number of scored reviews."""
        return int(self.paired.reviews.sum())

    @property
    def usual(self) -> Verdict:
        """The verdict by the first metric."""
        return next(iter(self.verdicts.values()))

    @property
    def version(self) -> str:
        """What distinguishes the board from others of its protocol and data."""
        board = self.board
        return f"version {board.protocol_version}, data {board.data_version}, {self._which}"

    @property
    def title(self) -> str:
        """Name of the board for people, unlike that of any other board."""
        board = self.board
        versions = f"{board.protocol} {board.protocol_version} on {board.data} {board.data_version}"
        return f"{versions}, {self._which}"

    @property
    def _which(self) -> str:
        """What distinguishes boards of the same versions: their users, and their options."""
        digest = self.board.fingerprint[:8]
        return counted(self.users, "user") + f" ({digest})" * bool(digest)

    @property
    def by_time(self) -> Iterator[tuple[str, list[Model], Model | None]]:
        """Yield each time of prediction, its models, and the eligible one with the best mean."""
        table = self.usual.leaderboard
        for when in self.times:
            models = [model for model in self.models if model.run.when == when]
            known = [m for m in models if m.run.is_eligible and not np.isnan(table.mean[m.column])]
            best = min(known, key=lambda model: table.order.index(model.column), default=None)
            yield when, models, best

    def named(self, name: str) -> Model | None:
        """Return the model of a submission; None if there is none."""
        return next((one for one in self.models if one.submission.name == name), None)

    def titled(self, title: str) -> Model | None:
        """Return the model whose submission has a title; None if there is none."""
        return next((one for one in self.models if one.submission.run.name == title), None)

    def unjudged(self, one: Registration) -> str:
        """Return why a registration has no verdict."""
        assert one.prereg is not None
        titles = (one.prereg.model, one.prereg.baseline)
        known = {each.run.name for each in self.board.submissions}
        missing = " or ".join(title for title in titles if title not in known)
        return f"no submission to this board has the title {missing}" if missing else one.reason


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
    known = directions(paired.runs)
    names = dict.fromkeys((*filter(known.__contains__, BESIDE), *known))  # the usual ones first
    verdicts = {name: Verdict(paired, name, known[name]) for name in names}
    if not verdicts:
        raise ConfigError(f"{board.name}: no submission has a metric that models are compared by")
    mine = tuple(one for one in registered if _is_of_board(one, board))
    submissions = {run.name: one for run, one in zip(named, given, strict=True)}
    return View(
        board,
        tuple(_models(paired, submissions, mine)),
        paired,
        verdicts,
        (
            *_rests_on(next(iter(verdicts.values()))),
            *paired.notes,
            *_left_out(board, others, yardsticks),
            *_not_accepted(board),
        ),
        mine,
    )


def _rests_on(verdict: Verdict) -> Iterator[str]:
    """Yield what the board rests on, if its submissions say what they have read."""
    if (coverage := verdict.coverage) is not None:
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


def _models(
    paired: Paired, submissions: Mapping[str, Submission], registered: Sequence[Registration]
) -> list[Model]:
    column = {run.name: number for number, run in enumerate(paired.runs)}
    twins = {one.run.name: one.twin.name for one in paired.duplicates}
    found = []
    for run in paired.every_run:
        one, twin = submissions[run.name], twins.get(run.name)
        about_it = [each.judgement for each in registered if each.model == one.name]
        found.append(
            Model(
                one,
                run.name,
                column[twin or run.name],
                submissions[twin].name if twin else "",
                tuple(filter(None, about_it)),
            )
        )
    return sorted(found, key=lambda model: model.submission.name)
