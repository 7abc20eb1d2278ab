"""What a reader has to know beside the numbers, for every output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from srs_eval.algorithms.algorithm import UNKNOWN
from srs_eval.comparison.entry import Entry
from srs_eval.comparison.standings import (
    Standings,
    mean_of,
)
from srs_eval.comparison.words import number
from srs_eval.data.reviews import User
from srs_eval.metrics.tally import CLIP
from srs_eval.runs.summary import FEWEST_OF_A_KIND, FEWEST_REVIEWS, TRAITS

# Share of a log loss from which on predictions that were certain and wrong are named
_DECIDING_SHARE = 0.1
_COST = -math.log(CLIP)
# No model of memory comes near; one that reads the outcome does
_TOO_GOOD_AUC = 0.99
_TOO_GOOD_ENTROPY = 0.1


def remarks(standings: Standings) -> list[str]:
    """List everything a reader has to know beside the numbers."""
    runs, users = standings.runs, standings.paired.users
    return [
        *(text for n in standings.board.order for text in warnings(runs[n], users)),
        *standings.paired.notes,
        *(f"{run.name} {TRAITS[trait][1]}" for run in runs for trait in run.traits),
        *(f"{run.name}: fits: {run.facts.exceptions}" for run in runs if run.facts.exceptions),
        *_of_times(standings),
        *_choices_by_test_rows(runs),
    ]


def warnings(entry: Entry, users: Sequence[User]) -> list[str]:
    """Return why the scores of a model, on these users, are not what they seem."""
    return [*_certain_and_wrong(entry, users), *_too_good(entry, users)]


def _certain_and_wrong(entry: Entry, users: Sequence[User]) -> Iterator[str]:
    loss, wrong = (entry.values(name, users) for name in ("log_loss", "log_loss_certain_wrong"))
    defined = ~np.isnan(loss + wrong)
    if not wrong[defined].any():
        return
    sizes = np.array([entry.reviews[user] for user in users], np.float64)
    share = float((wrong[defined] * _COST / sizes[defined]).mean()) / float(loss[defined].mean())
    if share >= _DECIDING_SHARE:
        yield (
            f"{entry.name}: {wrong[defined].sum():,.0f} certain predictions were wrong and make up "
            f"{100 * share:.0f} % of its log loss"
        )


def _too_good(entry: Entry, users: Sequence[User]) -> Iterator[str]:
    auc, entropy = (
        mean_of(entry, name, users).mean_users for name in ("auc", "normalized_entropy")
    )
    scores = [f"auc {number(auc)}"] if auc >= _TOO_GOOD_AUC else []
    scores += [f"normalized_entropy {number(entropy)}"] if entropy <= _TOO_GOOD_ENTROPY else []
    if not scores or "sees_truth" in entry.traits:
        return
    reviews = sum(entry.reviews[user] for user in users)
    forgotten = entry.facts.forgotten or FEWEST_OF_A_KIND  # where it is not known
    if reviews >= FEWEST_REVIEWS and forgotten >= FEWEST_OF_A_KIND:
        yield (
            f"{entry.name}: {' and '.join(scores)}, too good for a model of memory. Does it read "
            "the outcome? srs_eval.check_algorithm finds out"
        )


def _of_times(standings: Standings) -> Iterator[str]:
    """Explain what differs between models that predict at different times."""
    times = {run.when for run in standings.runs}
    if len(times) > 1:
        yield (
            "Models that predict at different times have leaders of their own: a difference "
            "between them also contains what became known in between"
        )
    if UNKNOWN in times:
        yield "When unknown: published scores that do not say when predictions are made"


def _choices_by_test_rows(runs: Sequence[Entry]) -> Iterator[str]:
    """Warn of each algorithm of which several settings were scored on the same test reviews."""
    settings: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        setting = run.facts.tags.get("config_hash", "")
        if run.facts.algo and setting and not run.facts.is_validation and not run.is_apart:
            settings.setdefault((run.facts.algo, run.facts.protocol), set()).add(setting)
    for (algo, _), hashes in settings.items():
        if len(hashes) > 1:
            yield (
                f"{len(hashes)} settings of {algo} were scored on the same test reviews: the best "
                "of them looks better than it is. Choose with protocol=validation, and score the "
                "choice once without it"
            )
