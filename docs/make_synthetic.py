"""Compare simulated users with real logs, and write the table into docs/synthetic.md.

    python docs/make_synthetic.py NAME=LOG [NAME=LOG ...]

Each LOG is a folder or a file in the layout of anki-revlogs-10k, NAME the head of its column.
The column of 22 Anki users is copied from measurements by the same definitions, as those logs are
not public.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from srs_eval.algorithms.fsrs.fsrs6 import Fsrs6
from srs_eval.algorithms.fsrs.fsrs7 import Fsrs7
from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import (
    BoolArray,
    FloatArray,
    IntArray,
    Reviews,
    Source,
)
from srs_eval.data.revlogs_10k import RevlogsFolder
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.evaluation.evaluate import EvaluateUser
from srs_eval.metrics.predictions import Predictions
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised
from srs_eval.protocol.srs_benchmark import SrsBenchmark

PAGE = Path(__file__).with_name("synthetic.md")
BETWEEN = re.compile(r"(<!-- table -->\n).*?(<!-- /table -->)", re.S)
SEED = 31
USERS = 50
LEAST_SCORED = 750


@dataclass(frozen=True)
class Studied:
    """A log, with the predictions of FSRS-7 and FSRS-6 for its scored reviews.

    `row` are their rows in the log, `p` the predictions of FSRS-7, and `z` their log-odds.
    """

    log: Reviews
    row: IntArray
    p: FloatArray
    z: FloatArray
    against_fsrs6: float

    @property
    def recalled(self) -> FloatArray:
        """Outcomes of the scored reviews."""
        return self.log.recalled[self.row].astype(np.float64)

    @property
    def residual(self) -> FloatArray:
        """Outcomes minus predictions."""
        return self.recalled - self.p

    @property
    def variance(self) -> FloatArray:
        """Variances of the outcomes, if the predictions were true."""
        return self.p * (1 - self.p)

    def covariance(self, one: IntArray, other: IntArray) -> float:
        """Covariance of pairs of residuals, on the scale of log-odds."""
        expected = float((self.variance[one] * self.variance[other]).sum())
        if len(one) < 30 or expected == 0:
            return np.nan
        return float((self.residual[one] * self.residual[other]).sum()) / expected


def studied(source: Source) -> Iterator[Studied]:
    """Read, fit and predict the users with enough scored reviews."""
    seventh = EvaluateUser(source, Fsrs7(), SrsBenchmarkEqualised(), SEED, curves=0)
    sixth = EvaluateUser(source, Fsrs6(), SrsBenchmark(), SEED, curves=0)
    for user in source.users():
        by_seventh, by_sixth = seventh(user).predictions, sixth(user).predictions
        if by_seventh is None or by_sixth is None or len(by_seventh.p) < LEAST_SCORED:
            continue
        order = np.argsort(by_seventh.row)
        row, p = by_seventh.row[order], np.clip(by_seventh.p[order], 0.01, 0.995)
        difference = _log_loss(by_seventh) - _log_loss(by_sixth)
        yield Studied(source.read(user), row, p, np.log(p / (1 - p)), difference)


def _log_loss(predictions: Predictions) -> float:
    """Mean log loss."""
    p = predictions.p.astype(np.float64)
    return float(-np.log(np.where(predictions.recalled, p, 1 - p)).mean())


def lag(k: int) -> Callable[[Studied], float]:
    """Make the covariance of scored reviews k apart on the same day."""

    def covariance(user: Studied) -> float:
        one = np.arange(len(user.row) - k)
        day = user.log.day[user.row]
        one = one[day[one] == day[one + k]]
        return user.covariance(one, one + k)

    return covariance


def across_days(user: Studied) -> float:
    """Covariance of the last scored review of a day and the first of the next."""
    day = user.log.day[user.row]
    last = np.flatnonzero(np.diff(day) > 0)
    return user.covariance(last, last + 1)


def introduced_together(user: Studied) -> float:
    """Covariance of neighbours in order of introduction, more than five reviews apart on a day."""
    card, day = user.log.card[user.row], user.log.day[user.row]
    order = np.lexsort((_rank(user.log)[card], day))
    one, other = order[:-1], order[1:]
    kept = (day[one] == day[other]) & (np.abs(one - other) > 5)
    kept &= np.abs(_rank(user.log)[card[one]] - _rank(user.log)[card[other]]) == 1
    return user.covariance(one[kept], other[kept])


def same_card(user: Studied) -> float:
    """Covariance of a card's scored review and its next one."""
    order = np.lexsort((np.arange(len(user.row)), user.log.card[user.row]))
    kept = np.diff(user.log.card[user.row][order]) == 0
    return user.covariance(order[:-1][kept], order[1:][kept])


