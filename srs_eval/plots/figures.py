"""The figures of a run, drawn from sums over its users, one user in memory at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.bins import FSRS_OPTIMIZER, every_bin
from srs_eval.metrics.metric import Better
from srs_eval.metrics.panel import default_panel
from srs_eval.metrics.pooled import FineCounts, fine_counts
from srs_eval.metrics.predictions import Curves, Predictions, join_curves
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
from srs_eval.plots.bins_plot import bins_figure
from srs_eval.plots.calibration_plot import calibration_figure
from srs_eval.plots.contributions_plot import contributions_figure
from srs_eval.plots.curves_plot import forgetting_figure, nth_review_of_curves
from srs_eval.plots.recall_over_time import CELLS, elapsed_sums
from srs_eval.plots.roc_plot import roc_figure
from srs_eval.plots.style import annotate, save_figure
from srs_eval.plots.users_plot import HEADLINE, users_figure

_OF_TALLY = {"calibration": calibration_figure, "roc": roc_figure}
_CONTRIBUTIONS = "contributions"
NAMES = (*_OF_TALLY, "bins", "users", "forgetting", _CONTRIBUTIONS)


class Pictured:
    """Counts and sums over users, given one after the other, and a sample of forgetting curves."""

    def __init__(self, users: Iterable[Predictions]) -> None:
        counts = FineCounts(DEFAULT_THRESHOLDS)
        self.elapsed = np.zeros((CELLS, 5))
        self.bins = np.zeros((FSRS_OPTIMIZER.cells, 3))
        curves: list[Curves] = []
        nth: list[IntArray | None] = []
        for predictions in users:
            tally = Tally.of(predictions)
            counts.add(*fine_counts(tally, DEFAULT_THRESHOLDS), tally.precision)
            self.elapsed += elapsed_sums(predictions)
            self.bins += every_bin(FSRS_OPTIMIZER, predictions)
            if predictions.curves is not None:
                curves.append(predictions.curves)
                nth.append(nth_review_of_curves(predictions))
        self.tally = counts.tally()
        self.curves: Curves | None = join_curves(curves)
        known = [numbers for numbers in nth if numbers is not None]
        self.nth_review = np.concatenate(known) if known and len(known) == len(nth) else None


def draw(
    users: Iterable[Predictions],
    scores: Mapping[str, FloatArray],
    better: Mapping[str, Better],
    folder: Path,
    *,
    names: Collection[str] = NAMES,
    fits: Sequence[Fit] = (),
    title: str,
    note: str = "",
) -> dict[str, list[Path]]:
    """Draw figures of a run, by default all, into a folder, and return the files of each.

    `users` yields the predictions of each user, `scores` has the metrics of each user [n_users] and
    `better` their directions. Fits that tell what groups of features are worth have a figure of it.
    `title` is the subject of the figures, `note` a caveat written below each. Figures there is
    nothing for are left out.
    """
    paths = {}
    seen = Pictured(users)
    for name in names:
        if name == _CONTRIBUTIONS:
            last = {fit.user: fit.contributions for fit in fits if fit.contributions}
            made = contributions_figure(list(last.values()), title=title) if last else None
        else:
            made = figure(name, seen, scores, better, title=title)
        if made is not None:
            annotate(made, note)
            paths[name] = save_figure(made, folder, name)
    return paths


def figure(
    name: str,
    seen: Pictured,
    scores: Mapping[str, FloatArray],
    better: Mapping[str, Better],
    *,
    title: str,
) -> Figure | None:
    """Draw the figure of a run that is called `name`, one of `NAMES`; None if there is nothing.

    Other arguments are those of `draw`.
    """
    if name in _OF_TALLY:
        return _OF_TALLY[name](seen.tally, title=title)
    if name == "bins":
        return bins_figure(seen.bins, title=title)
    if name == "users":
        if max(map(len, scores.values()), default=0) < 2:
            return None  # one user has no distribution
        shown = {metric: values for metric, values in scores.items() if metric in HEADLINE}
        bounds = {m.name: m.bounds for m in default_panel() if m.name in shown}
        return users_figure(shown, better=better, bounds=bounds, title=title)
    return forgetting_figure(seen.elapsed, seen.curves, nth_review=seen.nth_review, title=title)
