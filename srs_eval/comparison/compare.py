"""Compare runs: pair them on the same reviews, and judge them by one metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from srs_eval.comparison.entry import Entry, with_own_names
from srs_eval.comparison.pairing import pair
from srs_eval.comparison.standings import Standings, usual_baseline
from srs_eval.data.reviews import User
from srs_eval.errors import ConfigError
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import full_panel


def compare(
    runs: Sequence[Entry],
    *,
    metric: str = "log_loss",
    baseline: str | None = None,
    yardsticks: Sequence[Entry] = (),
    intersect: bool = False,
    users: Sequence[User] | None = None,
    notes: Sequence[str] = (),
) -> Standings:
    """Compare runs on the same reviews by one metric, and return the standings.

    Runs of the same name are distinguished by protocol or folder; `yardsticks` are published runs
    to list beside the others, and may have more users. `metric` is any with a better direction;
    runs without it are listed without a score. `baseline` is the name, algorithm or folder of the
    run that the others are compared with; by default each user's average, or else the first run.

    With `intersect`, compare on the reviews that all runs scored, instead of raising an error where
    they differ; without saved predictions, on the users for whom all runs scored the same reviews.
    With `users`, compare on these alone. `notes` are remarks on the runs, for every output.

    Raise `ConfigError` if there are no runs, or they differ in users or reviews; if no run has the
    metric, or it has no better direction; or if no single run has the name of the baseline.
    """
    named = with_own_names([*runs, *yardsticks])
    if not named:
        raise ConfigError("there are no runs to compare")
    own, others = named[: len(runs)], named[len(runs) :]
    paired = pair(own, others, intersect=intersect, users=users, notes=notes)
    ranked = directions(named)
    if metric not in ranked:
        known = metric in {name for run in named for name in run.scores}
        why = "its better direction is unknown" if known else "no run has it"
        raise ConfigError(f"metric={metric}: {why}; there are {', '.join(sorted(ranked))}")
    infinite = np.flatnonzero(np.isinf(paired.scores(metric)).any(axis=0))
    if len(infinite):
        place = named[int(infinite[0])].place
        raise ConfigError(f"{place}: {metric} of a user is infinite; scores are finite or NaN")
    number = usual_baseline(named) if baseline is None else _numbered(named, baseline)
    return Standings(paired, metric, ranked[metric], number)


def directions(runs: Sequence[Entry]) -> dict[str, Better]:
    """Return the metrics of the runs that can be compared, with their better direction."""
    known: dict[str, Better] = {"rmse": "lower", **{m.name: m.better for m in full_panel()}}
    metrics = dict.fromkeys(name for run in runs for name in run.scores)
    return {name: known[name] for name in metrics if known.get(name, "neither") != "neither"}


def _numbered(runs: Sequence[Entry], name: str) -> int:
    """Return the number of the only run with a name, an algorithm or a folder."""
    folder = Path(name).expanduser().resolve()
    for wanted, of_runs in (
        (name, [run.name for run in runs]),
        (name, [run.facts.label for run in runs]),
        (name, [run.facts.algo for run in runs]),
        (name, [run.place.resolve().name for run in runs]),
        (str(folder), [str(run.place.resolve()) for run in runs]),
    ):
        if of_runs.count(wanted) == 1:
            return of_runs.index(wanted)
    names = ", ".join(run.name for run in runs)
    raise ConfigError(f"baseline={name}: no unique run with this name; there are {names}")
