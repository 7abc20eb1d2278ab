"""Standings of runs on the same reviews: one tidy frame, from which everything else is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import pandas as pd

from srs_eval.comparison.coverage import coverage_of
from srs_eval.comparison.entry import TIMES, Entry
from srs_eval.comparison.leaderboard import Leaderboard, Rules
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.predictions import PER_REVIEW, SameReviews, losses
from srs_eval.comparison.strata import Strata, stratify
from srs_eval.data.reviews import (
    BoolArray,
    FloatArray,
    IntArray,
    User,
)
from srs_eval.metrics.bootstrap import cluster_intervals
from srs_eval.metrics.means import (
    Estimate,
    MetricSummary,
    Weighting,
    clipped,
    clustered_mean,
    effective_users,
    mean_of_users,
    summarise,
    user_weights,
)
from srs_eval.metrics.metric import UNBOUNDED, Better
from srs_eval.metrics.panel import HEADLINE, Panel, bias_at_retention, default_panel
from srs_eval.metrics.predictions import Predictions
from srs_eval.runs.summary import EXCEPTIONS, FEWEST_OF_A_KIND, FEWEST_REVIEWS, Coverage

AVERAGES = ("avg", "avg_smoothed")  # What knowing nothing about a card gives
# Scores with a natural zero that is perfect, so that a percentage is meaningful
IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")
_BESIDE = (*HEADLINE, "ici")
_SIGN: Mapping[Better, float] = {"lower": 1.0, "higher": -1.0, "zero": 1.0}


@dataclass(frozen=True, eq=False)
class Standings:
    """Runs compared by one metric; see `srs_eval.comparison.compare.compare`.

    Numbers are computed when they are first used. Only single users, `strata` and runs that are
    restricted to common reviews need predictions.
    """

    paired: Paired  # The runs, and the users they are compared on
    metric: str
    better: Better
    baseline: int = 0  # Number of the run that the others are compared with

    @property
    def runs(self) -> tuple[Entry, ...]:
        """The runs without duplicates."""
        return self.paired.runs

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each run and weighting of users, by time of prediction, then the best first.

        Differences are those to the leader (``to_best``) and to the baseline (``to_baseline``).
        """
        return pd.DataFrame(self.rows)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of `frame`."""
        rows = []
        for board in self.boards:
            for model in board.order:
                run, row = self.runs[model], self._row(board, model)
                rows.append({**_about(run), **row})
                twins = [each.run for each in self.paired.duplicates if each.twin is run]
                rows += [{**_about(twin, identical_to=run.name), **row} for twin in twins]
        return rows

    @property
    def board(self) -> Leaderboard:
        """The leaderboard in which each user counts once."""
        return self.boards[0]

    @cached_property
    def boards(self) -> tuple[Leaderboard, ...]:
        """Leaderboards by user, by review and by logarithm of reviews; one for a single user."""
        rules = Rules(
            ranks=tuple(run.rank for run in self.runs),
            times=tuple(TIMES.index(run.when) for run in self.runs),
            sign=_SIGN[self.better],
            baseline=self.baseline,
        )
        if len(self.paired.users) == 1:
            return (self._board_of_one(rules),)
        return tuple(
            board_of(self.scores, self.reviews, weighting, rules, self.bounds)
            for weighting in get_args(Weighting)
        )

    @cached_property
    def users(self) -> tuple[User, ...]:
        """Users with a score of every run that has the metric."""
        return tuple(np.array(self.paired.users, object)[self._has_score].tolist())

    @cached_property
    def scores(self) -> FloatArray:
        """Scores [users, runs] of `users`; absolute values if 0 is best."""
        return np.asfortranarray(self._every_score[self._has_score])

    @property
    def reviews(self) -> IntArray:
        """Scored reviews of `users`."""
        return self.paired.reviews[self._has_score]

    @property
    def bounds(self) -> tuple[float, float]:
        """Range of `scores`."""
        bounds = next((m.bounds for m in default_panel() if m.name == self.metric), UNBOUNDED)
        return (0.0, max(map(abs, bounds))) if self.better == "zero" else bounds

    @property
    def leaders(self) -> dict[str, Entry]:
        """The leader of each time at which predictions are made."""
        numbers = [number for number in self.board.groups if number >= 0]
        return {self.runs[number].when: self.runs[number] for number in numbers}

    @cached_property
    def superiority(self) -> FloatArray:
        """Share of users [runs, runs] for whom the row's run is better than the column's."""
        return superiority_matrix(self.scores, sign=_SIGN[self.better])

    @property
    def answers(self) -> tuple[int, float, float]:
        """Scored reviews, and at most so many forgotten and recalled: infinity where not known."""
        facts = [run.facts for run in self.runs if run.run is not None]
        forgotten = min((each.forgotten for each in facts), default=math.inf)
        recalled = min((each.reviews - each.forgotten for each in facts), default=math.inf)
        return int(self.reviews.sum()), forgotten, recalled

    @property
    def is_too_small(self) -> bool:
        """Whether there are too few answers of either kind to say anything."""
        scored, *kinds = self.answers
        return scored < FEWEST_REVIEWS or min(kinds) < FEWEST_OF_A_KIND

    @cached_property
    def bias(self) -> tuple[str, tuple[MetricSummary, ...]] | None:
        """The bias at the default retention: its metric, and the mean of each run.

        Each is over the users for whom the run has predictions there; None if not all runs have
        the metric.
        """
        shared = [name for name in self.runs[0].scores if all(name in r.scores for r in self.runs)]
        metric = bias_at_retention(shared)
        if metric is None:
            return None
        return metric[0], tuple(mean_of(run, metric[0], self.paired.users) for run in self.runs)

    @cached_property
    def beside(self) -> dict[str, FloatArray]:
        """Means of other metrics over the users with a score of every run that has it."""
        means = {}
        for name in _BESIDE:
            scores = self.paired.scores(name)
            whole = scores[_complete(scores)]
            if name != self.metric and len(whole) and not np.isnan(scores).all():
                means[name] = whole.mean(axis=0)
        return means

    @cached_property
    def strata(self) -> Strata | None:
        """Differences to the baseline by stratum of the reviews; None without predictions."""
        return stratify(self.paired, self.baseline, self.metric)

    @cached_property
    def coverage(self) -> Coverage | None:
        """What the comparison rests on; None if no run says what it has read."""
        return coverage_of(self.paired.every_run, self.paired.reviews, self.reviews, self.metric)

    def percents(self, run: Entry) -> dict[str, float]:
        """Return by how much the means of a run are above those of the baseline, in percent."""
        base, percents = self.runs[self.baseline], {}
        for name in IN_PERCENT:
            ours, theirs = (each.values(name, self.paired.users) for each in (run, base))
            both = ~np.isnan(ours + theirs)
            if theirs[both].sum() > 0:
                percents[name] = 100 * float(ours[both].sum() / theirs[both].sum() - 1)
        return percents

    def _row(self, board: Leaderboard, model: int) -> dict[str, Any]:
        """Return the numbers of a run by a weighting."""
        mean, base = float(board.mean[model]), float(board.mean[self.baseline])
        percent = 100 * (mean / base - 1) if self.metric in IN_PERCENT and base > 0 else math.nan
        row = {
            "weighting": board.weighting,
            "place": 1 + board.groups[board.leaders[model]].index(model),
            "metric": self.metric,
            "mean": mean,
            "lo": float(board.lo[model]),
            "hi": float(board.hi[model]),
            "n_users": len(board.values),
            "n_effective": board.effective,
            **board.to_best[model].columns("best"),
            **board.to_baseline[model].columns("baseline"),
            "to_baseline_percent": percent,
            **{name: float(means[model]) for name, means in self.beside.items()},
        }
        if self.bias is not None:
            name, summary = self.bias[0], self.bias[1][model]
            row |= {name: summary.mean_users, f"{name}_lo": summary.lo, f"{name}_hi": summary.hi}
            row[f"{name}_users"] = summary.n_users
        return row

    def _board_of_one(self, rules: Rules) -> Leaderboard:
        """Compute the leaderboard of a single user.

        Intervals are those of each run's summary (over its cards and days), computed anew where the
        summary is of other reviews or more users. Pairs are compared review by review if the metric
        is a mean over reviews and predictions were saved.
        """
        (user,), scores = self.paired.users, self._every_score
        reviews = SameReviews(self.runs).read(user)
        losses_of = {
            number: losses(each, self.metric)
            for number, each in reviews.items()
            if self.metric in PER_REVIEW
        }
        below = {}
        for a in range(len(self.runs)):
            for b in range(a):
                below[a, b] = Estimate(float(scores[0, a] - scores[0, b]))
                if a in losses_of and b in losses_of:
                    ours, theirs = losses_of[a], losses_of[b]
                    size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
                    clusters = _clusters(reviews[a])
                    below[a, b] = clustered_mean(ours - theirs, *clusters, size=size)
        bounds = [self._bounds_of_one(n, reviews.get(n)) for n in range(len(self.runs))]
        lo, hi = np.array(bounds).T
        return Leaderboard("users", 1.0, scores[0], lo, hi, below, scores, rules)

    def _bounds_of_one(self, number: int, reviews: Predictions | None) -> tuple[float, float]:
        """Return the interval of a run's score, of its summary if that is of the same reviews."""
        run, (user,) = self.runs[number], self.paired.users
        if len(run.rows) == 1 and user not in self.paired.restricted:
            known = run.facts.metrics.get(self.metric)
            return (math.nan, math.nan) if known is None else (known.lo, known.hi)
        panel = [metric for metric in default_panel() if metric.name == self.metric]
        if reviews is None or not panel:
            return math.nan, math.nan
        return cluster_intervals(Panel(panel), reviews)[self.metric]

    @cached_property
    def _every_score(self) -> FloatArray:
        """Scores [users, runs] of all users; absolute values if 0 is best."""
        scores = self.paired.scores(self.metric)
        return np.abs(scores) if self.better == "zero" else scores

    @cached_property
    def _has_score(self) -> BoolArray:
        return _complete(self._every_score)


