"""A comparison in words: headline, facts, remarks, and the format of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from srs_eval.comparison.leaderboard import Leaderboard
from srs_eval.comparison.standing import Answer, Decision
from srs_eval.comparison.verdict import Verdict
from srs_eval.nouns.when import IN_WORDS, UNKNOWN
from srs_eval.results.fit_counts import explained_counts
from srs_eval.results.remarks import few_users, worse_than_a_constant
from srs_eval.results.run import INELIGIBLE, TRAITS, Run
from srs_eval.results.saved_predictions import PER_REVIEW, has_predictions
from srs_eval.stats.significance import ALPHA
from srs_eval.text.console import counted, number, percent

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
_UNKNOWN_TIME = (
    "When unknown: published scores, or a run of an earlier release, that do not say when their "
    "predictions are made"
)
_DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "zero": "near 0 is better"}


def headline(verdict: Verdict) -> str:
    """Summarise which run predicts best at each time, and warn if much was left out."""
    caution = verdict.coverage.caution if verdict.coverage else ""
    return _best(verdict) + (f" {caution}." if caution else "")


def _best(verdict: Verdict) -> str:
    """Summarise which run predicts best at each time, on average and for most users."""
    board, names = verdict.leaderboard, [run.name for run in verdict.runs]
    if not verdict.leaders:
        return f"No run has a {verdict.metric}."
    if len(names) == 1:
        mean = number(board.mean[0])
        return f"{names[0]}: {verdict.metric} {mean}. Nothing to compare it with."
    several = len(board.groups) > 1
    said = []
    for leader in board.groups:
        if leader >= 0:
            at = f"Predicted {IN_WORDS[verdict.runs[leader].when]}: " if several else ""
            said.append(at + _best_of_group(verdict, leader))
    return " ".join(said)


def _best_of_group(verdict: Verdict, leader: int) -> str:
    """Format a leader, and the runs compared with it by how they compare."""
    board, names = verdict.leaderboard, [run.name for run in verdict.runs]
    models = board.groups[leader]
    score = f"({verdict.metric} {number(float(board.mean[leader]))})"
    if but := worse_than_a_constant(verdict.runs[leader], verdict.paired.users):
        score += f", but {but}"
    if len(models) == 1:
        return f"{names[leader]} alone {score}."
    rivals = "" if all(verdict.runs[m].is_eligible for m in models) else " the eligible models"
    if not verdict.runs[leader].is_eligible:
        rivals = " where no model is eligible for best"
    place = f"leads{rivals}"
    if board.to_best[leader].average.verdict == "best":
        place = f"predicts best{rivals and ' of'}{rivals}"
    said = [f"{names[leader]} {place} {score}."]
    for answer, words in _GROUPS.items():
        group = [m for m in models if board.to_best[m].average.verdict == answer]
        if group:
            listed = "; ".join(names[m] + _for_users(board, m) for m in group)
            said.append(f"{words}: {listed}.")
    return " ".join(said)


def _for_users(board: Leaderboard, model: int) -> str:
    """Format for how many users a model is better or worse than the leader."""
    standing = board.to_best[model]
    counts, total = standing.counts, sum(standing.counts)
    if total < 2 or standing.average.verdict == "identical":
        return ""
    if counts.better > counts.worse:
        said = f"better for {counts.better:,} of {total:,} users"
    else:
        said = f"worse for {counts.worse:,} of {total:,} users"
    tied = f", {counts.tied:,} alike" if counts.tied else ""
    unsure = standing.users.verdict == "not significantly different"
    return f" ({said}{tied}{', no significant majority' if unsure else ''})"


def facts_of(verdict: Verdict) -> list[str]:
    """Return sentences about the data, the terms of the comparison, and what it rests on."""
    paired, board = verdict.paired, verdict.leaderboard
    data = ", ".join(dict.fromkeys(run.facts.data for run in verdict.runs if run.facts.data))
    protocol = ", ".join(dict.fromkeys(run.protocol for run in verdict.runs if run.protocol))
    by = f", protocol {protocol}" if protocol else ""
    users = counted(board.n_users, "user")
    runs = counted(len(paired.every_run), "run")
    rests = [f"Rests on {users} and {int(verdict.reviews.sum()):,} scored reviews"]
    if verdict.coverage is not None:
        rests = verdict.coverage.sentences()
    terms = (
        f"{runs} on {data}{by}, compared by {verdict.metric}, {_DIRECTIONS[verdict.better]}; "
        f"baseline {verdict.runs[verdict.baseline].name}"
    )
    return [f"{sentence}." for sentence in (terms, *rests)]


def remarks(verdict: Verdict) -> list[str]:
    """List everything a reader has to know beside the numbers."""
    said = [*verdict.on_scores, *verdict.notes, *mark_notes(verdict.paired.every_run)]
    board = verdict.leaderboard
    users = board.n_users
    if users == 1:
        said.append(_one_user(verdict))
    elif few_users(users):
        said.append(few_users(users))
    if len(verdict.times) > 1:
        said.append(_SEVERAL_TIMES)
    if UNKNOWN in verdict.times:
        said.append(_UNKNOWN_TIME)
    lost = sum(len(run.incomplete) for run in verdict.runs)
    if lost and verdict.coverage is None:
        said.append(f"Users with a failed fold, who have no scores: {lost:,} over all runs")
    return [*said, *_choices_by_test_rows(verdict.runs)]


def _choices_by_test_rows(runs: Sequence[Run]) -> list[str]:
    """Warn of each algorithm of which several settings were scored on the same test reviews."""
    settings: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        if run.facts.algo and not run.facts.is_validation and run.is_eligible:
            settings.setdefault((run.facts.algo, run.protocol), set()).add(run.facts.config_hash)
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
    if not all(map(has_predictions, verdict.runs)):
        return "One user: intervals need saved predictions, and log_loss or brier"
    if verdict.metric in PER_REVIEW:
        return "One user with too few cards or days for an interval"
    return f"One user: {verdict.metric} has no interval, {' and '.join(PER_REVIEW)} have"


def mark_notes(runs: Sequence[Run]) -> list[str]:
    """Explain the marks of the names of runs, with the counts of fits behind them."""
    traits = [
        f"{mark} {meaning}{'; not eligible for best' if trait in INELIGIBLE else ''}"
        for trait, (mark, meaning) in TRAITS.items()
        if any(trait in run.traits for run in runs)
    ]
    counts = explained_counts([(run.name, run.facts.fit_counts) for run in runs])
    return [*traits, counts] if counts else traits


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
