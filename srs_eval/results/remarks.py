"""Remarks on scores that could mislead, the same beside a run and beside a comparison.

All are computed from the scores of each user, so that those of a comparison are about the users
that it compares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from srs_eval.metrics.headline import bias_at_retention
from srs_eval.metrics.proper import CLIP
from srs_eval.metrics.summary import MetricSummary, summarise
from srs_eval.metrics.threshold import nearby
from srs_eval.nouns import User
from srs_eval.results.run import Run
from srs_eval.stats.estimate import ENOUGH_USERS
from srs_eval.text.console import number

# Below these, scores say next to nothing.
ENOUGH_REVIEWS = 100
ENOUGH_OF_A_KIND = 10

# Share of a log loss from which on predictions that were certain and wrong are named.
_DECIDING_SHARE = 0.1
_COST = -math.log(CLIP)
# No model of memory comes near; one that reads the outcome does.
_TOO_GOOD_AUC = 0.99
_TOO_GOOD_ENTROPY = 0.1


def sentences(run: Run) -> list[str]:
    """Return in words how good the predictions of a run are, as far as it has the metrics."""
    users = tuple(run.rows)
    return [*_against_constant(run, users), *_calibration(run, users), *at_retention(run, users)]


def warnings(run: Run, users: Sequence[User] | None = None) -> list[str]:
    """Return why the scores of a run, on these users or all, are not what they seem."""
    users = tuple(run.rows) if users is None else users
    return [*_certain_and_wrong(run, users), *_too_good(run, users)]


def too_few(reviews: int, forgotten: int) -> list[str]:
    """Return why scores of so many reviews depend on a handful of them; nothing if they do not."""
    if reviews >= ENOUGH_REVIEWS and ENOUGH_OF_A_KIND <= forgotten <= reviews - ENOUGH_OF_A_KIND:
        return []
    return [
        f"Too few reviews: {reviews:,} were scored and {forgotten:,} of them forgotten. Below "
        f"{ENOUGH_REVIEWS} reviews, or {ENOUGH_OF_A_KIND} forgotten or recalled ones, scores and "
        "intervals say next to nothing about an algorithm"
    ]


def few_users(users: int) -> str:
    """Return a warning about means over few users; "" if there are enough, or only one."""
    return f"Only {users} users" if 1 < users < ENOUGH_USERS else ""


def worse_than_a_constant(run: Run, users: Sequence[User]) -> str:
    """Return that a constant of each user would have a lower log loss; "" if it would not."""
    ratio = mean_of(run, "normalized_entropy", users)
    if not ratio.mean_users > 1:
        return ""
    unsure = "" if ratio.lo > 1 else ", though not significantly,"  # also without an interval
    whose = "each user's" if len(users) > 1 else "the"
    return (
        f"by {_ratio(users)}{unsure} worse than a constant that is known only afterwards, {whose} "
        f"share of recalls{_over(ratio, users)}"
    )


def those_worse_than_a_constant(runs: Sequence[Run], users: Sequence[User]) -> list[str]:
    """Return a remark that names the runs that a constant beats; none if there are none."""
    named = []
    for run in runs:
        ratio = mean_of(run, "normalized_entropy", users)
        if ratio.mean_users > 1:
            unsure = "" if ratio.lo > 1 else ", not significantly"
            fewer = _over(ratio, users)
            named.append(
                f"{run.name} ({_percent(ratio.mean_users)} of its log loss{fewer}{unsure})"
            )
    than = f"Worse by {_ratio(users)} than predicting {_constant(users)}"
    return [f"{than}: {'; '.join(named)}"] if named else []


def at_retention(run: Run, users: Sequence[User]) -> list[str]:
    """Return in words how far predictions near the default retention are from the outcomes."""
    metric = bias_at_retention(run.scores)
    if metric is None or not users:
        return []
    name, retention = metric
    bias = mean_of(run, name, users)
    low, high = (f"{100 * bound:g}" for bound in nearby(retention))
    at = f"{100 * retention:g} %"
    if not bias.n_users:
        return [
            f"{run.name} predicts {low} to {high} % for no review: whether it is calibrated where "
            f"an app schedules at {at} cannot be known"
        ]
    points = 100 * bias.mean_users
    differs = f", {'not ' if bias.lo <= 0 <= bias.hi else ''}significantly"
    if math.isnan(bias.lo):
        differs = ", without an interval" if len(users) == 1 else ""
    without = len(users) - bias.n_users
    others = "; the others have no such prediction" if without else ""
    counted = f" (mean over {bias.n_users:,} of {len(users):,} users{others})"
    return [
        f"Where {run.name} predicts about {at} ({low} to {high} %), it predicts "
        f"{abs(points):.1f} percentage points {'less' if points < 0 else 'more'} than are recalled"
        f"{differs}{counted if len(users) > 1 else ''}"
    ]


def mean_of(run: Run, metric: str, users: Sequence[User]) -> MetricSummary:
    """Return the mean over the users that a metric is defined for, with its interval.

    The interval of a single user is that of the run, if the run scored nothing else.
    """
    column = run.values(metric, users)
    found = summarise([metric], column[:, None], np.ones(len(users), np.int64), {})[metric]
    known = run.facts.metrics.get(metric)
    if len(users) == 1 and known is not None and known.mean_users == found.mean_users:
        return replace(found, lo=known.lo, hi=known.hi)
    return found


def _against_constant(run: Run, users: Sequence[User]) -> Iterator[str]:
    ratio = mean_of(run, "normalized_entropy", users)
    if math.isnan(ratio.mean_users):
        return
    differs = ""
    if ratio.lo <= 1 <= ratio.hi:
        differs = ": not significantly different"
    elif not math.isnan(ratio.lo):
        differs = f": significantly {'better' if ratio.hi < 1 else 'worse'}"
    both = " with answers of both kinds" if ratio.n_users < len(users) else ""
    yield (
        f"{run.name} has {_percent(ratio.mean_users)} of the log loss of predicting "
        f"{_constant(users)}{_over(ratio, users)}{both}{differs}"
    )


def _ratio(users: Sequence[User]) -> str:
    """Return what is compared with 1: the mean of ratios, not the ratio of mean log losses."""
    return "mean normalized_entropy" if len(users) > 1 else "normalized_entropy"


def _over(ratio: MetricSummary, users: Sequence[User]) -> str:
    """Return over how many users the ratio is: it needs answers of both kinds."""
    if ratio.n_users == len(users):
        return ""
    return f", over {ratio.n_users:,} of {len(users):,} users"


def _constant(users: Sequence[User]) -> str:
    """Return a name of the constant that normalized_entropy divides by."""
    whose = "each user's" if len(users) > 1 else "the"
    return f"{whose} share of recalls among these very reviews, which is known only afterwards"


def _calibration(run: Run, users: Sequence[User]) -> Iterator[str]:
    error, floor = (mean_of(run, name, users).mean_users for name in ("smece", "smece_floor"))
    if not math.isnan(error + floor):
        yield (
            f"Its calibration error is {number(error)}, where a perfectly calibrated model would "
            f"show {number(floor)} by chance"
        )


def _certain_and_wrong(run: Run, users: Sequence[User]) -> Iterator[str]:
    loss, wrong = (run.values(name, users) for name in ("log_loss", "log_loss_certain_wrong"))
    known = ~np.isnan(loss + wrong)
    if not wrong[known].any():
        return
    sizes = np.array([run.reviews[user] for user in users], np.float64)
    mean = float(loss[known].mean())
    theirs = float((wrong[known] * _COST / sizes[known]).mean())
    if theirs >= _DECIDING_SHARE * mean:
        yield (
            f"{run.name}: {wrong[known].sum():,.0f} certain predictions were wrong and make up "
            f"{100 * theirs / mean:.0f} % of its log loss: each costs {_COST:.2f}"
        )


def _too_good(run: Run, users: Sequence[User]) -> Iterator[str]:
    auc, entropy = (mean_of(run, name, users).mean_users for name in ("auc", "normalized_entropy"))
    found = [f"auc {number(auc)}"] if auc >= _TOO_GOOD_AUC else []
    found += [f"normalized_entropy {number(entropy)}"] if entropy <= _TOO_GOOD_ENTROPY else []
    if not found or "sees_truth" in run.traits:
        return
    reviews = sum(run.reviews[user] for user in users)
    forgotten = run.facts.forgotten or ENOUGH_OF_A_KIND  # where it is not known
    if reviews >= ENOUGH_REVIEWS and forgotten >= ENOUGH_OF_A_KIND:
        yield (
            f"{run.name}: {' and '.join(found)}, too good for a model of memory. Does it read the "
            "outcome? srs_eval.check_algorithm finds out"
        )


def _percent(ratio: float) -> str:
    """Format a ratio in percent, with enough digits to show its side of 100 %."""
    digits = 0
    while digits < 4 and ratio != 1 and float(f"{100 * ratio:.{digits}f}") == 100:
        digits += 1
    return f"{100 * ratio:.{digits}f} %"
