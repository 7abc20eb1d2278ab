"""What is shown of runs: on the terminal the answer first, the rest is in files and figures."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from srs_eval.algorithms.algorithm import IN_WORDS
from srs_eval.errors import SrsEvalError
from srs_eval.metrics.panel import Panel, shown_metrics
from srs_eval.protocol.fractional_days import SrsBenchmarkSecs
from srs_eval.runs.summary import TRAITS, Summary

if TYPE_CHECKING:  # with Hydra, which `score` does without
    from srs_eval.runs.config import Setup
    from srs_eval.runs.folder import Run

_MOST_REASONS = 3
_HARDLY = 0.2


def advice(run: Run, setup: Setup) -> list[str]:
    """Return what to add where the protocol hardly scores a log and another scores most."""
    covered = run.facts.coverage.reviews
    if covered.scored >= _HARDLY * covered.read or isinstance(setup.protocol, SrsBenchmarkSecs):
        return []
    with suppress(SrsEvalError):
        reviews = setup.source.read(setup.source.users()[0])
        task = SrsBenchmarkSecs()(reviews, same_day=True)
        share = sum(len(fold.test) for fold in task.folds) / len(reviews)
        if share > 1 / 2:
            return [
                f"{setup.protocol.name} scores {100 * covered.scored / covered.read:.1f} % of the "
                f"reviews: add protocol=srs_benchmark_secs, which scores {100 * share:.0f} % of "
                "the first user's, also those of one day"
            ]
    return []


def run_text(run: Run, panel: Panel, seconds: float | None = None) -> str:
    """Return the result of one run: a sentence, a table, and what they rest on."""
    facts, covered = run.facts, run.facts.coverage
    fits = f"fits: {facts.exceptions}" if facts.exceptions else f"{facts.fits:,} fits"
    body = ["", table(facts, panel)] if facts.users and not facts.too_few else []
    lines = [
        _sentence(facts),
        *body,
        f"{facts.data}, {facts.protocol}: {covered.users.scored:,} of {covered.users.read:,} "
        f"users, {covered.reviews.scored:,} of {covered.reviews.read:,} reviews scored; {fits}"
        + (f"; {seconds:.1f} s" if seconds is not None else "")
        + "".join(f"; it {meaning}" for t, (_, meaning) in TRAITS.items() if getattr(facts, t)),
        *([f"caution: {covered.caution}"] if covered.caution else []),
        *_reasons(run),
        *(f"left out: {count:,} {reason}" for reason, count in facts.left_out.items()),
    ]
    return "\n".join(lines)


def _sentence(facts: Summary) -> str:
    """Return the log loss, and whether it is better than each user's share of recalls."""
    loss, ratio = (facts.metrics.get(name) for name in ("log_loss", "normalized_entropy"))
    if not facts.users:
        return f"{facts.label}: no user was scored."
    if facts.too_few:
        return f"{facts.label}. {facts.too_few}"
    if loss is None:
        return f"{facts.label}:"
    score = f"{facts.label}: log loss {loss.mean_users:.4f}"
    if ratio is None or math.isnan(ratio.mean_users):
        return f"{score}."
    gain = 100 * (1 - ratio.mean_users)
    side = "below" if gain >= 0 else "above"
    doubt = " That can be noise." if ratio.lo <= 1 <= ratio.hi or math.isnan(ratio.lo) else ""
    share = f"{abs(gain):.{1 if abs(gain) < 10 else 0}f} %"
    return f"{score}, {share} {side} the best constant guess.{doubt}"


def table(facts: Summary, panel: Panel) -> str:
    """Return the metrics that are shown, with their intervals."""
    rows = []
    for metric in shown_metrics(panel):
        if (row := facts.metrics.get(metric.name)) and row.n_users:
            interval = "" if math.isnan(row.lo) else f"[{row.lo:.4f}, {row.hi:.4f}]"
            rows.append((metric.name, f"{row.mean_users:.4f}", interval))
    mean = "score" if facts.interval_over == "cards and days" else "mean over users"
    headers = ("metric", mean, f"99 % over {facts.interval_over.partition(' (')[0]}")
    return tabulate(rows, headers, disable_numparse=True)


def line(run: Run, seconds: float) -> str:
    """Return the result of one job of several."""
    facts = run.facts
    score = "no user was scored"
    if facts.users and "log_loss" in facts.metrics:
        score = f"log_loss {facts.metrics['log_loss'].mean_users:>7.4f}"
    text = f"{run.folder.name:<24} {score}  {seconds:6.1f} s  {facts.exceptions}".rstrip()
    reasons = list(_reasons(run)) if facts.failed or not facts.users else []
    return "\n".join([text, *reasons[:1]])


def _reasons(run: Run) -> Iterator[str]:
    """Go through why users have no score, the failures first."""
    for each in run.facts.coverage.left_out[:_MOST_REASONS]:
        more = f" ({each.users:,} users)" if each.users > 1 else ""
        yield textwrap.fill(f"{each.status}: {each.reason}{more}", 100, break_long_words=False)


def drawn(run: Run, setup: Setup) -> list[Path]:
    """Draw the figures of a run in place of those of another in the folder; return the files."""
    shutil.rmtree(run.folder / "figures", ignore_errors=True)
    if not setup.content["figures"] or not run.by_user.complete:
        return []
    from srs_eval.plots import figures  # matplotlib: not where nothing is drawn

    return figures.draw(
        run.every_prediction(),
        dict(zip(run.by_user.names, run.by_user.values.T, strict=True)),
        run.folder / "figures",
        fits=list(run.fits()),
        title=f"{run.facts.label} on {setup.source.name}",
        note=note_of(run),
    )


def note_of(run: Run) -> str:
    """Return what a reader of a figure should know: when, and irregular fits."""
    return "; ".join(filter(None, [f"predicted {IN_WORDS[run.facts.when]}", run.facts.exceptions]))