def _rank(log: Reviews) -> IntArray:
    """Place of each card in order of introduction, by card number."""
    _, first, code = np.unique(log.card, return_index=True, return_inverse=True)
    rank = np.empty(int(log.card.max()) + 1, np.int64)
    rank[log.card] = np.argsort(np.argsort(first))[code]
    return rank


def slow_answer(user: Studied) -> float:
    """Change of the log-odds of recall per unit of the card's previous log time."""
    before = rows_by_card(user.log.card).previous()[user.row]
    x = _log_seconds(user.log)[before]
    design = np.column_stack([np.ones(len(x)), x - x.mean()])
    w = np.zeros(2)
    for _ in range(20):
        p = 1 / (1 + np.exp(-user.z - design @ w))
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        w += np.linalg.solve(hessian + 1e-9 * np.eye(2), design.T @ (user.recalled - p))
    return float(w[1])


def _seconds(log: Reviews) -> FloatArray:
    """Answer times, at most 60 seconds."""
    assert log.duration_ms is not None
    return np.clip(log.duration_ms / 1000, 0, 60)


def _log_seconds(log: Reviews) -> FloatArray:
    """Logarithm of answer times, as seconds + 0.3."""
    log_seconds: FloatArray = np.log(_seconds(log) + 0.3)
    return log_seconds


def later(log: Reviews) -> BoolArray:
    """Mark reviews on a later day than the card's review before."""
    return log.elapsed_days > 0


def slower(rating: int) -> Callable[[Studied], float]:
    """Make the log time of a rating against all recalls, on later days."""

    def difference(user: Studied) -> float:
        seconds, given = _log_seconds(user.log), later(user.log)
        rows = given & (user.log.rating == rating)
        if rows.sum() < 20:
            return np.nan
        return float(seconds[rows].mean() - seconds[given & user.log.recalled].mean())

    return difference


def _time_residuals(log: Reviews) -> FloatArray:
    """Log times minus the mean of their rating, separately for first, same-day and later rows."""
    seconds = _log_seconds(log)
    group = log.rating * 3 + np.sign(log.elapsed_days) + 1
    means = np.bincount(group, seconds) / np.maximum(np.bincount(group), 1)
    residual: FloatArray = seconds - means[group]
    return residual


def time_lag(k: int) -> Callable[[Studied], float]:
    """Make the autocorrelation of log times k answers apart on the same day."""

    def correlation(user: Studied) -> float:
        residual, day = _time_residuals(user.log), user.log.day
        kept = day[:-k] == day[k:]
        if not kept.any():
            return np.nan
        return float((residual[:-k] * residual[k:])[kept].mean() / residual.var())

    return correlation


def time_of_card(user: Studied) -> float:
    """Share of the variance of log times, given ratings, that is between cards."""
    residual, card = _time_residuals(user.log), np.unique(user.log.card, return_inverse=True)[1]
    total, count = np.bincount(card, residual), np.bincount(card)
    squares = np.bincount(card, residual**2)
    pairs = (count * (count - 1)).sum()
    return float((total**2 - squares).sum() / pairs / residual.var())


def _study_days(user: Studied) -> IntArray:
    """Return the days with reviews."""
    return np.unique(user.log.day)


def gaps_per_year(user: Studied) -> float:
    """Gaps of more than a week per year."""
    days = _study_days(user)
    return float((np.diff(days) > 8).sum() / (days[-1] - days[0] + 1) * 365)


def rated(rating: int, *, first: bool) -> Callable[[Studied], float]:
    """Make the share of a rating among first reviews, or among those on later days."""

    def share(user: Studied) -> float:
        rows = user.log.elapsed_days < 0 if first else later(user.log)
        return float((user.log.rating[rows] == rating).mean())

    return share


def relative_loss(user: Studied) -> float:
    """Log loss of FSRS-7 by that of the mean."""
    rate = user.recalled.mean()
    loss = -np.log(np.where(user.recalled > 0, user.p, 1 - user.p)).mean()
    return float(loss / -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate)))


def auc(user: Studied) -> float:
    """AUC of FSRS-7."""
    ranks = np.argsort(np.argsort(user.p))
    hits = int(user.recalled.sum())
    below = ranks[user.recalled > 0].sum() - hits * (hits - 1) / 2
    return float(below / (hits * (len(ranks) - hits)))


@dataclass(frozen=True)
class Statistic:
    """A row of the table: what it is, what 22 Anki users have, and how it is computed."""

    name: str
    of_anki_users: str
    compute: Callable[[Studied], float]
    digits: int = 2


