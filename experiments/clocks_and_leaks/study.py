"""What the end of an interval reveals: answer times, pauses, and models outside their clock."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import srs_eval as se  # before NumPy

sys.path.append(str(Path(__file__).parents[1]))

import hydra
import numpy as np
import pandas as pd
from book import (
    MODELS,
    SIMULATED,
    LogOptions,
    evaluated,
    loss_change,
    panels,
    real_logs,
    scored_reviews,
    simulated,
    write,
)
from hydra.core.config_store import ConfigStore
from matplotlib.figure import Figure

from srs_eval.data.cards import rows_by_card
from srs_eval.data.reviews import (
    BoolArray,
    FloatArray,
    IntArray,
    Reviews,
    Source,
)
from srs_eval.metrics.significance import wilson_interval
from srs_eval.plots.style import BAND, BLUE, INK
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.protocol.task import EvaluationProtocol, Task

# A longer pause ends a session.
SESSION_ENDS = 1800.0
PAUSE_ENDS = (2.0, 30.0, SESSION_ENDS)
PAUSES = ("under 2 s", "2 to 30 s", "30 s to 30 min", "longer")


def answer_times(reviews: Reviews) -> FloatArray:
    """Reconstruct the time of each answer, in seconds, from this review and earlier ones.

    The times are float64 [n] and never decrease. The question of a new card is assumed to follow
    the previous answer at once. Where a later review shows that this is too early, the card is
    moved.
    """
    columns = (reviews.card, reviews.elapsed_seconds, seconds_of_answer(reviews))
    answered: dict[int, float] = {}
    now, times = 0.0, []
    for card, since, took in zip(*(column.tolist() for column in columns), strict=True):
        earliest = now + took
        now = earliest if since < 0 else max(answered[card] + since, earliest)
        answered[card] = now
        times.append(now)
    return np.array(times)


def until_previous_answer(reviews: Reviews) -> tuple[FloatArray, BoolArray]:
    """Return the seconds from the card's previous answer to the previous answer to any card.

    They are float64 [n], and meaningless at the first review of a card. Also return whether a
    session goes on, bool [n]: the previous answer was less than 30 minutes before the question.
    """
    times = answer_times(reviews)
    before = np.r_[-math.inf, times[:-1]]
    goes_on = times - seconds_of_answer(reviews) - before < SESSION_ENDS
    return before - times[rows_by_card(reviews.card).previous()], goes_on


def seconds_of_answer(reviews: Reviews) -> FloatArray:
    """Return how long each answer took, 0 where that is not known."""
    if reviews.duration_ms is None:
        return np.zeros(len(reviews))
    return np.nan_to_num(reviews.duration_ms) / 1000


@dataclass(frozen=True)
class UntilPreviousAnswer:
    """A protocol whose intervals end with the previous answer to any card, within a session.

    The pause before a question can tell its outcome: it is not in the interval then.
    """

    base: SrsBenchmarkSecs | SrsBenchmarkEqualised

    @property
    def name(self) -> str:
        """The name of the protocol, with the end of its intervals."""
        return f"{self.base.name}_previous_answer"

    @property
    def version(self) -> str:
        """The version of the protocol."""
        return self.base.version

    @property
    def folds(self) -> int:
        """Fits per user."""
        return self.base.folds

    def __call__(self, reviews: Reviews, *, same_day: bool) -> Task:
        """Split one user's log, and change its intervals."""
        task = self.base(reviews, same_day=same_day)
        until_answer, goes_on = until_previous_answer(reviews.take(task.log_row))
        days = np.maximum(np.rint(until_answer), 1.0) / 86_400
        ends_early = goes_on & (task.reviews.elapsed > 0)
        elapsed = np.where(ends_early, days, task.reviews.elapsed)
        return replace(task, reviews=replace(task.reviews, elapsed=elapsed))


WHOLE, PUBLISHED, QUESTION, ANSWER = "whole days", "with its answer", "question", "previous answer"
FRACTIONS = f"{QUESTION} - {WHOLE}"
LATER_DAYS: Mapping[str, EvaluationProtocol] = {
    WHOLE: SrsBenchmark(),
    PUBLISHED: SrsBenchmarkEqualised(answer_time=True),
    QUESTION: SrsBenchmarkEqualised(),
    ANSWER: UntilPreviousAnswer(SrsBenchmarkEqualised()),
}
ALL_ROWS: Mapping[str, EvaluationProtocol] = {
    PUBLISHED: SrsBenchmarkSecs(answer_time=True),
    QUESTION: SrsBenchmarkSecs(),
    ANSWER: UntilPreviousAnswer(SrsBenchmarkSecs()),
}
ROWS = {"later days": LATER_DAYS, "same day too": ALL_ROWS}
KIND, OFFENDER = "kind of review", "kind of review and clock"
# In seconds: from the previous answer, to any card, to the end of the interval.
EDGES = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 300.0, 1800.0)