def board_of(
    values: FloatArray,
    reviews: IntArray,
    weighting: Weighting,
    rules: Rules,
    bounds: tuple[float, float] = UNBOUNDED,
) -> Leaderboard:
    """Compute the leaderboard of scores [users, models] for a weighting of users."""
    weights = user_weights(reviews, weighting)
    means = [mean_of_users(column, weights) for column in values.T]
    intervals = [clipped(mean.interval(), bounds) for mean in means]
    lo, hi = np.array(intervals).reshape(-1, 2).T
    largest = np.abs(values).max(axis=0, initial=0.0).tolist()
    below = {
        (a, b): mean_of_users(
            values[:, a] - values[:, b], weights, size=max(largest[a], largest[b])
        )
        for a in range(len(means))
        for b in range(a)
    }
    mean = np.array([mean.mean for mean in means])
    return Leaderboard(weighting, effective_users(weights), mean, lo, hi, below, values, rules)


def superiority_matrix(scores: FloatArray, *, sign: float = 1.0) -> FloatArray:
    """Compute the share of users for whom the row's model is better than the column's.

    Ties count half. Users without a score of either model are left out of that pair; a pair without
    users is NaN.

    >>> superiority_matrix(np.array([[0.3, 0.35], [0.4, 0.4], [0.5, 0.6]])).tolist()[0]
    [0.5, 0.8333333333333334]
    """
    shares = np.full((scores.shape[1],) * 2, math.nan)
    for model, column in enumerate(scores.T):
        gain = sign * (scores - column[:, None])
        users = np.count_nonzero(~np.isnan(gain), axis=0)
        wins = np.count_nonzero(gain > 0, axis=0) + 0.5 * np.count_nonzero(gain == 0, axis=0)
        np.divide(wins, users, out=shares[model], where=users > 0)
    return shares


