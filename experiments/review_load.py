"""Scored reviews of a model, and the reviews that a scheduler would make of its curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from evaluations import clusters
from scipy.special import expit, logit, stdtrit

from srs_eval.metrics.proper import CLIP, log_losses
from srs_eval.nouns import Algorithm, BoolArray, EvaluationProtocol, FloatArray, Source
from srs_eval.stats.significance import ALPHA

DESIRED = 0.9
# Desired retentions at which intervals are computed, and times in days at which curves are.
GRID = np.linspace(0.5, 0.99, 491)
TIMES = np.geomspace(1, 3650, 120)
GROUPS = 20  # of cards, and of days, for the jackknife
STEPS = 100  # of Newton's method, at most


class CalibrationLine(NamedTuple):
    """Log odds of recall, as a line over the predicted log odds."""

    slope: float
    intercept: float


@dataclass(frozen=True)
class Scored:
    """Scored reviews of a model, and what a scheduler would have made of each.

    Attributes
    ----------
    rows : DataFrame
        User, card, day, interval in days, prediction, outcome, loss, and whether the card lapsed
        before.
    per_day : float [n, len(GRID)]
        Reviews per day that each desired retention asks for: 1 / the interval, at least a day.
    tomorrow : float [n]
        Predicted recall one day later.
    """

    rows: pd.DataFrame
    per_day: FloatArray
    tomorrow: FloatArray

    def line(self, kept: BoolArray) -> CalibrationLine:
        """Fit the line between the log odds of predictions and outcomes, by Newton's method."""
        p, recalled = (self.rows[name].to_numpy(float)[kept] for name in ("p", "recalled"))
        x = logit(np.clip(p, CLIP, 1 - CLIP))
        design, line = np.stack([x, np.ones(len(x))]), np.array([1.0, 0.0])
        for _ in range(STEPS):
            expected = expit(line @ design)
            information = design * expected * (1 - expected) @ design.T
            step = np.linalg.solve(information, design @ (recalled - expected))
            line += step
            if np.abs(step).max() < 1e-9:
                break
        return CalibrationLine(*line.tolist())

    def setting(self, kept: BoolArray) -> float:
        """Return the desired retention that realises 90 % by the line.

        NaN where that leads outside the middle nine tenths of the predictions.
        """
        line = self.line(kept)
        desired = float(expit((logit(DESIRED) - line.intercept) / line.slope))
        low, high = np.quantile(self.rows["p"][kept], [0.05, 0.95])
        return desired if low <= desired <= high else np.nan

    def load(self, desired: float) -> FloatArray:
        """Return the reviews per day of each card at a desired retention; NaN where it is NaN."""
        if np.isnan(desired):
            return np.full(len(self.per_day), np.nan)
        place = (np.clip(desired, GRID[0], GRID[-1]) - GRID[0]) / (GRID[1] - GRID[0])
        place = np.round(place, 6)  # at a point of the grid exactly, despite rounding
        below = min(int(place), len(GRID) - 2)
        low, high = self.per_day[:, below], self.per_day[:, below + 1]
        found: FloatArray = low + (place - below) * (high - low)
        return found


def evaluated(source: Source, algorithm: Algorithm, protocol: EvaluationProtocol) -> Scored:
    """Fit and predict as the protocol does, with whole forgetting curves."""
    frames, loads, tomorrows = [], [], []
    for user in source.users():
        task = protocol(source.read(user), same_day=algorithm.same_day)
        reviews = task.reviews
        for fold in task.folds:
            model = algorithm.fit(reviews, fold.train, np.random.default_rng(fold.number))
            rows = fold.test
            p, recalled = model.predict(reviews, rows), reviews.recalled[rows]
            frame = pd.DataFrame(
                {"user": user, "card": reviews.card[rows], "day": reviews.day[rows]}
            )
            frame = frame.assign(days=reviews.elapsed[rows], p=p, recalled=recalled)
            frame["loss"], frame["lapsed"] = log_losses(p, recalled), task.lapses[rows] > 0
            frames.append(frame)
            curves = model.predict_at(reviews, rows, np.tile(TIMES, (len(rows), 1)))
            loads.append(1 / intervals(np.asarray(curves, np.float64)))
            tomorrows.append(np.asarray(curves[:, 0], np.float64))
    rows_of_all = pd.concat(frames, ignore_index=True)
    return Scored(rows_of_all, np.concatenate(loads), np.concatenate(tomorrows))


def intervals(curves: FloatArray) -> FloatArray:
    """Return the last of `TIMES` at which recall is at least each retention of `GRID`; 1 or more.

    Between two times, recall is a straight line over the logarithm of the time. A curve that
    rises is read as its running minimum.
    """
    falling = np.minimum.accumulate(curves, axis=1)
    falling = falling - 1e-12 * np.arange(len(TIMES))
    log_t = np.log(TIMES)
    found = [np.interp(-GRID, -curve, log_t) for curve in falling]
    return np.exp(np.array(found))


def by_jackknife(each: Scored, base: Scored) -> tuple[float, float, float]:
    """Return the log of the ratio of workloads at the settings, and its 99 % interval.

    The settings are found again without each of 20 groups of cards, and of days; both variances
    are added up.
    """

    def ratio(kept: BoolArray) -> float:
        loads = [one.load(one.setting(kept))[kept].mean() for one in (each, base)]
        return float(np.log(loads[0] / loads[1]))

    rng, variance = np.random.default_rng(0), 0.0
    for cluster in clusters(base.rows):
        group = rng.permutation(cluster.max() + 1)[cluster] % GROUPS
        without = [ratio(group != number) for number in range(GROUPS)]
        variance += (GROUPS - 1) * float(np.var(without))
    mean = ratio(np.ones(len(base.rows), bool))
    reach = -stdtrit(GROUPS - 1, ALPHA / 2) * np.sqrt(variance)
    return mean, mean - reach, mean + reach
