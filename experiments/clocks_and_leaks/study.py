"""What the end of an interval reveals: answer times, pauses, and models outside their clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from paired_losses import difference, scored, settled, with_interval
from real_logs import real_logs

import srs_eval as se
from srs_eval.cards import rows_by_card
from srs_eval.data.synthetic import SyntheticUsers
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.proper import LogLoss
from srs_eval.nouns import BoolArray, EvaluationProtocol, FloatArray, IntArray, Reviews, Source
from srs_eval.plots.style import BAND, BLUE, INK, house_style, new_figure, style_axes
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
PANEL = Panel([LogLoss()])


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


MODELS: Mapping[str, Any] = {
    "FSRS-6": "fsrs6",
    "FSRS-7": "fsrs7",
    "logistic regression": "logistic",
    "boosted trees": "boosted_trees",
    KIND: ByKind(),
    OFFENDER: None,  # as the intervals end
}
Losses = Mapping[tuple[str, str, str], pd.DataFrame]
QUICK = ("FSRS-6", "FSRS-7", KIND, OFFENDER)


def evaluated(source: Source, models: Mapping[str, Any]) -> Losses:
    """Return the scored reviews of each model, by which are scored and how intervals end."""
    given: dict[str, Any] = {"panel": PANEL, "curves_per_user": 0, "progress": False}
    given["check_lookahead"] = False  # that is what is measured
    by_clock = {
        end: ByKind(reads_clock=True, answer_in_interval=end == PUBLISHED) for end in LATER_DAYS
    }
    return {
        (which, name, end): scored(
            se.evaluate(algorithm or by_clock[end], source, protocol=protocol, **given)
        )
        for which, protocols in ROWS.items()
        for name, algorithm in models.items()
        for end, protocol in protocols.items()
    }


def losses_table(log: str, found: Losses) -> pd.DataFrame:
    """Return the log loss of each model by the scored rows and the end of the intervals."""
    rows = []
    for which, name in dict.fromkeys((which, name) for which, name, _ in found):
        if name in (KIND, OFFENDER):
            continue
        own = {end: found[which, name, end] for end in ROWS[which]}
        row: dict[str, Any] = {"log": log, "scored": which, "model": name}
        row |= {end: own[end]["loss"].mean() if end in own else np.nan for end in LATER_DAYS}
        for end in (PUBLISHED, ANSWER):
            change = difference(own[end], own[QUESTION])
            row[f"{end} - question"] = with_interval(change)
            row[f"{end}, mean"], row[f"{end}, settled"] = change.mean, settled(change)
        row[FRACTIONS] = ""
        if WHOLE in own:
            row[FRACTIONS] = with_interval(difference(own[QUESTION], own[WHOLE]))
        rows.append(row)
    return pd.DataFrame(rows)


def leaks_table(log: str, found: Losses) -> pd.DataFrame:
    """Return what the offender gains by reading its own time, by the end of the intervals."""
    rows = []
    for which in ROWS:
        row: dict[str, Any] = {"log": log, "scored": which}
        row[KIND] = found[which, KIND, QUESTION]["loss"].mean()
        for end in ALL_ROWS:
            change = difference(found[which, OFFENDER, end], found[which, KIND, end])
            row[f"offender: {end}"] = with_interval(change)
            row[f"{end}, mean"], row[f"{end}, settled"] = change.mean, settled(change)
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
    with house_style():
        figure = new_figure(1 + 3.2 * len(logs), 3.6)
        for axes, log in zip(figure.subplots(1, len(logs), squeeze=False)[0], logs, strict=True):
            own = found[found["log"] == log].reset_index(drop=True)
            axes.bar(own.index, own["expected share"], color=BAND, width=0.7)
            for at, row in own.iterrows():
                if row["reviews"]:
                    low, high = wilson_interval(row["failed"], row["reviews"])
                    axes.plot([at, at], [low, high], color=BLUE)
            axes.plot(own.index, own["share"], "o", color=BLUE, markersize=5)
            pauses_shown = (
                own["pause"]
                .str.replace(" to ", " to\n")
                .str.replace(" 2", "\n2")
                .replace("longer", "longer\n")
            )
            labels = [
                f"{pause}\n{row['reviews']:,}"
                for pause, (_, row) in zip(pauses_shown, own.iterrows(), strict=True)
            ]
            axes.set_xticks(own.index, labels)
            axes.set_ylim(0, None)
            axes.set_title(log)
            style_axes(axes)
            axes.tick_params(labelsize=9)
        figure.axes[0].set_ylabel("share of lapses\n(bars: expected; lines: 99 %)", fontsize=10)
        title = "Does the pause before a question tell its outcome?"
        figure.suptitle(title, x=0.01, ha="left")
        figure.supxlabel("pause before the question, and number of reviews", fontsize=10, color=INK)
    return figure


def run(options: SimpleNamespace) -> Findings:
    """Evaluate every model with every end of the intervals."""
    real, left_out = ({}, []) if options.small else real_logs(options)
    users, reviews = (2, 1200) if options.small else (3, 4000)
    simulated = SyntheticUsers(users=users, max_reviews=reviews)
    sources: dict[str, Source] = {**real, "simulated": simulated}
    models = {name: MODELS[name] for name in QUICK} if options.small else MODELS
    parts: dict[str, list[pd.DataFrame]] = {"pauses": [], "leaks": [], "clocks": []}
    for log, source in sources.items():
        found = evaluated(source, models)
        parts["pauses"].append(pauses(log, source))
        parts["leaks"].append(leaks_table(log, found))
        parts["clocks"].append(losses_table(log, found))
    joined = {name: pd.concat(each, ignore_index=True) for name, each in parts.items()}
    return _findings(joined, left_out)


def _findings(tables: Mapping[str, pd.DataFrame], left_out: list[str]) -> Findings:
    clocks, leaks, by_pause = tables["clocks"], tables["leaks"], tables["pauses"]
    fsrs6 = clocks[(clocks["model"] == "FSRS-6") & (clocks["scored"] == "later days")]
    outside = [f"{row[FRACTIONS]} ({row['log']})" for _, row in fsrs6.iterrows()]
    most = clocks.loc[clocks[f"{ANSWER}, mean"].abs().idxmax()]
    raw = by_pause[by_pause["log"] == "simulated"].set_index("pause")
    late, soon = raw.loc["30 s to 30 min"], raw.loc["under 2 s"]
    learned = [
        "A model that knows only the kind of a review becomes an offender if it also reads how "
        "much time the review itself adds to a clock. That changes its log loss (all rows, "
        f"* significant) by {_by_log(leaks, PUBLISHED)} with published intervals, by "
        f"{_by_log(leaks, QUESTION)} with intervals that end with the question, and by "
        f"{_by_log(leaks, ANSWER)} with those that end with the previous answer.",
        "Models of memory gain less from the leak: published intervals change them by "
        f"{_changes(clocks, PUBLISHED)} against intervals that end with the question.",
        f"Intervals that end with the previous answer change them by {_changes(clocks, ANSWER)}; "
        f"the most is that of {most['model']} on {most['log']} ({most['scored']}), whose shortest "
        "intervals become shorter still.",
        "The share of lapses after a pause proves nothing by itself: among simulated users, whose "
        f"pauses tell nothing, {late['share']:.0%} fail after 30 s to 30 min and "
        f"{soon['share']:.0%} after less than 2 s, because repetitions of the same day are waited "
        f"for; {late['expected share']:.0%} are expected from reviews of the same kind.",
        "FSRS-6 is made for whole days. On the same reviews, fractions of days change its log loss "
        f"by {', '.join(outside)}.",
    ]
    hidden = ("mean", "settled")
    return Findings(
        answer="Intervals that contain the answer's own time, as published ones do, change the log "
        "loss of a model that knows nothing of memory and reads the clock by "
        f"{_by_log(leaks, PUBLISHED)}; those that end with the question by "
        f"{_by_log(leaks, QUESTION)} (* significant).",
        learned=learned,
        tables={
            name: table[[column for column in table if not column.endswith(hidden)]]
            for name, table in tables.items()
        },
        figures={"pauses": draw(by_pause)},
        metrics={
            "offender_published": -leaks[f"{PUBLISHED}, mean"].min(),
            "offender_question": -leaks[f"{QUESTION}, mean"].min(),
        },
        left_out=left_out,
        formats={"share": ".1%", "expected share": ".1%", "expected": ".1f"},
    )


def _by_log(leaks: pd.DataFrame, end: str) -> str:
    every = leaks[leaks["scored"] == "same day too"]
    return ", ".join(
        f"{row[f'{end}, mean']:+.4f}{' *' if row[f'{end}, settled'] else ''} ({row['log']})"
        for _, row in every.iterrows()
    )


def _changes(table: pd.DataFrame, end: str) -> str:
    means, sure = table[f"{end}, mean"], table[f"{end}, settled"]
    places = table[sure][["model", "log", "scored"]].itertuples(index=False)
    found = [f"{model} on {log}, {scored}" for model, log, scored in places]
    return (
        f"{means.min():+.4f} to {means.max():+.4f} ({int(sure.sum())} of {len(table)} "
        "differences significant" + (f": {', '.join(found)})" if found else ")")
    )
