"""The result of a comparison: every number and interval that reports and tables show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from srs_eval.comparison.by_users import Extremes, extremes_of, mean_ranks, superiority_matrix
from srs_eval.comparison.coverage import Rest, rest_of
from srs_eval.comparison.entry import TIMES, Entry
from srs_eval.comparison.leaderboard import Leaderboard, Rules, leaderboards
from srs_eval.comparison.one_user import leaderboard_of_one
from srs_eval.comparison.pairing import Paired
from srs_eval.comparison.remarks import at_retention, mean_of, warnings, worse_than_a_constant
from srs_eval.comparison.strata import Strata, stratify
from srs_eval.data.reviews import (
    BoolArray,
    FloatArray,
    IntArray,
    User,
)
from srs_eval.metrics.metric import UNBOUNDED, Better
from srs_eval.metrics.panel import bias_at_retention, default_panel
from srs_eval.metrics.summary import MetricSummary

# Metrics shown beside the one that is compared.
BESIDE = ("log_loss", "normalized_entropy", "brier_skill", "smece", "rmse_bins", "auc", "ici")
_SIGN: Mapping[Better, float] = {"lower": 1.0, "higher": -1.0, "zero": 1.0}


@dataclass(frozen=True, eq=False)
class Verdict:
    """Runs compared by one metric; see `srs_eval.comparison.compare.compare`.

    Numbers are computed when they are first used. Only single users, `strata` and runs that are
    restricted to common reviews need predictions.
    """

    paired: Paired  # The runs, and the users they are compared on
    # The metric, and its better direction
    metric: str
    better: Better
    baseline: int = 0  # Number of the run that the others are compared with

    @property
    def runs(self) -> tuple[Entry, ...]:
        """The runs without duplicates."""
        return self.paired.runs

    @cached_property
    def users(self) -> tuple[User, ...]:
        """Users with a score of every run that has the metric."""
        kept = zip(self.paired.users, self._has_score, strict=True)
        return tuple(user for user, is_kept in kept if is_kept)

    @cached_property
    def scores(self) -> FloatArray:
        """Scores [users, runs] of `users`; absolute values if 0 is best."""
        return self.every_score[self._has_score]

    @property
    def reviews(self) -> IntArray:
        """Scored reviews of `users`."""
        return self.paired.reviews[self._has_score]

    @property
    def leaderboard(self) -> Leaderboard:
        """Leaderboard in which each user counts once."""
        return self.leaderboards[0]

    @cached_property
    def leaderboards(self) -> tuple[Leaderboard, ...]:
        """Leaderboards by user, by review and by logarithm of reviews; one for a single user."""
        rules = Rules(
            eligible=tuple(run.is_eligible for run in self.runs),
            times=tuple(TIMES.index(run.when) for run in self.runs),
            sign=_SIGN[self.better],
            baseline=self.baseline,
            bounds=self.bounds,
        )
        if len(self.paired.users) == 1:
            return (leaderboard_of_one(self.paired, self.metric, self.every_score, rules),)
        return tuple(leaderboards(self.every_score, self.paired.reviews, rules))

    @property
    def bounds(self) -> tuple[float, float]:
        """Range of `scores`."""
        known = next((m.bounds for m in default_panel() if m.name == self.metric), UNBOUNDED)
        return (0.0, max(map(abs, known))) if self.better == "zero" else known

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers of the runs by the time of their predictions, then the best first."""
        return self.leaderboard.order

    @property
    def times(self) -> tuple[str, ...]:
        """When the predictions of the runs are made, earliest first."""
        return tuple(dict.fromkeys(self.runs[number].when for number in self.order))

    @property
    def leaders(self) -> dict[str, Entry]:
        """The leader of each time at which predictions are made."""
        return {
            self.runs[leader].when: self.runs[leader]
            for leader in self.leaderboard.groups
            if leader >= 0
        }

    @cached_property
    def extremes(self) -> tuple[Extremes, ...]:
        """Users for whom each run differs most from the baseline."""
        gaps = self.scores - self.scores[:, [self.baseline]]
        return tuple(extremes_of(gap, self.users, sign=_SIGN[self.better]) for gap in gaps.T)

    @cached_property
    def superiority(self) -> FloatArray:
        """Share of users [runs, runs] for whom the row's run is better than the column's."""
        return superiority_matrix(self.scores, sign=_SIGN[self.better])

    @cached_property
    def mean_ranks(self) -> FloatArray:
        """Mean rank of each run among those with the same leader; 1 is best."""
        found = np.empty(len(self.runs))
        for group in self.leaderboard.groups.values():
            found[group] = mean_ranks(self.scores[:, group], sign=_SIGN[self.better])
        return found

    @cached_property
    def beside(self) -> dict[str, tuple[FloatArray, int]]:
        """Means of other metrics, and the number of users with a score of every run that has it."""
        found = {}
        for name in BESIDE:
            scores = self.paired.scores(name)
            whole = scores[complete(scores)]
            if name != self.metric and len(whole) and not np.isnan(scores).all():
                found[name] = whole.mean(axis=0), len(whole)
        return found

    @cached_property
    def at_retention(self) -> tuple[str, tuple[MetricSummary, ...]] | None:
        """The bias at the default retention: its metric, and the mean of each run.

        Each is over the users for whom the run has predictions there; None if not all runs have
        the metric.
        """
        shared = [name for name in self.runs[0].scores if all(name in r.scores for r in self.runs)]
        metric = bias_at_retention(shared)
        if metric is None:
            return None
        users = self.paired.users
        return metric[0], tuple(mean_of(run, metric[0], users) for run in self.runs)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Why the scores of runs are not what they seem."""
        runs = [self.runs[model] for model in self.order]
        return tuple(text for run in runs for text in warnings(run, self.paired.users))

    @cached_property
    def on_scores(self) -> tuple[str, ...]:
        """The runs that a constant beats, and the calibration of each leader."""
        users = self.paired.users
        runs = [self.runs[model] for model in self.order]
        return (
            *worse_than_a_constant(runs, users),
            *(text for run in self.leaders.values() for text in at_retention(run, users)),
        )

    @cached_property
    def strata(self) -> Strata | None:
        """Differences to the baseline by stratum of the reviews; None without predictions."""
        return stratify(self.paired, self.baseline, self.metric)

    @cached_property
    def coverage(self) -> Rest | None:
        """What the comparison rests on; None if no run says what it has read."""
        return rest_of(self.paired.every_run, self.paired.reviews, self.reviews, self.metric)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was left out and what could not be verified, for every output."""
        users = len(self.paired.users)
        left_out = users - len(self.users)
        undefined = (
            f"{self.metric} is not defined for {left_out:,} of {users:,} users, who are left out"
        )
        return (*self.paired.notes, *((undefined,) if left_out and not self.coverage else ()))

    @cached_property
    def every_score(self) -> FloatArray:
        """Scores [users, runs] of all users; absolute values if 0 is best."""
        scores = self.paired.scores(self.metric)
        return np.abs(scores) if self.better == "zero" else scores

    @cached_property
    def _has_score(self) -> BoolArray:
        return complete(self.every_score)


def complete(scores: FloatArray) -> BoolArray:
    """Select the users with a score of every run that has any."""
    has_any = ~np.isnan(scores).all(axis=0)
    return np.asarray(~np.isnan(scores[:, has_any]).any(axis=1), np.bool_)
