"""Standings of runs on the same reviews: one tidy frame, from which everything else is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import numpy as np
import pandas as pd

from srs_eval.algorithms.algorithm import UNKNOWN, WHEN
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.pairing import Paired, same_reviews
from srs_eval.comparison.strata import PER_REVIEW, Strata, losses, stratify
from srs_eval.data.reviews import BoolArray, FloatArray, IntArray, User
from srs_eval.metrics.means import (
    Estimate,
    MetricSummary,
    Weighting,
    clipped,
    clustered_mean,
    effective_users,
    mean_of_users,
    paired_signs,
    summarise,
    user_weights,
)
from srs_eval.metrics.metric import UNBOUNDED, Better
from srs_eval.metrics.panel import HEADLINE, bias_at_retention, default_panel
from srs_eval.metrics.significance import SignTest
from srs_eval.runs.summary import EXCEPTIONS, FEWEST_REVIEWS, Coverage, LeftOut

# Scores with a natural zero that is perfect, so that a percentage is meaningful
IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")
BESIDE = (*HEADLINE, "ici")  # Other metrics of the frame
_COUNTS = ["fits", *EXCEPTIONS]
_SIGN: Mapping[Better, float] = {"lower": 1.0, "higher": -1.0, "zero": 1.0}


@dataclass(frozen=True, eq=False)
class Standings:
    """Runs compared by one metric; numbers are computed when they are first used."""

    paired: Paired  # The runs, and the users they are compared on
    metric: str
    better: Better
    baseline: int = 0  # Number of the run that the others are compared with

    @property
    def runs(self) -> tuple[Entry, ...]:
        """The runs, each with a number."""
        return self.paired.runs

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return [run.name for run in self.runs]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each run and weighting of users, by time of prediction, then the best first.

        Differences are those to the leader (``to_best``) and to the baseline (``to_baseline``).
        Counts of fits are missing where they are not known, which is not 0.
        """
        facts = [run.facts for run in self.runs]
        about = pd.DataFrame({"run": self.names, "when": [each.when for each in facts]})
        about["traits"] = [" ".join(run.traits) for run in self.runs]
        counts = pd.DataFrame([[getattr(f, n) for n in _COUNTS] for f in facts], columns=_COUNTS)
        about = about.join(counts.astype("Int64").where(counts.fits > 0))
        boards = [about.join(self._board(each), how="right") for each in self.boards]
        return pd.concat(boards, ignore_index=True)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of `frame` in which each user counts once, by the name of the run."""
        return self.frame[self.frame.weighting == "users"].set_index("run", drop=False)

    @property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair of runs and weighting: the mean of `run` less that of `other`."""
        rows = [
            (weighting, self.names[a], self.names[b], gap.mean, *gap.interval(), gap.p_value)
            for weighting, board in self.boards.items()
            for (a, b), gap in board.gaps.items()
            if b < a
        ]
        columns = ["weighting", "run", "other", "difference", "lo", "hi", "p"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def boards(self) -> dict[Weighting, Leaderboard]:
        """Leaderboards by user, by review and by logarithm of reviews; one for a single user."""
        is_alone, boards = len(self.paired.users) == 1, {}
        losses_of = (_SIGN[self.better] * self.scores).T
        signs = {(a, b): paired_signs(losses_of[a], losses_of[b]) for a, b in self._pairs}
        signs |= {(b, a): SignTest(s.worse, s.better, s.tied) for (a, b), s in signs.items()}
        for weighting in get_args(Weighting)[: 1 if is_alone else None]:
            weights = user_weights(self.reviews, weighting)
            gaps = self._of_one_user() if is_alone else self._of_users(weights)
            boards[weighting] = Leaderboard(
                mean=np.array([mean_of_users(column, weights).mean for column in self.scores.T]),
                gaps=gaps | {(b, a): gap.mirrored() for (a, b), gap in gaps.items()},
                signs=signs,
                ranks=[run.rank for run in self.runs],
                times=[(*WHEN, UNKNOWN).index(run.facts.when) for run in self.runs],
                sign=_SIGN[self.better],
                baseline=self.baseline,
            )
        return boards

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
    def leaders(self) -> dict[str, Entry]:
        """The leader of each time at which predictions are made."""
        runs = dict(zip(self.names, self.runs, strict=True))
        leaders = [runs[name] for name in dict.fromkeys(self.rows.leader) if name]
        return {run.facts.when: run for run in leaders}

    @cached_property
    def superiority(self) -> pd.DataFrame:
        """Share of users for whom the row's run is better than the column's; ties count half."""
        users = len(self.scores) or math.nan
        gains = (_SIGN[self.better] * (self.scores - own[:, None]) for own in self.scores.T)
        shares = [(1 + np.sign(gain).sum(axis=0) / users) / 2 for gain in gains]
        return pd.DataFrame(shares, self.names, self.names)

    @property
    def too_few(self) -> str:
        """Why scores of so few answers say nothing; "" where there are enough."""
        scored, own = int(self.reviews.sum()), [run.facts.too_few for run in self.runs if run.run]
        least = f"Too few answers to tell: {scored:,} scored. It takes {FEWEST_REVIEWS}."
        return max(own, default="") or least * (scored < FEWEST_REVIEWS)

    @cached_property
    def bias(self) -> tuple[str, float] | None:
        """The metric of bias at the default retention, and that, if all runs have it."""
        shared = [n for n in self.runs[0].metrics if all(n in run.scores for run in self.runs)]
        return bias_at_retention(shared)

    @cached_property
    def strata(self) -> Strata | None:
        """Differences to the baseline by stratum of the reviews; None without predictions."""
        return stratify(self.paired, self.baseline, self.metric)

    @cached_property
    def coverage(self) -> Coverage | None:
        """That of the run that has scored most, less what others lack; None if it is not known."""
        known = [run.facts.coverage for run in self.runs if run.facts.coverage.users.read]
        if not known:
            return None
        most = max(known, key=lambda c: (c.users.read, c.users.scored, c.reviews.scored))
        users, reviews, left_out = most.users.scored, most.reviews.scored, [*most.left_out]
        for status, reason, sizes in (
            ("not_in_every_run", "", self.paired.reviews),
            ("undefined", self.metric, self.reviews),
        ):
            lost = LeftOut(status, reason, users - len(sizes), reviews - int(sizes.sum()))
            left_out += [lost] if lost.users or lost.reviews else []
            users, reviews = len(sizes), int(sizes.sum())
        return Coverage(
            replace(most.users, scored=users), replace(most.reviews, scored=reviews), (*left_out,)
        )

    def _board(self, weighting: Weighting) -> pd.DataFrame:
        """Return the numbers of each run by a weighting."""
        board, names = self.boards[weighting], self.names
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
        """Means of other metrics over users with a score of every run that has it, and bias."""
        columns = {}
        for name in BESIDE:
            scores = self.paired.scores(name)
            whole = scores[_complete(scores)]
            if name != self.metric and len(whole):
                columns[name] = whole.mean(axis=0)
        beside = pd.DataFrame(columns, range(len(self.runs)))
        if self.bias is None:
            return beside
        bias, _ = self.bias
        means = [mean_of(run, bias, self.paired.users) for run in self.runs]
        of_bias = [(mean.mean_users, mean.lo, mean.hi, mean.n_users) for mean in means]
        keys = [bias, f"{bias}_lo", f"{bias}_hi", f"{bias}_users"]
        return beside.join(pd.DataFrame(of_bias, columns=keys))

    def _interval(self, model: int, weights: FloatArray) -> tuple[float, float]:
        """Return the interval of a mean; of a single user, that of the run."""
        if len(self.paired.users) == 1:
            known = mean_of(self.runs[model], self.metric, self.paired.users)
            return known.lo, known.hi
        bounds = next((m.bounds for m in default_panel() if m.name == self.metric), UNBOUNDED)
        bounds = (0.0, max(map(abs, bounds))) if self.better == "zero" else bounds
        return clipped(mean_of_users(self.scores[:, model], weights).interval(), bounds)

    def _of_users(self, weights: FloatArray) -> dict[tuple[int, int], Estimate]:
        """Estimate the mean difference of every two runs over users."""
        scores, largest = self.scores, np.abs(self.scores).max(axis=0, initial=0.0).tolist()
        return {
            (a, b): mean_of_users(
                scores[:, a] - scores[:, b], weights, size=max(largest[a], largest[b])
            )
            for a, b in self._pairs
        }

    def _of_one_user(self) -> dict[tuple[int, int], Estimate]:
        """Compare every two runs by review: from saved predictions, if the metric is a mean."""
        by_review = self.metric in PER_REVIEW
        reviews = next(same_reviews(self.runs, self.paired.users)) if by_review else {}
        gaps = {}
        for a, b in self._pairs:
            gaps[a, b] = Estimate(float(self._every_score[0, a] - self._every_score[0, b]))
            if a in reviews and b in reviews:
                one, (ours, theirs) = reviews[a], (losses(reviews[n], self.metric) for n in (a, b))
                size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
                clusters = [one.card] if one.day is None else [one.card, one.day]
                gaps[a, b] = clustered_mean(ours - theirs, *clusters, size=size)
        return gaps

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(a, b) for a in range(len(self.runs)) for b in range(a)]

    @cached_property
    def _every_score(self) -> FloatArray:
        """Scores [users, runs] of all users; absolute values if 0 is best."""
        scores = self.paired.scores(self.metric)
        return np.abs(scores) if self.better == "zero" else scores

    @cached_property
    def _has_score(self) -> BoolArray:
        return _complete(self._every_score)


def mean_of(entry: Entry, metric: str, users: Sequence[User]) -> MetricSummary:
    """Return the mean of a metric; of a single user with the interval of a run of nothing else."""
    column = entry.values(metric, users)
    mean = summarise([metric], column[:, None], np.ones(len(users), np.int64), {})[metric]
    known = entry.facts.metrics.get(metric)
    if len(users) == 1 and known is not None and known.mean_users == mean.mean_users:
        return replace(mean, lo=known.lo, hi=known.hi)
    return mean


def _complete(scores: FloatArray) -> BoolArray:
    """Select the users with a score of every run that has any."""
    has_any = ~np.isnan(scores).all(axis=0)
    return np.asarray(~np.isnan(scores[:, has_any]).any(axis=1) & has_any.any(), np.bool_)
