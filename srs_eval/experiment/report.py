"""What the command prints of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from srs_eval.comparison.baseline import AgainstBaseline
from srs_eval.comparison.report.words import few_users
from srs_eval.experiment.plan import Plan
from srs_eval.metrics.panel import Panel
from srs_eval.metrics.summary import MetricSummary
from srs_eval.metrics.threshold import STATISTICS, Confusion, ThresholdBias
from srs_eval.nouns import Fit, Metric
from srs_eval.results.fit_counts import bare_reason, fits_in_words, reason_of
from srs_eval.results.result import Result
from srs_eval.results.summary import Summary
from srs_eval.text.console import facts, interval, number, table

ENOUGH_REVIEWS = 100
ENOUGH_OF_A_KIND = 10

_REASONS_SHOWN = 5
_WORST_FIRST = ("failed", "skipped", "fallback", "ok")
_TITLES = {"ok": "note"}

_ARROWS = {"lower": "lower", "higher": "higher", "zero": "near 0", "neither": ""}


def announcement(plan: Plan, n_users: int) -> str:
    """Return what will be evaluated, and where the results will be."""
    experiment = plan.experiment
    protocol = experiment.protocol
    online = " (goes on learning while it is tested)" if experiment.algorithm.online else ""
    users = "1 user" if n_users == 1 else f"{n_users:,} users"
    fits = "1 fit" if protocol.folds == 1 else f"{protocol.folds} fits"
    return facts(
        {
            "algorithm": plan.about.label + online,
            "data": f"{experiment.source.location}: {users}",
            "protocol": f"{protocol.name}, version {protocol.version}: {fits} per user",
            "output": str(plan.options.folder),
        }
    )


def result_text(result: Result, panel: Panel, *, brief: bool = False) -> str:
    """Return how many reviews were scored, what failed, and the panel with its intervals.

    Parameters
    ----------
    brief : bool
        Leave out the panel, for one job of many.
    """
    users, fits = result.facts.users, result.fitted
    lines = [
        f"{_reviews(result)}; {users:,} of {len({fit.user for fit in fits}):,} users complete; "
        f"fits: {fits_in_words(fits)}"
    ]
    lines += [f"left out: {count:,} {reason}" for reason, count in result.facts.left_out.items()]
    lines += _notes(result.facts.notes)
    lines += _reasons(fits)
    lines += _too_few(result.facts) if users else []
    if users and not brief:
        lines += ["", _panel_table(panel, result)]
        lines += [few_users(users)] if few_users(users) else []
        lines += ["", _confusion_table(panel, result.facts.metrics)]
    return "\n".join(lines).rstrip()


def _reviews(result: Result) -> str:
    if result.reviews_read == 0:
        return "no reviews could be read"
    read = "" if result.reviews_read is None else f" of {result.reviews_read:,}"
    return f"scored {result.facts.reviews:,}{read} reviews"


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


def _notes(notes: Sequence[str]) -> list[str]:
    """Return the remarks on the logs of the first users, and count the others."""
    shown = [f"note: {note}" for note in notes[:_REASONS_SHOWN]]
    more = len(notes) - len(shown)
    return shown + ([f"note: {more:,} more in summary.json"] if more else [])


def _too_few(summary: Summary) -> list[str]:
    """Warn where the scores depend on a handful of reviews."""
    reviews, forgotten = summary.reviews, summary.forgotten
    if reviews >= ENOUGH_REVIEWS and ENOUGH_OF_A_KIND <= forgotten <= reviews - ENOUGH_OF_A_KIND:
        return []
    return [
        f"Too few reviews: {reviews:,} were scored and {forgotten:,} of them forgotten. Below "
        f"{ENOUGH_REVIEWS} reviews, or {ENOUGH_OF_A_KIND} forgotten or recalled ones, scores and "
        "intervals say next to nothing about an algorithm"
    ]


def _reasons(fits: Sequence[Fit]) -> list[str]:
    """Return the reasons and notes of fits, the worst first, and each reason once.

    Notes of fits that are ok are alike if they begin alike, up to a colon: numbers follow. The
    last of them has learned from most reviews.
    """
    alike: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        if fit.reason or fit.status != "ok":
            reason = bare_reason(fit)
            kind = reason.split(": ")[0] if fit.status == "ok" else reason
            alike.setdefault((fit.status, kind), []).append(fit)
    groups = sorted(alike.items(), key=lambda group: _WORST_FIRST.index(group[0][0]))
    shown = [
        f"{_TITLES.get(status, status)}: {reason_of(same[-1 if status == 'ok' else 0])}"
        + (f" (and {len(same) - 1:,} more)" if len(same) > 1 else "")
        for (status, _), same in groups[:_REASONS_SHOWN]
    ]
    more = sum(len(same) for _, same in groups[_REASONS_SHOWN:])
    return shown + ([f"… and {more:,} more, all in fits.parquet"] if more else [])


def _panel_table(panel: Panel, result: Result) -> str:
    shown = [
        (metric, result.facts.metrics[metric.name])
        for metric in panel
        if metric.section != Confusion.section
    ]
    over = f"99 % over {result.facts.interval_over}"
    if len(result.by_user.users) == 1:
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
