"""What a reader has to know beside the numbers, for every output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from srs_eval.comparison.entry import Entry
from srs_eval.comparison.standings import Standings, mean_of
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
    said = [text for run in runs for text in warnings(run, users)]
    said += standings.paired.notes
    said += [f"{run.name} {TRAITS[trait][1]}" for run in runs for trait in run.traits]
    said += [f"{run.name}: fits: {run.facts.exceptions}" for run in runs if run.facts.exceptions]
    if len({run.when for run in runs if not run.facts.sees_truth}) > 1:
        said.append(
            "Models that predict at different times have leaders of their own: a difference "
            "between them also contains what became known in between"
        )
    settings: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        setting = run.facts.tags.get("config_hash", "")
        if run.facts.algo and setting and not run.facts.is_validation and run.rank < 2:
            settings.setdefault((run.facts.algo, run.facts.protocol), set()).add(setting)
    for (algo, _), several in settings.items():
        if len(several) > 1:
            said.append(
                f"{len(several)} settings of {algo} were scored on the same test reviews: the best "
                "of them looks better than it is. Choose with protocol=validation, and score the "
                "choice once without it"
            )
    return said


def warnings(entry: Entry, users: Sequence[User]) -> list[str]:
    """Return why the scores of a model, on these users, are not what they seem."""
    said = []
    loss, wrong = (entry.values(name, users) for name in ("log_loss", "log_loss_certain_wrong"))
    defined = ~np.isnan(loss + wrong)
    sizes = np.array([entry.reviews[user] for user in users], np.float64)
    if wrong[defined].any():
        cost = float((wrong[defined] * _COST / sizes[defined]).mean())
        share = cost / float(loss[defined].mean())
        if share >= _DECIDING_SHARE:
            said.append(
                f"{entry.name}: {wrong[defined].sum():,.0f} certain predictions were wrong and "
                f"make up {100 * share:.0f} % of its log loss"
            )
    auc, entropy = (
        mean_of(entry, name, users).mean_users for name in ("auc", "normalized_entropy")
    )
    scores = [f"auc {number(auc)}"] if auc >= _TOO_GOOD_AUC else []
    scores += [f"normalized_entropy {number(entropy)}"] if entropy <= _TOO_GOOD_ENTROPY else []
    forgotten = entry.facts.forgotten or FEWEST_OF_A_KIND  # where it is not known
    enough = sizes.sum() >= FEWEST_REVIEWS and forgotten >= FEWEST_OF_A_KIND
    if scores and enough and not entry.facts.sees_truth:
        said.append(
            f"{entry.name}: {' and '.join(scores)}, too good for a model of memory. Does it read "
            "the outcome? srs_eval.check_algorithm finds out"
        )
    return said