def _days_apart(user: Studied) -> FloatArray:
    """Intervals of reviews on later days."""
    return user.log.elapsed_days[later(user.log)].astype(np.float64)


STATISTICS = [
    Statistic("recall of scored reviews (public benchmark: 0.86)", "0.92 [0.84, 0.96]",
              lambda user: float(user.recalled.mean())),
    Statistic("FSRS-7, log loss by entropy", "0.939 [0.907, 0.960]", relative_loss, 3),
    Statistic("FSRS-7, AUC", "0.699", auc, 3),
    Statistic("residuals, same day: 1 apart", "0.76 [0.34, 1.31]", lag(1)),
    Statistic("5 apart", "0.25 [0.04, 0.91]", lag(5)),
    Statistic("20 apart", "0.16", lag(20)),
    Statistic("last of a day and first of the next", "0.14", across_days),
    Statistic("same day, cards introduced next to each other, > 5 apart", "0.86 [0.05, 1.29]",
              introduced_together),
    Statistic("same card, next review", "-0.23 [-0.63, -0.02]", same_card),
    Statistic("slow answer: log-odds of the card's next recall", "-0.23 [-0.33, -0.19]",
              slow_answer),
    Statistic("answer time, median seconds", "8.7 [5.8, 13.7]",
              lambda user: float(np.median(_seconds(user.log))), 1),
    Statistic("interquartile range of log time", "1.15",
              lambda user: float(np.diff(np.percentile(_log_seconds(user.log), [25, 75]))[0])),
    Statistic("log time of Again", "+0.46", slower(1)),
    Statistic("autocorrelation of log time: 1 apart", "0.24", time_lag(1)),
    Statistic("variance of log time between cards", "0.22 [0.19, 0.48]", time_of_card),
    Statistic("share of days with study", "0.39 [0.14, 0.69]",
              lambda user: float(len(_study_days(user)) / (user.log.day[-1] + 1))),
    Statistic("gaps of more than a week per year", "3.6", gaps_per_year, 1),
    Statistic("longest gap, days", "82 [6, 218]",
              lambda user: float(np.diff(_study_days(user)).max() - 1), 0),
    Statistic("reviews on a study day, median", "50",
              lambda user: float(np.median(np.unique(user.log.day, return_counts=True)[1])), 0),
    Statistic("decks", "6 [4, 16]",
              lambda user: 1.0 if user.log.deck is None else float(len(np.unique(user.log.deck))),
              0),
    Statistic("first review: Again", "0.24", rated(1, first=True)),
    Statistic("later day: Hard", "0.07", rated(2, first=False)),
    Statistic("rows on the same day", "0.23",
              lambda user: float((user.log.elapsed_days == 0).mean())),
    Statistic("interval, median", "5.5", lambda user: float(np.median(_days_apart(user))), 1),
    Statistic("interval, 90 %", "29", lambda user: float(np.percentile(_days_apart(user), 90)), 0),
]  # fmt: skip


def column(users: list[Studied]) -> list[str]:
    """Median and quartiles over users of each statistic."""
    differences = [user.against_fsrs6 for user in users]
    cells = [str(len(users)), f"{np.mean(differences):+.4f}"]
    for statistic in STATISTICS:
        values = np.array([statistic.compute(user) for user in users])
        known = values[np.isfinite(values)]
        if not len(known):
            cells.append("")
            continue
        low, middle, high = (
            f"{q:.{statistic.digits}f}" for q in np.percentile(known, [25, 50, 75])
        )
        cells.append(middle if len(known) < 4 else f"{middle} [{low}, {high}]")
    return cells


def table(sources: Iterable[tuple[str, Source]]) -> str:
    """Compute the table in Markdown."""
    names = ["users", "log loss of FSRS-7 minus that of FSRS-6, mean"]
    columns = [names + [statistic.name for statistic in STATISTICS]]
    columns.append(["22", "-0.0041", *(statistic.of_anki_users for statistic in STATISTICS)])
    headers = ["median [quartiles] over users", "Anki users"]
    for name, source in sources:
        columns.append(column(list(studied(source))))
        headers.append(name)
    return tabulate(
        list(zip(*columns, strict=True)), headers, tablefmt="github", disable_numparse=True
    )


def main(logs: list[str]) -> None:
    """Rewrite the table of the page."""
    pairs = (log.split("=", 1) for log in logs)
    sources: list[tuple[str, Source]] = [(name, RevlogsFolder(path)) for name, path in pairs]
    sources.append(("simulated", SyntheticUsers(users=USERS, seed=SEED)))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BETWEEN.sub(rf"\1\n{table(sources)}\n\n\2", text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
