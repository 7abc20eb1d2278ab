"""What the command prints of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import get_args

from srs_eval.comparison.baseline import AgainstBaseline
from srs_eval.comparison.report.words import few_users
from srs_eval.evaluation.scoring import Evaluation
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.summary import MetricSummary
from srs_eval.metrics.threshold import STATISTICS, Confusion, ThresholdBias
from srs_eval.nouns import Fit, FitStatus, Metric, User
from srs_eval.text.console import facts, interval, number, table

ENOUGH_REVIEWS = 100
ENOUGH_OF_A_KIND = 10

_REASONS_SHOWN = 5
_WORST_FIRST = ("failed", "skipped", "fallback", "ok")
_TITLES = {"ok": "note"}

_ARROWS = {"lower": "lower", "higher": "higher", "zero": "near 0", "neither": ""}


def scores_text(panel: Panel, evaluation: Evaluation, *, brief: bool = False) -> str:
    """Say how many reviews were scored, what failed, and the panel with its intervals.

    Parameters
    ----------
    brief : bool
        Leave out the panel, for one job of many.
    """
    users, reviews = evaluation.users_scored, evaluation.reviews_scored
    asked_for = len({fit.user for fit in evaluation.fits})
    scored = f"scored {reviews:,} of {evaluation.reviews_read:,} reviews"
    lines = [
        f"{scored if evaluation.reviews_read else 'no reviews could be read'}; "
        f"{users:,} of {asked_for:,} users complete; fits: {_fits(evaluation)}"
    ]
    lines += [f"left out: {count:,} {reason}" for reason, count in evaluation.left_out.items()]
    lines += _notes(evaluation.notes)
    lines += _reasons(evaluation)
    lines += _too_few(evaluation) if users else []
    if users and not brief:
        lines += ["", _panel_table(panel, evaluation)]
        lines += [few_users(users)] if few_users(users) else []
        lines += ["", _confusion_table(panel, evaluation.summary)]
    return "\n".join(lines).rstrip()


def percent_text(against: AgainstBaseline) -> str:
    """Format the comparison of a run with its baseline."""
    named = f"against {against.baseline.name} ({against.baseline.place})"
    if not against.n_users:
        return f"{named}: there is no user for whom both runs scored the same reviews"
    rows = [
        (percent.metric, f"{percent.difference:+.1f} %", interval(percent.lo, percent.hi, 1))
        for percent in against.percents
    ]
    caption = f"{named}, {against.n_users:,} of {against.of_users:,} users\n\n"
    return caption + table(rows, ["metric", "difference", "99 %"])


def told(fit: Fit) -> str:
    """Give the reason of a fit, with its user and fold named once."""
    where, reason = _where(fit), _bare(fit)
    if not reason:
        return where
    named = PurePath(reason.split(":\n")[0].split(": ")[0])
    # The file of a user has the user's name already.
    return reason if fit.fold < 0 and named.stem == str(fit.user) else f"{where}: {reason}"


def _fits(evaluation: Evaluation) -> str:
    counts = {status: evaluation.count(status) for status in get_args(FitStatus)}
    return ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)


def _notes(notes: Sequence[tuple[User, str]]) -> list[str]:
    """Write the remarks on the logs of the first users, and count the others."""
    shown = [f"note: user {user}: {note}" for user, note in notes[:_REASONS_SHOWN]]
    more = len(notes) - len(shown)
    return shown + ([f"note: {more:,} more in summary.json"] if more else [])


def _too_few(evaluation: Evaluation) -> list[str]:
    """Warn where the scores depend on a handful of reviews."""
    reviews, forgotten = evaluation.reviews_scored, evaluation.forgotten
    if reviews >= ENOUGH_REVIEWS and ENOUGH_OF_A_KIND <= forgotten <= reviews - ENOUGH_OF_A_KIND:
        return []
    return [
        f"Too few reviews: {reviews:,} were scored and {forgotten:,} of them forgotten. Below "
        f"{ENOUGH_REVIEWS} reviews, or {ENOUGH_OF_A_KIND} forgotten or recalled ones, scores and "
        "intervals say next to nothing about an algorithm"
    ]


def _reasons(evaluation: Evaluation) -> list[str]:
    """Say what is to be said of fits, the worst first, and each reason once.

    Notes of fits that are ok are alike if they begin alike, up to a colon: numbers follow. The
    last of them has learned from most reviews.
    """
    alike: dict[tuple[str, str], list[Fit]] = {}
    for fit in evaluation.fits:
        if fit.reason or fit.status != "ok":
            reason = _bare(fit)
            kind = reason.split(": ")[0] if fit.status == "ok" else reason
            alike.setdefault((fit.status, kind), []).append(fit)
    groups = sorted(alike.items(), key=lambda group: _WORST_FIRST.index(group[0][0]))
    shown = [
        f"{_TITLES.get(status, status)}: {told(fits[-1 if status == 'ok' else 0])}"
        + (f" (and {len(fits) - 1:,} more)" if len(fits) > 1 else "")
        for (status, _), fits in groups[:_REASONS_SHOWN]
    ]
    more = sum(len(fits) for _, fits in groups[_REASONS_SHOWN:])
    return shown + ([f"… and {more:,} more, all in fits.parquet"] if more else [])


def _where(fit: Fit) -> str:
    return f"user {fit.user}" + (f", fold {fit.fold}" if fit.fold >= 0 else "")


def _bare(fit: Fit) -> str:
    """Take the reason without the user and fold it may begin with."""
    return fit.reason.removeprefix(f"{_where(fit)}: ").removeprefix(f"user {fit.user}: ")


def _panel_table(panel: Panel, evaluation: Evaluation) -> str:
    shown = [
        (metric, evaluation.summary[metric.name])
        for metric in panel
        if metric.section != Confusion.section
    ]
    over = f"99 % over {evaluation.interval_over}"
    if len(evaluation.scores.users) == 1:
        rows = [[*_of_user(metric, summary)] for metric, summary in shown]
        return table(rows, ["metric", "better", "score", over], text=2)
    rows = [[*_of_user(metric, summary), *_of_all(summary)] for metric, summary in shown]
    headers = ["metric", "better", "mean over users", over]
    headers += ["over reviews", "pooled", "99 % of pooled", "users", "effective"]
    return table(rows, headers, text=2)


def _of_user(metric: Metric, summary: MetricSummary) -> Iterator[str]:
    """Write down what is known of the typical user."""
    yield metric.name
    yield _ARROWS[metric.better]
    yield number(summary.mean_users)
    yield interval(summary.lo, summary.hi)


def _of_all(summary: MetricSummary) -> Iterator[str]:
    """Write down what is known of reviews, and of how many users they are."""
    yield number(summary.mean_reviews)
    yield number(summary.pooled)
    yield interval(summary.pooled_lo, summary.pooled_hi)
    yield f"{summary.n_users:,}"
    yield f"{summary.n_effective:,.1f}"


def _confusion_table(panel: Panel, summary: Mapping[str, MetricSummary]) -> str:
    """Means over users of what is known at each threshold, a row for each."""
    rates = {(m.threshold, m.statistic): m.name for m in panel if isinstance(m, Confusion)}
    biases = {m.threshold: m.name for m in panel if isinstance(m, ThresholdBias)}
    rows = [
        [
            f"{threshold:g}",
            *(_mean(summary, rates.get((threshold, statistic))) for statistic in STATISTICS),
            _mean(summary, biases.get(threshold)),
        ]
        for threshold in sorted({threshold for threshold, _ in rates} | set(biases))
    ]
    return table(rows, ["recalled if p >=", *STATISTICS, "bias nearby"]) if rows else ""


def _mean(summary: Mapping[str, MetricSummary], name: str | None) -> str:
    return "-" if name is None else number(summary[name].mean_users, 3)


def places(names: Mapping[str, str | None]) -> str:
    """Say where things are, leaving out what there is not."""
    return facts({name: place for name, place in names.items() if place})
