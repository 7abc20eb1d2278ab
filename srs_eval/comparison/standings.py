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
from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.predictions import PER_REVIEW, SameReviews, losses
from srs_eval.comparison.strata import Strata, stratify
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, User
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
from srs_eval.metrics.panel import HEADLINE, bias_at_retention, default_panel
from srs_eval.runs.summary import EXCEPTIONS, FEWEST_OF_A_KIND, FEWEST_REVIEWS, Coverage

AVERAGES = ("avg", "avg_smoothed")  # What knowing nothing about a card gives
# Scores with a natural zero that is perfect, so that a percentage is meaningful
IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")
BESIDE = (*HEADLINE, "ici")  # Other metrics of the frame
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
        """The runs, each with a number."""
        return self.paired.runs

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each run and weighting of users, by time of prediction, then the best first.

        Differences are those to the leader (``to_best``) and to the baseline (``to_baseline``).
        Counts of fits are missing where they are not known, which is not 0.
        """
        about = pd.DataFrame([_about(run) for run in self.runs])
        counts = ["fits", *EXCEPTIONS]
        about[counts] = about[counts].astype("Int64")
        boards = [about.join(self._board(each), how="right") for each in self.boards]
        return pd.concat(boards, ignore_index=True)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of `frame` in which each user counts once, by the name of the run."""
        return self.frame[self.frame.weighting == "users"].set_index("run", drop=False)

    @property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair of runs and weighting: the mean of `run` less that of `other`."""
        names = [run.name for run in self.runs]
        return pd.DataFrame(
            [
                (weighting, names[a], names[b], gap.mean, *gap.interval(), gap.p_value)
                for weighting, board in self.boards.items()
                for (a, b), gap in board.below.items()
            ],
            columns=["weighting", "run", "other", "difference", "lo", "hi", "p"],
        )

    @cached_property
    def boards(self) -> dict[Weighting, Leaderboard]:
        """Leaderboards by user, by review and by logarithm of reviews; one for a single user."""
        weightings = get_args(Weighting)[: 1 if len(self.paired.users) == 1 else None]
        return {
            weighting: Leaderboard(
                values=self.scores,
                mean=np.array([mean_of_users(column, weights).mean for column in self.scores.T]),
                below=self._of_one_user() or _differences(self.scores, weights),
                ranks=[run.rank for run in self.runs],
                times=[TIMES.index(run.when) for run in self.runs],
                sign=_SIGN[self.better],
                baseline=self.baseline,
            )
            for weighting in weightings
            for weights in [user_weights(self.reviews, weighting)]
        }

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
        runs = {run.name: run for run in self.runs}
        return {runs[name].when: runs[name] for name in dict.fromkeys(self.rows.leader) if name}

    @cached_property
    def superiority(self) -> pd.DataFrame:
        """Share of users for whom the run of the row is better than that of the column.

        Ties count half.
        """
        names, users = [run.name for run in self.runs], len(self.scores) or math.nan
        gains = (_SIGN[self.better] * (self.scores - own[:, None]) for own in self.scores.T)
        shares = [(1 + np.sign(gain).sum(axis=0) / users) / 2 for gain in gains]
        return pd.DataFrame(shares, names, names)

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
    def bias(self) -> str | None:
        """The metric of bias at the default retention, if all runs have it."""
        shared = [name for name in self.runs[0].scores if all(name in r.scores for r in self.runs)]
        metric = bias_at_retention(shared)
        return metric and metric[0]

    @cached_property
    def strata(self) -> Strata | None:
        """Differences to the baseline by stratum of the reviews; None without predictions."""
        return stratify(self.paired, self.baseline, self.metric)

    @cached_property
    def coverage(self) -> Coverage | None:
        """What the comparison rests on; None if no run says what it has read."""
        return coverage_of(self.runs, self.paired.reviews, self.reviews, self.metric)

    def _board(self, weighting: Weighting) -> pd.DataFrame:
        """Return the numbers of each run by a weighting."""
        board, names = self.boards[weighting], [run.name for run in self.runs]
        weights, base = user_weights(self.reviews, weighting), board.mean[self.baseline]
        rows = board.order.assign(weighting=weighting, metric=self.metric)
        rows["leader"] = [names[leader] if leader >= 0 else "" for leader in rows.leader]
        rows["mean"] = board.mean[rows.index]
        rows[["lo", "hi"]] = [self._interval(model, weights) for model in rows.index]
        rows["n_users"], rows["n_effective"] = len(self.users), effective_users(weights)
        for to, versus in (("to_best", board.to_best), ("to_baseline", board.to_baseline)):
            columns = pd.DataFrame.from_dict(versus, orient="index").add_prefix(f"{to}_")
            rows = rows.join(columns.rename(columns={f"{to}_difference": to}))
        has_percent = self.metric in IN_PERCENT and base > 0
        rows["to_baseline_percent"] = 100 * (rows["mean"] / base - 1) if has_percent else math.nan
        return rows.join(self._beside)

    @cached_property
    def _beside(self) -> pd.DataFrame:
        """Means of other metrics over the users with a score of every run that has it, and bias.

        The bias of each run is over the users for whom it has predictions there.
        """
        columns = {}
        for name in BESIDE:
            scores = self.paired.scores(name)
            whole = scores[_complete(scores)]
            if name != self.metric and len(whole) and not np.isnan(scores).all():
                columns[name] = whole.mean(axis=0)
        if (bias := self.bias) is not None:
            means = [mean_of(run, bias, self.paired.users) for run in self.runs]
            columns |= {bias: np.array([mean.mean_users for mean in means])}
            for part, key in (("lo", "lo"), ("hi", "hi"), ("users", "n_users")):
                columns[f"{bias}_{part}"] = np.array([getattr(mean, key) for mean in means])
        return pd.DataFrame(columns, range(len(self.runs)))

    def _interval(self, model: int, weights: FloatArray) -> tuple[float, float]:
        """Return the interval of a mean; of a single user, that of the run."""
        if len(self.paired.users) == 1:
            known = mean_of(self.runs[model], self.metric, self.paired.users)
            return known.lo, known.hi
        return clipped(mean_of_users(self.scores[:, model], weights).interval(), self.bounds)

    def _of_one_user(self) -> dict[tuple[int, int], Estimate]:
        """Compare runs review by review, if there is one user; nothing otherwise.

        That takes saved predictions, and a metric that is a mean over reviews.
        """
        if len(self.paired.users) > 1:
            return {}
        reviews = {}
        if self.metric in PER_REVIEW:
            reviews = SameReviews(self.runs).read(self.paired.users[0])
        of_runs = {number: losses(each, self.metric) for number, each in reviews.items()}
        below = {}
        for a in range(len(self.runs)):
            for b in range(a):
                below[a, b] = Estimate(float(self._every_score[0, a] - self._every_score[0, b]))
                if a in of_runs and b in of_runs:
                    one, (ours, theirs) = reviews[a], (of_runs[a], of_runs[b])
                    size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
                    clusters = [one.card] if one.day is None else [one.card, one.day]
                    below[a, b] = clustered_mean(ours - theirs, *clusters, size=size)
        return below

    @cached_property
    def _every_score(self) -> FloatArray:
        """Scores [users, runs] of all users; absolute values if 0 is best."""
        scores = self.paired.scores(self.metric)
        return np.abs(scores) if self.better == "zero" else scores

    @cached_property
    def _has_score(self) -> BoolArray:
        return _complete(self._every_score)


def _differences(scores: FloatArray, weights: FloatArray) -> dict[tuple[int, int], Estimate]:
    """Estimate the mean difference between every two columns of scores [users, models]."""
    largest = np.abs(scores).max(axis=0, initial=0.0).tolist()
    return {
        (a, b): mean_of_users(
            scores[:, a] - scores[:, b], weights, size=max(largest[a], largest[b])
        )
        for a in range(scores.shape[1])
        for b in range(a)
    }


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


def _about(run: Entry) -> dict[str, Any]:
    """Return what a run is."""
    counts = {name: getattr(run.facts, name) for name in ("fits", *EXCEPTIONS)}
    known = {name: count if run.facts.fits else None for name, count in counts.items()}
    return {"run": run.name, "when": run.when, "traits": " ".join(run.traits), **known}


def _complete(scores: FloatArray) -> BoolArray:
    """Select the users with a score of every run that has any."""
    has_any = ~np.isnan(scores).all(axis=0)
    return np.asarray(~np.isnan(scores[:, has_any]).any(axis=1) & has_any.any(), np.bool_)