@dataclass(frozen=True)
class ByKind(se.Algorithm):
    """Predicts the share of recalls, in the training rows, among reviews of the same kind.

    Kinds are reviews on the same day or later, by the card's previous rating. With `reads_clock`,
    it is an offender: it adds up intervals and answer times to a clock, and divides the kinds by
    what the review itself adds to it. Neither knows anything of memory. `answer_in_interval` says
    whether intervals end with the answer.
    """

    same_day: ClassVar[bool] = True
    reads_clock: bool = False
    answer_in_interval: bool = False

    def fit(self, reviews: Reviews, rows: IntArray, rng: np.random.Generator) -> KindModel:
        """Count recalls by kind; small kinds are drawn to larger ones."""
        recalled = reviews.recalled[rows]
        kind, of_whole = self.kinds(reviews)
        counts = len(of_whole)
        whole = of_whole[kind[rows]]
        share = _shares(whole, recalled, np.full(counts, recalled.mean()))
        return KindModel(_shares(kind[rows], recalled, share[of_whole]), self)

    def kinds(self, reviews: Reviews) -> tuple[IntArray, IntArray]:
        """Return the kind of each review, and the kind without the clock of each kind."""
        last_rating = rows_by_card(reviews.card).last(reviews.rating)
        whole = 5 * (reviews.elapsed_days == 0) + last_rating
        times = len(EDGES) + 1
        since = np.zeros(len(reviews), np.int64)
        if self.reads_clock:
            since = since_answer(reviews, answer_in_interval=self.answer_in_interval)
        return whole * times + since, np.arange(10 * times) // times * times


