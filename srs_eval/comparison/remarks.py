"""Remarks on scores that could mislead, computed from the scores of the users compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.words import number, percent
from srs_eval.data.reviews import User
from srs_eval.metrics.panel import bias_at_retention
from srs_eval.metrics.summary import MetricSummary, summarise
from srs_eval.metrics.tally import CLIP
from srs_eval.metrics.threshold import nearby

# Share of a log loss from which on predictions that were certain and wrong are named.
_DECIDING_SHARE = 0.1
_COST = -math.log(CLIP)
# No model of memory comes near; one that reads the outcome does.
_TOO_GOOD_AUC = 0.99
_TOO_GOOD_ENTROPY = 0.1
# Below these, scores say next to nothing.
_ENOUGH_REVIEWS = 100
_ENOUGH_FORGOTTEN = 10


def warnings(entry: Entry, users: Sequence[User]) -> list[str]:
    """Return why the scores of a model, on these users, are not what they seem."""
    return [*_certain_and_wrong(entry, users), *_too_good(entry, users)]


def worse_than_a_constant(entries: Sequence[Entry], users: Sequence[User]) -> Iterator[str]:
    """Name the models that a constant beats, which is known only afterwards."""
    worse = []
    for entry in entries:
        ratio = mean_of(entry, "normalized_entropy", users)
        if ratio.mean_users > 1:
            unsure = "" if ratio.lo > 1 else ", not clearly"
            worse.append(f"{entry.name} ({percent(ratio.mean_users)} of its log loss{unsure})")
    if worse:
        yield (
            "Worse than a constant, the share of recalls of each user among these very reviews: "
            + "; ".join(worse)
        )


def at_retention(entry: Entry, users: Sequence[User]) -> Iterator[str]:
    """Say how far predictions near the default retention are from the outcomes."""
    metric = bias_at_retention(entry.scores)
    if metric is None:
        return
    name, retention = metric
    bias = mean_of(entry, name, users)
    low, high = (f"{100 * bound:g}" for bound in nearby(retention))
    if not bias.n_users:
        yield f"{entry.name} predicts {low} to {high} % for no review"
        return
    points = 100 * bias.mean_users
    clearly = "" if math.isnan(bias.lo) or not bias.lo <= 0 <= bias.hi else ", not clearly"
    over = f", over {bias.n_users:,} of {len(users):,} users" if len(users) > 1 else ""
    yield (
        f"Where {entry.name} predicts {low} to {high} %, it predicts {abs(points):.1f} percentage "
        f"points {'less' if points < 0 else 'more'} than are recalled{clearly}{over}"
    )


def mean_of(entry: Entry, metric: str, users: Sequence[User]) -> MetricSummary:
    """Return the mean over the users that a metric is defined for, with its interval.

    The interval of a single user is that of the run, if the run scored nothing else.
    """
    column = entry.values(metric, users)
    mean = summarise([metric], column[:, None], np.ones(len(users), np.int64), {})[metric]
    known = entry.facts.metrics.get(metric)
    if len(users) == 1 and known is not None and known.mean_users == mean.mean_users:
        return replace(mean, lo=known.lo, hi=known.hi)
    return mean


def _certain_and_wrong(entry: Entry, users: Sequence[User]) -> Iterator[str]:
    loss, wrong = (entry.values(name, users) for name in ("log_loss", "log_loss_certain_wrong"))
    known = ~np.isnan(loss + wrong)
    if not wrong[known].any():
        return
    sizes = np.array([entry.reviews[user] for user in users], np.float64)
    share = float((wrong[known] * _COST / sizes[known]).mean()) / float(loss[known].mean())
    if share >= _DECIDING_SHARE:
        yield (
            f"{entry.name}: {wrong[known].sum():,.0f} certain predictions were wrong and make up "
            f"{100 * share:.0f} % of its log loss"
        )


def _too_good(entry: Entry, users: Sequence[User]) -> Iterator[str]:
    names = ("auc", "normalized_entropy")
    auc, entropy = (mean_of(entry, name, users).mean_users for name in names)
    scores = [f"auc {number(auc)}"] if auc >= _TOO_GOOD_AUC else []
    scores += [f"normalized_entropy {number(entropy)}"] if entropy <= _TOO_GOOD_ENTROPY else []
    if not scores or "sees_truth" in entry.traits:
        return
    reviews = sum(entry.reviews[user] for user in users)
    forgotten = entry.facts.forgotten or _ENOUGH_FORGOTTEN  # where it is not known
    if reviews >= _ENOUGH_REVIEWS and forgotten >= _ENOUGH_FORGOTTEN:
        yield (
            f"{entry.name}: {' and '.join(scores)}, too good for a model of memory. Does it read "
            "the outcome? srs_eval.check_algorithm finds out"
        )
