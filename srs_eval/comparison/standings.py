"""Standings of runs on the same reviews: one tidy frame, from which everything else is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd

from srs_eval.comparison.entry import Entry, same_reviews
from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.strata import PER_REVIEW, Strata, losses, stratify
from srs_eval.data.reviews import FloatArray, User
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
from srs_eval.runs.summary import EXCEPTIONS, FEWEST_REVIEWS, Coverage

# Scores with a natural zero that is perfect, so that a percentage is meaningful
IN_PERCENT = ("log_loss", "brier", "smece", "rmse_bins")
BESIDE = (*HEADLINE, "ici")  # Other metrics of the frame
_COUNTS = ["fits", *EXCEPTIONS]
_SIGN: Mapping[Better, float] = {"lower": 1.0, "higher": -1.0, "zero": 1.0}
_Gaps = dict[tuple[str, str], Estimate]


@dataclass(frozen=True, repr=False, eq=False)
class Standings:
    """Runs compared by one metric; numbers are computed when they are first used."""

    runs: Mapping[str, Entry]  # By name
    sizes: pd.Series  # Reviews of each user that all runs scored
    metric: str
    better: Better
    baseline: str  # Name of the run that the others are compared with
    # What was left out and what could not be verified, for every output
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        """Return what ``python -m srs_eval.compare`` prints."""
        from srs_eval.comparison.answer import terminal  # which needs this class

        return terminal(self)

    def save(self, folder: str | Path, *, command: str = "") -> list[Path]:
        """Write the files of ``python -m srs_eval.compare``, the page last, and return them."""
        from srs_eval.comparison.report import write_files

        return write_files(self, Path(folder).expanduser(), command=command)

    @property
    def table(self) -> pd.DataFrame:
        """One row per run, best first, each user counting once.

        Columns are the mean with its 99 % interval (``mean``, ``lo``, ``hi``), the paired
        differences to the leader and to the baseline (``to_best``, ``to_baseline`` and what begins
        so) and means of other metrics.
        """
        return self.rows.drop(columns=["run", "weighting"])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each run and weighting of users, by time of prediction, then the best first.

        Differences are those to the leader (``to_best``) and to the baseline (``to_baseline``).
        Counts of fits are missing where they are not known, which is not 0.
        """
        return pd.concat([self._board(each) for each in self.gaps], ignore_index=True)

    @property
    def rows(self) -> pd.DataFrame:
        """The rows of `frame` in which each user counts once, by the name of the run."""
        return self.frame[self.frame.weighting == "users"].set_index("run", drop=False)

    @property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair of runs and weighting: the mean of `run` less that of `other`."""
        rows = [
            (weighting, run, other, gap.mean, *gap.interval(), gap.p_value)
            for weighting, gaps in self.gaps.items()
            for other, run in combinations(self.runs, 2)
            for gap in [gaps[run, other]]
        ]
        columns = ["weighting", "run", "other", "difference", "lo", "hi", "p"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def gaps(self) -> dict[Weighting, _Gaps]:
        """Differences of every two runs by user, by review and by logarithm of reviews.

        Those of a single user are by review.
        """
        if len(self.sizes) == 1:
            return {"users": self._of_one_user()}
        return {each: self._of_users(each) for each in get_args(Weighting)}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Scores of each run (columns) for users with one of every run that has the metric.

        Absolute values if 0 is best.
        """
        scores = self._scores(self.metric)
        return scores.abs() if self.better == "zero" else scores

    @property
    def users(self) -> list[User]:
        """Users with a score of every run that has the metric."""
        return self.scores.index.tolist()

    @property
    def reviews(self) -> pd.Series:
        """Number of scored reviews of each of the users."""
        return self.sizes.loc[self.scores.index]

    @property
    def leaders(self) -> dict[str, Entry]:
        """The leader of each time at which predictions are made."""
        leaders = [self.runs[name] for name in self.rows.leader.unique() if name]
        return {run.facts.when: run for run in leaders}

    @cached_property
    def superiority(self) -> pd.DataFrame:
        """Share of users for whom the row's run is better than the column's; ties count half."""
        losses, users = _SIGN[self.better] * self.scores.to_numpy().T, len(self.users) or math.nan
        shares = [(1 + np.sign(losses - own).sum(axis=1) / users) / 2 for own in losses]
        return pd.DataFrame(shares, [*self.runs], [*self.runs])

    @property
    def too_few(self) -> str:
        """Why scores of so few answers say nothing; "" where there are enough."""
        scored = self.reviews.sum()
        own = [run.facts.too_few for run in self.runs.values() if run.run]
        least = f"Too few answers to tell: {scored:,} scored. It takes {FEWEST_REVIEWS}."
        return max(own, default="") or least * bool(scored < FEWEST_REVIEWS)

    @property
    def has_answer(self) -> bool:
        """Whether there are enough answers."""
        return not self.too_few

    @cached_property
    def bias(self) -> tuple[str, float] | None:
        """The metric of bias at the default retention, and that, if all runs have it."""
        shared = set.intersection(*({*run.metrics} for run in self.runs.values()))
        return bias_at_retention(sorted(shared))

    @cached_property
    def strata(self) -> Strata | None:
        """Differences to the baseline by stratum of the reviews; None without predictions."""
        return stratify(self.runs, self.sizes.index.tolist(), self.baseline, self.metric)

    @cached_property
    def coverage(self) -> Coverage | None:
        """That of the run that has scored most, less what others lack; None if it is not known."""
        known = [run.facts.coverage for run in self.runs.values() if run.facts.coverage.users.read]
        if not known:
            return None
        most = max(known, key=lambda c: (c.users.read, c.users.scored, c.reviews.scored))
        in_every_run = most.without("not_in_every_run", "", self.sizes)
        return in_every_run.without("undefined", self.metric, self.reviews)

    def _board(self, weighting: Weighting) -> pd.DataFrame:
        """Return the rows of each run by a weighting."""
        weights = user_weights(self.reviews, weighting)
        means = [mean_of_users(each, weights) for each in self._columns.values()]
        ends = [clipped(each.interval(), self._bounds) for each in means]
        if len(self.sizes) == 1:  # those of the runs
            known = [mean_of(each, self.metric, self.sizes.index) for each in self.runs.values()]
            ends = [(each.lo, each.hi) for each in known]
        models = self._about.assign(weighting=weighting, metric=self.metric)
        models["mean"] = [each.mean for each in means]
        models[["lo", "hi"]] = ends
        models["n_users"], models["n_effective"] = len(self.users), effective_users(weights)
        sign, base, columns = _SIGN[self.better], models["mean"][self.baseline], self._columns
        pairs = permutations(columns, 2)
        signs = {(a, b): paired_signs(sign * columns[a], sign * columns[b]) for a, b in pairs}
        board = Leaderboard(models, self.gaps[weighting], signs, sign, self.baseline).table
        board.loc[board.traits.str.contains("sees_truth"), "to_best_verdict"] = "bound"
        has_percent = self.metric in IN_PERCENT and base > 0
        board["to_baseline_percent"] = 100 * (board["mean"] / base - 1) if has_percent else math.nan
        return board.join(self._beside)

    @cached_property
    def _about(self) -> pd.DataFrame:
        """What is known of each run."""
        rows = [
            {"run": name, "when": run.facts.when, "traits": " ".join(run.traits), "rank": run.rank}
            | {count: getattr(run.facts, count) for count in _COUNTS}
            for name, run in self.runs.items()
        ]
        frame = pd.DataFrame(rows, [*self.runs])
        frame[_COUNTS] = frame[_COUNTS].astype("Int64").where(frame.fits > 0)
        return frame

    @cached_property
    def _beside(self) -> pd.DataFrame:
        """Means of other metrics over users with a score of every run that has it, and bias."""
        means = {name: self._scores(name).mean() for name in BESIDE if name != self.metric}
        beside = pd.DataFrame(means, [*self.runs]).dropna(axis=1, how="all")
        if self.bias is None:
            return beside
        bias, _ = self.bias
        of_runs = (mean_of(run, bias, self.sizes.index) for run in self.runs.values())
        rows = [(mean.mean_users, mean.lo, mean.hi, mean.n_users) for mean in of_runs]
        keys = [bias, f"{bias}_lo", f"{bias}_hi", f"{bias}_users"]
        return beside.join(pd.DataFrame(rows, beside.index, keys))

    def _scores(self, metric: str) -> pd.DataFrame:
        """Return the scores of users with one of every run that has any, a column for each run."""
        users = self.sizes.index
        columns = {name: run.values(metric, users) for name, run in self.runs.items()}
        scores = pd.DataFrame(columns, users)
        known = scores.dropna(axis=1, how="all")
        return scores[known.notna().all(axis=1) & (known.shape[1] > 0)]

    @property
    def _bounds(self) -> tuple[float, float]:
        """Lowest and highest possible mean."""
        low, high = next((m.bounds for m in default_panel() if m.name == self.metric), UNBOUNDED)
        return (0.0, high) if self.better == "zero" else (low, high)

    @cached_property
    def _columns(self) -> dict[str, FloatArray]:
        return {str(name): scores.to_numpy() for name, scores in self.scores.items()}

    def _of_users(self, weighting: Weighting) -> _Gaps:
        """Estimate the mean difference of every two runs over users."""
        weights, columns = user_weights(self.reviews, weighting), self._columns
        largest = {name: float(np.abs(each).max(initial=0.0)) for name, each in columns.items()}
        return {
            (a, b): mean_of_users(
                columns[a] - columns[b], weights, size=max(largest[a], largest[b])
            )
            for a, b in permutations(columns, 2)
        }

    def _of_one_user(self) -> _Gaps:
        """Compare every two runs by review: from saved predictions, if the metric is a mean."""
        by_review = self.metric in PER_REVIEW
        reviews = next(same_reviews(self.runs.values(), self.sizes.index)) if by_review else {}
        gaps, means = {}, self.scores.mean()
        for a, b in permutations(self.runs, 2):
            gaps[a, b] = Estimate(float(means[a] - means[b]))
            if a in reviews and b in reviews:
                one, (ours, theirs) = reviews[a], (losses(reviews[n], self.metric) for n in (a, b))
                size = float(max(np.abs(ours).max(), np.abs(theirs).max()))
                clusters = [one.card] if one.day is None else [one.card, one.day]
                gaps[a, b] = clustered_mean(ours - theirs, *clusters, size=size)
        return gaps


def mean_of(entry: Entry, metric: str, users: Iterable[User]) -> MetricSummary:
    """Return the mean of a metric; of a single user with the interval of a run of nothing else."""
    column = entry.values(metric, users)
    mean = summarise([metric], column[:, None], np.ones(len(column), np.int64), {})[metric]
    known = entry.facts.metrics.get(metric)
    if len(column) == 1 and known is not None and known.mean_users == mean.mean_users:
        return replace(mean, lo=known.lo, hi=known.hi)
    return mean