@dataclass(frozen=True)
class KindModel:
    """Shares of recalls by kind of review."""

    shares: FloatArray
    algorithm: ByKind

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the shares."""
        return tuple(self.shares.tolist())

    def predict(self, reviews: Reviews, rows: IntArray) -> FloatArray:
        """Predict each row by the share of its kind."""
        kind, _ = self.algorithm.kinds(reviews)
        return np.clip(self.shares[kind[rows]], 0.001, 0.999)


def _shares(kind: IntArray, recalled: BoolArray, prior: FloatArray) -> FloatArray:
    n = np.bincount(kind, minlength=len(prior))
    known: FloatArray = np.bincount(kind, recalled, minlength=len(prior))
    return (known + 10 * prior) / (n + 10)


def since_answer(reviews: Reviews, *, answer_in_interval: bool) -> IntArray:
    """Return the kind of time from the previous answer to the end of each interval."""
    columns = (reviews.card, 86_400 * reviews.elapsed, seconds_of_answer(reviews))
    answered: dict[int, float] = {}
    now, since = 0.0, []
    for card, elapsed, own in zip(*(column.tolist() for column in columns), strict=True):
        ends = answered[card] + elapsed if card in answered else now
        since.append(ends - now)
        included = answer_in_interval and card in answered
        now = answered[card] = max(ends, now) + (0.0 if included else own)
    return np.digitize(since, EDGES)


NAMES = ("FSRS-6", "FSRS-7", "logistic regression")
QUICK = ("FSRS-6", "FSRS-7")
# Scored reviews by rows, model, and how intervals end.
Evaluated = Mapping[tuple[str, str, str], pd.DataFrame]


def evaluations(source: Source, names: Sequence[str]) -> Evaluated:
    """Evaluate models of memory, one that knows the kind of a review, and the offender."""
    found = {}
    for which, protocols in ROWS.items():
        for end, protocol in protocols.items():
            models = {name: se.algorithm(MODELS[name][0]) for name in names}
            models[KIND] = ByKind()
            models[OFFENDER] = ByKind(reads_clock=True, answer_in_interval=end == PUBLISHED)
            for name, model in models.items():
                # The offender knows its answer, as it is meant to.
                result = evaluated(source, model, protocol, check_lookahead=False)
                found[which, name, end] = scored_reviews(result)
    return found


def losses_table(log: str, found: Evaluated, names: Sequence[str]) -> pd.DataFrame:
    """Return the log loss of each model by the scored rows and the end of the intervals."""
    rows = []
    for which, ends in ROWS.items():
        for name in names:
            own = {end: found[which, name, end] for end in ends}
            row: dict[str, Any] = {"log": log, "scored": which, "model": name}
            row |= {end: own[end]["loss"].mean() if end in own else np.nan for end in LATER_DAYS}
            for end in (PUBLISHED, ANSWER):
                row[f"{end} - question"] = loss_change(own[end], own[QUESTION], by_user=False)
            row[FRACTIONS] = ""
            if WHOLE in own:
                row[FRACTIONS] = loss_change(own[QUESTION], own[WHOLE], by_user=False)
            rows.append(row)
    return pd.DataFrame(rows)


def leaks_table(log: str, found: Evaluated) -> pd.DataFrame:
    """Return what the offender gains by reading its own time, by the end of the intervals."""
    rows = []
    for which in ROWS:
        row: dict[str, Any] = {"log": log, "scored": which}
        row[KIND] = found[which, KIND, QUESTION]["loss"].mean()
        for end in ALL_ROWS:
            both = found[which, OFFENDER, end], found[which, KIND, end]
            row[f"offender: {end}"] = loss_change(*both, by_user=False)
        rows.append(row)
    return pd.DataFrame(rows)


def lapses_by_pause(reviews: Reviews) -> pd.DataFrame:
    """Count repeated reviews and their lapses by the pause before the question.

    Expected lapses are by the share among all reviews of the same kind: on the same day as the
    card's previous review or later, after the same rating. The pause after a new card is not known,
    so the reviews that follow one are left out.
    """
    pause = np.diff(answer_times(reviews), prepend=-math.inf) - seconds_of_answer(reviews)
    new = reviews.elapsed_seconds < 0
    known = ~new & ~np.r_[False, new[:-1]]
    length = np.searchsorted(PAUSE_ENDS, pause, side="right")
    table = pd.DataFrame({"pause": np.array(PAUSES)[length], "failed": ~reviews.recalled})[known]
    last_rating = rows_by_card(reviews.card).last(reviews.rating)
    kind = (5 * (reviews.elapsed_days == 0) + last_rating)[known]
    expected = table.groupby(kind)["failed"].transform("mean")
    by_pause = table.assign(reviews=1, expected=expected).groupby("pause")
    return by_pause[["reviews", "failed", "expected"]].sum().reindex(PAUSES, fill_value=0)


def pauses(log: str, source: Source) -> pd.DataFrame:
    """Return the lapses by the pause before the question, of all users of a source together."""
    users = [lapses_by_pause(source.read(user)) for user in source.users()]
    found = sum(users[1:], users[0]).reset_index()
    found.insert(0, "log", log)
    found["share"] = found["failed"] / found["reviews"]
    found["expected share"] = found["expected"] / found["reviews"]
    return found


def draw(found: pd.DataFrame) -> Figure:
    """Draw the share of lapses by pause beside what is expected of such reviews."""
    logs = found["log"].unique()
    title = "Does the pause before a question tell its outcome?"
    with panels(1 + 3.2 * len(logs), 3.6, len(logs), title) as (figure, every):
        for axes, log in zip(every, logs, strict=True):
            own = found[found["log"] == log].reset_index(drop=True)
            axes.bar(own.index, own["expected share"], color=BAND, width=0.7)
            for at, row in own.iterrows():
                if row["reviews"]:
                    low, high = wilson_interval(row["failed"], row["reviews"])
                    axes.plot([at, at], [low, high], color=BLUE)
            axes.plot(own.index, own["share"], "o", color=BLUE, markersize=5)
            names = own["pause"].str.replace(" to ", " to\n").str.replace(" 2", "\n2")
            names = names.replace("longer", "longer\n")
            counts = own["reviews"].map("\n{:,}".format)
            axes.set_xticks(own.index, names + counts)
            axes.set_ylim(0, None)
            axes.set_title(log)
        every[0].set_ylabel("share of lapses\n(bars: expected; lines: 99 %)", fontsize=10)
        figure.supxlabel("pause before the question, and number of reviews", fontsize=10, color=INK)
    return figure


ConfigStore.instance().store("clocks_and_leaks", LogOptions)


@hydra.main(version_base="1.3", config_path=None, config_name="clocks_and_leaks")
def main(options: LogOptions) -> None:
    """Evaluate every model with every end of the intervals."""
    logs = {**real_logs(options), SIMULATED: simulated(options, small=(2, 1200), full=(3, 4000))}
    names = QUICK if options.small else NAMES
    found = {log: evaluations(source, names) for log, source in logs.items()}
    parts = {
        "pauses": [pauses(log, source) for log, source in logs.items()],
        "leaks": [leaks_table(log, own) for log, own in found.items()],
        "clocks": [losses_table(log, own, names) for log, own in found.items()],
    }
    tables = {name: pd.concat(every, ignore_index=True) for name, every in parts.items()}
    formats = {"share": ".1%", "expected share": ".1%", "expected": ".1f"}
    write("clocks_and_leaks", options, tables, {"pauses": draw(tables["pauses"])}, formats)


if __name__ == "__main__":
    main()
