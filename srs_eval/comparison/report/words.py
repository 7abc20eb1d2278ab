"""A comparison in words: headline, facts, remarks, and the format of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from srs_eval.algorithms.algorithm import IN_WORDS, UNKNOWN
from srs_eval.comparison.entry import INELIGIBLE, MARK, Entry, protocols
from srs_eval.comparison.predictions import PER_REVIEW
from srs_eval.comparison.standing import Answer, Decision
from srs_eval.comparison.verdict import Verdict
from srs_eval.comparison.words import counted, number, percent
from srs_eval.metrics.means import ENOUGH_USERS
from srs_eval.metrics.significance import ALPHA
from srs_eval.runs.summary import TRAITS

_GROUPS: Mapping[Decision, str] = {
    "worse": "Worse on average",
    "not significantly different": "Not significantly different on average",
    "identical": "The same scores",
    "better": "Better on average, but not eligible for best",
    "unknown": "Without a test",
}
_SEVERAL_TIMES = (
    "Predictions are made at different times, and each time has a leader of its own. A difference "
    "between runs of different times also contains what became known in between"
)
_UNKNOWN_TIME = "When unknown: published scores that do not say when predictions are made"
_DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "zero": "near 0 is better"}


def headline(verdict: Verdict) -> str:
    """Summarise which run predicts best at each time, and warn if much was left out."""
    caution = verdict.coverage.caution if verdict.coverage else ""
    return leaders(verdict, with_others=True) + (f" {caution}." if caution else "")


def leaders(verdict: Verdict, *, with_others: bool = False) -> str:
    """Summarise which run predicts best at each time."""
    board = verdict.leaderboard
    if not verdict.leaders:
        return f"No run has a {verdict.metric}."
    if len(verdict.runs) == 1:
        return f"{verdict.runs[0].name}: {verdict.metric} {number(board.mean[0])}."
    several = len(board.groups) > 1
    sentences = []
    for leader, models in board.groups.items():
        if leader >= 0:
            at = f"Predicted {IN_WORDS[verdict.runs[leader].when]}: " if several else ""
            sentences.append(at + _leader(verdict, leader, models))
            sentences += _others(verdict, models) if with_others else []
    return " ".join(sentences)


def _leader(verdict: Verdict, leader: int, models: Sequence[int]) -> str:
    """Name a leader, and say whether it is better than all others."""
    board, run = verdict.leaderboard, verdict.runs[leader]
    score = f"({verdict.metric} {number(float(board.mean[leader]))})"
    if len(models) == 1:
        return f"{run.name} alone {score}."
    rivals = "" if all(verdict.runs[m].is_eligible for m in models) else " the eligible models"
    if not run.is_eligible:
        rivals = " where no model is eligible for best"
    place = f"leads{rivals}"
    if board.to_best[leader].average.verdict == "best":
        place = f"predicts best{rivals and ' of'}{rivals}"
    return f"{run.name} {place} {score}."


def _others(verdict: Verdict, models: Sequence[int]) -> Iterator[str]:
    """List the runs compared with a leader by how they compare."""
    for answer, words in _GROUPS.items():
        names = [
            verdict.runs[model].name
            for model in models
            if verdict.leaderboard.to_best[model].average.verdict == answer
        ]
        if names:
            yield f"{words}: {'; '.join(names)}."


def terms(verdict: Verdict) -> str:
    """Name the data, the protocol, the metric and the baseline, and count users and reviews."""
    data = ", ".join(dict.fromkeys(run.facts.data for run in verdict.runs if run.facts.data))
    protocol = ", ".join(protocols(verdict.runs))
    by = f", protocol {protocol}" if protocol else ""
    users = counted(verdict.leaderboard.n_users, "user")
    return (
        f"{counted(len(verdict.paired.every_run), 'run')} on {data}{by}: {users} and "
        f"{int(verdict.reviews.sum()):,} scored reviews, compared by {verdict.metric}, "
        f"{_DIRECTIONS[verdict.better]}; baseline {verdict.runs[verdict.baseline].name}"
    )


def facts_of(verdict: Verdict) -> list[str]:
    """Return sentences about the terms of the comparison, and what it rests on."""
    rests = verdict.coverage.sentences if verdict.coverage else []
    return [f"{sentence}." for sentence in (terms(verdict), *rests)]


def remarks(verdict: Verdict) -> list[str]:
    """List everything a reader has to know beside the numbers."""
    said = [
        *verdict.warnings,
        *verdict.on_scores,
        *verdict.notes,
        *mark_notes(verdict.paired.every_run),
    ]
    users = verdict.leaderboard.n_users
    if users == 1:
        said.append(_one_user(verdict))
    said += few_users(verdict)
    if len(verdict.times) > 1:
        said.append(_SEVERAL_TIMES)
    if UNKNOWN in verdict.times:
        said.append(_UNKNOWN_TIME)
    return [*said, *_choices_by_test_rows(verdict.runs)]


def few_users(verdict: Verdict) -> list[str]:
    """Warn of intervals over few users, whose coverage is too low."""
    users = verdict.leaderboard.n_users
    return [f"Only {users} users"] if 1 < users < ENOUGH_USERS else []


def _choices_by_test_rows(runs: Sequence[Entry]) -> list[str]:
    """Warn of each algorithm of which several settings were scored on the same test reviews."""
    settings: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        if run.facts.algo and not run.facts.is_validation and run.is_eligible:
            settings.setdefault((run.facts.algo, run.protocol), set()).add(
                run.facts.tags.get("config_hash", "")
            )
    return [
        f"{len(hashes - {''})} settings of {algo} were scored on the same test reviews: the best "
        "of them looks better than it is. Choose with protocol=validation, and score the choice "
        "once without it"
        for (algo, _), hashes in settings.items()
        if len(hashes - {""}) > 1
    ]


def _one_user(verdict: Verdict) -> str:
    """Return what intervals of a single user are over, or why there are none."""
    board, paired = verdict.leaderboard, verdict.paired
    if len(paired.users) > 1:
        return f"{verdict.metric} is defined for one user only: there are no intervals over users"
    if np.isfinite(board.lo).any():
        return "One user: intervals are over its cards and days, and say nothing of other users"
    standings = (*board.to_best, *board.to_baseline)
    if any(math.isfinite(standing.average.lo) for standing in standings):
        return (
            "One user: intervals of differences are over its cards and days, and say nothing of "
            "other users; scores have none"
        )
    if not all(run.has_predictions for run in verdict.runs):
        return "One user: intervals need saved predictions, and log_loss or brier"
    if verdict.metric in PER_REVIEW:
        return "One user with too few cards or days for an interval"
    return f"One user: {verdict.metric} has no interval, {' and '.join(PER_REVIEW)} have"


def mark_notes(runs: Sequence[Entry]) -> list[str]:
    """Explain the marks of the names of runs, with the counts of fits behind them."""
    traits = [
        f"{mark} {meaning}{'; not eligible for best' if trait in INELIGIBLE else ''}"
        for trait, (mark, meaning) in TRAITS.items()
        if any(trait in run.traits for run in runs)
    ]
    fits = [f"{run.name}: {run.facts.exceptions}" for run in runs if run.facts.exceptions]
    return [
        *traits,
        *([f"{MARK} not every fit went as planned: {'; '.join(fits)}"] if fits else []),
    ]


def figure_note(verdict: Verdict, models: Sequence[int]) -> str:
    """Explain the marks of the runs in a figure, when they predict, and name their duplicates."""
    runs = [verdict.runs[model] for model in models]
    twins = [one for one in verdict.paired.duplicates if any(one.twin is run for run in runs)]
    notes = mark_notes([*runs, *(one.run for one in twins)])
    # a figure of more runs is grouped by the time of their predictions
    times = [f"{run.name} predicts {IN_WORDS[run.when]}" for run in runs if len(runs) == 2]
    return "; ".join([*notes, *times, *(one.in_words for one in twins)])


def signed(value: float) -> str:
    """Format a difference with its sign; a dash stands for NaN."""
    if math.isnan(value):
        return "-"
    shown = f"{value:+z.4f}"
    return "0.0000" if float(shown) == 0 else shown


def p_text(value: float) -> str:
    """Format a p-value, below 0.01 in print exactly if it is below 0.01."""
    if math.isnan(value):
        return "-"
    if value < 1e-12:
        return "<1e-12"
    shown = f"{value:.1g}" if value < 0.001 else f"{value:.3f}"
    return f"<{ALPHA:g}" if value < ALPHA <= float(shown) else shown


def level_text(answer: Answer) -> str:
    """Format the level of an interval, which is higher the more comparisons there are."""
    if math.isnan(answer.lo):
        return "-"
    return f"{100 * answer.level:.{2 if answer.factor > 1 else 0}f} %".replace("100.00", ">99.99")


def share_interval(lo: float, hi: float) -> str:
    """Format the interval of a share, with enough digits to show its side of 50 %."""
    digits = 1
    while digits < 6 and 0.5 in (round(lo, digits + 2), round(hi, digits + 2)):
        digits += 1
    return f"{percent(lo, digits)} to {percent(hi, digits)}" if not math.isnan(lo) else "-"
