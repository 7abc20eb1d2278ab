"""What the terminal shows of runs: the answer first, the rest is in files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from tabulate import tabulate

from srs_eval.errors import SrsEvalError
from srs_eval.metrics.headline import shown_metrics
from srs_eval.metrics.panel import Panel
from srs_eval.nouns import User
from srs_eval.nouns.capabilities import misspelt
from srs_eval.runs.checkpoint import Checkpoint
from srs_eval.runs.config import Setup
from srs_eval.runs.console import complain, say
from srs_eval.runs.evaluation import Evaluation
from srs_eval.runs.folder import Run

_WIDTH = 100
_MOST_REASONS = 3
_HARDLY = 0.2
_USERS_TRIED = 10
_LONGEST_REASON = 400
_TRAITS = {
    "sees_truth": "knows the truth of simulated users: a bound, not a model",
    "in_sample": "may have been fitted to the very reviews that it is scored on",
}


def announce(setup: Setup, checkpoint: Checkpoint, users: Sequence[User]) -> None:
    """Print, before the first fit, what a person may have meant otherwise."""
    algo, protocol = setup.choices["algo"], setup.protocol
    for problem in misspelt(setup.algorithm):
        complain(f"algo={algo}: {problem}")
    if _in_fractional_days(setup) and getattr(setup.algorithm, "for_whole_days", False):
        complain(
            f"algo={algo} predicts by a model made for whole days, and protocol={protocol.name} "
            "counts fractional days; fsrs7 and logistic were made for these"
        )
    if list(checkpoint.folder.glob(".lock_*_of_*")):
        missing = sum(checkpoint.find(user) is None for user in users)
        if missing:
            say(f"evaluates {missing:,} of {len(users):,} users that no shard has done")


def advice(run: Run, setup: Setup) -> list[str]:
    """Return what to add where the protocol hardly scores a log and another scores most."""
    covered = run.facts.coverage.reviews
    if covered.scored >= _HARDLY * covered.read or _in_fractional_days(setup):
        return []
    read = scored = 0
    for user in run.by_user.users[:_USERS_TRIED] or setup.source.users()[:_USERS_TRIED]:
        try:
            log = setup.source.read(user)
        except SrsEvalError:
            continue
        read += len(log)
        if log.elapsed_seconds is not None:
            scored += int(np.count_nonzero(log.elapsed_seconds > 0))
    if scored <= read / 2:
        return []
    return [
        f"{setup.protocol.name} scores {covered.scored / covered.read:.1%} of the reviews: add "
        f"protocol=srs_benchmark_secs, which scores up to {scored / read:.0%} of them"
    ]


def run_text(run: Run, panel: Panel, seconds: float) -> str:
    """Return the result of one run."""
    facts, covered = run.facts, run.facts.coverage
    counts = {"failed": facts.failed, "fallback": facts.fallback, "skipped": facts.skipped}
    counts = {"ok": facts.fits - sum(counts.values()), **counts}
    fits = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    several = facts.interval_over != "cards and days"
    lines = [
        f"{facts.label} on {facts.data}, {facts.protocol}: {covered.users.scored:,} of "
        f"{covered.users.read:,} users, {covered.reviews.scored:,} of {covered.reviews.read:,} "
        f"reviews scored; fits: {fits or 'none'}; {seconds:.1f} s",
        *(f"{facts.label} {said}" for trait, said in _TRAITS.items() if getattr(facts, trait)),
        *_left_out(run),
    ]
    rows = [
        (metric.name, f"{row.mean_users:.4f}", _interval(row.lo, row.hi))
        for metric in shown_metrics(panel)
        if (row := facts.metrics.get(metric.name)) and facts.users
    ]
    if rows:
        over = f"99 % over {facts.interval_over.partition(' (')[0]}"
        headers = ("metric", "mean over users" if several else "score", over)
        lines += ["", tabulate(rows, headers, disable_numparse=True), ""]
    return "\n".join(lines)


def line(run: Run, seconds: float) -> str:
    """Return the result of one job of several."""
    facts = run.facts
    score = "no user was scored"
    if facts.users and "log_loss" in facts.metrics:
        score = f"log_loss {facts.metrics['log_loss'].mean_users:>7.4f}"
    counts = {"failed": facts.failed, "fallback": facts.fallback}
    bad = ", ".join(f"{n:,} of {facts.fits:,} fits {how}" for how, n in counts.items() if n)
    lines = [f"{run.folder.name:<24} {score}  {seconds:6.1f} s  {bad}".rstrip()]
    if facts.failed or not facts.users:
        lines += list(_reasons(run))[:1]
    return "\n".join(lines)


def shard_text(shard: str, evaluation: Evaluation, folder: Path) -> str:
    """Return the result of a shard."""
    users, failed = len(evaluation.users), evaluation.summary.failed
    bad = f", {failed:,} of {evaluation.summary.fits:,} fits failed" if failed else ""
    return (
        f"shard {shard}: {users:,} users are done in {folder}{bad}\n"
        "the same command without shard= adds up all shards"
    )


def _left_out(run: Run) -> Iterator[str]:
    """Go through what is left out for which reason."""
    covered = run.facts.coverage
    if covered.caution:
        yield covered.caution
    yield from _reasons(run)
    for reason, count in run.facts.left_out.items():
        yield f"left out: {count:,} {reason}"


def _reasons(run: Run) -> Iterator[str]:
    """Go through why users have no score, the failures first."""
    for each in run.facts.coverage.left_out[:_MOST_REASONS]:
        reason = textwrap.shorten(each.reason, _LONGEST_REASON, placeholder=" …")
        more = f" ({each.users:,} users)" if each.users > 1 else ""
        yield textwrap.fill(f"{each.status}: {reason}{more}", _WIDTH, break_long_words=False)


def _in_fractional_days(setup: Setup) -> bool:
    return bool(getattr(setup.protocol, "in_fractional_days", False))


def _interval(lo: float, hi: float) -> str:
    return "" if math.isnan(lo) else f"[{lo:.4f}, {hi:.4f}]"
