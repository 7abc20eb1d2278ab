"""What the end of an interval reveals: answer times, pauses, and models outside their clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from evaluations import MODELS, Scored, score, with_means
from findings import findings, panels
from matplotlib.figure import Figure
from review_logs import SIMULATED, logs

import srs_eval as se
from srs_eval.cards import rows_by_card
from srs_eval.nouns import BoolArray, EvaluationProtocol, FloatArray, IntArray, Reviews, Source
from srs_eval.plots.style import BAND, BLUE, INK
from srs_eval.protocol.fractional_days import SrsBenchmarkEqualised, SrsBenchmarkSecs
from srs_eval.protocol.pauses import pause_table
from srs_eval.protocol.srs_benchmark import SrsBenchmark
from srs_eval.run.study import Findings
from srs_eval.stats.significance import wilson_interval

WHOLE, PUBLISHED, QUESTION, ANSWER = "whole days", "with its answer", "question", "previous answer"
FRACTIONS = f"{QUESTION} - {WHOLE}"
LATER_DAYS: Mapping[str, EvaluationProtocol] = {
    WHOLE: SrsBenchmark(),
    PUBLISHED: SrsBenchmarkEqualised(answer_time=True),
    QUESTION: SrsBenchmarkEqualised(),
    ANSWER: SrsBenchmarkEqualised(previous_answer=True),
}
ALL_ROWS: Mapping[str, EvaluationProtocol] = {
    PUBLISHED: SrsBenchmarkSecs(answer_time=True),
    QUESTION: SrsBenchmarkSecs(),
    ANSWER: SrsBenchmarkSecs(previous_answer=True),
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
    took = np.zeros(len(reviews)) if reviews.duration_ms is None else reviews.duration_ms / 1000
    columns = (reviews.card, 86_400 * reviews.elapsed, took)
    answered: dict[int, float] = {}
    now, since = 0.0, []
    for card, elapsed, own in zip(*(column.tolist() for column in columns), strict=True):
        ends = answered[card] + elapsed if card in answered else now
        since.append(ends - now)
        included = answer_in_interval and card in answered
        now = answered[card] = max(ends, now) + (0.0 if included else own)
    return np.digitize(since, EDGES)


NAMES = ("FSRS-6", "FSRS-7", "logistic regression", "boosted trees")
QUICK = ("FSRS-6", "FSRS-7")
Evaluated = Mapping[tuple[str, str, str], Scored]  # by rows, model, and how intervals end


def evaluated(source: Source, names: Sequence[str]) -> Evaluated:
    """Evaluate models of memory, one that knows the kind of a review, and the offender."""
    return {
        (which, name, end): score(source, algorithm, protocol)
        for which, protocols in ROWS.items()
        for end, protocol in protocols.items()
        for name, algorithm in {
            **{name: MODELS[name] for name in names},
            KIND: ByKind(),
            OFFENDER: ByKind(reads_clock=True, answer_in_interval=end == PUBLISHED),
        }.items()
    }


def losses_table(log: str, found: Evaluated, names: Sequence[str]) -> pd.DataFrame:
    """Return the log loss of each model by the scored rows and the end of the intervals."""
    rows = []
    for which, ends in ROWS.items():
        for name in names:
            own = {end: found[which, name, end] for end in ends}
            row: dict[str, Any] = {"log": log, "scored": which, "model": name}
            row |= {
                end: own[end].reviews["loss"].mean() if end in own else np.nan for end in LATER_DAYS
            }
            for end in (PUBLISHED, ANSWER):
                row[f"{end} - question"] = own[end].less(own[QUESTION], by_user=False)
            row[FRACTIONS] = ""
            if WHOLE in own:
                row[FRACTIONS] = own[QUESTION].less(own[WHOLE], by_user=False)
            rows.append(row)
    return pd.DataFrame(rows)


def leaks_table(log: str, found: Evaluated) -> pd.DataFrame:
    """Return what the offender gains by reading its own time, by the end of the intervals."""
    rows = []
    for which in ROWS:
        row: dict[str, Any] = {"log": log, "scored": which}
        row[KIND] = found[which, KIND, QUESTION].reviews["loss"].mean()
        for end in ALL_ROWS:
            change = found[which, OFFENDER, end].less(found[which, KIND, end], by_user=False)
            row[f"offender: {end}"] = change
        rows.append(row)
    return pd.DataFrame(rows)


def pauses(log: str, source: Source) -> pd.DataFrame:
    """Return the lapses by the pause before the question, of all users of a source together."""
    tables = [pd.DataFrame(pause_table(source.read(user))) for user in source.users()]
    found = pd.concat(tables).groupby("pause", sort=False).sum().reset_index()
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


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model with every end of the intervals."""
    sources, left_out = logs(options, small=(2, 1200), full=(3, 4000))
    names = QUICK if options.small else NAMES
    found = {log: evaluated(source, names) for log, source in sources.items()}
    parts = {
        "pauses": [pauses(log, source) for log, source in sources.items()],
        "leaks": [leaks_table(log, own) for log, own in found.items()],
        "clocks": [losses_table(log, own, names) for log, own in found.items()],
    }
    tables = {name: pd.concat(every, ignore_index=True) for name, every in parts.items()}
    every_row = tables["leaks"][tables["leaks"]["scored"] == "same day too"]
    leaks = {end: every_row.assign(change=every_row[f"offender: {end}"]) for end in ALL_ROWS}
    clocks = tables["clocks"]
    answer = with_means(clocks, f"{ANSWER} - question")
    fsrs6 = clocks[(clocks["model"] == "FSRS-6") & (clocks["scored"] == "later days")]
    pause = tables["pauses"][tables["pauses"]["log"] == SIMULATED].set_index("pause")
    words = {
        "leaks": {
            "published": leaks[PUBLISHED],
            "question": leaks[QUESTION],
            "answer": leaks[ANSWER],
        },
        "published": with_means(clocks, f"{PUBLISHED} - question"),
        "answer": answer,
        "most": answer.loc[answer["mean"].abs().idxmax()],
        "late": pause.loc["30 s to 30 min"],
        "soon": pause.loc["under 2 s"],
        "fractions": fsrs6.assign(change=fsrs6[FRACTIONS]),
    }
    return findings(
        "clocks_and_leaks",
        tables,
        {"pauses": draw(tables["pauses"])},
        words,
        metrics={
            f"offender_{name}": -with_means(tables["leaks"], f"offender: {end}")["mean"].min()
            for name, end in (("published", PUBLISHED), ("question", QUESTION))
        },
        left_out=left_out,
        formats={"share": ".1%", "expected share": ".1%", "expected": ".1f"},
    )
