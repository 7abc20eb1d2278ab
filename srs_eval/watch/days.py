"""From the logs of users to one row for each day: all that the tests see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from srs_eval.engine.probability import uncertain
from srs_eval.errors import ConfigError
from srs_eval.nouns import BoolArray, Reviews, Source, Vector

FIRST = "the first of their card"
SAME_DAY = "on the day of the card's review before"
MISSING = "without a recorded prediction"
_SUMS = ("reviews", "near", "residual", "residual_noise", "gain", "gain_noise")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of recorded predictions, fixed before the first night."""

    champion: str  # Column of the predictions that schedule
    challenger: str | None = None  # Column of those that might
    retention: float | None = None  # What is scheduled at; None: any prediction
    near: float = 0.05  # Predictions so near to it count for the calibration
    tolerance: float = 0.02  # Mean recall may be so far from the predictions
    level: float = 0.01  # Chance of a false alarm, of each test, for ever

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are read."""
        return (self.champion,) if self.challenger is None else (self.champion, self.challenger)


@dataclass(frozen=True, slots=True)
class Watched:
    """What the logs hold."""

    # One row for each day, in order: `day` since 1970, `users`, and the sums over their reviews
    days: pd.DataFrame
    left_out: dict[str, int]  # Reviews that are in no day, by reason
    users: int


def watched_days(source: Source, question: Question) -> Watched:
    """Add up the reviews of each day over all users.

    A review counts if it is on a later day than the card's review before, and every watched column
    has a prediction of it. Raise `ConfigError` if days of several users cannot be told apart.
    """
    parts, left_out, users = [], Counter[str](), source.users()
    for user in users:
        log = source.read(user)
        if log.first_day is None and len(users) > 1:
            raise ConfigError(
                f"the log of user {user} has no dates, so days of several users cannot be joined: "
                "a watch needs data.columns.time"
            )
        counts, reasons = _counted(log, question)
        left_out.update(reasons)
        parts.append(_of_user(log, counts, question))
    table = pd.concat(parts, ignore_index=True)
    days = table.groupby("day", as_index=False).agg(
        users=("day", "size"), **{name: (name, "sum") for name in _SUMS}
    )
    return Watched(days, dict(left_out), len(users))


def _counted(log: Reviews, question: Question) -> tuple[BoolArray, dict[str, int]]:
    """Return which reviews count, bool [n], and how many of the others there are, by reason."""
    has = ~np.isnan(_columns(log, question.columns)).any(axis=1)
    first, same_day = log.elapsed_days < 0, log.elapsed_days == 0
    later = ~first & ~same_day
    reasons = {FIRST: first, SAME_DAY: same_day, MISSING: later & ~has}
    return later & has, {reason: int(rows.sum()) for reason, rows in reasons.items()}


def _columns(log: Reviews, wanted: Iterable[str]) -> Vector:
    """Return the recorded predictions by some programs, [n, programs]."""
    names = [*log.recorded_names]
    unknown = [name for name in wanted if name not in names]
    if unknown or log.recorded is None:
        listed = ", ".join(names) or "no predictions"
        raise ConfigError(f"there is no recorded column {', '.join(unknown)}; there are {listed}")
    return np.column_stack([log.recorded[:, names.index(name)] for name in wanted])


def _of_user(log: Reviews, counts: BoolArray, question: Question) -> pd.DataFrame:
    """Add up the reviews of one user by day."""
    p = uncertain(_columns(log, question.columns)[counts].astype(np.float64))
    recalled = log.recalled[counts]
    champion = p[:, 0]
    near = np.ones(len(champion), np.bool_)
    if question.retention is not None:
        near = np.abs(champion - question.retention) <= question.near
    sums = {
        "day": log.day[counts] + (log.first_day or 0),
        "reviews": np.ones(len(champion)),
        "near": near.astype(np.float64),
        "residual": np.where(near, recalled - champion, 0.0),
        "residual_noise": np.where(near, champion * (1 - champion), 0.0),
        "gain": np.zeros(len(champion)),
        "gain_noise": np.zeros(len(champion)),
    }
    if question.challenger is not None:
        if_recalled = np.log(p[:, 1] / champion)
        if_forgotten = np.log((1 - p[:, 1]) / (1 - champion))
        middle = p.mean(axis=1)
        sums["gain"] = np.where(recalled, if_recalled, if_forgotten)
        # of the gain's square, before the answer is known
        sums["gain_noise"] = middle * if_recalled**2 + (1 - middle) * if_forgotten**2
    return pd.DataFrame(sums).groupby("day", as_index=False).sum()