def mean_of(entry: Entry, metric: str, users: Sequence[User]) -> MetricSummary:
    """Return the mean over the users that a metric is defined for, with its interval.

    The interval of a single user is that of the run, if the run scored nothing else.
    """
    column = entry.values(metric, users)
    mean = summarise([metric], column[:, None], np.ones(len(users), np.int64), {})[metric]
    known = entry.facts.metrics.get(metric)
    if len(users) == 1 and known is not None and known.mean_users == mean.mean_users:
        return replace(mean, lo=known.lo, hi=known.hi)
    return mean


def usual_baseline(runs: Sequence[Entry]) -> int:
    """Return the number of each user's average, or else of the first run that may lead."""
    order = [
        (run.rank, AVERAGES.index(run.algo) if run.algo in AVERAGES else len(AVERAGES))
        for run in runs
    ]
    return order.index(min(order))


def _about(run: Entry, *, identical_to: str = "") -> dict[str, Any]:
    """Return what a run is; counts of fits are None where they are not known, which is not 0."""
    counts = {name: getattr(run.facts, name) for name in ("fits", *EXCEPTIONS)}
    return {
        "run": run.name,
        "when": run.when,
        "traits": " ".join(run.traits),
        **{name: count if run.facts.fits else None for name, count in counts.items()},
        "identical_to": identical_to,
    }


def _clusters(reviews: Predictions) -> list[IntArray]:
    """Return the clusters of one user's reviews: cards and, if they were saved, days."""
    return [reviews.card] if reviews.day is None else [reviews.card, reviews.day]


def _complete(scores: FloatArray) -> BoolArray:
    """Select the users with a score of every run that has any."""
    has_any = ~np.isnan(scores).all(axis=0)
    return np.asarray(~np.isnan(scores[:, has_any]).any(axis=1) & has_any.any(), np.bool_)
