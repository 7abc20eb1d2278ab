"""The figures of a run, drawn from sums over its users, one user in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from srs_eval.data.reviews import FloatArray, IntArray
from srs_eval.evaluation.fits import Fit
from srs_eval.metrics.bins import FSRS_OPTIMIZER
from srs_eval.metrics.bootstrap import FineCounts, fine_counts
from srs_eval.metrics.panel import HEADLINE, default_panel
from srs_eval.metrics.predictions import Curves, Predictions, join_curves
from srs_eval.metrics.tally import Tally
from srs_eval.metrics.threshold import DEFAULT_THRESHOLDS
from srs_eval.plots.bins_plot import bins_figure
from srs_eval.plots.calibration_plot import calibration_figure
from srs_eval.plots.contributions_plot import contributions_figure
from srs_eval.plots.curves_plot import CELLS, elapsed_sums, forgetting_figure, nth_review_of_curves
from srs_eval.plots.roc_plot import roc_figure
from srs_eval.plots.style import annotate, save_figure
from srs_eval.plots.users_plot import users_figure


class RunSums:
    """Counts and sums over users, given one after the other, and a sample of forgetting curves."""

    def __init__(self, users: Iterable[Predictions]) -> None:
        counts = FineCounts(DEFAULT_THRESHOLDS)
        self.elapsed = np.zeros((CELLS, 5))
        self.bins = np.zeros((math.prod(FSRS_OPTIMIZER.shape), 3))
        curves: list[Curves] = []
        ordinals: list[IntArray | None] = []
        for predictions in users:
            tally = Tally.of(predictions)
            counts.add(*fine_counts(tally, DEFAULT_THRESHOLDS))
            self.elapsed += elapsed_sums(predictions)
            self.bins += FSRS_OPTIMIZER.sums(predictions, every=True)
            if predictions.curves is not None:
                curves.append(predictions.curves)
                ordinals.append(nth_review_of_curves(predictions))
        self.tally = counts.tally()
        self.curves: Curves | None = join_curves(curves)
        every = [each for each in ordinals if each is not None]
        self.nth_review = np.concatenate(every) if every and len(every) == len(ordinals) else None


def figure(name: str, sums: RunSums, scores: Mapping[str, FloatArray], title: str) -> Figure | None:
    """Draw one figure of a run; None if there is nothing to draw.

    Its name is ``calibration``, ``roc``, ``bins``, ``users`` or ``forgetting``; `scores` are those
    of each user [n_users] by metric.
    """
    if name == "calibration":
        return calibration_figure(sums.tally, title=title)
    if name == "roc":
        return roc_figure(sums.tally, title=title)
    if name == "bins":
        return bins_figure(sums.bins, title=title)
    if name == "forgetting":
        return forgetting_figure(sums.elapsed, sums.curves, nth_review=sums.nth_review, title=title)
    if max(map(len, scores.values()), default=0) < 2:
        return None  # one user has no distribution
    return users_figure(
        {metric: scores[metric] for metric in HEADLINE if metric in scores},
        better={metric.name: metric.better for metric in default_panel()},
        bounds={metric.name: metric.bounds for metric in default_panel()},
        title=title,
    )


def draw(
    users: Iterable[Predictions],
    scores: Mapping[str, FloatArray],
    folder: Path,
    *,
    fits: Sequence[Fit] = (),
    title: str,
    note: str = "",
) -> list[Path]:
    """Draw the figures of a run into a folder; return their files.

    `users` yields the predictions of each user, `scores` has the metrics of each user [n_users].
    Fits that tell what groups of features are worth have a figure of it. `title` is the subject of
    the figures, `note` a caveat written below each. Figures there is nothing for are left out.
    """
    sums = RunSums(users)
    names = ("calibration", "roc", "bins", "users", "forgetting")
    drawings = {name: figure(name, sums, scores, title) for name in names}
    worth = {fit.user: fit.contributions for fit in fits if fit.contributions}
    if worth:
        drawings["contributions"] = contributions_figure(list(worth.values()), title=title)
    paths = []
    for name, drawing in drawings.items():
        if drawing is not None:
            annotate(drawing, note)
            paths += save_figure(drawing, folder, name)
    return paths
